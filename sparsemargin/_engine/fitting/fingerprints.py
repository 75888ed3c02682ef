"""Fingerprints of rows. They recognise rows on which a model is trained again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsemargin._engine.rows.csr import Csr, row_hashes
from sparsemargin._engine.state import MAX_TRIALS, array_of, integer, real, require

# Number of stored hashes. It suffices to detect a second epoch within a few percent of its rows.
_MOST = 512

# Largest number of hashes that are sorted. If there are more, a partition first selects the
# smallest.
_SORTED = 8 * _MOST

# Rows count as repeated if the repeats exceed the expected number by `_EXCESS` and by the fraction
# `_SHARE` of the compared rows. The tally restarts after `_TALLIED` compared rows.
_EXCESS, _SHARE, _TALLIED = 2.0, 1 / 8, 64


class Fingerprints:
    """The smallest hashes of the rows so far, and the number of rows with each of them.

    Different rows may be equal by chance, such as short texts or rows of few categories. The
    expected number of such repeats is the Good-Turing estimate: the probability that the next row
    is new is the fraction of rows so far whose hash is unique. More repeats than expected mean that
    rows are presented again.
    """

    def __init__(self) -> None:
        self.hashes, self.counts = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        # Only hashes up to this bound are stored.
        self.largest = np.uint64(np.iinfo(np.uint64).max)
        # Number of rows compared since the tally started, and number of repeats above expectation.
        self.compared = self.excess = 0.0

    @classmethod
    def merged(cls, parts: Sequence[Fingerprints]) -> Fingerprints:
        """Return the fingerprints of the rows of all parts."""
        whole = cls()
        whole.largest = min(part.largest for part in parts)
        whole._add(
            np.concatenate([part.hashes for part in parts]),
            np.concatenate([part.counts for part in parts]),
        )
        return whole

    def add_rows(self, rows: Csr, which: np.ndarray | None) -> bool:
        """Add rows, or those in `which`, and return whether rows are presented again."""
        hashes = row_hashes(rows)
        if which is not None:
            hashes = hashes[which]
        hashes = hashes[hashes <= self.largest]
        if not len(hashes):
            return False
        n_met = int(self.counts.sum())
        if n_met:
            n_lone = int(np.count_nonzero(self.counts == 1))
            expected = len(hashes) * (n_met - n_lone + 1) / (n_met + 1)
            at = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
            self.excess += float(np.count_nonzero(self.hashes[at] == hashes)) - expected
        self.compared += len(hashes)
        again = self.excess > _EXCESS + _SHARE * self.compared
        if self.compared >= _TALLIED:
            self.compared = self.excess = 0.0
        self._add(hashes, np.ones(len(hashes), np.int64))
        return again

    def _add(self, hashes: np.ndarray, counts: np.ndarray) -> None:
        hashes, counts = np.append(self.hashes, hashes), np.append(self.counts, counts)
        for n_sorted in 2 * _MOST, _SORTED:
            # Equal rows have equal hashes, so the `n_sorted` smallest hashes may have fewer than
            # `_MOST` different values. The second attempt then sorts more hashes.
            largest = self.largest
            if len(hashes) > n_sorted:
                largest = np.partition(hashes, n_sorted)[n_sorted]
            some = hashes <= largest
            self.hashes, places = np.unique(hashes[some], return_inverse=True)
            if len(self.hashes) > _MOST or len(hashes) <= n_sorted:
                break
        self.largest, self.counts = largest, np.bincount(places, counts[some]).astype(np.int64)
        if len(self.hashes) > _MOST:
            self.largest = self.hashes[_MOST - 1]
            self.hashes, self.counts = self.hashes[:_MOST], self.counts[:_MOST]

    # ------------------------------------------------------------------------------- the state

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "largest": int(self.largest)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.hashes = array_of(state, "hashes", np.uint64, (None,))
        require(len(self.hashes) <= _MOST, f"'hashes' are more than {_MOST}")
        require(bool((self.hashes[1:] > self.hashes[:-1]).all()), "'hashes' do not rise")
        self.largest = np.uint64(integer(state, "largest", 0, np.iinfo(np.uint64).max))
        most = MAX_TRIALS // _MOST
        self.counts = array_of(state, "counts", np.int64, self.hashes.shape, 1, most)
        self.compared = real(state, "compared", 0.0, float(MAX_TRIALS))
        self.excess = real(state, "excess", -float(MAX_TRIALS), float(MAX_TRIALS))
