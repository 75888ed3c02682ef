"""First-order rules: what a correction does, and when the next one is due."""

from libc.stdint cimport int64_t

cdef enum Kind:
    PERCEPTRON
    ALMA

cdef enum Scaling:  # the norm an instance is divided by
    BY_ROW  # its own
    UNSCALED
    BY_RUNNING_MAX  # the largest among the corrections, this one included
    BY_RADIUS  # a fixed one

cdef struct Rule:
    Kind kind
    Scaling scaling
    double p
    double alpha
    double B
    double C
    double radius

cdef struct Step:
    double size  # theta' = theta + size * y * x
    bint project  # then theta = theta' / max(1, ||theta'||_p)

cdef Step respond(const Rule* rule, int64_t k) noexcept nogil
cdef double threshold(const Rule* rule, int64_t k) noexcept nogil

cdef class FirstOrderRule:
    cdef Rule rule
