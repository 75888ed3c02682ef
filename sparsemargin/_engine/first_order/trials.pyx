"""The loop: trials over rows, for any rule.

A trial knows no algorithm. It tests ``y w.x <= bar`` for every label (times ``||x||_p`` where
instances are measured by their own norm), and speaks to the rule only where the test fires.
"""

from libc.math cimport INFINITY, ldexp, sqrt
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libcpp.vector cimport vector

from sparsemargin._engine.first_order.labels cimport FirstOrderSpace, Labels, Space, unit
from sparsemargin._engine.hypotheses.log cimport FORGET, Correction
from sparsemargin._engine.numerics.power cimport link
from sparsemargin._engine.numerics.random cimport shuffle_rows
from sparsemargin._engine.rows.csr cimport (
    AHEAD, RowScale, bound_of_norm, check_row, has_repeats, is_safe, measure, prefetch,
    prefetch_span, as_row
)
from sparsemargin._engine.first_order.rules cimport (
    BY_ROW, ONTO_SPHERE, FirstOrderRule, Rule, Step, Trial, starts_from_first_row,
    threshold
)
from sparsemargin._engine.rows.scores cimport label_scores, score_alone
from sparsemargin._engine.first_order.linear cimport LinearSpace, add_row, rescued_output
from sparsemargin._engine.first_order.storage cimport Block, block_of
from sparsemargin._engine.rows.types cimport (
    ALL_STOPPED, NOT_CANONICAL, OK, TOO_WIDE, index_t, state_t, value_t
)
from sparsemargin._engine.first_order.scaling cimport answer, raise_bar, settle
from sparsemargin._engine.numerics.vectors cimport first_firing, is_outscored, may_fire

cdef enum:
    FEWEST_AT_ONCE = 16  # labels, for their tests to be made by vectors


cdef inline bint fires(const Rule* rule, const Space* space, const state_t* like, Py_ssize_t l,
                       double y, double dot, const value_t* values, const index_t* columns,
                       Py_ssize_t nnz, const RowScale* row,
                       const double* slack_t) noexcept nogil:
    """The exact test, for trials that the quick one could not pass."""
    cdef double bar = space.of.bar[l]
    cdef double measured = row.norm if rule.scaling == BY_ROW else row.factor
    if bar == -INFINITY:
        return False
    # Both factors may be in range and their product not.
    if is_safe(dot) and is_safe(space.of.sigma[l] * dot):
        if rule.scaling == BY_ROW:
            return y * space.of.sigma[l] * dot <= bar * ldexp(row.norm, row.exponent)
        return y * space.of.sigma[l] * dot <= bar
    cdef const state_t* t = <const state_t*> space.at.blocks[block_of(&space.at, l)].t
    return y * rescued_output(space, t, l, values, columns, nnz, row, slack_t) <= bar * measured


cdef int move(LinearSpace whole, const state_t* like, Py_ssize_t l, const Step* step, double mass,
              int64_t trials, const value_t* values, const index_t* columns, Py_ssize_t nnz,
              const RowScale* row, double* slack_t, vector[double]& scratch,
              int64_t* place) except -1 nogil:
    """Let the space take the step, and log how it did."""
    cdef Space* space = &whole.c
    cdef Correction entry
    cdef int64_t shift = space.of.shift[l]
    cdef Block* block = space.at.blocks + block_of(&space.at, l)
    if <Py_ssize_t> scratch.size() <= nnz:
        scratch.resize(2 * nnz + 1)
    if space.at.tiles != NULL:
        whole.storage.open_tiles(l, columns, nnz, space.bias != 0.0)
    if add_row(space, <state_t*> block.t, <state_t*> block.g, <state_t*> block.acc, l, trials,
               values, columns, nnz, row, slack_t, step, mass, scratch.data(),
               &entry.coefficient, &entry.shift_before) != OK:
        return TOO_WIDE
    if place == NULL:
        return OK
    if place[0] < 0:
        place[0] = whole.log.add_row(values, columns, nnz, space.bias, space.n_coordinates - 1,
                                     row.factor)
    entry.row = place[0]
    entry.label = <int32_t> l
    entry.start = trials - space.of.idle[l]
    entry.unit = unit(space, l)
    entry.norm = space.of.norm[l]
    entry.shift_after = <int32_t> (space.of.shift[l] - shift)
    if entry.shift_before != FORGET:
        entry.shift_after -= entry.shift_before
    whole.log.corrections.push_back(entry)
    return OK


