"""What kernels do to rows: spread them out, take their products, raise these to a power."""

from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

import numpy as np

from sparsemargin._engine.rows.types cimport index_t, value_t

cdef extern from *:
    """
    #if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__)
    #define SM_WIDTHS __attribute__((target_clones("avx512f", "avx2", "default"), unused))
    #else
    #define SM_WIDTHS
    #endif
    #define SM_LANES 32
    #define SM_DEFINE(type, raise, spread)                                                      \
    SM_WIDTHS static void raise(type *x, Py_ssize_t n, int degree) {                            \
        type base[SM_LANES], power[SM_LANES];                                                   \
        for (Py_ssize_t i = 0; i < n; i += SM_LANES) {                                          \
            Py_ssize_t m = n - i < SM_LANES ? n - i : SM_LANES;                                 \
            for (int j = 0; j < SM_LANES; ++j) {                                                \
                base[j] = j < m ? x[i + j] : 0;                                                 \
                power[j] = 1;                                                                   \
            }                                                                                   \
            for (int left = degree; left; left >>= 1) {                                         \
                if (left & 1) for (int j = 0; j < SM_LANES; ++j) power[j] *= base[j];           \
                if (left > 1) for (int j = 0; j < SM_LANES; ++j) base[j] *= base[j];            \
            }                                                                                   \
            for (Py_ssize_t j = 0; j < m; ++j) x[i + j] = power[j];                             \
        }                                                                                       \
    }                                                                                           \
    /* Products of one row with the rows whose entries lie side by side in `lanes`, the first of \
       which are what the row's constant is multiplied by. The sums stay in registers. */       \
    SM_WIDTHS static void spread(type *out, type constant, const type *values,                  \
                                 const int64_t *columns, Py_ssize_t n, const int32_t *place,    \
                                 const type *lanes) {                                           \
        type sums[SM_LANES];                                                                    \
        for (int j = 0; j < SM_LANES; ++j) sums[j] = constant * lanes[j];                       \
        for (Py_ssize_t i = 0; i < n; ++i) {                                                    \
            const int32_t at = place[columns[i]];                                               \
            if (at < 0) continue;                                                               \
            const type *entries = lanes + (Py_ssize_t)at * SM_LANES, value = values[i];         \
            for (int j = 0; j < SM_LANES; ++j) sums[j] += value * entries[j];                   \
        }                                                                                       \
        for (int j = 0; j < SM_LANES; ++j) out[j] = sums[j];                                    \
    }
    SM_DEFINE(float, sm_raise_float, sm_spread_float)
    SM_DEFINE(double, sm_raise_double, sm_spread_double)
    """
    enum:
        LANES "SM_LANES"
    void raise_float "sm_raise_float"(float* x, Py_ssize_t n, int degree) noexcept nogil
    void raise_double "sm_raise_double"(double* x, Py_ssize_t n, int degree) noexcept nogil
    void spread_float "sm_spread_float"(float* out, float constant, const float* values,
                                        const int64_t* columns, Py_ssize_t n,
                                        const int32_t* place, const float* lanes) noexcept nogil
    void spread_double "sm_spread_double"(double* out, double constant, const double* values,
                                          const int64_t* columns, Py_ssize_t n,
                                          const int32_t* place, const double* lanes) noexcept nogil

# Rows of the second matrix whose products are held before they are written, row by row.
cdef enum:
    HELD = 16


def raise_powers(value_t[::1] x, int degree):
    """x to the power of `degree`, in place."""
    if x.shape[0] == 0:
        return
    with nogil:
        if value_t is float:
            raise_float(&x[0], x.shape[0], degree)
        else:
            raise_double(&x[0], x.shape[0], degree)


def fill_dense(value_t[:, ::1] out, const value_t[::1] data, const index_t[::1] indices,
               const index_t[::1] indptr, const int64_t[::1] which, const double[::1] scale):
    """Write the rows called `which`, times their scale, into a matrix of zeros."""
    cdef Py_ssize_t i, j
    with nogil:
        for i in range(which.shape[0]):
            for j in range(indptr[which[i]], indptr[which[i] + 1]):
                out[i, indices[j]] += <value_t> (data[j] * scale[i])


def square_sums(const value_t[::1] data, const index_t[::1] indptr, const int64_t[::1] which):
    """``|x|^2`` of the rows called `which`, float64."""
    cdef Py_ssize_t i, j
    cdef double total
    result = np.empty(which.shape[0])
    cdef double[::1] out = result
    with nogil:
        for i in range(which.shape[0]):
            total = 0.0
            for j in range(indptr[which[i]], indptr[which[i] + 1]):
                total += <double> data[j] * data[j]
            out[i] = total
    return result


def sparse_products(const value_t[::1] constants, const value_t[::1] data,
                    const int64_t[::1] indices, const int64_t[::1] indptr,
                    const value_t[::1] other_constants, const value_t[::1] other_data,
                    const int64_t[::1] other_indices, const int64_t[::1] other_indptr,
                    Py_ssize_t n_features, value_t[:, ::1] out):
    """Dot products of all pairs of rows of two CSR matrices, shape (n_rows, n_other_rows).

    Some rows of the first are laid side by side, feature by feature; a row of the second then
    meets all of them at once. Each row has one more entry, its constant.
    """
    # By numpy, which says so where there is not memory enough.
    cdef int32_t[::1] place = np.full(n_features, -1, dtype=np.int32)
    cdef vector[value_t] lanes
    cdef value_t held[HELD * LANES]
    cdef Py_ssize_t block, start, stop, i, j, a, first, last, n = indptr.shape[0] - 1
    cdef Py_ssize_t m = other_indptr.shape[0] - 1
    cdef int32_t known
    with nogil:
        for block in range((n + LANES - 1) // LANES):
            start = block * LANES
            stop = min(start + LANES, n)
            known = 1  # the constants come first
            for a in range(indptr[start], indptr[stop]):
                if place[indices[a]] < 0:
                    place[indices[a]] = known
                    known += 1
            lanes.assign(<Py_ssize_t> known * LANES, 0)
            for i in range(start, stop):
                lanes[i - start] = constants[i]
                for a in range(indptr[i], indptr[i + 1]):
                    lanes[<Py_ssize_t> place[indices[a]] * LANES + i - start] = data[a]
            first = 0
            while first < m:
                last = min(first + HELD, m)
                for j in range(first, last):
                    a = other_indptr[j]
                    if value_t is float:
                        spread_float(held + (j - first) * LANES, other_constants[j],
                                     &other_data[0] + a, &other_indices[0] + a,
                                     other_indptr[j + 1] - a, &place[0], lanes.data())
                    else:
                        spread_double(held + (j - first) * LANES, other_constants[j],
                                      &other_data[0] + a, &other_indices[0] + a,
                                      other_indptr[j + 1] - a, &place[0], lanes.data())
                for i in range(start, stop):
                    for j in range(first, last):
                        out[i, j] = held[(j - first) * LANES + i - start]
                first = last
            for a in range(indptr[start], indptr[stop]):
                place[indices[a]] = -1
