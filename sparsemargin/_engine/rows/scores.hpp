// Dot products of a row with one or more weight vectors.
//
// The products of a vector are summed in a fixed order, which does not depend on the number of
// vectors or on the SIMD width: eight products at a time (four, two and one at the end) in pairs.
// Therefore vectors trained together have bitwise the same scores as alone. If rows and weights are
// float, these short sums are float, too. This halves the work, and loses no more accuracy than the
// weights have lost. A score near the limits of float is computed again in double.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "csr.hpp"

// Packs are passed only between inlined functions, so the ABI does not matter.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

namespace sparsemargin {

// One number for each of W vectors.
template <int W, class T>
struct PackOf {
    typedef T type __attribute__((vector_size(W * sizeof(T))));
};
template <int W, class T>
using Pack = typename PackOf<W, T>::type;

template <int W, class T>
SM_INLINE Pack<W, T> load(const T *from) {
    Pack<W, T> pack;
    std::memcpy(&pack, from, sizeof pack);
    return pack;
}

template <int W, class T>
SM_INLINE void store(T *to, const Pack<W, T> &pack) {
    std::memcpy(to, &pack, sizeof pack);
}

template <int W, class T, class From>
SM_INLINE Pack<W, T> as(const From &pack) {
    return __builtin_convertvector(pack, Pack<W, T>);
}

// The type of the sums of up to eight products.
template <class S, class V>
using ShortSum = std::conditional_t<std::is_same_v<S, float> && std::is_same_v<V, float>, float,
                                    double>;
// Sums the terms in pairs, so that additions do not wait for each other.
template <class Sum, int N>
SM_INLINE Sum in_pairs(const Sum *terms) {
    if constexpr (N == 1)
        return terms[0];
    else
        return in_pairs<Sum, N / 2>(terms) + in_pairs<Sum, N / 2>(terms + N / 2);
}

template <int N>
using Count = std::integral_constant<int, N>;

// Calls `add` for each group of entries that are summed together, in order.
template <class Add>
SM_INLINE void in_order(int64_t n, Add add) {
    int64_t j = 0;
    for (; j + 8 <= n; j += 8) add(j, Count<8>{});
    if (n - j >= 4) {
        add(j, Count<4>{});
        j += 4;
    }
    if (n - j >= 2) {
        add(j, Count<2>{});
        j += 2;
    }
    if (n - j >= 1) add(j, Count<1>{});
}

// Returns whether a total of short float sums may have lost terms to underflow or overflow.
template <class S, class V>
SM_INLINE bool is_lossy(double total) {
    return std::is_same_v<ShortSum<S, V>, float> &&
           (!(1e-30 < std::fabs(total)) | !(std::fabs(total) < 1e30));
}

// The weights of all vectors for a feature are contiguous; `stride` is the distance between
// features.
template <class S>
struct Weights {
    const S *first;
    int64_t stride;
    int64_t n_vectors;
    int64_t n_summed;  // including padding, which stays 0
    bool far;          // too large for the near caches

    template <class I>
    SM_ALWAYS_INLINE const S *of(I column) const {
        return first + stride * static_cast<int64_t>(column);
    }

