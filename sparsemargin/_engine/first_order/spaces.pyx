"""What is learned by first-order rules: the spaces as Python sees them.

A space holds numbers and hands them out; how they change is told in `linear`, which trials they
change by in `trials`.
"""

from libc.math cimport INFINITY, fabs, ilogb, ldexp
from libc.stdint cimport int64_t, uint16_t

import copyreg
import sys

import numpy as np

from sparsemargin._engine.core.labels cimport FirstOrderSpace, Label, Space, refit
from sparsemargin._engine.first_order.linear cimport FLUSHES, Coordinates, sum_afresh, weigh
from sparsemargin._engine.core.rules cimport FREE
from sparsemargin._engine.core.log cimport CorrectionLog
from sparsemargin._engine.numerics.arithmetic cimport link
from sparsemargin._engine.rows.csr cimport RowScale, state_t

from sparsemargin._engine.state import (
    MAX_TRIALS, aligned, array_of, restore, flag, part, real, require, require_within, integer, sparse,
    writable
)

#: Largest p: p > 2 ln n gains nothing (Gentile 2001, Remark 6), and powers beyond it leave the
#: range of a double.
MAX_P = 64.0

# In one array: their bytes can still be counted.
MOST_NUMBERS = sys.maxsize // 8

# Bytes of a cache line; from so many labels on, those of a coordinate fill whole ones.
cdef enum:
    SOON_MET = 1 << 22
    LINE = 64
    LABELS_OF_A_LINE = 16
    FEWEST_PADDED = 64


cdef void* address(array) except? NULL:
    return <void*> <size_t> array.ctypes.data


