"""Conversions of svmlight text, from and to other forms; each gives the number of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from sparsemargin.cli.outputs import is_on_terminal, opened_output
from sparsemargin.cli.progress import reading_progress
from sparsemargin.io.npz import read_npz, write_npz
from sparsemargin.io.passes import Corpus, Passes
from sparsemargin.io.reading import LARGEST_INDEX, Reading, threads_for
from sparsemargin.io.scanning import RowBlock
from sparsemargin.io.sources import STANDARD_INPUT, Source
from sparsemargin.io.svmlight import load_svmlight
from sparsemargin.io.text import LabelledRows, as_text, part_of, readable_labels
from sparsemargin.models.labels import LabelTable

# Rows of an npz file that become text at a time.
_ROWS_AT_ONCE = 1 << 14


def text_to_npz(sources: list[Source], target: str, reading: Reading, n_threads: int | None) -> int:
    """All rows are in memory at once, as they will be again when the file is loaded."""
    settings = {**vars(reading), "query_id": True}
    paths = [source.path or STANDARD_INPUT for source in sources]
    X, labels, query_ids = load_svmlight(paths, n_jobs=n_threads, **settings)
    write_npz(target, X, labels, query_ids)
    return X.shape[0]


def text_to_text(
    sources: list[Source], target: str, reading: Reading, n_threads: int | None
) -> int:
    """Block by block."""
    n_rows, table, texts = 0, LabelTable(), list[str]()
    first = reading.base if reading.hash_bits is None else 0
    how = Reading(**{**vars(reading), "query_id": True})
    corpus = Corpus(sources, how, threads_for(n_threads))
    shown = not is_on_terminal(target)
    with opened_output(target) as file, reading_progress(corpus, shown=shown) as report:
        for block in corpus.scan(table, LARGEST_INDEX):
            texts += table.short_texts(len(texts))
            rows = LabelledRows(
                block.data, block.indices, block.indptr, block.labels, block.label_start,
                _queries(block),
            )  # fmt: skip
            file.write(as_text(rows, texts, first))
            n_rows += block.n_rows
            report(block)
    return n_rows


def _queries(block: RowBlock) -> np.ndarray | None:
    """Those of all rows; None: no row has one.

    Raises
    ------
    ValueError
        If some rows have one and some have not.
    """
    queries = block.query_ids
    if queries is None or not len(queries):
        return None
    if len(queries) < block.n_rows and block.text is not None:
        raise ValueError(
            f"{block.text.source.name}: some rows have a qid and some have not. Give one to all of "
            "them or none."
        )
    return queries


def text_to_cache(
    sources: list[Source], target: str, reading: Reading, n_threads: int | None
) -> int:
    """As training makes it in its first epoch."""
    corpus = Corpus(sources, reading, threads_for(n_threads), Path(target))
    n_rows = 0
    with reading_progress(corpus) as report:
        for block in Passes(corpus, LARGEST_INDEX).first():
            n_rows += block.n_rows
            report(block)
    return n_rows


def npz_to_text(source: str, target: str, zero_based: bool | Literal["auto"]) -> int:
    """Indices count from 1 unless `zero_based` is True; what text can't hold is refused first."""
    rows, labels, _ = read_npz(source)
    texts = readable_labels(source, rows, labels)
    n_rows = len(rows.indptr) - 1
    with opened_output(target) as file:
        for start in range(0, n_rows, _ROWS_AT_ONCE):
            some = part_of(rows, start, min(start + _ROWS_AT_ONCE, n_rows))
            file.write(as_text(some, texts, 0 if zero_based is True else 1))
    return n_rows
