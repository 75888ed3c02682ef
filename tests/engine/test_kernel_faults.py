"""What goes wrong while a kernel model learns leaves it whole."""

import numpy as np
import pytest

from sparsemargin import ALMAClassifier, PNormPerceptron
from sparsemargin.evaluation import hypothesis_errors, margins

CLASSIFIERS = [PNormPerceptron, ALMAClassifier]


def make_rows(m=300, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.randn(m, 4)
    return X, (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] > 1)


class Kernel:
    """A dot product that fails at one of its calls."""

    def __init__(self):
        self.left = np.inf

    def __call__(self, X, Z):
        self.left -= 1
        if self.left == 0:
            raise ZeroDivisionError("none of ours")
        return X @ Z.T


@pytest.mark.parametrize("hypothesis", ["last", "average", "vote"])
@pytest.mark.parametrize("at", range(1, 8))
def test_a_kernel_that_raises_leaves_the_model_as_it_was(at, hypothesis):
    X, y = make_rows()
    # Steps so unlike each other that norms are worked out afresh, by the kernel, within a block.
    weight = 10.0 ** np.linspace(-140, 140, len(X))
    kernel = Kernel()
    model = PNormPerceptron(kernel=kernel, hypothesis=hypothesis)
    model.partial_fit(X[:100], y[:100], classes=[0, 1, 2], sample_weight=weight[:100])
    before, support = model.decision_function(X), model.support_
    kernel.left = at
    with pytest.raises(ZeroDivisionError):
        model.partial_fit(X[100:], y[100:], sample_weight=weight[100:])
    kernel.left = np.inf
    np.testing.assert_array_equal(model.support_, support)
    np.testing.assert_array_equal(model.decision_function(X), before)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_rows_are_numbered_on_from_call_to_call(classifier):
    X, y = make_rows()
    model = classifier(kernel="rbf", gamma=0.3, hypothesis="last", warm_start=True, random_state=0)
    model.fit(X[:120], y[:120]).fit(X[:120], y[:120])
    assert model.support_.max() < 120
    model.partial_fit(X[120:200], y[120:200])
    model.fit(X[200:], y[200:])
    assert len(np.unique(model.support_)) == len(model.support_)
    assert model.support_.max() >= 200
    distances = ((X[:50, np.newaxis] - X[model.support_]) ** 2).sum(axis=2)
    outputs = np.exp(-0.3 * distances) @ model.dual_coef_.T
    np.testing.assert_allclose(model.decision_function(X[:50]), outputs, rtol=1e-9, atol=1e-11)


def test_a_full_pool_is_numbered_on_too():
    X, y = make_rows()
    model = PNormPerceptron(kernel="rbf", gamma=0.3, max_support=30)
    model.partial_fit(X[:20], y[:20], classes=[0, 1, 2])
    with pytest.raises(ValueError, match="max_support=30"):
        model.partial_fit(X[20:], y[20:])
    model.set_params(when_full="skip").partial_fit(X[:20], y[:20])
    assert len(np.unique(model.support_)) == len(model.support_) == 30


def test_outputs_that_are_no_numbers_are_refused():
    X, y = make_rows()
    weight = np.ones(len(X))
    weight[:7] = 1e308
    model = PNormPerceptron(kernel="rbf", gamma=0.3, max_iter=3)
    model.fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match="exceeds a float64"):
        model.predict(X)


@pytest.mark.parametrize("params", [{"kernel": "poly", "gamma": 1e300}, {
    "kernel": "poly", "degree": 1000, "gamma": 1.0, "coef0": 5.0,
}])  # fmt: skip
def test_rows_too_long_for_the_kernel_are_refused_by_number(params):
    X, y = make_rows()
    with pytest.raises(ValueError, match=r"Row 0 .*feature space.*gamma"):
        PNormPerceptron(**params).fit(X, y)


@pytest.mark.parametrize("hypothesis", ["last", "vote", "random"])
def test_rows_to_predict_that_are_too_long_are_refused_by_number(hypothesis):
    X, y = make_rows()
    model = PNormPerceptron(kernel="poly", gamma=1.0, hypothesis=hypothesis, random_state=0)
    model.fit(X, y)
    X[7] *= 1e100
    refused = pytest.raises(ValueError, match=r"Row 7 .*feature space")
    for call in [model.predict, lambda X: margins(model, X, y)][: 1 + (hypothesis == "last")]:
        with refused:
            call(X)
    if hypothesis == "vote":
        with refused:
            hypothesis_errors(model, X, y, [1])
