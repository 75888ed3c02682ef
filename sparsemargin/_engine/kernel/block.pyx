"""Trials of a block of rows in the kernel space, label by label, by the matrix of their products.

The block's scores by the pool are known when it begins. A correction by row j changes those of all
its rows by the step times their products with row j, so that the trials are those of the
one-by-one algorithm. With all rows in one block whole passes are made in one call.
"""

from libc.math cimport ilogb, isfinite, ldexp
from libc.stdint cimport int32_t, int64_t, uint64_t

from sparsemargin._engine.kernel.space cimport KernelSpace
from sparsemargin._engine.first_order.labels cimport Space, refit, tighten, total_S, unit
from sparsemargin._engine.hypotheses.log cimport FORGET, Correction, CorrectionLog
from sparsemargin._engine.numerics.random cimport shuffle_rows
from sparsemargin._engine.rows.csr cimport RowScale
from sparsemargin._engine.first_order.rules cimport (
    ONTO_SPHERE, Rule, Step, Trial, starts_from_first_row
)
from sparsemargin._engine.numerics.sums cimport Sum, add, tidy
from sparsemargin._engine.rows.types cimport OK, TOO_WIDE
from sparsemargin._engine.first_order.labels cimport FirstOrderRule, answer, settle
from sparsemargin._engine.numerics.vectors cimport add_multiple, first_due

cdef enum:
    CORRECTIONS_PER_REFRESH = 1 << 16

# S is worked out afresh once it is this share of its largest.
cdef double STALE = ldexp(1.0, -10)
# Z is flushed before units have fallen so far that it and acc would cancel.
cdef double FLUSH = ldexp(1.0, -10)

cdef struct Block:
    Py_ssize_t n_rows
    Py_ssize_t label
    const double* gram  # products of the rows, the soft margin's coordinates included
    const double* norms
    const double* measured  # the norms where instances are divided by them, else ones
    const double* signs
    const double* shares
    const int64_t* slots  # where the rows' coefficients are; -1: the pool has no room
    double* scores  # sum_i t_i K(x_i, x), the soft margin's part included
    double* turn  # outputs as they were before each row's own trial
    int64_t* joined  # trials before a row first moved; -1: it has not
    double* t
    double* acc  # NULL where no average is kept
    Py_ssize_t n_slots
    double* stored  # scores of rows outside, which a restart makes 0
    Py_ssize_t n_stored


cdef void flush(const Block* block, Space* space) noexcept nogil:
    cdef Py_ssize_t l = block.label
    add_multiple(block.acc, block.t, space.labels[l].Z, block.n_slots)
    space.labels[l].Z = space.labels[l].unit_peak = 0.0


cdef void forget(Block* block, Space* space) noexcept nogil:
    """theta <- 0; what the average has counted stays."""
    cdef Py_ssize_t i, l = block.label
    if block.acc != NULL:
        flush(block, space)
    for i in range(block.n_slots):
        block.t[i] = 0.0
    for i in range(block.n_rows):
        block.scores[i] = 0.0
    for i in range(block.n_stored):
        block.stored[i] = 0.0
    space.labels[l].S = Sum(0.0, 0.0, 0.0)
    space.labels[l].S_peak = space.labels[l].S_slack = space.labels[l].mass = 0.0
    space.labels[l].passes += 1


