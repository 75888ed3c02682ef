"""The linear space: dual vectors with the p-norm link, and their averages.

The dual vector of a label is ``theta = scale * t``. Beside ``t`` the space caches
``g = sign(t) |t|**(p - 1)`` and ``S = sum |t|**p``, so that the weights are
``w = sigma * g`` with ``sigma = scale * S**-((p - 2) / p)``: a score takes one sparse dot
product and no power, a correction changes the row's coordinates and a few scalars. For p = 2,
``g`` is ``t`` itself.

Three guards keep this exact. Each is triggered by the state alone, never by where a batch ends:

- ``S`` is a sum of three doubles, into which the same numbers are added and later subtracted,
  so it can fall by 2**90 without a trace of rounding; below that it is summed afresh.
- ``t`` is rescaled by a power of two before ``|t|**p`` leaves the range of its type.
- The sum of all hypotheses is ``Z g + acc``. Z is flushed before sigma has fallen so far that
  the two would cancel, and before it has so many terms that their rounding, alike where sigma
  stands still, could add up: it joins the ``pending`` sums, which a coordinate of ``acc`` takes
  in, times its g, when it is next touched. A flush thus costs no sweep over the coordinates; one
  sweep is made for every 1024 flushes.

What sweeps remain are rare: none to four in 10,000 corrections for p up to 2 ln n, even where
labels contradict each other or one feature outweighs all others. Nothing bounds them for p of
100 and more on such streams, where a small change of theta is a huge one of its powers.
"""

from libc.math cimport INFINITY, copysign, exp2, fabs, ilogb, isfinite, ldexp, log2, pow
from libc.stdint cimport int32_t, int64_t, uint16_t

import copyreg
import sys

import numpy as np

from sparsemargin._engine.first_order.labels cimport (
    FirstOrderSpace, Labels, Space, counted, p_root, refit, tighten, total_S, unit
)
from sparsemargin._engine.hypotheses.log cimport FORGET, CorrectionLog
from sparsemargin._engine.numerics.power cimport BLOCK, link, raise_block, raised
from sparsemargin._engine.rows.csr cimport RowScale, prefetch
from sparsemargin._engine.first_order.rules cimport FREE, Step
from sparsemargin._engine.first_order.storage cimport Places, Storage, place_of
from sparsemargin._engine.numerics.sums cimport Sum, add, add_sum, tidy
from sparsemargin._engine.rows.types cimport OK, TOO_WIDE, index_t, state_t, value_t

from sparsemargin._engine.state import (
    MAX_TRIALS, aligned, array_of, flag, part, real, require, require_within, whole, writable
)

#: Largest p: p > 2 ln n gains nothing (Gentile 2001, Remark 6), and e^32 features fit no memory.
MAX_P = 64.0

# In one array: their bytes can still be counted.
MOST_NUMBERS = sys.maxsize // 8

# A row may exceed, or fall short of, what was learned so far by this power of two.
cdef int WIDEST_SHIFT = 500
cdef double LEAST_SIGMA = ldexp(1.0, -1000)
cdef double FLUSH = ldexp(1.0, -10)
# What a sum of equal terms rounds off goes one way: after so many Z is flushed, too.
cdef double MOST_TERMS = ldexp(1.0, 20)
# For p = 2 the increments of S are rounded row by row, for p > 2 they telescope exactly.
cdef double STALE_2 = ldexp(1.0, -10)
cdef double STALE_P = ldexp(1.0, -90)


# ------------------------------------------------------------------ sweeps over all coordinates

cdef void sync(Space* space, const state_t* g, state_t* acc, Py_ssize_t l) noexcept nogil:
    """Let every coordinate of acc take in what is pending."""
    cdef Py_ssize_t i, j
    cdef double* pending = space.pending + l * (FLUSHES + 1)
    cdef uint16_t* synced = synced_of(space, l)
    if space.of.flushes[l] == 0:
        return
    for j in range(space.n_coordinates):
        i = place_of(&space.at, j, l)
        acc[i] += <state_t> (pending[synced[i]] * g[i])
        synced[i] = 0
    for j in range(space.of.flushes[l]):
        pending[j] = 0.0
    space.of.flushes[l] = 0
    space.of.passes[l] += 1


cdef void flush(Space* space, const state_t* g, state_t* acc, Py_ssize_t l) noexcept nogil:
    cdef Py_ssize_t j
    cdef double* pending = space.pending + l * (FLUSHES + 1)
    if space.of.Z[l] != 0.0:
        if space.of.flushes[l] == FLUSHES:
            sync(space, g, acc, l)
        space.of.flushes[l] += 1
        for j in range(space.of.flushes[l]):
            pending[j] += space.of.Z[l]
    space.of.Z[l] = 0.0
    space.of.unit_peak[l] = 0.0


