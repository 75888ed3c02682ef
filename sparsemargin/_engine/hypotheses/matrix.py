"""Vote and random hypotheses of matrix Perceptrons, replayed from their logs.

The corrections are made again in a blank space, once for all test points, and give every vector.
These are as large as the basis is; so many are kept at once as fit a bound, and the test points
are scored by all of them together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from sparsemargin._engine.kernel.outputs import pool_products, single_blas
from sparsemargin._engine.matrix.base import replay
from sparsemargin._engine.matrix.spaces import DualSpaces, LabelSpaces, SpacePerLabel

# Bytes of the vectors that are kept at once; how many follow each other; points scored at once.
_MEMORY = 1 << 27
_VECTORS = 256
_POINTS = 2048


class _Stretch(NamedTuple):
    """Vectors of a label that followed each other.

    Attributes
    ----------
    label : int
    vectors : ndarray of shape (n_vectors, n_basis)
    largest : ndarray of shape (n_vectors, n_basis)
        Magnitudes that their entries have come to so far.
    units : ndarray of shape (n_vectors,)
        What each counts with.
    begins, ends : ndarray of shape (n_vectors,)
        Trials before each, and before the next.
    rounding : float
        What entries may be off by, relative to the largest they have been.
    """

    label: int
    vectors: np.ndarray
    largest: np.ndarray
    units: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    rounding: float

    def votes(self, points: Any) -> np.ndarray:
        """``sum_k c_k sign(w_k.x)`` of points over the basis, 0 where rounding could have left the
        score."""
        outputs = np.asarray(points @ self.vectors.T)
        sizes = abs(points)
        bounds = np.outer(sizes.sum(axis=1), self.largest.max(axis=1, initial=0.0))
        doubtful = (np.abs(outputs) <= self.rounding * bounds) & (outputs != 0.0)
        for k in np.flatnonzero(doubtful.any(axis=0)):
            rows = np.flatnonzero(doubtful[:, k])
            lost = np.abs(outputs[rows, k]) <= self.rounding * (sizes[rows] @ self.largest[k])
            outputs[rows[lost], k] = 0.0
        signs: np.ndarray = np.sign(outputs) @ (self.ends - self.begins).astype(np.float64)
        return signs

    def outputs_at(self, points: Any, slices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which points' time slices lie here, and ``w.x`` by the vectors of these slices."""
        there = np.flatnonzero((slices >= self.begins[0]) & (slices < self.ends[-1]))
        at = np.searchsorted(self.begins, slices[there], side="right") - 1
        result = np.empty(len(there))
        for k in np.unique(at):
            result[at == k] = self.units[k] * _times(points[there[at == k]], self.vectors[k])
        return there, result


def _times(points: Any, vector: np.ndarray) -> np.ndarray:
    """``x.w`` of each point, in the same order of sums whatever points there are beside it."""
    if isinstance(points, np.ndarray):
        return np.asarray(np.einsum("ij,j->i", points, vector))
    return np.asarray(points @ vector)


