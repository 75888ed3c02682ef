"""Counts of genes in cells made rows: brought to one total, their logarithms taken, columns by
name."""

from libc.math cimport INFINITY, floor, log1p
from libc.stdint cimport int32_t, int64_t

import numpy as np

ctypedef fused value_t:
    float
    double

ctypedef fused index_t:
    int32_t
    int64_t

#: What a row may be refused for.
SOUND, NOT_FINITE, NEGATIVE, OUT_OF_RANGE, NEITHER = range(5)

#: What becomes of rows: nothing; those of whole numbers are counts, and normalised; all are.
AS_THEY_ARE, WHOLE, ALL = range(3)

#: Of a gene that no row has a column for, which counts for the total all the same; and of what is
#: no gene.
UNKNOWN, NO_GENE = -1, -2

# Logarithms of counts below are taken once a row.
cdef enum:
    TABLE = 64

# No logarithm of a count is as large: that is of 4.8e8.
cdef double LARGEST_LOG = 20.0


def made_rows(
    const value_t[::1] data, const index_t[::1] indices, const int64_t[::1] indptr,
    const int64_t[::1] order, const int32_t[::1] columns, double target, int kind,
):
    """Rows of these numbers, in this order, normalised to a total of `target`.

    Parameters
    ----------
    data, indices, indptr : ndarray
        Of the CSR matrix; the pointers are sound, all else is checked here.
    order : ndarray of int64
        Numbers of rows.
    columns : ndarray of int32, shape (n_genes,)
        Column of each gene, `UNKNOWN` or `NO_GENE`.
    target : float
    kind : int
        `AS_THEY_ARE`, `WHOLE` or `ALL`.

    Returns
    -------
    status, row, n_logs, is_sorted, (data, indices, indptr)
        What a row is refused for, and its number; how many rows were taken for logarithms; whether
        columns rise within all rows; arrays of int32 and of the type of data.
    """
    cdef Py_ssize_t n_rows = order.shape[0], i, n_entries = 0
    for i in range(n_rows):
        n_entries += indptr[order[i] + 1] - indptr[order[i]]
    values = np.empty(n_entries, dtype=np.asarray(data).dtype)
    places = np.empty(n_entries, dtype=np.int32)
    ends = np.zeros(n_rows + 1, dtype=np.int32)
    cdef value_t[::1] out = values
    cdef int32_t[::1] out_columns = places, out_ends = ends
    cdef Py_ssize_t start, length, n = 0, n_logs = 0
    cdef int status = 0
    cdef bint is_sorted = True, is_log = False
    if not n_entries:
        return SOUND, -1, 0, True, (values, places, ends)
    with nogil:
        for i in range(n_rows):
            start, length = indptr[order[i]], indptr[order[i] + 1] - indptr[order[i]]
            status = make_row(
                &data[0] + start, &indices[0] + start, length, &columns[0], columns.shape[0],
                target, kind, &out[0], &out_columns[0], &n, &is_log, &is_sorted,
            )
            if status:
                break
            n_logs += is_log
            out_ends[i + 1] = <int32_t> n
    row = order[i] if status else -1
    return status, row, n_logs, is_sorted, (values[:n], places[:n], ends)


cdef int make_row(
    const value_t* data, const index_t* indices, Py_ssize_t length, const int32_t* columns,
    Py_ssize_t n_genes, double target, int kind, value_t* out, int32_t* out_columns,
    Py_ssize_t* n, bint* is_log, bint* is_sorted,
) noexcept nogil:
    cdef double total, largest, x, scale = 1
    cdef bint is_whole
    cdef Py_ssize_t j, at = n[0]
    cdef int32_t column, last = -1, k
    cdef double[TABLE] logs
    cdef int status = measure(data, indices, length, columns, n_genes, &total, &largest, &is_whole)
    if status:
        return status
    if kind and largest < 0:
        return 2
    is_log[0] = kind == 1 and not is_whole
    if is_log[0] and largest > LARGEST_LOG:
        return 4
    if kind and not is_log[0] and total > 0:
        scale = target / total
        for k in range(min(TABLE, <int> min(largest, TABLE) + 1)):
            logs[k] = log1p(k * scale)
    for j in range(length):
        column = columns[indices[j]]
        if column < 0:
            continue
        if kind == 0 or is_log[0]:
            out[at] = data[j]
        else:
            k = <int32_t> min(data[j], <value_t> TABLE)
            x = logs[k] if k < TABLE and k == data[j] else log1p(data[j] * scale)
            out[at] = <value_t> x
        is_sorted[0] = is_sorted[0] and column > last
        last = out_columns[at] = column
        at += 1
    n[0] = at
    return 0


# Added to a float32, there are no places left for parts.
cdef double WHOLE_ONLY = 8388608


cdef int measure(
    const value_t* data, const index_t* indices, Py_ssize_t length, const int32_t* columns,
    Py_ssize_t n_genes, double* total, double* largest, bint* is_whole,
) noexcept nogil:
    """The sum of a row, its largest value, -1 where one is negative, and whether all are whole; or
    what is wrong with it."""
    cdef double[4] sums = [0, 0, 0, 0]
    cdef value_t x, most = 0, least = 0
    cdef int parts = 0, outside = 0
    cdef Py_ssize_t j
    for j in range(length):
        outside |= (indices[j] < 0) | (indices[j] >= n_genes)
    if outside:
        return 3
    for j in range(length):
        x = data[j] if columns[indices[j]] != -2 else 0
        sums[j & 3] += x
        most = max(most, x)
        least = min(least, x)
        # No number with a part stays as it is.
        parts |= x != (x + <value_t> WHOLE_ONLY) - <value_t> WHOLE_ONLY
    total[0] = sums[0] + sums[1] + (sums[2] + sums[3])
    largest[0] = most if least >= 0 else -1
    if parts:  # or a number is too large for that
        parts = 0
        for j in range(length):
            parts |= data[j] != floor(data[j]) and columns[indices[j]] != -2
    is_whole[0] = not parts
    return 0 if -INFINITY < total[0] < INFINITY else 1
