"""The largest possible margin, by a method that is independent of the library's rules.

With z_i the rows as a rule measures them, weights of unit q-norm through the origin reach

    gamma* = max_w min_i y_i w.z_i = min_lambda ||sum_i lambda_i y_i z_i||_p,

with lambda in the simplex. The two problems are dual, so any lambda bounds gamma* from above by its
norm and from below by the margin of its weights. The solution is proven if the two are equal.

The p-th power of the norm is minimized by Newton's method. Its quadratic model at theta, with the
Hessian (p - 1) diag |theta|^(p-2), is a squared distance to (p - 2)/(p - 1) theta in rescaled
coordinates. Therefore every step finds the point of a polytope that is nearest to the origin, which
is a nonnegative least-squares problem. For p = 2 the model is the norm itself.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import lsq_linear, nnls

from references.runs import augment, link, p_norm

MOST_STEPS = 500
MOST_HALVES = 50
ROUNDING = 1e-15
TINY = np.finfo(float).tiny


class Optimum(NamedTuple):
    """Proven lower and upper bounds on gamma*, and the multipliers, whose sum is 1."""

    lower: float
    upper: float
    multipliers: np.ndarray


def largest_margin(X, y, p, *, normalize, rho=None, delta=0.0, gap=1e-8):
    """Bracket the largest p-norm margin of separable data, through the origin.

    Rows, including other coordinates, are divided by their p-norms if `normalize`; rho and delta
    are as in `augment`. `upper` exceeds `lower` by at most the relative `gap`. If that is
    impossible, because the data are not separable, a ValueError is raised.
    """
    rows = np.asarray(y)[:, None] * augment(X, rho=rho, delta=delta, dtype=np.float64)
    if normalize:
        rows = rows / np.array([[p_norm(row, p)] for row in rows])
    multipliers = np.full(len(rows), 1 / len(rows))
    for _ in range(MOST_STEPS):
        lower, upper = _bracket(rows, multipliers, p)
        if upper <= ROUNDING * np.abs(rows).max():
            break
        if upper - lower <= gap * upper:
            return Optimum(lower, upper, multipliers)
        multipliers = _shorten(rows, multipliers, _newton_point(rows, multipliers, p), p)
    raise ValueError(f"gamma* is at most {upper:g}, and no margin is known: are X, y separable?")


def _bracket(rows, multipliers, p):
    """Return the margin of the weights of a convex combination of the rows, and its norm."""
    theta = multipliers @ rows
    upper = p_norm(theta, p)
    # This uses link(theta), whose q-norm is the p-norm of theta.
    return (rows @ link(theta, p)).min() / max(upper, TINY), upper


def _newton_point(rows, multipliers, p):
    """Return the multipliers that minimize the quadratic model of the p-th power of the norm."""
    theta = multipliers @ rows
    metric = np.abs(theta / np.abs(theta).max()) ** (p / 2 - 1)
    points = (rows - (p - 2) / (p - 1) * theta) * metric
    # The distance of the solution itself, against which least squares weights the sum.
    return _nearest_to_origin(points, np.linalg.norm(theta * metric) / (p - 1))


def _nearest_to_origin(points, distance):
    """Return the convex combination of the points that is nearest to the origin.

    The minimum of ``||sum_i mu_i a_i||^2 + (1 - sum_i mu_i)^2`` has the same direction.
    """
    equations = np.vstack([points.T / distance, np.ones(len(points))])
    target = np.zeros(len(equations))
    target[-1] = 1
    mu, _ = nnls(equations, target, maxiter=100 * len(points))
    # scipy 1.15.0 sometimes stops before the minimum, where a gradient is still negative.
    if (equations.T @ (equations @ mu - target)).min() < -1e-9:
        mu = lsq_linear(equations, target, bounds=(0, np.inf), method="bvls", tol=1e-15).x
    return mu / mu.sum()


def _shorten(rows, old, new, p):
    """Return the first combination, of `new` and halves of the way to it, that is not longer."""
    longest = p_norm(old @ rows, p) * (1 + ROUNDING)
    for share in 0.5 ** np.arange(MOST_HALVES):
        between = (1 - share) * old + share * new
        if p_norm(between @ rows, p) <= longest:
            return between
    return old
