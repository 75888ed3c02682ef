/* The least a Perceptron epoch can cost in plain C: one dot product per row, one update per
   mistake, no averaging, no scaling, no checks. */

#include <stdint.h>

#define PERCEPTRON_EPOCH(NAME, REAL)                                                         \
    void NAME(int64_t n_rows, const int32_t *order, const int32_t *indptr,                   \
              const int32_t *indices, const REAL *data, const REAL *y, REAL *w)              \
    {                                                                                        \
        for (int64_t t = 0; t < n_rows; t++) {                                               \
            const int32_t row = order[t];                                                    \
            REAL score = 0;                                                                  \
            for (int32_t j = indptr[row]; j < indptr[row + 1]; j++)                          \
                score += data[j] * w[indices[j]];                                            \
            if (y[row] * score > 0)                                                          \
                continue;                                                                    \
            for (int32_t j = indptr[row]; j < indptr[row + 1]; j++)                          \
                w[indices[j]] += y[row] * data[j];                                           \
        }                                                                                    \
    }

PERCEPTRON_EPOCH(perceptron_epoch_float32, float)
PERCEPTRON_EPOCH(perceptron_epoch_float64, double)
