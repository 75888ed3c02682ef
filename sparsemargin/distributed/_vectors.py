"""Mixing first-order learners: the dual vectors of the shards are averaged.

What is averaged is theta, not w: for p > 2 a mixture of the weights is the link of no mixture of
what the shards have learned, while ``||.||_p**2 / 2`` is convex in theta, so that no mixture is
further from the target, in the measure that the proofs count by, than the shards are on average.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sparsemargin._engine.first_order.linear_space import LinearSpace
from sparsemargin._engine.first_order.spaces import counted_of
from sparsemargin._engine.fitting.task import Task
from sparsemargin.distributed._differences import Difference, multiplied
from sparsemargin.distributed._trials import added, make_trials
from sparsemargin.models import Learner
from sparsemargin.models.rows import Rows

Mixing = Literal["uniform", "errors"]

# What of a label goes along with its dual vector: the corrections it counts by, the largest norm
# among them, the sum of its rows' multipliers, and the least bound on the margin.
_SCALARS = "corrections", "largest", "mass", "bound"


class NoBase(Exception):
    """This process does not have the array that a difference is from."""


@dataclass(frozen=True)
class VectorStart:
    """What all shards begin an epoch with.

    Attributes
    ----------
    run : str
        Of the fit.
    epoch : int
        From 1.
    theta : Difference
        From the theta that the epoch before began with, unless whole.
    scalars : dict of str to ndarray of shape (n_vectors,)
    """

    run: str
    epoch: int
    theta: Difference
    scalars: dict[str, np.ndarray]


@dataclass(frozen=True)
class VectorUpdate:
    """What an epoch on a shard came to.

    Attributes
    ----------
    theta : Difference
        From the theta that the epoch began with.
    sums : Difference or None
        Of the hypotheses, each as often as it lasted, from the weights, without their scale, that
        the epoch began with; None where they are not averaged.
    scalars : dict of str to ndarray of shape (n_vectors,)
    trials : int
    made : ndarray of shape (n_vectors,)
        Corrections of this epoch.
    mistakes : int or None
        Rows predicted wrongly just before they were learned from, where known.
    """

    theta: Difference
    sums: Difference | None
    scalars: dict[str, np.ndarray]
    trials: int
    made: np.ndarray
    mistakes: int | None


class _LatestBases:
    """The thetas that this process has begun epochs with last, a few fits' at most."""

    most = 2

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest: dict[str, tuple[int, np.ndarray]] = {}

    def theta_of(self, start: VectorStart) -> np.ndarray:
        """The theta that an epoch begins with, which nobody may write to.

        Raises
        ------
        NoBase
        """
        with self._lock:
            epoch, theta = self._latest.pop(start.run, (0, None))
            if start.theta.places is None:
                theta = start.theta.apply(np.empty(0))
            elif theta is None or epoch not in (start.epoch, start.epoch - 1):
                raise NoBase
            elif epoch == start.epoch - 1:
                theta = start.theta.apply(theta)
            self._latest[start.run] = start.epoch, theta
            while len(self._latest) > self.most:
                del self._latest[next(iter(self._latest))]
            return theta

    def forget(self, run: str) -> None:
        with self._lock:
            self._latest.pop(run, None)


BASES = _LatestBases()


def scalars_of(space: LinearSpace) -> dict[str, np.ndarray]:
    return {name: space.per_label(name).copy() for name in _SCALARS}


def without_scale(theta: np.ndarray, p: float) -> np.ndarray:
    """The weights that belong to theta, but for a factor of each vector."""
    if p == 2.0:
        return theta
    size = np.abs(theta)
    # The largest coordinate is brought near 1: the powers of others would leave the range.
    _, exponent = np.frexp(size.max(axis=0))
    return np.copysign(np.ldexp(size, -exponent) ** (p - 1.0), theta)


# What a space has learned in an epoch, as arrays of shape (n_coordinates, n_vectors), and what it
# begins the next one with.


