"""The strongest features of each class."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from sparsemargin import ALMAClassifier, AROWClassifier, PNormPerceptron, write_readable
from sparsemargin.evaluation import explain_row, top_features
from sparsemargin.evaluation.vectors import strongest_features


def test_the_strongest_are_those_of_a_full_sort():
    random = np.random.RandomState(0)
    for top in (0, 1, 7, 50, 80):
        weights = random.randint(-5, 6, size=60).astype(float)  # many weights are equal
        expected = np.argsort(-np.abs(weights), kind="stable")
        expected = expected[weights[expected] != 0][:top]
        assert_array_equal(strongest_features(weights, top), expected)


TEXTS = ["free money", "money now", "see you now", "see the plan"]
LABELS = ["spam", "spam", "ham", "ham"]


@pytest.mark.parametrize("model", [AROWClassifier(random_state=0), LinearSVC()], ids=repr)
def test_words_that_speak_for_each_class_are_told_by_name(model):
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


def test_so_they_are_for_many_classes_and_labels():
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
def test_what_has_no_top_features_is_refused(model, settings, told):
    with pytest.raises(ValueError, match=told):
        top_features(model, **settings)


def test_names_in_a_series_are_taken_in_their_order(tmp_path):
    pandas = pytest.importorskip("pandas")
    model = AROWClassifier(random_state=0).fit(np.eye(3), [0, 1, 2])
    for index in ([2, 0, 1], ["x", "y", "z"]):
        # A table has such an index after its rows were sorted or filtered.
        names = pandas.Series(["a", "b", "c"], index=index)
        top = top_features(model, 1, feature_names=names)
        assert [pairs[0][0] for pairs in top.values()] == ["a", "b", "c"]
        assert explain_row(model, [[0, 0, 1]], feature_names=names)[0].names == ["c"]
        write_readable(tmp_path / "of series", model, names)
        write_readable(tmp_path / "of list", model, list(names))
        assert (tmp_path / "of series").read_text() == (tmp_path / "of list").read_text()


@pytest.mark.parametrize("names", [
    {"a": 0, "b": 1}, {"a", "b"}, np.array([["a"], ["b"]]), (name for name in "ab")
])  # fmt: skip
def test_names_without_an_order_are_refused(names):
    model = LinearSVC().fit(np.eye(2), [0, 1])
    with pytest.raises(ValueError, match=r"feature_names is a .*\. Pass a list of names"):
        top_features(model, feature_names=names)
