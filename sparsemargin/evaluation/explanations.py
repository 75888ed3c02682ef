"""Explanations of the predictions of any linear model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sparsemargin.estimators.validation import as_csr
from sparsemargin.evaluation.explainer import Explainer, Explanation
from sparsemargin.evaluation.vectors import coef_of
from sparsemargin.models import Learner
from sparsemargin.models.inputs.labels import Choice
from sparsemargin.models.pipelines import check_names, model_and_names, model_and_rows


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
