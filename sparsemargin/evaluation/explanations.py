"""Explanations of predictions: the contribution of each feature of a row to an output.

scikit-learn is imported on first use, because the command line does not need it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sparsemargin.evaluation.weights import coef_of, strongest_features
from sparsemargin.models import Learner
from sparsemargin.models.inputs.labels import Choice
from sparsemargin.models.pipelines import check_names, model_and_names, model_and_rows, names_at


class Explanation(NamedTuple):
    """Explanation of the output of one row for one class, as returned by `explain_row`.

    Attributes
    ----------
    label : object
        The class.
    output : float
        Value of `decision_function` for the class. With two classes, the output of the first is
        the negative output of the second. Up to rounding error, it is the sum of the intercept and
        all contributions.
    intercept : float
        Intercept of the class.
    columns : ndarray of shape (n_contributing,), int64
        Features of the row with a nonzero contribution, the largest magnitude first.
    names : list of str
        Names of these features. Column numbers, from 0, if the features have no names.
    contributions : ndarray of shape (n_contributing,), float64
        Contribution ``w_j x_j`` of each feature. Positive values support the class.
    """

    label: Any
    output: float
    intercept: float
    columns: NDArray[np.int64]
    names: list[str]
    contributions: NDArray[np.float64]


class Explainer:
    """Splits the outputs of a linear model into the contributions of features.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
    weights_of : callable
        Returns the weights of given columns, an array or CSR matrix of shape
        (n_vectors, n_columns). With two classes there is one vector, that of the second class.
    intercepts : ndarray of shape (n_vectors,)
    names : sequence of str or None
        Names of all features. None: features are named by their numbers.
    """

    def __init__(
        self, classes: np.ndarray, weights_of: Callable[[np.ndarray], Any], intercepts: np.ndarray,
        names: Sequence[str] | None,
    ) -> None:  # fmt: skip
        self.classes, self._weights_of, self._names = classes.tolist(), weights_of, names
        self._intercepts = intercepts

    @classmethod
    def of_learner(cls, learner: Learner, names: Sequence[str] | None) -> Self:
        """Return the explainer of a learner. A learner without weights raises a ValueError."""
        try:
            fitted = learner.fitted
            fitted.check_linear("coef_")
            return cls(fitted.classes, fitted.weights_of, fitted.intercept(), names)
        except AttributeError as error:
            raise ValueError(str(error)) from None

    def explain(
        self, code: int, outputs: np.ndarray, columns: np.ndarray, values: np.ndarray
    ) -> Explanation:
        """Explain the output of one row for the class with number `code`.

        `outputs` has shape (n_vectors,). `columns` and `values` are the nonzeros of the row.
        """
        lone = len(self._intercepts) < len(self.classes)
        at, sign = (0, 1 if code else -1) if lone else (code, 1)
        weights = self._weights_of(columns)[[at]]
        weights = (weights if isinstance(weights, np.ndarray) else weights.toarray()).ravel()
        added = sign * weights.astype(np.float64) * values.astype(np.float64)
        order = strongest_features(added, len(added))
        found = columns[order].astype(np.int64)
        names = names_at(found, self._names)
        # Adding 0.0 turns -0.0 into 0.0.
        output, intercept = (float(sign * each[at]) + 0.0 for each in (outputs, self._intercepts))
        return Explanation(self.classes[code], output, intercept, found, names, added[order])


def explain_row(
    model: Any, row: Any, *, labels: Any = None, feature_names: Any = None
) -> list[Explanation]:
    """Compute the contribution of each feature of a row to the output for its predicted label.

    Parameters
    ----------
    model : fitted linear classifier, or pipeline that ends in one
        A classifier with `coef_` and `intercept_`: one of this library with
        ``hypothesis="average"`` or ``"last"``, or another with one weight vector for two classes,
        or one for each class.
    row : {sparse matrix, array-like} of shape (1, n_features), array or pandas Series of shape \
