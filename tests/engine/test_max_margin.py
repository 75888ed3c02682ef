"""Dual coordinate ascent against its definition, and against the largest margin."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs

from depth import pairwise
from problems.first_order import scattered
from references.runs import augment, link, p_norm
from sparsemargin import MaxMarginClassifier
from sparsemargin._engine.first_order import gram_loop as gram
from sparsemargin._engine.first_order import linear_loop
from sparsemargin._engine.fitting import certificate, threads


def separable_problem(m=40, n=15, density=0.5, n_classes=2, seed=0):
    """Return CSR rows and labels 0..n_classes-1 that hyperplanes through the origin separate."""
    rng = np.random.default_rng(seed)
    X = sp.random(4 * m, n, density=density, random_state=rng, format="csr")
    X.data = np.round((X.data - 0.3) * 1024) / 1024  # few digits, so that parts are exact
    outputs = X @ rng.standard_normal((n, n_classes))
    y = outputs.argmax(axis=1)
    lead = np.sort(outputs, axis=1)[:, -1] - np.sort(outputs, axis=1)[:, -2]
    kept = np.argsort(-lead)[:m]
    return X[kept], y[kept]


def ascend(X, signs, p, n_epochs, *, normalize=False, rho=None, delta=0.0):
    """Run the ascent row by row; return theta, the multipliers, the steps and the smallest bound.

    Hsieh et al. (2008), Algorithm 1, without an upper limit on the multipliers; for p > 2 the
    second derivative along a row is replaced by the bound (p - 1) ||x||_p^2.
    """
    rows = signs[:, np.newaxis] * augment(X, rho=rho, delta=delta)
    if normalize:
        rows = np.array([row / p_norm(row, p) for row in rows])
    theta, multipliers = np.zeros(rows.shape[1], np.longdouble), np.zeros(len(rows), np.longdouble)
    n_steps, bound = 0, np.inf
    for _ in range(n_epochs):
        for i, row in enumerate(rows):
            output = link(theta, p) @ row
            step = max(-multipliers[i], (1 - output) / ((p - 1) * p_norm(row, p) ** 2))
            if step != 0:
                multipliers[i] += step
                theta = theta + step * row
                n_steps += 1
                bound = min(bound, p_norm(theta, p) / multipliers.sum())
    return theta, multipliers, n_steps, bound


@pytest.mark.parametrize(
    ("p", "normalize", "rho", "delta", "chance", "memory"),
    pairwise(
        [2.0, 2.5, 4.0, 10.0],
        [False, True],
        [None, 0.7],
        [0.0, 0.4],
        [None, 0.0, 0.1, 1.0],
        [0, gram.MEMORY],
    ),
)
def test_max_margin_satisfies_its_definition(p, normalize, rho, delta, chance, memory, monkeypatch):
    """The rows are sorted or unsorted, and either loop is used."""
    monkeypatch.setattr(gram, "MEMORY", memory)
    X, y = separable_problem()
    y[:4] = 1 - y[:4] if delta else y[:4]  # separable only with the soft margin
    n_epochs = 60
    expected, multipliers, n_steps, bound = ascend(
        X.toarray(), np.where(y == 1, 1, -1), p, n_epochs, normalize=normalize, rho=rho, delta=delta
    )
    model = MaxMarginClassifier(
        p=p, normalize=normalize, hypothesis="last", max_iter=n_epochs, early_stopping=False,
        shuffle=False, soft_margin=delta, fit_intercept=rho is not None,
        intercept_scaling=rho or 1.0,
    )  # fmt: skip
    with pytest.warns(match="Stopped after 60 epochs"):
        model.fit(X if chance is None else scattered(X, chance, 0), y)
    visible = expected[: model.theta_.shape[1]].astype(float)
    np.testing.assert_allclose(model.theta_[0], visible, atol=1e-10 * abs(visible).max())
    assert model.n_corrections_ == n_steps
    assert (multipliers >= 0).all()
    assert (multipliers == 0).any()
    assert model.margin_upper_bound_ == pytest.approx(float(bound), rel=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_both_loops_give_the_same_model(n_classes, monkeypatch):
    X, y = separable_problem(m=60, n=20, n_classes=n_classes, seed=1)
    fit = dict(tol=0.01, max_iter=None, random_state=0, soft_margin=0.3)
    monkeypatch.setattr(certificate, "_LEAST_REACH", np.inf)  # no row is left out
    by_dot_products = MaxMarginClassifier(**fit).fit(X, y)
    monkeypatch.setattr(gram, "MEMORY", 0)
    plain = MaxMarginClassifier(**fit).fit(X, y)
    np.testing.assert_allclose(by_dot_products.theta_, plain.theta_, rtol=1e-10)
    for name, values in by_dot_products.history_.items():
        np.testing.assert_allclose(values, plain.history_[name], rtol=1e-10)


def test_skipped_rows_are_checked_again(monkeypatch):
    """Only few rows matter: epochs leave most rows out, but finally all satisfy the margin."""
    monkeypatch.setattr(gram, "MEMORY", 0)
    X, y = make_blobs(3000, centers=[[3, 3], [-3, -3]], random_state=0)
    X, y = X[abs(X.sum(axis=1)) > 1], y[abs(X.sum(axis=1)) > 1]
    model = MaxMarginClassifier(
        tol=1e-4, max_iter=None, random_state=0, fit_intercept=False
    ).fit(X, y)  # fmt: skip
    signs = np.where(y == model.classes_[1], 1, -1)
    margins = signs * model.decision_function(X) / np.linalg.norm(model.coef_)
    assert model.margin_ == pytest.approx(margins.min(), rel=1e-9)
    assert model.margin_ >= (1 - 1e-4) * model.margin_upper_bound_
    # n_iter_ counts epochs over all rows; there were many more partial ones.
    assert model.n_corrections_ > 10 * model.n_iter_


@pytest.mark.parametrize("memory", [0, gram.MEMORY])
def test_each_vector_stops_separately_with_any_number_of_threads(memory, monkeypatch):
    monkeypatch.setattr(gram, "MEMORY", memory)
    monkeypatch.setattr(threads, "PRODUCTS_PER_THREAD", 1)
    monkeypatch.setattr(linear_loop, "LINE_BYTES", 1)
    X, y = separable_problem(m=80, n=30, n_classes=4, seed=2)
    fit = dict(tol=0.01, soft_margin=0.2, max_iter=None, random_state=0)
    model, threaded = (MaxMarginClassifier(n_jobs=n, **fit).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(model.theta_, threaded.theta_)
    np.testing.assert_array_equal(model.margin_, threaded.margin_)
    assert model.margin_.shape == model.margin_upper_bound_.shape == (4,)
    assert (model.margin_ >= 0.99 * model.margin_upper_bound_).all()
    # Both brackets contain the same largest margin.
    for label in range(4):
        alone = MaxMarginClassifier(**fit).fit(X, y == label)
        assert model.margin_[label] <= alone.margin_upper_bound_
        assert alone.margin_ <= model.margin_upper_bound_[label]


def test_float32_rows_are_learned_in_float64():
    X, y = separable_problem()
    fit = dict(tol=1e-6, max_iter=None, random_state=0)
    narrow = MaxMarginClassifier(**fit).fit(X.astype(np.float32), y)
    wide = MaxMarginClassifier(**fit).fit(X.astype(np.float32).astype(np.float64), y)
    np.testing.assert_array_equal(narrow.coef_, wide.coef_)


def test_batches_equal_one_epoch():
    X, y = separable_problem()
    whole = MaxMarginClassifier(hypothesis="last", max_iter=1, shuffle=False, fit_intercept=False)
    with pytest.warns(match="Stopped after 1 epochs"):
        whole.fit(X, y)
    parts = MaxMarginClassifier(hypothesis="last", fit_intercept=False)
    for rows in (slice(0, 7), slice(7, 40)):
        parts.partial_fit(X[rows], y[rows], classes=[0, 1])
    np.testing.assert_array_equal(whole.coef_, parts.coef_)
    with pytest.raises(AttributeError, match="margin was not taken"):
        _ = parts.margin_
