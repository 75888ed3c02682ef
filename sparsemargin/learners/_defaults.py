"""What defaults are made of that depend on the data."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np

# So few that a stream has them at its beginning.
_ROWS_MEASURED = 100


def intercept_scale(rows: Any) -> float:
    """A tenth of the root mean square 2-norm of the first 100 rows; 0.1 where they are zero.

    Parameters
    ----------
    rows : Rows
        Unchecked: a repeated column counts as it stands.
    """
    n_rows = min(len(rows.indptr) - 1, _ROWS_MEASURED)
    scale = 0.1 * _two_norm(rows.data[: rows.indptr[n_rows]]) / sqrt(max(n_rows, 1))
    return scale if 0.0 < scale < inf else 0.1


def _two_norm(values: np.ndarray) -> float:
    squares = float(np.einsum("i,i->", values, values, dtype=np.float64))
    if squares < inf or not np.isfinite(values).all():
        return sqrt(squares)
    peak = float(np.abs(values).max())
    return peak * _two_norm(values / peak)
