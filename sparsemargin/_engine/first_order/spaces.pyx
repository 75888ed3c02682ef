"""The state of first-order models: the linear spaces as Python objects.

A space owns the arrays. How a correction changes them is in `linear`; which rows cause corrections
is in `trials`.
"""

from libc.float cimport DBL_MAX, DBL_MIN
from libc.math cimport INFINITY, fabs, ilogb, ldexp
from libc.stdint cimport int64_t, uint16_t

import numpy as np

from sparsemargin._engine.core.vectors cimport FirstOrderSpace, Vector, Space, refit
from sparsemargin._engine.first_order.linear cimport (
    FLUSHES, Coordinates, sum_afresh, weigh
)
from sparsemargin._engine.core.rules cimport FREE
from sparsemargin._engine.core.log cimport CorrectionLog
from sparsemargin._engine.numerics.arithmetic cimport link
from sparsemargin._engine.rows.csr cimport RowScale, state_t

from sparsemargin._engine.state import (
    MAX_TRIALS, MOST_NUMBERS, aligned, array_of, restore, flag, part, real, require,
    require_within, integer, sparse, writable
)

#: Largest p. Values p > 2 ln n have no advantage (Gentile 2001, Remark 6), and larger powers would
#: leave the range of a double.
MAX_P = 64.0

cdef enum:
    WRITTEN_AT_ONCE = 1 << 22  # largest size in bytes of arrays that are zeroed by writing
    LINE = 64  # bytes of a cache line
    VECTORS_OF_A_LINE = 16  # the number of padded vectors is a multiple of this
    FEWEST_PADDED = 64  # number of vectors from which on they are padded to whole cache lines


cdef void* address(array) except? NULL:
    return <void*> <size_t> array.ctypes.data