def _stretches(space: SpacePerLabel, label: int) -> Iterator[_Stretch]:
    """The vectors of a label, as its corrections are made again."""
    log = space.spaces[label]
    now, begins, n_basis = log.blank(), log.begins, len(log.hypothesis())
    ends = np.append(begins[1:], log.trials)
    before = np.zeros((1, n_basis))
    step = max(1, min(_VECTORS, _MEMORY // (16 * n_basis + 1)))
    for start in range(0, len(begins), step):
        some = slice(start, start + step)
        vectors, units = np.zeros((len(begins[some]), n_basis)), np.zeros(len(begins[some]))
        replay(log, now, start, vectors, units)
        largest = np.maximum.accumulate(np.concatenate([before, np.abs(vectors)]))[1:]
        before = largest[-1:]
        yield _Stretch(label, vectors, largest, units, begins[some], ends[some], log.rounding())


def _parts(space: SpacePerLabel) -> Iterator[list[_Stretch]]:
    """The stretches of all labels, so many at a time as fit the bound."""
    part: list[_Stretch] = []
    n_bytes = 0
    for label in range(space.n_labels):
        for stretch in _stretches(space, label):
            if part and n_bytes + 2 * stretch.vectors.nbytes > _MEMORY:
                yield part
                part, n_bytes = [], 0
            part.append(stretch)
            n_bytes += 2 * stretch.vectors.nbytes
    yield part


#: Numbers of some points, and what gives these over the basis of a label: CSR or dense.
_Points = Iterator[tuple[np.ndarray, Callable[[int], Any]]]


def _met_points(space: LabelSpaces, X: Any) -> _Points:
    """Those of a CSR array with the intercept's column."""
    from scipy.sparse import csr_array

    for start in range(0, X.shape[0], _POINTS):
        part = X[start : start + _POINTS]

        def over_met(label: int, part: Any = part) -> Any:
            # Features not met share the number 0, where all weights are 0.
            met, n_met = space.spaces[label].met, space.spaces[label].n_met
            parts = part.data, met[part.indices], part.indptr
            return csr_array(parts, (part.shape[0], n_met), copy=True)  # scipy sums what is double

        yield np.arange(start, start + part.shape[0]), over_met


def _pool_points(space: DualSpaces, rows: Any, n_threads: int) -> _Points:
    """Those of checked rows."""
    lengths = space.pool.points.lengths
    for which, products in pool_products(space, rows, n_threads):

        def over_support(label: int, products: np.ndarray = products) -> np.ndarray:
            support = space.spaces[label].support
            return np.ascontiguousarray((products[support] / lengths[support, np.newaxis]).T)

        yield which, over_support


def _votes(space: SpacePerLabel, n_points: int, points: Callable[[], _Points]) -> np.ndarray:
    """``sum_k c_k sign(w_k.x)`` over the trials, shape (n_points, n_labels)."""
    result = np.zeros((n_points, space.n_labels))
    for part in _parts(space):
        for which, over_basis in points():
            with single_blas():
                for stretch in part:
                    result[which, stretch.label] += stretch.votes(over_basis(stretch.label))
    return result / np.maximum(space.per_label("trials"), 1)


def _outputs_at(
    space: SpacePerLabel, slices: np.ndarray, points: Callable[[], _Points]
) -> np.ndarray:
    """``w.x`` with the vectors that existed at each point's time slice."""
    result = np.zeros((len(slices), space.n_labels))
    trials = space.per_label("trials")
    for part in _parts(space):
        for which, over_basis in points():
            for stretch in part:
                # A label that was done early stays as it was.
                moments = np.minimum(slices[which], trials[stretch.label] - 1)
                there, found = stretch.outputs_at(over_basis(stretch.label), moments)
                result[which[there], stretch.label] = found
    return result


def votes(space: LabelSpaces, X: Any) -> np.ndarray:
    """Shares of votes, shape (n_points, n_labels); X is CSR with the intercept's column."""
    return _votes(space, X.shape[0], lambda: _met_points(space, X))


def random_outputs(space: LabelSpaces, X: Any, slices: np.ndarray) -> np.ndarray:
    """Outputs by the vectors of each row's time slice, shape (n_points, n_labels); X likewise."""
    return _outputs_at(space, slices, lambda: _met_points(space, X))


def dual_votes(space: DualSpaces, rows: Any, n_threads: int) -> np.ndarray:
    """`votes` of checked rows in dual variables."""
    return _votes(space, len(rows.indptr) - 1, lambda: _pool_points(space, rows, n_threads))


def dual_random_outputs(
    space: DualSpaces, rows: Any, slices: np.ndarray, n_threads: int
) -> np.ndarray:
    """`random_outputs` of checked rows in dual variables."""
    return _outputs_at(space, slices, lambda: _pool_points(space, rows, n_threads))
