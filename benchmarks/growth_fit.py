"""What one more of something costs, and what there is without any."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sparsemargin.evaluation.growth import fit_line


class Share(NamedTuple):
    """What one more of something adds, and what there is without any."""

    each: float
    standard_error: float
    rest: float


def share(counts: Sequence[float], seconds: Sequence[float]) -> Share:
    """Fit the line of time against counts by least squares, without logarithms."""
    (each, rest), errors = fit_line(np.asarray(counts, float), np.asarray(seconds, float))
    return Share(float(each), float(errors[0]), float(rest))
