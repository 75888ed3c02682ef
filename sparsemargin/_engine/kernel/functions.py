"""Kernels, of rows divided by their own length in feature space.

``K(x, z) / (length(x) length(z))`` never exceeds 1 in magnitude, so that float32 holds it whatever
the degree; the lengths are kept apart, in float64.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable
from math import inf
from typing import Any, ClassVar, Literal

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

KernelName = Literal["linear", "poly", "rbf", "polyrbf", "precomputed"]

# Rows so long, or so short, that sums of their products would leave the range of a double.
_LONGEST, _SHORTEST = 1e140, 1e-140

# The range of numbers above 0.
_LEAST, _LARGEST = 5e-324, sys.float_info.max

# Beyond it `raise_powers` would not count.
_LARGEST_DEGREE = 2**31 - 1

# Exponents of the Gaussian are differences of squared lengths; of larger ones float32 would lose
# too many digits, and they are computed in float64.
_LARGEST_SQUARE_32 = 64.0

# Rows with fewer nonzeros than this share of their features, and more features than that, are kept
# as CSR: on MNIST, a fifth of whose entries are not 0, products of CSR rows take a third of the
# time that the BLAS takes.
_DENSE_SHARE = 0.25
_FEW_FEATURES = 64

# How far a kernel's values may be from symmetric, relative to the largest.
_ASYMMETRY = 1e-5


class Kernel:
    """Base of the kernels. The square of `bias`, the intercept's coordinate in feature space, joins
    every product; `dense`: rows are held with all their zeros."""

    #: Whether working it out may end in an error, of what is not ours.
    may_fail = False
    #: Whether its values are the user's, who answers for their being a kernel's.
    is_given = False
    #: The parameters that it is saved as, each with what `state.fields` checks of it.
    schema: ClassVar[dict[str, Any]] = {}
    #: Columns that dense rows have beyond the features.
    n_extra_columns = 0

    def __init__(self, bias: float, *, dense: bool):
        self.bias, self.dense = bias, dense

    @abstractmethod
    def _points_without_bias(self, rows: Any, which: np.ndarray, *, test: bool) -> Points:
        """The rows of these numbers, with their lengths without the intercept's part."""

    @abstractmethod
    def _products_without_bias(self, a: Points, b: Points) -> np.ndarray:
        """Kernel of rows divided by their lengths, the intercept's part left out."""

    def saved(self) -> dict[str, Any]:
        """All but the intercept's value and the rows that are learned from."""
        parameters = {name: getattr(self, name) for name in self.schema}
        return {"kind": type(self).__name__, **parameters}

    def forget_rows(self) -> None:
        """Let go of what is needed only while learning."""

    def restored_support(self, state: Any, n_features: int) -> SupportSet:
        """The support set that `SupportSet.filled` was saved of.

        Raises
        ------
        ValueError
            If it is damaged.
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
        """The columns that the n rows themselves are in."""
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
        """The rows of these numbers; test: to predict, not to learn from.

        Raises
        ------
        BadRow
            If a row is too long, or too short to learn from without being 0.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            points = self._points_without_bias(rows, which, test=test)
            lengths = points.lengths
            if self.bias and points.measured:
                lengths = np.hypot(lengths, self.bias)
        # inf and NaN are not below either.
        bad = ~(lengths < _LONGEST)
        if not test:
            bad |= (lengths > 0) & (lengths < _SHORTEST)
        if bad.any():
            raise BadRow(NO_LENGTH, int(which[np.flatnonzero(bad)[0]]))
        return points._replace(lengths=lengths)

    def _shares(self, points: Points) -> tuple[np.ndarray, np.ndarray]:
        """What of a unit vector is the kernel's, and what the intercept's."""
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
        """`products` of the points with each other, in float64: 1 on the diagonal where a row is
        not 0; and what rounding may have left of any."""
        out = self.products(points, points)
        exact = (points.lengths > 0).astype(np.float64)
        error = np.abs(out.diagonal() - exact).max(initial=np.finfo(out.dtype).eps)
        out = out.astype(np.float64, order="C")
        np.fill_diagonal(out, exact)
        return out, float(error)


