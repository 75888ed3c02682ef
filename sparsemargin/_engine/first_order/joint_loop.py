"""Passes over rows for the joint machine of many classes."""

from __future__ import annotations

from contextlib import contextmanager

from sparsemargin._engine import kernels
from sparsemargin._engine.first_order.trials import set_bars
from sparsemargin._engine.fitting.certificate import JointCertificate
from sparsemargin._engine.fitting.task import Loop


class JointLoop(Loop):
    """The loop of the first-order rules that a joint space learns by; one thread makes it, as
    every trial needs what the one before has left behind in all classes."""

    def __init__(self, space, rule, task):
        super().__init__(space, task)
        self.rule = rule
        self.mistakes = 0
        self.train = kernels.for_state(task.rows, space).train_joint

    def certificate(self):
        """Margins of the vectors as they are."""
        return JointCertificate(self.space, self.rule, self.task)

    def run_span(self, order, start, stop, check):
        space, task, rows = self.space, self.task, self.task.rows
        status, row, mistakes = self.train(
            space, self.rule, space.t, space.g, space.acc, rows.data, rows.indices, rows.indptr,
            task.codes, task.weights, task.class_weight, order, start, stop, check,
        )  # fmt: skip
        self.mistakes += mistakes
        if status not in (kernels.OK, kernels.ALL_STOPPED):
            raise kernels.BadRow(status, row)
        return status == kernels.OK


@contextmanager
def joint_loop(space, rule, task):
    """The loop over a task: the machine learns."""
    space.resume(task.max_corrections)
    set_bars(space, rule)
    yield JointLoop(space, rule, task)
