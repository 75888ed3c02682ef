"""The dense references of the matrix Perceptrons, against hand calculations and each other."""

import numpy as np
import pytest

from references.first_order import Perceptron, link, p_norm, run_reference
from references.higher_order import (
    HigherOrder,
    SecondOrder,
    run_matrix_machines,
    run_matrix_reference,
    solve,
)

POWERS = [2.0, 2.5, 4.0, 7.0, 10.0]


def noisy_problem(m=60, n=12, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.uniform(-1, 1, (m, n)) * (rng.uniform(size=(m, n)) < 0.4)
    y = np.where(X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(m) > 0, 1, -1)
    return X, y


def test_higher_order_by_hand():
    # c = 1/2. Trial 0: rho = 1/2, v = (1, 0), B = diag(1/2, 1), w = B B v = (1/4, 0).
    # Trial 1 is right. Trial 2 is a tie: rho = 1/4, v = (1, 1), B = diag(1/2, 3/4), so
    # w = (1/4, 9/16). Trial 3, -(3, 4)/5, is wrong: rho = 1/6, x x^T = [[9, 12], [12, 16]] / 25.
    X, y = [[2, 0], [1, 0], [0, 1], [3, 4]], [1, 1, 1, -1]
    run = run_matrix_reference(X, y, HigherOrder(c=0.5))
    assert run.mistakes == run.correcting_trials == [0, 2, 3]
    assert run.survivals == [0, 2, 1, 1]
    assert run.n_updates == 3
    xx = np.array([[9, 12], [12, 16]]) / 25
    B = np.diag([1 / 2, 3 / 4]) @ (np.eye(2) - xx / 6)
    v = np.array([1 - 3 / 5, 1 - 4 / 5])
    expected = [[0, 0], [1 / 4, 0], [1 / 4, 9 / 16], B.T @ B @ v]
    np.testing.assert_allclose(np.array(run.weights, float), expected, rtol=1e-15)
    np.testing.assert_allclose(
        run.average(), (np.array([3 / 4, 9 / 16]) + expected[3]) / 4, rtol=1e-15
    )


def test_higher_order_by_hand_at_p_4():
    # Unit 4-norm: (1, 1) / 2^(1/4), whose link is (1, 1) / 2^(3/4); x link(x)^T = ones / 2.
    run = run_matrix_reference([[1, 1], [1, -1]], [1, 1], HigherOrder(p=4.0, c=0.5))
    B = np.eye(2) - np.full((2, 2), 1 / 4)
    u = np.array([1, 1]) / 2 / 2 ** (1 / 4)
    w = B.T @ u  # the link of a vector of equal entries t is t: t^3 / (2^(1/4) t)^2 2^(1/2)
    np.testing.assert_allclose(run.weights[1], w * 2 ** (-1 / 2), rtol=1e-15)
    assert run.n_corrections == 2


def test_second_order_by_hand():
    # After (1, 0), A = diag(2, 1); -(3, 4)/5 is wrong, and adds [[9, 12], [12, 16]] / 25 to it.
    run = run_matrix_reference([[1, 0], [3, 4], [0, 0]], [1, -1, 1], SecondOrder(a=1.0))
    A = np.array([[59, 12], [12, 41]]) / 25
    v = np.array([1 - 3 / 5, -4 / 5])
    expected = [[0, 0], [1 / 2, 0], np.linalg.solve(A, v)]
    np.testing.assert_allclose(np.array(run.weights, float), expected, rtol=1e-15, atol=1e-16)
    assert run.survivals == [0, 1, 2]
    assert run.n_updates == run.n_corrections == 2


@pytest.mark.parametrize("p", POWERS)
def test_weights_are_those_of_the_product_of_all_factors(p):
    X, y = noisy_problem()
    run = run_matrix_reference(X, y, HigherOrder(p=p, c=0.8))
    B, v = np.eye(12, dtype=np.longdouble), np.zeros(12, dtype=np.longdouble)
    for k, (i, w) in enumerate(zip(run.mistakes, run.weights[1:], strict=True), start=1):
        x = X[i] / p_norm(X[i].astype(np.longdouble), p)
        v = v + y[i] * x
        B = B @ (np.eye(12) - np.longdouble(0.8) / k * np.outer(x, link(x, p)))
        np.testing.assert_allclose(w, B.T @ link(B @ v, p), rtol=0, atol=1e-16 * np.abs(w).max())
    assert run.n_corrections > 15


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("rho", [None, 0.5])
def test_without_a_rate_it_is_the_p_norm_perceptron(p, rho):
    X, y = noisy_problem()
    weights = np.random.RandomState(1).choice([0.0, 0.5, 2.0], 60)
    options = {"n_epochs": 2, "rho": rho, "sample_weight": weights}
    run = run_matrix_reference(X, y, HigherOrder(p=p, c=0.0), **options)
    expected = run_reference(X, y, Perceptron(), p, **options)
    assert run.correcting_trials == expected.correcting_trials
    assert run.survivals == expected.survivals
    assert run.n_updates == 0
    for ours, theirs in zip(run.weights, expected.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    # Of every epoch, the rows behind its trials.
    used = np.tile(np.flatnonzero(weights), 2)
    assert run.mistakes == used[run.correcting_trials].tolist()


def test_no_update_is_the_perceptron_at_any_rate():
    X, y = noisy_problem()
    expected = run_reference(X, y, Perceptron(), 4.0)
    frozen = run_matrix_reference(X, y, HigherOrder(p=4.0, c=0.8, max_updates=0))
    np.testing.assert_array_equal(frozen.last(), expected.last())
    scaled = run_matrix_reference(X, y, SecondOrder(a=2.0, max_updates=0))
    np.testing.assert_allclose(2 * scaled.last(), run_reference(X, y, Perceptron()).last())


@pytest.mark.parametrize("p", [2.0, 4.0])
def test_sparse_updates_leave_out_rows_that_v_has_wrong(p):
    X, y = noisy_problem()
    run = run_matrix_reference(X, y, HigherOrder(p=p, sparse_updates=True), n_epochs=3)
    v, n_updates = np.zeros(12), 0
    for i in run.mistakes:
        x = X[i] / p_norm(X[i], p)
        n_updates += y[i] * link(x, p) @ v >= 0
        v += y[i] * x
    np.testing.assert_allclose(run.v.astype(float), v, rtol=0, atol=1e-13)
    assert 0 < run.n_updates == n_updates < run.n_corrections


@pytest.mark.parametrize("rule", [HigherOrder(c=0.8), HigherOrder(p=4.0), SecondOrder()])
def test_bounded_updates_are_the_first_ones(rule):
    X, y = noisy_problem()
    free = run_matrix_reference(X, y, rule)
    rule = type(rule)(**{**vars(rule), "max_updates": 5})
    run = run_matrix_reference(X, y, rule)
    np.testing.assert_array_equal(run.weights[:6], free.weights[:6])
    assert run.n_updates == 5 < run.n_corrections
    assert not np.array_equal(run.last(), free.last())
    np.testing.assert_array_equal(run.last(), rule.weights(run.matrix, run.v))


@pytest.mark.parametrize("a", [1e-3, 1.0, 100.0])
def test_leaving_out_the_current_instance_changes_no_sign(a):
    """Cesa-Bianchi, Conconi & Gentile predict with x itself in the matrix; it only scales."""
    X, y = noisy_problem()
    run = run_matrix_reference(X, y, SecondOrder(a=a))
    assert run.n_corrections > 10
    A, w = run.matrix, run.weights[-1]
    for x in run.rows:
        with_x = solve(A + np.outer(x, x), run.v) @ x
        assert with_x == pytest.approx(w @ x / (1 + x @ solve(A, x)), rel=1e-12)
        assert np.sign(with_x) == np.sign(w @ x)


def test_solutions_are_more_precise_than_lapack():
    rng = np.random.RandomState(0)
    S = rng.standard_normal((8, 30)).astype(np.longdouble)
    A, x = np.longdouble(1e-6) * np.eye(30) + S.T @ S, rng.standard_normal(30)
    solution = solve(A, A @ x.astype(np.longdouble))
    assert np.abs(solution - x).max() < 1e-11
    assert np.abs(np.linalg.solve(A.astype(float), (A @ x).astype(float)) - x).max() > 1e-10


def test_rows_of_weight_zero_are_no_trials_and_no_rows():
    X, y = noisy_problem()
    weights = np.random.RandomState(1).choice([0.0, 1.0], 60)
    used = np.flatnonzero(weights)
    run = run_matrix_reference(X, y, HigherOrder(), sample_weight=weights)
    expected = run_matrix_reference(X[used], y[used], HigherOrder())
    np.testing.assert_array_equal(run.average(), expected.average())
    assert run.mistakes == used[expected.mistakes].tolist()


def test_steps_scale_with_the_weights_at_p_2():
    X, y = noisy_problem()
    for rule in HigherOrder(), SecondOrder():
        plain = run_matrix_reference(X, y, rule)
        scaled = run_matrix_reference(X, y, rule, sample_weight=np.full(60, 4.0))
        np.testing.assert_array_equal(scaled.last(), 4 * plain.last())


def test_ends_of_a_run():
    X, y = noisy_problem()
    run = run_matrix_reference(X, y, HigherOrder(), max_corrections=3)
    assert run.n_corrections == 3
    assert run.n_trials == run.correcting_trials[-1] + 1
    separable = np.eye(5)
    run = run_matrix_reference(separable, [1, -1, 1, 1, -1], SecondOrder(), n_epochs=None)
    assert run.n_trials == 10
    assert run.smallest_gap > 0.1


def test_one_machine_a_class():
    X, _ = noisy_problem()
    labels = np.random.RandomState(0).randint(3, size=60)
    runs = run_matrix_machines(X, labels, HigherOrder(), class_weight={0: 1.0, 1: 3.0, 2: 0.5})
    for c, weight in enumerate([1.0, 3.0, 0.5]):
        own = np.where(labels == c, weight, 1)
        y = np.where(labels == c, 1, -1)
        alone = run_matrix_reference(X, y, HigherOrder(), sample_weight=own)
        np.testing.assert_array_equal(runs[c].last(), alone.last())
    (run,) = run_matrix_machines(X, labels == 1, HigherOrder(), class_weight={0: 0.5, 1: 3.0})
    y, weights = np.where(labels == 1, 1, -1), np.where(labels == 1, 3.0, 0.5)
    expected = run_matrix_reference(X, y, HigherOrder(), sample_weight=weights)
    np.testing.assert_array_equal(run.last(), expected.last())


def test_gaps_see_near_ties_and_leave_out_exact_ones():
    # The second row meets no coordinate of the first; the third nearly cancels.
    X = np.array([[1, 0, 0], [0, 1, 0], [1, -1 + 1e-10, 0]])
    run = run_matrix_reference(X[:2], [1, 1], HigherOrder(c=0.0))
    assert run.smallest_gap == np.inf
    run = run_matrix_reference(X, [1, 1, 1], HigherOrder(c=0.0))
    assert 0 < run.smallest_gap < 1e-10