    template <class V, class I>
    SM_ALWAYS_INLINE double sum_again(const Row<V, I> &row, int64_t l) const {
        double total = 0;
        for (int64_t j = 0; j < row.nnz; ++j)
            total += row.values[j] * static_cast<double>(of(row.columns[j])[l]);
        return total;
    }
};

// Weights are prefetched this number of entries ahead, also those of the next row.
constexpr int64_t ENTRIES_AHEAD = 16;

template <class S, class V, class I>
SM_INLINE void prefetch_ahead(const Weights<S> &weights, const Row<V, I> &row,
                              const Row<V, I> &next, int64_t j, int64_t n_vectors) {
    for (int64_t stop = j + 8; j < stop; ++j) {
        if (j >= row.nnz + next.nnz) return;
        const S *start = weights.of(j < row.nnz ? row.columns[j] : next.columns[j - row.nnz]);
        sm_prefetch_span(start, start + n_vectors);
    }
}

template <class S, class V, class I>
SM_INLINE void score_many(double *out, const Weights<S> &weights, const Row<V, I> &row,
                            const Row<V, I> &next) {
    using Sum = ShortSum<S, V>;
    const int64_t n_summed = weights.n_summed;
    for (int64_t l = 0; l < n_summed; ++l) out[l] = 0;
    in_order(row.nnz, [&](int64_t j, auto count) SM_INLINE_LAMBDA {
        constexpr int N = decltype(count)::value;
        if (weights.far && N == 8) prefetch_ahead(weights, row, next, j + ENTRIES_AHEAD, n_summed);
        const S *of[N];
        Sum x[N];
        for (int i = 0; i < N; ++i) {
            of[i] = weights.of(row.columns[j + i]);
            x[i] = static_cast<Sum>(row.values[j + i]);
        }
        SM_INDEPENDENT
        for (int64_t l = 0; l < n_summed; ++l) {
            Sum products[N];
            for (int i = 0; i < N; ++i) products[i] = x[i] * of[i][l];
            out[l] += in_pairs<Sum, N>(products);
        }
    });
    if (weights.far && row.nnz % 8)
        prefetch_ahead(weights, row, next, row.nnz / 8 * 8 + ENTRIES_AHEAD, n_summed);
    int64_t any = 0;  // as wide as a double, so that the compiler uses SIMD instructions
    for (int64_t l = 0; l < weights.n_vectors; ++l) any |= is_lossy<S, V>(out[l]) ? -1 : 0;
    for (int64_t l = 0; any && l < weights.n_vectors; ++l)
        if (is_lossy<S, V>(out[l])) out[l] = weights.sum_again(row, l);
}

// Computes the same scores as `score_many`, for K vectors, with the totals in registers.
template <int K, class S, class V, class I>
SM_INLINE void score_few(double *out, const Weights<S> &weights, const Row<V, I> &row,
               const Row<V, I> &next) {
    using Sum = ShortSum<S, V>;
    Pack<K, double> totals = {};
    in_order(row.nnz, [&](int64_t j, auto count) SM_INLINE_LAMBDA {
        constexpr int N = decltype(count)::value;
        if (weights.far && N == 8) prefetch_ahead(weights, row, next, j + ENTRIES_AHEAD, 1);
        Pack<K, Sum> products[N];
        for (int i = 0; i < N; ++i)
            products[i] = static_cast<Sum>(row.values[j + i]) *
                          as<K, Sum>(load<K>(weights.of(row.columns[j + i])));
        totals += as<K, double>(in_pairs<Pack<K, Sum>, N>(products));
    });
    store<K>(out, totals);
    for (int l = 0; l < K; ++l)
        if (is_lossy<S, V>(out[l])) out[l] = weights.sum_again(row, l);
}

// Functions can be compiled for several SIMD widths, templates cannot.
#define SM_SCORES_BY(S, V, I)                                                                   \
    SM_ALL_WIDTHS static void score_by_vectors(double *out, const Weights<S> &weights,          \
                                               const Row<V, I> &row, const Row<V, I> &next) {   \
        if (weights.n_summed == 2)                                                              \
            score_few<2>(out, weights, row, next);                                              \
        else if (weights.n_summed == 4)                                                         \
            score_few<4>(out, weights, row, next);                                              \
        else                                                                                    \
            score_many(out, weights, row, next);                                              \
    }
SM_SCORES_BY(float, float, int32_t)
SM_SCORES_BY(float, float, int64_t)
SM_SCORES_BY(float, double, int32_t)
SM_SCORES_BY(float, double, int64_t)
SM_SCORES_BY(double, float, int32_t)
SM_SCORES_BY(double, float, int64_t)
SM_SCORES_BY(double, double, int32_t)
SM_SCORES_BY(double, double, int64_t)

// Computes the scores of a row by one or more vectors, and prefetches weights of the next row.
template <class S, class V, class I>
void score(double *out, const Weights<S> &weights, const Row<V, I> &row, const Row<V, I> &next) {
    score_by_vectors(out, weights, row, next);
}

template <class S, class V, class I>
SM_INLINE double add_alone(double total, const Weights<S> &weights, const V *values,
                           const I *columns, int64_t n) {
    using Sum = ShortSum<S, V>;
    in_order(n, [&](int64_t j, auto count) SM_INLINE_LAMBDA {
        constexpr int N = decltype(count)::value;
        Sum products[N];
        for (int i = 0; i < N; ++i)
            products[i] = static_cast<Sum>(values[j + i]) * *weights.of(columns[j + i]);
        total += in_pairs<Sum, N>(products);
    });
    return total;
}

// Sum of squares, as four partial sums. The last one to three values go into the first sum.
struct Squares {
    Pack<4, double> sums = {};
    Pack<4, int64_t> small = {};  // sign bit set: a square was below `least`
    Pack<4, int64_t> least;

