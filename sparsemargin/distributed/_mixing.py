"""Mixing: of first-order models the dual vectors of the shards are averaged, and of the Higher- and
the Second-order Perceptron the shards' mistakes are put together.

What is averaged is theta, not w: for p > 2 a mixture of the weights is the link of no mixture of
what the shards have learned, while ``||.||_p**2 / 2`` is convex in theta, so that no mixture is
further from the target, in the measure that the proofs count by, than the shards are on average.

Where coordinates have variances, a shard counts at each coordinate by the precision that it has
added there, and the precision grows as in one shard. The shards correct the same errors, so that
their steps must not be added up, which a product of their posteriors does where the precision is
large already: it would overshoot as many times as there are shards. Only coordinates that are new
to all take that product. Nothing is proved of this, but that every other coordinate lies between
those that the shards have come to.

What the others learn is a function of the rows of their mistakes. So the rows travel, and the
mixture is made of all mistakes of all shards, one shard's after the other's, as if one Perceptron
had made them: the Second-order one's matrix ``a I + S S^T`` and vector ``v`` are sums over them.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np

from sparsemargin._engine.first_order.linear_space import LinearSpace
from sparsemargin._engine.fitting.progressive import ProgressiveOutputs
from sparsemargin._engine.fitting.task import Task
from sparsemargin._engine.matrix.spaces import LabelSpaces
from sparsemargin._engine.rows.csr import Csr
from sparsemargin._engine.rows.parts import rows_at
from sparsemargin.distributed._schema import Mixture
from sparsemargin.io.label_order import LabelOrder
from sparsemargin.models import Learner

Mixing = Literal["uniform", "errors"]

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
    progress: ProgressiveOutputs | None  # what was said of the rows before they were learned


class SingleEpoch:
    """An epoch on the only shard: there is nothing to mix, and the space travels as it is, so that
    not a bit is lost."""

    def __init__(self, learner: Learner, start: Any) -> None:
        self.space = learner._fitted.space = deepcopy(start)

    def note(self, task: Task) -> None:
        """Take note of a block that has been learned from."""

    def learned(self) -> Any:
        """What the mixer is told in the end."""
        return self.space


class SingleMixer:
    """Makes the space of the only shard that of the mixture."""

    epoch_type: type[Any] = SingleEpoch

    def __init__(self, mixture: Mixture) -> None:
        self.mixture = mixture

    def start(self) -> Any:
        """What all shards begin an epoch with, read-only."""
        return self.mixture.space

    def mix(self, updates: Sequence[Update]) -> None:
        """Make the mixture of what the shards have learned, in their order."""
        self.mixture.space = updates[0].learned


@dataclass(frozen=True)
class SparseDelta:
    """An array of shape (n_coordinates, n_vectors), by where it differs from a base that the
    receiver has, each vector of which is multiplied by a ratio; all of it where that is shorter."""

    shape: tuple[int, ...]
    ratio: np.ndarray  # of shape (n_vectors,); 0 where no base is needed
    indices: np.ndarray | None  # int32 or int64, rising, of the flat array; None: all
    values: np.ndarray  # what stands there

    @classmethod
    def of(cls, array: np.ndarray, changed: np.ndarray, ratio: Any = 0.0) -> Self:
        """The shorter of the two forms, where `changed` is what differs from base times ratio."""
        kind = np.dtype(np.int32 if array.size <= np.iinfo(np.int32).max else np.int64)
        n_vectors = array.shape[1]
        if np.count_nonzero(changed) * (kind.itemsize + array.itemsize) >= array.nbytes:
            return cls(array.shape, np.zeros(n_vectors), None, array.ravel())
        indices = np.flatnonzero(changed).astype(kind, copy=False)
        ratios = np.broadcast_to(ratio, n_vectors).astype(np.float64)
        return cls(array.shape, ratios, indices, array.ravel()[indices])

    def array(self) -> np.ndarray:
        """The array, where no base is needed."""
        if self.indices is None:
            return self.values.reshape(self.shape)
        flat = np.zeros(self.shape[0] * self.shape[1], self.values.dtype)
        flat[self.indices] = self.values
        return flat.reshape(self.shape)

    def add_to(self, total: np.ndarray, base: np.ndarray, share: np.ndarray) -> None:
        """Add the array times `share`, of shape (n_vectors,), to `total`, float64, which has the
        base times the ratio and the share already."""
        if self.indices is None:
            total += share * self.array().astype(np.float64)
            return
        vector = self.indices % self.shape[1]
        known = self.ratio[vector] * base.ravel()[self.indices]
        total.ravel()[self.indices] += share[vector] * (self.values.astype(np.float64) - known)


@dataclass(frozen=True)
class DualVectors:
    """What all shards begin an epoch with, or what one of them has learned in it."""

    # At the beginning from zero, then from the theta that the epoch began with.
    theta: SparseDelta
    # Of the hypotheses of the epoch, each as often as it lasted, from the weights, without their
    # scale, that it began with; None: they are not averaged, or none have been counted.
    sums: SparseDelta | None
    scalars: dict[str, np.ndarray]  # each of shape (n_vectors,)
    # Where coordinates have variances, what their precisions have grown by: at the beginning from
    # 1, then from those that the epoch began with. Theta is then told as steps times weights.
    gains: SparseDelta | None = None


def multiplied(base: np.ndarray, ratio: np.ndarray, dtype: Any) -> np.ndarray:
    """A fresh array of that type: each vector of the base times its ratio."""
    if (ratio == 1.0).all():
        return base.astype(dtype)
    with np.errstate(over="ignore"):
        return (base * ratio).astype(dtype)


def changed(base: np.ndarray, shares: np.ndarray, deltas: Sequence[Any]) -> np.ndarray:
    """The base and, times shares of shape (n_deltas, n_vectors), what each delta changes of it; in
    float64."""
    pairs = list(zip(shares, deltas, strict=True))
    # The sum of the shares times the ratios, and 1 where all of these are.
    ratio = 1.0 + sum(share * (each.ratio - 1.0) for share, each in pairs)
    total = multiplied(base, ratio, np.float64)
    for share, each in pairs:
        each.add_to(total, base, share)
    return total


def without_scale(theta: np.ndarray, p: float) -> np.ndarray:
    """The weights of the dual vectors, each but for a factor."""
    if p == 2.0:
        return theta
    size = np.abs(theta)
    # The largest coordinate is brought near 1: the powers of others would leave the range.
    _, exponent = np.frexp(size.max(axis=0))
    return np.copysign(np.ldexp(size, -exponent) ** (p - 1.0), theta)


def _theta_of(space: LinearSpace) -> np.ndarray:
    """The dual vectors in the type of the coordinates, shape (n_coordinates, n_vectors)."""
    with np.errstate(over="ignore"):
        return (space.of_labels(space.t) * space.labels["scale"]).astype(space.t.dtype)


def scalars_of(space: LinearSpace) -> dict[str, np.ndarray]:
    return {name: space.per_label(name).copy() for name in _SCALARS}


def take_scalars(space: LinearSpace, scalars: dict[str, np.ndarray]) -> None:
    for name, values in scalars.items():
        space.per_label(name)[:] = values


class VectorEpoch(SingleEpoch):
    """An epoch on one of several shards, from the mixture's dual vectors."""

    def __init__(self, learner: Learner, start: DualVectors) -> None:
        self.space, self.theta = learner._space, start.theta.array()
        self.space.set_dual(self.theta)
        self.began = self.space.per_label("scale").copy(), self.space.per_label("shift").copy()
        self.space.take_sums(0.0, 0)
        take_scalars(self.space, start.scalars)

    def learned(self) -> DualVectors:
        space, theta = self.space, self.theta
        after = _theta_of(space)
        ratio = self._ratio()
        moved = after != multiplied(theta, ratio, theta.dtype)
        sums = self._sums(moved) if space.averaged else None
        return DualVectors(SparseDelta.of(after, moved, ratio), sums, scalars_of(space))

    def _ratio(self) -> np.ndarray:
        """What each vector has been multiplied by, as coordinates that no row has moved show."""
        scale, shift = self.began
        per_label = self.space.per_label
        ratio = np.ldexp(per_label("scale") / scale, per_label("shift") - shift)
        return np.where(np.isfinite(ratio), ratio, 1.0)

    def _sums(self, moved: np.ndarray) -> SparseDelta:
        space = self.space
        base, sums = without_scale(self.theta, space.p), space.summed()
        moved = moved | (space.of_labels(space.acc) != 0) | (space.of_labels(space.synced) != 0)
        # Elsewhere the sums are the base times one factor for each vector, which the largest entry
        # tells best.
        at = np.where(moved, 0.0, np.abs(base)).argmax(axis=0), np.arange(base.shape[1])
        known = np.where(moved[at], 0.0, base[at])
        with np.errstate(over="ignore"):
            factor = np.divide(sums[at], known, out=np.zeros(len(known)), where=known != 0.0)
            sums = sums.astype(self.theta.dtype)
        told = np.isfinite(factor)
        return SparseDelta.of(sums, moved | ~told, np.where(told, factor, 0.0))


