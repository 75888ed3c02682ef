"""The training data and settings of a loop over rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sparsemargin._engine.state import array_of, received, writable


class Positives(NamedTuple):
    """The labels of each row in multilabel problems.

    Attributes
    ----------
    starts : ndarray of shape (n_rows + 1,), int64
    labels : ndarray of shape (n_positives,), int64
        The labels of row r are ``labels[starts[r]:starts[r + 1]]``. They are unique, and sorted
        unless they have been ranked.
    """

    starts: np.ndarray
    labels: np.ndarray

    def __reduce__(self):
        return received, (Positives, *self)

    def indicator(self, rows, n_vectors):
        """Return whether each row of a slice has each label, shape (n_rows, n_vectors), bool."""
        starts = self.starts[rows.start : rows.stop + 1]
        result = np.zeros((len(starts) - 1, n_vectors), dtype=bool)
        row = np.repeat(np.arange(len(result)), np.diff(starts))
        result[row, self.labels[starts[0] : starts[-1]]] = True
        return result


@dataclass
class Task:
    """The training data and settings of a loop over rows.

    Attributes
    ----------
    rows : Rows
    codes : ndarray of shape (n_rows,), int64
        The class of each row; zeros if `positives` is used.
    weights : ndarray of shape (n_rows,) or None
    class_weight : ndarray of shape (2, n_vectors)
    check : bool
        Whether rows must be checked when they are first used.
    distinct : bool
        Whether it is known that no row has duplicate columns.
    max_corrections : int or None
    n_threads : int
        Number of threads, among which the vectors are split; the result does not depend on it.
    first_row : int or None
        Number of the first row, in a stream that may repeat the same rows; None: row numbers
        continue after the last row.
    row_state : tuple or None
        Soft-margin coordinates and multipliers of the rows, each of which may be None; with a
        support set, the slots of the rows and None. Another fit on the same rows resumes from them.
    positives : Positives or None
        The labels of each row in a multilabel problem; None: each row has one class.
    progress : ProgressiveOutputs or None
        Buffer for outputs of rows before their first trial (progressive validation).
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
    progress: Any = None

    @property
    def n_trials(self) -> int:
        """Number of trials in an epoch; rows of weight 0 have none."""
        return len(self.codes) if self.weights is None else int(np.count_nonzero(self.weights))

    def order(self, *, shuffled=False):
        """The rows of an epoch, in an array if they are to be shuffled or selected; None: all rows
        in their order."""
        if self.weights is not None and self.n_trials < len(self.codes):
            return np.flatnonzero(self.weights)
        return np.arange(len(self.codes)) if shuffled else None

    def slots(self, n_support):
        """The rows' slots in the support set after the last fit, -1: none. They are checked because
        they may come from a file."""
        n_rows = len(self.codes)
        if self.row_state is None:
            return np.full(n_rows, -1, dtype=np.int64)
        state = {"slots": self.row_state[0]}
        return writable(array_of(state, "slots", np.int64, (n_rows,), -1, n_support - 1))

    def is_positive(self, rows, n_vectors):
        """Return whether each row of a slice is positive for each vector, bool of shape (n_rows,
        n_vectors)."""
        if self.positives is not None:
            return self.positives.indicator(rows, n_vectors)
        first = 1 if n_vectors == 1 else 0
        return self.codes[rows, np.newaxis] == np.arange(first, first + n_vectors)

    def shares(self, vector, n_vectors, rows=slice(None)):
        """Return whether each of the rows is positive for a vector, and the weight of its steps."""
        if self.positives is not None:
            positive = np.zeros(len(self.codes), dtype=bool)
            at = np.flatnonzero(self.positives.labels == vector)
            positive[np.searchsorted(self.positives.starts, at, side="right") - 1] = True
            positive = positive[rows]
        else:
            positive = self.codes[rows] == (vector if n_vectors > 1 else 1)
        shares = self.class_weight[positive.astype(np.intp), vector]
        return positive, shares if self.weights is None else shares * self.weights[rows]

    def steps(self, vector, n_vectors, rows):
        """The signed weight of a mistake on each of the rows, for one vector."""
        positive, shares = self.shares(vector, n_vectors, rows)
        return np.where(positive, shares, -shares)
