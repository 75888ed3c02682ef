"""The kernel space: vectors as combinations of a pool of rows, for p = 2.

The vector of a label is ``theta = scale * sum_i t_i phi(x_i)`` over the rows that have corrected
some label, which all labels share. A correction changes one t_i and the label's few numbers;
``S = |sum_i t_i phi(x_i)|^2`` follows from the row's score. The average of the hypotheses is kept
like the linear space's, ``Z t + acc``, an entry a row of the pool.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t

import copyreg
import sys

import numpy as np

from sparsemargin._engine.first_order.labels cimport FirstOrderSpace, refit
from sparsemargin._engine.hypotheses.log cimport CorrectionLog
from sparsemargin._engine.first_order.rules cimport FREE

from sparsemargin._engine.state import (
    MAX_TRIALS, array_of, flag, part, real, require, require_within, whole, writable
)
from sparsemargin._engine.kernel.states import (
    kernel_state, pool_state, restored_kernel, restored_pool
)
from sparsemargin._engine.kernel.support import Pool

# In one array: their bytes can still be counted.
MOST_NUMBERS = sys.maxsize // 8


cdef class KernelSpace(FirstOrderSpace):
    """The learned state of all labels, over one pool of rows.

    Parameters
    ----------
    kernel : Kernel
    n_features, n_labels : int
    bias, slack : float
        Values of the intercept's and of the soft margin's coordinates; 0 for none.
    averaged, normalized : bool
        Whether the sum of the hypotheses is kept; whether they count with norm 1.
    log : CorrectionLog or None
        Where the corrections are logged.
    max_support : int or None
        Rows that the pool may hold.
    """

    def __init__(self, kernel, Py_ssize_t n_features, Py_ssize_t n_labels, *, double bias,
                 double slack, bint averaged, bint normalized, log, max_support):
        self.n_features = n_features
        self.c.n_labels = n_labels
        self.c.bias = bias
        self.c.slack = slack
        self.c.averaged = averaged
        self.c.normalized = normalized
        self.c.window = 600
        self.kernel, self.log, self.max_support = kernel, log, max_support
        self.pool = Pool()
        self.passed_over = np.zeros(n_labels, dtype=np.int64)
        self.origin = np.empty(0, dtype=np.int64)
        self.t = self.acc = np.zeros((n_labels, 0))
        self.open_labels(2.0)

    def __getstate__(self):
        n = self.n_support
        return {"labels": self.labels_state(), "t": self.t[:, :n], "acc": self.acc[:, :n],
                "kernel": kernel_state(self.kernel), "pool": pool_state(self.pool),
                "origin": self.origin, "passed_over": self.passed_over,
                "log": None if self.log is None else self.log.entries(),
                "trials": self.trials, "rows_taken": self.rows_taken,
                "n_features": self.n_features, "n_labels": self.c.n_labels,
                "bias": self.c.bias, "slack": self.c.slack, "averaged": self.c.averaged,
                "normalized": self.c.normalized, "max_support": self.max_support}

    def __reduce__(self):
        return copyreg.__newobj__, (KernelSpace,), self.__getstate__()

    def __setstate__(self, state):
        self.c.window = 600
        self.c.n_labels = whole(state, "n_labels", 1, MOST_NUMBERS)
        self.n_features = whole(state, "n_features", 1, MOST_NUMBERS)
        self.c.bias = real(state, "bias", 0.0, INFINITY)
        self.c.slack = real(state, "slack", 0.0, INFINITY)
        self.c.averaged = flag(state, "averaged")
        self.c.normalized = flag(state, "normalized")
        self.trials = whole(state, "trials", 0, MAX_TRIALS)
        self.rows_taken = whole(state, "rows_taken", 0, MAX_TRIALS)
        self.max_support = None
        if part(state, "max_support") is not None:
            self.max_support = whole(state, "max_support", 1, MOST_NUMBERS)
        self.kernel = restored_kernel(part(state, "kernel"), self.c.bias)
        self.pool = restored_pool(part(state, "pool"), self.kernel, self.n_features)
        self.take_numbers(state)
        self.log = None if part(state, "log") is None else CorrectionLog()
        if self.log is not None:
            self.log.take_corrections(state["log"], self.n_support)
            require_within("label", state["log"]["label"], 0, self.c.n_labels - 1)

    cdef take_numbers(self, state):
        """Take in the arrays of a state, of the types and shapes they must have."""
        cdef Py_ssize_t k = self.c.n_labels, n = self.n_support
        layout = {
            "t": ((k, n), np.float64),
            "acc": ((k, n if self.c.averaged else 0), np.float64),
            "origin": ((n,), np.int64),
            "passed_over": ((k,), np.int64),
        }
        arrays = {name: writable(array_of(state, name, kind, shape))
                  for name, (shape, kind) in layout.items()}
        require_within("passed_over", arrays["passed_over"], 0, MAX_TRIALS)
        self.restore_labels(2.0, part(state, "labels"))
        self.t, self.acc = arrays["t"], arrays["acc"]
        self.origin, self.passed_over = arrays["origin"], arrays["passed_over"]

    cdef bind_rows(self, Py_ssize_t room):
        """Make room for so many coefficients of each label."""
        shape = self.c.n_labels, room
        n = min(room, self.t.shape[1])
        t, self.t = self.t, np.zeros(shape)
        self.t[:, :n] = t[:, :n]
        acc, self.acc = self.acc, np.zeros(shape if self.c.averaged else (self.c.n_labels, 0))
        if self.c.averaged:
            self.acc[:, :n] = acc[:, :n]

    @property
    def multipliers(self):
        """No rule with a kernel keeps any."""
        return None

    @property
    def n_support(self):
        return len(self.pool)

    @property
    def nbytes(self):
        """Of the pool's rows and coefficients."""
        return self.pool.nbytes + self.t.nbytes + self.acc.nbytes

    @property
    def free(self):
        """Rows that the pool still has room for; infinity where it is not bounded."""
        return INFINITY if self.max_support is None else self.max_support - len(self.pool)

    def reserve(self, Py_ssize_t n_new):
        """Have room for the coefficients of so many more rows, all 0."""
        cdef Py_ssize_t needed = len(self.pool) + n_new
        if needed > self.t.shape[1]:
            self.bind_rows(max(needed, 2 * self.t.shape[1]))

    def adopt(self, points, rows, Py_ssize_t n_new, which, Py_ssize_t log_start):
        """Let those of the n_new reserved rows into the pool that made corrections.

        Parameters
        ----------
        points : Points
            These rows, in the order of joining.
        rows : ndarray of shape (n_joined,)
            What they are called in `origin`.
        n_new : int
        which : ndarray of shape (n_joined,)
            Their places among the reserved ones.
        log_start : int
            Corrections logged before.
        """
        cdef Py_ssize_t e, k = len(self.pool), n_joined = len(which)
        cdef int64_t[::1] place
        for array in ((self.t, self.acc) if self.c.averaged else (self.t,)):
            array[:, k:k + n_joined] = array[:, k + which]
            array[:, k + n_joined:k + n_new] = 0.0
        if self.log is not None:
            places = np.zeros(n_new, dtype=np.int64)
            places[which] = np.arange(k, k + n_joined)
            place = places
            for e in range(log_start, <Py_ssize_t> self.log.corrections.size()):
                if self.log.corrections[e].row >= k:
                    self.log.corrections[e].row = place[self.log.corrections[e].row - k]
        if n_joined:
            self.pool.extend(points)
            self.origin = np.concatenate([self.origin, rows])

    def resize(self, Py_ssize_t n_features, Py_ssize_t first=0):
        """Keep the features from `first` on and let them be n_features; new ones are 0 in all
        rows.

        Those that go must be 0 too.
        """
        self.pool.resize(self.n_features, n_features, first)
        self.n_features = n_features

    def count_rows(self, Py_ssize_t n_rows):
        """Number the rows of the next stream on from these."""
        self.rows_taken += n_rows

    def save(self):
        """What a block changes of the labels, for `restore`."""
        n_logged = 0 if self.log is None else self.log.corrections.size()
        arrays = self.labels, self.sigma, self.threshold, self.t, self.acc
        return n_logged, [array.copy() for array in arrays]

    def restore(self, saved):
        """Take back what has happened since `save`."""
        n_logged, arrays = saved
        for array, kept in zip(
            (self.labels, self.sigma, self.threshold, self.t, self.acc), arrays, strict=True
        ):
            array[...] = kept
        if self.log is not None:
            self.log.corrections.resize(<size_t> n_logged)

    def set_square(self, Py_ssize_t label, double square):
        """Take ``|sum_i t_i phi(x_i)|^2``, worked out afresh."""
        self.labels["S"][label] = square, 0.0, 0.0
        self.per_label("S_peak")[label] = square
        squares = self.t[label] @ self.t[label]
        self.per_label("S_slack")[label] = self.c.slack * self.c.slack * squares
        refit(&self.c, label, FREE)

    def rescale(self, Py_ssize_t label, int shift):
        """``t <- 2**shift t``, theta unchanged."""
        cdef Py_ssize_t e
        factor = 2.0 ** shift
        if self.c.averaged:
            self.acc[label] += self.per_label("Z")[label] * self.t[label]
            self.per_label("Z")[label] = self.per_label("unit_peak")[label] = 0.0
        self.t[label] *= factor
        self.per_label("scale")[label] /= factor
        self.per_label("shift")[label] += shift
        if self.log is not None:
            for e in reversed(range(<Py_ssize_t> self.log.corrections.size())):
                if self.log.corrections[e].label == label:
                    self.log.corrections[e].shift_after += shift
                    break

    def coefficients(self):
        """Of each row of the pool in the hypothesis, shape (n_labels, n_support)."""
        n = self.n_support
        a, b = self.mixture()
        result = self.t[:, :n] * a[:, np.newaxis]
        if self.c.averaged:
            result += self.acc[:, :n] * b[:, np.newaxis]
        return result

    def count_support(self):
        """Rows of the pool that each label's hypothesis is made of, shape (n_labels,)."""
        if self.log is None:
            return np.count_nonzero(self.coefficients(), axis=1)
        entries = self.log.entries()
        pairs = np.unique(np.stack([entries["label"], entries["row"]]), axis=1)
        return np.bincount(pairs[0], minlength=self.c.n_labels)
