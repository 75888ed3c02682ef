"""A vector over a pool of rows, and the k x k matrix beside it."""

from libc.stdint cimport int64_t
from libcpp.vector cimport vector


cdef class DualSpace:
    cdef dict settings
    cdef bint averaged
    cdef bint normalized  # hypotheses count with norm 1
    cdef readonly bint logged
    cdef readonly int64_t most_updates  # after which the matrix changes no more; -1: any number
    cdef int64_t room  # bytes the matrix may take
    cdef readonly bint full  # whether the matrix would have changed, had there been room
    cdef readonly int64_t trials
    cdef readonly int64_t corrections
    cdef readonly int64_t updates  # corrections that changed the matrix
    cdef public int64_t limit  # corrections after which learning stops; -1: none
    cdef int64_t begin  # trials before the one that made the current vector
    cdef double unit  # 1, or 1 / |w|
    cdef int64_t nonzero  # entries of v that are not 0
    cdef vector[int64_t] places  # in the pool, of the rows mistaken so far
    cdef vector[int64_t] mistakes
    # Coefficients of these rows, divided by their lengths.
    cdef vector[double] w
    cdef vector[double] v
    cdef vector[double] total  # sum of c_k unit_k w_k before the current vector
    # The matrix, its lower triangle row after row, and which of the rows its columns are.
    cdef vector[double] matrix
    cdef vector[int64_t] columns
    # Products of the rows with each other, likewise; for norms and replays.
    cdef vector[double] gram
    # The log, for hypotheses that are replayed.
    cdef vector[int64_t] logged_rows
    cdef vector[double] logged_steps
    cdef vector[int64_t] logged_begins
    # Products of the row at hand with the columns, and what is made of them.
    cdef vector[double] x
    cdef vector[double] z
    cdef vector[double] scratch
    cdef int64_t add_row(self, int64_t place, const double* products) except -1 nogil
    cdef int correct(self, const double* products, int64_t row, double output, double step,
                     int64_t number) except -1 nogil
    cdef int move(self, const double* products, int64_t row, double output,
                  double step) except -1 nogil
    cdef int look_up(self, const double* products) except -1 nogil
    cdef double reciprocal_norm(self) except -1.0 nogil
    cdef double product(self, int64_t i, int64_t j) noexcept nogil
    cdef void shift(self, int64_t row, double size) noexcept nogil
    cdef int take_column(self, int64_t row) except -1 nogil
    cdef bint may_update(self) noexcept nogil
    cdef void count_current(self) noexcept nogil
    cdef int take_counts(self, state) except -1
    cdef int take_rows(self, state) except -1
    cdef int take_matrix(self, state) except -1
    cdef int take_log(self, state) except -1


cdef void multiply_symmetric(const double* triangle, const double* x, double* out,
                             Py_ssize_t n) noexcept nogil
