"""Stability of the selection of the strongest features over random splits."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import pdist
from sklearn.base import clone

from sparsemargin.evaluation.vectors import strongest_features
from sparsemargin.plotting.display import Display
from sparsemargin.plotting.features import draw_bars, panel_height
from sparsemargin.plotting.style import colours_on


class SelectionStability(NamedTuple):
    """Result of `selection_stability`.

    Attributes
    ----------
    frequencies : ndarray of shape (n_features,), float64
        Fraction of the splits in which a feature is among the strongest, in [0, 1].
    agreement : float
        Mean Jaccard index of the sets of strongest features, over all pairs of splits, in [0, 1].
    effective_numbers : ndarray of shape (n_splits,), float64
        Effective number of features of each split (inverse participation ratio of the squared
        weights). It is s for s equal nonzero weights.
    """

    frequencies: NDArray[np.float64]
    agreement: float
    effective_numbers: NDArray[np.float64]


def selection_stability(
    estimator: Any, X: Any, y: Any, splits: Any, *, top: int
) -> SelectionStability:
    """Fit a classifier of two classes to the training part of each split, and compare the `top`
    strongest features. `splits` has at least two pairs (train, test)."""
    weights = [clone(estimator).fit(X[train], y[train]).coef_[0] for train, _ in splits]
    chosen = np.zeros((len(weights), X.shape[1]), bool)
    for row, vector in zip(chosen, weights, strict=True):
        row[strongest_features(vector, top)] = True
    squares = np.square([vector / np.abs(vector).max() for vector in weights])
    effective = squares.sum(axis=1) ** 2 / np.square(squares).sum(axis=1)
    agreement = 1 - float(pdist(chosen, "jaccard").mean())
    return SelectionStability(chosen.mean(axis=0), agreement, effective)


class SelectionStabilityDisplay(Display):
    """Fraction of random splits in which a feature is among the strongest, as bars for the `top`
    features that are selected most often."""

    def __init__(
        self, frequencies: ArrayLike, *, feature_names: Any, agreement: float, top: int
    ) -> None:
        self.frequencies = np.asarray(frequencies, dtype=np.float64)
        self.feature_names, self.agreement, self.top = feature_names, agreement, top

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        columns = strongest_features(self.frequencies, self.top)
        (axes,) = self._open(ax, 1, (6.4, panel_height(len(columns))))
        names = [str(self.feature_names[j]) for j in columns]
        percent, style = 100 * self.frequencies[columns], {"color": colours_on(axes)[0]}
        self.bars_ = draw_bars(axes, names, percent, len(columns), style, kwargs)
        axes.set_xlim(0, 100)
        axes.set_xlabel("splits with the feature among the strongest (%)")
        axes.set_title(f"agreement of the splits (mean Jaccard index): {self.agreement:.2f}")
        return self