def padded(n_labels):
    """Numbers from a coordinate's first to the next one's."""
    if n_labels < FEWEST_PADDED:
        return 4 if n_labels == 3 else n_labels  # a vector
    return -(-n_labels // LABELS_OF_A_LINE) * LABELS_OF_A_LINE


def zeros(Py_ssize_t n_coordinates, Py_ssize_t width, dtype):
    """Zeros that begin at a cache line, shape (n_coordinates, width)."""
    dtype = np.dtype(dtype)
    raw = np.zeros(n_coordinates * width + LINE // dtype.itemsize, dtype)
    if raw.nbytes <= SOON_MET:
        # Each page is met by a write at once, instead of by a read that a write comes after.
        raw.fill(0)
    start = -(raw.ctypes.data // dtype.itemsize) % (LINE // dtype.itemsize)
    return raw[start:start + n_coordinates * width].reshape(n_coordinates, width)


def counted_of(g, acc, synced, labels, pending):
    """acc, and what is pending of it; None: nothing is."""
    return acc if pending is None else acc + pending[labels, synced] * g


cdef class LinearState(FirstOrderSpace):
    """The learned state of all labels, feature by feature.

    Parameters
    ----------
    n_features : int
    n_labels : int
        Vectors learned side by side: 1 for two classes.
    p : float
        Norm of the instances, from 2 to `MAX_P`.
    dtype : {numpy.float32, numpy.float64}
        Type of the coordinates; p > 2 always takes float64.
    bias, slack : float
        Values of the intercept's and of the soft margin's coordinates; 0 for none.
    averaged, normalized, adaptive : bool
        Whether the sum of the hypotheses is kept; whether they count with norm 1; whether
        coordinates have variances.
    log : CorrectionLog or None
        Where the corrections are logged.

    Attributes
    ----------
    t, g, acc, synced, variances : ndarray of shape (n_coordinates, width)
        See `linear`; the labels come first, padding after them. Empty are acc and synced without an
        average, variances where there are none; these are 0 where they are still 1.
    pending : ndarray of shape (width, FLUSHES + 1)
    """

    def __init__(self, Py_ssize_t n_features, Py_ssize_t n_labels, double p, dtype, *,
                 double bias, double slack, bint averaged, bint normalized, log,
                 bint adaptive=False):
        dtype = np.dtype(dtype if p == 2.0 else np.float64)
        self.c.n_labels = n_labels
        self.c.bias, self.c.slack = bias, slack
        self.c.averaged, self.c.normalized = averaged, normalized
        self.c.adaptive = adaptive
        width = padded(n_labels)
        if n_features >= MOST_NUMBERS // width:
            raise ValueError(f"X has {n_features} features, for whose weights no memory suffices.")
        self.c.n_coordinates = n_features + (1 if bias else 0)
        self.take_coordinates(self.fresh(self.c.n_coordinates, p, dtype),
                              np.zeros((width, FLUSHES + 1 if averaged else 0)))
        self.log = log
        self.open_labels(p)

    def fresh(self, n, p, dtype):
        """Zeros for so many coordinates: t, g, acc, synced and the variances.

        Of a coordinate t, the variances and, where scores read few numbers at once, acc lie side by
        side, as corrections need them all."""
        width, n_counted = padded(self.c.n_labels), n if self.c.averaged else 0
        beside = self.c.averaged and p == 2.0 and (self.c.n_labels == 1 or self.c.adaptive)
        beside = beside and not isinstance(self, JointState)
        after = width * (1 + self.c.adaptive)
        numbers = zeros(n, after + (width if beside else 0), dtype)
        t, variances, acc = numbers[:, :width], numbers[:, width:after], numbers[:, after:]
        if not beside:
            acc = zeros(n_counted, width, dtype)
        synced = zeros(n_counted, numbers.shape[1], np.uint16)[:, :width]
        return t, t if p == 2.0 else zeros(n, width, dtype), acc, synced, variances

    cdef take_coordinates(self, tuple arrays, pending):
        """Take arrays such as `fresh` gives."""
        self.t, self.g, self.acc, self.synced, self.variances = arrays
        self.pending = pending
        self.c.pending = <double*> address(pending)
        self.c.pending_step = pending.strides[0] // sizeof(double)
        self.c.n_coordinates, self.width = self.t.shape
        self.is_single = self.t.dtype == np.float32
        self.c.window = 100 if self.is_single else 600
        self.point()

    cdef point(self):
        """Point to the numbers."""
        cdef void* t = address(self.t)
        cdef void* g = address(self.g)
        cdef void* acc = address(self.acc)
        cdef void* variances = address(self.variances)
        cdef Py_ssize_t stride = self.t.strides[0] // self.t.itemsize
        self.singles.t, self.singles.g, self.singles.acc = <float*> t, <float*> g, <float*> acc
        self.doubles.t, self.doubles.g, self.doubles.acc = <double*> t, <double*> g, <double*> acc
        self.singles.synced = self.doubles.synced = <uint16_t*> address(self.synced)
        self.singles.variances, self.doubles.variances = <float*> variances, <double*> variances
        self.singles.stride = self.doubles.stride = stride

    @property
    def nbytes(self):
        """Bytes that the coordinates take."""
        numbers = self.t, self.acc, self.variances, *(() if self.g is self.t else (self.g,))
        # Those of an average have what parts them counted in.
        return sum(each.nbytes for each in numbers) + len(self.synced) * self.synced.strides[0]

    @property
    def n_features(self):
        return self.c.n_coordinates - (1 if self.c.bias else 0)

    @property
    def gain(self):
        """What the precision of each coordinate has gained since it was 1, float64."""
        held = self.variances.astype(np.float64)
        return np.divide(1.0 - held, held, out=np.zeros_like(held), where=held > 0.0)

    def of_labels(self, numbers):
        """The numbers without what is padding."""
        return numbers[:, :self.c.n_labels]

    # --------------------------------------------------------------------------------- the state

    def __getstate__(self):
        has = {"t": True, "g": self.g is not self.t, "acc": self.c.averaged,
               "synced": self.c.averaged, "variances": self.c.adaptive}
        return {**{name: sparse(self.of_labels(getattr(self, name))) if has[name] else None
                   for name in has},
                "pending": self.pending[:self.c.n_labels, :self.labels["flushes"].max()],
                "labels": self.labels_state(),
                "log": None if self.log is None else self.log.__getstate__(),
                "trials": self.trials, "p": self.p, "n_labels": self.c.n_labels,
                "n_coordinates": self.c.n_coordinates, "bias": self.c.bias,
                "slack": self.c.slack, "averaged": self.c.averaged,
                "normalized": self.c.normalized}

    def __reduce__(self):
        return copyreg.__newobj__, (type(self),), self.__getstate__()

    def __setstate__(self, state):
        state = aligned(state)
        p = real(state, "p", 2.0, MAX_P)
        self.c.n_labels = integer(state, "n_labels", 1, MOST_NUMBERS // 2)
        n = integer(state, "n_coordinates", 1, MOST_NUMBERS // self.c.n_labels)
        self.c.bias = real(state, "bias", 0.0, INFINITY)
        self.c.slack = real(state, "slack", 0.0, INFINITY)
        self.c.averaged = flag(state, "averaged")
        self.c.normalized = flag(state, "normalized")
        self.c.adaptive = part(state, "variances") is not None
        self.trials = integer(state, "trials", 0, MAX_TRIALS)
        t = part(state, "t")
        dtype = getattr(t["values"] if isinstance(t, dict) and "values" in t else t, "dtype", None)
        require(dtype == np.float64 or (dtype == np.float32 and p == 2.0),
                "'t' is not of a type that coordinates have")
        require(p != 2.0 or part(state, "g") is None, "'g' is not of a model like this")
        for name in () if self.c.averaged else ("acc", "synced"):
            require(part(state, name) is None, f"{name!r} is not of a model like this")
        arrays = self.fresh(n, p, dtype)
        for name, array in zip(("t", "g", "acc", "synced", "variances"), arrays):
            if array.size and not (name == "g" and p == 2.0):
                restore(self.of_labels(array), state, name)
        self.restore_labels(p, part(state, "labels"))
        flushes = self.labels["flushes"]
        require_within("flushes", flushes, 0, FLUSHES if self.c.averaged else 0)
        pending = np.zeros((arrays[0].shape[1], FLUSHES + 1 if self.c.averaged else 0))
        pending[:self.c.n_labels, :flushes.max()] = array_of(
            state, "pending", np.float64, (self.c.n_labels, flushes.max()))
        self.take_coordinates(arrays, pending)
        require_within("variances", self.of_labels(self.variances), 0.0, 1.0)
        most = self.of_labels(self.synced).max(axis=0, initial=0)
        require((most <= flushes).all(),
                f"'synced' holds {most.max(initial=0)}, more flushes than there were")
        self.log = None if part(state, "log") is None else CorrectionLog()
        if self.log is not None:
            self.log.__setstate__(state["log"])
            require_within("label", state["log"]["label"], 0, self.c.n_labels - 1)
            require_within("columns", state["log"]["columns"], 0, self.c.n_coordinates - 1)

    def resize(self, Py_ssize_t n_features, Py_ssize_t first=0):
        """Keep the features from `first` on and let them be n_features; new ones weigh nothing.

        Those that go must weigh nothing either. -1: a new one comes before the others.
        """
        self.move_coordinates(n_features, self.n_features, first, 1 if self.c.bias else 0)

    def move_coordinates(self, n, n_before, first, n_last):
        """Keep the coordinates from `first` on, of n_before, and let them be n, the n_last behind
        them staying the last."""
        start, first = max(-first, 0), max(first, 0)
        kept = min(n - start, n_before - first)

        arrays = self.fresh(n + n_last, self.p, self.t.dtype)
        before = self.t, self.g, self.acc, self.synced, self.variances
        for new, old in zip(arrays, before):
            if new.size:
                new[start:start + kept] = old[first:first + kept]
                new[len(new) - n_last:] = old[len(old) - n_last:]
        self.take_coordinates(arrays, self.pending)

    # ------------------------------------------------------------------------------ the weights

    def like(self, Py_ssize_t n_labels, double bias, look):
        """A space to read weights and outputs off: `look` makes its arrays of these, and each label
        has its own scalars, or the lone label's where there is one."""
        cdef LinearState other = LinearState.__new__(LinearState)
        other.c = self.c
        other.c.n_labels, other.c.bias, other.trials = n_labels, bias, self.trials
        t = look(self.t)
        shape = max(n_labels, len(self.pending)), self.pending.shape[1]
        g = t if self.g is self.t else look(self.g)
        arrays = t, g, look(self.acc), look(self.synced), look(self.variances)
        other.take_coordinates(arrays, np.broadcast_to(self.pending, shape))
        times = n_labels // self.c.n_labels
        other.take_labels(self.p, np.repeat(self.labels, times), np.repeat(self.sigma, times),
                          np.repeat(self.threshold, times))
        return other

    def over(self, columns):
        """A space of these coordinates alone, to read weights off; in views where it is a slice."""
        def look(array):
            return array[columns] if len(array) else array

        return self.like(self.c.n_labels, self.c.bias, look)

    def weights(self, columns=None):
        """The hypothesis, shape (n_labels, n_coordinates), the intercept's coordinate last; or
        these coordinates of it."""
        if columns is not None:
            return self.over(columns).weights()
        weights = self.weighed()
        if not np.isfinite(weights).all():
            raise ValueError(f"The weights exceed {self.t.dtype}. Rescale X, or pass float64.")
        return np.ascontiguousarray(self.of_labels(weights).T)

    def weighed(self):
        """The same where the coordinates stand; infinite where they exceed their type."""
        weights = np.empty(self.t.shape, self.t.dtype)
        if self.is_single:
            weigh_all(self, self.singles, <float*> address(weights))
        else:
            weigh_all(self, self.doubles, <double*> address(weights))
        return weights

    def factors(self):
        """What makes weights of all labels' numbers, padding among them."""
        a, b = (np.pad(each, (0, self.width - len(each))) for each in self.mixture())
        return a, b, self.pending if self.labels["flushes"].any() else None

    def theta(self):
        """The dual vectors, shape (n_labels, n_coordinates)."""
        return np.ascontiguousarray((self.of_labels(self.t) * self.labels["scale"]).T)

    def set_dual(self, theta):
        """Let the dual vectors be these, of the type of the coordinates; what has been counted
        stays as it is, and must be nothing or the average's own."""
        if self.is_single:
            set_theta[float](self, self.singles, theta)
        else:
            set_theta[double](self, self.doubles, theta)

    # ---------------------------------------------- coordinates and multipliers of the rows

    def open_rows(self, Py_ssize_t n_rows, kept, bint keeps_multipliers):
        """Give each of the next n_rows rows a soft-margin coordinate and a multiplier of its own,
        where there are such, or let the same rows have those again that `close_rows` gave."""
        cdef double[:, ::1] numbers
        cdef unsigned char[::1] raw
        slack, multipliers = kept or (None, None)
        if self.c.slack:
            self.row_slack = numbers = self.one_a_row(n_rows, slack)
            self.c.n_slack, self.c.slack_t = n_rows, &numbers[0, 0] if n_rows else NULL
        if keeps_multipliers:
            self.multipliers = numbers = self.one_a_row(n_rows, multipliers)
            self.scales = raw = np.zeros(max(n_rows, 1) * sizeof(RowScale), dtype=np.uint8)
            self.c.multipliers = &numbers[0, 0] if n_rows else NULL
            # Labels that threads share would write it at once.
            self.c.scales = <RowScale*> &raw[0] if self.c.n_labels == 1 else NULL

    def close_rows(self):
        """Give the rows' coordinates and multipliers back, None where there are none; what they
        have added to theta and its norm stays."""
        kept = self.row_slack, self.multipliers
        self.c.n_slack = 0
        self.c.slack_t = self.c.multipliers = NULL
        self.c.scales = NULL
        self.row_slack = self.multipliers = self.scales = None
        return kept

    def one_a_row(self, Py_ssize_t n_rows, kept):
        """A number for each row and label, 0 to begin with, or the kept ones."""
        shape = n_rows, self.c.n_labels
        if kept is None:
            return np.zeros(shape)
        return writable(array_of({"kept": kept}, "kept", np.float64, shape))

    def slack_outputs(self, Py_ssize_t start, Py_ssize_t stop):
        """What their soft-margin coordinates add to ``y w.x`` of the rows start..stop-1 of the
        task at hand, shape (n_rows, n_labels); 0 without a soft margin."""
        if not self.c.slack:
            return 0.0
        return (np.abs(self.row_slack[start:stop]) ** (self.p - 1.0)
                * (self.sigma * self.c.slack))

    def clear(self, Py_ssize_t l):
        """Let nothing be left of the vector of label l, whose scalars tell so already."""
        self.t[:, l] = self.g[:, l] = 0
        if self.row_slack is not None:
            self.row_slack[:, l] = 0.0


cdef set_theta(LinearState space, const Coordinates[state_t]& at, const state_t[:, ::1] theta):
    """Let the dual vectors be theta, to the bit: at scales that are powers of two."""
    cdef Space* c = &space.c
    cdef Label* label
    cdef Py_ssize_t i, j, l
    cdef double peak
    for l in range(c.n_labels):
        label = c.labels + l
        peak = 0.0
        for j in range(c.n_coordinates):
            peak = max(peak, fabs(<double> theta[j, l]))
        label.started = peak > 0.0
        label.scale = ldexp(1.0, ilogb(peak)) if peak > 0.0 else 1.0
        for j in range(c.n_coordinates):
            i = j * at.stride + l
            at.t[i] = <state_t> (theta[j, l] / label.scale)
            if c.p.exponent != 2.0:
                at.g[i] = <state_t> (link(&c.link, at.t[i]) if at.t[i] != 0 else 0.0)
        sum_afresh(c, at, l)
        refit(c, l, FREE)


cdef weigh_all(LinearState space, const Coordinates[state_t]& at, state_t* made):
    """The weights of all coordinates, 0 where there is padding."""
    cdef Py_ssize_t i, l, width = space.width, stride = at.stride
    a_array, b_array, pending = space.factors()
    cdef const double[::1] a = a_array, b = b_array
    cdef bint averaged = space.c.averaged, flushed = pending is not None
    with nogil:
        for i in range(0, space.c.n_coordinates):
            if flushed:
                weigh(made + i * width, &space.c, at, i * stride, 0, space.c.n_labels, &a[0],
                      &b[0])
                for l in range(space.c.n_labels, width):
                    made[i * width + l] = 0
            elif averaged:
                for l in range(width):
                    made[i * width + l] = <state_t> (
                        at.g[i * stride + l] * a[l] + at.acc[i * stride + l] * b[l])
            else:
                for l in range(width):
                    made[i * width + l] = <state_t> (at.g[i * stride + l] * a[l])


include "joint.pxi"
