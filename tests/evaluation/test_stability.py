"""Selection of the strongest features and its stability over splits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import VarianceThreshold
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from sparsemargin import ALMAClassifier, AROWClassifier, PNormPerceptron
from sparsemargin.datasets import make_alma_target
from sparsemargin.evaluation import selection_stability, top_features
from sparsemargin.evaluation.weights import strongest_features


def test_top_features_agree_with_a_full_sort():
    random = np.random.RandomState(0)
    for top in (0, 1, 7, 50, 80):
        weights = random.randint(-5, 6, size=60).astype(float)  # many weights are equal
        expected = np.argsort(-np.abs(weights), kind="stable")
        expected = expected[weights[expected] != 0][:top]
        assert_array_equal(strongest_features(weights, top), expected)


TEXTS = ["free money", "money now", "see you now", "see the plan"]
LABELS = ["spam", "spam", "ham", "ham"]


@pytest.mark.parametrize("model", [AROWClassifier(random_state=0), LinearSVC()], ids=repr)
def test_top_features_names_the_words_of_each_class(model):
    pipeline = make_pipeline(TfidfVectorizer(), model).fit(TEXTS, LABELS)
    words = pipeline[0].get_feature_names_out()
    spam = top_features(pipeline, 3)["spam"]
    assert spam[0][0] == "money"
    for label, sign in ("ham", -1), ("spam", 1):
        weights = sign * pipeline[-1].coef_[0]
        falling = np.argsort(-weights, kind="stable")
        falling = falling[weights[falling] > 0]
        expected = [(words[j], weights[j]) for j in falling]
        assert top_features(pipeline, 99)[label] == expected
        assert top_features(pipeline, 2)[label] == expected[:2]
    assert top_features(pipeline[-1], 3, feature_names=pipeline[0])["spam"] == spam
    numbers = [name for name, _ in top_features(pipeline[-1], 3)["spam"]]
    assert [words[int(j)] for j in numbers] == [name for name, _ in spam]


def test_top_features_covers_many_classes_and_labels():
    X, y = np.eye(3), ["a", "b", "c"]
    model = PNormPerceptron(random_state=0).fit(X, y).sparsify()
    firsts = {label: pairs[0][0] for label, pairs in top_features(model).items()}
    assert firsts == {"a": "0", "b": "1", "c": "2"}
    several = ALMAClassifier(random_state=0).fit(X, [["a"], ["b"], ["a", "b"]])
    assert {label: len(top_features(several, 1)[label]) for label in "ab"} == {"a": 1, "b": 1}


@pytest.mark.parametrize(("model", "settings", "told"), [
    (PNormPerceptron(), {}, "not fitted"),
    (PNormPerceptron(hypothesis="vote").fit(np.eye(2), [0, 1]), {}, "hypothesis is 'last' or"),
    (LinearSVC().fit(np.eye(2), [0, 1]), {"feature_names": ["a"]}, "1 names, but there are 2"),
    (LinearSVC().fit(np.eye(2), [0, 1]), {"top": -1}, "top must be 0 or more, got -1"),
])  # fmt: skip
def test_top_features_rejects_models_without_weights(model, settings, told):
    with pytest.raises(ValueError, match=told):
        top_features(model, **settings)


class FirstRow(LinearSVC):
    """Classifier whose weights are the first training row."""

    def fit(self, X, y):
        self.coef_, self.classes_ = X[:1], np.array([0, 1])
        return self


def stability_of(*weights, top=2):
    """Return the stability of models with these weights, one model per split."""
    y, splits = np.zeros(len(weights)), [([k], [0]) for k in range(len(weights))]
    return selection_stability(FirstRow(), np.array(weights), y, splits, top=top)


def test_agreement_and_effective_number_of_features_are_reported():
    first, second = np.array([5.0, -4, 0.1, 0]), np.array([0.1, 4, -5, 0])
    assert stability_of(first, -first).agreement == 1
    assert_allclose(stability_of(first, first, second).agreement, (1 + 1 / 3 + 1 / 3) / 3)
    # For equal weights, the effective number is the number of weights.
    weights = [2.0, -2, 0, 2, 0], [1.0, 0.1, 0, 0, 0], [1e200, 1e200, 0, 0, 0], [0.0] * 5
    equal, one, large, none = stability_of(*weights).effective_numbers
    assert_allclose([equal, large], [3, 2])
    assert one < 1.1
    assert np.isnan(none)


def test_selection_frequencies_count_splits():
    X, y, *_ = make_alma_target(200, 1, random_state=0)
    splits = list(ShuffleSplit(4, train_size=0.5, random_state=0).split(X))
    model = PNormPerceptron(p=6, shuffle=False)
    found = selection_stability(model, X, y, splits, top=5)
    weights = [model.fit(X[train], y[train]).coef_[0] for train, _ in splits]
    chosen = [strongest_features(vector, 5) for vector in weights]
    counts = np.bincount(np.concatenate(chosen), minlength=300)
    assert_array_equal(found.frequencies, counts / 4)
    assert found.agreement == stability_of(*weights, top=5).agreement


def test_selection_stability_uses_weights_of_the_label():
    random = np.random.RandomState(0)
    X, y = random.standard_normal((60, 5)), np.repeat(["a", "b", "c"], 20)
    model, splits = LinearSVC(), [(np.arange(i, 60, 2), [0]) for i in range(2)]
    weights = [model.fit(X[train], y[train]).coef_[1] for train, _ in splits]
    found = selection_stability(model, X, y, splits, label="b")
    assert_allclose(found.effective_numbers, [np.sum(w**2) ** 2 / np.sum(w**4) for w in weights])
    two = np.where(y == "a", "a", "b")
    for_it, *more = (selection_stability(model, X, two, splits, label=k) for k in ("b", "a", None))
    for other in more:
        assert_array_equal(other.effective_numbers, for_it.effective_numbers)


@pytest.mark.parametrize(("model", "settings", "told"), [
    (LinearSVC(), {"splits": [(np.arange(4), np.arange(4, 6))]}, "at least two splits"),
    (LinearSVC(), {"top": 0}, "top must be 1 or more, got 0"),
    (PNormPerceptron(kernel="rbf"), {}, "PNormPerceptron has no weight vector"),
    (SVC(kernel="linear"), {"y": [0, 1, 2] * 2, "label": 1}, "SVC has no weight vector for each"),
    (make_pipeline(VarianceThreshold(), LinearSVC()), {}, "make other columns on each split"),
    (LinearSVC(), {"y": [0, 1, 2] * 2}, r"Pass label=, the one of \[0, 1, 2\].*got None"),
])  # fmt: skip
def test_selection_stability_rejects_unsuitable_models(model, settings, told):
    with pytest.raises(ValueError, match=told):
        selection_stability(model, **{"X": np.eye(6), "y": [0, 1] * 3, "splits": 2} | settings)
