"""Mixing of the Higher- and the Second-order Perceptron: the mistakes of the shards are combined.

The state of the matrix Perceptrons is a function of the rows of their mistakes. So these rows are
sent, and the mixture applies the mistakes of one shard after the other, as if one Perceptron had
made them. For the Second-order Perceptron, ``a I + S S^T`` and ``v`` are sums over these rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsemargin._engine.fitting.task import Task
from sparsemargin._engine.matrix.spaces import FeatureSpaces
from sparsemargin._engine.rows.csr import Csr
from sparsemargin._engine.rows.parts import rows_at
from sparsemargin._engine.state import Sent
from sparsemargin.distributed.mixing import Learned, Mixer, ShardEpoch, Update
from sparsemargin.distributed.schema import Part
from sparsemargin.models import Learner


@dataclass(frozen=True)
class Mistakes(Sent):
    """The mistakes of one vector on a block of rows, in order; arrays of shape (n_mistakes,)."""

    which: np.ndarray  # indices into the rows that are sent with them, int64
    steps: np.ndarray  # float64, with the signs of the labels
    numbers: np.ndarray  # row numbers in the shard, int64


class MistakesEpoch(ShardEpoch):
    """An epoch on one of several shards, starting from the mixture's space.

    The whole space is sent. The rows that determine it would have fewer bytes, but training on them
    again would take longer than sending the space.
    """

    def __init__(self, learner: Learner, start: Learned) -> None:
        super().__init__(learner, start)
        self.averaged = learner.hypothesis == "average"
        self.space.take_sums(np.zeros_like(self.space.summed()), 0)
        self.noted = self.space.per_vector("corrections")
        # For each block, the rows with mistakes of any vector, and the mistakes of each vector.
        self.blocks: list[tuple[Csr, list[Mistakes]]] = []

    def learn(self, learner: Learner, task: Task, order: np.ndarray | None) -> int | None:
        n_mistakes = super().learn(learner, task, order)
        first = self.space.first_row_of(task)
        found = [
            space.mistaken_since(noted) - first
            for space, noted in zip(self.space.spaces, self.noted, strict=True)
        ]
        self.noted = self.space.per_vector("corrections")
        mistaken = np.unique(np.concatenate(found))
        by_vector = []
        for label, rows in enumerate(found):
            which = np.searchsorted(mistaken, rows)
            steps = task.steps(label, self.space.n_vectors, rows)
            by_vector.append(Mistakes(which, steps, rows + first))
        self.blocks.append((rows_at(task.rows, mistaken), by_vector))
        return n_mistakes

    def learned(self) -> list[Any]:
        """The blocks, and the sums of the hypotheses over the trials, shape (n_vectors,
        n_coordinates); 0 without averaging."""
        return [(self.blocks, self.space.summed() if self.averaged else 0.0)]


class MistakesMixer(Mixer):
    """Applies the mistakes of all shards to the mixture, in this process."""

    epoch_type = MistakesEpoch
    state: FeatureSpaces

    def take(self, space: FeatureSpaces) -> None:
        self.state = space

    def starts(self, step: int, part: Part) -> list[Any]:
        return [(self.backend.share(Learned(None, [self.state])),)] * len(self.n_rows)

    def conclude(self, step: int, updates: Sequence[Update]) -> None:
        space = deepcopy(self.state)
        sums, trials = space.summed(), space.trials
        space.take_sums(np.zeros_like(sums), 0)
        first_row = 0
        learned = self.backend.gather(self.merged)
        for (_, ((blocks, own_sums),)), n_rows in zip(learned, self.n_rows, strict=True):
            for rows, by_vector in blocks:
                for label, made in enumerate(by_vector):
                    space.absorb(label, rows, made.which, made.steps, made.numbers + first_row)
            sums += own_sums
            first_row += n_rows
        space.take_sums(sums, trials + sum(update.trials for update in updates))
        self.state = space

    def space_of(self, state: FeatureSpaces, *, keep: bool = False) -> FeatureSpaces:
        return deepcopy(state)
