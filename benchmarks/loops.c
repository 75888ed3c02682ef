/* Plain C for comparison with the engine: a Perceptron of many labels at once, with one dot product
   and at most one update for each label and row; and learners in extended precision. */

#include <math.h>
#include <stdint.h>

/* gcc compiles the loop over labels for several SIMD widths, and the widest one is selected at run
   time. Unroll-and-jam would process two features at once, which gcc does not vectorize. */
#if defined(__x86_64__) && !defined(__clang__) && __GNUC__ >= 12
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"),
               optimize("no-loop-unroll-and-jam")))
#endif
/* The weights of a feature are contiguous, and `stride` floats apart from those of the next one.
   `signs` are -1 or 1, n_labels for each row; `scores` is a buffer of `stride` floats. */
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

/* The p-norm Perceptron and ALMA_p over rows in their order, in extended precision. The sum of
   |t_i|^p is recomputed at every call. The sums of the average are updated in every trial, without
   cancellation, for a few watched coordinates only. */

typedef long double Real;

struct Model {
    Real scale;             /* theta = scale * t */
    Real power_sum;         /* sum of |t_i|^p */
    Real threshold, step;   /* ALMA: divided by the root of the corrections; Perceptron: 0 */
    int64_t trials, corrections, begin;
    int32_t p;
};

static Real power(Real x, int32_t exponent)
{
    Real product = 1;
    for (int32_t i = 0; i < exponent; i++)
        product *= x;
    return product;
}

static Real link_of(Real t, int32_t p) { return copysignl(power(fabsl(t), p - 1), t); }

/* w = sigma * sign(t) |t|^(p-1) */
static Real sigma(const struct Model *m)
{
    if (m->p == 2 || m->power_sum == 0)
        return m->scale;
    return m->scale * powl(m->power_sum, -(Real)(m->p - 2) / m->p);
}

static void count(struct Model *m, const Real *t, int32_t n, const int32_t *watched, Real *sums)
{
    const Real weight = (m->trials - m->begin) * sigma(m);
    for (int32_t i = 0; i < n; i++)
        sums[i] += weight * link_of(t[watched[i]], m->p);
    m->begin = m->trials;
}

static void correct(struct Model *m, Real *t, Real step, const double *x, const int32_t *columns,
                    int32_t n)
{
    Real norm;
    m->corrections++;
    for (int32_t j = 0; j < n; j++) {
        Real *own = t + columns[j];
        m->power_sum -= power(fabsl(*own), m->p);
        *own += step / m->scale * x[j];
        m->power_sum += power(fabsl(*own), m->p);
    }
    norm = m->scale * powl(m->power_sum, 1 / (Real)m->p);
    if (m->step > 0 && norm > 1)
        m->scale /= norm;
}

void soak_rows(struct Model *m, int64_t n_rows, const int32_t *indptr, const int32_t *indices,
               const double *data, const Real *norms, const int8_t *y, int64_t n_features,
               Real *t, Real *g, int32_t n_watched, const int32_t *watched, Real *sums)
{
    m->power_sum = 0;
    for (int64_t j = 0; j < n_features; j++)
        m->power_sum += power(fabsl(t[j]), m->p);
    for (int64_t i = 0; i < n_rows; i++) {
        const int32_t n = indptr[i + 1] - indptr[i];
        const int32_t *columns = indices + indptr[i];
        const double *x = data + indptr[i];
        const Real root = sqrtl((Real)(m->corrections + 1));
        Real score = 0;
        for (int32_t j = 0; j < n; j++)
            score += x[j] * g[columns[j]];
        if (y[i] * score * sigma(m) <= m->threshold / root * norms[i]) {
            count(m, t, n_watched, watched, sums);
            correct(m, t, y[i] * (m->step > 0 ? m->step / root : 1) / norms[i], x, columns, n);
            for (int32_t j = 0; j < n; j++)
                g[columns[j]] = link_of(t[columns[j]], m->p);
        }
        m->trials++;
    }
    count(m, t, n_watched, watched, sums);
}
