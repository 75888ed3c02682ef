"""Checks of input rows. The engine does not check rows again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from math import inf, sqrt
from typing import Any, NoReturn

import numpy as np

from sparsemargin._engine.numerics.norms import norm
from sparsemargin._engine.rows.csr import (
    INDEX_TYPES,
    NO_LENGTH,
    NOT_CANONICAL,
    NOT_FINITE,
    OK,
    OUT_OF_RANGE,
    BadRow,
    bad_pointer,
    first_bad_row,
    row_norms,
)
from sparsemargin._engine.rows.csr import Csr as Rows
from sparsemargin._engine.rows.parts import part_of, summed

#: Number of first rows that determine the scale of the intercept. It is small, because training on
#: a stream begins after these rows.
ROWS_MEASURED = 100


def open_rows(X: Any) -> Rows:
    """Return the arrays of a CSR matrix, or raise a ValueError if its row pointers are invalid."""
    indices, indptr = X.indices, X.indptr
    if indices.dtype not in INDEX_TYPES or indices.dtype != indptr.dtype:
        indices, indptr = _as_int64(indices, "indices"), _as_int64(indptr, "indptr")
    # Compiled code needs contiguous, aligned arrays; `np.require` would take as long as a trial.
    data, indices, indptr = (
        np.ascontiguousarray(each) if each.flags.aligned else each.copy()
        for each in (X.data, indices, indptr)
    )
    rows = Rows(data, indices, indptr, X.shape[1])
    if len(indptr) != X.shape[0] + 1:
        raise ValueError(
            f"X is corrupted: indptr has {len(indptr)} entries, not n_rows + 1 = {X.shape[0] + 1}."
        )
    row = bad_pointer(indptr, min(len(data), len(indices)))
    if row >= 0:
        raise ValueError(
            f"X is corrupted at row {row}: its indptr entries {indptr[row]} and {indptr[row + 1]} "
            f"do not bound a part of the {min(len(data), len(indices))} stored entries. "
            "Rebuild the matrix from its source."
        )
    if indptr[0] or not len(data) == len(indices) == indptr[-1]:
        # Entries that belong to no row are removed.
        return part_of(rows, 0, rows.n_rows)
    return rows


def _as_int64(array: np.ndarray, name: str) -> np.ndarray:
    if array.dtype.kind not in "iu":
        raise ValueError(f"X is corrupted: its {name} are of type {array.dtype}, not integers.")
    return array.astype(np.int64)


def check_rows(
    rows: Rows, *, repeats_allowed: bool = False, numbers: np.ndarray | None = None
) -> Rows:
    """Return rows for the engine, with finite values and valid columns.

    Duplicate columns are summed unless `repeats_allowed`. A ValueError names the row and column of
    an invalid entry; the row is its position, or its entry in `numbers` if given.
    """
    status, row = first_bad_row(rows, repeats_allowed)
    if status == NOT_CANONICAL:
        return check_rows(summed(rows), numbers=numbers)
    if status != OK:
        refuse_row(rows, status, row, 0 if numbers is None else int(numbers[row]) - row)
    return rows


@contextmanager
def naming_bad_rows(rows: Rows, first_row: int = 0) -> Iterator[None]:
    """Convert the engine's BadRow to a ValueError that describes the invalid row. `first_row`, the
    number of the first row, is added to its position."""
    try:
        yield
    except BadRow as bad:
        refuse_row(rows, bad.status, bad.row, first_row)


def refuse_row(rows: Rows, status: int, row: int, first_row: int = 0) -> NoReturn:
    """Raise a ValueError that describes the problem of a row, its position and a remedy."""
    span = slice(rows.indptr[row], rows.indptr[row + 1])
    columns, values = rows.indices[span], rows.data[span]
    row += first_row
    if status == NOT_FINITE:
        at = int(np.flatnonzero(~np.isfinite(values))[0])
        what = "NaN" if np.isnan(values[at]) else "infinity"
        raise ValueError(
            f"Input X contains {what} at row {row}, column {columns[at]}. "
            "Impute it or drop the row."
        )
    if status == OUT_OF_RANGE:
        at = int(np.flatnonzero((columns < 0) | (columns >= rows.n_features))[0])
        raise ValueError(
            f"X is corrupted at row {row}: column index {columns[at]} is outside "
            f"[0, {rows.n_features}). Rebuild the matrix from its source."
        )
    if status == NO_LENGTH:
        raise ValueError(
            f"Row {row} of X is too long, or too short, in the kernel's feature space for a double "
            "to hold its products. Bring the rows to a common scale, or pass another kernel: its "
            "gamma, degree and coef0 make the lengths."
        )
    values = np.abs(values[values != 0])
    size = "zero but for the intercept"
    if len(values):
        size = f"its values from {values.min():.3g} to {values.max():.3g}"
    raise ValueError(
        f"Row {row} of X, {size}, leads to a step too far in magnitude from those before it for "
        "one floating-point vector to hold. Bring X and sample_weight to a common scale, or pass a "
        "smaller p."
    )


def first_rows(blocks: Iterable[Rows]) -> Iterator[Rows]:
    """Yield the first 100 rows of the blocks, and read no more blocks than needed."""
    left = ROWS_MEASURED
    for rows in blocks:
        first = part_of(rows, 0, left)
        yield first
        left -= first.n_rows
        if not left:
            return


def intercept_scale(blocks: Iterable[Rows], p: float) -> float:
    """Return a third of the root mean square p-norm of the first 100 rows, or 1/3 if all of them
    are zero. Duplicate columns are summed first."""
    # All norms are summed at once, so that the sizes of the blocks do not change the result.
    norms = np.concatenate([row_norms(summed(rows), p) for rows in first_rows(blocks)])
    scale = norm(norms, 2) / (3 * sqrt(max(len(norms), 1)))
    return scale if 0.0 < scale < inf else 1 / 3
