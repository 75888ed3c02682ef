"""Trials by the stored products of rows with each other."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import NamedTuple

import numpy as np

from sparsemargin._engine.fitting.threads import run_together
from sparsemargin._engine.kernel.products import learn_label
from sparsemargin._engine.rows.csr import OK, BadRow

#: Bytes the matrix of dot products may take: up to 2,896 rows.
MEMORY = 1 << 26


class End(NamedTuple):
    """What came of a label's passes."""

    status: int
    row: int  # of the block, that stopped them; -1: none did
    passes: int
    converged: bool
    passed_over: int  # trials that would have corrected had there been room for the row
    order: np.ndarray | None  # of the last


class StoredProducts:
    """Rows whose products with each other are stored, and what trials on them change.

    Parameters
    ----------
    space : FirstOrderSpace
    rule : FirstOrderRule
    task : Task
    products : ndarray of shape (n_rows, n_rows)
        The soft margin's coordinates included.
    norms : ndarray of shape (n_rows,)
        Their square roots on the diagonal.
    rows : slice or ndarray
        Numbers of the rows in the task.

    Attributes
    ----------
    measured : ndarray of shape (n_rows,)
        The norms where instances are divided by them, else ones.
    slots : ndarray of shape (n_rows,), int64
        Where the rows' coefficients are; -1: there is no room for the row.
    n_slots : int
    t : ndarray of shape (n_labels, n_slots) or more
        Coefficients of the rows.
    acc : ndarray like it, or None
        What the averages have besides.
    scores : ndarray of shape (n_labels, n_rows)
        ``sum_i t_i K(x_i, x)``, the soft margin's part included.
    slack : float
        The soft margin's coordinate, where S is kept without it.
    error : float
        What rounding may have left of products of rows of norm 1.
    error_of_bound : float
        What it may take from the bound on margins, as norms are made of products.
    outputs : ndarray of shape (n_labels, n_rows) or None
        Those before each row's trial.
    joined : ndarray of shape (n_labels, n_rows), int64, or None
        Trials before a row first moved; -1: it has not.
    outside : ndarray of shape (n_labels, any) or None
        Scores of other rows, which a restart makes 0.
    multipliers : ndarray of shape (n_rows, n_labels) or None
        Where the rule keeps them.
    """

    acc = outputs = joined = outside = multipliers = None
    slack = 0.0
    error = 2.0**-49

    def __init__(self, space, rule, task, products, norms, rows):
        self.space, self.rule, self.task = space, rule, task
        self.products, self.norms, self.rows = products, norms, rows
        self.measured = self.norms if rule.measures_rows else np.ones(len(products))
        longest = 1.0 if rule.measures_rows else norms.max(initial=0.0)
        self.error_of_bound = np.sqrt(self.error) * longest

    def signs_and_shares(self, label):
        """Of each row for the label: -1.0 or 1.0, and what multiplies its steps."""
        positive, shares = self.task.shares(label, self.space.n_labels, self.rows)
        # A zero row never corrects.
        return np.where(positive, 1.0, -1.0), np.where(self.norms > 0, shares, 0.0)

    @abstractmethod
    def refresh(self, label):
        """Bring S, the scores and the scale of t of the label up to date."""

    def learn(self, label, order, seed, n_passes):
        """Passes for one label."""
        order = None if order is None else order.copy()
        return End(*learn_label(self, label, order, seed, n_passes), order)

    def make_passes(self, order, seed, n_passes, n_threads):
        """Passes for all labels that are learning; an `End` of each."""
        labels = np.flatnonzero(self.space.per_label("stopped") < 0)
        calls = [partial(self.learn, label, order, seed, n_passes) for label in labels]
        return dict(zip(labels, run_together(calls, n_threads), strict=True))

    def conclude(self, ends, order, n_trials):
        """Count the trials, so many in a pass, and bring the order to that of the last; what
        `Loop.run` returns."""
        if not ends:
            return False, 0, False
        longest = max(ends.values(), key=lambda end: end.passes)
        stopped = self.space.per_label("stopped")
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
