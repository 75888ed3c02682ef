"""The loop: trials over rows, for any rule, of labels side by side or of a joint machine.

A trial knows no algorithm. It tests ``y w.x <= threshold`` (times ``||x||_p`` where instances are
measured by their own norm), and speaks to the rule only where the test fires. Labels are tested
each for itself. A joint machine is tested once a row, by the output of its class less that of the
strongest other one: ``W.Phi``, Phi being the row in the place of its class and its opposite in
that of the rival, so that ``||Phi||_p = 2**(1/p) ||x||_p`` and only these two classes move.
"""

from libc.math cimport INFINITY, isfinite, ldexp, pow, sqrt
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libcpp.vector cimport vector

import numpy as np

from sparsemargin._engine.first_order.labels cimport (
    FirstOrderRule, FirstOrderSpace, Label, Space, answer, next_threshold, settle, trial_of, unit
)
from sparsemargin._engine.first_order.instance cimport (
    Instance, Workspace, make_instance, make_pair
)
from sparsemargin._engine.first_order.linear cimport Coordinates, Move, take_step
from sparsemargin._engine.first_order.rules cimport (
    BY_ROW, ONTO_SPHERE, Rule, Step, Trial, keeps_multipliers, starts_from_first_row, threshold
)
from sparsemargin._engine.first_order.spaces cimport JointSpace, LinearSpace
from sparsemargin._engine.hypotheses.log cimport Correction
from sparsemargin._engine.numerics.arithmetic cimport link
from sparsemargin._engine.numerics.arithmetic cimport shuffle_rows
from sparsemargin._engine.numerics.vectors cimport first_firing, is_outscored, may_fire
from sparsemargin._engine.rows.csr cimport (
    AHEAD, DOUBLE_INT32, DOUBLE_INT64, FLOAT_INT32, FLOAT_INT64, Csr, Row, Rows, RowScale,
    bound_of_norm, check_row, has_repeats, measure, prefetch, send_for_row
)
from sparsemargin._engine.rows.scores cimport (
    BAD_COLUMN, BAD_VALUE, Weights, score, score_alone, weights_of
)
from sparsemargin._engine.rows.csr cimport (
    ALL_STOPPED, NOT_FINITE, OK, OUT_OF_RANGE, TOO_WIDE, index_t, state_t, value_t
)

cdef enum:
    FEWEST_AT_ONCE = 16  # labels, for their tests to be made by vectors

# The smallest size of outputs that are told from 0.
cdef double LEAST = ldexp(1.0, -900)

cdef enum Repeats:  # of columns in a row
    UNKNOWN
    NONE
    SOME


