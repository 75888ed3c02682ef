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
from sparsemargin._engine.state_arrays cimport copied

# Number of corrections between two checks for Ctrl-C; a replay can take long.
cdef enum:
    CORRECTIONS_PER_CHECK = 1024

# Relative accuracy of sums of many terms.
cdef double ROUNDING = ldexp(1.0, -48)
# A sum of two doubles determines the sign if it exceeds TELLING times the largest term, and terms
# are at least LEAST_TERM.
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


# -------------------------------------------------------------------------------- the linear space

cdef struct Mark:
    # The counts of a vector up to some correction: trials, and the sums of c_k unit_k for unscaled
    # vectors and for vectors of norm 1, each as the sum of two doubles.
    int64_t trials
    double high[2]
    double low[2]


cdef tuple arrays_of(matrix):
    return matrix.data, matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)


@cython.final  # lets the compiler inline small methods
cdef class LinearReplay(Replay):
    """Replay of a linear space on test points.

    The sums of a point include a vector's hypotheses only up to a mark; they are updated when one
    of the point's coordinates changes. If nothing is counted, no scores are kept.

    Parameters
    ----------
    space : LinearSpace
    points : csr_array
        The points over all coordinates, including the intercept's.
    counted, averaged : bool
    """

    cdef Power power
    cdef Py_ssize_t n_used  # number of coordinates that occur in the points
    cdef const int64_t[::1] used_of  # index of each column of the log among these; -1: none
    cdef double[::1] t, g  # n_used x n_vectors
    # The points over the used coordinates, by row and by column.
    cdef const double[::1] values, data
    cdef const int64_t[::1] columns, row_start, points, column_start
    cdef double[:, ::1] low  # low-order parts of `scores`
    cdef double[:, ::1] largest  # largest term added to each score; 0: none
    cdef int64_t[:, ::1] since  # index of the mark up to which a point has been counted
    cdef vector[vector[Mark]] marks
    cdef double[::1] least_unit

    def __init__(self, FirstOrderSpace space, points, *, bint counted=True, bint averaged=False):
        super().__init__(space, points.shape[0], counted, averaged)
        self.power = make_power(space.p - 1.0)
        self.take_points(points)
        self.t = np.zeros(self.n_used * self.n_vectors)
        self.g = np.zeros(self.n_used * self.n_vectors)
        shape = self.n_vectors, self.n_points
        self.low, self.largest = np.zeros(shape), np.zeros(shape)
        self.since = np.zeros(shape, dtype=np.int64)
        self.least_unit = np.full(self.n_vectors, np.inf)
        self.marks.resize(self.n_vectors)
        for l in range(self.n_vectors):
            self.marks[l].push_back(Mark(0, [0.0, 0.0], [0.0, 0.0]))

    cdef take_points(self, points):
        """Arrange the points by row and column, and map the columns of the log to theirs."""
        from scipy.sparse import csr_array

        used, columns = np.unique(points.indices, return_inverse=True)
        self.n_used = len(used)
        logged = copied(self.log.columns)
        used_of = np.searchsorted(used, logged)
        used_of[np.append(used, -1)[used_of] != logged] = -1
        self.used_of = used_of
        by_row = csr_array((points.data, columns, points.indptr), (self.n_points, self.n_used))
        self.values, self.columns, self.row_start = arrays_of(by_row)
        if self.counted:
            self.data, self.points, self.column_start = arrays_of(by_row.tocsc())

    # ------------------------------------------------------------------------------- the vectors

    cdef void shift(self, Py_ssize_t l, int by) noexcept nogil:
        cdef Py_ssize_t i
        cdef double factor = ldexp(1.0, by)
        for i in range(self.n_used):
            if self.t[i * self.n_vectors + l] != 0.0:
                self.t[i * self.n_vectors + l] *= factor
                self.g[i * self.n_vectors + l] = link(&self.power, self.t[i * self.n_vectors + l])

    cdef inline double add(self, Py_ssize_t i, Py_ssize_t l, double x) noexcept nogil:
        """Add x to a coordinate of t, and return its new g."""
        cdef Py_ssize_t at = i * self.n_vectors + l
        self.t[at] += x
        self.g[at] = link(&self.power, self.t[at])
        return self.g[at]

    cdef void move(self, const Correction* entry) noexcept nogil:
        cdef Py_ssize_t a
        if entry.shift_before:
            self.shift(entry.vector, entry.shift_before)
        for a in range(self.log.row_start[entry.row], self.log.row_start[entry.row + 1]):
            if self.used_of[a] >= 0:
                self.add(self.used_of[a], entry.vector, entry.coefficient * self.log.values[a])
        if entry.shift_after:
            self.shift(entry.vector, entry.shift_after)

    # ------------------------------------------------------------------------- scores of points

    cdef double score(self, Py_ssize_t l, Py_ssize_t j) noexcept nogil:
        cdef Py_ssize_t a
        cdef double total = 0.0
        for a in range(self.row_start[j], self.row_start[j + 1]):
            total += self.values[a] * self.g[self.columns[a] * self.n_vectors + l]
        return total

    cdef inline void add_term(self, Py_ssize_t l, Py_ssize_t j, double term) noexcept nogil:
        add_exactly(&self.scores[l, j], &self.low[l, j], term)
        self.largest[l, j] = max(self.largest[l, j], max(fabs(term), LEAST_TERM))

    cdef void sum_afresh(self, Py_ssize_t l) noexcept nogil:
        cdef Py_ssize_t b, i, j
        for j in range(self.n_points):
            self.scores[l, j] = self.low[l, j] = self.largest[l, j] = 0.0
        for i in range(self.n_used):
            if self.t[i * self.n_vectors + l] != 0.0:
                for b in range(self.column_start[i], self.column_start[i + 1]):
                    self.add_term(l, self.points[b], self.data[b] * self.g[i * self.n_vectors + l])

    cdef inline void touch(self, Py_ssize_t l, Py_ssize_t i, double old_g,
                           double new_g) noexcept nogil:
        """Update the scores of all points that have this coordinate."""
        cdef Py_ssize_t b, j
        for b in range(self.column_start[i], self.column_start[i + 1]):
            j = self.points[b]
            add_exactly(&self.scores[l, j], &self.low[l, j], -(self.data[b] * old_g))
            self.add_term(l, j, self.data[b] * new_g)

    cdef inline double sign_of(self, Py_ssize_t l, Py_ssize_t j, double score) noexcept nogil:
        """The sign of ``w.x``, which is recomputed if cancellation has left too few digits."""
        cdef Py_ssize_t a
        cdef double total = 0.0, low = 0.0
        if fabs(score) > TELLING * self.largest[l, j]:
            return sign(score)
        if self.largest[l, j] == 0.0:
            return 0.0
        for a in range(self.row_start[j], self.row_start[j + 1]):
            add_exactly(&total, &low, self.values[a] * self.g[self.columns[a] * self.n_vectors + l])
        return sign(total + low)

    # --------------------------------------------------------------------------------- counting

    cdef void take(self, const Correction* entry) noexcept nogil:
        cdef Py_ssize_t a, b, i, l = entry.vector
        cdef double old_g, unit = unit_of(entry, self.normalized, True)
        if not self.counted:
            self.move(entry)
            return
        self.mark(l, entry.start)
        if self.is_stale(entry, unit):
            self.count_points(l)
            self.move(entry)
            self.sum_afresh(l)
            self.least_unit[l] = unit
            return
        for a in range(self.log.row_start[entry.row], self.log.row_start[entry.row + 1]):
            i = self.used_of[a]
            if i >= 0:
                # Points must be counted before any coordinate changes, because `sign_of` may
                # recompute.
                for b in range(self.column_start[i], self.column_start[i + 1]):
                    self.count_point(l, self.points[b])
        for a in range(self.log.row_start[entry.row], self.log.row_start[entry.row + 1]):
            i = self.used_of[a]
            if i >= 0:
                old_g = self.g[i * self.n_vectors + l]
                self.touch(l, i, old_g, self.add(i, l, entry.coefficient * self.log.values[a]))
        self.least_unit[l] = min(self.least_unit[l], unit)

    cdef bint is_stale(self, const Correction* entry, double unit) noexcept nogil:
        """Return whether scores or sums cannot be updated without loss of precision."""
        cdef const Mark* mark = &self.marks[entry.vector].back()
        if entry.shift_before or entry.shift_after or unit > STALE * self.least_unit[entry.vector]:
            return True
        return (mark.high[1] > STALE * unit
                or mark.high[0] > STALE * unit_of(entry, self.normalized, False))

    cdef void mark(self, Py_ssize_t l, int64_t trials) noexcept nogil:
        """Set a mark that counts the current vector up to trial number `trials`."""
        cdef Py_ssize_t v
        cdef Mark mark = self.marks[l].back()
        if self.averaged:
            for v in range(2):
                add_exactly(&mark.high[v], &mark.low[v],
                            (trials - mark.trials) * self.units[v, l])
        mark.trials = trials
        self.marks[l].push_back(mark)

    cdef inline void count_point(self, Py_ssize_t l, Py_ssize_t j) noexcept nogil:
        """Update the sums of a point up to the last mark."""
        cdef Py_ssize_t v
        cdef const Mark* old = &self.marks[l][self.since[l, j]]
        cdef const Mark* new = &self.marks[l].back()
        cdef double score = self.scores[l, j] + self.low[l, j]
        if new.trials > old.trials:
            self.voted[l, j] += (new.trials - old.trials) * self.sign_of(l, j, score)
        if self.averaged:
            for v in range(2):
                self.totals[v, l, j] += score * ((new.high[v] - old.high[v])
                                                 + (new.low[v] - old.low[v]))
        self.since[l, j] = self.marks[l].size() - 1

    cdef void count_points(self, Py_ssize_t l) noexcept nogil:
        """Update the sums of all points, and restart the sums of the marks at 0."""
        cdef Py_ssize_t j
        cdef Mark mark = self.marks[l].back()
        for j in range(self.n_points):
            self.count_point(l, j)
            self.since[l, j] = 0
        mark.high[0] = mark.high[1] = mark.low[0] = mark.low[1] = 0.0
        self.marks[l].clear()
        self.marks[l].push_back(mark)

    cdef void count(self, Py_ssize_t l, int64_t trials) noexcept nogil:
        cdef Py_ssize_t j
        cdef double error
        self.mark(l, trials)
        self.count_points(l)
        for j in range(self.n_points):
            # Move the leading digits into `scores`, from which outputs are read.
            error = 0.0
            add_exactly(&self.scores[l, j], &error, self.low[l, j])
            self.low[l, j] = error


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
