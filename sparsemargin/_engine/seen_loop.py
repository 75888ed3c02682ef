"""Passes over rows for the spaces of matrix Perceptrons."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial

from sparsemargin._engine import kernels
from sparsemargin._engine.task import PRODUCTS_PER_CALL, Loop
from sparsemargin._engine.threads import run_together


class SeenLoop(Loop):
    """The loop of the matrix Perceptrons, label by label, over checked rows.

    Parameters
    ----------
    space : LabelSpaces
    task : Task
    ahead : bool
        Whether products with rows to come are worked out before their turn, which is faster. How
        vectors are rounded then depends on which rows come in one call.
    """

    def __init__(self, space, task, ahead):
        super().__init__(space, task)
        self.ahead = ahead
        self.learn_rows = kernels.for_rows(task.rows).learn_rows

    def _learn(self, label, order, start, stop, end):
        task, rows, space = self.task, self.task.rows, self.space.spaces[label]
        code = label if self.space.n_labels > 1 else 1
        return self.learn_rows(
            space, rows.data, rows.indices, rows.indptr, task.codes, task.weights,
            task.class_weight, order, start, stop, end if self.ahead else -1, label, code,
            space.rows_taken,
        )  # fmt: skip

    def _rows_per_call(self):
        """So many that none of the calls of a pass takes long, by the rate of mistakes so far."""
        cost = self.products / len(self.task.codes)
        for space in self.space.spaces:
            cost += (space.corrections + 1) / (space.trials + 1) * space.cost_of_correction
        return max(1, int(PRODUCTS_PER_CALL / cost))

    def run(self, order, seed, stop, n_passes, check):
        """A pass over the first `stop` rows of the order, which has been shuffled and checked.

        Returns
        -------
        learning : bool
            Whether any label has not used up its corrections.
        passes : float
            That made.
        converged : bool
            Whether it made no correction.
        """
        before = self.space.per_label("corrections").sum()
        done, learning = 0, True
        while done < stop and learning:
            start, done = done, min(done + self._rows_per_call(), stop)
            self._call(order, start, done, stop)
            self.part = done / len(self.task.codes)
            learning = not self.space.exhausted().all()
        self.part = 0.0
        return learning, done / stop, bool(self.space.per_label("corrections").sum() == before)

    def _call(self, order, *bounds):
        calls = [
            partial(self._learn, label, order, *bounds) for label in range(self.space.n_labels)
        ]
        for status, row in run_together(calls, self.task.n_threads):
            if status not in (kernels.OK, kernels.ALL_STOPPED):
                raise kernels.BadRow(status, row)


@contextmanager
def seen_loop(space, task, *, ahead):
    """The loop over a task: every label learns."""
    space.resume(task.max_corrections)
    yield SeenLoop(space, task, ahead)
