"""The first-order algorithms over a kernel: one by one, every product from the Gram matrix.

A vector of the feature space is represented by its coefficients over the rows. Its norms and
products are computed from the matrix of all products whenever they are needed. Nothing is
normalized in advance, recursive, or in blocks. The algorithms are those of the module
`first_order`, whose rules get such a combination instead of an array.

Sources: the kernel forms are those of Freund & Schapire (1999), section 4, and of Gentile (JMLR 2,
2001), section 5, whose kernels these are; the soft margin ``K + Delta^2 I`` is Tsampouka &
Shawe-Taylor (2006), section 4. The intercept's coordinate of value rho adds ``rho^2``.

`feature_vectors` is an alternative: explicit vectors whose products are the kernel's, on which any
algorithm of the linear space can be run.
"""

from dataclasses import dataclass, field
from functools import partial
from inspect import signature

import numpy as np

from references.first_order import run_machines, run_trials, trials_of_epochs
from references.runs import Run, p_norm
from sparsemargin.models.kernels import NAMED


@dataclass(frozen=True)
class Kernel:
    """A kernel function with the parameters of the estimators.

    ``"poly"`` is ``(gamma x.z + coef0)^degree``, ``"rbf"`` is ``exp(-gamma ||x - z||^2)``, and
    ``"polyrbf"`` is ``(1 + rbf)^degree``.
    """

    name: str
    degree: int = 3
    gamma: float = 1.0
    coef0: float = 0.0

    def given(self):
        """Return the kernel for an estimator."""
        values = {**vars(self)}
        kind = NAMED[values.pop("name")]
        names = signature(kind).parameters
        return kind(**{name: value for name, value in values.items() if name in names})

    def of_row(self, x, Z):
        """Return K(x, z) for every row z of Z."""
        if self.name == "poly":
            return (self.gamma * (Z @ x) + self.coef0) ** self.degree
        gaussian = np.exp(-self.gamma * np.sum((Z - x) ** 2, axis=1))
        return gaussian if self.name == "rbf" else (1 + gaussian) ** self.degree

    def matrix(self, X, Z, dtype=np.longdouble):
        """Return K of shape (n_X, n_Z), from dense rows."""
        X, Z = np.asarray(X, dtype), np.asarray(Z, dtype)
        return np.array([self.of_row(x, Z) for x in X], dtype).reshape(len(X), len(Z))

    def diagonal(self, X, dtype=np.longdouble):
        """Return K(x, x) for every row x of X."""
        X = np.asarray(X, dtype)
        return np.array([self.of_row(x, x[np.newaxis])[0] for x in X], dtype)


class Combination:
    """The vector ``sum_i coefficients[i] v_i``, where ``gram[i, j]`` is ``v_i.v_j``."""

    # Lets numpy numbers leave products with combinations to this class.
    __array_ufunc__ = None

    def __init__(self, coefficients, gram):
        self.coefficients, self.gram = coefficients, gram
        self.dtype = gram.dtype

    def any(self):
        return self.coefficients.any()

    def __add__(self, other):
        return Combination(self.coefficients + other.coefficients, self.gram)

    def __radd__(self, zero):
        # `sum` starts with 0.
        return self

    def __rmul__(self, factor):
        return Combination(factor * self.coefficients, self.gram)

    def __truediv__(self, divisor):
        return Combination(self.coefficients / divisor, self.gram)

    def __matmul__(self, other):
        ours, theirs = (np.flatnonzero(v.coefficients) for v in (self, other))
        products = self.gram[np.ix_(ours, theirs)]
        return self.coefficients[ours] @ products @ other.coefficients[theirs]


@p_norm.register
def _(v: Combination, p):
    # For a vector that has cancelled, rounding may give a negative number.
    return np.sqrt(max(v @ v, v.dtype.type(0)))


