"""Hypotheses of the linear space, replayed from the log of corrections over test points.

A correction changes a test point's score only through the features the two share. The points
are therefore held by column, and what the vectors before were worth to a point is counted when
its score is next touched. An intercept touches every point, at a cost of one addition a point and
correction. Features that no point has are left out: however many there are, they take no memory.

Scores are sums of two doubles into which the same products are added and later subtracted; for
p > 2 they are summed afresh when the weights have shrunk so far that rounding would show. Where a
score is so small beside what it is a sum of, or its terms so small, that it does not tell the
sign, a vote takes that of the sum of the terms at a scale of their own.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, exp2, fabs, floor, frexp, ldexp
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

import numpy as np

from sparsemargin._engine.hypotheses.base cimport CORRECTIONS_PER_CHECK, Hypotheses, sign
from sparsemargin._engine.hypotheses.log cimport Correction, CorrectionLog, unit_of
from sparsemargin._engine.numerics.power cimport Power, link, make_power
from sparsemargin._engine.numerics.random cimport mixed, stepped
from sparsemargin._engine.first_order.spaces cimport LinearSpace
from sparsemargin._engine.state cimport as_array
from sparsemargin._engine.numerics.sums cimport add_exactly

cdef double STALE = ldexp(1.0, 40)
# Sums of two doubles tell the sign of what is no smaller beside their terms, where these are no
# smaller themselves.
cdef double TOLD = ldexp(1.0, -80)
cdef double LEAST_TERM = ldexp(1.0, -900)


@cython.final  # so that its small methods are inlined
cdef class _Vectors:
    """The vectors of all labels as they were, one correction after the other, over the
    coordinates `used`, which rise."""

    cdef CorrectionLog log
    cdef Power power
    cdef Py_ssize_t K, n
    cdef const int64_t[::1] places  # among those used, of the log's columns; -1: none
    cdef double[::1] t, g

    def __init__(self, LinearSpace space, used):
        self.log = space.log
        self.power = make_power(space.p - 1.0)
        self.K = space.c.n_labels
        self.n = len(used)
        columns = as_array(self.log.columns.data(), self.log.columns.size(), np.int64)
        places = np.searchsorted(used, columns)
        places[np.append(used, -1)[places] != columns] = -1
        self.places = places
        self.t = np.zeros(self.n * self.K)
        self.g = np.zeros(self.n * self.K)

    cdef void shift(self, Py_ssize_t l, int by) noexcept nogil:
        cdef Py_ssize_t i
        cdef double factor = ldexp(1.0, by)
        for i in range(self.n):
            if self.t[i * self.K + l] != 0.0:
                self.t[i * self.K + l] *= factor
                self.g[i * self.K + l] = link(&self.power, self.t[i * self.K + l])

    cdef inline double add(self, Py_ssize_t i, Py_ssize_t l, double x) noexcept nogil:
        """Add x to a coordinate of t; its new g."""
        cdef Py_ssize_t at = i * self.K + l
        self.t[at] += x
        self.g[at] = link(&self.power, self.t[at])
        return self.g[at]

    cdef void take(self, const Correction* entry) noexcept nogil:
        cdef Py_ssize_t a
        if entry.shift_before:
            self.shift(entry.label, entry.shift_before)
        for a in range(self.log.row_start[entry.row], self.log.row_start[entry.row + 1]):
            if self.places[a] >= 0:
                self.add(self.places[a], entry.label, entry.coefficient * self.log.values[a])
        if entry.shift_after:
            self.shift(entry.label, entry.shift_after)

    cdef inline double term(self, Py_ssize_t i, Py_ssize_t l, double x,
                            double* exponent) noexcept nogil:
        """x times the coordinate's g, over 2**exponent: from 2**-p to 2, or 0."""
        cdef int of_t, of_x
        cdef double t = frexp(self.t[i * self.K + l], &of_t)
        cdef double power = of_t * self.power.exponent
        x = frexp(x, &of_x)
        exponent[0] = floor(power) + of_x
        return x * (link(&self.power, t) * exp2(power - floor(power)))

    cdef double sign_of(self, Py_ssize_t l, const double* values, const int64_t* places,
                        Py_ssize_t n) noexcept nogil:
        """That of ``w.x``, whatever the size of its terms."""
        cdef Py_ssize_t j
        cdef double term, exponent, top = -INFINITY, total = 0.0, low = 0.0
        for j in range(n):
            if self.term(places[j], l, values[j], &exponent) != 0.0:
                top = max(top, exponent)
        for j in range(n):
            term = self.term(places[j], l, values[j], &exponent)
            if term != 0.0:
                add_exactly(&total, &low, ldexp(term, <int> max(exponent - top, -2000.0)))
        return sign(total + low)


