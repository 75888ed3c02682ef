"""The first-order algorithms as the papers print them: dense, slow, and independent of the engine.

Every weight vector is computed from its dual vector afresh and every one is kept, so that what a
hypothesis is made of can be read off directly. Nothing here is incremental, sparse or rescaled.

Sources: ALMA_p is Figure 1 of Gentile (JMLR 2, 2001), its Remark 7 the running norm and its Remark
6 ``p="log"``; the p-norm Perceptron is that of Grove, Littlestone & Schuurmans (2001) and Gentile
& Littlestone (1999); the hypotheses are those of Freund & Schapire (1999), Figure 1 and section 5.

The arithmetic is that of the given dtype, by default ``numpy.longdouble``, which is 80 bits wide
on x86 and carries about three more digits than the float64 it checks. `Run.smallest_gap` tells
how near a decision came to its threshold: below the rounding error of the checked arithmetic the
two may rightly decide differently, and only there.
"""

from dataclasses import dataclass, field

import numpy as np
from sklearn.utils.class_weight import compute_class_weight


def p_norm(v, p):
    """Return the p-norm of a vector, without overflow: the largest entry is taken out first."""
    largest = np.abs(v).max(initial=0)
    if largest == 0:
        return largest
    return largest * np.sum(np.abs(v / largest) ** p) ** (1 / v.dtype.type(p))


def link(theta, p):
    """Map a dual vector to its weights: f^-1 of Gentile (2001), section 2, below Figure 1."""
    if p == 2:
        # The identity of the formula, without its rounding: whole numbers must tie exactly.
        return theta
    norm = p_norm(theta, p)
    if norm == 0:
        return np.zeros_like(theta)
    return norm * np.sign(theta) * np.abs(theta / norm) ** (theta.dtype.type(p) - 1)


def resolve_p(p, n_features):
    """Return p as a number; ``"log"`` is 2 ln n and at least 2 (Gentile 2001, Remark 6)."""
    return max(2.0, 2.0 * np.log(n_features)) if p == "log" else p


def augment(X, *, rho=None, delta=0.0, dtype=np.longdouble):
    """Return dense X with a constant column rho and, for delta, a column of its own per row."""
    X = np.asarray(X, dtype=dtype)
    blocks = [X]
    if rho is not None:
        blocks.append(np.full((len(X), 1), rho, dtype=dtype))
    if delta:
        blocks.append(dtype(delta) * np.eye(len(X), dtype=dtype))
    return np.hstack(blocks)


@dataclass
class Perceptron:
    """The p-norm Perceptron: a correction at every mistake, with a constant step."""

    normalize: bool = True

    def threshold(self, k, p):
        return 0

    def step(self, k, p):
        return 1

    def divisor(self, theta, p):
        return 1


@dataclass
class ALMA:
    """ALMA_p(alpha; B, C): Gentile (2001), Figure 1; defaults from Theorem 3, part 1."""

    alpha: float = 0.9
    B: float | None = None
    C: float | None = None
    normalize: bool | str = True

    def threshold(self, k, p):
        B = np.sqrt(np.longdouble(8)) / self.alpha if self.B is None else self.B
        gamma = B * np.sqrt(np.longdouble(p) - 1) / np.sqrt(np.longdouble(k))
        return (1 - np.longdouble(self.alpha)) * gamma

    def step(self, k, p):
        C = np.sqrt(np.longdouble(2)) if self.C is None else self.C
        return C / (np.sqrt(np.longdouble(p) - 1) * np.sqrt(np.longdouble(k)))

    def divisor(self, theta, p):
        # ||w||_q = ||theta||_p and the link is homogeneous, so w may be projected through theta.
        return max(1, p_norm(theta, p))