class VectorMixer(SingleMixer):
    """Averages the dual vectors that epochs on the shards have come to: all alike, or each label's
    by the shards' corrections of it."""

    epoch_type = VectorEpoch

    def __init__(self, mixture: Mixture, mixing: Mixing) -> None:
        super().__init__(mixture)
        self.mixing = mixing

    def start(self) -> DualVectors:
        theta = _theta_of(self.mixture.space)
        moved = SparseDelta.of(theta, theta != 0.0)
        return DualVectors(moved, None, scalars_of(self.mixture.space))

    def mix(self, updates: Sequence[Update]) -> None:
        space, shares = self.mixture.space, self._shares(updates)
        theta = _theta_of(space)
        learned = [each.learned for each in updates]
        total = self._mixed(theta, shares, learned)
        trials = space.trials + sum(each.trials for each in updates)
        sums = _held(self._summed(theta, learned), theta.dtype)
        space.set_dual(_held(total, theta.dtype))
        space.take_sums(sums, trials)
        take_scalars(space, _mixed_scalars(shares, learned))

    def _mixed(self, theta: np.ndarray, shares: Any, learned: Sequence[DualVectors]) -> Any:
        return changed(theta, shares, [each.theta for each in learned])

    def _shares(self, updates: Sequence[Update]) -> np.ndarray:
        """How much each shard counts in the mixture of each vector, shape (n_shards, n_vectors)."""
        made = np.array([each.corrections for each in updates], dtype=np.float64)
        total = made.sum(axis=0)
        uniform = np.full(made.shape, 1.0 / len(updates))
        if self.mixing == "uniform":
            return uniform
        return np.divide(made, total, out=uniform, where=total > 0.0)

    def _summed(self, theta: np.ndarray, learned: Sequence[DualVectors]) -> Any:
        space = self.mixture.space
        sums = [each.sums for each in learned if each.sums is not None]
        if not sums:
            return 0.0
        base, one = without_scale(theta, space.p), np.ones(theta.shape[1])
        total = space.summed() + base * sum(each.ratio for each in sums)
        for each in sums:
            each.add_to(total, base, one)
        return total


