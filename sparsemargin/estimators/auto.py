"""`AutoClassifier`, which selects an algorithm by the training rows, as `fit_csr(X, y)` does."""

from __future__ import annotations

from functools import partial, wraps
from operator import attrgetter
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sparsemargin._engine.fitting.task import Positives
from sparsemargin.estimators.classifiers import (
    CLASSIFIERS,
    AROWClassifier,
    Classifier,
    as_classifier,
)
from sparsemargin.models import find_algorithm
from sparsemargin.models.candidates import UNLEARNED
from sparsemargin.models.fitted.in_use import learns
from sparsemargin.models.fitted.outputs import codes_of, predicted
from sparsemargin.models.inputs.rows import check_rows
from sparsemargin.models.inputs.training_set import TrainingSet, counted_rows
from sparsemargin.models.selection import DefaultAlgorithm


def fit_rows(
    X: Any, y: Any, algo: Any, sample_weight: Any, params: dict[str, Any], *,
    of_texts: bool = False, norm: str | None = None,
) -> Classifier:  # fmt: skip
    """Fit the classifier of an algorithm, or the default one, as `sparsemargin.fit_csr` does.

    If rows have the default features of texts (`of_texts`), another classifier is the default. For
    `norm`, see `Learner.finish`.
    """
    if algo is None:
        return fit_default(X, y, sample_weight, params, of_texts=of_texts, norm=norm)
    learner, params = find_algorithm(algo, params)
    model = CLASSIFIERS[learner.classifier](**params)
    if sample_weight is not None and not model.weighs_steps():
        raise ValueError(
            f"algo={algo!r} can't weight its steps. Leave sample_weight out, or choose another."
        )
    model.check_parameters()
    return model.finish(model.train(model.training_set(X, y, sample_weight, None)), norm)


def fit_default(
    X: Any, y: Any, sample_weight: Any, params: dict[str, Any], *,
    of_texts: bool = False, norm: str | None = None,
) -> Classifier:  # fmt: skip
    """Fit the classifier that is determined by the parameters, or selected by the training rows.
    The arguments are those of `fit_rows`."""
    default = DefaultAlgorithm(params, of_texts=of_texts)
    reader = AROWClassifier(**default.params)
    reader.check_parameters()
    data = reader.training_set(X, y, sample_weight, None)
    rows, targets, classes, weights = data.rows, data.targets, data.classes, data.weights
    candidate = default.candidate(rows, targets, classes, weights, whole=True)
    # Rows of weight 0 are ignored.
    weight = params.get("class_weight")
    counted = counted_rows(weight, data.classes, data.targets, data.weights)
    if counted is None:
        counted = np.ones(data.rows.n_rows, dtype=bool)
    n_rows, counts, more = int(np.count_nonzero(counted)), None, 0
    if isinstance(data.targets, Positives):
        candidate = default.for_labels(data.rows, counted)
    else:
        counts = np.bincount(data.targets[counted], minlength=len(data.classes))
        more = 0 if "max_iter" in default.params else candidate.epochs_if_unlearned(n_rows)
    learner = default.learner(candidate, n_rows, counts)
    model = as_classifier(learner).take_over(reader)
    training = model.train(data)
    # A fit that early stopping has ended is not repeated.
    epochs = learner.max_iter or 0.0
    complete = more > epochs and model.n_iter_ >= epochs
    if complete and _wrong(model, data)[counted].mean() > UNLEARNED:
        training = model.set_params(max_iter=more).train(data)
    return model.finish(training, norm)


def _wrong(model: Classifier, data: TrainingSet) -> np.ndarray:
    """Return whether the class of each training row is predicted wrongly, shape (n_rows,)."""
    fitted, rows = model.fitted, check_rows(data.rows, repeats_allowed=True)
    codes = predicted(fitted, rows, model.n_threads(), partial(codes_of, fitted))
    return np.concatenate(codes) != data.targets


def _attribute(name: str) -> Any:
    """Return a property that reads an attribute of the selected classifier."""
    doc = getattr(Classifier, name).__doc__ if hasattr(Classifier, name) else None
    return property(attrgetter(f"best_estimator_.{name}"), doc=doc)


