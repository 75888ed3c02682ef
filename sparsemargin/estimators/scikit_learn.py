"""Conversion of fitted models to scikit-learn's classes, for tools that support only these."""

from __future__ import annotations

from typing import Any

from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils.validation import check_is_fitted

from sparsemargin import text
from sparsemargin.estimators.classifiers import Classifier
from sparsemargin.models.pipelines import taken


def as_scikit_learn(model: Any) -> Any:
    """Convert a linear model to scikit-learn's SGDClassifier, for tools such as ONNX and SHAP.

    The result has the model's `coef_`, `intercept_` and `classes_`. Its outputs agree up to
    rounding, and its predictions are the same. Only for a row whose output is exactly 0 may they
    differ: scikit-learn predicts the first class.

    Parameters
    ----------
    model : fitted classifier, or pipeline or search that ends in one
        A model with one weight vector per class: without a kernel, with ``hypothesis="average"`` or
        ``"last"``, and not multilabel.

    Returns
    -------
    sklearn.linear_model.SGDClassifier or sklearn.pipeline.Pipeline
        A fitted model. In a pipeline, the last step is converted, this library's vectorizers are
        converted to scikit-learn's, and all other steps are the same objects as before. Fitting the
        result again would train an SGDClassifier with its default parameters.

    Raises
    ------
    TypeError
        If the last step is not a classifier of this library.
    ValueError
        If the model is not fitted, has no single weight vector per class, or is multilabel.

    Examples
    --------
    >>> import sparsemargin
    >>> texts = ["cheap pills", "lunch at noon?", "cheap watches", "see you at noon"]
    >>> model = sparsemargin.fit_text(texts, ["spam", "ham", "spam", "ham"], random_state=0)
    >>> theirs = sparsemargin.as_scikit_learn(model)
    >>> [type(step).__name__ for _, step in theirs.steps]
    ['FeatureUnion', 'SGDClassifier']
    >>> theirs.predict(["cheap lunch pills"]).tolist()
    ['spam']
    """
    model = taken(model)
    if not hasattr(model, "steps"):
        return _linear_classifier(model)
    *before, (name, last) = model.steps
    steps = [(each, _vectorizer(step)) for each, step in before]
    return Pipeline([*steps, (name, _linear_classifier(taken(last)))])


def _linear_classifier(model: Any) -> Any:
    check_is_fitted(model)
    if not isinstance(model, Classifier):
        raise TypeError(f"{model!r} is no classifier of sparsemargin, nor a pipeline of one.")
    fitted = model.fitted
    if fitted.many:
        raise ValueError(
            "The model's rows may have several labels, and an SGDClassifier predicts one class. "
            "Fit a model for each label."
        )
    try:
        coef = model.coef_
    except AttributeError as error:
        raise ValueError(f"No SGDClassifier has the outputs of this model: {error}") from None
    made = SGDClassifier(fit_intercept=model.fit_intercept)
    made.classes_, made.coef_, made.intercept_ = model.classes_, coef, model.intercept_
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(model, name):
            setattr(made, name, getattr(model, name))
    return made


def _vectorizer(step: Any) -> Any:
    """Convert a vectorizer of this library to scikit-learn's. Return any other step unchanged."""
    if type(step) in (text.WordCharHashingVectorizer, text.WordCharVectorizer):
        families = zip(("word", "char"), step.fitted_vectorizers(), strict=True)
        return FeatureUnion([(name, _vectorizer(each)) for name, each in families])
    if type(step) not in (text.CountVectorizer, text.HashingVectorizer, text.TfidfVectorizer):
        return step
    theirs = step._base
    parameters = step.get_params()
    made = theirs(**{name: parameters[name] for name in theirs._get_param_names()})
    learned = step.__getstate__()
    vars(made).update({name: each for name, each in learned.items() if name not in parameters})
    return made
