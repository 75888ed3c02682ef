"""The trials of an epoch on a shard, as a fit on one machine would make them."""

from __future__ import annotations

import numpy as np

from sparsemargin._engine.fitting.epochs import learn_once
from sparsemargin._engine.fitting.task import Task
from sparsemargin.models import Learner


def make_trials(
    learner: Learner, task: Task, order: np.ndarray | None, streams: bool
) -> int | None:
    """Learn from rows once: as a stream does, whose model may not depend on its blocks, or as a
    fit; how many were predicted wrongly just before, where known."""
    if streams:
        return learner._learn_stream(task, order)
    return learn_once(learner._loop(task), order)


def added(mistakes: int | None, more: int | None) -> int | None:
    """The sum, where both are known."""
    return None if mistakes is None or more is None else mistakes + more
