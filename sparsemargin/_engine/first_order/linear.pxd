"""The linear space's vectors, and a correction of one."""

from libc.stdint cimport int32_t, int64_t

from sparsemargin._engine.first_order.labels cimport Space
from sparsemargin._engine.first_order.rules cimport Step
from sparsemargin._engine.rows.csr cimport RowScale
from sparsemargin._engine.rows.types cimport state_t

cdef extern from *:
    """
    // The labels of a coordinate stand side by side, `width` of them, padding included.
    template <class S>
    struct Coordinates {
        S *t, *g;  // g is t itself for p = 2
        double *acc;  // where there is an average
        Py_ssize_t width;
    };
    """
    cdef cppclass Coordinates[S]:
        S* t
        S* g
        double* acc
        Py_ssize_t width

# S is summed afresh, for p = 2, once it is this share of its largest.
cdef double STALE_2


cdef struct Instance:  # an augmented row as corrections take it: scaled, without repeats
    const double* values  # the intercept's comes last
    const int64_t* columns
    Py_ssize_t n
    RowScale scale
    double slack  # value of its soft-margin coordinate
    double* slack_t  # the labels' coordinates there; NULL: none
    double* room  # for as many numbers as it has entries, which a correction works out


cdef struct Move:  # what a step came to
    double coefficient  # in units of t
    int32_t shift_before  # power of two that t was rescaled by to take it; FORGET: nothing was left
    int32_t shift_after


cdef int take_step(Space* space, const Coordinates[state_t]& at, Py_ssize_t l, int64_t trials,
                   const Instance* x, const Step* step, double mass, Move* done) noexcept nogil
cdef void sum_afresh(Space* space, const Coordinates[state_t]& at, Py_ssize_t l) noexcept nogil
cdef void forget(Space* space, const Coordinates[state_t]& at, Py_ssize_t l) noexcept nogil
cdef void keep_in_window(Space* space, const Coordinates[state_t]& at, Py_ssize_t l) noexcept nogil
