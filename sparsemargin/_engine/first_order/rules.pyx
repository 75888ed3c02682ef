"""First-order rules.

A rule speaks only at corrections. For correction number k (from 1) it gives the step, and the
threshold that ``y w.x`` must not exceed for a trial to be the k-th correction.
"""

from libc.math cimport INFINITY, ldexp, pow, sqrt
from libc.stdint cimport int64_t

from sparsemargin._engine.state import real, whole

SCALINGS = {True: BY_ROW, False: UNSCALED, "running": BY_RUNNING_MAX, "max": BY_RADIUS}

# Below it, w and x point the same way, or opposite ways, as far as rounding lets one tell.
cdef double PARALLEL = ldexp(1.0, -40)


# The p-norm Perceptron, with or without a margin: correct by the instance itself.

cdef inline Step perceptron_step(const Rule* rule) noexcept nogil:
    return Step(1.0, rule.rate, FREE)


# ALMA_p(alpha; B, C), Gentile (2001), Figure 1.

cdef inline Step alma_step(const Rule* rule, int64_t k) noexcept nogil:
    return Step(1.0, rule.C / (sqrt(rule.p - 1.0) * sqrt(<double> k)), ONTO_BALL)


cdef inline double alma_threshold(const Rule* rule, int64_t k) noexcept nogil:
    return (1.0 - rule.alpha) * rule.B * sqrt(rule.p - 1.0) / sqrt(<double> k)


# CRAMMA^epsilon, Tsampouka & Shawe-Taylor (2006), section 3; t = k, since the start is t = 1.

cdef inline Step cramma_step(const Rule* rule) noexcept nogil:
    return Step(1.0, rule.rate, ONTO_SPHERE)


cdef inline double cramma_threshold(const Rule* rule, int64_t k) noexcept nogil:
    if rule.epsilon == 0.5:
        return rule.margin / sqrt(<double> k)
    return rule.margin / pow(<double> k, rule.epsilon)


# ROMMA, Li & Long (2002): the shortest w with y w.x >= 1 in the half-space {v: v.w >= ||w||^2}.

cdef inline Step romma_step(const Trial* trial) noexcept nogil:
    cdef double cosine, relaxed, across
    cdef Step restart = Step(0.0, 1.0 / trial.norm / trial.norm, FREE)
    if trial.length == 0.0:
        return restart
    relaxed = 1.0 / (trial.norm * trial.length)
    if relaxed <= PARALLEL:  # ||w|| never exceeds 1 / gamma*: no margin that rounding can tell
        return restart
    cosine = trial.output * relaxed
    across = 1.0 - cosine * cosine
    if across <= PARALLEL:
        return Step(1.0, 0.0, FREE) if trial.output <= 0.0 else restart
    if cosine * relaxed >= 1.0:  # the half-space takes no part
        return restart
    return Step((1.0 - cosine * relaxed) / across,
                (1.0 - trial.output) / across / trial.norm / trial.norm, FREE)


# Dual coordinate ascent, Hsieh et al. (2008), on sum(lambda) - ||sum lambda y x||_p^2 / 2 over
# lambda >= 0. ||.||_p^2 / 2 curves by no more than (p - 1) ||x||_p^2 along x; for p = 2 by that.

cdef inline Step ascent_step(const Rule* rule, const Trial* trial) noexcept nogil:
    cdef double size = (1.0 - trial.output) / trial.norm / trial.norm / (rule.p - 1.0)
    if size == 0.0 and trial.output != 1.0:  # it underflowed: no step is small enough
        size = INFINITY
    return Step(1.0, max(size, -trial.multiplier), FREE)


cdef Step respond(const Rule* rule, int64_t k, const Trial* trial) noexcept nogil:
    if rule.kind == ALMA:
        return alma_step(rule, k)
    if rule.kind == CRAMMA:
        return cramma_step(rule)
    if rule.kind == ROMMA:
        return romma_step(trial)
    if rule.kind == ASCENT:
        return ascent_step(rule, trial)
    return perceptron_step(rule)


cdef double threshold(const Rule* rule, int64_t k) noexcept nogil:
    if rule.kind == ALMA:
        return alma_threshold(rule, k)
    if rule.kind == CRAMMA:
        return cramma_threshold(rule, k)
    return rule.margin


cdef bint starts_from_first_row(const Rule* rule) noexcept nogil:
    return rule.kind == CRAMMA


cdef bint keeps_multipliers(const Rule* rule) noexcept nogil:
    """Whether a step may take back what the row has added, so that each row's sum is kept."""
    return rule.kind == ASCENT


cdef dict NOTHING_SET = dict.fromkeys(
    ("p", "alpha", "B", "C", "radius", "margin", "rate", "epsilon"), 0.0
)


cdef class FirstOrderRule:
    """A rule with its parameters, ready for the loop; immutable."""

    @staticmethod
    def perceptron(double p, normalize, double margin=0.0, double eta=1.0):
        return FirstOrderRule({"kind": PERCEPTRON, "scaling": SCALINGS[normalize], "p": p,
                               "margin": margin, "rate": eta})

    @staticmethod
    def alma(double p, normalize, double alpha, double B, double C, double radius):
        return FirstOrderRule({"kind": ALMA, "scaling": SCALINGS[normalize], "p": p,
                               "alpha": alpha, "B": B, "C": C, "radius": radius})

    @staticmethod
    def cramma(double beta, double eta_eff, double epsilon, double radius):
        return FirstOrderRule({"kind": CRAMMA, "scaling": UNSCALED, "p": 2.0,
                               "margin": beta * radius, "rate": eta_eff / radius,
                               "epsilon": epsilon})

    @staticmethod
    def romma(bint aggressive):
        # Less than 1, as a bound that may be reached.
        margin = 1.0 - ldexp(1.0, -53) if aggressive else 0.0
        return FirstOrderRule({"kind": ROMMA, "scaling": UNSCALED, "p": 2.0, "margin": margin})

    @staticmethod
    def ascent(double p, normalize):
        return FirstOrderRule({"kind": ASCENT, "scaling": SCALINGS[normalize], "p": p,
                               "margin": 1.0})

    def __init__(self, dict fields):
        self.__setstate__({**NOTHING_SET, **fields})

    def __getstate__(self):
        return self.rule

    def __setstate__(self, state):
        numbers = {name: real(state, name, -INFINITY, INFINITY) for name in NOTHING_SET}
        self.rule = {"kind": whole(state, "kind", PERCEPTRON, ASCENT),
                     "scaling": whole(state, "scaling", BY_ROW, BY_RADIUS), **numbers}

    @property
    def measures_rows(self):
        """Whether margins are those of instances divided by their own norm."""
        return self.rule.scaling == BY_ROW

    @property
    def keeps_multipliers(self):
        """Whether each row's multiplier is kept, since it may fall."""
        return keeps_multipliers(&self.rule)
