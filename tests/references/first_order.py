"""The first-order algorithms as printed in the papers: dense, slow, and independent of the engine.

Every weight vector is recomputed from its dual vector, and all of them are kept, so that every
hypothesis can be computed directly.

Sources: ALMA_p is Figure 1 of Gentile (JMLR 2, 2001), its Remark 7 the running norm and its Remark
6 ``p="log"``; the p-norm Perceptron is that of Grove, Littlestone & Schuurmans (2001) and Gentile
& Littlestone (1999); the Perceptron with margin is in the form of Krauth & Mezard (1987) and of
section 2 of Tsampouka & Shawe-Taylor (2006), whose Figure 1 is CRAMMA and whose Theorem 2 the soft
margin; ROMMA is that of Li & Long (Machine Learning 46, 2002); the hypotheses are those of Freund
& Schapire (1999), Figure 1 and section 5.

The default ``numpy.longdouble`` has three more digits on x86 than the float64 under test.
`Run.smallest_gap` is the smallest distance of a decision to its threshold. If it is below the
rounding error of the arithmetic under test, and only then, the two may decide differently.
"""

from dataclasses import dataclass, field
from functools import partial, singledispatch
from typing import ClassVar

import numpy as np

from references.weights import class_factors, counted_weights, step_factors


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


class Rule:
    """The common part of the algorithms.

    An algorithm corrects if ``y score <= threshold(k)``, where k is the number of corrections so
    far plus one. Most correct by ``theta <- (theta + step(k) y x) / divisor``. Below, ``yx`` is the
    instance times its label, in the units of `normalize`.
    """

    normalize = False
    # The divisor for normalize="max"; None: the largest norm among the rows.
    radius = None
    # True if a score equal to the threshold is not corrected.
    strict = False
    # True if the vector has the direction of the first row before any trial.
    starts_at_first_row = False
    # True if all steps have the same size, and nothing else changes theta.
    steps_alike = False

    def threshold(self, k, p):
        return 0

    def step(self, k, p):
        return 1

    def divisor(self, theta, p):
        return 1

    def update(self, theta, yx, weight, k, p):
        """Return a, b and the loss of ``theta <- a theta + b yx``; None for no correction.

        The loss is a factor by which the correction may increase the relative error of theta.
        """
        step = theta.dtype.type(weight * self.step(k, p))
        divisor = self.divisor(theta + step * yx, p)
        return 1 / divisor, step / divisor, 1


@dataclass
class Perceptron(Rule):
    """The p-norm Perceptron: a correction at every mistake, with a constant step."""

    normalize: bool = True

    steps_alike = True


@dataclass
class ALMA(Rule):
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
        # ||w||_q = ||theta||_p and the link is homogeneous, so w can be projected by scaling theta.
        return max(1, p_norm(theta, p))


@dataclass
class MarginPerceptron(Rule):
    """The Perceptron with margin b = `margin`: correct where ``y w.x <= b``, by ``y x``."""

    margin: float
    normalize: bool = False

    steps_alike = True

    def threshold(self, k, p):
        return self.margin

    def step(self, k, p):
        return 1.0


@dataclass
class CRAMMA(Rule):
    """CRAMMA^epsilon: Tsampouka & Shawe-Taylor (2006), Figure 1; `beta` is their beta_1 = beta/R.

    The rows are divided by R. The weights start with the direction of the first row, and have
    length 1 from then on.
    """

    beta: float
    eta_eff: float
    epsilon: float = 0.5
    radius: float | None = None

    normalize = "max"
    starts_at_first_row = True

    def threshold(self, k, p):
        return self.beta / np.longdouble(k) ** np.longdouble(self.epsilon)

    def step(self, k, p):
        return self.eta_eff

    def divisor(self, theta, p):
        # A vector that cancels exactly has no direction, and stays 0.
        return p_norm(theta, p) or 1


@dataclass
class RunningCRAMMA(CRAMMA):
    """CRAMMA whose R is the largest norm among the first row and the corrected rows so far."""

    normalize = "running"


@dataclass
class ROMMA(Rule):
    """ROMMA: the shortest w' with ``y w'.x >= 1`` and ``w'.w >= ||w||^2`` (Li & Long).

    It corrects mistakes, or with `aggressive` all scores below 1. If the first constraint alone
    determines w', then w' is the shortest vector with ``y w'.x = 1``. The same is done if w has
    become so long that no margin is left. Two (nearly) opposite half-spaces have no common point:
    no correction.
    """

    aggressive: bool = False

    parallel = np.longdouble(2) ** -40

    @property
    def strict(self):
        return self.aggressive

    def threshold(self, k, p):
        return 1 if self.aggressive else 0

    def update(self, theta, yx, weight, k, p):
        Q, W, ys = yx @ yx, theta @ theta, theta @ yx
        restart = 0, 1 / Q, 1
        if W == 0 or self.parallel**2 * Q * W >= 1:
            return restart
        determinant = Q * W - ys**2
        if determinant <= self.parallel * Q * W:
            return None if ys <= 0 else restart
        if ys >= Q * W:
            return restart
        # The flatter the angle of the two hyperplanes, the farther their intersection moves.
        loss = np.sqrt(Q * W / determinant)
        return (Q * W - ys) / determinant, W * (1 - ys) / determinant, loss


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


