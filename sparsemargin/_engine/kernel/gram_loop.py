"""When passes over few rows pay to keep all their scores up to date, and the passes."""

from __future__ import annotations

from functools import partial

import numpy as np

from sparsemargin._engine import kernels
from sparsemargin._engine.fitting.threads import run_together

#: Bytes the matrix of dot products may take: up to 2,896 rows.
MEMORY = 1 << 26

# Rows of the matrix are filled in calls of some 10 ms, between which Ctrl-C is heard.
_PRODUCTS_PER_CALL = 1 << 23
# Dot products of rows farther from 1 than this may leave the range of a double.
_WIDEST_NORM = 1e60


def _within_range(values):
    sizes = np.abs(values[values != 0])
    least, largest = float(sizes.min(initial=1.0)), float(sizes.max(initial=1.0))
    return 1 / _WIDEST_NORM < least <= largest < _WIDEST_NORM


class GramLoop:
    """Passes over a task's rows by their dot products; see `_gram`.

    Parameters
    ----------
    space : LinearSpace
        With p = 2 and the last hypothesis.
    rule : FirstOrderRule
    task : Task
        Its rows have been checked.
    """

    def __init__(self, space, rule, task):
        self.space, self.rule, self.task = space, rule, task
        rows, m = task.rows, len(task.codes)
        self.gram = np.empty((m, m))
        chunk = max(1, _PRODUCTS_PER_CALL // max(1, int(rows.indptr[-1])))
        for start in range(0, m, chunk):
            kernels.for_rows(rows).fill_gram(
                self.gram, start, min(start + chunk, m), rows.data, rows.indices, rows.indptr,
                rows.n_features, space.bias, space.slack,
            )  # fmt: skip
        self.norms = np.sqrt(self.gram.diagonal())
        self.measured = self.norms if rule.measures_rows else np.ones(m)
        self.run_passes = kernels.for_state(rows, space).run_passes

    @staticmethod
    def suits(space, task):
        """Whether the task can be learned this way at all."""
        m = len(task.codes)
        return (
            space.p == 2.0 and space.log is None and not space.averages
            and 8 * m * m <= MEMORY
            and (task.weights is None or task.weights.all())
            and _within_range(task.rows.data)
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

    def _run_label(self, label, order, seed, n_passes):
        space, task, rows = self.space, self.task, self.task.rows
        positive, shares = task.shares(label, space.n_labels)
        shares = np.where(self.norms > 0, shares, 0.0)  # a zero row never corrects
        order = None if order is None else order.copy()
        result = self.run_passes(
            space, self.rule, rows, space.t, rows.data, rows.indices, rows.indptr, label, self.gram,
            self.norms, self.measured, np.where(positive, 1.0, -1.0), shares, order, seed or 0,
            n_passes, space.trials,
        )  # fmt: skip
        return *result, order

    def run(self, order, seed, n_passes):
        """Make passes until one makes no correction for any label.

        Returns
        -------
        learning : bool
            Whether any label has not used up its corrections.
        passes : int
        converged : bool
        """
        space = self.space
        labels = np.flatnonzero(space.per_label("stopped") < 0)
        if len(labels) == 0:
            return False, 0, False
        calls = [partial(self._run_label, label, order, seed, n_passes) for label in labels]
        ends = run_together(calls, self.task.n_threads)
        for status, row, *_ in ends:
            if status != kernels.OK:
                raise kernels.BadRow(status, row)
        longest = max(ends, key=lambda end: end[2])
        if order is not None:
            order[:] = longest[4]
        space.count_trials(space.trials + longest[2] * len(self.task.codes))
        learning = bool((space.per_label("stopped") < 0).any())
        return learning, longest[2], all(end[3] for end in ends)
