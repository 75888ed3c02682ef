"""``sparsemargin info``: describe the contents of files."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click
import numpy as np

from sparsemargin.cli.app import failure_of
from sparsemargin.cli.display import listed, percent, print_facts, size_in_words, watched
from sparsemargin.cli.files import ReadingOptions, check_apart
from sparsemargin.cli.options import FILES, JSON, N_JOBS, TRACEBACK, document_options, make_command
from sparsemargin.files.compression import encoding_named
from sparsemargin.files.kinds import FORMS, KIND_NAMES, Kind, check_readable, kind_of
from sparsemargin.files.sources import STANDARD_INPUT, Source, open_sources
from sparsemargin.models.inputs.label_table import LabelTable
from sparsemargin.models.inputs.labels import label_text
from sparsemargin.readers.reading import LARGEST_INDEX, Reading, threads_for
from sparsemargin.readers.row_cache import RowCache
from sparsemargin.readers.svmlight import Corpus
from sparsemargin.readers.text_forms import DocumentForm
from sparsemargin.readers.texts import pieces, take_labels
from sparsemargin.saving.model_files import read_summary
from sparsemargin.streaming.predict import check_form

_EXAMPLES = """
sparsemargin info train.svm
sparsemargin info 'data/*' --json
"""


@make_command("info", _EXAMPLES)
@FILES
@N_JOBS
@document_options
@JSON
def command(files: tuple[str, ...], as_json: bool, **reading: Any) -> None:
    """Describe files: texts, cells, row caches, models.

    Texts and row caches are read completely to count rows, features, entries and labels. For cells,
    --label counts the types. An error in one file does not stop the others. The exit code is then
    1.
    """
    options = ReadingOptions.of(reading)
    figures, failures = list[dict[str, Any]](), 0
    # This raises an error if standard input is named twice.
    open_sources([STANDARD_INPUT] * max(1, files.count(STANDARD_INPUT)))
    found = [(name, each) for name in files for each in _found(name)]
    check_apart(each for _, each in found if isinstance(each, Source))
    for name, source in found:
        try:
            if isinstance(source, Exception):
                raise source
            texts = encoding_named(options.encoding) != "utf-8"
            kind = kind_of(source, options.format, texts=texts)
            figures.append(_figures(source, kind, options))
        except (OSError, ValueError) as error:
            if click.get_current_context().meta.get(TRACEBACK):
                raise
            failures += 1
            failure = failure_of(error, click.get_current_context().command)
            name = source.name if isinstance(source, Source) else name
            figures.append({"file": name, "error": failure.message})
            if not as_json:
                failure.show()
    if as_json:
        click.echo(json.dumps({"files": figures}, default=str))
    else:
        for i, entry in enumerate(entry for entry in figures if "error" not in entry):
            click.echo(nl=i > 0)
            print_facts(_facts(entry))
    if failures:
        click.get_current_context().exit(1)


def _found(name: str) -> Sequence[Source | Exception]:
    """Return the files with a name, or the error if there are none."""
    try:
        return open_sources(name)
    except (OSError, ValueError) as error:
        return [error]


class _Tally:
    """Counts of rows, entries and labels."""

    def __init__(self) -> None:
        self.rows = self.entries = self.unlabelled = self.several = 0
        self.labels = np.zeros(0, dtype=np.int64)

    def add(self, block: Any) -> None:
        """Add the counts of a block of rows."""
        n_rows = len(block.indptr) - 1
        self.rows += n_rows
        self.entries += len(block.data)
        counts = np.bincount(block.labels, minlength=len(self.labels))
        counts[: len(self.labels)] += self.labels
        self.labels = counts
        if block.label_start is not None:
            per_row = np.diff(block.label_start)
            self.unlabelled += int(np.count_nonzero(per_row == 0))
            self.several += int(np.count_nonzero(per_row > 1))

    def figures(self, n_features: int, texts: list[str]) -> dict[str, Any]:
        """Return all counts, with the labels sorted by decreasing number of rows."""
        cells = self.rows * n_features
        order = np.argsort(-self.labels, kind="stable").tolist()
        return {
            "rows": self.rows,
            "features": n_features,
            "entries": self.entries,
            "density": self.entries / cells if cells else None,
            "rows_without_label": self.unlabelled,
            "rows_of_several_labels": self.several,
            "labels": [{"label": texts[i], "rows": int(self.labels[i])} for i in order],
        }


def _figures_of_text(source: Source, n_jobs: int | None) -> dict[str, Any]:
    """Return the figures of a file of svmlight text, which is read completely."""
    table, tally = LabelTable(), _Tally()
    reading = Reading(multilabel=True)
    corpus = Corpus([source], reading, threads_for(n_jobs), purpose="counting")
    lowest, highest = LARGEST_INDEX, -1
    for block in watched(corpus.scan(table, LARGEST_INDEX), corpus):
        if not tally.rows:
            check_form(block, corpus)
        tally.add(block)
        lowest, highest = min(lowest, block.lowest), max(highest, block.highest)
    zero_based = lowest == 0
    return {
        "compression": source.compression,
        **tally.figures(max(highest, 0) + zero_based, table.short_texts()),
        "zero_based": zero_based,
        "lowest_index": None if highest < 0 else lowest,
        "highest_index": None if highest < 0 else highest,
    }


def _figures_of_documents(source: Source, how: DocumentForm) -> dict[str, Any]:
    """Return the figures of a file of texts, which is read completely."""
    table, rows_of = LabelTable(), Counter[int]()
    counts = Counter[int]()
    for piece in pieces(source, replace(how, multilabel=True, commas=False, counted=False)):
        documents = piece()
        for note in documents.notes:
            warnings.warn(note, stacklevel=1)
        labels = Counter(documents.parsed.labels)
        ids = take_labels(table, list(labels), documents.numeric).tolist()
        for label, n_rows in zip(ids, labels.values(), strict=True):
            rows_of[label] += n_rows
        counts.update(documents.parsed.counts.tolist())
    texts = table.short_texts()
    return {
        "compression": source.compression,
        "form": how.of(source),
        "rows": counts.total(),
        "rows_without_label": counts[0],
        "rows_of_several_labels": counts.total() - counts[0] - counts[1],
        "labels": [{"label": texts[i], "rows": n_rows} for i, n_rows in rows_of.most_common()],
    }


def _figures_of_cache(source: Source, n_jobs: int | None) -> dict[str, Any]:
    """Return the figures of a row cache. All blocks are read and verified."""
    tally = _Tally()
    with RowCache.open(source.name) as cache:
        for rows in cache.blocks():
            tally.add(rows)
        table = LabelTable(cache.label_texts, cache.label_numbers)
        # Column 0 is not counted if indices start at 1.
        n_features = min(cache.n_columns, cache.highest + (cache.lowest == 0))
        return {**tally.figures(n_features, table.short_texts()), "dtype": cache.dtype.name}


def _figures_of_model(source: Source, n_jobs: int | None) -> dict[str, Any]:
    """Return the figures of a model file, from its summary."""
    summary = read_summary(source.name)
    return {**summary, "classes": [label_text(label) for label in summary["classes"]]}


def _cell_facts(figures: dict[str, Any]) -> dict[str, str]:
    numbers = {name: f"{figures[name]:,}" for name in ("cells", "genes", "entries")}
    lists = {name: listed(figures[name]) for name in ("layers", "obs") if figures[name]}
    types = [f"{entry['label']} ({entry['rows']:,})" for entry in figures.get("labels", ())]
    of_types = {"types": listed(types)} if types else {}
    return {**numbers, "values": figures["values"], **lists, **of_types}


_FIGURES = {
    "svmlight": _figures_of_text,
    "cache": _figures_of_cache,
    "model": _figures_of_model,
}


def _figures(source: Source, kind: Kind, options: ReadingOptions) -> dict[str, Any]:
    """Return the figures of a file."""
    about = {"file": source.name, "bytes": source.size, "kind": kind}
    if kind in FORMS:
        return {**about, "kind": "texts", **_figures_of_documents(source, options.document_form())}
    if kind == "cells":
        # Imported here because scipy takes 0.2 s, and only cells need it.
        from sparsemargin.cells.describe import describe_cells

        return {**about, **describe_cells(source, options.label)}
    if kind not in _FIGURES:
        check_readable(source.name, kind)
    return {**about, **_FIGURES[kind](source, options.n_jobs)}


def _facts(figures: dict[str, Any]) -> dict[str, str]:
    kind, size = figures["kind"], figures["bytes"]
    name = KIND_NAMES[kind] if kind in KIND_NAMES else f"texts, {figures['form']}"
    packing = f", {figures['compression']}" if figures.get("compression") else ""
    facts = {
        "file": figures["file"],
        "kind": f"{name}{packing}" + (f", {size_in_words(size)}" if size is not None else ""),
    }
    facts_of = {"model": _model_facts, "cells": _cell_facts}.get(kind, _row_facts)
    return {**facts, **facts_of(figures)}


def _model_facts(figures: dict[str, Any]) -> dict[str, str]:
    return {
        "classifier": f"{figures['class']}, of sparsemargin {figures['library']}",
        **({"steps": ", ".join(figures["steps"])} if figures.get("steps") else {}),
        **({"wrapped in": ", ".join(figures["wrappers"])} if "wrappers" in figures else {}),
        "multilabel classes" if figures["many_labels"] else "classes": listed(figures["classes"]),
        "features": f"{figures['n_features']:,}",
        **({"support rows": f"{figures['n_support']:,}"} if "n_support" in figures else {}),
        "more": f"sparsemargin inspect {figures['file']}",
    }


def _row_facts(figures: dict[str, Any]) -> dict[str, str]:
    labels = [f"{entry['label']} ({entry['rows']:,})" for entry in figures["labels"]]
    facts = {"rows": f"{figures['rows']:,}"}
    if figures["kind"] != "texts":
        facts["features"] = f"{figures['features']:,}"
        facts["entries"] = f"{figures['entries']:,}"
        facts["density"] = percent(figures["density"])
    facts["labels"] = listed(labels)
    for name, text in (
        ("rows_without_label", "without label"), ("rows_of_several_labels", "several labels")
    ):  # fmt: skip
        if figures[name]:
            facts[text] = f"{figures[name]:,} rows"
    if figures.get("highest_index") is not None:
        bounds = f"{figures['lowest_index']:,} to {figures['highest_index']:,}"
        facts["indices"] = f"{bounds}, counted from {0 if figures['zero_based'] else 1}"
    return facts
