"""Margins in feature space, and fits that Ctrl-C ends."""

import _thread
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from threadpoolctl import ThreadpoolController, threadpool_info

from sparsemargin import ALMAClassifier, PNormPerceptron
from sparsemargin._engine.fitting.threads import uninterrupted
from sparsemargin._engine.kernel.outputs import single_blas
from sparsemargin.evaluation import margins


def quadratic_features(X):
    """Of which the dot products are ``(x.z + 1)**2``."""
    n = X.shape[1]
    pairs = [np.sqrt(2) * X[:, i] * X[:, j] for i in range(n) for j in range(i)]
    return np.column_stack([X**2, *pairs, np.sqrt(2) * X, np.ones(len(X))])


@pytest.fixture(scope="module")
def problem():
    random = np.random.RandomState(0)
    X = random.randn(600, 5)
    y = (X[:, 0] * X[:, 1] > 0) + (X[:, 2] ** 2 > 1)
    return X, y


@pytest.mark.parametrize("hypothesis", ["last", "average", "vote"])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_margins_are_those_of_explicit_features(
    problem, n_classes, fit_intercept, normalize, hypothesis
):
    X, y = problem
    y = np.minimum(y, n_classes - 1)
    params = {
        "hypothesis": hypothesis, "fit_intercept": fit_intercept, "intercept_scaling": 1.0,
        "random_state": 0,
    }  # fmt: skip
    explicit = ALMAClassifier(**params).fit(quadratic_features(X), y)
    model = ALMAClassifier(kernel="poly", degree=2, gamma=1.0, coef0=1.0, **params).fit(X, y)
    expected = margins(explicit, quadratic_features(X), y, normalize=normalize)
    np.testing.assert_allclose(
        margins(model, X, y, normalize=normalize), expected, rtol=1e-9, atol=1e-11
    )


@pytest.mark.parametrize("normalize_hypotheses", [False, True])
def test_a_precomputed_kernel_has_margins_in_its_own_units(problem, normalize_hypotheses):
    X, y = problem
    K = X @ X.T
    params = {"hypothesis": "last", "normalize_hypotheses": normalize_hypotheses, "random_state": 0}
    model = PNormPerceptron(kernel="precomputed", **params).fit(K, y)
    plain = PNormPerceptron(fit_intercept=False, **params)
    expected = margins(plain.fit(X, y), X, y, normalize=False)
    np.testing.assert_allclose(margins(model, K, y, normalize=False), expected, rtol=1e-9)
    with pytest.raises(ValueError, match="normalize=False"):
        margins(model, K, y)
    with pytest.raises(ValueError, match="hypothesis='last'"):
        margins(PNormPerceptron(kernel="precomputed").fit(K, y), K, y, normalize=False)


def test_interrupted_fits_keep_what_they_learned():
    random = np.random.RandomState(0)
    X = random.randn(4000, 8)
    y = random.randint(2, size=len(X))
    # Without the interrupt this fit would go on for a very long time.
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    with pytest.warns(UserWarning, match="Interrupted"):
        model = PNormPerceptron(kernel="rbf", gamma=0.01, max_iter=10**6).fit(X, y)
    timer.join()
    made = np.count_nonzero(model.dual_coef_)
    assert 0 < made <= len(model.support_) == len(np.unique(model.support_))
    np.testing.assert_allclose(
        model.decision_function(X[:50]),
        np.exp(-0.01 * ((X[:50, np.newaxis] - X[model.support_]) ** 2).sum(axis=2))
        @ model.dual_coef_[0],
        rtol=1e-6, atol=1e-9,
    )  # fmt: skip


@pytest.mark.parametrize("m", [500, 4000])
def test_interrupted_fits_count_their_epochs(m):
    random = np.random.RandomState(0)
    X, y = random.randn(m, 8), random.randint(2, size=m)
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    with pytest.warns(UserWarning, match="Interrupted"):
        model = PNormPerceptron(kernel="rbf", gamma=0.01, max_iter=10**7).fit(X, y)
    timer.join()
    assert round(model.n_iter_ * m) == model._space.trials


def test_ctrl_c_waits_until_the_end():
    ended = []

    def call():
        with uninterrupted():
            _thread.interrupt_main()
            threading.Event().wait(0.01)
            ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        call()
    assert ended


def test_nothing_waits_outside_the_main_thread():
    def call():
        with uninterrupted():
            return 1

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(call).result() == 1


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_the_blas_gets_its_threads_back_whoever_ends_first():
    before = blas_threads()
    first, second = single_blas(), single_blas()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert min(blas_threads(), default=1) == 1
    second.__exit__(None, None, None)
    assert blas_threads() == before


def test_cross_validation_cuts_precomputed_kernels_both_ways(problem):
    X, y = problem
    params = {"shuffle": False, "max_iter": 2, "fit_intercept": False}
    expected = cross_val_score(PNormPerceptron(**params), X, y, cv=4)
    given = cross_val_score(PNormPerceptron(kernel="precomputed", **params), X @ X.T, y, cv=4)
    np.testing.assert_allclose(given, expected)


def test_any_thread_keeps_the_blas_to_itself_and_gives_it_back():
    def threads():
        return [library["num_threads"] for library in controller.info()]

    def hold(entered, leave):
        with single_blas():
            seen.append(threads())
            entered.set()
            leave.wait()

    with single_blas():
        controller = ThreadpoolController().select(user_api="blas")
    before, seen = threads(), []
    events = [(threading.Event(), threading.Event()) for _ in range(2)]
    runs = [threading.Thread(target=hold, args=pair) for pair in events]
    for run, (entered, _) in zip(runs, events, strict=True):
        run.start()
        entered.wait()
    for run, (_, leave) in zip(runs, events, strict=True):
        leave.set()
        run.join()
    assert seen == [[1] * len(before)] * 2
    assert threads() == before
