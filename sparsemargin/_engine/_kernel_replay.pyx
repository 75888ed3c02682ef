# distutils: extra_compile_args = -ffp-contract=off
"""Vote and random hypotheses of the kernel space, replayed from the log of corrections.

What is replayed over are test points, by the matrix of their products with the pool's rows: one
kernel row a point, whatever the number of corrections.
"""

from libc.math cimport ldexp
from libc.stdint cimport int64_t

import numpy as np

from sparsemargin._engine._kernel_space cimport KernelSpace
from sparsemargin._engine._log cimport FORGET, Correction, CorrectionLog
from sparsemargin._engine._vectors cimport add_multiple


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


def votes(KernelSpace space, const double[:, ::1] products):
    """``sum_k c_k sign(w_k.x)`` of test points.

    Parameters
    ----------
    products : ndarray of shape (n_support, n_points)
        Kernel of the pool's rows and the points, each point's up to a positive factor.

    Returns
    -------
    ndarray of shape (n_labels, n_points)
    """
    cdef CorrectionLog log = space.log
    cdef Py_ssize_t e, j, l, n = products.shape[1], K = space.c.n_labels
    cdef const Correction* entry
    cdef int64_t counted
    result = np.zeros((K, n))
    cdef double[:, ::1] out = result, scores = np.zeros((K, n))
    cdef int64_t[::1] since = np.zeros(K, dtype=np.int64)
    cdef const int64_t[::1] trials = space.trials_per_label
    with nogil:
        for e in range(<Py_ssize_t> log.corrections.size()):
            entry = &log.corrections[e]
            l = entry.label
            counted = entry.start - since[l]
            since[l] = entry.start
            for j in range(n):
                out[l, j] += counted * ((scores[l, j] > 0.0) - (scores[l, j] < 0.0))
            replay(&scores[l, 0], entry, &products[entry.row, 0], n)
        for l in range(K):
            for j in range(n):
                out[l, j] += ((trials[l] - since[l])
                              * ((scores[l, j] > 0.0) - (scores[l, j] < 0.0)))
    return result


def outputs_at(KernelSpace space, const double[:, ::1] products, const int64_t[::1] slices):
    """``w.x`` of test points with the vectors that existed at each point's time slice.

    Parameters
    ----------
    products : ndarray of shape (n_support, n_points)
    slices : ndarray of shape (n_points,)

    Returns
    -------
    ndarray of shape (n_labels, n_points)
    """
    cdef CorrectionLog log = space.log
    cdef Py_ssize_t e, j, l, n = products.shape[1], K = space.c.n_labels
    cdef const Correction* entry
    cdef const int64_t[::1] by_time = np.argsort(slices, kind="stable")
    result = np.zeros((K, n))
    cdef double[:, ::1] out = result, scores = np.zeros((K, n))
    cdef double[::1] unit = np.zeros(K)
    cdef int64_t[::1] done = np.zeros(K, dtype=np.int64)
    with nogil:
        for e in range(<Py_ssize_t> log.corrections.size()):
            entry = &log.corrections[e]
            l = entry.label
            while done[l] < n and slices[by_time[done[l]]] < entry.start:
                j = by_time[done[l]]
                out[l, j] = unit[l] * scores[l, j]
                done[l] += 1
            replay(&scores[l, 0], entry, &products[entry.row, 0], n)
            unit[l] = entry.unit
        for l in range(K):
            while done[l] < n:
                j = by_time[done[l]]
                out[l, j] = unit[l] * scores[l, j]
                done[l] += 1
    return result
