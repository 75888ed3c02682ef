"""The largest margin against answers found by hand, and its proof against the definition."""

import numpy as np
import pytest

from references.optimum import largest_margin

POWERS = [2.0, 4.0, 10.0]


def assert_margin(found, expected):
    assert found.lower == pytest.approx(expected, rel=1e-7)
    assert found.upper == pytest.approx(expected, rel=1e-7)
    assert found.lower <= expected * (1 + 1e-12)
    assert found.upper >= expected * (1 - 1e-12)


def test_two_points_by_their_line():
    # The line through (3, 1.5) and (-1, -1.5) passes the origin at 3 / 5.
    found = largest_margin([[3.0], [1.0]], [1, -1], 2.0, normalize=False, rho=1.5)
    assert_margin(found, 0.6)
    np.testing.assert_allclose(found.multipliers, [0.34, 0.66])


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("sizes", [[3.0], [3.0, 4.0], [0.1, 1.0, 7.0, 0.4, 2.0]])
def test_points_on_the_axes(p, sizes):
    # Each weight must be margin / size, and their q-norm is 1.
    q = p / (p - 1)
    expected = 1 / np.linalg.norm(1 / np.array(sizes), q)
    y = np.where(np.arange(len(sizes)) % 2, -1, 1)
    assert_margin(largest_margin(np.diag(sizes * y), y, p, normalize=False), expected)


def test_a_simplex_of_points_at_power_10():
    # 32^(-9/10)
    assert_margin(largest_margin(np.eye(32), np.ones(32), 10.0, normalize=False), 2**-4.5)


@pytest.mark.parametrize("p", POWERS)
def test_corners_of_a_square_face_the_origin_with_its_middle(p):
    corners = np.array([[1.0, a, b] for a in (-2, 2) for b in (-3, 3)])
    assert_margin(largest_margin(corners, np.ones(4), p, normalize=False), 1.0)
    size = (1 + 2**p + 3**p) ** (1 / p)
    assert_margin(largest_margin(corners, np.ones(4), p, normalize=True), 1 / size)


@pytest.mark.parametrize("p", POWERS)
def test_a_nearest_corner_decides_alone(p):
    X = [[1.0, 1.0], [2.0, 1.5], [1.0, 4.0]]
    found = largest_margin(X, [1, 1, 1], p, normalize=False)
    assert_margin(found, 2 ** (1 / p))
    np.testing.assert_allclose(found.multipliers, [1, 0, 0], atol=1e-7)


@pytest.mark.parametrize("p", POWERS)
def test_a_row_of_both_labels_leaves_the_coordinates_of_its_own(p):
    X = [[5.0, 1.0], [5.0, 1.0]]
    expected = 0.3 / 2 * 2 ** (1 / p)
    assert_margin(largest_margin(X, [1, -1], p, normalize=False, delta=0.3), expected)


@pytest.mark.parametrize("p", POWERS)
def test_divided_rows_have_no_size(p):
    X, y = separable(0)
    sizes = np.logspace(-2, 2, len(X))[:, None]
    expected = largest_margin(X, y, p, normalize=True)
    assert_margin(largest_margin(sizes * X, y, p, normalize=True), expected.upper)


def separable(seed, m=40, n=12):
    rng = np.random.RandomState(seed)
    u = rng.standard_normal(n) / np.sqrt(n)
    X = rng.standard_normal((m, n))
    y = np.where(X @ u > 0, 1, -1)
    return X + 0.05 * np.outer(y, u), y


@pytest.mark.parametrize("p", [*POWERS, 21.5])
@pytest.mark.parametrize("delta", [0.0, 0.5])
@pytest.mark.parametrize("seed", range(2))
def test_both_bounds_follow_from_the_multipliers(p, delta, seed):
    X, y = separable(seed)
    found = largest_margin(X, y, p, normalize=False, rho=0.5, delta=delta)
    lam = found.multipliers
    assert lam.min() >= 0
    assert lam.sum() == pytest.approx(1, rel=1e-14)
    rows = y[:, None] * np.hstack([X, np.full((len(X), 1), 0.5), delta * np.eye(len(X))])
    theta = rows.T @ lam
    w = np.sign(theta) * np.abs(theta) ** (p - 1)
    reached = (rows @ w).min() / np.linalg.norm(w, p / (p - 1))
    assert found.lower == pytest.approx(reached, rel=1e-12)
    assert found.upper == pytest.approx(np.linalg.norm(theta, p), rel=1e-12)
    assert 0 <= found.upper - found.lower <= 1e-8 * found.upper


@pytest.mark.parametrize("X", [[[1.0], [-1.0]], [[1.0, 1.0], [-1.0, 2.0], [0.0, -1.0]]])
@pytest.mark.parametrize("p", POWERS)
def test_data_without_a_margin_are_refused(X, p):
    with pytest.raises(ValueError, match="separable"):
        largest_margin(X, np.ones(len(X)), p, normalize=False)
