"""What every first-order space keeps of its labels, whatever their vectors are made of.

Beside the vector theta = scale * t of a label these are a few numbers: its norm, what the average
has counted, the bar for the next correction, and the certificate's bound.
"""

from libc.math cimport isfinite
from libc.stdint cimport int64_t

import numpy as np

from sparsemargin._engine.numerics.power cimport make_power
from sparsemargin._engine.first_order.rules cimport FREE, ONTO_SPHERE, Projection
from sparsemargin._engine.numerics.sums cimport Sum

# Named in the order of the pointers in `Labels`.
FLOATS = ("scale", "sigma", "norm", "S_peak", "S_slack", "Z", "unit_peak", "bar", "largest",
          "mass", "bound")
COUNTS = ("corrections", "begin", "stopped", "idle", "nonzero", "passes", "shift", "flushes",
          "started", "limit", "unmoved")


cdef double unit(const Space* space, Py_ssize_t l) noexcept nogil:
    """What g is multiplied by when the current vector is counted as a hypothesis."""
    if space.normalized:
        return space.of.sigma[l] / space.of.norm[l] if space.of.norm[l] > 0.0 else 0.0
    return space.of.sigma[l]


cdef double counted(const Space* space, Py_ssize_t l, int64_t trials) noexcept nogil:
    """What g stands for in the sum of all hypotheses of so many trials, beside acc."""
    return space.of.Z[l] + (trials - space.of.begin[l]) * unit(space, l)


cdef void refit(Space* space, Py_ssize_t l, Projection projection) noexcept nogil:
    """Project theta, and bring norm and sigma up to date."""
    cdef Labels* of = &space.of
    cdef double root, total = total_S(space, l)
    if total <= 0.0:
        of.norm[l] = of.sigma[l] = 0.0
        return
    root = p_root(space, total)
    of.norm[l] = of.scale[l] * root
    if projection == ONTO_SPHERE or (projection != FREE and of.norm[l] > 1.0):
        of.scale[l] /= of.norm[l]
        of.mass[l] /= of.norm[l]
        of.norm[l] = 1.0
    of.sigma[l] = of.scale[l]
    if space.p.exponent != 2.0:
        of.sigma[l] *= root * root / total


cdef void tighten(Space* space, Py_ssize_t l) noexcept nogil:
    """The bound on the largest margin: no y w.x can all exceed their weighted mean (theta / L).w"""
    cdef double bound = space.of.norm[l] / space.of.mass[l]
    if bound < space.of.bound[l] and isfinite(space.of.mass[l]):
        space.of.bound[l] = bound


cdef class FirstOrderSpace:
    """Base of the spaces that a first-order rule learns in; not for use by itself."""

    cdef dict label_layout(self):
        """Shape and type of the arrays of the labels' numbers."""
        cdef Py_ssize_t n = self.c.n_labels
        return {
            "floats": ((len(FLOATS), n), np.float64),
            "sums": ((n, sizeof(Sum) // sizeof(double)), np.float64),
            "counts": ((len(COUNTS), n), np.int64),
        }

    cdef bind_labels(self, double p, dict arrays):
        """Take these arrays for the labels' numbers."""
        self.floats, self.sums, self.counts = arrays["floats"], arrays["sums"], arrays["counts"]
        self.c.p = make_power(p)
        self.c.link = make_power(p - 1.0)
        cdef double[:, ::1] floats = self.floats
        cdef int64_t[:, ::1] counts = self.counts
        cdef double[:, ::1] sums = self.sums
        cdef Py_ssize_t n = self.c.n_labels
        cdef double* real = &floats[0, 0]
        cdef int64_t* whole = &counts[0, 0]
        self.c.of = Labels(
            real, real + n, real + 2 * n, <Sum*> &sums[0, 0], real + 3 * n, real + 4 * n,
            real + 5 * n, real + 6 * n, real + 7 * n, real + 8 * n, real + 9 * n, real + 10 * n,
            whole, whole + n, whole + 2 * n, whole + 3 * n, whole + 4 * n, whole + 5 * n,
            whole + 6 * n, whole + 7 * n, whole + 8 * n, whole + 9 * n, whole + 10 * n,
        )

    cdef set_out(self):
        """Give fresh labels the numbers they start with."""
        self.counts[COUNTS.index("stopped")] = -1
        self.floats[FLOATS.index("scale")] = 1.0
        self.floats[FLOATS.index("bound")] = np.inf

    @property
    def n_labels(self):
        return self.c.n_labels

    @property
    def p(self):
        return self.c.p.exponent

    @property
    def bias(self):
        return self.c.bias

    @property
    def slack(self):
        return self.c.slack

    @property
    def averages(self):
        return self.c.averaged

    @property
    def normalizes(self):
        return self.c.normalized

    def per_label(self, name):
        """The scalars called `name`, a view of shape (n_labels,)."""
        if name in FLOATS:
            return self.floats[FLOATS.index(name)]
        return self.counts[COUNTS.index(name)]

    @property
    def trials_per_label(self):
        """Trials each label took part in, shape (n_labels,)."""
        stopped = self.per_label("stopped")
        return np.where(stopped >= 0, stopped, self.trials) - self.per_label("idle")

    def count_trials(self, int64_t trials):
        """Let the trials go up to `trials` without a correction."""
        self.trials = max(self.trials, trials)

    def resume(self, max_corrections=None):
        """Let labels learn on, up to that many corrections since their first."""
        cdef Py_ssize_t l
        cdef Labels* of = &self.c.of
        for l in range(self.c.n_labels):
            of.limit[l] = -1 if max_corrections is None else max_corrections
            if of.stopped[l] >= 0:
                of.idle[l] += self.trials - of.stopped[l]
                of.begin[l] += self.trials - of.stopped[l]
                of.stopped[l] = -1
            if 0 <= of.limit[l] <= of.corrections[l]:
                of.stopped[l] = self.trials

    def mixture(self):
        """The hypothesis as ``a * g + b * acc``, acc with what it has not yet taken in.

        Returns
        -------
        a : ndarray of shape (n_labels,)
        b : ndarray of shape (n_labels,)
            Zero where the hypothesis is the last one.
        """
        cdef Py_ssize_t l
        cdef Labels* of = &self.c.of
        cdef int64_t local, trials
        a_array, b_array = np.empty(self.c.n_labels), np.zeros(self.c.n_labels)
        cdef double[::1] a = a_array, b = b_array
        for l in range(self.c.n_labels):
            if self.c.averaged:
                local = of.stopped[l] if of.stopped[l] >= 0 else self.trials
                trials = max(local - of.idle[l], <int64_t> 1)
                a[l] = counted(&self.c, l, local) / trials
                b[l] = 1.0 / trials
            else:
                a[l] = unit(&self.c, l)
        return a_array, b_array

    def theta_norm(self):
        """``||theta||_p`` of each label, soft-margin coordinates included."""
        return self.per_label("norm").copy()

    def exhausted(self):
        """Whether each label has made all the corrections it was allowed."""
        limit = self.per_label("limit")
        return (limit >= 0) & (self.per_label("corrections") >= limit)

    def stop(self, which):
        """Let the labels for which the boolean array `which` holds learn no more."""
        ending = which & (self.per_label("stopped") < 0)
        self.per_label("stopped")[ending] = self.trials
        self.per_label("bar")[ending] = -np.inf
