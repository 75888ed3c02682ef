"""The linear space's vectors, and a correction of one.

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
  in, times its g, when it is next touched. A flush thus costs no sweep over the coordinates, and
  where one feature outweighs all others, the intercept for one, every second correction makes
  one; one sweep is made for every 1024.

What sweeps remain are rare: none to four in 10,000 corrections, even where labels contradict each
other.
"""

from libc.math cimport INFINITY, copysign, fabs, ilogb, isfinite, ldexp, pow
from libc.stdint cimport int32_t, int64_t, uint16_t

from sparsemargin._engine.first_order.instance cimport Instance
from sparsemargin._engine.first_order.labels cimport (
    Label, Space, count_current, is_stale, must_flush, p_root, refit, tighten, total_S, unit
)
from sparsemargin._engine.first_order.rules cimport FREE, Projection, Step
from sparsemargin._engine.hypotheses.log cimport FORGET
from sparsemargin._engine.numerics.arithmetic cimport BLOCK, link, raise_block, raised
from sparsemargin._engine.numerics.arithmetic cimport Sum, add, add_sum, tidy
from sparsemargin._engine.rows.csr cimport OK, TOO_WIDE, prefetch, state_t

# A row may exceed, or fall short of, what was learned so far by this power of two.
cdef int WIDEST_SHIFT = 500
# Sigma's range: scores of rows that the space can take then fit a double.
cdef double LEAST_SIGMA = ldexp(1.0, -1000)


# ------------------------------------------------------------------ sweeps over all coordinates

cdef void sync(Space* space, const Coordinates[state_t]& at, Py_ssize_t l) noexcept nogil:
    """Let every coordinate of acc take in what is pending."""
    cdef Label* label = space.labels + l
    cdef Py_ssize_t i, j
    cdef double* pending = space.pending + l * (FLUSHES + 1)
    if label.flushes == 0:
        return
    for j in range(space.n_coordinates):
        i = j * at.width + l
        at.acc[i] += <state_t> (pending[at.synced[i]] * at.g[i])
        at.synced[i] = 0
    for j in range(label.flushes):
        pending[j] = 0.0
    label.flushes = 0
    label.passes += 1


cdef void flush(Space* space, const Coordinates[state_t]& at, Py_ssize_t l) noexcept nogil:
    """Let Z be pending."""
    cdef Label* label = space.labels + l
    cdef Py_ssize_t j
    cdef double* pending = space.pending + l * (FLUSHES + 1)
    if label.Z != 0.0:
        if label.flushes == FLUSHES:
            sync(space, at, l)
        label.flushes += 1
        for j in range(label.flushes):
            pending[j] += label.Z
    label.Z = label.unit_peak = 0.0


cdef void sum_afresh(Space* space, const Coordinates[state_t]& at, Py_ssize_t l) noexcept nogil:
    cdef Label* label = space.labels + l
    cdef Py_ssize_t i, j
    cdef int64_t nonzero = 0
    cdef Sum total = Sum(0.0, 0.0, 0.0)
    for j in range(space.n_coordinates):
        i = j * at.width + l
        if at.t[i] != 0:
            nonzero += 1
            add(&total, <double> at.t[i] * at.g[i])
    tidy(&total)
    label.S = total
    label.S_peak = total.high
    label.nonzero = nonzero
    label.passes += 1


cdef void rescale(Space* space, const Coordinates[state_t]& at, Py_ssize_t l,
                  int shift) noexcept nogil:
    """t <- 2**shift t, theta unchanged."""
    cdef Label* label = space.labels + l
    cdef Py_ssize_t i, j
    cdef double factor = ldexp(1.0, shift)
    if space.averaged:
        flush(space, at, l)
        sync(space, at, l)
    for j in range(space.n_coordinates):
        i = j * at.width + l
        if at.t[i] != 0:
            at.t[i] = <state_t> (at.t[i] * factor)
            if space.p.exponent != 2.0:
                at.g[i] = <state_t> link(&space.link, at.t[i])
    for j in range(space.n_slack):
        space.slack_t[j * space.n_labels + l] *= factor
    label.scale = ldexp(label.scale, -shift)
    if label.S_slack > 0.0:  # the power may be infinite
        label.S_slack *= pow(factor, space.p.exponent)
    label.shift += shift
    sum_afresh(space, at, l)
    refit(space, l, FREE)