cdef inline int read_row(double* out, const state_t* like, const Space* space,
                         Py_ssize_t first_label, Py_ssize_t last_label, const value_t* values,
                         const index_t* columns, Py_ssize_t nnz, Py_ssize_t n_features, bint check,
                         const index_t* next_columns, Py_ssize_t next_nnz,
                         const value_t* later_values, const index_t* later_columns,
                         Py_ssize_t later_nnz) noexcept nogil:
    """Check the row and score it, and send for a later one, and for the weights of the next."""
    cdef int status = OK
    if space.n_labels == 1:
        return score_alone(out, <const state_t*> space.at.blocks[0].g, values, columns, nnz,
                           n_features, space.bias, check, later_values, later_columns, later_nnz)
    prefetch_span(later_values, later_values + later_nnz)
    prefetch_span(later_columns, later_columns + later_nnz)
    if check:
        status = check_row(as_row(values, columns, nnz), n_features)
    if status == OK:
        label_scores(out, like, &space.at, space.n_labels, first_label, last_label, values,
                     columns, nnz, space.bias, n_features, next_columns, next_nnz)
    return status


cdef inline void add_slack(double* out, const Space* space, const double* slack_t,
                           Py_ssize_t first_label, Py_ssize_t last_label) noexcept nogil:
    """The part of the scores that the row's soft-margin coordinate has."""
    cdef Py_ssize_t l
    for l in range(first_label, last_label):
        out[l] += link(&space.link, slack_t[l]) * space.slack


cdef inline Py_ssize_t next_firing(const Space* space, const double* out, const double* signs,
                                   double bound, const double* multipliers, Py_ssize_t l,
                                   Py_ssize_t last_label) noexcept nogil:
    """The next label from l to look at closely: whose quick test fires, or whose multiplier may
    fall."""
    cdef const Labels* of = &space.of
    if multipliers == NULL and last_label - l >= FEWEST_AT_ONCE:
        return first_firing(out, signs, of.sigma, of.bar, bound, l, last_label)
    while l < last_label and not (is_kept(space, multipliers, l)
                                  or may_fire(out, signs, of.sigma, of.bar, bound, l)):
        l += 1
    return l


cdef inline bint is_kept(const Space* space, const double* multipliers,
                         Py_ssize_t l) noexcept nogil:
    return multipliers != NULL and multipliers[l] > 0.0 and space.of.stopped[l] < 0


cdef int decide(const Rule* rule, LinearSpace whole, const state_t* like, double* out,
                const double* signs, double bound, double of_repeats, Py_ssize_t first_label,
                Py_ssize_t last_label,
                double weight, const double[:, ::1] class_weight, int64_t trials,
                const value_t* values, const index_t* columns, Py_ssize_t nnz, double* slack_t,
                double* multipliers, RowScale* known, vector[double]& scratch,
                int64_t* place, unsigned char* distinct, vector[uint32_t]& marks) except -1 nogil:
    """The trial of one row: test every label, correct those whose test fires.

    What a row comes to as a vector matters only now, and only now columns may not stand twice:
    until that is known its norm is at most `of_repeats` times the bound.
    """
    cdef Space* space = &whole.c
    cdef Py_ssize_t l = first_label - 1
    cdef RowScale row
    cdef Step step
    cdef Trial trial
    cdef bint measured = False
    cdef double y, share, mass, reach = bound
    cdef bint kept
    if distinct != NULL and not distinct[0]:
        reach *= of_repeats
    while True:
        l = next_firing(space, out, signs, reach, multipliers, l + 1, last_label)
        if l == last_label:
            break
        if distinct != NULL and not distinct[0]:
            if has_repeats(as_row(values, columns, nnz), marks):
                return NOT_CANONICAL
            distinct[0] = True
            reach = bound
            l -= 1
            continue
        y = signs[l]
        kept = is_kept(space, multipliers, l)
        if not measured:
            if known != NULL and known.norm > 0.0:
                row = known[0]
            elif not measure(&row, &space.p, as_row(values, columns, nnz), space.bias, space.slack):
                return OK  # a zero row never corrects
            elif known != NULL:
                known[0] = row
            measured = True
        if starts_from_first_row(rule) and not space.of.started[l]:
            step = Step(0.0, y / row.norm, ONTO_SPHERE)
            mass = 1.0 / ldexp(row.norm, row.exponent)
            if move(whole, like, l, &step, mass, trials, values, columns, nnz, &row, slack_t,
                    scratch, place) != OK:
                return TOO_WIDE
            out[l] = y * ldexp(row.norm, row.exponent) / space.of.sigma[l]
        share = weight * class_weight[y > 0.0, l]
        if share == 0.0 or not (kept or fires(rule, space, like, l, y, out[l], values, columns,
                                              nnz, &row, slack_t)):
            continue
        trial = Trial(y * space.of.sigma[l] * out[l], space.of.norm[l],
                      ldexp(row.norm, row.exponent), multipliers[l] if kept else 0.0)
        if rule.scaling == BY_ROW:
            trial.output /= trial.norm
            trial.norm = 1.0
        if not answer(rule, space, l, &trial, share, &row, &step, &mass):
            continue
        step.size *= y
        if move(whole, like, l, &step, mass, trials, values, columns, nnz, &row, slack_t, scratch,
                place) != OK:
            return TOO_WIDE
        settle(rule, space, l, multipliers + l if multipliers != NULL else NULL, mass, trials + 1)
    return OK


