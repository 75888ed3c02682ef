"""Vote and random hypotheses of matrix Perceptrons in dual variables, replayed from their logs.

The corrections are made again, once for all test points, and give every vector's coefficients.
These are as large as the matrices are; so many are kept at once as fit a bound, and the test
points are scored by all of them together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsemargin._engine.kernel.loop import BLOCK
from sparsemargin._engine.kernel.outputs import pool_products, single_blas
from sparsemargin._engine.matrix.dual import replay
from sparsemargin._engine.matrix.dual_spaces import DualSpaces

# Bytes of the vectors that are kept at once.
_MEMORY = 1 << 27


@dataclass
class _Stretch:
    """Vectors of a label that followed each other.

    Attributes
    ----------
    label : int
    support : ndarray of shape (n_own,)
        Rows of the pool that they are combinations of.
    vectors : ndarray of shape (n_vectors, n_own)
    units : ndarray of shape (n_vectors,)
        What each counts with.
    begins, ends : ndarray of shape (n_vectors,)
        Trials before each, and before the next.
    rounding : float
        What the vectors' coefficients may be off by, relative to the largest of them.
    """

    label: int
    support: np.ndarray
    vectors: np.ndarray
    units: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    rounding: float

    def votes(self, products: np.ndarray) -> np.ndarray:
        """``sum_k c_k sign(w_k.x)`` of the points, 0 where rounding could have left the score."""
        lasted = (self.ends - self.begins).astype(np.float64)
        outputs = self.vectors @ products[self.support]
        sizes = np.abs(self.vectors) @ np.abs(products[self.support])
        outputs[np.abs(outputs) <= self.rounding * sizes] = 0.0
        signs: np.ndarray = lasted @ np.sign(outputs)
        return signs

    def outputs_at(
        self, products: np.ndarray, moments: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which points' moments lie here, and ``w.x`` by the vectors of these moments."""
        there = np.flatnonzero((moments >= self.begins[0]) & (moments < self.ends[-1]))
        at = np.searchsorted(self.begins, moments[there], side="right") - 1
        of_points = products[np.ix_(self.support, there)]
        return there, self.units[at] * np.einsum("ij,ji->i", self.vectors[at], of_points)


def votes(space: DualSpaces, rows: Any, n_threads: int) -> np.ndarray:
    """``sum_k c_k sign(w_k.x)`` over the trials, shape (n_rows, n_labels)."""
    result = np.zeros((len(rows.indptr) - 1, space.n_labels))
    for part in _parts(space):
        for which, products in pool_products(space, rows, n_threads):
            for stretch in part:
                with single_blas():
                    result[which, stretch.label] += stretch.votes(products)
    return result / np.maximum(space.per_label("trials"), 1)


def random_outputs(space: DualSpaces, rows: Any, slices: np.ndarray, n_threads: int) -> np.ndarray:
    """``w.x`` with the vectors that existed at each row's time slice, shape (n_rows, n_labels)."""
    result = np.zeros((len(rows.indptr) - 1, space.n_labels))
    trials = space.per_label("trials")
    for part in _parts(space):
        for which, products in pool_products(space, rows, n_threads):
            for stretch in part:
                # A label that was done early stays as it was.
                moments = np.minimum(slices[which], trials[stretch.label] - 1)
                there, found = stretch.outputs_at(products, moments)
                result[which[there], stretch.label] = found
    return result


def _parts(space: DualSpaces) -> Iterator[list[_Stretch]]:
    """The stretches of all labels, so many at a time as fit the bound."""
    part: list[_Stretch] = []
    n_bytes = 0
    for label in range(space.n_labels):
        for stretch in _stretches(space, label):
            if part and n_bytes + stretch.vectors.nbytes > _MEMORY:
                yield part
                part, n_bytes = [], 0
            part.append(stretch)
            n_bytes += stretch.vectors.nbytes
    yield part


def _stretches(space: DualSpaces, label: int) -> Iterator[_Stretch]:
    """The vectors of a label, as its corrections are made again."""
    of_label, support = space.spaces[label], space.spaces[label].support
    now, lengths = of_label.blank(), space.pool.points.lengths
    rows, _, begins = of_label.log()
    ends = np.append(begins[1:], of_label.trials)
    for start in range(0, len(rows), BLOCK):
        some = slice(start, start + BLOCK)
        places = support[: int(rows[: start + BLOCK].max()) + 1]
        vectors, units = np.zeros((len(rows[some]), len(places))), np.zeros(len(rows[some]))
        replay(of_label, now, start, vectors, units)
        vectors /= lengths[places]
        rounding = of_label.rounding()
        yield _Stretch(label, places, vectors, units, begins[some], ends[some], rounding)
