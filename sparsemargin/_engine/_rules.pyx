# distutils: extra_compile_args = -ffp-contract=off
"""First-order rules.

A rule speaks only at corrections. For correction number k (from 1) it gives the step, and the
threshold that ``y w.x`` must not exceed for a trial to be the k-th correction.
"""

from libc.math cimport sqrt
from libc.stdint cimport int64_t

SCALINGS = {True: BY_ROW, False: UNSCALED, "running": BY_RUNNING_MAX, "max": BY_RADIUS}


# The p-norm Perceptron: correct on a mistake, by the instance itself.

cdef inline Step perceptron_step() noexcept nogil:
    return Step(1.0, False)


# ALMA_p(alpha; B, C), Gentile (2001), Figure 1.

cdef inline Step alma_step(const Rule* rule, int64_t k) noexcept nogil:
    return Step(rule.C / (sqrt(rule.p - 1.0) * sqrt(<double> k)), True)


cdef inline double alma_threshold(const Rule* rule, int64_t k) noexcept nogil:
    return (1.0 - rule.alpha) * rule.B * sqrt(rule.p - 1.0) / sqrt(<double> k)


cdef Step respond(const Rule* rule, int64_t k) noexcept nogil:
    if rule.kind == ALMA:
        return alma_step(rule, k)
    return perceptron_step()


cdef double threshold(const Rule* rule, int64_t k) noexcept nogil:
    if rule.kind == ALMA:
        return alma_threshold(rule, k)
    return 0.0


cdef class FirstOrderRule:
    """A rule with its parameters, ready for the loop; immutable."""

    @staticmethod
    def perceptron(double p, normalize):
        return FirstOrderRule(PERCEPTRON, SCALINGS[normalize], p, 1.0, 0.0, 0.0, 0.0)

    @staticmethod
    def alma(double p, normalize, double alpha, double B, double C, double radius):
        return FirstOrderRule(ALMA, SCALINGS[normalize], p, alpha, B, C, radius)

    def __init__(self, int kind, int scaling, double p, double alpha, double B, double C,
                 double radius):
        self.rule = Rule(<Kind> kind, <Scaling> scaling, p, alpha, B, C, radius)

    def __reduce__(self):
        cdef Rule rule = self.rule
        return FirstOrderRule, (rule.kind, rule.scaling, rule.p, rule.alpha, rule.B, rule.C,
                                rule.radius)

    @property
    def needs_norm(self):
        """Whether a step depends on ``||theta||_p``."""
        return self.rule.kind == ALMA
