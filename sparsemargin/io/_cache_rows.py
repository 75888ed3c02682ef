"""The rows of one block of a row cache, and what must hold for the engine to run unchecked."""

from __future__ import annotations

from sparsemargin._engine.rows.csr import (
    NOT_CANONICAL,
    NOT_FINITE,
    OK,
    OUT_OF_RANGE,
    bad_pointer,
    first_bad_row,
)
from sparsemargin.io.rows import LabelledRows

_FAULTS = {
    NOT_FINITE: "holds a value that is NaN or infinite",
    OUT_OF_RANGE: "holds a column out of range",
    NOT_CANONICAL: "holds a column twice",
}


def fault(rows: LabelledRows, n_columns: int, n_labels: int) -> str | None:
    """What keeps the engine from running unchecked on rows of these shapes; None: nothing."""
    stored = len(rows.data)
    if bad_pointer(rows.indptr, stored) >= 0 or rows.indptr[-1] != stored:
        return "its row pointers do not divide its entries"
    status, row = first_bad_row(rows.with_columns(n_columns), False)
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


def _rises_within_rows(rows: LabelledRows) -> bool:
    rises = rows.indices[1:] > rows.indices[:-1]
    inner = rows.indptr[1:-1]
    rises[inner[(inner > 0) & (inner < len(rows.indices))] - 1] = True
    return bool(rises.all())
