"""scikit-learn classifiers: their shared base class, and one class for each algorithm.

This module imports scikit-learn. Code that must start without scikit-learn imports it on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_consistent_length, validate_data

from sparsemargin._checks import check_no_iterator
from sparsemargin._engine.fitting.task import Positives
from sparsemargin._engine.fitting.threads import interruptible, uninterrupted
from sparsemargin.estimators import validation as given
from sparsemargin.estimators.coefficients import CoefficientMixin
from sparsemargin.estimators.docstrings import docstring_for, without_weights
from sparsemargin.estimators.probabilities import ProbabilityMixin
from sparsemargin.estimators.validation import check_classes, check_sparse, encoded_targets
from sparsemargin.models.algorithms.alma import ALMA
from sparsemargin.models.algorithms.arow import AROW
from sparsemargin.models.algorithms.cramma import CRAMMA
from sparsemargin.models.algorithms.higher_order import HigherOrder
from sparsemargin.models.algorithms.margin_perceptron import Margin
from sparsemargin.models.algorithms.max_margin import MaxMargin
from sparsemargin.models.algorithms.pnorm_perceptron import PNorm
from sparsemargin.models.algorithms.romma import ROMMA
from sparsemargin.models.algorithms.second_order import SecondOrder
from sparsemargin.models.fitted.in_use import asks, learns
from sparsemargin.models.fitted.outputs import (
    choice_of,
    codes_of,
    finite_outputs,
    predicted,
    ranked,
)
from sparsemargin.models.fitted.state import Fitted
from sparsemargin.models.inputs.labels import (
    Choice,
    MultilabelEncoder,
    concatenate_labels,
)
from sparsemargin.models.inputs.multilabel_targets import multilabel_targets
from sparsemargin.models.inputs.rows import Rows, check_rows, open_rows
from sparsemargin.models.inputs.training_set import TrainingSet
from sparsemargin.models.kernels import Precomputed
from sparsemargin.models.learner import Learner


class Classifier(ClassifierMixin, BaseEstimator, CoefficientMixin, ProbabilityMixin):
    """Base class of all classifiers. It is not meant to be used directly."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        for name in ("fit", "partial_fit"):
            method = getattr(Classifier, name)
            if getattr(cls, name) is method and not cls.weighs_steps():
                setattr(cls, name, without_weights(method))
        if Classifier in cls.__bases__:
            cls.__doc__ = docstring_for(Classifier, cls.__bases__[1])
        super().__init_subclass__(**kwargs)

    @learns
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model to X and y, from scratch unless `warm_start` is set.

        Ctrl-C raises KeyboardInterrupt, and the model is then as before the call.

        Parameters
        ----------
        X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_samples, n_features)
            A CSR matrix of float32 or float64 with int32 or int64 indices is used without a copy,
            even if it is read-only or memory-mapped. Anything else is converted. No other thread or
            process may write to its arrays, or to the file from which they are mapped, until the
            call returns: the arrays are checked only once, and indices that change afterwards would
            access memory outside the model.
        y : array-like of shape (n_samples,), or labels of each row
            Class labels, numbers or strings. First-order classifiers without a kernel also accept
            multilabel targets: a dense or sparse indicator of shape (n_samples, n_labels) with
            entries 0 and 1, or a list of labels for each row. Each label is a separate problem.
            Lists that consist of 0 and 1, and have the same length of at least 2, are the rows of
            an indicator, unless a model of lists continues under `warm_start`. A dense array with
            one column has one class for each row.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, which are multiplied by the weights of their classes (see
            `class_weight`). A row of weight 0 is left out. Weights are relative to their mean. In
            `partial_fit` they are relative to the mean of the first call, or to 1 if that call had
            no weights.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or an argument is invalid. The message names the place and a remedy. The
            model is then unchanged.
        RuntimeError
            If another thread is using the model, or a callable kernel calls the model that uses it.
            Different models may be fitted in parallel threads.
        """
        self.check_parameters()
        with self._all_or_nothing():
            earlier = self.state if self.warm_start else None
            data = self.training_set(X, y, sample_weight, earlier)
            if earlier is not None:
                self.check_structure("warm_start")
                self.restore(earlier.copied())
            return self.finish(self.train(data, resume=earlier is not None))

    def training_set(
        self, X: Any, y: Any, sample_weight: Any, before: Fitted | None,
        n_columns: int | None = None, classes_of: Callable[[Any], np.ndarray] | None = None,
    ) -> TrainingSet:  # fmt: skip
        """Return checked rows, encoded targets and weights for training.

        `before` is the state of the model from which training resumes, or None. `n_columns` is the
        number of columns of an indicator that may be given as lists. `classes_of` returns the
        classes for the labels of y; None: those of `before`, or those that occur in y.
        """
        sparse, form = issparse(X), None
        X = self._check_X(X, reset=before is None)
        plain = type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biu"
        if not (plain and y.dtype.isnative):
            y = check_sparse(y, "y")
            many = multilabel_targets(y, 0 if before and before.form == "lists" else n_columns)
            y, form = (given.check_labels(y), None) if many is None else (many, many.form)
        if y.shape[0] != X.shape[0]:
            check_consistent_length(X, y)
        if form is not None and not self.supports_multilabel:
            self.refuse_multilabel()
        weights = given.check_weights(sample_weight, X.shape[0])
        known = None if before is None else before.classes
        known = known if classes_of is None else classes_of(y)
        targets, classes = encoded_targets(y, before, known)
        return TrainingSet(open_rows(X), targets, classes, form, weights, sparse)

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Restore all attributes if an exception is raised, such as KeyboardInterrupt. Another
        Ctrl-C does not prevent that."""
        before = dict(self.__dict__)
        with uninterrupted():
            try:
                with interruptible():
                    yield
            except BaseException:
                self.__dict__ = before
                raise

    @learns
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Train on the rows of X once, in the given order.

        Any split of the same rows into batches gives the same model bit for bit. It equals that of
        one epoch of `fit` with ``shuffle=False``, if `intercept_scaling` is a number or the first
        batch has the 100 rows that ``intercept_scaling="auto"`` measures. Exceptions: the prior of
        `AROWClassifier` counts the rows of the first call, and `CRAMMAClassifier` needs `radius` to
        equal `fit`. With `soft_margin`, every row of every call gets a new coordinate. `max_iter`,
        `max_corrections`, `tol`, `early_stopping` and `shuffle` do not apply. Parameters that are
        changed after the first call take effect in the next `fit`. Ctrl-C raises KeyboardInterrupt;
        the model has then been trained on the first of the rows, or on none in the first call.

        Parameters
        ----------
        X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_samples, n_features)
            As for `fit`.
        y : array-like of shape (n_samples,), or labels of each row
            Labels, all among `classes`, or several labels for each row, as for `fit`. Lists of 0
            and 1 are taken for the rows of an indicator in the first call only if `classes` is None
            or 0, 1, ..., the columns of the indicator. A model that was fitted to lists takes all
            lists for labels.
        classes : array-like of shape (n_classes,), default=None
            All classes that will occur in any call. Required in the first call, and optional later
            and for an indicator, whose columns are the classes.
        sample_weight : array-like of shape (n_samples,), default=None
            As for `fit`.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            As for `fit`, or if a label is not among the classes. The model is then unchanged,
            except if the values of a row are too large or the pool of a kernel is full: the model
            has then been trained on the rows before it.
        RuntimeError
            As for `fit`.
        """
        with self._all_or_nothing() if self.state is None else nullcontext():
            if self.state is None:
                self.check_parameters()
            self.train_once(self.next_training_set(X, y, classes, sample_weight))
        return self

    def next_training_set(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> TrainingSet:
        """Return the rows, targets and weights for `partial_fit`, after checking them."""
        before = self.state
        check_no_iterator("classes", classes)
        wanted = None if classes is None else np.unique(given.check_labels(classes))
        n_columns = None
        if before is None and wanted is not None:
            n_columns = len(wanted) if np.array_equal(wanted, np.arange(len(wanted))) else 0
        classes_of = partial(check_classes, before, wanted)
        return self.training_set(X, y, sample_weight, before, n_columns, classes_of)

    def _check_X(self, X: Any, *, reset: bool) -> Any:
        """Return X as CSR with dtypes that the engine takes. The entries are checked later."""
        if given.is_plain_csr(X):
            if reset:  # as `validate_data` does for a matrix without names
                self.n_features_in_ = X.shape[1]
                self.__dict__.pop("feature_names_in_", None)
            elif X.shape[1] != self.n_features_in_ or hasattr(self, "feature_names_in_"):
                validate_data(self, X, reset=False, skip_check_array=True)
            return X
        return given.as_csr(X, partial(validate_data, self), reset=reset)

    @asks
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the outputs of the hypothesis for every row.

        Parameters
        ----------
        X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) for two classes, otherwise (n_samples, n_classes)
            ``w.x``, intercept included, for the row x without normalisation. A multilabel model has
            one column for each label. ``hypothesis="average"``: ``w`` is the sum of the vectors of
            all trials, divided by the number of trials. ``"vote"``: ``sum_k c_k sign(w_k.x)``
            divided by the number of trials, in [-1, 1]. ``"random"``: ``w`` is the vector of one
            trial, the same for all classes, drawn for each row from `random_state` and the row.

        Raises
        ------
        ValueError
            If X is invalid. The message names the place and a remedy.
        RuntimeError
            If another thread is fitting the model, or a callable kernel calls the model that is
            trained with it. Prediction is thread-safe.
        """
        rows, fitted = self.check_test_rows(X), self.fitted
        scores = finite_outputs(fitted, rows, self.n_threads())
        return scores[:, 0] if scores.shape[1] == 1 and not fitted.many else scores

    @asks
    def predict(self, X: Any) -> Any:
        """Predict the class or the labels of every row.

        For two classes this is the sign of the output, for more classes the largest output. A
        multilabel model predicts all labels whose outputs are positive.

        Rows without features have the output 0 if there is no intercept. Among classes that are
        tied at 0, the most frequent one of the training rows is predicted. A multilabel model then
        predicts each label that at least half of the training rows have.

        Parameters
        ----------
        X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), or labels in the form of the y that was passed to `fit`
            The labels are a dense or CSR indicator, or a list of tuples.
        """
        fitted = self.fitted
        if fitted.many:
            return self.predict_labels(X)
        return fitted.classes[self._predicted(self.check_test_rows(X), partial(codes_of, fitted))]

    def _predicted(self, rows: Rows, convert: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return the results of `convert` for the outputs of checked rows."""
        return np.concatenate(predicted(self.fitted, rows, self.n_threads(), convert))

    @asks
    def predict_labels(self, X: Any, *, threshold: Any = None, top_k: int | None = None) -> Any:
        """Predict the labels of every row with a threshold, or the `top_k` most likely classes.

        Parameters
        ----------
        X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_samples, n_features)
        threshold : float, "f1", or array-like of shape (n_labels,), default=None
            Least output of a predicted label. "f1": for each label the threshold with the largest
            expected F1 on the rows to which the probabilities are fitted, which finds more of the
            rare labels. None: as for `predict`, or no threshold if `top_k` is given. For two
            classes, the second is predicted if the output reaches the threshold.
        top_k : int, default=None
            Largest number of labels for each row. Labels with the largest outputs are predicted;
            the first classes win ties. Lists are ordered by decreasing output if `top_k` is given,
            and otherwise as `classes_`.

        Returns
        -------
        ndarray or CSR matrix of shape (n_samples, n_labels), or list of n_samples tuples
            The labels in the form of the y that was passed to `fit`. If each row has one class, the
            result is an ndarray of classes. Its shape is (n_samples,) for two classes and a
            `threshold`, or (n_samples, top_k), with fewer columns if there are fewer classes. The
            first column is the class that `predict` returns.

        Raises
        ------
        ValueError
            If an argument is invalid. If each row has one class, `threshold` must not be passed for
            more than two classes or together with `top_k`, and one of the two is required.
        """
        fitted, form, rows = self.fitted, self.fitted.form, self.check_test_rows(X)
        if form is None:
            if len(fitted.classes) == 2 and top_k is None and threshold is not None:
                return fitted.classes[
                    self._predicted(rows, choice_of(fitted, threshold).lone_codes)
                ]
            if threshold is not None or top_k is None:
                raise ValueError(
                    "The model has learned one class a row, of which predict_labels tells the "
                    "top_k best, whatever their outputs. Pass top_k alone, or call predict; a "
                    "threshold is for two classes, or several labels a row."
                )
            return fitted.classes[self._predicted(rows, partial(ranked, fitted, top_k))]
        chosen = self._labels_of(rows, choice_of(fitted, threshold, top_k))
        return MultilabelEncoder(fitted.classes, form).inverse_transform(chosen)

    def _labels_of(self, rows: Rows, choice: Choice) -> Positives:
        """Return the labels of a multilabel model for checked rows."""
        return concatenate_labels(predicted(self.fitted, rows, self.n_threads(), choice.labels))

    @asks
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy: the share of rows whose class, or exact set of labels, is predicted.

        Parameters
        ----------
        X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or labels of each row
            As for `fit`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows in the average.

        Returns
        -------
        float
            Share from 0 to 1.
        """
        fitted = self.fitted
        y = check_sparse(y, "y")
        many = None
        if fitted.many:
            many = multilabel_targets(y, 0 if fitted.form == "lists" else None)
        if many is None:
            return float(super().score(X, given.check_labels(y), sample_weight))
        rows = self.check_test_rows(X)
        check_consistent_length(X, many, sample_weight)
        labels = self._labels_of(rows, choice_of(fitted))
        matches = MultilabelEncoder(fitted.classes).matches(many, labels)
        return float(np.average(matches, weights=sample_weight))

    def check_test_rows(self, X: Any) -> Rows:
        """Return X as checked rows with the features of the fitted model."""
        space = self.space
        X = self._check_X(X, reset=False)
        # Repeated columns are correct in dot products, but not in the norms that kernels compute.
        return check_rows(open_rows(X), repeats_allowed=not space.has_support)

    def __sklearn_is_fitted__(self) -> bool:
        return self.state is not None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = self.supports_multilabel
        # With this tag, cross-validation also selects the columns of a precomputed kernel.
        precomputed = self.kernel == "precomputed" or isinstance(self.kernel, Precomputed)
        tags.input_tags.pairwise = precomputed
        # scikit-learn's checks with blobs need a tolerant score for three reasons. A hyperplane
        # through the origin can't separate blobs that lie around it. Algorithms that seek a margin
        # end with an arbitrary vector if there is none. ALMA's projection forgets all steps before
        # one that is much longer than 1, which class weights of 1000 and 0.0001 produce.
        forgets = isinstance(self, ALMA)
        tags.classifier_tags.poor_score = not self.has_intercept or self.seeks_margin or forgets
        return tags


class ALMAClassifier(Classifier, ALMA): ...


class AROWClassifier(Classifier, AROW): ...


class CRAMMAClassifier(Classifier, CRAMMA): ...


class HigherOrderPerceptron(Classifier, HigherOrder): ...


class MarginPerceptron(Classifier, Margin): ...


class MaxMarginClassifier(Classifier, MaxMargin): ...


class PNormPerceptron(Classifier, PNorm): ...


class ROMMAClassifier(Classifier, ROMMA): ...


class SecondOrderPerceptron(Classifier, SecondOrder): ...


#: The classifiers by name.
CLASSIFIERS: dict[str, type[Classifier]] = {
    kind.__name__: kind
    for kind in (
        ALMAClassifier, AROWClassifier, CRAMMAClassifier, HigherOrderPerceptron, MarginPerceptron,
        MaxMarginClassifier, PNormPerceptron, ROMMAClassifier, SecondOrderPerceptron,
    )
}  # fmt: skip


def as_classifier(learner: Learner) -> Classifier:
    """Return the classifier of a learner. It takes over the learner's parameters and state."""
    return CLASSIFIERS[learner.classifier](**learner.parameters()).take_over(learner)
