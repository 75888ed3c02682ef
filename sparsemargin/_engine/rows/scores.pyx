"""Dot products of a row with the weights of labels, one or many side by side.

A label is summed in one order, however many are summed side by side and however wide the
machine's vectors are, so that labels learned together score to the bit as they would alone: eight
products at a time (four, two and one at the end) in pairs. Where rows and weights are float32 these
are summed as such: that halves the work, and loses no more than a rounding of the weights does. A
score near the ends of that type's range is summed again in double.
"""

from libc.math cimport isfinite
from libc.stdint cimport int32_t, int64_t
from libcpp cimport bool as cpp_bool

from sparsemargin._engine.numerics.power cimport BLOCK
from sparsemargin._engine.rows.csr cimport check_row, in_range, prefetch, prefetch_span, as_row
from sparsemargin._engine.first_order.storage cimport TILE, Block, Places, place_of
from sparsemargin._engine.rows.types cimport (
    NOT_FINITE, OK, OUT_OF_RANGE, index_t, state_t, value_t
)

cdef enum:
    NEAR_CACHE = 1 << 20  # bytes

cdef extern from "scores.hpp" namespace "sparsemargin" nogil:
    void score_dense[S, V, I](double* out, const S* weights, int64_t width, int64_t n_labels,
                              int64_t n_summed, cpp_bool far, const V* values,
                              const I* columns, int64_t n, const I* next_columns,
                              int64_t n_next)
    void score_tiled[S, V, I](double* out, const S* const* of_block, int64_t stride,
                              const int32_t* places, int64_t n_blocks, int64_t first,
                              int64_t last, int64_t n_labels, const V* values,
                              const I* columns, int64_t n, const I* next_columns,
                              int64_t n_next)
    double add_alone[S, V, I](double total, const S* weights, const V* values, const I* columns,
                              int64_t n)
    double save_alone[S, V, I](double total, const S* weights, const V* values, const I* columns,
                               int64_t n)


cdef inline void score_side_by_side(
        double* out, const state_t* weights, Py_ssize_t width, Py_ssize_t n_labels,
        Py_ssize_t n_summed, const value_t* values, const index_t* columns, Py_ssize_t nnz,
        double bias, Py_ssize_t bias_column, const index_t* next_columns,
        Py_ssize_t next_nnz) noexcept nogil:
    cdef Py_ssize_t l
    cdef const state_t* of_bias = weights + bias_column * width
    score_dense(out, weights, width, n_labels, n_summed,
                bias_column * width * <Py_ssize_t> sizeof(state_t) > NEAR_CACHE, values, columns,
                nnz, next_columns, next_nnz)
    if bias:
        for l in range(n_labels):
            out[l] += bias * of_bias[l]


cdef void scores(double* out, const state_t* weights, Py_ssize_t width, Py_ssize_t first,
                 Py_ssize_t last, const value_t* values, const index_t* columns,
                 Py_ssize_t nnz, double bias, Py_ssize_t bias_column) noexcept nogil:
    """Dot products of the augmented row with labels first..last-1 of weights of that width."""
    score_side_by_side(out + first, weights + first, width, last - first, last - first, values,
                       columns, nnz, bias, bias_column, columns, 0)


cdef void label_scores(double* out, const state_t* like, const Places* at,
                       Py_ssize_t n_labels, Py_ssize_t first, Py_ssize_t last,
                       const value_t* values, const index_t* columns, Py_ssize_t nnz,
                       double bias, Py_ssize_t bias_column, const index_t* next_columns,
                       Py_ssize_t next_nnz) noexcept nogil:
    """The same of g, wherever it stands; of type `like`. Labels held in tiles begin with a block,
    and `out` has room for the padding. The weights that the next row needs first are sent for,
    unless this one is over too soon."""
    cdef const Block* block = at.blocks
    cdef const state_t* weights = <const state_t*> block.g
    cdef Py_ssize_t l
    if at.tiles == NULL:
        # Whole vectors are faster than their parts, and what is padding stays 0.
        score_side_by_side(out + first, weights + first, at.width, last - first,
                           (at.width if last == n_labels else last) - first, values, columns, nnz,
                           bias, bias_column, next_columns, next_nnz)
        return
    score_tiled(out + first, <const state_t* const*> &block.g, sizeof(Block), at.tiles, at.n_blocks, first // TILE, (last + TILE - 1) // TILE,
                last - first, values, columns, nnz, next_columns, next_nnz)
    if bias:
        for l in range(first, last):
            block = at.blocks + l // TILE
            weights = <const state_t*> block.g
            out[l] += bias * weights[place_of(at, bias_column, l)]


cdef int score_alone(double* out, const state_t* weights, const value_t* values,
                     const index_t* columns, Py_ssize_t nnz, Py_ssize_t n_features, double bias,
                     bint check, const value_t* next_values, const index_t* next_columns,
                     Py_ssize_t next_nnz) noexcept nogil:
    """`check_row` if asked for, and `scores` for a lone label, by the block.

    Between short blocks the processor can fetch the weights of one, check the next, and send for
    the same part of a row to come, without one of the three waiting for another. Weights that
    no near cache holds are sent for a block ahead too: columns out of range do no harm there.
    Whether values are finite the score tells, as a NaN or an infinity makes it no number either.
    """
    cdef double total = 0.0
    cdef Py_ssize_t b, j, start, n, ahead
    cdef bint far = n_features * sizeof(state_t) > NEAR_CACHE
    for b in range((nnz + BLOCK - 1) // BLOCK):
        start = b * BLOCK
        n = min(<Py_ssize_t> BLOCK, nnz - start)
        if start < next_nnz:
            ahead = min(<Py_ssize_t> BLOCK, next_nnz - start)
            prefetch_span(next_values + start, next_values + start + ahead)
            prefetch_span(next_columns + start, next_columns + start + ahead)
        if far:
            for j in range(start + BLOCK, min(start + 2 * BLOCK, nnz)):
                prefetch(weights + columns[j])
        if check and not in_range(columns + start, n, n_features):
            return OUT_OF_RANGE
        total = add_alone(total, weights, values + start, columns + start, n)
    if check and not isfinite(total) and check_row(as_row(values, columns, nnz), n_features) != OK:
        return NOT_FINITE
    total = save_alone(total, weights, values, columns, nnz)
    out[0] = total + bias * weights[n_features] if bias else total
    return OK
