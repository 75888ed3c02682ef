"""Quantiles of any number of values, in bounded memory."""

from __future__ import annotations

import numpy as np

# A float32 without its last 12 bits: its sign, its exponent and 11 bits of its digits.
_DROPPED_BITS = 12


class Quantiles:
    """Quantiles of values that come in parts, each within 1 / 4096 of its magnitude.

    Values below the normal float32 numbers, about 1e-38, count as 0.

    Attributes
    ----------
    n : int
        Values so far.
    least, largest : float
        Exactly; infinite while there are none.
    """

    def __init__(self) -> None:
        self.n = 0
        self.least, self.largest = np.inf, -np.inf
        self._counts = np.zeros(1 << (32 - _DROPPED_BITS), dtype=np.int64)

    def add(self, values: np.ndarray) -> None:
        """Take in values, all finite."""
        if not len(values):
            return
        self.n += len(values)
        self.least = min(self.least, float(values.min()))
        self.largest = max(self.largest, float(values.max()))
        # Adding 0 makes -0 one with it.
        bits = (values.astype(np.float32) + np.float32(0)).view(np.uint32)
        np.add.at(self._counts, bits >> _DROPPED_BITS, 1)

    def at(self, shares: list[float]) -> np.ndarray:
        """The least values that at least these shares of all values don't exceed.

        Parameters
        ----------
        shares : list of float
            In [0, 1].

        Returns
        -------
        ndarray of shape (n_shares,), float64
        """
        kinds = np.flatnonzero(self._counts)
        middles = ((kinds << _DROPPED_BITS) + (1 << (_DROPPED_BITS - 1))).astype(np.uint32)
        values = middles.view(np.float32).astype(np.float64)
        values[abs(values) < np.finfo(np.float32).tiny] = 0.0
        order = np.argsort(values)
        reached = np.cumsum(self._counts[kinds[order]])
        wanted = np.ceil(np.array(shares) * self.n).clip(min=1)
        found = values[order][np.searchsorted(reached, wanted)]
        return found.clip(self.least, self.largest)
