"""Dot products of rows, and rows as dense arrays."""

from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

import numpy as np

from sparsemargin._engine.rows.csr cimport (
    DOUBLE_INT32, DOUBLE_INT64, FLOAT_INT32, FLOAT_INT64, Csr, Row, Rows, Types
)
from sparsemargin._engine.rows.csr cimport index_t, value_t
from sparsemargin._engine.rows.scores cimport Weights, score, weights_of

cdef extern from *:
    """
    #include <vector>
    #include "numerics/widths.hpp"
    // Columns numbered from 1: in a table indexed by feature if there are few features, else in a
    // sparsely filled hash table.
    struct sm_columns {
        std::vector<int32_t> number;
        std::vector<int64_t> numbered;
        int bits;
        bool for_every = false;
        void clear(int64_t n_columns, int64_t n_features) {
            if (for_every) {
                for (size_t i = 1; i < numbered.size(); ++i) number[numbered[i]] = 0;
            } else {
                for_every = n_features <= 1 << 18;
                const int64_t n_slots = for_every ? n_features : 16 * n_columns;
                for (bits = 0; int64_t{1} << bits < n_slots;) ++bits;
                number.assign(size_t{1} << bits, 0);
            }
            numbered.assign(1, -1);
        }
        // The index at which the number of a column is stored. A column without number has 0 there.
        size_t slot(int64_t column) const {
            if (for_every) return column;
            const uint64_t mask = (uint64_t{1} << bits) - 1, c = column;
            uint64_t at = c + (c >> bits) * 0x9E3779B97F4A7C15u;
            while (number[at & mask] && numbered[number[at & mask]] != column) ++at;
            return at & mask;
        }
        void add(int64_t column) {
            int32_t &at = number[slot(column)];
            if (at) return;
            at = numbered.size();
            numbered.push_back(column);
        }
        int32_t of(int64_t column) const { return number[slot(column)]; }
    };
    #define SM_PANEL 32
    #define SM_DEFINE(type)                                                                     \
    SM_ALL_WIDTHS static void sm_raise(type *x, Py_ssize_t n, int degree) {                         \
        type base[SM_PANEL], power[SM_PANEL];                                                   \
        for (Py_ssize_t i = 0; i < n; i += SM_PANEL) {                                          \
            Py_ssize_t m = n - i < SM_PANEL ? n - i : SM_PANEL;                                 \
            for (int j = 0; j < SM_PANEL; ++j) {                                                \
                base[j] = j < m ? x[i + j] : 0;                                                 \
                power[j] = 1;                                                                   \
            }                                                                                   \
            for (int left = degree; left; left >>= 1) {                                         \
                if (left & 1) for (int j = 0; j < SM_PANEL; ++j) power[j] *= base[j];           \
                if (left > 1) for (int j = 0; j < SM_PANEL; ++j) base[j] *= base[j];            \
            }                                                                                   \
            for (Py_ssize_t j = 0; j < m; ++j) x[i + j] = power[j];                             \
        }                                                                                       \
    }                                                                                           \
    /* Products of one row with the rows whose entries are interleaved in `panel`. The first\
       entries are the factors of the row's constant. The sums stay in registers. */        \
    SM_ALL_WIDTHS static void sm_times_panel(type *out, type constant, const type *values,          \
                                         const int64_t *columns, Py_ssize_t n,                  \
                                         const sm_columns &numbers, const type *panel) {        \
        type sums[SM_PANEL];                                                                    \
        for (int j = 0; j < SM_PANEL; ++j) sums[j] = constant * panel[j];                       \
        const auto add_all = [&](auto number_of) SM_INLINE_LAMBDA {                             \
            for (Py_ssize_t i = 0; i < n; ++i) {                                                \
                const int32_t at = number_of(columns[i]);                                       \
                if (!at) continue;                                                              \
                const type *entries = panel + (Py_ssize_t)at * SM_PANEL, value = values[i];     \
                for (int j = 0; j < SM_PANEL; ++j) sums[j] += value * entries[j];               \
            }                                                                                   \
        };                                                                                      \
        const int32_t *number = numbers.number.data();                                          \
        if (numbers.for_every)                                                                  \
            add_all([=](int64_t column) SM_INLINE_LAMBDA { return number[column]; });           \
        else                                                                                    \
            add_all([&](int64_t column) SM_INLINE_LAMBDA { return numbers.of(column); });       \
        for (int j = 0; j < SM_PANEL; ++j) out[j] = sums[j];                                    \
    }
    SM_DEFINE(float)
    SM_DEFINE(double)
    """
    enum:
        PANEL "SM_PANEL"
    cdef cppclass Columns "sm_columns":
        vector[int64_t] numbered
        void clear(int64_t n_columns, int64_t n_features) except + nogil
        void add(int64_t column) except + nogil
        int32_t of(int64_t column) noexcept nogil
    void raise_all "sm_raise"(float* x, Py_ssize_t n, int degree) noexcept nogil
    void raise_all "sm_raise"(double* x, Py_ssize_t n, int degree) noexcept nogil
    void times_panel "sm_times_panel"(
        float* out, float constant, const float* values, const int64_t* columns, Py_ssize_t n,
        const Columns& numbers, const float* panel) noexcept nogil
    void times_panel "sm_times_panel"(
        double* out, double constant, const double* values, const int64_t* columns, Py_ssize_t n,
        const Columns& numbers, const double* panel) noexcept nogil