@dataclass(kw_only=True)
class KernelRun(Run):
    """The record of one binary run, like `Run`, with combinations of rows as vectors.

    Outputs are computed from rows of X as in `Run`, but `last` and `average` are coefficients of
    ``K(x_i, x)``, of shape (n_rows,).
    """

    kernel: Kernel
    instances: np.ndarray  # the unscaled rows
    origins: np.ndarray  # row of X for each
    signs: np.ndarray  # label of each
    scales: np.ndarray  # divisor of each
    # The trial, counted from 0, at which a row of X first got a coefficient.
    joined: dict = field(default_factory=dict)

    # A squared norm has lost twice as many digits by cancellation as its vector.
    nothing = 1e-9

    def __post_init__(self):
        lengths = np.sqrt(self.rows[0].gram.diagonal())
        # Even a small product was computed from numbers of this size, unless no coordinate is
        # involved.
        self.products = np.outer(lengths, lengths) * (self.rows[0].gram != 0)
        self.multipliers = np.zeros(len(self.rows), self.dtype)
        self._adopt_multipliers(self.multipliers)

    def _adopt_multipliers(self, history):
        self.adopt(Combination(self.multipliers, self.rows[0].gram), history)

    def _weight_sizes(self):
        return Combination(self.history, self.products)

    def correct(self, i, a, b, loss=1):
        self.joined.setdefault(int(self.origins[i]), self.n_trials)
        self.multipliers = a * self.multipliers
        self.multipliers[i] += b
        self._adopt_multipliers(loss * np.maximum(a * self.history, self.multipliers))

    def score_size(self, i):
        return self.history @ self.products[i]

    @property
    def largest_size(self):
        return np.sqrt(self.products.max())

    @property
    def margin(self):
        outputs = [self.theta @ yx for yx in self.rows if yx @ yx > 0]
        return min(outputs) / self.theta_norm

    def _visible(self, v):
        return v.coefficients * self.signs / self.scales

    def points(self, X):
        return self.kernel.matrix(X, self.instances, self.dtype) + (self.rho or 0) ** 2

    def _point_sizes(self, X):
        of = partial(self.kernel.diagonal, dtype=self.dtype)
        square = (self.rho or 0) ** 2
        sizes = np.outer(np.sqrt(of(X) + square), np.sqrt(of(self.instances) + square))
        return sizes * (self.points(X) != 0)


def run_kernel_reference(
    X, y, rule, kernel, *, n_epochs=1, trials=None, max_corrections=np.inf, tol=None,
    sample_weight=None, rho=None, delta=0.0, dtype=np.longdouble,
):  # fmt: skip
    """Run one binary machine over the Gram matrix of dense rows, and record everything.

    The parameters are those of `first_order.run_reference`. `trials` has the row of every trial; it
    replaces `n_epochs` epochs in the given order.
    """
    X = np.asarray(X, dtype)
    weight = np.ones(len(X), dtype) if sample_weight is None else np.array(sample_weight, dtype)
    counts = weight > 0
    origins = np.flatnonzero(counts)
    weight, instances, signs = weight[origins], X[origins], np.asarray(y)[origins]
    gram = kernel.matrix(instances, instances, dtype) + (rho or 0) ** 2
    gram = gram + dtype(delta) ** 2 * np.eye(len(gram), dtype=dtype)
    norms = np.sqrt(gram.diagonal())
    scales = np.ones_like(norms)
    if rule.normalize is True:
        scales = np.where(norms > 0, norms, 1)
    gram = np.outer(signs, signs) * gram / np.outer(scales, scales)
    rows = [Combination(unit, gram) for unit in np.eye(len(gram), dtype=dtype)]
    run = KernelRun(
        p=2.0, n_features=X.shape[1], rho=rho, delta=delta, dtype=dtype, rows=rows,
        kernel=kernel, instances=instances, origins=origins, signs=signs, scales=scales,
        steps_alike=rule.steps_alike and bool((weight == 1).all()),
    )  # fmt: skip
    trials = trials_of_epochs(run, counts, n_epochs, tol) if trials is None else trials
    run_trials(run, rule, norms, weight, trials, max_corrections)
    return run


def run_kernel_machines(X, labels, rule, kernel, **options):
    """Return the runs of all machines of a first-order rule over a kernel."""
    run = partial(run_kernel_reference, rule=rule, kernel=kernel)
    return run_machines(X, labels, run, **options)


def feature_vectors(gram):
    """Return V of shape (n, rank) with ``V @ V.T`` equal to `gram`, up to the rounding of its
    dtype.

    It is the Cholesky factor of rows divided by their lengths, with pivoting by the largest
    remainder. It ends when the remainders are rounding errors.
    """
    lengths = np.sqrt(gram.diagonal())
    gram = gram / np.outer(*[np.where(lengths > 0, lengths, 1)] * 2)
    rest = np.array(gram.diagonal())
    least = 4 * len(gram) * np.finfo(gram.dtype).eps * rest.max(initial=0)
    V = np.zeros((len(gram), 0), gram.dtype)
    while V.shape[1] < len(gram) and rest.max() > least:
        i = rest.argmax()
        column = (gram[:, i] - V @ V[i]) / np.sqrt(rest[i])
        V = np.column_stack([V, column])
        rest = rest - column**2
        rest[i] = 0
    return V * lengths[:, None]
