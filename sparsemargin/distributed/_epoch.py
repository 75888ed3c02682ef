"""What is done on a shard, where the shard is."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from sparsemargin.distributed._shards import MatrixShard, Shard, Survey
from sparsemargin.distributed._vectors import BASES, NoBase
from sparsemargin.models import Learner
from sparsemargin.models.rows import Rows, refusing


class Missing:
    """Told instead of an update: what the epoch begins with can't be known from its difference."""


@dataclass(frozen=True)
class Plan:
    """What stays the same over a fit.

    Attributes
    ----------
    learner : Learner
        Without a space.
    epoch_type : type
        What takes the trials, and tells what they came to.
    seed : int or None
        Of the shuffling.
    no_rows : Rows
        Of the type and with the columns of all rows: what a space is opened for.
    """

    learner: Learner
    epoch_type: Any
    seed: int | None
    no_rows: Rows


def open_matrix(X: Any, y: Any) -> MatrixShard:
    return MatrixShard.of(X, y)


def survey(shard: Shard) -> Survey:
    return shard.survey()


def with_classes(shard: Shard, *known: Any) -> Shard:
    """The shard, ready to be learned from."""
    return shard.coded(*known)


def learn_epoch(shard: Shard, plan: Plan, start: Any) -> Any:
    """Learn from a shard once; an update, or `Missing`."""
    learner = copy.copy(plan.learner)
    try:
        epoch = plan.epoch_type(learner, start, plan.no_rows)
    except NoBase:
        return Missing()
    for rows, targets, first_row, order in shard.epoch(plan.seed, start.epoch):
        task = learner._stream_task(rows, targets, None, first_row=first_row)
        with refusing(rows, first_row):
            epoch.take(task, order, shard.streams)
    return epoch.update()


def forget(run: str) -> None:
    """Give back the memory that a fit has used in this process."""
    BASES.forget(run)
