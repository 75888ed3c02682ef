"""First-order rules: what a correction does, and when the next one is due."""

from libc.stdint cimport int64_t

cdef enum Kind:
    PERCEPTRON  # with a margin, or with margin 0
    ALMA
    CRAMMA
    ROMMA
    ASCENT  # dual coordinate ascent

cdef enum Scaling:  # the norm an instance is divided by
    BY_ROW  # its own
    UNSCALED
    BY_RUNNING_MAX  # the largest among the corrections, this one included
    BY_RADIUS  # a fixed one

cdef enum Projection:  # of theta' after the step
    FREE
    ONTO_BALL  # divided by max(1, ||theta'||_p)
    ONTO_SPHERE  # divided by ||theta'||_p

cdef struct Rule:
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

cdef struct Trial:  # x as the rule divides it
    double output  # y w.x
    double length  # ||w||_q
    double norm  # ||x||_p
    double multiplier  # of the row by now, where the rule keeps multipliers

cdef struct Step:  # theta' = keep * theta + size * y * x; keep 1 and size 0: no correction
    double keep
    double size
    Projection projection

cdef Step respond(const Rule* rule, int64_t k, const Trial* trial) noexcept nogil
cdef double threshold(const Rule* rule, int64_t k) noexcept nogil
cdef bint starts_from_first_row(const Rule* rule) noexcept nogil
cdef bint keeps_multipliers(const Rule* rule) noexcept nogil

cdef class FirstOrderRule:
    cdef Rule rule