def _method(name: str) -> Any:
    """Return a method that calls the method `name` of the selected classifier."""
    method = getattr(Classifier, name)

    @wraps(method)
    def delegated(self: AutoClassifier, *args: Any, **kwargs: Any) -> Any:
        check_is_fitted(self)
        return getattr(self.best_estimator_, name)(*args, **kwargs)

    return delegated


class AutoClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that selects its algorithm by progressive validation, as ``fit_csr(X, y)`` does.

    The default algorithm is AROW. Alternatives are compared with it on at most 10,000 rows in
    random order. In progressive validation each row is predicted just before the model is trained
    on it. An alternative is selected if its error is lower by two standard errors of the
    difference:

    - AROW with ``r=1, max_loss=0.5``, for label noise; if the error of AROW exceeds 30 %, a lower
      error is enough;
    - the p-norm Perceptron with p = 2 ln n_features, for few informative features among very many;
    - the Second-order Perceptron, for correlated features;
    - AROW and the Second-order Perceptron with ``standardize=True``, for dense features of unequal
      scale. They are compared with the best of the classifiers above. Rows are dense if at least
      15 % of their entries are nonzero.

    On sparse rows such as texts, with less than 2 % nonzero entries, the Second-order Perceptron is
    not tried. No alternative is tried there if AROW's error on the first 1,000 rows is at most 10 %
    and below that of always predicting the most frequent class.

    If AROW is selected, there are 2,000 rows or more, and less than 15 % of their entries are
    nonzero, AROW is compared with ``prior="naive_bayes"``. Both are trained on the first of at most
    10,000 rows and predict the following ones. The prior is used if its error is lower by 0.75
    standard errors.

    On fewer than 500 dense rows, the default is the Second-order Perceptron if there are fewer
    than 1,000 features or the rows are almost parallel, otherwise AROW. It is compared by 5-fold
    cross-validation with the Second-order Perceptron (``a=4``) and AROW (``r=4``) with
    ``standardize=True``, and with the p-norm Perceptron. The best of these is selected if its error
    is lower by one standard error. Fewer than 500 rows that are not dense always use AROW.
    `partial_fit` never selects ``standardize=True``, which needs all rows.

    Multilabel problems use AROW, in `fit` with balanced class weights and an intercept scale of the
    mean norm of the rows instead of a third of it.

    Parameters
    ----------
    max_iter : float, None or "auto", default="auto"
        Number of epochs, as in the classifiers. "auto": one epoch for AROW. It is two for more than
        two classes, for multilabel targets, or if the rarer of two classes has fewer than 500 rows,
        and three if that class has fewer than 100 rows. Few rows are repeated until there are 1,000
        trials, or 3,000 if the training error is then above 10 %. For the p-norm and Second-order
        Perceptron it is five epochs, or as many as make 3,000 trials.
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
    AROWClassifier(prior='naive_bayes', random_state=0)
    """

    classes_ = _attribute("classes_")
    n_features_in_ = _attribute("n_features_in_")
    feature_names_in_ = _attribute("feature_names_in_")
    n_iter_ = _attribute("n_iter_")
    coef_ = _attribute("coef_")
    intercept_ = _attribute("intercept_")

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

    @learns
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
        default = DefaultAlgorithm(self.get_params())
        reader = AROWClassifier(**default.params)
        reader.check_parameters()
        data = reader.next_training_set(X, y, classes, sample_weight)
        rows, targets, classes, weights = data.rows, data.targets, data.classes, data.weights
        # A prior would count all rows of the call, and there would be no probabilities.
        candidate = default.candidate(rows, targets, classes, weights, prior=False)
        learner = candidate.learner({**default.params, "max_iter": 1})
        model = as_classifier(learner).take_over(reader)
        model.train_once(data)
        return self._keep(model)

    def _keep(self, model: Classifier) -> Self:
        self.best_estimator_ = model
        if self.verbose:
            print(f"AutoClassifier has taken {model!r}")
        return self

    def check_probabilities(self) -> bool:
        return not hasattr(self, "best_estimator_") or self.best_estimator_.check_probabilities()

    predict = _method("predict")
    decision_function = _method("decision_function")
    score = _method("score")
    predict_proba = available_if(check_probabilities)(_method("predict_proba"))
    predict_log_proba = available_if(check_probabilities)(_method("predict_log_proba"))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags
