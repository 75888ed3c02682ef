"""Code shared by the matrix Perceptrons: vectors over a basis, averages, counts and mistakes."""

from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

from sparsemargin._engine.numerics.arithmetic cimport Power, Sum
from sparsemargin._engine.numerics.average cimport Average
from sparsemargin._engine.state_arrays cimport stored_vector


cdef extern from "matrix/sparse_products.hpp" nogil:
    double sparse_dot "sm_sparse_dot"(const double* values, const int32_t* columns, int64_t n,
                                      const double* z) noexcept
    void add_sparse "sm_add_sparse"(double* z, double factor, const double* values,
                                    const int32_t* columns, int64_t n) noexcept

cdef extern from "matrix/sparse_products.hpp" namespace "sparsemargin" nogil:
    cdef cppclass Values:
        bint single
        vector[float] singles
        vector[double] doubles
        double stored(double value) noexcept
        double at(int64_t j) noexcept
        void append(const vector[double]& values) except +
        int64_t n_bytes() noexcept

    cdef cppclass StoredRows:
        vector[int64_t] start
        vector[int32_t] columns
        Values values
        int64_t count() noexcept
        int64_t n_entries() noexcept
        void append(const vector[double]& x, const vector[int32_t]& columns) except +
        void read(int64_t i, vector[double]& x, vector[int32_t]& columns) except +
        void apply(double* z, const Values& links, const vector[double]& rates) noexcept
        void apply_transposed(double* z, const Values& links, const vector[double]& rates) noexcept
        void products(double* out, const double* z) noexcept
        void combine(double* z, const double* factors) noexcept


# Cost of a nonzero of a stored row, which is accessed through its column index, relative to an
# entry of a contiguous matrix.
cdef enum:
    COST_OF_COLUMN = 2


cdef class Record:
    cdef object fields
    cdef bint writing

cdef int vector_field(Record record, name, stored_vector& values, length) except -1
cdef int values_field(Record record, name, Values& values, length) except -1
cdef int rows_field(Record record, name, StoredRows& rows, n_columns) except -1


cdef class MatrixSpace:
    cdef dict settings
    cdef bint averaged
    cdef double share  # (1 - alpha) B of ALMA; see `MatrixSpace`
    cdef double threshold  # the next trial corrects if y w.x <= threshold, for x of norm 1
    cdef readonly int64_t most_updates  # updates after which the matrix is fixed; -1: no limit
    cdef int64_t room  # largest size of the matrix in bytes
    cdef readonly bint full  # whether an update of the matrix was skipped for lack of room
    cdef readonly int64_t trials
    cdef readonly int64_t corrections
    cdef readonly int64_t mistaken  # corrections of wrong predictions since the creation or loading
    cdef readonly int64_t updates  # corrections that changed the matrix
    cdef readonly int64_t limit  # corrections after which training stops; -1: no limit
    cdef Average average  # Z is used only for the outer features of a `FeatureSpace`
    cdef double common  # common factor of w, which its stored entries do not include
    cdef int64_t nonzero  # number of nonzero entries of v
    cdef tuple predictor  # cached result of `hypothesis`, with its trials and corrections
    cdef vector[int64_t] mistakes
    # Vectors over the basis.
    cdef vector[double] w
    cdef vector[double] v
    cdef vector[double] total  # sum of c_k unit_k w_k without the current vector
    cdef vector[double] matrix
    cdef vector[double] z  # scratch
    cdef int correct(self, double step, int64_t number) except -1 nogil
    cdef int move(self, double step) except -1 nogil
    cdef double square(self) noexcept nogil
    cdef void set_threshold(self) noexcept nogil
    cdef bint must_correct(self, double signed_output) noexcept nogil
    cdef void count_current(self) noexcept nogil
    cdef void count_move(self, double before) noexcept nogil
    cdef bint may_update(self, int64_t n_bytes) noexcept nogil
    cdef record(self, Record record)
    cdef int64_t n_mistakes_kept(self) noexcept
    cdef int bound_mistakes(self) except -1
    cdef record_vectors(self, Record record, n, n_total)


cdef class FeatureSpace(MatrixSpace):
    cdef readonly double p
    cdef Power power  # p
    cdef readonly Py_ssize_t n_coordinates
    cdef readonly double bias  # value of the intercept's coordinate, which is the last one; 0: none
    cdef int64_t primal_room  # largest size of the n x n form in bytes, unless the user requests it
    cdef bint automatic
    cdef readonly bint primal
    cdef readonly object met  # number of each coordinate among those seen; 0: not seen
    cdef int32_t* numbers  # pointer to `met`
    cdef readonly int32_t n_met  # count of the numbers in use, including 0
    cdef StoredRows rows  # rows that the matrix is built from, until it is n x n
    cdef double diagonal  # initial value of the matrix's diagonal
    # The row of the current correction, with norm 1.
    cdef vector[double] x
    cdef vector[int32_t] columns
    # After the matrix is fixed, it is the identity for features that are seen later. These outer
    # features have the numbers from `n_inner` on.
    cdef bint is_final  # whether the matrix no longer changes
    cdef int32_t n_inner
    cdef Power minus_one  # p - 1
    cdef double scale  # scale of v over the outer features
    cdef Sum powers  # sum of |v / scale|**p over the outer features
    cdef double most_powers  # largest value of `powers` since it was last computed
    # The outer part of the row, and the previous values of w there.
    cdef vector[double] outer_x
    cdef vector[int32_t] outer
    cdef vector[double] outer_w
    cdef bind(self)
    cdef record_met(self, Record record)
    cdef record_outer(self, Record record)
    cdef record_matrix(self, Record record)
    cdef part_met(self)
    cdef lay_part_met(self, part)
    cdef int clear_matrix(self) except -1 nogil
    cdef int widen(self) except -1 nogil
    cdef int split_outer(self, bint fixed) except -1 nogil
    cdef void move_v(self, double step) noexcept nogil
    cdef void move_entry(self, int32_t number, double size) noexcept nogil
    cdef void move_outer(self, double step) noexcept nogil
    cdef void sweep(self, double peak) noexcept nogil
    cdef bint fit(self, double powers) noexcept nogil
    cdef void swap_outer(self) noexcept nogil
    cdef void flush(self) noexcept nogil
    cdef double cost(self) noexcept nogil
    cdef Py_ssize_t side(self) noexcept nogil
    cdef bint primal_pays(self, double cost, double primal_cost) noexcept nogil
    cdef double* column(self, int32_t number) noexcept nogil
    cdef int lay_out(self) except -1 nogil
    cdef int fold(self, size_t i, const vector[double]& x,
                  const vector[int32_t]& columns) except -1 nogil


cdef class DualSpace(MatrixSpace):
    cdef double length  # w.v
    cdef vector[int64_t] slot_of  # positions in the support set of the rows mistaken so far
    # The matrix is stored as its lower triangle, row by row. Its columns belong to these rows:
    cdef vector[int64_t] columns
    # State of the current correction: the row, its products with the mistaken rows, and with w.
    cdef int64_t row
    cdef const double* products
    cdef double output
    cdef vector[double] x  # products with the columns
    cdef int64_t add_row(self, int64_t slot) except -1 nogil
    cdef int look_up(self) except -1 nogil
    cdef void move_v(self, double step) noexcept nogil
    cdef void shift(self, double size) noexcept nogil
    cdef int take_column(self) except -1 nogil
    cdef bint may_grow(self) noexcept nogil


cdef void multiply_symmetric(const double* triangle, const double* x, double* out,
                             Py_ssize_t n) noexcept nogil