def _values(state: Any, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The array called `name`, of that shape and of a type that rows have."""
    dtype: Any = getattr(part(state, name), "dtype", None)
    require(dtype in VALUE_TYPES, f"{name!r} is not of a type that rows have")
    return np.asarray(array_of(state, name, dtype, shape))


def _dot(a: Any, b: Any) -> np.ndarray:
    """Dot products of all pairs of rows."""
    if isinstance(a, Csr):
        return _sparse_dot(a, b, np.zeros(a.n_rows), np.zeros(b.n_rows))
    return a @ b.T


def _sparse_dot(a: Csr, b: Csr, constants: np.ndarray, other_constants: np.ndarray) -> np.ndarray:
    """Those of rows that have one more entry each, a constant."""
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


def _inverse(values: np.ndarray) -> np.ndarray:
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)


def _underflowed(rows: Any, which: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Which rows have lost their length, but are not 0."""
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
        inverse = _inverse(roots)
        scale, constant = np.sqrt(self.gamma) * inverse, np.sqrt(self.coef0) * inverse
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
        np.exp(out, out=out)
        if self.degree:
            out += 1.0
            out *= 0.5
            raise_powers(out.reshape(-1), self.degree)
        return out


class PrecomputedKernel(Kernel):
    """Columns of a matrix of kernel values: points are row numbers, or, to predict, rows of it."""

    is_given = True

    def __init__(self, bias: float):
        super().__init__(bias, dense=True)
        self.rows: Any = None  # of the matrix that is learned from

    def _restored_rows(self, state: Any, n: int, n_features: int) -> dict[str, np.ndarray]:
        return fields(state, {"matrix": (array_of, np.int64, (n,), 0, n_features - 1)})

    def check(self, rows: Any) -> None:
        """Refuse a matrix that is no kernel's, by a ValueError that says where, and why."""
        from scipy.sparse import csr_array

        n = len(rows.indptr) - 1
        if n != rows.n_features:
            raise ValueError(
                f"With kernel='precomputed' fit takes the kernel of all pairs of rows, a square "
                f"matrix; X has shape {(n, rows.n_features)}."
            )
        matrix = csr_array((rows.data, rows.indices, rows.indptr), shape=(n, n))
        difference = abs(matrix - matrix.T).tocoo()
        magnitudes = abs(matrix).max(axis=1).toarray().ravel()
        largest = magnitudes.max(initial=0.0)
        if difference.nnz and difference.data.max() > _ASYMMETRY * largest:
            at = int(difference.data.argmax())
            i, j = int(difference.row[at]), int(difference.col[at])
            raise ValueError(
                f"X is not symmetric, as a precomputed kernel must be: X[{i}, {j}] = "
                f"{matrix[i, j]:g} and X[{j}, {i}] = {matrix[j, i]:g}."
            )
        _check_diagonal(matrix.diagonal(), magnitudes, np.arange(n), "X, a precomputed kernel,")
        self.rows = rows

    def forget_rows(self) -> None:
        self.rows = None

    def _points_without_bias(self, rows: Any, which: np.ndarray, *, test: bool) -> Points:
        ones, zeros = np.ones(len(which)), np.zeros(len(which))
        dense = scaled_rows(rows, which, ones, rows.n_features, dense=True)
        if test:
            return Points(dense, ones, zeros, measured=False)
        lengths = np.sqrt(dense[np.arange(len(which)), which].astype(np.float64))
        return Points(which.astype(np.int64), lengths, zeros)

    def _products_without_bias(self, a: Points, b: Points) -> np.ndarray:
        values = a.matrix
        if values.ndim == 1:
            n = self.rows.n_features
            values = scaled_rows(self.rows, values, np.ones(a.n), n, dense=True)
        return _over_lengths(values[:, b.matrix], a, b, self.bias)


def _over_lengths(values: np.ndarray, a: Points, b: Points, bias: float) -> np.ndarray:
    """Kernel values divided by the lengths of their rows, the intercept's part left out."""
    out = values * _inverse(_lengths_without_bias(b, bias))
    if a.measured:
        out *= _inverse(_lengths_without_bias(a, bias))[:, np.newaxis]
    return np.asarray(out)


def _lengths_without_bias(points: Points, bias: float) -> np.ndarray:
    lengths = points.lengths
    return np.sqrt((lengths - bias) * (lengths + bias)) if bias else lengths


def _function(state: Any, name: str) -> Any:
    function = part(state, name)
    require(callable(function), f"{name!r} is none")
    return function


class CallableKernel(Kernel):
    """A function of two matrices of rows, which it gets as they were given: arrays, or CSR."""

    may_fail = True
    is_given = True
    schema: ClassVar = {"function": (_function,), "dense": (flag,)}

    def __init__(self, bias: float, *, dense: bool, function: Callable[[Any, Any], Any]):
        super().__init__(bias, dense=dense)
        self.function = function

    def _points_without_bias(self, rows: Any, which: np.ndarray, *, test: bool) -> Points:
        ones, zeros = np.ones(len(which)), np.zeros(len(which))
        matrix = scaled_rows(rows, which, ones, rows.n_features, dense=self.dense)
        if test:
            return Points(matrix, ones, zeros, measured=False)
        return Points(matrix, np.sqrt(self._checked_square(matrix, which)), zeros)

    def _checked_square(self, matrix: Any, which: np.ndarray) -> np.ndarray:
        """Kernel of each row with itself, once the values are known to be a kernel's."""
        values = self._call(matrix, matrix)
        difference = np.abs(values - values.T)
        magnitudes = np.abs(values).max(axis=1, initial=0.0)
        if values.size and difference.max() > _ASYMMETRY * magnitudes.max():
            i, j = np.unravel_index(int(difference.argmax()), values.shape)
            raise ValueError(
                f"The kernel is not symmetric: of rows {which[i]} and {which[j]} of X it gives "
                f"{values[i, j]:g}, the other way round {values[j, i]:g}."
            )
        diagonal = values.diagonal()
        _check_diagonal(diagonal, magnitudes, which, "The kernel")
        return diagonal

    def _call(self, a: Any, b: Any) -> np.ndarray:
        name = getattr(self.function, "__name__", repr(self.function))
        shape = tuple(m.n_rows if isinstance(m, Csr) else len(m) for m in (a, b))
        # Functions may look whether they get one matrix twice.
        left = _given(a)
        right = left if a is b else _given(b)
        values = self.function(left, right)
        if hasattr(values, "toarray"):
            raise ValueError(
                f"kernel={name} must return an array, got a sparse one. Return its .toarray()."
            )
        try:
            values = np.asarray(values)
        except ValueError as error:
            raise ValueError(f"kernel={name} returned no array: {error}") from error
        if values.dtype.kind not in "biuf":
            raise ValueError(
                f"kernel={name} must return real numbers, got an array of {values.dtype}."
            )
        if values.shape != shape:
            raise ValueError(
                f"kernel={name} must return an array of shape {shape} for that many rows of two "
                f"matrices, got one of shape {values.shape}."
            )
        if not np.isfinite(values).all():
            raise ValueError(f"kernel={name} returned NaN or infinity.")
        return values.astype(np.float64, copy=False)

    def _products_without_bias(self, a: Points, b: Points) -> np.ndarray:
        return _over_lengths(self._call(a.matrix, b.matrix), a, b, self.bias)


def _given(matrix: Any) -> Any:
    """A copy, which a function may do with as it likes: the matrix may be the support set's."""
    if not isinstance(matrix, Csr):
        return matrix.copy()
    from scipy.sparse import csr_array

    first, last = matrix.indptr[0], matrix.indptr[-1]
    # Where they fit, indices are int32 as scipy's are, which is all that some functions take.
    fits = max(last - first, matrix.n_features) <= np.iinfo(np.int32).max
    index = np.int32 if fits else np.int64
    indices, indptr = matrix.indices[first:last], matrix.indptr - first
    parts = matrix.data[first:last].copy(), indices.astype(index), indptr.astype(index)
    return csr_array(parts, shape=(matrix.n_rows, matrix.n_features))


def _check_diagonal(
    diagonal: np.ndarray, magnitudes: np.ndarray, rows: np.ndarray, what: str
) -> None:
    """Refuse negative values, and a 0 beside values that are none, as distances have it."""
    room = _ASYMMETRY * magnitudes.max(initial=0.0)
    bad = (diagonal < 0) | ((diagonal == 0) & (magnitudes > room))
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        others = "" if diagonal[at] < 0 else f", and up to {magnitudes[at]:g} with others"
        raise ValueError(
            f"{what} is not positive semidefinite: it gives {diagonal[at]:g} for row {rows[at]} "
            f"with itself{others}."
        )


_KERNELS: dict[Any, type[Kernel]] = {
    kind.__name__: kind for kind in (PolyKernel, RBFKernel, PrecomputedKernel, CallableKernel)
}


def restored_kernel(state: Any, bias: float) -> Kernel:
    """The kernel that `Kernel.saved` gave, or a ValueError."""
    kind = part(state, "kind")
    require(kind in _KERNELS, f"there is no kernel {kind!r}")
    return _KERNELS[kind](bias, **fields(state, _KERNELS[kind].schema))


def keeps_zeros(rows: Any) -> bool:
    """Whether rows like these are held dense."""
    share = len(rows.data) / max(1, (len(rows.indptr) - 1) * rows.n_features)
    return rows.n_features <= _FEW_FEATURES or share >= _DENSE_SHARE
