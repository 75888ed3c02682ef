"""Long runs, and magnitudes near the limits of floats: the result is right or an error is raised;
it is never silently wrong."""

import tracemalloc
from itertools import cycle, product

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import clone

from depth import pairwise, some
from references.first_order import ALMA, Perceptron, run_reference
from references.first_order import MarginPerceptron as Margin
from references.runs import augment, p_norm
from references.weights import step_factors
from sparsemargin import (
    ALMAClassifier,
    AROWClassifier,
    HigherOrderPerceptron,
    MarginPerceptron,
    MaxMarginClassifier,
    PNormPerceptron,
    SecondOrderPerceptron,
)
from sparsemargin.kernels import Polynomial

AS_PRINTED = {"shuffle": False, "fit_intercept": False}
VECTORS = ["last", "average"]


def noisy_rows(seed, m, n, n_nonzero, noise):
    """Return sparse rows with entries of at least 0.1, and labels of which some are flipped."""
    rng = np.random.RandomState(seed)
    columns = np.argsort(rng.uniform(size=(m, n)), axis=1)[:, :n_nonzero]
    values = rng.choice([-1, 1], (m, n_nonzero)) * rng.uniform(0.1, 1, (m, n_nonzero))
    rows = np.zeros((m, n))
    np.put_along_axis(rows, columns, values, axis=1)
    y = np.where(rows[:, : n // 4].sum(axis=1) > 0, 1, -1)
    y[rng.uniform(size=m) < noise] *= -1
    return rows, y


PERCEPTRON, HALF_ALMA = (PNormPerceptron(), Perceptron()), (ALMAClassifier(alpha=0.5), ALMA(0.5))
THOUSANDS, FEW = (1, some(1500, 3000), 150, 15, 0.15), (3, 40, 8, 8, 0.3)


# Large steps move theta out of the window in which its powers fit; it is rescaled then.
@pytest.mark.parametrize(
    ("subject", "p", "n_epochs", "shape", "heavy"),
    [(HALF_ALMA, p, 1, THOUSANDS, 0) for p in some([21.5], [10.0, 21.5])]
    + [(PERCEPTRON, p, 3, THOUSANDS, 0) for p in some([10.0], [2.0, 6.0, 10.0, 21.5])]
    + [(of, p, 1, FEW, 0.2) for of in (PERCEPTRON, HALF_ALMA) for p in (21.5, 64)],
)
def test_thousands_of_corrections_with_large_steps(subject, p, n_epochs, shape, heavy):
    (estimator, rule), (rows, y) = subject, noisy_rows(*shape)
    weights = np.where(np.random.RandomState(3).uniform(size=len(y)) < heavy, 1e9, 1.0)
    steps = step_factors(weights)
    run = run_reference(rows, y, rule, p, n_epochs=n_epochs, sample_weight=steps)
    assert run.n_corrections >= len(y) / 2
    assert run.smallest_gap > 1e-9
    for hypothesis, normalized in product(VECTORS, (False, True)):
        how = {"p": p, "hypothesis": hypothesis, "max_iter": n_epochs, **AS_PRINTED}
        if isinstance(estimator, PNormPerceptron):
            how["normalize_hypotheses"] = normalized
        elif normalized:
            continue
        model = clone(estimator).set_params(**how)
        model.fit(sp.csr_matrix(rows), y, sample_weight=weights)
        assert model.n_corrections_ == run.n_corrections
        expected = getattr(run, hypothesis)(normalized)
        assert np.abs(model.coef_[0] - expected).max() <= 1e-10 * np.abs(expected).max()


N_CORRECTIONS = 10**6


@pytest.mark.parametrize("estimator", [PNormPerceptron, ALMAClassifier])
def test_norm_stays_exact_over_a_million_corrections(estimator):
    model, n_corrections = estimator(p=21.5, max_iter=1), 0
    # The labels are random.
    chunks = [noisy_rows(seed, 20_000, 100, 5, 0.5) for seed in range(3)]
    chunks = cycle([(sp.csr_matrix(rows), y) for rows, y in chunks])
    with np.errstate(over="raise", invalid="raise"):
        while n_corrections < N_CORRECTIONS:
            model.partial_fit(*next(chunks), classes=[-1, 1])
            assert model.n_corrections_ >= n_corrections + 5_000
            n_corrections = model.n_corrections_
            exact = p_norm(model.theta_[0].astype(np.longdouble), 21.5)
            assert exact > 0
            assert abs(model.theta_norm_[0] - exact) <= 1e-10 * exact
    assert np.isfinite(model.coef_).all()
    assert model.coef_.any()


@pytest.mark.parametrize(
    ("estimator", "p", "stream"),
    pairwise(
        [PNormPerceptron(), ALMAClassifier(alpha=0.5)],
        [6, 21.5, "log"],
        ["noise", "contradiction", "dominant feature"],
    ),
)
def test_sweeps_over_all_weights_are_rare(estimator, p, stream):
    rng = np.random.RandomState(0)
    m, n = 3000, 1000
    rows = rng.uniform(0.2, 1, (m, n)) * (rng.uniform(size=(m, n)) < 0.01)
    y = np.arange(m) % 2 if stream != "noise" else rng.randint(2, size=m)
    if stream == "contradiction":
        rows[1::2] = rows[::2]
    if stream == "dominant feature":
        rows[:, 0] = 10
    model = clone(estimator).set_params(p=p, max_iter=1, shuffle=False)
    model.fit(sp.csr_matrix(rows), y)
    assert model.n_corrections_ > 1000
    assert model.space.per_vector("passes")[0] <= 10


def fit_or_refuse(estimator, rows, y):
    """Return the fitted estimator, or None if it rejected X; anything else is a failure."""
    try:
        return estimator.fit(sp.csr_matrix(rows), y)
    except ValueError as error:
        if "of X" not in str(error) and "magnitude" not in str(error):
            raise
        return None


@pytest.mark.parametrize(
    ("estimator", "p", "scale", "hypothesis"),
    pairwise(
        [PNormPerceptron, ALMAClassifier],
        [2, 3, 6, 21.5, 40],
        [2.0**100, 2.0**600, 2.0**900, 2.0**1000, 1e300, 2.0**-600, 2.0**-900, 2.0**-1000, 1e-300],
        [*VECTORS, "vote"],
    ),
)
@pytest.mark.parametrize("normalize", [True, False])
def test_rows_of_any_scale_are_learned_equally_or_rejected(
    estimator, p, scale, hypothesis, normalize
):
    rows, y = noisy_rows(5, 500, 30, 6, 0.1)
    plain = estimator(p=p, normalize=normalize, hypothesis=hypothesis, max_iter=2, **AS_PRINTED)
    scaled = fit_or_refuse(clone(plain), rows * scale, y)
    if scaled is None:
        most = {21.5: 2.0**900, 40: 2.0**600}.get(p, 1e300) if normalize else 2.0**100
        assert max(scale, 1 / scale if not normalize else 0) > most
        return
    if estimator is ALMAClassifier and not normalize:
        # Its steps and threshold depend on the scale of its weights, but not on that of the rows.
        assert hypothesis == "vote" or (np.isfinite(scaled.coef_).all() and scaled.coef_.any())
        return
    plain.fit(sp.csr_matrix(rows), y)
    assert scaled.n_corrections_ == plain.n_corrections_
    told = np.abs(plain.decision_function(rows) * scale) > np.finfo(float).tiny  # sign is defined
    assert_array_equal(scaled.predict(rows * scale)[told], plain.predict(rows)[told])
    assert_array_equal(scaled.predict(rows), plain.predict(rows))
    if hypothesis != "vote":
        # With powers of two, dividing rows by their norms is exact.
        error = 0 if normalize and np.frexp(scale)[0] == 0.5 else 1e-9
        weights = scaled.coef_ / (1 if normalize else scale)
        atol = error * np.abs(plain.coef_).max()
        np.testing.assert_allclose(weights, plain.coef_, rtol=0, atol=atol)


DIVIDING = [
    *(estimator(p=p) for p in (2, 3, 10) for estimator in (PNormPerceptron, ALMAClassifier)),
    ALMAClassifier(multi_class="joint"),
    AROWClassifier(r=1.0), MarginPerceptron(normalize=True, margin=0.3),
    MaxMarginClassifier(normalize=True, max_iter=2, tol=None),
    HigherOrderPerceptron(), SecondOrderPerceptron(),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", DIVIDING, ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_subnormal_rows_are_learned_like_others(model, n_classes):
    rng = np.random.RandomState(0)
    rows, y = rng.randint(-9, 10, (60, 8)) * 1.0, rng.randint(n_classes, size=60)
    tiny = sp.csr_matrix(rows * 2.0**-1065)  # without rounding
    model.set_params(fit_intercept=False, shuffle=False)
    expected = clone(model).fit(sp.csr_matrix(rows), y)
    coef = clone(model).fit(tiny, y).coef_
    np.testing.assert_allclose(coef, expected.coef_, rtol=0, atol=1e-12)


@pytest.mark.skipif(
    np.finfo(np.longdouble).maxexp <= np.finfo(np.float64).maxexp,
    reason="numpy.longdouble has no wider range than float64 here",
)
@pytest.mark.parametrize(
    ("estimator", "rule", "powers"),
    [
        (PNormPerceptron, Perceptron(), [2.0, 10.0]),
        (PNormPerceptron, Perceptron(normalize=False), [2.0, 10.0]),
        (ALMAClassifier, ALMA(), [2.0, 10.0]),
        *((ALMAClassifier, ALMA(normalize=how), [2.0]) for how in (False, "running", "max")),
    ],
)
def test_mixed_magnitudes_agree_with_the_reference_or_raise(estimator, rule, powers):
    # Scales of 1e-300 and 1e300 alternate with a period of three, starting with the small one.
    rows, y = noisy_rows(7, 300, 12, 5, 0.1)
    rows *= np.where(np.arange(len(rows)) // 3 % 2, 1e300, 1e-300)[:, None]
    for p, hypothesis in product(powers, VECTORS):
        params = {"p": p, "normalize": rule.normalize, "hypothesis": hypothesis, "max_iter": 1}
        fitted = fit_or_refuse(estimator(**params, **AS_PRINTED), rows, y)
        assert (fitted is None) == (rule.normalize is not True)
        if fitted is None:
            continue
        assert np.isfinite(fitted.coef_).all()
        run = run_reference(rows, y, rule, p)
        assert run.smallest_gap > 1e-9
        w = getattr(run, hypothesis)()
        scores = augment(rows) @ w
        # Weights of 1e-300 times the largest vanish in float64; rows with only such features are
        # excluded.
        visible = np.abs(scores) > 1e-9 * np.abs(rows).sum(axis=1) * np.abs(w).max()
        assert visible.mean() > 0.3
        predicted = fitted.predict(sp.csr_matrix(rows))
        assert_array_equal(predicted[visible], np.where(scores >= 0, 1, -1)[visible])


@pytest.mark.filterwarnings("ignore:Stopped after")
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("p", [14, 21.5, 40])
def test_votes_are_exact_after_larger_weights_have_cancelled(p, seed):
    rng = np.random.RandomState(seed)
    y = rng.choice([-1, 1], 40)
    # The weights are the (p - 1)th powers of these sizes: down to 2**-300.
    sizes = 2.0 ** (-np.arange(12) * (300 / 11) / (p - 1))
    X = rng.uniform(-1, 1, (40, 12)) * (rng.uniform(size=(40, 12)) < 0.5) * sizes
    X[:, 0] = y * rng.uniform(0.1, 1, 40)
    points = rng.uniform(-1, 1, (40, 12)) * (rng.uniform(size=(40, 12)) < 0.2)
    points[:12] = np.eye(12)
    run = run_reference(X, y, Margin(margin=4), p, n_epochs=2)
    assert run.smallest_gap > 1e-9
    assert 0 < abs(run.last()[-1]) < 1e-60
    how = {"hypothesis": "vote", "max_iter": 2, "fit_intercept": False}
    model = MarginPerceptron(margin=4, p=p, shuffle=False, **how).fit(X, y)
    assert model.n_corrections_ == run.n_corrections
    votes = model.decision_function(points)
    np.testing.assert_allclose(votes, (run.votes(points) / run.n_trials).astype(float), atol=1e-14)


@pytest.mark.parametrize(("p", "small"), [(2, 1e-6), (2.5, 1e-12), (64, 0.01)])
def test_remainder_of_two_nearly_cancelling_rows_is_exact(p, small):
    X = sp.csr_matrix([[1.0, small], [1.0, -small]])
    model = PNormPerceptron(p=p, hypothesis="last", max_iter=1, **AS_PRINTED).fit(X, [1, 0])
    np.testing.assert_allclose(model.coef_, [[0, 2 * small]], rtol=1e-11)
    np.testing.assert_allclose(model.theta_norm_, 2 * small, rtol=1e-11)


def test_rows_that_cancel_exactly_leave_zero():
    # The squares are rounded, so the increments do not add up to exactly 0.
    a, b = 1.6494157500565052, 2.5621713269501925
    model = PNormPerceptron(normalize=False, max_iter=1, **AS_PRINTED)
    model.fit(sp.csr_matrix([[a], [b], [b - a]]), [1, 0, 1])
    assert (model.n_corrections_, model.theta_, model.theta_norm_) == (3, 0, 0)


def test_votes_by_huge_and_small_kernel_values_are_equal():
    rows, y = noisy_rows(0, 60, 10, 4, 0.2)
    of = {"kernel": Polynomial(1, gamma=1.0), "hypothesis": "vote", "random_state": 0}
    votes = [
        PNormPerceptron(normalize=False, **of).fit(rows * size, y).decision_function(rows)
        for size in (1.0, 2.0**330)
    ]
    assert_array_equal(*votes)


def test_row_may_be_far_larger_than_earlier_rows():
    X = sp.csr_matrix(np.diag([1.0, 2.0**20]))
    model = PNormPerceptron(p=64, normalize=False, max_iter=1, **AS_PRINTED)
    assert_array_equal(model.fit(X, [1, 0]).coef_, [[0.5, -(2.0**19)]])


def test_products_too_small_for_float32_do_not_become_zero():
    X = sp.random(60, 20, 0.5, format="csr", dtype=np.float32, random_state=0) * np.float32(1e-22)
    model = PNormPerceptron(normalize=False, **AS_PRINTED).fit(X, np.arange(60) % 20)
    expected = X.astype(np.float64) @ model.coef_.T.astype(np.float64)
    error = np.abs(model.decision_function(X) - expected).max()
    assert error < 1e-5 * np.abs(expected).max()


@pytest.mark.filterwarnings("ignore:Stopped after")
def test_dual_vector_may_exceed_the_range_of_its_powers():
    y = np.where(np.arange(100_000) % 2, 1, -1)
    model = MarginPerceptron(
        margin=1e9, p=64, hypothesis="last", max_iter=1, shuffle=False, fit_intercept=False
    ).fit(y[:, None], y)  # fmt: skip
    for told in (model.theta_, model.theta_norm_, model.coef_):
        np.testing.assert_allclose(np.ravel(told), [100_000], rtol=1e-12)


RNG = np.random.RandomState(0)
X = sp.csr_matrix(RNG.uniform(-0.5, 0.5, (30, 8)) * (RNG.uniform(size=(30, 8)) < 0.5))
y = RNG.choice([-1, 1], 30)


def test_random_outputs_grow_with_the_rows():
    model = PNormPerceptron(hypothesis="random", random_state=0, fit_intercept=False).fit(X, y)
    outputs = model.decision_function(X)
    assert_array_equal(model.decision_function(X * 2.0**900), outputs * 2.0**900)


@pytest.mark.parametrize("hypothesis", VECTORS)
def test_outputs_that_overflow_raise_an_error(hypothesis):
    params = {"normalize": False, "hypothesis": hypothesis, "fit_intercept": False}
    huge = PNormPerceptron(**params).fit(X * 1e130, y)
    mixed = sp.vstack([X[:2], X[2:] * 1e200]).tocsr()
    for ask in huge.decision_function, huge.predict:
        ask(mixed[:2])
        with pytest.raises(ValueError, match="row 2 of X exceeds a float64"):
            ask(mixed)


def test_weights_beyond_float32_are_rejected():
    model = PNormPerceptron(normalize=False, shuffle=False, max_iter=3)
    model.fit((X * 1e38).astype(np.float32), y)
    with pytest.raises(ValueError, match="exceed float32"):
        _ = model.coef_


@pytest.mark.parametrize("hypothesis", ["vote", "random"])
def test_missing_features_take_no_memory_in_a_replay(hypothesis):
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