def run_reference(
    X,
    y,
    rule,
    p=2.0,
    *,
    n_epochs=1,
    max_corrections=np.inf,
    tol=None,
    sample_weight=None,
    rho=None,
    delta=0.0,
    dtype=np.longdouble,
):
    """Run one binary machine over dense rows with labels -1 and 1, and record everything.

    Parameters
    ----------
    n_epochs : float or None
        Number of epochs. All are run, even if an epoch makes no correction; a fraction means part
        of the last epoch. None: until an epoch makes no correction.
    max_corrections : int
        The run ends with the trial that makes this number of corrections.
    tol : float, optional
        The run ends after an epoch with ``margin >= (1 - tol) margin_upper_bound``; never for a
        zero vector.
    sample_weight : array-like of shape (n_samples,), optional
        Multiplies the step; a row of weight 0 is not a trial and not part of the data.
    rho, delta : float
        Values of the intercept's coordinate, and of each row's own soft-margin coordinate.
    """
    X = np.asarray(X)
    p = resolve_p(p, X.shape[1])
    weight = np.ones(len(X), dtype) if sample_weight is None else np.array(sample_weight, dtype)
    counts = weight > 0
    rows = np.asarray(y)[counts, None] * augment(X, rho=rho, delta=delta, dtype=dtype)[counts]
    norms = np.array([p_norm(yx, p) for yx in rows], dtype)
    if rule.normalize is True:
        rows = rows / np.where(norms > 0, norms, 1)[:, None]
    alike = rule.steps_alike and bool((weight == 1).all())
    run = Run(p, X.shape[1], rho, delta, dtype, rows, steps_alike=alike)
    trials = trials_of_epochs(run, counts, n_epochs, tol)
    run_trials(run, rule, norms, weight[counts], trials, max_corrections)
    return run


def run_trials(run, rule, norms, weight, trials, max_corrections):
    """Use the rows given by `trials` one by one, until the largest number of corrections is made.

    Norms and weights are those of the rows.
    """
    largest = norms.max(initial=0) if rule.radius is None else rule.radius
    scale = run.dtype({"running": 0, "max": largest}.get(rule.normalize, 1))
    for trial, i in enumerate(trials):
        if run.n_corrections == max_corrections:
            break
        if norms[i] > 0:
            if rule.starts_at_first_row and len(run.weights) == 1:
                run.correct(i, 0, 1 / norms[i])
                scale = norms[i] if rule.normalize == "running" else scale
            step_scale = max(scale, norms[i]) if rule.normalize == "running" else scale
            if corrects(run, rule, i, weight[i], scale, step_scale):
                run.correcting_trials.append(trial)
                scale = step_scale
        run.survivals[-1] += 1


def trials_of_epochs(run, counts, n_epochs, tol=None):
    """Yield the row of each trial, with the stopping rules of `run_reference`. Trials are made on
    the rows for which `counts` is true; these are the rows of the run."""
    n_trials = np.count_nonzero(counts)
    left = np.inf if n_epochs is None else max(1, round(n_epochs * n_trials))
    while left > 0:
        before = run.n_corrections
        yield from range(min(n_trials, left))
        left -= n_trials
        if n_epochs is None and run.n_corrections == before:
            return
        if tol is not None and run.theta.any():
            least = (1 - tol) * run.margin_upper_bound
            run.smallest_gap = min(run.smallest_gap, gap(run.margin, least, run.largest_size))
            if run.margin >= max(least, 0):
                return


def corrects(run, rule, i, weight, scale, step_scale):
    """Try row i, correct it if necessary, and return whether it was corrected."""
    k, yx = run.n_corrections + 1, run.rows[i]
    score = run.weights[-1] @ yx
    threshold = run.dtype(rule.threshold(k, run.p)) * scale
    size = run.score_size(i) + threshold
    run.smallest_gap = min(run.smallest_gap, gap(score, threshold, size))
    if score > threshold or (rule.strict and score == threshold):
        return False
    correction = rule.update(run.theta, yx / step_scale, weight, k, run.p)
    if correction is None:
        return False
    a, b, loss = correction
    run.correct(i, a, b / step_scale, loss)
    return True


def gap(score, threshold, size):
    """Return the distance of the two, relative to the size of their terms."""
    return abs(score - threshold) / size if size > 0 else np.inf


def run_one_versus_rest(X, labels, rule, p=2.0, **options):
    """Return the runs of all machines of a first-order rule."""
    return run_machines(X, labels, partial(run_reference, rule=rule, p=p), **options)


def run_machines(
    X, labels, run, *, sample_weight=None, class_weight=None, first_call=None, **options
):
    """Return the runs of all machines: one for two classes, else one per class in sorted order.

    Weights have the form that users pass. As in scikit-learn's linear classifiers, with two classes
    each class has its weight; with more, a machine gives its class that weight, and the rest weight
    1. Rows of a class of weight 0 are left out.
    """
    classes = np.unique(labels)
    weights = class_factors(class_weight, labels)
    given = counted_weights(sample_weight, class_weight, labels)
    given = step_factors(given, first_call=first_call)
    runs = []
    for c, weight in list(zip(classes, weights, strict=True))[len(classes) == 2 :]:
        rest = weights[0] if len(classes) == 2 else 1
        positive = labels == c
        weighted = given * np.where(positive, weight, rest)
        y = np.where(positive, 1, -1)
        runs.append(run(X, y, sample_weight=weighted, **options))
    return runs
