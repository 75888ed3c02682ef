/* The lower limit of the cost of an epoch: bare loops, whose rows are prefetched some trials ahead.
   Rows are not checked, measured, weighted or counted, there is no intercept, and the order of
   sums is not fixed. */

#include <stdint.h>

#define AHEAD 8
#define LINE 64

/* Inlined, so that the compiler does not remove functions that only prefetch. */
#define INLINED __attribute__((always_inline)) static inline

struct Rows {
    int64_t n;
    const int32_t *order, *indptr, *indices;
};

INLINED void prefetch_span(const char *from, const char *to)
{
    for (; from < to; from += LINE)
        __builtin_prefetch(from);
}

#define LOOPS(REAL)                                                                           \
    INLINED void prefetch_##REAL(const struct Rows *rows, int64_t t, const REAL *data)        \
    {                                                                                         \
        if (t + AHEAD >= rows->n)                                                             \
            return;                                                                           \
        const int32_t *at = rows->indptr + rows->order[t + AHEAD];                            \
        prefetch_span((const char *)(rows->indices + at[0]),                                  \
                      (const char *)(rows->indices + at[1]));                                 \
        prefetch_span((const char *)(data + at[0]), (const char *)(data + at[1]));            \
    }                                                                                         \
                                                                                              \
    /* The output of a row; coordinates of the vector are `apart` numbers apart. */           \
    INLINED REAL output_##REAL(const int32_t *columns, const REAL *data, int32_t from, int32_t to, \
                               const REAL *w, int64_t apart)                                  \
    {                                                                                         \
        REAL even = 0, odd = 0;                                                               \
        int32_t j = from;                                                                     \
        for (; j + 2 <= to; j += 2) {                                                         \
            even += data[j] * w[apart * columns[j]];                                          \
            odd += data[j + 1] * w[apart * columns[j + 1]];                                   \
        }                                                                                     \
        if (j < to)                                                                           \
            even += data[j] * w[apart * columns[j]];                                          \
        return even + odd;                                                                    \
    }                                                                                         \
                                                                                              \
    /* The last vector of a Perceptron. */                                                    \
    void last_##REAL(const struct Rows *rows, const REAL *data, const REAL *y, REAL *w)       \
    {                                                                                         \
        const int32_t *columns = rows->indices;                                               \
        for (int64_t t = 0; t < rows->n; t++) {                                               \
            const int32_t row = rows->order[t], from = rows->indptr[row];                     \
            const int32_t to = rows->indptr[row + 1];                                         \
            prefetch_##REAL(rows, t, data);                                                   \
            if (y[row] * output_##REAL(columns, data, from, to, w, 1) > 0)                    \
                continue;                                                                     \
            for (int32_t j = from; j < to; j++)                                               \
                w[columns[j]] += y[row] * data[j];                                            \
        }                                                                                     \
    }                                                                                         \
                                                                                              \
    /* The average is w - u / t, where u sums t times the correction; w and u are interleaved. */\
    void average_##REAL(const struct Rows *rows, const REAL *data, const REAL *y, REAL *wu)   \
    {                                                                                         \
        const int32_t *columns = rows->indices;                                               \
        for (int64_t t = 0; t < rows->n; t++) {                                               \
            const int32_t row = rows->order[t], from = rows->indptr[row];                     \
            const int32_t to = rows->indptr[row + 1];                                         \
            prefetch_##REAL(rows, t, data);                                                   \
            if (y[row] * output_##REAL(columns, data, from, to, wu, 2) > 0)                   \
                continue;                                                                     \
            for (int32_t j = from; j < to; j++) {                                             \
                REAL *own = wu + 2 * (int64_t)columns[j], step = y[row] * data[j];            \
                own[0] += step;                                                               \
                own[1] += t * step;                                                           \
            }                                                                                 \
        }                                                                                     \
    }                                                                                         \
                                                                                              \
    /* AROW with r = 1; the mean and the variance of a coordinate are adjacent. */            \
    void arow_##REAL(const struct Rows *rows, const REAL *data, const REAL *y, REAL *wv)      \
    {                                                                                         \
        for (int64_t t = 0; t < rows->n; t++) {                                               \
            const int32_t row = rows->order[t], from = rows->indptr[row];                     \
            const int32_t to = rows->indptr[row + 1];                                         \
            const int32_t *columns = rows->indices;                                           \
            REAL output = 0, spread = 0, square = 0;                                          \
            prefetch_##REAL(rows, t, data);                                                   \
            for (int32_t j = from; j < to; j++) {                                             \
                const REAL *own = wv + 2 * (int64_t)columns[j], x = data[j];                  \
                output += x * own[0];                                                         \
                spread += x * x * own[1];                                                     \
                square += x * x;                                                              \
            }                                                                                 \
            const REAL loss = 1 - y[row] * output, beta = 1 / (spread + square);              \
            if (loss <= 0)                                                                    \
                continue;                                                                     \
            for (int32_t j = from; j < to; j++) {                                             \
                REAL *own = wv + 2 * (int64_t)columns[j], move = own[1] * data[j];            \
                own[0] += beta * loss * y[row] * move;                                        \
                own[1] -= beta * move * move;                                                 \
            }                                                                                 \
        }                                                                                     \
    }

LOOPS(float)
LOOPS(double)
