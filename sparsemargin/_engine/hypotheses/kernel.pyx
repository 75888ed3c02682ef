"""Hypotheses of the kernel space, replayed from the log of corrections.

What is replayed over are test points, by the matrix of their products with the pool's rows: one
kernel row a point, whatever the number of corrections.
"""

from libc.math cimport fabs, ldexp
from libc.stdint cimport int64_t

import numpy as np

from sparsemargin._engine.hypotheses.base cimport Hypotheses, sign
from sparsemargin._engine.kernel.space cimport KernelSpace
from sparsemargin._engine.hypotheses.log cimport FORGET, Correction, CorrectionLog, unit_of
from sparsemargin._engine.numerics.vectors cimport add_multiple

# Sums of many terms are exact to about so much of the sizes of these.
cdef double ROUNDING = ldexp(1.0, -48)


cdef inline void scale_by(double* scores, Py_ssize_t n, int shift) noexcept nogil:
    cdef Py_ssize_t j
    cdef double factor = 0.0 if shift == FORGET else ldexp(1.0, shift)
    for j in range(n):
        scores[j] *= factor


cdef inline void replay(double* scores, const Correction* entry, const double* products,
                        Py_ssize_t n) noexcept nogil:
    """Let the scores of n points take the correction."""
    if entry.shift_before:
        scale_by(scores, n, entry.shift_before)
    add_multiple(scores, products, entry.coefficient, n)
    if entry.shift_after:
        scale_by(scores, n, entry.shift_after)


cdef class KernelHypotheses(Hypotheses):
    """All hypotheses of a kernel space on test points.

    Parameters
    ----------
    space : KernelSpace
    products : ndarray of shape (n_support, n_points)
        Kernel of the pool's rows and the points, each point's up to a positive factor, which its
        outputs then have too.
    averaged : bool
        Whether averages are worked out besides the rest.
    """

    cdef const double[:, ::1] products
    cdef double[:, ::1] sizes  # of all that scores are sums of
    cdef int64_t[::1] since  # trials up to which each label's vectors have been counted

    def __init__(self, KernelSpace space, const double[:, ::1] products, *, bint averaged):
        super().__init__(space, products.shape[1], averaged)
        self.products = products
        self.sizes = np.zeros((self.n_labels, self.n_points))
        self.since = np.zeros(self.n_labels, dtype=np.int64)

    cdef void take(self, const Correction* entry) noexcept nogil:
        self.count(entry.label, entry.start)
        replay(&self.scores[entry.label, 0], entry, &self.products[entry.row, 0], self.n_points)
        self.add_sizes(entry)

    cdef void add_sizes(self, const Correction* entry) noexcept nogil:
        cdef Py_ssize_t j
        cdef double* sizes = &self.sizes[entry.label, 0]
        if entry.shift_before:
            scale_by(sizes, self.n_points, entry.shift_before)
        for j in range(self.n_points):
            sizes[j] += fabs(entry.coefficient * self.products[entry.row, j])
        if entry.shift_after:
            scale_by(sizes, self.n_points, entry.shift_after)

    cdef void count(self, Py_ssize_t l, int64_t trials) noexcept nogil:
        cdef Py_ssize_t j, v
        cdef double counted = trials - self.since[l]
        cdef const double* scores = &self.scores[l, 0]
        cdef double* voted = &self.voted[l, 0]
        self.since[l] = trials
        for j in range(self.n_points):
            # What rounding could have left of a score of 0 is no vote.
            if fabs(scores[j]) > ROUNDING * self.sizes[l, j]:
                voted[j] += counted * sign(scores[j])
        if self.averaged:
            for v in range(2):
                add_multiple(&self.totals[v, l, 0], scores, counted * self.units[v, l],
                             self.n_points)


def outputs_at(KernelSpace space, const double[:, ::1] products, slices, bint normalized):
    """``w.x`` of test points with the vectors that existed at time slices.

    Parameters
    ----------
    products : ndarray of shape (n_support, n_points)
    slices : ndarray of shape (n_points,) or (n_draws, n_points)
    normalized : bool
        Whether the vectors have norm 1.

    Returns
    -------
    ndarray of shape (n_labels, n_points) or (n_labels, n_draws, n_points)
    """
    cdef CorrectionLog log = space.log
    cdef Py_ssize_t e, s, l, n = products.shape[1], K = space.c.n_labels, n_slices = slices.size
    cdef const Correction* entry
    cdef const int64_t[::1] times = slices.reshape(-1)
    cdef const int64_t[::1] by_time = np.argsort(times, kind="stable")
    result = np.zeros((K, n_slices))
    cdef double[:, ::1] out = result, scores = np.zeros((K, n))
    cdef double[::1] unit = np.zeros(K)
    cdef int64_t[::1] done = np.zeros(K, dtype=np.int64)
    with nogil:
        for e in range(<Py_ssize_t> log.corrections.size()):
            entry = &log.corrections[e]
            l = entry.label
            while done[l] < n_slices and times[by_time[done[l]]] < entry.start:
                s = by_time[done[l]]
                out[l, s] = unit[l] * scores[l, s % n]
                done[l] += 1
            replay(&scores[l, 0], entry, &products[entry.row, 0], n)
            unit[l] = unit_of(entry, space.c.normalized, normalized)
        for l in range(K):
            while done[l] < n_slices:
                s = by_time[done[l]]
                out[l, s] = unit[l] * scores[l, s % n]
                done[l] += 1
    return result.reshape(K, *slices.shape)
