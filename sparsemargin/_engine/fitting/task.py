"""What a loop over rows learns from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sparsemargin._engine.state import array_of, received, writable


class Positives(NamedTuple):
    """The labels of each row, where a row may have any number of them.

    Attributes
    ----------
    starts : ndarray of shape (n_rows + 1,), int64
    labels : ndarray of shape (n_positives,), int64
        Those of row r are ``labels[starts[r]:starts[r + 1]]``, without repeats; sorted, but
        where a choice has ranked them.
    """

    starts: np.ndarray
    labels: np.ndarray

    def __reduce__(self):
        return received, (Positives, *self)

    def indicator(self, rows, n_labels):
        """Which labels a slice of rows has, shape (n_rows, n_labels), bool."""
        starts = self.starts[rows.start : rows.stop + 1]
        result = np.zeros((len(starts) - 1, n_labels), dtype=bool)
        row = np.repeat(np.arange(len(result)), np.diff(starts))
        result[row, self.labels[starts[0] : starts[-1]]] = True
        return result


@dataclass
class Task:
    """What the loop learns from, and how.

    Attributes
    ----------
    rows : Rows
    codes : ndarray of shape (n_rows,), int64
        The class of each row; zeros where rows have `positives`.
    weights : ndarray of shape (n_rows,) or None
    class_weight : ndarray of shape (2, n_labels)
    check : bool
        Whether rows are still to be checked, as they are first used.
    distinct : bool
        Whether it is known that no row has a column twice.
    max_corrections : int or None
    n_threads : int
        Labels are split over that many threads; the result is the same for any number.
    first_row : int or None
        Number of the first row, in a stream that may come to the same rows again; None: they are
        counted on from those before.
    row_state : tuple or None
        What the rows have besides: their soft-margin coordinates and their multipliers, or None
        for either. Left behind by one fit, they let another go on with the same rows.
    positives : Positives or None
        The labels of each row, each a problem of its own; None: rows have a class.
    kept : ProgressiveOutputs or None
        Where outputs are kept of rows not yet learned from.
    """

    rows: Any
    codes: np.ndarray
    weights: np.ndarray | None
    class_weight: np.ndarray
    check: bool = False
    distinct: bool = True
    max_corrections: int | None = None
    n_threads: int = 1
    first_row: int | None = None
    row_state: tuple[np.ndarray | None, np.ndarray | None] | None = None
    positives: Positives | None = None
    kept: Any = None

    @property
    def n_trials(self) -> int:
        """Trials in a pass over the rows: those of weight 0 are none."""
        return len(self.codes) if self.weights is None else int(np.count_nonzero(self.weights))

    def order(self, *, shuffled=False):
        """The rows of a pass, to be shuffled perhaps; None: all, as they come."""
        if self.weights is not None and self.n_trials < len(self.codes):
            return np.flatnonzero(self.weights)
        return np.arange(len(self.codes)) if shuffled else None

    def slots(self, n_support):
        """The rows' slots in the support set, -1 for none: those of the last fit, which may come
        from a file."""
        n_rows = len(self.codes)
        if self.row_state is None:
            return np.full(n_rows, -1, dtype=np.int64)
        state = {"slots": self.row_state[0]}
        return writable(array_of(state, "slots", np.int64, (n_rows,), -1, n_support - 1))

    def is_positive(self, rows, n_labels):
        """Which rows of a slice are positive for which label, shape (n_rows, n_labels), bool."""
        if self.positives is not None:
            return self.positives.indicator(rows, n_labels)
        first = 1 if n_labels == 1 else 0
        return self.codes[rows, np.newaxis] == np.arange(first, first + n_labels)

    def shares(self, label, n_labels, rows=slice(None)):
        """Which of the rows are positive for the label, and what multiplies their steps."""
        if self.positives is not None:
            positive = np.zeros(len(self.codes), dtype=bool)
            at = np.flatnonzero(self.positives.labels == label)
            positive[np.searchsorted(self.positives.starts, at, side="right") - 1] = True
            positive = positive[rows]
        else:
            positive = self.codes[rows] == (label if n_labels > 1 else 1)
        shares = self.class_weight[positive.astype(np.intp), label]
        return positive, shares if self.weights is None else shares * self.weights[rows]

    def steps(self, label, n_labels, rows):
        """What a mistake on each of the rows makes, with the sign of its label for this one."""
        positive, shares = self.shares(label, n_labels, rows)
        return np.where(positive, shares, -shares)
