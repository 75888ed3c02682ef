"""The largest margin against hand calculations, and its proof against the definition."""

import numpy as np
import pytest

from references.optimum import largest_margin

POWERS = [2.0, 4.0, 10.0]


def test_two_points_have_the_margin_of_their_line():
    # The line through (3, 1.5) and (-1, -1.5) passes the origin at a distance of 3 / 5.
    found = largest_margin([[3.0], [1.0]], [1, -1], 2.0, normalize=False, rho=1.5)
    np.testing.assert_allclose([found.lower, found.upper], 0.6, rtol=1e-7)
    np.testing.assert_allclose(found.multipliers, [0.34, 0.66])


def separable(seed, m=40, n=12):
    rng = np.random.RandomState(seed)
    u = rng.standard_normal(n) / np.sqrt(n)
    X = rng.standard_normal((m, n))
    y = np.where(X @ u > 0, 1, -1)
    return X + 0.05 * np.outer(y, u), y


@pytest.mark.parametrize("p", [*POWERS, 21.5])
@pytest.mark.parametrize("delta", [0.0, 0.5])
@pytest.mark.parametrize("normalize", [False, True])
def test_both_bounds_follow_from_the_multipliers(p, delta, normalize):
    X, y = separable(0)
    found = largest_margin(X, y, p, normalize=normalize, rho=0.5, delta=delta)
    lam = found.multipliers
    assert lam.min() >= 0
    assert lam.sum() == pytest.approx(1, rel=1e-14)
    rows = y[:, None] * np.hstack([X, np.full((len(X), 1), 0.5), delta * np.eye(len(X))])
    if normalize:
        rows /= np.linalg.norm(rows, p, axis=1, keepdims=True)
    theta = rows.T @ lam
    w = np.sign(theta) * np.abs(theta) ** (p - 1)
    reached = (rows @ w).min() / np.linalg.norm(w, p / (p - 1))
    assert found.lower == pytest.approx(reached, rel=1e-12)
    assert found.upper == pytest.approx(np.linalg.norm(theta, p), rel=1e-12)
    assert 0 <= found.upper - found.lower <= 1e-8 * found.upper
