"""Mixing of first-order models: the dual vectors of the shards are averaged.

The average is that of theta, not of w. For p > 2 an average of weights is not the link of any
average of dual vectors. ``||.||_p**2 / 2`` is convex in theta, so the distance of a mixture to
the target, in the measure used in the proofs, is at most the average distance of the shards.

The mixture is cut into slices of coordinates. A shard returns its changes for each slice, one task
mixes each slice, and shards start from the mixed slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isqrt
from operator import getitem
from typing import Any

import numpy as np

from sparsemargin._engine.first_order.linear_space import LinearSpace
from sparsemargin._engine.first_order.packed import PackedSpace, is_sparse
from sparsemargin._engine.first_order.vector_blocks import itemsize_of
from sparsemargin._engine.mixing.coordinates import ColumnSet, evidence_of, spread
from sparsemargin.distributed.backends import Backend
from sparsemargin.distributed.mixing import Learned, Mixer, Mixture, ShardEpoch, Update
from sparsemargin.distributed.schema import Part
from sparsemargin.distributed.slices import (
    CELLS,
    Piece,
    Shape,
    Slice,
    Sums,
    joined,
    mix_slice,
    norms_of,
    sum_slice,
    without_scale,
)
from sparsemargin.models import Learner

# In the first epoch, shards are mixed after 1/_SHARE of their rows (_FEWEST_FIRST to _MOST_FIRST
# rows), and whenever the number of used rows has doubled. Shards with fewer than _FEW rows are
# mixed about _LEAST times in every epoch, others once in later epochs. Chosen by experiment: on
# texts of 8 classes with 23 % errors, 64 shards of 5,000 rows had 31 % with doubled numbers alone.
_SHARE, _FEWEST_FIRST, _MOST_FIRST = 64, 8, 1000
_LEAST, _FEW = 16, 24_000

# Slices are mixed in parallel, but each slice costs the scheduler about 0.25 ms per shard. This
# overhead of n slices takes as long as training on 256 * n rows. The total time is estimated to be
# least for n = sqrt(rows of a shard / 256). Results of fewer than _ROWS_A_SLICE rows of all shards
# are mixed faster than they are divided.
_ROWS_A_SLICE, _MOST_SLICES = 1 << 17, 32

# Numbers that are sent with each vector: the number of corrections, the largest norm of a corrected
# row, the sum of the multipliers of the rows, and the smallest bound on the margin.
_SCALARS = "corrections", "largest", "mass", "bound"


def cuts_of(n_rows: int, *, first_epoch: bool) -> list[int]:
    """The numbers of rows of a shard of n_rows after which shards are mixed in an epoch."""
    most = -(-n_rows // _LEAST) if n_rows < _FEW else n_rows
    first = min(_MOST_FIRST, max(_FEWEST_FIRST, n_rows // _SHARE))
    cuts, step = [0], first if first_epoch else most
    while cuts[-1] < n_rows:
        cuts.append(cuts[-1] + min(step, most))
        step = cuts[-1]
    # A short last part is joined with the part before it.
    if len(cuts) > 2 and n_rows - cuts[-2] < (cuts[-2] - cuts[-3]) / 2:
        del cuts[-2]
    return [*cuts[:-1], n_rows]


def slices_for(n_rows: int, n_shards: int) -> int:
    """The largest number of slices for a mixture after n_rows rows of each shard."""
    most = min(_MOST_SLICES, n_shards, n_rows * n_shards // _ROWS_A_SLICE)
    return max(1, min(most, isqrt(n_rows // 256)))


def multiplied(array: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """Each vector times its ratio; the array itself if nothing changes."""
    if (ratio == 1.0).all():
        return array
    with np.errstate(over="ignore"):
        return (array * ratio).astype(array.dtype)


def _theta_of(space: LinearSpace) -> np.ndarray:
    """The dual vectors in the dtype of the coordinates, shape (n_coordinates, n_vectors)."""
    with np.errstate(over="ignore"):
        return (space.of_vectors(space.t) * space.vectors["scale"]).astype(space.t.dtype)


def scalars_of(space: LinearSpace) -> dict[str, np.ndarray]:
    return {name: space.per_vector(name).copy() for name in _SCALARS}


def take_scalars(space: LinearSpace, scalars: dict[str, np.ndarray]) -> None:
    for name, values in scalars.items():
        space.per_vector(name)[:] = values


class VectorEpoch(ShardEpoch):
    """Training on rows of one of several shards, starting from the mixture's dual vectors. The
    space has the coordinates of the rows, and one more, which stands for all others and is 0 in the
    rows."""

    narrows = True

    def __init__(
        self, learner: Learner, columns: np.ndarray, cells: Sequence[int], scalars: Any,
        *slices: Slice,
    ) -> None:  # fmt: skip
        self.space = space = learner.space
        self.shape = shape = slices[0].shape
        self.columns, self.cells = columns, cells
        self.hole = len(columns) - bool(space.bias)  # position of the coordinates of other columns
        self.others = slice(self.hole * shape.n_each, (self.hole + 1) * shape.n_each)
        arrays = np.zeros((1 + space.adaptive, (len(columns) + 1) * shape.width), space.t.dtype)
        for each in slices:
            values = [each.theta, each.variances][: len(arrays)]
            spread(columns, self.hole, shape.width, each.keys, values, arrays)
        self.theta, *variances = arrays.reshape(len(arrays), -1, shape.n_vectors)
        self.exponent, power = norms_of(slices, shape.n_vectors, space.p)
        # One coordinate stands for all others and has their norm. If that is 0, a value too small
        # to change a norm is used instead, because `_sums` divides by the coordinate.
        left = power
        if not space.adaptive:
            own = np.abs(self.theta, dtype=np.float64)
            left = power - (np.ldexp(own, -self.exponent) ** space.p).sum(axis=0)
        left = np.maximum(left, power * 2.0**-56) ** (1.0 / space.p)
        self.theta[self.others.start] = np.ldexp(left, self.exponent)
        space.set_dual(self.theta)
        self.began = space.per_vector("scale").copy(), space.per_vector("shift").copy()
        space.take_sums(0.0, 0)
        take_scalars(space, scalars)
        if space.adaptive:
            (self.variances,) = variances
            space.of_vectors(space.variances)[...] = self.variances

    def _found(self, where: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The places that are true in an array of the space, as flat indices, and their keys."""
        where[self.others] = False
        places, width = np.flatnonzero(where), self.shape.width
        own = np.where(places < self.others.start * self.shape.n_vectors, places, places - width)
        keys = self.columns[own // width] * width + own % width
        return places, keys.astype(self.shape.dtype)

    def scalars(self) -> dict[str, np.ndarray]:
        return scalars_of(self.space)

    def learned(self) -> list[Piece]:
        """The changes, for each slice."""
        space, ratio, gains = self.space, self._ratio(), None
        # The coordinates that rows have changed. `evidence_of` finds them by their variances, but
        # the sums of averaged hypotheses need them, too.
        moved = np.empty(0, dtype=bool)
        if space.averaged or not space.adaptive:
            after = _theta_of(space)
            moved = after != multiplied(self.theta, ratio)
        if space.adaptive:
            keys, theta, gains = evidence_of(
                self.columns, self.hole, np.empty(0, self.shape.dtype), space.of_vectors(space.t),
                np.ascontiguousarray(space.vectors["scale"]), space.of_vectors(space.variances),
                self.theta, self.variances,
            )  # fmt: skip
        else:
            places, keys = self._found(moved)
            theta = after.ravel()[places]
        factor, sum_keys, sums = np.zeros(self.shape.n_vectors), keys[:0], theta[:0]
        if space.averaged:
            factor, sum_keys, sums = self._sums(moved)
        cuts, of_sums = self.shape.cuts(keys, self.cells), self.shape.cuts(sum_keys, self.cells)
        return [
            Piece(
                keys[a:b], theta[a:b], None if gains is None else gains[a:b], ratio,
                sum_keys[c:d], sums[c:d], factor, self.exponent,
            )
            for (a, b), (c, d) in zip(pairwise(cuts), pairwise(of_sums), strict=True)
        ]  # fmt: skip

    def _ratio(self) -> np.ndarray:
        """The factor of each vector, as seen on coordinates that no row has changed."""
        scale, shift = self.began
        per_vector = self.space.per_vector
        ratio = np.ldexp(per_vector("scale") / scale, per_vector("shift") - shift)
        return np.where(np.isfinite(ratio), ratio, 1.0)

    def _sums(self, moved: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For each vector, the factor that gives the sums of unchanged coordinates from their
        weights; and the keys and values of all other sums."""
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
        places, keys = self._found(moved | ~known)
        return np.where(known, factor, 0.0), keys, sums.ravel()[places]


@dataclass(frozen=True)
class Mixed:
    """A mixture, as handles of its slices."""

    bounds: list[int]  # cells where slices begin, and the number of all cells
    slices: list[Any]
    sums: list[Any]  # empty without averaging
    scalars: dict[str, np.ndarray]  # each of shape (n_vectors,)
    trials: int


class VectorMixer(Mixer):
    """Averages the dual vectors of the shards, slice by slice, by tasks of the backend."""

    epoch_type: type[Any] = VectorEpoch
    state: Mixed

    def __init__(self, mixture: Mixture, backend: Backend, n_rows: Sequence[int]) -> None:
        super().__init__(mixture, backend, n_rows)
        space = mixture.space
        n_vectors = len(space.vectors)
        n_columns = space.n_features + bool(space.bias)
        self.shape = Shape(n_columns, space.n_vectors // n_vectors, n_vectors)

    def parts(self, epoch: int) -> list[Part]:
        most = max(self.n_rows)
        cuts = cuts_of(most, first_epoch=epoch == 1)
        return [Part(*pair, most) for pair in pairwise(cuts)]

    def take(self, space: LinearSpace) -> None:
        share, dtype = self.backend.share, space.t.dtype
        held: list[np.ndarray] = [np.zeros((0, 1), dtype) for _ in range(3)]
        # A new space has no coordinates to store, so its arrays are not searched.
        if space.trials:
            held[0] = _theta_of(space)
            if space.adaptive:
                held[1] = np.ascontiguousarray(space.of_vectors(space.variances))
            if space.averaged:
                held[2] = space.summed().astype(dtype)
        theta, variances, sums = (each.ravel() for each in held)
        keys = np.flatnonzero(theta != 0 if not len(variances) else (theta != 0) | (variances != 0))
        of_sums = np.flatnonzero(sums)
        whole = Slice(
            self.shape, 0, CELLS, keys.astype(self.shape.dtype), theta[keys],
            variances[keys] if space.adaptive else None,
        )  # fmt: skip
        found = Sums(of_sums.astype(self.shape.dtype), sums[of_sums])
        self.state = Mixed(
            [0, CELLS], [share(whole.with_powers(space.p))],
            [share(found)] if space.averaged else [], scalars_of(space), space.trials,
        )  # fmt: skip

    def starts(self, step: int, part: Part) -> list[Any]:
        n_slices, state = slices_for(part.stop - part.start, len(self.n_rows)), self.state
        if n_slices > 1:
            n_slices = min(n_slices, self.backend.n_workers)
        # The first cell of each slice after the part, and the number of all cells. They are stored
        # for `merge`, because the number of workers may change meanwhile.
        self.bounds = [CELLS * i // n_slices for i in range(n_slices + 1)]
        return [(self.bounds, state.scalars, *state.slices)] * len(self.n_rows)

    def merge(self, learned: Sequence[Any]) -> list[Any]:
        state, p, call = self.state, self.mixture.space.p, self.backend.submit
        mixed, sums = [], []
        for i, cells in enumerate(pairwise(self.bounds)):
            # With a single slice, each result has one piece and need not be divided.
            pieces = learned
            if len(self.bounds) > 2:
                pieces = self.backend.map(Learned.piece, learned, [i] * len(learned))
            which = [
                n for n, (first, last) in enumerate(pairwise(state.bounds))
                if first < cells[1] and last > cells[0]
            ]  # fmt: skip
            before = [state.slices[n] for n in which]
            mixed.append(call(mix_slice, p, cells, len(which), *before, *pieces))
            if state.sums:
                before += [state.sums[n] for n in which]
                sums.append(call(sum_slice, p, cells, len(which), *before, *pieces))
        # The updates are separated from the slices, because shards do not need them.
        slices = self.backend.map(getitem, mixed, [0] * len(mixed))
        updates = call(getitem, mixed[0], 1)
        # All handles are kept, so that calls can be repeated if several workers die.
        self.merged = self.bounds, slices, sums, mixed
        return [updates]

    def conclude(self, step: int, updates: Sequence[Update]) -> None:
        scalars = _mixed_scalars([update.scalars for update in updates])
        trials = self.state.trials + sum(update.trials for update in updates)
        bounds, slices, sums, _ = self.merged
        self.merged = None
        self.state = Mixed(bounds, slices, sums, scalars, trials)
        # No call needs the sums before the last mixture. In this process, each would keep the
        # results of all shards, and its call would call those of all earlier mixtures.
        for _ in self.backend.completed({}, sums):
            pass

    def space_of(self, state: Mixed, *, keep: bool = False) -> Any:
        gathered = self.backend.gather([*state.slices, *state.sums])
        slices, sums = gathered[: len(state.slices)], gathered[len(state.slices) :]
        if keep and state is self.state:
            # Lost slices are restored from these copies, without the tasks of earlier epochs.
            handles = [self.backend.share(each) for each in gathered]
            n = len(state.slices)
            self.state = replace(state, slices=handles[:n], sums=handles[n:])
        keys, theta = joined(slices, "keys", "theta")
        of_sums = joined(sums, "keys", "values") if sums else (keys[:0], theta[:0])
        variances = joined(slices, "variances")[0] if slices[0].variances is not None else None
        shape, n_biases = self.shape, bool(self.mixture.space.bias)
        held = self._columns_worth_packing(keys, of_sums[0])
        # The first coordinate of a packed space stands for all other columns.
        is_packed, hole = (False, shape.n_columns) if held is None else (True, 0)
        columns = np.arange(shape.n_columns) if held is None else held
        space = self.mixture.new_space(len(columns) + is_packed - n_biases)

        def in_rows(keys: np.ndarray, values: np.ndarray) -> np.ndarray:
            array = np.zeros((1, (len(columns) + 1) * shape.width), theta.dtype)
            spread(columns, hole, shape.width, keys, [values], array)
            return array.reshape(-1, shape.n_vectors)[: len(space.t)]

        space.set_dual(in_rows(keys, theta))
        space.take_sums(in_rows(*of_sums) if sums else 0.0, state.trials)
        take_scalars(space, state.scalars)
        if is_packed:
            features = columns[: len(columns) - n_biases]
            return PackedSpace.of(space, features, shape.n_columns - n_biases, keys, variances)
        if variances is not None:
            space.of_vectors(space.variances)[...] = in_rows(keys, variances)
        return space

    def _columns_worth_packing(self, *of_keys: np.ndarray) -> np.ndarray | None:
        """The columns of the keys, and the intercept's, if few numbers of all columns are not 0."""
        space, shape = self.mixture.space, self.shape
        n_numbers, most = shape.n_columns * shape.width, max(map(len, of_keys))
        is_few = is_sparse(most, n_numbers, n_numbers * itemsize_of(space))
        if type(space) is not LinearSpace or not is_few:
            return None
        found = ColumnSet(shape.n_columns)
        for keys in of_keys:
            found.add(keys // shape.width)
        if space.bias:
            found.add(np.array([shape.n_columns - 1]))
        return found.close()


def _mixed_scalars(of_shards: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The numbers of the mixed vectors. Corrections continue from the largest count, so that rates
    and margins that decrease with the count do not increase again."""
    by_name = {name: np.array([each[name] for each in of_shards]) for name in _SCALARS}
    return {
        "corrections": by_name["corrections"].max(axis=0),
        "largest": by_name["largest"].max(axis=0),
        "mass": (1.0 / len(of_shards) * by_name["mass"]).sum(axis=0),
        "bound": by_name["bound"].min(axis=0),
    }
