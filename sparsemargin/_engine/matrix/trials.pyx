"""Trials over rows for the spaces of matrix Perceptrons, and their outputs."""

from libc.stdint cimport int64_t

from sparsemargin._engine.matrix.lookahead cimport WIDTH
from sparsemargin._engine.rows.csr cimport RowScale, is_safe, measure, as_row
from sparsemargin._engine.matrix.base cimport SeenSpace, take_row
from sparsemargin._engine.rows.types cimport OK, index_t, value_t


cdef inline double output(SeenSpace space, const double* weights, const value_t* values,
                          const index_t* columns, Py_ssize_t nnz, double factor) noexcept nogil:
    """``w.x`` of the augmented row times factor; the weights stand by place."""
    cdef double total = 0.0
    cdef Py_ssize_t j
    for j in range(nnz):
        total += (values[j] * factor) * weights[space.place[columns[j]]]
    if space.bias:
        total += (space.bias * factor) * weights[space.place[space.n_coordinates - 1]]
    return total


cdef bint is_mistake(SeenSpace space, double y, const value_t* values, const index_t* columns,
                     Py_ssize_t nnz, RowScale* scale) noexcept nogil:
    """Whether ``y w.x <= 0``; the row is then measured. A zero row never is one."""
    cdef double found = y * output(space, space.w.data(), values, columns, nnz, 1.0)
    if found > 0.0 and is_safe(found):
        return False
    if not measure(scale, &space.power, as_row(values, columns, nnz), space.bias, 0.0):
        return False
    if not is_safe(found):
        found = y * output(space, space.w.data(), values, columns, nnz, scale.factor)
    return found <= 0.0


cdef struct Labelled:
    # Of one label: its number, its class, what multiplies its steps, and how rows come.
    int64_t code
    const int64_t* codes
    const double* weights  # NULL: all 1
    double share[2]  # of negative and positive rows
    const int64_t* order  # NULL: as they come


cdef inline int64_t row_of(const Labelled* label, Py_ssize_t i) noexcept nogil:
    return label.order[i] if label.order != NULL else i


cdef inline bint is_trial(const Labelled* label, int64_t row) noexcept nogil:
    return label.weights == NULL or label.weights[row] != 0.0


cdef inline double step_of(const Labelled* label, int64_t row) noexcept nogil:
    """The step a mistake on the row makes, with the sign of its label."""
    cdef bint positive = label.codes[row] == label.code
    cdef double weight = label.weights[row] if label.weights != NULL else 1.0
    return (weight if positive else -weight) * label.share[positive]


cdef int look_ahead(SeenSpace space, const Labelled* label, Py_ssize_t i, Py_ssize_t end,
                    const value_t* data, const index_t* indices,
                    const index_t* indptr) except -1 nogil:
    """Give a lane to trial i, which is a mistake, and to the next that would be now."""
    cdef RowScale scale
    cdef Py_ssize_t at, next_i, left = space.rows.count() + 1
    cdef int64_t row
    cdef double step
    for next_i in range(i, end):
        row = row_of(label, next_i)
        if not is_trial(label, row):
            continue
        # Reading so many rows costs no more than the pass over those stored.
        if left == 0:
            break
        left -= 1
        step = step_of(label, row)
        at = indptr[row]
        if step != 0.0 and is_mistake(space, 1.0 if step > 0.0 else -1.0, data + at,
                                      indices + at, indptr[row + 1] - at, &scale):
            take_row(space, &scale, data + at, indices + at, indptr[row + 1] - at)
            space.lanes.add(next_i, space.x, space.at)
            if space.lanes.n == WIDTH:
                break
    space.lanes.choose(i)
    return OK


