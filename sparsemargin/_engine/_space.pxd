"""The linear space: dual vectors with the p-norm link, their averages, and the step."""

from libc.stdint cimport int32_t, int64_t, uint16_t

from sparsemargin._engine._log cimport CorrectionLog
from sparsemargin._engine._power cimport Power
from sparsemargin._engine._rows cimport RowScale
from sparsemargin._engine._rules cimport Projection, Step
from sparsemargin._engine._sum cimport Sum
from sparsemargin._engine._types cimport index_t, state_t, value_t

cdef double STALE_2  # S is summed afresh, for p = 2, once it is this share of its largest

cdef enum:
    FLUSHES = 1024  # that a coordinate may be behind

cdef struct Labels:
    # One entry a label; theta = scale * t, and w = sigma * g with g = sign(t) |t|**(p - 1).
    double* scale
    double* sigma
    double* norm  # ||theta||_p
    Sum* S  # sum of |t|**p over the features
    double* S_peak  # largest S since it was last summed afresh
    double* S_slack  # the same sum over the soft-margin coordinates
    double* Z  # sum of c_k unit_k since the last flush
    double* unit_peak  # largest unit since the last flush
    double* bar  # a trial corrects where y w.x <= bar (times the row's norm)
    double* largest  # largest norm among the corrections
    double* mass  # L: theta is a sum of y x with multipliers that add up to it
    double* bound  # least ||theta||_p / L so far
    int64_t* corrections
    int64_t* begin  # trials before the one that made the current vector
    int64_t* stopped  # trials when the label used up its corrections; -1: still learning
    int64_t* idle  # trials that passed while it was stopped
    int64_t* nonzero  # coordinates of t that are not zero
    int64_t* passes  # sweeps over all coordinates so far
    int64_t* shift  # power of two t has been rescaled by in all
    int64_t* flushes  # since the last sweep that brought acc up to date
    int64_t* started  # whether theta has left 0
    int64_t* limit  # corrections after which the label stops; -1: none
    int64_t* unmoved  # tests that fired and led to no step

cdef struct Space:
    Labels of
    Power link  # p - 1
    Power p
    Py_ssize_t n_labels
    Py_ssize_t n_coordinates
    double bias  # value of the intercept's coordinate, the last one; 0: none
    double slack  # value of a row's soft-margin coordinate; 0: none
    uint16_t* synced  # n_coordinates x n_labels: flushes that acc has taken in
    double* pending  # n_labels x (FLUSHES + 1): sum of the Z flushed since that many
    double* slack_t  # n_slack x n_labels
    Py_ssize_t n_slack
    double* multipliers  # n_rows x n_labels, where the rule keeps them
    RowScale* measured  # n_rows, along with them: what rows were measured to be, norm 0: not yet
    int window  # 2**-window < S < 2**window
    bint averaged
    bint normalized  # hypotheses count with norm 1

cdef inline Py_ssize_t coordinate(const Space* space, const index_t* columns, Py_ssize_t nnz,
                                  Py_ssize_t j, Py_ssize_t l) noexcept nogil:
    """Where the j-th entry of the augmented row stands; the intercept's comes last."""
    return (columns[j] if j < nnz else space.n_coordinates - 1) * space.n_labels + l


cdef inline double entry(const Space* space, const value_t* values, Py_ssize_t nnz,
                         const RowScale* row, Py_ssize_t j) noexcept nogil:
    return (values[j] if j < nnz else space.bias) * row.factor


cdef inline Py_ssize_t n_entries(const Space* space, Py_ssize_t nnz) noexcept nogil:
    return nnz + (1 if space.bias else 0)


cdef double unit(const Space* space, Py_ssize_t label) noexcept nogil
cdef int add_row(Space* space, state_t* t, state_t* g, state_t* acc, Py_ssize_t label,
                 int64_t trials, const value_t* values, const index_t* columns, Py_ssize_t nnz,
                 const RowScale* row, double* slack_t, const Step* step, double mass,
                 double* new_g, double* coefficient, int32_t* shifted) noexcept nogil
cdef void refit(Space* space, Py_ssize_t label, Projection projection) noexcept nogil
cdef void forget(Space* space, state_t* t, state_t* g, state_t* acc,
                 Py_ssize_t label) noexcept nogil
cdef void take_over(Space* space, state_t* t, Py_ssize_t label, Py_ssize_t n_rows,
                    const double* multipliers, const value_t* data, const index_t* indices,
                    const index_t* indptr) noexcept nogil
cdef void tighten(Space* space, Py_ssize_t label) noexcept nogil
cdef double rescued_output(const Space* space, const state_t* t, Py_ssize_t label,
                           const value_t* values, const index_t* columns, Py_ssize_t nnz,
                           const RowScale* row, const double* slack_t) noexcept nogil

cdef class LinearSpace:
    cdef Space c
    cdef readonly int64_t trials
    cdef readonly object t
    cdef readonly object g
    cdef readonly object acc
    cdef readonly object synced
    cdef readonly object pending
    cdef readonly object floats
    cdef readonly object sums
    cdef readonly object counts
    cdef readonly CorrectionLog log
    cdef object row_slack
    cdef readonly object multipliers
    cdef object measured
    cdef dict layout(self, dtype)
    cdef bind(self, double p, dict arrays)
    cdef dict checked_arrays(self, state, double p)
    cdef check_synced(self)
    cdef one_a_row(self, Py_ssize_t n_rows, kept)
