"""The kernel space: vectors as combinations of a support set, for p = 2.

A dual vector is ``theta = scale * sum_i t_i phi(x_i)``. The sum runs over the support set, which
all vectors share and which has the rows that have corrected at least one vector. A correction
changes one t_i and the vector's few numbers; ``S = |sum_i t_i phi(x_i)|^2`` follows from the score
of the row. The sum of the hypotheses is ``Z t + acc`` as in the linear space, with one entry per
support row.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t

import numpy as np

from sparsemargin._engine.core.vectors cimport FirstOrderSpace, refit
from sparsemargin._engine.core.rules cimport FREE
from sparsemargin._engine.core.log cimport CorrectionLog
from sparsemargin._engine.numerics.average cimport clear

from sparsemargin._engine.kernel.support import SupportSet
from sparsemargin._engine.kernel.user_kernels import restored_kernel
from sparsemargin._engine.state import (
    MAX_TRIALS, MOST_NUMBERS, array_of, fields, flag, optional, part, real, require_within,
    integer, writable
)

cdef enum:
    WINDOW = 600  # 2**-WINDOW < S < 2**WINDOW

# Parameters and counters of a space, with the checks for a saved state.
SCHEMA = {
    "n_vectors": (integer, 1, MOST_NUMBERS),
    "n_features": (integer, 1, MOST_NUMBERS),
    "bias": (real, 0.0, INFINITY),
    "slack": (real, 0.0, INFINITY),
    "averaged": (flag,),
    "normalized": (flag,),
    "trials": (integer, 0, MAX_TRIALS),
    "rows_taken": (integer, 0, MAX_TRIALS),
    "max_support": (optional, integer, 1, MOST_NUMBERS),
}


cdef class KernelState(FirstOrderSpace):
    """The state of all vectors over one support set.

    Parameters
    ----------
    kernel : Kernel
    n_features, n_vectors, bias, slack, averaged, normalized, log
        See `LinearState`.
    max_support : int or None
        Largest number of rows in the support set; None: no limit.
    """

    cdef readonly object kernel, support, t, acc, origin, passed_over, max_support
    cdef public int64_t rows_taken
    cdef readonly Py_ssize_t n_features

    def __init__(self, kernel, n_features, n_vectors, *, log, **settings):
        self.take_settings({"n_features": n_features, "n_vectors": n_vectors, "trials": 0,
                            "rows_taken": 0, **settings})
        self.kernel, self.log = kernel, log
        self.support = SupportSet()
        self.passed_over = np.zeros(n_vectors, dtype=np.int64)
        self.origin = np.empty(0, dtype=np.int64)
        self.t = self.acc = np.zeros((n_vectors, 0))
        self.open_vectors(2.0)

    cdef take_settings(self, settings):
        self.c.window = WINDOW
        self.c.n_vectors, self.n_features = settings["n_vectors"], settings["n_features"]
        self.c.bias, self.c.slack = settings["bias"], settings["slack"]
        self.c.averaged, self.c.normalized = settings["averaged"], settings["normalized"]
        self.trials, self.rows_taken = settings["trials"], settings["rows_taken"]
        self.max_support = settings["max_support"]

    def __getstate__(self):
        n = self.n_support
        return {"vectors": self.vectors_state(), "t": self.t[:, :n], "acc": self.acc[:, :n],
                "kernel": self.kernel.saved(), "support": self.support.filled,
                "origin": self.origin, "passed_over": self.passed_over,
                "log": None if self.log is None else self.log.entries(),
                **{name: getattr(self, name) for name in SCHEMA}}

    def __setstate__(self, state):
        self.take_settings(fields(state, SCHEMA))
        self.kernel = restored_kernel(part(state, "kernel"), self.c.bias)
        self.support = self.kernel.restored_support(part(state, "support"), self.n_features)
        cdef Py_ssize_t k = self.c.n_vectors, n = self.n_support
        arrays = fields(state, {
            "t": (array_of, np.float64, (k, n)),
            "acc": (array_of, np.float64, (k, n if self.c.averaged else 0)),
            "origin": (array_of, np.int64, (n,)),
            "passed_over": (array_of, np.int64, (k,), 0, MAX_TRIALS),
        })
        arrays = {name: writable(array) for name, array in arrays.items()}
        self.restore_vectors(2.0, part(state, "vectors"))
        self.t, self.acc = arrays["t"], arrays["acc"]
        self.origin, self.passed_over = arrays["origin"], arrays["passed_over"]
        self.log = None if part(state, "log") is None else CorrectionLog()
        if self.log is not None:
            self.log.take_corrections(state["log"], self.n_support)
            require_within("vector", state["log"]["vector"], 0, self.c.n_vectors - 1)

    @property
    def multipliers(self):
        """None: no rule that keeps multipliers is used with kernels."""
        return None

    @property
    def nbytes(self):
        """Bytes of the support set and its coefficients."""
        return self.support.nbytes + self.t.nbytes + self.acc.nbytes

    @property
    def free(self):
        """Number of rows that the support set still has room for; infinity without a limit."""
        return INFINITY if self.max_support is None else self.max_support - len(self.support)

    def reserve(self, Py_ssize_t n_new):
        """Make room for the coefficients of n_new more rows, all 0."""
        cdef Py_ssize_t n = self.t.shape[1], needed = len(self.support) + n_new
        if needed <= n:
            return
        more = np.zeros((self.c.n_vectors, max(needed, 2 * n) - n))
        self.t = np.concatenate([self.t, more], axis=1)
        if self.c.averaged:
            self.acc = np.concatenate([self.acc, more], axis=1)

    def adopt(self, points, rows, Py_ssize_t n_new, which, Py_ssize_t log_start):
        """Add those of the n_new reserved rows that made corrections to the support set.

        Parameters
        ----------
        points : Points
            These rows, in the order in which they were first used.
        rows : ndarray of shape (n_added,)
            Their numbers for `origin`.
        n_new : int
        which : ndarray of shape (n_added,)
            Their indices among the reserved rows.
        log_start : int
            Number of corrections logged before the block.
        """
        cdef Py_ssize_t e, k = len(self.support), n_added = len(which)
        cdef int64_t[::1] slots
        for array in ((self.t, self.acc) if self.c.averaged else (self.t,)):
            array[:, k:k + n_added] = array[:, k + which]
            array[:, k + n_added:k + n_new] = 0.0
        if self.log is not None:
            slots = np.zeros(n_new, dtype=np.int64)
            np.asarray(slots)[which] = np.arange(k, k + n_added)
            for e in range(log_start, <Py_ssize_t> self.log.corrections.size()):
                if self.log.corrections[e].row >= k:
                    self.log.corrections[e].row = slots[self.log.corrections[e].row - k]
        if n_added:
            self.support.extend(points)
            self.origin = np.concatenate([self.origin, rows])

    def resize(self, Py_ssize_t n_features, Py_ssize_t first=0):
        """Keep the features from `first` on and change their number to n_features.

        New features are 0 in all rows, and removed features must be 0 too.
        """
        self.support.resize(self.n_features, n_features, first)
        self.n_features = n_features

    def save(self):
        """A copy of the state that a block changes, for `restore`."""
        n_logged = 0 if self.log is None else self.log.corrections.size()
        arrays = self.vectors, self.sigma, self.threshold, self.t, self.acc
        return n_logged, [array.copy() for array in arrays]

    def restore(self, saved):
        """Undo all changes since `save`."""
        n_logged, copies = saved
        arrays = self.vectors, self.sigma, self.threshold, self.t, self.acc
        for array, copy in zip(arrays, copies, strict=True):
            array[...] = copy
        if self.log is not None:
            self.log.corrections.resize(<size_t> n_logged)

    def set_square(self, Py_ssize_t vector, double square):
        """Set the recomputed value of ``|sum_i t_i phi(x_i)|^2``."""
        self.vectors["S"][vector] = square, 0.0, 0.0
        self.per_vector("S_peak")[vector] = square
        squares = self.t[vector] @ self.t[vector]
        self.per_vector("S_slack")[vector] = self.c.slack * self.c.slack * squares
        refit(&self.c, vector, FREE)

    def rescale(self, Py_ssize_t vector, int shift):
        """``t <- 2**shift t``; theta does not change."""
        cdef Py_ssize_t e
        factor = 2.0 ** shift
        if self.c.averaged:
            self.acc[vector] += self.c.vectors[vector].average.Z * self.t[vector]
            clear(&self.c.vectors[vector].average)
        self.t[vector] *= factor
        self.per_vector("scale")[vector] /= factor
        self.per_vector("shift")[vector] += shift
        if self.log is not None:
            for e in reversed(range(<Py_ssize_t> self.log.corrections.size())):
                if self.log.corrections[e].vector == vector:
                    self.log.corrections[e].shift_after += shift
                    break

    def coefficients(self):
        n = self.n_support
        a, b = self.mixture()
        result = self.t[:, :n] * a[:, np.newaxis]
        if self.c.averaged:
            result += self.acc[:, :n] * b[:, np.newaxis]
        return result

    def count_support(self):
        if self.log is None:
            return np.count_nonzero(self.coefficients(), axis=1)
        entries = self.log.entries()
        pairs = np.unique(np.stack([entries["vector"], entries["row"]]), axis=1)
        return np.bincount(pairs[0], minlength=self.c.n_vectors)
