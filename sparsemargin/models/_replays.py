"""Outputs of first-order learners that keep a log: replayed, at the end or at moments of the run.

One replay over some test points gives all hypotheses that the run has gone through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from sparsemargin._engine.hypotheses.replay import KernelReplay, LinearReplay, Replay, draw_slices
from sparsemargin._engine.kernel.outputs import support_products
from sparsemargin._engine.kernel.space import KernelSpace
from sparsemargin.models._rows import Rows

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
    space = learner._space
    X, exponents = learner._points(rows)
    slices = draw(learner, X, space.trials)
    normalized = int(space.normalized)
    if not isinstance(space, KernelSpace):
        outputs = LinearReplay(space, X, counted=False).outputs_at(slices)[normalized]
        return np.ldexp(outputs, exponents)
    result = np.empty((X.shape[0], space.n_labels))
    for which, products in support_products(space, rows, learner._n_threads()):
        replay = KernelReplay(space, products, counted=False)
        result[which] = replay.outputs_at(slices[which])[normalized]
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
) -> Iterator[tuple[np.ndarray, Replay, Any]]:
    """Replays over a part of the rows at a time. Where `trials` are given, replays that average;
    and the outputs by random vectors of so many trials, as they are and of norm 1."""
    averaged = trials is not None
    random: Any = None
    for which, X, make in _parts_of(learner, rows, averaged=averaged):
        if trials is not None:
            # Slice 0 has the vector made by the first trial, and the last two slices of a run the
            # same one; in a run that goes on, the last might have one that the next trial made.
            slices = [np.minimum(draw(learner, X, count), count - 1) for count in trials]
            random = make(counted=False).outputs_at(np.array(slices))
        yield which, make(averaged=averaged), random


def _parts_of(
    learner: Any, rows: Rows, *, averaged: bool
) -> Iterator[tuple[np.ndarray, Any, Callable[..., Replay]]]:
    """Numbers of some rows, these rows as points, and what makes a replay over them."""
    space = learner._space
    X, _ = learner._points(rows)
    if isinstance(space, KernelSpace):
        for which, products in support_products(space, rows, learner._n_threads()):
            yield which, X[which], partial(KernelReplay, space, products)
        return
    n_points = _POINTS_WITH_MOMENTS if averaged else _POINTS_PER_REPLAY
    for start in range(0, X.shape[0], n_points):
        part = X[start : start + n_points]
        which = np.arange(start, start + part.shape[0])
        yield which, part, partial(LinearReplay, space, part)


def draw(learner: Any, X: Any, trials: int) -> np.ndarray:
    """A time slice of so many trials for every point."""
    arrays = X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return draw_slices(*arrays, learner._slice_seed, trials)
