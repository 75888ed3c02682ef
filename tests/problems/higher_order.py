"""Random settings of the Perceptrons with a matrix, and their comparison with the references."""

from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from depth import some
from problems.first_order import (
    LEAST_NORM,
    Extras,
    Subject,
    assert_per_machine,
    assert_same_corrections,
    assert_same_weights,
    make_problem,
    partial_epochs,
    smallest_gap,
)
from problems.kernels import assert_close, assert_same_outputs
from references.higher_order import HigherOrder, SecondOrder, run_matrix_machines
from sparsemargin import HigherOrderPerceptron, SecondOrderPerceptron
from sparsemargin.kernels import RBF

ESTIMATORS = [HigherOrderPerceptron, SecondOrderPerceptron]
# The settings of the papers: no intercept, one epoch, and no limit on updates of the matrix.
PAPER = {"fit_intercept": False, "max_iter": 1, "max_updates": None, "alpha": None}
paper_ho = partial(HigherOrderPerceptron, **PAPER)
paper_so = partial(SecondOrderPerceptron, **PAPER)

SOLVERS = ["implicit", "primal", "auto"]
RULES = {
    "HO_2": partial(paper_ho, p=2.0),
    "sparse HO_2": partial(paper_ho, p=2.0, sparse_updates=True),
    "HO_4": partial(paper_ho, p=4.0, c=0.8),
    "bounded HO_4": partial(paper_ho, p=4.0, c=0.8, max_updates=7, alpha=0.8),
    "SO": partial(paper_so, a=0.2),
    "margin SO": partial(paper_so, a=0.2, alpha=0.8),
}
# Each form of each rule that has separate code.
FORMS = [
    ("HO_2", "implicit"), ("HO_2", "primal"), ("sparse HO_2", "auto"), ("HO_4", "implicit"),
    ("HO_4", "primal"), ("bounded HO_4", "implicit"), ("SO", "implicit"), ("SO", "primal"),
    ("SO", "auto"), ("margin SO", "implicit"),
]  # fmt: skip
LINEAR = {
    f"{name}, {solver}": partial(RULES[name], solver=solver)
    for name, solver in some(FORMS, product(RULES, SOLVERS))
}
MODELS = {
    **LINEAR,
    "sparse HO_2, dual": partial(RULES["sparse HO_2"], solver="dual"),
    "SO, dual": partial(RULES["SO"], solver="dual"),
    "margin SO, dual": partial(RULES["margin SO"], solver="dual"),
    "HO_2, rbf": partial(RULES["HO_2"], kernel=RBF(0.1)),
}

models = pytest.mark.parametrize("model", list(MODELS.values()), ids=list(MODELS))
linear_models = pytest.mark.parametrize("model", list(LINEAR.values()), ids=list(LINEAR))


@dataclass
class MatrixMachine(Subject):
    """A reference rule, and the estimator that must agree with it with any of its solvers."""

    rule: HigherOrder | SecondOrder
    solver: str = "auto"

    least_norm = LEAST_NORM

    def learned_rows(self, problem):
        """Return the training rows in the form for the references."""
        return problem.X.toarray()

    def compare(self, estimator, problem, runs, normalized, tolerance):
        assert_agrees(estimator, problem, runs, normalized, tolerance)

    def estimator(self, **params):
        make = {HigherOrder: paper_ho, SecondOrder: paper_so}[type(self.rule)]
        return make(shuffle=False, solver=self.solver, **vars(self.rule), **params)


@dataclass
class MatrixExtras(Extras):
    """Optional parts of a run with a matrix: there is no soft margin, and no certificate."""

    def options(self, problem):
        options = super().options(problem)
        del options["delta"], options["tol"]
        return options

    def runs(self, machine, problem):
        X = machine.learned_rows(problem)
        return run_matrix_machines(X, problem.y, machine.rule, **self.options(problem))

    def estimator(self, machine, **params):
        return machine.estimator(
            max_iter=self.n_epochs,
            max_corrections=self.max_corrections,
            fit_intercept=self.rho is not None,
            intercept_scaling=1.0 if self.rho is None else self.rho,
            class_weight=self.class_weight,
            **params,
        )


extras = st.builds(
    MatrixExtras,
    n_epochs=partial_epochs,
    rho=st.sampled_from([None, 0.5, 3.0]),
    weighted=st.booleans(),
    class_weight=st.sampled_from([None, {0: 0.5, 1: 3.0}]),
    max_corrections=st.sampled_from([None, 6]),
)


def per_machine(attribute):
    """Return a fitted attribute as a list with an entry for each machine."""
    return attribute if isinstance(attribute, list) else [attribute]


def assert_same_mistakes(estimator, runs):
    assert_same_corrections(estimator, runs)
    assert_per_machine(estimator.n_updates_, [run.n_updates for run in runs])
    for mistakes, run in zip(per_machine(estimator.mistakes_), runs, strict=True):
        assert mistakes.dtype == np.int64
        assert_array_equal(mistakes, run.mistakes[: estimator.max_updates])


def assert_agrees(estimator, problem, runs, normalized=False, tolerance=1e-9):
    """Compare a fitted estimator with the references: mistake by mistake, then the weights."""
    assert_same_mistakes(estimator, runs)
    assert estimator.coef_.dtype == np.float64
    expected = np.array([getattr(run, estimator.hypothesis)(normalized) for run in runs])
    assert_same_weights(estimator, problem, runs, expected, tolerance)


def check(machine, problem, extras, hypothesis, tolerance=1e-9, least_gap=1e-9):
    """Fit both and compare, unless a decision is within rounding of its threshold."""
    runs = extras.runs(machine, problem)
    assume(smallest_gap(runs) > least_gap)
    estimator = extras.fit(machine, problem, hypothesis=hypothesis)
    machine.compare(estimator, problem, runs, False, tolerance)


def noisy_problem(m=90, n=15, n_classes=2, seed=0, **options):
    """Return sparse rows, and labels with enough errors for dozens of mistakes."""
    problem = make_problem(seed, m, n, density=0.4, noise=0.4, n_classes=n_classes, **options)
    return problem.X, problem.y


def coefficients(model):
    """The coefficients of the features, or of the support rows."""
    return model.dual_coef_ if "dual" in model.solver_ else model.coef_


def by_blocks(model):
    """Permitted difference between models trained with different batches: outputs are bitwise
    equal, except that products computed in blocks have other rounding errors."""
    return 1e-10 if "dual" in model.solver_ else 0.0


def assert_same_model(one, other, X, tolerance=0.0):
    assert_array_equal(one.classes_, other.classes_)
    assert_array_equal(one.n_corrections_, other.n_corrections_)
    assert_array_equal(one.n_updates_, other.n_updates_)
    for ours, theirs in zip(per_machine(one.mistakes_), per_machine(other.mistakes_), strict=True):
        assert_array_equal(ours, theirs)
    assert_same_outputs(one, other, X, tolerance)
    if one.hypothesis in ("last", "average"):
        assert_close(coefficients(one), coefficients(other), tolerance)
        assert_close(one.intercept_, other.intercept_, tolerance)


def streamed(model, X, y, cuts=(), n_classes=2):
    """Train on X in batches that end at the cuts."""
    for start, stop in zip([0, *cuts], [*cuts, len(y)], strict=True):
        model.partial_fit(X[start:stop], y[start:stop], classes=range(n_classes))
    return model
