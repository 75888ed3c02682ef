"""Rows of CSR matrices: checks, norms and hashes. No function here changes a row."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.math cimport INFINITY, fabs, ilogb, ldexp, pow, sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy
from libcpp.algorithm cimport adjacent_find, sort
from libcpp.vector cimport vector

from itertools import product

import numpy as np

from sparsemargin._engine.numerics.arithmetic cimport (
    BLOCK, Power, make_power, mixed, raise_block, raised, shuffle_rows
)

from sparsemargin._engine.state import received

# Smallest exponent by which rows are scaled. Rows of only subnormal values have smaller ones, but
# their factor would exceed 2**1023, the largest power in float64.
cdef enum:
    LOWEST_EXPONENT = -1022

# Smallest and largest number of bits of `ColumnMarks`, powers of two.
cdef enum:
    FEWEST_MARKS = 1 << 10
    MOST_MARKS = 1 << 25
    FIRST = 16  # number of columns whose order is checked first; most unsorted rows fail there

# Rows whose magnitudes are from 2**-PLAIN to 2**PLAIN need no scaling for p = 2.
cdef enum:
    PLAIN = 30
cdef double LEAST_PLAIN = ldexp(1.0, -PLAIN)
cdef double LEAST_SQUARE = ldexp(1.0, -2 * PLAIN)


cdef int check_row(const Row[value_t, index_t]& row, Py_ssize_t n_features) noexcept nogil:
    """Return OK, or the status of the most severe error of the row."""
    cdef const index_t* columns = row.columns
    cdef const value_t* values = row.values
    if not in_range(columns, row.nnz, n_features):
        return OUT_OF_RANGE
    return OK if all_finite(values, row.nnz) else NOT_FINITE


cdef bint has_repeats(const Row[value_t, index_t]& row, Py_ssize_t n_features,
                      ColumnMarks& marks) except -1 nogil:
    """Return whether a column occurs twice in the row. All columns must be in range.

    The columns of an unsorted row are sorted only if two of them set the same bit of `marks`.
    """
    cdef vector[int64_t] ordered
    cdef Py_ssize_t n = max(<Py_ssize_t> FEWEST_MARKS, marks.size()), nnz = row.nnz
    cdef const index_t* columns = row.columns
    if is_rising(columns, min(nnz, FIRST)) and is_rising(columns, nnz):
        return False
    # With this number of bits, few rows have different columns that set the same bit.
    while n < MOST_MARKS and n < n_features and n < 16 * nnz * nnz:
        n *= 2
    if marks.size() < n:
        marks.grow(n)
    if not marks.meet(columns, nnz):
        return False
    if n >= n_features:
        return True
    ordered.assign(columns, columns + nnz)
    sort(ordered.begin(), ordered.end())
    return adjacent_find(ordered.begin(), ordered.end()) != ordered.end()


cdef inline double two_norm(const value_t* values, Py_ssize_t nnz, double bias,
                            double slack) noexcept nogil:
    """Return the 2-norm of the augmented row. It may overflow; `measure` does not."""
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


cdef double bound_of_norm(const Row[value_t, index_t]& row, double bias,
                          double slack) noexcept nogil:
    """Return an upper bound of the p-norm of the augmented row: the 2-norm, without powers."""
    cdef double bound = two_norm(row.values, row.nnz, bias, slack) * (1.0 + 1e-12)
    # For smaller norms, squares may have underflowed.
    return bound if bound > 1e-140 else INFINITY


cdef inline bint is_plain(double value) noexcept nogil:
    return count_plain(&value, 1, PLAIN) >= 0


cdef void take_squares(RowScale* scale, double square, double bias, double slack) noexcept nogil:
    """Compute the result of `measure` for p = 2 from the sum of squares of a row.

    No square may be below LEAST_SQUARE. If `measure` is needed instead, the norm is set to 0.
    """
    scale.norm = 0.0
    if square <= 1.0 / LEAST_SQUARE and is_plain(bias) and is_plain(slack):
        scale.exponent, scale.factor, scale.smallest = 0, 1.0, LEAST_PLAIN
        scale.norm = sqrt(square + bias * bias + slack * slack)


cdef double scaled_two_norm(const value_t* values, Py_ssize_t nnz, double factor, double bias,
                            double slack) noexcept nogil:
    """Return `two_norm` of the row times `factor`, a power of two.

    The result is bit-identical to that of the row without its stored zeros.
    """
    cdef double sums[4]
    cdef double value
    cdef Py_ssize_t j, n = 0, n_nonzero = 0, whole
    for j in range(nnz):
        n_nonzero += values[j] != 0
    whole = n_nonzero - n_nonzero % 4
    sums[0] = sums[1] = sums[2] = sums[3] = 0.0
    for j in range(nnz):
        if values[j] != 0:
            value = values[j] * factor
            sums[n % 4 if n < whole else 0] += value * value
            n += 1
    bias *= factor
    slack *= factor
    return sqrt((sums[0] + sums[1]) + (sums[2] + sums[3]) + bias * bias + slack * slack)


cdef inline double peak_of(const value_t* values, Py_ssize_t nnz, double peak,
                           double* least) noexcept nogil:
    """Return the largest magnitude, at least `peak`.

    `least` is lowered to the smallest nonzero magnitude.
    """
    cdef double magnitude
    cdef Py_ssize_t j
    for j in range(nnz):
        magnitude = fabs(<double> values[j])
        peak = magnitude if magnitude > peak else peak
        magnitude = magnitude if magnitude > 0.0 else INFINITY
        least[0] = magnitude if magnitude < least[0] else least[0]
    return peak


cdef inline double sum_of_powers(const Power* p, const value_t* values, Py_ssize_t nnz,
                                 double factor, double lift) noexcept nogil:
    """Return the sum of ``|x|**p`` over the values x of the row times factor and lift."""
    cdef double block[BLOCK]
    cdef double even = 0.0, odd = 0.0
    cdef Py_ssize_t b, j, n
    for b in range((nnz + BLOCK - 1) // BLOCK):
        n = 0
        for j in range(b * BLOCK, min((b + 1) * BLOCK, nnz)):
            block[n] = fabs(<double> values[j]) * factor * lift
            n += block[n] > p.negligible
        raise_block(p, block, n)
        for j in range(0, n - 1, 2):
            even += block[j]
            odd += block[j + 1]
        if n % 2:
            even += block[n - 1]
    return even + odd


cdef bint measure(RowScale* scale, const Power* p, const Row[value_t, index_t]& row, double bias,
                  double slack) noexcept nogil:
    """Compute scale and p-norm of the augmented row. Return False if the row is zero."""
    cdef double least = INFINITY, total, lift
    cdef const value_t* values = row.values
    cdef Py_ssize_t n_nonzero = -1, nnz = row.nnz
    if p.exponent == 2.0 and is_plain(bias) and is_plain(slack):
        n_nonzero = count_plain(values, nnz, PLAIN)
    if n_nonzero >= 0:
        scale.exponent = 0
        scale.factor = 1.0
        if n_nonzero == nnz:
            scale.norm = two_norm(values, nnz, bias, slack)
        else:
            scale.norm = scaled_two_norm(values, nnz, 1.0, bias, slack)
        scale.smallest = LEAST_PLAIN
        return scale.norm > 0.0
    cdef double peak = peak_of(values, nnz, max(fabs(bias), fabs(slack)), &least)
    if peak == 0.0:
        return False
    if bias:
        least = min(least, fabs(bias))
    if slack:
        least = min(least, fabs(slack))
    scale.exponent = max(ilogb(peak), LOWEST_EXPONENT)
    scale.factor = ldexp(1.0, -scale.exponent)
    scale.smallest = least * scale.factor
    if p.exponent == 2.0:
        scale.norm = scaled_two_norm(values, nnz, scale.factor, bias, slack)
        return True
    lift = ldexp(1.0, -ilogb(peak * scale.factor))  # 1, except for subnormal rows
    total = (sum_of_powers(p, values, nnz, scale.factor, lift)
             + raised(p, fabs(bias) * scale.factor * lift)
             + raised(p, fabs(slack) * scale.factor * lift))
    scale.norm = pow(total, 1.0 / p.exponent) / lift
    return True


# ----------------------------------------------------------------------------------- from Python

cdef const void* address(array) except? NULL:
    """Return the address of the data of a contiguous array."""
    cdef Py_buffer buffer
    PyObject_GetBuffer(array, &buffer, PyBUF_SIMPLE)
    PyBuffer_Release(&buffer)
    return buffer.buf


cdef int point(Rows[value_t, index_t]* rows, Csr to) except -1:
    """Point to the arrays of a `Csr`, interpreted as arrays of the types of `rows`."""
    rows.data = <const value_t*> address(to.data)
    rows.indices = <const index_t*> address(to.indices)
    rows.indptr = <const index_t*> address(to.indptr)
    rows.n, rows.n_features = to.n_rows, to.n_features
    return 0


cdef class Csr:
    """Immutable rows of a CSR matrix, with dtypes for which the engine is compiled.

    Parameters
    ----------
    data : ndarray, float32 or float64
    indices, indptr : ndarray, int32 or int64, both the same
        Contiguous and aligned, as the data are; `indptr` may begin anywhere in the other two.
    n_features : int

    Raises
    ------
    TypeError
        If the arrays are of other types.
    """

    def __init__(self, data, indices, indptr, Py_ssize_t n_features):
        types = TYPES.get((data.dtype, indices.dtype))
        if types is None or indptr.dtype != indices.dtype:
            raise TypeError(f"no rows are of {data.dtype}, {indices.dtype} and {indptr.dtype}")
        self.data, self.indices, self.indptr = data, indices, indptr
        self.n_features, self.n_rows = n_features, len(indptr) - 1
        self.types = types
        point(&self.float_int32, self)
        point(&self.float_int64, self)
        point(&self.double_int32, self)
        point(&self.double_int64, self)

    def __reduce__(self):
        return received, (Csr, *self.arrays, self.n_features)

    @property
    def arrays(self):
        return self.data, self.indices, self.indptr

    def with_data(self, data):
        """Return rows with other values and the same structure."""
        return Csr(data, self.indices, self.indptr, self.n_features)

    def part(self, Py_ssize_t start, Py_ssize_t stop):
        """Return the rows from `start` to before `stop` without a copy."""
        return Csr(self.data, self.indices, self.indptr[start:stop + 1], self.n_features)


class BadRow(Exception):
    """Raised if a compiled loop reaches an invalid row. `status` is the reason."""

    def __init__(self, int status, Py_ssize_t row):
        super().__init__(status, row)
        self.status, self.row = status, row


#: Supported dtypes of values and indices.
VALUE_TYPES = np.dtype(np.float32), np.dtype(np.float64)
INDEX_TYPES = np.dtype(np.int32), np.dtype(np.int64)

TYPES = dict(zip(product(VALUE_TYPES, INDEX_TYPES),
                 (FLOAT_INT32, FLOAT_INT64, DOUBLE_INT32, DOUBLE_INT64), strict=True))


cdef enum Wanted:  # result of a pass over rows
    FIRST_BAD_ROW
    REPEATS
    NORMS
    HASHES


cdef struct Pass:
    Wanted wanted
    void* out  # one number for each row; not used for FIRST_BAD_ROW
    Py_ssize_t bad_row  # -1: none
    bint repeats_allowed
    Power power
    double bias
    double slack


cdef int pass_over(Csr rows, Pass* job) except -1 nogil:
    """Make a pass over the rows, and return the status of the first invalid row if it is wanted."""
    if rows.types == FLOAT_INT32:
        return visit(rows.float_int32, job)
    if rows.types == FLOAT_INT64:
        return visit(rows.float_int64, job)
    if rows.types == DOUBLE_INT32:
        return visit(rows.double_int32, job)
    return visit(rows.double_int64, job)


cdef int visit(const Rows[value_t, index_t]& rows, Pass* job) except -1 nogil:
    cdef Py_ssize_t r
    cdef int status
    cdef Row[value_t, index_t] row
    cdef RowScale scale
    cdef ColumnMarks marks
    for r in range(rows.n):
        row = rows.at(r)
        if job.wanted == NORMS:
            if measure(&scale, &job.power, row, job.bias, job.slack):
                (<double*> job.out)[r] = ldexp(scale.norm, scale.exponent)
        elif job.wanted == HASHES:
            (<uint64_t*> job.out)[r] = hash_of(row)
        elif job.wanted == REPEATS:
            (<uint8_t*> job.out)[r] = (has_repeats(row, rows.n_features, marks)
                                       and in_range(row.columns, row.nnz, rows.n_features))
        else:
            status = check_row(row, rows.n_features)
            if status == OK and not job.repeats_allowed and has_repeats(row, rows.n_features,
                                                                        marks):
                status = NOT_CANONICAL
            if status != OK:
                job.bad_row = r
                return status
    return OK


def first_bad_row(Csr rows, bint repeats_allowed):
    """Return the first invalid row.

    Returns
    -------
    status, row : int
        `OK` and -1 if all rows are finite, in range and, unless allowed, without repeated columns.
    """
    cdef Pass job
    cdef int status
    job.wanted, job.bad_row, job.repeats_allowed = FIRST_BAD_ROW, -1, repeats_allowed
    with nogil:
        status = pass_over(rows, &job)
    return status, job.bad_row


cdef fill(array, Csr rows, Pass* job):
    """Fill an array of zeros with one number for each row."""
    job.out = <void*> address(array)
    with nogil:
        pass_over(rows, job)
    return array


def rows_with_repeats(Csr rows):
    """Return a bool for each row: whether a column occurs twice in it.

    Rows with a column out of range count as rows without repeats.
    """
    cdef Pass job
    job.wanted = REPEATS
    return fill(np.zeros(rows.n_rows, bool), rows, &job)


def bad_pointer(indptr, Py_ssize_t stored):
    """Return the first row whose pointers decrease or are outside the `stored` entries, or -1.

    The pointers must be contiguous and have one of the `INDEX_TYPES`. Without any pointer, row 0 is
    returned.
    """
    if not len(indptr):
        return 0
    if indptr.dtype.itemsize == 4:
        return bad_among(<const int32_t*> address(indptr), len(indptr) - 1, stored)
    return bad_among(<const int64_t*> address(indptr), len(indptr) - 1, stored)


cdef Py_ssize_t bad_among(const index_t* indptr, Py_ssize_t n, Py_ssize_t stored) noexcept nogil:
    cdef Py_ssize_t r
    if indptr[0] != 0:
        return 0
    for r in range(n):
        if indptr[r + 1] < indptr[r] or indptr[r + 1] > stored:
            return r
    return -1


def row_norms(Csr rows, double p, double bias=0.0, double slack=0.0):
    """Return the p-norm of each row with the constants `bias` and `slack` appended."""
    cdef Pass job
    job.wanted, job.power, job.bias, job.slack = NORMS, make_power(p), bias, slack
    return fill(np.zeros(rows.n_rows), rows, &job)


def row_hashes(Csr rows):
    """Return a hash of each row, computed from its length and some of its entries.

    Values are converted to float32, and columns are relative to the first one of the row, because a
    file that is read again may have another dtype, and indices that start at 0 instead of 1.
    """
    cdef Pass job
    job.wanted = HASHES
    return fill(np.zeros(rows.n_rows, np.uint64), rows, &job)


# Number of evenly spaced entries of a row that its hash uses.
cdef enum:
    HASHED = 8

cdef uint64_t hash_of(const Row[value_t, index_t]& row) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef uint64_t bits = mixed(<uint64_t> row.nnz + 1)
    # Rows may not be checked yet, so the difference of columns may exceed a signed integer.
    cdef uint64_t first = <uint64_t> row.columns[0] if row.nnz else 0
    cdef uint32_t value_bits
    cdef float value
    for i in range(HASHED if row.nnz else 0):
        j = (row.nnz - 1) * i // (HASHED - 1)
        value = <float> row.values[j]
        memcpy(&value_bits, &value, sizeof(float))
        bits = mixed(bits + value_bits) ^ (<uint64_t> row.columns[j] - first)
    return mixed(bits)


def shuffle(int64_t[::1] order, uint64_t seed):
    """A random permutation of rows, in place."""
    with nogil:
        if order.shape[0]:
            shuffle_rows(&order[0], order.shape[0], seed)
