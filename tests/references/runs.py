"""The complete record of a run of a reference algorithm, and the norms and links of its vectors."""

from dataclasses import dataclass, field
from functools import singledispatch
from typing import ClassVar

import numpy as np


@singledispatch
def p_norm(v, p):
    """Return the p-norm of a vector without overflow: the largest entry is factored out first."""
    largest = np.abs(v).max(initial=0)
    if largest == 0:
        return largest
    return largest * np.sum(np.abs(v / largest) ** p) ** (1 / v.dtype.type(p))


def link(theta, p):
    """Map a dual vector to its weights: f^-1 of Gentile (2001), section 2, below Figure 1."""
    if p == 2:
        # The identity, without the rounding errors of the formula: integers must tie exactly.
        return theta
    norm = p_norm(theta, p)
    if norm == 0:
        return np.zeros_like(theta)
    return norm * np.sign(theta) * np.abs(theta / norm) ** (theta.dtype.type(p) - 1)


def resolve_p(p, n_features):
    """Return p as a number; ``"log"`` is 2 ln n and at least 2 (Gentile 2001, Remark 6)."""
    return max(2.0, 2.0 * np.log(n_features)) if p == "log" else p


def augment(X, *, rho=None, delta=0.0, dtype=np.longdouble):
    """Return dense X with a constant column rho and, with delta, one more column for each row."""
    X = np.asarray(X, dtype=dtype)
    blocks = [X]
    if rho is not None:
        blocks.append(np.full((len(X), 1), rho, dtype=dtype))
    if delta:
        blocks.append(dtype(delta) * np.eye(len(X), dtype=dtype))
    return np.hstack(blocks)


def weight_sizes(theta, history, p):
    """Return for each coordinate a bound to which the rounding error of ``link(theta, p)`` is
    proportional.

    The error of theta_i is proportional to `history`, the largest number used in computing it, even
    if theta_i is small because of cancellation. The link multiplies it by its derivative, up to the
    factor p - 1. The result is exactly 0 where nothing was ever added.
    """
    uncertain = np.abs(theta) + np.finfo(theta.dtype).eps * history
    if not uncertain.any():
        return uncertain
    return history * (uncertain / p_norm(uncertain, p)) ** (theta.dtype.type(p) - 2)


