"""Each form of the Higher-order and the Second-order Perceptron against n x n definitions.

For dual variables, the references use explicit vectors whose products are the kernel's.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from depth import pairwise, some
from problems.first_order import (
    by_machine,
    examples,
    index_types,
    make_problem,
    problems,
    vectors,
)
from problems.higher_order import (
    RULES,
    SOLVERS,
    MatrixExtras,
    MatrixMachine,
    assert_agrees,
    assert_same_mistakes,
    check,
    extras,
    paper_ho,
    per_machine,
)
from problems.kernels import (
    FORMS,
    LEAST_NORM,
    PLAIN,
    Kernel,
    OverKernel,
    any_problem,
    assert_outputs,
    kernels,
)
from problems.models import VECTORS
from references.higher_order import HigherOrder, SecondOrder
from references.kernels import feature_vectors
from sparsemargin import HigherOrderPerceptron, SecondOrderPerceptron


@dataclass
class DualMachine(OverKernel, MatrixMachine):
    """A reference rule over a kernel, and the estimator that must agree with it."""

    kernel: Kernel = PLAIN
    form: str = "named"

    least_norm = LEAST_NORM

    def _vectors(self, problem):
        """Explicit vectors of the training and test rows."""
        rows = np.vstack([problem.X.toarray(), problem.X_test.toarray()])
        return np.split(feature_vectors(self.kernel.matrix(rows, rows)), [problem.X.shape[0]])

    def learned_rows(self, problem):
        return self._vectors(problem)[0]

    def test_rows(self, problem):
        return self._vectors(problem)[1]

    def estimator(self, **params):
        return super().estimator(**self.kernel_parameters(), **params)

    def compare(self, estimator, problem, runs, normalized, tolerance):
        parts = estimator.dual_coef_ * (runs[0].rho or 0.0)
        # If intercepts cancel, only their rounding errors are left.
        assume(np.all(np.abs(parts.sum(axis=1)) >= LEAST_NORM * np.abs(parts).sum(axis=1)))
        assert_same_mistakes(estimator, runs)
        assert_outputs(estimator, self, problem, runs, normalized)
        assert set(per_machine(estimator.solver_)) == {"dual"}
        support, points = problem.X.toarray()[estimator.support_], problem.X_test.toarray()
        products = self.kernel.matrix(points, support, float)
        outputs = by_machine(products @ estimator.dual_coef_.T + estimator.intercept_)
        decision = estimator.decision_function(self.given(problem.X_test, problem))
        sizes = np.abs(products) @ np.abs(estimator.dual_coef_.T)
        assert_allclose(decision, outputs, rtol=0, atol=1e-8 * sizes.max(initial=1.0))


limits = st.sampled_from([None, 1, 4])
alphas = st.sampled_from([None, 0.5, 0.9])
second_order_rules = st.builds(
    SecondOrder, a=st.sampled_from([0.01, 0.2, 1.0, 30.0]), max_updates=limits, alpha=alphas
)  # fmt: skip


def higher_order_rules(powers):
    return st.builds(
        HigherOrder,
        p=st.sampled_from(powers),
        c=st.sampled_from([0.0, 0.2, 0.8]),
        sparse_updates=st.booleans(),
        max_updates=limits,
        alpha=alphas,
    )


solvers = st.sampled_from(SOLVERS)
machines = (
    st.builds(MatrixMachine, higher_order_rules([2.0, 2.5, 4.0, 7.0, 10.0, 21.5]), solvers)
    | st.builds(MatrixMachine, second_order_rules, solvers)
    | st.builds(
        DualMachine,
        higher_order_rules([2.0]) | second_order_rules,
        st.sampled_from(["auto", "dual"]),
        kernels,
        st.sampled_from(FORMS),
    )
)


@examples(some(900, 3000))
@given(machines, any_problem, extras, vectors)
def test_vectors_agree_with_the_reference(machine, problem, extras, hypothesis):
    check(machine, problem, extras, hypothesis)


@examples(200)
@given(
    machines.filter(lambda machine: not isinstance(machine, DualMachine)),
    problems(value_dtype=st.just("f4"), index_dtype=index_types), extras, vectors,
)  # fmt: skip
def test_float32_rows_agree_with_the_reference(machine, problem, extras, hypothesis):
    check(machine, problem, extras, hypothesis, tolerance=1e-4, least_gap=1e-4)


LONG_RUNS = [
    HigherOrder(p=2.0, c=0.8), HigherOrder(p=2.0, c=0.2, sparse_updates=True),
    HigherOrder(p=4.0, c=0.8, sparse_updates=True), HigherOrder(p=10.0, c=0.2),
    HigherOrder(p=7.0, c=0.0),
    HigherOrder(p=7.0, alpha=0.8, max_updates=40), HigherOrder(alpha=0.8),
    SecondOrder(a=0.2), SecondOrder(a=0.2, max_updates=40), SecondOrder(alpha=0.8),
]  # fmt: skip


@pytest.mark.parametrize("rule", LONG_RUNS, ids=repr)
def test_hundreds_of_mistakes_agree_with_the_reference(rule):
    problem = make_problem(0, m=some(800, 1500), n=some(120, 220), density=0.1, noise=0.6)
    runs = MatrixExtras().runs(MatrixMachine(rule), problem)
    assert runs[0].n_corrections >= some(250, 500)
    assert runs[0].smallest_gap > 1e-9
    for solver in SOLVERS:
        for hypothesis in "last", "average":
            estimator = MatrixExtras().fit(
                MatrixMachine(rule, solver), problem, hypothesis=hypothesis
            )
            assert_agrees(estimator, problem, runs)


@pytest.mark.parametrize(
    "rule", [HigherOrder(c=0.8), HigherOrder(p=7.0, c=0.8), SecondOrder()], ids=repr
)
@pytest.mark.parametrize("value_dtype", ["f4", "f8"])
def test_auto_solver_switches_to_the_cheaper_form(rule, value_dtype):
    problem = make_problem(0, m=300, n=20, density=0.5, noise=0.6, value_dtype=value_dtype)
    machine = MatrixMachine(rule)
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


DUAL = {
    "HO": partial(paper_ho, c=0.6),
    "sparse HO": RULES["sparse HO_2"],
    "bounded HO": partial(paper_ho, max_updates=15),
    "margin HO": partial(paper_ho, alpha=0.8),
    "SO": RULES["SO"],
    "bounded SO": partial(RULES["SO"], max_updates=15),
    "margin SO": partial(RULES["SO"], alpha=0.8, max_updates=15),
}


def noisy(n_classes=2, m=500):
    return make_problem(0, m, n=20, density=0.5, noise=0.5, n_classes=n_classes)


@pytest.mark.parametrize(("name", "hypothesis", "n_classes"), pairwise(list(DUAL), VECTORS, [2, 3]))
def test_dual_form_with_a_linear_kernel_equals_other_forms(name, hypothesis, n_classes):
    problem = noisy(n_classes)
    weights = np.random.RandomState(2).choice([0.0, 0.5, 1.0, 2.0], 500)
    dual, *others = (
        DUAL[name](
            solver=solver, hypothesis=hypothesis, max_iter=1.7, fit_intercept=True,
            intercept_scaling=0.5, max_corrections=300, random_state=0,
        ).fit(problem.X, problem.y, sample_weight=weights)
        for solver in ("dual", "implicit", "primal")
    )  # fmt: skip
    outputs = dual.decision_function(problem.X_test)
    assert np.min(dual.n_corrections_) > 100
    for other in others:
        assert_array_equal(dual.n_updates_, other.n_updates_)
        assert_array_equal(np.hstack(dual.mistakes_), np.hstack(other.mistakes_))
        expected = other.decision_function(problem.X_test)
        assert_allclose(outputs, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_inconsistent_parameters_raise_an_error():
    problem = noisy(m=30)
    for model, words in [
        (HigherOrderPerceptron(kernel="rbf", solver="primal"), "solver='primal'"),
        (SecondOrderPerceptron(kernel="poly", solver="implicit"), "solver='implicit'"),
        (HigherOrderPerceptron(solver="dual", p=3), "solver='dual' needs p=2"),
        (SecondOrderPerceptron(hypothesis="vote"), "hypothesis='average' or 'last', or take"),
        (HigherOrderPerceptron(hypothesis="random"), "no log of its corrections"),
    ]:
        with pytest.raises(ValueError, match=words):
            model.fit(problem.X, problem.y)


def test_precomputed_kernel_continues_with_the_same_rows_only():
    problem = noisy(m=60)
    K = (problem.X @ problem.X.T).toarray()
    model = SecondOrderPerceptron(kernel="precomputed", warm_start=True).fit(K, problem.y)
    model.fit(K, problem.y)
    with pytest.raises(ValueError, match="warm_start"):
        model.fit(2.0 * K, problem.y)
