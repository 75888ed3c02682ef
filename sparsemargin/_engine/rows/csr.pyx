"""Row access over CSR: checks and norms. Nothing here writes to a row."""

from libc.math cimport INFINITY, fabs, ilogb, ldexp, pow, sqrt
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy
from libcpp.algorithm cimport adjacent_find, sort
from libcpp.vector cimport vector

import numpy as np

from sparsemargin._engine.numerics.power cimport BLOCK, Power, make_power, raise_block, raised
from sparsemargin._engine.rows.types cimport (
    NOT_CANONICAL, NOT_FINITE, OK, OUT_OF_RANGE, index_t, value_t
)

# Rows below 2**-1022, subnormal throughout, are scaled no further: 2**1023 is the largest power.
cdef enum:
    LOWEST_EXPONENT = -1022

# What tells the columns of an unsorted row apart, powers of two.
cdef enum:
    FEWEST_MARKS = 1 << 10
    MOST_MARKS = 1 << 20

# Rows whose magnitudes are from 2**-PLAIN to 2**PLAIN need no scaling for p = 2.
cdef enum:
    PLAIN = 30
cdef double LEAST_PLAIN = ldexp(1.0, -PLAIN)


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


cdef inline bint in_range(const index_t* columns, Py_ssize_t nnz,
                          Py_ssize_t n_features) noexcept nogil:
    # A column below 0 has the sign bit, and what it is short of the last one has it beyond that.
    cdef Py_ssize_t j
    cdef uint64_t wrong64 = 0, last64
    cdef uint32_t wrong32 = 0, last32
    if index_t is int64_t:
        last64 = <uint64_t> n_features - 1
        for j in range(nnz):
            wrong64 |= <uint64_t> columns[j] | (last64 - <uint64_t> columns[j])
        return (wrong64 >> 63) == 0
    else:
        last32 = <uint32_t> min(n_features, <Py_ssize_t> 0x80000000u) - 1
        for j in range(nnz):
            wrong32 |= <uint32_t> columns[j] | (last32 - <uint32_t> columns[j])
        return (wrong32 >> 31) == 0


cdef int check_row(const value_t* values, const index_t* columns, Py_ssize_t nnz,
                   Py_ssize_t n_features) noexcept nogil:
    """OK, or the worst that is wrong with the row."""
    if not in_range(columns, nnz, n_features):
        return OUT_OF_RANGE
    return OK if all_finite(values, nnz) else NOT_FINITE


cdef inline bint is_rising(const index_t* columns, Py_ssize_t nnz) noexcept nogil:
    cdef Py_ssize_t j
    cdef uint64_t falling64 = 0
    cdef uint32_t falling32 = 0
    if index_t is int64_t:
        for j in range(nnz - 1):
            falling64 |= <uint64_t> columns[j + 1] - <uint64_t> columns[j] - 1
        return (falling64 >> 63) == 0
    else:
        for j in range(nnz - 1):
            falling32 |= <uint32_t> columns[j + 1] - <uint32_t> columns[j] - 1
        return (falling32 >> 31) == 0


cdef bint has_repeats(const index_t* columns, Py_ssize_t nnz,
                      vector[uint32_t]& marks) except -1 nogil:
    """Whether a column of the row, whose columns are in range, stands twice.

    Where the row is not sorted each entry leaves its number at the mark of its column, and finds
    it there again unless a later one had the same. Columns that share a mark, beyond those that
    have one each, are sorted. The `marks` are scratch, whatever they hold.
    """
    cdef vector[int64_t] ordered
    cdef uint32_t* mark
    cdef uint32_t met = 0
    cdef Py_ssize_t j, n = FEWEST_MARKS
    if is_rising(columns, nnz):
        return False
    # So many that few rows have columns that share one by chance.
    while n < MOST_MARKS and n < 16 * nnz * nnz:
        n *= 2
    if <Py_ssize_t> marks.size() < n:
        marks.resize(n)
    n = marks.size()
    mark = marks.data()
    for j in range(nnz):
        mark[columns[j] & (n - 1)] = <uint32_t> j
    for j in range(nnz):
        met |= mark[columns[j] & (n - 1)] ^ <uint32_t> j
    if not met:
        return False
    ordered.assign(columns, columns + nnz)
    sort(ordered.begin(), ordered.end())
    return adjacent_find(ordered.begin(), ordered.end()) != ordered.end()


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


