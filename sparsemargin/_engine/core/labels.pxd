"""What every first-order space keeps of its labels, whatever their vectors are made of.

Beside the vector theta = scale * t of a label these are a few numbers: its norm, what the average
has counted, the threshold of the next correction, and the certificate's bound. A rule speaks
here, and only at corrections: `answer` asks it for a step, `settle` for the next threshold.
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


cdef struct Label:
    # theta = scale * t, and w = sigma * g with g = sign(t) |t|**(p - 1).
    double scale
    double norm  # ||theta||_p
    double S_peak  # largest S since it was last summed afresh
    double S_slack  # the same sum over the soft-margin coordinates
    double largest  # largest norm among the corrections
    double mass  # L: theta is a sum of y x with multipliers that add up to it
    double bound  # least ||theta||_p / L so far
    int64_t corrections
    int64_t stopped  # trials when the label used up its corrections; -1: still learning
    int64_t idle  # trials that passed while it was stopped
    int64_t nonzero  # coordinates of t that are not zero
    int64_t passes  # sweeps over all coordinates so far
    int64_t shift  # power of two t has been rescaled by in all
    int64_t flushes  # since the last sweep that brought acc up to date
    int64_t started  # whether theta has left 0
    int64_t limit  # corrections after which the label stops; -1: none
    int64_t unmoved  # tests that fired and led to no step
    Sum S  # sum of |t|**p over the features
    Average average


cdef struct Space:
    Label* labels
    # Side by side, for trials to be tested by vectors.
    double* sigma
    double* threshold  # a trial corrects where y w.x <= threshold (times the row's norm)
    Power link  # p - 1
    Power p
    Py_ssize_t n_labels
    Py_ssize_t n_coordinates
    double bias  # value of the intercept's coordinate, the last one; 0: none
    double slack  # value of a row's soft-margin coordinate; 0: none
    bint adaptive  # whether coordinates have variances
    double* pending  # n_labels x (FLUSHES + 1): sum of the Z flushed since that many
    Py_ssize_t pending_step  # from a label's to the next one's; 0 where all have the same
    double* slack_t  # n_slack x n_labels
    Py_ssize_t n_slack
    double* multipliers  # n_rows x n_labels, where the rule keeps them
    RowScale* scales  # n_rows, along with them: what rows were measured to be, norm 0: not yet
    int window  # 2**-window < S < 2**window
    bint averaged
    bint normalized  # hypotheses count with norm 1


# ------------------------------------------------------------------------------- norms and units

cdef inline double total_S(const Label* label) noexcept nogil:
    return label.S.high + label.S.low + label.S_slack


cdef inline double p_root(const Space* space, double total) noexcept nogil:
    return sqrt(total) if space.p.exponent == 2.0 else pow(total, 1.0 / space.p.exponent)


cdef inline double unit(const Space* space, Py_ssize_t l) noexcept nogil:
    """What g is multiplied by when the current vector is counted as a hypothesis."""
    cdef double norm = space.labels[l].norm
    if space.normalized:
        return space.sigma[l] / norm if norm > 0.0 else 0.0
    return space.sigma[l]


cdef inline double counted(const Space* space, Py_ssize_t l, int64_t trials) noexcept nogil:
    """What g stands for in the sum of all hypotheses of so many trials, beside acc."""
    return space.labels[l].average.Z + (
        trials - space.labels[l].average.begin) * unit(space, l)


cdef inline void mix(const Space* space, Py_ssize_t l, int64_t trials, double* a,
                     double* b) noexcept nogil:
    """The hypothesis after so many trials as ``a * g + b * acc``, see `mixture`."""
    cdef const Label* label = space.labels + l
    cdef int64_t local = label.stopped if label.stopped >= 0 else trials
    if not space.averaged:
        a[0], b[0] = unit(space, l), 0.0
        return
    trials = max(local - label.idle, <int64_t> 1)
    a[0], b[0] = counted(space, l, local) / trials, 1.0 / trials


cdef inline void refit(Space* space, Py_ssize_t l, Projection projection) noexcept nogil:
    """Project theta, and bring norm and sigma up to date."""
    cdef Label* label = space.labels + l
    cdef double root, total = total_S(label)
    if total <= 0.0:
        label.norm = space.sigma[l] = 0.0
        return
    root = p_root(space, total)
    label.norm = label.scale * root
    if projection == ONTO_SPHERE or (projection != FREE and label.norm > 1.0):
        label.scale /= label.norm
        label.mass /= label.norm
        label.norm = 1.0
    space.sigma[l] = label.scale
    if space.p.exponent != 2.0:
        space.sigma[l] *= root * root / total


cdef inline void tighten(Label* label, double error) noexcept nogil:
    """The bound on the largest margin: no y w.x can all exceed their weighted mean (theta / L).w;
    where the norm is that of products, rounding may have taken as much as `error` from it."""
    cdef double bound = hypot(label.norm / label.mass, error)
    if bound < label.bound and isfinite(label.mass):
        label.bound = bound


# --------------------------------------------------------------------------------- what guards them

cdef inline bint is_stale(const Space* space, const Label* label) noexcept nogil:
    """Whether S has fallen so far that it is to be summed afresh."""
    return has_fallen(label.S.high, label.S_peak, space.p.exponent != 2.0)


cdef inline double count_current(Space* space, Py_ssize_t l, int64_t trials) noexcept nogil:
    """Let Z count the current vector up to so many trials; its unit."""
    cdef Label* label = space.labels + l
    cdef double current = unit(space, l)
    if space.averaged:
        count_unit(&label.average, trials, current)
    label.average.begin = trials
    return current


# ------------------------------------------------------------------------- the rule's own scaling

cdef inline double next_threshold(const Rule* rule, const Label* label) noexcept nogil:
    """That of the next correction."""
    cdef double tau = threshold(rule, label.corrections + 1)
    if rule.scaling == BY_RUNNING_MAX:
        return tau * label.largest
    if rule.scaling == BY_RADIUS:
        return tau * rule.radius
    return tau


cdef inline double scaled_step(const Rule* rule, Label* label, double size,
                               const RowScale* row) noexcept nogil:
    """The step for the row times row.factor, instances divided as the rule says."""
    if rule.scaling == BY_ROW:
        return size / row.norm
    if rule.scaling == BY_RUNNING_MAX:
        label.largest = max(label.largest, ldexp(row.norm, row.exponent))
        return ldexp(size, row.exponent) / label.largest
    if rule.scaling == BY_RADIUS:
        return ldexp(size, row.exponent) / rule.radius
    return ldexp(size, row.exponent)


cdef inline double multiplier(const Rule* rule, const Label* label, double size) noexcept nogil:
    """What a step of that size adds to the row's multiplier: of the instance divided by its own
    norm, or of the row as it is. Where variances are kept theta is no sum of rows."""
    if keeps_variances(rule):
        return INFINITY
    if rule.scaling == BY_RUNNING_MAX:
        return size / label.largest
    if rule.scaling == BY_RADIUS:
        return size / rule.radius
    return size


cdef inline Trial trial_of(const Rule* rule, const Space* space, Py_ssize_t l, double output,
                           double norm, double of_row) noexcept nogil:
    """What the rule is told of a trial: `output` is ``y w.x``, `of_row` the row's multiplier."""
    if rule.scaling == BY_ROW:
        return Trial(output / norm, space.labels[l].norm, 1.0, of_row, 0.0)
    return Trial(output, space.labels[l].norm, norm, of_row, 0.0)