cdef inline bint errs(const Space* space, const double* out, int64_t positive_label,
                      double* units) noexcept nogil:
    """Whether the last vectors, as they are before the trial, predict another class; `units` is
    scratch."""
    cdef Py_ssize_t l
    if space.n_labels == 1:
        return (out[0] >= 0.0) != (positive_label == 0)
    if not space.normalized:
        return is_outscored(out, space.of.sigma, positive_label, space.n_labels)
    for l in range(space.n_labels):
        units[l] = unit(space, l)
    return is_outscored(out, units, positive_label, space.n_labels)


cdef inline int64_t corrections_of(const Space* space, Py_ssize_t first_label,
                                   Py_ssize_t last_label) noexcept nogil:
    cdef Py_ssize_t l
    cdef int64_t total = 0
    for l in range(first_label, last_label):
        total += space.of.corrections[l]
    return total


cdef inline bint any_learning(const Space* space, Py_ssize_t first_label,
                              Py_ssize_t last_label) noexcept nogil:
    cdef Py_ssize_t l
    for l in range(first_label, last_label):
        if space.of.stopped[l] < 0:
            return True
    return False


def set_bars(FirstOrderSpace space, FirstOrderRule rule):
    """Put the rule's threshold before every label that is still learning."""
    cdef Py_ssize_t l
    for l in range(space.c.n_labels):
        space.c.of.bar[l] = -INFINITY
        if space.c.of.stopped[l] < 0:
            space.c.of.bar[l] = raise_bar(&rule.rule, &space.c, l)


cdef struct Own:  # labels of a row
    const int64_t* labels
    Py_ssize_t n
    int64_t single


cdef inline void find_own(Own* own, Py_ssize_t row, Py_ssize_t n_labels, const int64_t* codes,
                          const int64_t* starts, const int64_t* labels) noexcept nogil:
    if starts != NULL:
        own.labels, own.n = labels + starts[row], starts[row + 1] - starts[row]
        return
    own.single = codes[row] - (1 if n_labels == 1 else 0)
    own.labels, own.n = &own.single, 1 if own.single >= 0 else 0


cdef inline void set_signs(double* signs, double sign, const Own* own) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(own.n):
        signs[own.labels[i]] = sign


