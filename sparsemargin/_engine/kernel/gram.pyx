"""Passes over few rows, for p = 2: the scores of all of them are kept up to date.

A correction by row j changes the score of row i by the step times their dot product. With the
matrix of these (Gram) a trial is a comparison, and a correction costs one operation a row,
whatever the number of features. The corrections are those of the plain loop in the same order,
but for rounding: the vector itself is brought up to date, and the scores taken afresh from it,
every so many corrections and where its norm has fallen far.
"""

from libc.math cimport isfinite, ldexp
from libc.stdint cimport int64_t, uint64_t
from libcpp.vector cimport vector

import numpy as np

from sparsemargin._engine.first_order.labels cimport Space, refit, tighten
from sparsemargin._engine.numerics.random cimport shuffle_rows
from sparsemargin._engine.rows.csr cimport RowScale
from sparsemargin._engine.first_order.rules cimport Rule, Step, Trial
from sparsemargin._engine.rows.csr cimport Row, as_row
from sparsemargin._engine.rows.scores cimport score, weights_of
from sparsemargin._engine.first_order.linear cimport STALE_2, Coordinates, forget
from sparsemargin._engine.first_order.spaces cimport LinearSpace
from sparsemargin._engine.numerics.sums cimport add, tidy
from sparsemargin._engine.rows.types cimport OK, TOO_WIDE, index_t, state_t, value_t
from sparsemargin._engine.first_order.labels cimport FirstOrderRule, answer, settle
from sparsemargin._engine.numerics.vectors cimport add_multiple, first_due

cdef enum:
    CORRECTIONS_PER_REFRESH = 1 << 16


def fill_gram(double[:, ::1] gram, Py_ssize_t start, Py_ssize_t stop, const value_t[::1] data,
              const index_t[::1] indices, const index_t[::1] indptr, Py_ssize_t n_features,
              double bias, double slack):
    """Rows ``start`` to ``stop - 1`` of the lower triangle, and their mirror image."""
    cdef Py_ssize_t i, j, a
    cdef vector[double] row
    row.resize(n_features + 1)
    row[n_features] = bias
    with nogil:
        for i in range(start, stop):
            for a in range(indptr[i], indptr[i + 1]):
                row[indices[a]] = data[a]
            for j in range(i + 1):
                score(&gram[i, j], weights_of(<const double*> row.data(), 1, 0, 0, 1, True),
                      as_row(&data[0] + indptr[j], &indices[0] + indptr[j],
                             indptr[j + 1] - indptr[j]),
                      as_row(&data[0], &indices[0], 0))
                if bias:
                    gram[i, j] += bias * row[n_features]
                gram[j, i] = gram[i, j]
            gram[i, i] += slack * slack
            for a in range(indptr[i], indptr[i + 1]):
                row[indices[a]] = 0.0


cdef struct Problem:
    Py_ssize_t n_rows
    Py_ssize_t label
    const double* gram
    const double* norms
    const double* measured  # the norms where instances are divided by them, else ones
    const double* signs
    const double* shares
    double* scores  # t.x, augmented and extended
    double* pending  # of the rows, in units of t, not yet added to it
    double* multipliers  # of the rows, where the rule keeps them, else NULL
    Py_ssize_t stride  # from one row's to the next


cdef inline bint due(const Problem* problem, Py_ssize_t i, double sigma,
                     double bar) noexcept nogil:
    return (problem.signs[i] * sigma * problem.scores[i] <= bar * problem.measured[i]
            or (problem.multipliers != NULL and problem.multipliers[i * problem.stride] > 0.0))


cdef inline Py_ssize_t next_due(const Problem* problem, const int64_t* order, Py_ssize_t i,
                                double sigma, double bar) noexcept nogil:
    """The next position from i whose row's test fires; n_rows if there is none."""
    if order == NULL and problem.multipliers == NULL:
        return first_due(problem.scores, problem.signs, problem.measured, sigma, bar, i,
                         problem.n_rows)
    while i < problem.n_rows and not due(problem, order[i] if order != NULL else i, sigma, bar):
        i += 1
    return i


cdef int refresh(const Problem* problem, LinearSpace whole, rows, double[::1] pending,
                 state_t[:, ::1] t, const value_t* data,
                 const index_t* indices, const index_t* indptr) except -1 nogil:
    """Add to t what is pending, and take the scores from it."""
    cdef Py_ssize_t i
    cdef Space* space = &whole.c
    cdef Py_ssize_t l = problem.label, K = space.n_labels
    with gil:
        whole.add_rows(rows, l, pending)
    for i in range(problem.n_rows):
        problem.pending[i] = 0.0
        score(problem.scores + i, weights_of(<const state_t*> &t[0, l], whole.width, 0, 0, 1, False),
              as_row(data + indptr[i], indices + indptr[i], indptr[i + 1] - indptr[i]),
              as_row(data, indices, 0))
        if space.bias:
            problem.scores[i] += space.bias * t[space.n_coordinates - 1, l]
        if space.slack:
            problem.scores[i] += space.slack_t[i * K + l] * space.slack
    return 0


