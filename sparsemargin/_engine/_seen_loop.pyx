# distutils: extra_compile_args = -ffp-contract=off
"""Trials over rows for the spaces of matrix Perceptrons, and their outputs."""

from libc.stdint cimport int64_t

from sparsemargin._engine._rows cimport RowScale, is_safe, measure
from sparsemargin._engine._seen cimport SeenSpace, take_row
from sparsemargin._engine._types cimport ALL_STOPPED, OK, TOO_WIDE, index_t, value_t


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


cdef int decide(SeenSpace space, double y, double share, int64_t number, const value_t* values,
                const index_t* columns, Py_ssize_t nnz) except -1 nogil:
    """The trial of one row: on a mistake, ``y w.x <= 0``, the space moves."""
    cdef RowScale scale
    cdef double found = y * output(space, space.w.data(), values, columns, nnz, 1.0)
    if found > 0.0 and is_safe(found):
        return OK
    if share == 0.0 or not measure(&scale, &space.power, values, nnz, space.bias, 0.0):
        return OK
    if not is_safe(found):
        found = y * output(space, space.w.data(), values, columns, nnz, scale.factor)
    if found > 0.0:
        return OK
    take_row(space, &scale, values, columns, nnz)
    return space.correct(y * share, number)


def learn_rows(SeenSpace space, const value_t[::1] data, const index_t[::1] indices,
               const index_t[::1] indptr, const int64_t[::1] codes, const double[::1] weights,
               const double[:, ::1] class_weight, const int64_t[::1] order, Py_ssize_t start,
               Py_ssize_t stop, int64_t label, int64_t code, int64_t first_number):
    """Trials ``start`` to ``stop - 1`` for one label, over checked rows.

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
    first_number : int
        Number of the first row, for the list of mistakes.

    Returns
    -------
    status : int
    row : int
        The row that stopped the loop, or -1.
    """
    cdef Py_ssize_t i, j, row = -1
    cdef bint positive
    cdef double share
    cdef int status = OK
    with nogil:
        for i in range(start, stop):
            if 0 <= space.limit <= space.corrections:
                status = ALL_STOPPED
                break
            row = order[i] if order is not None else i
            share = weights[row] if weights is not None else 1.0
            if share == 0.0:
                continue
            positive = codes[row] == code
            j = indptr[row]
            status = decide(space, 1.0 if positive else -1.0,
                            share * class_weight[positive, label], first_number + row,
                            &data[0] + j, &indices[0] + j, indptr[row + 1] - j)
            if status != OK:
                break
            space.trials += 1
    return status, (row if status == TOO_WIDE else -1)


def outputs(SeenSpace space, const double[::1] hypothesis, const value_t[::1] data,
            const index_t[::1] indices, const index_t[::1] indptr, double[:, ::1] out,
            Py_ssize_t label):
    """Outputs of every row into a column of `out`; the hypothesis stands by place."""
    cdef Py_ssize_t r, j
    with nogil:
        for r in range(indptr.shape[0] - 1):
            j = indptr[r]
            out[r, label] = output(space, &hypothesis[0], &data[0] + j, &indices[0] + j,
                                   indptr[r + 1] - j, 1.0)
