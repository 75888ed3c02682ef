/* The least a Perceptron epoch can cost in plain C: one dot product per row, one update per
   mistake, no averaging, no scaling, no checks. For one label, and for many at once. */

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

/* gcc makes the loop over labels for each width of vectors, and the machine takes its widest. Two
   features at once, which gcc would take, it does not vectorise. */
#if defined(__x86_64__) && !defined(__clang__) && __GNUC__ >= 12
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"),
               optimize("no-loop-unroll-and-jam")))
#endif
/* The weights of a feature lie side by side, `stride` floats from those of the next; `signs` are
   -1 or 1, n_labels for each row; `scores` is room for `stride` floats. */
void perceptron_labels_epoch(int64_t n_rows, int64_t n_labels, int64_t stride,
                             const int32_t *order, const int32_t *indptr,
                             const int32_t *indices, const float *data, const int8_t *signs,
                             float *restrict w, float *restrict scores)
{
    for (int64_t t = 0; t < n_rows; t++) {
        const int32_t row = order[t];
        const int8_t *sign = signs + row * n_labels;
        for (int64_t label = 0; label < stride; label++)
            scores[label] = 0;
        for (int32_t j = indptr[row]; j < indptr[row + 1]; j++) {
            const float *of_feature = w + indices[j] * stride;
            const float value = data[j];
            for (int64_t label = 0; label < stride; label++)
                scores[label] += value * of_feature[label];
        }
        for (int64_t label = 0; label < n_labels; label++) {
            if (sign[label] * scores[label] > 0)
                continue;
            for (int32_t j = indptr[row]; j < indptr[row + 1]; j++)
                w[indices[j] * stride + label] += sign[label] * data[j];
        }
    }
}
