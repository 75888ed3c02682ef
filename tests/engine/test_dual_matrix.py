"""The dual Higher-order and Second-order Perceptron against their definitions.

The references are those of the linear space, n x n matrices and all, on explicit vectors whose
products are the kernel's.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils.estimator_checks import parametrize_with_checks

from problems.contract import NOT_EQUIVALENT
from problems.first_order import (
    check_random_slices,
    check_votes,
    examples,
    make_problem,
    problems,
    vectors,
)
from problems.higher_order import (
    ESTIMATORS,
    HYPOTHESES,
    RULES,
    MatrixExtras,
    MatrixMachine,
    all_extras,
    assert_same_mistakes,
    limits,
    per_machine,
)
from problems.kernels import (
    FORMS,
    LEAST_NORM,
    PLAIN,
    Kernel,
    OverKernel,
    assert_outputs,
    few_classes,
    is_sure,
    kernels,
)
from references.higher_order import HigherOrder, SecondOrder, run_matrix_machines
from references.kernels import feature_vectors
from sparsemargin import HigherOrderPerceptron, SecondOrderPerceptron

RULES_AT_P_2 = {name: rule for name, rule in RULES.items() if name != "HO_4"}
dual_rules = pytest.mark.parametrize("rule", RULES_AT_P_2.values(), ids=RULES_AT_P_2)


def vectors_of(kernel, problem):
    """Return explicit vectors for the rows to learn from, and for those to predict."""
    rows = np.vstack([problem.X.toarray(), problem.X_test.toarray()])
    return np.split(feature_vectors(kernel.matrix(rows, rows)), [problem.X.shape[0]])


@dataclass
class DualMachine(OverKernel, MatrixMachine):
    """A reference rule over a kernel, and the estimator which must agree with it."""

    kernel: Kernel = PLAIN
    form: str = "named"

    def test_rows(self, problem):
        return vectors_of(self.kernel, problem)[1]

    def estimator(self, **params):
        return super().estimator(**self.kernel_parameters(), **params)


@dataclass
class DualExtras(MatrixExtras):
    """What may be added to a run over a kernel."""

    def runs(self, machine, problem):
        X, _ = vectors_of(machine.kernel, problem)
        return run_matrix_machines(X, problem.y, machine.rule, **self.options(problem))


def check(machine, problem, extras, hypothesis, normalized=False):
    """Fit both and compare, unless a decision lay within rounding of its threshold, or the rows'
    intercepts cancelled: what is left of outputs is then rounded as they were."""
    runs = extras.runs(machine, problem)
    assume(is_sure(runs, normalized))
    estimator = extras.fit(machine, problem, hypothesis=hypothesis, normalize_hypotheses=normalized)
    parts = estimator.dual_coef_ * (extras.rho or 0.0)
    assume(np.all(np.abs(parts.sum(axis=1)) >= LEAST_NORM * np.abs(parts).sum(axis=1)))
    assert_same_mistakes(estimator, runs)
    assert_outputs(estimator, machine, problem, runs, normalized)
    assert set(per_machine(estimator.solver_)) == {"dual"}


rules = st.builds(
    HigherOrder,
    c=st.sampled_from([0.0, 0.2, 0.8]),
    sparse_updates=st.booleans(),
    max_updates=limits,
) | st.builds(SecondOrder, a=st.sampled_from([0.1, 1.0, 30.0]), max_updates=limits)
machines = st.builds(
    DualMachine, rules, st.sampled_from(["auto", "dual"]), kernels, st.sampled_from(FORMS)
)
extras = st.builds(lambda like: DualExtras(**vars(like)), all_extras)


@examples(250)
@given(machines, few_classes, extras, vectors, st.booleans())
def test_vectors(machine, problem, extras, hypothesis, normalized):
    check(machine, problem, extras, hypothesis, normalized)


@examples(80)
@given(machines, few_classes, extras)
def test_votes(machine, problem, extras):
    check_votes(machine, problem, extras)


@examples(60)
@given(machines, problems(), extras, st.booleans(), st.integers(0, 1000))
def test_random_time_slices_are_shared_by_all_classes(
    machine, problem, extras, normalized, random_state
):
    check_random_slices(machine, problem, extras, normalized, random_state)


# -- against the primal forms ---------------------------------------------------------------------


def noisy(m=400, n_classes=2):
    return make_problem(0, m, n=20, density=0.5, noise=0.5, n_classes=n_classes)


@pytest.mark.parametrize("hypothesis", HYPOTHESES)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("max_updates", [None, 7])
@dual_rules
def test_the_dual_form_of_the_linear_kernel(rule, max_updates, n_classes, hypothesis):
    problem = noisy(n_classes=n_classes)
    of = partial(
        rule, max_updates=max_updates, hypothesis=hypothesis, fit_intercept=True, max_iter=2,
        random_state=0,
    )  # fmt: skip
    dual = of(solver="dual").fit(problem.X, problem.y)
    outputs = dual.decision_function(problem.X_test)
    for solver in "implicit", "primal":
        other = of(solver=solver).fit(problem.X, problem.y)
        assert np.min(other.n_corrections_) > 100
        assert_array_equal(dual.n_corrections_, other.n_corrections_)
        assert_array_equal(dual.n_updates_, other.n_updates_)
        for ours, theirs in zip(*map(per_machine, (dual.mistakes_, other.mistakes_)), strict=True):
            assert_array_equal(ours, theirs)
        expected = other.decision_function(problem.X_test)
        assert_allclose(outputs, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


@dual_rules
def test_the_linear_kernel_by_another_name(rule):
    problem = noisy()
    linear = rule(solver="dual", random_state=0).fit(problem.X, problem.y)
    plain = rule(kernel="poly", degree=1, gamma=1.0, coef0=0.0, random_state=0)
    plain.fit(problem.X, problem.y)
    assert linear.solver_ == plain.solver_ == "dual"
    assert_array_equal(linear.mistakes_, plain.mistakes_)
    expected = linear.decision_function(problem.X_test)
    assert_allclose(plain.decision_function(problem.X_test), expected, rtol=0, atol=1e-12)


@dual_rules
def test_bounded_updates_are_counted_and_mistakes_go_on(rule):
    problem = noisy()
    params = {"kernel": "rbf", "gamma": 0.5, "shuffle": False}
    free = rule(**params).fit(problem.X, problem.y)
    bounded = rule(max_updates=5, **params).fit(problem.X, problem.y)
    assert bounded.n_updates_ == 5 < free.n_updates_
    assert bounded.n_corrections_ > 50
    beyond = rule(max_updates=10**6, **params).fit(problem.X, problem.y)
    assert_array_equal(
        beyond.decision_function(problem.X_test), free.decision_function(problem.X_test)
    )


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("solver", ["implicit", "primal"])
def test_a_kernel_has_a_dual_form_only(estimator, solver):
    problem = noisy(30)
    with pytest.raises(ValueError, match="kernel"):
        estimator(kernel="rbf", gamma=1.0, solver=solver).fit(problem.X, problem.y)


@pytest.mark.parametrize("params", [{"kernel": "rbf"}, {"solver": "dual"}])
@pytest.mark.parametrize("p", [4.0, "log"])
def test_the_dual_form_is_for_p_2(params, p):
    problem = noisy(30)
    with pytest.raises(ValueError, match=r"\bp\b"):
        HigherOrderPerceptron(p=p, **params).fit(problem.X, problem.y)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_kernel_leaves_no_weights(estimator):
    problem = noisy(30)
    model = estimator(kernel="rbf", gamma=1.0).fit(problem.X, problem.y)
    with pytest.raises(AttributeError, match="kernel"):
        model.coef_  # noqa: B018


@parametrize_with_checks(
    [
        estimator(kernel=kernel, gamma=1.0, max_updates=50)
        for estimator in (HigherOrderPerceptron, SecondOrderPerceptron)
        for kernel in ("rbf", "poly")
    ],
    expected_failed_checks=lambda estimator: NOT_EQUIVALENT,
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
