"""Trials with stored products of rows.

If the products of a block of rows are stored, a trial is only a comparison: a correction with row j
changes the scores of all rows by the step times their products with row j. The trials are those of
the one-by-one algorithm up to rounding errors. The kernel space trains each block this way. A
linear space trains a small training set this way, for any number of features; its coefficients
are 0 again after they have been added to the vector.
"""

from libc.math cimport ilogb, isfinite, ldexp
from libc.stdint cimport int32_t, int64_t, uint64_t

from sparsemargin._engine.core.vectors cimport (
    FirstOrderRule, FirstOrderSpace, Vector, Space, answer, count_current, is_stale, refit,
    count_correction, tighten, total_S, trial_of, unit
)
from sparsemargin._engine.core.rules cimport (
    ONTO_SPHERE, Rule, Step, Trial, plain_step, starts_from_first_row
)
from sparsemargin._engine.core.log cimport FORGET, Correction, CorrectionLog
from sparsemargin._engine.numerics.arithmetic cimport Sum, add, shuffle_rows, tidy
from sparsemargin._engine.numerics.average cimport clear, must_flush
from sparsemargin._engine.numerics.simd cimport add_multiple, first_due
from sparsemargin._engine.rows.csr cimport OK, TOO_WIDE, RowScale

cdef enum:
    CORRECTIONS_PER_REFRESH = 1 << 16  # corrections after which S and the scores are recomputed


cdef struct Block:
    # Rows and the part of the state that trials of one vector change: see `StoredProducts`.
    Py_ssize_t n_rows
    Py_ssize_t n_slots
    Py_ssize_t n_outside
    Py_ssize_t vector
    Py_ssize_t n_vectors
    double slack
    double error  # of the bound on the margin
    const double* products
    const double* norms
    const double* measured
    const double* signs
    const double* shares
    const int64_t* slots
    double* scores
    double* outputs
    double* t
    double* acc
    double* outside
    double* multipliers
    int64_t* first_corrections


cdef const double* numbers(const double[::1] array):
    return &array[0]


cdef double* line(double[:, ::1] array, Py_ssize_t i):
    """A pointer to row i of an array; NULL if there is none."""
    return &array[i, 0] if array is not None and array.shape[1] else NULL


cdef Block bind(stored, Py_ssize_t vector, const double[::1] signs, const double[::1] shares):
    """The block of one vector as pointers into the arrays of `StoredProducts`."""
    cdef const double[:, ::1] products = stored.products
    cdef const int64_t[::1] slots = stored.slots
    cdef int64_t[:, ::1] first_corrections = stored.first_corrections
    cdef Block block
    block.n_rows, block.vector = products.shape[0], vector
    block.n_vectors, block.slack = len(stored.scores), stored.slack
    block.error = stored.error_of_bound
    block.n_slots = stored.n_slots
    block.n_outside = 0 if stored.outside is None else stored.outside.shape[1]
    block.products = &products[0, 0]
    block.norms, block.measured = numbers(stored.norms), numbers(stored.measured)
    block.signs, block.shares, block.slots = &signs[0], &shares[0], &slots[0]
    block.scores, block.outputs = line(stored.scores, vector), line(stored.outputs, vector)
    block.t, block.acc = line(stored.t, vector), line(stored.acc, vector)
    block.outside = line(stored.outside, vector)
    if first_corrections is not None:
        block.first_corrections = &first_corrections[vector, 0]
    else:
        block.first_corrections = NULL
    block.multipliers = line(stored.multipliers, 0)
    if block.multipliers != NULL:
        block.multipliers += vector
    return block


cdef void flush(const Block* block, Vector* vector) noexcept nogil:
    add_multiple(block.acc, block.t, vector.average.Z, block.n_slots)
    clear(&vector.average)


cdef void forget(const Block* block, Vector* vector) noexcept nogil:
    """theta <- 0; the sums of the average are kept."""
    cdef Py_ssize_t i
    if block.acc != NULL:
        flush(block, vector)
    for i in range(block.n_slots):
        block.t[i] = 0.0
    for i in range(block.n_rows):
        block.scores[i] = 0.0
    for i in range(block.n_outside):
        block.outside[i] = 0.0
    vector.S = Sum(0.0, 0.0, 0.0)
    vector.S_peak = vector.S_slack = vector.mass = 0.0
    vector.passes += 1


