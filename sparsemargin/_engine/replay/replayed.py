"""Outputs of spaces that keep a log of corrections: replayed, at the end or on the way.

One replay over some test points gives all hypotheses that the run has gone through.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from sparsemargin._engine.fitting.protocol import Space
from sparsemargin._engine.replay.replay import draw_slices
from sparsemargin._engine.rows.csr import Csr
from sparsemargin._engine.rows.parts import summed

# Test points a vote is replayed over at once, and where averages and many moments go along.
_POINTS_PER_REPLAY = 1 << 16
_POINTS_WITH_MOMENTS = 1 << 11


def points_of(rows: Csr, bias: float) -> tuple[Any, np.ndarray]:
    """The rows as test points: float64, with the intercept's column, repeats summed, divided by
    powers of two that bring them near 1, shape (n_points, n_coordinates); and the exponents, shape
    (n_points, 1). So a row's slice is drawn alike whatever its scale."""
    from scipy.sparse import csr_array, hstack

    X = csr_array(summed(rows).arrays, shape=(rows.n_rows, rows.n_features)).astype(np.float64)
    X.sort_indices()
    if bias:
        X = hstack([X, csr_array(np.full((X.shape[0], 1), bias))], format="csr")
    # Powers of two change no digit.
    exponent = np.frexp(abs(X).max(axis=1).toarray().ravel())[1]
    X.data = np.ldexp(X.data, -np.repeat(exponent, np.diff(X.indptr)))
    return X, exponent[:, np.newaxis]


def draw(X: Any, seed: int, trials: int) -> np.ndarray:
    """A time slice of so many trials for every point."""
    arrays = X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return draw_slices(*arrays, seed, trials)


class Replayed(Space):
    """What first-order spaces tell of all hypotheses that their log has."""

    log: Any
    normalized: Any

    @property
    def logged(self) -> bool:  # type: ignore[override]
        return self.log is not None

    @abstractmethod
    def largest_norm(self, rows: Csr, weights: np.ndarray | None) -> float:
        """The largest norm of an instance made of the checked rows whose weight is not 0."""

    @abstractmethod
    def replays(self, rows: Csr, n_threads: int, n_points: int) -> Iterator[tuple[Any, ...]]:
        """Numbers of some rows, n_points of them if that matters; these as points; the exponents
        that their outputs lack; and what makes a `Replay` over them."""

    def outputs_by(self, hypothesis: str, rows: Csr, seed: int, n_threads: int) -> np.ndarray:
        if hypothesis == "vote":
            return self.votes(rows, n_threads)
        if hypothesis == "random":
            return self.random_outputs(rows, seed, n_threads)
        return self.outputs(rows, n_threads)

    def votes(self, rows: Csr, n_threads: int) -> np.ndarray:
        """Shares of votes, shape (n_rows, n_labels)."""
        result = np.empty((rows.n_rows, self.n_labels))
        for which, _, _, make in self.replays(rows, n_threads, _POINTS_PER_REPLAY):
            replay = make()
            replay.advance(self.trials)
            result[which] = replay.votes()
        return result

    def random_outputs(self, rows: Csr, seed: int, n_threads: int) -> np.ndarray:
        """Outputs by the vectors of a time slice drawn for each row, shape (n_rows, n_labels)."""
        result = np.empty((rows.n_rows, self.n_labels))
        for which, X, exponents, make in self.replays(rows, n_threads, max(1, rows.n_rows)):
            outputs = make(counted=False).outputs_at(draw(X, seed, self.trials))
            result[which] = np.ldexp(outputs[int(self.normalized)], exponents)
        return result

    def outputs_by_moment(
        self, rows: Csr, trials: list[int], seed: int, n_threads: int
    ) -> Iterator[tuple[np.ndarray, int, dict[str, np.ndarray]]]:
        """Outputs by every hypothesis after numbers of trials, which do not fall.

        Yields
        ------
        which : ndarray of shape (n_points,)
            Some of the rows, which are checked.
        moment : int
            Place in `trials`.
        outputs : dict of str to ndarray of shape (n_points, n_labels)
            By the hypothesis's name, "_normalized" added where its vectors have norm 1; up to a
            power of two for each row.
        """
        for which, X, _, make in self.replays(rows, n_threads, _POINTS_WITH_MOMENTS):
            # Slice 0 has the vector made by the first trial, and the last two slices of a run the
            # same one; in a run that goes on, the last might have one that the next trial made.
            slices = [np.minimum(draw(X, seed, count), count - 1) for count in trials]
            random = make(counted=False).outputs_at(np.array(slices))
            replay = make(averaged=True)
            for moment, count in enumerate(trials):
                replay.advance(count)
                yield (
                    which,
                    moment,
                    {
                        "last": replay.last(False),
                        "last_normalized": replay.last(True),
                        "average": replay.average(False),
                        "average_normalized": replay.average(True),
                        "vote": replay.votes(),
                        "random": random[0][moment],
                        "random_normalized": random[1][moment],
                    },
                )

    def counts_by_moment(self, trials: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """Corrections by label, shape (n_moments, n_labels), and rows that have made any, shape
        (n_moments,), after numbers of trials."""
        log, made = self.log.entries(), self.per_label("corrections")
        by_label = [log["start"][log["label"] == label] for label in range(self.n_labels)]
        # A vector that a label starts with is logged, but no correction.
        by_label = [starts[len(starts) - n :] for starts, n in zip(by_label, made, strict=True)]
        first = np.full(log["row"].max(initial=-1) + 1, np.iinfo(np.int64).max)
        np.minimum.at(first, log["row"], log["start"])
        corrections = [np.searchsorted(starts, trials) for starts in by_label]
        return np.transpose(corrections), np.searchsorted(np.sort(first), trials)
