# distutils: extra_compile_args = -ffp-contract=off
"""Outputs of the last and of the averaged hypothesis, without making its weights."""

from libc.math cimport isfinite, ldexp
from libc.stdint cimport int64_t, uint16_t
from libcpp.vector cimport vector

import numpy as np

from sparsemargin._engine._labels cimport Space
from sparsemargin._engine._rows cimport RowScale, is_safe, measure
from sparsemargin._engine._scores cimport label_scores, scores
from sparsemargin._engine._space cimport (
    FLUSHES, LinearSpace, coordinate, entry, mixed, n_entries, synced_of
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


cdef bint rescue(double* out, const Space* space, const state_t* like, const double* a,
                 const double* b, const value_t* values, const index_t* columns, Py_ssize_t nnz,
                 int* exponent) noexcept nogil:
    """Outputs of a row, some of which may have lost terms to under- or overflow, up to a power of
    two; False where they are sound as they are."""
    cdef Py_ssize_t l
    cdef bint sound = True
    cdef RowScale row
    exponent[0] = 0
    if not measure(&row, &space.p, values, nnz, space.bias, 0.0):
        return False
    # An output of 0 that is one with the row scaled too is sound, and leaves the others so.
    for l in range(space.n_labels):
        if not is_safe(out[l]):
            sound = sound and out[l] == 0.0 and scaled_output(
                space, like, l, a, b, values, columns, nnz, &row) == 0.0
    if sound:
        return False
    for l in range(space.n_labels):
        out[l] = scaled_output(space, like, l, a, b, values, columns, nnz, &row)
    exponent[0] = row.exponent
    return True


cdef double scaled_output(const Space* space, const state_t* like, Py_ssize_t l, const double* a,
                          const double* b, const value_t* values, const index_t* columns,
                          Py_ssize_t nnz, const RowScale* row) noexcept nogil:
    cdef double output = a[l] * one_score(space, like, False, l, values, columns, nnz, row)
    if space.averaged:
        output += b[l] * one_score(space, like, True, l, values, columns, nnz, row)
    return output


def outputs(LinearSpace space, const state_t[::1] like, const state_t[:, ::1] weights,
            const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
            bint relative, double[:, ::1] out):
    """``w.x`` of every row for every label.

    Parameters
    ----------
    like : ndarray
        Of the type of the coordinates of `space`.
    weights : ndarray of shape (n_coordinates, n_labels) or None
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
    cdef int exponent = 0
    cdef bint extreme, rescued, finite = True, weighed = not c.averaged
    a_array, b_array = space.mixture()
    cdef const double[::1] a = a_array, b = b_array
    cdef Places at = c.at
    cdef Block block = at.blocks[0]
    if weights is not None:
        weighed = True
        block.g = <void*> &weights[0, 0]
        at.blocks, at.width = &block, K
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
                label_scores(part, kind, &at, False, K, 0, K, values, columns, nnz, c.bias,
                             c.n_coordinates - 1, columns + nnz, next_nnz)
            else:
                weigh_row(<state_t*> of_row.data(), c, &a[0], &b[0], columns, nnz)
                scores(part, <const state_t*> of_row.data(), K, 0, K, values,
                       <const int64_t*> places.data(), nnz, c.bias, nnz)
            extreme = False
            for l in range(K):
                extreme |= not is_safe(part[l])
            rescued = extreme and rescue(part, c, kind, &a[0], &b[0], values, columns, nnz,
                                         &exponent)
            for l in range(K):
                out[r, l] = part[l] if rescued or c.averaged else a[l] * part[l]
                if rescued and not relative:
                    out[r, l] = ldexp(out[r, l], exponent)
                finite &= isfinite(out[r, l])
    return finite
