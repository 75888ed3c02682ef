"""Mistakes of the Higher-order Perceptron: Brotto, Gentile & Vitale (2007), Theorem 1.

Margins are those of the transformed sequence, which `HigherOrderRun.transformed_margins` gives: of
rows divided by their p-norm and multiplied by the matrix of all mistakes before, under a u of unit
q-norm. c is the estimator's, rho_k being c / k; that of the paper's theorem is 1 - c.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from papers.theory._checks import (
    Numbers,
    check_least,
    check_numbers,
    check_positive,
    check_vector,
)


def higher_order_mistakes(
    margin: ArrayLike,
    hinge_loss: ArrayLike = 0.0,
    *,
    c: float,
    p: float = 2.0,
    radius: float | None = None,
) -> Numbers:
    r"""Most mistakes that HO_p(c) makes on a sequence of examples.

    .. math::

        m \le \alpha \frac{D}{\gamma} + \frac{\alpha^2}{2 \gamma^2}
              + \frac{\alpha}{\gamma} \sqrt{\alpha \frac{D}{\gamma} + \frac{\alpha^2}{4 \gamma^2}},
        \qquad \alpha = \frac{1 + c}{1 - c},

    for any gamma > 0 and any u of unit length: Brotto, Gentile & Vitale (2007), Theorem 1, eq. 2,
    where p = 2. For other p see the notes.

    Parameters
    ----------
    margin : float or array-like
        gamma, any number greater than 0.
    hinge_loss : float or array-like, default=0.0
        D, the sum of the `deviations` from that margin over all mistakes, a row mistaken twice
        counted twice: :math:`\sum_k \max(0, \gamma - y_k u \cdot B_{k-1} x_k)`.
    c : float
        In [0, 1). Any rates with :math:`0 \le \rho_k \le c / (1 + |G_k \cdot v_{k-1}|)` will do,
        so the bound holds for ``c / k`` and where rates are 0, as `sparse_updates` and
        `max_updates` make them. Weights other than 1, of rows or classes, are outside of it.
    p : float, default=2.0
        Norm of the instances, at least 2.
    radius : float, default=None
        X, the root mean square or a larger bound of the p-norms of the transformed instances:
        `HigherOrderRun.radius`. None: 1, which none exceeds where p is 2; for other p it has to
        be given.

    Returns
    -------
    float or ndarray
        A count, to hold against `n_corrections_`; not rounded down.

    Raises
    ------
    ValueError
        If an argument is outside its range, or `radius` is missing.

    See Also
    --------
    tightest_higher_order_bound : The least bound that one u gives.

    Notes
    -----
    The paper has no formula for p > 2. Its proof carries over with
    :math:`\alpha \sqrt{p - 1}\, X` in place of each :math:`\alpha` but those before D:

    Let :math:`B_k = B_{k-1} (I - \rho_k x_k G_k^\top)`, G_k being the image of x_k under the link,
    so that :math:`G_k \cdot x_k = 1`, and :math:`z_k = B_{k-1} x_k`. Then
    :math:`B_k v_k = B_{k-1} v_{k-1} + y_k r_k z_k` with
    :math:`r_k = 1 - \rho_k - \rho_k\, y_k G_k \cdot v_{k-1}`, which the condition on the rates
    keeps between 1 - c and 1 + c; ``c / k`` meets it as
    :math:`|G_k \cdot v_{k-1}| \le \|G_k\|_q \|v_{k-1}\|_p \le k - 1`. From above: half the
    squared p-norm has the link as its gradient and is smooth with constant p - 1 (Grove,
    Littlestone & Schuurmans, 2001), and at a mistake
    :math:`y_k\, \mathrm{link}(B_{k-1} v_{k-1}) \cdot z_k \le 0`, so
    :math:`\|B_m v_m\|_p^2 \le (p - 1) (1 + c)^2 \sum_k \|z_k\|_p^2`. From below:
    :math:`\|B_m v_m\|_p \ge u \cdot B_m v_m = \sum_k r_k y_k u \cdot z_k
    \ge (1 - c) \gamma m - (1 + c) D`. Both together are quadratic in :math:`\sqrt m`. For p = 2
    the factors of B are contractions, hence X = 1 is enough; for p > 2 they are not, and X has to
    be measured.

    Examples
    --------
    >>> print(higher_order_mistakes(0.5, c=0.0))
    4.0
    >>> print(higher_order_mistakes(1.5, 1.5, c=0.5))
    9.0
    """
    gamma = check_positive("margin", margin)
    loss = _alpha(c) * check_least("hinge_loss", hinge_loss, 0.0) / gamma
    half = _alpha(c) * _scale(p, radius) / (2.0 * gamma)
    return (half + np.sqrt(half**2 + loss)) ** 2


def tightest_higher_order_bound(
    margins: ArrayLike, *, c: float, p: float = 2.0, radius: float | None = None
) -> float:
    r"""The least bound of `higher_order_mistakes` that one u gives, over its own margins.

    The least for gamma up to the largest margin that occurs, which is always at one of them. Beyond
    it the bound tends to :math:`\alpha m`, whatever the data, and says nothing. For, with
    :math:`s = 1 / \gamma` and :math:`t = \sqrt m`, the bound solves
    :math:`t^2 = \alpha (\sqrt{p - 1}\, X s t + \sum_k \max(0, 1 - s\, y_k u \cdot z_k))`, and
    for a given t the right side is least where the sum has a bend.

    Parameters
    ----------
    margins : array-like of shape (n_mistakes,)
        :math:`y_k u \cdot z_k` of the transformed sequence: `HigherOrderRun.transformed_margins`.
    c, p, radius
        As for `higher_order_mistakes`.

    Returns
    -------
    float
        A count; not rounded down. Infinite where no margin is positive.

    Raises
    ------
    ValueError
        If `margins` is not a vector of finite numbers, or another argument is outside its range.

    Examples
    --------
    >>> tightest_higher_order_bound([0.5, 0.5, 0.5, -0.125], c=0.0)
    6.25
    """
    a = np.sort(check_vector("margins", margins))
    positive = a > 0
    # Rounding may leave a loss of nothing below zero.
    losses = np.maximum(np.arange(len(a)) * a - (np.cumsum(a) - a), 0.0)
    bounds = higher_order_mistakes(a[positive], losses[positive], c=c, p=p, radius=radius)
    return float(np.min(bounds, initial=np.inf))


def check_rate(c: float) -> float:
    """`c` as a float in [0, 1)."""
    number = float(check_numbers("c", c))
    if not 0.0 <= number < 1.0:
        raise ValueError(f"c must be at least 0 and less than 1, got {c!r}.")
    return number


def _alpha(c: float) -> float:
    checked = check_rate(c)
    return (1.0 + checked) / (1.0 - checked)


def _scale(p: float, radius: float | None) -> float:
    """sqrt(p - 1) times the radius."""
    checked = float(check_least("p", p, 2.0))
    if radius is None:
        if checked > 2.0:
            raise ValueError(
                f"p={p!r} needs radius: the transformed instances of p-norms above 2 may be longer "
                "than 1. Pass HigherOrderRun.radius."
            )
        return 1.0
    return float(np.sqrt(checked - 1.0) * check_positive("radius", radius))
