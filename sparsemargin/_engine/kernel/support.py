"""Rows prepared for a kernel, and the support set of rows that made corrections."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sparsemargin._engine.kernel.products import fill_dense
from sparsemargin._engine.rows.csr import Csr
from sparsemargin._engine.rows.parts import gathered

# Least number of rows for which a column allocates memory.
_ROOM = 256


class Points(NamedTuple):
    """Rows prepared for a kernel.

    Attributes
    ----------
    matrix : ndarray of shape (n_points, n_columns), or Csr, or ndarray of shape (n_points,)
        The data that the kernel is computed from.
    lengths : ndarray of shape (n_points,)
        ``sqrt(K(x, x))``, including the intercept; 1 if it is unknown.
    squares : ndarray of shape (n_points,)
        Additional numbers that depend on the kernel, such as ``gamma |x|^2``.
    measured : bool
        Whether the lengths are known.
    """

    matrix: Any
    lengths: np.ndarray
    squares: np.ndarray
    measured: bool = True

    @property
    def n(self) -> int:
        return len(self.lengths)

    def part(self, start: int, stop: int) -> Points:
        """Points start..stop-1 as views."""
        is_sparse = isinstance(self.matrix, Csr)
        matrix = self.matrix.part(start, stop) if is_sparse else self.matrix[start:stop]
        return Points(matrix, self.lengths[start:stop], self.squares[start:stop], self.measured)

    def take(self, which: np.ndarray) -> Points:
        """The points at these indices."""
        is_sparse = isinstance(self.matrix, Csr)
        matrix = take_rows(self.matrix, which) if is_sparse else self.matrix[which]
        return Points(matrix, self.lengths[which], self.squares[which], self.measured)


def take_rows(rows: Csr, which: np.ndarray) -> Csr:
    """The rows at these indices, with int64 column indices."""
    indptr, entries = gathered(rows.indptr, which, np.int64)
    indices = rows.indices[entries].astype(np.int64)
    return Csr(rows.data[entries], indices, indptr, rows.n_features)


def scaled_rows(
    rows: Csr, which: np.ndarray, scale: np.ndarray, n_columns: int, *, dense: bool
) -> Any:
    """The rows at these indices times their scale: an array of n_columns if dense, else a Csr."""
    if dense:
        out = np.zeros((len(which), n_columns), dtype=rows.data.dtype)
        fill_dense(out, rows.data, rows.indices, rows.indptr, which, scale)
        return out
    picked = take_rows(rows, which)
    data = picked.data * np.repeat(scale, np.diff(picked.indptr))
    return picked.with_data(data.astype(picked.data.dtype, copy=False))


class SupportSet:
    """Points that have made corrections, stored in columns that grow."""

    def __init__(
        self, columns: dict[str, np.ndarray] | None = None, n_features: int = 0, *,
        is_sparse: bool = False,
    ) -> None:  # fmt: skip
        self.columns = columns or {}  # arrays with spare capacity
        self.sizes = {name: len(column) for name, column in self.columns.items()}
        self.n_features, self.is_sparse = n_features, is_sparse

    def __len__(self) -> int:
        return self.sizes.get("lengths", 0)

    @property
    def filled(self) -> dict[str, np.ndarray]:
        """The columns without their spare capacity."""
        return {name: column[: self.sizes[name]] for name, column in self.columns.items()}

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self.filled.values())

    def extend(self, points: Points) -> None:
        """Append these points."""
        matrix = points.matrix
        arrays = {"lengths": points.lengths, "squares": points.squares}
        if isinstance(matrix, Csr):
            self.is_sparse, self.n_features = True, matrix.n_features
            first, last = matrix.indptr[0], matrix.indptr[-1]
            arrays["data"] = matrix.data[first:last]
            arrays["indices"] = matrix.indices[first:last]
            arrays["ends"] = matrix.indptr[1:] - first + self.sizes.get("data", 0)
        else:
            arrays["matrix"] = matrix
        for name, array in arrays.items():
            self._append(name, array)

    def _append(self, name: str, more: np.ndarray) -> None:
        column, n = self.columns.get(name, more[:0]), self.sizes.get(name, 0)
        size = n + len(more)
        if size > len(column):
            column = np.empty((max(size, 2 * n, _ROOM), *more.shape[1:]), dtype=column.dtype)
            column[:n] = self.columns.get(name, more)[:n]
        column[n:size] = more
        self.columns[name], self.sizes[name] = column, size

    def resize(self, n_before: int, n_features: int, first: int) -> None:
        """Keep the features from `first` on, of n_before, and change their number to n_features;
        with a negative `first`, new features are inserted in front.

        Columns of a dense matrix after the features stay its last ones.
        """
        self.n_features = n_features
        if self.is_sparse:
            self.filled["indices"][:] -= first
        elif self.columns:
            old = self.filled["matrix"]
            matrix = np.zeros((len(old), n_features + old.shape[1] - n_before), dtype=old.dtype)
            dropped, added = max(first, 0), max(-first, 0)
            n_kept = min(n_features - added, n_before - dropped)
            matrix[:, added : added + n_kept] = old[:, dropped : dropped + n_kept]
            matrix[:, n_features:] = old[:, n_before:]
            self.columns["matrix"] = matrix

    @property
    def points(self) -> Points:
        """All points as views, which are valid until the set is extended."""
        if not self.columns:
            return Points(np.empty((0, 0)), np.empty(0), np.empty(0))
        filled = self.filled
        matrix: Any = filled.get("matrix")
        if self.is_sparse:
            indptr = np.append(0, filled["ends"])
            matrix = Csr(filled["data"], filled["indices"], indptr, self.n_features)
        return Points(matrix, filled["lengths"], filled["squares"])
