"""Perceptrons with a matrix at extreme magnitudes agree with the references, or raise errors.

The references use 80-bit numbers here, whose range no test exceeds.
"""

import warnings
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

from depth import pairwise
from problems.first_order import Problem, make_problem
from problems.higher_order import (
    SOLVERS,
    MatrixMachine,
    assert_agrees,
    models,
    noisy_problem,
    paper_ho,
    paper_so,
)
from problems.models import VECTORS
from references.higher_order import HigherOrder, SecondOrder, run_matrix_machines

pytestmark = pytest.mark.skipif(
    np.finfo(np.longdouble).maxexp <= np.finfo(np.float64).maxexp,
    reason="numpy.longdouble has no wider range than float64 here",
)

RULES = {
    "HO_2": HigherOrder(),
    "HO_4": HigherOrder(p=4.0, c=0.8),
    "HO_21.5": HigherOrder(p=21.5, c=0.999),
    "HO_64": HigherOrder(p=64.0, c=0.2),
    "SO": SecondOrder(),
    "bounded HO_2": HigherOrder(max_updates=2),
    "bounded HO_4": HigherOrder(p=4.0, c=0.8, max_updates=2),
    "bounded HO_64": HigherOrder(p=64.0, c=0.2, max_updates=2),
    "p-norm 7": HigherOrder(p=7.0, c=0.0),
    "bounded SO": SecondOrder(max_updates=2),
    "margin HO_2": HigherOrder(alpha=0.9),
    "margin HO_4": HigherOrder(p=4.0, c=0.8, max_updates=2, alpha=0.9),
    "margin SO": SecondOrder(alpha=0.9),
}

rules = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
every_solver = pytest.mark.parametrize("solver", ["implicit", "primal"])


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings(), np.errstate(over="raise", invalid="raise", divide="raise"):
        warnings.simplefilter("error")
        yield


def dense_problem(m=120, n=10, seed=0):
    """Return rows without zeros and noisy labels, so that no score is near 0."""
    rng = np.random.RandomState(seed)
    rows = rng.choice([-1, 1], (m, n)) * rng.uniform(0.1, 1, (m, n))
    y = (rows[:, :3].sum(axis=1) > 0) ^ (rng.uniform(size=m) < 0.2)
    return Problem(sp.csr_matrix(rows), y.astype(int), sp.csr_matrix(rows[:10]))


def runs_of(problem, rule, sample_weight=None):
    """Return the runs of the references; no decision may be within rounding of its threshold."""
    runs = run_matrix_machines(problem.X.toarray(), problem.y, rule, sample_weight=sample_weight)
    assert runs[0].n_corrections > 20
    assert runs[0].smallest_gap > 1e-9
    return runs


exponents = np.random.RandomState(1).uniform(-1, 1, 120)
MAGNITUDES = {  # scales of rows, and sample weights
    "plain": (1.0, None),
    "rows of all": (10.0 ** (150 * exponents), None),
    "weights of all": (1.0, 10.0 ** (200 * exponents)),
}


@rules
@every_solver
@pytest.mark.parametrize("magnitudes", MAGNITUDES)
def test_rows_and_weights_of_any_magnitude_are_learned(rule, solver, magnitudes):
    factors, sample_weight = MAGNITUDES[magnitudes]
    problem = dense_problem()
    problem.X = sp.csr_matrix(np.reshape(factors, (-1, 1)) * problem.X.toarray())
    runs = runs_of(problem, rule, sample_weight)
    for hypothesis in "last", "average":
        estimator = MatrixMachine(rule, solver).estimator(hypothesis=hypothesis)
        estimator.fit(problem.X, problem.y, sample_weight=sample_weight)
        assert_agrees(estimator, problem, runs)


# A rate near 1 leaves almost nothing of the first row's direction, which then causes a mistake
# again.
@pytest.mark.parametrize("name", [name for name in RULES if name != "HO_21.5"])
@every_solver
def test_entries_of_any_magnitude_within_a_row_are_learned(name, solver):
    """Each row has nearly all of its norm in one coordinate, whose sign is the label."""
    exponents = np.linspace(-150, 150, 10)
    rng = np.random.RandomState(1)
    rows = dense_problem().X.toarray() * 10.0 ** np.array(
        [rng.permutation(exponents) for _ in range(120)]
    )
    largest = np.abs(rows).argmax(axis=1)
    y = rows[np.arange(120), largest] * rng.choice([-1, 1], 10)[largest] > 0
    X = sp.csr_matrix(rows)
    for hypothesis in "last", "average":
        estimator = MatrixMachine(RULES[name], solver).estimator(hypothesis=hypothesis, max_iter=3)
        assert estimator.fit(X, y).score(X, y) == 1
        assert 5 <= estimator.n_corrections_ <= (20 if "margin" in name else 10)
        assert np.isfinite(estimator.coef_).all()