(n_features,), or one input of the first step of the pipeline, such as a text
        The row, in the form that `predict` accepts.
    labels : class, or sequence of classes, default=None
        Classes to explain. None: the predicted label. For a multilabel model, None means all
        predicted labels, the largest output first, or the class with the largest output if no
        label is predicted.
    feature_names : sequence of str of length n_features, or fitted vectorizer, default=None
        Names of the features. None: the output names of the pipeline's other steps, or
        `feature_names_in_`, if there are any.

    Returns
    -------
    list of Explanation
        One explanation per class, in the order of `labels`.

    Raises
    ------
    ValueError
        If the model has no weights (for example, with a kernel or ``hypothesis="vote"``), `row` is
        not a single row, a class is unknown, or the number of names differs from the number of
        features. Errors of `decision_function` are raised unchanged.

    See Also
    --------
    top_features : Features with the largest weights for each class.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sparsemargin import PNormPerceptron
    >>> model = make_pipeline(CountVectorizer(), PNormPerceptron(random_state=0))
    >>> texts = ["free money", "money now", "see you now", "see the plan"]
    >>> _ = model.fit(texts, ["spam", "spam", "ham", "ham"])
    >>> (why,) = explain_row(model, "the money is here now")
    >>> why.label, why.names[0]
    ('spam', 'money')
    >>> bool(np.isclose(why.intercept + why.contributions.sum(), why.output))
    True
    """
    from sparsemargin.estimators.validation import as_csr

    _, feature_names = model_and_names(model, feature_names)
    model, X = model_and_rows(model, _as_rows(row, model))
    explainer = _explainer_of(model, feature_names)
    rows = as_csr(X)
    if rows.shape[0] != 1:
        raise ValueError(
            f"row must be a single row, got {rows.shape[0]}. Pass X[[i]], or texts[i] of texts."
        )
    outputs = np.asarray(model.decision_function(X), dtype=np.float64).ravel()
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    codes = _codes(model, X, outputs) if labels is None else _codes_of(labels, explainer.classes)
    return [explainer.explain(code, outputs, rows.indices, rows.data) for code in codes]


def _as_rows(row: Any, model: Any) -> Any:
    """Return a matrix, a table or a list that contains only this row."""
    if isinstance(row, str | bytes | Mapping):
        return [row]
    if hasattr(row, "to_frame") and hasattr(model, "feature_names_in_"):
        # The row of a pandas table becomes a table, because steps select columns by name.
        return row.to_frame().T.infer_objects()
    if getattr(row, "ndim", 2) != 1:
        return row
    if hasattr(row, "nnz"):  # X[0] of a sparse array has one dimension
        return row.reshape(1, -1)
    is_text = isinstance(next(iter(row), None), str)
    return row if is_text else np.asarray(row).reshape(1, -1)


def _explainer_of(model: Any, names: Any) -> Explainer:
    if isinstance(model, Learner):
        n_features = model.space.n_features
        return Explainer.of_learner(model, check_names(names, n_features))
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    coef = coef_of(model)
    intercepts = np.broadcast_to(np.ravel(model.intercept_), coef.shape[0])
    names = check_names(names, coef.shape[1])
    return Explainer(model.classes_, lambda columns: coef[:, columns], intercepts, names)


def _codes(model: Any, X: Any, outputs: np.ndarray) -> list[int]:
    """Return the class numbers of the predicted labels."""
    if not (isinstance(model, Learner) and model.fitted.many):
        return _codes_of(model.predict(X), model.classes_.tolist())
    predicted = Choice(len(outputs), 0.0, len(outputs)).labels(outputs[np.newaxis]).labels
    return predicted.tolist() or [int(outputs.argmax())]


def _codes_of(labels: Any, classes: list[Any]) -> list[int]:
    wanted = [labels] if np.ndim(labels) == 0 else list(labels)
    for label in wanted:
        if label not in classes:
            raise ValueError(f"labels: {label!r} is unknown. Choose among {classes}.")
    return [classes.index(label) for label in wanted]
