"""scikit-learn classifiers: the contract they share, and each made of its algorithm.

Importing this imports scikit-learn, so nothing that starts without it does so at its top.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from operator import attrgetter
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, validate_data

from sparsemargin._engine.fitting.task import Positives
from sparsemargin._engine.fitting.threads import interruptible, uninterrupted
from sparsemargin.estimators import validation as given
from sparsemargin.estimators.validation import check_sparse
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
    probabilities_of,
    ranked,
)
from sparsemargin.models.fitted.probabilities import NO_OUTPUTS
from sparsemargin.models.fitted.state import Beginning, Fitted
from sparsemargin.models.inputs.class_weights import Targets, counted_rows
from sparsemargin.models.inputs.labels import (
    Choice,
    LabelEncoder,
    MultilabelEncoder,
    MultilabelTargets,
    joined,
    multilabel_targets,
    refuse_lone,
    warn_of_many_classes,
)
from sparsemargin.models.inputs.rows import Rows, check_rows, open_rows, refusing
from sparsemargin.models.learner import LARGEST_SEED, Learner
from sparsemargin.models.parameters import declarations, indented

__all__ = [
    "ALMAClassifier",
    "AROWClassifier",
    "CRAMMAClassifier",
    "Classifier",
    "HigherOrderPerceptron",
    "MarginPerceptron",
    "MaxMarginClassifier",
    "PNormPerceptron",
    "ROMMAClassifier",
    "SecondOrderPerceptron",
    "as_classifier",
]


def _without_weights(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method of a classifier that can't weight its steps: without `sample_weight`."""
    signature = inspect.signature(method)
    parameters = [each for each in signature.parameters.values() if each.name != "sample_weight"]
    shown = signature.replace(parameters=parameters)

    @wraps(method)
    def unweighted(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = shown.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(args[0]).__name__}.{method.__name__}(): {error}") from None
        return method(*bound.args, **bound.kwargs)

    unweighted.__signature__ = shown  # type: ignore[attr-defined]
    without = re.sub(r"\n +sample_weight : .*?(?=\n\n)", "", method.__doc__ or "", flags=re.DOTALL)
    unweighted.__doc__ = without
    return unweighted


def found_targets(y: np.ndarray | MultilabelTargets) -> tuple[Targets, np.ndarray]:
    """What a fit from scratch learns, and the classes, which are those of y."""
    many = isinstance(y, MultilabelTargets)
    encoder = MultilabelEncoder() if many else LabelEncoder()
    targets: Targets = encoder.fit_transform(y)
    if not many:
        refuse_lone(encoder.classes, "y")
    return targets, encoder.classes


def targets_among(
    y: np.ndarray | MultilabelTargets, classes: np.ndarray, before: Fitted | None
) -> Targets:
    """What is learned next, among known classes; `before` is what has been learned."""
    many = isinstance(y, MultilabelTargets)
    if before is not None and many != before.many:
        form = "one class a row, but y may have several labels a row"
        if not many:
            form = "any number of labels a row, but y has one class a row"
        raise ValueError(f"The model has learned {form}. Give y as before, or fit anew.")
    return (MultilabelEncoder(classes) if many else LabelEncoder(classes)).transform(y)


def _check_classes(
    before: Fitted | None, wanted: np.ndarray | None, y: np.ndarray | MultilabelTargets
) -> np.ndarray:
    """The classes of a call of partial_fit: those learned before, or wanted, or of y."""
    columns = y.columns if isinstance(y, MultilabelTargets) else None
    if wanted is None:
        known = columns if before is None else before.classes
        if known is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        return known
    if columns is not None and not np.array_equal(wanted, columns):
        raise ValueError(
            f"classes={wanted.tolist()} are not the columns of y, an indicator of "
            f"{len(columns)} labels. Leave classes out."
        )
    if not isinstance(y, MultilabelTargets):
        refuse_lone(wanted, "classes")
    if before is not None and not np.array_equal(wanted, before.classes):
        raise ValueError(
            f"classes={wanted.tolist()} is not the same as on the last call to partial_fit, "
            f"which was {before.classes.tolist()}."
        )
    return wanted


