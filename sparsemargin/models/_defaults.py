"""What defaults are made of that depend on the data."""

from __future__ import annotations

from collections.abc import Iterable
from math import frexp, inf, sqrt
from typing import Any

import numpy as np

#: So few that a stream has them at its beginning.
ROWS_MEASURED = 100


def intercept_scale(blocks: Iterable[Any]) -> float:
    """A tenth of the root mean square 2-norm of the first 100 rows; 0.1 where they are zero.

    Parameters
    ----------
    blocks : iterable of Rows or of the like
        Without repeated columns, else unchecked. No more are taken than are needed.
    """
    values, n_rows = [], 0
    for rows in blocks:
        n = min(len(rows.indptr) - 1, ROWS_MEASURED - n_rows)
        values.append(rows.data[: rows.indptr[n]])
        n_rows += n
        if n_rows == ROWS_MEASURED:
            break
    # In one sum: where a block ends is to change no bit.
    scale = 0.1 * _two_norm(np.concatenate(values)) / sqrt(max(n_rows, 1))
    return scale if 0.0 < scale < inf else 0.1


def _two_norm(values: np.ndarray) -> float:
    """Safe against squares too large or too small; a power of two goes through it to the bit."""
    peak = float(np.abs(values).max(initial=0.0))
    if not 0.0 < peak < inf:
        return peak
    exponent = frexp(peak)[1] - 1
    scaled = np.ldexp(values.astype(np.float64), -exponent)
    return sqrt(float(np.einsum("i,i->", scaled, scaled))) * 2.0**exponent
