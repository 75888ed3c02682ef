"""Conversion of fitted models to scikit-learn's classes, for tools that support only these."""

from __future__ import annotations

from typing import Any

import numpy as np

# Tools such as skl2onnx read these objects, which `CalibratedClassifierCV.fit` would make.
from sklearn.calibration import CalibratedClassifierCV, _CalibratedClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils.validation import check_is_fitted

from sparsemargin import text
from sparsemargin.estimators.classifiers import Classifier
from sparsemargin.models.fitted.outputs import probabilities_of
from sparsemargin.models.fitted.probabilities import Calibration
from sparsemargin.models.fitted.state import Fitted
from sparsemargin.models.pipelines import taken

# Number of points of the curve of probabilities, and the largest output that it covers, in units of
# the largest stored output. Interpolation then has an error below 1e-6.
_POINTS, _REACH = 1 << 15, 4.0
# Width, in the same units, of the jump of the curve at 0.
_NEAR_ZERO = 1e-6


def to_sklearn(model: Any, *, probabilities: bool = True) -> Any:
    """Convert a linear model to scikit-learn's classes, for tools such as ONNX and SHAP.

    The predictions are the same. They may differ only for a row whose output is exactly 0, for
    which scikit-learn predicts the first class. Probabilities are kept in these forms:

    - Two classes: a `CalibratedClassifierCV` of an `SGDClassifier` with the model's weights. The
      probability is a curve of the output, stored as points with linear interpolation, and agrees
      within 1e-6. (skl2onnx takes the nearest point instead, with an error of up to 0.001.)
    - More classes: a `LogisticRegression` whose `coef_` and `intercept_` are the model's times a
      number, so that the probabilities are the softmax of the outputs times this number. The
      model's own probabilities mostly have this form, and agree up to rounding. If they also use
      sigmoids of the outputs (see `predict_proba`), after few rows or if a class lies between
      others, the number is fitted anew to the same held-out outputs. The probabilities then differ,
      and their log loss may be more than twice as high.

    Without probabilities, the result is an `SGDClassifier` with the model's `coef_` and
    `intercept_`, whose outputs agree up to rounding.

    Parameters
    ----------
    model : fitted classifier, or pipeline or search that ends in one
        A model with one weight vector per class: without a kernel, with ``hypothesis="average"`` or
        ``"last"``, and not multilabel.
    probabilities : bool, default=True
        Whether the result has `predict_proba`. A model without probabilities is converted to an
        `SGDClassifier` in any case.

    Returns
    -------
    classifier or sklearn.pipeline.Pipeline
        A fitted model. In a pipeline, the last step is converted, this library's vectorizers are
        converted to scikit-learn's, and all other steps are the same objects as before. Fitting the
        result again would train a classifier of scikit-learn with its default parameters.

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
    >>> theirs = sparsemargin.to_sklearn(model)
    >>> [type(step).__name__ for _, step in theirs.steps]
    ['FeatureUnion', 'CalibratedClassifierCV']
    >>> theirs.predict(["cheap lunch pills"]).tolist()
    ['spam']
    """
    model = taken(model)
    if not hasattr(model, "steps"):
        return _converted(model, probabilities)
    *before, (name, last) = model.steps
    steps = [(each, _vectorizer(step)) for each, step in before]
    return Pipeline([*steps, (name, _converted(taken(last), probabilities))])


def _converted(model: Any, probabilities: bool) -> Any:
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
    if not (probabilities and fitted.tells_probabilities):
        return _linear(SGDClassifier, model, coef, model.intercept_)
    if len(fitted.classes) == 2:
        return _calibrated(fitted, _linear(SGDClassifier, model, coef, model.intercept_))
    *of_sigmoids, factor = fitted.calibrated().multipliers  # type: ignore[misc]
    if any(of_sigmoids):
        # With ``joint=True``, the probabilities are the softmax of the outputs alone.
        alone = Calibration(fitted.window(), exclusive=True, joint=True)
        (factor,) = alone.multipliers  # type: ignore[misc]
    return _linear(LogisticRegression, model, coef * factor, model.intercept_ * factor)


def _linear(kind: Any, model: Any, coef: Any, intercept: Any) -> Any:
    """Return a fitted linear classifier of this kind."""
    made = kind(fit_intercept=model.fit_intercept)
    made.classes_, made.coef_, made.intercept_ = model.classes_, coef, intercept
    return _with_features(made, model)


def _with_features(made: Any, model: Any) -> Any:
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(model, name):
            setattr(made, name, getattr(model, name))
    return made


def _calibrated(fitted: Fitted, linear: Any) -> Any:
    """Return a calibrated classifier of two classes with the probabilities of the model."""
    sigmoids = fitted.calibrated().sigmoids
    outputs = np.linspace(-_REACH, _REACH, _POINTS)
    # The curve has a jump at 0, and a bend where the sigmoid is 1/2.
    *slopes, constant = sigmoids.coefficients[0]
    bends = [-constant / slope for slope in slopes if abs(constant) < _REACH * slope]
    near = [each + steps * _NEAR_ZERO for each in (0.0, *bends) for steps in (-4, -2, -1, 1, 2, 4)]
    outputs = np.union1d(outputs[np.abs(outputs) > _NEAR_ZERO], near) * sigmoids.scale
    curve = probabilities_of(fitted, outputs[:, np.newaxis])[:, 1]
    calibrators = [IsotonicRegression(out_of_bounds="clip").fit(outputs, curve)]
    made = CalibratedClassifierCV(linear, method="isotonic")
    made.classes_ = linear.classes_
    made.calibrated_classifiers_ = [
        _CalibratedClassifier(linear, calibrators, classes=linear.classes_, method="isotonic")
    ]
    return _with_features(made, linear)


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
