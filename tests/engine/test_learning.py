"""The loop over epochs: order, stopping, threads, progress, interruption."""

import _thread
import threading
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import clone

from problems.stages import InterruptingOutput
from sparsemargin import (
    ALMAClassifier,
    HigherOrderPerceptron,
    PNormPerceptron,
    SecondOrderPerceptron,
)
from sparsemargin._engine.fitting import epochs as learning

ESTIMATORS = [PNormPerceptron, ALMAClassifier]
VECTORS = ["last", "average"]
POWERS = [2.0, 6.0]


def make_problem(m=80, n=20, n_classes=2, seed=0):
    """Return sparse rows and labels 0..n_classes-1, a fifth of them given at random."""
    rng = np.random.RandomState(seed)
    X = sp.random(m, n, density=0.3, format="csr", random_state=rng)
    X.data -= 0.5
    y = (X @ rng.standard_normal((n, n_classes))).argmax(axis=1)
    noisy = rng.uniform(size=m) < 0.2
    y[noisy] = rng.randint(n_classes, size=noisy.sum())
    y[:n_classes] = np.arange(n_classes)
    return X, y


def make_separable(m=40, n=60, seed=0):
    """Return rows in more dimensions than there are rows, so that any labels separate them."""
    rng = np.random.RandomState(seed)
    X = sp.random(m, n, density=0.4, format="csr", random_state=rng)
    X.data -= 0.5
    assert np.linalg.matrix_rank(X.toarray()) == m
    return X, rng.randint(2, size=m)


def make_contradiction():
    """Return rows no hyperplane separates."""
    X, y = make_problem()
    return sp.vstack([X, X], format="csr"), np.concatenate([y, 1 - y])


def assert_same_model(one, other):
    assert_array_equal(one.n_corrections_, other.n_corrections_)
    assert_array_equal(one.theta_, other.theta_)
    assert_array_equal(one.theta_norm_, other.theta_norm_)
    assert_array_equal(one.coef_, other.coef_)
    assert_array_equal(one.intercept_, other.intercept_)


def streamed(model, X, y, n_passes=1):
    """Learn by partial_fit what a fit in the given order learns."""
    for _ in range(n_passes):
        model.partial_fit(X, y, classes=np.unique(y))
    return model


# -- order ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_order_of_rows_comes_from_random_state(estimator):
    X, y = make_problem()
    first, again, other = (estimator(random_state=seed).fit(X, y) for seed in (3, 3, 4))
    assert_same_model(first, again)
    assert not np.array_equal(first.coef_, other.coef_)
    instance = np.random.RandomState(3)
    assert_same_model(first, estimator(random_state=instance).fit(X, y))
    assert not np.array_equal(first.coef_, estimator(random_state=instance).fit(X, y).coef_)


def test_every_epoch_is_shuffled_anew_and_takes_every_row_once():
    # On orthogonal rows every row corrects once, whatever the order, and its correction is
    # counted from its place on; so the average tells the order of the epoch.
    m = 30
    X, y = sp.identity(m, format="csr"), np.arange(m) % 2
    places = []
    for seed in 0, 1:
        model = PNormPerceptron(max_iter=1, random_state=seed, fit_intercept=False).fit(X, y)
        assert model.n_corrections_ == m
        place = m - np.abs(model.coef_[0]) * m
        assert_array_equal(np.sort(place.round(9)), np.arange(m))
        places.append(place)
    assert not np.array_equal(*places)
    X, y = make_problem()
    once = PNormPerceptron(max_iter=1, random_state=0, warm_start=True).fit(X, y)
    twice = PNormPerceptron(max_iter=2, random_state=0).fit(X, y)
    assert not np.array_equal(once.fit(X, y).theta_, twice.theta_)


def test_without_shuffling_the_seed_means_nothing():
    X, y = make_problem()
    one, other = (PNormPerceptron(shuffle=False, random_state=seed).fit(X, y) for seed in (0, 1))
    assert_same_model(one, other)


# -- labels side by side --------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("hypothesis", VECTORS)
@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("max_corrections", [None, 4])
def test_threads_change_no_bit(estimator, hypothesis, p, max_corrections):
    X, y = make_problem(200, n_classes=7)
    params = {"p": p, "hypothesis": hypothesis, "random_state": 0, "fit_intercept": True}
    params["max_corrections"] = max_corrections
    alone = estimator(n_jobs=1, **params).fit(X, y)
    for n_jobs in 2, 3, 20, -1:
        model = estimator(n_jobs=n_jobs, **params).fit(X, y)
        assert_same_model(model, alone)
        assert_same_model(model.partial_fit(X, y), estimator(**params).fit(X, y).partial_fit(X, y))


