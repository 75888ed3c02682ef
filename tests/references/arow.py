"""AROW with a variance for each weight: dense, slow, and independent of the engine.

It is Figure 1 of Crammer, Kulesza & Dredze (2009) with the diagonal of the covariance matrix only.
"""

from dataclasses import dataclass

import numpy as np


@dataclass
class Run:
    """The state of one vector. `smallest_gap` is the smallest distance of a margin to 1, or of an
    output to 0, relative to the size of its terms."""

    mean: np.ndarray
    precision: np.ndarray
    sums: np.ndarray
    n_corrections: int = 0
    n_trials: int = 0
    smallest_gap: float = np.inf

    @property
    def average(self):
        return self.sums / self.n_trials


def naive_bayes_variances(X, y, intercept):
    """Initial variances from dense rows with labels -1 and 1, with that of the intercept. Features
    that do not occur, and the intercept, have the mean variance of the others, or 1."""
    having, share = X != 0, np.mean(y == 1, dtype=np.longdouble)
    n, m = having[y == 1].sum(axis=0), having[y == -1].sum(axis=0)
    if 0 < share < 1:
        p, q = (n + share) / np.sum(y == 1), (m + 1 - share) / np.sum(y == -1)
    else:  # the limit of p / q for a share that vanishes
        p, q = (np.longdouble(1), m + 1) if share == 0 else (n + 1, np.longdouble(1))
    variances, occurs = np.maximum(np.abs(np.log(p / q)), 1e-3), having.any(axis=0)
    mean = variances[occurs].mean() if occurs.any() else 1
    return np.append(np.where(occurs, variances, mean), [mean] if intercept else [])


def run_arow(
    X, y, r, *, max_loss=np.inf, n_epochs=1, rho=None, normalize=True, weights=None, run=None,
    variances=None,
):  # fmt: skip
    """Train on dense rows in order, with labels -1 and 1; rows of weight 0 are no trials. The
    initial variances are 1 unless they are given."""
    X = np.asarray(X, dtype=np.longdouble)
    if rho is not None:
        X = np.hstack([X, np.full((len(X), 1), rho, np.longdouble)])
    weights = np.ones(len(X)) if weights is None else weights
    zero = np.zeros(X.shape[1], np.longdouble)
    run = run or Run(zero, zero + 1 if variances is None else 1 / variances, zero)
    for _ in range(n_epochs):
        for x, label, weight in zip(X, y, weights, strict=True):
            norm = np.sqrt(x @ x)
            if weight == 0:
                continue
            if norm > 0:
                x = x / norm if normalize else x
                learn(run, x, label, np.longdouble(r) / weight, max_loss)
            run.sums, run.n_trials = run.sums + run.mean, run.n_trials + 1
    return run


def learn(run, x, label, r, max_loss):
    margin = label * (run.mean @ x)
    if run.mean.any():
        size = np.abs(run.mean) @ np.abs(x)
        run.smallest_gap = min(run.smallest_gap, abs(margin - 1) / (1 + size))
    if margin >= 1:
        return
    covariance = 1 / run.precision
    beta = 1 / (x @ (covariance * x) + r)
    run.mean = run.mean + beta * min(1 - margin, max_loss) * label * covariance * x
    run.precision = 1 / (covariance - beta * (covariance * x) ** 2)
    run.n_corrections += 1


def mixed(runs, prior):
    """The mixture of runs from a common prior. It is the product of their posteriors, in which the
    evidence of n runs that have changed a coordinate counts like that of n ** (1/4), and of 2 at
    most. Sums and trials are added."""
    # Changes by rounding errors do not count.
    least = prior.precision * (1 + np.longdouble(1e-17))
    learned = sum((run.precision > least).astype(int) for run in runs)
    learned = np.maximum(learned, 1)
    power = np.minimum(learned ** np.longdouble(0.25), 2) / learned
    precision, evidence = prior.precision, 0
    for run in runs:
        precision = precision + power * (run.precision - prior.precision)
        evidence = evidence + power * run.precision * (run.mean - prior.mean)
    sums = prior.sums + sum(run.sums - prior.sums for run in runs)
    trials = prior.n_trials + sum(run.n_trials - prior.n_trials for run in runs)
    gap = min(run.smallest_gap for run in runs)
    mean = prior.mean + evidence / precision
    return Run(mean, precision, sums, 0, trials, smallest_gap=gap)
