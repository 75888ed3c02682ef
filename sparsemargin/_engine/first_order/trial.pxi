# The trial of one row and its corrections; included by `trials`.

cdef inline double norm_bound(Job job, Call call, const Row[value_t, index_t]& row) noexcept nogil:
    """An upper bound, without powers, on the norm that multiplies the threshold; 1 if none does."""
    cdef double bound
    if not job.normed:
        return 1.0
    bound = call.scale.norm * (1.0 + 1e-12)
    if not bound > 0.0:
        bound = bound_of_norm(row, job.bias, job.space.c.slack)
    if job.is_joint:
        bound *= job.stretch
    if job.repeats != NULL and read_shared(job.repeats + call.row) != NONE:
        # The norm of a row with summed duplicates is at most its 1-norm.
        bound *= sqrt(<double> (row.nnz + 2))
    return bound


cdef inline bint may_decrease(Job job, const double* multipliers, Py_ssize_t l) noexcept nogil:
    """Return whether the multiplier of the row may decrease, whatever its output is."""
    return (multipliers != NULL and multipliers[l] > 0.0
            and job.space.c.vectors[l].stopped < 0)


cdef inline Py_ssize_t next_firing(Job job, Call call, double reach,
                                   const double* multipliers, Py_ssize_t l) noexcept nogil:
    """The first vector from l on that needs the exact test, or `call.last`."""
    cdef const Space* c = &job.space.c
    if multipliers == NULL and call.last - l >= FEWEST_AT_ONCE:
        return first_firing(call.scores.data(), call.signs.data(), c.sigma, c.threshold, reach, l,
                            call.last)
    while l < call.last and not (may_decrease(job, multipliers, l) or may_fire(
            call.scores.data(), call.signs.data(), c.sigma, c.threshold, reach, l)):
        l += 1
    return l


cdef inline void set_signs(Job job, Call call, double sign) noexcept nogil:
    """Set the signs of the vectors that are positive for the current row."""
    cdef int64_t j, code
    if job.starts != NULL:
        for j in range(job.starts[call.row], job.starts[call.row + 1]):
            call.signs[job.labels[j]] = sign
        return
    code = job.codes[call.row] - (1 if job.n_scores == 1 else 0)
    if code >= 0:
        call.signs[code] = sign


cdef inline bint is_mistaken(Job job, Call call) noexcept nogil:
    """Return whether the vectors before the trial predict a wrong class."""
    cdef const Space* c = &job.space.c
    cdef Py_ssize_t l
    cdef int64_t code = job.codes[call.row]
    if job.n_scores == 1:
        return (call.scores[0] >= 0.0) != (code == 1)
    if not c.normalized:
        return is_outscored(call.scores.data(), c.sigma, code, job.n_scores)
    for l in range(job.n_scores):
        call.units[l] = unit(c, l)
    return is_outscored(call.scores.data(), call.units.data(), code, job.n_scores)


cdef inline double largest_output(Job job, Call call) noexcept nogil:
    """The entry of `Call.largest` for the current row, before the trial."""
    cdef Space* c = &job.space.c
    cdef Py_ssize_t l, first = call.first, last = call.last
    cdef int64_t code = job.codes[call.row]
    cdef const double* units = c.sigma
    cdef double largest = -INFINITY
    if c.normalized:
        for l in range(first, last):
            call.units[l] = unit(c, l)
        units = call.units.data()
    if first <= code < last:
        if is_outscored(call.scores.data() + first, units + first, code - first, last - first):
            return NAN
        return units[code] * call.scores[code]
    for l in range(first, last):
        largest = max(largest, units[l] * call.scores[l])
    return largest


