"""`Rejector`, a classifier that leaves rows without a class if it is not confident enough."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sparsemargin._engine.state import require
from sparsemargin.estimators.validation import check_labels, check_weights
from sparsemargin.models.fitted.new_classes import joined_classes
from sparsemargin.models.fitted.outputs import (
    check_rejection,
    codes_of,
    confidence_of,
    least_confidence,
    rejection,
)
from sparsemargin.models.fitted.probabilities import LEAST_TRIALS
from sparsemargin.models.fitted.rejecting import Rejection, label_unlike
from sparsemargin.models.learner import Learner
from sparsemargin.models.pipelines import labels_for, parts_of


class Rejector(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier that rejects rows for which its prediction is too uncertain.

    A row gets a class if its confidence, the output of the predicted class, reaches a threshold.
    The threshold is the smallest one for which the share of errors among the accepted rows is at
    most `max_error`. It is found on rows on which the model had not been trained: the same rows to
    which `predict_proba` is fitted, or, for a frozen estimator, the rows of `fit`. Rows of an
    unknown class often have small outputs for all classes, whereas probabilities sum to 1 for any
    row. If no threshold that accepts at least ten rows has so few errors, all rows are rejected,
    with a warning. `score` counts rejected rows as errors.

    Parameters
    ----------
    estimator : classifier of this library, including TextClassifier, or pipeline that ends in one
        Classifier of which a clone is fitted. A fitted one in `sklearn.frozen.FrozenEstimator` is
        used without fitting it again, and the threshold is found on the rows that are passed to
        `fit`. The classifier must not have been trained on these rows.
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
    >>> from sparsemargin import AROWClassifier, Rejector
    >>> from sparsemargin.datasets import make_zipf_text
    >>> X, y = make_zipf_text(6000, n_classes=5, random_state=0)
    >>> model = Rejector(AROWClassifier(random_state=0), max_error=0.02).fit(X[:5000], y[:5000])
    >>> answers = model.predict(X[5000:])
    >>> answered = answers != model.unknown_
    >>> bool((answers != y[5000:])[answered].mean() < 0.04)
    True
    """

    # Metadata routing of scikit-learn would otherwise drop the weights: `fit` does not name them.
    __metadata_request__fit: ClassVar = {"sample_weight": None}

    def __init__(self, estimator: Any, *, max_error: float = 0.05, unknown: Any = None) -> None:
        self.estimator = estimator
        self.max_error = max_error
        self.unknown = unknown

    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> Self:
        """Fit the classifier and find the threshold.

        Parameters
        ----------
        X : {sparse matrix, array-like} of shape (n_samples, n_features), or input of the estimator
        y : array-like of shape (n_samples,)
            Class labels, as for `fit` of the estimator: a `TextClassifier` also takes the name of a
            column, a `CellClassifier` also None.
        **fit_params
            Arguments such as `sample_weight`, passed to `fit` of the estimator. A frozen estimator
            is not fitted, and only `sample_weight` is allowed.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter is invalid, or there are fewer than 30 rows, or the classifier is not
            frozen and has no `predict_proba`.
        TypeError
            If the estimator is not a classifier of this library, or is frozen and there are
            `fit_params` other than `sample_weight`.

        Warns
        -----
        UserWarning
            If all rows are rejected.
        """
        estimator = clone(self.estimator).fit(X, y, **fit_params)
        if isinstance(estimator, FrozenEstimator):
            found = self._threshold_of(estimator, X, y, **fit_params)
        else:
            found = rejection(_model_of(estimator).fitted, self.max_error)
        return self._take(estimator, *found)

    def _threshold_of(
        self, estimator: FrozenEstimator, X: Any, y: Any, sample_weight: Any = None, **others: Any
    ) -> tuple[float, float]:
        """Return the threshold of a fitted estimator on these rows, and the share of accepted
        rows."""
        fitted = _model_of(estimator).fitted
        check_rejection(fitted, self.max_error)
        if others:
            raise TypeError(
                f"A frozen estimator is not fitted, and {min(others)} would have no effect. Pass "
                "sample_weight for the weights of the rows."
            )
        labels = check_labels(labels_for(_thawed(estimator), X, y))
        joined_classes(fitted.classes, labels)  # refuses labels of another type
        if len(labels) < LEAST_TRIALS:
            raise ValueError(
                f"A threshold for a fitted classifier needs {LEAST_TRIALS} rows on which it was "
                f"not trained, got {len(labels)}. Pass more rows."
            )
        codes, confidence = _codes_and_confidence(estimator, X)
        if len(codes) != len(labels):
            raise ValueError(f"X has {len(codes)} rows, and y {len(labels)} labels.")
        weights = check_weights(sample_weight, len(labels))
        weights = np.ones(len(labels)) if weights is None else weights
        if not weights.any():
            raise ValueError("sample_weight is 0 for all rows. Pass a weight above 0.")
        wrong = fitted.classes[codes] != labels
        return least_confidence(confidence, wrong, weights, self.max_error)

    def _take(self, estimator: Any, threshold: float, share: float) -> Self:
        """Set the fitted estimator, its classes, the label of rejected rows, and the threshold. All
        are set at once, because another thread may predict meanwhile."""
        classes = _model_of(estimator).fitted.classes
        unknown = label_unlike(classes, self.unknown)
        self.__dict__.update(
            estimator_=estimator, classes_=classes, unknown_=unknown, threshold_=threshold,
            share_=share,
        )  # fmt: skip
        return self

    def confidence(self, X: Any) -> np.ndarray:
        """Return the confidences, shape (n_samples,): the largest output of each row, or, for two
        classes, the absolute value of the output."""
        check_is_fitted(self)
        return _codes_and_confidence(self.estimator_, X)[1]

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of every row, or `unknown_` for a rejected row, shape (n_samples,)."""
        check_is_fitted(self)
        known = dict(vars(self))  # another thread may fit the model meanwhile
        answers = np.append(known["classes_"], known["unknown_"])
        codes, confidence = _codes_and_confidence(known["estimator_"], X)
        return answers[np.where(confidence < known["threshold_"], len(answers) - 1, codes)]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy. Rejected rows count as errors. `X` and `y` are as for `fit`."""
        check_is_fitted(self)
        return float(super().score(X, self.labels_of(X, y), sample_weight))

    def labels_of(self, X: Any, y: Any) -> Any:
        """Return the labels of `X` that `y` names, or `y` itself, as `fit` of the estimator finds
        them."""
        return labels_for(_thawed(self.estimator_), X, y)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the outputs of the classifier, shape (n_samples,) for two classes, otherwise
        (n_samples, n_classes)."""
        check_is_fitted(self)
        outputs: np.ndarray = self.estimator_.decision_function(X)
        return outputs

    def _has_probabilities(self) -> bool:
        # Access to `predict_proba` raises an AttributeError if there are no probabilities.
        return callable(getattr(self, "estimator_", self.estimator).predict_proba)

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of `classes_`, also for rejected rows, shape (n_samples,
        n_classes)."""
        check_is_fitted(self)
        probabilities: np.ndarray = self.estimator_.predict_proba(X)
        return probabilities

    def saved_wrapper(self) -> tuple[Any, dict[str, Any]]:
        """Return the fitted estimator and the values that model files hold."""
        check_is_fitted(self)
        unknown = np.bytes_(self.unknown) if isinstance(self.unknown, bytes) else self.unknown
        names = "max_error", "threshold_", "share_"
        values = {name: float(getattr(self, name)) for name in names}
        frozen = isinstance(self.estimator_, FrozenEstimator)
        return _thawed(self.estimator_), {**values, "frozen": frozen, "unknown": unknown}

    @classmethod
    def restored(cls, inner: Any, values: dict[str, Any]) -> Self:
        """Return the rejector around a loaded estimator. Invalid values raise a ValueError."""
        model = parts_of(inner)[1]
        sound = isinstance(model, Learner) and not model.fitted.many
        require(sound and not isinstance(inner, Rejector), "a Rejector has no classifier")
        known = Rejection.restored(values, model.fitted.classes)
        inner = FrozenEstimator(inner) if known.frozen else inner
        made = cls(clone(inner), max_error=known.max_error, unknown=known.unknown)
        return made._take(inner, known.threshold, known.share)


def _codes_and_confidence(estimator: Any, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes of the predicted classes and the confidences, shape (n_samples,) each."""
    outputs = estimator.decision_function(X)
    outputs = outputs.reshape(len(outputs), -1)
    return codes_of(_model_of(estimator).fitted, outputs), confidence_of(outputs)


def _thawed(estimator: Any) -> Any:
    return estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator


def _model_of(estimator: Any) -> Any:
    """Return the classifier in a fitted estimator, pipeline or FrozenEstimator."""
    model = parts_of(_thawed(estimator))[1]
    if not isinstance(model, Learner):
        raise TypeError(
            f"{model!r} is no classifier of sparsemargin. Pass one of these, or a pipeline that "
            "ends in one."
        )
    return model
