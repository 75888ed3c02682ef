"""Vote and random hypotheses of matrix Perceptrons, replayed from their logs.

The corrections are made again in a blank space, once for all test points, and give every vector.
So many of these are kept at once as fit a bound, and the test points are scored by all of them
together.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from sparsemargin._engine.hypotheses.replayed import points_of
from sparsemargin._engine.kernel.outputs import single_blas, support_products
from sparsemargin._engine.matrix.base import replay
from sparsemargin._engine.rows.csr import Csr

# Bytes of the vectors that are made in one go, and how many these are at most; points scored at
# once.
_BYTES = 1 << 24
_VECTORS = 1024
_POINTS = 2048


class _Stretch(NamedTuple):
    """Vectors of a label that followed each other."""

    label: int
    vectors: np.ndarray  # (n_used, n_vectors)
    before: np.ndarray  # magnitudes that their entries had come to before, (n_used,)
    peak: float  # the largest that any has come to in the end
    units: np.ndarray  # what each counts with, (n_vectors,)
    begins: np.ndarray  # trials before each,
    ends: np.ndarray  # and before the next
    rounding: float  # what entries may be off by, relative to the largest they have been

    def votes(self, points: Any, lengths: np.ndarray) -> np.ndarray:
        """``sum_k c_k sign(w_k.x)`` of points whose magnitudes add up to the lengths; 0 where
        rounding could have left the score."""
        outputs = points @ self.vectors
        doubtful = np.abs(outputs) <= (self.rounding * self.peak * lengths)[:, np.newaxis]
        doubtful &= outputs != 0.0
        for k in np.flatnonzero(doubtful.any(axis=0)):
            rows = np.flatnonzero(doubtful[:, k])
            largest = np.abs(self.vectors[:, : k + 1]).max(axis=1, initial=0.0)
            sizes = abs(points[rows]) @ np.maximum(largest, self.before)
            outputs[rows[np.abs(outputs[rows, k]) <= self.rounding * sizes], k] = 0.0
        signs: np.ndarray = np.sign(outputs) @ (self.ends - self.begins).astype(np.float64)
        return signs

    def outputs_at(self, points: Any, slices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which points' time slices lie here, and ``w.x`` by the vectors of these slices: in the
        same order of sums whatever points there are beside one."""
        there = np.flatnonzero((slices >= self.begins[0]) & (slices < self.ends[-1]))
        at = np.searchsorted(self.begins, slices[there], side="right") - 1
        points = points[there]
        if isinstance(points, np.ndarray):
            products = np.einsum("ij,ji->i", points, self.vectors[:, at])
        else:
            rows = np.repeat(np.arange(len(there)), np.diff(points.indptr))
            terms = points.data * self.vectors[points.indices, at[rows]]
            products = np.bincount(rows, terms, minlength=len(there))
        return there, self.units[at] * products


class FeaturePoints:
    """Test points, checked rows, over the features met."""

    # Bytes of the vectors that are kept at once.
    memory = 1 << 25

    def __init__(self, space: Any, rows: Csr):
        self.space, self.n_points = space, rows.n_rows
        self.X, self.exponents = points_of(rows, space.bias)

    def used(self, label: int) -> np.ndarray:
        """Which entries of a label's vectors the points have, rising."""
        space = self.space.spaces[label]
        has = np.zeros(space.n_met, dtype=bool)
        has[space.met[self.X.indices]] = True
        return np.flatnonzero(has)

    def blocks(self) -> Iterator[tuple[np.ndarray, Any]]:
        for start in range(0, self.n_points, _POINTS):
            part = self.X[start : start + _POINTS]
            yield np.arange(start, start + part.shape[0]), part

    def over_used(self, part: Any, label: int, used: np.ndarray) -> Any:
        """Some of them over these entries."""
        from scipy.sparse import csr_array

        # Features not met share the number 0, where all weights are 0.
        space = self.space.spaces[label]
        numbers = np.zeros(space.n_met, dtype=np.int32)
        numbers[used] = np.arange(len(used))
        parts = part.data, numbers[space.met[part.indices]], part.indptr
        return csr_array(parts, (part.shape[0], len(used)), copy=True)  # scipy sums what is double


