# distutils: extra_compile_args = -ffp-contract=off
"""Row access over CSR: checks and norms. Nothing here writes to a row."""

from libc.math cimport INFINITY, fabs, ilogb, ldexp, pow, sqrt
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

import numpy as np

from sparsemargin._engine._power cimport BLOCK, Power, make_power, raise_block, raised
from sparsemargin._engine._types cimport (
    NOT_CANONICAL, NOT_FINITE, OK, OUT_OF_RANGE, index_t, value_t
)

# Rows below 2**-1022, subnormal throughout, are scaled no further: 2**1023 is the largest power.
cdef enum:
    LOWEST_EXPONENT = -1022


cdef inline bint all_finite(const value_t* values, Py_ssize_t nnz) noexcept nogil:
    # Adding one to an exponent field of all ones carries into the sign bit; integer
    # operations without branches let the compiler use vector instructions.
    cdef Py_ssize_t j
    cdef uint64_t bits64, carry64 = 0
    cdef uint32_t bits32, carry32 = 0
    if value_t is double:
        for j in range(nnz):
            memcpy(&bits64, values + j, 8)
            carry64 |= (bits64 & 0x7FF0000000000000u) + 0x0010000000000000u
        return (carry64 >> 63) == 0
    else:
        for j in range(nnz):
            memcpy(&bits32, values + j, 4)
            carry32 |= (bits32 & 0x7F800000u) + 0x00800000u
        return (carry32 >> 31) == 0


cdef inline int check_columns(const index_t* columns, Py_ssize_t nnz,
                              Py_ssize_t n_features) noexcept nogil:
    cdef Py_ssize_t j
    cdef uint64_t falling64 = 0, negative64 = 0
    cdef uint32_t falling32 = 0, negative32 = 0
    cdef bint falls, negative
    if nnz == 0:
        return OK
    if index_t is int64_t:
        for j in range(nnz - 1):
            falling64 |= <uint64_t> columns[j + 1] - <uint64_t> columns[j] - 1
            negative64 |= <uint64_t> columns[j]
        falls = falling64 >> 63
        negative = negative64 >> 63
    else:
        for j in range(nnz - 1):
            falling32 |= <uint32_t> columns[j + 1] - <uint32_t> columns[j] - 1
            negative32 |= <uint32_t> columns[j]
        falls = falling32 >> 31
        negative = negative32 >> 31
    if not falls and not negative and 0 <= columns[nnz - 1] < n_features:
        return OK
    for j in range(nnz):
        if columns[j] < 0 or columns[j] >= n_features:
            return OUT_OF_RANGE
    return NOT_CANONICAL


cdef int check_row(const value_t* values, const index_t* columns, Py_ssize_t nnz,
                   Py_ssize_t n_features) noexcept nogil:
    """OK, or the worst that is wrong with the row."""
    cdef int status = check_columns(columns, nnz, n_features)
    if status == OUT_OF_RANGE or all_finite(values, nnz):
        return status
    return NOT_FINITE


cdef int has_repeats(const index_t* columns, Py_ssize_t nnz,
                     vector[int64_t]& table) except -1 nogil:
    """Whether a column stands twice in an unsorted row; by hashing, `table` being scratch."""
    cdef uint64_t mask = 1, at
    cdef Py_ssize_t j
    while mask < <uint64_t> (2 * nnz):
        mask *= 2
    table.assign(mask, -1)
    mask -= 1
    for j in range(nnz):
        at = (<uint64_t> columns[j] * 0x9E3779B97F4A7C15u >> 32) & mask
        while table[at] >= 0:
            if table[at] == columns[j]:
                return True
            at = (at + 1) & mask
        table[at] = columns[j]
    return False


cdef double two_norm(const value_t* values, Py_ssize_t nnz, double bias,
                     double slack) noexcept nogil:
    """2-norm of the augmented row; not safe against overflow, see `measure` for that."""
    cdef double a = 0.0, b = 0.0, c = 0.0, d = 0.0
    cdef Py_ssize_t j, whole = nnz - nnz % 4
    for j in range(0, whole, 4):
        a += <double> values[j] * values[j]
        b += <double> values[j + 1] * values[j + 1]
        c += <double> values[j + 2] * values[j + 2]
        d += <double> values[j + 3] * values[j + 3]
    for j in range(whole, nnz):
        a += <double> values[j] * values[j]
    return sqrt((a + b) + (c + d) + bias * bias + slack * slack)


