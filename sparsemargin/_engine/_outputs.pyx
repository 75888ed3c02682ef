# distutils: extra_compile_args = -ffp-contract=off
"""Outputs of the last and of the averaged hypothesis, without making its weights."""

from libc.math cimport isfinite, ldexp
from libc.stdint cimport uint16_t
from libcpp.vector cimport vector

import numpy as np

from sparsemargin._engine._labels cimport Space
from sparsemargin._engine._rows cimport RowScale, is_safe, measure
from sparsemargin._engine._scores cimport label_scores
from sparsemargin._engine._space cimport (
    FLUSHES, LinearSpace, coordinate, entry, n_entries, synced_of
)
from sparsemargin._engine._storage cimport Block, Places, block_of
from sparsemargin._engine._types cimport index_t, state_t, value_t


cdef double one_score(const Space* space, const state_t* like, bint of_acc, Py_ssize_t l,
                      const value_t* values, const index_t* columns, Py_ssize_t nnz,
                      const RowScale* row) noexcept nogil:
    """Dot product of the scaled row with g, or with acc brought up to date."""
    cdef Py_ssize_t j, i
    cdef double x, total = 0.0
    cdef const Block* block = space.at.blocks + block_of(&space.at, l)
    cdef const state_t* g = <const state_t*> block.g
    cdef const state_t* acc = <const state_t*> block.acc
    cdef const double* pending = space.pending + l * (FLUSHES + 1)
    cdef const uint16_t* synced = synced_of(space, l)
    for j in range(n_entries(space, nnz)):
        x = entry(space, values, nnz, row, j)
        i = coordinate(space, columns, nnz, j, l)
        total += x * (acc[i] + pending[synced[i]] * g[i] if of_acc else g[i])
    return total


cdef bint are_sound(const double* part, const Space* space, const state_t* like, bint of_acc,
                    const value_t* values, const index_t* columns, Py_ssize_t nnz,
                    const RowScale* row) noexcept nogil:
    """Whether no score has lost terms to under- or overflow: those that may have are worked out
    again with the row scaled, and a 0 is one either way."""
    cdef Py_ssize_t l
    for l in range(space.n_labels):
        if is_safe(part[l]):
            continue
        if part[l] != 0.0 or one_score(space, like, of_acc, l, values, columns, nnz, row) != 0.0:
            return False
    return True


cdef void fill(double* part, const Space* space, const state_t* like, const Places* at,
               bint of_acc, const value_t* values, const index_t* columns, Py_ssize_t nnz,
               Py_ssize_t next_nnz) noexcept nogil:
    """The scores of all labels by g, or by acc; the next row follows in memory."""
    cdef Py_ssize_t l
    cdef RowScale unscaled = RowScale(0, 1.0, 0.0, 0.0)
    label_scores(part, like, at, of_acc, space.n_labels, 0, space.n_labels, values, columns, nnz,
                 space.bias, space.n_coordinates - 1, columns + nnz, next_nnz)
    if of_acc and at.blocks[0].synced != NULL:
        for l in range(space.n_labels):
            if space.of.flushes[l]:
                part[l] = one_score(space, like, True, l, values, columns, nnz, &unscaled)


def outputs(LinearSpace space, const state_t[::1] like, const value_t[::1] data,
            const index_t[::1] indices, const index_t[::1] indptr, bint relative):
    """``w.x`` of every row for every label.

    Parameters
    ----------
    like : ndarray
        Of the type of the coordinates of `space`.
    relative : bool
        Whether the outputs of a row may be multiplied by a common power of two where they
        would not fit a double; signs and the order of the labels are then kept.

    Returns
    -------
    outputs : ndarray of shape (n_rows, n_labels), float64
    finite : bool
        Whether all of them fit a double.
    """
    cdef const Space* c = &space.c
    cdef const state_t* kind = &like[0]
    cdef Py_ssize_t r, l, nnz, next_nnz, K = c.n_labels, n_rows = indptr.shape[0] - 1
    cdef Py_ssize_t width = c.at.n_blocks * c.at.width
    cdef const value_t* values
    cdef const index_t* columns
    cdef RowScale row
    cdef bint extreme, finite = True
    a_array, b_array = space.mixture()
    cdef const double[::1] a = a_array, b = b_array
    result = np.empty((n_rows, K))
    cdef double[:, ::1] out = result
    cdef Places at = c.at
    cdef Block current
    acc = space.current_acc(indptr[n_rows])
    cdef state_t[::1] acc_view
    if acc is not None:
        acc_view = acc
        current = at.blocks[0]
        current.acc = &acc_view[0]
        current.synced = NULL
        at.blocks = &current
    cdef vector[double] parts
    parts.resize(2 * width)
    cdef double* part = parts.data()
    with nogil:
        for r in range(n_rows):
            values = &data[0] + indptr[r]
            columns = &indices[0] + indptr[r]
            nnz = indptr[r + 1] - indptr[r]
            next_nnz = indptr[min(r + 2, n_rows)] - indptr[r + 1]
            fill(part, c, kind, &at, False, values, columns, nnz, next_nnz)
            if c.averaged:
                fill(part + width, c, kind, &at, True, values, columns, nnz, next_nnz)
            row.exponent = 0
            row.factor = 1.0
            extreme = False
            for l in range(K):
                extreme |= not is_safe(part[l]) or (c.averaged and not is_safe(part[width + l]))
            if extreme and measure(&row, &c.p, values, nnz, c.bias, 0.0):
                if (are_sound(part, c, kind, False, values, columns, nnz, &row)
                        and (not c.averaged
                             or are_sound(part + width, c, kind, True, values, columns, nnz,
                                          &row))):
                    row.exponent = 0
                else:
                    for l in range(K):
                        part[l] = one_score(c, kind, False, l, values, columns, nnz, &row)
                        if c.averaged:
                            part[width + l] = one_score(c, kind, True, l, values, columns, nnz,
                                                        &row)
            for l in range(K):
                out[r, l] = a[l] * part[l]
                if c.averaged:
                    out[r, l] += b[l] * part[width + l]
                if not relative:
                    out[r, l] = ldexp(out[r, l], row.exponent)
                finite &= isfinite(out[r, l])
    return result, finite
