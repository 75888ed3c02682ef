"""The exponent with which a time grows, and how surely it is known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class GrowthExponent(NamedTuple):
    """A power law ``seconds = factor * size ** slope``, as `growth_exponent` fits it.

    Attributes
    ----------
    slope : float
        NaN where fewer than two sizes are known.
    standard_error : float
        Of the slope, by the scatter about the line; NaN where there are fewer than three points.
    factor : float
        Seconds at size 1; NaN where the slope is that of something else than the seconds.
    """

    slope: float
    standard_error: float
    factor: float = np.nan

    def __str__(self) -> str:
        if np.isnan(self.slope):
            return "unknown"
        error = "" if np.isnan(self.standard_error) else f" ± {self.standard_error:.2f}"
        return f"{self.slope:.2f}{error}"


def growth_exponent(sizes: ArrayLike, seconds: ArrayLike) -> GrowthExponent:
    """Fit the line of log time against log size by least squares.

    Parameters
    ----------
    sizes, seconds : array-like of shape (n_points,)
        Points where either is not positive, or not finite, are left out.

    Returns
    -------
    GrowthExponent

    Raises
    ------
    ValueError
        If the two are no vectors of one length.

    Examples
    --------
    >>> sizes = np.array([1000, 2000, 4000, 8000])
    >>> print(growth_exponent(sizes, 3e-6 * sizes**1.5))
    1.50 ± 0.00
    """
    x, y = np.asarray(sizes, dtype=np.float64), np.asarray(seconds, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(
            f"sizes and seconds must be vectors of one length, got shapes {x.shape} and {y.shape}."
        )
    sound = (x > 0) & (y > 0) & np.isfinite(x) & np.isfinite(y)
    line, errors = fit_line(np.log(x[sound]), np.log(y[sound]))
    return GrowthExponent(float(line[0]), float(errors[0]), float(np.exp(line[1])))


def fit_line(
    x: NDArray[np.float64], y: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Slope and intercept of the line by least squares, and the standard errors of both; NaN where
    there are too few points to tell them."""
    unknown = np.full(2, np.nan)
    if len(np.unique(x)) < 2:
        return unknown, unknown
    if len(x) < 3:
        return np.polyfit(x, y, 1), unknown
    line, covariance = np.polyfit(x, y, 1, cov=True)
    return line, np.sqrt(np.diag(covariance))
