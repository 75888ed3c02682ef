"""Mistakes and test error after each epoch of a training run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state, shuffle

from sparsemargin.estimators.validation import check_sparse
from sparsemargin.models.inputs.labels import refuse_lone
from sparsemargin.models.pipelines import made_rows


class EpochCurve(NamedTuple):
    """Result of `learning_curve_over_epochs`. All arrays have shape (n_epochs,).

    Attributes
    ----------
    epochs : ndarray, int64
        Numbers of epochs after which the run was evaluated.
    mistakes : ndarray, float64
        Sum of `n_corrections_` over all classes so far. NaN if the estimator does not count them.
    test_errors : ndarray, float64
        Fraction of the test rows that are misclassified, in [0, 1].
    """

    epochs: NDArray[np.int64]
    mistakes: NDArray[np.float64]
    test_errors: NDArray[np.float64]


def learning_curve_over_epochs(
    estimator: Any, X: Any, y: Any, X_test: Any, y_test: Any, *,
    epochs: Sequence[int] = (1, 2, 3, 5, 10, 15, 20), shuffle_rows: bool = False,
    random_state: Any = None,
) -> EpochCurve:  # fmt: skip
    """Compute mistakes and test error after given numbers of epochs of one training run.

    This is Figure 2 of Brotto, Gentile & Vitale (2007), whose numbers of epochs are the default.
    The classifier is trained by `partial_fit`, with one call per epoch.

    Parameters
    ----------
    estimator : classifier with `partial_fit`, or pipeline that ends in one
        A clone of it is trained. Its `max_iter` and `shuffle` have no effect. The other steps of a
        pipeline are fitted once, to all of X.
    X, X_test : {sparse matrix, array-like} of shape (n_samples, n_features)
        Training rows and test rows.
    y, y_test : array-like of shape (n_samples,)
        Their labels. All classes must occur in y.
    epochs : sequence of int, default=(1, 2, 3, 5, 10, 15, 20)
        Increasing numbers of epochs.
    shuffle_rows : bool, default=False
        Whether each epoch uses the rows in a new random order instead of the given one.
    random_state : int, RandomState or None, default=None
        Seed of these orders. The `random_state` of the estimator is separate.

    Returns
    -------
    EpochCurve

    Raises
    ------
    ValueError
        If `epochs` are not increasing integers from 1, y has only one class, the estimator has no
        `partial_fit`, or a fit fails.

    Examples
    --------
    >>> from sparsemargin import PNormPerceptron
    >>> from sparsemargin.datasets import make_alma_target
    >>> X, y, X_test, y_test, _ = make_alma_target(200, 200, random_state=0)
    >>> model = PNormPerceptron(p=6, hypothesis="last")
    >>> curve = learning_curve_over_epochs(model, X, y, X_test, y_test, epochs=[1, 3, 9])
    >>> bool((np.diff(curve.mistakes) >= 0).all())
    True
    """
    stops = _check_epochs(epochs)
    X = check_sparse(X)
    estimator, X, X_test = made_rows(estimator, X, y, X_test)
    if not hasattr(estimator, "partial_fit"):
        raise ValueError(f"{type(estimator).__name__} has no partial_fit, by which epochs are run.")
    model, random = clone(estimator), check_random_state(random_state)
    classes, mistakes, errors = np.unique(y), [], []
    refuse_lone(classes, "y")
    for epoch in range(1, int(stops[-1]) + 1):
        rows, labels = shuffle(X, y, random_state=random) if shuffle_rows else (X, y)
        model.partial_fit(rows, labels, classes=classes)
        if epoch in stops:
            mistakes.append(float(np.sum(getattr(model, "n_corrections_", np.nan))))
            errors.append(float(np.mean(model.predict(X_test) != np.asarray(y_test))))
    return EpochCurve(stops, np.array(mistakes), np.array(errors))


def _check_epochs(epochs: ArrayLike) -> NDArray[np.int64]:
    stops = np.asarray(epochs)
    are_integers = stops.ndim == 1 and stops.size > 0 and stops.dtype.kind in "iu"
    if not are_integers or stops[0] < 1 or not (np.diff(stops) > 0).all():
        raise ValueError(
            "epochs must be integers that rise from 1 or more, such as range(1, 11), got "
            f"{epochs!r}."
        )
    return stops.astype(np.int64)
