"""Whether another sample would have named the same features: agreement over random splits."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from sparsemargin.evaluation._coef import coef_of
from sparsemargin.evaluation.protocols import ended_by_ctrl_c, list_splits
from sparsemargin.evaluation.strongest import strongest_features


class SelectionStability(NamedTuple):
    """How far splits agree about the strongest features, as `selection_stability` gives it.

    Attributes
    ----------
    frequencies : ndarray of shape (n_features,), float64
        Share of the splits in which a feature is among the strongest, in [0, 1].
    agreement : float
        `mean_jaccard` of the strongest features, in [0, 1].
    effective_numbers : ndarray of shape (n_splits,), float64
        `effective_number` of the weights that each split leads to.
    """

    frequencies: NDArray[np.float64]
    agreement: float
    effective_numbers: NDArray[np.float64]


def selection_stability(
    estimator: Any, X: Any, y: Any, splits: Any, *, top: int = 20, label: Any = None
) -> SelectionStability:
    """Fit on the training part of every split, and compare which features are the strongest.

    A gene that decides on every random part of the samples is worth a look; one that does on some
    may be there by chance.

    Parameters
    ----------
    estimator : classifier
        Clones of it are fitted; they must have `coef_`.
    X : {sparse matrix, array-like} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    splits : iterable of (train, test), cross-validation splitter, or int
        As for `compare_on_splits`; at least two.
    top : int, default=20
        How many features count as the strongest.
    label : object, default=None
        The class whose weights are looked at; needed where there are more than two.

    Returns
    -------
    SelectionStability

    Raises
    ------
    ValueError
        If there are fewer than two splits, `coef_` has no vector for each class, `label` is
        missing or unknown, `top` is less than 1, or a fit fails.

    Examples
    --------
    >>> from sparsemargin import PNormPerceptron
    >>> from sparsemargin.datasets import make_alma_target
    >>> from sparsemargin.evaluation import random_splits
    >>> X, y, *_ = make_alma_target(400, 1, n_relevant=5, random_state=0)
    >>> splits = random_splits(400, train_size=200, test_size=200, n_splits=6, random_state=0)
    >>> model = PNormPerceptron(p=8, shuffle=False)
    >>> found = selection_stability(model, X, y, splits, top=5)
    >>> len(found.frequencies), bool(found.agreement > 0.5)
    (300, True)
    """
    weights = weights_on_splits(estimator, X, y, splits, label=label)
    chosen = _chosen(weights, top)
    return SelectionStability(
        chosen.mean(axis=0),
        mean_jaccard(weights, top),
        np.array([effective_number(vector) for vector in weights]),
    )


def weights_on_splits(
    estimator: Any, X: Any, y: Any, splits: Any, *, label: Any = None
) -> NDArray[np.float64]:
    """The weights that the training part of each split leads to.

    Parameters
    ----------
    estimator, X, y, splits, label
        As for `selection_stability`.

    Returns
    -------
    ndarray of shape (n_splits, n_features), float64

    Raises
    ------
    ValueError
        If `coef_` has no vector for each class, `label` is missing or unknown, or a fit fails.

    Examples
    --------
    >>> from sklearn.svm import LinearSVC
    >>> X, y = np.eye(6), np.array([0, 1, 0, 1, 0, 1])
    >>> weights_on_splits(LinearSVC(), X, y, 3).shape
    (3, 6)
    """
    pairs = list_splits(splits, X, y)
    X = X.tocsr() if issparse(X) else X
    with ended_by_ctrl_c():
        weights = []
        for train, _ in pairs:
            model = clone(estimator).fit(_safe_indexing(X, train), _safe_indexing(y, train))
            weights.append(_weights(model, label))
        return np.array(weights)


def mean_jaccard(weights: ArrayLike, top: int) -> float:
    """How far the strongest features of several models agree.

    Parameters
    ----------
    weights : array-like of shape (n_models, n_features)
        At least two models.
    top : int
        How many features of each count as its strongest.

    Returns
    -------
    float
        Mean over the pairs of models of the features in both sets, divided by those in either:
        from 0, where no two share one, to 1, where all are the same.

    Raises
    ------
    ValueError
        If there are fewer than two models, or `top` is less than 1.

    Examples
    --------
    >>> round(mean_jaccard([[3, 2, 0, 0], [3, 0, 2, 0]], top=2), 3)
    0.333
    """
    return 1 - float(pdist(_chosen(np.asarray(weights, dtype=np.float64), top), "jaccard").mean())


def effective_number(weights: ArrayLike) -> float:
    """Among how many features the squared weights are spread (inverse participation ratio).

    Parameters
    ----------
    weights : array-like of shape (n_features,)

    Returns
    -------
    float
        s features with equal weights and zeros elsewhere give s; NaN where all are zero.

    Examples
    --------
    >>> effective_number([2, -2, 0, 2, 0])
    3.0
    """
    strength = np.abs(np.asarray(weights, dtype=np.float64))
    if not strength.any():
        return np.nan
    # Relative to the largest, whose fourth power may be beyond what a float holds.
    squares = np.square(strength / strength.max())
    return float(squares.sum() ** 2 / np.square(squares).sum())


def _weights(model: Any, label: Any) -> NDArray[np.float64]:
    """The weights for a class of a fitted model."""
    coef = coef_of(model)
    place = _place_of(model, label, coef.shape[0])
    sign = -1.0 if coef.shape[0] == 1 and place == 0 else 1.0
    vector = coef[min(place, coef.shape[0] - 1)]
    return sign * np.ravel(vector.toarray() if issparse(vector) else vector)


def _place_of(model: Any, label: Any, n_vectors: int) -> int:
    classes = list(model.classes_)
    if label is None and n_vectors == 1:
        return 1
    if label not in classes:
        raise ValueError(
            f"label={label!r} is not among the classes {model.classes_.tolist()}. Name the one "
            "whose weights are to be compared."
        )
    return classes.index(label)


def _chosen(weights: NDArray[np.float64], top: int) -> NDArray[np.bool_]:
    """Which features are among the strongest of each model."""
    if len(weights) < 2:
        raise ValueError("One model agrees with itself. Pass at least two models, or two splits.")
    if top < 1:
        raise ValueError(f"top must be 1 or more, got {top}.")
    chosen = np.zeros(weights.shape, dtype=bool)
    for row, vector in zip(chosen, weights, strict=True):
        row[strongest_features(vector, top)] = True
    return chosen
