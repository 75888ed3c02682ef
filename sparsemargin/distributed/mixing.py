"""The mixture of the shards' results, and the two ways to train that need no average: a single
shard, and a ring of vectors.

A mixer is the part of an epoch that runs in this process; its `epoch_type` is the part that runs on
a worker. The mixers of dual vectors and of mistakes are in `dual_vectors` and `mistakes`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from sparsemargin._engine.first_order.linear_space import LinearSpace
from sparsemargin._engine.first_order.vector_blocks import (
    DENSE_BYTES,
    how_of,
    itemsize_of,
    task_of,
)
from sparsemargin._engine.fitting.epochs import learn_once
from sparsemargin._engine.fitting.progressive import ProgressiveOutputs, storing_outputs
from sparsemargin._engine.fitting.task import Task
from sparsemargin.distributed.backends import Backend
from sparsemargin.distributed.schema import WHOLE, Part, Schema
from sparsemargin.models import Learner
from sparsemargin.models.fitted.state import Fitted
from sparsemargin.models.learner import LARGEST_SEED
from sparsemargin.streaming.label_order import LabelOrder

Mixing = Literal["auto", "ring", "uniform"]


class Mixture:
    """The learner whose space is the mixture of the shards' results. The learner is opened for rows
    of the schema, and its seeds are drawn in the same order as on one machine."""

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
        if n_shards > 1 and self.space.in_blocks:
            bits = (DENSE_BYTES // (n_vectors * itemsize_of(self.space)) - 1).bit_length() - 1
            raise ValueError(
                f"The weights of {n_vectors} labels and {n_columns:,} features would be held "
                f"sparsely, and such can't be mixed. Pass hash_bits={bits}; for "
                f"texts, in Python, features is a HashingVectorizer with 2**{bits} columns."
            )

    @property
    def fitted(self) -> Fitted:
        """The fitted state of the learner."""
        return self.learner.fitted

    @property
    def space(self) -> Any:
        """The space of the mixture."""
        return self.fitted.space

    def blank(self) -> Learner:
        """The untrained learner, for any number of columns."""
        learner = copy.copy(self.learner)
        learner.restore(None).p = learner.p_for(self.schema.n_columns)
        return learner

    def new_space(self, n_columns: int) -> Any:
        """An empty space for rows with this number of columns."""
        return self.blank().new_space(self.schema.beginning(n_columns))

    def finished(self, fitted: Fitted) -> Learner:
        """A copy of the learner with this state and the number of features of the rows."""
        learner, schema = copy.copy(self.learner), self.schema
        learner.restore(fitted)
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
    """The report of an epoch, or of a part of it, on a shard."""

    trials: int
    corrections: np.ndarray  # corrections in this part, shape (n_vectors,)
    mistakes: int | None  # rows predicted wrongly before their trial, if known
    rows_by_class: Any  # rows without and with each class, shape (2, n_classes)
    label_order: LabelOrder  # order of the labels in this part
    scalars: dict[str, np.ndarray]  # see `ShardEpoch.scalars`
    n_received: int  # bytes of the mixture from which the shard started
    n_sent: int  # bytes of the changes made by the shard
    # Outputs of rows before their first trial; None if they are not kept.
    progress: ProgressiveOutputs | None = None


def bytes_of(pieces: Iterable[Any]) -> int:
    """Return the bytes of all arrays and slices among some pieces."""
    return sum(getattr(each, "nbytes", 0) for each in pieces)


class Learned(NamedTuple):
    """The result of training on a part of a shard, or some of its pieces."""

    update: Update | None
    pieces: Sequence[Any]  # the results for the mixer

    @property
    def nbytes(self) -> int:
        return bytes_of(self.pieces)

    def piece(self, i: int) -> Learned:
        """One of the pieces; piece 0 is returned with the update."""
        return Learned(None if i else self.update, self.pieces[i : i + 1])


def _updates(learned: Learned) -> list[Update | None]:
    return [learned.update]


class ShardEpoch:
    """An epoch on a worker. This base class is for a single shard: nothing is mixed, and the whole
    space is sent, so that the result is exact."""

    #: True if the space on a shard has only the coordinates that occur in the rows of the shard.
    narrows = False

    def __init__(self, learner: Learner, start: Learned) -> None:
        self.space = learner.fitted.space = deepcopy(start.pieces[0])

    def learn(self, learner: Learner, task: Task, order: np.ndarray | None) -> int | None:
        """Train on a block of rows, see `Learner.learn_stream`."""
        return learner.learn_stream(task, order)

    def scalars(self) -> dict[str, np.ndarray]:
        """Numbers of each vector that are mixed in the mixer's process."""
        return {}

    def learned(self) -> list[Any]:
        """The results for the mixer, in pieces."""
        return [self.space]

    def sent_progress(self, progress: ProgressiveOutputs) -> ProgressiveOutputs:
        """The kept outputs in the form that is sent."""
        return progress