cdef void sum_afresh(Space* space, const state_t* t, const state_t* g,
                     Py_ssize_t l) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef int64_t nonzero = 0
    cdef Sum total = Sum(0.0, 0.0, 0.0)
    for j in range(space.n_coordinates):
        i = place_of(&space.at, j, l)
        if t[i] != 0:
            nonzero += 1
            add(&total, <double> t[i] * g[i])
    tidy(&total)
    space.of.S[l] = total
    space.of.S_peak[l] = total.high
    space.of.nonzero[l] = nonzero
    space.of.passes[l] += 1


cdef void rescale(Space* space, state_t* t, state_t* g, state_t* acc, Py_ssize_t l,
                  int shift) noexcept nogil:
    """t <- 2**shift t, theta unchanged."""
    cdef Py_ssize_t i, j
    cdef double factor = ldexp(1.0, shift)
    if space.averaged:
        flush(space, g, acc, l)
        sync(space, g, acc, l)
    for j in range(space.n_coordinates):
        i = place_of(&space.at, j, l)
        if t[i] != 0:
            t[i] = <state_t> (t[i] * factor)
            if space.p.exponent != 2.0:
                g[i] = <state_t> link(&space.link, t[i])
    for j in range(space.n_slack):
        space.slack_t[j * space.n_labels + l] *= factor
    space.of.scale[l] = ldexp(space.of.scale[l], -shift)
    if space.of.S_slack[l] > 0.0:  # the power may be infinite
        space.of.S_slack[l] *= pow(factor, space.p.exponent)
    space.of.shift[l] += shift
    sum_afresh(space, t, g, l)
    refit(space, l, FREE)


cdef void forget(Space* space, state_t* t, state_t* g, state_t* acc, Py_ssize_t l) noexcept nogil:
    """theta <- 0; what the average has counted stays."""
    cdef Py_ssize_t i, j
    if space.averaged:
        flush(space, g, acc, l)
        sync(space, g, acc, l)
    for j in range(space.n_coordinates):
        i = place_of(&space.at, j, l)
        t[i] = g[i] = 0
    for j in range(space.n_slack):
        space.slack_t[j * space.n_labels + l] = 0.0
    space.of.S[l] = Sum(0.0, 0.0, 0.0)
    space.of.S_peak[l] = space.of.S_slack[l] = space.of.mass[l] = 0.0
    space.of.nonzero[l] = 0
    space.of.passes[l] += 1


cdef double slack_squares(const Space* space, Py_ssize_t l) noexcept nogil:
    cdef Py_ssize_t j
    cdef double total = 0.0
    for j in range(space.n_slack):
        total += space.slack_t[j * space.n_labels + l] * space.slack_t[j * space.n_labels + l]
    return total


cdef void take_over(Space* space, state_t* t, Py_ssize_t l, Py_ssize_t n_rows,
                    const double* multipliers, const value_t* data, const index_t* indices,
                    const index_t* indptr) noexcept nogil:
    """t += the rows times their multipliers, for p = 2; S and its kin summed afresh."""
    cdef Py_ssize_t i, a, K = space.n_labels
    cdef double before = slack_squares(space, l)
    for i in range(n_rows):
        if multipliers[i] == 0.0:
            continue
        for a in range(indptr[i], indptr[i + 1]):
            t[place_of(&space.at, indices[a], l)] += <state_t> (multipliers[i] * data[a])
        if space.bias:
            t[place_of(&space.at, space.n_coordinates - 1, l)] += (
                <state_t> (multipliers[i] * space.bias))
        if space.slack:
            space.slack_t[i * K + l] += multipliers[i] * space.slack
    sum_afresh(space, t, t, l)
    space.of.S_slack[l] += slack_squares(space, l) - before
    refit(space, l, FREE)
    keep_in_window(space, t, t, <state_t*> NULL, l)


cdef double largest_coordinate(const Space* space, const state_t* t,
                               Py_ssize_t l) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef double peak = 0.0
    for j in range(space.n_coordinates):
        i = place_of(&space.at, j, l)
        if fabs(<double> t[i]) > peak:
            peak = fabs(<double> t[i])
    return peak