cdef class Trials:
    """What trials of a task need, as typed pointers.

    Parameters
    ----------
    space : LinearSpace or JointSpace
    rule : FirstOrderRule
    rows : Csr
    task : Task
        Its `codes`: label l is +1 where it equals l (where it is 1, for a lone label); or its
        `positives`: where it is among the row's. Its `weights` multiply the step; 0: the row is no
        trial. Its `class_weight` multiplies the step of each label's negative and positive rows.
    distinct : bool
        Whether no row has a column twice.
    """

    cdef LinearSpace space
    cdef FirstOrderRule rule
    cdef readonly Csr rows
    cdef object arrays  # that pointers lead to
    cdef bint is_joint
    cdef Py_ssize_t n_scores  # outputs of a row
    cdef Py_ssize_t width  # numbers from a coordinate's first to the next one's, to score
    cdef double bias
    cdef double stretch  # ||Phi||_p / ||x||_p
    cdef bint normed  # instances are measured by their own norm
    cdef const int64_t* codes
    cdef const int64_t* starts  # NULL: rows have a class
    cdef const int64_t* labels
    cdef const double* weights  # NULL: all 1
    cdef const double* class_weight
    cdef uint8_t* repeats  # of each row; NULL: none
    cdef int64_t* logged  # where each row stands in the log's pool, -1: nowhere yet; NULL: no log

    def __init__(self, LinearSpace space, FirstOrderRule rule, Csr rows, task, bint distinct):
        cdef JointSpace joint
        cdef const int64_t[::1] codes = task.codes, starts, labels
        cdef const double[::1] weights
        cdef const double[:, ::1] class_weight = task.class_weight
        cdef uint8_t[::1] repeats = np.full(len(codes), UNKNOWN, np.uint8)
        cdef int64_t[::1] logged = np.full(len(codes), -1, np.int64)
        self.space, self.rule, self.rows = space, rule, rows
        self.is_joint = isinstance(space, JointSpace)
        self.n_scores, self.width, self.bias = space.c.n_labels, space.width, space.c.bias
        self.stretch = 1.0
        if self.is_joint:
            joint = space
            self.n_scores = self.width = joint.n_classes
            self.bias, self.stretch = joint.rho, pow(2.0, 1.0 / space.c.p.exponent)
        self.normed = rule.rule.scaling == BY_ROW and threshold(&rule.rule, 1) > 0.0
        self.codes, self.class_weight = &codes[0], &class_weight[0, 0]
        if task.positives is not None:
            starts, labels = task.positives
            self.starts, self.labels = &starts[0], &labels[0]
        if task.weights is not None:
            weights = task.weights
            self.weights = &weights[0]
        if not distinct:
            self.repeats = &repeats[0]
        if space.log is not None:
            self.logged = &logged[0]
        self.arrays = task, repeats, logged

    def run(self, order, seed, span, Py_ssize_t n_passes, labels, int64_t trials, bint check):
        """Make some passes.

        Parameters
        ----------
        order : ndarray of shape (n_trials,) or None
            Row of each trial; None: as they come.
        seed : int or None
            Plus the number of passes before it, of the shuffling of the order before every pass
            but the first; None: it stays.
        span : tuple of int
            The first trial of a pass, and the first after its last.
        n_passes : int
            How many to make, unless one of them makes no correction.
        labels : tuple of int
            The first label that learns, and the first after the last. Calls for others may be
            under way; the one for label 0 brings ``space.trials`` up to date.
        trials : int
            ``space.trials`` before the call.
        check : bool
            Whether rows are checked before they are used.

        Returns
        -------
        Call
            How it ended.
        """
        cdef Call call = Call(self, order, seed, span, n_passes, labels, trials, check)
        with nogil:
            if self.space.is_single:
                learn_by_types(self, call, self.space.singles)
            else:
                learn_by_types(self, call, self.space.doubles)
        if call.first == 0:
            self.space.trials = call.trials
        return call


cdef class Call:
    """A call of the loop.

    Attributes
    ----------
    status : int
    row : int
        The row that stopped it, where the status is an error.
    trials : int
        How many there were in all by then.
    passes : int
        Completed.
    converged : bool
        Whether the last of them made no correction.
    mistakes : int
        Rows whose class the vectors, as they were before the trial, predicted wrongly; counted
        where all labels are learned in one call, and rows have a class.
    """

    cdef readonly int status
    cdef readonly Py_ssize_t row
    cdef readonly Py_ssize_t passes
    cdef readonly int64_t trials
    cdef readonly int64_t mistakes
    cdef readonly bint converged
    cdef Py_ssize_t start, stop, n_passes, first, last
    cdef bint check, counts, limited, shuffles
    cdef int64_t[::1] by_trial
    cdef int64_t* order
    cdef uint64_t seed
    # Of the row at hand.
    cdef vector[double] scores, signs, units
    cdef Workspace work

    def __init__(self, Trials task, order, seed, span, n_passes, labels, trials, check):
        self.start, self.stop = span
        self.first, self.last = labels
        self.n_passes, self.trials, self.check = n_passes, trials, check
        if order is not None:
            self.by_trial = order
            self.order = &self.by_trial[0]
        self.shuffles = seed is not None
        self.seed = seed or 0
        self.counts = task.starts == NULL and self.last - self.first == task.space.c.n_labels
        self.limited = task.space.c.labels[self.first].limit >= 0
        self.scores.resize(task.width)
        self.signs.assign(task.n_scores, -1.0)
        self.units.resize(task.n_scores)


