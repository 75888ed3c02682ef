"""Whether another sample would have named the same features: agreement over random splits."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from sparsemargin._engine.fitting.task import vectors_of
from sparsemargin.evaluation.protocols import ended_by_ctrl_c, list_splits
from sparsemargin.evaluation.weights import coef_of, strongest_features


class SelectionStability(NamedTuple):
    """How far splits agree about the strongest features, as `selection_stability` gives it.

    Attributes
    ----------
    frequencies : ndarray of shape (n_features,), float64
        Share of the splits in which a feature is among the strongest, in [0, 1].
    agreement : float
        Mean Jaccard index, over the pairs of splits, of their strongest features: those in both
        sets, divided by those in either. From 0, where no two share one, to 1.
    effective_numbers : ndarray of shape (n_splits,), float64
        Among how many features the squared weights of each split are spread (their inverse
        participation ratio): s for s equal weights and zeros elsewhere, NaN for zeros only.
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
    if top < 1:
        raise ValueError(f"top must be 1 or more, got {top}.")
    pairs = list_splits(splits, X, y)
    if len(pairs) < 2:
        raise ValueError("One model agrees with itself. Pass at least two splits.")
    X = X.tocsr() if issparse(X) else X
    chosen: list[NDArray[np.bool_]] = []
    effective_numbers = []
    with ended_by_ctrl_c():
        for train, _ in pairs:
            model = clone(estimator).fit(_safe_indexing(X, train), _safe_indexing(y, train))
            strength = _strength(model, label)
            chosen.append(np.zeros(len(strength), dtype=bool))
            chosen[-1][strongest_features(strength, top)] = True
            effective_numbers.append(_effective_number(strength))
    agreement = 1 - float(pdist(chosen, "jaccard").mean())
    return SelectionStability(np.mean(chosen, axis=0), agreement, np.array(effective_numbers))


def _strength(model: Any, label: Any) -> NDArray[np.float64]:
    """Absolute weights of a fitted model for a class; of two classes they are the same for both."""
    coef, classes = coef_of(model), list(model.classes_)
    if label is None and coef.shape[0] == 1:
        label = classes[1]
    if label not in classes:
        raise ValueError(
            f"label={label!r} is not among the classes {model.classes_.tolist()}. Name the one "
            "whose weights are to be compared."
        )
    (vector,) = vectors_of(coef[[min(classes.index(label), coef.shape[0] - 1)]])
    return np.abs(vector)


def _effective_number(strength: NDArray[np.float64]) -> float:
    if not strength.any():
        return np.nan
    # Relative to the largest, whose fourth power may be beyond what a float holds.
    squares = np.square(strength / strength.max())
    return float(squares.sum() ** 2 / np.square(squares).sum())
