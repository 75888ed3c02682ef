"""Rows over the columns that they have, however many there might be."""

from functools import partial
from itertools import chain

import numpy as np

from sparsemargin._engine.rows.csr import Csr

# Beside fewer entries, looking at all columns takes longer than sorting the entries.
_COLUMNS_AN_ENTRY = 32


def distinct(numbers):
    """The numbers, each once, rising; several times as fast as `numpy.unique`."""
    numbers = np.sort(numbers)
    first = np.ones(len(numbers), bool)
    first[1:] = numbers[1:] != numbers[:-1]
    return numbers[first]


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
        if (len(met) + n_others) * _COLUMNS_AN_ENTRY < n:
            self.columns = distinct(np.concatenate([distinct(part) for part in parts]))
            self.position = partial(np.searchsorted, self.columns)
            return
        chosen = np.zeros(n, bool)
        for part in parts:
            chosen[part] = True
        self.columns = np.flatnonzero(chosen)
        self.position = (np.cumsum(chosen, dtype=rows.indices.dtype) - 1).take

    def of_rows(self, rows, n_last=0):
        """The rows over these columns, but for the n_last last ones."""
        entries = slice(rows.indptr[0], rows.indptr[-1])
        indices = self.position(rows.indices[entries]).astype(rows.indices.dtype, copy=False)
        indptr = rows.indptr - rows.indptr[0]
        return Csr(rows.data[entries], indices, indptr, len(self.columns) - n_last)