cdef void forget(Space* space, const Coordinates[state_t]& at, Py_ssize_t l) noexcept nogil:
    """theta <- 0; what the average has counted stays."""
    cdef Label* label = space.labels + l
    cdef Py_ssize_t i, j
    if space.averaged:
        flush(space, at, l)
        sync(space, at, l)
    for j in range(space.n_coordinates):
        i = j * at.width + l
        at.t[i] = at.g[i] = 0
    for j in range(space.n_slack):
        space.slack_t[j * space.n_labels + l] = 0.0
    label.S = Sum(0.0, 0.0, 0.0)
    label.S_peak = label.S_slack = 0.0
    label.nonzero = 0
    label.passes += 1


cdef double largest_coordinate(const Space* space, const Coordinates[state_t]& at,
                               Py_ssize_t l) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef double peak = 0.0
    for j in range(space.n_coordinates):
        i = j * at.width + l
        peak = max(peak, fabs(<double> at.t[i]))
    return peak


cdef void keep_in_window(Space* space, const Coordinates[state_t]& at, Py_ssize_t l) noexcept nogil:
    """After a correction: S exact again if it fell far, and within the range of its type."""
    cdef Label* label = space.labels + l
    cdef double total, largest
    if label.nonzero == 0:
        return
    if is_stale(space, label):
        sum_afresh(space, at, l)
        refit(space, l, FREE)
    total = total_S(label)
    if ldexp(1.0, -space.window) < total < ldexp(1.0, space.window):
        return
    largest = p_root(space, total) if total > 1.0 else largest_coordinate(space, at, l)
    if ilogb(largest) != 0:
        rescale(space, at, l, -ilogb(largest))


# ---------------------------------------------------------------------------------- a correction

cdef struct Opened:  # a step that is under way
    double before  # unit of the old vector
    int64_t shift
    Move move


cdef inline int open_scale(Space* space, const Coordinates[state_t]& at, Py_ssize_t l,
                           double smallest, const Step* step, double* size) noexcept nogil:
    """theta <- keep * theta, and the step's size at the scale of t; TOO_WIDE if none fits both."""
    cdef Label* label = space.labels + l
    cdef int shift
    cdef double scale
    if step.size == 0.0 or not isfinite(step.size):
        return TOO_WIDE
    if step.keep == 0.0 or not label.started:
        scale = ldexp(1.0, ilogb(step.size))
    else:
        scale = step.keep * label.scale
    size[0] = step.size / scale
    if size[0] == 0.0 or not isfinite(size[0]):
        return TOO_WIDE
    shift = ilogb(size[0])
    if shift > WIDEST_SHIFT or shift < -WIDEST_SHIFT or size[0] * smallest == 0.0:
        return TOO_WIDE
    if step.keep == 0.0 and label.started:
        forget(space, at, l)
    label.mass *= step.keep
    label.scale = scale
    label.started = 1
    if shift * space.p.exponent > space.window:
        rescale(space, at, l, -shift)
        size[0] = ldexp(size[0], -shift)
    return OK


cdef inline void move_2(Label* label, const Coordinates[state_t]& at, Py_ssize_t l,
                        const Instance* x, double step, bint averaged) noexcept nogil:
    """The new t of the row's coordinates, what they were being kept; and S. An average is sent
    for, as scores have brought nothing but t near."""
    cdef Py_ssize_t i, j
    cdef int64_t nonzero = 0
    cdef double old, increment = 0.0
    cdef state_t* t = at.t + l
    cdef const double* values = x.values
    cdef const int64_t* columns = x.columns
    cdef double* numbers = x.numbers
    cdef const state_t* acc = at.acc + l
    cdef Py_ssize_t width = at.width
    for j in range(x.n):
        i = columns[j] * width
        if averaged:
            prefetch(acc + i)
        old = t[i]
        numbers[j] = old
        t[i] = <state_t> (t[i] + step * values[j])
        increment += (t[i] - old) * (t[i] + old)
        nonzero += (t[i] != 0) - (old != 0.0)
    add(&label.S, increment)
    tidy(&label.S)
    label.nonzero += nonzero


