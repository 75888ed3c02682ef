"""First-order rules.

A rule is called only at corrections. For correction number k (from 1) it computes the step and the
threshold: a trial is the k-th correction if ``y w.x`` does not exceed that threshold.
"""

from libc.math cimport INFINITY, pow, sqrt
from libc.stdint cimport int64_t

cdef enum Kind:  # stored by number in model files: append new kinds before N_KINDS
    PERCEPTRON  # with or without a margin
    ALMA
    CRAMMA
    ROMMA
    ASCENT  # dual coordinate ascent
    AROW
    N_KINDS

cdef enum Scaling:  # the norm that an instance is divided by
    BY_ROW  # its own norm
    UNSCALED
    BY_RUNNING_MAX  # the largest norm among the corrected rows, including this one
    BY_RADIUS  # a fixed norm

cdef enum Projection:  # applied to theta' after the step
    FREE
    ONTO_BALL  # divided by max(1, ||theta'||_p)
    ONTO_SPHERE  # divided by ||theta'||_p

cdef struct Rule:  # stored by field name, see `FirstOrderRule`
    Kind kind
    Scaling scaling
    double p
    double alpha
    double B
    double C
    double radius
    double margin
    double rate
    double epsilon
    double r

cdef struct Trial:  # x is scaled as the rule requires
    double output  # y w.x
    double length  # ||w||_q
    double norm  # ||x||_p
    double multiplier  # current multiplier of the row, if the rule keeps multipliers
    double variance  # variance of the output times the sample weight, if the rule keeps variances

cdef struct PrecisionGain:  # 1 / V_j gains factor * x_j**2 / (noise + output - V_j * x_j**2)
    double factor
    double output
    double noise

cdef struct Step:  # theta' = keep * theta + size * y * V x; keep 1 and size 0: no correction
    double keep
    double size
    Projection projection
    PrecisionGain gain  # factor 0: V is 1 and stays 1


cdef inline Step plain_step(double keep, double size, Projection projection) noexcept nogil:
    return Step(keep, size, projection, PrecisionGain(0.0, 0.0, 0.0))


# The p-norm Perceptron, with or without a margin: the step is the instance itself.

cdef inline Step perceptron_step(const Rule* rule) noexcept nogil:
    return plain_step(1.0, rule.rate, FREE)


# ALMA_p(alpha; B, C), Gentile (2001), Figure 1.

cdef inline Step alma_step(const Rule* rule, int64_t k) noexcept nogil:
    return plain_step(1.0, rule.C / (sqrt(rule.p - 1.0) * sqrt(<double> k)), ONTO_BALL)


cdef inline double alma_threshold(const Rule* rule, int64_t k) noexcept nogil:
    return (1.0 - rule.alpha) * rule.B * sqrt(rule.p - 1.0) / sqrt(<double> k)


# CRAMMA^epsilon, Tsampouka & Shawe-Taylor (2006), section 3; t = k, since the start is t = 1.

cdef inline Step cramma_step(const Rule* rule) noexcept nogil:
    return plain_step(1.0, rule.rate, ONTO_SPHERE)


cdef inline double cramma_threshold(const Rule* rule, int64_t k) noexcept nogil:
    if rule.epsilon == 0.5:
        return rule.margin / sqrt(<double> k)
    return rule.margin / pow(<double> k, rule.epsilon)


# ROMMA, Li & Long (2002): the shortest v with y v.x >= 1 in the half-space {v: v.w >= ||w||^2}.

cdef inline Step romma_step(const Trial* trial) noexcept nogil:
    cdef double cosine, relaxed, across, parallel = 1.0 / (1 << 20) / (1 << 20)
    cdef Step restart = plain_step(0.0, 1.0 / trial.norm / trial.norm, FREE)
    if trial.length == 0.0:
        return restart
    relaxed = 1.0 / (trial.norm * trial.length)
    if relaxed <= parallel:  # ||w|| <= 1 / gamma*, so the margin is below the rounding error
        return restart
    cosine = trial.output * relaxed
    across = 1.0 - cosine * cosine
    if across <= parallel:  # w and x are parallel or antiparallel up to rounding
        return plain_step(1.0, 0.0, FREE) if trial.output <= 0.0 else restart
    if cosine * relaxed >= 1.0:  # the half-space constraint is inactive
        return restart
    return plain_step((1.0 - cosine * relaxed) / across,
                (1.0 - trial.output) / across / trial.norm / trial.norm, FREE)


# Dual coordinate ascent, Hsieh et al. (2008), on sum(lambda) - ||sum lambda y x||_p^2 / 2 over
# lambda >= 0. The curvature of ||.||_p^2 / 2 along x is at most (p - 1) ||x||_p^2, and equal to it
# for p = 2.

cdef inline Step ascent_step(const Rule* rule, const Trial* trial) noexcept nogil:
    cdef double size = (1.0 - trial.output) / trial.norm / trial.norm / (rule.p - 1.0)
    if size == 0.0 and trial.output != 1.0:  # underflow: no double is small enough for the step
        size = INFINITY
    return plain_step(1.0, max(size, -trial.multiplier), FREE)


# AROW, Crammer, Kulesza & Dredze (2009), Figure 1. Only the diagonal of the covariance matrix is
# kept; it starts at I. If the output of x has variance v, the update V' = V - (V x)**2 / (v + r)
# equals 1 / V_j' = 1 / V_j + x_j**2 / (r + v - V_j x_j**2). The loss is limited to C.

cdef inline Step arow_step(const Rule* rule, const Trial* trial) noexcept nogil:
    cdef double loss = min(1.0 - trial.output, rule.C)
    return Step(1.0, loss / (trial.variance + rule.r), FREE,
                PrecisionGain(1.0, trial.variance, rule.r))


cdef inline Step respond(const Rule* rule, int64_t k, const Trial* trial) noexcept nogil:
    if rule.kind == ALMA:
        return alma_step(rule, k)
    if rule.kind == CRAMMA:
        return cramma_step(rule)
    if rule.kind == ROMMA:
        return romma_step(trial)
    if rule.kind == ASCENT:
        return ascent_step(rule, trial)
    if rule.kind == AROW:
        return arow_step(rule, trial)
    return perceptron_step(rule)


cdef inline double threshold(const Rule* rule, int64_t k) noexcept nogil:
    if rule.kind == ALMA:
        return alma_threshold(rule, k)
    if rule.kind == CRAMMA:
        return cramma_threshold(rule, k)
    return rule.margin


cdef inline bint starts_from_first_row(const Rule* rule) noexcept nogil:
    return rule.kind == CRAMMA


cdef inline bint keeps_multipliers(const Rule* rule) noexcept nogil:
    """Return whether a step may decrease the multiplier of a row, so that multipliers must be
    stored."""
    return rule.kind == ASCENT


cdef inline bint keeps_variances(const Rule* rule) noexcept nogil:
    """Return whether each coordinate has a variance, which decreases with every correction."""
    return rule.kind == AROW


cdef inline bint minds_repeats(const Rule* rule) noexcept nogil:
    """Return whether steps depend on norms or variances, which duplicate columns in a row would
    falsify."""
    return rule.scaling != UNSCALED or (rule.kind != PERCEPTRON and rule.kind != ALMA)


cdef inline bint has_margin(const Rule* rule) noexcept nogil:
    """Return whether the first threshold is above 0, so that tests depend on the norms of rows."""
    return threshold(rule, 1) > 0.0
