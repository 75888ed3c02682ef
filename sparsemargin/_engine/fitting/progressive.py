"""What a model said of rows just before it learned them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from sparsemargin._engine.fitting.protocol import Space
from sparsemargin._engine.fitting.task import Task
from sparsemargin._engine.state import MAX_TRIALS, array_of, integer, require

# Numbers that are kept of all labels together; and rows, of few and of many labels.
_NUMBERS, _MOST_ROWS, _FEWEST_ROWS = 1 << 20, 1 << 13, 1 << 5


@contextmanager
def keeping(task: Task, space: Space) -> Iterator[None]:
    """The next trials of the space, one of each row of the task, are of rows not yet learned
    from, and their outputs are kept where the task says so."""
    kept, before = task.kept, space.trials
    if kept is None:
        yield
        return
    kept.ahead, kept.stop = before - kept.n_trials, before + task.n_trials
    try:
        yield
    finally:
        kept.n_trials += min(space.trials - before, task.n_trials)
        kept.ahead = kept.stop = 0


class ProgressiveOutputs:
    """Outputs of the later half of all trials that were made of rows not yet learned from.

    Half of the places are... see `kept.pxd`.

    Parameters
    ----------
    n_labels : int

    Attributes
    ----------
    outputs : ndarray of shape (n_places, n_labels)
        Of the hypothesis that predicts, as `decision_function` gives them.
    positive : ndarray of shape (n_places, n_labels), uint8
        Whether the row has the label.
    weights : ndarray of shape (n_places,)
        What multiplied the row's steps.
    n_trials : int
        Of rows not yet learned from.
    """

    def __init__(self, n_labels: int, n_places: int | None = None) -> None:
        if n_places is None:
            n_places = 1 << (max(_FEWEST_ROWS, _NUMBERS // n_labels).bit_length() - 1)
            n_places = min(n_places, _MOST_ROWS)
        self.outputs = np.zeros((n_places, n_labels))
        self.positive = np.zeros((n_places, n_labels), np.uint8)
        self.weights = np.zeros(n_places)
        self.n_trials = self.ahead = self.stop = 0

    @property
    def n_labels(self) -> int:
        return self.outputs.shape[1]

    def of_labels(self, first: int, last: int) -> ProgressiveOutputs:
        """The same places, of some labels."""
        part = ProgressiveOutputs.__new__(ProgressiveOutputs)
        vars(part).update(vars(self))
        part.outputs, part.positive = self.outputs[:, first:last], self.positive[:, first:last]
        return part

    @property
    def n_kept(self) -> int:
        """Places that are filled."""
        return min(self.n_trials, len(self.weights))

    def trials(self) -> np.ndarray:
        """The trial of each place that is filled, counted from 0."""
        n_places, last = len(self.weights), self.n_trials - 1
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
            "n_trials": self.n_trials, "n_places": len(self.weights),
            "outputs": self.outputs[:n], "positive": self.positive[:n], "weights": self.weights[:n],
        }  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        n_places = integer(state, "n_places", 1, _MOST_ROWS)
        require(n_places & (n_places - 1) == 0, "'n_places' is no power of two")
        n_trials = integer(state, "n_trials", 0, MAX_TRIALS)
        n = min(n_trials, n_places)
        outputs = array_of(state, "outputs", np.float64, (n, None))
        positive = array_of(state, "positive", np.uint8, outputs.shape, 0, 1)
        weights = array_of(state, "weights", np.float64, (n,), 0.0, np.inf)
        ProgressiveOutputs.__init__(self, outputs.shape[1], n_places)
        self.n_trials = n_trials
        self.outputs[:n], self.positive[:n], self.weights[:n] = outputs, positive, weights
