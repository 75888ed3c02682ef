"""Kernels that the user supplies, and the restoring of saved kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from sparsemargin._engine.kernel.functions import Kernel, PolyKernel, RBFKernel, inverse
from sparsemargin._engine.kernel.support import Points, scaled_rows
from sparsemargin._engine.rows.csr import Csr
from sparsemargin._engine.state import array_of, fields, flag, part, require
from sparsemargin._heavy import scipy_sparse

# Largest asymmetry of kernel values, relative to the largest value.
_ASYMMETRY = 1e-5


class PrecomputedKernel(Kernel):
    """A matrix of kernel values. Points are row numbers, or rows of the matrix in prediction."""

    is_given = True

    def __init__(self, bias: float):
        super().__init__(bias, dense=True)
        self.rows: Any = None  # the matrix of kernel values during training

    def _restored_rows(self, state: Any, n: int, n_features: int) -> dict[str, np.ndarray]:
        return fields(state, {"matrix": (array_of, np.int64, (n,), 0, n_features - 1)})

    def check(self, rows: Any) -> None:
        """Store the matrix, or raise a ValueError with place and reason if it is not a kernel."""
        n = len(rows.indptr) - 1
        if n != rows.n_features:
            raise ValueError(
                f"With kernel='precomputed' fit takes the kernel of all pairs of rows, a square "
                f"matrix; X has shape {(n, rows.n_features)}."
            )
        matrix = scipy_sparse().csr_array((rows.data, rows.indices, rows.indptr), shape=(n, n))
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
    """Kernel values divided by the lengths of their rows, without the intercept."""
    out = values * inverse(_lengths_without_bias(b, bias))
    if a.measured:
        out *= inverse(_lengths_without_bias(a, bias))[:, np.newaxis]
    return np.asarray(out)


def _lengths_without_bias(points: Points, bias: float) -> np.ndarray:
    lengths = points.lengths
    return np.sqrt((lengths - bias) * (lengths + bias)) if bias else lengths


def _function(state: Any, name: str) -> Any:
    function = part(state, name)
    require(callable(function), f"{name!r} is none")
    return function


class CallableKernel(Kernel):
    """A function of two matrices of rows, passed in their original form: arrays or CSR."""

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
        """Kernel of each row with itself, after the values have passed the checks of a kernel."""
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
        # Equal arguments are passed as one object, because functions may test `X is Y`.
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
    """A copy that the function may modify; the matrix may belong to the support set."""
    if not isinstance(matrix, Csr):
        return matrix.copy()
    first, last = matrix.indptr[0], matrix.indptr[-1]
    # Indices are int32 if possible, as in scipy; some functions accept nothing else.
    fits = max(last - first, matrix.n_features) <= np.iinfo(np.int32).max
    index = np.int32 if fits else np.int64
    indices, indptr = matrix.indices[first:last], matrix.indptr - first
    parts = matrix.data[first:last].copy(), indices.astype(index), indptr.astype(index)
    return scipy_sparse().csr_array(parts, shape=(matrix.n_rows, matrix.n_features))


def _check_diagonal(
    diagonal: np.ndarray, magnitudes: np.ndarray, rows: np.ndarray, what: str
) -> None:
    """Raise a ValueError for negative values, and for a 0 in a row with nonzero values. Distance
    matrices, for example, have such a diagonal."""
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
    """The kernel from the result of `Kernel.saved`; ValueError if the state is damaged."""
    kind = part(state, "kind")
    require(kind in _KERNELS, f"there is no kernel {kind!r}")
    return _KERNELS[kind](bias, **fields(state, _KERNELS[kind].schema))