cdef int try_vectors(Job job, Call call, const Coordinates[state_t]& at,
                    const Row[value_t, index_t]& row) except -1 nogil:
    """Test every vector, and correct those whose test fires."""
    cdef Space* c = &job.space.c
    cdef Py_ssize_t l
    cdef double* slack_t = NULL
    cdef int status
    if c.slack_t != NULL:
        slack_t = c.slack_t + call.row * c.n_vectors
        for l in range(call.first, call.last):
            call.scores[l] += link(&c.link, slack_t[l]) * c.slack
    if call.counts:
        call.mistakes += is_mistaken(job, call)
    elif job.starts == NULL:
        call.largest[call.trials - call.before] = largest_output(job, call)
    set_signs(job, call, 1.0)
    status = correct_vectors(job, call, at, row, slack_t)
    set_signs(job, call, -1.0)
    return status


cdef int correct_vectors(Job job, Call call, const Coordinates[state_t]& at,
                        const Row[value_t, index_t]& row, double* slack_t) except -1 nogil:
    """Correct the vectors whose test fires. Before the first of them, the row is measured, and its
    duplicate columns are found."""
    cdef Space* c = &job.space.c
    cdef Py_ssize_t l = call.first - 1
    cdef double* multipliers = NULL
    cdef double reach = norm_bound(job, call, row)
    cdef Instance x
    cdef int status
    x.n = 0
    x.slack_t = slack_t
    if c.multipliers != NULL:
        multipliers = c.multipliers + call.row * c.n_vectors
    while True:
        l = next_firing(job, call, reach, multipliers, l + 1)
        if l == call.last:
            return OK
        if find_repeats(job, call, row):
            reach = norm_bound(job, call, row)
            l -= 1
            continue
        if x.n == 0 and not open_instance(job, call, row, &x):
            return OK  # a zero row never corrects
        status = start(job, call, at, l, call.signs[l], &x)
        if status == OK:
            status = correct(job, call, at, l, call.scores[l], call.signs[l],
                             share_of(job, call, l), &x)
        if status != OK:
            return status


cdef inline double share_of(Job job, Call call, Py_ssize_t l) noexcept nogil:
    """The weight of the row for a vector."""
    cdef double share = job.class_weight[
        (job.space.c.n_vectors if call.signs[l] > 0.0 else 0) + l]
    return share if job.weights == NULL else share * job.weights[call.row]


cdef inline Py_ssize_t strongest_rival(Job job, Call call, int64_t code) noexcept nogil:
    """The class with the largest score among all but the true class."""
    cdef Py_ssize_t k, rival = 1 if code == 0 else 0
    for k in range(job.n_scores):
        if call.scores[k] > call.scores[rival] and k != code:
            rival = k
    return rival


cdef int try_classes(Job job, Call call, const Coordinates[state_t]& at,
                     const Row[value_t, index_t]& row) except -1 nogil:
    """Test the true class against the other class with the largest score."""
    cdef Space* c = &job.space.c
    cdef int64_t code = job.codes[call.row]
    cdef Py_ssize_t k, rival = strongest_rival(job, call, code)
    cdef double share = job.class_weight[job.n_scores + code]
    cdef double lead
    cdef Instance x
    lead = call.scores[code] - call.scores[rival]
    call.mistakes += lead < 0.0 or (lead == 0.0 and rival < code)
    if c.sigma[0] * lead > c.threshold[0] * norm_bound(job, call, row):
        return OK
    if (find_repeats(job, call, row)
            and c.sigma[0] * lead > c.threshold[0] * norm_bound(job, call, row)):
        return OK
    if job.weights != NULL:
        share *= job.weights[call.row]
    x.slack_t = NULL
    if share == 0.0 or not open_instance(job, call, row, &x):
        return OK
    # Scores of such a small row may have underflowed. With lead 0, `correct` computes it again.
    if x.scale.exponent < TINY:
        for k in range(job.n_scores):
            call.scores[k] = scaled_score(<const state_t*> at.g + k, job.n_scores, &x)
        rival, lead = strongest_rival(job, call, code), 0.0
    make_pair(call.work, &x, job.n_scores, code, rival)
    x.scale.norm *= job.stretch
    return correct(job, call, at, 0, lead, 1.0, share, &x)


# ------------------------------------------------------------- outputs for progressive validation

