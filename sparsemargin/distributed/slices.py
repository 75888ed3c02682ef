"""Slices of a mixture of dual vectors, and the mixing of the pieces that shards have changed.

A number of the mixture has a key: its place in the array of shape (n_coordinates, n_vectors).
Slices hold only keys that a shard has changed.

If coordinates have variances, each shard updates the same prior to a posterior, and the product of
the posteriors combines them. But shards correct the same errors, so their evidence is not
independent, and the product is too confident. Therefore the evidence of n shards for a coordinate
counts like that of k = min(n ** (1/4), 2) shards: each likelihood is raised to the power k / n, as
in generalized Bayes. Coordinates that only one shard has changed are not affected. The exponent was
found by experiment. The limit keeps mixtures from diverging: if every shard moves a mean to its
optimum, and the prior's precision is large, the mixture moves it k times as far. Its distance from
the optimum is then k - 1 times the distance before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from sparsemargin._engine.mixing.coordinates import merge_evidence, merge_values, powers_of
from sparsemargin._engine.state import Sent

# If n shards change the variance of a coordinate, the sum of their gains is weighted like the gains
# of n**_AS_MANY independent shards, and of _MOST shards at most.
_AS_MANY, _MOST = 0.25, 2.0

# Number of cells into which all keys are cut. A slice consists of consecutive cells. Norms are
# summed by cells, so that they do not depend on the slices.
CELLS = 64


@dataclass(frozen=True)
class Shape:
    """The keys of a mixture: `n_each` coordinates per column, and `n_vectors` keys per
    coordinate."""

    n_columns: int  # number of all columns, including the intercept
    n_each: int
    n_vectors: int

    @property
    def width(self) -> int:
        """The number of keys of a column."""
        return self.n_each * self.n_vectors

    @property
    def dtype(self) -> type[Any]:
        """The dtype of keys."""
        return np.int32 if self.n_columns * self.width < 2**31 else np.int64

    def cuts(self, keys: np.ndarray, cells: Iterable[int]) -> np.ndarray:
        """The places in the sorted keys where the cells begin."""
        firsts = [self.n_columns * cell // CELLS * self.width for cell in cells]
        return np.searchsorted(keys, np.array(firsts, keys.dtype))


@dataclass(frozen=True)
class Slice(Sent):
    """The numbers of a mixture in some cells."""

    shape: Shape
    first: int  # cells first..last-1
    last: int
    keys: np.ndarray  # sorted; the values of all other keys are 0
    theta: np.ndarray
    variances: np.ndarray | None  # None if coordinates have no variances; 0 represents 1
    # For each cell and vector, the exponent e of a power of 2 near the largest coordinate, and the
    # sum of the p-th powers of the coordinates divided by 2**e. Both have shape (n_cells,
    # n_vectors), and are None if coordinates have variances.
    exponents: np.ndarray | None = None
    powers: np.ndarray | None = None

    @property
    def nbytes(self) -> int:
        held = self.keys, self.theta, self.variances
        return sum(each.nbytes for each in held if each is not None)

    def cut(self, first: int, last: int) -> Slice:
        """The part of this slice in the cells first..last-1."""
        if (first, last) == (self.first, self.last):
            return self
        at = slice(*self.shape.cuts(self.keys, (first, last)))
        variances = None if self.variances is None else self.variances[at]
        return replace(
            self, first=first, last=last, keys=self.keys[at], theta=self.theta[at],
            variances=variances, exponents=None, powers=None,
        )  # fmt: skip

    def with_powers(self, p: float) -> Slice:
        """The slice with the sums of powers."""
        if self.variances is not None:
            return self
        cuts = self.shape.cuts(self.keys, range(self.first, self.last + 1))
        found = [
            powers_of(self.keys[a:b], self.theta[a:b], self.shape.n_vectors, p)
            for a, b in pairwise(cuts)
        ]
        return replace(
            self, exponents=np.array([each for each, _ in found]),
            powers=np.array([each for _, each in found]),
        )  # fmt: skip


@dataclass(frozen=True)
class Sums(Sent):
    """The sums of the hypotheses over all trials, for the keys of a slice."""

    keys: np.ndarray
    values: np.ndarray


@dataclass(frozen=True)
class Piece(Sent):
    """The changes of a shard in a slice. For all other keys, theta is multiplied by a ratio, and
    the sums are a factor times the weights without their scale."""

    keys: np.ndarray
    # Theta; if coordinates have variances, the changes of theta times the new precisions.
    theta: np.ndarray
    gains: np.ndarray | None  # increases of the precisions, if coordinates have variances
    ratio: np.ndarray  # shape (n_vectors,)
    sum_keys: np.ndarray  # no keys without averaging
    sums: np.ndarray
    factor: np.ndarray  # shape (n_vectors,)
    exponent: np.ndarray  # exponents, see `norms_of`, of the mixture the shard started from

    @property
    def nbytes(self) -> int:
        held = self.keys, self.theta, self.gains, self.sum_keys, self.sums
        return sum(each.nbytes for each in held if each is not None)


def without_scale(theta: np.ndarray, p: float, exponent: np.ndarray) -> np.ndarray:
    """The weights of the dual vectors up to a factor for each vector, p > 2."""
    # The largest coordinate is scaled to about 1, so that the powers stay within range.
    return np.copysign(np.ldexp(np.abs(theta), -exponent) ** (p - 1.0), theta)


def norms_of(slices: Sequence[Slice], n_vectors: int, p: float) -> tuple[np.ndarray, np.ndarray]:
    """The exponents and the sums of powers of all slices, see `Slice`."""
    # Rules with variances do not need norms.
    if slices[0].exponents is None:
        return np.zeros(n_vectors, int), np.ones(n_vectors)
    exponents = np.concatenate([each.exponents for each in slices])  # type: ignore[misc]
    powers = np.concatenate([each.powers for each in slices])  # type: ignore[misc]
    # A cell of zeros has no exponent.
    largest = np.where(powers > 0.0, exponents, np.iinfo(np.int32).min).max(axis=0)
    largest = np.where((powers > 0.0).any(axis=0), largest, 0)
    with np.errstate(over="ignore"):
        factor = 2.0 ** np.clip(p * (exponents - largest), -1100.0, 0.0)
    return largest, np.where(powers > 0.0, powers * factor, 0.0).sum(axis=0)


def joined(slices: Sequence[Any], *names: str) -> list[np.ndarray]:
    """The arrays of consecutive slices."""
    if len(slices) == 1:
        return [getattr(slices[0], name) for name in names]
    return [np.concatenate([getattr(each, name) for each in slices]) for name in names]


def mix_slice(
    p: float, cells: tuple[int, int], n_before: int, *given: Any
) -> tuple[Slice, list[Any]]:
    """Mix the pieces of all shards in the cells. The first `n_before` of the further arguments are
    slices of the previous mixture that have these cells; the others have an update and the piece of
    a shard. Returns the slice and the updates."""
    before = [each.cut(*cells) for each in given[:n_before]]
    updates = [update for update, _ in given[n_before:]]
    pieces: list[Piece] = [piece for _, (piece,) in given[n_before:]]
    first, share = before[0], 1.0 / len(pieces)
    keys, theta = joined(before, "keys", "theta")
    with np.errstate(over="ignore", invalid="ignore"):
        if first.variances is None:
            ratio = 1.0 + sum(
                (share * (each.ratio - 1.0) for each in pieces), np.zeros(first.shape.n_vectors)
            )
            shards = [(each.keys, each.theta, each.ratio) for each in pieces]
            started = theta.astype(np.float64)
            keys, theta = merge_values(keys, started, keys[:0], theta[:0], shards, ratio, share)
            variances = None
        else:
            (variances,) = joined(before, "variances")
            posteriors = [(each.keys, each.theta, each.gains) for each in pieces]
            n = np.maximum(np.arange(len(pieces) + 1.0), 1.0)
            tempered = np.minimum(n**_AS_MANY, _MOST) / n
            keys, theta, variances = merge_evidence(keys, theta, variances, posteriors, tempered)
    _check_finite(theta)
    return Slice(first.shape, *cells, keys, theta, variances).with_powers(p), updates


def sum_slice(p: float, cells: tuple[int, int], n_before: int, *given: Any) -> Sums:
    """Add the sums of all shards in the cells. The first arguments are slices of the previous
    mixture that have these cells, then their sums; the others are as for `mix_slice`."""
    slices = [each.cut(*cells) for each in given[:n_before]]
    sums = given[n_before : 2 * n_before]
    pieces: list[Piece] = [piece for _, (piece,) in given[2 * n_before :]]
    shape = slices[0].shape
    keys, theta = joined(slices, "keys", "theta")
    sum_keys, carried = joined(sums, "keys", "values")
    at = slice(*shape.cuts(sum_keys, cells))
    base = theta.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        if p != 2.0:
            exponent = pieces[0].exponent
            base = without_scale(base, p, exponent[keys % shape.n_vectors])
        total = sum((each.factor for each in pieces), np.zeros(shape.n_vectors))
        shards = [(each.sum_keys, each.sums, each.factor) for each in pieces]
        keys, values = merge_values(keys, base, sum_keys[at], carried[at], shards, total, 1.0)
    _check_finite(values)
    return Sums(keys, values)


def _check_finite(values: np.ndarray) -> None:
    if not np.isfinite(values).all():
        raise ValueError(f"The mixture exceeds {values.dtype}. Rescale rows, or pass float64.")
