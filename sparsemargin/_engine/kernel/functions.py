"""Kernels of rows that are divided by their length in feature space.

``K(x, z) / (length(x) length(z))`` is at most 1 in magnitude, so float32 can represent it for any
degree; the lengths are stored separately, in float64.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from math import inf
from typing import Any, ClassVar

import numpy as np

from sparsemargin._engine.kernel.products import raise_powers, sparse_products, square_sums
from sparsemargin._engine.kernel.support import Points, SupportSet, scaled_rows
from sparsemargin._engine.rows.csr import NO_LENGTH, VALUE_TYPES, BadRow, Csr
from sparsemargin._engine.state import (
    array_of,
    fields,
    flag,
    integer,
    part,
    real,
    require,
    require_starts,
    writable,
)

# Limits of row lengths, so that sums of products stay within the range of a double.
_LONGEST, _SHORTEST = 1e140, 1e-140

# The smallest and largest positive double.
_LEAST, _LARGEST = 5e-324, sys.float_info.max

# Largest degree that fits into the C int of `raise_powers`.
_LARGEST_DEGREE = 2**31 - 1

# The exponent of the Gaussian is a difference of squared lengths. If these are larger than this,
# float32 would lose too many digits, and the exponent is computed in float64.
_LARGEST_SQUARE_32 = 64.0

# Rows are stored as CSR if they have more than _FEW_FEATURES features, of which less than this
# share is nonzero. On MNIST (19 % nonzero), products of CSR rows are 3 times faster than BLAS.
_DENSE_SHARE = 0.25
_FEW_FEATURES = 64


class Kernel:
    """Base class of the kernels. The square of `bias`, the intercept's coordinate in feature space,
    is added to every product; `dense`: rows are stored with all their zeros."""

    #: True if the kernel calls user code, which may raise an error.
    may_fail = False
    #: True if the user supplies the values, which may not form a kernel.
    is_given = False
    #: The parameters that are saved, each with its check for `state.fields`.
    schema: ClassVar[dict[str, Any]] = {}
    #: Number of columns of dense rows in addition to the features.
    n_extra_columns = 0

    def __init__(self, bias: float, *, dense: bool):
        self.bias, self.dense = bias, dense

    @abstractmethod
    def _points_without_bias(self, rows: Any, which: np.ndarray, *, test: bool) -> Points:
        """The rows at these indices; their lengths do not include the intercept."""

    @abstractmethod
    def _products_without_bias(self, a: Points, b: Points) -> np.ndarray:
        """Kernel values of rows divided by their lengths, without the intercept."""

    def saved(self) -> dict[str, Any]:
        """The saved state, without the intercept's value and the training rows."""
        parameters = {name: getattr(self, name) for name in self.schema}
        return {"kind": type(self).__name__, **parameters}

    def forget_rows(self) -> None:
        """Free data that is needed only in training."""

    def restored_support(self, state: Any, n_features: int) -> SupportSet:
        """The support set from the saved result of `SupportSet.filled`.

        Raises
        ------
        ValueError
            If the state is damaged.
        """
        if state == {}:
            return SupportSet()
        n = len(array_of(state, "lengths", np.float64, (None,)))
        columns = fields(state, dict.fromkeys(("lengths", "squares"), (array_of, np.float64, (n,))))
        for name, column in columns.items():
            require(bool(((column >= 0) & (column < inf)).all()), f"{name!r} are out of range")
        columns |= self._restored_rows(state, n, n_features)
        if not self.dense:
            require_starts("ends", np.append(0, columns["ends"]), len(columns["data"]))
        columns = {name: writable(column) for name, column in columns.items()}
        return SupportSet(columns, n_features, is_sparse=not self.dense)

    def _restored_rows(self, state: Any, n: int, n_features: int) -> dict[str, np.ndarray]:
        """The columns that store the n rows themselves."""
        if self.dense:
            return fields(state, {"matrix": (_values, (n, n_features + self.n_extra_columns))})
        n_entries = len(array_of(state, "indices", np.int64, (None,)))
        schema = {
            "data": (_values, (n_entries,)),
            "indices": (array_of, np.int64, (n_entries,), 0, n_features - 1),
            "ends": (array_of, np.int64, (n,)),
        }
        return fields(state, schema)

    def points(self, rows: Any, which: np.ndarray, *, test: bool = False) -> Points:
        """The rows at these indices; test: they are predicted, not trained on.

        Raises
        ------
        BadRow
            If a row is too long; in training, also if a nonzero row is too short.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            points = self._points_without_bias(rows, which, test=test)
            lengths = points.lengths
            if self.bias and points.measured:
                lengths = np.hypot(lengths, self.bias)
        # This is also true for inf and NaN.
        bad = ~(lengths < _LONGEST)
        if not test:
            bad |= (lengths > 0) & (lengths < _SHORTEST)
        if bad.any():
            raise BadRow(NO_LENGTH, int(which[np.flatnonzero(bad)[0]]))
        return points._replace(lengths=lengths)

    def _shares(self, points: Points) -> tuple[np.ndarray, np.ndarray]:
        """Lengths of the kernel's part and the intercept's part of each point, if the point is
        scaled to length 1."""
        if not points.measured:
            return np.ones(points.n), np.full(points.n, self.bias)
        bias = np.minimum(self.bias / points.lengths, 1.0)
        return np.sqrt((1.0 - bias) * (1.0 + bias)), bias

    def products(self, a: Points, b: Points) -> np.ndarray:
        """``K(x, z) / (length(x) length(z))`` of all pairs, shape (a.n, b.n)."""
        out = self._products_without_bias(a, b)
        if not self.bias:
            return out
        (of_a, bias_a), (of_b, bias_b) = self._shares(a), self._shares(b)
        out *= np.multiply.outer(of_a, of_b).astype(out.dtype)
        out += np.multiply.outer(bias_a, bias_b).astype(out.dtype)
        return out

    def square(self, points: Points) -> tuple[np.ndarray, float]:
        """`products` of the points with each other, in float64, and a bound on their rounding
        error. The diagonal is 1 for rows that are not 0."""
        out = self.products(points, points)
        exact = (points.lengths > 0).astype(np.float64)
        error = np.abs(out.diagonal() - exact).max(initial=np.finfo(out.dtype).eps)
        out = out.astype(np.float64, order="C")
        np.fill_diagonal(out, exact)
        return out, float(error)


def _values(state: Any, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The array called `name`, of that shape and of a dtype that rows can have."""
    dtype: Any = getattr(part(state, name), "dtype", None)
    require(dtype in VALUE_TYPES, f"{name!r} is not of a type that rows have")
    return np.asarray(array_of(state, name, dtype, shape))


