"""A vector over the features seen so far, and what a matrix Perceptron keeps beside it."""

from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

from sparsemargin._engine.matrix.lookahead cimport Lanes
from sparsemargin._engine.numerics.power cimport Power
from sparsemargin._engine.rows.csr cimport RowScale
from sparsemargin._engine.rows.types cimport index_t, value_t


# A nonzero of a stored row is reached through its place: it costs about twice what an entry of
# a contiguous matrix does.
cdef enum:
    COST_OF_PLACE = 2

cdef class Values:
    # One of the two is used.
    cdef readonly bint single
    cdef vector[float] singles
    cdef vector[double] doubles
    cdef int append(self, const vector[double]* values) except -1 nogil
    cdef double stored(self, double value) noexcept nogil
    cdef double at(self, int64_t j) noexcept nogil
    cdef int64_t n_bytes(self) noexcept nogil
    cdef void clear(self) noexcept nogil
    cdef array(self)
    cdef int take_array(self, name, state, length) except -1


cdef class RowStore:
    cdef vector[int64_t] start
    cdef vector[int32_t] places
    cdef Values values
    cdef int append(self, const vector[double]* values,
                    const vector[int32_t]* places) except -1 nogil
    cdef int read(self, size_t i, vector[double]* values,
                  vector[int32_t]* places) except -1 nogil
    cdef Py_ssize_t count(self) noexcept nogil
    cdef void clear(self) noexcept nogil
    cdef dict arrays(self)
    cdef int take_arrays(self, state, n_seen) except -1


cdef class SeenSpace:
    cdef dict settings
    cdef readonly double p
    cdef Power power  # p
    cdef readonly Py_ssize_t n_coordinates
    cdef readonly double bias  # value of the intercept's coordinate, the last one; 0: none
    cdef bint averaged
    cdef bint normalized  # hypotheses count with norm 1
    cdef readonly bint logged
    cdef readonly int64_t most_updates  # after which the matrix changes no more; -1: any number
    cdef int64_t room  # bytes the matrix may take
    cdef int64_t primal_room  # the same for its n x n form, where that is not asked for
    cdef bint automatic
    cdef readonly bint primal
    cdef readonly bint full  # whether the matrix would have changed, had there been room
    cdef readonly int64_t trials
    cdef readonly int64_t corrections
    cdef readonly int64_t updates  # corrections that changed the matrix
    cdef public int64_t limit  # corrections after which learning stops; -1: none
    cdef readonly int64_t rows_taken  # in a stream
    cdef int64_t begin  # trials before the one that made the current vector
    cdef double unit  # 1, or 1 / ||w||_q
    cdef int64_t nonzero  # entries of v that are not 0
    cdef public int64_t reached  # trials of the pass under way that have been made
    cdef tuple predictor  # what `hypothesis` gave, and when
    cdef readonly object place_of
    cdef int32_t* place  # of each coordinate among those seen; 0: not seen
    cdef int32_t n_seen  # places there are, the empty place 0 among them
    cdef RowStore rows  # those the matrix is made of, while it is not n x n
    cdef vector[int64_t] mistakes
    cdef vector[double] w  # by place, as all vectors of these spaces
    cdef vector[double] total  # sum of c_k unit_k w_k before the current vector
    cdef vector[double] v
    cdef vector[double] matrix  # n x n, by place
    # The log, for hypotheses that are replayed.
    cdef RowStore logged_rows
    cdef vector[double] logged_steps
    cdef vector[int64_t] logged_begins
    cdef Lanes lanes  # None for a space that knows no use of them
    # The row of the correction under way, of unit norm.
    cdef vector[double] x
    cdef vector[int32_t] at
    cdef bind(self)
    cdef int take_counts(self, state) except -1
    cdef int take_places(self, state) except -1
    cdef int take_matrix(self, state) except -1
    cdef lay_seen_part(self, seen)
    cdef int take_log(self, state) except -1
    cdef seen_part(self)
    cdef int lay_out(self) except -1 nogil
    cdef Py_ssize_t stride(self) noexcept nogil
    cdef bint may_update(self, int64_t n_bytes) noexcept nogil
    cdef bint primal_pays(self, double cost, double primal_cost) noexcept nogil
    cdef int widen(self) except -1 nogil
    cdef int move(self, double step) except -1 nogil
    cdef void move_v(self, double step) noexcept nogil
    cdef bint looks_ahead(self) noexcept nogil
    cdef double cost(self) noexcept nogil
    cdef int correct(self, double step, int64_t row) except -1 nogil
    cdef void count_current(self) noexcept nogil


cdef int take_row(SeenSpace space, const RowScale* scale, const value_t* values,
                  const index_t* columns, Py_ssize_t nnz) except -1 nogil
