# distutils: extra_compile_args = -ffp-contract=off
"""Outputs of the last and of the averaged hypothesis, without making its weights."""

from libc.math cimport isfinite, ldexp
from libcpp.vector cimport vector

import numpy as np

from sparsemargin._engine._labels cimport Space
from sparsemargin._engine._rows cimport RowScale, is_safe, measure, scores
from sparsemargin._engine._space cimport FLUSHES, LinearSpace, coordinate, entry, n_entries
from sparsemargin._engine._types cimport index_t, state_t, value_t


cdef inline double one_score(const state_t* g, const state_t* acc, const Space* space,
                             Py_ssize_t l, const value_t* values, const index_t* columns,
                             Py_ssize_t nnz, const RowScale* row) noexcept nogil:
    """Dot product of the scaled row with g or, unless acc is NULL, with acc brought up to date."""
    cdef Py_ssize_t j, i
    cdef double x, total = 0.0
    cdef const double* pending = NULL
    if acc != NULL:
        pending = space.pending + l * (FLUSHES + 1)
    for j in range(n_entries(space, nnz)):
        x = entry(space, values, nnz, row, j)
        i = coordinate(space, columns, nnz, j, l)
        total += x * (g[i] if acc == NULL else acc[i] + pending[space.synced[i]] * g[i])
    return total


def outputs(LinearSpace space, const state_t[::1] g, const state_t[::1] acc,
            const value_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
            bint relative):
    """``w.x`` of every row for every label.

    Parameters
    ----------
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
    cdef Py_ssize_t r, l, nnz, K = c.n_labels, n_rows = indptr.shape[0] - 1
    cdef const state_t* gp = &g[0]
    cdef const state_t* accp = &acc[0] if c.averaged else NULL
    cdef const value_t* values
    cdef const index_t* columns
    cdef RowScale row
    cdef bint extreme, finite = True
    a_array, b_array = space.mixture()
    cdef const double[::1] a = a_array, b = b_array
    result = np.empty((n_rows, K))
    cdef double[:, ::1] out = result
    cdef vector[double] parts
    parts.resize(2 * K)
    cdef double* part = parts.data()
    with nogil:
        for r in range(n_rows):
            values = &data[0] + indptr[r]
            columns = &indices[0] + indptr[r]
            nnz = indptr[r + 1] - indptr[r]
            scores(part, gp, K, 0, K, values, columns, nnz, c.bias, c.n_coordinates - 1)
            extreme = False
            row.exponent = 0
            row.factor = 1.0
            for l in range(K):
                extreme |= not is_safe(part[l])
            if c.averaged:
                scores(part + K, accp, K, 0, K, values, columns, nnz, c.bias,
                       c.n_coordinates - 1)
                for l in range(K):
                    if c.of.flushes[l]:
                        part[K + l] = one_score(gp, accp, c, l, values, columns, nnz, &row)
                    extreme |= not is_safe(part[K + l])
            if extreme and measure(&row, &c.p, values, nnz, c.bias, 0.0):
                for l in range(K):
                    part[l] = one_score(gp, <const state_t*> NULL, c, l, values, columns, nnz,
                                        &row)
                    if c.averaged:
                        part[K + l] = one_score(gp, accp, c, l, values, columns, nnz, &row)
            for l in range(K):
                out[r, l] = a[l] * part[l]
                if c.averaged:
                    out[r, l] += b[l] * part[K + l]
                if not relative:
                    out[r, l] = ldexp(out[r, l], row.exponent)
                finite &= isfinite(out[r, l])
    return result, finite
