"""Mixing the Higher- and the Second-order Perceptron: the shards' mistakes are put together.

What these learn is a function of the rows of their mistakes. So the rows travel, and the mixture
is made of all mistakes of all shards, one shard's after the other's, as if one Perceptron had made
them: the Second-order one's matrix ``a I + S S^T`` and vector ``v`` are sums over them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sparsemargin._engine.fitting.task import Task
from sparsemargin._engine.matrix.spaces import LabelSpaces
from sparsemargin._engine.rows.csr import Csr
from sparsemargin.distributed._mixing import SingleEpoch, SingleMixer, SparseDelta, Update
from sparsemargin.distributed._schema import Mixture
from sparsemargin.models import Learner


@dataclass(frozen=True)
class Mistakes:
    """Those that one label has made on a block of rows, in order; arrays of shape (n_mistakes,)."""

    which: np.ndarray  # their rows among those that came along, int64
    steps: np.ndarray  # float64, with the signs of the labels
    numbers: np.ndarray  # of the rows in the shard, int64


@dataclass(frozen=True)
class ShardMistakes:
    """What an epoch on a shard came to."""

    # Of each block the rows that any label has made a mistake on, and each label's mistakes.
    blocks: list[tuple[Csr, list[Mistakes]]]
    # Of the hypotheses, each as often as it lasted, shape (n_coordinates, n_labels); None where
    # they are not averaged.
    sums: SparseDelta | None


class MistakesEpoch(SingleEpoch):
    """An epoch on one of several shards, from the mixture's space.

    That travels: the rows that it is made of are fewer bytes, but take longer to be learned from
    again than the rest takes to be sent.
    """

    def __init__(self, learner: Learner, no_rows: Csr, start: LabelSpaces) -> None:
        super().__init__(learner, no_rows, start)
        self.averaged = learner.hypothesis == "average"
        self.space.take_sums(np.zeros_like(self.space.summed()), 0)
        self.noted = self.space.per_label("corrections")
        self.blocks: list[tuple[Csr, list[Mistakes]]] = []

    def note(self, task: Task) -> None:
        first = self.space.first_row_of(task)
        found = [
            space.mistaken_rows[noted:] - first
            for space, noted in zip(self.space.spaces, self.noted, strict=True)
        ]
        self.noted = self.space.per_label("corrections")
        mistaken = np.unique(np.concatenate(found))
        by_label = []
        for label, rows in enumerate(found):
            which = np.searchsorted(mistaken, rows)
            steps = task.steps(label, self.space.n_labels, rows)
            by_label.append(Mistakes(which, steps, rows + first))
        self.blocks.append((picked(task.rows, mistaken), by_label))

    def learned(self) -> ShardMistakes:
        sums = self.space.summed().T if self.averaged else None
        delta = None if sums is None else SparseDelta.of(sums, sums != 0.0)
        return ShardMistakes(self.blocks, delta)


def picked(rows: Csr, wanted: np.ndarray) -> Csr:
    """Some of the rows, in arrays of their own."""
    lengths = np.diff(rows.indptr)[wanted]
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(rows.indptr.dtype)
    entries = np.arange(indptr[-1]) + np.repeat(rows.indptr[wanted] - indptr[:-1], lengths)
    return Csr(rows.data[entries], rows.indices[entries], indptr, rows.n_features)


class MistakesMixer(SingleMixer):
    """Lets the mixture make the mistakes of all shards, told the numbers of their first rows."""

    epoch_type = MistakesEpoch

    def __init__(self, mixture: Mixture, first_rows: Sequence[int]) -> None:
        super().__init__(mixture)
        self.first_rows = first_rows

    def mix(self, updates: Sequence[Update]) -> None:
        space = self.mixture.space
        sums, trials = space.summed(), space.trials
        space.take_sums(np.zeros_like(sums), 0)
        for update, first_row in zip(updates, self.first_rows, strict=True):
            for rows, by_label in update.learned.blocks:
                for label, made in enumerate(by_label):
                    space.absorb(label, rows, made.which, made.steps, made.numbers + first_row)
            if update.learned.sums is not None:
                sums += update.learned.sums.array().T
        space.take_sums(sums, trials + sum(update.trials for update in updates))
