"""The Higher-order and the Second-order Perceptron by definition: dense, with n x n matrices.

Sources: HO_p(c) is Figure 1 of Brotto, Gentile & Vitale (NIPS 2007), for p > 2 in the form at the
end of their section 2, with the rates ``rho_k = c / k`` and the sparse variant of their section 4
("Algorithms"); SO(a) is that of Cesa-Bianchi, Conconi & Gentile (SIAM J. Computing 34, 2005). For
p > 2 the papers define no sparse variant. Here ``y G_k.v_{k-1} < 0`` suppresses the update, where
G_k is the image of the instance under the link; for p = 2 this is their condition.

Both rules need an instance and its label only as their product `yx`: the link is odd, so the
label cancels in ``x link(x)^T``, as it does in ``x x^T``.

As in `first_order`, the arithmetic is that of the given dtype, by default `numpy.longdouble`.
"""

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from threadpoolctl import threadpool_limits

from references.first_order import run_machines, trials_of_epochs
from references.runs import Run, augment, link, p_norm


@dataclass
class HigherOrder:
    """HO_p(c): ``w_k = B_k^T link_p(B_k v_k)``; `max_updates` limits the number of k with rho_k >
    0.

    `alpha` is an extension: a trial corrects if its score is at most ``(1 - alpha) gamma_k ||B
    v||_p``, with ALMA's ``gamma_k = sqrt(8) / (alpha sqrt(k))``.
    """

    p: float = 2.0
    c: float = 0.4
    sparse_updates: bool = False
    max_updates: int | None = None
    alpha: float | None = None

    def first_matrix(self, n, dtype):
        return np.eye(n, dtype=dtype)

    def rate(self, yx, v, k):
        """Return rho_k, without regard to `max_updates`."""
        if self.sparse_updates and link(yx, self.p) @ v < 0:
            return 0
        return v.dtype.type(self.c) / k

    def grown(self, B, yx, rate):
        return B - rate * np.outer(B @ yx, link(yx, self.p))

    def weights(self, B, v):
        return B.T @ link(B @ v, self.p)

    def length(self, B, v, w):
        """Return the norm of the vector in the space to which B maps instances."""
        return p_norm(B @ v, self.p)

    def hidden_size(self, B, v):
        """Return the size of the numbers that the weights are computed from, which bounds their
        errors."""
        return p_norm(B @ v, self.p)


@dataclass
class SecondOrder:
    """SO(a): ``w = (a I + S S^T)^-1 v``; `max_updates` is the largest number of columns of S.

    `alpha` is as in `HigherOrder`, with the norm of ``(a I + S S^T)^(-1/2) v``.
    """

    a: float = 1.0
    max_updates: int | None = None
    alpha: float | None = None

    p = 2.0
    sparse_updates = False

    def first_matrix(self, n, dtype):
        return dtype(self.a) * np.eye(n, dtype=dtype)

    def rate(self, yx, v, k):
        return 1

    def grown(self, A, yx, rate):
        return A + rate * np.outer(yx, yx)

    def weights(self, A, v):
        return solve(A, v)

    def length(self, A, v, w):
        return np.sqrt(max(w @ v, 0))

    def hidden_size(self, A, v):
        return 0


def threshold(rule, matrix, v, w, k):
    """Return the score up to which trials correct; k is the number of the next correction."""
    if rule.alpha is None:
        return v.dtype.type(0)
    gamma = np.sqrt(v.dtype.type(8)) / (rule.alpha * np.sqrt(k))
    return (1 - rule.alpha) * gamma * rule.length(matrix, v, w)


def solve(A, b, n_refinements=3):
    """Solve ``A x = b`` for positive definite A with the precision of b.

    LAPACK has no extended precision, so its float64 solution is refined with extended residuals.
    """
    factor = cho_factor(A.astype(float))
    x = np.zeros_like(b)
    for _ in range(1 + n_refinements):
        x = x + cho_solve(factor, (b - A @ x).astype(float))
    return x


