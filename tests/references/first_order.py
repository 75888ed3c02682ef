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

from dataclasses import dataclass
from functools import partial

import numpy as np

from references.runs import Run, augment, gap, p_norm, resolve_p
from references.weights import class_factors, counted_weights, step_factors


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
