"""The dual forms of the Higher-order and the Second-order Perceptron: what they share with the
primal ones, and what the pool of rows brings with it."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix

from problems.higher_order import PAPER
from sparsemargin import (
    HigherOrderPerceptron,
    SecondOrderPerceptron,
    load_model,
    save_model,
)
from sparsemargin._engine.hypotheses import matrix as replays
from sparsemargin._engine.matrix import spaces
from sparsemargin.models import matrix

MODELS = {
    "HO": (HigherOrderPerceptron, {"c": 0.6}),
    "sparse HO": (HigherOrderPerceptron, {"sparse_updates": True}),
    "bounded HO": (HigherOrderPerceptron, {"max_updates": 15}),
    "SO": (SecondOrderPerceptron, {"a": 0.5}),
    "bounded SO": (SecondOrderPerceptron, {"max_updates": 15}),
}
HYPOTHESES = ["last", "average", "vote", "random"]
every_model = pytest.mark.parametrize("name", list(MODELS))
every_hypothesis = pytest.mark.parametrize("hypothesis", HYPOTHESES)


def make(name, **params):
    model, own = MODELS[name]
    return model(**{**PAPER, "random_state": 3, **own, **params})


def noisy(n_rows, n_classes, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n_rows, 8))
    outputs = X @ rng.standard_normal((8, n_classes)) + rng.standard_normal((n_rows, n_classes))
    return X, outputs.argmax(axis=1)


@every_model
@every_hypothesis
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("normalized", [False, True])
def test_the_linear_dual_form_is_the_implicit_one(name, hypothesis, n_classes, normalized):
    X, y = noisy(600, n_classes)
    points, _ = noisy(50, n_classes, seed=1)
    weights = np.random.RandomState(2).choice([0.0, 0.5, 1.0, 2.0], len(y))
    params = {
        "hypothesis": hypothesis, "normalize_hypotheses": normalized, "max_iter": 1.7,
        "fit_intercept": True, "intercept_scaling": 0.5, "max_corrections": 300,
    }  # fmt: skip
    dual = make(name, solver="dual", **params).fit(X, y, sample_weight=weights)
    implicit = make(name, solver="implicit", **params).fit(X, y, sample_weight=weights)
    for count in ("n_corrections_", "n_updates_"):
        assert_array_equal(getattr(dual, count), getattr(implicit, count))
    assert_array_equal(np.hstack(dual.mistakes_), np.hstack(implicit.mistakes_))
    expected = implicit.decision_function(points)
    assert_allclose(
        dual.decision_function(points), expected, rtol=0, atol=1e-9 * abs(expected).max()
    )


@every_model
@pytest.mark.parametrize("kernel", ["poly", "rbf", "polyrbf"])
def test_outputs_are_those_of_the_dual_coefficients(name, kernel):
    from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

    functions = {
        "poly": lambda A, B: polynomial_kernel(A, B, degree=3, gamma=0.2, coef0=1.0),
        "rbf": lambda A, B: rbf_kernel(A, B, gamma=0.2),
        "polyrbf": lambda A, B: (1.0 + rbf_kernel(A, B, gamma=0.2)) ** 3,
    }
    X, y = noisy(500, 3)
    points, _ = noisy(40, 3, seed=1)
    params = {"kernel": kernel, "gamma": 0.2, "coef0": 1.0, "fit_intercept": True}
    model = make(name, **params).fit(X, y)
    products = functions[kernel](X[model.support_], points)
    assert_allclose(
        model.decision_function(points), (model.dual_coef_ @ products).T + model.intercept_,
        rtol=1e-10, atol=1e-12,
    )  # fmt: skip
    assert model.solver_ == ["dual"] * 3
    assert (model.n_support_ <= model.n_corrections_).all()
    gram = functions[kernel](X, X)
    given = make(name, kernel="precomputed", fit_intercept=True).fit(gram, y)
    assert_array_equal(given.support_, model.support_)
    assert_allclose(given.dual_coef_, model.dual_coef_, rtol=1e-8, atol=1e-12)


@every_model
@every_hypothesis
def test_copies_files_sparse_rows_and_threads_change_nothing(name, hypothesis, tmp_path):
    X, y = noisy(400, 3)
    params = {"hypothesis": hypothesis, "kernel": "rbf", "gamma": 0.1, "max_iter": 2}
    model = make(name, **params).fit(X, y)
    expected = model.decision_function(X)
    save_model(model, tmp_path / "model")
    copies = [
        pickle.loads(pickle.dumps(model)), copy.deepcopy(model), load_model(tmp_path / "model"),
        make(name, **params, n_jobs=2).fit(X, y), make(name, **params).fit(csr_matrix(X), y),
    ]  # fmt: skip
    for other in copies:
        assert_array_equal(other.decision_function(X), expected)
        assert_array_equal(other.support_, model.support_)
    loaded = copies[2].partial_fit(X[:100], y[:100])
    assert_array_equal(
        loaded.decision_function(X), model.partial_fit(X[:100], y[:100]).decision_function(X)
    )


@every_model
def test_batches_and_warm_starts_are_epochs(name):
    X, y = noisy(700, 3)
    params = {"kernel": "poly", "gamma": 0.2, "coef0": 1.0, "shuffle": False}
    whole = make(name, **params).fit(X, y)
    stream = make(name, **params)
    for start, stop in ((0, 5), (5, 300), (300, 700)):
        stream.partial_fit(X[start:stop], y[start:stop], classes=np.arange(3))
    assert_array_equal(stream.support_, whole.support_)
    assert_allclose(stream.dual_coef_, whole.dual_coef_, rtol=1e-9, atol=1e-12)
    twice = make(name, **params, max_iter=2).fit(X, y)
    warm = make(name, **params, warm_start=True).fit(X, y).fit(X, y)
    assert_array_equal(warm.support_, twice.support_)
    assert_allclose(warm.dual_coef_, twice.dual_coef_, rtol=1e-9, atol=1e-12)


@every_model
@every_hypothesis
def test_vectors_are_replayed_some_at_a_time(name, hypothesis, monkeypatch):
    X, y = noisy(600, 3)
    model = make(name, kernel="rbf", gamma=0.1, hypothesis=hypothesis, max_iter=3).fit(X, y)
    expected = model.decision_function(X)
    monkeypatch.setattr(replays.SupportPoints, "memory", 1)
    monkeypatch.setattr(replays, "_VECTORS", 7)
    assert_allclose(model.decision_function(X), expected, rtol=0, atol=1e-9)


def test_a_full_matrix_is_told_and_learned_on_without(monkeypatch):
    X, y = noisy(500, 2)
    monkeypatch.setattr(matrix, "MATRIX_MEMORY", 4 * 30 * 31)
    with pytest.warns(UserWarning, match="stopped growing after 30 mistakes"):
        model = SecondOrderPerceptron(kernel="rbf", gamma=0.1).fit(X, y)
    assert model.n_updates_ == 30 < model.n_corrections_
    assert spaces.MATRIX_MEMORY > 1 << 20
    with pytest.raises(ValueError, match="normalize_hypotheses"):
        SecondOrderPerceptron(kernel="rbf", gamma=0.1, normalize_hypotheses=True).fit(X, y)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"kernel": "rbf", "solver": "primal"}, "solver='primal'"),
        ({"kernel": "rbf", "solver": "implicit"}, "solver='implicit'"),
        ({"solver": "dual", "p": 3}, "p=2"),
        ({"kernel": "rbf", "p": "log"}, "p=2"),
    ],
)
def test_what_does_not_go_together_is_refused(params, words):
    with pytest.raises(ValueError, match=words):
        HigherOrderPerceptron(**params).fit(*noisy(20, 2))


def test_a_precomputed_kernel_goes_on_with_its_own_rows_only():
    X, y = noisy(60, 2)
    model = SecondOrderPerceptron(kernel="precomputed", warm_start=True).fit(X @ X.T, y)
    model.fit(X @ X.T, y)
    with pytest.raises(ValueError, match="warm_start"):
        model.fit(2.0 * X @ X.T, y)


@pytest.mark.parametrize("name", ["HO", "SO"])
def test_support_rows_are_numbered_on_from_call_to_call(name):
    kind, params = MODELS[name]
    X, y = noisy(400, 2)

    def new():
        how = {"warm_start": True, "shuffle": False, "max_iter": 1, "intercept_scaling": 1.0}
        return kind(kernel="rbf", gamma=0.1, **how, **params)

    (X_1, y_1), (X_2, y_2) = (X[:150], y[:150]), (X[150:], y[150:])
    expected = new().fit(X, y).support_
    assert expected.max() >= 150
    for made in (
        new().fit(X_1, y_1).fit(X_2, y_2),
        new().fit(X_1, y_1).partial_fit(X_2, y_2),
        new().partial_fit(X_1, y_1, [0, 1]).fit(X_2, y_2),
    ):
        np.testing.assert_array_equal(made.support_, expected)
    again = new().fit(X, y).fit(X, y)
    assert again.support_.max() < 400
    assert len(np.unique(again.support_)) == len(again.support_)
