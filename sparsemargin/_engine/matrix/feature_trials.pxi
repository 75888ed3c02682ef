# Trials of a `FeatureSpace` over rows, and its outputs; included by `base`.

cdef int take_row(FeatureSpace space, const RowScale* scale,
                  const Row[value_t, index_t]& row) except -1 nogil:
    """Load the augmented row, divided by its norm. New features get numbers."""
    cdef Py_ssize_t j, column
    cdef double value
    space.x.clear()
    space.columns.clear()
    for j in range(row.nnz + (1 if space.bias else 0)):
        value = space.rows.values.stored(
            (row.values[j] if j < row.nnz else space.bias) * scale.factor / scale.norm)
        if value == 0.0:
            continue
        column = row.columns[j] if j < row.nnz else space.n_coordinates - 1
        if space.numbers[column] == 0:
            space.numbers[column] = space.n_met
            space.n_met += 1
        space.x.push_back(value)
        space.columns.push_back(space.numbers[column])
    return space.widen()


cdef inline double score(FeatureSpace space, const double* weights,
                         const Row[value_t, index_t]& row, double factor=1.0) noexcept nogil:
    """Return ``w.x`` for the augmented row times a factor."""
    cdef double total = 0.0
    cdef Py_ssize_t j
    for j in range(row.nnz):
        total += row.values[j] * factor * weights[space.numbers[row.columns[j]]]
    if space.bias:
        total += space.bias * factor * weights[space.numbers[space.n_coordinates - 1]]
    return total


cdef inline double predict(FeatureSpace space, const Row[value_t, index_t]& row,
                           double output) noexcept nogil:
    """Return ``w.x`` for the augmented row by the hypothesis. `output` is the result of `score`."""
    cdef double value, times, outer, total = 0.0
    cdef Py_ssize_t i, j
    if not space.averaged:
        return space.common * output
    times = (space.trials - space.average.begin) * space.common
    outer = times + (space.average.Z if space.is_final else 0.0)
    for j in range(row.nnz + (1 if space.bias else 0)):
        value = row.values[j] if j < row.nnz else space.bias
        i = space.numbers[row.columns[j] if j < row.nnz else space.n_coordinates - 1]
        total += value * (space.total[i] + (times if i < space.n_inner else outer) * space.w[i])
    return total / max(space.trials, <int64_t> 1)


cdef inline bint test_fires(FeatureSpace space, const Row[value_t, index_t]& row, double step,
                      double output, RowScale* scale) except -1 nogil:
    """Return whether a trial makes a correction, and measure the row in this case.

    `output` is the output of the row up to rounding errors. A zero row never makes a correction.
    """
    cdef double y = copysign(1.0, step)
    cdef bint exact = LEAST_OUTPUT < fabs(output) < 1.0 / LEAST_OUTPUT
    if (exact and y * output > 0.0 and space.threshold == 0.0) or not (
            measure(scale, &space.power, row, space.bias, 0.0)):
        return False
    output = output * scale.factor if exact else score(space, space.w.data(), row, scale.factor)
    return space.must_correct(y * space.common * output / scale.norm)


cdef double make_trials(FeatureSpace space, const Rows[value_t, index_t]& rows,
                        const int64_t[::1] which, const double[::1] steps,
                        const int64_t[::1] numbers, const StoredOutputs* stored,
                        const double* shares, bint mistaken) except? -1.0 nogil:
    cdef Py_ssize_t i
    cdef int64_t place
    cdef double output, products = 0.0
    cdef RowScale scale
    cdef Row[value_t, index_t] row
    for i in range(which.shape[0]):
        if not mistaken and 0 <= space.limit <= space.corrections:
            break
        row = rows.at(which[i])
        products += row.nnz
        output = 0.0 if mistaken else score(space, space.w.data(), row)
        place = place_of_trial(stored, space.trials)
        if place >= 0:
            stored.outputs[place * stored.step] = predict(space, row, output)
            stored.positive[place * stored.step] = copysign(1.0, steps[i]) > 0.0
            if shares != NULL:
                stored.steps[place] = shares[i]
        if steps[i] != 0.0 and (
                measure(&scale, &space.power, row, space.bias, 0.0) if mistaken
                else test_fires(space, row, steps[i], output, &scale)):
            take_row(space, &scale, row)
            space.correct(steps[i], numbers[i])
            products += space.cost()
        space.trials += not mistaken
    return products


def learn_rows(FeatureSpace space, Csr rows, const int64_t[::1] which, const double[::1] steps,
               const int64_t[::1] numbers, progress=None, shares=None, *, bint mistaken=False):
    """Make trials on checked rows, in the given order.

    Parameters
    ----------
    which : ndarray of shape (n_trials,)
        Row of each trial.
    steps : ndarray of shape (n_trials,)
        Step of a correction, with the sign of the label. 0 excludes a correction.
    numbers : ndarray of shape (n_trials,)
        Numbers of the rows in the list of mistakes.
    progress : ProgressiveOutputs or None
        Places for the outputs of this weight vector.
    shares : ndarray of shape (n_trials,) or None
        Factors of the steps due to the weights of the rows, which are stored in `progress`. None if
        another weight vector stores them, possibly in another thread.
    mistaken : bool
        Whether all trials are mistakes that were made elsewhere. They do not count as trials here.

    Returns
    -------
    products : float
        Approximate number of multiplications.
    """
    cdef double made
    cdef StoredOutputs places = stored_outputs_of(progress)
    cdef const double[::1] of_rows
    cdef const double* first = NULL
    if shares is not None and which.shape[0]:
        of_rows = shares
        first = &of_rows[0]
    with nogil:
        if rows.types == FLOAT_INT32:
            made = make_trials(space, rows.float_int32, which, steps, numbers, &places,
                               first, mistaken)
        elif rows.types == FLOAT_INT64:
            made = make_trials(space, rows.float_int64, which, steps, numbers, &places,
                               first, mistaken)
        elif rows.types == DOUBLE_INT32:
            made = make_trials(space, rows.double_int32, which, steps, numbers, &places,
                               first, mistaken)
        else:
            made = make_trials(space, rows.double_int64, which, steps, numbers, &places,
                               first, mistaken)
    return made


cdef void score_all(FeatureSpace space, const Rows[value_t, index_t]& rows,
                    const double* weights, double[:] out) noexcept nogil:
    cdef Py_ssize_t r
    for r in range(rows.n):
        out[r] = score(space, weights, rows.at(r))


def outputs(FeatureSpace space, Csr rows, double[:] out):
    """Write ``w.x`` of each row by the hypothesis to `out`."""
    cdef const double[::1] weights = space.hypothesis()
    with nogil:
        if rows.types == FLOAT_INT32:
            score_all(space, rows.float_int32, &weights[0], out)
        elif rows.types == FLOAT_INT64:
            score_all(space, rows.float_int64, &weights[0], out)
        elif rows.types == DOUBLE_INT32:
            score_all(space, rows.double_int32, &weights[0], out)
        else:
            score_all(space, rows.double_int64, &weights[0], out)
