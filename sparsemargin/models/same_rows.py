"""Recognition of the rows of the last fit under `warm_start`."""

from __future__ import annotations

from typing import Any

from sparsemargin._engine.fitting.task import Task
from sparsemargin.models.learner import Learner


def recall_rows(learner: Learner, task: Task, *others: Any) -> bool:
    """Under `warm_start`, resume with the state of the rows if they are those of the last fit.

    `others` are targets and weights, which must also be equal. Return whether all are equal.
    """
    fitted, space = learner.fitted, learner.space
    earlier, hashed = fitted.last_rows, None
    if learner.warm_start:
        import joblib  # takes 0.1 s, and other fits do not need it

        hashed = joblib.hash((task.rows.data, task.rows.indices, task.rows.indptr, *others))
    fitted.last_rows = None if hashed is None else (hashed, None)
    same = earlier is not None and earlier[0] == hashed
    if earlier is not None and same:
        task.row_state, task.progress = earlier[1], None
    space.number(task, same)
    if not space.has_row_lengths:  # the kernel is precomputed
        if space.trials and not same:
            raise ValueError(
                "warm_start with kernel='precomputed' goes on with the very X and y of the "
                "last fit; these are others. Pass warm_start=False."
            )
        space.kernel.check(task.rows)
    return same