def _dot(a: Any, b: Any) -> np.ndarray:
    """Dot products of all pairs of rows."""
    if isinstance(a, Csr):
        return _sparse_dot(a, b, np.zeros(a.n_rows), np.zeros(b.n_rows))
    return a @ b.T


def _sparse_dot(a: Csr, b: Csr, constants: np.ndarray, other_constants: np.ndarray) -> np.ndarray:
    """Dot products of all pairs of rows, each of which has one more entry, a constant."""
    if a.data.dtype != b.data.dtype:
        a, b = _widened(a), _widened(b)
    dtype = a.data.dtype
    out = np.empty((a.n_rows, b.n_rows), dtype=dtype)
    sparse_products(a, b, constants.astype(dtype), other_constants.astype(dtype), out)
    return out


def _widened(matrix: Any) -> Any:
    """The rows in float64."""
    if isinstance(matrix, Csr):
        return matrix.with_data(matrix.data.astype(np.float64))
    return matrix.astype(np.float64)


def inverse(values: np.ndarray) -> np.ndarray:
    """The inverse values; 0 for 0."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)


def _underflowed(rows: Any, which: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Indices of the nonzero rows whose length has underflowed to 0."""
    lost = np.flatnonzero(lengths == 0)
    spans = [slice(rows.indptr[row], rows.indptr[row + 1]) for row in which[lost]]
    return lost[[bool(rows.data[span].any()) for span in spans]] if len(lost) else lost


