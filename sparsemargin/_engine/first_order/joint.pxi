# The space of joint multi-class training; included by `spaces`.

cdef class JointState(LinearState):
    """The state of a joint multi-class model: a linear space with one vector for all classes.

    Theta = (theta_1, ..., theta_K) is one dual vector. Its coordinates are ordered by feature and
    then by class: ``column * K + class``. K one-vs-rest vectors have the same memory layout, so
    scores, outputs and weights are computed in the same way.

    Parameters
    ----------
    n_features : int
    n_classes : int
        At least 3; two classes need only one vector.
    p, dtype, averaged, normalized
        See `LinearState`.
    bias : float
        Value of the intercept's coordinate of each class; 0: none.
    """

    def __init__(self, Py_ssize_t n_features, Py_ssize_t n_classes, double p, dtype, *,
                 double bias, bint averaged, bint normalized):
        cdef Py_ssize_t n_columns = n_features + (1 if bias else 0)
        if n_columns > MOST_NUMBERS // n_classes:
            raise ValueError(f"X has {n_features} features, for whose weights no memory suffices.")
        LinearState.__init__(self, n_columns * n_classes, 1, p, dtype, bias=0.0, slack=0.0,
                             averaged=averaged, normalized=normalized, log=None)
        self.n_classes, self.rho = n_classes, bias

    def __getstate__(self):
        return {**LinearState.__getstate__(self), "n_classes": self.n_classes, "rho": self.rho}

    def __setstate__(self, state):
        LinearState.__setstate__(self, state)
        require(self.c.n_vectors == 1 and self.c.bias == 0.0 and self.c.slack == 0.0
                and part(state, "log") is None, "it is not of a joint machine")
        self.n_classes = integer(state, "n_classes", 3, self.c.n_coordinates)
        self.rho = real(state, "rho", 0.0, INFINITY)
        require(self.c.n_coordinates % self.n_classes == 0,
                "'n_coordinates' are not as many for each class")

    @property
    def n_vectors(self):
        """Number of outputs per row: one for each class."""
        return self.n_classes

    @property
    def n_features(self):
        return self.c.n_coordinates // self.n_classes - (1 if self.rho else 0)

    @property
    def bias(self):
        return self.rho

    def side_by_side(self):
        """A `LinearState` with one vector per class over the same coordinates, for reading outputs
        and weights. All vectors have the current numbers of the joint vector."""
        return self.like(self.n_classes, self.rho, lambda array: array.reshape(-1, self.n_classes))

    def resize(self, Py_ssize_t n_features, Py_ssize_t first=0):
        """See `LinearState.resize`."""
        cdef Py_ssize_t K = self.n_classes, bias = 1 if self.rho else 0
        self.move_coordinates(n_features * K, self.n_features * K, first * K, bias * K)

    def weights(self, columns=None):
        """See `LinearState.weights`."""
        return self.side_by_side().weights(columns)

    def theta(self):
        """The dual vector, shape (n_classes, n_coordinates)."""
        return self.side_by_side().theta()
