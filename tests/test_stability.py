"""Which features are the strongest, and whether models agree about them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from sparsemargin import PNormPerceptron
from sparsemargin.datasets import make_alma_target
from sparsemargin.evaluation import (
    effective_number,
    mean_jaccard,
    random_splits,
    selection_stability,
    strongest_features,
    weights_on_splits,
)


def test_the_strongest_are_those_of_a_full_sort():
    random = np.random.RandomState(0)
    for top in (0, 1, 7, 50, 80):
        weights = random.randint(-5, 6, size=60).astype(float)  # many of them equal
        expected = np.argsort(-np.abs(weights), kind="stable")
        expected = expected[weights[expected] != 0][:top]
        assert_array_equal(strongest_features(weights, top), expected)


def test_agreement_of_the_strongest_features():
    first, second = np.array([5.0, -4, 0.1, 0]), np.array([0.1, 4, -5, 0])
    assert mean_jaccard([first, -first], 2) == 1
    assert_allclose(mean_jaccard([first, second], 2), 1 / 3)
    assert_allclose(mean_jaccard([first, first, second], 2), (1 + 1 / 3 + 1 / 3) / 3)


def test_effective_number_of_equal_weights_is_their_number():
    assert_allclose(effective_number(np.array([2.0, -2, 0, 2, 0])), 3)
    assert effective_number(np.array([1.0, 0.1, 0])) < 1.1
    assert_allclose(effective_number([1e200, 1e200]), 2)
    assert np.isnan(effective_number([0.0, 0.0]))


def test_frequencies_are_counts_over_the_splits():
    X, y, *_ = make_alma_target(200, 1, random_state=0)
    splits = random_splits(200, train_size=100, test_size=100, n_splits=4, random_state=0)
    model = PNormPerceptron(p=6, shuffle=False)
    found = selection_stability(model, X, y, splits, top=5)
    weights = weights_on_splits(model, X, y, splits)
    for k, (train, _) in enumerate(splits):
        assert_array_equal(weights[k], model.fit(X[train], y[train]).coef_[0])
    chosen = [strongest_features(vector, 5) for vector in weights]
    counts = np.bincount(np.concatenate(chosen), minlength=300)
    assert_array_equal(found.frequencies, counts / 4)
    assert found.agreement == mean_jaccard(weights, 5)


def test_weights_are_those_of_the_label():
    random = np.random.RandomState(0)
    X, y = random.standard_normal((60, 5)), np.repeat(["a", "b", "c"], 20)
    model = LinearSVC(random_state=0)
    splits = random_splits(60, train_size=40, test_size=20, n_splits=2, random_state=0)
    train = splits[0][0]
    coef = model.fit(X[train], y[train]).coef_
    assert_array_equal(weights_on_splits(model, X, y, splits, label="b")[0], coef[1])
    two = np.where(y == "a", "a", "b")
    against, for_it = (weights_on_splits(model, X, two, splits, label=k) for k in ("a", "b"))
    assert_array_equal(against, -for_it)
    with pytest.raises(ValueError, match="label=None is not among the classes"):
        weights_on_splits(model, X, y, splits)


def test_what_has_no_agreement_is_refused():
    X, y = np.eye(6), np.array([0, 1, 0, 1, 0, 1])
    one = [(np.arange(4), np.arange(4, 6))]
    with pytest.raises(ValueError, match="at least two models, or two splits"):
        selection_stability(LinearSVC(), X, y, one)
    with pytest.raises(ValueError, match="top must be 1 or more, got 0"):
        selection_stability(LinearSVC(), X, y, 2, top=0)
    with pytest.raises(ValueError, match="PNormPerceptron has no weight vector"):
        weights_on_splits(PNormPerceptron(kernel="rbf"), X, y, 2)
    with pytest.raises(ValueError, match="SVC has no weight vector for each class"):
        weights_on_splits(SVC(kernel="linear"), X, [0, 1, 2, 0, 1, 2], 2, label=1)
    with pytest.raises(ValueError, match=r"of a pipeline its last step, pipeline\[-1\]"):
        weights_on_splits(make_pipeline(LinearSVC()), X, y, 2)
    with pytest.raises(ValueError, match="weights must be a vector"):
        strongest_features(np.eye(2), 1)
