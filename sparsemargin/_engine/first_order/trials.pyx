"""The training loop: trials over rows for any rule, with one-vs-rest vectors or a joint model.

A trial does not depend on the rule. It tests ``y w.x <= threshold`` (times ``||x||_p`` if instances
are divided by their own norm), and calls the rule only if the test fires. One-vs-rest vectors are
tested separately. A joint model is tested once per row, with the output of the true class minus the
largest output of the other classes: ``W.Phi``. Phi contains the row at the true class and its
negative at that other class, so ``||Phi||_p = 2**(1/p) ||x||_p``, and only these two classes
change.
"""

from libc.math cimport INFINITY, NAN, fabs, isfinite, ldexp, pow, sqrt
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libcpp.vector cimport vector

import numpy as np

from sparsemargin._engine.first_order.instance cimport (
    Instance, Workspace, make_instance, make_pair
)
from sparsemargin._engine.core.vectors cimport (
    FirstOrderRule, Space, answer, count_correction, mix, next_threshold, refit, scaled_step,
    tighten, trial_of, unit
)
from sparsemargin._engine.core.stored_outputs cimport (
    StoredOutputs, place_of_trial, stored_outputs_of
)
from sparsemargin._engine.first_order.linear cimport (
    Coordinates, Move, find_variances, keep_in_window, sum_afresh, take_step, weigh
)
from sparsemargin._engine.core.rules cimport (
    BY_ROW, BY_RUNNING_MAX, FREE, ONTO_SPHERE, Rule, Step, Trial, has_margin, minds_repeats,
    plain_step, starts_from_first_row
)
from sparsemargin._engine.first_order.spaces cimport JointState, LinearState
from sparsemargin._engine.core.log cimport Correction
from sparsemargin._engine.numerics.arithmetic cimport link, shuffle_rows
from sparsemargin._engine.numerics.simd cimport first_firing, is_outscored, may_fire
from sparsemargin._engine.rows.csr cimport (
    AHEAD, ALL_STOPPED, DOUBLE_INT32, FLOAT_INT32, FLOAT_INT64, NOT_FINITE, OK,
    LEAST_SQUARE, OUT_OF_RANGE, TOO_WIDE, Csr, Row, Rows, RowScale, bound_of_norm, check_row,
    has_repeats, index_t, prefetch, prefetch_row, state_t, take_squares, value_t
)
from sparsemargin._engine.rows.scores cimport (
    BAD_COLUMN, Weights, score, score_alone, weights_of
)

cdef extern from *:
    """
    #include <cstdint>
    // Several threads may determine at the same time whether a row has duplicate columns.
    static inline uint8_t sm_read_shared(const uint8_t *of_row) {
        return __atomic_load_n(of_row, __ATOMIC_RELAXED);
    }
    static inline void sm_write_shared(uint8_t *of_row, uint8_t found) {
        __atomic_store_n(of_row, found, __ATOMIC_RELAXED);
    }
    """
    uint8_t read_shared "sm_read_shared"(const uint8_t* of_row) noexcept nogil
    void write_shared "sm_write_shared"(uint8_t* of_row, uint8_t found) noexcept nogil

cdef enum:
    FEWEST_AT_ONCE = 16  # fewest vectors that are tested with SIMD instructions
    TINY = -900  # exponent of rows below which scores may lose terms

# An output is rejected as TOO_WIDE unless the product of the norms is in (LEAST, 1 / LEAST).
cdef double LEAST = ldexp(1.0, -900)
# Smaller scores may have lost terms to underflow, and are recomputed with the scaled row.
cdef double LOSSY = 1e-270

cdef enum Repeats:  # whether a row has duplicate columns
    UNKNOWN
    NONE
    SOME