def train(LinearSpace space, FirstOrderRule rule, const state_t[::1] like,
          const value_t[::1] data, const index_t[::1] indices,
          const index_t[::1] indptr, const int64_t[::1] codes, const int64_t[::1] starts,
          const int64_t[::1] labels, const double[::1] weights,
          const double[:, ::1] class_weight, int64_t[::1] order, uint64_t seed,
          bint shuffles, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t n_passes,
          Py_ssize_t first_label, Py_ssize_t last_label, int64_t trials, bint check,
          unsigned char[::1] distinct, int64_t[::1] place):
    """Trials ``start`` to ``stop - 1`` of some passes, for labels first_label..last_label-1.

    Parameters
    ----------
    like : ndarray
        Of the type of the coordinates of `space`.
    codes : ndarray of shape (n_rows,)
        Class of each row; label l is +1 where it equals l (where it is 1, for a lone label).
    starts, labels : ndarray of shape (n_rows + 1,) and (n_positives,), or None
        Instead of the codes: label l is +1 where it is among the row's.
    weights : ndarray of shape (n_rows,) or None
        Multiply the step; 0: the row is no trial.
    class_weight : ndarray of shape (2, n_labels)
        Multiplies the step of each label's negative and positive rows.
    order : ndarray of shape (n_trials,) or None
        Row of each trial; None: as they come.
    seed, shuffles : int, bool
        Whether the order is shuffled before every pass but the first, with the seed plus the
        number of passes before it.
    n_passes : int
        How many to make, unless one of them makes no correction.
    trials : int
        ``space.trials`` before the call. Calls for other labels may be under way, and the one
        for label 0 brings ``space.trials`` up to date.
    check : bool
        Whether rows are checked before they are used.
    distinct : ndarray of shape (n_rows,), bool, or None
        Whether no column is known to stand twice in a row; None: in none of them.
    place : ndarray of shape (n_rows,) or None
        Where each row stands in the log's pool, -1: nowhere yet; None: nothing is logged.

    Returns
    -------
    status : int
    row : int
        The row that stopped the loop, or -1.
    trials : int
        How many trials there were in all by then.
    passes : int
        Passes completed.
    converged : bool
        Whether the last of them made no correction.
    mistakes : int
        Rows whose class the vectors, as they were before the trial, predicted wrongly; counted
        where all labels are learned in one call, and rows have a class.
    """
    cdef Space* c = &space.c
    cdef const Rule* r = &rule.rule
    cdef Py_ssize_t K = c.n_labels, n_features = space.n_features
    cdef Py_ssize_t i, j, row = -1, next_row, later_row, passes = 0
    cdef int64_t before
    cdef int status = OK
    cdef int64_t mistakes = 0
    cdef bint counts = last_label - first_label == K and starts is None
    cdef bint limited = c.of.limit[first_label] >= 0
    cdef bint converged = False, normed = r.scaling == BY_ROW and threshold(r, 1) > 0.0
    cdef double bound = 1.0, of_repeats = 1.0
    cdef int64_t* rows = &order[0] if order is not None else NULL
    cdef const double* row_weight = &weights[0] if weights is not None else NULL
    cdef double* slack_t = NULL
    cdef const state_t* kind = &like[0]
    cdef const int64_t* start_of = &starts[0] if starts is not None else NULL
    cdef const int64_t* label_of = &labels[0] if starts is not None else NULL
    cdef unsigned char* known_distinct = NULL
    cdef Own own
    cdef vector[double] out, signs, units, scratch
    cdef vector[uint32_t] marks
    out.resize(space.c.at.n_blocks * space.c.at.width)
    signs.assign(K, -1.0)
    units.resize(K)
    with nogil:
        while passes < n_passes and not converged and status == OK:
            if passes > 0 and shuffles:
                shuffle_rows(rows, order.shape[0], seed + passes)
            before = corrections_of(c, first_label, last_label)
            for i in range(start, stop):
                if limited and not any_learning(c, first_label, last_label):
                    status = ALL_STOPPED
                    break
                row = rows[i] if rows != NULL else i
                next_row, later_row = min(i + 1, stop - 1), min(i + AHEAD, stop - 1)
                if rows != NULL:
                    prefetch(&indptr[0] + rows[min(i + 2 * AHEAD, stop - 1)])
                    next_row, later_row = rows[next_row], rows[later_row]
                prefetch(start_of + later_row if start_of != NULL else &codes[0] + later_row)
                if start_of != NULL:
                    prefetch(label_of + start_of[next_row])
                if row_weight != NULL:
                    prefetch(row_weight + later_row)
                if c.slack:
                    prefetch(c.slack_t + later_row * K)
                if c.multipliers != NULL:
                    prefetch(c.multipliers + later_row * K)
                    prefetch(c.measured + later_row)
                j = indptr[row]
                status = read_row(
                    out.data(), kind, c, first_label, last_label, &data[0] + j, &indices[0] + j,
                    indptr[row + 1] - j, n_features, check,
                    &indices[0] + indptr[next_row], indptr[next_row + 1] - indptr[next_row],
                    &data[0] + indptr[later_row], &indices[0] + indptr[later_row],
                    indptr[later_row + 1] - indptr[later_row],
                )
                if status != OK:
                    break
                if row_weight != NULL and row_weight[row] == 0.0:
                    continue
                if c.slack:
                    slack_t = c.slack_t + row * K
                    add_slack(out.data(), c, slack_t, first_label, last_label)
                find_own(&own, row, K, &codes[0], start_of, label_of)
                if counts:
                    mistakes += errs(c, out.data(), own.single, units.data())
                if distinct is not None:
                    known_distinct = &distinct[row]
                if normed:
                    bound = bound_of_norm(as_row(&data[0] + j, &indices[0] + j, indptr[row + 1] - j), c.bias, c.slack)
                    # Added up, entries come to their 1-norm at most.
                    of_repeats = sqrt(<double> (indptr[row + 1] - j + 2))
                set_signs(signs.data(), 1.0, &own)
                status = decide(
                    r, space, kind, out.data(), signs.data(), bound, of_repeats, first_label,
                    last_label,
                    row_weight[row] if row_weight != NULL else 1.0, class_weight, trials,
                    &data[0] + j, &indices[0] + j, indptr[row + 1] - j, slack_t,
                    c.multipliers + row * K if c.multipliers != NULL else NULL,
                    c.measured + row if c.measured != NULL else NULL, scratch,
                    &place[row] if place is not None else NULL, known_distinct, marks,
                )
                set_signs(signs.data(), -1.0, &own)
                if status != OK:
                    break
                trials += 1
            if status == OK:
                passes += 1
                converged = corrections_of(c, first_label, last_label) == before
    if first_label == 0:
        space.trials = trials
    bad_row = row if status not in (OK, ALL_STOPPED) else -1
    return status, bad_row, trials, passes, converged, mistakes


def shuffle(int64_t[::1] order, uint64_t seed):
    """A random permutation, in place."""
    with nogil:
        shuffle_rows(&order[0], order.shape[0], seed)