cdef inline int correct(const Problem* problem, const Rule* rule, Space* space, const Coordinates[state_t]& t,
                        Py_ssize_t j, int64_t trials) noexcept nogil:
    """The rule's answer to a trial of row j that fired, the last of so many trials."""
    cdef Py_ssize_t i, l = problem.label
    cdef const double* products = problem.gram + j * problem.n_rows
    cdef RowScale row = RowScale(0, 1.0, problem.norms[j], 0.0)
    cdef double y = problem.signs[j], size, mass
    cdef double* kept = NULL
    if problem.multipliers != NULL:
        kept = problem.multipliers + j * problem.stride
    cdef Trial trial = Trial(y * space.sigma[l] * problem.scores[j] / problem.measured[j],
                             space.labels[l].norm, row.norm / problem.measured[j],
                             kept[0] if kept != NULL else 0.0)
    cdef Step step
    if not answer(rule, space.labels + l, &trial, problem.shares[j], &row, &step, &mass):
        return OK
    if step.keep == 0.0:
        forget(space, t, l)
        for i in range(problem.n_rows):
            problem.scores[i] = problem.pending[i] = 0.0
        step.keep = 1.0
    space.labels[l].scale *= step.keep
    size = y * step.size / space.labels[l].scale
    space.labels[l].mass = step.keep * space.labels[l].mass + mass
    if not isfinite(size) or size == 0.0:
        return TOO_WIDE
    add(&space.labels[l].S, size * (2.0 * problem.scores[j] + size * products[j]))
    tidy(&space.labels[l].S)
    space.labels[l].S_peak = max(space.labels[l].S_peak, space.labels[l].S.high)
    problem.pending[j] += size
    add_multiple(problem.scores, products, size, problem.n_rows)
    refit(space, l, step.projection)
    tighten(space.labels + l)
    settle(rule, space, l, kept, mass, trials)
    return OK


cdef inline bint is_stale(const Space* space, Py_ssize_t l, int64_t since) noexcept nogil:
    cdef double S = space.labels[l].S.high, window = ldexp(1.0, space.window)
    return (space.labels[l].corrections - since >= CORRECTIONS_PER_REFRESH
            or S < STALE_2 * space.labels[l].S_peak or not 1.0 / window < S < window)


def run_passes(LinearSpace space, FirstOrderRule rule, rows_, state_t[:, ::1] t, const value_t[::1] data,
               const index_t[::1] indices, const index_t[::1] indptr, Py_ssize_t label,
               const double[:, ::1] gram, const double[::1] norms, const double[::1] measured,
               const double[::1] signs, const double[::1] shares, int64_t[::1] order,
               uint64_t seed, Py_ssize_t n_passes, int64_t trials):
    """Passes over all rows for one label.

    Parameters
    ----------
    gram : ndarray of shape (n_rows, n_rows)
        Dot products of the rows, augmented and extended.
    norms, measured : ndarray of shape (n_rows,)
        Their 2-norms; the same where instances are divided by them, else ones.
    signs, shares : ndarray of shape (n_rows,)
        Labels, -1.0 or 1.0, and what multiplies the steps.
    order, seed, n_passes : see `train`
    trials : int
        ``space.trials`` before the call, which does not count its own.

    Returns
    -------
    status : int
    row : int
        The row that stopped the passes, or -1.
    passes : int
    converged : bool
    """
    cdef Space* c = &space.c
    cdef Py_ssize_t i, row = -1, passes = 0, m = gram.shape[0]
    cdef int64_t before, refreshed
    cdef int64_t* rows = &order[0] if order is not None else NULL
    cdef int status = OK
    cdef bint converged = False
    cdef vector[double] scores_of
    cdef double[::1] pending_ = np.zeros(m)
    scores_of.resize(m)
    cdef Coordinates[state_t] at
    at.t = at.g = &t[0, 0]
    at.acc = NULL
    at.width = space.width
    cdef Problem problem = Problem(m, label, &gram[0, 0], &norms[0], &measured[0], &signs[0],
                                   &shares[0], scores_of.data(), &pending_[0],
                                   c.multipliers, c.n_labels)
    if c.multipliers != NULL:
        problem.multipliers += label
    with nogil:
        refresh(&problem, space, rows_, pending_, t, &data[0], &indices[0], &indptr[0])
        refreshed = c.labels[label].corrections
        while passes < n_passes and not converged and status == OK and c.labels[label].stopped < 0:
            if passes > 0 and rows != NULL:
                shuffle_rows(rows, m, seed + passes)
            before = c.labels[label].corrections
            i = next_due(&problem, rows, 0, c.sigma[label], c.threshold[label])
            while i < m:
                row = rows[i] if rows != NULL else i
                if shares[row] != 0.0:
                    status = correct(&problem, &rule.rule, c, at, row,
                                     trials + passes * m + i + 1)
                if status != OK or c.labels[label].stopped >= 0:
                    break
                if is_stale(c, label, refreshed):
                    refresh(&problem, space, rows_, pending_, t, &data[0], &indices[0], &indptr[0])
                    refreshed = c.labels[label].corrections
                i = next_due(&problem, rows, i + 1, c.sigma[label], c.threshold[label])
            passes += 1
            converged = c.labels[label].corrections == before
        refresh(&problem, space, rows_, pending_, t, &data[0], &indices[0], &indptr[0])
    return status, (row if status != OK else -1), passes, converged
