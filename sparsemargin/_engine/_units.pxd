"""A rule's numbers in the units that tests and steps are made in."""

from libc.math cimport ldexp

from sparsemargin._engine._rows cimport RowScale
from sparsemargin._engine._rules cimport (
    BY_RADIUS, BY_ROW, BY_RUNNING_MAX, Rule, threshold
)
from sparsemargin._engine._space cimport Space


cdef inline double raise_bar(const Rule* rule, Space* space, Py_ssize_t l) noexcept nogil:
    """The bar for the next correction."""
    cdef double tau = threshold(rule, space.of.corrections[l] + 1)
    if rule.scaling == BY_RUNNING_MAX:
        return tau * space.of.largest[l]
    if rule.scaling == BY_RADIUS:
        return tau * rule.radius
    return tau


cdef inline double scaled_step(const Rule* rule, Space* space, Py_ssize_t l, double size,
                               const RowScale* row) noexcept nogil:
    """The step for the row times row.factor, instances divided as the rule says."""
    if rule.scaling == BY_ROW:
        return size / row.norm
    if rule.scaling == BY_RUNNING_MAX:
        space.of.largest[l] = max(space.of.largest[l], ldexp(row.norm, row.exponent))
        return ldexp(size, row.exponent) / space.of.largest[l]
    if rule.scaling == BY_RADIUS:
        return ldexp(size, row.exponent) / rule.radius
    return ldexp(size, row.exponent)


cdef inline double multiplier(const Rule* rule, const Space* space, Py_ssize_t l,
                              double size) noexcept nogil:
    """What a step of that size adds to the row's multiplier: of the instance divided by its own
    norm, or of the row as it is."""
    if rule.scaling == BY_RUNNING_MAX:
        return size / space.of.largest[l]
    if rule.scaling == BY_RADIUS:
        return size / rule.radius
    return size
