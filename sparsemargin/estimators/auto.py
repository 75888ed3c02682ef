"""`AutoClassifier`, which selects an algorithm by the training rows, as `fit_csr(X, y)` does."""

from __future__ import annotations

import warnings
from math import ceil
from operator import attrgetter
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sparsemargin._engine.fitting.task import Positives
from sparsemargin._engine.messages import warn_user
from sparsemargin.estimators import validation as given
from sparsemargin.estimators.classifiers import AROWClassifier, Classifier, as_classifier
from sparsemargin.estimators.targets import found_targets, targets_among
from sparsemargin.models import find_algorithm, without_defaults
from sparsemargin.models.inputs.class_weights import counted_rows
from sparsemargin.models.inputs.rows import open_rows
from sparsemargin.models.selection import select, settled

# AROW is trained for at least this many trials if its training error after fewer is above
# `_UNLEARNED`.
_ENOUGH_TRIALS, _UNLEARNED = 3000, 0.1


def fit_default(X: Any, y: Any, sample_weight: Any, params: dict[str, Any]) -> Classifier:
    """Fit the classifier that the parameters settle, or that is selected by the training rows."""
    params = _settings(params)
    find_algorithm(None, params)  # raises an error for unknown parameters
    chosen = settled(params)
    reader = AROWClassifier(**(params if chosen is None else {}))
    reader.check_parameters()
    rows, labels = reader._check_input(X, y, None)
    targets, classes = found_targets(labels)
    y = labels if isinstance(labels, np.ndarray) else y  # warnings on labels appear only once
    weights = given.check_weights(sample_weight, rows.shape[0])
    chosen = chosen or select(open_rows(rows), targets, classes, params, weights)
    if "max_iter" in params:
        return as_classifier(chosen.learner(params)).fit(X, y, sample_weight)
    # Rows of weight 0 are ignored.
    counted = counted_rows(params.get("class_weight"), classes, targets, weights)
    if counted is None:
        counted = np.ones(rows.shape[0], dtype=bool)
    n_rows, counts = int(np.count_nonzero(counted)), None
    if not isinstance(targets, Positives):
        counts = np.bincount(targets[counted], minlength=len(classes))
    epochs, more = chosen.epochs_of(n_rows, counts), 0
    model = as_classifier(chosen.learner({**params, "max_iter": epochs}))
    if chosen.algorithm == "arow" and isinstance(labels, np.ndarray):
        more = ceil(_ENOUGH_TRIALS / max(1, n_rows))
    if more <= epochs:
        return model.fit(X, y, sample_weight)
    # Warnings are held back, as they may no longer apply after training for more epochs.
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UserWarning)
        model.fit(X, y, sample_weight)
    # Early stopping may have ended the fit before.
    if model.n_iter_ >= epochs and np.mean((model.predict(X) != labels)[counted]) > _UNLEARNED:
        return model.set_params(max_iter=more).fit(X, y, sample_weight)
    for each in told:
        warn_user(each.message)
    return model


def _of_the_taken(name: str, doc: str) -> Any:
    """Return a property that reads an attribute of the selected classifier."""
    return property(attrgetter(f"best_estimator_.{name}"), doc=doc)