# ----------------------------------------------------------------------------------- the passes

cdef int learn_by_types(Trials task, Call call, const Coordinates[state_t]& at) except -1 nogil:
    if task.rows.types == FLOAT_INT32:
        call.status = make_passes(task, call, at, task.rows.float_int32)
    elif task.rows.types == FLOAT_INT64:
        call.status = make_passes(task, call, at, task.rows.float_int64[0])
    elif task.rows.types == DOUBLE_INT32:
        call.status = make_passes(task, call, at, task.rows.double_int32[0])
    else:
        call.status = make_passes(task, call, at, task.rows.double_int64[0])
    return 0


cdef int make_passes(Trials task, Call call, const Coordinates[state_t]& at,
                     const Rows[value_t, index_t]& rows) except -1 nogil:
    cdef int status = OK
    cdef int64_t before
    while call.passes < call.n_passes and not call.converged and status == OK:
        if call.passes > 0 and call.shuffles:
            shuffle_rows(call.order, call.by_trial.shape[0], call.seed + call.passes)
        before = corrections_of(task, call)
        status = make_pass(task, call, at, rows)
        if status == OK:
            call.passes += 1
            call.converged = corrections_of(task, call) == before
    return status


cdef int make_pass(Trials task, Call call, const Coordinates[state_t]& at,
                   const Rows[value_t, index_t]& rows) except -1 nogil:
    cdef Py_ssize_t i, next_row, later_row
    cdef int status = OK
    cdef Row[value_t, index_t] row
    for i in range(call.start, call.stop):
        if call.limited and not is_learning(task, call):
            return ALL_STOPPED
        call.row = call.order[i] if call.order != NULL else i
        next_row, later_row = min(i + 1, call.stop - 1), min(i + AHEAD, call.stop - 1)
        if call.order != NULL:
            prefetch(rows.indptr + call.order[min(i + 2 * AHEAD, call.stop - 1)])
            next_row, later_row = call.order[next_row], call.order[later_row]
        send_for_labels(task, next_row, later_row)
        row = rows.at(call.row)
        status = read_row(task, call, at, row, rows.at(next_row), rows.at(later_row))
        if status != OK:
            return status
        if task.weights != NULL and task.weights[call.row] == 0.0:
            continue
        if task.is_joint:
            status = try_classes(task, call, at, row)
        else:
            status = try_labels(task, call, at, row)
        if status != OK:
            return status
        call.trials += 1
    return OK


cdef inline void send_for_labels(Trials task, Py_ssize_t next_row,
                                 Py_ssize_t later_row) noexcept nogil:
    """Send for what rows to come have besides their entries."""
    cdef const Space* c = &task.space.c
    if task.starts != NULL:
        prefetch(task.starts + later_row)
        prefetch(task.labels + task.starts[next_row])
    else:
        prefetch(task.codes + later_row)
    if task.weights != NULL:
        prefetch(task.weights + later_row)
    if c.slack_t != NULL:
        prefetch(c.slack_t + later_row * c.n_labels)
    if c.multipliers != NULL:
        prefetch(c.multipliers + later_row * c.n_labels)
        prefetch(c.scales + later_row)


cdef inline int read_row(Trials task, Call call, const Coordinates[state_t]& at,
                         const Row[value_t, index_t]& row, const Row[value_t, index_t]& next,
                         const Row[value_t, index_t]& later) noexcept nogil:
    """Check the row and score it, and send for a later one, and for the weights of the next."""
    cdef Py_ssize_t l, n_features = task.rows.n_features
    cdef Py_ssize_t first = call.first, last = call.last
    cdef double* scores = call.scores.data()
    cdef int status
    cdef const state_t* of_bias = at.g + n_features * task.width
    cdef Weights[state_t] weights
    if task.is_joint:
        first, last = 0, task.n_scores
    weights = weights_of(<const state_t*> at.g, task.width, n_features, first, last,
                         last == task.n_scores)
    if task.n_scores == 1:
        status = score_alone(scores, weights, n_features, call.check, row, later)
        if status != OK:
            return OUT_OF_RANGE if status == BAD_COLUMN else NOT_FINITE
    else:
        send_for_row(later)
        if call.check:
            status = check_row(row, n_features)
            if status != OK:
                return status
        score(scores + first, weights, row, next)
    if task.bias:
        for l in range(first, last):
            scores[l] += task.bias * of_bias[l]
    return OK


cdef inline int64_t corrections_of(Trials task, Call call) noexcept nogil:
    cdef Py_ssize_t l
    cdef int64_t total = 0
    for l in range(call.first, call.last):
        total += task.space.c.labels[l].corrections
    return total


cdef inline bint is_learning(Trials task, Call call) noexcept nogil:
    cdef Py_ssize_t l
    for l in range(call.first, call.last):
        if task.space.c.labels[l].stopped < 0:
            return True
    return False


# ------------------------------------------------------------------------- the trial of one row

cdef inline double reach_of(Trials task, Call call, const Row[value_t, index_t]& row) noexcept nogil:
    """Not less than the norm that the row is measured by; known without a power."""
    cdef double bound
    if not task.normed:
        return 1.0
    bound = bound_of_norm(row, task.bias, task.space.c.slack)
    if task.is_joint:
        # The p-norm of Phi is that of the row times 2**(1/p), which is at most this.
        bound *= sqrt(2.0)
    if task.repeats != NULL and task.repeats[call.row] != NONE:
        # Added up, entries come to their 1-norm at most.
        bound *= sqrt(<double> (row.nnz + 2))
    return bound


cdef inline bint is_kept(Trials task, const double* multipliers, Py_ssize_t l) noexcept nogil:
    """Whether the row's multiplier may fall, whatever its output."""
    return (multipliers != NULL and multipliers[l] > 0.0
            and task.space.c.labels[l].stopped < 0)


cdef inline Py_ssize_t next_firing(Trials task, Call call, double reach,
                                   const double* multipliers, Py_ssize_t l) noexcept nogil:
    """The next label from l to look at closely."""
    cdef const Space* c = &task.space.c
    if multipliers == NULL and call.last - l >= FEWEST_AT_ONCE:
        return first_firing(call.scores.data(), call.signs.data(), c.sigma, c.threshold, reach, l,
                            call.last)
    while l < call.last and not (is_kept(task, multipliers, l) or may_fire(
            call.scores.data(), call.signs.data(), c.sigma, c.threshold, reach, l)):
        l += 1
    return l


cdef inline void set_signs(Trials task, Call call, double sign) noexcept nogil:
    """Of the labels of the row at hand."""
    cdef int64_t j, code
    if task.starts != NULL:
        for j in range(task.starts[call.row], task.starts[call.row + 1]):
            call.signs[task.labels[j]] = sign
        return
    code = task.codes[call.row] - (1 if task.n_scores == 1 else 0)
    if code >= 0:
        call.signs[code] = sign


cdef inline bint errs(Trials task, Call call) noexcept nogil:
    """Whether the last vectors, as they are before the trial, predict another class."""
    cdef const Space* c = &task.space.c
    cdef Py_ssize_t l
    cdef int64_t code = task.codes[call.row]
    if task.n_scores == 1:
        return (call.scores[0] >= 0.0) != (code == 1)
    if not c.normalized:
        return is_outscored(call.scores.data(), c.sigma, code, task.n_scores)
    for l in range(task.n_scores):
        call.units[l] = unit(c, l)
    return is_outscored(call.scores.data(), call.units.data(), code, task.n_scores)


