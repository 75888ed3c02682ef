// Dot products of a row with the weights of many labels side by side, compiled for the vector
// widths there are.
//
// A label is summed in the same order whatever the width, and however many labels there are.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "../first_order/tiles.hpp"
#include "../numerics/widths.hpp"

namespace sparsemargin {

// Products are added up in pairs, and their sum to the total: additions that need not wait for each
// other. Where both factors are floats the short sum is one, too.
template <class S, class V>
using ShortSum = std::conditional_t<std::is_same_v<S, float> && std::is_same_v<V, float>, float,
                                    double>;
template <class Sum, int N>
SM_INLINE Sum in_pairs(const Sum *terms) {
    if constexpr (N == 1)
        return terms[0];
    else
        return in_pairs<Sum, N / 2>(terms) + in_pairs<Sum, N / 2>(terms + N / 2);
}

template <class T>
SM_INLINE void send_for_entries(const T *entries, int64_t n) {
    sm_prefetch_span(entries, entries + n);
}

template <int N, class S, class V>
SM_INLINE void add_entries(double *out, const S *const *of, const V *values, int64_t n_labels) {
    using Sum = ShortSum<S, V>;
    Sum x[N];
    for (int i = 0; i < N; ++i) x[i] = static_cast<Sum>(values[i]);
    SM_INDEPENDENT
    for (int64_t l = 0; l < n_labels; ++l) {
        Sum products[N];
        for (int i = 0; i < N; ++i) products[i] = x[i] * of[i][l];
        out[l] += in_pairs<Sum, N>(products);
    }
}

// A total of short float sums that may have lost terms to under- or overflow.
template <class S, class V>
SM_INLINE bool is_lossy(double total) {
    return std::is_same_v<ShortSum<S, V>, float> &&
           (!(1e-30 < std::fabs(total)) | !(std::fabs(total) < 1e30));
}

// The weights of all labels of a feature stand side by side.
template <class S>
struct Dense {
    using Weight = S;
    const S *weights;
    int64_t width, n_summed;
    bool far;  // too many for the near caches

    SM_ALWAYS_INLINE int64_t summed() const { return n_summed; }

    template <int N, class V, class I>
    SM_ALWAYS_INLINE void add(double *out, const V *values, const I *columns) const {
        const S *of[N];
        for (int i = 0; i < N; ++i) of[i] = weights + width * static_cast<int64_t>(columns[i]);
        add_entries<N>(out, of, values, n_summed);
    }

    template <class I>
    SM_ALWAYS_INLINE double weight(I column, int64_t l) const {
        return weights[width * static_cast<int64_t>(column) + l];
    }

    template <class I>
    SM_ALWAYS_INLINE void send_for(I column) const {
        if (far) send_for_entries(weights + width * static_cast<int64_t>(column), n_summed);
    }
};

// The weights of a feature stand in tiles, each of some labels; tile 0 of a block of labels is
// that of all features for which none of them has learned anything.
template <class S>
struct Tiled {
    using Weight = S;
    const char *blocks;  // each has a pointer to its tiles
    int64_t stride;
    const int32_t *places;  // of a feature's tiles, by block
    int64_t n_blocks, first, last;

    SM_ALWAYS_INLINE int64_t summed() const { return (last - first) * TILE; }

    SM_ALWAYS_INLINE const S *tiles(int64_t b) const {
        return *reinterpret_cast<const S *const *>(blocks + b * stride);
    }

    template <int N, class V, class I>
    SM_ALWAYS_INLINE void add(double *out, const V *values, const I *columns) const {
        const int32_t *at[N];
        for (int i = 0; i < N; ++i) at[i] = places + n_blocks * static_cast<int64_t>(columns[i]);
        for (int64_t b = first; b < last; ++b) {
            const S *of[N];
            int32_t any = 0;
            for (int i = 0; i < N; ++i) {
                any |= at[i][b];
                of[i] = tiles(b) + static_cast<int64_t>(at[i][b]) * TILE;
            }
            if (any) add_entries<N>(out + (b - first) * TILE, of, values, TILE);
        }
    }