# Rows of the second matrix whose products are buffered before they are written row by row.
cdef enum:
    HELD = 16


def raise_powers(value_t[::1] x, int degree):
    """x to the power of `degree`, in place."""
    if x.shape[0]:
        with nogil:
            raise_all(&x[0], x.shape[0], degree)


def fill_dense(value_t[:, ::1] out, const value_t[::1] data, const index_t[::1] indices,
               const index_t[::1] indptr, const int64_t[::1] which, const double[::1] scale):
    """Write the selected rows, times their scale, into a matrix of zeros."""
    cdef Py_ssize_t i, j
    with nogil:
        for i in range(which.shape[0]):
            for j in range(indptr[which[i]], indptr[which[i] + 1]):
                out[i, indices[j]] += <value_t> (data[j] * scale[i])


def square_sums(const value_t[::1] data, const index_t[::1] indptr, const int64_t[::1] which):
    """``|x|^2`` of the selected rows, float64."""
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


def sparse_products(Csr rows, Csr others, const value_t[::1] constants,
                    const value_t[::1] other_constants, value_t[:, ::1] out):
    """Dot products of all pairs of rows with int64 indices, shape (n_rows, n_other_rows).

    A panel of rows is interleaved by feature, so that another row is multiplied with all of them at
    once. Each row has one more entry, its constant.
    """
    cdef Types types
    cdef Columns numbers
    cdef Rows[value_t, int64_t] a, b
    cdef vector[value_t] panel
    cdef Py_ssize_t block, start, stop, i, j
    if value_t is float:
        types, a, b = FLOAT_INT64, rows.float_int64, others.float_int64
    else:
        types, a, b = DOUBLE_INT64, rows.double_int64, others.double_int64
    if rows.types != types or others.types != types:
        raise TypeError("products are of rows of one type, with int64 indices")
    with nogil:
        for block in range((a.n + PANEL - 1) // PANEL):
            start = block * PANEL
            stop = min(start + <Py_ssize_t> PANEL, a.n)
            numbers.clear(a.indptr[stop] - a.indptr[start], rows.n_features)
            for j in range(a.indptr[start], a.indptr[stop]):
                numbers.add(a.indices[j])
            panel.assign(numbers.numbered.size() * PANEL, 0)
            for i in range(start, stop):
                panel[i - start] = constants[i]
                for j in range(a.indptr[i], a.indptr[i + 1]):
                    panel[numbers.of(a.indices[j]) * <Py_ssize_t> PANEL + i - start] = a.data[j]
            fill_products(panel, start, stop, numbers, b, other_constants, out)


cdef void fill_products(const vector[value_t]& panel, Py_ssize_t start, Py_ssize_t stop,
                        const Columns& numbers, const Rows[value_t, int64_t]& others,
                        const value_t[::1] constants, value_t[:, ::1] out) noexcept nogil:
    """Products of all other rows with the rows start..stop-1, whose entries are in `panel`."""
    cdef value_t held[HELD * PANEL]
    cdef Py_ssize_t block, first, last, i, j, a
    for block in range((others.n + HELD - 1) // HELD):
        first = block * HELD
        last = min(first + <Py_ssize_t> HELD, <Py_ssize_t> others.n)
        for j in range(first, last):
            a = others.indptr[j]
            times_panel(held + (j - first) * PANEL, constants[j], others.data + a,
                        others.indices + a, others.indptr[j + 1] - a, numbers, panel.data())
        for i in range(start, stop):
            for j in range(first, last):
                out[i, j] = held[(j - first) * PANEL + i - start]


def fill_gram(double[:, ::1] gram, Csr rows, Py_ssize_t start, Py_ssize_t stop, double bias):
    """Fill in the products of the rows start..stop-1 with themselves and the rows before them, and
    the symmetric entries. The rows may be of any type."""
    cdef vector[double] dense
    dense.resize(rows.n_features)
    with nogil:
        if rows.types == FLOAT_INT32:
            fill_rows(gram, rows.float_int32, start, stop, bias, dense.data())
        elif rows.types == FLOAT_INT64:
            fill_rows(gram, rows.float_int64, start, stop, bias, dense.data())
        elif rows.types == DOUBLE_INT32:
            fill_rows(gram, rows.double_int32, start, stop, bias, dense.data())
        else:
            fill_rows(gram, rows.double_int64, start, stop, bias, dense.data())


cdef void fill_rows(double[:, ::1] gram, const Rows[value_t, index_t]& rows, Py_ssize_t start,
                    Py_ssize_t stop, double bias, double* dense) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef Row[value_t, index_t] row
    cdef Weights[double] weights = weights_of(
        <const double*> dense, 1, rows.n_features, 0, 1, 1)
    for i in range(start, stop):
        row = rows.at(i)
        for j in range(row.nnz):
            dense[row.columns[j]] = row.values[j]
        for j in range(i + 1):
            score(&gram[i, j], weights, rows.at(j), rows.at(min(j + 1, i)))
            if bias:
                gram[i, j] += bias * bias
            gram[j, i] = gram[i, j]
        for j in range(row.nnz):
            dense[row.columns[j]] = 0.0
