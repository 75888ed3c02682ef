"""Updates and margin of CRAMMA^eps: Tsampouka & Shawe-Taylor (2006), Theorem 1.

Rows are augmented: they carry their intercept and soft-margin coordinates, and margins are the
directional ones of their paper, ``y u.x`` for a u of unit length.
"""

from __future__ import annotations

from math import exp, expm1, inf, log, log1p, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from papers.theory.checks import Numbers, check_positive

# The largest power of e that a double holds.
_LARGEST_EXPONENT = 709.0


def geometric_margin_range(
    directional_margin: ArrayLike, radius: ArrayLike, intercept_scaling: ArrayLike
) -> tuple[Numbers, Numbers]:
    r"""Between what the maximal margin of hyperplanes with an intercept lies.

    :math:`1 \le \gamma / \gamma_d \le R / \rho`: Tsampouka & Shawe-Taylor (2006), eq. 2, for rows
    of both classes.

    Parameters
    ----------
    directional_margin : float or array-like
        :math:`\gamma_d`, the maximal margin of the augmented rows, in their units.
    radius : float or array-like
        R, the largest 2-norm of the augmented rows.
    intercept_scaling : float or array-like
        rho, the value of the coordinate added; at most R.

    Returns
    -------
    lowest, highest : float or ndarray
        In the units of the rows.

    Examples
    --------
    >>> lowest, highest = geometric_margin_range(0.1, radius=5.0, intercept_scaling=2.5)
    >>> print(lowest, highest)
    0.1 0.2
    """
    gamma = check_positive("directional_margin", directional_margin)
    R, rho = (
        check_positive("radius", radius),
        check_positive("intercept_scaling", intercept_scaling),
    )
    if not (rho <= R).all():
        raise ValueError(
            f"radius={radius!r} is less than intercept_scaling={intercept_scaling!r}. Measure the "
            "rows with their intercept coordinate."
        )
    return gamma[()], gamma * R / rho


def cramma_rate_limit(margin: ArrayLike, radius: ArrayLike) -> Numbers:
    r"""Effective learning rate below which CRAMMA is proved to converge.

    :math:`\eta_{\mathrm{eff}} < \frac{1}{2} (\sqrt{1 + 8 \gamma_d / R} - 1)`: Tsampouka &
    Shawe-Taylor (2006), Theorem 1.

    Parameters
    ----------
    margin : float or array-like
        :math:`\gamma_d`, the maximal directional margin, or a lower bound on it.
    radius : float or array-like
        R, the largest 2-norm of the rows, in the same units.

    Returns
    -------
    float or ndarray
        Without unit.

    Examples
    --------
    >>> print(cramma_rate_limit(margin=0.375, radius=1.0))
    0.5
    """
    return (np.sqrt(1.0 + 8.0 * _relative_margin(margin, radius)) - 1.0) / 2.0


def cramma_corrections(
    margin: ArrayLike,
    radius: ArrayLike,
    *,
    beta: ArrayLike,
    eta_eff: ArrayLike,
    epsilon: ArrayLike = 0.5,
) -> Numbers:
    r"""Most updates of CRAMMA^eps on separable data.

    :math:`t_b = (\beta / \gamma_d)^{1/\epsilon} (1 + \tau_b)`: Tsampouka & Shawe-Taylor (2006),
    eq. 15. :math:`\tau_b` is the positive root of eq. 13 taken as an equality, for
    :math:`\epsilon = 1/2` that of eq. 19.

    Parameters
    ----------
    margin : float or array-like
        :math:`\gamma_d`, the maximal directional margin, or a lower bound on it.
    radius : float or array-like
        R, the largest 2-norm of the rows, in the same units.
    beta : float or array-like
        The paper's :math:`\beta / R`.
    eta_eff : float or array-like
        The effective learning rate, :math:`\eta_0 (\beta / R)^{-\delta}`.
    epsilon : float or array-like, default=0.5

    Returns
    -------
    float or ndarray
        A count, to hold against `n_corrections_`; not rounded down. Infinite where `eta_eff` is
        not below `cramma_rate_limit`.

    Examples
    --------
    >>> print(round(cramma_corrections(0.00841, 3.8121, beta=2.0, eta_eff=0.0005)))
    4165139
    """
    return _BOUNDS(_relative_margin(margin, radius), *_check_rule(beta, eta_eff, epsilon))[0][()]


def cramma_margin_fraction(
    margin: ArrayLike,
    radius: ArrayLike,
    *,
    beta: ArrayLike,
    eta_eff: ArrayLike,
    epsilon: ArrayLike = 0.5,
) -> Numbers:
    r"""Fraction of the maximal directional margin that CRAMMA^eps surely reaches.

    :math:`f_b = (1 + \tau_b)^{-\epsilon}`: Tsampouka & Shawe-Taylor (2006), eq. 16. It tends to 1
    as beta grows, for :math:`\eta_{\mathrm{eff}} = \eta_0 (\beta / R)^{-\delta}` with
    :math:`0 < \epsilon \delta < 1`.

    Parameters
    ----------
    margin, radius, beta, eta_eff, epsilon
        As for `cramma_corrections`.

    Returns
    -------
    float or ndarray
        From 0 to 1; 0 where `eta_eff` is not below `cramma_rate_limit`.

    Notes
    -----
    The paper puts :math:`t_b` for the counter on which the last passes test. That counter is one
    above the last update's, so what is proved is a share
    :math:`(1 + 1 / t_b)^{-\epsilon}` of :math:`f_b`.

    Examples
    --------
    >>> print(round(cramma_margin_fraction(0.00841, 3.8121, beta=2.0, eta_eff=0.0005), 3))
    0.444
    """
    return _BOUNDS(_relative_margin(margin, radius), *_check_rule(beta, eta_eff, epsilon))[1][()]


