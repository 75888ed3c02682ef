"""Log-normalization of the counts of cells, in two passes over the rows."""

from libc.math cimport NAN, isnan, log1p
from libc.stdint cimport int32_t, int64_t

import numpy as np

from sparsemargin._engine.rows.csr cimport OK, Row, check_row, index_t, is_rising, value_t

from sparsemargin._engine.rows.csr import BadRow

cpdef enum:  # errors of normalization, in addition to those of `csr`
    NEGATIVE = 32
    NO_LOGARITHM
    NOT_WHOLE
    COUNTS_AMONG_LOGARITHMS

cpdef enum:  # special values in the map of columns
    LEFT_OUT = -1  # dropped, but counted in the total
    NO_GENE = -2  # dropped, and not counted in the total

cdef enum:
    SMALL = 64  # the logarithms of smaller counts are cached for a row

# Adding and subtracting this number rounds a positive number to an integer.
cdef double ROUNDING = 2.0 ** 52
# Larger values cannot be logarithms of counts: exp(20) is 4.8e8.
cdef double LARGEST_LOGARITHM = 20.0


def find_scales(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
                const int32_t[::1] columns, double target, bint whole):
    """Find the lengths of the normalized rows, and the factors of values before the logarithm.

    Parameters
    ----------
    data, indices, indptr : ndarray
        Rows of a CSR matrix with valid index pointers, and with as many columns as `columns`.
    columns : ndarray of int32
        New column of each column, or `LEFT_OUT` or `NO_GENE`.
    target : float
        Total of each row before logarithms are taken. 0 leaves all values as they are. NaN leaves
        them, too, and checks that they can be logarithms.
    whole : bool
        Whether values have to be whole numbers.

    Returns
    -------
    lengths : ndarray of int64
    scales : ndarray of float64
        NaN for a row that does not change.

    Raises
    ------
    BadRow
        With one of the errors above, or a status of `csr`.
    """
    cdef int64_t[::1] lengths = np.zeros(indptr.shape[0] - 1, np.int64)
    cdef double[::1] scales = np.full(indptr.shape[0] - 1, NAN)
    cdef Py_ssize_t r, j
    cdef bint all_go = True
    cdef int status = OK
    cdef Row[value_t, index_t] row
    with nogil:
        for j in range(columns.shape[0]):
            all_go = all_go and columns[j] >= 0
        for r in range(lengths.shape[0]):
            row = row_at(data, indices, indptr, r)
            status = check_row(row, columns.shape[0])
            if status == OK:
                lengths[r] = row.nnz
                for j in range(0 if all_go else row.nnz):
                    lengths[r] -= columns[row.columns[j]] < 0
            if status == OK and target != 0.0:
                status = find_scale(row, columns, all_go, target, whole, &scales[r])
            if status != OK:
                break
    if status != OK:
        raise BadRow(status, r)
    return np.asarray(lengths), np.asarray(scales)


cdef inline Row[value_t, index_t] row_at(const value_t[::1] data, const index_t[::1] indices,
                                         const index_t[::1] indptr, Py_ssize_t r) noexcept nogil:
    cdef Row[value_t, index_t] row
    row.nnz = indptr[r + 1] - indptr[r]
    if row.nnz:
        row.values, row.columns = &data[indptr[r]], &indices[indptr[r]]
    return row


cdef inline int find_scale(const Row[value_t, index_t]& row, const int32_t[::1] columns,
                           bint all_go, double target, bint whole,
                           double* scale) noexcept nogil:
    cdef double value, total = 0.0, largest = 0.0
    cdef bint negative = False, parts = False
    cdef Py_ssize_t j
    for j in range(row.nnz):
        if not all_go and columns[row.columns[j]] == NO_GENE:
            continue
        value = row.values[j]
        total += value
        negative |= value < 0.0
        parts |= (value + ROUNDING) - ROUNDING != value
        largest = value if value > largest else largest
    if negative:
        return NEGATIVE
    if isnan(target):
        if parts:
            return NO_LOGARITHM if largest > LARGEST_LOGARITHM else OK
        return COUNTS_AMONG_LOGARITHMS if largest > 1.0 else OK
    if parts and whole:
        return NOT_WHOLE
    scale[0] = target / total if total > 0.0 else 1.0
    return OK


def write_rows(const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
               const int32_t[::1] columns, const double[::1] scales, const int64_t[::1] starts,
               value_t[::1] to_data, int32_t[::1] to_indices):
    """Write rows, normalized with the result of `find_scales`, each from its start on; a negative
    start skips the row. Returns whether the columns of each row increase."""
    cdef value_t[SMALL] known  # logarithms of counts in this row; negative if not computed yet
    cdef value_t value
    cdef Py_ssize_t r, j, to
    cdef int32_t column
    cdef int count
    cdef bint rising = True
    cdef Row[value_t, index_t] row
    with nogil:
        for r in range(starts.shape[0]):
            to = starts[r]
            if to < 0:
                continue
            row = row_at(data, indices, indptr, r)
            for j in range(SMALL):
                known[j] = -1.0
            for j in range(row.nnz):
                column = columns[row.columns[j]]
                if column < 0:
                    continue
                value = row.values[j]
                if not isnan(scales[r]):
                    count = <int> value if value < SMALL else 0
                    if count != value:
                        value = <value_t> log1p(value * scales[r])
                    else:
                        if known[count] < 0.0:
                            known[count] = <value_t> log1p(value * scales[r])
                        value = known[count]
                to_data[to], to_indices[to] = value, column
                to += 1
            if to > starts[r]:
                rising = rising and is_rising(&to_indices[starts[r]], to - starts[r])
    return rising
