"""The exponent with which a time grows, and how surely it is known."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Exponent(NamedTuple):
    """The slope of log time against log size; nan where there are too few points to tell it."""

    slope: float
    standard_error: float

    def __str__(self) -> str:
        return f"{self.slope:.2f} ± {self.standard_error:.2f}"


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> Exponent:
    """Fit the line of log time against log size by least squares.

    Parameters
    ----------
    sizes, seconds : sequence of shape (n_points,)
        Points where either is not positive are left out.

    Returns
    -------
    Exponent
        The slope and its standard error, by the scatter about the line.
    """
    points = np.array([sizes, seconds], dtype=float)
    x, y = np.log(points[:, (points > 0).all(axis=0)])
    line, errors = _line(x, y)
    return Exponent(float(line[0]), float(errors[0]))


class Share(NamedTuple):
    """What one more of something adds, and what there is without any."""

    each: float
    standard_error: float
    rest: float


def share(counts: Sequence[float], seconds: Sequence[float]) -> Share:
    """Fit the line of time against counts by least squares, without logarithms."""
    (each, rest), errors = _line(np.asarray(counts, float), np.asarray(seconds, float))
    return Share(float(each), float(errors[0]), float(rest))


def _line(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return slope and intercept of the line, and the standard errors of both."""
    if len(x) < 3:
        return (np.polyfit(x, y, 1) if len(x) == 2 else np.full(2, np.nan)), np.full(2, np.nan)
    line, covariance = np.polyfit(x, y, 1, cov=True)
    return line, np.sqrt(np.diag(covariance))
