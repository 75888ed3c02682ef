"""Outputs of first-order learners that keep a log: replayed, at the end or at moments of the run.

One replay over some test points gives all hypotheses that the run has gone through.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sparsemargin._engine.hypotheses.base import Hypotheses
from sparsemargin._engine.hypotheses.kernel import KernelHypotheses
from sparsemargin._engine.hypotheses.kernel import outputs_at as kernel_outputs_at
from sparsemargin._engine.hypotheses.linear import LinearHypotheses, draw_slices, outputs_at
from sparsemargin._engine.kernel.outputs import pool_products
from sparsemargin._engine.kernel.space import KernelSpace
from sparsemargin.learners._rows import Rows

# Test points a vote is replayed over at once, and where averages and many moments go along.
_POINTS_PER_REPLAY = 1 << 16
_POINTS_WITH_MOMENTS = 1 << 11


def votes(learner: Any, rows: Rows) -> np.ndarray:
    """Shares of votes, shape (n_rows, n_labels)."""
    space = learner._space
    result = np.empty((len(rows.indptr) - 1, space.n_labels))
    for which, replay, _ in _replays(learner, rows, None):
        replay.advance(space.trials)
        result[which] = replay.votes()
    return result


def random_outputs(learner: Any, rows: Rows) -> np.ndarray:
    """Outputs by the vectors of a time slice drawn for each row, shape (n_rows, n_labels)."""
    X, exponents = learner._points(rows)
    slices = draw(learner, X, learner._space.trials)
    if not isinstance(learner._space, KernelSpace):
        used, X = _without_others(X)
        outputs = outputs_at(learner._space, used, *_parts(X), slices, learner._space.normalizes)
        return np.ldexp(outputs, exponents)
    result = np.empty((X.shape[0], learner._space.n_labels))
    for which, products in pool_products(learner._space, rows, learner._n_threads()):
        normalized = learner._space.normalizes
        result[which] = kernel_outputs_at(learner._space, products, slices[which], normalized).T
    return result


def outputs_by_moment(
    learner: Any, rows: Rows, trials: list[int]
) -> Iterator[tuple[np.ndarray, int, dict[str, np.ndarray]]]:
    """Outputs by every hypothesis after numbers of trials, which do not fall.

    Parameters
    ----------
    learner : FirstOrderLearner
        With a log.
    rows : Rows
        Checked.
    trials : list of int

    Yields
    ------
    which : ndarray of shape (n_points,)
        Some of the rows.
    moment : int
        Place in `trials`.
    outputs : dict of str to ndarray of shape (n_points, n_labels)
        By the hypothesis's name, "_normalized" added where its vectors have norm 1; up to a power
        of two for each row.
    """
    for which, replay, random in _replays(learner, rows, trials):
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


def counts_by_moment(space: Any, trials: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Corrections by label, shape (n_moments, n_labels), and rows that have made any, shape
    (n_moments,), after numbers of trials."""
    log, made = space.log.entries(), space.per_label("corrections")
    by_label = [log["start"][log["label"] == label] for label in range(space.n_labels)]
    # A vector that a label starts with is logged, but no correction.
    by_label = [starts[len(starts) - n :] for starts, n in zip(by_label, made, strict=True)]
    first = np.full(log["row"].max(initial=-1) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, log["row"], log["start"])
    corrections = [np.searchsorted(starts, trials) for starts in by_label]
    return np.transpose(corrections), np.searchsorted(np.sort(first), trials)


def _replays(
    learner: Any, rows: Rows, trials: list[int] | None
) -> Iterator[tuple[np.ndarray, Hypotheses, list[np.ndarray]]]:
    """Replays over a part of the rows at a time. Where `trials` are given, replays that average;
    and the outputs by random vectors of so many trials, as they are and of norm 1."""
    if isinstance(learner._space, KernelSpace):
        return _kernel_replays(learner, rows, trials)
    return _linear_replays(learner, rows, trials)


def _kernel_replays(
    learner: Any, rows: Rows, trials: list[int] | None
) -> Iterator[tuple[np.ndarray, Hypotheses, list[np.ndarray]]]:
    space, random = learner._space, []
    if trials is not None:
        X, _ = learner._points(rows)
        slices = _draw_by_moment(learner, X, trials)
    for which, products in pool_products(space, rows, learner._n_threads()):
        if trials is not None:
            random = [
                np.moveaxis(kernel_outputs_at(space, products, slices[:, which], normalized), 0, -1)
                for normalized in (False, True)
            ]
        yield which, KernelHypotheses(space, products, averaged=trials is not None), random


def _linear_replays(
    learner: Any, rows: Rows, trials: list[int] | None
) -> Iterator[tuple[np.ndarray, Hypotheses, list[np.ndarray]]]:
    space, random = learner._space, []
    X, _ = learner._points(rows)
    n_points = _POINTS_PER_REPLAY if trials is None else _POINTS_WITH_MOMENTS
    for start in range(0, X.shape[0], n_points):
        part = X[start : start + n_points]
        which = np.arange(start, start + part.shape[0])
        used, points = _without_others(part)
        by_row, averaged = _parts(points), trials is not None
        if trials is not None:
            slices = _draw_by_moment(learner, part, trials)
            random = [
                outputs_at(space, used, *by_row, slices, normalized) for normalized in (False, True)
            ]
        by_column = _parts(points.tocsc())
        yield which, LinearHypotheses(space, used, *by_row, *by_column, averaged=averaged), random


def _without_others(X: Any) -> tuple[np.ndarray, Any]:
    """The columns of CSR that have entries, rising; and X over these."""
    from scipy.sparse import csr_array

    used, places = np.unique(X.indices, return_inverse=True)
    return used, csr_array((X.data, places, X.indptr), shape=(X.shape[0], len(used)))


def draw(learner: Any, X: Any, trials: int) -> np.ndarray:
    """A time slice of so many trials for every point."""
    return draw_slices(*_parts(X), learner._slice_seed, trials)


def _draw_by_moment(learner: Any, X: Any, trials: list[int]) -> np.ndarray:
    """Time slices of a run that ends with each number of trials, shape (n_moments, n_points)."""
    # Slice 0 has the vector made by the first trial, and the last two slices of a run the same
    # one; in a run that goes on, the last might have one that the next trial made.
    return np.array([np.minimum(draw(learner, X, count), count - 1) for count in trials])


def _parts(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)
