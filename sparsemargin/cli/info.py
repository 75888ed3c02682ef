"""``sparsemargin info``: what files are."""

from __future__ import annotations

import json
from typing import Any

import click

from sparsemargin.cli.file_figures import (
    figures_of_cache,
    figures_of_model,
    figures_of_npz,
    figures_of_text,
)
from sparsemargin.cli.options import FILES, JSON, make_command
from sparsemargin.cli.reading import THREADS
from sparsemargin.cli.tables import lines_of_facts, percent, size_in_words, some
from sparsemargin.io.kinds import KIND_NAMES, kind_of
from sparsemargin.io.sources import Source, open_sources

_EXAMPLES = """
sparsemargin info train.svm
sparsemargin info 'data/*' --json
"""


@make_command("info", _EXAMPLES)
@FILES
@THREADS
@JSON
def command(files: tuple[str, ...], threads: int | None, as_json: bool) -> None:
    """Tell what is in files: svmlight text, row caches, npz, models.

    Text and caches are read through, and their rows, features, entries and labels counted.
    """
    figures = [_figures(source, threads) for source in open_sources(files)]
    if as_json:
        click.echo(json.dumps({"files": figures}, default=str))
        return
    click.echo("\n\n".join(lines_of_facts(_facts(entry)) for entry in figures))


_FIGURES = {
    "svmlight": figures_of_text,
    "cache": figures_of_cache,
    "npz": figures_of_npz,
    "model": figures_of_model,
}


def _figures(source: Source, threads: int | None) -> dict[str, Any]:
    kind = kind_of(source)
    about = {"file": source.name, "bytes": source.size, "kind": kind}
    return {**about, **_FIGURES[kind](source, threads)}


def _facts(figures: dict[str, Any]) -> dict[str, str]:
    kind, size = KIND_NAMES[figures["kind"]], figures["bytes"]
    packing = f", {figures['compression']}" if figures.get("compression") else ""
    facts = {
        "file": figures["file"],
        "kind": f"{kind}{packing}" + (f", {size_in_words(size)}" if size is not None else ""),
    }
    return {**facts, **(_model_facts if figures["kind"] == "model" else _row_facts)(figures)}


def _model_facts(figures: dict[str, Any]) -> dict[str, str]:
    return {
        "classifier": f"{figures['class']}, of sparsemargin {figures['library']}",
        "many labels a row" if figures["many_labels"] else "classes": some(figures["classes"]),
        "features": f"{figures['n_features']:,}",
        **({"support rows": f"{figures['n_support']:,}"} if "n_support" in figures else {}),
        "more": f"sparsemargin inspect {figures['file']}",
    }


def _row_facts(figures: dict[str, Any]) -> dict[str, str]:
    labels = [f"{entry['label']} ({entry['rows']:,})" for entry in figures["labels"]]
    facts = {
        "rows": f"{figures['rows']:,}",
        "features": f"{figures['features']:,}",
        "entries": f"{figures['entries']:,}",
        "density": percent(figures["density"]),
        "labels": some(labels),
    }
    for name, text in (
        ("rows_without_label", "without label"), ("rows_of_several_labels", "several labels")
    ):  # fmt: skip
        if figures[name]:
            facts[text] = f"{figures[name]:,} rows"
    if figures.get("highest_index") is not None:
        bounds = f"{figures['lowest_index']:,} to {figures['highest_index']:,}"
        facts["indices"] = f"{bounds}, counted from {0 if figures['zero_based'] else 1}"
    return facts