cdef inline double peak_of(const value_t* values, Py_ssize_t nnz, double peak,
                           double* least) noexcept nogil:
    """Largest magnitude, at least `peak`; `least` falls to the smallest one that is not 0."""
    cdef double magnitude
    cdef Py_ssize_t j
    for j in range(nnz):
        magnitude = fabs(<double> values[j])
        peak = magnitude if magnitude > peak else peak
        magnitude = magnitude if magnitude > 0.0 else INFINITY
        least[0] = magnitude if magnitude < least[0] else least[0]
    return peak


cdef inline double sum_of_powers(const Power* p, const value_t* values, Py_ssize_t nnz,
                                 double factor) noexcept nogil:
    cdef double block[BLOCK]
    cdef double even = 0.0, odd = 0.0
    cdef Py_ssize_t b, j, n
    for b in range((nnz + BLOCK - 1) // BLOCK):
        n = 0
        for j in range(b * BLOCK, min((b + 1) * BLOCK, nnz)):
            block[n] = fabs(<double> values[j]) * factor
            n += block[n] > p.negligible
        raise_block(p, block, n)
        for j in range(0, n - 1, 2):
            even += block[j]
            odd += block[j + 1]
        if n % 2:
            even += block[n - 1]
    return even + odd


cdef bint measure(RowScale* row, const Power* p, const value_t* values, Py_ssize_t nnz,
                  double bias, double slack) noexcept nogil:
    """Scale and p-norm of the augmented row; False where the row is zero."""
    cdef double least = INFINITY, total
    cdef double peak = peak_of(values, nnz, max(fabs(bias), fabs(slack)), &least)
    if peak == 0.0:
        return False
    if bias:
        least = min(least, fabs(bias))
    if slack:
        least = min(least, fabs(slack))
    row.exponent = max(ilogb(peak), LOWEST_EXPONENT)
    row.factor = ldexp(1.0, -row.exponent)
    row.smallest = least * row.factor
    total = (sum_of_powers(p, values, nnz, row.factor)
             + raised(p, fabs(bias) * row.factor) + raised(p, fabs(slack) * row.factor))
    row.norm = sqrt(total) if p.exponent == 2.0 else pow(total, 1.0 / p.exponent)
    return True


def first_bad_row(const value_t[::1] data, const index_t[::1] indices,
                  const index_t[::1] indptr, Py_ssize_t n_features, bint repeats_allowed):
    """First row that can't be used as it stands.

    Returns
    -------
    status, row : int
        `OK` and -1 where every row is finite, in range and, unless allowed, without repeats.
    """
    cdef Py_ssize_t r = -1, nnz, n_rows = indptr.shape[0] - 1
    cdef int status = OK
    cdef const index_t* columns
    cdef vector[int64_t] table
    with nogil:
        for r in range(n_rows):
            columns = &indices[0] + indptr[r]
            nnz = indptr[r + 1] - indptr[r]
            status = check_row(&data[0] + indptr[r], columns, nnz, n_features)
            if status == NOT_CANONICAL and (repeats_allowed
                                            or not has_repeats(columns, nnz, table)):
                status = OK
            if status != OK:
                break
    return status, (r if status != OK else -1)


def bad_pointer(const index_t[::1] indptr, Py_ssize_t stored):
    """First row whose pointers fall or point outside the `stored` entries; -1: none."""
    cdef Py_ssize_t r, n_rows = indptr.shape[0] - 1
    if indptr[0] != 0:
        return 0
    for r in range(n_rows):
        if not 0 <= indptr[r] <= indptr[r + 1] <= stored:
            return r
    return -1


def row_norms(const value_t[::1] data, const index_t[::1] indptr, double p,
              double bias=0.0, double slack=0.0):
    """p-norm of every row, the constants `bias` and `slack` appended to it."""
    cdef Py_ssize_t r, n_rows = indptr.shape[0] - 1
    cdef Power power = make_power(p)
    cdef RowScale row
    result = np.zeros(n_rows)
    cdef double[::1] norms = result
    with nogil:
        for r in range(n_rows):
            if measure(&row, &power, &data[0] + indptr[r], indptr[r + 1] - indptr[r],
                       bias, slack):
                norms[r] = ldexp(row.norm, row.exponent)
    return result