cdef double open_scale(const Block* block, Vector* vector, const Step* step) noexcept nogil:
    """theta <- keep * theta. Return the step in units of t, which may be out of range."""
    cdef bint restarts = step.keep == 0.0 and vector.started
    if restarts:
        forget(block, vector)
    if restarts or not vector.started:
        vector.scale = ldexp(1.0, ilogb(step.size))
    else:
        vector.scale *= step.keep
    return step.size / vector.scale


cdef void add_square(const Block* block, Vector* vector, Py_ssize_t j, double size) noexcept nogil:
    """Update S for a step of this size along row j."""
    cdef double norm2 = block.products[j * block.n_rows + j]
    cdef double total = size * (2.0 * block.scores[j] + size * norm2)
    cdef double slack_part = (block.slack * block.slack) * size * (
        2.0 * block.t[block.slots[j]] + size)
    add(&vector.S, total - slack_part)
    tidy(&vector.S)
    vector.S_slack += slack_part
    vector.S_peak = max(vector.S_peak, vector.S.high)


cdef int move(Block* block, Space* space, Py_ssize_t j, const Step* step, double mass,
              int64_t trials, CorrectionLog log) except -1 nogil:
    """Count the old vector, and take the step along row j."""
    cdef Py_ssize_t l = block.vector, slot = block.slots[j]
    cdef Vector* vector = space.vectors + l
    cdef int32_t forgot = FORGET if step.keep == 0.0 and vector.started else 0
    cdef double before = count_current(space, l, trials)
    cdef double size = open_scale(block, vector, step)
    if size == 0.0 or not isfinite(size):
        return TOO_WIDE
    vector.started = 1
    vector.mass = step.keep * vector.mass + mass
    add_square(block, vector, j, size)
    refit(space, l, step.projection)
    tighten(vector, block.error)
    if block.acc != NULL:
        if must_flush(&vector.average, min(before, unit(space, l))):
            flush(block, vector)
        block.acc[slot] -= vector.average.Z * size
    block.t[slot] += size
    add_multiple(block.scores, block.products + j * block.n_rows, size, block.n_rows)
    if block.first_corrections != NULL and block.first_corrections[j] < 0:
        block.first_corrections[j] = trials
    if log is not None:
        log.corrections.push_back(Correction(
            slot, trials - vector.idle, size, unit(space, l), vector.norm, <int32_t> l, forgot, 0))
    return OK


cdef int start(Block* block, const Rule* rule, Space* space, const int64_t* order, Py_ssize_t n,
               int64_t trials, CorrectionLog log) except -1 nogil:
    """If the rule requires it, start from the direction of the first nonzero row."""
    cdef Py_ssize_t i, j
    cdef Step step
    if not starts_from_first_row(rule) or space.vectors[block.vector].started:
        return OK
    for i in range(n):
        j = order[i] if order != NULL else i
        if block.norms[j] > 0.0 and block.slots[j] >= 0:
            step = plain_step(0.0, block.signs[j] / block.norms[j], ONTO_SPHERE)
            return move(block, space, j, &step, 1.0 / block.norms[j], trials + i, log)
    return OK


cdef int correct(Block* block, const Rule* rule, Space* space, Py_ssize_t j, int64_t trials,
                 CorrectionLog log) except -1 nogil:
    """Make the rule's step for a trial of row j whose test fired, after `trials` other trials."""
    cdef Py_ssize_t l = block.vector
    cdef RowScale row = RowScale(0, 1.0, block.norms[j], 0.0)
    cdef double y = block.signs[j], mass
    cdef double* multiplier = NULL
    if block.multipliers != NULL:
        multiplier = block.multipliers + j * block.n_vectors
    cdef Trial trial = trial_of(rule, space, l, y * space.sigma[l] * block.scores[j], row.norm,
                                multiplier[0] if multiplier != NULL else 0.0)
    cdef Step step
    if not answer(rule, space.vectors + l, &trial, block.shares[j], &row, &step, &mass):
        return OK
    step.size *= y
    if move(block, space, j, &step, mass, trials, log) != OK:
        return TOO_WIDE
    count_correction(rule, space, l, multiplier, mass, trials + 1)
    return OK