    explicit Squares(double square) : least(static_cast<int64_t>(bits_of(square)) + small) {}

    template <class V>
    SM_ALWAYS_INLINE void add(const V *values, int64_t n) {
        int64_t j = 0;
        for (; j + 4 <= n; j += 4) add(as<4, double>(load<4>(values + j)));
        for (; j < n; ++j) {
            const double value = values[j], square = value * value;
            sums[0] += square;
            small[0] |= static_cast<int64_t>(bits_of(square)) - least[0];
        }
    }

    SM_ALWAYS_INLINE void add(const Pack<4, double> &values) {
        const Pack<4, double> squares = values * values;
        sums += squares;
        Pack<4, int64_t> bits;
        std::memcpy(&bits, &squares, sizeof bits);
        small |= bits - least;
    }

    double sum() const { return (sums[0] + sums[1]) + (sums[2] + sums[3]); }
    bool any_small() const { return (small[0] | small[1] | small[2] | small[3]) < 0; }
};

// Number of entries in a block of `score_alone`.
constexpr int64_t TOGETHER = 64;

enum Finding { SOUND, BAD_VALUE, BAD_COLUMN };

// Computes the score of a row by a single vector. If requested, the row is checked, and the sum of
// its squares is computed, which is NaN if any square is below `least`.
//
// The work is divided into short blocks, so that the processor can load the weights of one block,
// check the next block, and prefetch the same part of a later row in parallel. Weights that do not
// fit into the near caches are prefetched one block ahead, where columns out of range do no harm.
// A NaN or infinite value is detected by the score, which is then not finite either.
template <class S, class V, class I>
Finding score_alone(double *out, double *square, double least, const Weights<S> &weights,
                    int64_t n_features, bool check, const Row<V, I> &row,
                    const Row<V, I> &later) {
    double total = 0;
    Squares squares(least);
    for (int64_t start = 0; start < row.nnz; start += TOGETHER) {
        const int64_t n = std::min(TOGETHER, row.nnz - start);
        if (start < later.nnz) {
            const int64_t part = std::min(TOGETHER, later.nnz - start);
            prefetch_row(Row<V, I>{later.values + start, later.columns + start, part});
        }
        const int64_t soon = std::min(start + 2 * TOGETHER, row.nnz);
        for (int64_t j = start + TOGETHER; weights.far && j < soon; ++j)
            SM_PREFETCH(weights.of(row.columns[j]));
        if (check && !in_range(row.columns + start, n, n_features)) return BAD_COLUMN;
        if (square) squares.add(row.values + start, n);
        total = add_alone(total, weights, row.values + start, row.columns + start, n);
    }
    if (check && !std::isfinite(total) && !all_finite(row.values, row.nnz)) return BAD_VALUE;
    if (square) *square = squares.any_small() ? std::nan("") : squares.sum();
    *out = is_lossy<S, V>(total) ? weights.sum_again(row, 0) : total;
    return SOUND;
}

}  // namespace sparsemargin
