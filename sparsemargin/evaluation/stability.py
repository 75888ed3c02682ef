"""Stability of the selection of the strongest features over random splits."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing

from sparsemargin._engine.numerics.norms import vectors_of
from sparsemargin.estimators.validation import check_sparse
from sparsemargin.evaluation.weights import coef_of, strongest_features
from sparsemargin.models.pipelines import names_out_of, parts_of


class SelectionStability(NamedTuple):
    """Result of `selection_stability`.

    Attributes
    ----------
    frequencies : ndarray of shape (n_features,), float64
        Fraction of the splits in which a feature is among the strongest, in [0, 1].
    agreement : float
        Mean Jaccard index of the sets of strongest features, over all pairs of splits, in [0, 1].
        0 means that no two splits have a feature in common.
    effective_numbers : ndarray of shape (n_splits,), float64
        Effective number of features of each split (inverse participation ratio of the squared
        weights). It is s for s equal nonzero weights, and NaN if all weights are 0.
    """

    frequencies: NDArray[np.float64]
    agreement: float
    effective_numbers: NDArray[np.float64]


def selection_stability(
    estimator: Any, X: Any, y: Any, splits: Any, *, top: int = 20, label: Any = None
) -> SelectionStability:
    """Fit to the training part of each split and compare the strongest features.

    A gene that is among the strongest in all random splits is a good candidate. A gene that is
    among them in few splits may be there by chance.

    Parameters
    ----------
    estimator : classifier, or pipeline that ends in one
        Clones of it are fitted, which must have `coef_`. The other steps of a pipeline must give
        the same columns on each split.
    X : {sparse matrix, array-like} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    splits : iterable of (train, test), cross-validation splitter, or int
        At least two splits, in any form of scikit-learn's `cv`.
    top : int, default=20
        Number of features that count as the strongest.
    label : object, default=None
        The class whose weights are compared. It is required for more than two classes. None: the
        only weight vector of two classes.

    Returns
    -------
    SelectionStability

    Raises
    ------
    ValueError
        If there are fewer than two splits, their columns differ, `coef_` has no vector for each
        class, `label` is missing or unknown, `top` is less than 1, or a fit fails.

    Examples
    --------
    >>> from sklearn.model_selection import ShuffleSplit
    >>> from sparsemargin import PNormPerceptron
    >>> from sparsemargin.datasets import make_alma_target
    >>> X, y, *_ = make_alma_target(400, 1, n_relevant=5, random_state=0)
    >>> splits = ShuffleSplit(6, train_size=0.5, test_size=0.5, random_state=0)
    >>> model = PNormPerceptron(p=8, shuffle=False)
    >>> found = selection_stability(model, X, y, splits, top=5)
    >>> len(found.frequencies), bool(found.agreement > 0.5)
    (300, True)
    """
    if top < 1:
        raise ValueError(f"top must be 1 or more, got {top}.")
    X = check_sparse(X)  # before scipy slices it
    pairs = list(check_cv(splits, y, classifier=True).split(X, y))
    if len(pairs) < 2:
        raise ValueError("One model agrees with itself. Pass at least two splits.")
    X = X.tocsr() if issparse(X) else X
    first_names: Any = None
    chosen: list[NDArray[np.bool_]] = []
    effective_numbers = []
    for train, _ in pairs:
        model = clone(estimator).fit(_safe_indexing(X, train), _safe_indexing(y, train))
        before, last = parts_of(model)
        names: Any = None if before is None else names_out_of(before)
        if not chosen:
            first_names = names
        elif not np.array_equal(first_names, names):
            raise ValueError(
                "The steps before the last of the pipeline make other columns on each split. "
                "Fit them to all rows, and pass what they make: "
                "pipeline[:-1].fit_transform(X, y)."
            )
        strength = _strength(last, label)
        chosen.append(np.zeros(len(strength), dtype=bool))
        chosen[-1][strongest_features(strength, top)] = True
        effective_numbers.append(_effective_number(strength))
    agreement = 1 - float(pdist(chosen, "jaccard").mean())
    return SelectionStability(np.mean(chosen, axis=0), agreement, np.array(effective_numbers))


def _strength(model: Any, label: Any) -> NDArray[np.float64]:
    """Return the absolute weights of a class. With two classes, both have the same."""
    coef, classes = coef_of(model), list(model.classes_)
    if label is None and coef.shape[0] == 1:
        label = classes[1]
    if label not in classes:
        raise ValueError(
            f"Each class has weights of its own. Pass label=, the one of {model.classes_.tolist()} "
            f"whose are to be compared; got {label!r}."
        )
    (vector,) = vectors_of(coef[[min(classes.index(label), coef.shape[0] - 1)]])
    return np.abs(vector)


def _effective_number(strength: NDArray[np.float64]) -> float:
    if not strength.any():
        return np.nan
    # Weights are divided by the largest one, because its fourth power may overflow.
    squares = np.square(strength / strength.max())
    return float(squares.sum() ** 2 / np.square(squares).sum())
