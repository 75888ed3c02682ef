"""Rows of CSR matrices, with their checks and norms."""

from libc.stdint cimport int32_t, int64_t

from sparsemargin._engine.numerics.arithmetic cimport Power

ctypedef fused value_t:  # entries of X
    float
    double

ctypedef fused state_t:  # coordinates of the learned vectors
    float
    double

ctypedef fused index_t:  # column indices and row pointers of X
    int32_t
    int64_t


cpdef enum:  # status of a row, or the reason why a loop ended
    OK
    NOT_FINITE  # a value is NaN or infinite
    OUT_OF_RANGE  # a column index that is negative or not below n_features
    NOT_CANONICAL  # a column occurs twice in the row, see `has_repeats`
    TOO_WIDE  # magnitudes too far apart for one floating-point vector to hold
    ALL_STOPPED  # each weight vector has used up its corrections
    NO_LENGTH  # the length in feature space is too small or too large for a divisor

cdef extern from "rows/csr.hpp" namespace "sparsemargin" nogil:
    cdef cppclass Row[V, I]:
        const V* values
        const I* columns
        Py_ssize_t nnz

    cdef cppclass Rows[V, I]:
        const V* data
        const I* indices
        const I* indptr
        Py_ssize_t n
        Py_ssize_t n_features
        Row[V, I] at(Py_ssize_t)

    cdef cppclass ColumnMarks:
        Py_ssize_t size()
        void grow(Py_ssize_t) except +
        bint meet[I](const I*, Py_ssize_t)

    void prefetch_row[V, I](const Row[V, I]& row)
    bint in_range[I](const I* columns, int64_t nnz, int64_t n_features)
    bint is_rising[I](const I* columns, int64_t nnz)
    bint all_finite[V](const V* values, int64_t nnz)
    int64_t count_plain[V](const V* values, int64_t nnz, int plain)

cdef extern from "numerics/widths.hpp":
    void prefetch "SM_PREFETCH"(const void* address) noexcept nogil
    void prefetch_span "sm_prefetch_span"(const void* start, const void* stop) noexcept nogil

# Rows are prefetched this number of trials ahead. Thus shuffled epochs, whose rows are scattered
# over memory, take little longer than epochs in order.
cdef enum:
    AHEAD = 4

cdef struct RowScale:
    int exponent  # exponent of the largest magnitude, or 0 if p = 2 needs no scaling
    double factor  # 2**-exponent, so scaling a row is exact
    double norm  # p-norm of the augmented row times factor
    double smallest  # lower bound of the nonzero magnitudes times factor; 0 if it underflows


cdef enum Types:  # dtypes of values and indices
    FLOAT_INT32
    FLOAT_INT64
    DOUBLE_INT32
    DOUBLE_INT64


cdef class Csr:
    cdef readonly object data
    cdef readonly object indices
    cdef readonly object indptr
    cdef readonly Py_ssize_t n_features
    cdef readonly Py_ssize_t n_rows
    # The same pointers, cast to each combination of types. Only the one that `types` selects may be
    # dereferenced.
    cdef Types types
    cdef Rows[float, int32_t] float_int32
    cdef Rows[float, int64_t] float_int64
    cdef Rows[double, int32_t] double_int32
    cdef Rows[double, int64_t] double_int64


cdef int check_row(const Row[value_t, index_t]& row, Py_ssize_t n_features) noexcept nogil
cdef bint has_repeats(const Row[value_t, index_t]& row, Py_ssize_t n_features,
                      ColumnMarks& marks) except -1 nogil
cdef double bound_of_norm(const Row[value_t, index_t]& row, double bias,
                          double slack) noexcept nogil
cdef double LEAST_SQUARE  # smallest square in rows that need no scaling for p = 2
cdef void take_squares(RowScale* scale, double square, double bias, double slack) noexcept nogil
cdef bint measure(RowScale* scale, const Power* p, const Row[value_t, index_t]& row, double bias,
                  double slack) noexcept nogil
