"""Theorem 1 of Brotto, Gentile & Vitale against its printed form, dense matrices, and runs."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import LinearSVC

from depth import pairwise, some
from papers import theory
from papers.theory import HigherOrderRun
from references.higher_order import HigherOrder, run_matrix_reference
from references.runs import link, p_norm
from sparsemargin import HigherOrderPerceptron

RATES = [0.0, 0.2, 0.8]
GAMMAS = np.geomspace(1e-2, 10, 12)


def make_examples(seed, m=120, n=15, noise=0.1):
    """Return dense rows with many zeros, labels of which some are flipped, and the target."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((m, n)) * (rng.uniform(size=(m, n)) < 0.5)
    X[~X.any(axis=1), 0] = 1.0
    u = rng.standard_normal(n)
    y = np.where(X @ u >= 0, 1, -1)
    return X, np.where(rng.uniform(size=m) < noise, -y, y), u


def dense_run(X, y, n_epochs=2, **rule):
    """Run the n x n definition; return it, and the same run for analysis."""
    dense = run_matrix_reference(X, y, HigherOrder(**rule), n_epochs=n_epochs, dtype=np.float64)
    return dense, HigherOrderRun(X[dense.mistakes], y[dense.mistakes], **rule)


def dense_transform(rows, rates, p):
    """Multiply each row by the n x n matrix of those before; return the products and B_m."""
    B, transformed = np.eye(rows.shape[1]), []
    for x, rate in zip(rows, rates, strict=True):
        transformed.append(B @ x)
        B = B @ (np.eye(len(x)) - rate * np.outer(x, link(x, p)))
    return np.array(transformed), B


@pytest.mark.parametrize("c", RATES)
def test_bound_equals_the_printed_one(c):
    """The printed c is 1 - c here; without a matrix and losses, the bound is the Perceptron's."""
    rng = np.random.RandomState(0)
    margins, losses = rng.uniform(0.05, 3, 50), rng.uniform(0, 9, 50)
    found = theory.higher_order_mistakes(margins, losses, c=c)
    alpha = (1 + c) / (1 - c)
    first = alpha * losses / margins + alpha**2 / (2 * margins**2)
    under_root = alpha * losses / margins + alpha**2 / (4 * margins**2)
    assert_allclose(found, first + alpha / margins * np.sqrt(under_root), rtol=1e-12)
    if c == 0:
        found = theory.higher_order_mistakes(GAMMAS, c=0.0)
        assert_allclose(found, theory.perceptron_mistakes(1.0, GAMMAS))


@pytest.mark.parametrize(("p", "radius"), [(2.0, None), (2.0, 0.8), (4.0, 1.3)])
def test_tightest_bound_is_the_minimum_over_margins(p, radius):
    margins = np.random.RandomState(1).normal(0.3, 0.2, 40)
    grid = np.linspace(1e-3, margins.max(), 5000)
    losses = theory.deviations(margins, grid[:, np.newaxis]).sum(axis=1)
    bounds = theory.higher_order_mistakes(grid, losses, c=0.2, p=p, radius=radius)
    found = theory.tightest_higher_order_bound(margins, c=0.2, p=p, radius=radius)
    assert bounds.min() * (1 - 1e-4) <= found <= bounds.min() * (1 + 1e-12)
    assert theory.tightest_higher_order_bound([-0.5, 0.0], c=0.2) == np.inf


@pytest.mark.parametrize(("p", "c", "options"), [
    (2.0, 0.0, {}), (2.0, 0.8, {}), (3.0, 0.2, {}), (7.0, 0.8, {}),
    (2.0, 0.4, {"sparse_updates": True}), (4.0, 0.4, {"max_updates": 7}),
    (2.0, 0.4, {"sparse_updates": True, "max_updates": 7}),
])  # fmt: skip
def test_sequence_agrees_with_explicit_matrices(p, c, options):
    """Rates are 0 where the matrix does not change."""
    X, y, u = make_examples(0)
    dense, run = dense_run(X, y, p=p, c=c, **options)
    rows = X[dense.mistakes] / np.array([[p_norm(x, p)] for x in X[dense.mistakes]])
    assert_allclose(run.rows.toarray(), rows, rtol=1e-14)
    kept = run.rates > 0
    assert_array_equal(run.rates, np.where(kept, c / np.arange(1, len(kept) + 1), 0))
    assert kept.sum() == (dense.n_updates if c else 0)
    assert kept.any() != kept.all() or not options
    expected, matrix = dense_transform(rows, run.rates, p)
    assert_allclose(matrix, dense.matrix, atol=1e-12)
    assert_allclose(run.transformed_rows().toarray(), expected, atol=1e-12)
    unit = u / p_norm(u, p / (p - 1))
    assert_allclose(run.transformed_margins(u), run.labels * (expected @ unit), atol=1e-12)
    norms = [p_norm(z, p) for z in expected]
    assert run.radius == pytest.approx(np.sqrt(np.mean(np.square(norms))), rel=1e-12)


