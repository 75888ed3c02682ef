"""Dot products of a row with one or more weight vectors; see scores.hpp."""

from libc.stdint cimport int64_t
from libcpp cimport bool as cpp_bool

from sparsemargin._engine.rows.csr cimport Row
from sparsemargin._engine.rows.csr cimport index_t, state_t, value_t

cdef extern from "rows/scores.hpp" namespace "sparsemargin" nogil:
    cdef cppclass Weights[S]:
        const S* first
        int64_t stride
        int64_t n_vectors
        int64_t n_summed
        cpp_bool far

    enum Finding:
        SOUND
        BAD_VALUE
        BAD_COLUMN

    void score[S, V, I](double* out, const Weights[S]& weights, const Row[V, I]& row,
                        const Row[V, I]& next)
    Finding score_alone[S, V, I](double* out, double* square, double least,
                                 const Weights[S]& weights, int64_t n_features, cpp_bool check,
                                 const Row[V, I]& row, const Row[V, I]& later)

cdef enum:
    NEAR_CACHE = 1 << 20  # bytes of weights that fit into the near caches


cdef inline Weights[state_t] weights_of(const state_t* numbers, Py_ssize_t stride,
                                        Py_ssize_t n_coordinates, Py_ssize_t first,
                                        Py_ssize_t last, Py_ssize_t last_summed) noexcept nogil:
    """The weights of the vectors first..last-1. Padding up to last_summed is summed as well,
    because whole SIMD vectors are faster than parts."""
    cdef Weights[state_t] weights
    weights.first = numbers + first
    weights.stride = stride
    weights.n_vectors = last - first
    weights.n_summed = last_summed - first
    weights.far = n_coordinates * stride * <Py_ssize_t> sizeof(state_t) > NEAR_CACHE
    return weights
