"""Trials with stored products of the rows."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import NamedTuple

import numpy as np

from sparsemargin._engine.fitting.threads import run_together
from sparsemargin._engine.kernel.stored_trials import learn_vector
from sparsemargin._engine.rows.csr import OK, BadRow

#: Largest size of the matrix of dot products in bytes: 64 MiB, or 2,896 rows.
MEMORY = 1 << 26


class End(NamedTuple):
    """The result of the epochs of one vector."""

    status: int
    row: int  # row of the block at which training stopped; -1: none
    passes: int
    converged: bool
    passed_over: int  # trials skipped because the support set had no room
    order: np.ndarray | None  # order of the last epoch


class StoredProducts:
    """Rows whose products are stored, and the state that trials on them change.

    Parameters
    ----------
    space : FirstOrderSpace
    rule : FirstOrderRule
    task : Task
    products : ndarray of shape (n_rows, n_rows)
        The products, including those of the soft-margin coordinates.
    norms : ndarray of shape (n_rows,)
        Square roots of the diagonal.
    rows : slice or ndarray
        Indices of the rows in the task.

    Attributes
    ----------
    measured : ndarray of shape (n_rows,)
        The norms if instances are divided by them, else ones.
    slots : ndarray of shape (n_rows,), int64
        Indices of the rows' coefficients; -1: there is no room for the row.
    n_slots : int
    t : ndarray of shape (n_vectors, n_slots) or more
        Coefficients of the rows.
    acc : ndarray of the same shape, or None
        The part acc of the sums of hypotheses, ``Z t + acc``.
    scores : ndarray of shape (n_vectors, n_rows)
        ``sum_i t_i K(x_i, x)``, including the soft margin.
    slack : float
        Value of the soft-margin coordinate, if S does not include it.
    error : float
        Relative rounding error of products of rows of norm 1.
    error_of_bound : float
        Error of the bound on margins, because norms are computed from products.
    outputs : ndarray of shape (n_vectors, n_rows) or None
        Outputs before the trial of each row.
    first_corrections : ndarray of shape (n_vectors, n_rows), int64, or None
        Number of trials before the first correction with a row; -1: there was none.
    outside : ndarray of shape (n_vectors, any) or None
        Scores of other rows, which a restart sets to 0.
    multipliers : ndarray of shape (n_rows, n_vectors) or None
        The multipliers, if the rule keeps them.
    """

    acc = outputs = first_corrections = outside = multipliers = None
    slack = 0.0
    error = 2.0**-49

    def __init__(self, space, rule, task, products, norms, rows):
        self.space, self.rule, self.task = space, rule, task
        self.products, self.norms, self.rows = products, norms, rows
        self.measured = self.norms if rule.measures_rows else np.ones(len(products))
        longest = 1.0 if rule.measures_rows else norms.max(initial=0.0)
        self.error_of_bound = np.sqrt(self.error) * longest

    def signs_and_shares(self, vector):
        """Arrays of the sign of each row for one vector, and of the weight of its steps."""
        positive, shares = self.task.shares(vector, self.space.n_vectors, self.rows)
        # A zero row never corrects.
        return np.where(positive, 1.0, -1.0), np.where(self.norms > 0, shares, 0.0)

    @abstractmethod
    def refresh(self, vector):
        """Update S, the scores and the scale of t of one vector."""

    def learn(self, vector, order, seed, n_passes):
        """Run epochs for one vector."""
        order = None if order is None else order.copy()
        return End(*learn_vector(self, vector, order, seed, n_passes), order)

    def make_passes(self, order, seed, n_passes, n_threads):
        """Run epochs for all active vectors; returns a dict from each to its `End`."""
        vectors = np.flatnonzero(self.space.per_vector("stopped") < 0)
        calls = [partial(self.learn, vector, order, seed, n_passes) for vector in vectors]
        return dict(zip(vectors, run_together(calls, n_threads), strict=True))

    def conclude(self, ends, order, n_trials):
        """Count n_trials trials per epoch, and copy the last order to `order`. Returns the result
        of `Loop.run`."""
        if not ends:
            return False, 0, False
        longest = max(ends.values(), key=lambda end: end.passes)
        stopped = self.space.per_vector("stopped")
        learning = bool((stopped < 0).any())
        trials = self.space.trials + longest.passes * n_trials
        self.space.count_trials(trials if learning else stopped.max())
        for end in ends.values():
            if end.status != OK:
                row = np.arange(len(self.task.codes))[self.rows][end.row]
                raise BadRow(end.status, int(row))
        if order is not None:
            order[:] = longest.order
        return learning, longest.passes, all(end.converged for end in ends.values())
