"""Outputs of the last and of the averaged hypothesis, without making its weights."""

from libc.math cimport copysign, isfinite, ldexp
from libc.stdint cimport int64_t
from libcpp.vector cimport vector

import numpy as np

from sparsemargin._engine.first_order.labels cimport Space
from sparsemargin._engine.rows.csr cimport RowScale, is_safe, measure, as_row
from sparsemargin._engine.rows.scores cimport label_scores, scores
from sparsemargin._engine.first_order.linear cimport (
    FLUSHES, LinearSpace, coordinate, entry, mixed, n_entries
)
from sparsemargin._engine.first_order.storage cimport Block, Places, Storage, block_of
from sparsemargin._engine.rows.types cimport index_t, state_t, value_t


cdef double scaled_output(const Space* space, const state_t* like, Py_ssize_t l, double a,
                          double b, const value_t* values, const index_t* columns, Py_ssize_t nnz,
                          const RowScale* row) noexcept nogil:
    """``w.x`` times row.factor, of a row whose plain output may have lost terms."""
    cdef Py_ssize_t j, i
    cdef double x, g, acc, total = 0.0
    cdef const Block* block = space.at.blocks + block_of(&space.at, l)
    for j in range(n_entries(space, nnz)):
        x = entry(space, values, nnz, row, j)
        i = coordinate(space, columns, nnz, j, l)
        g = (<const state_t*> block.g)[i]
        if space.averaged:
            acc = (<const state_t*> block.acc)[i]
            acc += space.pending[l * (FLUSHES + 1) + block.synced[i]] * g
            total += x * mixed(g, acc, a, b)
        else:
            total += x * g
    return total if space.averaged else a * total


cdef void weigh_row(state_t* weights, const Space* space, const double* a, const double* b,
                    const index_t* columns, Py_ssize_t nnz) noexcept nogil:
    """The weights of all labels for the entries of an augmented row, entry by entry."""
    cdef Py_ssize_t j, l, i, K = space.n_labels
    cdef const Block* block
    cdef double g, acc
    for j in range(n_entries(space, nnz)):
        for l in range(K):
            i = coordinate(space, columns, nnz, j, l)
            block = space.at.blocks + block_of(&space.at, l)
            g = (<const state_t*> block.g)[i]
            acc = (<const state_t*> block.acc)[i]
            acc += space.pending[l * (FLUSHES + 1) + block.synced[i]] * g
            weights[j * K + l] = <state_t> mixed(g, acc, a[l], b[l])


cdef inline double shrunk(double output, int exponent) noexcept nogil:
    """The output times 2**-exponent, which keeps its sign if nothing else."""
    cdef double result = ldexp(output, -exponent)
    return result if result != 0.0 else copysign(ldexp(1.0, -1074), output)


def outputs(LinearSpace space, const state_t[::1] like, Storage weights,
            const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
            bint relative, double[:, ::1] out):
    """``w.x`` of every row for every label.

    Parameters
    ----------
    like : ndarray
        Of the type of the coordinates of `space`.
    weights : Storage or None
        Of the averaged hypothesis; None: weighed for the entries of each row.
    relative : bool
        Whether the outputs of a row may be multiplied by a common power of two where they
        would not fit a double; signs and the order of the labels are then kept.
    out : ndarray of shape (n_rows, n_labels)
        Takes the outputs.

    Returns
    -------
    bool
        Whether all of them fit a double.
    """
    cdef const Space* c = &space.c
    cdef const state_t* kind = &like[0]
    cdef Py_ssize_t r, j, l, nnz, next_nnz, K = c.n_labels, n_rows = indptr.shape[0] - 1
    cdef Py_ssize_t longest
    cdef const value_t* values
    cdef const index_t* columns
    cdef RowScale row
    cdef double output
    cdef bint extreme, finite = True, weighed = not c.averaged
    a_array, b_array = space.mixture()
    cdef const double[::1] a = a_array, b = b_array
    cdef Places at = c.at
    if weights is not None:
        weighed, at = True, weights.places
    cdef vector[double] parts, of_row
    cdef vector[int64_t] places
    parts.resize(max(at.n_blocks * at.width, K))
    cdef double* part = parts.data()
    if not weighed:
        longest = int(np.diff(indptr).max(initial=0)) + 1
        of_row.resize(longest * K)
        places.resize(longest)
        for j in range(longest):
            places[j] = j
    with nogil:
        for r in range(n_rows):
            values = &data[0] + indptr[r]
            columns = &indices[0] + indptr[r]
            nnz = indptr[r + 1] - indptr[r]
            if weighed:
                next_nnz = indptr[min(r + 2, n_rows)] - indptr[r + 1]
                label_scores(part, kind, &at, K, 0, K, values, columns, nnz, c.bias,
                             c.n_coordinates - 1, columns + nnz, next_nnz)
            else:
                weigh_row(<state_t*> of_row.data(), c, &a[0], &b[0], columns, nnz)
                scores(part, <const state_t*> of_row.data(), K, 0, K, values,
                       <const int64_t*> places.data(), nnz, c.bias, nnz)
            extreme = False
            for l in range(K):
                extreme |= not is_safe(part[l])
            extreme = extreme and measure(&row, &c.p, as_row(values, columns, nnz), c.bias, 0.0)
            for l in range(K):
                if extreme and not is_safe(part[l]):
                    output = scaled_output(c, kind, l, a[l], b[l], values, columns, nnz, &row)
                    if not relative:
                        output = ldexp(output, row.exponent)
                else:
                    output = part[l] if c.averaged else a[l] * part[l]
                    if extreme and relative and output != 0.0:
                        output = shrunk(output, row.exponent)
                out[r, l] = output
                finite &= isfinite(output)
    return finite