cdef inline Py_ssize_t count_plain(const value_t* values, Py_ssize_t nnz) noexcept nogil:
    """How many values are not 0, where all of these are so near 1 in magnitude that their squares
    add up with nothing lost; else -1."""
    # Exponent fields out of range leave a sign bit in a difference, and so does what is not 0.
    cdef Py_ssize_t j
    cdef uint64_t bits64, field64, some64, wide64 = 0, count64 = 0
    cdef uint32_t bits32, field32, some32, wide32 = 0, count32 = 0
    if value_t is double:
        for j in range(nnz):
            memcpy(&bits64, values + j, 8)
            bits64 &= 0x7FFFFFFFFFFFFFFFu
            field64 = bits64 >> 52
            some64 = bits64 + 0x7FFFFFFFFFFFFFFFu
            wide64 |= ((field64 - (1023 - PLAIN)) | (1023 + PLAIN - field64)) & some64
            count64 += some64 >> 63
        return -1 if wide64 >> 63 else <Py_ssize_t> count64
    else:
        for j in range(nnz):
            memcpy(&bits32, values + j, 4)
            bits32 &= 0x7FFFFFFFu
            field32 = bits32 >> 23
            some32 = bits32 + 0x7FFFFFFFu
            wide32 |= ((field32 - (127 - PLAIN)) | (127 + PLAIN - field32)) & some32
            count32 += some32 >> 31
        return -1 if wide32 >> 31 else <Py_ssize_t> count32


cdef inline bint is_plain(double value) noexcept nogil:
    return count_plain(&value, 1) >= 0


cdef double scaled_two_norm(const value_t* values, Py_ssize_t nnz, double factor, double bias,
                            double slack) noexcept nogil:
    """`two_norm` of the row times factor, a power of two; to the bit that of the row without its
    zeros, times factor."""
    cdef double lanes[4]
    cdef double value
    cdef Py_ssize_t j, n = 0, n_nonzero = 0, whole
    for j in range(nnz):
        n_nonzero += values[j] != 0
    whole = n_nonzero - n_nonzero % 4
    lanes[0] = lanes[1] = lanes[2] = lanes[3] = 0.0
    for j in range(nnz):
        if values[j] != 0:
            value = values[j] * factor
            lanes[n % 4 if n < whole else 0] += value * value
            n += 1
    bias *= factor
    slack *= factor
    return sqrt((lanes[0] + lanes[1]) + (lanes[2] + lanes[3]) + bias * bias + slack * slack)


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
    cdef Py_ssize_t n_nonzero = -1
    if p.exponent == 2.0 and is_plain(bias) and is_plain(slack):
        n_nonzero = count_plain(values, nnz)
    if n_nonzero >= 0:
        row.exponent = 0
        row.factor = 1.0
        if n_nonzero == nnz:
            row.norm = two_norm(values, nnz, bias, slack)
        else:
            row.norm = scaled_two_norm(values, nnz, 1.0, bias, slack)
        row.smallest = LEAST_PLAIN
        return row.norm > 0.0
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
    if p.exponent == 2.0:
        row.norm = scaled_two_norm(values, nnz, row.factor, bias, slack)
        return True
    total = (sum_of_powers(p, values, nnz, row.factor)
             + raised(p, fabs(bias) * row.factor) + raised(p, fabs(slack) * row.factor))
    row.norm = pow(total, 1.0 / p.exponent)
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
    cdef vector[uint32_t] marks
    with nogil:
        for r in range(n_rows):
            columns = &indices[0] + indptr[r]
            nnz = indptr[r + 1] - indptr[r]
            status = check_row(&data[0] + indptr[r], columns, nnz, n_features)
            if status == OK and not repeats_allowed and has_repeats(columns, nnz, marks):
                status = NOT_CANONICAL
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