class Classifier(ClassifierMixin, BaseEstimator, Learner):
    """Base of the classifiers that learn row by row; not for use by itself."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        for name in ("fit", "partial_fit"):
            method = getattr(Classifier, name)
            if getattr(cls, name) is method and not cls.weighs_steps():
                setattr(cls, name, _without_weights(method))
        if Classifier in cls.__bases__:
            cls.__doc__ = _documented(cls.__bases__[1])
        super().__init_subclass__(**kwargs)

    @learns
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from X and y, from scratch unless `warm_start`.

        Ctrl-C ends the fit with a warning; the model keeps what it had learned by then.

        Parameters
        ----------
        X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_samples, n_features)
            CSR of float32 or float64 with int32 or int64 indices is used where it lies, read-only
            and memory-mapped included; anything else is converted to it. Nothing else may write
            to its arrays, or to the file they are mapped from, until the call returns: they are
            looked at once and then relied on, and changed indices lead out of the model's memory.
        y : array-like of shape (n_samples,), or of labels a row
            Class labels, numbers or strings; or, for classifiers of first order without a kernel,
            any number of labels a row, each a problem of its own: an indicator, dense or sparse,
            of shape (n_samples, n_labels) with entries 0 and 1, or a list of labels for each row.
            Lists of 0 and 1, two or more and all of one length, are the rows of an indicator,
            unless a model of lists goes on under `warm_start`; a dense column is one class a row.
        sample_weight : array-like of shape (n_samples,), default=None
            Times the weight of its class, what a row counts for: see `class_weight`. 0 leaves it
            out. Relative to the mean; in `partial_fit`, which knows none to come, to that of the
            first call, or to 1 where that had none.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or an argument can't be used; says where, and what helps. The
            model is then as it was, unless under `warm_start` a row's magnitudes are to blame: the
            rows before it have been learned.
        RuntimeError
            If another thread is at the model, fitting it or asking it for predictions, or a
            callable kernel calls the model that calls it. Models of their own learn side by side.
        """
        self.check_parameters()
        # Ctrl-C ends learning, and waits where it would lose what has been learned.
        with uninterrupted(), self._all_or_nothing():
            earlier = self.state_ if self.warm_start else None
            sparse = issparse(X)
            with interruptible():
                X, y = self._check_input(X, y, earlier)
            weights = given.check_weights(sample_weight, X.shape[0])
            if weights is not None and not weights.any():
                raise ValueError("sample_weight is zero for every row: nothing to learn from.")
            random = self.random_generator()
            seed = random.randint(LARGEST_SEED) if self.shuffle else None
            if earlier is not None:
                self.check_structure("warm_start")
                targets = targets_among(y, earlier.classes, earlier)
                first = Beginning(X, earlier.classes, earlier.form)
                return self.fit_rows(X, targets, weights, seed, first, None)
            targets, classes = found_targets(y)
            if isinstance(y, np.ndarray):
                warn_of_many_classes(len(classes), len(y), "y")
            form = y.form if isinstance(y, MultilabelTargets) else None
            first = Beginning(X, classes, form, sparse=sparse)
            slice_seed = random.randint(LARGEST_SEED)
            return self.fit_rows(X, targets, weights, seed, first, slice_seed)

    def check_probabilities(self) -> bool:
        name, learned = type(self).__name__, self.state_
        if learned is None:
            if not self.keeps_outputs:
                raise AttributeError(NO_OUTPUTS.format(name))
        elif not learned.tells_probabilities:
            raise AttributeError(learned.why_no_probabilities(name))
        return True

    @available_if(check_probabilities)
    @asks
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes of every row.

        They are fitted to outputs for rows that the model had not learned. Where every row is
        learned once, in one epoch of `fit` or by `partial_fit`, these are the outputs just before
        each row was learned, of the later half of the rows and up to 8,192 of them. Where `fit`
        makes several epochs, or has fewer than 500 rows, up to three models with the same settings
        learn a part of the rows each, and give the outputs for the rest.

        Each label has a sigmoid (Platt's [1]_, with a slope of its own for outputs above 0). Where
        a row has one class, the probabilities are the softmax of the logarithms of the sigmoids and
        of the outputs, each times a multiplier. The first call fits all of that.

        Where rows have one class, none is more probable than that of `predict`, which goes by the
        outputs. Rows count for their `sample_weight`, not for the weight of their class.

        Parameters
        ----------
        X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to 1; where rows may have several labels, each is a probability of its own.

        Raises
        ------
        ValueError
            If X can't be used; says where, and what helps.
        AttributeError
            If outputs are not kept with these parameters, or the model has learned rows more than
            once, as under `warm_start`, or where `partial_fit` is given rows again. ``hasattr`` is
            then False. The error says what helps.

        References
        ----------
        .. [1] J. Platt. Probabilistic outputs for support vector machines and comparisons to
           regularized likelihood methods. Advances in large margin classifiers, 1999.
        """
        outputs = finite_outputs(self.fitted, self.check_test_rows(X), self.n_threads())
        return probabilities_of(self.fitted, outputs)

    @available_if(check_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of what `predict_proba` gives, shape (n_samples, n_classes)."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Take back all attributes set on the way to an error."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    @learns
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Take the rows of X as the next trials, once, in the given order.

        Any split of the same rows into batches gives the same model to the bit, and the one of
        a single epoch of `fit` with ``shuffle=False``, if the first batch has the 100 rows that
        ``intercept_scaling="auto"`` measures, or that is a number. With `soft_margin`, every row of
        every call gets a new coordinate of its own. `max_iter`, `max_corrections`, `tol`,
        `early_stopping` and `shuffle` do not apply; parameters changed since the first call take
        effect with the next `fit`.

        Parameters
        ----------
        X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_samples, n_features)
            As for `fit`.
        y : array-like of shape (n_samples,), or of labels a row
            Labels, all among `classes`; or, as for `fit`, any number of labels a row. A model of
            lists takes no lists for rows of an indicator, and the first call takes them for such
            only if `classes` are left out or are its columns, 0, 1, ...
        classes : array-like of shape (n_classes,), default=None
            All classes there will ever be; needed in the first call, optional later, and for an
            indicator, whose columns they are.
        sample_weight : array-like of shape (n_samples,), default=None
            As for `fit`.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            As for `fit`, or if a label is not among the classes. The model is then as it was,
            unless a row's magnitudes or a full pool are to blame: the rows before have been
            learned.
        RuntimeError
            As for `fit`.
        """
        if self.state_ is not None:
            return self._take(X, y, classes, sample_weight)
        with self._all_or_nothing():
            self.check_parameters()
            return self._take(X, y, classes, sample_weight)

    def _take(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Self:
        before, sparse = self.state_, issparse(X)
        wanted = None if classes is None else np.unique(given.check_labels(classes))
        n_columns = None
        if before is None and wanted is not None:
            n_columns = len(wanted) if np.array_equal(wanted, np.arange(len(wanted))) else 0
        X, y = self._check_input(X, y, before, n_columns)
        known = _check_classes(before, wanted, y)
        targets = targets_among(y, known, before)
        weights = given.check_weights(sample_weight, X.shape[0])
        rows = check_rows(open_rows(X), repeats_allowed=self.takes_repeats)
        if before is None:
            slice_seed = self.random_generator().randint(LARGEST_SEED)
            form = y.form if isinstance(y, MultilabelTargets) else None
            counted = counted_rows(self.class_weight, known, targets, weights)
            first = self.measured_rows(rows, counted)
            self.open_stream(Beginning(first, known, form, sparse=sparse), slice_seed)
        task = self.make_task(rows, targets, weights, n_threads=self.n_threads())
        with refusing(rows):
            self.learn_stream(task)
        self.fitted.n_iter = 1.0
        return self

    def _check_input(
        self, X: Any, y: Any, before: Fitted | None, n_columns: int | None = None
    ) -> tuple[Any, np.ndarray | MultilabelTargets]:
        """X as CSR, and the labels in y; `before` is what has been learned, None: nothing, and
        `n_columns` are those of an indicator that is given as lists."""
        X = self._check_X(X, reset=before is None)
        y = check_sparse(y, "y")
        many = multilabel_targets(y, 0 if before and before.form == "lists" else n_columns)
        y = given.check_labels(y) if many is None else many
        if y.shape[0] != X.shape[0]:
            check_consistent_length(X, y)
        if many is not None and not self.supports_multilabel:
            self.refuse_multilabel()
        return X, y

    def _check_X(self, X: Any, *, reset: bool) -> Any:
        """X as CSR of types the engine takes; the rows themselves are checked later."""
        if given.is_plain_csr(X):
            if reset:
                validate_data(self, X, skip_check_array=True)
            elif X.shape[1] != self.n_features_in_ or hasattr(self, "feature_names_in_"):
                validate_data(self, X, reset=False, skip_check_array=True)
            return X
        return given.as_csr(X, partial(validate_data, self), reset=reset)

    @asks
    def decision_function(self, X: Any) -> np.ndarray:
        """Output of the hypothesis for every row.

        Parameters
        ----------
        X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_classes) for more than two classes, and \
where rows may have several
            ``w.x``, intercept included, x as it is (not normalised). ``hypothesis="average"``:
            divided by the trials; ``"vote"``: ``sum_k c_k sign(w_k.x)`` divided by the trials, in
            [-1, 1]; ``"random"``: with the vectors of a time slice drawn for each row from
            `random_state` and the row's content, one for all classes.

        Raises
        ------
        ValueError
            If X can't be used; says where, and what helps.
        RuntimeError
            If another thread is fitting the model, or a callable kernel asks the one that learns
            by it. Any number of threads may ask at once, each of which is answered as if it were
            alone.
        """
        rows, fitted = self.check_test_rows(X), self.fitted
        scores = finite_outputs(fitted, rows, self.n_threads())
        return scores[:, 0] if scores.shape[1] == 1 and not fitted.many else scores

    @asks
    def predict(self, X: Any) -> Any:
        """Class of every row: the sign of the output, or the largest one; where rows may have
        several labels, those whose outputs are positive.

        An output of 0, as rows without features have where there is no intercept, tells nothing:
        it predicts the class that more of the rows learned from had, and a label that half had.

        Parameters
        ----------
        X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), or labels in the form in which y was given to `fit`
            An indicator, dense or CSR, or a list of tuples.
        """
        fitted = self.fitted
        if fitted.many:
            return self.predict_labels(X)
        return fitted.classes[self._told(self.check_test_rows(X), partial(codes_of, fitted))]

    def _told(self, rows: Rows, told_by: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """What the outputs of checked rows tell."""
        return np.concatenate(predicted(self.fitted, rows, self.n_threads(), told_by))

    @asks
    def predict_labels(self, X: Any, *, threshold: Any = None, top_k: int | None = None) -> Any:
        """Labels of every row, by a model whose rows may have several; or the `top_k` most likely
        classes, where rows have one each.

        Parameters
        ----------
        X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_samples, n_features)
        threshold : float, "f1", or array-like of shape (n_labels,), default=None
            What the output of a label must reach. None: as for `predict`, or anything where `top_k`
            is given. "f1": for each label what gives the largest F1 to be expected by its
            probabilities, of the rows that these are fitted to: more labels are found that few rows
            have. Of two classes the second is told where its output reaches it.
        top_k : int, default=None
            Only so many labels, of largest output; of equal ones those that come first. Lists have
            them in this order, the largest first; without `top_k` in that of `classes_`.

        Returns
        -------
        ndarray or CSR matrix of shape (n_samples, n_labels), or list of n_samples tuples
            In the form in which y was given to `fit`. Where rows have one class each: ndarray of
            shape (n_samples,), of two classes with a `threshold`, or (n_samples, top_k) of classes,
            that of largest output first, which `predict` gives; fewer columns where there are fewer
            classes.

        Raises
        ------
        ValueError
            If an argument can't be used; where rows have one class each, if `threshold` is given
            with more than two, or with `top_k`, or neither is.
        """
        fitted, form, rows = self.fitted, self.fitted.form, self.check_test_rows(X)
        if form is None:
            if len(fitted.classes) == 2 and top_k is None and threshold is not None:
                return fitted.classes[self._told(rows, choice_of(fitted, threshold).lone_codes)]
            if threshold is not None or top_k is None:
                raise ValueError(
                    "The model has learned one class a row, of which predict_labels tells the "
                    "top_k best, whatever their outputs. Pass top_k alone, or call predict; a "
                    "threshold is for two classes, or several labels a row."
                )
            return fitted.classes[self._told(rows, partial(ranked, fitted, top_k))]
        chosen = self._labels_of(rows, choice_of(fitted, threshold, top_k))
        return MultilabelEncoder(fitted.classes, form).inverse_transform(chosen)

    def _labels_of(self, rows: Rows, choice: Choice) -> Positives:
        """The labels predicted for checked rows, which may be several."""
        return joined(predicted(self.fitted, rows, self.n_threads(), choice.labels))

    @asks
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the rows whose class is predicted, or, where rows may have several, whose very
        set of labels is.

        Parameters
        ----------
        X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or of labels a row
            As for `fit`.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        float
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
        told = self._labels_of(rows, choice_of(fitted))
        matches = MultilabelEncoder(fitted.classes).matches(many, told)
        return float(np.average(matches, weights=sample_weight))

    def check_test_rows(self, X: Any) -> Rows:
        """X as rows that a fitted model can be asked about."""
        space = self.space
        X = self._check_X(X, reset=False)
        # A dot product may meet a column twice, the length that a kernel measures may not.
        return check_rows(open_rows(X), repeats_allowed=not space.has_support)

    @property
    def coef_(self) -> np.ndarray | csr_matrix:
        """Weights of the hypothesis, shape (1, n_features) or (n_classes, n_features).

        Built when asked for; the average is divided by the trials. CSR after `sparsify`, and
        where the weights of so many labels and features are held sparsely from the first: where
        they would take more than half a gigabyte.
        """
        fitted = self.fitted
        coef = fitted.weights()[:, : self.n_features_in_]
        return csr_matrix(coef) if fitted.sparse_coef or issparse(coef) else coef

    @available_if(attrgetter("is_linear"))
    def sparsify(self) -> Self:
        """Give `coef_` as a CSR matrix, until the next fit."""
        self.fitted.sparse_coef = True
        return self

    @available_if(attrgetter("is_linear"))
    def densify(self) -> Self:
        """Give `coef_` as a dense array again, unless the weights are held sparsely."""
        self.fitted.sparse_coef = False
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return self.state_ is not None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = self.supports_multilabel
        # Cross-validation then takes the columns of the rows it takes.
        tags.input_tags.pairwise = self.kernel == "precomputed"
        # A hyperplane through the origin can't favour one class of blobs that lie around it, and
        # of those that seek a margin which blobs don't have the last vector is any.
        # ALMA's projection forgets all but the last of steps far longer than 1, such as class
        # weights of 1000 against 0.0001 make them.
        forgets = isinstance(self, ALMA)
        tags.classifier_tags.poor_score = not self.has_intercept or self.seeks_margin or forgets
        return tags


def _documented(model: type[Learner]) -> str:
    """The docstring of a model, with the sections on its parameters and attributes."""
    known, shared = declarations(model), declarations(model.__mro__[1])
    own_first = sorted(known.values(), key=lambda each: each.name in shared)
    entries = "\n".join(each.described() for each in own_first)
    doc = inspect.getdoc(model) or ""
    parameters = f"Parameters\n----------\n{entries}"
    return doc.replace("{parameters}", parameters).replace("{attributes}", _attributes(model))


_OF_KERNELS = {"support_", "dual_coef_", "n_support_", "n_passed_over_"}


def _attributes(model: type[Learner]) -> str:
    """The first sentences of the attributes that a fitted model has."""
    found = {
        "classes_": "classes_ : ndarray of shape (n_classes,)",
        "n_iter_": "n_iter_ : float\n    Epochs swept by the last call that learned.",
        "n_features_in_": "n_features_in_ : int",
    }
    without = set() if "kernel" in declarations(model) else _OF_KERNELS
    for kind in (Classifier, *reversed(model.__mro__)):
        for name, each in vars(kind).items():
            if isinstance(each, property) and name.endswith("_") and name not in without:
                kinds = each.fget.__annotations__["return"].replace(" | ", " or ")
                head = name if kinds == "Any" else f"{name} : {kinds.replace('np.', '')}"
                told = re.match(r".*?[.](?=\s|$)", inspect.getdoc(each) or "", re.DOTALL)
                found.setdefault(name, f"{head}\n{indented(told[0] if told else '')}")
    return "Attributes\n----------\n" + "\n".join(found.values())


class ALMAClassifier(Classifier, ALMA): ...


class AROWClassifier(Classifier, AROW): ...


class CRAMMAClassifier(Classifier, CRAMMA): ...


class HigherOrderPerceptron(Classifier, HigherOrder): ...


class MarginPerceptron(Classifier, Margin): ...


class MaxMarginClassifier(Classifier, MaxMargin): ...


class PNormPerceptron(Classifier, PNorm): ...


class ROMMAClassifier(Classifier, ROMMA): ...


class SecondOrderPerceptron(Classifier, SecondOrder): ...


#: The classifiers by their names.
CLASSIFIERS: dict[str, type[Classifier]] = {
    kind.classifier: kind
    for kind in (
        ALMAClassifier, AROWClassifier, CRAMMAClassifier, HigherOrderPerceptron, MarginPerceptron,
        MaxMarginClassifier, PNormPerceptron, ROMMAClassifier, SecondOrderPerceptron,
    )
}  # fmt: skip


def as_classifier(learner: Learner) -> Classifier:
    """The classifier over a learner, with all that it has learned."""
    return CLASSIFIERS[learner.classifier](**learner.parameters()).take_over(learner)
