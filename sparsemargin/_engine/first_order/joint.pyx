"""The space of joint multi-class learning: one vector over the coordinates of all classes.

Theta = (theta_1, ..., theta_K) is the one dual vector of a linear space with a single label, its
coordinates feature by feature and, for each feature, class by class: coordinate
``column * K + class``. K labels learned side by side lie in memory in the same way, so that their
scores, outputs and weights are had by the same means.
"""

from libc.math cimport INFINITY

import copyreg

import numpy as np

from sparsemargin._engine.first_order.linear cimport LinearSpace
from sparsemargin._engine.first_order.storage cimport Storage

from sparsemargin._engine.first_order.linear import MOST_NUMBERS
from sparsemargin._engine.state import part, real, require, whole


cdef class JointSpace(LinearSpace):
    """The learned state of a joint machine: a linear space whose one label is all classes.

    Parameters
    ----------
    n_features : int
    n_classes : int
        From 3: two classes need no more than the one vector that tells them apart.
    p : float
        Norm of the instances, from 2 to `MAX_P`.
    dtype : {numpy.float32, numpy.float64}
        Type of the coordinates; p > 2 always takes float64.
    bias : float
        Value of the intercept's coordinate of each class; 0 for none.
    averaged, normalized : bool
        Whether the sum of the hypotheses is kept; whether they count with norm 1.
    """

    def __init__(self, Py_ssize_t n_features, Py_ssize_t n_classes, double p, dtype, *,
                 double bias, bint averaged, bint normalized):
        cdef Py_ssize_t n_columns = n_features + (1 if bias else 0)
        if n_columns > MOST_NUMBERS // n_classes:
            raise ValueError(f"X has {n_features} features, for whose weights no memory suffices.")
        LinearSpace.__init__(self, n_columns * n_classes, 1, p, dtype, bias=0.0, slack=0.0,
                             averaged=averaged, normalized=normalized, log=None)
        self.n_classes, self.rho = n_classes, bias

    def __getstate__(self):
        return {**LinearSpace.__getstate__(self), "n_classes": self.n_classes, "rho": self.rho}

    def __reduce__(self):
        return copyreg.__newobj__, (JointSpace,), self.__getstate__()

    def __setstate__(self, state):
        LinearSpace.__setstate__(self, state)
        require(self.c.n_labels == 1 and self.c.bias == 0.0 and self.c.slack == 0.0
                and part(state, "log") is None, "it is not of a joint machine")
        self.n_classes = whole(state, "n_classes", 3, self.c.n_coordinates)
        self.rho = real(state, "rho", 0.0, INFINITY)
        require(self.c.n_coordinates % self.n_classes == 0,
                "'n_coordinates' are not as many for each class")

    @property
    def n_labels(self):
        """Outputs of a row: one for each class."""
        return self.n_classes

    @property
    def n_features(self):
        return self.c.n_coordinates // self.n_classes - (1 if self.rho else 0)

    @property
    def bias(self):
        return self.rho

    cdef LinearSpace as_labels(self):
        """The classes as labels of a linear space, over the same arrays of coordinates."""
        cdef LinearSpace labels = LinearSpace.__new__(LinearSpace)
        cdef Py_ssize_t K = self.n_classes
        cdef Storage storage = self.storage.seen_as(self.c.n_coordinates // K, K)
        labels.c.n_labels = K
        labels.c.n_coordinates = self.c.n_coordinates // K
        labels.c.bias = self.rho
        labels.c.averaged = self.c.averaged
        labels.c.normalized = self.c.normalized
        labels.trials = self.trials
        labels.bind(self.p, storage, {
            "floats": np.repeat(self.floats, K, axis=1), "sums": np.repeat(self.sums, K, axis=0),
            "counts": np.repeat(self.counts, K, axis=1),
        })
        flushes = self.per_label("flushes")[0]
        labels.pending[:, :flushes] = self.pending[:, :flushes]
        return labels

    def side_by_side(self):
        """A `LinearSpace` with a label for each class, to read outputs and weights off: every
        label has the scalars that the machine has now."""
        return self.as_labels()

    def resize(self, Py_ssize_t n_features, Py_ssize_t first=0):
        """As `LinearSpace.resize`."""
        cdef Py_ssize_t K = self.n_classes, bias = 1 if self.rho else 0
        cdef Py_ssize_t kept = min(n_features + min(first, 0), self.n_features - max(first, 0))
        self.move_into(self.storage.moved((n_features + bias) * K, first * K, kept * K, bias * K))

    def weights(self):
        """The hypothesis, shape (n_classes, n_coordinates), the intercept's coordinate last."""
        return self.as_labels().weights()

    def theta(self):
        """The dual vector, shape (n_classes, n_coordinates)."""
        return self.as_labels().theta()
