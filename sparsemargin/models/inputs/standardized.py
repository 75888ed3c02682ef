"""Standardization of the features of dense rows, and weights for rows that are not standardized."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemargin._engine.first_order.linear_space import LinearSpace
from sparsemargin._engine.rows.parts import rows_at
from sparsemargin.models.inputs.rows import Rows, check_rows


def scaling_of(rows: Rows, counted: np.ndarray | None, weights: np.ndarray | None) -> np.ndarray:
    """Return the weighted mean of each feature and 1 / its standard deviation, shape (2,
    n_features). The second number is 0 for features that do not vary.

    `rows` are checked, without duplicate columns. `counted` selects rows; None: all rows.
    """
    if counted is not None:
        rows = rows_at(rows, np.flatnonzero(counted))
        weights = None if weights is None else weights[counted]
    n_rows, columns = rows.n_rows, rows.indices
    # Equal weights become exactly 1.
    weights = np.ones(n_rows) if weights is None else weights / weights.max()
    of_entries = np.repeat(weights, np.diff(rows.indptr)) * (rows.data != 0)

    def summed(numbers: np.ndarray) -> np.ndarray:
        return np.bincount(columns, numbers, rows.n_features)

    # Values are divided by the largest one of the feature, so that their squares do not overflow.
    largest = np.zeros(rows.n_features)
    np.maximum.at(largest, columns, np.abs(rows.data).astype(np.float64))
    largest[largest == 0] = 1.0
    values = rows.data / largest[columns]
    total = weights.sum()
    mean = summed(of_entries * values) / total
    has_zeros = summed((rows.data != 0).astype(np.float64)) < n_rows
    of_zeros = np.where(has_zeros, total - summed(of_entries), 0.0)
    squares = summed(of_entries * (values - mean[columns]) ** 2) + of_zeros * mean**2
    deviation = np.sqrt(np.maximum(squares, 0.0) / total)
    # A deviation this small is a rounding error of the mean: the feature does not vary.
    deviation[deviation <= n_rows * np.finfo(np.float64).eps * np.abs(mean)] = np.inf
    with np.errstate(over="ignore"):
        inverse = 1.0 / deviation / largest
    inverse[~np.isfinite(inverse)] = 0.0
    return np.vstack([mean * largest, inverse])


def standardized(rows: Rows, scaling: np.ndarray) -> Rows:
    """Return rows with standardized features. They store all entries.

    `rows` are checked, without duplicate columns. A ValueError names an entry that overflows.
    """
    n_rows, n_features = rows.n_rows, rows.n_features
    mean, inverse = scaling
    values = np.zeros((n_rows, n_features))
    values[np.repeat(np.arange(n_rows), np.diff(rows.indptr)), rows.indices] = rows.data
    values -= mean
    with np.errstate(over="ignore"):
        values *= inverse
        data = values.ravel().astype(rows.data.dtype, copy=False)
    index = np.int32 if data.size <= np.iinfo(np.int32).max else np.int64
    columns = np.tile(np.arange(n_features, dtype=index), n_rows)
    starts = np.arange(0, data.size + 1, n_features, dtype=index)
    return check_rows(Rows(data, columns, starts, n_features))


def unscaled_space(space: Any, scaling: np.ndarray) -> LinearSpace:
    """Return a space whose outputs for rows are those of `space` for the standardized rows.

    Its weights are those of `space`, divided by the standard deviations. The intercept has a
    coordinate of value 1, and accounts for the means.
    """
    weights = space.weights()
    weights = (weights if isinstance(weights, np.ndarray) else weights.toarray()).astype(np.float64)
    n_features, (mean, inverse) = space.n_features, scaling
    coef = weights[:, :n_features] * inverse
    intercept = weights[:, n_features:].sum(axis=1) * space.bias - coef @ mean
    result = LinearSpace(
        n_features, len(coef), 2.0, np.float64, bias=1.0, slack=0.0, averaged=False,
        normalized=False, log=None,
    )  # fmt: skip
    result.set_dual(np.ascontiguousarray(np.vstack([coef.T, intercept])))
    return result