class PolyKernel(Kernel):
    """``(gamma x.z + coef0)**degree``."""

    schema: ClassVar = {
        "degree": (integer, 1, _LARGEST_DEGREE), "coef0": (real, 0.0, _LARGEST),
        "dense": (flag,), "gamma": (real, _LEAST, _LARGEST),
    }  # fmt: skip

    def __init__(self, bias: float, *, dense: bool, degree: int, gamma: float, coef0: float):
        super().__init__(bias, dense=dense)
        self.degree, self.gamma, self.coef0 = degree, gamma, coef0
        self.n_extra_columns = 1 if coef0 else 0

    def _points_without_bias(self, rows: Any, which: np.ndarray, *, test: bool) -> Points:
        squares = square_sums(rows.data, rows.indptr, which)
        roots = np.sqrt(self.gamma * squares + self.coef0)
        lengths = roots**self.degree
        if not test:
            lengths[_underflowed(rows, which, lengths)] = _LEAST
        factors = inverse(roots)
        scale, constant = np.sqrt(self.gamma) * factors, np.sqrt(self.coef0) * factors
        n = rows.n_features
        matrix = scaled_rows(rows, which, scale, n + self.n_extra_columns, dense=self.dense)
        if self.dense and self.coef0:
            matrix[:, n] = constant
        return Points(matrix, lengths, constant)

    def _products_without_bias(self, a: Points, b: Points) -> np.ndarray:
        if self.dense:
            out = _dot(a.matrix, b.matrix)
        else:
            out = _sparse_dot(a.matrix, b.matrix, a.squares, b.squares)
        if self.degree > 1:
            raise_powers(out.reshape(-1), self.degree)
        return out


class RBFKernel(Kernel):
    """``exp(-gamma |x - z|^2)``; with a degree ``(1 + exp(-gamma |x - z|^2))**degree``."""

    schema: ClassVar = {
        "degree": (integer, 0, _LARGEST_DEGREE), "dense": (flag,), "gamma": (real, _LEAST, _LARGEST)
    }  # fmt: skip

    def __init__(self, bias: float, *, dense: bool, gamma: float, degree: int = 0):
        super().__init__(bias, dense=dense)
        self.gamma, self.degree = gamma, degree

    def _points_without_bias(self, rows: Any, which: np.ndarray, *, test: bool) -> Points:
        scale = np.full(len(which), np.sqrt(2.0 * self.gamma))
        if self.dense:
            matrix = scaled_rows(rows, which, scale, rows.n_features, dense=True)
            squares = np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64) / 2.0
        else:
            scale = scale.astype(rows.data.dtype)
            matrix = scaled_rows(rows, which, scale, rows.n_features, dense=False)
            squares = square_sums(matrix.data, matrix.indptr, np.arange(len(which))) / 2.0
        lengths = np.full(len(which), 2.0 ** (self.degree / 2))
        lengths[~(squares < inf)] = inf
        return Points(matrix, lengths, squares)

    def _products_without_bias(self, a: Points, b: Points) -> np.ndarray:
        left, right = a.matrix, b.matrix
        largest = a.squares.max(initial=0.0) * b.squares.max(initial=0.0)
        if largest > _LARGEST_SQUARE_32**2:
            left, right = _widened(left), _widened(right)
        out = _dot(left, right)
        out -= a.squares[:, np.newaxis].astype(out.dtype)
        out -= b.squares.astype(out.dtype)
        np.minimum(out, 0.0, out=out)
        with np.errstate(under="ignore"):  # K of distant rows is 0
            np.exp(out, out=out)
        if self.degree:
            out += 1.0
            out *= 0.5
            raise_powers(out.reshape(-1), self.degree)
        return out


def keeps_zeros(rows: Any) -> bool:
    """Return whether rows like these are stored as dense arrays."""
    share = len(rows.data) / max(1, (len(rows.indptr) - 1) * rows.n_features)
    return rows.n_features <= _FEW_FEATURES or share >= _DENSE_SHARE
