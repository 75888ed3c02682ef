"""Why a row got its label: what each of its features adds to the output.

scikit-learn is imported on first use: the command line does without.
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
    """How the output of one row for one label comes about, as `explain_row` gives it.

    Attributes
    ----------
    label : object
        One of the model's classes.
    output : float
        What `decision_function` gives for it; of two classes the first has the opposite of what
        the second has. It is the sum of the intercept and all contributions, but for rounding.
    intercept : float
    columns : ndarray of shape (n_contributing,), int64
        Features of the row that add anything, by falling magnitude of what they add.
    names : list of str
        Theirs; numbers of columns, from 0, where features have no names.
    contributions : ndarray of shape (n_contributing,), float64
        ``w_j x_j`` of each, above 0 where it speaks for the label.
    """

    label: Any
    output: float
    intercept: float
    columns: NDArray[np.int64]
    names: list[str]
    contributions: NDArray[np.float64]


class Explainer:
    """Takes the outputs of a linear model apart: `weights_of` gives the weights of some features,
    shape (n_labels, n_columns), array or CSR, one label for two classes, the second; `names` of all
    features, None: their numbers."""

    def __init__(
        self, classes: np.ndarray, weights_of: Callable[[np.ndarray], Any], intercepts: np.ndarray,
        names: Sequence[str] | None,
    ) -> None:  # fmt: skip
        self.classes, self._weights_of, self._names = classes.tolist(), weights_of, names
        self._intercepts = intercepts

    @classmethod
    def of_learner(cls, learner: Learner, names: Sequence[str] | None) -> Self:
        """That of a learner; a ValueError where it has no weights."""
        try:
            fitted = learner.fitted
            fitted.check_linear("coef_")
            return cls(fitted.classes, fitted.weights_of, fitted.intercept(), names)
        except AttributeError as error:
            raise ValueError(str(error)) from None

    def explain(
        self, code: int, outputs: np.ndarray, columns: np.ndarray, values: np.ndarray
    ) -> Explanation:
        """For the class of that code, and a row by its entries and its outputs, of shape
        (n_labels,)."""
        lone = len(self._intercepts) < len(self.classes)
        at, sign = (0, 1 if code else -1) if lone else (code, 1)
        weights = self._weights_of(columns)[[at]]
        weights = (weights if isinstance(weights, np.ndarray) else weights.toarray()).ravel()
        added = sign * weights.astype(np.float64) * values.astype(np.float64)
        order = strongest_features(added, len(added))
        found = columns[order].astype(np.int64)
        names = names_at(found, self._names)
        # Adding 0 makes -0 one with it.
        output, intercept = (float(sign * each[at]) + 0.0 for each in (outputs, self._intercepts))
        return Explanation(self.classes[code], output, intercept, found, names, added[order])


def explain_row(
    model: Any, row: Any, *, labels: Any = None, feature_names: Any = None
) -> list[Explanation]:
    """Tell what each feature of a row adds to the output for the label it got, or for others.

    Parameters
    ----------
    model : fitted linear classifier, or pipeline that ends in one
        With `coef_` and `intercept_`: of this library with ``hypothesis="average"`` or ``"last"``,
        or any other that learns one weight vector for two classes and one for each of more.
    row : {sparse matrix, array-like} of shape (1, n_features), array or pandas Series of shape \
(n_features,), or whatever the first step of the pipeline takes as one row, such as a text
        As it is given to `predict`.
    labels : label, or sequence of labels, default=None
        None: the label that is predicted; where rows may have several, all those that are, the
        largest output first, or the one of largest output where none is.
    feature_names : sequence of str of length n_features, or fitted vectorizer, default=None
        None: those that the pipeline's other steps tell, or `feature_names_in_`, if there are any.

    Returns
    -------
    list of Explanation
        One for each label, in this order.

    Raises
    ------
    ValueError
        If the model has no weights, as one with a kernel or a vote, `row` is not one row, a label
        is unknown, or there are not as many names as features. Whatever `decision_function` raises.

    See Also
    --------
    top_features : What decides for all rows.

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
    """A matrix, a table, or a list of what a pipeline makes one of, with the row alone."""
    if isinstance(row, str | bytes | Mapping):
        return [row]
    if hasattr(row, "to_frame") and hasattr(model, "feature_names_in_"):
        # A row of a pandas table, of which steps ask for columns by their names.
        return row.to_frame().T.infer_objects()
    if getattr(row, "ndim", 2) != 1:
        return row
    if hasattr(row, "nnz"):  # of a sparse array, X[0] has one axis
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
    """Places of the labels that are predicted."""
    if not (isinstance(model, Learner) and model.fitted.many):
        return _codes_of(model.predict(X), model.classes_.tolist())
    told = Choice(len(outputs), 0.0, len(outputs)).labels(outputs[np.newaxis]).labels
    return told.tolist() or [int(outputs.argmax())]


def _codes_of(labels: Any, classes: list[Any]) -> list[int]:
    wanted = [labels] if np.ndim(labels) == 0 else list(labels)
    for label in wanted:
        if label not in classes:
            raise ValueError(f"labels: {label!r} is unknown. Choose among {classes}.")
    return [classes.index(label) for label in wanted]