@pytest.mark.parametrize(
    ("p", "c", "noise", "sparse", "alpha"),
    pairwise([2.0, 3.0, 7.0], RATES, [0.0, 0.2], [False, True], [None, 0.9, 0.5]),
)
def test_runs_satisfy_the_theorem(p, c, noise, sparse, alpha):
    alpha = alpha if p == 2 else None
    for seed in range(some(1, 5)):
        X, y, target = make_examples(seed, noise=noise)
        run = dense_run(X, y, 3, p=p, c=c, sparse_updates=sparse, alpha=alpha)[1]
        numbers = {"c": c, "p": p, "alpha": alpha, "radius": 1.0 if p == 2 else run.radius}
        svm = LinearSVC(fit_intercept=False, C=10, random_state=0)
        svm.fit(run.transformed_rows(), run.labels)
        for u in target, np.random.RandomState(0).standard_normal(len(target)), svm.coef_[0]:
            bounds = [run.bound(u, margin) for margin in GAMMAS] + [run.bound(u)]
            assert {bound.n_mistakes for bound in bounds} == {len(run.labels)}
            assert len(run.labels) <= min(bound.bound for bound in bounds)
            margins = run.transformed_margins(u)
            loss = theory.deviations(margins, GAMMAS[0]).sum()
            expected = theory.higher_order_mistakes(GAMMAS[0], loss, **numbers)
            assert bounds[0].bound == pytest.approx(expected, rel=1e-12)
            assert bounds[-1].bound == theory.tightest_higher_order_bound(margins, **numbers)


@pytest.mark.parametrize("options", [
    {}, {"p": "log", "fit_intercept": False}, {"sparse_updates": True, "p": 4.0},
    {"max_updates": None, "intercept_scaling": 0.5, "hypothesis": "last", "shuffle": False},
], ids=str)  # fmt: skip
def test_fitted_model_equals_its_replayed_run(options):
    X, y, u = make_examples(4)
    names = np.where(y == 1, "yes", "no")
    model = HigherOrderPerceptron(random_state=0, max_iter=2, alpha=None, **options).fit(X, names)
    run = HigherOrderRun.from_model(model, sp.csr_matrix(X), names)
    assert len(run.labels) == model.n_corrections_
    assert np.count_nonzero(run.rates) == model.n_updates_
    # In a replay, the row of each mistake must be on the wrong side before it.
    B, v = np.eye(run.rows.shape[1]), np.zeros(run.rows.shape[1])
    for x, label, rate in zip(run.rows.toarray(), run.labels, run.rates, strict=True):
        assert label * (link(B @ v, run.p) @ B @ x) <= 1e-12
        B = B @ (np.eye(len(x)) - rate * np.outer(x, link(x, run.p)))
        v = v + label * x
    u = np.append(u, 0.1) if model.fit_intercept else u
    assert model.n_corrections_ <= run.bound(u).bound


def test_inconsistent_rows_and_vectors_are_rejected():
    X, y, _ = make_examples(6)
    model = HigherOrderPerceptron(sparse_updates=True, max_updates=None, random_state=0).fit(X, y)
    weighted = HigherOrderPerceptron(class_weight="balanced", random_state=0).fit(X, y)
    bounded = HigherOrderPerceptron(max_updates=2, random_state=0).fit(X, y)
    curved = HigherOrderRun(X, y, c=0.2, p=4.0, alpha=0.9)
    replay, margins = HigherOrderRun.from_model, HigherOrderRun(X, y, c=0.2).transformed_margins
    for call, given, words in (
        (replay, (model, X[::-1], y[::-1]), r"matrix \d+ times, those of the model did \d+"),
        (replay, (model, X, 2 * y), r"a label is not among \[-1, 1\]"),
        (replay, (model, X[:, 1:], y), "they have another shape"),
        (replay, (weighted, X, y), "Fit with two classes and class_weight=None"),
        (replay, (bounded, X, y), r"its first 2 mistakes alone, of \d+. Fit with max_updates=None"),
        (curved.bound, (np.ones(15),), "a bound for p=2 only"),
        (margins, ([1.0],), "u has 1 entries"),
        (margins, (np.zeros(15),), "u is zero"),
        (margins, (np.full(15, np.inf),), "finite"),
    ):
        with pytest.raises(ValueError, match=words):
            call(*given)
