"""State that every first-order space keeps for each vector, however the vector is represented.

The dual vector is theta = scale * t. Besides t, a vector has a few numbers: its norm, the state of
the average, the threshold of the next correction, and the bound of the certificate. The rule is
called only at corrections: `answer` asks it for a step, and `count_correction` for the next
threshold.
"""

from libc.math cimport INFINITY, hypot, isfinite, ldexp, pow, sqrt
from libc.stdint cimport int64_t

from sparsemargin._engine.core.rules cimport (
    BY_RADIUS, BY_ROW, BY_RUNNING_MAX, FREE, ONTO_SPHERE, Projection, Rule, Step, Trial,
    keeps_variances, respond, threshold
)
from sparsemargin._engine.core.log cimport CorrectionLog
from sparsemargin._engine.numerics.arithmetic cimport Power, Sum
from sparsemargin._engine.numerics.average cimport Average, count_unit, has_fallen
from sparsemargin._engine.rows.csr cimport RowScale


cdef struct Vector:
    # theta = scale * t, and w = sigma * g with g = sign(t) |t|**(p - 1). Z, acc and flushes: see
    # numerics/average.pxd.
    double scale
    double norm  # ||theta||_p
    double S_peak  # largest S since the sum was last recomputed
    double S_slack  # sum of |t|**p over the soft-margin coordinates
    double largest  # largest norm among the corrected rows
    double mass  # sum L of the multipliers of the rows y x, of which theta is the sum
    double bound  # least ||theta||_p / L so far
    double initial  # initial variance; a stored variance of 0 means this value
    int64_t corrections
    int64_t stopped  # trials when the vector reached its limit of corrections; -1: active
    int64_t idle  # trials that passed while the vector was stopped
    int64_t nonzero  # coordinates of t that are not zero
    int64_t passes  # sweeps over all coordinates so far
    int64_t shift  # exponent of the total power of two that t has been rescaled by
    int64_t flushes  # flushes of Z since the last sweep that brought acc up to date
    int64_t started  # whether theta has left 0
    int64_t limit  # corrections after which the vector stops; -1: no limit
    int64_t unmoved  # tests that fired but led to no step
    Sum S  # sum of |t|**p over the features
    Average average


cdef struct Space:
    Vector* vectors
    # Contiguous arrays over the vectors, so that tests can use SIMD instructions.
    double* sigma
    double* threshold  # a trial corrects where y w.x <= threshold (times the row's norm)
    Power link  # p - 1
    Power p
    Py_ssize_t n_vectors
    Py_ssize_t n_coordinates
    double bias  # value of the intercept's coordinate, which is the last one; 0: none
    double slack  # value of the row's soft-margin coordinate; 0: none
    bint adaptive  # whether coordinates have variances
    double* pending  # n_vectors x (FLUSHES + 1); entry k times g: what acc lacks since flush k
    Py_ssize_t pending_step  # step of `pending` between vectors; 0: all vectors share the numbers
    double* slack_t  # n_slack x n_vectors
    Py_ssize_t n_slack
    double* multipliers  # n_rows x n_vectors, if the rule keeps multipliers
    RowScale* scales  # n_rows, kept with the multipliers: cached measures of rows; norm 0: unset
    int window  # invariant: 2**-window < S < 2**window
    bint averaged
    bint normalized  # each hypothesis is counted with norm 1


# ------------------------------------------------------------------------------- norms and units

cdef inline double total_S(const Vector* vector) noexcept nogil:
    return vector.S.high + vector.S.low + vector.S_slack


cdef inline double p_root(const Space* space, double total) noexcept nogil:
    return sqrt(total) if space.p.exponent == 2.0 else pow(total, 1.0 / space.p.exponent)


cdef inline double unit(const Space* space, Py_ssize_t l) noexcept nogil:
    """The factor of g when the current vector is counted as a hypothesis."""
    cdef double norm = space.vectors[l].norm
    if space.normalized:
        return space.sigma[l] / norm if norm > 0.0 else 0.0
    return space.sigma[l]


cdef inline double counted(const Space* space, Py_ssize_t l, int64_t trials) noexcept nogil:
    """Return a, such that the sum of the hypotheses of all trials is ``a * g + acc``."""
    return space.vectors[l].average.Z + (
        trials - space.vectors[l].average.begin) * unit(space, l)


cdef inline void mix(const Space* space, Py_ssize_t l, int64_t trials, double* a,
                     double* b) noexcept nogil:
    """Compute the hypothesis after `trials` trials as ``a * g + b * acc``, see `mixture`."""
    cdef const Vector* vector = space.vectors + l
    cdef int64_t local = vector.stopped if vector.stopped >= 0 else trials
    if not space.averaged:
        a[0], b[0] = unit(space, l), 0.0
        return
    trials = max(local - vector.idle, <int64_t> 1)
    a[0], b[0] = counted(space, l, local) / trials, 1.0 / trials


cdef inline void refit(Space* space, Py_ssize_t l, Projection projection) noexcept nogil:
    """Project theta and update norm and sigma."""
    cdef Vector* vector = space.vectors + l
    cdef double root, total = total_S(vector)
    if total <= 0.0:
        vector.norm = space.sigma[l] = 0.0
        return
    root = p_root(space, total)
    vector.norm = vector.scale * root
    if projection == ONTO_SPHERE or (projection != FREE and vector.norm > 1.0):
        vector.scale /= vector.norm
        vector.mass /= vector.norm
        vector.norm = 1.0
    space.sigma[l] = vector.scale
    if space.p.exponent != 2.0:
        space.sigma[l] *= root * root / total


