"""The linear space: dual vectors with the p-norm link, their averages, and the step."""

from libc.stdint cimport int32_t, int64_t, uint16_t

from sparsemargin._engine.first_order.labels cimport FirstOrderSpace, Space
from sparsemargin._engine.rows.csr cimport RowScale
from sparsemargin._engine.first_order.rules cimport Step
from sparsemargin._engine.first_order.storage cimport Storage, block_of, place_of
from sparsemargin._engine.rows.types cimport index_t, state_t, value_t

cdef double STALE_2  # S is summed afresh, for p = 2, once it is this share of its largest

cdef enum:
    FLUSHES = 1024  # that a coordinate may be behind

cdef inline Py_ssize_t coordinate(const Space* space, const index_t* columns, Py_ssize_t nnz,
                                  Py_ssize_t j, Py_ssize_t l) noexcept nogil:
    """Where the j-th entry of the augmented row stands; the intercept's comes last."""
    return place_of(&space.at, columns[j] if j < nnz else space.n_coordinates - 1, l)


cdef inline double mixed(double g, double acc, double a, double b) noexcept nogil:
    """A weight of the averaged hypothesis; see `FirstOrderSpace.mixture`."""
    return a * g + b * acc


cdef inline uint16_t* synced_of(const Space* space, Py_ssize_t l) noexcept nogil:
    return space.at.blocks[block_of(&space.at, l)].synced


cdef inline double entry(const Space* space, const value_t* values, Py_ssize_t nnz,
                         const RowScale* row, Py_ssize_t j) noexcept nogil:
    return (values[j] if j < nnz else space.bias) * row.factor


cdef inline Py_ssize_t n_entries(const Space* space, Py_ssize_t nnz) noexcept nogil:
    return nnz + (1 if space.bias else 0)


cdef int add_row(Space* space, state_t* t, state_t* g, state_t* acc, Py_ssize_t label,
                 int64_t trials, const value_t* values, const index_t* columns, Py_ssize_t nnz,
                 const RowScale* row, double* slack_t, const Step* step, double mass,
                 double* scratch, double* coefficient, int32_t* shifted) noexcept nogil
cdef void forget(Space* space, state_t* t, state_t* g, state_t* acc,
                 Py_ssize_t label) noexcept nogil
cdef void take_over(Space* space, state_t* t, Py_ssize_t label, Py_ssize_t n_rows,
                    const double* multipliers, const value_t* data, const index_t* indices,
                    const index_t* indptr) noexcept nogil
cdef double rescued_output(const Space* space, const state_t* t, Py_ssize_t label,
                           const value_t* values, const index_t* columns, Py_ssize_t nnz,
                           const RowScale* row, const double* slack_t) noexcept nogil

cdef class LinearSpace(FirstOrderSpace):
    cdef Storage storage
    cdef readonly object pending
    cdef object row_slack
    cdef readonly object multipliers
    cdef object measured
    cdef bind(self, double p, Storage storage, dict arrays)
    cdef dict dtypes(self, double p, dtype)
    cdef check_synced(self)
    cdef move_into(self, Storage storage)
    cdef gathered(self, made)
    cdef one_a_row(self, Py_ssize_t n_rows, kept)
