"""Mixing: for first-order models the dual vectors of the shards are averaged; for the Higher- and
the Second-order Perceptron the shards' mistakes are combined.

The average is that of theta, not of w. For p > 2 an average of weights is not the link of any
average of dual vectors. ``||.||_p**2 / 2`` is convex in theta, so the distance of a mixture to
the target, in the measure used in the proofs, is at most the average distance of the shards.

If coordinates have variances, each shard updates the same prior to a posterior, and the product of
the posteriors combines them. But shards correct the same errors, so their evidence is not
independent, and the product is too confident. Therefore the evidence of n shards for a coordinate
counts like that of n ** (1/4) shards: each likelihood is raised to the power n ** (-3/4), as in
generalized Bayes. Coordinates that only one shard has changed are not affected. The exponent was
found by experiment.

The state of the matrix Perceptrons is a function of the rows of their mistakes. So these rows are
sent, and the mixture applies the mistakes of one shard after the other, as if one Perceptron had
made them. For the Second-order Perceptron, ``a I + S S^T`` and ``v`` are sums over them.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from threading import Lock
from typing import Any, Literal, Self

import numpy as np

from sparsemargin._engine.first_order.linear_space import LinearSpace
from sparsemargin._engine.first_order.vector_blocks import how_of, task_of
from sparsemargin._engine.fitting.epochs import learn_once
from sparsemargin._engine.fitting.progressive import ProgressiveOutputs, storing_outputs
from sparsemargin._engine.fitting.task import Task
from sparsemargin._engine.matrix.spaces import FeatureSpaces
from sparsemargin._engine.rows.columns import union
from sparsemargin._engine.rows.csr import Csr
from sparsemargin._engine.rows.parts import rows_at
from sparsemargin.distributed._schema import Mixture
from sparsemargin.models import Learner
from sparsemargin.streaming.label_order import LabelOrder

Mixing = Literal["auto", "ring", "uniform", "errors"]

#: A part of the rows of a shard: its index, and the number of parts.
Part = tuple[int, int]

# The changes of n shards to a coordinate count like this power of n independent shards.
_AS_MANY = 0.25

# Number of fits whose mixtures are kept in a process.
_FITS_HELD = 2

# Numbers of a vector that are sent with it: the count of corrections, the largest norm among them,
# the sum of the multipliers of its rows, and the smallest bound on the margin.
_SCALARS = "corrections", "largest", "mass", "bound"


@dataclass(frozen=True)
class Update:
    """The result of an epoch, or of a part of it, on a shard."""

    learned: Any  # input of the mixer
    trials: int
    corrections: np.ndarray  # of this part, shape (n_vectors,)
    mistakes: int | None  # rows predicted wrongly before their trial, if known
    rows_by_class: np.ndarray  # rows without and with each class, shape (2, n_classes)
    label_order: LabelOrder  # of rows that were not shuffled
    # Outputs of rows before their first trial; None if they are not kept.
    progress: ProgressiveOutputs | None = None


class SingleEpoch:
    """An epoch on the only shard. There is nothing to mix; the space is sent as it stands, so that
    the result is exact."""

    #: True if its space has only the coordinates of its rows.
    narrows = False

    def __init__(self, learner: Learner, start: Any) -> None:
        self.space = learner.fitted.space = deepcopy(start)

    def learn(self, learner: Learner, task: Task, order: np.ndarray | None) -> int | None:
        """Train on a block of rows, see `Learner.learn_stream`."""
        return learner.learn_stream(task, order)

    def learned(self) -> Any:
        """The result for the mixer."""
        return self.space

    def kept(self, progress: ProgressiveOutputs) -> ProgressiveOutputs:
        """The kept outputs in the form that is sent."""
        return progress


class SingleMixer:
    """Makes the space of the only shard that of the mixture."""

    epoch_type: type[Any] = SingleEpoch

    def __init__(self, mixture: Mixture, n_shards: int, mixes: int) -> None:
        self.mixture, self.n_shards = mixture, n_shards
        #: Number of mixtures, or other synchronizations, per epoch.
        self.n_parts = mixes

    def rows_of(self, part: int) -> Part:
        """The rows of each shard that are used in a part of an epoch."""
        return part, self.n_parts

    def take(self, space: Any) -> None:
        """Start from a space like that of the mixture, possibly with more features."""
        self.mixture.space = space

    def starts(self, part: int, whole: bool = False) -> list[Any]:
        """The start of each shard for this part of an epoch; `whole`: without relying on its
        caches."""
        return [self.mixture.space] * self.n_shards

    def mix(self, part: int, updates: Sequence[Update]) -> None:
        """Mix the results of the shards, in their order."""
        self.mixture.space = updates[0].learned

    def settle(self) -> None:
        """Copy the mixture to the space, after an epoch."""

    def kept(self, progress: Sequence[ProgressiveOutputs], n_places: int) -> ProgressiveOutputs:
        """Merge the outputs kept in the first epoch: ordered by part, and by shard within a
        part."""
        return ProgressiveOutputs.merged(progress, n_places, self.n_parts)


@dataclass(frozen=True)
class Change:
    """An array of shape (n_coordinates, n_vectors), as its differences to an array that the
    receiver has, after multiplying each vector of that array by a ratio."""

    ratio: np.ndarray  # of shape (n_vectors,)
    indices: Any  # sorted flat indices, int32 or int64; None: all
    values: np.ndarray  # values at the indices

    @classmethod
    def of(cls, array: np.ndarray, where: np.ndarray, ratio: Any = 1.0) -> Self:
        """The more compact form; `where` is true where the array differs from the other array times
        the ratio."""
        indices = np.flatnonzero(where)
        ratios = np.broadcast_to(ratio, array.shape[1]).astype(np.float64)
        return cls.at(indices, array.ravel()[indices], array, ratios)

    @classmethod
    def at(cls, indices: np.ndarray, values: np.ndarray, array: np.ndarray, ratio: Any) -> Self:
        """The more compact form for an array with these values at the indices."""
        kind = np.dtype(np.int32 if array.size <= np.iinfo(np.int32).max else np.int64)
        if len(indices) * (kind.itemsize + array.itemsize) >= array.nbytes:
            return cls(ratio, None, array.ravel().copy())
        return cls(ratio, indices.astype(kind, copy=False), values)

    def applied(self, array: np.ndarray) -> np.ndarray:
        """Apply the change to the array, in place if all ratios are 1."""
        array = multiplied(array, self.ratio, array.dtype)
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
    # With variances: the increases of the precisions. Then `theta` has the steps times the
    # precisions.
    gains: Change | None = None


def multiplied(array: np.ndarray, ratio: np.ndarray, dtype: Any) -> np.ndarray:
    """Each vector times its ratio, in that dtype; the array itself if nothing changes."""
    if (ratio == 1.0).all():
        return array.astype(dtype, copy=False)
    with np.errstate(over="ignore"):
        return (array * ratio).astype(dtype)


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


class Held:
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
            if len(self._of_fits) > _FITS_HELD:
                self._of_fits.popitem(last=False)
            return theta[at], None if variances is None else variances[at]


HELD = Held()


class VectorEpoch(SingleEpoch):
    """Training on rows of one of several shards, starting from the mixture's dual vectors. The
    space has the coordinates of the rows, and one more, which stands for all others and is 0 in the
    rows."""

    narrows = True

    def __init__(self, learner: Learner, start: Vectors, at: np.ndarray) -> None:
        self.space = space = learner.space
        self.exponent, n_others = start.exponent, space.n_vectors // len(start.power)
        # In a joint model, each class has a coordinate for every feature.
        self.at = (at[:, np.newaxis] * n_others + np.arange(n_others)).ravel()
        last = len(self.at) - n_others * bool(space.bias)
        self.others, self.n_numbers = slice(last, last + n_others), prod(start.shape)
        theta, variances = HELD.at(start, self.at)
        p = space.p
        # Without other coordinates, the value is too small to change a norm, but shows the ratio.
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
        moved = after != multiplied(self.theta, ratio, self.theta.dtype)
        sums, theta = self._sums(moved) if space.averaged else None, after
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
            known = base[other].astype(np.float64)
            factor = np.divide(sums[other], known, out=np.zeros(len(known)), where=known != 0.0)
            sums = sums.astype(self.theta.dtype)
        told = np.isfinite(factor)
        return self._changes(moved | ~told, np.where(told, factor, 0.0), sums)[0]


class VectorMixer(SingleMixer):
    """Averages the dual vectors of the shards, with equal weights, or for each vector with weights
    proportional to its corrections. The time is proportional to the changes, except for averages,
    whose sums change for all weights."""

    epoch_type: type[Any] = VectorEpoch

    def __init__(self, mixture: Mixture, n_shards: int, mixes: int, mixing: Mixing) -> None:
        super().__init__(mixture, n_shards, mixes)
        self.mixing, self.fit = mixing, secrets.token_hex(8)

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
        held = self.variances
        variances = None if held is None else Change.of(held, held != 0.0)
        return Change.of(self.theta, self.theta != 0.0), variances

    def starts(self, part: int, whole: bool = False) -> list[Any]:
        theta, n_vectors = self.theta, self.theta.shape[1]
        # With variances, norms are not needed.
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
        shares, p = self._shares(updates), self.mixture.space.p
        learned = [each.learned for each in updates]
        if self.sums is not None:
            base = (
                self.theta if p == 2.0 else without_scale(self.theta, p, exponents_of(self.theta))
            )
            self.sums = self._summed(self.sums, learned, base)
        self.trials += sum(each.trials for each in updates)
        self.scalars = _mixed_scalars(shares, learned)
        self.changes = self._mixed(learned, shares)
        self.number += 1

    def settle(self) -> None:
        space = self.mixture.space
        space.set_dual(self.theta)
        space.take_sums(0.0 if self.sums is None else self.sums, self.trials)
        take_scalars(space, self.scalars)
        if self.variances is not None:
            space.of_vectors(space.variances)[...] = self.variances

    def _mixed(
        self, learned: Sequence[Learned], shares: np.ndarray
    ) -> tuple[Change, Change | None]:
        """Set theta, and the variances, to the mixture; return the changes."""
        theta, variances, n_vectors = self.theta, self.variances, self.theta.shape[1]
        parts = [each.theta.indices for each in learned]
        touched, position = union(theta.size, parts, sum(map(len, parts)))
        touched, places = touched.astype(parts[0].dtype), list(map(position, parts))
        old = theta.ravel()[touched].astype(np.float64)
        if variances is None:
            ratio = 1.0 + sum(
                share * (each.theta.ratio - 1.0)
                for share, each in zip(shares, learned, strict=True)
            )
            new = old * ratio[touched % n_vectors]
            _add(new, places, [each.theta for each in learned], shares, old)
            self.theta = theta = multiplied(theta, ratio, theta.dtype)
            theta.ravel()[touched] = _held(new, theta.dtype)
            return Change.at(touched, theta.ravel()[touched], theta, ratio), None
        evidence, added, times = np.zeros(len(old)), np.zeros(len(old)), len(learned) * shares
        _add(evidence, places, [each.theta for each in learned], times)
        _add(added, places, [each.gains for each in learned], times)
        n_shards = np.bincount(np.concatenate(places), minlength=len(touched))
        tempered = np.maximum(n_shards, 1) ** (_AS_MANY - 1.0)
        held = variances.ravel()[touched].astype(np.float64)
        precisions = np.divide(1.0, held, out=np.ones(len(held)), where=held > 0.0)
        precisions += tempered * added
        held = np.maximum(1.0 / precisions, np.finfo(theta.dtype).tiny)  # 0 stands for 1
        variances.ravel()[touched] = held
        theta.ravel()[touched] = _held(old + tempered * evidence / precisions, theta.dtype)
        return tuple(  # type: ignore[return-value]
            Change.at(touched, each.ravel()[touched], each, np.ones(n_vectors))
            for each in (theta, variances)
        )

    def _summed(self, sums: np.ndarray, learned: Sequence[Learned], base: np.ndarray) -> np.ndarray:
        """The sums of all hypotheses so far."""
        told = [each.sums for each in learned if each.sums is not None]
        total: np.ndarray = sums + base * sum(each.ratio for each in told)
        for each in told:
            known = each.ratio[each.indices % base.shape[1]] * base.ravel()[each.indices]
            total.ravel()[each.indices] += each.values.astype(np.float64) - known
        return _held(total, self.theta.dtype)

    def _shares(self, updates: Sequence[Update]) -> np.ndarray:
        """Weight of each shard in the mixture of each vector, shape (n_shards, n_vectors)."""
        made = np.array([each.corrections for each in updates], dtype=np.float64)
        total = made.sum(axis=0)
        uniform = np.full(made.shape, 1.0 / len(updates))
        if self.mixing != "errors":
            return uniform
        return np.divide(made, total, out=uniform, where=total > 0.0)


def _add(
    total: np.ndarray, places: Sequence[np.ndarray], changes: Sequence[Any], shares: np.ndarray,
    known: np.ndarray | None = None,
) -> None:  # fmt: skip
    """Add the changes times their shares to the totals at their places. The known values, times the
    ratio of a change, are subtracted before."""
    for share, place, each in zip(shares, places, changes, strict=True):
        vector = each.indices % len(share) if len(share) > 1 else 0
        values = each.values.astype(np.float64)
        if known is not None:
            values -= each.ratio[vector] * known[place]
        total[place] += share[vector] * values


def _held(values: Any, dtype: Any) -> np.ndarray:
    """The values in the dtype of the coordinates; ValueError if they overflow."""
    held = np.asarray(values).astype(dtype)
    if not np.isfinite(held).all():
        raise ValueError(f"The mixture exceeds {held.dtype}. Rescale rows, or pass float64.")
    return held


def _mixed_scalars(shares: np.ndarray, learned: Sequence[Learned]) -> dict[str, np.ndarray]:
    """The numbers of the mixed vectors. Corrections continue from the largest count, so that rates
    and margins that decrease with the count do not increase again."""
    by_name = {name: np.array([each.scalars[name] for each in learned]) for name in _SCALARS}
    # Masses may be infinite where shares are 0.
    mass = np.multiply(shares, by_name["mass"], out=np.zeros(shares.shape), where=shares > 0.0)
    return {
        "corrections": by_name["corrections"].max(axis=0),
        "largest": by_name["largest"].max(axis=0),
        "mass": mass.sum(axis=0),
        "bound": by_name["bound"].min(axis=0),
    }


@dataclass(frozen=True)
class Visit:
    """The vectors first..last-1 while they visit a shard."""

    first: int
    last: int
    space: LinearSpace  # of these vectors only


class RingEpoch(SingleEpoch):
    """Training of the visiting vectors on all rows of a shard."""

    def __init__(self, learner: Learner, start: Visit) -> None:
        self.start = start
        self.space = learner.fitted.space = deepcopy(start.space)

    def learn(self, learner: Learner, task: Task, order: np.ndarray | None) -> None:
        """See `Learner.learn_stream`; for these vectors only."""
        fitted, labels = learner.fitted, (self.start.first, self.start.last)
        lone = len(fitted.classes) == 2 and not fitted.many
        with storing_outputs(task, self.space):
            mine = task if lone else task_of(task, task.rows, *labels)
            learn_once(learner.loop(mine), order)
        fitted.count_classes(task)

    def learned(self) -> LinearSpace:
        return self.space

    def kept(self, progress: ProgressiveOutputs) -> ProgressiveOutputs:
        return progress.of_vectors(self.start.first, self.start.last)


class RingMixer(SingleMixer):
    """Moves the vectors from shard to shard, such that each shard has different vectors at any
    time. There is nothing to average: a vector equals that of one machine that has the rows of the
    shards one after the other, starting with the shard where the vector begins."""

    epoch_type: type[Any] = RingEpoch

    def __init__(self, mixture: Mixture, n_shards: int) -> None:
        super().__init__(mixture, n_shards, n_shards)

    def rows_of(self, part: int) -> Part:
        return 0, 1

    def take(self, space: LinearSpace) -> None:
        super().take(space)
        self.spaces: list[tuple[int, int, LinearSpace] | None] = [None] * self.n_shards
        cuts = np.linspace(0, space.n_vectors, self.n_shards + 1).astype(int)
        for i, (first, last) in enumerate(pairwise(cuts.tolist())):
            if first == last:
                continue
            own = LinearSpace(
                space.n_features, last - first, space.p, space.t.dtype, log=None, **how_of(space)
            )
            own.take_vectors(space, slice(first, last), slice(0, last - first))
            self.spaces[i] = first, last, own

    def starts(self, part: int, whole: bool = False) -> list[Any]:
        of_shards = [self.spaces[(s - part) % self.n_shards] for s in range(self.n_shards)]
        return [None if each is None else Visit(*each) for each in of_shards]

    def mix(self, part: int, updates: Sequence[Update]) -> None:
        for s, update in enumerate(updates):
            i = (s - part) % self.n_shards
            if (labels := self.spaces[i]) is not None:
                self.spaces[i] = *labels[:2], update.learned

    def settle(self) -> None:
        space = self.mixture.space
        for first, last, own in filter(None, self.spaces):
            space.take_vectors(own, slice(0, last - first), slice(first, last))

    def kept(self, progress: Sequence[ProgressiveOutputs], n_places: int) -> ProgressiveOutputs:
        # All vectors that visit a shard keep the outputs of the same rows.
        n, met = self.n_shards, [i for i in range(self.n_shards) if self.spaces[i] is not None]
        which = iter(progress)
        at = {
            (s, (s - part) % n): next(which)
            for part in range(n) for s in range(n) if (s - part) % n in met
        }  # fmt: skip
        whole = [ProgressiveOutputs.beside([at[s, i] for i in met]) for s in range(n)]
        return ProgressiveOutputs.merged(whole, n_places)


@dataclass(frozen=True)
class Mistakes:
    """The mistakes of one vector on a block of rows, in order; arrays of shape (n_mistakes,)."""

    which: np.ndarray  # indices into the rows that are sent with them, int64
    steps: np.ndarray  # float64, with the signs of the labels
    numbers: np.ndarray  # of the rows in the shard, int64


@dataclass(frozen=True)
class ShardMistakes:
    """The result of an epoch of a matrix Perceptron on a shard."""

    # For each block, the rows with mistakes of any vector, and the mistakes of each vector.
    blocks: list[tuple[Csr, list[Mistakes]]]
    # Sums of the hypotheses over the trials, shape (n_coordinates, n_vectors); None without
    # averaging.
    sums: Change | None


class MistakesEpoch(SingleEpoch):
    """An epoch on one of several shards, starting from the mixture's space.

    The space is sent. The rows that determine it would have fewer bytes, but repeating the training
    on them would take longer than sending the rest.
    """

    def __init__(self, learner: Learner, start: FeatureSpaces) -> None:
        super().__init__(learner, start)
        self.averaged = learner.hypothesis == "average"
        self.space.take_sums(np.zeros_like(self.space.summed()), 0)
        self.noted = self.space.per_vector("corrections")
        self.blocks: list[tuple[Csr, list[Mistakes]]] = []

    def learn(self, learner: Learner, task: Task, order: np.ndarray | None) -> int | None:
        mistakes = super().learn(learner, task, order)
        self._note(task)
        return mistakes

    def _note(self, task: Task) -> None:
        """Record the mistakes of a block after training on it."""
        first = self.space.first_row_of(task)
        found = [
            space.mistaken_since(noted) - first
            for space, noted in zip(self.space.spaces, self.noted, strict=True)
        ]
        self.noted = self.space.per_vector("corrections")
        mistaken = np.unique(np.concatenate(found))
        by_vector = []
        for vector, rows in enumerate(found):
            which = np.searchsorted(mistaken, rows)
            steps = task.steps(vector, self.space.n_vectors, rows)
            by_vector.append(Mistakes(which, steps, rows + first))
        self.blocks.append((rows_at(task.rows, mistaken), by_vector))

    def learned(self) -> ShardMistakes:
        sums = self.space.summed().T if self.averaged else None
        change = None if sums is None else Change.of(sums, sums != 0.0)
        return ShardMistakes(self.blocks, change)


class MistakesMixer(SingleMixer):
    """Applies the mistakes of all shards to the mixture, given the numbers of their first rows."""

    epoch_type = MistakesEpoch

    def __init__(self, mixture: Mixture, first_rows: Sequence[int]) -> None:
        super().__init__(mixture, len(first_rows), 1)
        self.first_rows = first_rows

    def mix(self, part: int, updates: Sequence[Update]) -> None:
        space = self.mixture.space
        sums, trials = space.summed(), space.trials
        space.take_sums(np.zeros_like(sums), 0)
        for update, first_row in zip(updates, self.first_rows, strict=True):
            for rows, by_vector in update.learned.blocks:
                for vector, made in enumerate(by_vector):
                    space.absorb(vector, rows, made.which, made.steps, made.numbers + first_row)
            if update.learned.sums is not None:
                sums += update.learned.sums.applied(np.zeros_like(sums.T)).T
        space.take_sums(sums, trials + sum(update.trials for update in updates))
