"""Rows written as svmlight text that reads back to the same bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from sparsemargin._engine._text import text_of_rows


class LabelledRows(NamedTuple):
    """Rows of a CSR matrix, each with its labels.

    Attributes
    ----------
    data, indices, indptr : ndarray
        Sound, in canonical format.
    labels : ndarray of int
        Ids: of each row's label, or, with `label_start`, of the labels of all rows.
    label_start : ndarray of shape (n_rows + 1,), or None
    query_ids : ndarray of shape (n_rows,), or None
    """

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    labels: np.ndarray
    label_start: np.ndarray | None
    query_ids: np.ndarray | None


def part_of(rows: LabelledRows, start: int, stop: int) -> LabelledRows:
    """The rows from `start` up to `stop`."""
    bounds = slice(start, stop + 1)
    indptr, queries, labels = rows.indptr[bounds], rows.query_ids, slice(start, stop)
    label_start = rows.label_start
    if label_start is not None:
        label_start = label_start[bounds]
        labels = slice(label_start[0], label_start[-1])
        label_start = label_start - label_start[0]
    entries = slice(indptr[0], indptr[-1])
    return LabelledRows(
        rows.data[entries], rows.indices[entries], indptr - indptr[0], rows.labels[labels],
        label_start, None if queries is None else queries[start:stop],
    )  # fmt: skip


def as_text(rows: LabelledRows, label_texts: Sequence[str], first: int) -> memoryview:
    """A line for each row.

    Parameters
    ----------
    rows : LabelledRows
    label_texts : sequence of str
        By id.
    first : int
        The index of the first column.

    Raises
    ------
    ValueError
        If a row has neither label nor feature: a line that is blank is none.
    """
    heads = [head.encode("utf-8", "surrogateescape") for head in _heads(rows, label_texts)]
    ends = np.cumsum([len(head) for head in heads], dtype=np.int64)
    blank = np.flatnonzero((np.diff(ends, prepend=0) == 0) & (np.diff(rows.indptr) == 0))
    if len(blank):
        raise ValueError(
            f"Row {blank[0]} has neither label nor feature, and svmlight text has no line for it."
        )
    joined = np.frombuffer(b"".join(heads), dtype=np.uint8)
    return text_of_rows(rows.data, rows.indices, rows.indptr, joined, ends, first).data


def _heads(rows: LabelledRows, label_texts: Sequence[str]) -> Iterator[str]:
    """What each line begins with."""
    labels: Any = (label_texts[i] for i in rows.labels.tolist())
    if rows.label_start is not None:
        given, bounds = list(labels), rows.label_start.tolist()
        labels = (",".join(given[a:b]) for a, b in pairwise(bounds))
    if rows.query_ids is None:
        return iter(labels)
    return (f"{head} qid:{q}" for head, q in zip(labels, rows.query_ids.tolist(), strict=True))
