"""What every first-order space keeps of its labels, whatever their vectors are made of."""

from libc.math cimport pow, sqrt
from libc.stdint cimport int64_t

from sparsemargin._engine.hypotheses.log cimport CorrectionLog
from sparsemargin._engine.numerics.power cimport Power
from sparsemargin._engine.rows.csr cimport RowScale
from sparsemargin._engine.first_order.rules cimport Projection
from sparsemargin._engine.first_order.storage cimport Places
from sparsemargin._engine.numerics.sums cimport Sum

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
    Places at
    double* pending  # n_labels x (FLUSHES + 1): sum of the Z flushed since that many
    double* slack_t  # n_slack x n_labels
    Py_ssize_t n_slack
    double* multipliers  # n_rows x n_labels, where the rule keeps them
    RowScale* measured  # n_rows, along with them: what rows were measured to be, norm 0: not yet
    int window  # 2**-window < S < 2**window
    bint averaged
    bint normalized  # hypotheses count with norm 1


cdef inline double total_S(const Space* space, Py_ssize_t l) noexcept nogil:
    return space.of.S[l].high + space.of.S[l].low + space.of.S_slack[l]


cdef inline double p_root(const Space* space, double total) noexcept nogil:
    return sqrt(total) if space.p.exponent == 2.0 else pow(total, 1.0 / space.p.exponent)


cdef double unit(const Space* space, Py_ssize_t label) noexcept nogil
cdef double counted(const Space* space, Py_ssize_t label, int64_t trials) noexcept nogil
cdef void refit(Space* space, Py_ssize_t label, Projection projection) noexcept nogil
cdef void tighten(Space* space, Py_ssize_t label) noexcept nogil

cdef class FirstOrderSpace:
    cdef Space c
    cdef readonly int64_t trials
    cdef readonly object floats
    cdef readonly object sums
    cdef readonly object counts
    cdef readonly CorrectionLog log
    cdef dict label_layout(self)
    cdef bind_labels(self, double p, dict arrays)
    cdef set_out(self)