@dataclass
class Run:
    """The complete record of one binary run.

    Attributes
    ----------
    weights : list of ndarray of shape (n_extended,)
        w_1 = 0, w_2, ...: the last coordinates are those of the soft margin, after the intercept's.
        If the rule starts at the first row, w_2 is the start.
    survivals : list of int
        c_k: the number of trials for which w_k was the current vector.
    correcting_trials : list of int, counted from 0
    theta : ndarray of shape (n_extended,)
        The dual vector of the last weights: ``multipliers @ rows``, with multipliers >= 0.
    rows : ndarray of shape (n_rows, n_extended)
        The rows of an epoch times their labels, divided by their norms if the rule does so.
    steps_alike : bool
        True if the rule's steps are alike and not multiplied by weights.
    bounds : list of float
        ``||theta||_p / sum(multipliers)`` of w_2, w_3, ...; each is at least the largest margin.
    sizes : list of ndarray of shape (n_extended,)
        See `weight_sizes`.
    smallest_gap : float
        The smallest ``|y score - threshold|``, relative to the size of the terms. A threshold of 0
        is ignored for scores of coordinates that have not been corrected yet, because they are
        exactly 0 in every arithmetic.
    """

    p: float
    n_features: int
    rho: float | None
    delta: float
    dtype: type
    rows: np.ndarray
    steps_alike: bool = True
    weights: list = field(default_factory=list)
    sizes: list = field(default_factory=list)
    survivals: list = field(default_factory=list)
    correcting_trials: list = field(default_factory=list)
    bounds: list = field(default_factory=list)
    smallest_gap: float = np.inf

    # Relative norm below which a vector counts as 0 up to rounding.
    nothing: ClassVar[float] = 1e-15

    def __post_init__(self):
        zero = np.zeros(self.rows.shape[1], dtype=self.dtype)
        self.multipliers = np.zeros(len(self.rows), dtype=self.dtype)
        self.adopt(zero, zero)

    def adopt(self, theta, history):
        """Make theta the current dual vector; `history` is as for `weight_sizes`."""
        # With equal steps, opposite copies of a row cancel to exactly 0 in every arithmetic.
        self.theta = theta
        self.history = history * (not self.steps_alike or p_norm(theta, self.p) > 0)
        self.weights.append(link(theta, self.p))
        self.sizes.append(self._weight_sizes())
        self.survivals.append(0)
        if self.multipliers.any():
            self.bounds.append(p_norm(theta, self.p) / self.multipliers.sum())

    def _weight_sizes(self):
        return weight_sizes(self.theta, self.history, self.p)

    def correct(self, i, a, b, loss=1):
        """Make ``a theta + b rows[i]`` the current dual vector; `loss` is as for `Rule.update`."""
        step = b * self.rows[i]
        theta = a * self.theta + step
        self.multipliers *= a
        self.multipliers[i] += b
        self.adopt(theta, loss * np.max([a * self.history, np.abs(step), np.abs(theta)], axis=0))

    def score_size(self, i):
        """Return the size of the terms of the score of row i."""
        return np.abs(self.rows[i]) @ self.sizes[-1]

    @property
    def largest_size(self):
        """The size of the rows, to which the errors of their margins are relative."""
        return np.abs(self.rows).max()

    @property
    def n_corrections(self):
        return len(self.correcting_trials)

    @property
    def n_trials(self):
        return sum(self.survivals)

    @property
    def theta_norm(self):
        return p_norm(self.theta, self.p)

    @property
    def visible_theta(self):
        return self._visible(self.theta)

    @property
    def q(self):
        return self.dtype(self.p) / (self.dtype(self.p) - 1)

    @property
    def margin(self):
        """The smallest ``y w.x / ||w||_q`` of the last vector, over the `rows` that are not 0."""
        rows = self.rows[self.rows.any(axis=1)]
        return (rows @ self.weights[-1]).min() / p_norm(self.weights[-1], self.q)

    @property
    def margin_upper_bound(self):
        return min(self.bounds)

    def hypotheses(self, normalized=False):
        """Return the w_k; if `normalized`, each divided by its q-norm, and 0 if it counts as 0."""
        if not normalized:
            return self.weights
        pairs = zip(self.weights, self.relative_norms(), strict=True)
        return [w / p_norm(w, self.q) if norm > self.nothing else 0 * w for w, norm in pairs]

    def relative_norms(self):
        """Return ``||w_k||_q`` relative to the size of the terms of w_k."""
        pairs = zip(self.weights, self.sizes, strict=True)
        return [p_norm(w, self.q) / (p_norm(s, self.q) or 1) for w, s in pairs]

    @property
    def smallest_norm(self):
        """The smallest relative norm of the vectors that do not count as 0. The direction of a w_k
        that has cancelled, and thus the normalized vector, consists of rounding errors."""
        norms = [norm for norm in self.relative_norms() if norm > self.nothing]
        return min(norms, default=np.inf)

    def last(self, normalized=False):
        return self._visible(self.hypotheses(normalized)[-1])

    def average(self, normalized=False):
        pairs = zip(self.survivals, self.hypotheses(normalized), strict=True)
        return self._visible(sum(c * w for c, w in pairs) / self.n_trials)

    def votes(self, X):
        """Return sum_k c_k sign(w_k . x) for each row of X; a score of 0 counts 0."""
        return np.sign(self._scores(X)) @ np.array(self.survivals, dtype=self.dtype)

    def slice_index(self, r):
        """Return r_l of Freund & Schapire (1999), section 5, as a position in the list `weights`.

        It is the largest l with ``sum_{i<l} c_i <= r``, for each time slice r in
        {0, ..., n_trials}; the vector made by the first trial exists at r = 0 already.
        """
        started = np.concatenate([[0], np.cumsum(self.survivals[:-1])])
        return np.searchsorted(started, r, side="right") - 1

    def slice_scores(self, X, r, normalized=False):
        """Return the scores of the rows of X under the vectors that existed at time slices r."""
        scores = self.points(X) @ self._stacked(self.hypotheses(normalized))
        return scores[:, self.slice_index(r)]

    def vote_gap(self, X):
        """Return the smallest relative ``|w_k . x|``, ignoring scores without any terms."""
        scores = np.abs(self._scores(X))
        sizes = self._point_sizes(X) @ np.abs(self._stacked(self.sizes))
        return (scores[sizes > 0] / sizes[sizes > 0]).min(initial=np.inf)

    def _visible(self, w):
        return w[: self.n_features + (self.rho is not None)]

    def points(self, X):
        return augment(X, rho=self.rho, dtype=self.dtype)

    def _point_sizes(self, X):
        return np.abs(self.points(X))

    def _scores(self, X):
        return self.points(X) @ self._stacked(self.weights)

    def _stacked(self, vectors):
        return np.array([self._visible(v) for v in vectors]).T


def soft_margin_objective(run):
    """Return J and (D' - D)/D of Tsampouka & Shawe-Taylor (2006), Theorem 2, for p = 2.

    If the rows have been divided by their norms, so has each row's own coordinate, and slacks are
    measured in units of it. The deviation is infinite if D is 0; both are infinite without a
    positive margin.
    """
    if run.margin <= 0:
        return np.inf, np.inf
    a_ext, a = run.weights[-1], run._visible(run.weights[-1])
    own = np.abs(run.rows[:, len(a) :]).sum(axis=1)
    stretch = p_norm(a_ext, 2) / p_norm(a, 2)
    gamma = run.margin * stretch
    outputs = run.rows[:, : len(a)] @ (a / p_norm(a, 2))
    D = p_norm(run.delta * np.maximum(0, gamma - outputs) / own, 2)
    D_prime = run.delta * np.sqrt(stretch**2 - 1)
    return (1 + (D / run.delta) ** 2) / gamma**2, (D_prime - D) / D if D > 0 else np.inf


def gap(score, threshold, size):
    """Return the distance of the two, relative to the size of their terms."""
    return abs(score - threshold) / size if size > 0 else np.inf
