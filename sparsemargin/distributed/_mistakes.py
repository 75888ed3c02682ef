"""Mixing the Higher- and the Second-order Perceptron: the shards' mistakes are put together.

What these learn is a function of the rows of their mistakes. So the rows travel, and the mixture
is made of all mistakes of all shards, one shard's after the other's, as if one Perceptron had made
them: the Second-order one's matrix ``a I + S S^T`` and vector ``v`` are sums over them.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np

from sparsemargin._engine.fitting.task import Task
from sparsemargin._engine.matrix.spaces import LabelSpaces
from sparsemargin.distributed._differences import Difference
from sparsemargin.distributed._trials import make_trials
from sparsemargin.models import Learner
from sparsemargin.models.rows import Rows


@dataclass(frozen=True)
class MistakesStart:
    """What all shards begin an epoch with.

    Attributes
    ----------
    epoch : int
    space : LabelSpaces
        Nobody may change it.
    """

    epoch: int
    space: LabelSpaces


@dataclass(frozen=True)
class Mistakes:
    """Those that one label has made in an epoch on a shard, in order.

    Attributes
    ----------
    places : ndarray of shape (n_mistakes,), int32
        Of their rows among those that came along.
    steps : ndarray of shape (n_mistakes,), float64
        With the signs of the labels.
    numbers : ndarray of shape (n_mistakes,), int64
        Of the rows in the shard.
    """

    places: np.ndarray
    steps: np.ndarray
    numbers: np.ndarray


@dataclass(frozen=True)
class MistakesUpdate:
    """What an epoch on a shard came to.

    Attributes
    ----------
    rows : Rows
        Each row that any label has made a mistake on, once a block.
    by_label : list of Mistakes
    sums : Difference or None
        Sums of the hypotheses, each as often as it lasted, shape (n_coordinates, n_labels); None
        where they are not averaged.
    trials : int
    mistakes : int or None
        Of rows of two classes.
    """

    rows: Rows
    by_label: list[Mistakes]
    sums: Difference | None
    trials: int
    mistakes: int | None

    @property
    def made(self) -> np.ndarray:
        """Corrections of each label."""
        return np.array([len(each.steps) for each in self.by_label])


class MistakesEpoch:
    """An epoch on one shard."""

    def __init__(self, learner: Learner, start: MistakesStart, no_rows: Rows) -> None:
        self.learner = learner
        self.space = learner._space = deepcopy(start.space)
        nothing = np.zeros((self.space.n_labels, self.space.spaces[0].n_coordinates))
        self.space.take_sums(nothing, 0)
        self.blocks: list[tuple[Rows, list[Mistakes]]] = []

    def take(self, task: Task, order: np.ndarray | None, streams: bool) -> None:
        before = self.space.per_label("corrections")
        first = self.space.first_row_of(task)
        make_trials(self.learner, task, order, streams)
        found = [
            space.mistaken_rows[done:] - first
            for space, done in zip(self.space.spaces, before, strict=True)
        ]
        self.blocks.append(self._block(task, found))

    def _block(self, task: Task, found: list[np.ndarray]) -> tuple[Rows, list[Mistakes]]:
        wanted = np.unique(np.concatenate(found))
        by_label = []
        for label, rows in enumerate(found):
            steps = task.steps(label, self.space.n_labels, rows)
            numbers = rows + (task.first_row or 0)
            places = np.searchsorted(wanted, rows).astype(np.int32)
            by_label.append(Mistakes(places, steps, numbers))
        return picked(task.rows, wanted), by_label

    def update(self) -> MistakesUpdate:
        blocks, n_labels = self.blocks, self.space.n_labels
        offsets = np.cumsum([0, *(len(rows.indptr) - 1 for rows, _ in blocks)])
        by_label = [
            Mistakes(
                *(
                    np.concatenate([getattr(each[label], name) + shift * (name == "places")
                                    for (_, each), shift in zip(blocks, offsets, strict=False)])
                    for name in ("places", "steps", "numbers")
                )
            )
            for label in range(n_labels)
        ]  # fmt: skip
        sums = None
        if self.learner.hypothesis == "average":
            summed = self.space.summed().T
            sums = Difference.between(summed, summed, np.zeros(n_labels), summed != 0.0)
        made = len(by_label[0].steps) if n_labels == 1 else None
        return MistakesUpdate(
            joined([rows for rows, _ in blocks]), by_label, sums, self.space.trials, made
        )


def picked(rows: Rows, wanted: np.ndarray) -> Rows:
    """Some of the rows, in arrays of their own."""
    lengths = np.diff(rows.indptr)[wanted]
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(rows.indptr.dtype)
    entries = np.arange(indptr[-1]) + np.repeat(rows.indptr[wanted] - indptr[:-1], lengths)
    return Rows(rows.data[entries], rows.indices[entries], indptr, rows.n_features)


def joined(parts: Sequence[Rows]) -> Rows:
    """Rows one part after the other, with the wider of their index types."""
    kind = np.result_type(*(part.indptr.dtype for part in parts))
    starts = np.cumsum([0, *(part.indptr[-1] for part in parts)])
    pointers = [part.indptr[1:] + start for part, start in zip(parts, starts, strict=False)]
    return Rows(
        np.concatenate([part.data for part in parts]),
        np.concatenate([part.indices for part in parts]).astype(kind, copy=False),
        np.concatenate([[0], *pointers]).astype(kind),
        parts[0].n_features,
    )


class MistakesMixer:
    """Puts together the mistakes that epochs on the shards have made.

    Parameters
    ----------
    learner : Learner
        Whose space is made of them.
    first_rows : sequence of int
        Of each shard, the number of its first row among all.
    """

    epoch_type = MistakesEpoch

    def __init__(self, learner: Learner, first_rows: Sequence[int]) -> None:
        self.learner, self.first_rows = learner, first_rows

    def start(self, epoch: int, *, whole: bool) -> MistakesStart:
        """What an epoch begins with, which is always whole: the rows that it is made of are fewer
        bytes, but take longer to be learned from again than the rest takes to be sent."""
        return MistakesStart(epoch, self.learner._space)

    def mix(self, updates: Sequence[MistakesUpdate]) -> None:
        """Let the space have made all the mistakes, in the order of the shards."""
        space = self.learner._space
        sums, trials = space.summed(), space.trials
        space.take_sums(np.zeros_like(sums), 0)
        for update, first_row in zip(updates, self.first_rows, strict=True):
            for label, made in enumerate(update.by_label):
                rows = picked(update.rows, made.places)
                space.absorb(label, rows, made.steps, made.numbers + first_row)
            if update.sums is not None:
                sums += update.sums.apply(np.zeros(update.sums.shape)).T
        space.take_sums(sums, trials + sum(update.trials for update in updates))
