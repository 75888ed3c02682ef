"""What leaves the range of a float comes out right or is refused; nothing is silently wrong."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import clone

from references.first_order import ALMA, Perceptron, run_reference
from references.first_order import MarginPerceptron as Margin
from sparsemargin import ALMAClassifier, MarginPerceptron, PNormPerceptron

FAR = [2.0**600, 2.0**1000, 2.0**-600, 2.0**-1000]


@pytest.fixture
def X():
    rng = np.random.RandomState(0)
    return sp.csr_matrix(rng.uniform(-0.5, 0.5, (30, 8)) * (rng.uniform(size=(30, 8)) < 0.5))


@pytest.fixture
def y():
    return np.random.RandomState(1).choice([-1, 1], 30)


@pytest.mark.parametrize("hypothesis", ["last", "average", "vote"])
@pytest.mark.parametrize("p", [2, 6, 21.5, 64])
@pytest.mark.parametrize("scale", FAR)
def test_normalized_rows_of_any_scale_are_predicted_alike_or_refused(X, y, scale, p, hypothesis):
    params = {
        "p": p, "hypothesis": hypothesis, "shuffle": False, "max_iter": 3, "fit_intercept": False
    }  # fmt: skip
    plain = ALMAClassifier(**params).fit(X, y)
    try:
        scaled = ALMAClassifier(**params).fit(X * scale, y)
    except ValueError as error:
        assert scale == max(FAR)
        assert "magnitude" in str(error)  # noqa: PT017
        return
    assert scaled.n_corrections_ == plain.n_corrections_
    assert_array_equal(scaled.predict(X * scale), plain.predict(X))
    assert_array_equal(scaled.predict(X), plain.predict(X))


@pytest.mark.filterwarnings("ignore:Stopped after")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("p", [14, 21.5, 40])
def test_a_vote_has_the_sign_of_weights_far_below_those_that_came_and_went(p, seed):
    rng = np.random.RandomState(seed)
    y = rng.choice([-1, 1], 40)
    # Weights are as the p - 1st powers of these: down to 2**-300.
    sizes = 2.0 ** (-np.arange(12) * (300 / 11) / (p - 1))
    X = rng.uniform(-1, 1, (40, 12)) * (rng.uniform(size=(40, 12)) < 0.5) * sizes
    X[:, 0] = y * rng.uniform(0.1, 1, 40)
    points = rng.uniform(-1, 1, (40, 12)) * (rng.uniform(size=(40, 12)) < 0.2)
    points[:12] = np.eye(12)
    run = run_reference(X, y, Margin(margin=4), p, n_epochs=2)
    assert run.smallest_gap > 1e-9
    assert 0 < abs(run.last()[-1]) < 1e-60
    how = {"hypothesis": "vote", "max_iter": 2, "fit_intercept": False}
    model = MarginPerceptron(margin=4, p=p, **how).fit(X, y)
    assert model.n_corrections_ == run.n_corrections
    votes = model.decision_function(points)
    np.testing.assert_allclose(votes, (run.votes(points) / run.n_trials).astype(float), atol=1e-14)


@pytest.mark.parametrize("hypothesis", ["vote", "random"])
def test_features_that_do_not_occur_take_no_memory_of_a_replay(X, y, hypothesis):
    n_features = 2**22
    wide = sp.csr_matrix((X.data, X.indices * 2**18, X.indptr), (len(y), n_features))
    params = {"hypothesis": hypothesis, "random_state": 0, "fit_intercept": True}
    model = PNormPerceptron(**params).fit(wide, y)
    tracemalloc.start()
    try:
        outputs = model.decision_function(wide)
        assert tracemalloc.get_traced_memory()[1] < n_features
    finally:
        tracemalloc.stop()
    if hypothesis == "vote":
        assert_array_equal(outputs, PNormPerceptron(**params).fit(X, y).decision_function(X))


def test_random_outputs_grow_with_the_rows(X, y):
    model = PNormPerceptron(hypothesis="random", random_state=0, fit_intercept=False).fit(X, y)
    outputs = model.decision_function(X)
    assert_array_equal(model.decision_function(X * 2.0**900), outputs * 2.0**900)


@pytest.mark.parametrize("hypothesis", ["last", "average"])
def test_an_output_beyond_a_double_is_refused(X, y, hypothesis):
    params = {"normalize": False, "hypothesis": hypothesis, "fit_intercept": False}
    huge = PNormPerceptron(**params).fit(X * 1e130, y)
    mixed = sp.vstack([X[:2], X[2:] * 1e200]).tocsr()
    for ask in huge.decision_function, huge.predict:
        ask(mixed[:2])
        with pytest.raises(ValueError, match="row 2 of X exceeds a float64"):
            ask(mixed)


def test_weights_beyond_float32_are_refused(X, y):
    model = PNormPerceptron(normalize=False, shuffle=False, max_iter=3)
    model.fit((X * 1e38).astype(np.float32), y)
    with pytest.raises(ValueError, match="exceed float32"):
        _ = model.coef_


@pytest.mark.parametrize("estimator", [PNormPerceptron, ALMAClassifier])
@pytest.mark.parametrize("scale", [2.0**-950, 2.0**950])
@pytest.mark.parametrize("p", [2, 21.5, 64])
def test_raw_rows_of_any_scale_are_learned_alike_or_refused(X, y, estimator, scale, p):
    params = {"p": p, "normalize": False, "shuffle": False, "max_iter": 3}
    try:
        scaled = estimator(**params).fit(X * scale, y)
    except ValueError as error:
        assert "magnitude" in str(error)  # noqa: PT017
        return
    assert np.isfinite(scaled.coef_).all()
    assert scaled.coef_.any()
    if estimator is PNormPerceptron:
        plain = estimator(**params).fit(X, y)
        assert scaled.n_corrections_ == plain.n_corrections_
        np.testing.assert_allclose(scaled.coef_ / scale, plain.coef_, rtol=1e-9)


def test_a_row_that_no_trial_reaches_is_checked_all_the_same(X, y):
    X[-1, -1] = np.nan
    for params in ({"max_iter": 0.1}, {"max_corrections": 1}):
        with pytest.raises(ValueError, match="NaN at row 29, column 7"):
            PNormPerceptron(shuffle=False, **params).fit(X, y)


def test_warm_start_takes_new_parameters_of_the_rule_and_no_others(X, y):
    model = ALMAClassifier(alpha=1.0, warm_start=True, shuffle=False, max_iter=1).fit(X, y)
    on_mistakes = model.n_corrections_
    patient = ALMAClassifier(alpha=1.0, shuffle=False, max_iter=2).fit(X, y).n_corrections_
    model.set_params(alpha=0.1).fit(X, y)
    assert model.n_corrections_ > patient > on_mistakes
    with pytest.raises(ValueError, match="warm_start can't go on with another p"):
        model.set_params(p=3).fit(X, y)


@pytest.mark.parametrize("p", [21.5, 64])
@pytest.mark.parametrize("hypothesis", ["last", "average"])
@pytest.mark.parametrize(
    ("estimator", "rule"),
    [(PNormPerceptron(), Perceptron()), (ALMAClassifier(alpha=0.5), ALMA(alpha=0.5))],
)
def test_steps_of_a_thousand_agree_with_the_reference(estimator, rule, hypothesis, p):
    """Such steps take theta out of the window its powers allow; it is rescaled on the way."""
    rng = np.random.RandomState(3)
    rows, y = rng.normal(size=(40, 8)), rng.choice([-1, 1], 40)
    weights = np.where(rng.uniform(size=40) < 0.2, 1000.0, 1.0)
    run = run_reference(rows, y, rule, p, sample_weight=weights)
    model = clone(estimator).set_params(p=p, hypothesis=hypothesis, shuffle=False, max_iter=1)
    model.fit(sp.csr_matrix(rows), y, sample_weight=weights)
    assert model.n_corrections_ == run.n_corrections
    expected = np.asarray(getattr(run, hypothesis)(), dtype=float)
    np.testing.assert_allclose(model.coef_[0], expected, rtol=0, atol=1e-10 * abs(expected).max())


def test_what_is_left_of_two_rows_that_cancel():
    X = sp.csr_matrix([[1.0, 0.01], [1.0, -0.01]])
    model = PNormPerceptron(p=64, max_iter=1, shuffle=False, hypothesis="last").fit(X, [1, 0])
    np.testing.assert_allclose(model.coef_, [[0, 0.02]], rtol=1e-12)


@pytest.mark.parametrize("estimator", [PNormPerceptron(), ALMAClassifier(alpha=0.5)])
@pytest.mark.parametrize("p", [6, 21.5, "log"])
@pytest.mark.parametrize("stream", ["noise", "contradiction", "dominant feature"])
def test_sweeps_over_all_weights_are_rare(estimator, p, stream):
    rng = np.random.RandomState(0)
    m, n = 4000, 2000
    rows = rng.uniform(0.2, 1, (m, n)) * (rng.uniform(size=(m, n)) < 0.01)
    y = np.arange(m) % 2 if stream != "noise" else rng.randint(2, size=m)
    if stream == "contradiction":
        rows[1::2] = rows[::2]
    if stream == "dominant feature":
        rows[:, 0] = 10
    model = clone(estimator).set_params(p=p, max_iter=1, shuffle=False)
    model.fit(sp.csr_matrix(rows), y)
    assert model.n_corrections_ > 1000
    assert model._space.per_label("passes")[0] <= 10
