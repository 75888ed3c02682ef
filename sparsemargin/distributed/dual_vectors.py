"""Mixing of first-order models: the dual vectors of the shards are averaged.

The average is that of theta, not of w. For p > 2 an average of weights is not the link of any
average of dual vectors. ``||.||_p**2 / 2`` is convex in theta, so the distance of a mixture to
the target, in the measure used in the proofs, is at most the average distance of the shards.

If coordinates have variances, each shard updates the same prior to a posterior, and the product of
the posteriors combines them. But shards correct the same errors, so their evidence is not
independent, and the product is too confident. Therefore the evidence of n shards for a coordinate
counts like that of n ** (1/4) shards: each likelihood is raised to the power n ** (-3/4), as in
generalized Bayes. Coordinates that only one shard has changed are not affected. The exponent was
found by experiment.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from threading import Lock
from typing import Any, Self

import numpy as np

from sparsemargin._engine.first_order.linear_space import LinearSpace
from sparsemargin._engine.rows.columns import union
from sparsemargin.distributed.mixing import Mixer, Mixture, ShardEpoch, Update
from sparsemargin.models import Learner

# If n shards change the variance of a coordinate, the sum of their gains is weighted like the gains
# of n**_AS_MANY independent shards.
_AS_MANY = 0.25

# Largest number of fits whose mixtures a worker process keeps in memory.
_MOST_FITS = 2

# Numbers that are sent with each vector: the number of corrections, the largest norm of a corrected
# row, the sum of the multipliers of the rows, and the smallest bound on the margin.
_SCALARS = "corrections", "largest", "mass", "bound"


@dataclass(frozen=True)
class Change:
    """An array of shape (n_coordinates, n_vectors), as its differences to an array that the
    receiver has, after multiplying each vector of that array by a ratio."""

    ratio: np.ndarray  # shape (n_vectors,)
    indices: Any  # sorted flat indices, int32 or int64; None: all
    values: np.ndarray  # values at the indices

    @classmethod
    def of(cls, array: np.ndarray) -> Self:
        """The change from an array of zeros."""
        indices = np.flatnonzero(array)
        return cls.at(indices, array.ravel()[indices], array, np.ones(array.shape[1]))

    @classmethod
    def at(
        cls, indices: np.ndarray, values: np.ndarray, array: np.ndarray, ratio: np.ndarray
    ) -> Self:
        """The more compact form for an array with these values at the indices."""
        kind = np.dtype(np.int32 if array.size <= np.iinfo(np.int32).max else np.int64)
        if len(indices) * (kind.itemsize + array.itemsize) >= array.nbytes:
            return cls(ratio, None, array.ravel().copy())
        return cls(ratio, indices.astype(kind, copy=False), values)

    def applied(self, array: np.ndarray) -> np.ndarray:
        """Apply the change to the array, in place if all ratios are 1."""
        array = multiplied(array, self.ratio)
        array.ravel()[slice(None) if self.indices is None else self.indices] = self.values
        return array


@dataclass(frozen=True)
class Vectors:
    """A mixture in the form sent to shards: the changes since the previous one, or (whole) since
    all was 0."""

    fit: str
    number: int
    whole: bool
    shape: tuple[int, ...]  # (n_coordinates, n_vectors)
    theta: Change
    variances: Change | None  # if coordinates have variances; 0 stands for 1
    scalars: dict[str, np.ndarray]  # each of shape (n_vectors,)
    # Powers of 2 near the largest coordinates, and the sums of the p-th powers of all coordinates
    # divided by these; shape (n_vectors,).
    exponent: np.ndarray
    power: np.ndarray


@dataclass(frozen=True)
class Learned:
    """The result of a shard, on the coordinates that its rows have changed. For all other
    coordinates, theta is multiplied by a ratio, and the sums are a factor times the weights without
    their scale."""

    theta: Change
    sums: Change | None  # sums of the hypotheses over the trials; None: not averaged
    scalars: dict[str, np.ndarray]
    # Increases of the precisions if coordinates have variances; `theta` then has the steps times
    # the precisions.
    gains: Change | None = None


def multiplied(array: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """Each vector times its ratio; the array itself if nothing changes."""
    if (ratio == 1.0).all():
        return array
    with np.errstate(over="ignore"):
        return (array * ratio).astype(array.dtype)


def without_scale(theta: np.ndarray, p: float, exponent: np.ndarray) -> np.ndarray:
    """The weights of the dual vectors up to a factor for each vector, p > 2."""
    # The largest coordinate is scaled to about 1, so that the powers stay within range.
    return np.copysign(np.ldexp(np.abs(theta), -exponent) ** (p - 1.0), theta)


def exponents_of(theta: np.ndarray) -> np.ndarray:
    return np.frexp(np.abs(theta).max(axis=0))[1]


def powers_of(theta: np.ndarray, p: float, exponent: np.ndarray) -> np.ndarray:
    """For each vector, the sum of the p-th powers of its coordinates divided by a power of 2."""
    return (np.ldexp(np.abs(theta, dtype=np.float64), -exponent) ** p).sum(axis=0)


def _theta_of(space: LinearSpace) -> np.ndarray:
    """The dual vectors in the dtype of the coordinates, shape (n_coordinates, n_vectors)."""
    with np.errstate(over="ignore"):
        return (space.of_vectors(space.t) * space.vectors["scale"]).astype(space.t.dtype)


def scalars_of(space: LinearSpace) -> dict[str, np.ndarray]:
    return {name: space.per_vector(name).copy() for name in _SCALARS}


def take_scalars(space: LinearSpace, scalars: dict[str, np.ndarray]) -> None:
    for name, values in scalars.items():
        space.per_vector(name)[:] = values


class UnknownMixture(Exception):
    """This process does not have the mixture that a change refers to."""


class MixtureCache:
    """The latest mixtures of the latest fits, as received by this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._of_fits: OrderedDict[str, tuple[int, np.ndarray, np.ndarray | None]] = OrderedDict()

    def at(self, start: Vectors, at: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """These coordinates of the mixture: theta and variances. `UnknownMixture` if the process
        does not have the mixture that the change refers to."""
        with self._lock:
            number, theta, variances = self._of_fits.pop(start.fit, (-1, None, None))
            if start.whole:
                theta = np.zeros(start.shape, start.theta.values.dtype)
                variances = None if start.variances is None else np.zeros_like(theta)
            elif theta is None or number not in (start.number - 1, start.number):
                raise UnknownMixture
            if start.whole or number != start.number:
                theta = start.theta.applied(theta)
                if variances is not None and start.variances is not None:
                    variances = start.variances.applied(variances)
            self._of_fits[start.fit] = start.number, theta, variances
            if len(self._of_fits) > _MOST_FITS:
                self._of_fits.popitem(last=False)
            return theta[at], None if variances is None else variances[at]


MIXTURES = MixtureCache()


class VectorEpoch(ShardEpoch):
    """Training on rows of one of several shards, starting from the mixture's dual vectors. The
    space has the coordinates of the rows, and one more, which stands for all others and is 0 in the
    rows."""

    narrows = True

    def __init__(self, learner: Learner, start: Vectors, at: np.ndarray) -> None:
        self.space = space = learner.space
        self.exponent, n_others = start.exponent, space.n_vectors // len(start.power)
        # A joint model has a coordinate for each feature and class.
        self.at = (at[:, np.newaxis] * n_others + np.arange(n_others)).ravel()
        last = len(self.at) - n_others * bool(space.bias)
        self.others, self.n_numbers = slice(last, last + n_others), prod(start.shape)
        theta, variances = MIXTURES.at(start, self.at)
        p = space.p
        # Without other coordinates, the value is too small to change a norm. It is not 0, so that
        # it shows the factor by which training has scaled the vector.
        left = start.power - (0.0 if space.adaptive else powers_of(theta, p, start.exponent))
        left = np.maximum(left, start.power * 2.0**-56) ** (1.0 / p)
        self.theta = self._with_others(theta, np.ldexp(left, start.exponent))
        self.space.set_dual(self.theta)
        self.began = self.space.per_vector("scale").copy(), self.space.per_vector("shift").copy()
        self.space.take_sums(0.0, 0)
        take_scalars(self.space, start.scalars)
        if variances is not None:
            space.of_vectors(space.variances)[...] = self._with_others(variances, 0.0)
            self.gains = self.space.of_vectors(self.space.gain)

    def _with_others(self, array: np.ndarray, value: Any) -> np.ndarray:
        """The array of the rows' coordinates, with `value` for the coordinate of all others."""
        first, last = self.others.start, self.others.stop
        others = np.zeros((last - first, array.shape[1]), array.dtype)
        others[0] = value
        return np.concatenate([array[:first], others, array[first:]])

    def _changes(self, where: Any, ratio: np.ndarray, *arrays: np.ndarray) -> list[Change]:
        """The changes of the arrays where they differ from the mixture times the ratio. They share
        the same object of indices, which is therefore sent only once."""
        where = np.delete(where, self.others, axis=0)
        place, vector = np.nonzero(where)
        kind = np.int32 if self.n_numbers <= 2**31 else np.int64
        indices = self.at[place].astype(kind) * where.shape[1] + vector.astype(kind)
        kept = (np.delete(each, self.others, axis=0)[where] for each in arrays)
        return [Change(ratio, indices, values) for values in kept]

    def learned(self) -> Learned:
        space, after, ratio = self.space, _theta_of(self.space), self._ratio()
        moved = after != multiplied(self.theta, ratio)
        sums = self._sums(moved) if space.averaged else None
        if not space.adaptive:
            (change,) = self._changes(moved, ratio, after)
            return Learned(change, sums, scalars_of(space))
        gains = space.of_vectors(space.gain)
        theta = np.subtract(after, self.theta, dtype=np.float64)
        theta *= 1.0 + gains
        gains -= self.gains
        steps, more = self._changes(gains != 0.0, ratio, theta, gains.astype(after.dtype))
        return Learned(steps, sums, scalars_of(space), more)

    def _ratio(self) -> np.ndarray:
        """The factor of each vector, as seen on coordinates that no row has changed."""
        scale, shift = self.began
        per_vector = self.space.per_vector
        ratio = np.ldexp(per_vector("scale") / scale, per_vector("shift") - shift)
        return np.where(np.isfinite(ratio), ratio, 1.0)

    def _sums(self, moved: np.ndarray) -> Change:
        space, other = self.space, self.others.start
        base, sums = self.theta, space.summed()
        if space.p != 2.0:
            base = without_scale(base, space.p, self.exponent)
        moved = moved | (space.of_vectors(space.acc) != 0) | (space.of_vectors(space.synced) != 0)
        with np.errstate(over="ignore"):
            weights = base[other].astype(np.float64)
            factor = np.zeros(len(weights))
            np.divide(sums[other], weights, out=factor, where=weights != 0.0)
            sums = sums.astype(self.theta.dtype)
        known = np.isfinite(factor)
        return self._changes(moved | ~known, np.where(known, factor, 0.0), sums)[0]


class VectorMixer(Mixer):
    """Averages the dual vectors of the shards. The time is proportional to the changes, except for
    averages, whose sums change for all weights."""

    epoch_type: type[Any] = VectorEpoch

    def __init__(self, mixture: Mixture, n_shards: int, mixes: int) -> None:
        super().__init__(mixture, n_shards, mixes)
        self.fit = secrets.token_hex(8)

    def take(self, space: LinearSpace) -> None:
        theta, own = _theta_of(space), self.mixture.space
        at: Any = slice(None)
        if len(theta) > len(own.t):
            at = self.mixture.places(len(theta) // (space.n_features + bool(space.bias)))
        self.theta, self.scalars, self.trials = theta[at], scalars_of(space), space.trials
        self.sums = space.summed()[at].astype(theta.dtype) if space.averaged else None
        self.variances = space.of_vectors(space.variances)[at].copy() if space.adaptive else None
        self.number, self.changes = 0, self._all()

    def _all(self) -> tuple[Change, Change | None]:
        """The changes since all was 0."""
        variances = None if self.variances is None else Change.of(self.variances)
        return Change.of(self.theta), variances

    def starts(self, part: int, whole: bool = False) -> list[Any]:
        theta, n_vectors = self.theta, self.theta.shape[1]
        # Rules with variances do not need norms.
        exponent, power = np.zeros(n_vectors, int), np.ones(n_vectors)
        if self.variances is None:
            exponent = exponents_of(theta)
            power = powers_of(theta, self.mixture.space.p, exponent)
        start = Vectors(
            self.fit, self.number, whole or self.number == 0, theta.shape,
            *(self._all() if whole else self.changes), self.scalars, exponent, power,
        )  # fmt: skip
        return [start] * self.n_shards

    @np.errstate(over="ignore", invalid="ignore")  # overflow is detected later
    def mix(self, part: int, updates: Sequence[Update]) -> None:
        p = self.mixture.space.p
        learned = [each.learned for each in updates]
        if self.sums is not None:
            base = self.theta
            if p != 2.0:
                base = without_scale(base, p, exponents_of(base))
            self.sums = self._summed(self.sums, learned, base)
        self.trials += sum(each.trials for each in updates)
        self.scalars = _mixed_scalars(learned)
        self.changes = self._mixed(learned)
        self.number += 1

    def store(self) -> None:
        space = self.mixture.space
        space.set_dual(self.theta)
        space.take_sums(0.0 if self.sums is None else self.sums, self.trials)
        take_scalars(space, self.scalars)
        if self.variances is not None:
            space.of_vectors(space.variances)[...] = self.variances

    def _mixed(self, learned: Sequence[Learned]) -> tuple[Change, Change | None]:
        """Set theta, and the variances, to the mixture; return the changes."""
        theta, variances, n_vectors = self.theta, self.variances, self.theta.shape[1]
        parts = [each.theta.indices for each in learned]
        touched, position = union(theta.size, parts, sum(map(len, parts)))
        touched, places = touched.astype(parts[0].dtype), list(map(position, parts))
        old = theta.ravel()[touched].astype(np.float64)
        if variances is None:
            share = 1.0 / len(learned)
            changed = (share * (each.theta.ratio - 1.0) for each in learned)
            ratio = 1.0 + sum(changed, np.zeros(n_vectors))
            new = old * ratio[touched % n_vectors]
            _add(new, places, [each.theta for each in learned], share, old)
            self.theta = theta = multiplied(theta, ratio)
            theta.ravel()[touched] = _in_dtype(new, theta.dtype)
            return Change.at(touched, theta.ravel()[touched], theta, ratio), None
        evidence, added = np.zeros(len(old)), np.zeros(len(old))
        _add(evidence, places, [each.theta for each in learned])
        _add(added, places, [each.gains for each in learned])
        n_shards = np.bincount(np.concatenate(places), minlength=len(touched))
        tempered = np.maximum(n_shards, 1) ** (_AS_MANY - 1.0)
        held = variances.ravel()[touched].astype(np.float64)
        precisions = np.divide(1.0, held, out=np.ones(len(held)), where=held > 0.0)
        precisions += tempered * added
        held = np.maximum(1.0 / precisions, np.finfo(theta.dtype).tiny)  # 0 stands for 1
        variances.ravel()[touched] = held
        theta.ravel()[touched] = _in_dtype(old + tempered * evidence / precisions, theta.dtype)
        return tuple(  # type: ignore[return-value]
            Change.at(touched, each.ravel()[touched], each, np.ones(n_vectors))
            for each in (theta, variances)
        )

    def _summed(self, sums: np.ndarray, learned: Sequence[Learned], base: np.ndarray) -> np.ndarray:
        """The sums of all hypotheses so far."""
        changes = [each.sums for each in learned if each.sums is not None]
        total: np.ndarray = sums + base * sum(each.ratio for each in changes)
        for each in changes:
            known = each.ratio[each.indices % base.shape[1]] * base.ravel()[each.indices]
            total.ravel()[each.indices] += each.values.astype(np.float64) - known
        return _in_dtype(total, self.theta.dtype)


def _add(
    total: np.ndarray, places: Sequence[np.ndarray], changes: Sequence[Any], share: float = 1.0,
    known: np.ndarray | None = None,
) -> None:  # fmt: skip
    """Add the changes times the share of a shard to the totals at their places. The known values,
    times the ratio of a change, are subtracted before."""
    for place, each in zip(places, changes, strict=True):
        values = each.values.astype(np.float64)
        if known is not None:
            values -= each.ratio[each.indices % len(each.ratio)] * known[place]
        total[place] += share * values


def _in_dtype(values: Any, dtype: Any) -> np.ndarray:
    """The values in the dtype of the coordinates; ValueError if they overflow."""
    converted = np.asarray(values).astype(dtype)
    if not np.isfinite(converted).all():
        raise ValueError(f"The mixture exceeds {converted.dtype}. Rescale rows, or pass float64.")
    return converted


def _mixed_scalars(learned: Sequence[Learned]) -> dict[str, np.ndarray]:
    """The numbers of the mixed vectors. Corrections continue from the largest count, so that rates
    and margins that decrease with the count do not increase again."""
    by_name = {name: np.array([each.scalars[name] for each in learned]) for name in _SCALARS}
    return {
        "corrections": by_name["corrections"].max(axis=0),
        "largest": by_name["largest"].max(axis=0),
        "mass": (1.0 / len(learned) * by_name["mass"]).sum(axis=0),
        "bound": by_name["bound"].min(axis=0),
    }