@rules
@every_solver
def test_rejected_step_changes_nothing(rule, solver):
    """The row has a feature that no earlier row has."""
    X, y = sp.csr_matrix(np.eye(4)), np.array([1, 0, 1, 0])
    machine = MatrixMachine(rule, solver)
    for typical in 1e-300, 1e300:
        model = machine.estimator(hypothesis="last")
        model.partial_fit(X[:1], y[:1], classes=[0, 1], sample_weight=[typical])
        before = model.coef_.copy()
        with pytest.raises(ValueError, match=r"sample_weight\[0\]"):
            model.partial_fit(X[1:2], y[1:2], sample_weight=[1 / typical])
        np.testing.assert_array_equal(model.coef_, before)
        np.testing.assert_array_equal(model.decision_function(X), before[0])
    model.partial_fit(X[1:2], y[1:2], sample_weight=[0.0])
    model.partial_fit(X[2:], y[2:], sample_weight=[typical, typical])
    others = machine.estimator(hypothesis="last").fit(X[[0, 2, 3]], y[[0, 2, 3]])
    np.testing.assert_array_equal(model.coef_, others.coef_)


@models
def test_step_out_of_range_is_rejected_before_training(model):
    X, y = noisy_problem(60, n_classes=3)
    weights = np.full(60, 1e-300)
    fitted = model().partial_fit(X, y, classes=range(3), sample_weight=weights)
    before = fitted.decision_function(X)
    weights[5] = 1e300
    with pytest.raises(ValueError, match=r"sample_weight\[5\] makes steps"):
        fitted.partial_fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(fitted.decision_function(X), before)


@pytest.mark.parametrize("c", [0.0, 0.4, 0.8])
@pytest.mark.parametrize("p", [2.0, 4.0])
@every_solver
def test_cancelling_rows_leave_no_direction(p, c, solver):
    """v is 0 again after each pair of rows; rounding would leave a direction."""
    X = sp.csr_matrix([[1.0, 2.0], [1.0, 2.0], [3.0, -1.0], [3.0, -1.0]])
    model = paper_ho(p=p, c=c, solver=solver, shuffle=False, hypothesis="last").fit(X, [1, 0, 1, 0])
    assert model.n_corrections_ == 4
    np.testing.assert_array_equal(model.coef_, 0)


def test_products_that_overflow_are_rejected():
    X = sp.csr_matrix(np.eye(3))
    model = paper_so(hypothesis="last", shuffle=False, max_iter=3).fit(X, [1, 0, 1])
    far = sp.csr_matrix([[0.0, 0.0, 0.0], [1.7e308, -1.7e308, 1.7e308]])
    for ask in model.decision_function, model.predict:
        with pytest.raises(ValueError, match="row 1 of X exceeds a float64"):
            ask(far)


# The number of features exceeds that of the mistakes.
wide = make_problem(0, m=100, n=200, density=0.07, noise=0.6)


@pytest.mark.parametrize("problem", [dense_problem(), wide], ids=["long", "wide"])
@pytest.mark.parametrize("a", [1e-9, 1e-6, 1e-3, 1e3, 1e6])
def test_any_value_of_a_agrees_with_the_reference(a, problem):
    """A smaller `a` worsens the condition of the larger of the two matrices, and only of that
    one."""
    runs = runs_of(problem, SecondOrder(a=a))
    for solver, hypothesis in product(SOLVERS, ["last", "average"]):
        model = paper_so(a=a, solver=solver, hypothesis=hypothesis, shuffle=False)
        smaller = solver == "auto" and hypothesis == "last"
        tolerance = 1e-9 if smaller else max(1e-9, 1e-14 / a)
        assert_agrees(model.fit(problem.X, problem.y), problem, runs, tolerance=tolerance)


@pytest.mark.parametrize(
    ("name", "hypothesis", "scale"), pairwise(list(RULES), VECTORS, [2.0**1000, 2.0**-1000])
)
def test_rows_of_any_scale_give_equal_predictions(name, hypothesis, scale):
    X, y = (problem := dense_problem()).X, problem.y
    machine = MatrixMachine(RULES[name])
    plain, scaled = (
        machine.estimator(hypothesis=hypothesis, random_state=0).fit(rows, y)
        for rows in (X, X * scale)
    )
    np.testing.assert_array_equal(scaled.mistakes_, plain.mistakes_)
    outputs = plain.decision_function(X)
    np.testing.assert_array_equal(scaled.decision_function(X), outputs)
    np.testing.assert_array_equal(scaled.predict(X * scale), plain.predict(X))
    np.testing.assert_array_equal(plain.decision_function(X * scale), outputs * scale)


@rules
@pytest.mark.parametrize("scale", [2.0**121, 2.0**-146])
def test_limits_of_float32_are_exact(rule, scale):
    problem = dense_problem()
    # Integers are used because the smallest floats have no more digits.
    X = sp.csr_matrix(np.round(7 * problem.X.toarray()).astype("f4"))
    plain, scaled = (
        MatrixMachine(rule).estimator().fit(rows, problem.y) for rows in (X, X * np.float32(scale))
    )
    assert scaled.n_corrections_ == plain.n_corrections_ > 20
    np.testing.assert_array_equal(scaled.coef_, plain.coef_)


@every_solver
@pytest.mark.parametrize("p", [2.0, 4.0, 64.0])
def test_one_row_with_alternating_labels(p, solver):
    """Every trial is a mistake, and the matrix reduces the only direction."""
    X, y = sp.csr_matrix(np.tile([3.0, 4.0, 0.0], (801, 1))), np.arange(801) % 2
    for model in (
        paper_ho(p=p, c=0.999, solver=solver, shuffle=False),
        paper_so(a=1e-6, solver=solver, shuffle=False),
    ):
        with pytest.warns(match="The model predicts class"):
            model.fit(X, y)
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.decision_function(X)).all()
        assert model.coef_[0, 2] == 0
        assert model.n_corrections_ > 400
