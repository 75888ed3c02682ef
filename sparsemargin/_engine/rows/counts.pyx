"""Counts of cells made logarithms of shares of them, in two walks over their rows."""

from libc.math cimport NAN, isnan, log1p
from libc.stdint cimport int32_t, int64_t

import numpy as np

from sparsemargin._engine.rows.csr cimport (
    DOUBLE_INT32, FLOAT_INT32, FLOAT_INT64, OK, Csr, Row, Rows, check_row, index_t, is_rising,
    value_t
)

from sparsemargin._engine.rows.csr import BadRow

cpdef enum:  # what keeps a row from being normalised, beside what `csr` has
    NEGATIVE = 32
    NO_LOGARITHM

cpdef enum:  # columns of those that have none
    LEFT_OUT = -1  # but count for the total
    NO_GENE = -2

cdef enum:
    SMALL = 64  # counts below have each logarithm taken once a row

# Added to a positive number and taken away again, it leaves the nearest whole one.
cdef double ROUNDING = 2.0 ** 52
# No logarithm of a count is as large: that is of 4.8e8.
cdef double LARGEST_LOGARITHM = 20.0


def find_scales(Csr rows, const int32_t[::1] columns, double target, bint may_be_logs):
    """How long rows will be, and what their values are multiplied by before logarithms are taken.

    Parameters
    ----------
    rows : Csr
        Of as many features as there are columns.
    columns : ndarray of int32
        Where each feature goes, `LEFT_OUT` or `NO_GENE`.
    target : float
        Total of each row; 0: values stay as they are.
    may_be_logs : bool
        Whether a row of values that are not whole stays as it is.

    Returns
    -------
    lengths : ndarray of int64
    scales : ndarray of float64
        NaN for a row that stays as it is.

    Raises
    ------
    BadRow
        With `NEGATIVE` or `NO_LOGARITHM`, or a status of `csr`.
    """
    cdef int64_t[::1] lengths = np.zeros(rows.n_rows, np.int64)
    cdef double[::1] scales = np.full(rows.n_rows, NAN)
    cdef Py_ssize_t bad = -1
    cdef int status
    if len(columns) != rows.n_features:
        raise ValueError(f"{len(columns)} columns of {rows.n_features} features")
    with nogil:
        if rows.types == FLOAT_INT32:
            status = scale_all(rows.float_int32, columns, target, may_be_logs, lengths, scales, &bad)
        elif rows.types == FLOAT_INT64:
            status = scale_all(rows.float_int64, columns, target, may_be_logs, lengths, scales, &bad)
        elif rows.types == DOUBLE_INT32:
            status = scale_all(rows.double_int32, columns, target, may_be_logs, lengths, scales, &bad)
        else:
            status = scale_all(rows.double_int64, columns, target, may_be_logs, lengths, scales, &bad)
    if status != OK:
        raise BadRow(status, bad)
    return np.asarray(lengths), np.asarray(scales)


cdef int scale_all(const Rows[value_t, index_t]& rows, const int32_t[::1] columns, double target,
                   bint may_be_logs, int64_t[::1] lengths, double[::1] scales,
                   Py_ssize_t* bad) noexcept nogil:
    cdef Py_ssize_t r, j
    cdef bint all_go = True
    cdef int status
    cdef Row[value_t, index_t] row
    for j in range(columns.shape[0]):
        all_go = all_go and columns[j] >= 0
    for r in range(rows.n):
        row = rows.at(r)
        bad[0] = r
        status = check_row(row, rows.n_features)
        if status == OK:
            lengths[r] = row.nnz if all_go else count_gone(row, columns)
            if target > 0.0:
                status = find_scale(row, columns, all_go, target, may_be_logs, &scales[r])
        if status != OK:
            return status
    return OK


cdef inline int64_t count_gone(const Row[value_t, index_t]& row,
                               const int32_t[::1] columns) noexcept nogil:
    cdef int64_t j, n = 0
    for j in range(row.nnz):
        n += columns[row.columns[j]] >= 0
    return n


cdef inline int find_scale(const Row[value_t, index_t]& row, const int32_t[::1] columns,
                           bint all_go, double target, bint may_be_logs,
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
    if parts and may_be_logs:
        return NO_LOGARITHM if largest > LARGEST_LOGARITHM else OK
    scale[0] = target / total if total > 0.0 else 1.0
    return OK


def write_rows(Csr rows, const int32_t[::1] columns, const double[::1] scales,
               const int64_t[::1] starts, data, int32_t[::1] indices):
    """Write rows, normalised by `find_scales`, each from its start on, or not at all where that is
    negative; `data` is of the rows' type. Whether the columns of each are rising."""
    cdef float[::1] singles
    cdef double[::1] doubles
    cdef bint rising
    if rows.types == FLOAT_INT32 or rows.types == FLOAT_INT64:
        singles = data
        with nogil:
            if rows.types == FLOAT_INT32:
                rising = write_all(rows.float_int32, columns, scales, starts, singles, indices)
            else:
                rising = write_all(rows.float_int64, columns, scales, starts, singles, indices)
    else:
        doubles = data
        with nogil:
            if rows.types == DOUBLE_INT32:
                rising = write_all(rows.double_int32, columns, scales, starts, doubles, indices)
            else:
                rising = write_all(rows.double_int64, columns, scales, starts, doubles, indices)
    return rising


cdef bint write_all(const Rows[value_t, index_t]& rows, const int32_t[::1] columns,
                    const double[::1] scales, const int64_t[::1] starts, value_t[::1] data,
                    int32_t[::1] indices) noexcept nogil:
    cdef value_t[SMALL] known  # logarithms of counts in this row, negative: not taken yet
    cdef Py_ssize_t r, j, to
    cdef int32_t column
    cdef int count
    cdef value_t value
    cdef bint rising = True
    cdef Row[value_t, index_t] row
    for r in range(rows.n):
        to = starts[r]
        if to < 0:
            continue
        row = rows.at(r)
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
            data[to], indices[to] = value, column
            to += 1
        if to > starts[r]:
            rising = rising and is_rising(&indices[starts[r]], to - starts[r])
    return rising
