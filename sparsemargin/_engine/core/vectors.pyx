"""The Python interface of rules and of the per-vector state."""

from libc.math cimport INFINITY, ldexp
from libc.stdint cimport int64_t

import copyreg

import numpy as np

from sparsemargin._engine.core.rules cimport (
    ALMA, AROW, ASCENT, BY_RADIUS, BY_ROW, BY_RUNNING_MAX, CRAMMA, N_KINDS, PERCEPTRON, ROMMA,
    UNSCALED, keeps_multipliers
)
from sparsemargin._engine.numerics.arithmetic cimport make_power

from sparsemargin._engine.state import (
    MAX_TRIALS, array_of, real, require_within, integer, writable
)

SCALINGS = {True: BY_ROW, False: UNSCALED, "running": BY_RUNNING_MAX, "max": BY_RADIUS}

cdef dict NOTHING_SET = dict.fromkeys(
    ("p", "alpha", "B", "C", "radius", "margin", "rate", "epsilon", "r"), 0.0
)


cdef class FirstOrderRule:
    """A rule with its parameters, ready for the training loop; immutable."""

    @staticmethod
    def perceptron(double p, normalize, double margin=0.0):
        return FirstOrderRule({"kind": PERCEPTRON, "scaling": SCALINGS[normalize], "p": p,
                               "margin": margin, "rate": 1.0})

    @staticmethod
    def alma(double p, normalize, double alpha, double B, double C, double radius):
        return FirstOrderRule({"kind": ALMA, "scaling": SCALINGS[normalize], "p": p,
                               "alpha": alpha, "B": B, "C": C, "radius": radius})

    @staticmethod
    def cramma(double beta, double eta_eff, double epsilon, radius):
        """`radius` is R; None: the largest norm among the first row and the corrected rows so
        far."""
        scaling, unit = (BY_RUNNING_MAX, 1.0) if radius is None else (UNSCALED, radius)
        return FirstOrderRule({"kind": CRAMMA, "scaling": scaling, "p": 2.0,
                               "margin": beta * unit, "rate": eta_eff / unit,
                               "epsilon": epsilon})

    @staticmethod
    def romma(bint aggressive):
        # The test is y w.x <= margin, but aggressive ROMMA corrects only where y w.x < 1.
        margin = 1.0 - ldexp(1.0, -53) if aggressive else 0.0
        return FirstOrderRule({"kind": ROMMA, "scaling": UNSCALED, "p": 2.0, "margin": margin})

    @staticmethod
    def ascent(double p, normalize):
        return FirstOrderRule({"kind": ASCENT, "scaling": SCALINGS[normalize], "p": p,
                               "margin": 1.0})

    @staticmethod
    def arow(double r, max_loss, normalize):
        """`max_loss` limits the loss of one row; None: no limit."""
        return FirstOrderRule({"kind": AROW, "scaling": SCALINGS[normalize], "p": 2.0,
                               "margin": 1.0, "r": r,
                               "C": INFINITY if max_loss is None else max_loss})

    def __init__(self, dict fields):
        self.rule = {**NOTHING_SET, **fields}

    def __getstate__(self):
        return self.rule

    def __reduce__(self):
        # Pickle protocols 0 and 1, and skops, know no other way to copy an extension type.
        return copyreg.__newobj__, (type(self),), self.__getstate__()

    def __setstate__(self, state):
        state = {**NOTHING_SET, **state}
        numbers = {name: real(state, name, -INFINITY, INFINITY) for name in NOTHING_SET}
        self.rule = {"kind": integer(state, "kind", 0, N_KINDS - 1),
                     "scaling": integer(state, "scaling", BY_ROW, BY_RADIUS), **numbers}

    @property
    def measures_rows(self):
        """Return whether margins refer to instances divided by their own norm."""
        return self.rule.scaling == BY_ROW

    @property
    def keeps_multipliers(self):
        """Return whether the multiplier of each row is stored because the rule may decrease it."""
        return keeps_multipliers(&self.rule)


cdef object vector_type():
    cdef Vector vector
    return np.asarray(<Vector[:1]> &vector).dtype


#: The dtype of the struct `Vector`, with the compiler's memory layout.
VECTOR = vector_type()


def numbers_of(vectors):
    """The fields of the vectors as views, by name; nested structs are replaced by their fields."""
    numbers = {}
    for name in VECTOR.names:
        inner = VECTOR[name].names
        numbers |= {part: vectors[name][part] for part in inner} if inner else {name: vectors[name]}
    return numbers


cdef class FirstOrderSpace:
    """Base class of the spaces that a first-order rule is trained in.

    Attributes
    ----------
    vectors : ndarray of shape (n_vectors,), VECTOR
        The state of each vector.
    sigma, threshold : ndarray of shape (n_vectors,)
        The factor that turns scores into outputs, and the threshold of the next correction.
    """

    def __reduce__(self):
        return copyreg.__newobj__, (type(self),), self.__getstate__()

    cdef take_vectors(self, double p, vectors, sigma, threshold):
        """Use these arrays for the state of the vectors."""
        cdef Vector[::1] of_vectors = vectors
        cdef double[::1] of_sigma = sigma, of_threshold = threshold
        self.vectors, self.sigma, self.threshold = vectors, sigma, threshold
        self.c.p, self.c.link = make_power(p), make_power(p - 1.0)
        self.c.vectors, self.c.sigma = &of_vectors[0], &of_sigma[0]
        self.c.threshold = &of_threshold[0]

    cdef open_vectors(self, double p):
        """Initialize the state of new vectors."""
        vectors = np.zeros(self.c.n_vectors, VECTOR)
        vectors["stopped"], vectors["scale"], vectors["bound"] = -1, 1.0, np.inf
        vectors["initial"] = 1.0
        self.take_vectors(p, vectors, np.zeros(self.c.n_vectors), np.zeros(self.c.n_vectors))

    def vectors_state(self):
        """The state of the vectors as a dict of arrays."""
        numbers = numbers_of(self.vectors)
        return {**{name: np.ascontiguousarray(numbers[name]) for name in numbers},
                "sigma": self.sigma, "threshold": self.threshold}

    def restore_vectors(self, double p, state):
        """Restore the result of `vectors_state`.

        Raises
        ------
        ValueError
            If the state is damaged.
        """
        cdef Py_ssize_t n = self.c.n_vectors
        vectors = np.zeros(n, VECTOR)
        for name, numbers in numbers_of(vectors).items():
            numbers[...] = array_of(state, name, numbers.dtype, (n,))
            if numbers.dtype == np.int64:
                require_within(name, numbers, -MAX_TRIALS, MAX_TRIALS)
        sigma, threshold = (writable(array_of(state, name, np.float64, (n,)))
                            for name in ("sigma", "threshold"))
        self.take_vectors(p, vectors, sigma, threshold)

    @property
    def n_vectors(self):
        return self.c.n_vectors

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
    def averaged(self):
        return self.c.averaged

    @property
    def normalized(self):
        return self.c.normalized

    @property
    def adaptive(self):
        return self.c.adaptive

    def per_vector(self, name):
        """See `Space.per_vector`; the result is a view."""
        return self.sigma if name == "sigma" else self.vectors[name]

    @property
    def trials_per_vector(self):
        """Number of trials that each vector took part in, shape (n_vectors,)."""
        stopped = self.vectors["stopped"]
        return np.where(stopped >= 0, stopped, self.trials) - self.vectors["idle"]

    def count_trials(self, int64_t trials):
        self.trials = max(self.trials, trials)

    def resume(self, max_corrections=None):
        cdef Py_ssize_t l
        cdef Vector* vector
        for l in range(self.c.n_vectors):
            vector = self.c.vectors + l
            vector.limit = -1 if max_corrections is None else max_corrections
            if vector.stopped >= 0:
                vector.idle += self.trials - vector.stopped
                vector.average.begin += self.trials - vector.stopped
                vector.stopped = -1
            if 0 <= vector.limit <= vector.corrections:
                vector.stopped = self.trials

    def mixture(self):
        """The hypothesis as ``a * g + b * acc``: the last vector, or the average of the vectors
        after each trial.

        Returns
        -------
        a : ndarray of shape (n_vectors,)
        b : ndarray of shape (n_vectors,)
            Zero without averaging.
        """
        cdef Py_ssize_t l
        a_array, b_array = np.empty(self.c.n_vectors), np.empty(self.c.n_vectors)
        cdef double[::1] a = a_array, b = b_array
        for l in range(self.c.n_vectors):
            mix(&self.c, l, self.trials, &a[l], &b[l])
        return a_array, b_array

    def theta_norm(self):
        """``||theta||_p`` of each vector, including the soft-margin coordinates."""
        return self.vectors["norm"].copy()

    def visible_norm(self):
        """``||theta||_p`` of each vector without the soft-margin coordinates."""
        S = self.vectors["S"]
        return self.vectors["scale"] * (S["high"] + S["low"]) ** (1.0 / self.p)

    def stop(self, which):
        """Stop training of the vectors selected by the boolean array `which`."""
        ending = which & (self.vectors["stopped"] < 0)
        self.vectors["stopped"][ending] = self.trials
        self.threshold[ending] = -np.inf


def set_thresholds(FirstOrderSpace space, FirstOrderRule rule):
    """Set the threshold of every active vector as the rule requires."""
    cdef Py_ssize_t l
    for l in range(space.c.n_vectors):
        space.c.threshold[l] = -INFINITY
        if space.c.vectors[l].stopped < 0:
            space.c.threshold[l] = next_threshold(&rule.rule, space.c.vectors + l)