cdef int move(Block* block, Space* space, Py_ssize_t j, const Step* step, double mass,
              int64_t trials, CorrectionLog log) except -1 nogil:
    """Let the vector take the step by row j, the old vector counted first."""
    cdef Py_ssize_t l = block.label, slot = block.slots[j]
    cdef bint restarts = step.keep == 0.0 and space.labels[l].started
    cdef double size, old, total, of_slack, counted = unit(space, l)
    cdef double norm2 = block.norms[j] * block.norms[j], slack2 = space.slack * space.slack
    if block.acc != NULL:
        space.labels[l].Z += (trials - space.labels[l].begin) * counted
        space.labels[l].unit_peak = max(space.labels[l].unit_peak, counted)
    space.labels[l].begin = trials
    if restarts:
        forget(block, space)
    if restarts or not space.labels[l].started:
        space.labels[l].scale = ldexp(1.0, ilogb(step.size))
    else:
        space.labels[l].scale *= step.keep
    size = step.size / space.labels[l].scale
    if size == 0.0 or not isfinite(size):
        return TOO_WIDE
    space.labels[l].started = 1
    space.labels[l].mass = step.keep * space.labels[l].mass + mass
    old = block.t[slot]
    total = size * (2.0 * block.scores[j] + size * norm2)
    of_slack = slack2 * size * (2.0 * old + size)
    add(&space.labels[l].S, total - of_slack)
    tidy(&space.labels[l].S)
    space.labels[l].S_slack += of_slack
    space.labels[l].S_peak = max(space.labels[l].S_peak, space.labels[l].S.high)
    refit(space, l, step.projection)
    tighten(space.labels + l)
    if block.acc != NULL:
        counted = min(counted, unit(space, l))
        if 0.0 < counted < FLUSH * space.labels[l].unit_peak:
            flush(block, space)
        block.acc[slot] -= space.labels[l].Z * size
    block.t[slot] = old + size
    add_multiple(block.scores, block.gram + j * block.n_rows, size, block.n_rows)
    if block.joined[j] < 0:
        block.joined[j] = trials
    if log is not None:
        log.corrections.push_back(Correction(
            slot, trials - space.labels[l].idle, size, unit(space, l), space.labels[l].norm, <int32_t> l,
            FORGET if restarts else 0, 0))
    return OK


cdef int start(Block* block, const Rule* rule, Space* space, const int64_t* order, Py_ssize_t n,
               int64_t trials, CorrectionLog log) except -1 nogil:
    """The first row that is not 0 gives the direction to start from, where the rule has one."""
    cdef Py_ssize_t i, j
    cdef Step step
    if not starts_from_first_row(rule) or space.labels[block.label].started:
        return OK
    for i in range(n):
        j = order[i] if order != NULL else i
        if block.norms[j] > 0.0 and block.slots[j] >= 0:
            step = Step(0.0, block.signs[j] / block.norms[j], ONTO_SPHERE)
            return move(block, space, j, &step, 1.0 / block.norms[j], trials + i, log)
    return OK


cdef int correct(Block* block, const Rule* rule, Space* space, Py_ssize_t j, int64_t trials,
                 CorrectionLog log) except -1 nogil:
    """The rule's answer to a trial of row j that fired; `trials` were made before it."""
    cdef Py_ssize_t l = block.label
    cdef RowScale row = RowScale(0, 1.0, block.norms[j], 0.0)
    cdef double y = block.signs[j], mass
    cdef Trial trial = Trial(y * space.sigma[l] * block.scores[j] / block.measured[j],
                             space.labels[l].norm, row.norm / block.measured[j], 0.0)
    cdef Step step
    if not answer(rule, space.labels + l, &trial, block.shares[j], &row, &step, &mass):
        return OK
    step.size *= y
    if move(block, space, j, &step, mass, trials, log) != OK:
        return TOO_WIDE
    settle(rule, space, l, NULL, mass, trials + 1)
    return OK


cdef inline Py_ssize_t next_due(const Block* block, const Space* space, const int64_t* order,
                                Py_ssize_t i, Py_ssize_t n) noexcept nogil:
    """The next position from i whose row's test fires; n if there is none. Outputs are noted on
    the way."""
    cdef Py_ssize_t j, due
    cdef double sigma = space.sigma[block.label], bar = space.threshold[block.label]
    cdef double counted = unit(space, block.label)
    if order == NULL:
        due = first_due(block.scores, block.signs, block.measured, sigma, bar, i, n)
        for j in range(i, min(due + 1, n)):
            block.turn[j] = counted * block.scores[j]
        return due
    while i < n:
        j = order[i]
        block.turn[j] = counted * block.scores[j]
        if block.signs[j] * sigma * block.scores[j] <= bar * block.measured[j]:
            return i
        i += 1
    return n