def lay(LinearSpace whole, state_t[::1] t, state_t[::1] g, const state_t[:, ::1] theta):
    """Let the dual vectors be theta, to the bit: at scales that are powers of two."""
    cdef Space* space = &whole.c
    cdef Py_ssize_t i, j, l
    cdef double peak
    for l in range(space.n_labels):
        peak = 0.0
        for j in range(space.n_coordinates):
            peak = max(peak, fabs(<double> theta[j, l]))
        space.of.started[l] = peak > 0.0
        space.of.scale[l] = ldexp(1.0, ilogb(peak)) if peak > 0.0 else 1.0
        for j in range(space.n_coordinates):
            i = place_of(&space.at, j, l)
            t[i] = <state_t> (theta[j, l] / space.of.scale[l])
            if space.p.exponent != 2.0:
                g[i] = <state_t> (link(&space.link, t[i]) if t[i] != 0 else 0.0)
        sum_afresh(space, &t[0], &g[0], l)
        refit(space, l, FREE)


# ---------------------------------------------------------------------------------- a correction

cdef inline int open_scale(Space* space, state_t* t, state_t* g, state_t* acc, Py_ssize_t l,
                           double smallest, const Step* step, double* size) noexcept nogil:
    """theta <- keep * theta, and the step's size at the scale of t; TOO_WIDE if none fits both."""
    cdef int shift
    cdef double scale
    if step.size == 0.0 or not isfinite(step.size):
        return TOO_WIDE
    if step.keep == 0.0 or not space.of.started[l]:
        scale = ldexp(1.0, ilogb(step.size))
    else:
        scale = step.keep * space.of.scale[l]
    size[0] = step.size / scale
    if size[0] == 0.0 or not isfinite(size[0]):
        return TOO_WIDE
    shift = ilogb(size[0])
    if shift > WIDEST_SHIFT or shift < -WIDEST_SHIFT or size[0] * smallest == 0.0:
        return TOO_WIDE
    if step.keep == 0.0 and space.of.started[l]:
        forget(space, t, g, acc, l)
    space.of.mass[l] *= step.keep
    space.of.scale[l] = scale
    space.of.started[l] = 1
    if shift * space.p.exponent > space.window:
        rescale(space, t, g, acc, l, -shift)
        size[0] = ldexp(size[0], -shift)
    return OK


cdef inline void move_2(Space* space, state_t* t, const state_t* acc, Py_ssize_t l,
                        const value_t* values, const index_t* columns, Py_ssize_t nnz,
                        const RowScale* row, double step, double* before) noexcept nogil:
    """The new t of the row's coordinates, what they were being kept; and S."""
    cdef Py_ssize_t j, i, n = n_entries(space, nnz)
    cdef int64_t nonzero = 0
    cdef double moved, increment = 0.0
    cdef Places at = space.at
    for j in range(n):
        if j < nnz:
            i = place_of(&at, columns[j], l)
            moved = step * (row.factor * values[j])
        else:
            i = place_of(&at, space.n_coordinates - 1, l)
            moved = step * (row.factor * space.bias)
        if space.averaged:
            prefetch(acc + i)
        before[j] = t[i]
        t[i] = <state_t> (t[i] + moved)
        increment += (t[i] - before[j]) * (t[i] + before[j])
        nonzero += (t[i] != 0) - (before[j] != 0.0)
    add(&space.of.S[l], increment)
    tidy(&space.of.S[l])
    space.of.nonzero[l] += nonzero


