"""A rule's numbers in the units that tests and steps are made in, whichever loop makes them."""

from libc.math cimport INFINITY, ldexp
from libc.stdint cimport int64_t

from sparsemargin._engine.first_order.labels cimport Space
from sparsemargin._engine.rows.csr cimport RowScale
from sparsemargin._engine.first_order.rules cimport (
    BY_RADIUS, BY_ROW, BY_RUNNING_MAX, Rule, Step, Trial, respond, threshold
)


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


cdef inline bint answer(const Rule* rule, Space* space, Py_ssize_t l, const Trial* trial,
                        double share, const RowScale* row, Step* step,
                        double* mass) noexcept nogil:
    """The step for the row times row.factor, its label left out, and what the row's multiplier
    gains; False if the rule makes none."""
    cdef double size
    step[0] = respond(rule, space.of.corrections[l] + 1, trial)
    if step.size == 0.0 and step.keep == 1.0:
        space.of.unmoved[l] += 1
        return False
    size = share * step.size
    step.size = scaled_step(rule, space, l, size, row)
    mass[0] = multiplier(rule, space, l, size)
    return True


cdef inline void settle(const Rule* rule, Space* space, Py_ssize_t l, double* kept, double mass,
                        int64_t trials) noexcept nogil:
    """Count a correction; `kept` is the row's multiplier, NULL where the rule keeps none, and
    `trials` counts the one that made it."""
    if kept != NULL:
        kept[0] += mass
    space.of.corrections[l] += 1
    space.of.bar[l] = raise_bar(rule, space, l)
    if space.of.corrections[l] == space.of.limit[l]:
        space.of.stopped[l] = trials
        space.of.bar[l] = -INFINITY
