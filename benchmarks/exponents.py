"""The exponent with which a time grows, and how surely it is known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


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
    """Fit the line of log time against log size by least squares; points where either is not
    positive, or not finite, are left out."""
    x, y = np.asarray(sizes, dtype=np.float64), np.asarray(seconds, dtype=np.float64)
    sound = (x > 0) & (y > 0) & np.isfinite(x) & np.isfinite(y)
    x, y = np.log(x[sound]), np.log(y[sound])
    if len(np.unique(x)) < 2:
        return GrowthExponent(np.nan, np.nan)
    line, error = np.polyfit(x, y, 1), np.nan
    if len(x) > 2:
        line, covariance = np.polyfit(x, y, 1, cov=True)
        error = float(np.sqrt(covariance[0, 0]))
    return GrowthExponent(float(line[0]), error, float(np.exp(line[1])))