cdef struct Mark:
    # What a label's vectors have counted up to some correction: trials, and the sums of c_k unit_k
    # of vectors as they are and of norm 1, of two doubles each.
    int64_t trials
    double high[2]
    double low[2]


@cython.final
cdef class LinearHypotheses(Hypotheses):
    """All hypotheses of a linear space on test points.

    Parameters
    ----------
    space : LinearSpace
    used : ndarray
        The coordinates that the points have, rising.
    values, places, row_start : ndarray
        The points (CSR) over these, the intercept's included.
    data, points, column_start : ndarray
        The same by column (CSC).
    averaged : bool
        Whether averages are worked out besides the rest.
    """

    cdef _Vectors vectors
    cdef const double[::1] values, data
    cdef const int64_t[::1] places, row_start, points, column_start
    cdef double[:, ::1] low  # what `scores` lack
    cdef double[:, ::1] largest  # of what has been added to each; 0: nothing
    cdef int64_t[:, ::1] since  # the label's mark up to which a point has been counted
    cdef vector[vector[Mark]] marks
    cdef double[::1] least_unit

    def __init__(self, LinearSpace space, used, const double[::1] values,
                 const int64_t[::1] places, const int64_t[::1] row_start, const double[::1] data,
                 const int64_t[::1] points, const int64_t[::1] column_start, *, bint averaged):
        cdef Py_ssize_t n_points = row_start.shape[0] - 1
        super().__init__(space, n_points, averaged)
        self.vectors = _Vectors(space, used)
        self.values, self.places, self.row_start = values, places, row_start
        self.data, self.points, self.column_start = data, points, column_start
        self.low = np.zeros((self.n_labels, n_points))
        self.largest = np.zeros((self.n_labels, n_points))
        self.since = np.zeros((self.n_labels, n_points), dtype=np.int64)
        self.least_unit = np.full(self.n_labels, np.inf)
        self.marks.resize(self.n_labels)
        for l in range(self.n_labels):
            self.marks[l].push_back(Mark(0, [0.0, 0.0], [0.0, 0.0]))

    cdef void take(self, const Correction* entry) noexcept nogil:
        cdef Py_ssize_t a, b, i, l = entry.label
        cdef double old_g, new_g, unit = unit_of(entry, self.normalized, True)
        self.mark(l, entry.start)
        if self.is_stale(entry, unit):
            self.count_points(l)
            self.vectors.take(entry)
            self.sum_afresh(l)
            self.least_unit[l] = unit
            return
        for a in range(self.log.row_start[entry.row], self.log.row_start[entry.row + 1]):
            i = self.vectors.places[a]
            if i >= 0:
                # Before any coordinate moves: the sign may be that of all the terms.
                for b in range(self.column_start[i], self.column_start[i + 1]):
                    self.count_point(l, self.points[b])
        for a in range(self.log.row_start[entry.row], self.log.row_start[entry.row + 1]):
            i = self.vectors.places[a]
            if i >= 0:
                old_g = self.vectors.g[i * self.n_labels + l]
                new_g = self.vectors.add(i, l, entry.coefficient * self.log.values[a])
                self.touch(l, i, old_g, new_g)
        self.least_unit[l] = min(self.least_unit[l], unit)

    cdef bint is_stale(self, const Correction* entry, double unit) noexcept nogil:
        """Whether scores or sums can't go on from what they were without loss."""
        cdef const Mark* mark = &self.marks[entry.label].back()
        if entry.shift_before or entry.shift_after or unit > STALE * self.least_unit[entry.label]:
            return True
        return (mark.high[1] > STALE * unit
                or mark.high[0] > STALE * unit_of(entry, self.normalized, False))

    cdef void mark(self, Py_ssize_t l, int64_t trials) noexcept nogil:
        """Count the current vector up to so many trials, its points to follow."""
        cdef Py_ssize_t v
        cdef Mark mark = self.marks[l].back()
        if self.averaged:
            for v in range(2):
                add_exactly(&mark.high[v], &mark.low[v],
                            (trials - mark.trials) * self.units[v, l])
        mark.trials = trials
        self.marks[l].push_back(mark)

    cdef inline void count_point(self, Py_ssize_t l, Py_ssize_t j) noexcept nogil:
        """Let the point's sums have what is counted up to the last mark."""
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

    cdef inline double sign_of(self, Py_ssize_t l, Py_ssize_t j, double score) noexcept nogil:
        cdef Py_ssize_t start = self.row_start[j]
        if fabs(score) > TOLD * self.largest[l, j]:
            return sign(score)
        if self.largest[l, j] == 0.0:
            return 0.0
        return self.vectors.sign_of(l, &self.values[0] + start, &self.places[0] + start,
                                    self.row_start[j + 1] - start)

    cdef void count_points(self, Py_ssize_t l) noexcept nogil:
        """`count_point` of all, and sums that begin from 0."""
        cdef Py_ssize_t j
        cdef Mark mark = self.marks[l].back()
        for j in range(self.n_points):
            self.count_point(l, j)
            self.since[l, j] = 0
        mark.high[0] = mark.high[1] = mark.low[0] = mark.low[1] = 0.0
        self.marks[l].clear()
        self.marks[l].push_back(mark)

    cdef inline void touch(self, Py_ssize_t l, Py_ssize_t i, double old_g,
                           double new_g) noexcept nogil:
        """Let a coordinate's change reach the points that have it."""
        cdef Py_ssize_t b, j
        cdef double* scores = &self.scores[l, 0]
        cdef double* low = &self.low[l, 0]
        cdef double* largest = &self.largest[l, 0]
        for b in range(self.column_start[i], self.column_start[i + 1]):
            j = self.points[b]
            add_exactly(&scores[j], &low[j], -(self.data[b] * old_g))
            add_exactly(&scores[j], &low[j], self.data[b] * new_g)
            largest[j] = max(largest[j], max(fabs(self.data[b] * new_g), LEAST_TERM))

    cdef void sum_afresh(self, Py_ssize_t l) noexcept nogil:
        cdef Py_ssize_t b, i, j
        cdef double g
        for j in range(self.n_points):
            self.scores[l, j] = self.low[l, j] = self.largest[l, j] = 0.0
        for i in range(self.vectors.n):
            g = self.vectors.g[i * self.n_labels + l]
            if self.vectors.t[i * self.n_labels + l] != 0.0:
                for b in range(self.column_start[i], self.column_start[i + 1]):
                    j = self.points[b]
                    add_exactly(&self.scores[l, j], &self.low[l, j], self.data[b] * g)
                    self.largest[l, j] = max(self.largest[l, j],
                                             max(fabs(self.data[b] * g), LEAST_TERM))

    cdef void count(self, Py_ssize_t l, int64_t trials) noexcept nogil:
        cdef Py_ssize_t j
        cdef double error
        self.mark(l, trials)
        self.count_points(l)
        for j in range(self.n_points):
            # The leading digits to the front, where outputs are read off.
            error = 0.0
            add_exactly(&self.scores[l, j], &error, self.low[l, j])
            self.low[l, j] = error


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


