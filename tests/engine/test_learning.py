"""The loop over epochs: order, threads, stopping and resuming; messages and errors of a fit; and
its state after convergence, failure or an interrupt."""

import re
import threading
import time
import warnings
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from depth import pairwise, some
from problems.models import make_problem
from sparsemargin import (
    ALMAClassifier,
    CRAMMAClassifier,
    HigherOrderPerceptron,
    MarginPerceptron,
    MaxMarginClassifier,
    PNormPerceptron,
    ROMMAClassifier,
    SecondOrderPerceptron,
)
from sparsemargin._engine.first_order import gram_loop as gram
from sparsemargin._engine.first_order import linear_loop
from sparsemargin._engine.fitting import certificate, protocol, threads
from sparsemargin._engine.fitting import epochs as learning
from sparsemargin._engine.matrix import loop as matrix_loop
from sparsemargin.datasets import make_zipf_text

ESTIMATORS = [PNormPerceptron, ALMAClassifier]
VECTORS = ["last", "average"]
POWERS = [2.0, 6.0]


def make_contradiction():
    """Return rows that no hyperplane separates."""
    X, y = make_problem()
    return sp.vstack([X, X], format="csr"), np.concatenate([y, 1 - y])


def make_dense(m=60, n=8, noise=0):
    """Return dense rows and labels of a hyperplane through the origin; the first `noise` are
    wrong."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, n))
    y = (X @ rng.standard_normal(n) > 0).astype(int)
    y[:noise] = 1 - y[:noise]
    return X, y


@pytest.fixture
def threads_at_once(monkeypatch):
    """Let a fit use all permitted threads, even for little work."""
    monkeypatch.setattr(threads, "PRODUCTS_PER_THREAD", 1)
    monkeypatch.setattr(linear_loop, "LINE_BYTES", 1)


def assert_same_model(one, other):
    for name in ("n_corrections_", "theta_", "theta_norm_"):
        assert_array_equal(getattr(one, name), getattr(other, name))
    X = sp.identity(one.n_features_in_, format="csr")
    assert_array_equal(one.decision_function(X), other.decision_function(X))


def streamed(model, X, y, n_passes=1):
    for _ in range(n_passes):
        model.partial_fit(X, y, classes=np.unique(y))
    return model


def test_row_order_depends_on_random_state():
    X, y = make_problem()
    instance = np.random.RandomState(3)
    first, again, other, of_instance, later = (
        PNormPerceptron(random_state=state).fit(X, y) for state in (3, 3, 4, instance, instance)
    )
    assert_same_model(first, again)
    assert_same_model(first, of_instance)
    assert not np.array_equal(first.coef_, other.coef_)
    assert not np.array_equal(first.coef_, later.coef_)


def test_every_epoch_is_reshuffled_and_uses_every_row_once(monkeypatch):
    # On orthogonal rows every row corrects once in any order. Its correction counts in the average
    # from its place on, so the average shows the order of the epoch.
    m = 30
    X, y = sp.identity(m, format="csr"), np.arange(m) % 2
    places, halves = [], []
    for seed in 0, 1:
        model = PNormPerceptron(max_iter=1, random_state=seed, fit_intercept=False).fit(X, y)
        assert model.n_corrections_ == m
        places.append(m - np.abs(model.coef_[0]) * m)
        assert_array_equal(np.sort(places[-1].round(9)), np.arange(m))
        halves.append(model.set_params(max_iter=0.5).fit(X, y).theta_[0] != 0)
        assert halves[-1].sum() == m / 2
    assert not np.array_equal(*places)
    assert not np.array_equal(*halves)
    X, y = make_problem()
    once = PNormPerceptron(max_iter=1, random_state=0, warm_start=True).fit(X, y)
    twice = PNormPerceptron(max_iter=2, random_state=0).fit(X, y)
    assert not np.array_equal(once.fit(X, y).theta_, twice.theta_)
    # The result does not depend on whether epochs are run in one call or in several.
    model = PNormPerceptron(max_iter=4, random_state=0)
    in_one = model.fit(X, y).theta_
    monkeypatch.setattr(learning, "PRODUCTS_PER_CALL", 1)
    assert_array_equal(model.fit(X, y).theta_, in_one)


@pytest.mark.usefixtures("threads_at_once")
@pytest.mark.parametrize(
    ("estimator", "hypothesis", "p", "max_corrections"),
    pairwise(ESTIMATORS, [*VECTORS, "vote", "random"], POWERS, [None, 4]),
)
def test_threads_and_parts_of_epochs_change_no_bit(
    estimator, hypothesis, p, max_corrections, monkeypatch
):
    X, y = make_problem(200, n_classes=7)
    params = {"p": p, "hypothesis": hypothesis, "random_state": 0, "fit_intercept": True}
    params["max_corrections"] = max_corrections
    alone = estimator(n_jobs=1, **params).fit(X, y)
    later = clone(alone).fit(X, y).partial_fit(X, y)
    for n_jobs, products in (2, None), (3, None), (20, None), (-1, None), (1, 100), (2, 100):
        if products:
            monkeypatch.setattr(protocol, "PRODUCTS_PER_CALL", products)
        model = estimator(n_jobs=n_jobs, **params).fit(X, y)
        assert_same_model(model, alone)
        assert_same_model(model.partial_fit(X, y), later)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    ("n_vectors", "n_threads"), [(3, 2), (8, 8), (16, 4), (20, 2), (64, 4), (93, 4), (93, 16)]
)
def test_ranges_of_threads_are_multiples_of_a_cache_line(n_vectors, n_threads, dtype):
    space = SimpleNamespace(
        n_vectors=n_vectors, trials=0, per_vector=lambda name: np.zeros(n_vectors),
        t=np.zeros((1, n_vectors), dtype),
    )  # fmt: skip
    ranges = linear_loop.cut_vectors(space, n_threads)
    n_lines = -(-n_vectors * space.t.itemsize // 64)
    assert len(ranges) <= min(n_threads, n_lines)
    assert len(ranges) >= min(n_threads, n_lines) / 2
    assert all(first * space.t.itemsize % 64 == 0 for first, _ in ranges)
    assert [i for first, last in ranges for i in range(first, last)] == [*range(n_vectors)]
    # A task with few multiplications uses fewer threads.
    least = threads.PRODUCTS_PER_THREAD
    assert [threads.threads_worth(8, n) for n in (1, least, 3 * least, 99 * least)] == [1, 1, 3, 8]


def test_no_call_runs_after_ctrl_c_at_the_start_of_a_thread(monkeypatch):
    """The thread is starting at that time, and the pool does not know it."""
    start, started, begun, ended = threading.Thread.start, [], [], []

    def interrupted(thread):
        start(thread)
        started.append(thread)
        if len(begun) > 0:
            raise KeyboardInterrupt

    def call(i):
        begun.append(i)
        time.sleep(0.05)
        ended.append(i)

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        threads.run_together([lambda i=i: call(i) for i in range(20)], 10)
    n_begun = len(begun)
    assert 0 < n_begun == len(ended)
    for thread in started:
        thread.join(60)
    assert len(begun) == n_begun


@pytest.mark.parametrize(("max_iter", "n_trials"), [(0.1, 8), (1, 80), (2.26, 181), (1e-9, 1)])
def test_fractions_of_an_epoch_are_trained(max_iter, n_trials):
    X, y = make_problem()
    model = ALMAClassifier(max_iter=max_iter, shuffle=False, intercept_scaling=1.0).fit(X, y)
    rows = np.arange(n_trials) % 80
    expected = ALMAClassifier(intercept_scaling=1.0)
    assert_same_model(model, expected.partial_fit(X[rows], y[rows], classes=[0, 1]))
    assert model.n_iter_ == n_trials / 80


@pytest.mark.parametrize(("estimator", "hypothesis", "p"), pairwise(ESTIMATORS, VECTORS, POWERS))
def test_unlimited_fit_ends_without_corrections(estimator, hypothesis, p, monkeypatch):
    monkeypatch.setattr(gram, "MEMORY", 0)  # dot products would have other rounding errors
    X, y = make_dense()
    params = {"p": p, "hypothesis": hypothesis, "shuffle": False}
    model = estimator(max_iter=None, **params).fit(X, y)
    expected, made = estimator(**params), []
    while len(made) < 2 or made[-1] > made[-2]:
        made.append(streamed(expected, X, y).n_corrections_)
    assert model.n_iter_ == len(made) > 2
    assert_same_model(model, expected)
    assert model.set_params(hypothesis="last").fit(X, y).score(X, y) == 1


@pytest.mark.parametrize(
    ("estimator", "hypothesis", "n_classes"), pairwise(ESTIMATORS, VECTORS, [2, 3])
)
def test_warm_start_continues_training(estimator, hypothesis, n_classes):
    X, y = make_problem(n_classes=n_classes)
    params = {"hypothesis": hypothesis, "shuffle": False}
    model = estimator(warm_start=True, max_iter=1, **params)
    model.fit(X, y).fit(X, y)
    assert_same_model(model, streamed(estimator(**params), X, y, n_passes=2))
    model.partial_fit(X, y)
    assert_same_model(model, streamed(estimator(**params), X, y, n_passes=3))


def test_each_call_counts_its_epochs_and_trials():
    X, y = make_problem()
    model = ALMAClassifier(max_iter=2).fit(X, y)
    assert (model.n_iter_, model.t_) == (2, 161)
    assert (model.partial_fit(X, y).n_iter_, model.t_) == (1, 241)
    assert streamed(ALMAClassifier(), X, y, n_passes=2).t_ == 161


def test_parts_of_epochs_add_up():
    # Epochs over some of the rows count as tenths of an epoch.
    X, y = make_classification(30, 8, flip_y=0.2, random_state=2)
    with pytest.warns(ConvergenceWarning):
        model = MaxMarginClassifier(tol=0.001, random_state=0).fit(X, y)
    assert model.n_iter_ == model.max_iter


def test_fit_without_warm_start_begins_anew():
    X, y = make_problem(n_classes=3)
    model = PNormPerceptron(random_state=0).fit(X, y)
    assert_same_model(model.fit(X, y), PNormPerceptron(random_state=0).fit(X, y))
    some = y < 2
    assert model.fit(sp.csr_matrix(X[some, :7]), y[some]).coef_.shape == (1, 7)
    model.set_params(warm_start=True).fit(X[:, :7], (y < 2).astype(int))
    # With warm_start, the classes are those of the first fit.
    model.fit(X[some, :7], np.ones(some.sum()))
    assert_array_equal(model.classes_, [0, 1])


def test_warm_start_accepts_only_new_rule_parameters():
    X, y = make_problem()
    model = ALMAClassifier(alpha=1.0, warm_start=True, shuffle=False, max_iter=1).fit(X, y)
    on_mistakes = model.n_corrections_
    patient = ALMAClassifier(alpha=1.0, shuffle=False, max_iter=2).fit(X, y).n_corrections_
    model.set_params(alpha=0.1).fit(X, y)
    assert model.n_corrections_ > patient > on_mistakes
    with pytest.raises(ValueError, match="warm_start can't go on with another p"):
        model.set_params(p=3).fit(X, y)
    with pytest.raises(ValueError, match="can't go on with another normalize"):
        model.set_params(p=2.0, normalize="running").fit(X, y)


@pytest.mark.parametrize("hypothesis", VECTORS)
def test_warm_start_at_the_correction_limit_stays_there(hypothesis):
    X, y = make_contradiction()
    model = PNormPerceptron(max_iter=None, warm_start=True, hypothesis=hypothesis, shuffle=False)
    for limit in 10, 10, 18:
        with pytest.warns(match="Stopped after"):
            model.set_params(max_corrections=limit).fit(X, y)
        assert model.n_corrections_ == limit
    model.partial_fit(X, y)
    assert model.n_corrections_ > 18


@pytest.mark.parametrize("hypothesis", [*VECTORS, "vote"])
def test_vector_stopped_early_resumes_as_if_alone(hypothesis):
    X, y = make_problem(n_classes=3)
    model = PNormPerceptron(max_corrections=9, max_iter=3, hypothesis=hypothesis, shuffle=False)
    together = clone(model).fit(X, y)
    assert len(set(together.space.per_vector("stopped"))) > 1
    together.partial_fit(X, y)
    for label in range(3):
        alone = clone(model).fit(X, y == label).partial_fit(X, y == label)
        assert alone.n_corrections_ == together.n_corrections_[label] > 9
        scores = together.decision_function(X)[:, label]
        assert_array_equal(scores, alone.decision_function(X))


def test_verbose_prints_one_line_per_epoch(capsys):
    X, y = make_problem()
    model = PNormPerceptron(max_iter=2.5, shuffle=False).fit(X, y)
    assert capsys.readouterr().out == ""
    model.set_params(verbose=True).fit(X, y)
    lines = [line.split(": ") for line in capsys.readouterr().out.splitlines()]
    assert [epoch for epoch, _ in lines] == ["epoch 1", "epoch 2", "epoch 2.5"]
    assert sum(int(told.split()[0]) for _, told in lines) == model.n_corrections_


def test_verbose_does_not_change_the_model(monkeypatch):
    monkeypatch.setattr(gram, "MEMORY", 0)
    X, y = make_dense(m=150, n=10)
    seen = MaxMarginClassifier(tol=1e-3, max_iter=None, random_state=0, verbose=1).fit(X, y)
    alone = clone(seen).set_params(verbose=0).fit(X, y)
    assert_same_model(seen, alone)


@pytest.mark.parametrize("estimator", [MarginPerceptron, CRAMMAClassifier, ROMMAClassifier])
def test_epoch_without_corrections_proves_no_margin(estimator):
    model = estimator(hypothesis="last", max_iter=None, tol=0.01)
    with pytest.warns(ConvergenceWarning, match=r"no row is left to correct, at a margin proven"):
        model.fit(*make_dense())
    assert model.margin_ < 0.99 * model.margin_upper_bound_


@pytest.mark.parametrize("tol", [None, 0.6])
def test_label_at_its_limit_has_not_converged(tol):
    X, y = make_dense(noise=20)
    y[X[:, 0] > 1.5] = 2
    model = MarginPerceptron(max_iter=None, max_corrections=3000, tol=tol)
    with pytest.warns(ConvergenceWarning, match="Stopped after"):
        model.fit(X, y)


@pytest.mark.parametrize("tol", [None, 0.9])
def test_reaching_the_goal_causes_no_warning(tol, monkeypatch):
    X, y = make_dense()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MarginPerceptron(max_iter=None, tol=tol).fit(X, y)
        # A proof that is found only at the end causes no warning either.
        monkeypatch.setattr(learning, "PASSES_BETWEEN_CERTIFICATES", 1e9)
        model = MaxMarginClassifier(tol=0.01, max_iter=5000, random_state=0).fit(X, y)
    assert model.margin_ >= 0.99 * model.margin_upper_bound_


TOLD = r"This epoch will take some (\d+) minutes: [\d,]+ mistakes so far.*max_updates=100"
GROWING = {"max_updates": None}


@pytest.mark.parametrize(
    ("estimator", "parameters", "seconds", "times"),
    [
        (HigherOrderPerceptron, {"solver": "implicit", **GROWING}, 4.0, 1),
        (SecondOrderPerceptron, {"solver": "dual", **GROWING}, 4.0, 1),
        (SecondOrderPerceptron, GROWING, 1e-3, 0),
        (SecondOrderPerceptron, {}, 4.0, 0),
        (SecondOrderPerceptron, {"solver": "primal", **GROWING}, 4.0, 0),
    ],
    ids=["implicit", "dual", "soon done", "bounded", "n x n"],
)
def test_slow_epoch_of_growing_cost_warns_once(estimator, parameters, seconds, times, monkeypatch):
    n_features = 200 if parameters.get("solver") == "primal" else 2000
    X, y = make_zipf_text(some(2000, 3000), n_features, noise=0.2, random_state=0)
    # Each reading of the clock is later by `seconds`.
    ticks = count(0, seconds)
    monkeypatch.setattr(matrix_loop.time, "perf_counter", lambda: float(next(ticks)))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        estimator(random_state=0, max_iter=2, **parameters).fit(X, y)
    assert len(told) == times
    for warning in told:
        assert warning.filename == __file__
        # The calls of the loop have as many trials as give equal durations. The prediction at the
        # first of them must assume quadratic growth, not 4 seconds for each such number of trials.
        assert int(re.match(TOLD, str(warning.message))[1]) > 2


def test_forecast_assumes_mistakes_of_growing_cost(monkeypatch):
    # There are 100 and 50 mistakes in a tenth of an epoch, after 300 and none.
    one, other = (SimpleNamespace(most_updates=-1, updates=n) for n in (300, 0))

    def seconds():
        return sum(range(300, one.updates)) + sum(range(other.updates))

    monkeypatch.setattr(matrix_loop.time, "perf_counter", seconds)
    forecast = matrix_loop.Forecast(SimpleNamespace(spaces=[one, other]))
    forecast.begin()
    one.updates, other.updates = 400, 50
    with pytest.warns(UserWarning, match=TOLD) as told:
        forecast.check(0.1)
    one.updates, other.updates = 1300, 500
    minutes = float(re.match(TOLD, str(told[0].message))[1])
    assert minutes == pytest.approx(seconds() / 60, rel=0.01)


def test_float32_rows_are_proven_in_float64():
    X = sp.csr_matrix(np.array([[1.0], [-1.0]], dtype=np.float32))
    model = MarginPerceptron(margin=3e7, max_iter=None, fit_intercept=False).fit(X, [1, 0])
    assert model.margin_ == model.margin_upper_bound_ == 1
    bare = PNormPerceptron(hypothesis="last").fit(X, [1, 0])
    with pytest.raises(AttributeError, match="needs hypothesis='last', and float64"):
        _ = bare.margin_upper_bound_


def test_margins_above_their_bound_raise_an_error(monkeypatch):
    K = [[1.0, 0.75, -0.5], [0.75, 1.0, 0.5], [-0.5, 0.5, 1.0]]
    assert np.linalg.eigvalsh(K).min() < -0.1
    model = MarginPerceptron(kernel="precomputed", max_iter=None, shuffle=False)
    with pytest.raises(ValueError, match="kernel is not positive semidefinite: the margin came"):
        model.fit(K, [0, 1, 1])
    model.set_params(hypothesis="average").fit(K, [0, 1, 1])
    true = certificate.LinearCertificate._signed
    monkeypatch.setattr(certificate.LinearCertificate, "_signed", lambda *args: 1.001 * true(*args))
    with pytest.raises(RuntimeError, match=r"none can exceed.*by a fault of sparsemargin, not"):
        MarginPerceptron(margin=100.0, max_iter=None, fit_intercept=False).fit(
            [[1.0, 2.0], [-1.0, -2.0]], [1, 0]
        )


def test_steps_and_rates_that_overflow_raise_an_error():
    for p in 2.0, 6.0:
        with pytest.raises(ValueError, match="Row 0 of X"):
            MaxMarginClassifier(p=p, shuffle=False).fit([[1e200, 1.0], [1.0, -1e200]], [1, 0])
    with pytest.raises(ValueError, match="Row 0 of X"):
        ROMMAClassifier(shuffle=False).fit([[1e200, 1.0], [1.0, -1e200]], [1, 0])
    for beta, delta in (10.0, 400.0), (0.1, 1e5):
        with pytest.raises(ValueError, match="is no rate to learn at"):
            CRAMMAClassifier(beta=beta, delta=delta).fit(*make_dense())


def test_rows_after_the_last_trial_are_checked():
    X, y = make_problem()
    X.data[-1] = np.nan
    for params in ({"max_iter": 0.1}, {"max_corrections": 1}):
        with pytest.raises(ValueError, match=f"NaN at row 79, column {X.indices[-1]}"):
            PNormPerceptron(shuffle=False, **params).fit(X, y)


def test_half_an_epoch_without_a_correction_is_not_convergence():
    model = MarginPerceptron(hypothesis="last", max_iter=None, warm_start=True)
    model.fit([[1.0], [-1.0]], [1, 0])
    with pytest.warns(ConvergenceWarning, match="Stopped after 0.5 epochs"):
        model.set_params(max_iter=0.5).fit([[1.0], [-1.0]], [1, 0])
