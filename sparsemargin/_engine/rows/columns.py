"""Rows over the columns that they have, however many there might be."""

from copy import copy
from functools import cache, partial
from itertools import chain

import numpy as np

from sparsemargin._engine.rows.csr import Csr

NO_ROWS = Csr(np.zeros(0), np.zeros(0, np.int32), np.zeros(1, np.int32), 0)

# Beside fewer entries, looking at all columns takes longer than sorting the entries.
_COLUMNS_AN_ENTRY = 32


def distinct(numbers):
    """The numbers, each once, rising; several times as fast as `numpy.unique`."""
    numbers = np.sort(numbers)
    first = np.ones(len(numbers), bool)
    first[1:] = numbers[1:] != numbers[:-1]
    return numbers[first]


def union(n, parts, n_numbers):
    """The numbers below n that are in any of the arrays, which have so many together: each once,
    rising; and what maps them to their places among these."""
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
    """The columns that checked rows or `others` have, and the last one.

    Parameters
    ----------
    n : int
        Of all columns.
    rows : Csr
    others : iterable of ndarray
    n_others : int
        Entries these have.

    Attributes
    ----------
    columns : ndarray of shape (n_chosen,)
        They rise.
    position : callable
        Maps chosen columns to their positions in `columns`.
    """

    def __init__(self, n, rows, others=(), n_others=0):
        met = rows.indices[rows.indptr[0] : rows.indptr[-1]]
        parts = chain(([n - 1], met), others)
        self.columns, self.position = union(n, parts, len(met) + n_others)

    def within(self, whole):
        """The same columns by their numbers among all, where these are places among `whole`."""
        of_all = copy(self)
        of_all.columns = whole.columns[self.columns]
        of_all.position = lambda numbers: self.position(whole.position(numbers))
        return of_all

    def of_rows(self, rows, n_last=0):
        """The rows over these columns, but for the n_last last ones."""
        entries = slice(rows.indptr[0], rows.indptr[-1])
        indices = self.position(rows.indices[entries]).astype(rows.indices.dtype, copy=False)
        indptr = rows.indptr - rows.indptr[0]
        return Csr(rows.data[entries], indices, indptr, len(self.columns) - n_last)
