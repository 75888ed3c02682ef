"""The linear space's vectors, and a correction of one."""

from libc.stdint cimport int32_t, int64_t, uint16_t

from sparsemargin._engine.first_order.instance cimport Instance
from sparsemargin._engine.first_order.labels cimport Space
from sparsemargin._engine.first_order.rules cimport Step
from sparsemargin._engine.rows.csr cimport state_t

cdef extern from *:
    """
    // The labels of a coordinate stand side by side, `width` of them, padding included.
    template <class S>
    struct Coordinates {
        S *t, *g;  // g is t itself for p = 2
        S *acc;  // where there is an average
        uint16_t *synced;  // flushes that acc has taken in
        Py_ssize_t width;
    };
    """
    cdef cppclass Coordinates[S]:
        S* t
        S* g
        S* acc
        uint16_t* synced
        Py_ssize_t width


cdef enum:
    FLUSHES = 1024  # that a coordinate may be behind


cdef struct Move:  # what a step came to
    double coefficient  # in units of t
    int32_t shift_before  # power of two that t was rescaled by to take it; FORGET: nothing was left
    int32_t shift_after


cdef int take_step(Space* space, const Coordinates[state_t]& at, Py_ssize_t l, int64_t trials,
                   const Instance* x, const Step* step, double mass, Move* done) noexcept nogil
cdef void sum_afresh(Space* space, const Coordinates[state_t]& at, Py_ssize_t l) noexcept nogil
cdef void keep_in_window(Space* space, const Coordinates[state_t]& at, Py_ssize_t l) noexcept nogil