cdef inline bint answer(const Rule* rule, Label* label, const Trial* trial, double share,
                        const RowScale* row, Step* step, double* mass) noexcept nogil:
    """The step for the row times row.factor, its label left out, and what the row's multiplier
    gains; False if the rule makes none."""
    cdef double size
    step[0] = respond(rule, label.corrections + 1, trial)
    if step.size == 0.0 and step.keep == 1.0:
        label.unmoved += 1
        return False
    size = share * step.size
    step.size = scaled_step(rule, label, size, row)
    if step.gain.factor:
        step.gain.factor *= share * scaled_step(rule, label, 1.0, row) ** 2
    mass[0] = multiplier(rule, label, size)
    return True


cdef inline void settle(const Rule* rule, Space* space, Py_ssize_t l, double* of_row, double mass,
                        int64_t trials) noexcept nogil:
    """Count a correction; `of_row` is the row's multiplier, NULL where the rule keeps none, and
    `trials` counts the one that made it."""
    cdef Label* label = space.labels + l
    if of_row != NULL:
        of_row[0] += mass
    label.corrections += 1
    space.threshold[l] = next_threshold(rule, label)
    if label.corrections == label.limit:
        label.stopped = trials
        space.threshold[l] = -INFINITY


# ----------------------------------------------------------------------------------- from Python

cdef class FirstOrderRule:
    cdef Rule rule


cdef class FirstOrderSpace:
    cdef Space c
    cdef public int64_t trials
    cdef readonly object labels
    cdef readonly object sigma
    cdef readonly object threshold
    cdef readonly CorrectionLog log
    cdef take_labels(self, double p, labels, sigma, threshold)
    cdef open_labels(self, double p)
