"""Corrections and margin of ALMA_p(alpha; B, C): Gentile (2001), Theorem 3.

All margins are of rows divided by their p-norm and weights of unit q-norm. Rows divided by one
number no smaller than any of their norms (``normalize="max"``) keep to the same bounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from papers.theory.checks import (
    Numbers,
    check_least,
    check_positive,
    check_vector,
)


class ALMAConstants(NamedTuple):
    """B, the scale of the margin asked for, and C, that of the step."""

    B: float
    C: float


def alma_constants(alpha: float) -> ALMAConstants:
    r"""Constants for which part 2 of Theorem 3 holds.

    :math:`B = 1 / (2 \sqrt\alpha),\; C = \sqrt\alpha`: Gentile (2001), Remark 4. On separable data
    they give :math:`\gamma_k \ge \gamma^* / 3` within
    :math:`\frac{1 + \sqrt 5}{2} (p - 1) / (\gamma^{*2} \alpha)` corrections.

    Parameters
    ----------
    alpha : float
        In (0, 1].

    Returns
    -------
    ALMAConstants
        The pair (B, C).

    Examples
    --------
    >>> alma_constants(0.25)
    ALMAConstants(B=1.0, C=0.5)
    """
    root = float(np.sqrt(check_positive("alpha", alpha, most=1.0)))
    return ALMAConstants(B=1.0 / (2.0 * root), C=root)


def alma_alpha(alpha: float, *, B: float) -> float:
    r"""The alpha of `ALMAClassifier` for ALMA_p(alpha; B, C).

    The algorithm depends on alpha and B only through :math:`(1 - \alpha) B`, and B of the
    classifier is :math:`\sqrt 8 / \alpha`.

    Parameters
    ----------
    alpha : float
        In (0, 1].
    B : float

    Returns
    -------
    float

    Examples
    --------
    >>> round(alma_alpha(0.5, B=8**0.5), 12)
    0.666666666667
    """
    scale = (1.0 - check_positive("alpha", alpha, most=1.0)) * check_positive("B", B)
    return float(np.sqrt(8.0) / (np.sqrt(8.0) + scale))


def alma_margin_estimate(k: ArrayLike, *, B: float, p: float = 2.0) -> Numbers:
    r"""ALMA's current estimate of the maximal margin.

    :math:`\gamma_k = B \sqrt{p - 1} / \sqrt k`: Gentile (2001), Figure 1. With
    :math:`B = \sqrt 8 / \alpha` and :math:`C = \sqrt 2` it never falls below the maximal margin
    :math:`\gamma^*` of separable data (Theorem 3, part 1), nor does the one after the last
    correction, which decides when ALMA stops.

    Parameters
    ----------
    k : int or array-like
        Corrections made so far, plus one.
    B : float
    p : float, default=2.0
        Norm of the instances, at least 2.

    Returns
    -------
    float or ndarray

    Examples
    --------
    >>> print(alma_margin_estimate([1, 4, 16], B=1.0, p=5.0))
    [2.  1.  0.5]
    """
    B_ = check_positive("B", B)
    return B_ * np.sqrt(check_least("p", p, 2.0) - 1.0) / np.sqrt(check_least("k", k, 1.0))


def alma_margin_reached(
    n_corrections: ArrayLike, *, alpha: float, B: float, p: float = 2.0
) -> Numbers:
    r"""Margin that ALMA surely has reached once a pass over the rows makes no correction.

    Every row then has a margin above :math:`(1 - \alpha) \gamma_k`, k the corrections plus one,
    the weights being of q-norm 1 at most: Gentile (2001), Figure 1. With
    :math:`B = \sqrt 8 / \alpha`, :math:`C = \sqrt 2` that is at least
    :math:`(1 - \alpha) \gamma^*` (Theorem 3, part 1).

    Parameters
    ----------
    n_corrections : int or array-like
        The corrections made, or a bound on them: `alma_corrections`,
        `alma_corrections_inseparable`.
    alpha : float
        In (0, 1].
    B : float
    p : float, default=2.0
        Norm of the instances, at least 2.

    Returns
    -------
    float or ndarray

    Examples
    --------
    >>> print(alma_margin_reached(99, alpha=0.5, B=2.0))
    0.1
    """
    k = check_least("n_corrections", n_corrections, 0.0) + 1.0
    return (1.0 - check_positive("alpha", alpha, most=1.0)) * alma_margin_estimate(k, B=B, p=p)


def alma_corrections(margin: ArrayLike, *, alpha: ArrayLike, p: ArrayLike = 2.0) -> Numbers:
    r"""Most corrections of ALMA_p(alpha; sqrt(8)/alpha, sqrt(2)) on separable data.

    .. math::

        |M| \le \frac{2 (p - 1)}{\gamma^{*2}} \left(\frac{2}{\alpha} - 1\right)^2
                + \frac{8}{\alpha} - 4,

    over any number of passes: Gentile (2001), Theorem 3, part 1, eq. 1.

    Parameters
    ----------
    margin : float or array-like
        :math:`\gamma^*`, the maximal margin, or a margin known to be reached by some weights; in
        (0, 1].
    alpha : float or array-like
        In (0, 1].
    p : float or array-like, default=2.0
        Norm of the instances, at least 2.

    Returns
    -------
    float or ndarray
        A count; not rounded down.

    Examples
    --------
    >>> print(alma_corrections(0.5, alpha=0.5, p=3.0))
    156.0
    """
    inverse = 1.0 / check_positive("alpha", alpha, most=1.0)
    scale = 2.0 * (check_least("p", p, 2.0) - 1.0) / check_positive("margin", margin, most=1.0) ** 2
    return scale * (2.0 * inverse - 1.0) ** 2 + 8.0 * inverse - 4.0


def alma_corrections_inseparable(
    margin: float,
    deviations: ArrayLike = (0.0,),
    *,
    alpha: float,
    B: float,
    C: float,
    p: float = 2.0,
) -> float:
    r"""Most corrections of ALMA_p(alpha; B, C) on any data, as the paper states it.

    With :math:`\rho^2 = (p - 1) / (C \gamma)^2` and :math:`S = \sum_{t \in M} D_\gamma / \gamma`,

    .. math:: |M| \le S + \rho^2 / 2 + \sqrt{\rho^4 / 4 + \rho^2 S + \rho^2}

    for constants with :math:`C^2 + 2 (1 - \alpha) B C = 1`: Gentile (2001), Theorem 3, part 2.

    Parameters
    ----------
    margin : float
        gamma, any number in (0, 1].
    deviations : array-like of shape (n_corrections,), default=(0.0,)
        :math:`D_\gamma(u; (x_t, y_t))` for one u of unit q-norm and every correction, a row
        corrected twice being counted twice. In one epoch those of all rows will do, since more
        of them can but raise the bound.
    alpha : float
        In (0, 1].
    B, C : float
        See `alma_constants`.
    p : float, default=2.0
        Norm of the instances, at least 2.

    Returns
    -------
    float
        A count; not rounded down.

    See Also
    --------
    alma_corrections_repaired : Holds whatever the deviations.

    Notes
    -----
    The proof takes :math:`\theta_k`, the dual vector before correction k, to have
    :math:`u \cdot \theta_k \ge 0`. No deviation above gamma is enough for that, separable data
    included. Where u gives some correction a negative margin, an unlucky order of the rows makes
    more corrections than this formula allows: in three dimensions, with p = 2, alpha = 1 and
    gamma = 0.1, one such example at the head of 155 costs 155 corrections against 122.

    Examples
    --------
    >>> B, C = alma_constants(0.25)
    >>> print(alma_corrections_inseparable(0.5, [1.0, 0.5, 0.5], alpha=0.25, B=B, C=C))
    24.0
    """
    rho = _rho(margin, alpha, B, C, p)
    S = float(check_least("deviations", check_vector("deviations", deviations), 0.0).sum()) / margin
    return float(S + rho**2 / 2.0 + rho * np.sqrt(rho**2 / 4.0 + S + 1.0))


def alma_corrections_repaired(
    margin: float,
    deviations: ArrayLike = (0.0,),
    *,
    alpha: float,
    B: float,
    C: float,
    p: float = 2.0,
) -> float:
    r"""Most corrections of ALMA_p(alpha; B, C) on any data, in any order, with any deviations.

    With :math:`\sigma = \rho + \sum_k D_k / (\gamma \sqrt k)`, the deviations taken from the
    largest to the smallest,

    .. math:: |M| \le \sigma^2 / 2 + \sqrt{\sigma^4 / 4 + \sigma^2}.

    This is not in the paper: it stands in for `alma_corrections_inseparable` where that does not
    hold. Without deviations the two are equal.

    Parameters
    ----------
    margin, deviations, alpha, B, C, p
        As for `alma_corrections_inseparable`.

    Returns
    -------
    float
        A count; not rounded down.

    Notes
    -----
    Part 2 of the paper's proof of Theorem 3 has :math:`1 \le N_{k+1} \le \sqrt{1 + 1/k}` for the
    divisors and :math:`u \cdot \theta_{m+1} \le 1`. Unrolled, with
    :math:`c = C / \sqrt{p - 1}`,

    .. math:: 1 \ge u \cdot \theta_{m+1}
        \ge c \sum_{k=1}^{m} \frac{\gamma - D_k}{\sqrt k \prod_{j=k}^{m} N_{j+1}},

    and the denominators lie from :math:`\sqrt k` to :math:`\sqrt{m + 1}`: the larger serves for
    gamma, the smaller for :math:`D_k`. So
    :math:`m \gamma / \sqrt{m + 1} \le 1 / c + \sum_k D_k / \sqrt k`, whose last sum is largest
    with the largest deviations first.

    Examples
    --------
    >>> B, C = alma_constants(1.0)
    >>> round(alma_corrections_repaired(0.1, [1.1], alpha=1.0, B=B, C=C), 6)
    441.997743
    """
    D = check_least("deviations", check_vector("deviations", deviations), 0.0)
    weighted = np.sort(D)[::-1] / np.sqrt(np.arange(1, len(D) + 1))
    sigma = _rho(margin, alpha, B, C, p) + float(weighted.sum()) / margin
    return float(sigma**2 / 2.0 + sigma * np.sqrt(sigma**2 / 4.0 + 1.0))


def _rho(margin: float, alpha: float, B: float, C: float, p: float) -> float:
    """sqrt(p - 1) / (C gamma), once the constants are known to fit."""
    gamma, a = check_positive("margin", margin, most=1.0), check_positive("alpha", alpha, most=1.0)
    b, c = check_positive("B", B), check_positive("C", C)
    met: NDArray[np.float64] = c**2 + 2.0 * (1.0 - a) * b * c
    if not np.isclose(met, 1.0, rtol=1e-9, atol=0.0):
        raise ValueError(
            f"B={B!r} and C={C!r} give C^2 + 2 (1 - alpha) B C = {float(met):.6g}, where Theorem "
            "3, part 2, needs 1. Take them from alma_constants(alpha)."
        )
    return float(np.sqrt(check_least("p", p, 2.0) - 1.0) / (c * gamma))
