"""Outputs of a model for rows that it had not learned, by which its probabilities are fitted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from sparsemargin._engine.fitting.fingerprints import Fingerprints
from sparsemargin._engine.fitting.protocol import Space
from sparsemargin._engine.fitting.task import Task
from sparsemargin._engine.state import MAX_TRIALS, array_of, flag, instance, integer, require

# Numbers that are kept of all labels together; and rows, of few and of many labels.
_NUMBERS, _MOST_ROWS, _FEWEST_ROWS = 1 << 20, 1 << 13, 1 << 5

# Of averages, whose outputs no trial makes: one epoch over 100,000 rows takes 2 % longer for them.
_MOST_ROWS_AVERAGED = 1 << 9


def count_places(n_labels: int, averaged: bool, joint: bool = False) -> int:
    """How many rows' outputs are kept, a power of two; half of them tell a temperature, which is
    all that is made of a joint machine's."""
    most = _MOST_ROWS_AVERAGED >> joint if averaged else _MOST_ROWS
    fitting = max(_FEWEST_ROWS, _NUMBERS // n_labels)
    return min(most, 1 << (fitting.bit_length() - 1))


@contextmanager
def keeping(task: Task, space: Space) -> Iterator[None]:
    """Keep the outputs of the next trials of the space, one for each row of the task, where the
    task has places for them; rows that have been learned before spoil those kept."""
    kept, before = task.kept, space.trials
    if kept is None:
        yield
        return
    kept.spoiled |= kept.fingerprints.meet(task.rows, task.order())
    kept.ahead, kept.stop = before - kept.n_trials, before + task.n_trials
    try:
        yield
    finally:
        kept.n_trials += min(space.trials - before, task.n_trials)
        kept.ahead = kept.stop = 0


class ProgressiveOutputs:
    """Outputs of rows that were not learned: of each row just before it was learned, of all trials
    while there are places for them, then of the later half, evenly thinned. `kept.pxd` defines
    which trial has which place.

    Parameters
    ----------
    n_labels, n_places : int
    weight_root : int
        Steps grow with that root of a row's weight.

    Attributes
    ----------
    outputs : ndarray of shape (n_places, n_labels)
        Of the hypothesis that predicts, as `decision_function` gives them.
    positive : ndarray of shape (n_places, n_labels), uint8
        Whether the row has the label.
    steps : ndarray of shape (n_places,)
        What multiplied those of the row.
    n_trials : int
        Of rows not yet learned from.
    n_held_out : int
        The first of these trials, whose rows were held out of models like this one. They are as
        good as later ones.
    fingerprints : Fingerprints
        Of the rows learned.
    spoiled : bool
        Whether the model has learned rows more than once since. Its outputs may then have another
        scale than those kept.
    """

    def __init__(self, n_labels: int, n_places: int, weight_root: int) -> None:
        self.outputs = np.zeros((n_places, n_labels))
        self.positive = np.zeros((n_places, n_labels), np.uint8)
        self.steps, self.weight_root = np.zeros(n_places), weight_root
        self.n_trials = self.n_held_out = self.ahead = self.stop = 0
        self.fingerprints, self.spoiled = Fingerprints(), False

    def held_out(
        self, outputs: np.ndarray, positive: np.ndarray, steps: np.ndarray
    ) -> ProgressiveOutputs:
        """Return outputs of rows that were held out, for these to be replaced by, in as many places
        as these have, or more where they need them."""
        needed = 1 << max(0, len(outputs) - 1).bit_length()
        n_places = min(max(len(self.steps), needed), count_places(self.n_labels, averaged=False))
        whole = ProgressiveOutputs(self.n_labels, n_places, self.weight_root)
        n = whole.n_trials = whole.n_held_out = min(len(outputs), n_places)
        for name, values in ("outputs", outputs), ("positive", positive), ("steps", steps):
            getattr(whole, name)[:n] = values[:n]
        whole.fingerprints = self.fingerprints
        return whole

    def recent(self) -> np.ndarray:
        """Return the places of the later half of all trials, in order; trials of rows held out
        count as if as many had come before them."""
        trials = self.trials()
        recent = np.flatnonzero(trials >= max(0, self.n_trials - self.n_held_out) // 2)
        return recent[np.argsort(trials[recent])]

    @property
    def n_labels(self) -> int:
        return self.outputs.shape[1]

    @classmethod
    def merged(
        cls, parts: Sequence[ProgressiveOutputs], n_places: int, n_rounds: int = 1
    ) -> ProgressiveOutputs:
        """Those of models that have learned side by side, as of one that has learned all rows: each
        trial counts for as late as it came in its own. In each of the rounds, which come one after
        the other, as many have learned."""
        if len(parts) == 1:
            return parts[0]
        first = parts[0]
        whole = cls(first.n_labels, n_places, first.weight_root)
        whole.n_trials = sum(part.n_trials for part in parts)
        whole.spoiled = any(part.spoiled for part in parts)
        whole.fingerprints = Fingerprints.merged([part.fingerprints for part in parts])
        late = np.concatenate([
            (i * n_rounds // len(parts) + part.trials() / max(1, part.n_trials)) / n_rounds
            for i, part in enumerate(parts)
        ])  # fmt: skip
        chosen = np.argsort(late, kind="stable")
        if whole.n_trials > len(whole.steps):
            chosen = chosen[late[chosen] >= 0.5]
        chosen = chosen[np.arange(whole.n_kept) * len(chosen) // max(1, whole.n_kept)]
        places = np.argsort(whole.trials())
        for name in ("outputs", "positive", "steps"):
            kept = np.concatenate([getattr(part, name)[: part.n_kept] for part in parts])
            getattr(whole, name)[places] = kept[chosen]
        return whole

    @classmethod
    def beside(cls, parts: Sequence[ProgressiveOutputs]) -> ProgressiveOutputs:
        """Those of some labels after the other, of the same rows."""
        whole = cls.__new__(cls)
        vars(whole).update(vars(parts[0]))
        whole.outputs = np.hstack([part.outputs for part in parts])
        whole.positive = np.hstack([part.positive for part in parts])
        return whole

    def fewer(self, n_parts: int) -> ProgressiveOutputs:
        """Places for one of so many parts of the rows: twice its share, as of long streams the
        later half is what counts."""
        n_places = min(len(self.steps), max(1, 2 * len(self.steps) // n_parts))
        return ProgressiveOutputs(self.n_labels, 1 << (n_places.bit_length() - 1), self.weight_root)

    def of_labels(self, first: int, last: int) -> ProgressiveOutputs:
        """The same places, of some labels."""
        part = ProgressiveOutputs.__new__(ProgressiveOutputs)
        vars(part).update(vars(self))
        part.outputs, part.positive = self.outputs[:, first:last], self.positive[:, first:last]
        return part

    @property
    def n_kept(self) -> int:
        """Places that are filled."""
        return min(self.n_trials, len(self.steps))

    def trials(self) -> np.ndarray:
        """The trial of each place that is filled, counted from 0."""
        n_places, last = len(self.steps), self.n_trials - 1
        places = np.arange(self.n_kept)
        if self.n_trials <= n_places:
            return places
        thinning = max(0, (last // n_places).bit_length() - 1)
        new = n_places + places <= last >> thinning
        return np.where(
            new, (n_places + places) << thinning,
            (n_places + places) << (thinning - 1) if thinning else places,
        )  # fmt: skip

    # ------------------------------------------------------------------------------- the state

    def __getstate__(self) -> dict[str, Any]:
        n = self.n_kept
        return {
            "n_trials": self.n_trials, "n_places": len(self.steps),
            "weight_root": self.weight_root, "outputs": self.outputs[:n],
            "positive": self.positive[:n], "steps": self.steps[:n],
            "n_held_out": self.n_held_out, "spoiled": self.spoiled,
            "fingerprints": self.fingerprints.__getstate__(),
        }  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        n_places = integer(state, "n_places", 1, _MOST_ROWS)
        require(n_places & (n_places - 1) == 0, "'n_places' is no power of two")
        n_trials = integer(state, "n_trials", 0, MAX_TRIALS)
        n = min(n_trials, n_places)
        outputs = array_of(state, "outputs", np.float64, (n, None))
        positive = array_of(state, "positive", np.uint8, outputs.shape, 0, 1)
        steps = array_of(state, "steps", np.float64, (n,), 0.0, np.inf)
        root = integer(state, "weight_root", 1, 3)
        ProgressiveOutputs.__init__(self, outputs.shape[1], n_places, root)
        self.n_trials = n_trials
        self.n_held_out = integer(state, "n_held_out", 0, n)
        self.spoiled = flag(state, "spoiled")
        self.fingerprints.__setstate__(instance(state, "fingerprints", dict))
        self.outputs[:n], self.positive[:n], self.steps[:n] = outputs, positive, steps
