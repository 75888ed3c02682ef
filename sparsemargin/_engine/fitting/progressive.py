"""Outputs of a model for rows before it is trained on them, which calibrate its probabilities, and
fingerprints that recognise rows on which a model is trained again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from sparsemargin._engine.fitting.protocol import Space
from sparsemargin._engine.fitting.task import Task
from sparsemargin._engine.rows.csr import Csr, row_hashes
from sparsemargin._engine.state import MAX_TRIALS, array_of, flag, instance, integer, real, require

# Largest number of stored outputs over all vectors, and largest and smallest number of rows for
# which outputs are stored.
_NUMBERS, _MOST_ROWS, _FEWEST_ROWS = 1 << 20, 1 << 13, 1 << 5

# Largest number of rows for averaged hypotheses. Their outputs are computed in addition to the
# trials, which makes one epoch over 100,000 rows 2 % longer.
_MOST_ROWS_AVERAGED = 1 << 9


def count_places(n_vectors: int, averaged: bool, joint: bool = False) -> int:
    """Return the number of rows whose outputs are stored, a power of two.

    For an averaged joint classifier it is half as large, because only a temperature is fitted.
    """
    most = _MOST_ROWS_AVERAGED >> joint if averaged else _MOST_ROWS
    fitting = max(_FEWEST_ROWS, _NUMBERS // n_vectors)
    return min(most, 1 << (fitting.bit_length() - 1))


@contextmanager
def storing_outputs(task: Task, space: Space) -> Iterator[None]:
    """Store the outputs of the next trials, one per row, if the task has places for outputs.

    If rows were already used for training, the stored outputs are marked as spoiled.
    """
    outputs, before = task.progress, space.trials
    if outputs is None:
        yield
        return
    outputs.spoiled |= outputs.fingerprints.add_rows(task.rows, task.order())
    outputs.ahead, outputs.stop = before - outputs.n_trials, before + task.n_trials
    try:
        yield
    finally:
        outputs.n_trials += min(space.trials - before, task.n_trials)
        outputs.ahead = outputs.stop = 0


class ProgressiveOutputs:
    """Outputs of rows just before the model was trained on them (progressive validation).

    Outputs of all trials are stored while there are places. After that, those of at least the later
    half of the trials are stored, evenly thinned. `place_of_trial` defines the places.

    Parameters
    ----------
    n_vectors : int
        Number of weight vectors.
    n_places : int
        Number of rows whose outputs can be stored.
    weight_root : int
        Steps grow with this root of the weight of a row.

    Attributes
    ----------
    outputs : ndarray of shape (n_places, n_vectors)
        Outputs of the hypothesis that predicts, as `decision_function` returns them.
    positive : ndarray of shape (n_places, n_vectors), uint8
        Whether the row is positive for the vector.
    steps : ndarray of shape (n_places,)
        Factor of the steps of the row.
    n_trials : int
        Number of trials on rows that were not used for training before.
    n_held_out : int
        Number of first trials whose outputs come from similar models that were not trained on the
        row. These outputs are as useful as those of later trials.
    fingerprints : Fingerprints
        Fingerprints of the training rows.
    spoiled : bool
        Whether the model was trained on rows again. Its outputs may then have a different scale
        than the stored ones.
    """

    def __init__(self, n_vectors: int, n_places: int, weight_root: int) -> None:
        self.outputs = np.zeros((n_places, n_vectors))
        self.positive = np.zeros((n_places, n_vectors), np.uint8)
        self.steps, self.weight_root = np.zeros(n_places), weight_root
        self.n_trials = self.n_held_out = self.ahead = self.stop = 0
        self.fingerprints, self.spoiled = Fingerprints(), False

    def held_out(
        self, outputs: np.ndarray, positive: np.ndarray, steps: np.ndarray
    ) -> ProgressiveOutputs:
        """Return a replacement of these outputs by outputs of held-out rows.

        It has at least the same number of places, and up to `count_places` if the rows need more.
        """
        needed = 1 << max(0, len(outputs) - 1).bit_length()
        n_places = min(max(len(self.steps), needed), count_places(self.n_vectors, averaged=False))
        whole = ProgressiveOutputs(self.n_vectors, n_places, self.weight_root)
        n = whole.n_trials = whole.n_held_out = min(len(outputs), n_places)
        for name, values in ("outputs", outputs), ("positive", positive), ("steps", steps):
            getattr(whole, name)[:n] = values[:n]
        whole.fingerprints = self.fingerprints
        return whole

    def recent(self) -> np.ndarray:
        """Return the places of the later half of all trials, in the order of the trials.

        Held-out rows are treated as if the same number of trials had preceded them.
        """
        trials = self.trials()
        recent = np.flatnonzero(trials >= max(0, self.n_trials - self.n_held_out) // 2)
        return recent[np.argsort(trials[recent])]

    @property
    def n_vectors(self) -> int:
        return self.outputs.shape[1]

    @classmethod
    def merged(
        cls, parts: Sequence[ProgressiveOutputs], n_places: int, n_rounds: int = 1
    ) -> ProgressiveOutputs:
        """Merge the outputs of models that were trained in parallel on parts of the rows.

        The result resembles that of one model trained on all rows. Trials are ordered by their
        relative position within their own part. The parts are those of `n_rounds` consecutive
        rounds with the same number of models; a round has any number of trials.
        """
        if len(parts) == 1:
            return parts[0]
        first = parts[0]
        whole = cls(first.n_vectors, n_places, first.weight_root)
        whole.n_trials = sum(part.n_trials for part in parts)
        whole.spoiled = any(part.spoiled for part in parts)
        whole.fingerprints = Fingerprints.merged([part.fingerprints for part in parts])
        of_rounds = np.array([part.n_trials for part in parts]).reshape(n_rounds, -1).sum(axis=1)
        begins = np.repeat(np.cumsum(of_rounds) - of_rounds, len(parts) // n_rounds)
        of_rounds = np.repeat(of_rounds, len(parts) // n_rounds)
        late = np.concatenate([
            (begun + made * part.trials() / max(1, part.n_trials)) / max(1, whole.n_trials)
            for begun, made, part in zip(begins, of_rounds, parts, strict=True)
        ])  # fmt: skip
        chosen = np.argsort(late, kind="stable")
        if whole.n_trials > len(whole.steps):
            chosen = chosen[late[chosen] >= 0.5]
        chosen = chosen[np.arange(whole.n_stored) * len(chosen) // max(1, whole.n_stored)]
        places = np.argsort(whole.trials())
        for name in ("outputs", "positive", "steps"):
            values = np.concatenate([getattr(part, name)[: part.n_stored] for part in parts])
            getattr(whole, name)[places] = values[chosen]
        return whole

    @classmethod
    def beside(cls, parts: Sequence[ProgressiveOutputs]) -> ProgressiveOutputs:
        """Concatenate the outputs of several groups of weight vectors for the same rows."""
        whole = cls.__new__(cls)
        vars(whole).update(vars(parts[0]))
        whole.outputs = np.hstack([part.outputs for part in parts])
        whole.positive = np.hstack([part.positive for part in parts])
        return whole

    def fewer(self, n_parts: int) -> ProgressiveOutputs:
        """Return empty places for one of `n_parts` parts of the rows.

        Their number is twice the share of the part, because merging long streams uses only the
        later half.
        """
        n_places = min(len(self.steps), max(1, 2 * len(self.steps) // n_parts))
        return ProgressiveOutputs(
            self.n_vectors, 1 << (n_places.bit_length() - 1), self.weight_root
        )

    def of_vectors(self, first: int, last: int) -> ProgressiveOutputs:
        """Return a view of the same places for the vectors from `first` to before `last`."""
        part = ProgressiveOutputs.__new__(ProgressiveOutputs)
        vars(part).update(vars(self))
        part.outputs, part.positive = self.outputs[:, first:last], self.positive[:, first:last]
        return part

    @property
    def n_stored(self) -> int:
        """Return the number of filled places."""
        return min(self.n_trials, len(self.steps))

    def trials(self) -> np.ndarray:
        """Return the number, from 0, of the trial in each filled place."""
        n_places, last = len(self.steps), self.n_trials - 1
        places = np.arange(self.n_stored)
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
        n = self.n_stored
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
        outputs = array_of(state, "outputs", np.float64, (n, None), -np.inf, np.inf)
        positive = array_of(state, "positive", np.uint8, outputs.shape, 0, 1)
        steps = array_of(state, "steps", np.float64, (n,), 0.0, np.inf)
        root = integer(state, "weight_root", 1, 3)
        ProgressiveOutputs.__init__(self, outputs.shape[1], n_places, root)
        self.n_trials = n_trials
        self.n_held_out = integer(state, "n_held_out", 0, n)
        self.spoiled = flag(state, "spoiled")
        self.fingerprints.__setstate__(instance(state, "fingerprints", dict))
        self.outputs[:n], self.positive[:n], self.steps[:n] = outputs, positive, steps


# Number of stored hashes. It suffices to detect a second epoch within a few percent of its rows.
_MOST = 512

# Largest number of hashes that are sorted. If there are more, a partition first selects the
# smallest.
_SORTED = 8 * _MOST

# Rows count as repeated if the repeats exceed the expected number by `_EXCESS` and by the fraction
# `_SHARE` of the compared rows. The tally restarts after `_TALLIED` compared rows.
_EXCESS, _SHARE, _TALLIED = 2.0, 1 / 8, 64


class Fingerprints:
    """The smallest hashes of the rows so far, and the number of rows with each of them.

    Different rows may be equal by chance, such as short texts or rows of few categories. The
    expected number of such repeats is the Good-Turing estimate: the probability that the next row
    is new is the fraction of rows so far whose hash is unique. More repeats than expected mean that
    rows are presented again.
    """

    def __init__(self) -> None:
        self.hashes, self.counts = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        # Only hashes up to this bound are stored.
        self.largest = np.uint64(np.iinfo(np.uint64).max)
        # Number of rows compared since the tally started, and number of repeats above expectation.
        self.compared = self.excess = 0.0

    @classmethod
    def merged(cls, parts: Sequence[Fingerprints]) -> Fingerprints:
        """Return the fingerprints of the rows of all parts."""
        whole = cls()
        whole.largest = min(part.largest for part in parts)
        whole._add(
            np.concatenate([part.hashes for part in parts]),
            np.concatenate([part.counts for part in parts]),
        )
        return whole

    def add_rows(self, rows: Csr, which: np.ndarray | None) -> bool:
        """Add rows, or those in `which`, and return whether rows are presented again."""
        hashes = row_hashes(rows)
        if which is not None:
            hashes = hashes[which]
        hashes = hashes[hashes <= self.largest]
        if not len(hashes):
            return False
        n_met = int(self.counts.sum())
        if n_met:
            n_lone = int(np.count_nonzero(self.counts == 1))
            expected = len(hashes) * (n_met - n_lone + 1) / (n_met + 1)
            at = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
            self.excess += float(np.count_nonzero(self.hashes[at] == hashes)) - expected
        self.compared += len(hashes)
        again = self.excess > _EXCESS + _SHARE * self.compared
        if self.compared >= _TALLIED:
            self.compared = self.excess = 0.0
        self._add(hashes, np.ones(len(hashes), np.int64))
        return again

    def _add(self, hashes: np.ndarray, counts: np.ndarray) -> None:
        hashes, counts = np.append(self.hashes, hashes), np.append(self.counts, counts)
        for n_sorted in 2 * _MOST, _SORTED:
            # Equal rows have equal hashes, so the `n_sorted` smallest hashes may have fewer than
            # `_MOST` different values. The second attempt then sorts more hashes.
            largest = self.largest
            if len(hashes) > n_sorted:
                largest = np.partition(hashes, n_sorted)[n_sorted]
            some = hashes <= largest
            self.hashes, places = np.unique(hashes[some], return_inverse=True)
            if len(self.hashes) > _MOST or len(hashes) <= n_sorted:
                break
        self.largest, self.counts = largest, np.bincount(places, counts[some]).astype(np.int64)
        if len(self.hashes) > _MOST:
            self.largest = self.hashes[_MOST - 1]
            self.hashes, self.counts = self.hashes[:_MOST], self.counts[:_MOST]

    # ------------------------------------------------------------------------------- the state

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "largest": int(self.largest)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.hashes = array_of(state, "hashes", np.uint64, (None,))
        require(len(self.hashes) <= _MOST, f"'hashes' are more than {_MOST}")
        require(bool((self.hashes[1:] > self.hashes[:-1]).all()), "'hashes' do not rise")
        self.largest = np.uint64(integer(state, "largest", 0, np.iinfo(np.uint64).max))
        most = MAX_TRIALS // _MOST
        self.counts = array_of(state, "counts", np.int64, self.hashes.shape, 1, most)
        self.compared = real(state, "compared", 0.0, float(MAX_TRIALS))
        self.excess = real(state, "excess", -float(MAX_TRIALS), float(MAX_TRIALS))
