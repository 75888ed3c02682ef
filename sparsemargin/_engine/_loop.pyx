# distutils: extra_compile_args = -ffp-contract=off
"""The loop: trials over rows, for any rule.

A trial knows no algorithm. It tests ``y w.x <= bar`` for every label (times ``||x||_p`` where
instances are measured by their own norm), and speaks to the rule only where the test fires.
"""

from libc.math cimport INFINITY, fabs, ldexp
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libcpp.vector cimport vector

from sparsemargin._engine._log cimport Correction, CorrectionLog
from sparsemargin._engine._power cimport raised
from sparsemargin._engine._rows cimport (
    RowScale, check_row, has_repeats, measure, prefetch, prefetch_span, score_alone, scores, two_norm
)
from sparsemargin._engine._rules cimport (
    BY_RADIUS, BY_ROW, BY_RUNNING_MAX, FirstOrderRule, Rule, Step, respond, threshold
)
from sparsemargin._engine._space cimport (
    LinearSpace, Space, add_row, rescued_output, unit
)
from sparsemargin._engine._types cimport ALL_STOPPED, NOT_CANONICAL, OK, TOO_WIDE, index_t, state_t, value_t

# A shuffled row comes from anywhere in memory; asked for this many trials ahead it arrives in
# time, and shuffled epochs cost little more than epochs in order.
cdef enum:
    AHEAD = 4

# Dot products outside this range may have lost terms to under- or overflow.
cdef double SMALL = ldexp(1.0, -900)
cdef double LARGE = ldexp(1.0, 900)


cdef inline double raise_bar(const Rule* rule, Space* space, Py_ssize_t l) noexcept nogil:
    """The bar for the next correction, in the units the test is made in."""
    cdef double tau = threshold(rule, space.of.corrections[l] + 1)
    if rule.scaling == BY_RUNNING_MAX:
        return tau * space.of.largest[l]
    if rule.scaling == BY_RADIUS:
        return tau * rule.radius
    return tau


cdef inline double scaled_step(const Rule* rule, Space* space, Py_ssize_t l, double size,
                               const RowScale* row) noexcept nogil:
    """The step for the row times row.factor, instances divided as the rule says."""
    if rule.scaling == BY_ROW:
        return size / row.norm
    if rule.scaling == BY_RUNNING_MAX:
        space.of.largest[l] = max(space.of.largest[l], ldexp(row.norm, row.exponent))
        return ldexp(size, row.exponent) / space.of.largest[l]
    if rule.scaling == BY_RADIUS:
        return ldexp(size, row.exponent) / rule.radius
    return ldexp(size, row.exponent)


cdef inline bint fires(const Rule* rule, const Space* space, const state_t* t, Py_ssize_t l,
                       double y, double dot, const value_t* values, const index_t* columns,
                       Py_ssize_t nnz, const RowScale* row,
                       const double* slack_t) noexcept nogil:
    """The exact test, for trials that the quick one could not pass."""
    cdef double bar = space.of.bar[l]
    cdef double measured = row.norm if rule.scaling == BY_ROW else row.factor
    if bar == -INFINITY:
        return False
    # Both factors may be in range and their product not.
    if SMALL < fabs(dot) < LARGE and SMALL < fabs(space.of.sigma[l] * dot):
        if rule.scaling == BY_ROW:
            return y * space.of.sigma[l] * dot <= bar * ldexp(row.norm, row.exponent)
        return y * space.of.sigma[l] * dot <= bar
    return y * rescued_output(space, t, l, values, columns, nnz, row, slack_t) <= bar * measured


cdef int correct(const Rule* rule, Space* space, state_t* t, state_t* g, state_t* acc,
                 Py_ssize_t l, double y, double weight, int64_t trials,
                 const value_t* values, const index_t* columns, Py_ssize_t nnz,
                 const RowScale* row, double* slack_t, double* scratch,
                 Correction* entry) noexcept nogil:
    """One correction of one label: the space moves as the rule says."""
    cdef Step step = respond(rule, space.of.corrections[l] + 1)
    cdef double size = y * scaled_step(rule, space, l, weight * step.size, row)
    cdef int64_t shift = space.of.shift[l]
    if add_row(space, t, g, acc, l, trials, values, columns, nnz, row, slack_t, size,
               step.project, scratch, &entry.coefficient, &entry.shift_before) != OK:
        return TOO_WIDE
    entry.shift_after = <int32_t> (space.of.shift[l] - shift - entry.shift_before)
    space.of.corrections[l] += 1
    space.of.bar[l] = raise_bar(rule, space, l)
    entry.label = <int32_t> l
    entry.start = trials - space.of.idle[l]
    entry.unit = unit(space, l)
    return OK


