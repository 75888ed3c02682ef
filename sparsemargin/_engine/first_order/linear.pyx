"""The vectors of the linear space, and how a correction changes one.

The dual vector is ``theta = scale * t``. Besides ``t`` the space caches
``g = sign(t) |t|**(p - 1)`` and ``S = sum |t|**p``, so that the weights are
``w = sigma * g`` with ``sigma = scale * S**-((p - 2) / p)``. A score takes one sparse dot
product and no power; a correction changes the coordinates of the row and a few scalars. For p = 2,
``g`` is ``t`` itself.

Three safeguards limit rounding errors. They depend on the state alone, never on the batch size:

- ``S`` is a sum of three doubles. The same numbers are added and later subtracted, so S can fall
  by a factor of 2**90 without rounding errors; below that it is recomputed.
- ``t`` is rescaled by a power of two before ``|t|**p`` leaves the range of its type.
- The sum of all hypotheses is ``Z g + acc``. Z is flushed before sigma becomes so small that the
  two terms would cancel, and before Z has so many terms that equal rounding errors could add up.
  A flush adds Z to the ``pending`` sums. A coordinate of ``acc`` adds its pending sum, times its
  g, when the coordinate is next changed. Thus a flush needs no sweep over the coordinates. This
  matters where one feature, such as the intercept, outweighs all others: there every second
  correction makes a flush. A sweep follows only after 1024 flushes.

Sweeps are rare: at most four in 10,000 corrections, even with contradictory labels.
"""

from libc.float cimport DBL_EPSILON, DBL_MIN, FLT_EPSILON, FLT_MIN
from libc.math cimport copysign, fabs, ilogb, isfinite, ldexp, pow
from libc.stdint cimport int32_t, int64_t, uint16_t

from sparsemargin._engine.first_order.instance cimport Instance
from sparsemargin._engine.core.vectors cimport (
    Vector, Space, count_current, is_stale, p_root, refit, tighten, total_S, unit
)
from sparsemargin._engine.core.rules cimport FREE, PrecisionGain, Step
from sparsemargin._engine.core.log cimport FORGET
from sparsemargin._engine.numerics.arithmetic cimport (
    BLOCK, Sum, add, add_sum, link, raise_block, raised, tidy
)
from sparsemargin._engine.numerics.average cimport clear, must_flush
from sparsemargin._engine.numerics.simd cimport fall, growth, spread
from sparsemargin._engine.rows.csr cimport OK, TOO_WIDE, prefetch, state_t

cdef extern from "numerics/sums.hpp" namespace "sparsemargin" nogil:
    struct LongSum:
        double high, low, lowest
        int64_t nonzero

    void sum_products[T](T*, T*, int64_t, int64_t, int64_t, LongSum*)

# Largest power of two by which a step may exceed, or fall short of, the current vector.
cdef int WIDEST_SHIFT = 500
# Lower limit of sigma, whose inverse is the upper limit; scores then fit into a double.
cdef double LEAST_SIGMA = ldexp(1.0, -1000)


# ------------------------------------------------------------------ sweeps over all coordinates

cdef void sync(Space* space, const Coordinates[state_t]& at, Py_ssize_t l) noexcept nogil:
    """Add the pending sums to every coordinate of acc."""
    cdef Vector* vector = space.vectors + l
    cdef Py_ssize_t i, j
    cdef double* pending = space.pending + l * (FLUSHES + 1)
    if vector.flushes == 0:
        return
    for j in range(space.n_coordinates):
        i = j * at.stride + l
        at.acc[i] += <state_t> (pending[at.synced[i]] * at.g[i])
        at.synced[i] = 0
    for j in range(vector.flushes):
        pending[j] = 0.0
    vector.flushes = 0
    vector.passes += 1


cdef void flush(Space* space, const Coordinates[state_t]& at, Py_ssize_t l) noexcept nogil:
    """Add Z to the pending sums."""
    cdef Vector* vector = space.vectors + l
    cdef Py_ssize_t j
    cdef double* pending = space.pending + l * (FLUSHES + 1)
    if vector.average.Z != 0.0:
        if vector.flushes == FLUSHES:
            sync(space, at, l)
        vector.flushes += 1
        for j in range(vector.flushes):
            pending[j] += vector.average.Z
    clear(&vector.average)


cdef void sum_afresh(Space* space, const Coordinates[state_t]& at, Py_ssize_t first,
                     Py_ssize_t last) noexcept nogil:
    """Recompute S of the vectors first..last-1."""
    cdef Vector* vector
    cdef LongSum[4] sums
    cdef state_t* t = at.t
    cdef state_t* g = at.g
    cdef Py_ssize_t k, n, l = first
    while l < last:
        n = min(last - l, 4)
        sum_products(t + l, g + l, space.n_coordinates, at.stride, n, sums)
        for k in range(n):
            vector = space.vectors + l + k
            vector.S = Sum(sums[k].high, sums[k].low, sums[k].lowest)
            vector.nonzero = sums[k].nonzero
            tidy(&vector.S)
            vector.S_peak = vector.S.high
            vector.passes += 1
        l += n