cdef class Job:
    """The data that trials on the rows of a task need, as typed pointers.

    Parameters
    ----------
    space : LinearState or JointState
    rule : FirstOrderRule
    rows : Csr
    task : Task
        With `codes`, vector l is positive for rows of code l (of code 1, for a single vector). With
        `positives`, it is positive for rows whose list has l. `weights` multiplies the steps, and
        `class_weight` the steps of each vector's negative and positive rows.
    """

    cdef LinearState space
    cdef Rule rule
    cdef readonly Csr rows
    cdef list arrays  # owners of the memory behind the pointers
    cdef bint is_joint
    cdef Py_ssize_t n_scores  # number of outputs per row
    cdef Py_ssize_t width  # n_scores plus padding
    cdef Py_ssize_t stride  # distance between the numbers of two consecutive coordinates
    cdef double bias
    cdef double stretch  # ||Phi||_p / ||x||_p
    cdef bint normed  # whether tests multiply the threshold by the norm of the row
    cdef bint squares  # whether the norm is computed along with the score
    cdef const int64_t* codes
    cdef const int64_t* starts  # NULL: each row has one class
    cdef const int64_t* labels
    cdef const double* weights  # NULL: all are 1
    cdef const double* class_weight
    cdef uint8_t* repeats  # `Repeats` of each row; NULL: no duplicate columns, or they do no harm
    cdef StoredOutputs stored
    cdef int64_t* logged  # index of each row in the log, -1: not stored; NULL: no log

    def __init__(self, LinearState space, FirstOrderRule rule, Csr rows, task):
        cdef JointState joint
        cdef const int64_t[::1] codes = task.codes, starts, labels
        cdef const double[::1] weights
        cdef const double[:, ::1] class_weight = task.class_weight
        cdef uint8_t[::1] repeats
        cdef int64_t[::1] logged
        self.space, self.rows, self.rule = space, rows, rule.rule
        self.is_joint = isinstance(space, JointState)
        self.n_scores, self.width, self.bias = space.c.n_vectors, space.width, space.c.bias
        self.stretch, self.stride = 1.0, space.doubles.stride
        if self.is_joint:
            joint = space
            self.n_scores = self.width = self.stride = joint.n_classes
            self.bias, self.stretch = joint.rho, pow(2.0, 1.0 / space.c.p.exponent)
        self.normed = self.rule.scaling == BY_ROW and has_margin(&self.rule)
        self.squares = self.normed and self.n_scores == 1 and space.c.p.exponent == 2.0
        self.codes, self.class_weight = &codes[0], &class_weight[0, 0]
        if task.positives is not None:
            starts, labels = task.positives
            self.starts = &starts[0]
            self.labels = &labels[0] if labels.shape[0] else NULL
        if task.weights is not None:
            weights = task.weights
            self.weights = &weights[0]
        self.arrays = [task]
        self.stored = stored_outputs_of(task.progress)
        merges = (minds_repeats(&self.rule) or space.c.p.exponent != 2.0 or space.c.averaged
                  or space.log is not None or self.is_joint)
        if merges and not task.distinct:
            repeats = np.full(len(codes), UNKNOWN, np.uint8)
            self.repeats = &repeats[0]
            self.arrays.append(repeats)
        if space.log is not None:
            logged = np.full(len(codes), -1, np.int64)
            self.logged = &logged[0]
            self.arrays.append(logged)

    def run(self, order, seed, span, Py_ssize_t n_passes, vectors, int64_t trials, bint check):
        """Run some epochs.

        Parameters
        ----------
        order : ndarray of shape (n_trials,) or None
            Row of each trial; None: the order of the rows.
        seed : int or None
            The order is shuffled before every epoch except the first, with this seed plus the
            number of epochs before; None: it is never shuffled.
        span : tuple of int
            The first trial of an epoch, and one past its last trial.
        n_passes : int
            Number of epochs, unless one of them makes no correction.
        vectors : tuple of int
            The first vector to train, and one past the last. Calls for other vectors may run at the
            same time; the call for vector 0 updates ``space.trials``.
        trials : int
            ``space.trials`` before the call.
        check : bool
            Whether to check rows before they are used.

        Returns
        -------
        Call
            How the call ended.
        """
        cdef Call call = Call(self, order, seed, span, n_passes, vectors, trials, check)
        with nogil:
            if self.space.is_single:
                learn_by_types(self, call, self.space.singles)
            else:
                learn_by_types(self, call, self.space.doubles)
        if call.first == 0:
            self.space.trials = call.trials
        return call


