"""What ``sparsemargin info`` tells of a file of each kind."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemargin.cli.progress import reading_progress
from sparsemargin.io.compression import HEAD_BYTES, packing_of
from sparsemargin.io.model_files import read_summary
from sparsemargin.io.npz import read_npz
from sparsemargin.io.passes import Corpus
from sparsemargin.io.predict import check_form
from sparsemargin.io.reading import LARGEST_INDEX, Reading, threads_for
from sparsemargin.io.row_cache import RowCache
from sparsemargin.io.sources import Source
from sparsemargin.models.labels import LabelTable, label_text


class _Tally:
    """Counts of rows, entries and labels."""

    def __init__(self) -> None:
        self.rows = self.entries = self.unlabelled = self.several = 0
        self.labels = np.zeros(0, dtype=np.int64)

    def add(self, block: Any) -> None:
        """Count in a block of rows."""
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
        """All of it, labels by falling number of rows."""
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


def figures_of_text(source: Source, threads: int | None) -> dict[str, Any]:
    """From a reading of all of it."""
    table, tally = LabelTable(), _Tally()
    corpus = Corpus([source], Reading(multilabel=True), threads_for(threads))
    lowest, highest = LARGEST_INDEX, -1
    with reading_progress(corpus) as report:
        for block in corpus.scan(table, LARGEST_INDEX):
            if not tally.rows:
                check_form(block, source.name)
            tally.add(block)
            lowest, highest = min(lowest, block.lowest), max(highest, block.highest)
            report(block)
    zero_based = lowest == 0
    return {
        "compression": _compression(source),
        **tally.figures(max(highest, 0) + zero_based, table.short_texts()),
        "zero_based": zero_based,
        "lowest_index": None if highest < 0 else lowest,
        "highest_index": None if highest < 0 else highest,
    }


def figures_of_cache(source: Source, threads: int | None) -> dict[str, Any]:
    """From all of its blocks, which are verified on the way."""
    tally = _Tally()
    with RowCache.open(source.name) as cache:
        for rows in cache.blocks():
            tally.add(rows)
        table = LabelTable(cache.label_texts, cache.label_numbers)
        # Where indices count from 1, column 0 may stand empty.
        n_features = min(cache.n_columns, cache.highest + (cache.lowest == 0))
        return {**tally.figures(n_features, table.short_texts()), "dtype": cache.dtype.name}


def figures_of_npz(source: Source, threads: int | None) -> dict[str, Any]:
    """From its arrays."""
    tally = _Tally()
    rows, labels, n_features = read_npz(source.name)
    tally.add(rows)
    return tally.figures(n_features, [label_text(label) for label in labels.tolist()])


def figures_of_model(source: Source, threads: int | None) -> dict[str, Any]:
    """From its summary."""
    summary = read_summary(source.name)
    return {**summary, "classes": [label_text(label) for label in summary["classes"]]}


def _compression(source: Source) -> str | None:
    """Name of the packing of a file."""
    if source.path is None or source.plain or not source.rereadable:
        return None
    with open(source.path, "rb") as file:
        packing = packing_of(file.read(HEAD_BYTES))
    return None if packing is None else packing.name