cdef inline bint is_stale(const Space* space, Py_ssize_t l, int64_t since) noexcept nogil:
    cdef double S = total_S(space.labels + l), window = ldexp(1.0, space.window)
    return (space.labels[l].corrections - since >= CORRECTIONS_PER_REFRESH
            or S < STALE * space.labels[l].S_peak or (S > 0.0 and not 1.0 / window < S < window))


def learn_block(KernelSpace space, FirstOrderRule rule, Py_ssize_t label,
                const double[:, ::1] gram, const double[::1] norms, const double[::1] measured,
                const double[::1] signs, const double[::1] shares, const int64_t[::1] slots,
                double[::1] scores, double[::1] turn, int64_t[::1] joined, double[::1] t,
                double[::1] acc, double[::1] stored, int64_t[::1] order, uint64_t seed,
                Py_ssize_t n_passes, int64_t trials, refresh):
    """Passes over the rows of a block for one label.

    Parameters
    ----------
    gram : ndarray of shape (n_rows, n_rows)
        Products of the rows, augmented and extended.
    norms, measured : ndarray of shape (n_rows,)
        Their norms; the same where instances are divided by them, else ones.
    signs, shares : ndarray of shape (n_rows,)
        Labels, -1.0 or 1.0, and what multiplies the steps; 0: the row never corrects.
    slots : ndarray of shape (n_rows,)
        Places of their coefficients in t; -1: none is left.
    scores, turn, joined : ndarray of shape (n_rows,)
        See `Block`.
    t, acc : ndarray of shape (room,)
        The label's coefficients and what its average has besides; acc empty where none is kept.
    stored : ndarray of shape (n_stored,)
    order : ndarray of shape (n_trials,) or None
        Row of each trial; None: as they come.
    seed : int
        Plus the number of passes before it, of the shuffling before every pass but the first.
    n_passes : int
        How many to make, unless one of them makes no correction.
    trials : int
        ``space.trials`` before the call, which does not count its own.
    refresh : callable
        Brings S, the scores and the scale of t of the label up to date.

    Returns
    -------
    status : int
    row : int
        The row of the block that stopped the passes, or -1.
    passes : int
    converged : bool
    passed_over : int
        Trials that would have corrected had the pool had room.
    """
    cdef Space* c = &space.c
    cdef Py_ssize_t i, j = -1, passes = 0, n = gram.shape[0]
    cdef int64_t before, refreshed = c.labels[label].corrections, passed_over = 0
    cdef int64_t* rows = &order[0] if order is not None else NULL
    cdef CorrectionLog log = space.log
    cdef int status = OK
    cdef bint converged = False
    cdef Block block = Block(
        n, label, &gram[0, 0], &norms[0], &measured[0], &signs[0], &shares[0], &slots[0],
        &scores[0], &turn[0], &joined[0], &t[0], NULL, t.shape[0], NULL, stored.shape[0])
    if acc.shape[0]:
        block.acc = &acc[0]
    if stored.shape[0]:
        block.stored = &stored[0]
    if order is not None:
        n = order.shape[0]
    with nogil:
        while passes < n_passes and not converged and status == OK and c.labels[label].stopped < 0:
            if passes > 0 and rows != NULL:
                shuffle_rows(rows, n, seed + passes)
            before = c.labels[label].corrections
            status = start(&block, &rule.rule, c, rows, n, trials, log)
            i = next_due(&block, c, rows, 0, n)
            while i < n and status == OK:
                j = rows[i] if rows != NULL else i
                if block.shares[j] == 0.0:
                    pass
                elif block.slots[j] < 0:
                    passed_over += 1
                else:
                    status = correct(&block, &rule.rule, c, j, trials + passes * n + i, log)
                    if status != OK or c.labels[label].stopped >= 0:
                        break
                    if is_stale(c, label, refreshed):
                        with gil:
                            refresh(label)
                        refreshed = c.labels[label].corrections
                i = next_due(&block, c, rows, i + 1, n)
            passes += 1
            converged = c.labels[label].corrections == before
    return status, (j if status != OK else -1), passes, converged, passed_over
