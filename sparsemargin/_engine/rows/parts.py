"""Slices and selections of rows, and of other data with index pointers."""

import numpy as np

from sparsemargin._engine.rows.csr import Csr, rows_with_repeats


def part_of(rows, start, stop):
    """The rows start..stop-1, in arrays that contain only them."""
    indptr = rows.indptr[start : stop + 1]
    entries = slice(indptr[0], indptr[-1])
    return Csr(rows.data[entries], rows.indices[entries], indptr - indptr[0], rows.n_features)


def rows_at(rows, chosen):
    """Copies of the rows at these indices, in that order."""
    indptr, entries = gathered(rows.indptr, chosen)
    return Csr(rows.data[entries], rows.indices[entries], indptr, rows.n_features)


def joined_rows(parts):
    """The rows of several parts, one after the other."""
    data, indices = (
        np.concatenate([getattr(each, name)[each.indptr[0] : each.indptr[-1]] for each in parts])
        for name in ("data", "indices")
    )
    lengths = np.concatenate([np.diff(each.indptr) for each in parts])
    return Csr(data, indices, pointers_of(lengths, indices.dtype), parts[0].n_features)


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


def summed(rows):
    """Return the rows with the values of repeated columns added up.

    Each row is treated by itself. A row with a repeated column gets sorted columns, and its values
    are added in float64 in their order, as in the svmlight scanner. Other rows are not changed;
    if there is no repeated column, the result is `rows` itself.
    """
    merged = rows_with_repeats(rows)
    if not merged.any():
        return rows
    lengths = np.diff(rows.indptr)
    _, entries = gathered(rows.indptr, np.flatnonzero(merged))
    row = np.repeat(np.flatnonzero(merged), lengths[merged])
    order = np.lexsort((rows.indices[entries], row))  # a stable sort
    row, columns = row[order], rows.indices[entries[order]]
    first = np.append(True, (row[1:] != row[:-1]) | (columns[1:] != columns[:-1]))
    sums = np.bincount(np.cumsum(first) - 1, rows.data[entries[order]])

    kept = np.repeat(~merged, lengths)
    lengths[merged] = np.bincount(row[first], minlength=rows.n_rows)[merged]
    stays, whole = np.repeat(~merged, lengths), slice(rows.indptr[0], rows.indptr[-1])
    data = np.empty(len(stays), rows.data.dtype)
    indices = np.empty(len(stays), rows.indices.dtype)
    data[stays], indices[stays] = rows.data[whole][kept], rows.indices[whole][kept]
    with np.errstate(over="ignore"):  # The check of the rows reports an infinite sum.
        data[~stays] = sums
    indices[~stays] = columns[first]
    return Csr(data, indices, pointers_of(lengths, rows.indptr.dtype), rows.n_features)
