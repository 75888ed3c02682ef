"""Outputs of vectors in feature space: kernel rows times coefficients, computed in tiles."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator
from functools import partial
from threading import Lock
from typing import Any

import numpy as np

from sparsemargin._engine.fitting.protocol import NumberedRows
from sparsemargin._engine.fitting.threads import run_together
from sparsemargin._engine.kernel.functions import Kernel
from sparsemargin._engine.kernel.support import Points
from sparsemargin._engine.kernel.user_kernels import PrecomputedKernel

# Number of support rows that are multiplied by a block of rows at once. The products fit into the
# cache of a core.
_TILE = 1024

# Number of points predicted at once.
_POINTS = 512


class _SingleBLAS:
    """A context that limits BLAS to one thread; nested and concurrent uses are counted, and the
    last one restores the previous limits."""

    def __init__(self) -> None:
        self.lock, self.calls = Lock(), 0
        self.controller: Any = None  # created once, because finding the libraries is slow
        self.limit: Any = None

    def __enter__(self) -> None:
        with self.lock:
            if self.calls == 0:
                if self.controller is None:
                    # Importing threadpoolctl takes 0.01 s, and only kernels need it.
                    from threadpoolctl import ThreadpoolController

                    self.controller = ThreadpoolController()
                self._take_control()
                self.limit = self.controller.limit(limits=1, user_api="blas")
            self.calls += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.calls -= 1
            if self.calls == 0:
                self._take_control()
                self.limit.restore_original_limits()

    def _take_control(self) -> None:
        """Allow the calling thread to change limits that another thread has set. Otherwise, newer
        versions of threadpoolctl ignore the call without an error."""
        for library in self.controller.lib_controllers:
            if hasattr(library, "clear_controlling_thread"):
                library.clear_controlling_thread(force=True)

    def unlock(self) -> None:
        """Replace the lock after a fork, because the thread that holds it does not exist there."""
        self.lock = Lock()


_single_blas = _SingleBLAS()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_single_blas.unlock)


def single_blas() -> _SingleBLAS:
    """Limit BLAS to the calling thread, so that the order of its sums does not depend on the number
    of cores."""
    return _single_blas


def _parts(points: Points, size: int) -> list[Points]:
    return [points.part(at, min(at + size, points.n)) for at in range(0, points.n, size)]


def outputs(
    kernel: Kernel, points: Points, support: Points, coefficients: np.ndarray, n_threads: int = 1
) -> np.ndarray:
    """``sum_i c_i K(x_i, x) / length(x)`` of all points, shape (n_vectors, points.n).

    Tiles of the support are distributed to threads; the order of the sums does not depend on the
    number of threads.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # the outputs show overflow
        scaled = coefficients * support.lengths
        # Divide by the largest size, so that float32 can represent the coefficients.
        peaks = np.abs(scaled).max(axis=1, initial=0.0)
        scaled *= np.divide(1.0, peaks, out=np.zeros_like(peaks), where=peaks > 0)[:, np.newaxis]

    def by_tile(tile: Points, start: int) -> np.ndarray:
        products = kernel.products(points, tile)
        part = scaled[:, start : start + tile.n]
        with np.errstate(under="ignore"):  # products with distant rows are tiny
            return part.astype(products.dtype, copy=False) @ products.T

    tiles = _parts(support, _TILE)
    calls = [partial(by_tile, tile, i * _TILE) for i, tile in enumerate(tiles)]
    total = np.zeros((len(coefficients), points.n))
    for part in run_together(calls, n_threads):
        total += part
    total *= peaks[:, np.newaxis]
    return total


def unit_products(
    kernel: Kernel, points: Points, support: Points, n_threads: int = 1
) -> np.ndarray:
    """`Kernel.products` of points and support rows, shape (points.n, support.n). The tiles do not
    depend on the number of threads."""
    calls = [partial(kernel.products, points, tile) for tile in _parts(support, _TILE)]
    parts = run_together(calls, n_threads) or [np.empty((points.n, 0))]
    return np.ascontiguousarray(np.concatenate(parts, axis=1))


def _test_points(kernel: Kernel, rows: Any) -> Iterator[tuple[np.ndarray, Points]]:
    """Yield blocks of row numbers and the rows as points."""
    for start in range(0, rows.n_rows, _POINTS):
        which = np.arange(start, min(start + _POINTS, rows.n_rows))
        yield which, kernel.points(rows, which, test=True)


def support_products(
    space: Any, rows: Any, n_threads: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield kernel values between the support set of a space and checked rows, in blocks of rows.

    Yields
    ------
    which : ndarray of shape (n_points,)
        Indices of the rows.
    products : ndarray of shape (n_support, n_points), float64
    """
    support = space.support.points
    for which, points in _test_points(space.kernel, rows):
        with single_blas():
            unit = unit_products(space.kernel, points, support, n_threads).T
        products = np.multiply(unit, support.lengths[:, np.newaxis], order="C")
        products *= points.lengths
        yield which, products


class SupportSpace(NumberedRows):
    """Base class of the spaces whose vectors are combinations of a support set.

    Attributes
    ----------
    kernel : Kernel
    support : SupportSet
    origin : ndarray of shape (n_support,)
        Row numbers of the support set, see `NumberedRows`.
    """

    has_support = True

    kernel: Any
    support: Any
    origin: np.ndarray

    @property
    def n_support(self) -> int:
        """Number of rows in the support set."""
        return len(self.support)

    @abstractmethod
    def coefficients(self) -> np.ndarray:
        """Coefficients of the support set in each hypothesis, shape (n_vectors, n_support)."""

    @abstractmethod
    def count_support(self) -> np.ndarray:
        """Number of support rows in each vector's hypothesis, shape (n_vectors,)."""

    @property
    def has_row_lengths(self) -> bool:  # type: ignore[override]
        return not isinstance(self.kernel, PrecomputedKernel)

    @property
    def growth(self) -> tuple[str, str]:  # type: ignore[override]
        return f"The pool's {self.n_support:,} rows take", "max_support"

    @property
    def first_new_row(self) -> int:  # type: ignore[override]
        return max(self.rows_taken, int(self.origin.max(initial=-1)) + 1)

    def outputs(self, rows: Any, n_threads: int) -> np.ndarray:
        result = np.zeros((rows.n_rows, self.n_vectors))
        support, coefficients = self.support.points, self.coefficients()
        with single_blas():
            for which, points in _test_points(self.kernel, rows):
                out = outputs(self.kernel, points, support, coefficients, n_threads)
                result[which] = (out * points.lengths).T
        return result

    def norms(self, n_threads: int) -> np.ndarray:
        support, coefficients = self.support.points, self.coefficients()
        squares = np.zeros(self.n_vectors)
        with single_blas():
            for i, part in enumerate(_parts(support, _POINTS)):
                out = outputs(self.kernel, part, support, coefficients, n_threads) * part.lengths
                start = i * _POINTS
                squares += np.einsum("ij,ij->i", out, coefficients[:, start : start + part.n])
        return np.sqrt(np.maximum(squares, 0.0))

    def row_lengths(self, rows: Any) -> np.ndarray:
        if not self.has_row_lengths:
            raise ValueError(
                "kernel='precomputed' does not tell the lengths of rows to predict. Pass "
                "normalize=False for margins in their own units."
            )
        return self._lengths(rows, np.arange(rows.n_rows))

    def _lengths(self, rows: Any, which: np.ndarray) -> np.ndarray:
        starts = range(0, len(which), _POINTS)
        parts = [self.kernel.points(rows, which[start : start + _POINTS]) for start in starts]
        return np.concatenate([part.lengths for part in parts])
