"""Arrays told by where they differ from others that the receiver has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

# Places below it fit the shorter type.
_LARGEST_SHORT = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Difference:
    """An array of shape (n_coordinates, n_vectors): some multiple of another one, the base, for
    each vector, but for the places that are named.

    Attributes
    ----------
    shape : tuple of int
    ratio : ndarray of shape (n_vectors,)
        The multiples.
    places : ndarray of int32 or int64, or None
        In the flat array, rising; None: all.
    values : ndarray
        What stands there.
    """

    shape: tuple[int, ...]
    ratio: np.ndarray
    places: np.ndarray | None
    values: np.ndarray

    @classmethod
    def between(
        cls, base: np.ndarray, array: np.ndarray, ratio: np.ndarray, changed: np.ndarray | None
    ) -> Self:
        """The one that leads from a base to an array, the shortest of those with these multiples.

        Parameters
        ----------
        changed : ndarray of bool
            Where the array is no such multiple; None: where it differs from that by a bit.
        """
        if changed is None:
            changed = array != multiplied(base, ratio, array.dtype)
        count = int(np.count_nonzero(changed))
        kind = np.dtype(np.int32 if array.size <= _LARGEST_SHORT else np.int64)
        if count * (kind.itemsize + array.itemsize) >= array.nbytes:
            return cls.whole(array)
        places = np.flatnonzero(changed).astype(kind, copy=False)
        return cls(array.shape, ratio, places, array.ravel()[places])

    @classmethod
    def whole(cls, array: np.ndarray) -> Self:
        """One that needs no base."""
        return cls(array.shape, np.zeros(array.shape[1]), None, array.ravel())

    def apply(self, base: np.ndarray) -> np.ndarray:
        """The array, to the bit."""
        if self.places is None:
            return self.values.reshape(self.shape)
        array = multiplied(base, self.ratio, self.values.dtype)
        array.ravel()[self.places] = self.values
        return array

    def add_to(self, total: np.ndarray, base: np.ndarray, share: np.ndarray) -> None:
        """Add to `total`, float64, the array times `share`, of shape (n_vectors,), but for the
        multiple of the base times `share`, which `total` has already."""
        if self.places is None:
            array = self.values.reshape(self.shape).astype(np.float64)
            total += share * (array - multiplied(base, self.ratio, np.float64))
            return
        vector = self.places % self.shape[1]
        known = self.ratio[vector] * base.ravel()[self.places]
        total.ravel()[self.places] += share[vector] * (self.values.astype(np.float64) - known)


def multiplied(base: np.ndarray, ratio: np.ndarray, dtype: np.dtype | type) -> np.ndarray:
    """A fresh array of that type: each vector of the base times its ratio."""
    if (ratio == 1.0).all():
        return base.astype(dtype)
    with np.errstate(over="ignore"):
        return (base * ratio).astype(dtype)
