"""The Second-order Perceptron: each of its paths against the dense inverse.

A decision of the reference that lies within rounding of its threshold may rightly go either way:
such examples are skipped, never allowed for in the tolerance.
"""

from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from problems.first_order import (
    check_random_slices,
    check_votes,
    examples,
    index_types,
    make_problem,
    problems,
    vectors,
)
from problems.higher_order import (
    SOLVERS,
    MatrixExtras,
    MatrixMachine,
    all_extras,
    assert_agrees,
    check_votes_of_contradictions,
    check_weights,
    limits,
    long_problem,
    paper_so,
    plain_extras,
    solvers,
)
from references.higher_order import SecondOrder, run_matrix_machines
from sparsemargin import PNormPerceptron

machines = st.builds(
    MatrixMachine,
    st.builds(SecondOrder, a=st.sampled_from([0.01, 0.2, 1.0, 30.0]), max_updates=limits),
    solvers,
)
several_classes = st.integers(2, 4).flatmap(lambda k: problems(n_classes=st.just(k)))


@examples(200)
@given(machines, problems(), plain_extras, vectors, st.booleans())
def test_weights(machine, problem, extras, hypothesis, normalized):
    check_weights(machine, problem, extras, hypothesis, normalized)


@examples(300)
@given(machines, several_classes, all_extras, vectors, st.booleans())
def test_everything_together(machine, problem, extras, hypothesis, normalized):
    check_weights(machine, problem, extras, hypothesis, normalized)


@examples(120)
@given(machines, several_classes, all_extras)
def test_votes(machine, problem, extras):
    check_votes(machine, problem, extras)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("a", [0.01, 0.2, 1.0])
@pytest.mark.parametrize("solver", [*SOLVERS, "dual"])
def test_votes_of_scores_that_are_zero(solver, a, seed):
    check_votes_of_contradictions(MatrixMachine(SecondOrder(a=a), solver), seed)


@examples(80)
@given(machines, several_classes, plain_extras, st.booleans(), st.integers(0, 1000))
def test_random_time_slices_are_shared_by_all_classes(
    machine, problem, extras, normalized, random_state
):
    check_random_slices(machine, problem, extras, normalized, random_state)


@examples(80)
@given(machines, problems(index_dtype=st.just("i8")), all_extras, vectors)
def test_64_bit_indices(machine, problem, extras, hypothesis):
    assert problem.X.indices.dtype == problem.X.indptr.dtype == np.int64
    check_weights(machine, problem, extras, hypothesis)


@examples(120)
@given(machines, problems(value_dtype=st.just("f4"), index_dtype=index_types), all_extras, vectors)
def test_float32_rows(machine, problem, extras, hypothesis):
    check_weights(machine, problem, extras, hypothesis, tolerance=1e-4, least_gap=1e-4)


@lru_cache(maxsize=1)
def long_run(max_updates):
    problem = long_problem()
    rule = SecondOrder(a=0.2, max_updates=max_updates)
    return problem, run_matrix_machines(problem.X.toarray(), problem.y, rule)


@pytest.mark.parametrize("max_updates", [None, 40])
def test_after_hundreds_of_mistakes(max_updates):
    problem, runs = long_run(max_updates)
    assert runs[0].n_corrections >= 500
    assert runs[0].smallest_gap > 1e-9
    for solver in [*SOLVERS, "auto"]:
        machine = MatrixMachine(runs[0].rule, solver)
        for hypothesis in "last", "average":
            estimator = MatrixExtras().fit(machine, problem, hypothesis=hypothesis)
            assert_agrees(estimator, problem, runs)


@pytest.mark.parametrize("value_dtype", ["f4", "f8"])
def test_auto_begins_with_rows_and_goes_over_to_the_matrix_where_that_is_cheaper(value_dtype):
    problem = make_problem(0, m=300, n=20, density=0.5, noise=0.6, value_dtype=value_dtype)
    machine = MatrixMachine(SecondOrder())
    runs = MatrixExtras().runs(machine, problem)
    assert runs[0].n_corrections > 100
    assert runs[0].smallest_gap > 1e-5
    for hypothesis in "last", "average":
        estimator = machine.estimator(hypothesis=hypothesis)
        estimator.partial_fit(problem.X[:2], problem.y[:2], classes=[0, 1])
        assert estimator.n_updates_ > 0
        assert estimator.solver_ == "implicit"
        estimator.partial_fit(problem.X[2:], problem.y[2:])
        assert estimator.solver_ == "primal"
        assert_agrees(estimator, problem, runs, tolerance=1e-4 if value_dtype == "f4" else 1e-9)


def test_auto_keeps_the_rows_where_features_are_many():
    problem = make_problem(0, m=200, n=6000, density=0.005, noise=0.6)
    model = paper_so(shuffle=False).fit(problem.X, problem.y)
    assert model.n_corrections_ > 50
    assert model.solver_ == "implicit"


@pytest.mark.parametrize("solver", SOLVERS)
def test_bounded_updates_are_counted_and_mistakes_go_on(solver):
    problem = make_problem(0, m=200, n=20, density=0.5, noise=0.3)
    params = {"solver": solver, "shuffle": False}
    model = paper_so(max_updates=7, **params).fit(problem.X, problem.y)
    assert model.n_updates_ == 7
    assert model.n_corrections_ > 30
    free = paper_so(**params).fit(problem.X, problem.y)
    assert free.n_updates_ == free.n_corrections_ > 7
    beyond = paper_so(max_updates=10**6, **params).fit(problem.X, problem.y)
    np.testing.assert_array_equal(beyond.coef_, free.coef_)


def test_a_large_a_leaves_the_perceptron():
    problem = make_problem(0, m=200, n=20, density=0.5, noise=0.3)
    params = {"hypothesis": "last", "shuffle": False}
    far = paper_so(a=1e9, **params).fit(problem.X, problem.y)
    assert far.n_corrections_ > 30
    plain = PNormPerceptron(fit_intercept=False, max_iter=1, **params).fit(problem.X, problem.y)
    assert far.n_corrections_ == plain.n_corrections_
    np.testing.assert_allclose(1e9 * far.coef_, plain.coef_, rtol=0, atol=1e-6)