cdef inline Py_ssize_t next_due(const Block* block, const Space* space, const int64_t* order,
                                Py_ssize_t i, Py_ssize_t n) noexcept nogil:
    """The first position from i on whose test fires, or n. The outputs up to it are stored."""
    cdef Py_ssize_t j, due
    cdef double sigma = space.sigma[block.vector], threshold = space.threshold[block.vector]
    cdef double counted = unit(space, block.vector)
    if order == NULL and block.multipliers == NULL:
        due = first_due(block.scores, block.signs, block.measured, sigma, threshold, i, n)
        if block.outputs != NULL:
            for j in range(i, min(due + 1, n)):
                block.outputs[j] = counted * block.scores[j]
        return due
    while i < n:
        j = order[i] if order != NULL else i
        if block.outputs != NULL:
            block.outputs[j] = counted * block.scores[j]
        if block.signs[j] * sigma * block.scores[j] <= threshold * block.measured[j]:
            return i
        if block.multipliers != NULL and block.multipliers[j * block.n_vectors] > 0.0:
            return i
        i += 1
    return n


cdef inline bint must_refresh(const Space* space, Py_ssize_t l, int64_t since) noexcept nogil:
    cdef const Vector* vector = space.vectors + l
    cdef double S = total_S(vector), window = ldexp(1.0, space.window)
    return (vector.corrections - since >= CORRECTIONS_PER_REFRESH or is_stale(space, vector)
            or (S > 0.0 and not 1.0 / window < S < window))


def learn_vector(stored, Py_ssize_t vector, int64_t[::1] order, seed, Py_ssize_t n_passes):
    """Run epochs over the rows of a block for one vector, until one makes no correction.

    Parameters
    ----------
    stored : StoredProducts
        The block. It does not count trials: ``stored.space.trials`` are those before the call.
    vector : int
    order, seed, n_passes
        See `Job.run` of the linear space.

    Returns
    -------
    tuple
        The fields of `End` except `order`.
    """
    cdef FirstOrderSpace space = stored.space
    cdef FirstOrderRule rule = stored.rule
    cdef CorrectionLog log = space.log
    signs, shares = stored.signs_and_shares(vector)
    cdef Block block = bind(stored, vector, signs, shares)
    cdef Space* c = &space.c
    cdef Py_ssize_t i, j = -1, passes = 0, n = block.n_rows if order is None else order.shape[0]
    cdef int64_t before, refreshed = c.vectors[vector].corrections, passed_over = 0
    cdef int64_t* rows = &order[0] if order is not None else NULL
    cdef uint64_t first_seed = seed or 0
    cdef int status = OK
    cdef bint converged = False, shuffles = seed is not None
    with nogil:
        while (passes < n_passes and not converged and status == OK
               and c.vectors[vector].stopped < 0):
            if passes > 0 and shuffles:
                shuffle_rows(rows, n, first_seed + passes)
            before = c.vectors[vector].corrections
            status = start(&block, &rule.rule, c, rows, n, space.trials, log)
            i = next_due(&block, c, rows, 0, n)
            while i < n and status == OK:
                j = rows[i] if rows != NULL else i
                if block.shares[j] != 0.0 and block.slots[j] < 0:
                    passed_over += 1
                elif block.shares[j] != 0.0:
                    status = correct(&block, &rule.rule, c, j, space.trials + passes * n + i, log)
                    if status != OK or c.vectors[vector].stopped >= 0:
                        break
                    if must_refresh(c, vector, refreshed):
                        with gil:
                            stored.refresh(vector)
                        refreshed = c.vectors[vector].corrections
                        if log is not None:
                            log.corrections.back().unit = unit(c, vector)
                            log.corrections.back().norm = c.vectors[vector].norm
                i = next_due(&block, c, rows, i + 1, n)
            passes += 1
            converged = c.vectors[vector].corrections == before
    return status, (j if status != OK else -1), passes, converged, passed_over
