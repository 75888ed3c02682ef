"""Random kernels and machines over them, and comparisons of estimators with the references."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from depth import some
from problems.first_order import RULES as OF_FIRST_ORDER
from problems.first_order import (
    Extras,
    Machine,
    Subject,
    assert_same_corrections,
    by_machine,
    index_types,
    problems,
    smallest_gap,
)
from references.first_order import ALMA, CRAMMA, ROMMA, Perceptron
from references.first_order import MarginPerceptron as Margin
from references.kernels import Kernel, run_kernel_machines
from sparsemargin import (
    ALMAClassifier,
    CRAMMAClassifier,
    HigherOrderPerceptron,
    MarginPerceptron,
    PNormPerceptron,
    ROMMAClassifier,
    SecondOrderPerceptron,
)

degrees = st.integers(1, 6)
polynomials = st.builds(
    Kernel, st.just("poly"), degrees, st.sampled_from([0.25, 1.0]), st.sampled_from([0.0, 0.5, 1.0])
)
gaussians = st.builds(
    Kernel, st.sampled_from(["rbf", "polyrbf"]), degrees, st.sampled_from([0.1, 1.0])
)
kernels = polynomials | gaussians
PLAIN = Kernel("poly", degree=1, gamma=1.0, coef0=0.0)  # the kernel of the linear space

RULES = [
    Perceptron(), Perceptron(normalize=False),
    *(ALMA(normalize=normalize) for normalize in (True, False, "running", "max")),
    Margin(1.0), Margin(0.2, normalize=True), CRAMMA(0.5, 0.05),
    ROMMA(), ROMMA(aggressive=True),
]  # fmt: skip
KERNELS = [Kernel("poly", 4, 0.5, 1.0), Kernel("rbf", gamma=0.5), Kernel("polyrbf", 5, 0.5)]
weighted_rules = st.one_of(OF_FIRST_ORDER[name] for name in ("Perceptron", "ALMA", "margin"))
rules = st.one_of(*OF_FIRST_ORDER.values())
FORMS = ["named", "dense", "precomputed", "callable", "callable on dense"]

any_problem = st.integers(2, 3).flatmap(
    lambda k: problems(n_classes=st.just(k), index_dtype=index_types)
)

# An estimator for each type of training with kernels, or all estimators in the full tests.
FIRST_ORDER = [
    ALMAClassifier, partial(CRAMMAClassifier, radius=100.0, eta0=0.01),
    *some([], [PNormPerceptron, MarginPerceptron, ROMMAClassifier]),
]  # fmt: skip
WITH_A_KERNEL = [*FIRST_ORDER, SecondOrderPerceptron, *some([], [HigherOrderPerceptron])]
first_order = pytest.mark.parametrize("estimator", FIRST_ORDER)
with_a_kernel = pytest.mark.parametrize("estimator", WITH_A_KERNEL)


def make_rows(m=40, n_classes=2, seed=0):
    """Return dense rows, and labels that are independent of them."""
    rng = np.random.RandomState(seed)
    y = rng.randint(n_classes, size=m)
    y[:n_classes] = np.arange(n_classes)
    return rng.uniform(-1, 1, (m, 5)), y


def products(X, Z):
    """The linear kernel as a function of arrays."""
    return X @ Z.T


def call_kernel(X, Z, kernel):
    X, Z = (rows.toarray() if sp.issparse(rows) else rows for rows in (X, Z))
    return kernel.matrix(X, Z, float)


class OverKernel(Subject):
    """A subject with a `kernel`, and the `form` in which its estimator gets it: a name, a matrix,
    or a function."""

    kernel: Kernel
    form: str

    def kernel_parameters(self):
        if self.form == "precomputed":
            return {"kernel": "precomputed"}
        if self.form.startswith("callable"):
            return {"kernel": partial(call_kernel, kernel=self.kernel)}
        return {"kernel": self.kernel.given()}

    def given(self, X, problem):
        if self.form == "precomputed":
            return self.kernel.matrix(X.toarray(), problem.X.toarray()).astype(float)
        return X.toarray() if self.form.endswith("dense") else X


@dataclass
class KernelMachine(OverKernel, Machine):
    """A reference rule over a kernel, and the estimator that must agree with it."""

    kernel: Kernel = PLAIN
    form: str = "named"

    def estimator(self, **params):
        return super().estimator(**self.kernel_parameters(), **params)


@dataclass
class KernelExtras(Extras):
    """Optional parts of a run over a kernel."""

    def runs(self, machine, problem, **options):
        options = self.options(problem) | options
        X = problem.X.toarray()
        return run_kernel_machines(X, problem.y, machine.rule, machine.kernel, **options)


def machines(rules=rules, kernels=kernels, forms=FORMS):
    return st.builds(KernelMachine, rules, kernel=kernels, form=st.sampled_from(forms))


augmentations = {
    "n_epochs": st.sampled_from([0.3, 1, 3]),
    "rho": st.sampled_from([None, 0.5, 3.0]),
    "delta": st.sampled_from([0.0, 0.5]),
}


def assert_close(ours, theirs, tolerance):
    """Compare with a tolerance relative to the largest entry; 0: bitwise."""
    assert_allclose(ours, theirs, rtol=0, atol=tolerance * np.abs(theirs).max())


def assert_same_outputs(ours, theirs, X, tolerance):
    assert_close(ours.decision_function(X), theirs.decision_function(X), tolerance)


TOLERANCE = 1e-8
# A squared norm has lost twice as many digits by cancellation as its vector.
LEAST_NORM = 1e-3


def is_sure(runs, normalized=False, least_gap=1e-9):
    """Return whether no decision is within rounding of its threshold, and no vector is nearly 0."""
    return (
        smallest_gap(runs) > least_gap
        and not any(map(has_cancelled, runs))
        and (not normalized or all(run.smallest_norm > LEAST_NORM for run in runs))
    )


def come_to_nothing(run):
    """Return whether a vector has returned to 0, after which its coefficients may be kept or
    not."""
    return any(
        w.any() and norm <= run.nothing
        for w, norm in zip(run.weights, run.relative_norms(), strict=True)
    )


def has_cancelled(run):
    """Return whether the last vector has cancelled; it may then be forgotten or kept."""
    return run.theta_norm < 1e-6 * np.sqrt(run.history @ run.products @ run.history)


def expected_support(runs):
    """Return the rows that any of the machines has added, in that order."""
    joined = {}
    for run in runs:
        for row, trial in run.joined.items():
            joined[row] = min(trial, joined.get(row, trial))
    return np.array(sorted(joined, key=joined.get), dtype=int)


def dual_coefficients(runs, hypothesis, normalized):
    """Return the coefficients of the expected support, shape (n_machines, n_support)."""
    place = {row: i for i, row in enumerate(expected_support(runs))}
    coefficients = np.zeros((len(runs), len(place)))
    for row_of, run in zip(coefficients, runs, strict=True):
        vector = getattr(run, hypothesis)(normalized).astype(float)
        for origin, coefficient in zip(run.origins, vector, strict=True):
            if coefficient:
                row_of[place[origin]] = coefficient
    return coefficients


def assert_same_support(estimator, runs, normalized=False, tolerance=TOLERANCE):
    assert_same_corrections(estimator, runs)
    expected = dual_coefficients(runs, estimator.hypothesis, normalized)
    assert_array_equal(estimator.support_, expected_support(runs))
    assert estimator.dual_coef_.shape == expected.shape
    if not any(map(come_to_nothing, runs)):
        error = tolerance * np.abs(expected).max(axis=1, initial=0, keepdims=True)
        assert np.all(np.abs(estimator.dual_coef_ - expected) <= error)
        assert_array_equal(np.atleast_1d(estimator.n_support_), np.count_nonzero(expected, axis=1))
    norms = np.array([run.theta_norm for run in runs]).astype(float)
    assert_allclose(estimator.theta_norm_, norms, rtol=0, atol=tolerance * norms.max())
    square = (runs[0].rho or 0) ** 2
    intercept = square * expected.sum(axis=1)
    error = tolerance * square * np.abs(expected).sum(axis=1).max()
    fitted_intercept = np.broadcast_to(estimator.intercept_, len(runs))
    assert_allclose(fitted_intercept, intercept, rtol=0, atol=error)


def assert_outputs(estimator, machine, problem, runs, normalized=False, tolerance=TOLERANCE):
    expected, sizes = [], []
    for run in runs:
        vector = getattr(run, estimator.hypothesis)(normalized)
        products = run.points(machine.test_rows(problem))
        expected.append(products @ vector)
        sizes.append((np.abs(products) @ np.abs(vector)).max())
    outputs = by_machine(np.transpose(expected).astype(float))
    decision = estimator.decision_function(machine.given(problem.X_test, problem))
    assert decision.shape == outputs.shape
    assert_allclose(decision, outputs, rtol=0, atol=tolerance * float(max(sizes)))


def assert_agrees(estimator, machine, problem, runs, normalized=False, tolerance=TOLERANCE):
    assert_same_support(estimator, runs, normalized, tolerance)
    assert_outputs(estimator, machine, problem, runs, normalized, tolerance)


def check_vectors(
    machine, problem, extras, hypothesis, normalized=False, tolerance=TOLERANCE, least_gap=1e-9
):
    """Fit both and compare, unless a decision is within rounding of its threshold."""
    runs = extras.runs(machine, problem)
    assume(is_sure(runs, normalized, least_gap))
    estimator = extras.fit(machine, problem, hypothesis=hypothesis, normalize_hypotheses=normalized)
    assert_agrees(estimator, machine, problem, runs, normalized, tolerance)
