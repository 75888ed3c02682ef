"""Models with kernels: their support set, attributes, copies, and errors."""

import _thread
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from threadpoolctl import ThreadpoolController

from depth import pairwise
from problems.kernels import (
    FIRST_ORDER,
    WITH_A_KERNEL,
    assert_same_outputs,
    first_order,
    make_rows,
    with_a_kernel,
)
from problems.models import HYPOTHESES, hypothesis_of
from sparsemargin import (
    MarginPerceptron,
    PNormPerceptron,
    ROMMAClassifier,
    load_model,
    save_model,
)
from sparsemargin._engine.kernel import loop, stored_products
from sparsemargin._engine.kernel.outputs import single_blas
from sparsemargin.evaluation import margins
from sparsemargin.kernels import RBF, Polynomial
from sparsemargin.saving.model_files import read_summary

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@first_order
def test_full_pool_raises_an_error_and_keeps_the_model(estimator):
    X, y = make_rows(300, n_classes=3)
    bounded = RBF(1.0, max_support=20)
    model = estimator(kernel=bounded, max_iter=1, shuffle=False)
    with pytest.raises(ValueError, match="max_support=20"):
        model.fit(X, y)
    assert not hasattr(model, "classes_")
    model.fit(X[:15], y[:15])
    before, support = model.decision_function(X), model.support_.copy()
    with pytest.raises(ValueError, match="max_support"):
        model.fit(X, y)
    assert_array_equal(model.decision_function(X), before)
    assert_array_equal(model.support_, support)
    # Rejected rows do not get numbers.
    model.set_params(kernel=replace(bounded, when_full="skip")).partial_fit(X, y)
    assert len(np.unique(model.support_)) == len(model.support_) == 20


@pytest.mark.parametrize("estimator", dict.fromkeys([PNormPerceptron, *FIRST_ORDER]))
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("hypothesis", ["last", "vote"])
def test_full_pool_may_skip_trials(estimator, n_classes, hypothesis):
    X, y = make_rows(600, n_classes)
    params, kernel = {"max_iter": 1, "shuffle": False}, RBF(1.0)
    free = estimator(kernel=kernel, hypothesis="last", **params).fit(X, y)
    assert len(free.support_) > 40
    assert not np.any(free.n_passed_over_)
    limited = replace(kernel, max_support=20, when_full="skip")
    bounded = estimator(kernel=limited, hypothesis=hypothesis, **params)
    with pytest.warns(UserWarning, match="max_support"):
        bounded.fit(X, y)
    assert_array_equal(bounded.support_, free.support_[:20])
    # In a single epoch, nothing changes after the row that fills the pool.
    stop = bounded.support_[-1] + 1
    until = estimator(kernel=kernel, hypothesis="last", **params).fit(X[:stop], y[:stop])
    assert_array_equal(bounded.n_corrections_, until.n_corrections_)
    if hypothesis == "last":
        assert_same_outputs(bounded, until, X, 1e-12)
    assert np.shape(bounded.n_passed_over_) == np.shape(bounded.n_corrections_)
    assert np.all(bounded.n_passed_over_ > 0)
    if hypothesis == "last" and n_classes == 2 and estimator is PNormPerceptron:
        # The skipped trials are those that would have made a correction.
        wrong = np.where(y == 1, 1, -1) * bounded.decision_function(X) <= 0
        assert bounded.n_passed_over_ == np.count_nonzero(wrong[stop:])


# ROMMA soon makes no more mistakes on so few rows.
@pytest.mark.parametrize("estimator", [one for one in FIRST_ORDER if one is not ROMMAClassifier])
def test_rows_of_a_full_pool_are_still_corrected(estimator):
    X, y = make_rows(100)
    kernel = RBF(1.0, max_support=20, when_full="skip")
    params = {"kernel": kernel, "shuffle": False, "hypothesis": "last"}
    models = []
    for max_iter in 1, 10:
        with pytest.warns(UserWarning, match="max_support"):
            models.append(estimator(max_iter=max_iter, **params).fit(X, y))
    once, often = models
    assert_array_equal(often.support_, once.support_)
    assert often.n_corrections_ > once.n_corrections_


@with_a_kernel
@pytest.mark.parametrize(
    ("params", "missing", "word"),
    [
        ({"kernel": "rbf"}, ["coef_"], "kernel"),
        ({}, ["support_", "dual_coef_", "n_support_"], "_"),
        ({"kernel": "rbf", "hypothesis": "vote"}, ["dual_coef_", "intercept_"], "hypothesis"),
        ({"hypothesis": "random"}, ["coef_", "intercept_"], "'random' has no single weight"),
    ],
)
def test_missing_attributes_raise_an_explanatory_error(estimator, params, missing, word):
    if "hypothesis" in params and estimator not in FIRST_ORDER:
        pytest.skip("it has no such hypothesis")
    model = estimator(**params).fit(*make_rows())
    for name in missing:
        with pytest.raises(AttributeError, match=word):
            getattr(model, name)


SPACES = [
    {}, {"solver": "primal"}, {"solver": "dual"}, {"kernel": Polynomial(gamma=1.0, coef0=0.0)}
]  # fmt: skip


@pytest.mark.parametrize(
    ("estimator", "hypothesis", "n_classes"), pairwise(WITH_A_KERNEL, HYPOTHESES, [2, 3])
)
def test_outputs_are_zero_before_the_first_mistake(estimator, hypothesis, n_classes, tmp_path):
    X, y = np.eye(3), np.arange(3) % n_classes
    hypothesis = hypothesis_of(estimator, hypothesis)
    for space in SPACES:
        model = estimator(hypothesis=hypothesis, fit_intercept=False)
        if not set(space) <= set(model.get_params()):
            continue
        model.set_params(**space)
        # A row of zeros is a trial that cannot make a correction.
        model.partial_fit(np.zeros((1, 3)), [0], classes=range(n_classes))
        save_model(model, tmp_path / "a.model")
        assert read_summary(tmp_path / "a.model")["n_trials"] == 1
        for same in model, deepcopy(model), load_model(tmp_path / "a.model"):
            assert not same.decision_function(X).any()
            assert_array_equal(same.predict(X), [0] * 3)
            if hypothesis != "random":
                assert not margins(same, X, y).any()


