"""The dense references over a kernel: against the linear reference, and by hand."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from depth import pairwise
from problems.kernels import KERNELS, PLAIN, RULES
from references.first_order import run_reference
from references.kernels import Kernel, feature_vectors, run_kernel_reference
from references.runs import augment


@pytest.fixture
def problem():
    rng = np.random.RandomState(0)
    X = rng.uniform(-1, 1, (30, 4)).astype(np.longdouble)
    return X, np.where(rng.uniform(size=30) < 0.5, -1, 1), X[:7] + 0.1


def test_kernels_agree_with_scikit_learn(problem):
    X, _, Z = problem
    gaussian = rbf_kernel(X, Z, gamma=0.7)
    for kernel, expected in [
        (Kernel("poly", 3, 0.5, 2.0), polynomial_kernel(X, Z, degree=3, gamma=0.5, coef0=2.0)),
        (Kernel("rbf", gamma=0.7), gaussian),
        (Kernel("polyrbf", 2, gamma=0.7), (1 + gaussian) ** 2),
    ]:
        np.testing.assert_allclose(kernel.matrix(X, Z).astype(float), expected, atol=1e-14)
        np.testing.assert_array_equal(kernel.diagonal(X), np.diag(kernel.matrix(X, X)))


@pytest.mark.parametrize(
    ("rule", "kernel", "extras"), pairwise(RULES, [PLAIN, *KERNELS], [(None, 0.0), (0.5, 0.3)])
)
def test_kernel_algorithms_equal_linear_ones_on_feature_vectors(problem, rule, kernel, extras):
    (X, y, Z), (rho, delta) = problem, extras
    together = np.vstack([X, Z])
    V = feature_vectors(kernel.matrix(together, together))
    options = {"n_epochs": 2.3, "rho": rho, "delta": delta}
    linear = run_reference(V[:30], y, rule, **options)
    run = run_kernel_reference(X, y, rule, kernel, **options)
    assert run.correcting_trials == linear.correcting_trials
    assert run.n_trials == linear.n_trials == 69
    within = {"rtol": 1e-10, "atol": 1e-12}
    np.testing.assert_allclose(run.margin, linear.margin, **within)
    np.testing.assert_allclose(run.margin_upper_bound, linear.margin_upper_bound, **within)
    for normalized in False, True:
        features = augment(V[30:], rho=rho)
        for hypothesis in "last", "average":
            ours = run.points(Z) @ getattr(run, hypothesis)(normalized)
            theirs = features @ getattr(linear, hypothesis)(normalized)
            np.testing.assert_allclose(ours, theirs, **within)
        np.testing.assert_allclose(
            run.slice_scores(Z, 5, normalized), linear.slice_scores(V[30:], 5, normalized), **within
        )
    np.testing.assert_array_equal(run.votes(Z), linear.votes(V[30:]))
