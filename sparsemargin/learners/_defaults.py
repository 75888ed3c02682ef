"""What holds where no algorithm is named, chosen on RCV1 topics by benchmarks/defaults.py."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np


def default_intercept(values: np.ndarray, n_rows: int, kernel: Any) -> dict[str, Any]:
    """An intercept of a tenth of the rows' root mean square norm; with a kernel none.

    Parameters
    ----------
    values : ndarray
        All entries of the rows.
    n_rows : int
    kernel : str or callable
        As the estimators take it.
    """
    # Rows have other lengths in feature space: a Gaussian's, 1, would drown in a tenth of 2000.
    if not (isinstance(kernel, str) and kernel == "linear"):
        return {}
    scaling = 0.1 * _two_norm(values) / sqrt(n_rows)
    return {
        "fit_intercept": True,
        "intercept_scaling": scaling if 0.0 < scaling < inf else 0.1,
    }


def _two_norm(values: np.ndarray) -> float:
    flat = values.reshape(-1)
    squares = float(np.einsum("i,i->", flat, flat, dtype=np.float64))
    if squares < inf or not np.isfinite(flat).all():
        return sqrt(squares)
    peak = float(np.abs(flat).max())
    return peak * _two_norm(flat / peak)