@with_a_kernel
def test_kernel_model_copies_its_rows(estimator):
    X, y = make_rows()
    model = estimator(kernel=RBF(1.0)).fit(X, y)
    Z = X.copy()
    before = model.decision_function(Z)
    X[:] = 0
    assert_array_equal(model.decision_function(Z), before)


@with_a_kernel
def test_row_numbers_continue_across_calls(estimator):
    X, y = make_rows(400)

    def new():
        how = {"warm_start": True, "shuffle": False, "max_iter": 1, "hypothesis": "last"}
        return estimator(kernel=RBF(0.3), **how)

    (X_1, y_1), (X_2, y_2) = (X[:150], y[:150]), (X[150:], y[150:])
    expected = new().fit(X, y).support_
    assert expected.max() >= 150
    for made in (
        new().fit(X_1, y_1).fit(X_2, y_2),
        new().fit(X_1, y_1).partial_fit(X_2, y_2),
        new().partial_fit(X_1, y_1, [0, 1]).fit(X_2, y_2),
    ):
        assert_array_equal(made.support_, expected)
        assert_same_outputs(made, new().fit(X, y), X, 1e-9)
    again = new().fit(X, y).fit(X, y)
    assert again.support_.max() < 400
    assert len(np.unique(again.support_)) == len(again.support_)


@pytest.mark.parametrize("hypothesis", ["last", "average", "vote"])
@pytest.mark.parametrize("at", range(1, 8))
def test_failing_kernel_does_not_change_the_model(at, hypothesis):
    X, y = make_rows(300, n_classes=3)
    left = np.inf

    def kernel(X, Z):
        nonlocal left
        left -= 1
        if left == 0:
            raise ZeroDivisionError("none of ours")
        return X @ Z.T

    # The steps differ so much that norms are recomputed, with the kernel, inside a block.
    weight = 10.0 ** np.linspace(-140, 140, len(X))
    model = PNormPerceptron(kernel=kernel, hypothesis=hypothesis)
    model.partial_fit(X[:100], y[:100], classes=[0, 1, 2], sample_weight=weight[:100])
    before, support = model.decision_function(X), model.support_
    left = at
    with pytest.raises(ZeroDivisionError):
        model.partial_fit(X[100:], y[100:], sample_weight=weight[100:])
    left = np.inf
    assert_array_equal(model.support_, support)
    assert_array_equal(model.decision_function(X), before)


def test_non_finite_outputs_raise_an_error():
    X, y = make_rows(300, n_classes=3)
    model = MarginPerceptron(kernel=Polynomial(1, gamma=1.0), margin=1e308)
    model.partial_fit(1e139 * X, y, classes=[0, 1, 2], sample_weight=np.ones(300))
    model.partial_fit(1e139 * X, y, sample_weight=np.full(300, 1e120))
    with pytest.raises(ValueError, match="exceeds a float64"):
        model.predict(1e139 * X)


@pytest.mark.parametrize("kernel", [Polynomial(gamma=1e300), Polynomial(1000, gamma=1, coef0=5)])
def test_rows_too_long_for_the_kernel_are_reported(kernel):
    X, y = make_rows()
    X[0] = 2.0
    with pytest.raises(ValueError, match=r"Row 0 .*feature space.*gamma"):
        PNormPerceptron(kernel=kernel).fit(X, y)


@pytest.mark.parametrize("hypothesis", ["last", "vote", "random"])
def test_too_long_rows_in_prediction_are_reported(hypothesis):
    X, y = make_rows()
    model = PNormPerceptron(kernel=Polynomial(gamma=1.0), hypothesis=hypothesis, random_state=0)
    model.fit(X, y)
    X[7] *= 1e100
    calls = [margins] * (hypothesis != "random")
    for call in [lambda model, X, y: model.predict(X), *calls]:
        with pytest.raises(ValueError, match=r"Row 7 .*feature space"):
            call(model, X, y)


def test_interrupted_epochs_end_with_a_block(monkeypatch):
    X, y = make_rows(600)
    learn, calls = stored_products.learn_vector, []

    def interrupted(*call):
        calls.append(call)
        if len(calls) == 2:
            _thread.interrupt_main()
        return learn(*call)

    params = {"kernel": RBF(0.01), "shuffle": False}
    model = PNormPerceptron(**params).partial_fit(X[:1], y[:1], classes=[0, 1])
    monkeypatch.setattr(stored_products, "learn_vector", interrupted)
    monkeypatch.setattr(loop, "MEMORY", 0)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[1:], y[1:])
    assert 1 < model.t_ - 1 < 600
    expected = PNormPerceptron(max_iter=(model.t_ - 1) / 600, **params).fit(X, y)
    assert_array_equal(model.support_, expected.support_)
    assert_same_outputs(model, expected, X, 1e-9)


def test_blas_limits_are_set_and_restored_from_any_thread():
    with single_blas():
        controller = ThreadpoolController().select(user_api="blas")

    def threads():
        return {library["num_threads"] for library in controller.info()}

    before = threads()
    with ThreadPoolExecutor(1) as another:
        another.submit(single_blas().__enter__).result()
        with single_blas():
            # The thread that came first leaves first.
            another.submit(single_blas().__exit__, None, None, None).result()
            assert threads() == {1}
    assert threads() == before
