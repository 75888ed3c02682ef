"""Outputs of test points by all hypotheses, at moments of a run."""

from libc.stdint cimport int64_t

from sparsemargin._engine.first_order.labels cimport FirstOrderSpace
from sparsemargin._engine.hypotheses.log cimport Correction, CorrectionLog


# A replay can take long; Ctrl-C is heard between so many corrections.
cdef enum:
    CORRECTIONS_PER_CHECK = 1024


cdef inline double sign(double x) noexcept nogil:
    return (x > 0.0) - (x < 0.0)


cdef class Hypotheses:
    cdef CorrectionLog log
    cdef bint normalized  # the log's units are those of vectors of norm 1
    cdef bint averaged
    cdef Py_ssize_t n_labels, n_points
    cdef Py_ssize_t done  # corrections replayed, in the order of `by_time`
    cdef const int64_t[::1] by_time
    cdef const int64_t[::1] ends  # trials that each label took part in, in all
    cdef object counts  # and those replayed
    # Entries n_labels x n_points; before these 2 where vectors count as they are, or with norm 1.
    cdef double[:, ::1] scores  # of t; times the unit an output
    cdef double[:, ::1] voted  # sum of c_k sign(w_k.x)
    cdef double[:, :, ::1] totals  # sum of c_k w_k.x
    cdef double[:, ::1] units  # 2 x n_labels
    cdef void take(self, const Correction* entry) noexcept nogil
    cdef void count(self, Py_ssize_t label, int64_t trials) noexcept nogil
