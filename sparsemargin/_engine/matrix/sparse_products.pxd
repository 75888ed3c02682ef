"""Passes over stored rows: sparse vectors over places, one after the other.

Compiled for the vector widths there are, as `_vectors` is and with the same bits. Vectors of four
halve the instructions that arithmetic takes; the loads and stores of single entries are left.
"""

from libc.stdint cimport int32_t, int64_t

cdef extern from "numerics/widths.hpp":
    pass

cdef extern from *:
    """
    typedef double sm_four __attribute__((vector_size(32)));
    typedef double sm_lanes __attribute__((vector_size(32), aligned(8), may_alias));
    #define SM_TAKE(z, p) (sm_four{(z)[(p)[0]], (z)[(p)[1]], (z)[(p)[2]], (z)[(p)[3]]})
    #define SM_LOAD(v) (sm_four{(double)(v)[0], (double)(v)[1], (double)(v)[2], (double)(v)[3]})
    template <class V>
    SM_INLINE double sm_sparse_dot(const V *values, const int32_t *columns, int64_t n,
                                   const double *z) {
        const uint32_t *places = (const uint32_t *)columns;  // not negative, so none is extended
        sm_four even = {0, 0, 0, 0}, odd = {0, 0, 0, 0};
        int64_t j = 0;
        for (; j + 8 <= n; j += 8) {
            even += SM_LOAD(values + j) * SM_TAKE(z, places + j);
            odd += SM_LOAD(values + j + 4) * SM_TAKE(z, places + j + 4);
        }
        even += odd;
        double total = (even[0] + even[2]) + (even[1] + even[3]);
        for (; j < n; ++j) total += (double)values[j] * z[places[j]];
        return total;
    }
    template <class V>
    SM_INLINE void sm_add_sparse(double *z, double factor, const V *values,
                                 const int32_t *columns, int64_t n) {
        const uint32_t *places = (const uint32_t *)columns;
        int64_t j = 0;
        for (; j + 4 <= n; j += 4) {
            const uint32_t *p = places + j;
            sm_four sum = SM_TAKE(z, p) + factor * SM_LOAD(values + j);
            for (int i = 0; i < 4; ++i) z[p[i]] = sum[i];
        }
        for (; j < n; ++j) z[places[j]] += factor * values[j];
    }
    // z <- (I - rates[i] a_i b_i^T) z
    template <class V>
    SM_INLINE void sm_peel(double *z, const V *a, const V *b, const int32_t *places,
                           const int64_t *start, const double *rates, int64_t i) {
        int64_t at = start[i], n = start[i + 1] - at;
        double along = sm_sparse_dot(b + at, places + at, n, z);
        sm_add_sparse(z, -rates[i] * along, a + at, places + at, n);
    }
    // The same for four vectors side by side.
    template <class V>
    SM_INLINE void sm_peel_lanes(sm_lanes *z, const V *a, const V *b, const int32_t *columns,
                                 const int64_t *start, const double *rates, int64_t i) {
        int64_t at = start[i], n = start[i + 1] - at, j = 0;
        const uint32_t *places = (const uint32_t *)columns + at;
        sm_four even = {0, 0, 0, 0}, odd = {0, 0, 0, 0};
        a += at;
        b += at;
        for (; j + 2 <= n; j += 2) {
            even += (double)b[j] * z[places[j]];
            odd += (double)b[j + 1] * z[places[j + 1]];
        }
        if (j < n) even += (double)b[j] * z[places[j]];
        even = (even + odd) * rates[i];
        for (j = 0; j < n; ++j) z[places[j]] -= even * (double)a[j];
    }
    SM_ALL_WIDTHS
    static void sm_spread(double *lanes, const double *z, const double *factors, Py_ssize_t n) {
        sm_lanes *sums = (sm_lanes *)lanes;
        sm_four by = {factors[0], factors[1], factors[2], factors[3]};
        for (Py_ssize_t i = 0; i < n; ++i) sums[i] += by * z[i];
    }
    #define SM_PASSES(V)                                                                         \
        SM_ALL_WIDTHS                                                                            \
        static void sm_peel_down(double *z, const V *a, const V *b, const int32_t *places,       \
                                 const int64_t *start, const double *rates, int64_t k) {         \
            for (int64_t i = k - 1; i >= 0; --i) sm_peel(z, a, b, places, start, rates, i);      \
        }                                                                                        \
        SM_ALL_WIDTHS                                                                            \
        static void sm_peel_up(double *z, const V *a, const V *b, const int32_t *places,         \
                               const int64_t *start, const double *rates, int64_t k) {           \
            for (int64_t i = 0; i < k; ++i) sm_peel(z, a, b, places, start, rates, i);           \
        }                                                                                        \
        SM_ALL_WIDTHS                                                                            \
        static void sm_peel_lanes_down(double *z, const V *a, const V *b, const int32_t *places, \
                                       const int64_t *start, const double *rates, int64_t k) {   \
            for (int64_t i = k - 1; i >= 0; --i)                                                 \
                sm_peel_lanes((sm_lanes *)z, a, b, places, start, rates, i);                     \
        }                                                                                        \
        SM_ALL_WIDTHS                                                                            \
        static void sm_peel_lanes_up(double *z, const V *a, const V *b, const int32_t *places,   \
                                     const int64_t *start, const double *rates, int64_t k) {     \
            for (int64_t i = 0; i < k; ++i)                                                      \
                sm_peel_lanes((sm_lanes *)z, a, b, places, start, rates, i);                     \
        }                                                                                        \
        SM_ALL_WIDTHS                                                                            \
        static void sm_products(double *out, const double *z, const V *rows,                     \
                                const int32_t *places, const int64_t *start, int64_t k) {        \
            for (int64_t i = 0; i < k; ++i) {                                                    \
                int64_t at = start[i], n = start[i + 1] - at;                                    \
                out[i] = sm_sparse_dot(rows + at, places + at, n, z);                            \
            }                                                                                    \
        }                                                                                        \
        SM_ALL_WIDTHS                                                                            \
        static void sm_combine(double *z, const double *factors, const V *rows,                  \
                               const int32_t *places, const int64_t *start, int64_t k) {         \
            for (int64_t i = 0; i < k; ++i) {                                                    \
                int64_t at = start[i], n = start[i + 1] - at;                                    \
                sm_add_sparse(z, factors[i], rows + at, places + at, n);                         \
            }                                                                                    \
        }
    SM_PASSES(double)
    SM_PASSES(float)
    """
    double sparse_dot "sm_sparse_dot"(const double* values, const int32_t* places, int64_t n,
                                      const double* z) noexcept nogil
    void add_sparse "sm_add_sparse"(double* z, double factor, const double* values,
                                    const int32_t* places, int64_t n) noexcept nogil
    # z <- prod_i (I - rates[i] a_i b_i^T) z, the last row first
    void peel_down "sm_peel_down"(double* z, const float* a, const float* b,
                                  const int32_t* places, const int64_t* start,
                                  const double* rates, int64_t k) noexcept nogil
    void peel_down "sm_peel_down"(double* z, const double* a, const double* b,
                                  const int32_t* places, const int64_t* start,
                                  const double* rates, int64_t k) noexcept nogil
    # the same, the first row first
    void peel_up "sm_peel_up"(double* z, const float* a, const float* b,
                              const int32_t* places, const int64_t* start,
                              const double* rates, int64_t k) noexcept nogil
    void peel_up "sm_peel_up"(double* z, const double* a, const double* b,
                              const int32_t* places, const int64_t* start,
                              const double* rates, int64_t k) noexcept nogil
    # the two for four vectors side by side
    void peel_lanes_down "sm_peel_lanes_down"(double* z, const float* a, const float* b,
                                              const int32_t* places, const int64_t* start,
                                              const double* rates, int64_t k) noexcept nogil
    void peel_lanes_down "sm_peel_lanes_down"(double* z, const double* a, const double* b,
                                              const int32_t* places, const int64_t* start,
                                              const double* rates, int64_t k) noexcept nogil
    void peel_lanes_up "sm_peel_lanes_up"(double* z, const float* a, const float* b,
                                          const int32_t* places, const int64_t* start,
                                          const double* rates, int64_t k) noexcept nogil
    void peel_lanes_up "sm_peel_lanes_up"(double* z, const double* a, const double* b,
                                          const int32_t* places, const int64_t* start,
                                          const double* rates, int64_t k) noexcept nogil
    # lanes <- lanes + z factors^T
    void spread "sm_spread"(double* lanes, const double* z, const double* factors,
                            Py_ssize_t n) noexcept nogil
    # out[i] <- row_i . z
    void products "sm_products"(double* out, const double* z, const float* rows,
                                const int32_t* places, const int64_t* start,
                                int64_t k) noexcept nogil
    void products "sm_products"(double* out, const double* z, const double* rows,
                                const int32_t* places, const int64_t* start,
                                int64_t k) noexcept nogil
    # z <- z + sum_i factors[i] row_i
    void combine "sm_combine"(double* z, const double* factors, const float* rows,
                              const int32_t* places, const int64_t* start,
                              int64_t k) noexcept nogil
    void combine "sm_combine"(double* z, const double* factors, const double* rows,
                              const int32_t* places, const int64_t* start,
                              int64_t k) noexcept nogil