cdef int try_labels(Trials task, Call call, const Coordinates[state_t]& at,
                    const Row[value_t, index_t]& row) except -1 nogil:
    """Test every label, correct those whose test fires."""
    cdef Space* c = &task.space.c
    cdef Py_ssize_t l
    cdef double* slack_t = NULL
    cdef int status
    if c.slack_t != NULL:
        slack_t = c.slack_t + call.row * c.n_labels
        for l in range(call.first, call.last):
            call.scores[l] += link(&c.link, slack_t[l]) * c.slack
    if call.counts:
        call.mistakes += errs(task, call)
    set_signs(task, call, 1.0)
    status = correct_labels(task, call, at, row, slack_t)
    set_signs(task, call, -1.0)
    return status


cdef int correct_labels(Trials task, Call call, const Coordinates[state_t]& at,
                        const Row[value_t, index_t]& row, double* slack_t) except -1 nogil:
    """What a row comes to as a vector matters only where a test fires, and only then columns may
    not stand twice."""
    cdef Space* c = &task.space.c
    cdef Py_ssize_t l = call.first - 1
    cdef double* multipliers = NULL
    cdef double y, share, reach = reach_of(task, call, row)
    cdef Instance x
    cdef int status
    x.n = 0
    x.slack_t = slack_t
    if c.multipliers != NULL:
        multipliers = c.multipliers + call.row * c.n_labels
    while True:
        l = next_firing(task, call, reach, multipliers, l + 1)
        if l == call.last:
            return OK
        if find_repeats(task, call, row):
            reach = reach_of(task, call, row)
            l -= 1
            continue
        if x.n == 0 and not open_instance(task, call, row, &x):
            return OK  # a zero row never corrects
        y = call.signs[l]
        share = task.class_weight[(c.n_labels if y > 0.0 else 0) + l]
        if task.weights != NULL:
            share *= task.weights[call.row]
        status = start(task, call, at, l, y, &x)
        if status == OK and share != 0.0:
            status = correct(task, call, at, l, y * call.scores[l], y, share, &x)
        if status != OK:
            return status


cdef int try_classes(Trials task, Call call, const Coordinates[state_t]& at,
                     const Row[value_t, index_t]& row) except -1 nogil:
    """The true class against its strongest rival."""
    cdef Space* c = &task.space.c
    cdef int64_t code = task.codes[call.row]
    cdef Py_ssize_t k, rival = 1 if code == 0 else 0
    cdef double share = task.class_weight[task.n_scores + code]
    cdef double lead
    cdef Instance x
    for k in range(task.n_scores):
        if call.scores[k] > call.scores[rival] and k != code:
            rival = k
    lead = call.scores[code] - call.scores[rival]
    call.mistakes += lead < 0.0 or (lead == 0.0 and rival < code)
    if c.sigma[0] * lead > c.threshold[0] * reach_of(task, call, row):
        return OK
    if task.weights != NULL:
        share *= task.weights[call.row]
    find_repeats(task, call, row)
    x.slack_t = NULL
    if share == 0.0 or not open_instance(task, call, row, &x):
        return OK
    make_pair(call.work, &x, task.n_scores, code, rival)
    x.scale.norm *= task.stretch
    return correct(task, call, at, 0, lead, 1.0, share, &x)


# -------------------------------------------------------------------------------- the correction

cdef inline bint find_repeats(Trials task, Call call,
                              const Row[value_t, index_t]& row) except -1 nogil:
    """See whether a column of the row stands twice, if that is not yet known."""
    if task.repeats == NULL or task.repeats[call.row] != UNKNOWN:
        return False
    task.repeats[call.row] = SOME if has_repeats(row, call.work.marks) else NONE
    return True


cdef inline bint open_instance(Trials task, Call call, const Row[value_t, index_t]& row,
                               Instance* x) except -1 nogil:
    """The row as a correction takes it; False where it is zero."""
    cdef Space* c = &task.space.c
    cdef RowScale* known = c.scales + call.row if c.scales != NULL else NULL
    cdef bint repeats = task.repeats != NULL and task.repeats[call.row] == SOME
    x.bias, x.slack = task.bias, c.slack
    x.bias_column = task.rows.n_features
    return make_instance(call.work, x, &c.p, row, known, repeats)


