// Sweeps over the entries of a row by labels whose coordinates have variances.
//
// Labels that stand side by side are swept together, one or four, as vectors; those that are not
// corrected by steps of 0. Each comes to what it would alone, to the bit.
#pragma once

#include <cstdint>

#include "../numerics/packs.hpp"

namespace sparsemargin {

constexpr int MOST_SWEPT = 4;

struct Sweep {  // of each label
    double size[MOST_SWEPT];  // of the step, at the scale of t
    // 1 / V_j gains factor * x_j**2 / (noise + what others add to the output's variance).
    double factor[MOST_SWEPT], output[MOST_SWEPT], noise[MOST_SWEPT];
    // What came of it.
    double growth[MOST_SWEPT];  // of the sum of squares
    int64_t nonzero[MOST_SWEPT];  // coordinates more than before
};

struct SweptRow {
    const double *values;
    const int64_t *columns;
    int64_t n;
    double *variances;  // of the coordinates, of all labels side by side
    double *numbers;  // room for what they were
};

template <int W, class S>
SM_INLINE void add_variances(const S *gain, int64_t width, SweptRow row, double *totals) {
    Pack<W, double> total = {};
    for (int64_t j = 0; j < row.n; ++j, row.variances += W) {
        const auto of = 1.0 / (1.0 + as<W, double>(load<W>(gain + row.columns[j] * width)));
        store<W>(row.variances, of);
        total += row.values[j] * row.values[j] * of;
    }
    store<W>(totals, total);
}

template <int W, class S>
SM_INLINE void move_labels(S *t, S *gain, int64_t width, SweptRow row, Sweep *sweep) {
    const auto size = load<W>(sweep->size), factor = load<W>(sweep->factor);
    const auto output = load<W>(sweep->output), noise = load<W>(sweep->noise);
    Pack<W, double> growth = {}, zero = {};
    Pack<W, int64_t> nonzero = {};
    for (int64_t j = 0; j < row.n; ++j, row.variances += W, row.numbers += W) {
        S *own_t = t + row.columns[j] * width, *own_gain = gain + row.columns[j] * width;
        const auto value = row.values[j];
        const auto variance = load<W>(row.variances);
        const auto square = factor * value * value;
        const auto others = output - square * variance;
        const auto old = as<W, double>(load<W>(own_t));
        const auto stored = as<W, S>(old + size * value * variance);
        const auto moved = as<W, double>(stored);
        store<W>(row.numbers, old);
        store<W>(own_t, stored);
        store<W>(own_gain, load<W>(own_gain) +
                               as<W, S>(square / (noise + (others > zero ? others : zero))));
        growth += (moved - old) * (moved + old);
        // Of vectors, what is true is -1.
        if constexpr (W == 1)
            nonzero += (moved != zero) - (old != zero);
        else
            nonzero += (old != zero) - (moved != zero);
    }
    store<W>(sweep->growth, growth);
    store<W>(sweep->nonzero, nonzero);
}

// Compilers make the widths of functions, not of templates.
#define SM_SWEEPS_BY(S)                                                                          \
    SM_ALL_WIDTHS static void variances_of(const S *gain, int64_t width, int w,                  \
                                           const SweptRow &row, double *totals) {                \
        if (w == 1)                                                                              \
            add_variances<1>(gain, width, row, totals);                                          \
        else                                                                                     \
            add_variances<MOST_SWEPT>(gain, width, row, totals);                                 \
    }                                                                                            \
    SM_ALL_WIDTHS static void sweep_labels(S *t, S *gain, int64_t width, int w,                  \
                                           const SweptRow &row, Sweep *of) {                     \
        if (w == 1)                                                                              \
            move_labels<1>(t, gain, width, row, of);                                             \
        else                                                                                     \
            move_labels<MOST_SWEPT>(t, gain, width, row, of);                                    \
    }
SM_SWEEPS_BY(float)
SM_SWEEPS_BY(double)

}  // namespace sparsemargin