cdef inline void move_p(Space* space, const Coordinates[state_t]& at, Py_ssize_t l,
                        const Instance* x, double step) noexcept nogil:
    """The new t and g of the row's coordinates, what g was being kept; and S."""
    cdef double moved[BLOCK]
    cdef double powers[BLOCK]
    cdef Label* label = space.labels + l
    # What goes and what comes is summed apart: two chains of additions, half the wait.
    cdef Sum gone = label.S, came = Sum(0.0, 0.0, 0.0)
    cdef double old
    cdef int64_t nonzero = 0
    cdef state_t* t = at.t + l
    cdef state_t* g = at.g + l
    cdef Py_ssize_t b, i, j, start, n, width = at.width
    for b in range((x.n + BLOCK - 1) // BLOCK):
        start = b * BLOCK
        n = min(<Py_ssize_t> BLOCK, x.n - start)
        for j in range(n):
            i = x.columns[start + j] * width
            old = t[i]
            moved[j] = old + step * x.values[start + j]
            powers[j] = fabs(moved[j])
            t[i] = <state_t> moved[j]
            x.numbers[start + j] = g[i]
            add(&gone, -(old * g[i]))
            nonzero += (moved[j] != 0) - (old != 0)
        raise_block(&space.link, powers, n)
        for j in range(n):
            g[x.columns[start + j] * width] = <state_t> copysign(powers[j], moved[j])
            add(&came, powers[j] * fabs(moved[j]))
    add_sum(&gone, &came)
    tidy(&gone)
    label.S = gone
    label.nonzero += nonzero


cdef inline void move_slack(Space* space, Py_ssize_t l, const Instance* x,
                            double step) noexcept nogil:
    cdef double old = x.slack_t[l]
    x.slack_t[l] += step * x.slack
    space.labels[l].S_slack += (raised(&space.p, fabs(x.slack_t[l]))
                                - raised(&space.p, fabs(old)))


cdef inline void catch_up(Space* space, const Coordinates[state_t]& at, Py_ssize_t l,
                          const Instance* x) noexcept nogil:
    """Let acc take in what is pending of the row's coordinates, what they were being kept."""
    cdef Py_ssize_t i, j
    cdef uint16_t flushes = <uint16_t> space.labels[l].flushes
    cdef const double* pending = space.pending + l * (FLUSHES + 1)
    if flushes == 0:
        return
    for j in range(x.n):
        i = x.columns[j] * at.width + l
        at.acc[i] += <state_t> (pending[at.synced[i]] * x.numbers[j])
        at.synced[i] = flushes


cdef inline void count_move(Space* space, const Coordinates[state_t]& at, Py_ssize_t l,
                            const Instance* x, double before) noexcept nogil:
    """Keep in acc what the row's coordinates were worth while the unit was `before` and earlier."""
    cdef Label* label = space.labels + l
    cdef Py_ssize_t i, j
    catch_up(space, at, l, x)
    if must_flush(label, min(before, unit(space, l))):
        flush(space, at, l)
        catch_up(space, at, l, x)
    cdef state_t* acc = at.acc + l
    cdef const state_t* g = at.g + l
    cdef const int64_t* columns = x.columns
    cdef const double* numbers = x.numbers
    cdef double Z = label.Z
    cdef Py_ssize_t width = at.width
    for j in range(x.n):
        i = columns[j] * width
        acc[i] -= <state_t> (Z * (g[i] - numbers[j]))


cdef inline void send_for(const Space* space, const Coordinates[state_t]& at, Py_ssize_t l,
                          const Instance* x) noexcept nogil:
    """Scores have brought the row's coordinates of g near, and nothing else."""
    cdef Py_ssize_t i, j
    for j in range(x.n):
        i = x.columns[j] * at.width + l
        prefetch(at.t + i)
        if space.averaged:
            prefetch(at.acc + i)


cdef int open_step(Space* space, const Coordinates[state_t]& at, Py_ssize_t l, int64_t trials,
                   const Instance* x, const Step* step, double mass, Opened* opened) noexcept nogil:
    """Count the old vector for the trials before, and make room for the step by the instance.

    `mass` is what the row's multiplier gains. TOO_WIDE leaves all as it was.
    """
    cdef Label* label = space.labels + l
    cdef bint restarts = step.keep == 0.0 and label.started
    cdef int64_t shift = label.shift
    opened.before = count_current(space, l, trials)
    if open_scale(space, at, l, x.scale.smallest, step, &opened.move.coefficient) != OK:
        return TOO_WIDE
    opened.move.shift_before = FORGET if restarts else <int32_t> (label.shift - shift)
    opened.shift = label.shift
    label.mass += mass
    return OK


cdef int close_step(Space* space, const Coordinates[state_t]& at, Py_ssize_t l, const Instance* x,
                    Projection projection, Opened* opened) noexcept nogil:
    """After the coordinates have moved; TOO_WIDE where sigma has left its range."""
    cdef Label* label = space.labels + l
    label.S_peak = max(label.S_peak, label.S.high)
    if label.nonzero == 0:
        label.S = Sum(0.0, 0.0, 0.0)
        label.S_peak = 0.0
    if x.slack_t != NULL:
        move_slack(space, l, x, opened.move.coefficient)
    refit(space, l, projection)
    tighten(label)
    if space.averaged:
        count_move(space, at, l, x, opened.before)
    keep_in_window(space, at, l)
    opened.move.shift_after = <int32_t> (label.shift - opened.shift)
    # The weights sigma g may be in range where sigma is not: tiny or huge raw rows at large p.
    if label.nonzero and not LEAST_SIGMA < space.sigma[l] < 1.0 / LEAST_SIGMA:
        return TOO_WIDE
    return OK


cdef int take_step(Space* space, const Coordinates[state_t]& at, Py_ssize_t l, int64_t trials,
                   const Instance* x, const Step* step, double mass, Move* done) noexcept nogil:
    """The step by the instance; TOO_WIDE leaves all as it was, but where sigma left its range."""
    cdef Opened opened
    cdef int status
    if space.p.exponent != 2.0:
        send_for(space, at, l, x)
    if open_step(space, at, l, trials, x, step, mass, &opened) != OK:
        return TOO_WIDE
    if space.p.exponent == 2.0:
        move_2(space.labels + l, at, l, x, opened.move.coefficient, space.averaged)
    else:
        move_p(space, at, l, x, opened.move.coefficient)
    status = close_step(space, at, l, x, step.projection, &opened)
    done[0] = opened.move
    return status


cdef int take_steps(Space* space, const Coordinates[state_t]& at, Py_ssize_t first, int n,
                    int64_t trials, const Instance* x, const Step* steps, Move* done) noexcept nogil:
    """Those of n labels with variances, from `first` on, in one sweep; a size of 0 is none.

    By the variances that `variances_of` has found, which fall. TOO_WIDE, before any is taken, where
    one is; or where a sigma has left its range.
    """
    cdef Opened opened[MOST_SWEPT]
    cdef Sweep sweep
    cdef Label* label
    cdef int k, status = OK
    for k in range(n):
        sweep.size[k] = sweep.factor[k] = sweep.output[k] = 0.0
        sweep.noise[k] = 1.0
        if steps[k].size != 0.0:
            if open_step(space, at, first + k, trials, x, steps + k, INFINITY, opened + k) != OK:
                return TOO_WIDE
            sweep.size[k] = opened[k].move.coefficient
            sweep.factor[k] = steps[k].fall.factor
            sweep.output[k], sweep.noise[k] = steps[k].fall.output, steps[k].fall.noise
    sweep_labels(at.t + first, at.gain + first, at.width, n, swept(x), &sweep)
    for k in range(n):
        if steps[k].size == 0.0:
            continue
        label = space.labels + first + k
        add(&label.S, sweep.growth[k])
        tidy(&label.S)
        label.nonzero += sweep.nonzero[k]
        if close_step(space, at, first + k, x, FREE, opened + k) != OK:
            status = TOO_WIDE
        done[k] = opened[k].move
    return status