cdef inline void store_outputs(Job job, Call call, const Coordinates[state_t]& at,
                              const Row[value_t, index_t]& row) noexcept nogil:
    """Store the outputs of the hypothesis for the row, before the trial."""
    cdef int64_t j, place = place_of_trial(&job.stored, call.trials)
    cdef Py_ssize_t l, first = call.first, last = job.n_scores if job.is_joint else call.last
    cdef double* outputs
    cdef uint8_t* positive
    if place < 0:
        return
    outputs = job.stored.outputs + place * job.stored.step
    positive = job.stored.positive + place * job.stored.step
    for l in range(first, last):
        mix(&job.space.c, 0 if job.is_joint else l, call.trials, &call.a[l], &call.b[l])
        outputs[l], positive[l] = call.a[l] * call.scores[l], False
    if job.space.c.averaged:
        average_outputs(job, call, at, row, outputs)
    if job.starts != NULL:
        for j in range(job.starts[call.row], job.starts[call.row + 1]):
            if first <= job.labels[j] < last:
                positive[job.labels[j]] = True
    else:
        j = job.codes[call.row] - (1 if job.n_scores == 1 else 0)
        if first <= j < last:
            positive[j] = True
    if first == 0:
        job.stored.steps[place] = 1.0 if job.weights == NULL else job.weights[call.row]


cdef inline void average_outputs(Job job, Call call, const Coordinates[state_t]& at,
                                 const Row[value_t, index_t]& row, double* outputs) noexcept nogil:
    """Set the outputs to those of the averages; their weights are computed entry by entry."""
    cdef Py_ssize_t l, i, j, first = call.first, last = job.n_scores if job.is_joint else call.last
    cdef double value
    cdef state_t* made = <state_t*> call.made.data()
    for l in range(first, last):
        outputs[l] = 0.0
    for j in range(row.nnz + (1 if job.bias else 0)):
        i, value = job.rows.n_features, job.bias
        if j < row.nnz:
            i, value = row.columns[j], row.values[j]
        if job.is_joint:  # the classes are coordinates of the only vector
            for l in range(last):
                weigh(made + l, &job.space.c, at, i * job.stride + l, 0, 1, call.a.data(),
                      call.b.data())
        else:
            weigh(made, &job.space.c, at, i * at.stride, first, last, call.a.data(),
                  call.b.data())
        for l in range(first, last):
            outputs[l] += value * made[l]


# -------------------------------------------------------------------------------- the correction

cdef inline bint find_repeats(Job job, Call call,
                              const Row[value_t, index_t]& row) except -1 nogil:
    """Determine whether the row has duplicate columns; return False if it was known already."""
    if job.repeats == NULL or read_shared(job.repeats + call.row) != UNKNOWN:
        return False
    write_shared(job.repeats + call.row, SOME if has_repeats(row, job.rows.n_features,
                                                             call.work.marks) else NONE)
    return True


cdef inline bint open_instance(Job job, Call call, const Row[value_t, index_t]& row,
                               Instance* x) except -1 nogil:
    """Prepare the row for a correction; False if it is zero."""
    cdef Space* c = &job.space.c
    cdef RowScale* known = &call.scale
    if c.scales != NULL:
        known = c.scales + call.row
    cdef bint repeats = job.repeats != NULL and read_shared(job.repeats + call.row) == SOME
    x.bias, x.slack = job.bias, c.slack
    x.bias_column = job.rows.n_features
    return make_instance(call.work, x, &c.p, row, known, repeats)


cdef inline int start(Job job, Call call, const Coordinates[state_t]& at, Py_ssize_t l,
                      double y, const Instance* x) except -1 nogil:
    """If the rule requires it, start from the direction of the first nonzero row."""
    cdef Space* c = &job.space.c
    cdef Step step
    cdef double norm
    if not starts_from_first_row(&job.rule) or c.vectors[l].started:
        return OK
    norm = ldexp(x.scale.norm, x.scale.exponent)
    step = plain_step(0.0, y / x.scale.norm, ONTO_SPHERE)
    if move(job, call, at, l, x, &step, 1.0 / norm) != OK:
        return TOO_WIDE
    call.scores[l] = y * norm / c.sigma[l]
    if job.rule.scaling == BY_RUNNING_MAX:
        c.vectors[l].largest = norm
        c.threshold[l] = next_threshold(&job.rule, c.vectors + l)
    return OK