def _relative_margin(margin: ArrayLike, radius: ArrayLike) -> np.ndarray:
    relative = check_positive("margin", margin) / check_positive("radius", radius)
    if not (relative <= 1.0).all():
        raise ValueError(
            f"margin={margin!r} exceeds radius={radius!r}, which no margin does. Give both in the "
            "units of the rows."
        )
    return relative


def _check_rule(beta: ArrayLike, eta_eff: ArrayLike, epsilon: ArrayLike) -> tuple[np.ndarray, ...]:
    return (
        check_positive("beta", beta),
        check_positive("eta_eff", eta_eff),
        check_positive("epsilon", epsilon),
    )


def _bounds(margin: float, beta: float, eta: float, epsilon: float) -> tuple[float, float]:
    """t_b and f_b; `margin` and `beta` are divided by R."""
    chi = 1.0 - eta * (1.0 + eta) / (2.0 * margin)
    if chi <= 0.0:
        return inf, 0.0
    log_t0 = log(beta / margin) / epsilon
    z = _log_tau_root(margin, eta, epsilon, chi, log_t0)
    return _exp(log_t0 + z), exp(-epsilon * z)


def _log_tau_root(margin: float, eta: float, epsilon: float, chi: float, log_t0: float) -> float:
    """ln(1 + tau_b), tau_b the root of eq. 13 to the right of its minimum.

    In the logarithm neither a tau_b near 0 loses digits nor a huge one its range.
    """
    omega = eta * (1.0 + eta) * margin
    left = (1.0 + omega) / (eta * margin) * _exp(-log_t0)
    power = 1.0 - epsilon

    def excess(z: float) -> float:
        grown = expm1(power * z) / power if power else z
        return chi * expm1(z) - (1.0 + eta) * grown - left

    lowest = (log1p(eta) - log(chi)) / epsilon
    highest = lowest
    while highest < _LARGEST_EXPONENT:
        highest = min(2.0 * highest, _LARGEST_EXPONENT)
        if excess(highest) > 0.0:
            return float(brentq(excess, lowest, highest, xtol=1e-300, rtol=1e-14))
    return inf


def _exp(x: float) -> float:
    return exp(x) if x <= _LARGEST_EXPONENT else inf


_BOUNDS = np.vectorize(_bounds, otypes=[np.float64, np.float64])


def least_soft_margin(soft_margin: float, n_samples: int) -> float:
    r"""Least value of the maximal margin in the soft margin's extended space.

    :math:`\Gamma_{\Delta,\mathrm{opt}} \ge |\Delta| / \sqrt{m}`, whatever the data: Tsampouka &
    Shawe-Taylor (2006), section 4, eq. 27.

    Parameters
    ----------
    soft_margin : float
        Delta, the value of each row's own coordinate; in the units of the rows.
    n_samples : int
        m, the rows learned from.

    Returns
    -------
    float
        In the units of the rows.

    Raises
    ------
    ValueError
        If `soft_margin` is not a positive number, or `n_samples` is less than 1.

    Examples
    --------
    >>> least_soft_margin(2.0, 100)
    0.2
    """
    if not 0 < soft_margin < inf:
        raise ValueError(
            f"soft_margin must be a positive number, got {soft_margin!r}. Without one nothing is "
            "known of the margin beforehand; pass the rate (eta0) itself."
        )
    if n_samples < 1:
        raise ValueError(f"n_samples must be at least 1, got {n_samples!r}. Count the rows of X.")
    return soft_margin / sqrt(n_samples)


def automatic_rate(soft_margin: float, radius: float, n_samples: int) -> float:
    r"""Effective learning rate of CRAMMA at ``beta=1`` from the soft margin alone.

    :math:`\eta_{\mathrm{eff}} = 1.7\,|\Delta| / (R \sqrt{m})`: Tsampouka & Shawe-Taylor (2006),
    section 5, Table 4. With the margin of eq. 27 (`least_soft_margin`) it meets the condition of
    their Theorem 1 wherever :math:`R \sqrt{m} > 9.64\,|\Delta|`, so for 93 rows or more always.

    Parameters
    ----------
    soft_margin : float
        Delta, in the units of the rows.
    radius : float
        R, the largest 2-norm of the rows with their intercept and soft-margin coordinates.
    n_samples : int
        m, the rows learned from.

    Returns
    -------
    float
        Without unit.

    Raises
    ------
    ValueError
        If `soft_margin` or `radius` is not a positive number, or `n_samples` is less than 1.

    Examples
    --------
    >>> round(automatic_rate(1.0, 917**0.5, 683), 6)
    0.002148
    """
    if not 0 < radius < inf:
        raise ValueError(
            f"radius must be a positive number, got {radius!r}. Pass the largest norm of the rows."
        )
    return 1.7 * least_soft_margin(soft_margin, n_samples) / radius
