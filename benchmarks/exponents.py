"""The exponent of the growth of a run time, and its standard error."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class GrowthExponent(NamedTuple):
    """A power law ``seconds = factor * size ** slope``, fitted by `growth_exponent`.

    Attributes
    ----------
    slope : float
        NaN if there are fewer than two different sizes.
    standard_error : float
        Standard error of the slope, from the residuals; NaN for fewer than three points.
    factor : float
        Seconds at size 1; NaN if the slope does not describe seconds.
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
    """Fit a line of log time against log size by least squares. Points are ignored if either value
    is not positive and finite."""
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
