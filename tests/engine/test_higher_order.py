"""The Higher-order Perceptron: each of its paths against the n x n definition.

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
    paper_ho,
    plain_extras,
    solvers,
)
from references.higher_order import HigherOrder, run_matrix_machines
from sparsemargin import PNormPerceptron

POWERS = [2.0, 4.0, 7.0, 10.0]
RATES = [0.0, 0.2, 0.8]


def rules(powers=POWERS):
    return st.builds(
        HigherOrder,
        p=st.sampled_from(powers),
        c=st.sampled_from(RATES),
        sparse_updates=st.booleans(),
        max_updates=limits,
    )


def machines(powers=POWERS):
    return st.builds(MatrixMachine, rules(powers), solvers)


several_classes = st.integers(2, 4).flatmap(lambda k: problems(n_classes=st.just(k)))


# -- against the definition -----------------------------------------------------------------------


@examples(300)
@given(machines(), problems(), plain_extras, vectors, st.booleans())
def test_weights(machine, problem, extras, hypothesis, normalized):
    check_weights(machine, problem, extras, hypothesis, normalized)


@examples(300)
@given(machines(), several_classes, all_extras, vectors, st.booleans())
def test_everything_together(machine, problem, extras, hypothesis, normalized):
    check_weights(machine, problem, extras, hypothesis, normalized)


@examples(150)
@given(machines(), several_classes, all_extras)
def test_votes(machine, problem, extras):
    check_votes(machine, problem, extras)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("p", "solver"),
    [(2.0, "implicit"), (2.0, "primal"), (2.0, "dual"), (3.0, "implicit"), (3.0, "primal")],
)
def test_votes_of_scores_that_are_zero(p, solver, seed):
    check_votes_of_contradictions(MatrixMachine(HigherOrder(p=p), solver), seed)


@examples(100)
@given(machines(), several_classes, plain_extras, st.booleans(), st.integers(0, 1000))
def test_random_time_slices_are_shared_by_all_classes(
    machine, problem, extras, normalized, random_state
):
    check_random_slices(machine, problem, extras, normalized, random_state)


@examples(100)
@given(machines(), problems(index_dtype=st.just("i8")), all_extras, vectors)
def test_64_bit_indices(machine, problem, extras, hypothesis):
    assert problem.X.indices.dtype == problem.X.indptr.dtype == np.int64
    check_weights(machine, problem, extras, hypothesis)


@examples(150)
@given(
    machines(), problems(value_dtype=st.just("f4"), index_dtype=index_types), all_extras, vectors
)
def test_float32_rows(machine, problem, extras, hypothesis):
    check_weights(machine, problem, extras, hypothesis, tolerance=1e-4, least_gap=1e-4)


@lru_cache(maxsize=1)
def long_run(rule):
    """Return a problem and its run; `rule` holds the fields of a HigherOrder."""
    problem = long_problem()
    return problem, run_matrix_machines(problem.X.toarray(), problem.y, HigherOrder(*rule))


@pytest.mark.parametrize("sparse_updates", [False, True])
@pytest.mark.parametrize("c", RATES)
@pytest.mark.parametrize("p", POWERS)
def test_after_hundreds_of_mistakes(p, c, sparse_updates):
    problem, runs = long_run((p, c, sparse_updates))
    assert runs[0].n_corrections >= 500
    assert runs[0].smallest_gap > 1e-9
    machine = MatrixMachine(runs[0].rule)
    for machine.solver in [*SOLVERS, "auto"]:
        for hypothesis in "last", "average":
            estimator = MatrixExtras().fit(machine, problem, hypothesis=hypothesis)
            assert_agrees(estimator, problem, runs)


@pytest.mark.parametrize("p", [2.0, 7.0])
@pytest.mark.parametrize("value_dtype", ["f4", "f8"])
def test_auto_begins_with_rows_and_goes_over_to_the_matrix_where_that_is_cheaper(p, value_dtype):
    problem = make_problem(0, m=300, n=20, density=0.5, noise=0.6, value_dtype=value_dtype)
    machine = MatrixMachine(HigherOrder(p=p, c=0.8))
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
    model = paper_ho(p=4.0, shuffle=False).fit(problem.X, problem.y)
    assert model.n_corrections_ > 50
    assert model.solver_ == "implicit"


# -- what its parameters mean ---------------------------------------------------------------------

PNORM_PARAMETERS = PNormPerceptron().get_params().keys()


def assert_is_pnorm_perceptron(model, problem, weights=None):
    """Compare a model without a rate with the p-norm Perceptron of the same parameters."""
    shared = {k: v for k, v in model.get_params().items() if k in PNORM_PARAMETERS}
    plain = PNormPerceptron(**shared).fit(problem.X, problem.y, sample_weight=weights)
    np.testing.assert_array_equal(model.n_corrections_, plain.n_corrections_)
    assert np.all(model.n_updates_ == 0)
    error = 1e-12 * max(np.abs(plain.coef_).max(), np.abs(plain.intercept_).max())
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=0, atol=error)
    np.testing.assert_allclose(model.intercept_, plain.intercept_, rtol=0, atol=error)


@examples(200)
@given(
    st.sampled_from([2.5, 21.5, *POWERS]),
    solvers,
    several_classes,
    all_extras,
    vectors,
    st.booleans(),
)
def test_without_a_rate_it_is_the_p_norm_perceptron(
    p, solver, problem, extras, hypothesis, normalized
):
    machine = MatrixMachine(HigherOrder(p=p, c=0.0), solver)
    model = check_weights(machine, problem, extras, hypothesis, normalized)
    assert_is_pnorm_perceptron(
        model, problem, extras.sample_weight(problem) if extras.weighted else None
    )


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("hypothesis", ["last", "average"])
def test_without_a_rate_it_stays_the_p_norm_perceptron_over_noise(p, solver, hypothesis):
    problem = long_problem()
    model = paper_ho(
        p=p, c=0.0, solver=solver, hypothesis=hypothesis, max_iter=2, shuffle=False
    ).fit(problem.X, problem.y)
    assert model.n_corrections_ > 1000
    assert_is_pnorm_perceptron(model, problem)


@pytest.mark.parametrize("p", [2.0, 4.0])
@pytest.mark.parametrize("solver", SOLVERS)
def test_sparse_updates_change_the_matrix_at_some_mistakes_only(p, solver):
    problem = make_problem(0, m=200, n=20, density=0.5, noise=0.3)
    sparse, full = (
        paper_ho(p=p, solver=solver, sparse_updates=sparse, shuffle=False).fit(problem.X, problem.y)
        for sparse in (True, False)
    )
    assert 0 < sparse.n_updates_ < sparse.n_corrections_
    assert full.n_updates_ == full.n_corrections_
    assert not np.array_equal(sparse.coef_, full.coef_)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("p", [2.0, 4.0])
@pytest.mark.parametrize("sparse_updates", [False, True])
def test_bounded_updates_are_counted_and_mistakes_go_on(p, solver, sparse_updates):
    problem = make_problem(0, m=200, n=20, density=0.5, noise=0.3)
    params = {"p": p, "sparse_updates": sparse_updates, "solver": solver, "shuffle": False}
    model = paper_ho(max_updates=3, **params).fit(problem.X, problem.y)
    assert model.n_updates_ == 3
    assert model.n_corrections_ > 30
    free = paper_ho(**params).fit(problem.X, problem.y)
    assert free.n_updates_ > 3
    beyond = paper_ho(max_updates=10**6, **params).fit(problem.X, problem.y)
    np.testing.assert_array_equal(beyond.coef_, free.coef_)
