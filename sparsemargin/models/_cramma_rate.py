"""CRAMMA's learning rate where none is given, from the margin the soft margin guarantees."""

from __future__ import annotations

from math import inf, sqrt

# The multiple that Table 4 of the paper takes.
_TABLE_4_FACTOR = 1.7


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
    return _TABLE_4_FACTOR * least_soft_margin(soft_margin, n_samples) / radius
