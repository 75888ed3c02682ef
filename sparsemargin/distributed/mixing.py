"""The mixture of the shards' results, and the two ways to train that need no average: a single
shard, and a ring of vectors.

A mixer is an epoch on this process; its `epoch_type` is an epoch on a worker. The mixers of dual
vectors and of mistakes are in `dual_vectors` and `mistakes`.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from sparsemargin._engine.first_order.linear_space import LinearSpace
from sparsemargin._engine.first_order.vector_blocks import how_of, task_of
from sparsemargin._engine.fitting.epochs import learn_once
from sparsemargin._engine.fitting.progressive import ProgressiveOutputs, storing_outputs
from sparsemargin._engine.fitting.task import Task
from sparsemargin.distributed.schema import Schema
from sparsemargin.models import Learner
from sparsemargin.models.fitted.state import Fitted
from sparsemargin.models.learner import LARGEST_SEED
from sparsemargin.streaming.label_order import LabelOrder

Mixing = Literal["auto", "ring", "uniform"]

#: A part of the rows of a shard: its index, and the number of parts.
Part = tuple[int, int]


class Mixture:
    """The learner whose space is the mixture of the shards' results. It is opened for rows of the
    schema, and has drawn its seeds, including that of the shuffling, like a fit on one machine.
    """

    def __init__(self, learner: Learner, schema: Schema, n_shards: int, memory_limit: int) -> None:
        self.learner, self.schema, random = learner, schema, learner.random_generator()
        self.seed = random.randint(LARGEST_SEED) if learner.shuffle else None
        if learner.p == "log" and schema.grows:
            raise ValueError("p='log' is 2 ln n_features: pass n_features, or hash_bits.")
        if schema.form is not None and not learner.supports_multilabel:
            learner.refuse_multilabel()
        n_columns, n_vectors = schema.n_columns, schema.beginning(1).n_vectors
        needed = n_columns * learner.bytes_per_feature(schema.dtype, n_vectors, n_columns)
        if needed > memory_limit:
            raise ValueError(
                f"{n_columns:,} features take {needed:,} bytes of weights, more than "
                f"memory_limit={memory_limit:,}. Raise it, or pass hash_bits for files."
            )
        slice_seed = random.randint(LARGEST_SEED)
        learner.open_stream(schema.beginning(n_columns), slice_seed)
        self.columns: np.ndarray | None = None
        if n_shards > 1 and self.space.in_blocks:
            raise ValueError(
                f"The weights of {n_vectors} labels and {n_columns:,} features would be held "
                "sparsely, and such can't be mixed. Pass fewer features, by hash_bits, or fit "
                "some of the labels at a time."
            )

    @property
    def fitted(self) -> Fitted:
        """The fitted state of the learner."""
        return self.learner.fitted

    @property
    def space(self) -> Any:
        """The space of the mixture."""
        return self.fitted.space

    @space.setter
    def space(self, space: Any) -> None:
        self.fitted.space = space

    def narrow(self, columns: np.ndarray) -> None:
        """Restrict the space to the columns that occur in rows, if many do not."""
        if len(columns) <= self.schema.n_columns // 2:
            self.columns, first = columns, self.schema.beginning(len(columns))
            self.space = self.blank().new_space(first)

    def blank(self) -> Learner:
        """The untrained learner, for any number of columns."""
        learner = copy.copy(self.learner)
        learner.restore(None).p = learner.p_for(self.schema.n_columns)
        return learner

    def places(self, n_each: int) -> np.ndarray:
        """Indices of the coordinates of the space among those of all columns, with n_each
        coordinates per column."""
        assert self.columns is not None
        at = np.append(self.columns, [self.schema.n_columns] if self.space.bias else [])
        return (at.astype(np.int64)[:, np.newaxis] * n_each + np.arange(n_each)).ravel()

    def finished(self, epochs: int) -> Learner:
        """A copy of the learner, with the features of the rows."""
        learner, schema = copy.copy(self.learner), self.schema
        if self.columns is None:
            space = copy.deepcopy(self.space)
        else:
            space = self.space.spread(schema.n_columns, self.columns)
        learner.restore(
            replace(self.fitted, space=space, n_iter=float(epochs), reading=schema.reading)
        )
        learner.n_features_in_ = schema.n_features
        if schema.reading is not None:
            learner.resize(schema.n_features, int(schema.drops_column_0))
        return learner

    def resume(self, found: Learner, seed: int | None) -> Any:
        """Resume from a finished learner; returns its space, which has all columns."""
        found.resize(self.schema.n_columns, -int(self.schema.drops_column_0))
        fitted, earlier = self.fitted, found.fitted
        fitted.slice_seed, fitted.progress = earlier.slice_seed, earlier.progress
        fitted.rows_by_class = earlier.rows_by_class
        self.seed = seed
        return earlier.space.unpacked()


@dataclass(frozen=True)
class Update:
    """The result of an epoch, or of a part of it, on a shard."""

    learned: Any  # input of the mixer
    trials: int
    corrections: np.ndarray  # corrections in this part, shape (n_vectors,)
    mistakes: int | None  # rows predicted wrongly before their trial, if known
    rows_by_class: np.ndarray  # rows without and with each class, shape (2, n_classes)
    label_order: LabelOrder  # order of the labels of rows that were not shuffled
    # Outputs of rows before their first trial; None if they are not kept.
    progress: ProgressiveOutputs | None = None


class ShardEpoch:
    """An epoch on the only shard. There is nothing to mix; the space is sent as it stands, so that
    the result is exact."""

    #: True if the space on a shard has only the coordinates that occur in the rows of the shard.
    narrows = False

    def __init__(self, learner: Learner, start: Any) -> None:
        self.space = learner.fitted.space = deepcopy(start)

    def learn(self, learner: Learner, task: Task, order: np.ndarray | None) -> int | None:
        """Train on a block of rows, see `Learner.learn_stream`."""
        return learner.learn_stream(task, order)

    def learned(self) -> Any:
        """The result for the mixer."""
        return self.space

    def sent_progress(self, progress: ProgressiveOutputs) -> ProgressiveOutputs:
        """The kept outputs in the form that is sent."""
        return progress


class Mixer:
    """Makes the space of the only shard that of the mixture."""

    epoch_type: type[Any] = ShardEpoch

    def __init__(self, mixture: Mixture, n_shards: int, mixes: int) -> None:
        self.mixture, self.n_shards = mixture, n_shards
        #: Parts of an epoch; the shards are mixed after each.
        self.n_parts = mixes

    def rows_of(self, part: int) -> Part:
        """The rows of each shard that are used in a part of an epoch."""
        return part, self.n_parts

    def take(self, space: Any) -> None:
        """Start from a space like that of the mixture, possibly with more features."""
        self.mixture.space = space

    def starts(self, part: int, whole: bool = False) -> list[Any]:
        """The start of each shard for this part of an epoch; `whole`: without relying on its
        caches."""
        return [self.mixture.space] * self.n_shards

    def mix(self, part: int, updates: Sequence[Update]) -> None:
        """Mix the results of the shards, in their order."""
        self.mixture.space = updates[0].learned

    def store(self) -> None:
        """Copy the mixture to the space, after an epoch."""

    def merged_progress(
        self, progress: Sequence[ProgressiveOutputs], n_places: int
    ) -> ProgressiveOutputs:
        """Merge the outputs kept in the first epoch: ordered by part, and by shard within a
        part."""
        return ProgressiveOutputs.merged(progress, n_places, self.n_parts)


@dataclass(frozen=True)
class Visit:
    """The vectors first..last-1 while they visit a shard."""

    first: int
    last: int
    space: LinearSpace  # the space of these vectors only


class RingEpoch(ShardEpoch):
    """Training of the visiting vectors on all rows of a shard."""

    def __init__(self, learner: Learner, start: Visit) -> None:
        self.start = start
        self.space = learner.fitted.space = deepcopy(start.space)

    def learn(self, learner: Learner, task: Task, order: np.ndarray | None) -> None:
        """See `Learner.learn_stream`; for these vectors only."""
        fitted, labels = learner.fitted, (self.start.first, self.start.last)
        lone = len(fitted.classes) == 2 and not fitted.many
        with storing_outputs(task, self.space):
            mine = task if lone else task_of(task, task.rows, *labels)
            learn_once(learner.loop(mine), order)
        fitted.count_classes(task)

    def learned(self) -> LinearSpace:
        return self.space

    def sent_progress(self, progress: ProgressiveOutputs) -> ProgressiveOutputs:
        return progress.of_vectors(self.start.first, self.start.last)


class RingMixer(Mixer):
    """Moves the vectors from shard to shard, such that each shard has different vectors at any
    time. There is nothing to average: a vector equals that of one machine that has the rows of the
    shards one after the other, starting with the shard where the vector begins."""

    epoch_type: type[Any] = RingEpoch

    def __init__(self, mixture: Mixture, n_shards: int) -> None:
        super().__init__(mixture, n_shards, n_shards)

    def rows_of(self, part: int) -> Part:
        return 0, 1

    def take(self, space: LinearSpace) -> None:
        super().take(space)
        self.spaces: list[tuple[int, int, LinearSpace] | None] = [None] * self.n_shards
        cuts = np.linspace(0, space.n_vectors, self.n_shards + 1).astype(int)
        for i, (first, last) in enumerate(pairwise(cuts.tolist())):
            if first == last:
                continue
            own = LinearSpace(
                space.n_features, last - first, space.p, space.t.dtype, log=None, **how_of(space)
            )
            own.take_vectors(space, slice(first, last), slice(0, last - first))
            self.spaces[i] = first, last, own

    def starts(self, part: int, whole: bool = False) -> list[Any]:
        of_shards = [self.spaces[(s - part) % self.n_shards] for s in range(self.n_shards)]
        return [None if each is None else Visit(*each) for each in of_shards]

    def mix(self, part: int, updates: Sequence[Update]) -> None:
        for s, update in enumerate(updates):
            i = (s - part) % self.n_shards
            if (labels := self.spaces[i]) is not None:
                self.spaces[i] = *labels[:2], update.learned

    def store(self) -> None:
        space = self.mixture.space
        for first, last, own in filter(None, self.spaces):
            space.take_vectors(own, slice(0, last - first), slice(first, last))

    def merged_progress(
        self, progress: Sequence[ProgressiveOutputs], n_places: int
    ) -> ProgressiveOutputs:
        # All groups of vectors that visit a shard store outputs for the same rows of the shard.
        n, met = self.n_shards, [i for i in range(self.n_shards) if self.spaces[i] is not None]
        which = iter(progress)
        at = {
            (s, (s - part) % n): next(which)
            for part in range(n) for s in range(n) if (s - part) % n in met
        }  # fmt: skip
        whole = [ProgressiveOutputs.beside([at[s, i] for i in met]) for s in range(n)]
        return ProgressiveOutputs.merged(whole, n_places)