def padded(n_vectors):
    """Distance between the numbers of two consecutive coordinates."""
    if n_vectors < FEWEST_PADDED:
        return 4 if n_vectors == 3 else n_vectors  # the width of a SIMD register
    return -(-n_vectors // VECTORS_OF_A_LINE) * VECTORS_OF_A_LINE


def zeros(Py_ssize_t n_coordinates, Py_ssize_t width, dtype):
    """Zeros aligned to a cache line, shape (n_coordinates, width)."""
    dtype = np.dtype(dtype)
    raw = np.zeros(n_coordinates * width + LINE // dtype.itemsize, dtype)
    if raw.nbytes <= WRITTEN_AT_ONCE:
        # Writing to each page at once avoids a first page fault by a read and a second by a write.
        raw.fill(0)
    start = -(raw.ctypes.data // dtype.itemsize) % (LINE // dtype.itemsize)
    return raw[start:start + n_coordinates * width].reshape(n_coordinates, width)


def counted_of(g, acc, synced, vectors, pending):
    """acc with the pending sums added; `pending` None: there are none."""
    return acc if pending is None else acc + pending[vectors, synced] * g


cdef class LinearState(FirstOrderSpace):
    """The state of all vectors, ordered by feature.

    Parameters
    ----------
    n_features : int
    n_vectors : int
        Number of vectors: 1 for two classes.
    p : float
        The p-norm of the instances, from 2 to `MAX_P`.
    dtype : {numpy.float32, numpy.float64}
        Dtype of the coordinates; for p > 2 always float64.
    bias, slack : float
        Values of the intercept's and of the soft-margin coordinates; 0: none.
    averaged, normalized, adaptive : bool
        Whether the sum of the hypotheses is kept, whether hypotheses are counted with norm 1, and
        whether coordinates have variances.
    log : CorrectionLog or None
        Log of the corrections, if they are logged.

    Attributes
    ----------
    t, g, acc, synced, variances : ndarray of shape (n_coordinates, width)
        See `linear`. The columns are the vectors, followed by padding. acc and synced are empty
        without averaging, variances without variances. A variance of 0 stands for the number
        "initial" of its vector, which is 1 unless the space has a prior.
    pending : ndarray of shape (width, FLUSHES + 1)
    """

    def __init__(self, Py_ssize_t n_features, Py_ssize_t n_vectors, double p, dtype, *,
                 double bias, double slack, bint averaged, bint normalized, log,
                 bint adaptive=False):
        dtype = np.dtype(dtype if p == 2.0 else np.float64)
        self.c.n_vectors = n_vectors
        self.c.bias, self.c.slack = bias, slack
        self.c.averaged, self.c.normalized = averaged, normalized
        self.c.adaptive = adaptive
        width = padded(n_vectors)
        if n_features >= MOST_NUMBERS // width:
            raise ValueError(f"X has {n_features} features, for whose weights no memory suffices.")
        self.c.n_coordinates = n_features + (1 if bias else 0)
        self.take_coordinates(self.fresh(self.c.n_coordinates, p, dtype),
                              np.zeros((width, FLUSHES + 1 if averaged else 0)))
        self.log = log
        self.open_vectors(p)

    def fresh(self, n, p, dtype):
        """Zeros for n coordinates: t, g, acc, synced and the variances.

        For each coordinate, t, the variances and, if scores read few numbers at once, acc are
        adjacent in memory, because corrections need all of them."""
        width, n_counted = padded(self.c.n_vectors), n if self.c.averaged else 0
        beside = self.c.averaged and p == 2.0 and (self.c.n_vectors == 1 or self.c.adaptive)
        beside = beside and not isinstance(self, JointState)
        after = width * (1 + self.c.adaptive)
        numbers = zeros(n, after + (width if beside else 0), dtype)
        t, variances, acc = numbers[:, :width], numbers[:, width:after], numbers[:, after:]
        if not beside:
            acc = zeros(n_counted, width, dtype)
        synced = zeros(n_counted, numbers.shape[1], np.uint16)[:, :width]
        return t, t if p == 2.0 else zeros(n, width, dtype), acc, synced, variances

    cdef take_coordinates(self, tuple arrays, pending):
        """Use arrays like those made by `fresh`."""
        self.t, self.g, self.acc, self.synced, self.variances = arrays
        self.pending = pending
        self.c.pending = <double*> address(pending)
        self.c.pending_step = pending.strides[0] // sizeof(double)
        self.c.n_coordinates, self.width = self.t.shape
        self.is_single = self.t.dtype == np.float32
        self.c.window = 100 if self.is_single else 600
        self.point()

    cdef point(self):
        """Set the pointers to the arrays."""
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
        """Bytes used by the coordinates."""
        numbers = self.t, self.acc, self.variances, *(() if self.g is self.t else (self.g,))
        # For synced, the gaps between its rows are counted too.
        return sum(each.nbytes for each in numbers) + len(self.synced) * self.synced.strides[0]

    @property
    def n_features(self):
        return self.c.n_coordinates - (1 if self.c.bias else 0)

    @property
    def gain(self):
        """Increase of the precision of each coordinate since it was 1, float64."""
        held = self.variances.astype(np.float64)
        return np.divide(1.0 - held, held, out=np.zeros_like(held), where=held > 0.0)

    def of_vectors(self, numbers):
        """The numbers without the padding."""
        return numbers[:, :self.c.n_vectors]

    # --------------------------------------------------------------------------------- the state

    def __getstate__(self):
        has = {"t": True, "g": self.g is not self.t, "acc": self.c.averaged,
               "synced": self.c.averaged, "variances": self.c.adaptive}
        return {**{name: sparse(self.of_vectors(getattr(self, name))) if has[name] else None
                   for name in has},
                "pending": self.pending[:self.c.n_vectors, :self.vectors["flushes"].max()],
                "vectors": self.vectors_state(),
                "log": None if self.log is None else self.log.__getstate__(),
                "trials": self.trials, "p": self.p, "n_vectors": self.c.n_vectors,
                "n_coordinates": self.c.n_coordinates, "bias": self.c.bias,
                "slack": self.c.slack, "averaged": self.c.averaged,
                "normalized": self.c.normalized}

    def __setstate__(self, state):
        state = aligned(state)
        p = real(state, "p", 2.0, MAX_P)
        self.c.n_vectors = integer(state, "n_vectors", 1, MOST_NUMBERS // 2)
        n = integer(state, "n_coordinates", 1, MOST_NUMBERS // self.c.n_vectors)
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
                restore(self.of_vectors(array), state, name)
        self.restore_vectors(p, part(state, "vectors"))
        flushes = self.vectors["flushes"]
        require_within("flushes", flushes, 0, FLUSHES if self.c.averaged else 0)
        pending = np.zeros((arrays[0].shape[1], FLUSHES + 1 if self.c.averaged else 0))
        pending[:self.c.n_vectors, :flushes.max()] = array_of(
            state, "pending", np.float64, (self.c.n_vectors, flushes.max()))
        self.take_coordinates(arrays, pending)
        require_within("variances", self.of_vectors(self.variances), 0.0, np.finfo(dtype).max)
        require_within("initial", self.vectors["initial"], DBL_MIN, DBL_MAX)
        most = self.of_vectors(self.synced).max(axis=0, initial=0)
        require((most <= flushes).all(),
                f"'synced' holds {most.max(initial=0)}, more flushes than there were")
        self.log = None if part(state, "log") is None else CorrectionLog()
        if self.log is not None:
            self.log.__setstate__(state["log"])
            require_within("vector", state["log"]["vector"], 0, self.c.n_vectors - 1)
            require_within("columns", state["log"]["columns"], 0, self.c.n_coordinates - 1)

    def resize(self, Py_ssize_t n_features, Py_ssize_t first=0):
        """Keep the features from `first` on and change their number to n_features.

        New features have weight 0, and so must removed ones. With `first` = -1, one new feature is
        inserted before the others.
        """
        self.move_coordinates(n_features, self.n_features, first, 1 if self.c.bias else 0)

    def move_coordinates(self, n, n_before, first, n_last):
        """Keep the coordinates from `first` on, out of n_before, and change their number to n. The
        n_last coordinates after them stay the last ones."""
        start, first = max(-first, 0), max(first, 0)
        n_kept = min(n - start, n_before - first)

        arrays = self.fresh(n + n_last, self.p, self.t.dtype)
        before = self.t, self.g, self.acc, self.synced, self.variances
        for new, old in zip(arrays, before):
            if new.size:
                new[start:start + n_kept] = old[first:first + n_kept]
                new[len(new) - n_last:] = old[len(old) - n_last:]
        self.take_coordinates(arrays, self.pending)

    # ------------------------------------------------------------------------------ the weights

    def like(self, Py_ssize_t n_vectors, double bias, look):
        """A space for reading weights and outputs. `look` transforms the arrays. Each vector keeps
        its numbers; a single vector's numbers are repeated for all new vectors."""
        cdef LinearState other = LinearState.__new__(LinearState)
        other.c = self.c
        other.c.n_vectors, other.c.bias, other.trials = n_vectors, bias, self.trials
        t = look(self.t)
        shape = max(n_vectors, len(self.pending)), self.pending.shape[1]
        g = t if self.g is self.t else look(self.g)
        arrays = t, g, look(self.acc), look(self.synced), look(self.variances)
        other.take_coordinates(arrays, np.broadcast_to(self.pending, shape))
        times = n_vectors // self.c.n_vectors
        other.take_vectors(self.p, np.repeat(self.vectors, times), np.repeat(self.sigma, times),
                          np.repeat(self.threshold, times))
        return other

    def over(self, columns):
        """A space with only these coordinates, for reading weights; it shares memory for a
        slice."""
        def look(array):
            return array[columns] if len(array) else array

        return self.like(self.c.n_vectors, self.c.bias, look)

    def weights(self, columns=None):
        """The hypothesis, shape (n_vectors, n_coordinates), with the intercept's coordinate last,
        or only the given coordinates of it."""
        if columns is not None:
            return self.over(columns).weights()
        weights = self.weighed()
        if not np.isfinite(weights).all():
            raise ValueError(f"The weights exceed {self.t.dtype}. Rescale X, or pass float64.")
        return np.ascontiguousarray(self.of_vectors(weights).T)

    def weighed(self):
        """The hypothesis in the memory layout of t; infinite where the weights overflow their
        dtype."""
        weights = np.empty(self.t.shape, self.t.dtype)
        if self.is_single:
            weigh_all(self, self.singles, <float*> address(weights))
        else:
            weigh_all(self, self.doubles, <double*> address(weights))
        return weights

    def factors(self):
        """The factors a and b of the mixture with padding, and the pending sums or None."""
        a, b = (np.pad(each, (0, self.width - len(each))) for each in self.mixture())
        return a, b, self.pending if self.vectors["flushes"].any() else None

    def theta(self):
        """The dual vectors, shape (n_vectors, n_coordinates)."""
        return np.ascontiguousarray((self.of_vectors(self.t) * self.vectors["scale"]).T)

    def set_dual(self, theta):
        """Set the dual vectors, which must have the dtype of the coordinates. Except for the sums
        of the average, the space must have no counts yet."""
        if self.is_single:
            set_theta[float](self, self.singles, theta)
        else:
            set_theta[double](self, self.doubles, theta)

    # ---------------------------------------------- coordinates and multipliers of the rows

    def open_rows(self, Py_ssize_t n_rows, row_state, bint keeps_multipliers):
        """Create a soft-margin coordinate and a multiplier for each of the next n_rows rows, if
        they are used. `row_state` is None or the result of `close_rows` for the same rows."""
        cdef double[:, ::1] numbers
        cdef unsigned char[::1] raw
        slack, multipliers = row_state or (None, None)
        if self.c.slack:
            self.row_slack = numbers = self.one_per_row(n_rows, slack)
            self.c.n_slack, self.c.slack_t = n_rows, &numbers[0, 0] if n_rows else NULL
        if keeps_multipliers:
            self.multipliers = numbers = self.one_per_row(n_rows, multipliers)
            self.scales = raw = np.zeros(max(n_rows, 1) * sizeof(RowScale), dtype=np.uint8)
            self.c.multipliers = &numbers[0, 0] if n_rows else NULL
            # Several vectors may be trained by threads, which would write to the same entry.
            self.c.scales = <RowScale*> &raw[0] if self.c.n_vectors == 1 else NULL

    def close_rows(self):
        """Remove and return the rows' coordinates and multipliers, None if there are none. Their
        contributions to theta and its norm are kept."""
        row_state = self.row_slack, self.multipliers
        self.c.n_slack = 0
        self.c.slack_t = self.c.multipliers = NULL
        self.c.scales = NULL
        self.row_slack = self.multipliers = self.scales = None
        return row_state

    def one_per_row(self, Py_ssize_t n_rows, previous):
        """One number for each row and vector: the checked `previous` ones, or 0."""
        shape = n_rows, self.c.n_vectors
        if previous is None:
            return np.zeros(shape)
        return writable(array_of({"row_state": previous}, "row_state", np.float64, shape))

    def slack_outputs(self, Py_ssize_t start, Py_ssize_t stop):
        """The contribution of the soft-margin coordinates to ``y w.x`` of the rows start..stop-1 of
        the current task, shape (n_rows, n_vectors); 0 without a soft margin."""
        if not self.c.slack:
            return 0.0
        return (np.abs(self.row_slack[start:stop]) ** (self.p - 1.0)
                * (self.sigma * self.c.slack))

    def clear(self, Py_ssize_t l):
        """Set vector l to 0; its numbers have been reset already."""
        self.t[:, l] = self.g[:, l] = 0
        if self.row_slack is not None:
            self.row_slack[:, l] = 0.0


cdef set_theta(LinearState space, const Coordinates[state_t]& at, const state_t[:, ::1] theta):
    """Set the dual vectors to theta exactly, using scales that are powers of two."""
    cdef Space* c = &space.c
    cdef Py_ssize_t i, j, l, K = c.n_vectors
    cdef double[::1] peak = np.zeros(K), scale = np.ones(K)
    cdef double largest
    with nogil:
        # The vectors visit some coordinates one after the other, which fit into the near caches.
        for i in range(0, c.n_coordinates, 512):
            for l in range(K):
                largest = peak[l]
                for j in range(i, min(i + 512, c.n_coordinates)):
                    largest = max(largest, fabs(<double> theta[j, l]))
                peak[l] = largest
        for l in range(K):
            if peak[l] > 0.0:
                scale[l] = ldexp(1.0, ilogb(peak[l]))
            c.vectors[l].started = peak[l] > 0.0
            c.vectors[l].scale = scale[l]
        for j in range(c.n_coordinates):
            i = j * at.stride
            for l in range(K):
                at.t[i + l] = <state_t> (theta[j, l] / scale[l])
            if c.p.exponent != 2.0:
                for l in range(K):
                    at.g[i + l] = <state_t> (
                        link(&c.link, at.t[i + l]) if at.t[i + l] != 0 else 0.0)
        sum_afresh(c, at, 0, K)
        for l in range(K):
            refit(c, l, FREE)


cdef weigh_all(LinearState space, const Coordinates[state_t]& at, state_t* made):
    """Compute the weights of all coordinates; padding gets 0."""
    cdef Py_ssize_t i, l, width = space.width, stride = at.stride
    a_array, b_array, pending = space.factors()
    cdef const double[::1] a = a_array, b = b_array
    cdef bint averaged = space.c.averaged, flushed = pending is not None
    with nogil:
        for i in range(0, space.c.n_coordinates):
            if flushed:
                weigh(made + i * width, &space.c, at, i * stride, 0, space.c.n_vectors, &a[0],
                      &b[0])
                for l in range(space.c.n_vectors, width):
                    made[i * width + l] = 0
            elif averaged:
                for l in range(width):
                    made[i * width + l] = <state_t> (
                        at.g[i * stride + l] * a[l] + at.acc[i * stride + l] * b[l])
            else:
                for l in range(width):
                    made[i * width + l] = <state_t> (at.g[i * stride + l] * a[l])


include "joint.pxi"