cdef class Call:
    """One call of the training loop.

    Attributes
    ----------
    status : int
    row : int
        The row at which training stopped, if the status is an error.
    trials : int
        Number of trials of the space after the call.
    passes : int
        Number of completed epochs.
    converged : bool
        Whether the last epoch made no correction.
    mistakes : int
        Number of rows whose class was predicted wrongly before their trial. Counted only if one
        call trains all vectors and each row has one class.
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
    # For `count_mistakes`, per trial: the largest output if another call trains the vector of the
    # row's class; otherwise the output of that vector, or NaN if another vector outscores it.
    cdef double[::1] largest
    cdef int64_t before  # number of trials before the call
    cdef uint64_t seed
    # Buffers for the current row.
    cdef vector[double] scores, signs, units
    cdef RowScale scale  # norm 0: not measured yet
    cdef vector[double] a, b, made  # for stored outputs: factors and weights of the hypothesis
    cdef Workspace work

    def __init__(self, Job job, order, seed, span, n_passes, vectors, trials, check):
        self.start, self.stop = span
        self.first, self.last = vectors
        self.n_passes, self.trials, self.check = n_passes, trials, check
        if order is not None:
            self.by_trial = order
            self.order = &self.by_trial[0]
        self.shuffles = seed is not None
        self.seed = seed or 0
        self.before = trials
        self.counts = job.starts == NULL and self.last - self.first == job.space.c.n_vectors
        if job.starts == NULL and not self.counts:
            self.largest = np.full(self.stop - self.start, -np.inf)
        self.limited = job.space.c.vectors[self.first].limit >= 0
        self.scores.resize(job.width)
        self.signs.assign(job.n_scores, -1.0)
        self.units.resize(job.n_scores)
        self.a.resize(job.n_scores)
        self.b.resize(job.n_scores)
        self.made.resize(job.n_scores)


# ----------------------------------------------------------------------------------- the passes

cdef int learn_by_types(Job job, Call call, const Coordinates[state_t]& at) except -1 nogil:
    if job.rows.types == FLOAT_INT32:
        call.status = make_passes(job, call, at, job.rows.float_int32)
    elif job.rows.types == FLOAT_INT64:
        call.status = make_passes(job, call, at, job.rows.float_int64)
    elif job.rows.types == DOUBLE_INT32:
        call.status = make_passes(job, call, at, job.rows.double_int32)
    else:
        call.status = make_passes(job, call, at, job.rows.double_int64)
    return 0


cdef int make_passes(Job job, Call call, const Coordinates[state_t]& at,
                     const Rows[value_t, index_t]& rows) except -1 nogil:
    cdef int status = ALL_STOPPED if call.limited and not is_learning(job, call) else OK
    cdef int64_t before
    while call.passes < call.n_passes and not call.converged and status == OK:
        if call.passes > 0 and call.shuffles:
            shuffle_rows(call.order, call.by_trial.shape[0], call.seed + call.passes)
        before = corrections_of(job, call)
        status = make_pass(job, call, at, rows)
        if status == OK:
            call.passes += 1
            call.converged = corrections_of(job, call) == before
    return status


cdef int make_pass(Job job, Call call, const Coordinates[state_t]& at,
                   const Rows[value_t, index_t]& rows) except -1 nogil:
    cdef Py_ssize_t i, next_row, later_row
    cdef int status = OK
    cdef Row[value_t, index_t] row
    for i in range(call.start, call.stop):
        call.row = call.order[i] if call.order != NULL else i
        next_row, later_row = min(i + 1, call.stop - 1), min(i + AHEAD, call.stop - 1)
        if call.order != NULL:
            prefetch(rows.indptr + call.order[min(i + 2 * AHEAD, call.stop - 1)])
            next_row, later_row = call.order[next_row], call.order[later_row]
        prefetch_targets(job, next_row, later_row)
        row = rows.at(call.row)
        status = read_row(job, call, at, row, rows.at(next_row), rows.at(later_row))
        if status != OK:
            return status
        store_outputs(job, call, at, row)
        if job.is_joint:
            status = try_classes(job, call, at, row)
        else:
            status = try_vectors(job, call, at, row)
        if status != OK:
            return status
        call.trials += 1
        if call.limited and not is_learning(job, call):
            return ALL_STOPPED
    return OK


cdef inline void prefetch_targets(Job job, Py_ssize_t next_row,
                                 Py_ssize_t later_row) noexcept nogil:
    """Prefetch the labels, weights and coordinates of later rows."""
    cdef const Space* c = &job.space.c
    if job.starts != NULL:
        prefetch(job.starts + later_row)
        prefetch(job.labels + job.starts[next_row])
    else:
        prefetch(job.codes + later_row)
    if job.weights != NULL:
        prefetch(job.weights + later_row)
    if c.slack_t != NULL:
        prefetch(c.slack_t + later_row * c.n_vectors)
    if c.multipliers != NULL:
        prefetch(c.multipliers + later_row * c.n_vectors)
        prefetch(c.scales + later_row)


cdef inline int read_row(Job job, Call call, const Coordinates[state_t]& at,
                         const Row[value_t, index_t]& row, const Row[value_t, index_t]& next,
                         const Row[value_t, index_t]& later) noexcept nogil:
    """Check the row and score it; prefetch a later row, and the weights of the next one."""
    cdef Py_ssize_t l, n_features = job.rows.n_features
    cdef Py_ssize_t first = call.first, last = call.last
    cdef double* scores = call.scores.data()
    cdef double square
    cdef int status
    cdef const state_t* of_bias = at.g + n_features * job.stride
    cdef Weights[state_t] weights
    call.scale.norm = 0.0
    if job.is_joint:
        first, last = 0, job.n_scores
    weights = weights_of(<const state_t*> at.g, job.stride, n_features, first, last,
                         job.width if last == job.n_scores else last)
    if job.n_scores == 1:
        status = score_alone(scores, &square if job.squares else NULL, LEAST_SQUARE, weights,
                             n_features, call.check, row, later)
        if status != OK:
            return OUT_OF_RANGE if status == BAD_COLUMN else NOT_FINITE
        if job.squares:
            take_squares(&call.scale, square, job.bias, job.space.c.slack)
    else:
        prefetch_row(later)
        if call.check:
            status = check_row(row, n_features)
            if status != OK:
                return status
        score(scores + first, weights, row, next)
    if job.bias:
        for l in range(first, last):
            scores[l] += job.bias * of_bias[l]
    return OK


cdef inline int64_t corrections_of(Job job, Call call) noexcept nogil:
    cdef Py_ssize_t l
    cdef int64_t total = 0
    for l in range(call.first, call.last):
        total += job.space.c.vectors[l].corrections
    return total


cdef inline bint is_learning(Job job, Call call) noexcept nogil:
    cdef Py_ssize_t l
    for l in range(call.first, call.last):
        if job.space.c.vectors[l].stopped < 0:
            return True
    return False


include "trial.pxi"


# ----------------------------------------------------------------------------------- from Python

def count_mistakes(list calls, const int64_t[::1] codes):
    """Number of rows whose class was predicted wrongly before their trial. The calls have trained
    different vectors, in order, on the same rows; `codes` has the class of each trial."""
    cdef Py_ssize_t i, n = codes.shape[0]
    cdef double[::1] own = np.empty(n)  # output for the class of the row, NaN if mistaken
    cdef double output
    cdef Call call
    for call in calls:
        for i in range(n):
            if call.first <= codes[i] < call.last:
                own[i] = call.largest[i]
    for call in calls:
        for i in range(n):
            output = call.largest[i]
            # Among equal outputs, the first class wins.
            if output > own[i] or (output == own[i] and call.last <= codes[i]):
                own[i] = NAN
    return int(np.isnan(own).sum())


def add_rows(LinearState space, Csr rows, Py_ssize_t l, const double[::1] multipliers,
             double[::1] scores):
    """Add the rows times their multipliers to vector l, for p = 2, and recompute S. Fill `scores`
    with the scores of the rows, including the soft-margin coordinates."""
    if space.is_single:
        add_rows_to(space, space.singles, rows, l, multipliers, scores)
    else:
        add_rows_to(space, space.doubles, rows, l, multipliers, scores)


cdef add_rows_to(LinearState space, const Coordinates[state_t]& at, Csr rows, Py_ssize_t l,
                 const double[::1] multipliers, double[::1] scores):
    cdef Space* c = &space.c
    with nogil:
        if rows.types == FLOAT_INT32:
            add_and_score(c, at, rows.float_int32, l, &multipliers[0], &scores[0])
        elif rows.types == FLOAT_INT64:
            add_and_score(c, at, rows.float_int64, l, &multipliers[0], &scores[0])
        elif rows.types == DOUBLE_INT32:
            add_and_score(c, at, rows.double_int32, l, &multipliers[0], &scores[0])
        else:
            add_and_score(c, at, rows.double_int64, l, &multipliers[0], &scores[0])


cdef void add_and_score(Space* space, const Coordinates[state_t]& at,
                        const Rows[value_t, index_t]& rows, Py_ssize_t l,
                        const double* multipliers, double* scores) noexcept nogil:
    cdef double before = slack_squares(space, l)
    cdef Weights[state_t] weights = weights_of(
        <const state_t*> at.t, at.stride, space.n_coordinates, l, l + 1, l + 1)
    cdef const state_t* of_bias = at.t + (space.n_coordinates - 1) * at.stride + l
    cdef Py_ssize_t i
    add_multiples(space, at, rows, l, multipliers)
    sum_afresh(space, at, l, l + 1)
    space.vectors[l].S_slack += slack_squares(space, l) - before
    refit(space, l, FREE)
    keep_in_window(space, at, l)
    tighten(space.vectors + l, 0.0)
    for i in range(rows.n):
        score(scores + i, weights, rows.at(i), rows.at(min(i + 1, rows.n - 1)))
        if space.bias:
            scores[i] += space.bias * of_bias[0]
        if space.slack:
            scores[i] += space.slack_t[i * space.n_vectors + l] * space.slack


cdef void add_multiples(Space* space, const Coordinates[state_t]& at,
                        const Rows[value_t, index_t]& rows, Py_ssize_t l,
                        const double* multipliers) noexcept nogil:
    cdef Py_ssize_t i, a
    cdef state_t* t = at.t + l
    for i in range(rows.n):
        if multipliers[i] == 0.0:
            continue
        for a in range(rows.indptr[i], rows.indptr[i + 1]):
            t[rows.indices[a] * at.stride] += <state_t> (multipliers[i] * rows.data[a])
        if space.bias:
            t[(space.n_coordinates - 1) * at.stride] += <state_t> (multipliers[i] * space.bias)
        if space.slack:
            space.slack_t[i * space.n_vectors + l] += multipliers[i] * space.slack


cdef double slack_squares(const Space* space, Py_ssize_t l) noexcept nogil:
    cdef Py_ssize_t j
    cdef double of_row, total = 0.0
    for j in range(space.n_slack):
        of_row = space.slack_t[j * space.n_vectors + l]
        total += of_row * of_row
    return total


include "outputs.pxi"
