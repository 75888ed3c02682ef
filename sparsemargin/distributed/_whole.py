"""One shard: there is nothing to mix, and the whole state travels, so that not a bit is lost."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsemargin._engine.fitting.task import Task
from sparsemargin.distributed._trials import added, make_trials
from sparsemargin.models import Learner
from sparsemargin.models.rows import Rows


@dataclass(frozen=True)
class WholeStart:
    """What the shard begins an epoch with.

    Attributes
    ----------
    epoch : int
    space : object
        Nobody may change it.
    """

    epoch: int
    space: Any


@dataclass(frozen=True)
class WholeUpdate:
    """What an epoch came to: the space, and as the other updates."""

    space: Any
    trials: int
    made: np.ndarray
    mistakes: int | None


class WholeEpoch:
    """An epoch on the shard."""

    def __init__(self, learner: Learner, start: WholeStart, no_rows: Rows) -> None:
        self.learner = learner
        self.space = learner._space = deepcopy(start.space)
        self.before = self.space.per_label("corrections").copy(), self.space.trials
        self.mistakes: int | None = 0

    def take(self, task: Task, order: np.ndarray | None, streams: bool) -> None:
        self.mistakes = added(self.mistakes, make_trials(self.learner, task, order, streams))

    def update(self) -> WholeUpdate:
        corrections, trials = self.before
        made = self.space.per_label("corrections") - corrections
        return WholeUpdate(self.space, self.space.trials - trials, made, self.mistakes)


class OneShard:
    """Takes over what the epoch has come to.

    Parameters
    ----------
    learner : Learner
    """

    epoch_type = WholeEpoch

    def __init__(self, learner: Learner) -> None:
        self.learner = learner

    def start(self, epoch: int, *, whole: bool) -> WholeStart:
        return WholeStart(epoch, self.learner._space)

    def mix(self, updates: Sequence[WholeUpdate]) -> None:
        self.learner._space = updates[0].space
