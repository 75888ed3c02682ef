"""Models that are converted to scikit-learn's have the same weights, outputs and classes."""

import numpy as np
import pytest
from sklearn.feature_extraction import text as theirs
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from problems.models import JOINT, MODELS, VECTORS, fit, make_problem, widened
from sparsemargin import (
    ALMAClassifier,
    AROWClassifier,
    AutoClassifier,
    PNormPerceptron,
    as_scikit_learn,
    fit_text,
    text,
)

LINEAR = {name: make for name, make in MODELS.items() if not {"poly", "rbf"} & set(name.split())}
TEXTS = ["the match ended", "the bill passed", "a goal, a match", "the minister", "Match", "a bill"]
LABELS = ["sports", "politics"] * 3


def assert_same_answers(model, other, X):
    outputs = model.decision_function(X)
    np.testing.assert_allclose(other.decision_function(X), outputs, rtol=1e-5, atol=1e-7)
    assert (outputs != 0).all()
    assert (other.predict(X) == model.predict(X)).all()


@pytest.mark.parametrize("hypothesis", VECTORS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", [*LINEAR, "AROW"])
def test_conversion_keeps_weights_outputs_and_classes(name, n_classes, hypothesis):
    X, y = make_problem(n_classes=n_classes)
    y = np.array(["ant", "bee", "cow"])[y]
    make = LINEAR.get(name, AROWClassifier)
    model = fit(make(hypothesis=hypothesis, random_state=0), X, y)
    other = as_scikit_learn(model)
    assert type(other) is SGDClassifier
    for attribute in ("coef_", "intercept_", "classes_"):
        assert np.array_equal(getattr(other, attribute), getattr(model, attribute))
    assert_same_answers(model, other, X)


@pytest.mark.parametrize("name", JOINT)
def test_joint_models_with_sparse_weights_are_converted(name):
    X, y = make_problem(n_classes=3)
    X = widened(X)
    model = fit(JOINT[name](random_state=0), X, y).sparsify()
    other = as_scikit_learn(model)
    assert other.coef_.format == "csr"
    assert_same_answers(model, other, X)


def test_models_without_intercept_are_converted():
    X, y = make_problem()
    for model in (PNormPerceptron(fit_intercept=False), AutoClassifier(random_state=0)):
        assert_same_answers(model.fit(X, y), as_scikit_learn(model), X)
    search = GridSearchCV(ALMAClassifier(random_state=0), {"p": [2, 4]}, cv=2).fit(X, y)
    assert_same_answers(search, as_scikit_learn(search), X)


@pytest.mark.parametrize("name", ["CountVectorizer", "HashingVectorizer", "TfidfVectorizer"])
def test_text_pipelines_are_converted_to_scikit_learn(name):
    vectorizer = getattr(text, name)(ngram_range=(1, 2), n_jobs=1)
    model = make_pipeline(vectorizer, MaxAbsScaler(), AROWClassifier()).fit(TEXTS, LABELS)
    other = as_scikit_learn(model)
    vectorizer, scaler, last = [step for _, step in other.steps]
    assert (type(vectorizer), type(last)) == (getattr(theirs, name), SGDClassifier)
    assert scaler is model[1]
    assert list(other.named_steps) == list(model.named_steps)
    if name != "HashingVectorizer":
        assert vectorizer.vocabulary_ == model[0].vocabulary_
    assert_same_answers(model, other, TEXTS)


def test_model_fitted_to_text_files_is_converted(tmp_path):
    path = tmp_path / "texts.tsv"
    path.write_text("".join(f"{b}\t{a}\n" for a, b in zip(TEXTS, LABELS, strict=True)))
    model = fit_text(path)
    assert_same_answers(model, as_scikit_learn(model), TEXTS)


X, Y = make_problem()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (ALMAClassifier(kernel="rbf").fit(X, Y), "kernel has no coef_"),
        (ALMAClassifier(hypothesis="vote").fit(X, Y), "'vote' has no single weight vector"),
        (AROWClassifier().fit(X, [["a"], ["a", "b"]] * 40), "may have several labels"),
        (SGDClassifier().fit(X, Y), "no classifier of sparsemargin"),
        (AROWClassifier(), "not fitted"),
        (AutoClassifier(), "not fitted"),
    ],
    ids=["kernel", "vote", "labels", "theirs", "unfitted", "chooses nothing yet"],
)  # fmt: skip
def test_models_without_one_vector_per_class_are_rejected(model, message):
    with pytest.raises((TypeError, ValueError), match=message):
        as_scikit_learn(model)
