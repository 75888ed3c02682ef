"""Rows restricted to the columns that occur in them."""

from functools import cache, partial
from itertools import chain

import numpy as np

from sparsemargin._engine.rows.csr import Csr

# Unused columns are kept if there are at least this many entries for each column. With 8 classes,
# the weights and variances of a column take a new model 0.1 to 0.2 us, and `Chosen` takes 10 ns for
# an entry. With fewer classes, both take less time than training.
_ENTRIES_A_COLUMN = 8

NO_ROWS = Csr(np.zeros(0), np.zeros(0, np.int32), np.zeros(1, np.int32), 0)

# Number of columns per entry above which the columns that occur are found by sorting the entries.
# With fewer columns, a mask of all columns is faster.
_COLUMNS_AN_ENTRY = 32


def distinct(numbers):
    """The sorted, distinct numbers; several times faster than `numpy.unique`."""
    numbers = np.sort(numbers)
    first = np.ones(len(numbers), bool)
    first[1:] = numbers[1:] != numbers[:-1]
    return numbers[first]


def union(n, parts, n_numbers):
    """The sorted, distinct numbers below n in the arrays, which have n_numbers entries in all, and
    a function that maps them to their positions in this result."""
    if n_numbers * _COLUMNS_AN_ENTRY < n:
        numbers = distinct(np.concatenate([distinct(part) for part in parts]))
        return numbers, partial(np.searchsorted, numbers)
    there = np.zeros(n, bool)
    for part in parts:
        there[part] = True

    @cache
    def places():
        return np.cumsum(there, dtype=np.int32 if n <= 2**31 else np.int64) - 1

    return np.flatnonzero(there), lambda numbers: places().take(numbers)


class Chosen:
    """The columns that occur in checked rows or in `others`, and the last column.

    Parameters
    ----------
    n : int
        Number of all columns.
    rows : Csr
    others : iterable of ndarray
    n_others : int
        Number of entries in `others`.

    Attributes
    ----------
    columns : ndarray of shape (n_chosen,)
        The sorted column numbers.
    position : callable
        A function that maps chosen columns to their positions in `columns`.
    """

    def __init__(self, n, rows, others=(), n_others=0):
        met = rows.indices[rows.indptr[0] : rows.indptr[-1]]
        parts = chain(([n - 1], met), others)
        self.columns, self.position = union(n, parts, len(met) + n_others)

    def of_rows(self, rows, n_last=0):
        """The rows over these columns, without the last n_last ones."""
        entries = slice(rows.indptr[0], rows.indptr[-1])
        indices = self.position(rows.indices[entries]).astype(rows.indices.dtype, copy=False)
        indptr = rows.indptr - rows.indptr[0]
        return Csr(rows.data[entries], indices, indptr, len(self.columns) - n_last)


def without_unused_columns(rows):
    """The checked rows over the columns that occur in them, if many columns may not occur.

    A model for these rows alone then needs less memory and time, and has the same weights.
    """
    if rows.n_features * _ENTRIES_A_COLUMN <= len(rows.data):
        return rows
    return Chosen(rows.n_features, rows).of_rows(rows)
