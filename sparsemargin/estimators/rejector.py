"""`Rejector`, a classifier that leaves rows without a class if it is not confident enough."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from sparsemargin.models.fitted.outputs import codes_of, confidence_of, rejection
from sparsemargin.models.inputs.labels import label_text
from sparsemargin.models.pipelines import parts_of


class Rejector(MetaEstimatorMixin, BaseEstimator):
    """A classifier that rejects rows for which its prediction is too uncertain.

    A row gets a class if its confidence, the output of the predicted class, reaches a threshold.
    The threshold is the smallest one for which the share of errors among the accepted rows is at
    most `max_error`. It is found on rows on which the model had not been trained, the same rows to
    which `predict_proba` is fitted. Rows of an unknown class mostly have small outputs for all
    classes, whereas probabilities sum to 1 for any row. If no threshold that accepts at least ten
    rows has so few errors, all rows are rejected, with a warning.

    Parameters
    ----------
    estimator : classifier of this library, `AutoClassifier`, or pipeline that ends in one
        Classifier of which a clone is fitted. A fitted one in `sklearn.frozen.FrozenEstimator` is
        used without fitting it again.
    max_error : float, default=0.05
        Largest share of errors among the accepted rows, from 0 to 1.
    unknown : label, default=None
        Prediction for rejected rows, of the same type as the classes. None: -1, or "unknown" if the
        classes are text.

    Attributes
    ----------
    estimator_ : classifier or pipeline
        The fitted estimator.
    classes_ : ndarray of shape (n_classes,)
        The classes, without `unknown_`.
    unknown_ : label
        The prediction for rejected rows.
    threshold_ : float
        Least confidence of an accepted row; infinite if all rows are rejected.
    share_ : float
        Share of accepted rows among those on which the threshold was found.

    See Also
    --------
    sklearn.model_selection.FixedThresholdClassifier : Another decision threshold for two classes.

    Examples
    --------
    >>> from sparsemargin import AROWClassifier
    >>> from sparsemargin.datasets import make_zipf_text
    >>> from sparsemargin.evaluation import Rejector
    >>> X, y = make_zipf_text(6000, n_classes=5, random_state=0)
    >>> model = Rejector(AROWClassifier(random_state=0), max_error=0.02).fit(X[:5000], y[:5000])
    >>> answers = model.predict(X[5000:])
    >>> answered = answers != model.unknown_
    >>> bool((answers != y[5000:])[answered].mean() < 0.04)
    True
    """

    def __init__(self, estimator: Any, *, max_error: float = 0.05, unknown: Any = None) -> None:
        self.estimator = estimator
        self.max_error = max_error
        self.unknown = unknown

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:
        """Fit the classifier and find the threshold.

        Parameters
        ----------
        X : {sparse matrix, array-like} of shape (n_samples, n_features), or input of the pipeline
        y : array-like of shape (n_samples,)
            Class labels.
        **fit_params
            Arguments such as `sample_weight`, passed to `fit` of the estimator.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter is invalid, or the classifier has no `predict_proba` or was trained on
            fewer than 30 rows.
        """
        estimator = clone(self.estimator).fit(X, y, **fit_params)
        fitted = _model_of(estimator).fitted
        threshold, share = rejection(fitted, self.max_error)
        classes, unknown = fitted.classes, self.unknown
        # Classes from a column of a table may be str objects in an array of dtype object.
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
        """Return the confidences, shape (n_samples,): the largest output of each row, or, for two
        classes, the absolute value of the output."""
        return self._answers(X)[1]

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of every row, or `unknown_` for a rejected row, shape (n_samples,)."""
        codes, confidence = self._answers(X)
        answers = np.append(self.classes_, self.unknown_)
        return answers[np.where(confidence < self.threshold_, len(self.classes_), codes)]

    def _answers(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self)
        outputs = self.estimator_.decision_function(X)
        fitted = _model_of(self.estimator_).fitted
        outputs = outputs.reshape(len(outputs), -1)
        return codes_of(fitted, outputs), confidence_of(outputs)


def _model_of(estimator: Any) -> Any:
    """Return the classifier in a fitted estimator, pipeline or FrozenEstimator."""
    return parts_of(getattr(estimator, "estimator", estimator))[1]