@pytest.mark.parametrize("hypothesis", ["vote", "random"])
def test_threads_change_no_replayed_output(hypothesis):
    X, y = make_problem(n_classes=4)
    outputs = [
        PNormPerceptron(hypothesis=hypothesis, random_state=0, n_jobs=n_jobs)
        .fit(X, y)
        .decision_function(X)
        for n_jobs in (1, 3)
    ]
    assert_array_equal(*outputs)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("hypothesis", [*VECTORS, "vote"])
@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("extra", [{}, {"fit_intercept": True}, {"soft_margin": 0.5}])
@pytest.mark.parametrize("max_corrections", [None, 6])
def test_labels_learn_together_as_each_would_alone(
    estimator, hypothesis, p, extra, max_corrections
):
    X, y = make_problem(n_classes=3)
    params = {"p": p, "hypothesis": hypothesis, "max_iter": 3, "shuffle": False, **extra}
    params["max_corrections"] = max_corrections
    together = estimator(**params).fit(X, y)
    scores = together.decision_function(X)
    for label in range(3):
        alone = estimator(**params).fit(X, y == label)
        assert alone.n_corrections_ == together.n_corrections_[label]
        assert_array_equal(scores[:, label], alone.decision_function(X))
        assert_array_equal(together.theta_[label], alone.theta_[0])
        if hypothesis in VECTORS:
            assert_array_equal(together.coef_[label], alone.coef_[0])
            assert together.intercept_[label] == alone.intercept_[0]
    if max_corrections is not None:
        assert_array_equal(together.n_corrections_, max_corrections)


# -- how long -------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("hypothesis", VECTORS)
@pytest.mark.parametrize(
    ("max_iter", "n_trials"), [(0.1, 8), (0.5, 40), (1, 80), (1.5, 120), (2.26, 181), (1e-9, 1)]
)
def test_fractions_of_an_epoch(estimator, hypothesis, max_iter, n_trials):
    X, y = make_problem()
    params = {"hypothesis": hypothesis, "intercept_scaling": 1.0}
    model = estimator(max_iter=max_iter, shuffle=False, **params).fit(X, y)
    expected = estimator(**params)
    rows = np.arange(n_trials) % 80
    expected.partial_fit(X[rows], y[rows], classes=[0, 1])
    assert_same_model(model, expected)
    assert model.n_iter_ == n_trials / 80


@pytest.mark.parametrize("max_iter", [0.5, 1.5])
def test_a_fraction_of_a_shuffled_epoch_is_a_random_part(max_iter):
    X, y = sp.identity(40, format="csr"), np.arange(40) % 2
    models = [
        PNormPerceptron(
            max_iter=max_iter, hypothesis="last", random_state=seed, fit_intercept=False
        ).fit(X, y)
        for seed in (0, 1)
    ]
    used = [model.theta_[0] != 0 for model in models]
    assert [mask.sum() for mask in used] == [min(40, 40 * max_iter)] * 2
    assert np.array_equal(*used) == (max_iter > 1)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("hypothesis", VECTORS)
@pytest.mark.parametrize("p", POWERS)
def test_no_limit_ends_with_a_pass_without_corrections(estimator, hypothesis, p):
    X, y = make_separable()
    params = {"p": p, "hypothesis": hypothesis, "shuffle": False}
    model = estimator(max_iter=None, **params).fit(X, y)
    expected, n_passes, made = estimator(**params), 0, -1
    while n_passes == 0 or expected.n_corrections_ > made:
        made = expected.n_corrections_ if n_passes else 0
        streamed(expected, X, y)
        n_passes += 1
    assert n_passes > 2
    assert model.n_iter_ == n_passes
    assert_same_model(model, expected)
    last = estimator(max_iter=None, **{**params, "hypothesis": "last"}).fit(X, y)
    assert last.score(X, y) == 1


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("hypothesis", VECTORS)
@pytest.mark.parametrize("normalize_hypotheses", [False, True])
def test_epochs_after_a_clean_pass_only_count(estimator, hypothesis, normalize_hypotheses):
    X, y = make_separable()
    params = {"hypothesis": hypothesis, "normalize_hypotheses": normalize_hypotheses}
    model = estimator(max_iter=200, shuffle=False, **params).fit(X, y)
    assert model.n_iter_ < 200
    assert_same_model(model, streamed(estimator(**params), X, y, n_passes=200))


