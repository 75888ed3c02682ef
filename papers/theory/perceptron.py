"""Mistakes of the Perceptron and errors of its votes: Freund & Schapire (1999)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from papers.theory.checks import (
    Numbers,
    check_least,
    check_numbers,
    check_positive,
    check_vector,
)


def deviations(margins: ArrayLike, margin: ArrayLike) -> Numbers:
    r"""By how much each example falls short of a margin.

    :math:`d_i = \max(0, \gamma - y_i u \cdot x_i)`: Freund & Schapire (1999), section 3.2,
    Theorem 2; with normalised rows :math:`D_\gamma(u; (x, y))` of Gentile (2001), section 3.

    Parameters
    ----------
    margins : array-like of float
        :math:`y_i u \cdot x_i` for a u of unit dual norm: `sparsemargin.evaluation.margins`.
    margin : float or array-like broadcastable to `margins`
        gamma > 0, any value, in the units of `margins`.

    Returns
    -------
    float or ndarray
        In the units of `margins`.

    Examples
    --------
    >>> deviations([0.5, 0.1, -0.2], 0.3)
    array([0. , 0.2, 0.5])
    """
    return np.maximum(0.0, check_positive("margin", margin) - check_numbers("margins", margins))


def perceptron_mistakes(
    radius: ArrayLike, margin: ArrayLike, deviation: ArrayLike = 0.0
) -> Numbers:
    r"""Most mistakes the Perceptron makes on a sequence of examples.

    :math:`((R + D) / \gamma)^2`: Freund & Schapire (1999), Theorem 2, and Theorem 1 (Block,
    Novikoff) where D is 0. Theorem 1 holds for any number of passes over the same rows; with
    deviations every pass adds its own to D, since the sequence becomes longer.

    Parameters
    ----------
    radius : float or array-like
        R, the largest 2-norm of the rows.
    margin : float or array-like
        gamma > 0; in Theorem 1 a margin that some u of unit length has on every example, in
        Theorem 2 any number. In the units of the rows.
    deviation : float or array-like, default=0.0
        D, the 2-norm of the `deviations` of that u from that margin. Counting the examples on
        which mistakes are made is enough (Corollary 2).

    Returns
    -------
    float or ndarray
        A count; not rounded down.

    Examples
    --------
    >>> print(perceptron_mistakes(radius=1.0, margin=0.1))
    100.0
    >>> print(perceptron_mistakes(radius=1.0, margin=0.25, deviation=0.5))
    36.0
    """
    D = check_least("deviation", deviation, 0.0)
    return ((check_positive("radius", radius) + D) / check_positive("margin", margin)) ** 2


def tightest_mistake_bound(margins: ArrayLike, radius: float) -> float:
    r"""Theorem 2's bound at the margin where it is smallest, for one comparison vector u.

    :math:`\inf_{\gamma > 0} ((R + D_{u,\gamma}) / \gamma)^2`, the quantity averaged in Corollaries
    1 and 2 of Freund & Schapire (1999) but for the infimum over u, which no u falls below. Where
    all margins are 0 or less it is the number of examples. With :math:`s = 1 / \gamma` its root
    :math:`R s + \|\max(0, 1 - s\, y_i u \cdot x_i)\|_2` is convex in s.

    Parameters
    ----------
    margins : array-like of shape (n_examples,)
        :math:`y_i u \cdot x_i` for a u of unit length, of all examples (Corollary 1) or of those
        on which mistakes were made (Corollary 2).
    radius : float
        R, the largest 2-norm of those rows.

    Returns
    -------
    float
        A count; not rounded down.

    Examples
    --------
    >>> round(tightest_mistake_bound([0.5, 0.5, 0.5, 0.5, 0.5], radius=1.0), 6)
    4.0
    >>> tightest_mistake_bound([-0.5, -0.5, -0.5], radius=1.0)
    3.0
    """
    a = check_vector("margins", margins)
    R = float(check_positive("radius", radius))

    def root(s: float) -> float:
        return R * s + float(np.linalg.norm(np.maximum(0.0, 1.0 - s * a)))

    # Beyond it, R s alone is more than the bound at s = 0.
    furthest = np.sqrt(len(a)) / R
    found = minimize_scalar(
        root, bounds=(0.0, furthest), method="bounded", options={"xatol": 1e-12 * furthest}
    )
    return min(float(found.fun) ** 2, float(len(a)))


def best_soft_margin(radius: ArrayLike, deviation: ArrayLike) -> Numbers:
    r"""The soft margin with which Theorem 2 is proved, where its bound is least.

    :math:`\Delta = \sqrt{R D}` minimises :math:`(R^2 + \Delta^2)(1 + D^2 / \Delta^2) / \gamma^2`,
    the bound of Theorem 1 in the extended space: Freund & Schapire (1999), proof of Theorem 2.

    Parameters
    ----------
    radius : float or array-like
        R, the largest 2-norm of the rows without soft-margin coordinates.
    deviation : float or array-like
        D, the 2-norm of the `deviations`.

    Returns
    -------
    float or ndarray
        Delta, in the units of the rows; 0, no soft margin, where D is 0.

    Examples
    --------
    >>> print(best_soft_margin(radius=4.0, deviation=0.25))
    1.0
    """
    return np.sqrt(check_positive("radius", radius) * check_least("deviation", deviation, 0.0))


def voted_perceptron_error(n_samples: int, mistakes: ArrayLike) -> float:
    r"""Bound on the probability that the voted Perceptron errs on a new example, after one epoch.

    :math:`\frac{2}{m + 1} E[k]`: Freund & Schapire (1999), section 3.4. The expectation is over
    draws of m + 1 independent examples, and the mean over the draws given stands for it.
    Corollary 2 takes the mistakes k themselves, or a bound on them from the examples on which
    they were made; Corollary 1 the bound from all examples. The random hypothesis errs with at
    most half of this probability (Theorem 3).

    Parameters
    ----------
    n_samples : int
        m, the training examples.
    mistakes : float or array-like of shape (n_draws,)
        For each draw of m + 1 examples the mistakes of one pass over them, or a bound on these:
        `perceptron_mistakes`, `tightest_mistake_bound`.

    Returns
    -------
    float
        May exceed 1, and then says nothing.

    Examples
    --------
    >>> voted_perceptron_error(n_samples=999, mistakes=[90, 110])
    0.2
    """
    m = float(check_least("n_samples", n_samples, 1.0))
    k = check_least("mistakes", check_vector("mistakes", np.atleast_1d(mistakes)), 0.0)
    return 2.0 / (m + 1.0) * float(k.mean())