cdef void rescale(Space* space, const Coordinates[state_t]& at, Py_ssize_t l,
                  int shift) noexcept nogil:
    """t <- 2**shift t; theta does not change."""
    cdef Vector* vector = space.vectors + l
    cdef Py_ssize_t i, j
    cdef double factor = ldexp(1.0, shift)
    if space.averaged:
        flush(space, at, l)
        sync(space, at, l)
    for j in range(space.n_coordinates):
        i = j * at.stride + l
        if at.t[i] != 0:
            at.t[i] = <state_t> (at.t[i] * factor)
            if space.p.exponent != 2.0:
                at.g[i] = <state_t> link(&space.link, at.t[i])
    for j in range(space.n_slack):
        space.slack_t[j * space.n_vectors + l] *= factor
    vector.scale = ldexp(vector.scale, -shift)
    if vector.S_slack > 0.0:  # because 0 times an overflowed power is NaN
        vector.S_slack *= pow(factor, space.p.exponent)
    vector.shift += shift
    sum_afresh(space, at, l, l + 1)
    refit(space, l, FREE)


cdef void forget(Space* space, const Coordinates[state_t]& at, Py_ssize_t l) noexcept nogil:
    """theta <- 0; the sums of the average are kept."""
    cdef Vector* vector = space.vectors + l
    cdef Py_ssize_t i, j
    if space.averaged:
        flush(space, at, l)
        sync(space, at, l)
    for j in range(space.n_coordinates):
        i = j * at.stride + l
        at.t[i] = at.g[i] = 0
    for j in range(space.n_slack):
        space.slack_t[j * space.n_vectors + l] = 0.0
    vector.S = Sum(0.0, 0.0, 0.0)
    vector.S_peak = vector.S_slack = 0.0
    vector.nonzero = 0
    vector.passes += 1


cdef double largest_coordinate(const Space* space, const Coordinates[state_t]& at,
                               Py_ssize_t l) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef double peak = 0.0
    for j in range(space.n_coordinates):
        i = j * at.stride + l
        peak = max(peak, fabs(<double> at.t[i]))
    return peak


cdef void keep_in_window(Space* space, const Coordinates[state_t]& at, Py_ssize_t l) noexcept nogil:
    """Restore the invariants after a correction: S is exact and within the range of its type."""
    cdef Vector* vector = space.vectors + l
    cdef double total, largest
    if vector.nonzero == 0:
        return
    if is_stale(space, vector):
        sum_afresh(space, at, l, l + 1)
        refit(space, l, FREE)
    total = total_S(vector)
    if ldexp(1.0, -space.window) < total < ldexp(1.0, space.window):
        return
    largest = p_root(space, total) if total > 1.0 else largest_coordinate(space, at, l)
    if ilogb(largest) != 0:
        rescale(space, at, l, -ilogb(largest))


# ---------------------------------------------------------------------------------- a correction

cdef inline int open_scale(Space* space, const Coordinates[state_t]& at, Py_ssize_t l,
                           double smallest, const Step* step, double* size) noexcept nogil:
    """theta <- keep * theta. Set `size` to the step in units of t, or return TOO_WIDE if no scale
    fits both."""
    cdef Vector* vector = space.vectors + l
    cdef int shift
    cdef double scale
    if step.size == 0.0 or not isfinite(step.size):
        return TOO_WIDE
    if step.keep == 0.0 or not vector.started:
        scale = ldexp(1.0, ilogb(step.size))
    else:
        scale = step.keep * vector.scale
    size[0] = step.size / scale
    if size[0] == 0.0 or not isfinite(size[0]):
        return TOO_WIDE
    shift = ilogb(size[0])
    if shift > WIDEST_SHIFT or shift < -WIDEST_SHIFT or size[0] * smallest == 0.0:
        return TOO_WIDE
    if step.keep == 0.0 and vector.started:
        forget(space, at, l)
    vector.mass *= step.keep
    vector.scale = scale
    vector.started = 1
    if shift * space.p.exponent > space.window:
        rescale(space, at, l, -shift)
        size[0] = ldexp(size[0], -shift)
    return OK


cdef inline void move_2(Vector* vector, const Coordinates[state_t]& at, Py_ssize_t l,
                        const Instance* x, double step, bint averaged) noexcept nogil:
    """Change t and S at the coordinates of the row, and store the previous t in `x.numbers`. Scores
    have loaded only t, so acc is prefetched."""
    cdef Py_ssize_t i, j
    cdef int64_t nonzero = 0
    cdef double old, increment = 0.0
    cdef state_t* t = at.t + l
    cdef const double* values = x.values
    cdef const int64_t* columns = x.columns
    cdef double* numbers = x.numbers
    cdef const state_t* acc = at.acc + l
    cdef Py_ssize_t stride = at.stride
    for j in range(x.n):
        i = columns[j] * stride
        if averaged:
            prefetch(acc + i)
        old = t[i]
        numbers[j] = old
        t[i] = <state_t> (t[i] + step * values[j])
        increment += (t[i] - old) * (t[i] + old)
        nonzero += (t[i] != 0) - (old != 0.0)
    add(&vector.S, increment)
    tidy(&vector.S)
    vector.nonzero += nonzero


cdef inline void move_p(Space* space, const Coordinates[state_t]& at, Py_ssize_t l,
                        const Instance* x, double step) noexcept nogil:
    """Change t, g and S at the coordinates of the row, and store the previous g in `x.numbers`."""
    cdef double moved[BLOCK]
    cdef double powers[BLOCK]
    cdef Vector* vector = space.vectors + l
    # Removed and added powers are summed separately: two independent chains halve the latency.
    cdef Sum gone = vector.S, came = Sum(0.0, 0.0, 0.0)
    cdef double old
    cdef int64_t nonzero = 0
    cdef state_t* t = at.t + l
    cdef state_t* g = at.g + l
    cdef Py_ssize_t b, i, j, start, n, stride = at.stride
    for b in range((x.n + BLOCK - 1) // BLOCK):
        start = b * BLOCK
        n = min(<Py_ssize_t> BLOCK, x.n - start)
        for j in range(n):
            i = x.columns[start + j] * stride
            old = t[i]
            moved[j] = old + step * x.values[start + j]
            powers[j] = fabs(moved[j])
            t[i] = <state_t> moved[j]
            x.numbers[start + j] = g[i]
            add(&gone, -(old * g[i]))
            nonzero += (moved[j] != 0) - (old != 0)
        raise_block(&space.link, powers, n)
        for j in range(n):
            g[x.columns[start + j] * stride] = <state_t> copysign(powers[j], moved[j])
            add(&came, powers[j] * fabs(moved[j]))
    add_sum(&gone, &came)
    tidy(&gone)
    vector.S = gone
    vector.nonzero += nonzero


cdef inline void move_slack(Space* space, Py_ssize_t l, const Instance* x,
                            double step) noexcept nogil:
    cdef double old = x.slack_t[l]
    x.slack_t[l] += step * x.slack
    space.vectors[l].S_slack += (raised(&space.p, fabs(x.slack_t[l]))
                                - raised(&space.p, fabs(old)))


cdef inline void catch_up(Space* space, const Coordinates[state_t]& at, Py_ssize_t l,
                          const Instance* x) noexcept nogil:
    """Add the pending sums to acc at the coordinates of the row, with the g in `x.numbers`."""
    cdef Py_ssize_t i, j
    cdef uint16_t flushes = <uint16_t> space.vectors[l].flushes
    cdef const double* pending = space.pending + l * (FLUSHES + 1)
    if flushes == 0:
        return
    for j in range(x.n):
        i = x.columns[j] * at.stride + l
        at.acc[i] += <state_t> (pending[at.synced[i]] * x.numbers[j])
        at.synced[i] = flushes


cdef inline void count_move(Space* space, const Coordinates[state_t]& at, Py_ssize_t l,
                            const Instance* x, double before) noexcept nogil:
    """Correct acc for the changed coordinates, so that Z g + acc remains the sum of the past
    hypotheses. `before` is the unit of the previous vector."""
    cdef Vector* vector = space.vectors + l
    cdef Py_ssize_t i, j
    catch_up(space, at, l, x)
    if must_flush(&vector.average, min(before, unit(space, l))):
        flush(space, at, l)
        catch_up(space, at, l, x)
    cdef state_t* acc = at.acc + l
    cdef const state_t* g = at.g + l
    cdef const int64_t* columns = x.columns
    cdef const double* numbers = x.numbers
    cdef double Z = vector.average.Z
    cdef Py_ssize_t stride = at.stride
    for j in range(x.n):
        i = columns[j] * stride
        acc[i] -= <state_t> (Z * (g[i] - numbers[j]))


cdef inline void prefetch_numbers(const Space* space, const Coordinates[state_t]& at, Py_ssize_t l,
                          const Instance* x) noexcept nogil:
    """Prefetch what a correction reads besides g, which scores have loaded."""
    cdef Py_ssize_t i, j
    for j in range(x.n):
        i = x.columns[j] * at.stride + l
        prefetch(at.t + i)
        if space.averaged:
            prefetch(at.acc + i)


cdef double find_variances(const Vector* vector, const Coordinates[state_t]& at, Py_ssize_t l,
                           const Instance* x) noexcept nogil:
    """Store the variances of the coordinates in `x.variances`; return the variance of the
    output."""
    cdef Py_ssize_t j
    cdef const state_t* variances = at.variances + l
    for j in range(x.n):
        x.variances[j] = variances[x.columns[j] * at.stride]
    return spread(x.variances, x.values, vector.initial, x.n)


cdef double sum_others(const Instance* x, Py_ssize_t but, const PrecisionGain* gain) noexcept nogil:
    """The variance of the output without entry `but`. If that entry exceeds the rest, subtracting
    it from the total would cancel, so the other entries are summed."""
    cdef Py_ssize_t j
    cdef double total = 0.0
    cdef double own = gain.factor * x.values[but] * x.values[but] * x.variances[but]
    if gain.output - own >= own:
        return gain.output - own
    for j in range(x.n):
        if j != but:
            total += gain.factor * x.values[j] * x.values[j] * x.variances[j]
    return total


cdef inline void move_adaptive(Vector* vector, const Coordinates[state_t]& at, Py_ssize_t l,
                               const Instance* x, double step,
                               const PrecisionGain* gain) noexcept nogil:
    """Like `move_2`, but with the instance times its variances, found by `find_variances`. The
    variances decrease: ``1 / V' = 1 / V + x**2 / (noise + others)``, hence
    ``V' / V = (noise + others) / (noise + output)``."""
    cdef Py_ssize_t i, j
    cdef double others, increment
    # Variances stay above 0, because 0 means the initial variance.
    cdef double least = FLT_MIN if sizeof(state_t) == 4 else DBL_MIN
    cdef state_t* t = at.t + l
    cdef state_t* variances = at.variances + l
    cdef const double* values = x.values
    cdef const int64_t* columns = x.columns
    cdef double* numbers = x.numbers
    cdef double* moved = x.variances
    cdef Py_ssize_t stride = at.stride
    if fall(numbers, x.variances, values, gain.factor, gain.output, gain.noise, least, x.n):
        for j in range(x.n):
            others = sum_others(x, j, gain)
            numbers[j] = max(
                x.variances[j] * ((gain.noise + others) / (gain.noise + gain.output)), least)
    for j in range(x.n):
        i = columns[j] * stride
        variances[i] = <state_t> numbers[j]
        numbers[j] = t[i]
        t[i] = <state_t> (t[i] + step * values[j] * moved[j])
        moved[j] = t[i]
    vector.nonzero += growth(&increment, numbers, moved, x.n)
    add(&vector.S, increment)
    tidy(&vector.S)


cdef int take_step(Space* space, const Coordinates[state_t]& at, Py_ssize_t l, int64_t trials,
                   const Instance* x, const Step* step, double mass, Move* done) noexcept nogil:
    """Count the old vector for the trials so far, and take the step along the instance.

    `mass` is added to the multiplier of the row. If the result is TOO_WIDE, the space has not
    changed, unless sigma has left its range.
    """
    cdef Vector* vector = space.vectors + l
    cdef bint restarts = step.keep == 0.0 and vector.started
    cdef double before = count_current(space, l, trials)
    cdef double peak = 0.0, eps = FLT_EPSILON if sizeof(state_t) == 4 else DBL_EPSILON
    cdef int64_t shift = vector.shift
    if space.p.exponent != 2.0:
        prefetch_numbers(space, at, l, x)
    if open_scale(space, at, l, x.scale.smallest, step, &done.coefficient) != OK:
        return TOO_WIDE
    done.shift_before = FORGET if restarts else <int32_t> (vector.shift - shift)
    shift = vector.shift
    vector.mass += mass
    if step.gain.factor:
        move_adaptive(vector, at, l, x, done.coefficient, &step.gain)
    elif space.p.exponent == 2.0:
        move_2(vector, at, l, x, done.coefficient, space.averaged)
    else:
        move_p(space, at, l, x, done.coefficient)
    vector.S_peak = max(vector.S_peak, vector.S.high)
    if vector.nonzero == 0:
        vector.S = Sum(0.0, 0.0, 0.0)
        vector.S_peak = 0.0
    if x.slack_t != NULL:
        move_slack(space, l, x, done.coefficient)
    refit(space, l, step.projection)
    if space.averaged:
        count_move(space, at, l, x, before)
    if is_stale(space, vector):
        peak = vector.scale * p_root(space, vector.S_peak)
    keep_in_window(space, at, l)
    tighten(vector, 0.0)
    if vector.norm < 16.0 * eps * peak:
        vector.norm = 0.0  # only rounding errors are left
    done.shift_after = <int32_t> (vector.shift - shift)
    # For tiny or huge rows and large p, sigma may be out of range although the weights are not.
    if vector.nonzero and not LEAST_SIGMA < space.sigma[l] < 1.0 / LEAST_SIGMA:
        return TOO_WIDE
    return OK
