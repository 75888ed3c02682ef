"""What only shows after many corrections, at any split of the stream, or at extreme magnitudes.

The references here are direct sums in extended precision (`numpy.longdouble`), every weight
vector kept; see the module `reference`.
"""

from functools import lru_cache

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from references.first_order import ALMA, Perceptron, augment, p_norm, run_reference
from sparsemargin import ALMAClassifier, PNormPerceptron

AS_PRINTED = {"shuffle": False, "fit_intercept": False}


def noisy_rows(seed, m, n, n_nonzero, noise):
    """Return sparse rows with entries of at least 0.1, and their labels, some of them flipped."""
    rng = np.random.RandomState(seed)
    columns = np.argsort(rng.uniform(size=(m, n)), axis=1)[:, :n_nonzero]
    values = rng.choice([-1, 1], (m, n_nonzero)) * rng.uniform(0.1, 1, (m, n_nonzero))
    rows = np.zeros((m, n))
    np.put_along_axis(rows, columns, values, axis=1)
    y = np.where(rows[:, : n // 4].sum(axis=1) > 0, 1, -1)
    y[rng.uniform(size=m) < noise] *= -1
    return rows, y


@lru_cache(maxsize=1)
def alma_run(p):
    rows, y = noisy_rows(0, 6000, 150, 15, 0.1)
    return rows, y, run_reference(rows, y, ALMA(alpha=0.5), p)


@lru_cache(maxsize=1)
def perceptron_run(p):
    rows, y = noisy_rows(1, 3000, 150, 15, 0.15)
    return rows, y, run_reference(rows, y, Perceptron(), p, n_epochs=3)


def assert_agrees(estimator, rows, y, run, expected):
    """Compare to 1e-10 of the largest weight a run none of whose decisions is doubtful."""
    assert run.smallest_gap > 1e-9
    estimator.fit(sp.csr_matrix(rows), y)
    assert estimator.n_corrections_ == run.n_corrections
    error = np.abs(estimator.coef_[0] - expected).max()
    assert error <= 1e-10 * np.abs(expected).max()


@pytest.mark.parametrize("hypothesis", ["last", "average"])
@pytest.mark.parametrize("p", [10.0, 21.5])
def test_alma_after_thousands_of_corrections(p, hypothesis):
    rows, y, run = alma_run(p)
    assert run.n_corrections >= 2000
    estimator = ALMAClassifier(p=p, alpha=0.5, hypothesis=hypothesis, max_iter=1, **AS_PRINTED)
    assert_agrees(estimator, rows, y, run, getattr(run, hypothesis)())


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("hypothesis", ["last", "average"])
@pytest.mark.parametrize("p", [2.0, 6.0, 10.0, 21.5])
def test_perceptron_over_noisy_epochs(p, hypothesis, normalized):
    rows, y, run = perceptron_run(p)
    assert run.n_corrections >= 2000
    estimator = PNormPerceptron(
        p=p, hypothesis=hypothesis, normalize_hypotheses=normalized, max_iter=3, **AS_PRINTED
    )
    assert_agrees(estimator, rows, y, run, getattr(run, hypothesis)(normalized))


N_CORRECTIONS = 10**6


def flipping_chunk(rng, m=100_000, n=100, n_nonzero=5, period=300):
    """Return rows whose target changes its sign every few hundred rows, so nothing is ever learned.

    Column j of a row falls in the j-th block of columns, which keeps them distinct and sorted.
    """
    block = n // n_nonzero
    columns = rng.randint(block, size=(m, n_nonzero)) + block * np.arange(n_nonzero)
    values = rng.uniform(-1, 1, (m, n_nonzero))
    X = sp.csr_matrix((values.ravel(), columns.ravel(), n_nonzero * np.arange(m + 1)), (m, n))
    target = rng.choice([-1, 1], n)
    flips = np.where(np.arange(m) // period % 2, -1, 1)
    return X, np.where(flips * (X @ target) > 0, 1, -1)


@pytest.mark.parametrize(
    ("estimator", "params"), [(PNormPerceptron, {}), (ALMAClassifier, {"alpha": 0.5})]
)
def test_the_running_norm_stays_exact_over_a_million_corrections(estimator, params):
    machine = estimator(p=21.5, max_iter=1, **params)
    rng = np.random.RandomState(2)
    chunks = [flipping_chunk(rng) for _ in range(3)]
    n_corrections, n_chunks = 0, 0
    with np.errstate(over="raise", invalid="raise"):
        while n_corrections < N_CORRECTIONS:
            machine.partial_fit(*chunks[n_chunks % len(chunks)], classes=[-1, 1])
            assert machine.n_corrections_ >= n_corrections + 10_000
            n_corrections, n_chunks = machine.n_corrections_, n_chunks + 1
            exact = p_norm(machine.theta_[0].astype(np.longdouble), 21.5)
            assert exact > 0
            assert abs(machine.theta_norm_[0] - exact) <= 1e-10 * exact
    assert np.isfinite(machine.coef_).all()
    assert machine.coef_.any()


estimators = st.sampled_from([PNormPerceptron, ALMAClassifier])


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    estimator=estimators,
    params=st.fixed_dictionaries(
        {
            "p": st.sampled_from([2.0, 2.5, 6.0, 21.5, "log"]),
            "hypothesis": st.sampled_from(["last", "average"]),
            "normalize_hypotheses": st.booleans(),
            "fit_intercept": st.booleans(),
            "soft_margin": st.sampled_from([0.0, 0.5]),
        }
    ),
    n_classes=st.integers(2, 3),
    cuts=st.lists(st.integers(1, 1499), unique=True, max_size=12).map(sorted),
)
def test_partial_fit_over_any_split_is_one_epoch_to_the_bit(estimator, params, n_classes, cuts):
    rows, y = noisy_rows(3, 1500, 40, 6, 0.2)
    y = np.where(rows[:, 0] > 0, 2, y) if n_classes == 3 else y
    X, classes = sp.csr_matrix(rows), np.unique(y)
    assert len(classes) == n_classes
    params = {"max_iter": 1, "shuffle": False, "intercept_scaling": 1.0, **params}
    whole = estimator(**params).fit(X, y)
    parts = estimator(**params)
    for start, stop in zip([0, *cuts], [*cuts, len(y)], strict=True):
        parts.partial_fit(X[start:stop], y[start:stop], classes=classes)
    assert np.array_equal(parts.n_corrections_, whole.n_corrections_)
    assert np.array_equal(parts.coef_, whole.coef_)
    assert np.array_equal(parts.intercept_, whole.intercept_)


def test_partial_fit_row_by_row_is_one_epoch_to_the_bit():
    rows, y = noisy_rows(4, 400, 40, 6, 0.2)
    X = sp.csr_matrix(rows)
    for normalize in (True, False, "running"):
        params = {"p": 10.0, "normalize": normalize, "max_iter": 1, **AS_PRINTED}
        whole = ALMAClassifier(**params).fit(X, y)
        parts = ALMAClassifier(**params)
        for i in range(len(y)):
            parts.partial_fit(X[i], y[i : i + 1], classes=[-1, 1])
        assert np.array_equal(parts.coef_, whole.coef_)


def fit_or_refuse(estimator, rows, y):
    """Return the fitted estimator, or None where it refused X; anything else is a failure."""
    try:
        return estimator.fit(sp.csr_matrix(rows), y)
    except ValueError as error:
        if "X" not in str(error):
            raise
        return None


normalizing = pytest.mark.parametrize(
    ("estimator", "rule"),
    [(PNormPerceptron, Perceptron()), (ALMAClassifier, ALMA())],
    ids=["perceptron", "alma"],
)
POWERS = [2.0, 3.0, 6.0, 21.5]


@normalizing
@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("exponent", [900, -900])
def test_powers_of_two_vanish_from_normalized_rows(estimator, rule, p, exponent):
    rows, y = noisy_rows(5, 500, 30, 6, 0.1)
    plain, scaled = (
        estimator(p=p, max_iter=2, **AS_PRINTED).fit(sp.csr_matrix(X), y)
        for X in (rows, rows * 2.0**exponent)
    )
    assert np.array_equal(scaled.coef_, plain.coef_)
    assert scaled.n_corrections_ == plain.n_corrections_


@normalizing
@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_extreme_scales_vanish_from_normalized_rows(estimator, rule, p, scale):
    rows, y = noisy_rows(5, 500, 30, 6, 0.1)
    run = run_reference(rows, y, rule, p)
    fitted = estimator(p=p, hypothesis="last", max_iter=1, **AS_PRINTED)
    if fit_or_refuse(fitted, rows * scale, y) is None:
        assert (scale, p) == (1e300, max(POWERS))
        return
    assert_agrees(fitted, rows * scale, y, run, run.last())


@pytest.mark.parametrize("hypothesis", ["last", "average"])
@pytest.mark.parametrize("scale", [2.0**900, 2.0**-900, 1e300, 1e-300, 2.0**100])
def test_raw_rows_scale_the_perceptron_or_are_refused(hypothesis, scale):
    rows, y = noisy_rows(6, 500, 30, 6, 0.1)
    params = {"normalize": False, "hypothesis": hypothesis, "max_iter": 1, **AS_PRINTED}
    plain = PNormPerceptron(**params).fit(sp.csr_matrix(rows), y)
    scaled = fit_or_refuse(PNormPerceptron(**params), rows * scale, y)
    if scaled is None:
        assert scale != 2.0**100
        return
    assert scaled.n_corrections_ == plain.n_corrections_
    expected = plain.coef_ * scale
    assert np.abs(scaled.coef_ - expected).max() <= 1e-10 * np.abs(expected).max()


def mixed_magnitudes():
    """Return rows of sizes 1e300 and 1e-300 in turns of three, the small ones first, and labels."""
    rows, y = noisy_rows(7, 300, 12, 5, 0.1)
    sizes = np.where(np.arange(len(rows)) // 3 % 2, 1e300, 1e-300)
    return rows * sizes[:, None], y


@pytest.mark.skipif(
    np.finfo(np.longdouble).maxexp <= np.finfo(np.float64).maxexp,
    reason="numpy.longdouble has no wider range than float64 here",
)
@pytest.mark.parametrize("hypothesis", ["last", "average"])
@pytest.mark.parametrize(
    ("estimator", "rule", "p"),
    [
        (PNormPerceptron, Perceptron(), 2.0),
        (PNormPerceptron, Perceptron(), 10.0),
        (PNormPerceptron, Perceptron(normalize=False), 2.0),
        (PNormPerceptron, Perceptron(normalize=False), 10.0),
        (ALMAClassifier, ALMA(), 2.0),
        (ALMAClassifier, ALMA(), 10.0),
        (ALMAClassifier, ALMA(normalize=False), 2.0),
        (ALMAClassifier, ALMA(normalize="running"), 2.0),
        (ALMAClassifier, ALMA(normalize="max"), 2.0),
    ],
)
def test_mixed_magnitudes_predict_as_the_reference_or_are_refused(estimator, rule, p, hypothesis):
    rows, y = mixed_magnitudes()
    run = run_reference(rows, y, rule, p)
    assert run.smallest_gap > 1e-9
    fitted = fit_or_refuse(
        estimator(p=p, normalize=rule.normalize, hypothesis=hypothesis, max_iter=1, **AS_PRINTED),
        rows,
        y,
    )
    if fitted is None:
        assert rule.normalize is not True
        return
    assert np.isfinite(fitted.coef_).all()
    w = getattr(run, hypothesis)()
    scores = augment(rows) @ w
    # Weights 1e-300 of the largest vanish from float64: rows that meet no others are left out.
    visible = np.abs(scores) > 1e-9 * np.abs(rows).sum(axis=1) * np.abs(w).max()
    assert visible.mean() > 0.3
    predicted = fitted.predict(sp.csr_matrix(rows))
    np.testing.assert_array_equal(predicted[visible], np.where(scores >= 0, 1, -1)[visible])
