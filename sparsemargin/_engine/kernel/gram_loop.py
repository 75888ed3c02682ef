"""Trials by stored products; and passes over few rows of a linear space, where they pay."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import NamedTuple

import numpy as np

from sparsemargin._engine.first_order.trials import add_rows
from sparsemargin._engine.fitting.threads import run_together, uninterrupted
from sparsemargin._engine.kernel.products import fill_gram, learn_label
from sparsemargin._engine.rows.columns import Chosen
from sparsemargin._engine.rows.csr import OK, BadRow

#: Bytes the matrix of dot products may take: up to 2,896 rows.
MEMORY = 1 << 26

# Rows of the matrix are filled in calls of some 10 ms, between which Ctrl-C is heard.
_PRODUCTS_PER_CALL = 1 << 23
# Dot products of rows farther from 1 than this may leave the range of a double.
_WIDEST_NORM = 1e60


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


class GramLoop(StoredProducts):
    """Passes over a task's rows by their dot products (the Gram matrix).

    Parameters
    ----------
    space : LinearSpace
        With p = 2 and the last hypothesis.
    rule : FirstOrderRule
    task : Task
        Its rows have been checked.
    """

    def __init__(self, space, rule, task):
        products = _gram_matrix(space, task.rows)
        super().__init__(space, rule, task, products, np.sqrt(products.diagonal()), slice(None))
        shape = space.n_labels, len(task.codes)
        self.n_slots = len(task.codes)
        self.slots = np.arange(self.n_slots)
        # What is not yet added to the space's vectors, and their sweeps when all was.
        self.t, self.scores = np.zeros(shape), np.zeros(shape)
        self.sweeps = np.zeros(space.n_labels, dtype=np.int64)
        self.multipliers = space.multipliers

    @staticmethod
    def suits(space, task):
        """Whether the task can be learned this way at all."""
        m = len(task.codes)
        return (
            space.p == 2.0 and not space.adaptive and space.log is None and not space.averaged
            and 8 * m * m <= MEMORY and _within_range(task.rows.data)
        )  # fmt: skip

    @staticmethod
    def cost_of_matrix(task):
        """Multiplications it takes to fill the matrix."""
        m = len(task.codes)
        return m * int(task.rows.indptr[-1]) // 2 + m * m

    @staticmethod
    def cost_of_pass(n_rows, n_labels, corrections):
        """What a pass costs, in multiplications of the plain loop."""
        return n_rows * (n_labels + corrections / 4)

    def refresh(self, label):
        """Add what is pending to the vector, and take the scores from it."""
        space, sweeps = self.space, self.space.per_label("passes")
        if sweeps[label] > self.sweeps[label]:
            space.clear(label)
        add_rows(space, self.task.rows, label, self.t[label], self.scores[label])
        self.t[label] = 0.0
        self.sweeps[label] = sweeps[label]

    def learn(self, label, order, seed, n_passes):
        self.sweeps[label] = self.space.per_label("passes")[label]
        self.refresh(label)
        end = super().learn(label, order, seed, n_passes)
        self.refresh(label)
        return end

    def run(self, order, seed, stop, n_passes, check):
        """Make passes over all rows; what they add to the space's vectors is added as a whole."""
        with uninterrupted():
            ends = self.make_passes(order, seed, n_passes, self.task.n_threads)
            return self.conclude(ends, order, stop)


def _within_range(values):
    sizes = np.abs(values[values != 0])
    least, largest = float(sizes.min(initial=1.0)), float(sizes.max(initial=1.0))
    return 1 / _WIDEST_NORM < least <= largest < _WIDEST_NORM


def _gram_matrix(space, rows):
    """Products of the augmented and extended rows."""
    m, rows = rows.n_rows, Chosen(rows.n_features, rows).of_rows(rows)
    gram = np.empty((m, m))
    chunk = max(1, _PRODUCTS_PER_CALL // max(1, int(rows.indptr[-1])))
    for start in range(0, m, chunk):
        fill_gram(gram, rows, start, min(start + chunk, m), space.bias)
    gram[np.diag_indices(m)] += space.slack**2
    return gram
