// Sparse rows over the features seen, and products with them.
//
// The code is compiled for several SIMD widths like numerics/simd.pxd, with bitwise equal
// results. Vectors of four halve the number of arithmetic instructions; entries are still loaded
// and stored one by one.
#pragma once

#include <cstdint>
#include <vector>

#include "../numerics/widths.hpp"

typedef double sm_four __attribute__((vector_size(32)));
#define SM_TAKE(z, p) (sm_four{(z)[(p)[0]], (z)[(p)[1]], (z)[(p)[2]], (z)[(p)[3]]})
#define SM_LOAD(v) (sm_four{(double)(v)[0], (double)(v)[1], (double)(v)[2], (double)(v)[3]})

template <class V>
SM_INLINE double sm_sparse_dot(const V *values, const int32_t *columns, int64_t n,
                               const double *z) {
    const uint32_t *at = (const uint32_t *)columns;  // unsigned, to avoid a sign extension
    sm_four even = {0, 0, 0, 0}, odd = {0, 0, 0, 0};
    int64_t j = 0;
    for (; j + 8 <= n; j += 8) {
        even += SM_LOAD(values + j) * SM_TAKE(z, at + j);
        odd += SM_LOAD(values + j + 4) * SM_TAKE(z, at + j + 4);
    }
    even += odd;
    double total = (even[0] + even[2]) + (even[1] + even[3]);
    for (; j < n; ++j) total += (double)values[j] * z[at[j]];
    return total;
}

// z <- z + factor * row
template <class V>
SM_INLINE void sm_add_sparse(double *z, double factor, const V *values, const int32_t *columns,
                             int64_t n) {
    const uint32_t *at = (const uint32_t *)columns;
    int64_t j = 0;
    for (; j + 4 <= n; j += 4) {
        const uint32_t *p = at + j;
        sm_four sum = SM_TAKE(z, p) + factor * SM_LOAD(values + j);
        for (int i = 0; i < 4; ++i) z[p[i]] = sum[i];
    }
    for (; j < n; ++j) z[at[j]] += factor * values[j];
}

// z <- (I - rates[i] a_i b_i^T) z
template <class V>
SM_INLINE void sm_apply_factor(double *z, const V *a, const V *b, const int32_t *columns,
                               const int64_t *start, const double *rates, int64_t i) {
    int64_t at = start[i], n = start[i + 1] - at;
    double along = sm_sparse_dot(b + at, columns + at, n, z);
    sm_add_sparse(z, -rates[i] * along, a + at, columns + at, n);
}

// Templates cannot be compiled for several SIMD widths.
#define SM_PASSES(V)                                                                              \
    SM_ALL_WIDTHS                                                                                 \
    static void sm_apply_last_first(double *z, const V *a, const V *b, const int32_t *columns,    \
                                    const int64_t *start, const double *rates, int64_t k) {       \
        for (int64_t i = k - 1; i >= 0; --i)                                                      \
            sm_apply_factor(z, a, b, columns, start, rates, i);                                   \
    }                                                                                             \
    SM_ALL_WIDTHS                                                                                 \
    static void sm_apply_first_first(double *z, const V *a, const V *b, const int32_t *columns,   \
                                     const int64_t *start, const double *rates, int64_t k) {      \
        for (int64_t i = 0; i < k; ++i) sm_apply_factor(z, a, b, columns, start, rates, i);       \
    }                                                                                             \
    SM_ALL_WIDTHS                                                                                 \
    static void sm_products(double *out, const double *z, const V *rows, const int32_t *columns,  \
                            const int64_t *start, int64_t k) {                                    \
        for (int64_t i = 0; i < k; ++i) {                                                         \
            int64_t at = start[i], n = start[i + 1] - at;                                         \
            out[i] = sm_sparse_dot(rows + at, columns + at, n, z);                                \
        }                                                                                         \
    }                                                                                             \
    SM_ALL_WIDTHS                                                                                 \
    static void sm_combine(double *z, const double *factors, const V *rows,                       \
                           const int32_t *columns, const int64_t *start, int64_t k) {             \
        for (int64_t i = 0; i < k; ++i) {                                                         \
            int64_t at = start[i], n = start[i + 1] - at;                                         \
            sm_add_sparse(z, factors[i], rows + at, columns + at, n);                             \
        }                                                                                         \
    }
SM_PASSES(double)
SM_PASSES(float)

namespace sparsemargin {

// Values in the type that rows are stored in.
struct Values {
    bool single = false;
    // Only one of the two is used.
    std::vector<float> singles;
    std::vector<double> doubles;

    // Returns the value rounded to the stored type. New rows are rounded before their first use.
    double stored(double value) const { return single ? static_cast<float>(value) : value; }

    double at(int64_t j) const { return single ? singles[j] : doubles[j]; }

    void append(const std::vector<double> &values) {
        if (single)
            for (double value : values) singles.push_back(static_cast<float>(value));
        else
            doubles.insert(doubles.end(), values.begin(), values.end());
    }

    int64_t n_bytes() const { return 4 * singles.size() + 8 * doubles.size(); }
};

// Rows over the features seen, stored consecutively.
struct StoredRows {
    std::vector<int64_t> start{0};
    std::vector<int32_t> columns;
    Values values;

    int64_t count() const { return start.size() - 1; }

    int64_t n_entries() const { return columns.size(); }

    void append(const std::vector<double> &x, const std::vector<int32_t> &at) {
        values.append(x);
        columns.insert(columns.end(), at.begin(), at.end());
        start.push_back(columns.size());
    }

    void read(int64_t i, std::vector<double> &x, std::vector<int32_t> &at) const {
        x.clear();
        for (int64_t j = start[i]; j < start[i + 1]; ++j) x.push_back(values.at(j));
        at.assign(columns.begin() + start[i], columns.begin() + start[i + 1]);
    }

    // Calls f with pointers to the values and to `others`, which have the same type.
    template <class F>
    void typed(const Values &others, F f) const {
        if (values.single)
            f(values.singles.data(), others.singles.data());
        else
            f(values.doubles.data(), others.doubles.data());
    }

    // z <- prod_i (I - rates[i] row_i link_i^T) z
    void apply(double *z, const Values &links, const std::vector<double> &rates) const {
        typed(links, [&](auto *rows, auto *g) {
            sm_apply_last_first(z, rows, g, columns.data(), start.data(), rates.data(), count());
        });
    }

    // Applies the transposed product.
    void apply_transposed(double *z, const Values &links, const std::vector<double> &rates) const {
        typed(links, [&](auto *rows, auto *g) {
            sm_apply_first_first(z, g, rows, columns.data(), start.data(), rates.data(), count());
        });
    }

    // out[i] <- row_i . z
    void products(double *out, const double *z) const {
        typed(values, [&](auto *rows, auto *) {
            sm_products(out, z, rows, columns.data(), start.data(), count());
        });
    }

    // z <- z + sum_i factors[i] row_i
    void combine(double *z, const double *factors) const {
        typed(values, [&](auto *rows, auto *) {
            sm_combine(z, factors, rows, columns.data(), start.data(), count());
        });
    }
};

}  // namespace sparsemargin