cdef inline void move_p(Space* space, state_t* t, const state_t* g, Py_ssize_t l,
                        const value_t* values, const index_t* columns, Py_ssize_t nnz,
                        const RowScale* row, double step, double* new_g) noexcept nogil:
    """The new t of the row's coordinates; their new g, not yet stored; and S."""
    cdef double moved[BLOCK]
    cdef double powers[BLOCK]
    # What goes and what comes is summed apart: two chains of additions, half the wait.
    cdef Sum gone = space.of.S[l], came = Sum(0.0, 0.0, 0.0)
    cdef double old
    cdef int64_t nonzero = 0
    cdef Py_ssize_t b, j, i, start, n, n_all = n_entries(space, nnz)
    for b in range((n_all + BLOCK - 1) // BLOCK):
        start = b * BLOCK
        n = min(<Py_ssize_t> BLOCK, n_all - start)
        for j in range(n):
            i = coordinate(space, columns, nnz, start + j, l)
            old = t[i]
            moved[j] = old + step * entry(space, values, nnz, row, start + j)
            powers[j] = fabs(moved[j])
            t[i] = <state_t> moved[j]
            add(&gone, -(old * g[i]))
            nonzero += (moved[j] != 0) - (old != 0)
        raise_block(&space.link, powers, n)
        for j in range(n):
            new_g[start + j] = copysign(powers[j], moved[j])
            add(&came, powers[j] * fabs(moved[j]))
    add_sum(&gone, &came)
    tidy(&gone)
    space.of.S[l] = gone
    space.of.nonzero[l] += nonzero


cdef inline void catch_up(Space* space, state_t* acc, Py_ssize_t l, const index_t* columns,
                          Py_ssize_t nnz, const double* old) noexcept nogil:
    """Let acc take in what is pending of the row's coordinates, which were `old` all the while."""
    cdef Py_ssize_t j, i
    cdef uint16_t flushes = <uint16_t> space.of.flushes[l]
    cdef const double* pending = space.pending + l * (FLUSHES + 1)
    cdef uint16_t* synced = synced_of(space, l)
    if flushes == 0:
        return
    for j in range(n_entries(space, nnz)):
        i = coordinate(space, columns, nnz, j, l)
        acc[i] += <state_t> (pending[synced[i]] * old[j])
        synced[i] = flushes


cdef inline void count_move(Space* space, const state_t* g, state_t* acc, Py_ssize_t l,
                            const index_t* columns, Py_ssize_t nnz,
                            const double* old) noexcept nogil:
    """Keep in acc what the row's coordinates were worth, from `old` to the new g."""
    cdef Py_ssize_t j, i
    cdef double Z = space.of.Z[l]
    cdef Places at = space.at
    catch_up(space, acc, l, columns, nnz, old)
    for j in range(n_entries(space, nnz)):
        i = place_of(&at, columns[j] if j < nnz else space.n_coordinates - 1, l)
        acc[i] -= <state_t> (Z * (g[i] - old[j]))


cdef inline void exchange(Space* space, state_t* g, Py_ssize_t l, const index_t* columns,
                          Py_ssize_t nnz, double* numbers) noexcept nogil:
    """Let the row's coordinates of g be these numbers, and the numbers what they were."""
    cdef Py_ssize_t j, i
    cdef double old
    for j in range(n_entries(space, nnz)):
        i = coordinate(space, columns, nnz, j, l)
        old = g[i]
        g[i] = <state_t> numbers[j]
        numbers[j] = old


cdef inline void move_slack(Space* space, Py_ssize_t l, double* slack_t,
                            double d) noexcept nogil:
    cdef double old = slack_t[l]
    slack_t[l] += d
    space.of.S_slack[l] += raised(&space.p, fabs(slack_t[l])) - raised(&space.p, fabs(old))


cdef int add_row(Space* space, state_t* t, state_t* g, state_t* acc, Py_ssize_t l,
                 int64_t trials, const value_t* values, const index_t* columns, Py_ssize_t nnz,
                 const RowScale* row, double* slack_t, const Step* step, double mass,
                 double* scratch, double* coefficient, int32_t* shifted) noexcept nogil:
    """The step by the augmented row times row.factor, the old vector counted first.

    `mass` is what the row's multiplier gains. `coefficient` is the step in units of t, and
    `shifted` the power of two by which t was rescaled to take it. TOO_WIDE leaves all as it was,
    but where sigma left its range.
    """
    cdef Labels* of = &space.of
    cdef Py_ssize_t i, j
    cdef double counted, size
    cdef bint restarts = step.keep == 0.0 and of.started[l]
    cdef int64_t shift = of.shift[l]
    if space.p.exponent != 2.0:
        # Scores have brought g near, and nothing else.
        for j in range(nnz):
            i = coordinate(space, columns, nnz, j, l)
            prefetch(t + i)
            if space.averaged:
                prefetch(acc + i)
    counted = unit(space, l)
    if space.averaged:
        of.Z[l] += (trials - of.begin[l]) * counted
        of.unit_peak[l] = max(of.unit_peak[l], counted)
    of.begin[l] = trials
    if open_scale(space, t, g, acc, l, row.smallest, step, &size) != OK:
        return TOO_WIDE
    coefficient[0] = size
    shifted[0] = FORGET if restarts else <int32_t> (of.shift[l] - shift)
    of.mass[l] += mass
    if space.p.exponent == 2.0:
        move_2(space, t, acc, l, values, columns, nnz, row, size, scratch)
    else:
        move_p(space, t, g, l, values, columns, nnz, row, size, scratch)
        exchange(space, g, l, columns, nnz, scratch)
    of.S_peak[l] = max(of.S_peak[l], of.S[l].high)
    if of.nonzero[l] == 0:
        of.S[l] = Sum(0.0, 0.0, 0.0)
        of.S_peak[l] = 0.0
    if space.slack:
        move_slack(space, l, slack_t, size * (space.slack * row.factor))
    refit(space, l, step.projection)
    tighten(space, l)
    if space.averaged:
        # Z g and acc would cancel where g grows far beyond what it was when Z was summed.
        counted = min(counted, unit(space, l))
        if 0.0 < counted < max(FLUSH * of.unit_peak[l], of.Z[l] / MOST_TERMS):
            catch_up(space, acc, l, columns, nnz, scratch)
            flush(space, g, acc, l)
        count_move(space, g, acc, l, columns, nnz, scratch)
    keep_in_window(space, t, g, acc, l)
    # The weights sigma g may be in range where sigma is not: tiny or huge raw rows at large p.
    if of.nonzero[l] and not LEAST_SIGMA < of.sigma[l] < 1.0 / LEAST_SIGMA:
        return TOO_WIDE
    return OK


cdef void keep_in_window(Space* space, state_t* t, state_t* g, state_t* acc,
                         Py_ssize_t l) noexcept nogil:
    """After a correction: S exact again if it fell far, and within the range of its type."""
    cdef Labels* of = &space.of
    cdef double stale = STALE_2 if space.p.exponent == 2.0 else STALE_P
    cdef double total, largest
    if of.nonzero[l] == 0:
        return
    if of.S[l].high < stale * of.S_peak[l]:
        sum_afresh(space, t, g, l)
        refit(space, l, FREE)
    total = total_S(space, l)
    if ldexp(1.0, -space.window) < total < ldexp(1.0, space.window):
        return
    largest = p_root(space, total) if total > 1.0 else largest_coordinate(space, t, l)
    if ilogb(largest) != 0:
        rescale(space, t, g, acc, l, -ilogb(largest))


# ---------------------------------------------------------------------------------------- weights

def padded_to(Py_ssize_t n, rows):
    """The rows, and rows of zeros up to n of them."""
    if len(rows) == n:
        return np.ascontiguousarray(rows)
    return np.concatenate([rows, np.zeros((n - len(rows), *rows.shape[1:]))])


cdef void mix_entry(state_t* weights, const state_t* g, const state_t* acc, const double* a,
                    const double* b, Py_ssize_t n_labels) noexcept nogil:
    """The weights of a coordinate where acc is up to date."""
    cdef Py_ssize_t l
    for l in range(n_labels):
        weights[l] = <state_t> mixed(g[l], acc[l], a[l], b[l])


def mix(state_t[::1] weights, const state_t[::1] g, const state_t[::1] acc,
        const uint16_t[::1] synced, const double[:, ::1] pending, const double[::1] a,
        const double[::1] b):
    """The averaged hypothesis of labels side by side, coordinate by coordinate."""
    cdef Py_ssize_t i = 0, l, n_labels = a.shape[0]
    cdef bint flushed = np.any(pending)
    with nogil:
        while i < weights.shape[0]:
            if flushed:
                for l in range(n_labels):
                    weights[i + l] = <state_t> mixed(
                        g[i + l], acc[i + l] + pending[l, synced[i + l]] * g[i + l], a[l], b[l])
            else:
                mix_entry(&weights[i], &g[i], &acc[i], &a[0], &b[0], n_labels)
            i += n_labels


# ----------------------------------------------------------------------------- outputs in extremis

cdef inline bint factors(const Space* space, const state_t* t, Py_ssize_t l,
                         const value_t* values, const index_t* columns, Py_ssize_t nnz,
                         const RowScale* row, const double* slack_t, Py_ssize_t j, double* x,
                         double* theta) noexcept nogil:
    """The j-th entry of the scaled row and its coordinate of t; False where either is zero.

    The soft-margin coordinate, if there is one, comes last.
    """
    if j < n_entries(space, nnz):
        x[0] = entry(space, values, nnz, row, j)
        theta[0] = t[coordinate(space, columns, nnz, j, l)]
    else:
        x[0] = space.slack * row.factor
        theta[0] = slack_t[l]
    return x[0] != 0.0 and theta[0] != 0.0


cdef double rescued_output(const Space* space, const state_t* t, Py_ssize_t l,
                           const value_t* values, const index_t* columns, Py_ssize_t nnz,
                           const RowScale* row, const double* slack_t) noexcept nogil:
    """w.x times row.factor where the plain dot product left the range of a double.

    First with the row scaled. If that underflows too, the terms are summed relative to the
    largest, in logarithms; what is then exact is the sign, which is all a test against a
    positive bar, or against zero, can need.
    """
    cdef Py_ssize_t j, n = n_entries(space, nnz) + (1 if space.slack else 0)
    cdef double x, theta, term, size = 0.0, total = 0.0, top = -INFINITY
    for j in range(n):
        if factors(space, t, l, values, columns, nnz, row, slack_t, j, &x, &theta):
            term = x * link(&space.link, theta)
            total += term
            size += fabs(term)
            top = max(top, log2(fabs(x)) + space.link.exponent * log2(fabs(theta)))
    if size > ldexp(1.0, -900):
        return total * space.of.sigma[l]
    if top == -INFINITY:
        return 0.0
    total = 0.0
    for j in range(n):
        if factors(space, t, l, values, columns, nnz, row, slack_t, j, &x, &theta):
            term = log2(fabs(x)) + space.link.exponent * log2(fabs(theta))
            total += copysign(exp2(term - top), x * copysign(1.0, theta))
    return ldexp(total, -900)


# --------------------------------------------------------------------------------- the Python side

cdef class LinearSpace(FirstOrderSpace):
    """The learned state of all labels, feature by feature.

    Parameters
    ----------
    n_features : int
    n_labels : int
        Vectors learned side by side: 1 for two classes.
    p : float
        Norm of the instances, from 2 to `MAX_P`.
    dtype : {numpy.float32, numpy.float64}
        Type of the coordinates; p > 2 always takes float64.
    bias, slack : float
        Values of the intercept's and of the soft margin's coordinates; 0 for none.
    averaged, normalized : bool
        Whether the sum of the hypotheses is kept; whether they count with norm 1.
    log : CorrectionLog or None
        Where the corrections are logged.
    """

    def __init__(self, Py_ssize_t n_features, Py_ssize_t n_labels, double p, dtype, *,
                 double bias, double slack, bint averaged, bint normalized, log):
        dtype = np.dtype(dtype if p == 2.0 else np.float64)
        self.c.n_labels = n_labels
        self.c.n_coordinates = n_features + (1 if bias else 0)
        self.c.bias = bias
        self.c.slack = slack
        self.c.averaged = averaged
        self.c.normalized = normalized
        if self.c.n_coordinates > MOST_NUMBERS // n_labels:
            raise ValueError(f"X has {n_features} features, for whose weights no memory suffices.")
        storage = Storage(self.c.n_coordinates, n_labels, self.dtypes(p, dtype))
        self.log = log
        self.bind(p, storage,
                  {name: np.zeros(*layout) for name, layout in self.label_layout().items()})
        self.set_out()

    cdef dict dtypes(self, double p, dtype):
        """Types of what there is of each coordinate; g is t itself for p = 2."""
        kept = {"t": dtype, **({} if p == 2.0 else {"g": np.dtype(np.float64)})}
        if self.c.averaged:
            kept.update(acc=dtype, synced=np.dtype(np.uint16))
        return kept

    cdef bind(self, double p, Storage storage, dict arrays):
        """Take this for the state."""
        self.storage, self.c.at = storage, storage.places
        self.bind_labels(p, arrays)
        self.pending = np.zeros((self.c.n_labels, FLUSHES + 1 if self.c.averaged else 0))
        self.c.window = 600 if self.t.dtype == np.float64 else 100
        cdef double[:, ::1] pending = self.pending
        self.c.pending = &pending[0, 0] if self.c.averaged else NULL

    # Of the first block of labels, of many where weights are held in tiles.

    @property
    def t(self):
        return self.storage.arrays["t"][0]

    @property
    def g(self):
        return self.storage.arrays.get("g", self.storage.arrays["t"])[0]

    @property
    def acc(self):
        return self.storage.arrays["acc"][0] if self.c.averaged else self.t[:0]

    @property
    def nbytes(self):
        """Bytes that the coordinates take."""
        return self.storage.nbytes

    @property
    def is_tiled(self):
        """Whether the coordinates are held sparsely, in tiles."""
        return self.storage.tiles is not None

    def __getstate__(self):
        state = {"floats": self.floats, "sums": self.sums, "counts": self.counts,
                 "pending": self.pending[:, :self.per_label("flushes").max()],
                 "log": None if self.log is None else self.log.__getstate__(),
                 "trials": self.trials, "p": self.p, "n_labels": self.c.n_labels,
                 "n_coordinates": self.c.n_coordinates, "bias": self.c.bias,
                 "slack": self.c.slack, "averaged": self.c.averaged,
                 "normalized": self.c.normalized}
        return {**self.storage.state(), **state}

    def __reduce__(self):
        return copyreg.__newobj__, (LinearSpace,), self.__getstate__()

    def __setstate__(self, state):
        state = aligned(state)
        p = real(state, "p", 2.0, MAX_P)
        self.c.n_labels = whole(state, "n_labels", 1, MOST_NUMBERS // (FLUSHES + 1))
        self.c.n_coordinates = whole(state, "n_coordinates", 1, MOST_NUMBERS // self.c.n_labels)
        self.c.bias = real(state, "bias", 0.0, INFINITY)
        self.c.slack = real(state, "slack", 0.0, INFINITY)
        self.c.averaged = flag(state, "averaged")
        self.c.normalized = flag(state, "normalized")
        self.trials = whole(state, "trials", 0, MAX_TRIALS)
        dtype = getattr(part(state, "t"), "dtype", None)
        require(dtype == np.float64 or (dtype == np.float32 and p == 2.0),
                "'t' is not of a type that coordinates have")
        storage = Storage.restored(
            state, self.c.n_coordinates, self.c.n_labels, self.dtypes(p, dtype))
        self.bind(p, storage, {name: writable(array_of(state, name, kind, shape))
                               for name, (shape, kind) in self.label_layout().items()})
        require_within("counts", self.counts.reshape(-1), -MAX_TRIALS, MAX_TRIALS)
        require_within("flushes", self.per_label("flushes"), 0,
                       FLUSHES if self.c.averaged else 0)
        self.check_synced()
        flushes = self.per_label("flushes").max()
        self.pending[:, :flushes] = array_of(
            state, "pending", np.float64, (self.c.n_labels, flushes))
        self.log = None if part(state, "log") is None else CorrectionLog()
        if self.log is not None:
            self.log.__setstate__(state["log"])
            require_within("label", state["log"]["label"], 0, self.c.n_labels - 1)
            require_within("columns", state["log"]["columns"], 0, self.c.n_coordinates - 1)

    cdef check_synced(self):
        if not self.c.averaged:
            return
        flushes = self.per_label("flushes")
        for _, labels, numbers in self.storage.parts():
            # No array beside it: one that a file has sparsely takes no memory until written to.
            most = numbers["synced"].max(axis=0, initial=0)
            require((most <= flushes[labels]).all(),
                    f"'synced' holds {most.max(initial=0)}, more flushes than there were")

    @property
    def n_features(self):
        return self.c.n_coordinates - (1 if self.c.bias else 0)

    def resize(self, Py_ssize_t n_features, Py_ssize_t first=0):
        """Keep the features from `first` on and let them be n_features; new ones weigh nothing.

        Those that go must weigh nothing either. -1: a new one comes before the others.
        """
        cdef Py_ssize_t bias = 1 if self.c.bias else 0
        cdef Py_ssize_t kept = min(n_features + min(first, 0), self.n_features - max(first, 0))
        self.move_into(self.storage.moved(n_features + bias, first, kept, bias))

    cdef move_into(self, Storage storage):
        """Have the same numbers elsewhere."""
        self.storage, self.c.at = storage, storage.places
        self.c.n_coordinates = storage.n_coordinates

    # ------------------------------------------------------------------ epochs apart, and mixed
    # Of spaces whose coordinates are held densely, as arrays of shape (n_coordinates, n_vectors).

    def dual(self):
        """The dual vectors, float64."""
        (_, _, numbers), = self.storage.parts()
        return numbers["t"] * self.per_label("scale")

    def place_dual(self, theta):
        """Let the dual vectors be these, of the type of the coordinates; what has been counted
        stays as it is, and must be nothing or the average's own: see `take_sums`."""
        lay(self, self.t, self.g, theta)

    def summed(self):
        """Sum of the hypotheses of labels that all learn, each as often as it lasted, float64."""
        (_, _, numbers), = self.storage.parts()
        times = np.array([counted(&self.c, l, self.trials) for l in range(self.c.n_labels)])
        if self.per_label("flushes").any():
            times = times + np.take_along_axis(
                self.pending.T, numbers["synced"].astype(np.intp), axis=0)
        return times * numbers.get("g", numbers["t"]) + numbers["acc"]

    def noted(self):
        """Where the sum of the hypotheses is no multiple of the weights: bool."""
        (_, _, numbers), = self.storage.parts()
        return (numbers["acc"] != 0) | (numbers["synced"] != 0)

    def take_sums(self, sums, int64_t trials):
        """Let the average have counted hypotheses that come to these sums in so many trials."""
        for name in ("Z", "unit_peak", "idle", "flushes"):
            self.per_label(name)[:] = 0
        self.per_label("stopped")[:] = -1
        self.per_label("begin")[:] = self.trials = trials
        if self.c.averaged:
            (_, _, numbers), = self.storage.parts()
            numbers["acc"][...] = sums
            numbers["synced"][...] = 0
            self.pending[...] = 0.0

    cdef one_a_row(self, Py_ssize_t n_rows, kept):
        """A number for each row and label, 0 to begin with, or the kept ones."""
        shape = n_rows, self.c.n_labels
        if kept is None:
            return np.zeros(shape)
        return writable(array_of({"kept": kept}, "kept", np.float64, shape))

    def open_slack(self, Py_ssize_t n_rows, kept=None):
        """Give each of the next n_rows rows a soft-margin coordinate of its own, or let the same
        rows have the ones again that `close_slack` gave back."""
        self.row_slack = self.one_a_row(n_rows, kept)
        cdef double[:, ::1] view = self.row_slack
        self.c.n_slack = n_rows
        self.c.slack_t = &view[0, 0] if n_rows else NULL

    def open_multipliers(self, Py_ssize_t n_rows, kept=None):
        """Give each of the next n_rows rows a multiplier, 0 to begin with, or the kept ones."""
        self.multipliers = self.one_a_row(n_rows, kept)
        self.measured = np.zeros(max(n_rows, <Py_ssize_t> 1) * sizeof(RowScale), dtype=np.uint8)
        cdef double[:, ::1] view = self.multipliers
        cdef unsigned char[::1] raw = self.measured
        self.c.multipliers = &view[0, 0] if n_rows else NULL
        # Labels that threads share would write it at once.
        self.c.measured = <RowScale*> &raw[0] if self.c.n_labels == 1 else NULL

    def close_multipliers(self):
        """Give the multipliers back, None if there are none; what the rows have added to theta
        stays."""
        multipliers = self.multipliers
        self.c.multipliers = NULL
        self.c.measured = NULL
        self.multipliers = self.measured = None
        return multipliers

    def close_slack(self):
        """Give the rows' coordinates back, None if there are none; their part of
        ``||theta||_p`` stays."""
        row_slack = self.row_slack
        self.c.n_slack = 0
        self.c.slack_t = NULL
        self.row_slack = None
        return row_slack

    def weights(self):
        """The hypothesis, shape (n_labels, n_coordinates), the intercept's coordinate last: an
        array, or CSR where the coordinates are held in tiles."""
        weights = self.gathered(self.weigh)
        values = weights if self.storage.tiles is None else weights.data
        if not np.isfinite(values).all():
            raise ValueError(f"The weights exceed {self.t.dtype}. Rescale X, or pass float64.")
        return weights

    def weighed(self):
        """The same where the coordinates stand; infinite where they exceed their type."""
        return self.storage.holding(
            [self.weigh(labels, numbers).ravel() for labels, numbers in self.storage.held()])

    @property
    def n_held(self):
        return self.storage.n_held

    @np.errstate(over="ignore")
    def weigh(self, labels, numbers):
        """The weights that the numbers of some labels come to; those of padding are 0."""
        g = np.ascontiguousarray(numbers.get("g", numbers["t"]))
        a, b = (padded_to(g.shape[1], factor[labels]) for factor in self.mixture())
        if not self.c.averaged:
            return np.multiply(g, a).astype(g.dtype, copy=False)
        weights = np.empty_like(g)
        mix(weights.ravel(), g.ravel(), np.ascontiguousarray(numbers["acc"]).ravel(),
            np.ascontiguousarray(numbers["synced"]).ravel(),
            padded_to(g.shape[1], self.pending[labels]), a, b)
        return weights

    def theta(self):
        """The dual vectors, shape (n_labels, n_coordinates), as `weights`."""
        scale = self.per_label("scale")
        return self.gathered(lambda labels, numbers: numbers["t"] * scale[labels])

    cdef gathered(self, made):
        """What is made of the numbers of some labels, of all: by label."""
        if self.storage.tiles is None:
            (_, labels, numbers), = self.storage.parts()
            return np.ascontiguousarray(made(labels, numbers).T)
        from scipy.sparse import csr_array, vstack

        blocks = []
        for coordinates, labels, numbers in self.storage.parts():
            values = made(labels, numbers).T
            row, place = np.nonzero(values)
            blocks.append(csr_array((values[row, place], (row, coordinates[place])),
                                    shape=(len(values), self.c.n_coordinates)))
        return vstack(blocks, format="csr")

    def visible_norm(self):
        """``||theta||_p`` of each label without the soft-margin coordinates."""
        return self.per_label("scale") * self.sums[:, :2].sum(axis=1) ** (1.0 / self.p)

    def slack_outputs(self, Py_ssize_t start, Py_ssize_t stop):
        """What their soft-margin coordinates add to ``y w.x`` of the rows start..stop-1 of the
        task at hand, shape (n_rows, n_labels); 0 without a soft margin."""
        if not self.c.slack:
            return 0.0
        return (np.abs(self.row_slack[start:stop]) ** (self.p - 1.0)
                * (self.per_label("sigma") * self.c.slack))