    template <class I>
    SM_ALWAYS_INLINE double weight(I column, int64_t l) const {
        int64_t b = first + l / TILE;
        int64_t place = places[n_blocks * static_cast<int64_t>(column) + b];
        return tiles(b)[place * TILE + l % TILE];
    }

    template <class I>
    SM_ALWAYS_INLINE void send_for(I column) const {
        send_for_entries(places + n_blocks * static_cast<int64_t>(column) + first, last - first);
    }
};

// Weights are sent for so many entries before they are needed.
constexpr int64_t ENTRIES_AHEAD = 16;

// A row's entries, and the columns of the one that comes next.
template <class V, class I>
struct RowAhead {
    const V *values;
    const I *columns;
    int64_t n;
    const I *next_columns;
    int64_t n_next;

    template <class W>
    SM_ALWAYS_INLINE void send_from(const W &weights, int64_t j) const {
        for (int64_t stop = j + 8; j < stop; ++j) {
            if (j < n)
                weights.send_for(columns[j]);
            else if (j - n < n_next)
                weights.send_for(next_columns[j - n]);
        }
    }
};

template <class W, class V, class I>
SM_INLINE void score(double *out, int64_t n_labels, const W &weights, const RowAhead<V, I> &row) {
    const V *values = row.values;
    const I *columns = row.columns;
    int64_t j = 0, n = row.n;
    for (int64_t l = 0; l < weights.summed(); ++l) out[l] = 0;
    for (; j + 8 <= n; j += 8) {
        row.send_from(weights, j + ENTRIES_AHEAD);
        weights.template add<8>(out, values + j, columns + j);
    }
    for (int64_t ahead = j; ahead < n; ahead += 8) row.send_from(weights, ahead + ENTRIES_AHEAD);
    if (n - j >= 4) {
        weights.template add<4>(out, values + j, columns + j);
        j += 4;
    }
    if (n - j >= 2) {
        weights.template add<2>(out, values + j, columns + j);
        j += 2;
    }
    if (n - j >= 1) weights.template add<1>(out, values + j, columns + j);
    int64_t any = 0;  // as wide as a double: the compiler then uses vectors
    for (int64_t l = 0; l < n_labels; ++l) any |= is_lossy<typename W::Weight, V>(out[l]) ? -1 : 0;
    for (int64_t l = 0; any && l < n_labels; ++l) {
        if (!is_lossy<typename W::Weight, V>(out[l])) continue;
        out[l] = 0;
        for (j = 0; j < n; ++j) out[l] += values[j] * weights.weight(columns[j], l);
    }
}

// Compilers make the widths of functions, not of templates.
#define SM_SCORE_BY(W, V, I)                                                                    \
    SM_ALL_WIDTHS static void score_at_width(double *out, int64_t n_labels, const W &weights,   \
                                             const RowAhead<V, I> &row) {                            \
        score(out, n_labels, weights, row);                                                     \
    }
#define SM_SCORES_BY(W)                                                                         \
    SM_SCORE_BY(W, float, int32_t)                                                              \
    SM_SCORE_BY(W, float, int64_t)                                                              \
    SM_SCORE_BY(W, double, int32_t)                                                             \
    SM_SCORE_BY(W, double, int64_t)
SM_SCORES_BY(Dense<float>)
SM_SCORES_BY(Dense<double>)
SM_SCORES_BY(Tiled<float>)
SM_SCORES_BY(Tiled<double>)

// The same sums for K labels, all there are, and so few that vectors don't pay: their totals stay
// in registers.
template <int N, int K, class S, class V, class I>
SM_INLINE void add_few(double *totals, const S *weights, const V *values, const I *columns) {
    using Sum = ShortSum<S, V>;
    const S *of[N];
    for (int i = 0; i < N; ++i) of[i] = weights + K * static_cast<int64_t>(columns[i]);
    for (int l = 0; l < K; ++l) {
        Sum products[N];
        for (int i = 0; i < N; ++i) products[i] = static_cast<Sum>(values[i]) * of[i][l];
        totals[l] += in_pairs<Sum, N>(products);
    }
}

template <int K, class S, class V, class I>
void score_few(double *out, const S *weights, bool far, const RowAhead<V, I> &row) {
    const V *values = row.values;
    const I *columns = row.columns;
    double totals[K] = {0};
    int64_t j = 0, n = row.n;
    for (; j + 8 <= n; j += 8) {
        for (int64_t a = j + ENTRIES_AHEAD; far && a < j + ENTRIES_AHEAD + 8; ++a) {
            if (a < n)
                SM_PREFETCH(weights + K * static_cast<int64_t>(columns[a]));
            else if (a - n < row.n_next)
                SM_PREFETCH(weights + K * static_cast<int64_t>(row.next_columns[a - n]));
        }
        add_few<8, K>(totals, weights, values + j, columns + j);
    }
    if (n - j >= 4) {
        add_few<4, K>(totals, weights, values + j, columns + j);
        j += 4;
    }
    if (n - j >= 2) {
        add_few<2, K>(totals, weights, values + j, columns + j);
        j += 2;
    }
    if (n - j >= 1) add_few<1, K>(totals, weights, values + j, columns + j);
    for (int l = 0; l < K; ++l) {
        if (is_lossy<S, V>(totals[l])) {
            totals[l] = 0;
            for (j = 0; j < n; ++j) {
                double weight = weights[K * static_cast<int64_t>(columns[j]) + l];
                totals[l] += values[j] * weight;
            }
        }
        out[l] = totals[l];
    }
}

// Of `n_summed` labels, the first `n_labels` are no padding.
template <class S, class V, class I>
void score_dense(double *out, const S *weights, int64_t width, int64_t n_labels, int64_t n_summed,
                 bool far, const V *values, const I *columns, int64_t n, const I *next_columns,
                 int64_t n_next) {
    RowAhead<V, I> row{values, columns, n, next_columns, n_next};
    if (width == 2 && n_labels == 2)
        score_few<2>(out, weights, far, row);
    else if (width == 3 && n_labels == 3)
        score_few<3>(out, weights, far, row);
    else if (width == 4 && n_labels == 4)
        score_few<4>(out, weights, far, row);
    else
        score_at_width(out, n_labels, Dense<S>{weights, width, n_summed, far}, row);
}

template <class S, class V, class I>
void score_tiled(double *out, const S *const *of_block, int64_t stride, const int32_t *places,
                 int64_t n_blocks, int64_t first, int64_t last, int64_t n_labels,
                 const V *values, const I *columns, int64_t n, const I *next_columns,
                 int64_t n_next) {
    Tiled<S> weights{reinterpret_cast<const char *>(of_block), stride, places, n_blocks, first,
                     last};
    score_at_width(out, n_labels, weights, RowAhead<V, I>{values, columns, n, next_columns, n_next});
}

// A label alone: the same sums, without the loop over labels.

template <int N, class S, class V, class I>
SM_INLINE double add_alone(double total, const S *weights, const V *values, const I *columns) {
    using Sum = ShortSum<S, V>;
    Sum products[N];
    for (int i = 0; i < N; ++i) products[i] = static_cast<Sum>(values[i]) * weights[columns[i]];
    return total + in_pairs<Sum, N>(products);
}

template <class S, class V, class I>
double add_alone(double total, const S *weights, const V *values, const I *columns, int64_t n) {
    int64_t j = 0;
    for (; j + 8 <= n; j += 8) total = add_alone<8>(total, weights, values + j, columns + j);
    if (n - j >= 4) {
        total = add_alone<4>(total, weights, values + j, columns + j);
        j += 4;
    }
    if (n - j >= 2) {
        total = add_alone<2>(total, weights, values + j, columns + j);
        j += 2;
    }
    return n - j >= 1 ? add_alone<1>(total, weights, values + j, columns + j) : total;
}

template <class S, class V, class I>
double save_alone(double total, const S *weights, const V *values, const I *columns, int64_t n) {
    if (!is_lossy<S, V>(total)) return total;
    total = 0;
    for (int64_t j = 0; j < n; ++j)
        total += values[j] * static_cast<double>(weights[columns[j]]);
    return total;
}

}  // namespace sparsemargin
