"""Random settings of the Perceptrons with a matrix, and their comparison with the references."""

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from hypothesis import assume
from hypothesis import strategies as st
from reference_higher_order import HigherOrder, SecondOrder, run_matrix_machines
from strategies import (
    LEAST_NORM,
    Extras,
    assert_same_corrections,
    assert_same_weights,
    make_problem,
    smallest_gap,
)

from sparsemargin import HigherOrderPerceptron, SecondOrderPerceptron

SOLVERS = ["implicit", "primal"]
solvers = st.sampled_from([*SOLVERS, "auto"])
limits = st.sampled_from([None, 1, 4])


@dataclass
class MatrixMachine:
    """A reference rule, and the estimator which must agree with it by any of its solvers."""

    rule: HigherOrder | SecondOrder
    solver: str = "auto"

    def estimator(self, **params):
        kind = {HigherOrder: HigherOrderPerceptron, SecondOrder: SecondOrderPerceptron}
        return kind[type(self.rule)](shuffle=False, solver=self.solver, **vars(self.rule), **params)


@dataclass
class MatrixExtras(Extras):
    """What may be added to a run with a matrix: there is no soft margin, and no proof."""

    def runs(self, machine, problem):
        return run_matrix_machines(
            problem.X.toarray(),
            problem.y,
            machine.rule,
            sample_weight=self.sample_weight(problem) if self.weighted else None,
            class_weight=self.class_weight,
            n_epochs=self.n_epochs,
            max_corrections=self.max_corrections,
            rho=self.rho,
        )

    def estimator(self, machine, **params):
        return machine.estimator(
            max_iter=self.n_epochs,
            max_corrections=self.max_corrections,
            fit_intercept=self.rho is not None,
            intercept_scaling=1.0 if self.rho is None else self.rho,
            class_weight=self.class_weight,
            **params,
        )


epochs = st.integers(1, 3)
plain_extras = st.builds(MatrixExtras, n_epochs=epochs)
all_extras = st.builds(
    MatrixExtras,
    n_epochs=epochs,
    rho=st.sampled_from([None, 0.5, 3.0]),
    weighted=st.booleans(),
    class_weight=st.sampled_from([None, {0: 0.5, 1: 3.0}]),
    max_corrections=st.sampled_from([None, 6]),
)


def long_problem(seed=0):
    """Return 1500 rows of 220 features, a third of them labelled at random."""
    return make_problem(seed, m=1500, n=220, density=0.1, noise=0.6)


def as_float64(problem):
    """Return the problem as the references see it, whatever the estimator is given."""
    return replace(problem, X=sp.csr_matrix(problem.X.astype("f8")))


def per_machine(attribute):
    """Return a fitted attribute as a list with an entry for each machine."""
    return attribute if isinstance(attribute, list) else [attribute]


def assert_same_mistakes(estimator, runs):
    assert_same_corrections(estimator, runs)
    np.testing.assert_array_equal(
        np.atleast_1d(estimator.n_updates_), [run.n_updates for run in runs]
    )
    for mistakes, run in zip(per_machine(estimator.mistakes_), runs, strict=True):
        assert mistakes.dtype == np.int64
        np.testing.assert_array_equal(mistakes, run.mistakes)


def assert_agrees(estimator, problem, runs, normalized=False, tolerance=1e-9):
    """Compare a fitted estimator, mistake by mistake and then its weights, with the references."""
    assert_same_mistakes(estimator, runs)
    expected = np.array([getattr(run, estimator.hypothesis)(normalized) for run in runs])
    assert_same_weights(estimator, problem, runs, expected, tolerance)


def check_weights(
    machine, problem, extras, hypothesis, normalized=False, tolerance=1e-9, least_gap=1e-9
):
    """Fit both and compare, unless a decision lay within rounding of its threshold."""
    runs = extras.runs(machine, problem)
    assume(smallest_gap(runs) > least_gap)
    assume(not normalized or all(run.smallest_norm > LEAST_NORM for run in runs))
    estimator = extras.fit(machine, problem, hypothesis=hypothesis, normalize_hypotheses=normalized)
    assert_agrees(estimator, problem, runs, normalized, tolerance)
    return estimator
