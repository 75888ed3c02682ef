"""Outputs of test points by all hypotheses, after given numbers of trials.

The log of corrections is replayed in the order of the trials. Subclasses define how points are
represented in a space, and how a correction changes their scores.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport fabs, ldexp
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

import numpy as np

from sparsemargin._engine.core.vectors cimport FirstOrderSpace
from sparsemargin._engine.core.log cimport FORGET, Correction, CorrectionLog, unit_of
from sparsemargin._engine.numerics.arithmetic cimport Power, link, make_power
from sparsemargin._engine.numerics.arithmetic cimport mixed, stepped
from sparsemargin._engine.numerics.arithmetic cimport add_exactly
from sparsemargin._engine.numerics.simd cimport add_multiple
from sparsemargin._engine.state_arrays cimport to_array

# Number of corrections between two checks for Ctrl-C; a replay can take long.
cdef enum:
    CORRECTIONS_PER_CHECK = 1024

# Relative accuracy of sums of many terms.
cdef double ROUNDING = ldexp(1.0, -48)
# The sign of a score in two doubles is reliable if its magnitude exceeds TELLING times the largest
# term. Terms count as at least LEAST_TERM.
cdef double TELLING = ldexp(1.0, -80)
cdef double LEAST_TERM = ldexp(1.0, -900)
# Sums and scores are recomputed after the unit has grown by this factor.
cdef double STALE = ldexp(1.0, 40)


cdef inline double sign(double x) noexcept nogil:
    return (x > 0.0) - (x < 0.0)


cdef class Replay:
    """Base class of the replays of spaces with a log."""

    cdef CorrectionLog log
    cdef bint normalized  # whether the units in the log belong to vectors of norm 1
    cdef bint counted  # whether votes are summed
    cdef bint averaged  # whether averages are summed
    cdef Py_ssize_t n_vectors, n_points
    cdef Py_ssize_t done  # number of corrections replayed, in the order of `by_time`
    cdef const int64_t[::1] by_time
    cdef const int64_t[::1] ends  # total number of trials of each vector
    cdef object counts  # number of trials of each vector replayed so far
    # Arrays of n_vectors x n_points. A leading 2 selects unscaled vectors, or vectors of norm 1.
    cdef double[:, ::1] scores  # link(t).x; the output is unit times score
    cdef double[:, ::1] voted  # sum of c_k sign(w_k.x)
    cdef double[:, :, ::1] totals  # sum of c_k w_k.x
    cdef double[:, ::1] units  # 2 x n_vectors

    def __init__(self, FirstOrderSpace space, Py_ssize_t n_points, bint counted, bint averaged):
        cdef Py_ssize_t e
        self.log = space.log
        self.normalized = space.c.normalized
        self.counted, self.averaged = counted, averaged
        self.n_vectors, self.n_points = space.c.n_vectors, n_points
        cdef int64_t[::1] starts = np.empty(self.log.corrections.size(), dtype=np.int64)
        for e in range(starts.shape[0]):
            starts[e] = self.log.corrections[e].start
        # Corrections of one vector may be logged before earlier ones of another vector.
        self.by_time = np.argsort(starts, kind="stable")
        self.ends = self.counts = space.trials_per_vector
        shape = self.n_vectors, n_points
        self.scores, self.voted = np.zeros(shape), np.zeros(shape)
        self.totals = np.zeros((2, *shape) if averaged else (2, 0, 0))
        self.units = np.zeros((2, self.n_vectors))

    cdef void take(self, const Correction* entry) noexcept nogil:
        """Count the vector before the correction, if required, and apply the correction."""

    cdef void count(self, Py_ssize_t vector, int64_t trials) noexcept nogil:
        """Count the current vector up to trial number `trials`."""

    cdef double score(self, Py_ssize_t vector, Py_ssize_t point) noexcept nogil:
        """The score of a point by the current vector."""
        return self.scores[vector, point]

    cdef int take_until(self, int64_t trials) except -1 nogil:
        """Replay the corrections of the first `trials` trials."""
        cdef Py_ssize_t v
        cdef const Correction* entry
        while self.done < self.by_time.shape[0]:
            entry = &self.log.corrections[self.by_time[self.done]]
            if entry.start >= trials:
                break
            if self.done % CORRECTIONS_PER_CHECK == 0:
                with gil:
                    PyErr_CheckSignals()
            self.take(entry)
            for v in range(2):
                self.units[v, entry.vector] = unit_of(entry, self.normalized, v)
            self.done += 1
        return 0

    def advance(self, int64_t trials):
        """Replay up to trial number `trials`, which must not decrease."""
        cdef Py_ssize_t l
        with nogil:
            self.take_until(trials)
            for l in range(self.n_vectors):
                self.count(l, min(trials, self.ends[l]))
        self.counts = np.minimum(trials, self.ends)

    def outputs_at(self, slices):
        """``w.x`` with the vectors at the given time slices, for a fresh replay.

        Parameters
        ----------
        slices : ndarray of shape (..., n_points)

        Returns
        -------
        ndarray of shape (2, ..., n_points, n_vectors)
            Outputs of the unscaled vectors, and of those of norm 1.
        """
        cdef Py_ssize_t i, s, l, v
        cdef const int64_t[::1] times = slices.reshape(-1)
        cdef const int64_t[::1] by_time = np.argsort(times, kind="stable")
        cdef double score
        result = np.empty((2, len(times), self.n_vectors))
        cdef double[:, :, ::1] out = result
        with nogil:
            for i in range(by_time.shape[0]):
                s = by_time[i]
                self.take_until(times[s] + 1)
                for l in range(self.n_vectors):
                    score = self.score(l, s % self.n_points)
                    for v in range(2):
                        out[v, s, l] = self.units[v, l] * score
        return result.reshape(2, *slices.shape, self.n_vectors)

    # The following outputs refer to the trials replayed, and have shape (n_points, n_vectors).

    def last(self, bint normalized):
        """``w.x``."""
        return np.asarray(self.scores).T * np.asarray(self.units)[int(normalized)]

    def average(self, bint normalized):
        """``sum_k c_k w_k.x``, divided by the trials."""
        return np.asarray(self.totals)[int(normalized)].T / np.maximum(self.counts, 1)

    def votes(self):
        """``sum_k c_k sign(w_k.x)``, divided by the trials."""
        return np.asarray(self.voted).T / np.maximum(self.counts, 1)


# -------------------------------------------------------------------------------- the kernel space

cdef inline void scale_by(double* numbers, Py_ssize_t n, int shift) noexcept nogil:
    cdef Py_ssize_t j
    cdef double factor = ldexp(1.0, shift)  # 0 for FORGET
    for j in range(n):
        numbers[j] *= factor


cdef class KernelReplay(Replay):
    """Replay of a kernel space on test points.

    Parameters
    ----------
    space : KernelSpace
    products : ndarray of shape (n_support, n_points)
        Kernel of the support set and the points. The column of each point may be scaled by a
        positive factor, by which its outputs are then scaled too.
    counted, averaged : bool
    """

    cdef const double[:, ::1] products
    cdef double[:, ::1] sizes  # sums of the absolute values of the terms of the scores
    cdef int64_t[::1] since  # trials up to which the vectors have been counted

    def __init__(self, FirstOrderSpace space, const double[:, ::1] products, *, bint counted=True,
                 bint averaged=False):
        super().__init__(space, products.shape[1], counted, averaged)
        self.products = products
        self.sizes = np.zeros((self.n_vectors, self.n_points))
        self.since = np.zeros(self.n_vectors, dtype=np.int64)

    cdef void take(self, const Correction* entry) noexcept nogil:
        cdef Py_ssize_t j
        cdef const double* products = &self.products[entry.row, 0]
        cdef double* scores = &self.scores[entry.vector, 0]
        cdef double* sizes = &self.sizes[entry.vector, 0]
        if self.counted:
            self.count(entry.vector, entry.start)
        if entry.shift_before:
            scale_by(scores, self.n_points, entry.shift_before)
            scale_by(sizes, self.n_points, entry.shift_before)
        add_multiple(scores, products, entry.coefficient, self.n_points)
        if self.counted:
            for j in range(self.n_points):
                sizes[j] += fabs(entry.coefficient * products[j])
        if entry.shift_after:
            scale_by(scores, self.n_points, entry.shift_after)
            scale_by(sizes, self.n_points, entry.shift_after)

    cdef void count(self, Py_ssize_t l, int64_t trials) noexcept nogil:
        cdef Py_ssize_t j, v
        cdef double counted = trials - self.since[l]
        cdef const double* scores = &self.scores[l, 0]
        cdef double* voted = &self.voted[l, 0]
        self.since[l] = trials
        for j in range(self.n_points):
            # A score below the rounding error is not a vote.
            if fabs(scores[j]) > ROUNDING * self.sizes[l, j]:
                voted[j] += counted * sign(scores[j])
        if self.averaged:
            for v in range(2):
                add_multiple(&self.totals[v, l, 0], scores, counted * self.units[v, l],
                             self.n_points)


include "linear_replay.pxi"


# ------------------------------------------------------------------------------------ time slices

def draw_slices(const double[::1] data, const int64_t[::1] indices, const int64_t[::1] indptr,
                uint64_t seed, int64_t trials):
    """A time slice from 0..trials for every row, drawn from the seed and the content of the row.

    The slice of a row does not depend on the other rows of the call.
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