cdef inline double scaled_score(const state_t* g, Py_ssize_t stride,
                                const Instance* x) noexcept nogil:
    """The score of the row times its factor, without its soft-margin coordinate."""
    cdef double total = 0.0
    cdef Py_ssize_t j
    for j in range(x.n):
        total += x.values[j] * g[x.columns[j] * stride]
    return total


cdef int correct(Job job, Call call, const Coordinates[state_t]& at, Py_ssize_t l, double score,
                 double y, double share, const Instance* x) except -1 nogil:
    """Make the exact test, and the step of the rule if it fires; `score` is ``w.x`` without
    sigma."""
    cdef const Rule* rule = &job.rule
    cdef Space* c = &job.space.c
    cdef double* of_row = NULL
    cdef double output, largest, mass, norm = ldexp(x.scale.norm, x.scale.exponent)
    cdef bint decreases = False
    cdef Step step
    cdef Trial trial
    if share == 0.0:
        return OK
    if c.multipliers != NULL:
        of_row = c.multipliers + call.row * c.n_vectors + l
        decreases = of_row[0] > 0.0 and c.vectors[l].stopped < 0
    if x.scale.exponent and fabs(score) < LOSSY:
        score = scaled_score(<const state_t*> at.g + l, at.stride, x)
        if x.slack_t != NULL:
            score += link(&c.link, x.slack_t[l]) * x.slack
        if rule.scaling == BY_ROW:
            norm = x.scale.norm
        else:
            score = ldexp(score, x.scale.exponent)
    output = c.sigma[l] * y * score
    # An output is at most the product of the norms. If that overflows, the test is meaningless.
    largest = c.vectors[l].norm * (1.0 if rule.scaling == BY_ROW else norm)
    if not isfinite(output) or (c.vectors[l].norm > 0.0 and not LEAST < largest < 1.0 / LEAST):
        return TOO_WIDE
    if not decreases and output > c.threshold[l] * (norm if rule.scaling == BY_ROW else 1.0):
        return OK
    trial = trial_of(rule, c, l, output, norm, of_row[0] if decreases else 0.0)
    if c.adaptive:
        trial.variance = (share * scaled_step(rule, c.vectors + l, 1.0, &x.scale) ** 2
                          * find_variances(c.vectors + l, at, l, x))
        if not isfinite(trial.variance):
            return TOO_WIDE
    if not answer(rule, c.vectors + l, &trial, share, &x.scale, &step, &mass):
        return OK
    step.size *= y
    if move(job, call, at, l, x, &step, mass) != OK:
        return TOO_WIDE
    count_correction(rule, c, l, of_row, mass, call.trials + 1)
    return OK


cdef int move(Job job, Call call, const Coordinates[state_t]& at, Py_ssize_t l,
              const Instance* x, const Step* step, double mass) except -1 nogil:
    """Let the space take the step, and log the correction."""
    cdef const Space* c = &job.space.c
    cdef Correction entry
    cdef Move done
    if take_step(&job.space.c, at, l, call.trials, x, step, mass, &done) != OK:
        return TOO_WIDE
    if job.logged == NULL:
        return OK
    if job.logged[call.row] < 0:
        job.logged[call.row] = job.space.log.add_row(x.values, x.columns, x.n, 0.0, 0, 1.0)
    entry.row = job.logged[call.row]
    entry.vector = <int> l
    entry.start = call.trials - c.vectors[l].idle
    entry.coefficient = done.coefficient
    entry.unit = unit(c, l)
    entry.norm = c.vectors[l].norm
    entry.shift_before, entry.shift_after = done.shift_before, done.shift_after
    job.space.log.corrections.push_back(entry)
    return OK
