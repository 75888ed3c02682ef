"""What a loop over rows learns from."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sparsemargin._engine.rows.csr import Csr
from sparsemargin._engine.state import array_of, received, writable


def warn_user(message, category=UserWarning):
    """Warn at the line that has called the package."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("sparsemargin."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def part_of(rows, start, stop):
    """The rows from `start` to before `stop`, in arrays that begin and end with them."""
    indptr = rows.indptr[start : stop + 1]
    entries = slice(indptr[0], indptr[-1])
    return Csr(rows.data[entries], rows.indices[entries], indptr - indptr[0], rows.n_features)


def pointers_of(lengths, dtype):
    """Where parts of these lengths begin, and the last one ends."""
    pointers = np.zeros(len(lengths) + 1, dtype=dtype)
    np.cumsum(lengths, out=pointers[1:])
    return pointers


def gathered(pointers, parts, dtype=None):
    """Pointers of these parts, one after the other, of their own type unless another is given, and
    the places of what they hold."""
    begins = pointers[parts]
    lengths = pointers[parts + 1] - begins
    fresh = pointers_of(lengths, dtype or pointers.dtype)
    return fresh, np.arange(fresh[-1]) + np.repeat(begins - fresh[:-1], lengths)


def rows_at(rows, chosen):
    """Copies of the rows of these numbers, in their order."""
    indptr, entries = gathered(rows.indptr, chosen)
    return Csr(rows.data[entries], rows.indices[entries], indptr, rows.n_features)


def vectors_of(weights):
    """The rows of an array, or of a CSR array of which one at a time is made dense."""
    for i in range(weights.shape[0]):
        yield weights[i] if isinstance(weights, np.ndarray) else weights[[i]].toarray().ravel()


def norm(v, q):
    """The q-norm of a vector, whatever its magnitude."""
    largest = float(np.abs(v).max(initial=0.0))
    return largest * float(np.linalg.norm(v / largest, ord=q)) if largest else 0.0


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
    """

    rows: Any
    codes: np.ndarray
    weights: np.ndarray | None
    class_weight: np.ndarray
    check: bool = False
    max_corrections: int | None = None
    n_threads: int = 1
    first_row: int | None = None
    row_state: tuple[np.ndarray | None, np.ndarray | None] | None = None
    positives: Positives | None = None

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