def learn_rows(SeenSpace space, const value_t[::1] data, const index_t[::1] indices,
               const index_t[::1] indptr, const int64_t[::1] codes, const double[::1] weights,
               const double[:, ::1] class_weight, const int64_t[::1] order, Py_ssize_t start,
               Py_ssize_t stop, Py_ssize_t end, int64_t label, int64_t code,
               int64_t first_number):
    """Those of the trials ``start`` to ``stop - 1`` of a pass, over checked rows, that one label
    has not yet made.

    Parameters
    ----------
    codes : ndarray of shape (n_rows,)
        Class of each row; `code` is the label's own.
    weights : ndarray of shape (n_rows,) or None
        Multiply the step; 0: the row is no trial.
    class_weight : ndarray of shape (2, n_labels)
        Multiplies the step of each label's negative and positive rows.
    order : ndarray of shape (n_trials,) or None
        Row of each trial; None: as they come.
    end : int
        How far the pass may be looked ahead into. -1: not at all; the vectors are then the same
        to the bit however the rows are cut into calls.
    first_number : int
        Number of the first row, for the list of mistakes.

    Returns
    -------
    products : float
        About how many multiplications they took.
    """
    cdef Labelled of
    cdef RowScale scale
    cdef Py_ssize_t i, at, nnz, row
    cdef double step, products = 0.0
    of.code, of.codes = code, &codes[0]
    of.weights = &weights[0] if weights is not None else NULL
    of.order = &order[0] if order is not None else NULL
    of.share[0], of.share[1] = class_weight[0, label], class_weight[1, label]
    start = max(start, space.reached)
    if space.lanes is not None and (start == 0 or end < 0):
        space.lanes.clear()
    with nogil:
        for i in range(start, stop):
            if 0 <= space.limit <= space.corrections:
                break
            row = row_of(&of, i)
            if not is_trial(&of, row):
                continue
            step = step_of(&of, row)
            at, nnz = indptr[row], indptr[row + 1] - indptr[row]
            products += nnz
            if step != 0.0 and is_mistake(space, 1.0 if step > 0.0 else -1.0, &data[0] + at,
                                          &indices[0] + at, nnz, &scale):
                if space.lanes is not None and end >= 0 and not space.lanes.choose(i):
                    space.lanes.clear()
                    if space.looks_ahead():
                        look_ahead(space, &of, i, end, &data[0], &indices[0], &indptr[0])
                take_row(space, &scale, &data[0] + at, &indices[0] + at, nnz)
                space.correct(step, first_number + row)
                products += space.cost()
            space.trials += 1
        space.reached = stop
    if space.lanes is not None and stop == end:
        space.lanes.release()
    return products


def absorb_rows(SeenSpace space, const value_t[::1] data, const index_t[::1] indices,
                const index_t[::1] indptr, const double[::1] steps, const int64_t[::1] numbers):
    """Take in mistakes that were made elsewhere, without a trial: of checked rows, by their steps,
    which have the signs of the labels, and under these numbers."""
    cdef RowScale scale
    cdef Py_ssize_t i, at, nnz
    space.predictor = None
    with nogil:
        for i in range(steps.shape[0]):
            at, nnz = indptr[i], indptr[i + 1] - indptr[i]
            measure(&scale, &space.power, as_row(&data[0] + at, &indices[0] + at, nnz),
                    space.bias, 0.0)
            take_row(space, &scale, &data[0] + at, &indices[0] + at, nnz)
            space.correct(steps[i], numbers[i])


def outputs(SeenSpace space, const double[::1] hypothesis, const value_t[::1] data,
            const index_t[::1] indices, const index_t[::1] indptr, double[:, ::1] out,
            Py_ssize_t label, unsigned char[::1] extreme):
    """Outputs of every row into a column of `out`; the hypothesis stands by place.

    `extreme` becomes 1 for rows whose products, not scaled, may have left the range of a double.
    """
    cdef Py_ssize_t r, j, nnz
    cdef RowScale scale
    cdef double scaled
    with nogil:
        for r in range(indptr.shape[0] - 1):
            j, nnz = indptr[r], indptr[r + 1] - indptr[r]
            out[r, label] = output(space, &hypothesis[0], &data[0] + j, &indices[0] + j, nnz, 1.0)
            if is_safe(out[r, label]) or not measure(
                    &scale, &space.power, as_row(&data[0] + j, &indices[0] + j, nnz),
                    space.bias, 0.0):
                continue
            scaled = output(space, &hypothesis[0], &data[0] + j, &indices[0] + j, nnz,
                            scale.factor)
            if scaled == 0.0:
                out[r, label] = 0.0
            else:
                extreme[r] = 1
