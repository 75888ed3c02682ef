"""Rows as a kernel takes them, and the pool of those that have made corrections."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sparsemargin._engine import kernels

# Entries a growing array has room for at first.
_ROOM = 256


class Sparse(NamedTuple):
    """The arrays of CSR rows; `indptr` may begin anywhere in the other two."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    n_features: int

    @property
    def n(self) -> int:
        return len(self.indptr) - 1


class Points(NamedTuple):
    """Rows made ready for a kernel.

    Attributes
    ----------
    matrix : ndarray of shape (n_points, n_columns), or Sparse, or ndarray of shape (n_points,)
        What the kernel computes with.
    lengths : ndarray of shape (n_points,)
        ``sqrt(K(x, x))``, the intercept's part included; 1 where it is not known.
    squares : ndarray of shape (n_points,)
        What the kernel needs beside: ``gamma |x|^2``, say.
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
        """Points start..stop-1, where they lie."""
        matrix = self.matrix
        if isinstance(matrix, Sparse):
            matrix = matrix._replace(indptr=matrix.indptr[start : stop + 1])
        else:
            matrix = matrix[start:stop]
        lengths, squares = self.lengths[start:stop], self.squares[start:stop]
        return Points(matrix, lengths, squares, self.measured)

    def take(self, which: np.ndarray) -> Points:
        """The points of these places."""
        matrix = self.matrix
        matrix = take_rows(matrix, which) if isinstance(matrix, Sparse) else matrix[which]
        return Points(matrix, self.lengths[which], self.squares[which], self.measured)


def take_rows(rows: Any, which: np.ndarray) -> Sparse:
    """The CSR rows of these numbers, with int64 indices."""
    starts = rows.indptr[which].astype(np.int64)
    sizes = rows.indptr[which + 1] - starts
    indptr = np.zeros(len(which) + 1, dtype=np.int64)
    np.cumsum(sizes, out=indptr[1:])
    entries = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], sizes)
    return Sparse(
        rows.data[entries], rows.indices[entries].astype(np.int64), indptr, rows.n_features
    )


def as_dense(rows: Any, which: np.ndarray, scale: np.ndarray, n_columns: int) -> np.ndarray:
    """The rows of these numbers times their scale, in so many columns."""
    out = np.zeros((len(which), n_columns), dtype=rows.data.dtype)
    kernels.for_rows(rows).fill_dense(
        out, rows.data, rows.indices, rows.indptr, which, np.ascontiguousarray(scale)
    )
    return out


class _Growing:
    """An array that grows at its end."""

    def __init__(self, array: np.ndarray):
        self.n = len(array)
        self.array = array

    def extend(self, more: np.ndarray) -> None:
        n = self.n + len(more)
        if n > len(self.array):
            fresh = np.empty((max(n, 2 * self.n, _ROOM), *more.shape[1:]), dtype=self.array.dtype)
            fresh[: self.n] = self.array[: self.n]
            self.array = fresh
        self.array[self.n : n] = more
        self.n = n

    @property
    def filled(self) -> np.ndarray:
        return self.array[: self.n]


class Pool:
    """Points that grow in number."""

    def __init__(self) -> None:
        self.columns: dict[str, _Growing] = {}
        self.n_features = 0
        self.is_sparse = False

    @classmethod
    def of(cls, columns: dict[str, np.ndarray], n_features: int, *, is_sparse: bool) -> Pool:
        """The pool that has these columns."""
        pool = cls()
        pool.n_features, pool.is_sparse = n_features, is_sparse
        for name, column in columns.items():
            pool.columns[name] = _Growing(column)
        return pool

    def __len__(self) -> int:
        return self.columns["lengths"].n if self.columns else 0

    @property
    def nbytes(self) -> int:
        return sum(column.filled.nbytes for column in self.columns.values())

    def extend(self, points: Points) -> None:
        """Take these points in, at the end."""
        matrix = points.matrix
        arrays = {"lengths": points.lengths, "squares": points.squares}
        if isinstance(matrix, Sparse):
            self.is_sparse, self.n_features = True, matrix.n_features
            first, last = matrix.indptr[0], matrix.indptr[-1]
            arrays["data"] = matrix.data[first:last]
            arrays["indices"] = matrix.indices[first:last]
            arrays["ends"] = matrix.indptr[1:] - first
            if self.columns:
                arrays["ends"] = arrays["ends"] + self.columns["data"].n
        else:
            arrays["matrix"] = matrix
        for name, array in arrays.items():
            self.columns.setdefault(name, _Growing(np.empty_like(array[:0]))).extend(array)

    def resize(self, n_before: int, n_features: int, first: int) -> None:
        """Keep the features from `first` on, of n_before, and let them be n_features.

        Columns of a dense matrix beyond the features stay its last.
        """
        self.n_features = n_features
        if self.is_sparse:
            self.columns["indices"].filled[:] -= first
        elif self.columns:
            old = self.columns["matrix"].filled
            matrix = np.zeros((len(old), n_features + old.shape[1] - n_before), dtype=old.dtype)
            kept = min(n_features, n_before - first)
            matrix[:, :kept] = old[:, first : first + kept]
            matrix[:, n_features:] = old[:, n_before:]
            self.columns["matrix"] = _Growing(matrix)

    @property
    def points(self) -> Points:
        """All of them, where they lie: valid until more are taken in."""
        if not self.columns:
            return Points(np.empty((0, 0)), np.empty(0), np.empty(0))
        filled = {name: column.filled for name, column in self.columns.items()}
        matrix: Any = filled.get("matrix")
        if self.is_sparse:
            starts = np.zeros(len(self) + 1, dtype=np.int64)
            starts[1:] = filled["ends"]
            matrix = Sparse(filled["data"], filled["indices"], starts, self.n_features)
        return Points(matrix, filled["lengths"], filled["squares"])
