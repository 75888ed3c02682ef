"""Perceptrons with a matrix where magnitudes end: they agree with the references, or refuse.

The references carry 80-bit numbers here, whose range no test leaves.
"""

import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

from problems.first_order import Problem, make_problem
from problems.higher_order import (
    SOLVERS,
    MatrixMachine,
    assert_agrees,
    models,
    noisy_problem,
    paper_ho,
    paper_so,
    streamed,
)
from references.higher_order import HigherOrder, SecondOrder, run_matrix_machines

pytestmark = pytest.mark.skipif(
    np.finfo(np.longdouble).maxexp <= np.finfo(np.float64).maxexp,
    reason="numpy.longdouble has no wider range than float64 here",
)

RULES = [HigherOrder(), HigherOrder(p=4.0, c=0.8), HigherOrder(p=64.0, c=0.2), SecondOrder()]

rules = pytest.mark.parametrize("rule", RULES, ids=["HO_2", "HO_4", "HO_64", "SO"])
every_solver = pytest.mark.parametrize("solver", SOLVERS)
vectors = pytest.mark.parametrize("hypothesis", ["last", "average"])


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings(), np.errstate(over="raise", invalid="raise", divide="raise"):
        warnings.simplefilter("error")
        yield


def dense_problem(m=120, n=10, seed=0):
    """Return rows without zeros and noisy labels, so that every score has a size."""
    rng = np.random.RandomState(seed)
    rows = rng.choice([-1, 1], (m, n)) * rng.uniform(0.1, 1, (m, n))
    y = (rows[:, :3].sum(axis=1) > 0) ^ (rng.uniform(size=m) < 0.2)
    return Problem(sp.csr_matrix(rows), y.astype(int), sp.csr_matrix(rows[:10]))


def runs_of(problem, rule, sample_weight=None):
    """Return the references' runs; the problem must leave no doubt about any decision."""
    runs = run_matrix_machines(problem.X.toarray(), problem.y, rule, sample_weight=sample_weight)
    assert runs[0].n_corrections > 20
    assert runs[0].smallest_gap > 1e-9
    return runs


def check(problem, rule, solver, hypothesis, sample_weight=None):
    """Fit both and compare."""
    runs = runs_of(problem, rule, sample_weight)
    estimator = MatrixMachine(rule, solver).estimator(hypothesis=hypothesis)
    estimator.fit(problem.X, problem.y, sample_weight=sample_weight)
    assert_agrees(estimator, problem, runs)


@every_solver
@vectors
@pytest.mark.parametrize("p", [21.5, 64.0])
@pytest.mark.parametrize("c", [0.2, 0.8, 0.999])
def test_large_powers(p, c, solver, hypothesis):
    check(dense_problem(), HigherOrder(p=p, c=c), solver, hypothesis)


@rules
@every_solver
@vectors
def test_rows_of_any_magnitude(rule, solver, hypothesis):
    problem = dense_problem()
    factors = 10.0 ** np.random.RandomState(1).uniform(-150, 150, (120, 1))
    check(
        replace(problem, X=sp.csr_matrix(factors * problem.X.toarray())), rule, solver, hypothesis
    )


@rules
@every_solver
@vectors
def test_entries_of_any_magnitude_within_a_row(rule, solver, hypothesis):
    """Every row is all but one coordinate, whose sign tells the label."""
    exponents = np.linspace(-150, 150, 10)
    rng = np.random.RandomState(1)
    rows = dense_problem().X.toarray() * 10.0 ** np.array(
        [rng.permutation(exponents) for _ in range(120)]
    )
    largest = np.abs(rows).argmax(axis=1)
    y = rows[np.arange(120), largest] * rng.choice([-1, 1], 10)[largest] > 0
    X = sp.csr_matrix(rows)
    estimator = MatrixMachine(rule, solver).estimator(hypothesis=hypothesis, max_iter=3).fit(X, y)
    assert estimator.score(X, y) == 1
    assert 5 <= estimator.n_corrections_ <= 10
    assert np.isfinite(estimator.coef_).all()


@rules
@every_solver
@vectors
@pytest.mark.parametrize("scale", [2.0**330, 2.0**-330])
def test_weights_of_one_far_magnitude(rule, solver, hypothesis, scale):
    check(dense_problem(), rule, solver, hypothesis, sample_weight=np.full(120, scale))


@rules
@every_solver
@vectors
def test_weights_of_all_magnitudes(rule, solver, hypothesis):
    weights = 10.0 ** np.random.RandomState(2).uniform(-100, 100, 120)
    check(dense_problem(), rule, solver, hypothesis, sample_weight=weights)


@rules
@every_solver
@pytest.mark.parametrize("weight", [0.0, 1e-250, 1e250])
def test_a_refused_step_leaves_no_trace(rule, solver, weight):
    """The row would have brought a feature which none before it has."""
    X, y = sp.csr_matrix(np.eye(4)), np.array([1, 0, 1, 0])
    machine = MatrixMachine(rule, solver)
    model = machine.estimator(hypothesis="last").partial_fit(X[:1], y[:1], classes=[0, 1])
    before = model.coef_.copy()
    if weight == 0:
        model.partial_fit(X[1:2], y[1:2], sample_weight=[weight])
    else:
        with pytest.raises(ValueError, match=r"sample_weight\[0\]"):
            model.partial_fit(X[1:2], y[1:2], sample_weight=[weight])
    np.testing.assert_array_equal(model.coef_, before)
    np.testing.assert_array_equal(model.decision_function(X), before[0])
    model.partial_fit(X[2:], y[2:])
    others = machine.estimator(hypothesis="last").fit(X[[0, 2, 3]], y[[0, 2, 3]])
    np.testing.assert_array_equal(model.coef_, others.coef_)