cdef inline int start(Trials task, Call call, const Coordinates[state_t]& at, Py_ssize_t l,
                      double y, const Instance* x) except -1 nogil:
    """The first row that is not 0 gives the direction to start from, where the rule has one."""
    cdef Space* c = &task.space.c
    cdef Step step
    cdef double norm
    if not starts_from_first_row(&task.rule.rule) or c.labels[l].started:
        return OK
    norm = ldexp(x.scale.norm, x.scale.exponent)
    step = Step(0.0, y / x.scale.norm, ONTO_SPHERE)
    if move(task, call, at, l, x, &step, 1.0 / norm) != OK:
        return TOO_WIDE
    call.scores[l] = y * norm / c.sigma[l]
    return OK


cdef int correct(Trials task, Call call, const Coordinates[state_t]& at, Py_ssize_t l, double score,
                 double y, double share, const Instance* x) except -1 nogil:
    """The exact test, the rule's answer, and the step; `score` is ``y w.x`` without sigma."""
    cdef const Rule* rule = &task.rule.rule
    cdef Space* c = &task.space.c
    cdef double* of_row = NULL
    cdef double mass, reach, norm = ldexp(x.scale.norm, x.scale.exponent)
    cdef double output = c.sigma[l] * score
    cdef bint kept = False
    cdef Step step
    cdef Trial trial
    # No output exceeds the product of the norms; where that leaves a double's range, none tells.
    reach = c.labels[l].norm * (1.0 if rule.scaling == BY_ROW else norm)
    if not isfinite(output) or (c.labels[l].norm > 0.0 and not LEAST < reach < 1.0 / LEAST):
        return TOO_WIDE
    if c.multipliers != NULL:
        of_row = c.multipliers + call.row * c.n_labels + l
        kept = of_row[0] > 0.0 and c.labels[l].stopped < 0
    if not kept and not output <= c.threshold[l] * (norm if rule.scaling == BY_ROW else 1.0):
        return OK
    trial = trial_of(rule, c, l, output, norm, of_row[0] if kept else 0.0)
    if not answer(rule, c.labels + l, &trial, share, &x.scale, &step, &mass):
        return OK
    step.size *= y
    if move(task, call, at, l, x, &step, mass) != OK:
        return TOO_WIDE
    settle(rule, c, l, of_row, mass, call.trials + 1)
    return OK


cdef int move(Trials task, Call call, const Coordinates[state_t]& at, Py_ssize_t l,
              const Instance* x, const Step* step, double mass) except -1 nogil:
    """Let the space take the step, and log how it did."""
    cdef Space* c = &task.space.c
    cdef Move done
    cdef Correction entry
    if take_step(c, at, l, call.trials, x, step, mass, &done) != OK:
        return TOO_WIDE
    if task.logged == NULL:
        return OK
    if task.logged[call.row] < 0:
        task.logged[call.row] = task.space.log.add_row(x.values, x.columns, x.n, 0.0, 0, 1.0)
    entry.row = task.logged[call.row]
    entry.label = <int> l
    entry.start = call.trials - c.labels[l].idle
    entry.coefficient = done.coefficient
    entry.unit = unit(c, l)
    entry.norm = c.labels[l].norm
    entry.shift_before, entry.shift_after = done.shift_before, done.shift_after
    task.space.log.corrections.push_back(entry)
    return OK


# ----------------------------------------------------------------------------------- from Python

def set_thresholds(FirstOrderSpace space, FirstOrderRule rule):
    """Put the rule's threshold before every label that is still learning."""
    cdef Py_ssize_t l
    for l in range(space.c.n_labels):
        space.c.threshold[l] = -INFINITY
        if space.c.labels[l].stopped < 0:
            space.c.threshold[l] = next_threshold(&rule.rule, space.c.labels + l)


def shuffle(int64_t[::1] order, uint64_t seed):
    """A random permutation, in place."""
    with nogil:
        shuffle_rows(&order[0], order.shape[0], seed)
