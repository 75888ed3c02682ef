"""Which features a linear model rests on, and whether another sample would have named the same."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.base import clone


def weights_on_splits(estimator: Any, X: Any, y: np.ndarray, splits: Iterable) -> np.ndarray:
    """Return the weights that the training part of each split leads to.

    Returns
    -------
    ndarray of shape (n_splits, n_features)
        For two classes; with more, those of the first class.
    """
    return np.array([clone(estimator).fit(X[train], y[train]).coef_[0] for train, _ in splits])


def strongest(weights: np.ndarray, k: int) -> np.ndarray:
    """Return the k features of largest absolute weight, the strongest first."""
    return np.argsort(-np.abs(weights), kind="stable")[:k]


def mean_jaccard(weights: Sequence[np.ndarray], k: int) -> float:
    """Return how far the k strongest features of several models agree, from 0 to 1.

    Mean over the pairs of models of the features in both sets, divided by those in either.
    """
    chosen = np.zeros(np.shape(weights), dtype=bool)
    for row, weight in zip(chosen, weights, strict=True):
        row[strongest(weight, k)] = True
    return 1 - float(pdist(chosen, "jaccard").mean())


def effective_number(weights: np.ndarray) -> float:
    """Return among how many features the squared weights are spread (inverse participation ratio).

    s features with equal weights and zeros elsewhere give s.
    """
    squares = np.square(weights)
    return float(squares.sum() ** 2 / np.square(squares).sum())