@models
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_step_out_of_range_is_refused_before_any_label_learns(model, n_classes):
    X, y = noisy_problem(60, n_classes=n_classes)
    weights = np.ones(60)
    weights[5] = 1e250
    fitted = streamed(model(), X, y, n_classes=n_classes)
    before = fitted.coef_.copy()
    with pytest.raises(ValueError, match=r"sample_weight\[5\] = 1e\+250 makes steps"):
        fitted.partial_fit(X, y, sample_weight=weights)
    with pytest.raises(ValueError, match="class_weight makes steps"):
        model(class_weight={0: 1e-200, 1: 1.0, 2: 1.0}).fit(X, y)
    np.testing.assert_array_equal(fitted.coef_, before)


@pytest.mark.parametrize("c", [0.0, 0.4, 0.8])
@pytest.mark.parametrize("p", [2.0, 4.0])
@every_solver
def test_what_cancels_leaves_nothing_behind(p, c, solver):
    """v comes back to 0 after each pair of rows; rounding would leave a direction."""
    X = sp.csr_matrix([[1.0, 2.0], [1.0, 2.0], [3.0, -1.0], [3.0, -1.0]])
    model = paper_ho(
        p=p, c=c, solver=solver, shuffle=False, normalize_hypotheses=True, hypothesis="last"
    ).fit(X, [1, 0, 1, 0])
    assert model.n_corrections_ == 4
    np.testing.assert_array_equal(model.coef_, 0)


def test_products_that_overflow_are_refused():
    X = sp.csr_matrix([[1.0, 0.0], [0.0, 1.0]])
    model = paper_so(
        hypothesis="last", class_weight={0: 4.0, 1: 4.0}, shuffle=False, max_iter=3
    ).fit(X, [1, 0])
    far = sp.csr_matrix([[0.0, 0.0], [1.7e308, 0.0]])
    for ask in model.decision_function, model.predict:
        with pytest.raises(ValueError, match="row 1 of X exceeds a float64"):
            ask(far)


def wide_problem():
    """Return more features than there will be mistakes."""
    return make_problem(0, m=150, n=400, density=0.05, noise=0.6)


@pytest.mark.parametrize("problem", [dense_problem(), wide_problem()], ids=["long", "wide"])
@pytest.mark.parametrize("a", [1e-9, 1e-6, 1e-3, 1e3, 1e6])
def test_any_a(a, problem):
    """The smaller a, the worse conditioned is the larger of the two matrices, and it alone."""
    runs = runs_of(problem, SecondOrder(a=a))
    for solver, hypothesis in product([*SOLVERS, "auto"], ["last", "average"]):
        model = paper_so(a=a, solver=solver, hypothesis=hypothesis, shuffle=False)
        smaller = solver == "auto" and hypothesis == "last"
        tolerance = 1e-9 if smaller else max(1e-9, 1e-14 / a)
        assert_agrees(model.fit(problem.X, problem.y), problem, runs, tolerance=tolerance)


@rules
@pytest.mark.parametrize("hypothesis", ["last", "average", "vote", "random"])
@pytest.mark.parametrize("scale", [2.0**1000, 2.0**-1000])
def test_rows_of_any_scale_are_learned_and_predicted_alike(rule, hypothesis, scale):
    X, y = (problem := dense_problem()).X, problem.y
    machine = MatrixMachine(rule)
    plain, scaled = (
        machine.estimator(hypothesis=hypothesis, random_state=0).fit(rows, y)
        for rows in (X, X * scale)
    )
    np.testing.assert_array_equal(scaled.mistakes_, plain.mistakes_)
    outputs = plain.decision_function(X)
    np.testing.assert_array_equal(scaled.decision_function(X), outputs)
    np.testing.assert_array_equal(scaled.predict(X * scale), plain.predict(X))
    growth = 1 if hypothesis == "vote" else scale
    np.testing.assert_array_equal(plain.decision_function(X * scale), outputs * growth)


@rules
@pytest.mark.parametrize("scale", [2.0**121, 2.0**-146])
def test_the_ends_of_float32(rule, scale):
    problem = dense_problem()
    # Whole numbers: the smallest floats have no digits for more.
    X = sp.csr_matrix(np.round(7 * problem.X.toarray()).astype("f4"))
    plain, scaled = (
        MatrixMachine(rule).estimator().fit(rows, problem.y) for rows in (X, X * np.float32(scale))
    )
    assert scaled.n_corrections_ == plain.n_corrections_ > 20
    np.testing.assert_array_equal(scaled.coef_, plain.coef_)


@every_solver
@pytest.mark.parametrize("p", [2.0, 4.0, 64.0])
def test_one_row_with_both_labels_in_turns(p, solver):
    """Every trial is a mistake, and the matrix shrinks the one direction there is."""
    X, y = sp.csr_matrix(np.tile([3.0, 4.0, 0.0], (2001, 1))), np.arange(2001) % 2
    for model in (
        paper_ho(p=p, c=0.999, solver=solver, shuffle=False),
        paper_so(a=1e-6, solver=solver, shuffle=False),
    ):
        model.fit(X, y)
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.decision_function(X)).all()
        assert model.coef_[0, 2] == 0
        assert model.n_corrections_ > 1000
