"""Mixing: of first-order models the dual vectors of the shards are averaged, and of the Higher- and
the Second-order Perceptron the shards' mistakes are put together.

What is averaged is theta, not w: for p > 2 a mixture of the weights is the link of no mixture of
what the shards have learned, while ``||.||_p**2 / 2`` is convex in theta, so that no mixture is
further from the target, in the measure that the proofs count by, than the shards are on average.

Where coordinates have variances, each shard comes from one prior to a posterior, and the product of
these is what all of them tell. But shards correct the same errors: as independent as the product
takes them for they are not, and it overshoots. So what n shards have learned of a coordinate counts
as the evidence of n ** (1/4) shards: each likelihood is raised to the power n ** (-3/4), as in
generalized Bayes. Of a coordinate that one shard alone has learned of nothing is lost. The exponent
was found by trial.

What the others learn is a function of the rows of their mistakes. So the rows travel, and the
mixture is made of all mistakes of all shards, one shard's after the other's, as if one Perceptron
had made them: the Second-order one's matrix ``a I + S S^T`` and vector ``v`` are sums over them.
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

from sparsemargin._engine.first_order.label_blocks import how_of, task_of
from sparsemargin._engine.first_order.linear_space import LinearSpace
from sparsemargin._engine.fitting.epochs import learn_once
from sparsemargin._engine.fitting.progressive import ProgressiveOutputs, keeping
from sparsemargin._engine.fitting.task import Task
from sparsemargin._engine.matrix.spaces import LabelSpaces
from sparsemargin._engine.rows.columns import union
from sparsemargin._engine.rows.csr import Csr
from sparsemargin._engine.rows.parts import rows_at
from sparsemargin.distributed._schema import Mixture
from sparsemargin.io.label_order import LabelOrder
from sparsemargin.models import Learner

Mixing = Literal["auto", "ring", "uniform", "errors"]

#: One of the parts that a shard's rows are cut into, and how many there are.
Part = tuple[int, int]

# Where n shards have learned of a coordinate, they count as so high a power of n that had rows of
# their own.
_AS_MANY = 0.25

# Fits that a process keeps the mixtures of.
_FITS_HELD = 2

# What of a label goes along with its dual vector: the corrections it counts by, the largest norm
# among them, the sum of its rows' multipliers, and the least bound on the margin.
_SCALARS = "corrections", "largest", "mass", "bound"


@dataclass(frozen=True)
class Update:
    """What an epoch on a shard came to."""

    learned: Any  # what the mixer takes
    trials: int
    corrections: np.ndarray  # of this epoch, shape (n_labels,)
    mistakes: int | None  # rows predicted wrongly just before they were learned from, where known
    rows_by_class: np.ndarray  # rows without and with each class, shape (2, n_classes)
    label_order: LabelOrder  # of the rows, as far as they were not shuffled
    # What was said of rows before they were learned; None: that is not kept, or no longer.
    progress: ProgressiveOutputs | None = None


class SingleEpoch:
    """An epoch on the only shard: there is nothing to mix, and the space travels as it is, so that
    not a bit is lost."""

    #: Whether its space has the coordinates of its rows alone.
    narrows = False

    def __init__(self, learner: Learner, start: Any) -> None:
        self.space = learner._fitted.space = deepcopy(start)

    def learn(self, learner: Learner, task: Task, order: np.ndarray | None) -> int | None:
        """Learn a block of rows, as `Learner._learn_stream` does."""
        return learner._learn_stream(task, order)

    def learned(self) -> Any:
        """What the mixer is told in the end."""
        return self.space

    def kept(self, progress: ProgressiveOutputs) -> ProgressiveOutputs:
        """What is to be told of the outputs that were kept."""
        return progress


class SingleMixer:
    """Makes the space of the only shard that of the mixture."""

    epoch_type: type[Any] = SingleEpoch

    def __init__(self, mixture: Mixture, n_shards: int, mixes: int) -> None:
        self.mixture, self.n_shards = mixture, n_shards
        #: Mixtures of an epoch, or whatever else is done so many times.
        self.n_parts = mixes

    def rows_of(self, part: int) -> Part:
        """What rows of each shard are learned from: the part, and how many there are."""
        return part, self.n_parts

    def take(self, space: Any) -> None:
        """Go on from a space like that of the mixture, perhaps with more features."""
        self.mixture.space = space

    def starts(self, part: int, whole: bool = False) -> list[Any]:
        """What each shard begins this part of an epoch with; `whole`: whatever it knows."""
        return [self.mixture.space] * self.n_shards

    def mix(self, part: int, updates: Sequence[Update]) -> None:
        """Make the mixture of what the shards have learned, in their order."""
        self.mixture.space = updates[0].learned

    def settle(self) -> None:
        """Let the space be the mixture, after an epoch."""

    def kept(self, progress: Sequence[ProgressiveOutputs], n_places: int) -> ProgressiveOutputs:
        """What has been kept over the first epoch: of its parts, one after the other, each shard's
        in order."""
        return ProgressiveOutputs.merged(progress, n_places, self.n_parts)


@dataclass(frozen=True)
class Change:
    """An array of shape (n_coordinates, n_vectors), by where it differs from one that the receiver
    has, each vector of which is multiplied by a ratio."""

    ratio: np.ndarray  # of shape (n_vectors,)
    indices: Any  # an array, int32 or int64, rising, of the flat array; None: all
    values: np.ndarray  # what stands there

    @classmethod
    def of(cls, array: np.ndarray, where: np.ndarray, ratio: Any = 1.0) -> Self:
        """The shorter of the two forms, where `where` is what differs from the other array times
        the ratio."""
        indices = np.flatnonzero(where)
        ratios = np.broadcast_to(ratio, array.shape[1]).astype(np.float64)
        return cls.at(indices, array.ravel()[indices], array, ratios)

    @classmethod
    def at(cls, indices: np.ndarray, values: np.ndarray, array: np.ndarray, ratio: Any) -> Self:
        """The same of an array that has these values there."""
        kind = np.dtype(np.int32 if array.size <= np.iinfo(np.int32).max else np.int64)
        if len(indices) * (kind.itemsize + array.itemsize) >= array.nbytes:
            return cls(ratio, None, array.ravel().copy())
        return cls(ratio, indices.astype(kind, copy=False), values)

    def applied(self, array: np.ndarray) -> np.ndarray:
        """What the array becomes, in its place where nothing is multiplied."""
        array = multiplied(array, self.ratio, array.dtype)
        array.ravel()[slice(None) if self.indices is None else self.indices] = self.values
        return array


@dataclass(frozen=True)
class Vectors:
    """A mixture, as shards begin with it: what has changed since the one before, or (whole) since
    all was 0."""

    fit: str
    number: int
    whole: bool
    shape: tuple[int, ...]  # (n_coordinates, n_vectors)
    theta: Change
    variances: Change | None  # where coordinates have such; 0: still 1
    scalars: dict[str, np.ndarray]  # each of shape (n_vectors,)
    # Powers of 2 that are near the largest coordinates, and the sums of the p-th powers of all
    # coordinates over these; shape (n_vectors,).
    exponent: np.ndarray
    power: np.ndarray


@dataclass(frozen=True)
class Learned:
    """What a shard has learned from a mixture, where its rows have anything; of all other
    coordinates theta is multiplied by a ratio, and the sums are the weights, without their scale,
    times a factor."""

    theta: Change
    sums: Change | None  # of the hypotheses, each as often as it lasted; None: not averaged
    scalars: dict[str, np.ndarray]
    # Where coordinates have variances, what their precisions have grown by; theta is then told as
    # steps times precisions.
    gains: Change | None = None


def multiplied(array: np.ndarray, ratio: np.ndarray, dtype: Any) -> np.ndarray:
    """Each vector times its ratio, in that type; the array itself where that is the same."""
    if (ratio == 1.0).all():
        return array.astype(dtype, copy=False)
    with np.errstate(over="ignore"):
        return (array * ratio).astype(dtype)


def without_scale(theta: np.ndarray, p: float, exponent: np.ndarray) -> np.ndarray:
    """The weights of the dual vectors, each but for a factor, p > 2."""
    # The largest coordinate is brought near 1: the powers of others would leave the range.
    return np.copysign(np.ldexp(np.abs(theta), -exponent) ** (p - 1.0), theta)


def exponents_of(theta: np.ndarray) -> np.ndarray:
    return np.frexp(np.abs(theta).max(axis=0))[1]


def powers_of(theta: np.ndarray, p: float, exponent: np.ndarray) -> np.ndarray:
    """Of each vector the sum of the p-th powers of its coordinates over a power of 2."""
    return (np.ldexp(np.abs(theta, dtype=np.float64), -exponent) ** p).sum(axis=0)


def _theta_of(space: LinearSpace) -> np.ndarray:
    """The dual vectors in the type of the coordinates, shape (n_coordinates, n_vectors)."""
    with np.errstate(over="ignore"):
        return (space.of_labels(space.t) * space.labels["scale"]).astype(space.t.dtype)


def scalars_of(space: LinearSpace) -> dict[str, np.ndarray]:
    return {name: space.per_label(name).copy() for name in _SCALARS}


def take_scalars(space: LinearSpace, scalars: dict[str, np.ndarray]) -> None:
    for name, values in scalars.items():
        space.per_label(name)[:] = values


class UnknownMixture(Exception):
    """This process has not got what a mixture has changed from."""


class Held:
    """The latest mixtures of the latest fits, as this process was told of them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._of_fits: OrderedDict[str, tuple[int, np.ndarray, np.ndarray | None]] = OrderedDict()

    def at(self, start: Vectors, at: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """These coordinates of the mixture: theta, and variances; an `UnknownMixture` where this
        process does not know what has changed."""
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
    """Learning from rows of one of several shards, from the mixture's dual vectors, in a space of
    the coordinates that the rows have. One more, which no row has, stands for all others."""

    narrows = True

    def __init__(self, learner: Learner, start: Vectors, at: np.ndarray) -> None:
        self.space = space = learner._space
        self.exponent, n_others = start.exponent, space.n_labels // len(start.power)
        # The classes of a joint machine have a coordinate each.
        self.at = (at[:, np.newaxis] * n_others + np.arange(n_others)).ravel()
        last = len(self.at) - n_others * bool(space.bias)
        self.others, self.n_numbers = slice(last, last + n_others), prod(start.shape)
        theta, variances = HELD.at(start, self.at)
        p = space.p
        # As small, where there are no others, as changes no norm; their ratio is still told.
        left = start.power - (0.0 if space.adaptive else powers_of(theta, p, start.exponent))
        left = np.maximum(left, start.power * 2.0**-56) ** (1.0 / p)
        self.theta = self._with_others(theta, np.ldexp(left, start.exponent))
        self.space.set_dual(self.theta)
        self.began = self.space.per_label("scale").copy(), self.space.per_label("shift").copy()
        self.space.take_sums(0.0, 0)
        take_scalars(self.space, start.scalars)
        if variances is not None:
            space.of_labels(space.variances)[...] = self._with_others(variances, 0.0)
            self.gains = self.space.of_labels(self.space.gain)

    def _with_others(self, array: np.ndarray, value: Any) -> np.ndarray:
        """The array of the coordinates of the rows, and that of all others."""
        first, last = self.others.start, self.others.stop
        others = np.zeros((last - first, array.shape[1]), array.dtype)
        others[0] = value
        return np.concatenate([array[:first], others, array[first:]])

    def _changes(self, where: Any, ratio: np.ndarray, *arrays: np.ndarray) -> list[Change]:
        """What the mixture is told of where the arrays have something else than it, times the
        ratio; the indices, which are one object, travel once."""
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
        gains = space.of_labels(space.gain)
        theta = np.subtract(after, self.theta, dtype=np.float64)
        theta *= 1.0 + gains
        gains -= self.gains
        steps, more = self._changes(gains != 0.0, ratio, theta, gains.astype(after.dtype))
        return Learned(steps, sums, scalars_of(space), more)

    def _ratio(self) -> np.ndarray:
        """What each vector has been multiplied by, as coordinates that no row has moved show."""
        scale, shift = self.began
        per_label = self.space.per_label
        ratio = np.ldexp(per_label("scale") / scale, per_label("shift") - shift)
        return np.where(np.isfinite(ratio), ratio, 1.0)

    def _sums(self, moved: np.ndarray) -> Change:
        space, other = self.space, self.others.start
        base, sums = self.theta, space.summed()
        if space.p != 2.0:
            base = without_scale(base, space.p, self.exponent)
        moved = moved | (space.of_labels(space.acc) != 0) | (space.of_labels(space.synced) != 0)
        with np.errstate(over="ignore"):
            known = base[other].astype(np.float64)
            factor = np.divide(sums[other], known, out=np.zeros(len(known)), where=known != 0.0)
            sums = sums.astype(self.theta.dtype)
        told = np.isfinite(factor)
        return self._changes(moved | ~told, np.where(told, factor, 0.0), sums)[0]


class VectorMixer(SingleMixer):
    """Averages the dual vectors that epochs on the shards have come to: all alike, or each label's
    by the shards' corrections of it. In time of what they have changed, but for averages, whose
    sums grow by all weights."""

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
        self.variances = space.of_labels(space.variances)[at].copy() if space.adaptive else None
        self.number, self.changes = 0, self._all()

    def _all(self) -> tuple[Change, Change | None]:
        """What has changed since all was 0."""
        held = self.variances
        variances = None if held is None else Change.of(held, held != 0.0)
        return Change.of(self.theta, self.theta != 0.0), variances

    def starts(self, part: int, whole: bool = False) -> list[Any]:
        theta, n_vectors = self.theta, self.theta.shape[1]
        # Where coordinates have variances no norm is asked for.
        exponent, power = np.zeros(n_vectors, int), np.ones(n_vectors)
        if self.variances is None:
            exponent = exponents_of(theta)
            power = powers_of(theta, self.mixture.space.p, exponent)
        start = Vectors(
            self.fit, self.number, whole or self.number == 0, theta.shape,
            *(self._all() if whole else self.changes), self.scalars, exponent, power,
        )  # fmt: skip
        return [start] * self.n_shards

    @np.errstate(over="ignore", invalid="ignore")  # what no number holds is refused
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
            space.of_labels(space.variances)[...] = self.variances

    def _mixed(
        self, learned: Sequence[Learned], shares: np.ndarray
    ) -> tuple[Change, Change | None]:
        """Let theta, and the variances, be the mixture; what has changed."""
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
        held = np.maximum(1.0 / precisions, np.finfo(theta.dtype).tiny)  # 0 would be none
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
        """How much each shard counts in the mixture of each vector, shape (n_shards, n_vectors)."""
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
    """Add to the touched coordinates, at the places that each of the changes has, the shares of
    what they are there, less what was known of them, times the change's ratio."""
    for share, place, each in zip(shares, places, changes, strict=True):
        vector = each.indices % len(share) if len(share) > 1 else 0
        values = each.values.astype(np.float64)
        if known is not None:
            values -= each.ratio[vector] * known[place]
        total[place] += share[vector] * values


def _held(values: Any, dtype: Any) -> np.ndarray:
    """The values in the type of the coordinates; a ValueError where they exceed it."""
    held = np.asarray(values).astype(dtype)
    if not np.isfinite(held).all():
        raise ValueError(f"The mixture exceeds {held.dtype}. Rescale rows, or pass float64.")
    return held


def _mixed_scalars(shares: np.ndarray, learned: Sequence[Learned]) -> dict[str, np.ndarray]:
    """The scalars of the mixture. Corrections go on from the largest count, so that no rate or
    margin that falls with them rises again."""
    by_name = {name: np.array([each.scalars[name] for each in learned]) for name in _SCALARS}
    # Masses may be infinite, and shares 0.
    mass = np.multiply(shares, by_name["mass"], out=np.zeros(shares.shape), where=shares > 0.0)
    return {
        "corrections": by_name["corrections"].max(axis=0),
        "largest": by_name["largest"].max(axis=0),
        "mass": mass.sum(axis=0),
        "bound": by_name["bound"].min(axis=0),
    }


@dataclass(frozen=True)
class Visit:
    """The labels from one to before another, that visit a shard."""

    first: int
    last: int
    space: LinearSpace  # of these alone


class RingEpoch(SingleEpoch):
    """Learning from all rows of a shard the labels that visit it."""

    def __init__(self, learner: Learner, start: Visit) -> None:
        self.start = start
        self.space = learner._fitted.space = deepcopy(start.space)

    def learn(self, learner: Learner, task: Task, order: np.ndarray | None) -> None:
        """As `Learner._learn_stream`, of these labels."""
        fitted, labels = learner._fitted, (self.start.first, self.start.last)
        lone = len(fitted.classes) == 2 and not fitted.many
        with keeping(task, self.space):
            mine = task if lone else task_of(task, task.rows, *labels)
            learn_once(learner._loop(mine), order)
        fitted.count_classes(task)

    def learned(self) -> LinearSpace:
        return self.space

    def kept(self, progress: ProgressiveOutputs) -> ProgressiveOutputs:
        return progress.of_labels(self.start.first, self.start.last)


class RingMixer(SingleMixer):
    """Lets labels visit one shard after the other, each shard having others at a time, so that
    there is nothing to mix: a label's vector is that of one machine which has the shards' rows one
    after the other, from the shard on where the label begins."""

    epoch_type: type[Any] = RingEpoch

    def __init__(self, mixture: Mixture, n_shards: int) -> None:
        super().__init__(mixture, n_shards, n_shards)

    def rows_of(self, part: int) -> Part:
        return 0, 1

    def take(self, space: LinearSpace) -> None:
        super().take(space)
        self.spaces: list[tuple[int, int, LinearSpace] | None] = [None] * self.n_shards
        cuts = np.linspace(0, space.n_labels, self.n_shards + 1).astype(int)
        for i, (first, last) in enumerate(pairwise(cuts.tolist())):
            if first == last:
                continue
            own = LinearSpace(
                space.n_features, last - first, space.p, space.t.dtype, log=None, **how_of(space)
            )
            own.take_labels(space, slice(first, last), slice(0, last - first))
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
            space.take_labels(own, slice(0, last - first), slice(first, last))

    def kept(self, progress: Sequence[ProgressiveOutputs], n_places: int) -> ProgressiveOutputs:
        # Whatever labels visit a shard keep the outputs of the same rows.
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
    """Those that one label has made on a block of rows, in order; arrays of shape (n_mistakes,)."""

    which: np.ndarray  # their rows among those that came along, int64
    steps: np.ndarray  # float64, with the signs of the labels
    numbers: np.ndarray  # of the rows in the shard, int64


@dataclass(frozen=True)
class ShardMistakes:
    """What an epoch on a shard came to."""

    # Of each block the rows that any label has made a mistake on, and each label's mistakes.
    blocks: list[tuple[Csr, list[Mistakes]]]
    # Of the hypotheses, each as often as it lasted, shape (n_coordinates, n_labels); None where
    # they are not averaged.
    sums: Change | None


class MistakesEpoch(SingleEpoch):
    """An epoch on one of several shards, from the mixture's space.

    That travels: the rows that it is made of are fewer bytes, but take longer to be learned from
    again than the rest takes to be sent.
    """

    def __init__(self, learner: Learner, start: LabelSpaces) -> None:
        super().__init__(learner, start)
        self.averaged = learner.hypothesis == "average"
        self.space.take_sums(np.zeros_like(self.space.summed()), 0)
        self.noted = self.space.per_label("corrections")
        self.blocks: list[tuple[Csr, list[Mistakes]]] = []

    def learn(self, learner: Learner, task: Task, order: np.ndarray | None) -> int | None:
        mistakes = super().learn(learner, task, order)
        self._note(task)
        return mistakes

    def _note(self, task: Task) -> None:
        """Take note of a block that has been learned from."""
        first = self.space.first_row_of(task)
        found = [
            space.mistaken_since(noted) - first
            for space, noted in zip(self.space.spaces, self.noted, strict=True)
        ]
        self.noted = self.space.per_label("corrections")
        mistaken = np.unique(np.concatenate(found))
        by_label = []
        for label, rows in enumerate(found):
            which = np.searchsorted(mistaken, rows)
            steps = task.steps(label, self.space.n_labels, rows)
            by_label.append(Mistakes(which, steps, rows + first))
        self.blocks.append((rows_at(task.rows, mistaken), by_label))

    def learned(self) -> ShardMistakes:
        sums = self.space.summed().T if self.averaged else None
        change = None if sums is None else Change.of(sums, sums != 0.0)
        return ShardMistakes(self.blocks, change)


class MistakesMixer(SingleMixer):
    """Lets the mixture make the mistakes of all shards, told the numbers of their first rows."""

    epoch_type = MistakesEpoch

    def __init__(self, mixture: Mixture, first_rows: Sequence[int]) -> None:
        super().__init__(mixture, len(first_rows), 1)
        self.first_rows = first_rows

    def mix(self, part: int, updates: Sequence[Update]) -> None:
        space = self.mixture.space
        sums, trials = space.summed(), space.trials
        space.take_sums(np.zeros_like(sums), 0)
        for update, first_row in zip(updates, self.first_rows, strict=True):
            for rows, by_label in update.learned.blocks:
                for label, made in enumerate(by_label):
                    space.absorb(label, rows, made.which, made.steps, made.numbers + first_row)
            if update.learned.sums is not None:
                sums += update.learned.sums.applied(np.zeros_like(sums.T)).T
        space.take_sums(sums, trials + sum(update.trials for update in updates))
