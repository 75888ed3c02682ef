"""Passes over rows for the spaces of matrix Perceptrons."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial

from sparsemargin._engine import kernels
from sparsemargin._engine.fitting.progress import Forecast
from sparsemargin._engine.fitting.task import PRODUCTS_PER_CALL, Loop
from sparsemargin._engine.fitting.threads import run_together


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
        self.first_corrections = int(space.per_label("corrections")[0])
        self.learn_rows = kernels.for_rows(task.rows).learn_rows
        self.span = 64  # trials between two moments at which Ctrl-C is heard
        self.forecast = Forecast(space)

    @property
    def mistakes(self):
        """As that of `LinearLoop`; a lone label corrects its mistakes and nothing else."""
        if self.space.n_labels > 1:
            return None
        return int(self.space.per_label("corrections")[0]) - self.first_corrections

    def _learn(self, label, order, start, stop, end):
        task, rows, space = self.task, self.task.rows, self.space.spaces[label]
        code = label if self.space.n_labels > 1 else 1
        # In a stream rows are numbered on; the rows of a fit are those of its X.
        end, first = (end, 0) if self.ahead else (-1, space.rows_taken)
        return self.learn_rows(
            space, rows.data, rows.indices, rows.indptr, task.codes, task.weights,
            task.class_weight, order, start, stop, end, label, code, first,
        )  # fmt: skip

    def run(self, order, seed, stop, n_passes, check):
        """A pass over the first `stop` rows of the order, which has been shuffled and checked."""
        before = self.space.per_label("corrections").sum()
        for space in self.space.spaces:
            space.reached = 0
        self.forecast.begin()
        done, learning = 0, True
        while done < stop and learning:
            start, done = done, min(done + self.span, stop)
            self.part = done / len(self.task.codes)
            products = self._call(order, start, done, stop)
            self.forecast.tell(done / stop, stacklevel=11)
            # Mistakes get dearer as they get more, but not by more than the rows double.
            fitting = int((done - start) * PRODUCTS_PER_CALL / max(products, 1.0))
            self.span = max(1, min(fitting, 2 * (done - start)))
            learning = not self.space.exhausted().all()
        self.part = 0.0
        return learning, done / stop, bool(self.space.per_label("corrections").sum() == before)

    def _call(self, order, *bounds):
        """Let all labels make the same trials, even where Ctrl-C comes between two of them."""
        calls = [
            partial(self._learn, label, order, *bounds) for label in range(self.space.n_labels)
        ]
        try:
            return sum(run_together(calls, self.task.n_threads))
        except KeyboardInterrupt:
            run_together(calls, self.task.n_threads)
            raise


@contextmanager
def seen_loop(space, task, *, ahead):
    """The loop over a task: every label learns."""
    space.resume(task.max_corrections)
    yield SeenLoop(space, task, ahead)
