"""Loops over contiguous doubles, compiled for several SIMD widths.

The width is selected at run time. Entries are independent, and sums use a fixed number of partial
sums, so all widths give bitwise equal results.
"""

cdef extern from "numerics/widths.hpp":
    pass

cdef extern from *:
    """
    SM_ALL_WIDTHS
    static void sm_add_multiple(double *sum, const double *terms, double factor, Py_ssize_t n) {
        for (Py_ssize_t i = 0; i < n; ++i) sum[i] += factor * terms[i];
    }
    SM_ALL_WIDTHS
    static double sm_dot(const double *a, const double *b, Py_ssize_t n) {
        double sums[16] = {0}, rest = 0;
        Py_ssize_t i = 0;
        for (; i + 16 <= n; i += 16)
            for (int j = 0; j < 16; ++j) sums[j] += a[i + j] * b[i + j];
        for (; i < n; ++i) rest += a[i] * b[i];
        for (int half = 8; half; half /= 2)
            for (int j = 0; j < half; ++j) sums[j] += sums[j + half];
        return sums[0] + rest;
    }
    SM_ALL_WIDTHS
    static void sm_rotate(double *row, double *x, double cosine, double sine, Py_ssize_t n) {
        for (Py_ssize_t i = 0; i < n; ++i) {
            double turned = (row[i] + sine * x[i]) / cosine;
            x[i] = cosine * x[i] - sine * turned;
            row[i] = turned;
        }
    }
    // Replaces variances of 0 by `initial`, and returns the sum of values[i]**2 variances[i].
    SM_ALL_WIDTHS
    static double sm_spread(double *variances, const double *values, double initial,
                            Py_ssize_t n) {
        double sums[16] = {0}, rest = 0;
        Py_ssize_t i = 0;
        for (Py_ssize_t j = 0; j < n; ++j)
            variances[j] = variances[j] == 0 ? initial : variances[j];
        for (; i + 16 <= n; i += 16)
            for (int j = 0; j < 16; ++j)
                sums[j] += values[i + j] * values[i + j] * variances[i + j];
        for (; i < n; ++i) rest += values[i] * values[i] * variances[i];
        for (int half = 8; half; half /= 2)
            for (int j = 0; j < half; ++j) sums[j] += sums[j + half];
        return sums[0] + rest;
    }
    // Stores the variances times (noise + others) / (noise + output), at least `least`, in
    // `fallen`. `output` is the sum of own = factor values[i]**2 variances[i] over all entries, and
    // others = output - own. Returns whether others < own for any entry.
    SM_ALL_WIDTHS
    static bool sm_fall(double *fallen, const double *variances, const double *values,
                        double factor, double output, double noise, double least, Py_ssize_t n) {
        double shrink = 1 / (noise + output);
        int64_t any = 0;
        for (Py_ssize_t i = 0; i < n; ++i) {
            double own = factor * values[i] * values[i] * variances[i], others = output - own;
            double made = variances[i] * ((noise + others) * shrink);
            any |= others < own ? -1 : 0;
            fallen[i] = made > least ? made : least;
        }
        return any != 0;
    }
    // Sets `growth` to the increase of the sum of squares from one vector to another, and returns
    // the increase of the number of nonzero entries.
    SM_ALL_WIDTHS
    static Py_ssize_t sm_growth(double *growth, const double *from, const double *to,
                                Py_ssize_t n) {
        double sums[16] = {0}, rest = 0;
        int64_t more = 0;
        Py_ssize_t i = 0;
        for (; i + 16 <= n; i += 16)
            for (int j = 0; j < 16; ++j)
                sums[j] += (to[i + j] - from[i + j]) * (to[i + j] + from[i + j]);
        for (; i < n; ++i) rest += (to[i] - from[i]) * (to[i] + from[i]);
        for (i = 0; i < n; ++i) more += (from[i] == 0 ? 1 : 0) - (to[i] == 0 ? 1 : 0);
        for (int half = 8; half; half /= 2)
            for (int j = 0; j < half; ++j) sums[j] += sums[j + half];
        *growth = sums[0] + rest;
        return more;
    }
    // Returns the first row from i on whose test fires, or n. 16 rows are tested at once.
    #define SM_DUE(i) (signs[i] * sigma * scores[i] <= threshold * measured[i])
    SM_ALL_WIDTHS
    static Py_ssize_t sm_first_due(const double *scores, const double *signs,
                                   const double *measured, double sigma, double threshold,
                                   Py_ssize_t i, Py_ssize_t n) {
        for (; i + 16 <= n; i += 16) {
            int64_t any = 0;  // as wide as a double, so that the compiler uses SIMD instructions
            for (Py_ssize_t b = 0; b < 16; ++b) any |= SM_DUE(i + b) ? -1 : 0;
            if (any) break;
        }
        while (i < n && !SM_DUE(i)) ++i;
        return i;
    }
    // Returns whether the test of a vector fires, or its score may have underflowed or overflowed.
    static inline bool sm_may_fire(const double *scores, const double *y, const double *sigma,
                                   const double *threshold, double measured, Py_ssize_t l) {
        double size = scores[l] < 0 ? -scores[l] : scores[l];
        return !(y[l] * sigma[l] * scores[l] > threshold[l] * measured) | !(size > 1e-270) |
               !(size < 1e270);
    }
    // Returns the first vector from l on for which `sm_may_fire` is true, or n.
    SM_ALL_WIDTHS
    static Py_ssize_t sm_first_firing(const double *scores, const double *y, const double *sigma,
                                      const double *threshold, double measured, Py_ssize_t l,
                                      Py_ssize_t n) {
        for (; l + 16 <= n; l += 16) {
            int64_t any = 0;
            for (Py_ssize_t b = 0; b < 16; ++b) {
                bool may_fire = sm_may_fire(scores, y, sigma, threshold, measured, l + b);
                any |= may_fire ? -1 : 0;
            }
            if (any) break;
        }
        while (l < n && !sm_may_fire(scores, y, sigma, threshold, measured, l)) ++l;
        return l;
    }
    // Returns whether another vector outscores vector `own`. Among equal scores the first wins.
    SM_ALL_WIDTHS
    static bool sm_is_outscored(const double *scores, const double *units, Py_ssize_t own,
                                Py_ssize_t n) {
        double score = units[own] * scores[own];
        int64_t any = 0;
        for (Py_ssize_t l = 0; l < own; ++l) any |= units[l] * scores[l] >= score ? -1 : 0;
        for (Py_ssize_t l = own + 1; l < n; ++l) any |= units[l] * scores[l] > score ? -1 : 0;
        return any != 0;
    }
    """
    void add_multiple "sm_add_multiple"(double* sum, const double* terms, double factor,
                                        Py_ssize_t n) noexcept nogil
    double dot "sm_dot"(const double* a, const double* b, Py_ssize_t n) noexcept nogil
    void rotate "sm_rotate"(double* row, double* x, double cosine, double sine,
                            Py_ssize_t n) noexcept nogil
    double spread "sm_spread"(double* variances, const double* values, double initial,
                              Py_ssize_t n) noexcept nogil
    bint fall "sm_fall"(double* fallen, const double* variances, const double* values,
                        double factor, double output, double noise, double least,
                        Py_ssize_t n) noexcept nogil
    Py_ssize_t growth "sm_growth"(double* growth, const double* from_, const double* to,
                                  Py_ssize_t n) noexcept nogil
    Py_ssize_t first_due "sm_first_due"(const double* scores, const double* signs,
                                        const double* measured, double sigma, double threshold,
                                        Py_ssize_t i, Py_ssize_t n) noexcept nogil
    bint is_outscored "sm_is_outscored"(const double* scores, const double* units, Py_ssize_t own,
                                        Py_ssize_t n) noexcept nogil
    bint may_fire "sm_may_fire"(const double* scores, const double* y, const double* sigma,
                                const double* threshold, double measured,
                                Py_ssize_t l) noexcept nogil
    Py_ssize_t first_firing "sm_first_firing"(const double* scores, const double* y,
                                              const double* sigma, const double* threshold,
                                              double measured, Py_ssize_t l,
                                              Py_ssize_t n) noexcept nogil