def set_bars(LinearSpace space, FirstOrderRule rule):
    """Put the rule's threshold before every label that is still learning."""
    cdef Py_ssize_t l
    for l in range(space.c.n_labels):
        space.c.of.bar[l] = raise_bar(&rule.rule, &space.c, l)


def train(LinearSpace space, FirstOrderRule rule, state_t[::1] t, state_t[::1] g,
          state_t[::1] acc, const value_t[::1] data, const index_t[::1] indices,
          const index_t[::1] indptr, const int64_t[::1] codes, const double[::1] weights,
          const double[:, ::1] class_weight, const int64_t[::1] order, Py_ssize_t start,
          Py_ssize_t stop, Py_ssize_t first_label, Py_ssize_t last_label, int64_t trials,
          int64_t max_corrections, bint check, int64_t[::1] place):
    """Trials ``start`` to ``stop - 1`` of one epoch, for labels first_label..last_label-1.

    Parameters
    ----------
    t, g, acc : arrays of `space`
    codes : ndarray of shape (n_rows,)
        Class of each row; label l is +1 where it equals l (where it is 1, for a lone label).
    weights : ndarray of shape (n_rows,) or None
        Multiply the step; 0: the row is no trial.
    class_weight : ndarray of shape (2, n_labels)
        Multiplies the step of each label's negative and positive rows.
    order : ndarray of shape (n_trials,) or None
        Row of each trial; None: as they come.
    trials : int
        ``space.trials`` before the call. Calls for other labels may be under way, and the one
        for label 0 brings ``space.trials`` up to date.
    max_corrections : int
        A label stops learning after that many; -1: never.
    check : bool
        Whether rows are checked before they are used.
    place : ndarray of shape (n_rows,) or None
        Where each row stands in the log's pool, -1: nowhere yet; None: nothing is logged.

    Returns
    -------
    status : int
    row : int
        The row that stopped the loop, or -1.
    trials : int
        How many trials there were in all by then.
    """
    cdef Space* c = &space.c
    cdef const Rule* r = &rule.rule
    cdef CorrectionLog log = space.log
    cdef Correction entry
    cdef vector[double] scratch
    cdef vector[int64_t] table
    cdef RowScale scale
    cdef Py_ssize_t i, j, l, row = -1, nnz, n_features = space.n_features
    cdef Py_ssize_t K = c.n_labels, offset = 1 if K == 1 else 0
    cdef Py_ssize_t bias_column = c.n_coordinates - 1
    cdef int status = OK, learning = 0
    cdef bint by_row = r.scaling == BY_ROW, flat = threshold(r, 1) == 0.0, measured, present, unscored
    cdef bint positive
    cdef double y, weight = 1.0, bound, margin, dot
    cdef double* slack_t = NULL
    cdef const value_t* values
    cdef const index_t* columns
    cdef const int64_t* rows = &order[0] if order is not None else NULL
    cdef const double* row_weight = &weights[0] if weights is not None else NULL
    cdef int64_t* pool = &place[0] if place is not None else NULL
    cdef state_t* tp = &t[0]
    cdef state_t* gp = &g[0]
    cdef state_t* accp = &acc[0] if c.averaged else NULL
    cdef double* out = <double*> malloc(K * sizeof(double))
    if out == NULL:
        raise MemoryError()
    for l in range(first_label, last_label):
        learning += c.of.stopped[l] < 0
    try:
        with nogil:
            for i in range(start, stop):
                if learning == 0:
                    status = ALL_STOPPED
                    break
                row = rows[i] if rows != NULL else i
                j = -1
                if i + AHEAD < stop:
                    j = rows[i + AHEAD] if rows != NULL else i + AHEAD
                    prefetch(&codes[0] + j)
                    if row_weight != NULL:
                        prefetch(row_weight + j)
                    if rows != NULL and i + 2 * AHEAD < stop:
                        prefetch(&indptr[0] + rows[i + 2 * AHEAD])
                values = &data[0] + indptr[row]
                columns = &indices[0] + indptr[row]
                nnz = indptr[row + 1] - indptr[row]
                if K == 1:
                    status = score_alone(
                        out, gp, values, columns, nnz, n_features, c.bias, check,
                        &data[0] + indptr[j] if j >= 0 else NULL,
                        &indices[0] + indptr[j] if j >= 0 else NULL,
                        indptr[j + 1] - indptr[j] if j >= 0 else 0,
                    )
                else:
                    if j >= 0:
                        prefetch_span(&indices[0] + indptr[j], &indices[0] + indptr[j + 1])
                        prefetch_span(&data[0] + indptr[j], &data[0] + indptr[j + 1])
                    if check:
                        status = check_row(values, columns, nnz, n_features)
                unscored = K > 1
                if status == NOT_CANONICAL and not has_repeats(columns, nnz, table):
                    status = OK
                    unscored = True
                if status != OK:
                    break
                if row_weight != NULL:
                    if row_weight[row] == 0.0:
                        continue
                    weight = row_weight[row]
                if unscored:
                    scores(out, gp, K, first_label, last_label, values, columns, nnz, c.bias,
                           bias_column)
                if c.slack:
                    slack_t = c.slack_t + row * K
                    for l in range(first_label, last_label):
                        dot = raised(&c.link, fabs(slack_t[l])) * c.slack
                        out[l] += dot if slack_t[l] >= 0.0 else -dot
                bound = 1.0
                if by_row and not flat:
                    # ||x||_p <= ||x||_2: most trials pass without the p-norm. Below SMALL the
                    # squares may have underflowed.
                    bound = two_norm(values, nnz, c.bias, c.slack) * (1.0 + 1e-12)
                    if bound < 1e-140:
                        bound = INFINITY
                measured = False
                for l in range(first_label, last_label):
                    positive = codes[row] == l + offset
                    y = 1.0 if positive else -1.0
                    dot = out[l]
                    margin = y * c.of.sigma[l] * dot
                    if margin > c.of.bar[l] * bound and SMALL < fabs(dot) < LARGE:
                        continue
                    if not measured:
                        present = measure(&scale, &c.p, values, nnz, c.bias, c.slack)
                        measured = True
                    if not present:
                        break
                    if not fires(r, c, tp, l, y, dot, values, columns, nnz, &scale, slack_t):
                        continue
                    if class_weight[positive, l] == 0.0:
                        continue
                    if <Py_ssize_t> scratch.size() <= nnz:
                        scratch.resize(2 * nnz + 1)
                    status = correct(r, c, tp, gp, accp, l, y,
                                     weight * class_weight[positive, l], trials, values, columns,
                                     nnz, &scale, slack_t, scratch.data(), &entry)
                    if status != OK:
                        break
                    if pool != NULL:
                        if pool[row] < 0:
                            pool[row] = log.add_row(values, columns, nnz, c.bias, bias_column,
                                                    scale.factor)
                        entry.row = pool[row]
                        log.corrections.push_back(entry)
                    if c.of.corrections[l] == max_corrections:
                        c.of.stopped[l] = trials + 1
                        c.of.bar[l] = -INFINITY
                        learning -= 1
                if status != OK:
                    break
                trials += 1
    finally:
        free(out)
        if first_label == 0:
            space.trials = trials
    return status, (row if status not in (OK, ALL_STOPPED) else -1), trials


def shuffle(int64_t[::1] order, uint64_t seed):
    """A random permutation, in place: Fisher and Yates's, driven by SplitMix64."""
    cdef Py_ssize_t i, n = order.shape[0]
    cdef uint64_t z, j
    cdef int64_t kept
    with nogil:
        for i in range(n - 1, 0, -1):
            seed += 0x9E3779B97F4A7C15u
            z = seed
            z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u
            z = (z ^ (z >> 27)) * 0x94D049BB133111EBu
            z ^= z >> 31
            # The high half of 32 bits times the range: biased by less than 2**-32 * n.
            j = ((z >> 32) * <uint64_t> (i + 1)) >> 32
            kept = order[i]
            order[i] = order[j]
            order[j] = kept