def weight_sizes(theta, history, p):
    """Return per coordinate what the rounding error of ``link(theta, p)`` is proportional to.

    The error of theta_i is a part of `history`, the largest number met in computing it, however
    small theta_i has become by cancellation; the link passes it on by its derivative, up to the
    factor p - 1. Zero exactly where nothing was ever added.
    """
    uncertain = np.abs(theta) + np.finfo(theta.dtype).eps * history
    if not uncertain.any():
        return uncertain
    return history * (uncertain / p_norm(uncertain, p)) ** (theta.dtype.type(p) - 2)


@dataclass
class Run:
    """All that one binary run leaves behind.

    Attributes
    ----------
    weights : list of ndarray of shape (n_extended,)
        w_1 = 0, w_2, ...: soft-margin coordinates last, before them the intercept's.
    survivals : list of int
        c_k: after how many trials w_k was the current vector.
    correcting_trials : list of int
        The trial, counted from 0, which made w_2, w_3, ...
    theta : ndarray of shape (n_extended,)
        The dual vector of the last weights.
    sizes : list of ndarray of shape (n_extended,)
        What the rounding errors of the weights are proportional to; see `weight_sizes`.
    smallest_gap : float
        The least ``|y score - threshold|`` met, relative to the size of what was added up to
        compute it. A score to which no coordinate corrected so far contributes is exactly zero
        in every arithmetic, and is left out when the threshold is zero too.
    """

    p: float
    n_features: int
    rho: float | None
    dtype: type
    weights: list = field(default_factory=list)
    sizes: list = field(default_factory=list)
    survivals: list = field(default_factory=list)
    correcting_trials: list = field(default_factory=list)
    theta: np.ndarray | None = None
    smallest_gap: float = np.inf

    @property
    def n_corrections(self):
        return len(self.correcting_trials)

    @property
    def n_trials(self):
        return sum(self.survivals)

    @property
    def theta_norm(self):
        return p_norm(self.theta, self.p)

    def hypotheses(self, normalized=False):
        """Return the w_k, each divided by its own q-norm where asked."""
        if not normalized:
            return self.weights
        q = self.dtype(self.p) / (self.dtype(self.p) - 1)
        return [w / p_norm(w, q) if w.any() else w for w in self.weights]

    @property
    def smallest_norm(self):
        """The least ``||w_k||_q`` relative to what went into w_k; the direction of a w_k that has
        cancelled, and so the normalised vector, is made of rounding errors alone."""
        q = self.dtype(self.p) / (self.dtype(self.p) - 1)
        pairs = zip(self.weights, self.sizes, strict=True)
        return min([p_norm(w, q) / p_norm(s, q) for w, s in pairs if s.any()], default=np.inf)

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

        The largest number l with ``sum_{i<l} c_i <= r``, for a time slice r in {0, ..., n_trials};
        the vector made by the very first trial therefore exists at r = 0 already.
        """
        started = np.concatenate([[0], np.cumsum(self.survivals[:-1])])
        return int(np.flatnonzero(started <= r)[-1])

    def slice_scores(self, X, r, normalized=False):
        """Return the scores of the rows of X under the vector which existed at time slice r."""
        w = self._visible(self.hypotheses(normalized)[self.slice_index(r)])
        return augment(X, rho=self.rho, dtype=self.dtype) @ w

    def vote_gap(self, X):
        """Return the least relative ``|w_k . x|``, leaving out scores without a single term."""
        scores = np.abs(self._scores(X))
        sizes = np.abs(augment(X, rho=self.rho, dtype=self.dtype)) @ self._stacked(self.sizes)
        return (scores[sizes > 0] / sizes[sizes > 0]).min(initial=np.inf)

    def _visible(self, w):
        return w[: self.n_features + (self.rho is not None)]

    def _scores(self, X):
        return augment(X, rho=self.rho, dtype=self.dtype) @ self._stacked(self.weights)

    def _stacked(self, vectors):
        return np.array([self._visible(v) for v in vectors]).T


def run_reference(
    X,
    y,
    rule,
    p=2.0,
    *,
    n_epochs=1,
    order=None,
    sample_weight=None,
    rho=None,
    delta=0.0,
    dtype=np.longdouble,
):
    """Run one binary machine over dense rows and keep everything.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,), entries in {-1, +1}
    rule : Perceptron or ALMA
    p : float or "log"
    n_epochs : int
        All are run, whether or not a pass makes a correction.
    order : array-like of int, optional
        The rows of one epoch; by default all of them as given.
    sample_weight : array-like of shape (n_samples,), optional
        Multiplies the step; a row of weight 0 is no trial, and no part of the data.
    rho : float, optional
        The value of the intercept's coordinate; None for none.
    delta : float
        The value of each row's own soft-margin coordinate; 0 for none.
    dtype : numpy float type

    Returns
    -------
    Run
    """
    X = np.asarray(X)
    run = Run(p=resolve_p(p, X.shape[1]), n_features=X.shape[1], rho=rho, dtype=dtype)
    rows = augment(X, rho=rho, delta=delta, dtype=dtype)
    weight = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight)
    order = np.arange(len(rows)) if order is None else np.asarray(order)
    trials = np.tile(order[weight[order] > 0], n_epochs)
    _run_trials(run, rule, rows, np.asarray(y), weight, trials)
    return run


def _run_trials(run, rule, rows, y, weight, trials):
    p = run.p
    norms = np.array([p_norm(x, p) for x in rows])
    max_norm = norms[trials].max(initial=0)
    running_norm = run.dtype(0)
    theta = history = np.zeros(rows.shape[1], dtype=run.dtype)
    run.weights.append(theta)
    run.sizes.append(history)
    run.survivals.append(0)
    for trial, i in enumerate(trials):
        x, norm, k = rows[i], norms[i], len(run.weights)
        if rule.normalize == "running":
            test_scale, step_scale = running_norm, max(running_norm, norm)
        else:
            test_scale = step_scale = {True: norm, False: 1, "max": max_norm}[rule.normalize]
        score = y[i] * (run.weights[-1] @ x)
        threshold = run.dtype(rule.threshold(k, p)) * test_scale
        if norm > 0:
            run.smallest_gap = min(run.smallest_gap, _gap(score, threshold, x, run.sizes[-1]))
        if norm > 0 and score <= threshold:
            eta = run.dtype(weight[i]) * run.dtype(rule.step(k, p))
            step = eta * y[i] * x / step_scale
            divisor = rule.divisor(theta + step, p)
            history = np.max([history, np.abs(step), np.abs(theta + step)], axis=0) / divisor
            theta = (theta + step) / divisor
            running_norm = step_scale
            run.weights.append(link(theta, p))
            run.sizes.append(weight_sizes(theta, history, p))
            run.survivals.append(1)
            run.correcting_trials.append(trial)
        else:
            run.survivals[-1] += 1
    run.theta = theta


def _gap(score, threshold, x, sizes):
    size = np.abs(x) @ sizes + threshold
    return abs(score - threshold) / size if size > 0 else np.inf


def run_one_versus_rest(
    X, labels, rule, p=2.0, *, sample_weight=None, class_weight=None, **options
):
    """Return the runs of all machines: one for two classes, else one per class in sorted order.

    `class_weight` is as in scikit-learn's linear classifiers: of two classes each has its weight;
    of more, a machine gives its own class that class's weight, and the rest weight 1.
    """
    classes = np.unique(labels)
    weights = compute_class_weight(class_weight, classes=classes, y=labels)
    given = np.ones(len(labels)) if sample_weight is None else np.asarray(sample_weight)
    runs = []
    for c, weight in list(zip(classes, weights, strict=True))[len(classes) == 2 :]:
        rest = weights[0] if len(classes) == 2 else 1
        positive = labels == c
        weighted = given * np.where(positive, weight, rest)
        y = np.where(positive, 1, -1)
        runs.append(run_reference(X, y, rule, p, sample_weight=weighted, **options))
    return runs
