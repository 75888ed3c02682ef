"""Spaces in model files of the first format: read for one release."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemargin._engine.state import array_of, require

_FLOATS = (
    "scale", "sigma", "norm", "S_peak", "S_slack", "Z", "unit_peak", "threshold", "largest", "mass",
    "bound",
)  # fmt: skip
_COUNTS = (
    "corrections", "begin", "stopped", "idle", "nonzero", "passes", "shift", "flushes", "started",
    "limit", "unmoved",
)  # fmt: skip


def of_today(state: dict[str, Any]) -> dict[str, Any]:
    """The state of a first-order space as it is saved today.

    Raises
    ------
    ValueError
        If the file has weights that this version can't hold.
    """
    if "floats" not in state:
        return state
    if state.get("tiles") is not None:
        raise ValueError(
            "This model file holds the weights of many labels in tiles, which this version of "
            "sparsemargin does not read. Train it again, or load it by version 0.1.0."
        )
    floats = array_of(state, "floats", np.float64, (len(_FLOATS), None))
    n = floats.shape[1]
    counts = array_of(state, "counts", np.int64, (len(_COUNTS), n))
    require(n > 0, "it has no labels")
    labels = dict(zip(_FLOATS, map(np.ascontiguousarray, floats), strict=True))
    labels |= zip(_COUNTS, map(np.ascontiguousarray, counts), strict=True)
    labels["S"] = array_of(state, "sums", np.float64, (n, 3))
    nothing = {name: None for name in ("g", "acc", "synced") if name not in state}
    return {**state, **nothing, "labels": labels}
