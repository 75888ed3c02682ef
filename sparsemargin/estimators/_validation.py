"""The border: what comes in is checked here once, and the engine then runs unchecked."""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import numpy as np
from scipy.sparse import csr_array, csr_matrix
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from sparsemargin._engine import kernels

# Integer labels are looked up in a table where they span no more than this.
_WIDEST_TABLE = 1 << 20


class Rows(NamedTuple):
    """The three arrays of a CSR matrix, of types the kernels are compiled for."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    n_features: int


def is_plain_csr(X: Any) -> bool:
    """Whether X is CSR and of types the engine takes as they are."""
    return (
        type(X) in (csr_matrix, csr_array)
        and X.ndim == 2
        and X.data.dtype in kernels.VALUE_TYPES
        and X.indices.dtype in kernels.INDEX_TYPES
        and X.indices.dtype == X.indptr.dtype
    )


def open_rows(X: Any) -> Rows:
    """The arrays of a CSR matrix, once its row pointers are known to be sound.

    Raises
    ------
    ValueError
        If the pointers fall, or lead outside the stored entries.
    """
    indices, indptr = X.indices, X.indptr
    if indices.dtype not in kernels.INDEX_TYPES or indices.dtype != indptr.dtype:
        indices, indptr = _as_int64(indices, "indices"), _as_int64(indptr, "indptr")
    data, indices, indptr = map(np.ascontiguousarray, (X.data, indices, indptr))
    rows = Rows(data, indices, indptr, X.shape[1])
    if len(indptr) != X.shape[0] + 1:
        raise ValueError(
            f"X is corrupted: indptr has {len(indptr)} entries, not n_rows + 1 = {X.shape[0] + 1}."
        )
    row = kernels.for_rows(rows).bad_pointer(indptr, min(len(data), len(indices)))
    if row >= 0:
        raise ValueError(
            f"X is corrupted at row {row}: its indptr entries {indptr[row]} and {indptr[row + 1]} "
            f"do not bound a part of the {min(len(data), len(indices))} stored entries. "
            "Rebuild the matrix from its source."
        )
    return rows


def _as_int64(array: np.ndarray, name: str) -> np.ndarray:
    if array.dtype.kind not in "iu":
        raise ValueError(f"X is corrupted: its {name} are of type {array.dtype}, not integers.")
    return array.astype(np.int64)


def canonical(X: Any) -> Any:
    """A copy of X, repeated columns summed."""
    fresh = csr_matrix((X.data.copy(), X.indices.copy(), X.indptr.copy()), shape=X.shape)
    fresh.sum_duplicates()
    return fresh


def check_rows(X: Any, rows: Rows, *, repeats_allowed: bool = False) -> Rows:
    """Rows ready for the engine: finite, in range, and, unless allowed, without repeats.

    Raises
    ------
    ValueError
        Names the row and the column of what can't be used.
    """
    status, row = kernels.for_rows(rows).first_bad_row(*rows, repeats_allowed)
    if status == kernels.NOT_CANONICAL:
        return check_rows(X, open_rows(canonical(X)))
    if status != kernels.OK:
        refuse_row(rows, status, row)
    return rows


def refuse_row(rows: Rows, status: int, row: int) -> NoReturn:
    """Say what is wrong with the row, where, and what helps."""
    span = slice(rows.indptr[row], rows.indptr[row + 1])
    columns, values = rows.indices[span], rows.data[span]
    if status == kernels.NOT_FINITE:
        at = int(np.flatnonzero(~np.isfinite(values))[0])
        what = "NaN" if np.isnan(values[at]) else "infinity"
        raise ValueError(
            f"Input X contains {what} at row {row}, column {columns[at]}. "
            "Impute it or drop the row."
        )
    if status == kernels.OUT_OF_RANGE:
        at = int(np.flatnonzero((columns < 0) | (columns >= rows.n_features))[0])
        raise ValueError(
            f"X is corrupted at row {row}: column index {columns[at]} is outside "
            f"[0, {rows.n_features}). Rebuild the matrix from its source."
        )
    values = np.abs(values[values != 0])
    raise ValueError(
        f"Row {row} of X, its values from {values.min():.3g} to {values.max():.3g}, leads to a "
        "step too far in magnitude from those before it for one floating-point vector to hold. "
        "Bring X and sample_weight to a common scale, or pass a smaller p."
    )


def check_labels(y: Any) -> np.ndarray:
    """Labels as a one-dimensional array.

    Raises
    ------
    ValueError
        If y has the wrong shape, mixes types, or is continuous.
    """
    if isinstance(y, (list, tuple)) or (isinstance(y, np.ndarray) and y.dtype.kind == "O"):
        _refuse_mixed(y)
    if type(y) is not np.ndarray or y.ndim != 1:
        y = column_or_1d(y, warn=True)
    if y.dtype.kind not in "biuUS":
        check_classification_targets(y)
    return y


def _refuse_mixed(y: Any) -> None:
    seen: dict[type, int] = {}
    for i, label in enumerate(y):
        kind = str if isinstance(label, str) else type(label)
        seen.setdefault(kind, i)
    words = [i for kind, i in seen.items() if kind is str]
    others = [(i, kind) for kind, i in seen.items() if kind is not str]
    if words and others:
        i, kind = others[0]
        raise ValueError(
            f"y mixes types: y[{words[0]}] is a str, y[{i}] is of type {kind.__name__}. "
            "Give labels of one type."
        )


def check_weights(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Weights as float64 of shape (n_rows,); None for none.

    Raises
    ------
    ValueError
        If there are not n_rows of them, or one is negative, NaN or infinite.
    """
    if sample_weight is None:
        return None
    weights = np.ascontiguousarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}, expected ({n_rows},): one for each row of X."
        )
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"sample_weight[{row}] = {weights[row]} is negative, NaN or infinite. Pass finite "
            "weights; 0 leaves a row out."
        )
    return weights


def find_classes(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sorted classes of y, and each label's place among them (int64)."""
    if y.dtype.kind in "iu" and len(y) and int(y.max()) - int(y.min()) < _WIDEST_TABLE:
        low = y.min()
        shifted = y.astype(np.int64) - low.astype(np.int64)
        present = np.zeros(int(y.max()) - int(low) + 1, dtype=bool)
        present[shifted] = True
        # In the labels' own type, in which the sums wrap back to labels of y.
        classes = low + np.flatnonzero(present).astype(y.dtype)
        return classes, (np.cumsum(present) - 1)[shifted]
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes.astype(np.int64, copy=False)


def codes_of(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Each label's place among known classes.

    Raises
    ------
    ValueError
        Names the first label that is not among them.
    """
    places = np.searchsorted(classes, y)
    places[places == len(classes)] = 0
    unknown = classes[places] != y
    if unknown.any():
        row = int(np.flatnonzero(unknown)[0])
        raise ValueError(
            f"y[{row}] = {y[row : row + 1].tolist()[0]!r} is not among the classes "
            f"{classes.tolist()}. partial_fit needs all classes in its first call; after a fit, a "
            "new class needs a new fit."
        )
    return places.astype(np.int64, copy=False)
