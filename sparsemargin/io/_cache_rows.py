"""The rows of one block of a row cache, and what must hold for the engine to run unchecked."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sparsemargin._engine.rows.csr import (
    NOT_CANONICAL,
    NOT_FINITE,
    OK,
    OUT_OF_RANGE,
    Csr,
    bad_pointer,
    first_bad_row,
)


class CachedRows(NamedTuple):
    """Rows as CSR arrays, with their labels.

    Attributes
    ----------
    data : ndarray of shape (n_entries,), float32 or float64
    indices : ndarray of shape (n_entries,), int32 or int64
        Columns, strictly increasing within a row.
    indptr : ndarray of shape (n_rows + 1,), the type of `indices`
    labels : ndarray of int32
        Ids of labels: one for each row, or those of all rows one after the other.
    label_start : ndarray of shape (n_rows + 1,), int64, or None
        Where the labels of each row begin; None: each row has one.
    """

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    labels: np.ndarray
    label_start: np.ndarray | None

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1


_FAULTS = {
    NOT_FINITE: "holds a value that is NaN or infinite",
    OUT_OF_RANGE: "holds a column out of range",
    NOT_CANONICAL: "holds a column twice",
}


def fault(rows: CachedRows, n_columns: int, n_labels: int) -> str | None:
    """What keeps the engine from running unchecked on rows of these shapes; None: nothing."""
    stored = len(rows.data)
    if bad_pointer(rows.indptr, stored) >= 0 or rows.indptr[-1] != stored:
        return "its row pointers do not divide its entries"
    status, row = first_bad_row(Csr(*rows[:3], n_columns), False)
    if status != OK:
        return f"its row {row} {_FAULTS[status]}"
    if not _rises_within_rows(rows):
        return "it has a row whose columns are not in increasing order"
    n_given, start = len(rows.labels), rows.label_start
    if start is not None and (bad_pointer(start, n_given) >= 0 or start[-1] != n_given):
        return "its label pointers do not divide its labels"
    if n_given and not (rows.labels.min() >= 0 and rows.labels.max() < n_labels):
        return "it holds the id of a label that does not exist"
    return None


def _rises_within_rows(rows: CachedRows) -> bool:
    rises = rows.indices[1:] > rows.indices[:-1]
    inner = rows.indptr[1:-1]
    rises[inner[(inner > 0) & (inner < len(rows.indices))] - 1] = True
    return bool(rises.all())