cdef inline void tighten(Vector* vector, double error) noexcept nogil:
    """Update the upper bound ||theta||_p / L on the largest margin. The smallest y w.x is at most
    their mean weighted by the multipliers, (theta / L).w. If the norm is computed from dot
    products, `error` bounds its rounding error."""
    cdef double bound = hypot(vector.norm / vector.mass, error)
    if bound < vector.bound and isfinite(vector.mass):
        vector.bound = bound


# -------------------------------------------------------------------------------------- safeguards

cdef inline bint is_stale(const Space* space, const Vector* vector) noexcept nogil:
    """Return whether S has fallen so far that it must be recomputed."""
    return has_fallen(vector.S.high, vector.S_peak, space.p.exponent != 2.0)


cdef inline double count_current(Space* space, Py_ssize_t l, int64_t trials) noexcept nogil:
    """Let Z count the current vector up to trial number `trials`, and return the vector's unit."""
    cdef Vector* vector = space.vectors + l
    cdef double current = unit(space, l)
    if space.averaged:
        count_unit(&vector.average, trials, current)
    vector.average.begin = trials
    return current


# ------------------------------------------------------------------------- the rule's own scaling

cdef inline double next_threshold(const Rule* rule, const Vector* vector) noexcept nogil:
    """The threshold of the next correction."""
    cdef double tau = threshold(rule, vector.corrections + 1)
    if rule.scaling == BY_RUNNING_MAX:
        return tau * vector.largest
    if rule.scaling == BY_RADIUS:
        return tau * rule.radius
    return tau


cdef inline double scaled_step(const Rule* rule, Vector* vector, double size,
                               const RowScale* row) noexcept nogil:
    """The step as a multiple of the row times row.factor. `size` is given as a multiple of the
    instance in the scale of the rule."""
    if rule.scaling == BY_ROW:
        return size / row.norm
    if rule.scaling == BY_RUNNING_MAX:
        vector.largest = max(vector.largest, ldexp(row.norm, row.exponent))
        return ldexp(size, row.exponent) / vector.largest
    if rule.scaling == BY_RADIUS:
        return ldexp(size, row.exponent) / rule.radius
    return ldexp(size, row.exponent)


cdef inline double multiplier(const Rule* rule, const Vector* vector, double size) noexcept nogil:
    """Return how much a step of this size adds to the multiplier of its row. Theta is a sum of rows
    (with BY_ROW: divided by their norms) times their multipliers. With variances, theta is not such
    a sum, and the result is infinite."""
    if keeps_variances(rule):
        return INFINITY
    if rule.scaling == BY_RUNNING_MAX:
        return size / vector.largest
    if rule.scaling == BY_RADIUS:
        return size / rule.radius
    return size


cdef inline Trial trial_of(const Rule* rule, const Space* space, Py_ssize_t l, double output,
                           double norm, double of_row) noexcept nogil:
    """The trial in the scale of the rule. `output` is ``y w.x``, `of_row` the row's multiplier."""
    if rule.scaling == BY_ROW:
        return Trial(output / norm, space.vectors[l].norm, 1.0, of_row, 0.0)
    return Trial(output, space.vectors[l].norm, norm, of_row, 0.0)


cdef inline bint answer(const Rule* rule, Vector* vector, const Trial* trial, double share,
                        const RowScale* row, Step* step, double* mass) noexcept nogil:
    """Compute the step for the row times row.factor, without the sign of its label, and the amount
    added to the multiplier of the row. `share` is the weight of the row. Return False if the rule
    makes no step."""
    cdef double size
    step[0] = respond(rule, vector.corrections + 1, trial)
    if step.size == 0.0 and step.keep == 1.0:
        vector.unmoved += 1
        return False
    size = share * step.size
    step.size = scaled_step(rule, vector, size, row)
    if step.gain.factor:
        step.gain.factor *= share * scaled_step(rule, vector, 1.0, row) ** 2
    mass[0] = multiplier(rule, vector, size)
    return True


cdef inline void count_correction(const Rule* rule, Space* space, Py_ssize_t l, double* of_row,
                                  double mass, int64_t trials) noexcept nogil:
    """Count a correction. `of_row` is the multiplier of the row, or NULL if the rule keeps none;
    `trials` includes the trial that made the correction."""
    cdef Vector* vector = space.vectors + l
    if of_row != NULL:
        of_row[0] += mass
    vector.corrections += 1
    space.threshold[l] = next_threshold(rule, vector)
    if vector.corrections == vector.limit:
        vector.stopped = trials
        space.threshold[l] = -INFINITY


# ----------------------------------------------------------------------------------- from Python

cdef class FirstOrderRule:
    cdef Rule rule


cdef class FirstOrderSpace:
    cdef Space c
    cdef public int64_t trials
    cdef readonly object vectors
    cdef readonly object sigma
    cdef readonly object threshold
    cdef readonly CorrectionLog log
    cdef take_vectors(self, double p, vectors, sigma, threshold)
    cdef open_vectors(self, double p)