@pytest.mark.parametrize("hypothesis", ["average", "vote"])
def test_rows_of_weight_zero_are_no_trials_in_the_epochs_that_only_count(hypothesis):
    X, y = make_separable()
    weights = np.arange(40) % 3.0
    used = weights > 0
    params = {
        "hypothesis": hypothesis, "max_iter": 200, "shuffle": False, "intercept_scaling": 1.0
    }  # fmt: skip
    model = PNormPerceptron(**params).fit(X, y, sample_weight=weights)
    assert model.n_iter_ < 200
    expected = PNormPerceptron(**params).fit(X[used], y[used], sample_weight=weights[used])
    assert_array_equal(model.decision_function(X), expected.decision_function(X))


RESTING = {
    "linear": PNormPerceptron(),
    "p of 6": ALMAClassifier(p=6.0),
    "joint": PNormPerceptron(multi_class="joint"),
    "kernel": PNormPerceptron(kernel="poly", degree=1),
    "Second-order": SecondOrderPerceptron(),
    "dual Higher-order": HigherOrderPerceptron(solver="dual"),
}


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(
    ("name", "labels"),
    [*product(RESTING, ["two", "three"]), *product(["linear", "p of 6"], ["several a row"])],
)
def test_trials_that_only_count_are_those_that_would_have_been_made(
    name, labels, shuffle, monkeypatch
):
    model, (X, y), others = RESTING[name], make_separable(), np.arange(40) % 4 == 0
    y = {"two": y, "three": np.where(others, 2, y), "several a row": np.c_[y, others]}[labels]
    weights = np.random.RandomState(1).choice([0.0, 1.0, 2.0], 40)
    advance = learning._Fit._advance

    def restless(fit):
        """Let no pass be one without a correction."""
        return advance(fit)[0], False

    for max_iter in 60.3, 60.7:
        model = clone(model).set_params(max_iter=max_iter, shuffle=shuffle, random_state=0)
        fitted = clone(model).fit(X, y, sample_weight=weights)
        assert fitted.n_iter_ < 60
        with monkeypatch.context() as patch:
            patch.setattr(learning._Fit, "_advance", restless)
            swept = clone(model).fit(X, y, sample_weight=weights)
        assert swept.n_iter_ == pytest.approx(max_iter)
        assert fitted._space.trials == swept._space.trials
        outputs = fitted.decision_function(X), swept.decision_function(X)
        np.testing.assert_allclose(*outputs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("hypothesis", VECTORS)
@pytest.mark.parametrize("max_corrections", [1, 2, 9])
def test_corrections_stop_at_their_limit(estimator, hypothesis, max_corrections):
    X, y = make_contradiction()
    params = {"hypothesis": hypothesis, "shuffle": False, "intercept_scaling": 1.0}
    model = estimator(max_corrections=max_corrections, max_iter=None, **params).fit(X, y)
    expected, rows = estimator(**params), 0
    while rows == 0 or expected.n_corrections_ < max_corrections:
        expected.partial_fit(X[rows : rows + 1], y[rows : rows + 1], classes=[0, 1])
        rows += 1
    assert rows < X.shape[0]
    assert model.n_corrections_ == max_corrections
    assert_same_model(model, expected)


def test_a_limit_beyond_reach_changes_nothing():
    X, y = make_problem()
    limited, free = (
        PNormPerceptron(max_corrections=limit, random_state=0).fit(X, y) for limit in (10**9, None)
    )
    assert_same_model(limited, free)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_stream_is_not_held_by_the_limit_of_a_fit_before_it(n_classes):
    X, y = make_problem(n_classes=n_classes)
    model = PNormPerceptron(max_corrections=1, shuffle=False).fit(X, y)
    assert np.all(model.n_corrections_ == 1)
    model.partial_fit(X, y)
    assert np.all(model.n_corrections_ > 1)


# -- going on -------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("hypothesis", VECTORS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_warm_start_goes_on(estimator, hypothesis, n_classes):
    X, y = make_problem(n_classes=n_classes)
    params = {"hypothesis": hypothesis, "shuffle": False}
    model = estimator(warm_start=True, max_iter=1, **params)
    model.fit(X, y).fit(X, y)
    assert_same_model(model, streamed(estimator(**params), X, y, n_passes=2))
    model.partial_fit(X, y)
    assert_same_model(model, streamed(estimator(**params), X, y, n_passes=3))


def test_without_warm_start_a_fit_begins_anew():
    X, y = make_problem()
    model = PNormPerceptron(random_state=0).fit(X, y)
    assert_same_model(model.fit(X, y), PNormPerceptron(random_state=0).fit(X, y))
    other = sp.csr_matrix(X[:, :7])
    assert model.fit(other, 1 - y).coef_.shape == (1, 7)


def test_warm_start_after_the_limit_of_corrections_learns_up_to_the_new_one():
    X, y = make_contradiction()
    model = PNormPerceptron(max_corrections=3, warm_start=True, shuffle=False).fit(X, y)
    model.set_params(max_corrections=8).fit(X, y)
    assert model.n_corrections_ == 8


def test_warm_start_keeps_the_classes_of_the_first_fit():
    X, y = make_problem(n_classes=3)
    model = PNormPerceptron(warm_start=True).fit(X, y)
    some = y < 2
    model.fit(X[some], y[some])
    assert_array_equal(model.classes_, [0, 1, 2])


def test_a_stream_goes_on_where_a_fit_ended():
    X, y = make_problem()
    model = ALMAClassifier(max_iter=2, shuffle=False).fit(X, y).partial_fit(X, y)
    assert_same_model(model, streamed(ALMAClassifier(), X, y, n_passes=3))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_long_epochs_are_learned_in_parts_that_leave_no_trace(estimator):
    m, n_nonzero, n_classes = 40_000, 100, 5
    rng = np.random.RandomState(0)
    steps = rng.randint(1, 10, size=(m, n_nonzero))
    X = sp.csr_matrix(
        (rng.standard_normal(steps.size), steps.cumsum(axis=1).ravel() - 1,
         np.arange(0, steps.size + 1, n_nonzero)),
        shape=(m, 9 * n_nonzero),
    )  # fmt: skip
    y = rng.randint(n_classes, size=m)
    model = estimator(max_iter=1, shuffle=False).fit(X, y)
    assert_same_model(model, streamed(estimator(), X, y))


@pytest.mark.parametrize("hypothesis", ["last", "average"])
def test_warm_start_at_the_limit_of_corrections_stays_there(hypothesis):
    X, y = make_contradiction()
    model = PNormPerceptron(
        max_iter=None, max_corrections=10, warm_start=True, hypothesis=hypothesis, shuffle=False
    )
    for _ in range(3):
        with pytest.warns(match="Stopped after"):
            model.fit(X, y)
        assert model.n_corrections_ == 10
    model.partial_fit(X, y)
    assert model.n_corrections_ > 10


# -- progress and interruption --------------------------------------------------------------------


@pytest.mark.parametrize(("verbose", "shown"), [(0, 0), (False, 0), (1, 3), (True, 3), (2, 3)])
def test_verbose_prints_a_line_an_epoch(verbose, shown, capsys):
    X, y = make_problem()
    model = PNormPerceptron(max_iter=2.5, verbose=verbose, shuffle=False).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == shown
    if shown:
        assert [line.split(":")[0] for line in lines] == ["epoch 1", "epoch 2", "epoch 2.5"]
        corrections = [int(line.split(": ")[1].split()[0]) for line in lines]
        assert sum(corrections) == model.n_corrections_


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("hypothesis", VECTORS)
@pytest.mark.parametrize("soft_margin", [0.0, 1e-3])
def test_ctrl_c_ends_a_fit_with_what_was_learned(n_jobs, hypothesis, soft_margin, monkeypatch):
    X, y = make_contradiction()
    y = np.where(np.arange(len(y)) % 3, y, 2)
    model = PNormPerceptron(
        max_iter=None, hypothesis=hypothesis, soft_margin=soft_margin, n_jobs=n_jobs, verbose=1,
        warm_start=True,
    )  # fmt: skip
    # The timer starts once the loop runs, and without the interrupt this fit would never end.
    timer = threading.Timer(0.05, _thread.interrupt_main)
    monkeypatch.setattr("sys.stdout", InterruptingOutput(timer.start, at_line=2))
    with pytest.warns(UserWarning, match="Interrupted after .* epochs"):
        model.fit(X, y)
    monkeypatch.undo()
    assert model.n_iter_ >= 2
    assert_array_equal(model.classes_, [0, 1, 2])
    assert np.isfinite(model.coef_).all()
    assert (model.n_corrections_ > 0).all()
    assert set(model.predict(X)) <= {0, 1, 2}
    n_corrections = model.n_corrections_
    model.set_params(max_iter=1).fit(X, y).partial_fit(X, y)
    assert (model.n_corrections_ > n_corrections).all()


def test_ctrl_c_between_epochs_leaves_whole_epochs(monkeypatch):
    X, y = make_contradiction()
    model = PNormPerceptron(max_iter=None, shuffle=False, verbose=1)
    monkeypatch.setattr("sys.stdout", InterruptingOutput(_thread.interrupt_main, at_line=3))
    with pytest.warns(UserWarning, match="Interrupted after 3 epochs"):
        model.fit(X, y)
    monkeypatch.undo()
    assert model.n_iter_ == 3
    assert_same_model(model, streamed(PNormPerceptron(), X, y, n_passes=3))
