# The space of joint multi-class learning; a part of `spaces`.

cdef class JointState(LinearState):
    """The learned state of a joint machine: a linear space whose one label is all classes.

    Theta = (theta_1, ..., theta_K) is one dual vector, its coordinates feature by feature and, for
    each feature, class by class: coordinate ``column * K + class``. K labels learned side by side
    lie in memory in the same way, so that their scores, outputs and weights are had alike.

    Parameters
    ----------
    n_features : int
    n_classes : int
        From 3: two classes need no more than the one vector that tells them apart.
    p, dtype, averaged, normalized
        As those of `LinearState`.
    bias : float
        Value of the intercept's coordinate of each class; 0 for none.
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
        require(self.c.n_labels == 1 and self.c.bias == 0.0 and self.c.slack == 0.0
                and part(state, "log") is None, "it is not of a joint machine")
        self.n_classes = integer(state, "n_classes", 3, self.c.n_coordinates)
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

    def side_by_side(self):
        """A `LinearState` with a label for each class over the same coordinates, to read outputs
        and weights off: every label has the scalars that the machine has now."""
        return self.like(self.n_classes, self.rho, lambda array: array.reshape(-1, self.n_classes))

    def resize(self, Py_ssize_t n_features, Py_ssize_t first=0):
        """As `LinearState.resize`."""
        cdef Py_ssize_t K = self.n_classes, bias = 1 if self.rho else 0
        self.move_coordinates(n_features * K, self.n_features * K, first * K, bias * K)

    def weights(self, columns=None):
        """As `LinearState.weights`."""
        return self.side_by_side().weights(columns)

    def theta(self):
        """The dual vector, shape (n_classes, n_coordinates)."""
        return self.side_by_side().theta()