def _settings(params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that differ from their defaults, without ``max_iter="auto"``."""
    params = without_defaults(params)
    if params.get("max_iter") == "auto":
        del params["max_iter"]
    return params


class AutoClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that selects its algorithm by progressive validation, as ``fit_csr(X, y)`` does.

    The default algorithm is AROW. Three alternatives are compared with it on at most 10,000 rows in
    random order. In progressive validation each row is predicted just before the model is trained
    on it. An alternative is selected if its error is lower by two standard errors of the
    difference:

    - AROW with ``r=1, max_loss=0.5``, for label noise;
    - the p-norm Perceptron with p = 2 ln n_features, for few informative features among very many;
    - the Second-order Perceptron, for correlated features.

    On sparse rows such as texts, with less than 2 % nonzero entries, the Second-order Perceptron is
    not tried. No alternative is tried there if AROW's error on the first 1,000 rows is at most 10 %
    and below that of always predicting the most frequent class.

    Fewer than 500 rows are too few for a comparison. The Second-order Perceptron is then used if
    more than 15 % of the entries are nonzero and there are fewer than 1,000 features or the rows
    are almost parallel, otherwise AROW. Multilabel problems always use AROW.

    Parameters
    ----------
    max_iter : float, None or "auto", default="auto"
        Number of epochs, as in the classifiers. "auto": one epoch for AROW. It is two for more than
        two classes, for multilabel targets, or if the rarer of two classes has fewer than 500 rows,
        and three if that class has fewer than 100 rows. Few rows are repeated until there are 1,000
        trials, or 3,000 if the training error is then above 10 %. For the alternatives it is five
        epochs, or as many as make 3,000 trials.
    fit_intercept, intercept_scaling, class_weight, shuffle, n_jobs, verbose
        As in `AROWClassifier`. In the comparison, errors are weighted by the weight of their class.
    random_state : int, RandomState instance or None, default=None
        Seed of the shuffling. The selection does not depend on it.

    Attributes
    ----------
    best_estimator_ : classifier
        The selected classifier, fitted.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only if X has feature names.

    See Also
    --------
    AROWClassifier : The default algorithm.

    References
    ----------
    A. Blum, A. Kalai and J. Langford. Beating the hold-out: bounds for k-fold and progressive
    cross-validation. COLT 1999.

    Examples
    --------
    >>> from sparsemargin import AutoClassifier
    >>> from sparsemargin.datasets import make_zipf_text
    >>> X, y = make_zipf_text(2000, random_state=0)
    >>> AutoClassifier(random_state=0).fit(X, y).best_estimator_
    AROWClassifier(random_state=0)
    """

    classes_ = _of_the_taken("classes_", "The classes, sorted.")
    n_features_in_ = _of_the_taken("n_features_in_", "Features of the rows.")
    feature_names_in_ = _of_the_taken("feature_names_in_", "Their names, where X had any.")
    n_iter_ = _of_the_taken("n_iter_", "Epochs made.")
    coef_ = _of_the_taken("coef_", "Weights, shape (1, n_features) or (n_classes, n_features).")
    intercept_ = _of_the_taken("intercept_", "Intercepts, shape (1,) or (n_classes,).")

    def __init__(
        self,
        *,
        max_iter: float | Literal["auto"] | None = "auto",
        fit_intercept: bool = True,
        intercept_scaling: float | Literal["auto"] = "auto",
        class_weight: Any = None,
        shuffle: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.shuffle = shuffle
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Select an algorithm and fit its classifier.

        Parameters
        ----------
        X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or labels of each row
            As in `AROWClassifier`.
        sample_weight : array-like of shape (n_samples,), default=None
            As in `AROWClassifier`. Errors in the comparison are also weighted by it.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or an argument is invalid. The model is then unchanged.
        """
        return self._keep(fit_default(X, y, sample_weight, self.get_params()))

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Train on the rows once, in the given order. The first call selects the algorithm.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        classes : array-like of shape (n_classes,), default=None
            All classes that will occur in any call. Required in the first call.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or an argument is invalid.
        """
        if hasattr(self, "best_estimator_"):
            self.best_estimator_.partial_fit(X, y, classes, sample_weight)
            return self
        params = _settings(self.get_params())
        AROWClassifier(**params).check_parameters()
        params["max_iter"] = 1
        reader = AROWClassifier(**params).partial_fit(X, y, classes, sample_weight)
        rows, labels = reader._check_input(X, y, reader.fitted)
        targets = targets_among(labels, reader.classes_, reader.fitted)
        weights = given.check_weights(sample_weight, rows.shape[0])
        chosen = select(open_rows(rows), targets, reader.classes_, params, weights)
        if chosen.algorithm == "arow" and not chosen.settings:
            return self._keep(reader)
        model = as_classifier(chosen.learner(params))
        return self._keep(model.partial_fit(X, y, classes, sample_weight))

    def _keep(self, model: Classifier) -> Self:
        self.best_estimator_ = model
        if self.verbose:
            print(f"AutoClassifier has taken {model!r}")
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class or the labels of every row with the selected classifier."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the outputs of the selected classifier for every row."""
        check_is_fitted(self)
        return self.best_estimator_.decision_function(X)

    def check_probabilities(self) -> bool:
        return not hasattr(self, "best_estimator_") or self.best_estimator_.check_probabilities()

    @available_if(check_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the selected classifier's probabilities, shape (n_samples, n_classes)."""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)

    @available_if(check_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of the probabilities, shape (n_samples, n_classes)."""
        check_is_fitted(self)
        return self.best_estimator_.predict_log_proba(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of the selected classifier on the rows."""
        check_is_fitted(self)
        return self.best_estimator_.score(X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags
