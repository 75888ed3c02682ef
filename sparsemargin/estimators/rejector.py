"""What a classifier does not know: rows that it leaves without a class."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from sparsemargin.models.fitted.outputs import codes_of, confidence_of, rejection
from sparsemargin.models.inputs.labels import label_text
from sparsemargin.models.pipelines import parts_of


class Rejector(MetaEstimatorMixin, BaseEstimator):
    """A classifier that says "don't know" where too many of its answers would be wrong.

    It answers where its confidence, the output of the class, reaches a threshold. That is the least
    one at which no larger share of rows was answered wrongly, among rows that the model had not
    learned: those that `predict_proba` is fitted to. Rows of a class that it has never met mostly
    have small outputs for all others, whereas probabilities add up to 1 for any row. A warning
    says so where no threshold has so few errors; all rows are then left without a class.

    Parameters
    ----------
    estimator : classifier of this library, `AutoClassifier`, or pipeline that ends in one
        A clone of it is fitted. In `sklearn.frozen.FrozenEstimator` it is taken as it is.
    max_error : float, default=0.05
        The share of wrong answers among those given, from 0 to 1.
    unknown : label, default=None
        What rows without an answer are given, of the type of the classes. None: -1, or
        "unknown" where classes are text.

    Attributes
    ----------
    estimator_ : classifier or pipeline
        The fitted one.
    classes_ : ndarray of shape (n_classes,)
        Those that are told apart.
    unknown_ : label
    threshold_ : float
        The least confidence of an answer; infinite where none is sure enough.
    share_ : float
        Of the rows of which it was found, those that are answered.

    See Also
    --------
    sklearn.model_selection.FixedThresholdClassifier : Two classes, told apart elsewhere.

    Examples
    --------
    >>> from sparsemargin import AROWClassifier
    >>> from sparsemargin.datasets import make_zipf_text
    >>> from sparsemargin.evaluation import Rejector
    >>> X, y = make_zipf_text(6000, n_classes=5, random_state=0)
    >>> model = Rejector(AROWClassifier(random_state=0), max_error=0.02).fit(X[:5000], y[:5000])
    >>> told = model.predict(X[5000:])
    >>> answered = told != model.unknown_
    >>> bool((told != y[5000:])[answered].mean() < 0.04)
    True
    """

    def __init__(self, estimator: Any, *, max_error: float = 0.05, unknown: Any = None) -> None:
        self.estimator = estimator
        self.max_error = max_error
        self.unknown = unknown

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:
        """Fit the classifier, and find the threshold.

        Parameters
        ----------
        X : {sparse matrix, array-like} of shape (n_samples, n_features), or what a pipeline takes
        y : array-like of shape (n_samples,)
        **fit_params
            As `sample_weight`, for the classifier.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter can't be used, or the classifier has no `predict_proba`, or has learned
            fewer than 30 rows.
        """
        estimator = clone(self.estimator).fit(X, y, **fit_params)
        fitted = _model_of(estimator).fitted
        threshold, share = rejection(fitted, self.max_error)
        classes, unknown = fitted.classes, self.unknown
        # A column of a table has words as objects.
        are_words = isinstance(classes.tolist()[0], str | bytes)
        if unknown is None:
            unknown = "unknown" if are_words else -1
        unknown = np.asarray(unknown)
        if unknown.ndim or isinstance(unknown.item(), str | bytes) != are_words:
            raise ValueError(
                f"unknown={self.unknown!r} is not of the type of the classes, such as "
                f"{label_text(classes.tolist()[0])!r}. Pass such a label."
            )
        if unknown in classes:
            raise ValueError(f"unknown={unknown.item()!r} is one of the classes. Pass another.")
        self.estimator_, self.classes_, self.unknown_ = estimator, classes, unknown.item()
        self.threshold_, self.share_ = threshold, share
        return self

    def confidence(self, X: Any) -> np.ndarray:
        """How sure the answers are, shape (n_samples,): the largest output of a row, or the size of
        the only one of two classes."""
        return self._answers(X)[1]

    def predict(self, X: Any) -> np.ndarray:
        """The class of every row, or `unknown_`, shape (n_samples,)."""
        codes, confidence = self._answers(X)
        told = np.append(self.classes_, self.unknown_)
        return told[np.where(confidence < self.threshold_, len(self.classes_), codes)]

    def _answers(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self)
        outputs = self.estimator_.decision_function(X)
        fitted = _model_of(self.estimator_).fitted
        outputs = outputs.reshape(len(outputs), -1)
        return codes_of(fitted, outputs), confidence_of(outputs)


def _model_of(estimator: Any) -> Any:
    """The classifier that answers."""
    return parts_of(getattr(estimator, "estimator", estimator))[1]