def dual(space: LinearSpace) -> np.ndarray:
    """The dual vectors, float64."""
    return np.asarray(space.of_labels(space.t) * space.labels["scale"])


def summed(space: LinearSpace) -> np.ndarray:
    """Sum of the hypotheses, each as often as it lasted, float64."""
    labels, unit = space.labels, space.sigma
    if space.normalized:
        norm = labels["norm"]
        unit = np.divide(unit, norm, out=np.zeros_like(unit), where=norm > 0.0)
    times = labels["Z"] + (space.trials - labels["begin"]) * unit
    every, (_, _, pending) = np.arange(space.width), space.factors()
    kept = counted_of(space.g, space.acc, space.synced, every, pending)
    return np.asarray(times * space.of_labels(space.g) + space.of_labels(kept))


def noted(space: LinearSpace) -> np.ndarray:
    """Where the sum of the hypotheses is no multiple of the weights: bool."""
    return np.asarray((space.of_labels(space.acc) != 0) | (space.of_labels(space.synced) != 0))


def take_sums(space: LinearSpace, sums: Any, trials: int) -> None:
    """Let the average have counted hypotheses that come to these sums in so many trials."""
    for name in ("Z", "unit_peak", "idle", "flushes"):
        space.labels[name] = 0
    space.labels["stopped"], space.labels["begin"] = -1, trials
    space.begin_after(trials)
    if space.averaged:
        space.of_labels(space.acc)[...] = sums
        space.synced[...] = 0
        space.pending[...] = 0.0


class VectorEpoch:
    """An epoch on one shard."""

    def __init__(self, learner: Learner, start: VectorStart, no_rows: Rows) -> None:
        self.theta = BASES.theta_of(start)
        learner._open(no_rows)
        self.learner, self.space = learner, learner._space
        self.before = start.scalars["corrections"]
        self.mistakes: int | None = 0
        self.space.place_dual(self.theta)
        self.placed = self.space.per_label("scale").copy(), self._shift()
        take_sums(self.space, 0.0, 0)
        for name, values in start.scalars.items():
            self.space.per_label(name)[:] = values

    def take(self, task: Task, order: np.ndarray | None, streams: bool) -> None:
        self.mistakes = added(self.mistakes, make_trials(self.learner, task, order, streams))

    def update(self) -> VectorUpdate:
        space, theta = self.space, self.theta
        with np.errstate(over="ignore"):
            after = dual(space).astype(theta.dtype)
        ratio = self._ratio()
        moved = after != multiplied(theta, ratio, theta.dtype)
        return VectorUpdate(
            Difference.between(theta, after, ratio, moved),
            self._sums(moved | noted(space)) if space.averaged else None,
            scalars_of(space), space.trials, space.per_label("corrections") - self.before,
            self.mistakes,
        )  # fmt: skip

    def _ratio(self) -> np.ndarray:
        """What each vector has been multiplied by where no row has moved it."""
        scale, shift = self.placed
        ratio = np.ldexp(self.space.per_label("scale") / scale, self._shift() - shift)
        return np.where(np.isfinite(ratio), ratio, 1.0)

    def _shift(self) -> np.ndarray:
        return self.space.per_label("shift").copy()

    def _sums(self, noted: np.ndarray) -> Difference:
        base, sums = without_scale(self.theta, self.space.p), summed(self.space)
        # Where nothing was noted the sums are the base times one factor for each vector, which
        # the largest entry tells best.
        at = np.where(noted, 0.0, np.abs(base)).argmax(axis=0), np.arange(base.shape[1])
        known = np.where(noted[at], 0.0, base[at])
        with np.errstate(over="ignore"):
            factor = np.divide(sums[at], known, out=np.zeros(len(known)), where=known != 0.0)
            sums = sums.astype(self.theta.dtype)
        told = np.isfinite(factor)
        return Difference.between(base, sums, np.where(told, factor, 0.0), noted | ~told)