class SupportPoints:
    """Test points, checked rows, by their products with the support set."""

    # The products are worked out anew for every so many bytes of vectors.
    memory = 1 << 27
    exponents = 0

    def __init__(self, space: Any, rows: Csr, n_threads: int):
        self.space, self.rows, self.n_threads = space, rows, n_threads
        self.n_points = rows.n_rows

    @property
    def X(self) -> Any:
        """What slices are drawn by."""
        return points_of(self.rows, self.space.bias)[0]

    def used(self, label: int) -> np.ndarray:
        """All entries of the label's vectors."""
        return np.arange(len(self.space.spaces[label].slots))

    def blocks(self) -> Iterator[tuple[np.ndarray, Any]]:
        return support_products(self.space, self.rows, self.n_threads)

    def over_used(self, products: np.ndarray, label: int, used: np.ndarray) -> np.ndarray:
        """Some of them, as coefficients of rows of unit length meet them."""
        slots = self.space.spaces[label].slots
        lengths = self.space.support.points.lengths[slots]
        return np.ascontiguousarray((products[slots] / lengths[:, np.newaxis]).T)


def _stretches(log: Any, label: int, used: np.ndarray) -> Iterator[_Stretch]:
    """The vectors of a label, as its corrections are made again."""
    space, begins, largest = log.blank(), log.begins, np.zeros(len(used))
    ends = np.append(begins[1:], log.trials)
    step = min(_VECTORS, max(1, _BYTES // (8 * len(used) + 1)))
    for start in range(0, len(begins), step):
        some, before = slice(start, start + step), largest.copy()
        n = len(begins[some])
        vectors, units = np.zeros((len(used), n)), np.zeros(n)
        replay(log, space, start, used, vectors, units, largest)
        peak = float(largest.max(initial=0.0))
        yield _Stretch(
            label, vectors, before, peak, units, begins[some], ends[some], log.relative_error
        )


def _parts(points: FeaturePoints | SupportPoints) -> Iterator[list[_Stretch]]:
    """The stretches of all labels, so many at a time as fit the bound."""
    part: list[_Stretch] = []
    n_bytes = 0
    for label, log in enumerate(points.space.spaces):
        for stretch in _stretches(log, label, points.used(label)):
            if part and n_bytes + stretch.vectors.nbytes > points.memory:
                yield part
                part, n_bytes = [], 0
            part.append(stretch)
            n_bytes += stretch.vectors.nbytes
    yield part


def _meetings(
    points: FeaturePoints | SupportPoints,
) -> Iterator[tuple[np.ndarray, int, Any, list[_Stretch]]]:
    """Numbers of some points, a label, these points as its vectors meet them, and some of these."""
    for part in _parts(points):
        for which, block in points.blocks():
            for label, stretches in groupby(part, lambda stretch: stretch.label):
                over_used = points.over_used(block, label, points.used(label))
                yield which, label, over_used, list(stretches)


def votes(points: FeaturePoints | SupportPoints) -> np.ndarray:
    """``sum_k c_k sign(w_k.x)`` over the trials, shape (n_points, n_labels)."""
    result = np.zeros((points.n_points, points.space.n_labels))
    for which, label, some, stretches in _meetings(points):
        lengths = abs(some).sum(axis=1)
        with single_blas():
            for stretch in stretches:
                result[which, label] += stretch.votes(some, lengths)
    return result / np.maximum(points.space.per_label("trials"), 1)


def random_outputs(points: FeaturePoints | SupportPoints, slices: np.ndarray) -> np.ndarray:
    """``w.x`` with the vectors that existed at each point's time slice, shape (n_points,
    n_labels)."""
    result = np.zeros((points.n_points, points.space.n_labels))
    trials = points.space.per_label("trials")
    for which, label, some, stretches in _meetings(points):
        # A label that was done early stays as it was.
        moments = np.minimum(slices[which], trials[label] - 1)
        for stretch in stretches:
            there, found = stretch.outputs_at(some, moments)
            result[which[there], label] = found
    return result