class AdaptiveEpoch(VectorEpoch):
    """An epoch on one of several shards, where coordinates have variances."""

    def __init__(self, learner: Learner, start: DualVectors) -> None:
        super().__init__(learner, start)
        assert start.gains is not None
        self.space.set_gain(start.gains.array())
        self.gains = self.space.of_labels(self.space.gain)

    def learned(self) -> DualVectors:
        added = self.space.of_labels(self.space.gain) - self.gains
        steps = np.subtract(_theta_of(self.space), self.theta, dtype=np.float64)
        steps *= (self.gains == 0.0) + added
        theta, gains = (SparseDelta.of(each, added != 0.0) for each in (steps, added))
        return replace(super().learned(), theta=theta, gains=gains)


class AdaptiveMixer(VectorMixer):
    """Averages the steps of the shards, each by the precision that it has added to a coordinate;
    where none was before, multiplies the posteriors that the shards have come to from one prior."""

    epoch_type = AdaptiveEpoch

    def start(self) -> DualVectors:
        gain = self.mixture.space.of_labels(self.mixture.space.gain)
        return replace(super().start(), gains=SparseDelta.of(gain, gain != 0.0))

    def _mixed(self, theta: np.ndarray, shares: Any, learned: Sequence[DualVectors]) -> Any:
        gain = self.mixture.space.of_labels(self.mixture.space.gain)
        zeros, times = np.zeros(gain.shape), len(learned) * shares
        steps = changed(zeros, times, [each.theta for each in learned])
        added = changed(zeros, times, [each.gains for each in learned])
        weight = (gain == 0.0) + added
        self.mixture.space.set_gain(gain + added / len(learned))
        return theta + np.divide(steps, weight, out=zeros, where=weight > 0.0)


def _held(values: Any, dtype: Any) -> np.ndarray:
    """The values in the type of the coordinates; a ValueError where they exceed it."""
    with np.errstate(over="ignore"):
        held = np.asarray(values).astype(dtype)
    if not np.isfinite(held).all():
        raise ValueError(f"The mixture exceeds {held.dtype}. Rescale rows, or pass float64.")
    return held


def _mixed_scalars(shares: np.ndarray, learned: Sequence[DualVectors]) -> dict[str, np.ndarray]:
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
    sums: SparseDelta | None


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

    def note(self, task: Task) -> None:
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
        delta = None if sums is None else SparseDelta.of(sums, sums != 0.0)
        return ShardMistakes(self.blocks, delta)


class MistakesMixer(SingleMixer):
    """Lets the mixture make the mistakes of all shards, told the numbers of their first rows."""

    epoch_type = MistakesEpoch

    def __init__(self, mixture: Mixture, first_rows: Sequence[int]) -> None:
        super().__init__(mixture)
        self.first_rows = first_rows

    def mix(self, updates: Sequence[Update]) -> None:
        space = self.mixture.space
        sums, trials = space.summed(), space.trials
        space.take_sums(np.zeros_like(sums), 0)
        for update, first_row in zip(updates, self.first_rows, strict=True):
            for rows, by_label in update.learned.blocks:
                for label, made in enumerate(by_label):
                    space.absorb(label, rows, made.which, made.steps, made.numbers + first_row)
            if update.learned.sums is not None:
                sums += update.learned.sums.array().T
        space.take_sums(sums, trials + sum(update.trials for update in updates))
