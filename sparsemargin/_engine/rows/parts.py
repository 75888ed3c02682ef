"""Parts of rows, and of other things that lie one after the other."""

import numpy as np

from sparsemargin._engine.rows.csr import Csr


def part_of(rows, start, stop):
    """The rows from `start` to before `stop`, in arrays that begin and end with them."""
    indptr = rows.indptr[start : stop + 1]
    entries = slice(indptr[0], indptr[-1])
    return Csr(rows.data[entries], rows.indices[entries], indptr - indptr[0], rows.n_features)


def rows_at(rows, chosen):
    """Copies of the rows of these numbers, in their order."""
    indptr, entries = gathered(rows.indptr, chosen)
    return Csr(rows.data[entries], rows.indices[entries], indptr, rows.n_features)


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
