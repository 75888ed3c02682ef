"""Epochs of a linear space over few rows, with precomputed dot products if these are cheaper."""

from __future__ import annotations

import numpy as np

from sparsemargin._engine.first_order.trials import add_rows
from sparsemargin._engine.kernel.products import fill_gram
from sparsemargin._engine.kernel.stored_products import MEMORY, StoredProducts
from sparsemargin._engine.rows.columns import Chosen

# Multiplications in one call that fills the matrix. A call takes about 10 ms; Ctrl-C is handled
# between calls.
_PRODUCTS_PER_CALL = 1 << 23
# Upper bound of the magnitudes of nonzero values; its inverse is the lower bound. Otherwise, dot
# products could overflow or underflow a double.
_LARGEST_VALUE = 1e60


class GramLoop(StoredProducts):
    """Epochs over the rows of a task with their dot products (the Gram matrix).

    Parameters
    ----------
    space : LinearSpace
        A space with p = 2 and without averaging.
    rule : FirstOrderRule
    task : Task
        The task; its rows have been checked.
    """

    def __init__(self, space, rule, task):
        products = _gram_matrix(space, task.rows)
        super().__init__(space, rule, task, products, np.sqrt(products.diagonal()), slice(None))
        shape = space.n_vectors, len(task.codes)
        self.n_slots = len(task.codes)
        self.slots = np.arange(self.n_slots)
        # `t` has the coefficients that have not been added to the vectors yet, and `sweeps` the
        # number of sweeps when they were last added.
        self.t, self.scores = np.zeros(shape), np.zeros(shape)
        self.sweeps = np.zeros(space.n_vectors, dtype=np.int64)
        self.multipliers = space.multipliers

    @staticmethod
    def suits(task):
        """Return whether the dot products of the rows of a task fit into memory and doubles."""
        m = len(task.codes)
        return 8 * m * m <= MEMORY and _within_range(task.rows.data)

    @staticmethod
    def cost_of_matrix(task):
        """Number of multiplications needed to fill the matrix."""
        m = len(task.codes)
        return m * int(task.rows.indptr[-1]) // 2 + m * m

    @staticmethod
    def cost_of_pass(n_rows, n_vectors, corrections):
        """Cost of one epoch, in multiplications of the plain loop."""
        return n_rows * (n_vectors + corrections / 4)

    def refresh(self, vector):
        """Add the pending coefficients to the vector and recompute the scores from it."""
        space, sweeps = self.space, self.space.per_vector("passes")
        if sweeps[vector] > self.sweeps[vector]:
            space.clear(vector)
        add_rows(space, self.task.rows, vector, self.t[vector], self.scores[vector])
        self.t[vector] = 0.0
        self.sweeps[vector] = sweeps[vector]

    def learn(self, vector, order, seed, n_passes):
        self.sweeps[vector] = self.space.per_vector("passes")[vector]
        self.refresh(vector)
        end = super().learn(vector, order, seed, n_passes)
        self.refresh(vector)
        return end

    def run(self, order, seed, stop, n_passes, check):
        """Run epochs over all rows; the changes of the vectors are added at the end."""
        ends = self.make_passes(order, seed, n_passes, self.task.n_threads)
        return self.conclude(ends, order, stop)


def _within_range(values):
    sizes = np.abs(values[values != 0])
    least, largest = float(sizes.min(initial=1.0)), float(sizes.max(initial=1.0))
    return 1 / _LARGEST_VALUE < least <= largest < _LARGEST_VALUE


def _gram_matrix(space, rows):
    """The dot products of the rows with their intercept and soft-margin coordinates."""
    m, rows = rows.n_rows, Chosen(rows.n_features, rows).of_rows(rows)
    gram = np.empty((m, m))
    chunk = max(1, _PRODUCTS_PER_CALL // max(1, int(rows.indptr[-1])))
    for start in range(0, m, chunk):
        fill_gram(gram, rows, start, min(start + chunk, m), space.bias)
    gram[np.diag_indices(m)] += space.slack**2
    return gram