@dataclass(kw_only=True)
class MatrixRun(Run):
    """The record of one binary run, like `Run` but without dual vectors and bounds.

    `v` is the weighted sum of the mistaken rows times their labels; `matrix` is B_k or
    ``a I + S S^T``, which was changed by `n_updates` of the mistakes.
    """

    rule: HigherOrder | SecondOrder
    origins: np.ndarray  # row of X for each of `rows`
    n_updates: int = 0
    mistakes: list = field(default_factory=list)  # row of X for each mistake

    def __post_init__(self):
        n = self.rows.shape[1]
        self.v = np.zeros(n, dtype=self.dtype)
        self.matrix = self.rule.first_matrix(n, self.dtype)
        self.largest, self.largest_v = self.dtype(0), np.zeros(n, dtype=self.dtype)
        self._renew_weights()

    def meet(self, trial, i, weight):
        """Make the next trial, on row i."""
        yx = self.rows[i]
        if yx.any() and self._score(yx) <= self.threshold:
            self.correcting_trials.append(trial)
            self.mistakes.append(int(self.origins[i]))
            self._learn(yx, weight)
        self.survivals[-1] += 1

    def _score(self, yx):
        score = self.weights[-1] @ yx
        if yx[self.sizes[-1] > 0].any() or (self.threshold > 0 and self.largest > 0):
            gap = abs(score - self.threshold) / max(self.largest, self.threshold)
            self.smallest_gap = min(self.smallest_gap, gap)
        return score

    def _learn(self, yx, weight):
        rate = 0 if self.n_updates == self.rule.max_updates else self._rate(yx)
        if rate > 0:
            self.matrix = self.rule.grown(self.matrix, yx, rate)
            self.n_updates += 1
        self.v = self.v + weight * yx
        self.largest_v = np.maximum(self.largest_v, np.abs(self.v))
        self._renew_weights()

    def _rate(self, yx):
        if self.rule.sparse_updates:
            G = link(yx, self.p)
            size = np.abs(G) @ self.largest_v
            if size > 0:
                self.smallest_gap = min(self.smallest_gap, abs(G @ self.v) / size)
        return self.rule.rate(yx, self.v, self.n_corrections)

    def _renew_weights(self):
        w, hidden = (of(self.matrix, self.v) for of in (self.rule.weights, self.rule.hidden_size))
        self.largest = max(self.largest, p_norm(w, self.q), hidden)
        self.threshold = threshold(self.rule, self.matrix, self.v, w, self.n_corrections + 1)
        self.weights.append(w)
        # Errors spread over all coordinates that were ever changed, and no others.
        self.sizes.append(self.largest * (self.largest_v > 0))
        self.survivals.append(0)


# For these small systems, waiting for other LAPACK threads would take longer than solving.
@threadpool_limits.wrap(limits=1)
def run_matrix_reference(
    X, y, rule, *, n_epochs=1, max_corrections=None, sample_weight=None, rho=None,
    dtype=np.longdouble,
):  # fmt: skip
    """Run one binary machine over dense rows, each divided by its p-norm, and record everything.

    `y` has labels -1 and +1, and the parameters are those of `first_order.run_reference`. The run
    ends with the trial that makes the last of `max_corrections` mistakes.
    """
    X = np.asarray(X)
    weight = np.ones(len(X), dtype) if sample_weight is None else np.array(sample_weight, dtype)
    counts = weight > 0
    origins = np.flatnonzero(counts)
    rows = np.asarray(y)[origins, None] * augment(X, rho=rho, dtype=dtype)[origins]
    norms = np.array([p_norm(yx, rule.p) for yx in rows], dtype)
    rows = rows / np.where(norms > 0, norms, 1)[:, None]
    run = MatrixRun(
        p=rule.p, n_features=X.shape[1], rho=rho, delta=0.0, dtype=dtype, rows=rows,
        rule=rule, origins=origins,
    )  # fmt: skip
    for trial, i in enumerate(trials_of_epochs(run, counts, n_epochs)):
        if run.n_corrections == max_corrections:
            break
        run.meet(trial, i, weight[origins[i]])
    return run


def run_matrix_machines(X, labels, rule, **options):
    """Return the runs of all machines of a rule with a matrix."""
    return run_machines(X, labels, partial(run_matrix_reference, rule=rule), **options)
