# distutils: extra_compile_args = -ffp-contract=off
"""Vote and random hypotheses, replayed from the log of corrections over test points.

A correction changes a test point's score only through the features the two share. The points
are therefore held by column, and a point's vote is credited when its score is next touched.
An intercept touches every point, at a cost of one addition a point and correction.

Scores are sums of two doubles into which the same products are added and later subtracted; for
p > 2 they are summed afresh when the weights have shrunk so far that rounding would show.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport ldexp
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

import numpy as np

from sparsemargin._engine._log cimport Correction, CorrectionLog
from sparsemargin._engine._power cimport Power, link, make_power
from sparsemargin._engine._random cimport mixed, stepped
from sparsemargin._engine._space cimport LinearSpace
from sparsemargin._engine._sum cimport add_exactly

# A replay can take long; Ctrl-C is heard between so many corrections.
cdef enum:
    CORRECTIONS_PER_CHECK = 1024

cdef double STALE = ldexp(1.0, 40)


cdef inline double sign(double x) noexcept nogil:
    return (x > 0.0) - (x < 0.0)


cdef class _Replay:
    """The vectors of all labels as they were, one correction after the other."""

    cdef CorrectionLog log
    cdef Power power
    cdef Py_ssize_t K, n
    cdef double[::1] t, g, unit

    def __init__(self, LinearSpace space):
        self.log = space.log
        self.power = make_power(space.p - 1.0)
        self.K = space.c.n_labels
        self.n = space.c.n_coordinates
        self.t = np.zeros(self.n * self.K)
        self.g = np.zeros(self.n * self.K)
        self.unit = np.zeros(self.K)

    cdef Correction* correction(self, Py_ssize_t e) except NULL nogil:
        if e % CORRECTIONS_PER_CHECK == 0:
            with gil:
                PyErr_CheckSignals()
        return &self.log.corrections[e]

    cdef void shift(self, Py_ssize_t l, int by) noexcept nogil:
        cdef Py_ssize_t i
        cdef double factor = ldexp(1.0, by)
        for i in range(self.n):
            if self.t[i * self.K + l] != 0.0:
                self.t[i * self.K + l] *= factor
                self.g[i * self.K + l] = link(&self.power, self.t[i * self.K + l])


def votes(LinearSpace space, const double[::1] data, const int64_t[::1] points,
          const int64_t[::1] column_start, Py_ssize_t n_points):
    """``sum_k c_k sign(w_k.x)`` for test points held by column (CSC, the intercept's included).

    Returns
    -------
    ndarray of shape (n_points, n_labels)
    """
    cdef _Replay replay = _Replay(space)
    cdef CorrectionLog log = replay.log
    cdef Py_ssize_t K = replay.K, e, a, b, i, j, l, at
    cdef Correction* entry
    cdef double[:, ::1] high = np.zeros((n_points, K)), low = np.zeros((n_points, K))
    cdef int64_t[:, ::1] since = np.zeros((n_points, K), dtype=np.int64)
    cdef double[::1] least_unit = np.full(K, np.inf)
    result = np.zeros((n_points, K))
    cdef double[:, ::1] out = result
    cdef double old_g, new_g
    cdef bint afresh
    with nogil:
        for e in range(<Py_ssize_t> log.corrections.size()):
            entry = replay.correction(e)
            l = entry.label
            if entry.shift_before:
                replay.shift(l, entry.shift_before)
            afresh = (entry.shift_before or entry.shift_after
                      or entry.unit > STALE * least_unit[l])
            if afresh:
                for j in range(n_points):
                    out[j, l] += (entry.start - since[j, l]) * sign(high[j, l] + low[j, l])
                    since[j, l] = entry.start
            for a in range(log.row_start[entry.row], log.row_start[entry.row + 1]):
                i = log.columns[a]
                at = i * K + l
                old_g = replay.g[at]
                replay.t[at] += entry.coefficient * log.values[a]
                new_g = link(&replay.power, replay.t[at])
                replay.g[at] = new_g
                if afresh:
                    continue
                for b in range(column_start[i], column_start[i + 1]):
                    j = points[b]
                    out[j, l] += (entry.start - since[j, l]) * sign(high[j, l] + low[j, l])
                    since[j, l] = entry.start
                    add_exactly(&high[j, l], &low[j, l], -(data[b] * old_g))
                    add_exactly(&high[j, l], &low[j, l], data[b] * new_g)
            if entry.shift_after:
                replay.shift(l, entry.shift_after)
            if afresh:
                least_unit[l] = entry.unit
                for j in range(n_points):
                    high[j, l] = low[j, l] = 0.0
                for i in range(replay.n):
                    new_g = replay.g[i * K + l]
                    if new_g != 0.0:
                        for b in range(column_start[i], column_start[i + 1]):
                            add_exactly(&high[points[b], l], &low[points[b], l],
                                        data[b] * new_g)
            elif entry.unit < least_unit[l]:
                least_unit[l] = entry.unit
    trials = space.trials_per_label
    result += (trials - np.asarray(since)) * np.sign(np.asarray(high) + np.asarray(low))
    return result


def draw_slices(const double[::1] data, const int64_t[::1] indices, const int64_t[::1] indptr,
                uint64_t seed, int64_t trials):
    """A time slice from 0..trials for every row, drawn from the seed and the row's content.

    The same row gets the same draw in whatever company it is predicted.
    """
    cdef Py_ssize_t r, j, n_rows = indptr.shape[0] - 1
    cdef uint64_t state, bits
    result = np.empty(n_rows, dtype=np.int64)
    cdef int64_t[::1] slices = result
    with nogil:
        for r in range(n_rows):
            state = mixed(stepped(seed))
            for j in range(indptr[r], indptr[r + 1]):
                if data[j] == 0.0:
                    continue
                memcpy(&bits, &data[j], 8)
                state = mixed(state ^ bits)
                state = mixed(state + 0x9E3779B97F4A7C15u * <uint64_t> (indices[j] + 1))
            slices[r] = <int64_t> (state % <uint64_t> (trials + 1))
    return result


def outputs_at(LinearSpace space, const double[::1] data, const int64_t[::1] indices,
               const int64_t[::1] indptr, const int64_t[::1] slices):
    """``w.x`` with the vectors that existed at each row's time slice.

    Returns
    -------
    ndarray of shape (n_rows, n_labels)
    """
    cdef _Replay replay = _Replay(space)
    cdef CorrectionLog log = replay.log
    cdef Py_ssize_t K = replay.K, n_rows = indptr.shape[0] - 1, e, a, l, at
    cdef Correction* entry
    cdef const int64_t[::1] by_time = np.argsort(slices, kind="stable")
    cdef int64_t[::1] done = np.zeros(K, dtype=np.int64)
    result = np.zeros((n_rows, K))
    cdef double[:, ::1] out = result
    with nogil:
        for e in range(<Py_ssize_t> log.corrections.size()):
            entry = replay.correction(e)
            l = entry.label
            while done[l] < n_rows and slices[by_time[done[l]]] < entry.start:
                out[by_time[done[l]], l] = output(replay, l, data, indices, indptr,
                                                  by_time[done[l]])
                done[l] += 1
            if entry.shift_before:
                replay.shift(l, entry.shift_before)
            for a in range(log.row_start[entry.row], log.row_start[entry.row + 1]):
                at = log.columns[a] * K + l
                replay.t[at] += entry.coefficient * log.values[a]
                replay.g[at] = link(&replay.power, replay.t[at])
            if entry.shift_after:
                replay.shift(l, entry.shift_after)
            replay.unit[l] = entry.unit
        for l in range(K):
            while done[l] < n_rows:
                out[by_time[done[l]], l] = output(replay, l, data, indices, indptr,
                                                  by_time[done[l]])
                done[l] += 1
    return result


cdef double output(_Replay replay, Py_ssize_t l, const double[::1] data,
                   const int64_t[::1] indices, const int64_t[::1] indptr,
                   Py_ssize_t row) noexcept nogil:
    cdef Py_ssize_t j
    cdef double total = 0.0
    for j in range(indptr[row], indptr[row + 1]):
        total += data[j] * replay.g[indices[j] * replay.K + l]
    return total * replay.unit[l]
