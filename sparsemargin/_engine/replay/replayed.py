"""Outputs of spaces with a log of corrections, replayed to the end or to intermediate states.

One replay over some test points computes the outputs of all hypotheses of the training run.
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
from sparsemargin._heavy import scipy_sparse

# Number of test points in one replay for votes, and in one that computes all outputs at several
# moments, which takes more memory for each point.
_POINTS_PER_REPLAY = 1 << 16
_POINTS_WITH_MOMENTS = 1 << 11


def points_of(rows: Csr, bias: float) -> tuple[Any, np.ndarray]:
    """The rows as test points, a float64 CSR array of shape (n_points, n_coordinates), and binary
    exponents, shape (n_points, 1). Points have the intercept's column and no duplicates, and each
    is divided by a power of two, so that its largest entry is near 1. Thus the random slice of a
    row does not depend on its scale."""
    sparse = scipy_sparse()
    X = sparse.csr_array(summed(rows).arrays, shape=(rows.n_rows, rows.n_features)).astype(
        np.float64
    )
    X.sort_indices()
    if bias:
        X = sparse.hstack([X, sparse.csr_array(np.full((X.shape[0], 1), bias))], format="csr")
    # Scaling by powers of two is exact.
    exponent = np.frexp(abs(X).max(axis=1).toarray().ravel())[1]
    X.data = np.ldexp(X.data, -np.repeat(exponent, np.diff(X.indptr)))
    return X, exponent[:, np.newaxis]


def draw(X: Any, seed: int, trials: int) -> np.ndarray:
    """A random time slice of the trials for every point."""
    arrays = X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return draw_slices(*arrays, seed, trials)


class Replayed(Space):
    """Outputs of all hypotheses in the log, for first-order spaces."""

    log: Any
    normalized: Any

    @property
    def logged(self) -> bool:  # type: ignore[override]
        return self.log is not None

    @abstractmethod
    def largest_norm(self, rows: Csr, weights: np.ndarray | None) -> float:
        """The largest norm of an instance among the checked rows of nonzero weight."""

    @abstractmethod
    def replays(self, rows: Csr, n_threads: int, n_points: int) -> Iterator[tuple[Any, ...]]:
        """Yield blocks of rows, of about n_points: their indices, the rows as points, their binary
        exponents, and a function that creates a `Replay` over them."""

    def outputs_by(self, hypothesis: str, rows: Csr, seed: int, n_threads: int) -> np.ndarray:
        if hypothesis == "vote":
            return self.votes(rows, n_threads)
        if hypothesis == "random":
            return self.random_outputs(rows, seed, n_threads)
        return self.outputs(rows, n_threads)

    def votes(self, rows: Csr, n_threads: int) -> np.ndarray:
        """Shares of votes, shape (n_rows, n_vectors)."""
        result = np.empty((rows.n_rows, self.n_vectors))
        for which, _, _, make in self.replays(rows, n_threads, _POINTS_PER_REPLAY):
            replay = make()
            replay.advance(self.trials)
            result[which] = replay.votes()
        return result

    def random_outputs(self, rows: Csr, seed: int, n_threads: int) -> np.ndarray:
        """Outputs of the vectors at a random time slice per row, shape (n_rows, n_vectors)."""
        result = np.empty((rows.n_rows, self.n_vectors))
        for which, X, exponents, make in self.replays(rows, n_threads, max(1, rows.n_rows)):
            outputs = make(counted=False).outputs_at(draw(X, seed, self.trials))
            result[which] = np.ldexp(outputs[int(self.normalized)], exponents)
        return result

    def outputs_by_moment(
        self, rows: Csr, trials: list[int], seed: int, n_threads: int
    ) -> Iterator[tuple[np.ndarray, int, dict[str, np.ndarray]]]:
        """Yield outputs of every hypothesis after given, nondecreasing numbers of trials.

        Yields
        ------
        which : ndarray of shape (n_points,)
            Indices of some of the checked rows.
        moment : int
            Index into `trials`.
        outputs : dict of str to ndarray of shape (n_points, n_vectors)
            Outputs by the name of the hypothesis, with the suffix "_normalized" for vectors of norm
            1. Each row is scaled by a power of two.
        """
        for which, X, _, make in self.replays(rows, n_threads, _POINTS_WITH_MOMENTS):
            # After `count` trials, time slices count - 1 and count have the same vector. Here
            # training continued, so that slice `count` may have a later vector.
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
        """Corrections by vector, shape (n_moments, n_vectors), and number of rows with corrections,
        shape (n_moments,), after the given numbers of trials."""
        log, made = self.log.entries(), self.per_vector("corrections")
        by_vector = [log["start"][log["vector"] == vector] for vector in range(self.n_vectors)]
        # The log also has the starting vector, which is not a correction.
        by_vector = [starts[len(starts) - n :] for starts, n in zip(by_vector, made, strict=True)]
        first = np.full(log["row"].max(initial=-1) + 1, np.iinfo(np.int64).max)
        np.minimum.at(first, log["row"], log["start"])
        corrections = [np.searchsorted(starts, trials) for starts in by_vector]
        return np.transpose(corrections), np.searchsorted(np.sort(first), trials)
