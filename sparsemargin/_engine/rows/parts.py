"""Slices and selections of rows, and of other data with index pointers."""

import numpy as np

from sparsemargin._engine.rows.csr import Csr


def part_of(rows, start, stop):
    """The rows start..stop-1, in arrays that contain only them."""
    indptr = rows.indptr[start : stop + 1]
    entries = slice(indptr[0], indptr[-1])
    return Csr(rows.data[entries], rows.indices[entries], indptr - indptr[0], rows.n_features)


def rows_at(rows, chosen):
    """Copies of the rows at these indices, in that order."""
    indptr, entries = gathered(rows.indptr, chosen)
    return Csr(rows.data[entries], rows.indices[entries], indptr, rows.n_features)


def pointers_of(lengths, dtype):
    """Index pointers of parts of these lengths."""
    pointers = np.zeros(len(lengths) + 1, dtype=dtype)
    np.cumsum(lengths, out=pointers[1:])
    return pointers


def gathered(pointers, parts, dtype=None):
    """New index pointers for these parts, with the same dtype unless another one is given, and the
    indices of their entries."""
    begins = pointers[parts]
    lengths = pointers[parts + 1] - begins
    fresh = pointers_of(lengths, dtype or pointers.dtype)
    return fresh, np.arange(fresh[-1]) + np.repeat(begins - fresh[:-1], lengths)