class Mixer:
    """Mixes the results of the shards. This base class is for a single shard.

    `state` represents the current mixture; its weights may be handles of the backend. A state is
    replaced and never changed, so that earlier states stay valid.
    """

    epoch_type: type[Any] = ShardEpoch

    def __init__(self, mixture: Mixture, backend: Backend, n_rows: Sequence[int]) -> None:
        # `n_rows` has the number of rows of each shard.
        self.mixture, self.backend, self.n_rows = mixture, backend, n_rows
        self.state: Any = None
        self.merged: Any = None  # handles of the results of `merge`, for `conclude`

    def take(self, space: Any) -> None:
        """Start from a space with all columns."""
        self.state = self.backend.share(Learned(None, [space]))

    def parts(self, epoch: int) -> list[Part]:
        """The parts of an epoch. The shards are mixed after each part."""
        return [WHOLE]

    def starts(self, step: int, part: Part) -> list[tuple[Any, ...] | None]:
        """The arguments of the `epoch_type` for each shard in a part of an epoch; None: no rows of
        the shard are used."""
        return [(self.state,)]

    def merge(self, learned: Sequence[Any]) -> list[Any]:
        """Begin to mix the results of the shards, given as handles in the order of the shards.
        Returns handles of lists that together contain the updates in this order."""
        self.merged = learned
        return self.backend.map(_updates, learned)

    def conclude(self, step: int, updates: Sequence[Update]) -> None:
        """Set `state` to the new mixture, after the calls of `merge` have completed."""
        (self.state,) = self.merged

    def space_of(self, state: Any, *, keep: bool = False) -> Any:
        """The space with the weights of a state, for all columns. With `keep`, the current state
        may from now on use the gathered copies, so that lost results need no earlier tasks."""
        (learned,) = self.backend.gather([state])
        return deepcopy(learned.pieces[0])

    def merged_progress(
        self, progress: Sequence[ProgressiveOutputs], n_places: int, n_parts: int
    ) -> ProgressiveOutputs:
        """Merge the outputs kept in the first epoch: ordered by part, and by shard within a
        part."""
        return ProgressiveOutputs.merged(progress, n_places, n_parts)


def space_with(space: LinearSpace, first: int, last: int) -> LinearSpace:
    """A new space with the vectors first..last-1 of a space."""
    n_vectors = last - first
    own = LinearSpace(
        space.n_features, n_vectors, space.p, space.t.dtype, log=None, **how_of(space)
    )
    own.take_vectors(space, slice(first, last), slice(0, n_vectors))
    return own


class RingEpoch(ShardEpoch):
    """Training of the visiting vectors first..last-1 on all rows of a shard."""

    def __init__(self, learner: Learner, first: int, last: int, start: Learned) -> None:
        self.space = learner.fitted.space = space_with(start.pieces[0], 0, last - first)
        self.visitors = first, last

    def learn(self, learner: Learner, task: Task, order: np.ndarray | None) -> None:
        """See `Learner.learn_stream`; for these vectors only."""
        fitted = learner.fitted
        lone = len(fitted.classes) == 2 and not fitted.many
        with storing_outputs(task, self.space):
            mine = task if lone else task_of(task, task.rows, *self.visitors)
            learn_once(learner.loop(mine), order)
        fitted.count_classes(task)

    def sent_progress(self, progress: ProgressiveOutputs) -> ProgressiveOutputs:
        return progress.of_vectors(*self.visitors)


#: Vectors first..last-1, and the handle of the result that has their space.
Group = tuple[int, int, Any]


class RingMixer(Mixer):
    """Moves groups of vectors from shard to shard, so that no two shards train the same group at a
    time. Nothing is averaged: one machine that trains on the rows of the shards one after the
    other, starting with the first shard of the vector, obtains the same vector."""

    epoch_type: type[Any] = RingEpoch
    state: dict[int, Group]  # by the index of the first shard; no group is empty

    def take(self, space: LinearSpace) -> None:
        cuts = np.linspace(0, space.n_vectors, len(self.n_rows) + 1).astype(int)
        self.state = {}
        for i, (first, last) in enumerate(pairwise(cuts.tolist())):
            if first < last:
                group = Learned(None, [space_with(space, first, last)])
                self.state[i] = first, last, self.backend.share(group)

    def parts(self, epoch: int) -> list[Part]:
        return [WHOLE] * len(self.n_rows)

    def _visitors(self, step: int) -> list[int]:
        """The index of the group of vectors that visits each shard."""
        n = len(self.n_rows)
        return [(s - step) % n for s in range(n)]

    def starts(self, step: int, part: Part) -> list[Any]:
        return [self.state.get(i) for i in self._visitors(step)]

    def conclude(self, step: int, updates: Sequence[Update]) -> None:
        state = dict(self.state)
        moved = [i for i in self._visitors(step) if i in state]
        for i, learned in zip(moved, self.merged, strict=True):
            first, last, _ = state[i]
            state[i] = first, last, learned
        self.state = state

    def space_of(self, state: dict[int, Group], *, keep: bool = False) -> Any:
        learned = self.backend.gather([each for *_, each in state.values()])
        spaces = [each.pieces[0] for each in learned]
        whole = self.mixture.new_space(spaces[0].n_features)
        for (first, last, _), own in zip(state.values(), spaces, strict=True):
            whole.take_vectors(own, slice(0, last - first), slice(first, last))
        return whole

    def merged_progress(
        self, progress: Sequence[ProgressiveOutputs], n_places: int, n_parts: int
    ) -> ProgressiveOutputs:
        # All groups of vectors that visit a shard store outputs for the same rows of the shard.
        n, which = len(self.n_rows), iter(progress)
        at = {
            (s, i): next(which)
            for step in range(n) for s, i in enumerate(self._visitors(step)) if i in self.state
        }  # fmt: skip
        whole = [ProgressiveOutputs.beside([at[s, i] for i in self.state]) for s in range(n)]
        return ProgressiveOutputs.merged(whole, n_places)