def outputs_at(LinearSpace space, used, const double[::1] data, const int64_t[::1] indices,
               const int64_t[::1] indptr, slices, bint normalized):
    """``w.x`` with the vectors that existed at time slices.

    Parameters
    ----------
    used : ndarray
        The coordinates that the rows have, rising.
    data, indices, indptr : ndarray
        The rows (CSR) over these, the intercept's column included.
    slices : ndarray of shape (n_rows,) or (n_draws, n_rows)
    normalized : bool
        Whether the vectors have norm 1.

    Returns
    -------
    ndarray of shape (n_rows, n_labels) or (n_draws, n_rows, n_labels)
    """
    cdef _Vectors vectors = _Vectors(space, used)
    cdef CorrectionLog log = space.log
    cdef Py_ssize_t K = space.c.n_labels, n_rows = indptr.shape[0] - 1, n_slices = slices.size
    cdef Py_ssize_t e, l, s
    cdef const Correction* entry
    cdef const int64_t[::1] times = slices.reshape(-1)
    cdef const int64_t[::1] by_time = np.argsort(times, kind="stable")
    cdef int64_t[::1] done = np.zeros(K, dtype=np.int64)
    cdef double[::1] unit = np.zeros(K)
    result = np.zeros((n_slices, K))
    cdef double[:, ::1] out = result
    with nogil:
        for e in range(<Py_ssize_t> log.corrections.size()):
            if e % CORRECTIONS_PER_CHECK == 0:
                with gil:
                    PyErr_CheckSignals()
            entry = &log.corrections[e]
            l = entry.label
            while done[l] < n_slices and times[by_time[done[l]]] < entry.start:
                s = by_time[done[l]]
                out[s, l] = unit[l] * dot(vectors, l, data, indices, indptr, s % n_rows)
                done[l] += 1
            vectors.take(entry)
            unit[l] = unit_of(entry, space.c.normalized, normalized)
        for l in range(K):
            while done[l] < n_slices:
                s = by_time[done[l]]
                out[s, l] = unit[l] * dot(vectors, l, data, indices, indptr, s % n_rows)
                done[l] += 1
    return result.reshape(*slices.shape, K)


cdef double dot(_Vectors vectors, Py_ssize_t l, const double[::1] data,
                const int64_t[::1] indices, const int64_t[::1] indptr,
                Py_ssize_t row) noexcept nogil:
    cdef Py_ssize_t j
    cdef double total = 0.0
    for j in range(indptr[row], indptr[row + 1]):
        total += data[j] * vectors.g[indices[j] * vectors.K + l]
    return total
