"""What the engine asks of one row of a CSR matrix."""

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int64_t, uint32_t
from libcpp.vector cimport vector

from sparsemargin._engine.numerics.power cimport Power
from sparsemargin._engine.rows.types cimport index_t, value_t

# A shuffled row comes from anywhere in memory; asked for this many trials ahead it arrives in
# time, and shuffled epochs cost little more than epochs in order.
cdef enum:
    AHEAD = 4

cdef struct RowScale:
    int exponent  # 0 where nothing is lost without scaling, for p = 2; else that of the largest
    double factor  # 2**-exponent: exact, so scaling a row changes no digit
    double norm  # p-norm of the augmented row times factor
    double smallest  # at most its smallest magnitude but 0, times factor; 0 if that underflows


cdef extern from "numerics/widths.hpp":
    void prefetch "SM_PREFETCH"(const void* address) noexcept nogil
    void prefetch_span "sm_prefetch_span"(const void* start, const void* stop) noexcept nogil


cdef inline bint is_safe(double dot) noexcept nogil:
    """Whether a dot product is far from where it may have lost terms to under- or overflow."""
    return 1e-270 < fabs(dot) < 1e270


cdef int check_row(const value_t* values, const index_t* columns, Py_ssize_t nnz,
                   Py_ssize_t n_features) noexcept nogil
cdef bint in_range(const index_t* columns, Py_ssize_t nnz, Py_ssize_t n_features) noexcept nogil
cdef bint has_repeats(const index_t* columns, Py_ssize_t nnz,
                      vector[uint32_t]& marks) except -1 nogil
cdef double two_norm(const value_t* values, Py_ssize_t nnz, double bias,
                     double slack) noexcept nogil
cdef inline double bound_of_norm(const value_t* values, Py_ssize_t nnz, double bias,
                                 double slack) noexcept nogil:
    """Not less than the p-norm of the augmented row: its 2-norm, which takes no power."""
    cdef double bound = two_norm(values, nnz, bias, slack) * (1.0 + 1e-12)
    # Squares of smaller values may have underflowed.
    return bound if bound > 1e-140 else INFINITY


cdef bint measure(RowScale* row, const Power* p, const value_t* values, Py_ssize_t nnz,
                  double bias, double slack) noexcept nogil
