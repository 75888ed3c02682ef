// Exact sums, and sums of products with three times the precision of a double.
#pragma once

#include <cstdint>

namespace sparsemargin {

// Adds x to high, and the rounding error of this sum to low (Knuth's two-sum).
inline void add_exactly(double *high, double *low, double x) {
    const double total = *high + x, part = total - *high;
    *low += (*high - (total - part)) + (x - part);
    *high = total;
}

// Adds x to a sum of three doubles.
inline void add_long(double *high, double *low, double *lowest, double x) {
    double error = 0.0;
    add_exactly(high, &error, x);
    add_exactly(low, lowest, error);
}

// A sum of three doubles, and the number of its terms that are not 0.
struct LongSum {
    double high = 0.0, low = 0.0, lowest = 0.0;
    int64_t nonzero = 0;
};

template <int N, class T>
void sum_columns(const T *a, const T *b, int64_t n, int64_t stride, LongSum *sums) {
    double high[N] = {}, low[N] = {}, lowest[N] = {};
    int64_t nonzero[N] = {};
    for (int64_t j = 0; j < n; j++) {
        const T *const x = a + j * stride, *const y = b + j * stride;
        for (int l = 0; l < N; l++) {
            // Zeros change no bit of the sum, and a branch would often be predicted wrongly.
            add_long(&high[l], &low[l], &lowest[l], (double)x[l] * (double)y[l]);
            nonzero[l] += x[l] != 0;
        }
    }
    for (int l = 0; l < N; l++) sums[l] = {high[l], low[l], lowest[l], nonzero[l]};
}

// Sums of a[j] * b[j] over n rows, for up to 4 adjacent columns of both matrices. The sums do not
// depend on each other, so that the compiler can compute four at once.
template <class T>
void sum_products(const T *a, const T *b, int64_t n, int64_t stride, int64_t n_columns,
                  LongSum *sums) {
    if (n_columns == 4) {
        sum_columns<4>(a, b, n, stride, sums);
        return;
    }
    for (int64_t l = 0; l < n_columns; l++) sum_columns<1>(a + l, b + l, n, stride, sums + l);
}

}  // namespace sparsemargin
