"""Models converted to scikit-learn's have the same weights, classes and probabilities."""

import pickle

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction import text as theirs
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from problems.models import JOINT, MODELS, VECTORS, fit, make_problem, widened
from sparsemargin import (
    ALMAClassifier,
    AROWClassifier,
    AutoClassifier,
    PNormPerceptron,
    fit_text,
    text,
    to_sklearn,
)
from sparsemargin.datasets import make_zipf_text

LINEAR = {name: make for name, make in MODELS.items() if not {"poly", "rbf"} & set(name.split())}
TEXTS = ["the match ended", "the bill passed", "a goal, a match", "the minister", "Match", "a bill"]
LABELS = ["sports", "politics"] * 3


def assert_same_answers(model, other, X):
    outputs = model.decision_function(X)
    np.testing.assert_allclose(other.decision_function(X), outputs, rtol=1e-5, atol=1e-7)
    assert (outputs != 0).all()
    assert (other.predict(X) == model.predict(X)).all()


def assert_same_probabilities(model, other, X):
    np.testing.assert_allclose(other.predict_proba(X), model.predict_proba(X), atol=1e-6)
    assert (other.predict(X) == model.predict(X)).all()


def classes_of(n_classes):
    X, y = make_zipf_text(1500, n_classes=n_classes, random_state=0)
    return X, np.array(["ant", "bee", "cow", "dog"])[y]


@pytest.mark.parametrize("name", [*(name for name in LINEAR if "n x n" not in name), "AROW"])
def test_probabilities_of_two_classes_are_kept(name):
    X, y = classes_of(2)
    model = LINEAR.get(name, AROWClassifier)(random_state=0).fit(X[:900], y[:900])
    other = to_sklearn(model)
    assert type(other) is CalibratedClassifierCV
    assert np.array_equal(other.calibrated_classifiers_[0].estimator.coef_, model.coef_)
    assert_same_probabilities(model, other, X)
    again = pickle.loads(pickle.dumps(other))
    assert np.array_equal(again.predict_proba(X), other.predict_proba(X))


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.9, 0.1), (0.02, 0.98)])
def test_probabilities_near_the_boundary_are_kept(shares):
    """The sigmoid of unequal classes is 1/2 elsewhere than where the output is 0."""
    random = np.random.RandomState(0)
    y = (random.random_sample(800) < shares[0]).astype(int)
    X = random.standard_normal((800, 1)) + y[:, np.newaxis]
    model = AROWClassifier(random_state=0).fit(X, y)
    slope, intercept = model.coef_[0, 0], model.intercept_[0]
    outputs = np.linspace(-3, 3, 20_001) * np.abs(model.decision_function(X)).max()
    outputs = np.append(outputs, [1e-4, -1e-4])
    rows = (outputs[:, np.newaxis] - intercept) / slope
    rows = rows[np.abs(model.decision_function(rows)) > 1e-5]
    assert_same_probabilities(model, to_sklearn(model), rows)


def test_probabilities_of_more_classes_are_kept():
    X, y = make_zipf_text(6000, n_classes=5, random_state=0)
    model = AROWClassifier(random_state=0).fit(X, y)
    assert not model.fitted.calibrated().multipliers[0]
    other = to_sklearn(model)
    assert type(other) is LogisticRegression
    np.testing.assert_allclose(other.predict_proba(X), model.predict_proba(X), atol=1e-12)
    assert (other.predict(X) == model.predict(X)).all()


def test_other_probabilities_are_the_best_softmax_of_the_outputs():
    X, y = classes_of(4)
    model = AROWClassifier(random_state=0).fit(X[:200], y[:200])
    assert model.fitted.calibrated().multipliers[0]
    other = to_sklearn(model)
    assert (other.predict(X) == model.predict(X)).all()
    losses = [log_loss(y[200:], each.predict_proba(X[200:])) for each in (model, other)]
    assert losses[1] < losses[0] + 0.05
    window = model.fitted.window()
    factor = np.linalg.norm(other.coef_) / np.linalg.norm(model.coef_)

    def loss(factor):
        return log_loss(window.codes, softmax(factor * window.outputs, axis=1))

    assert loss(factor) < min(loss(0.8 * factor), loss(1.25 * factor))


def test_models_without_probabilities_have_none():
    X, y = make_problem()
    model = AROWClassifier(random_state=0).partial_fit(X, y, classes=[0, 1]).partial_fit(X, y)
    assert not hasattr(model, "predict_proba")
    assert type(to_sklearn(model)) is SGDClassifier


@pytest.mark.parametrize("hypothesis", VECTORS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", [*LINEAR, "AROW"])
def test_conversion_keeps_weights_outputs_and_classes(name, n_classes, hypothesis):
    X, y = make_problem(n_classes=n_classes)
    y = np.array(["ant", "bee", "cow"])[y]
    make = LINEAR.get(name, AROWClassifier)
    model = fit(make(hypothesis=hypothesis, random_state=0), X, y)
    other = to_sklearn(model, probabilities=False)
    assert type(other) is SGDClassifier
    for attribute in ("coef_", "intercept_", "classes_"):
        assert np.array_equal(getattr(other, attribute), getattr(model, attribute))
    assert_same_answers(model, other, X)


@pytest.mark.parametrize("name", JOINT)
def test_joint_models_with_sparse_weights_are_converted(name):
    X, y = make_problem(n_classes=3)
    X = widened(X)
    model = fit(JOINT[name](random_state=0), X, y).sparsify()
    other = to_sklearn(model, probabilities=False)
    assert other.coef_.format == "csr"
    assert_same_answers(model, other, X)
    assert_same_probabilities(model, to_sklearn(model), X)


def test_models_without_intercept_are_converted():
    X, y = make_problem()
    for model in (PNormPerceptron(fit_intercept=False), AutoClassifier(random_state=0)):
        assert_same_answers(model.fit(X, y), to_sklearn(model, probabilities=False), X)
        assert_same_probabilities(model, to_sklearn(model), X)
    search = GridSearchCV(ALMAClassifier(random_state=0), {"p": [2, 4]}, cv=2).fit(X, y)
    assert_same_answers(search, to_sklearn(search, probabilities=False), X)


@pytest.mark.parametrize("name", ["CountVectorizer", "HashingVectorizer", "TfidfVectorizer"])
def test_text_pipelines_are_converted_to_scikit_learn(name):
    vectorizer = getattr(text, name)(ngram_range=(1, 2), n_jobs=1)
    model = make_pipeline(vectorizer, MaxAbsScaler(), AROWClassifier()).fit(TEXTS, LABELS)
    other = to_sklearn(model, probabilities=False)
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
    assert_same_answers(model, to_sklearn(model, probabilities=False), TEXTS)
    assert_same_probabilities(model, to_sklearn(model), TEXTS)


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
        to_sklearn(model)
