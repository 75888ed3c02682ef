"""The vectors of the linear space, and how a correction changes one."""

from libc.stdint cimport int32_t, int64_t, uint16_t

from sparsemargin._engine.first_order.instance cimport Instance
from sparsemargin._engine.core.vectors cimport Space, Vector
from sparsemargin._engine.core.rules cimport Step
from sparsemargin._engine.rows.csr cimport state_t

cdef extern from *:
    """
    // The numbers of all vectors for a coordinate are contiguous. `stride` is the distance between
    // two coordinates.
    template <class S>
    struct Coordinates {
        S *t, *g;  // g is t itself if p = 2
        S *acc;  // only with averaging
        uint16_t *synced;  // number of flushes that acc includes
        S *variances;  // only with variances; 0 means the initial variance of the vector
        Py_ssize_t stride;
    };
    """
    cdef cppclass Coordinates[S]:
        S* t
        S* g
        S* acc
        uint16_t* synced
        S* variances
        Py_ssize_t stride


cdef enum:
    # Largest number of flushes (see `linear.pyx`) whose sums a coordinate of acc may lack.
    FLUSHES = 1024


cdef struct Move:  # how a step was carried out
    double coefficient  # factor of the row, in units of t
    int32_t shift_before  # t was rescaled by 2**shift_before before the step; FORGET: set to 0
    int32_t shift_after  # t was rescaled by 2**shift_after after the step


cdef inline void weigh(state_t* made, const Space* c, const Coordinates[state_t]& at,
                       Py_ssize_t i, Py_ssize_t first, Py_ssize_t last, const double* a,
                       const double* b) noexcept nogil:
    """Weights of the vectors first..last-1 at the coordinate whose numbers start at index i."""
    cdef Py_ssize_t l
    cdef double g, acc
    for l in range(first, last):
        g = at.g[i + l]
        if not c.averaged:
            made[l] = <state_t> (g * a[l])
            continue
        acc = at.acc[i + l]
        if at.synced[i + l] < c.vectors[l].flushes:
            acc += c.pending[l * c.pending_step + at.synced[i + l]] * g
        made[l] = <state_t> (g * a[l] + acc * b[l])


cdef int take_step(Space* space, const Coordinates[state_t]& at, Py_ssize_t l, int64_t trials,
                   const Instance* x, const Step* step, double mass, Move* done) noexcept nogil
cdef double find_variances(const Vector* vector, const Coordinates[state_t]& at, Py_ssize_t l,
                           const Instance* x) noexcept nogil
cdef void sum_afresh(Space* space, const Coordinates[state_t]& at, Py_ssize_t first,
                     Py_ssize_t last) noexcept nogil
cdef void keep_in_window(Space* space, const Coordinates[state_t]& at, Py_ssize_t l) noexcept nogil