class VectorMixer:
    """Mixes what epochs on the shards have come to.

    Parameters
    ----------
    learner : Learner
        Whose space is the mixture.
    run : str
        Of the fit.
    mixing : {"uniform", "errors"}
        What the vectors are weighted by: all alike, or each label's by the shards' corrections of
        it.
    """

    epoch_type = VectorEpoch

    def __init__(self, learner: Learner, run: str, mixing: Mixing) -> None:
        self.learner, self.run, self.mixing = learner, run, mixing
        self.theta = self._theta()
        self.earlier: np.ndarray | None = None
        self.ratio = np.ones(self.theta.shape[1])

    def _theta(self) -> np.ndarray:
        space = self.learner._space
        return dual(space).astype(space.t.dtype)

    def start(self, epoch: int, *, whole: bool) -> VectorStart:
        """What an epoch begins with; whole: for those who know nothing of the epoch before."""
        if whole or self.earlier is None:
            theta = Difference.whole(self.theta)
        else:
            theta = Difference.between(self.earlier, self.theta, self.ratio, None)
        return VectorStart(self.run, epoch, theta, scalars_of(self.learner._space))

    def mix(self, updates: Sequence[VectorUpdate]) -> None:
        """Let the space be the mixture, summed in the order of the shards."""
        space, shares = self.learner._space, self._shares(updates)
        # The sum of the shares times the ratios, and 1 where all of these are.
        ratio = 1.0 + sum(
            share * (each.theta.ratio - 1.0) for share, each in zip(shares, updates, strict=True)
        )
        total = multiplied(self.theta, ratio, np.float64)
        for share, each in zip(shares, updates, strict=True):
            each.theta.add_to(total, self.theta, share)
        trials = space.trials + sum(each.trials for each in updates)
        sums, mixed = self._held(self._summed(updates)), self._held(total)
        self.earlier, self.theta, self.ratio = self.theta, mixed, ratio
        space.place_dual(mixed)
        take_sums(space, sums, trials)
        for name, values in self._scalars(updates, shares).items():
            space.per_label(name)[:] = values

    def _held(self, values: Any) -> np.ndarray:
        """The same in the type of the coordinates.

        Raises
        ------
        ValueError
            If it can't hold them.
        """
        with np.errstate(over="ignore"):
            held = np.asarray(values).astype(self.theta.dtype)
        if not np.isfinite(held).all():
            raise ValueError(f"The mixture exceeds {held.dtype}. Rescale rows, or pass float64.")
        return held

    def _shares(self, updates: Sequence[VectorUpdate]) -> np.ndarray:
        """Of each shard in the mixture of each vector, shape (n_shards, n_vectors)."""
        made = np.array([each.made for each in updates], dtype=np.float64)
        total = made.sum(axis=0)
        uniform = np.full(made.shape, 1.0 / len(updates))
        if self.mixing == "uniform":
            return uniform
        return np.divide(made, total, out=uniform, where=total > 0.0)

    def _summed(self, updates: Sequence[VectorUpdate]) -> Any:
        space = self.learner._space
        if not space.averaged:
            return 0.0
        base, one = without_scale(self.theta, space.p), np.ones(self.theta.shape[1])
        sums = [each.sums for each in updates if each.sums is not None]
        total = summed(space) + base * sum(each.ratio for each in sums)
        for each in sums:
            each.add_to(total, base, one)
        return total

    def _scalars(
        self, updates: Sequence[VectorUpdate], shares: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Of the mixture: the corrections go on from the largest count, so that no rate or margin
        that falls with them rises again."""
        by_name = {name: np.array([each.scalars[name] for each in updates]) for name in _SCALARS}
        return {
            "corrections": by_name["corrections"].max(axis=0),
            "largest": by_name["largest"].max(axis=0),
            "mass": (shares * by_name["mass"]).sum(axis=0),
            "bound": by_name["bound"].min(axis=0),
        }
