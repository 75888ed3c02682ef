"""The dense references of the matrix Perceptrons, against hand calculations and each other."""

import numpy as np
import pytest

from problems.first_order import dense_problem
from references.first_order import Perceptron, run_reference
from references.higher_order import HigherOrder, SecondOrder, run_matrix_reference

POWERS = [2.0, 2.5, 4.0, 7.0, 10.0]


def test_higher_order_agrees_with_results_by_hand():
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


def test_second_order_agrees_with_results_by_hand():
    # After (1, 0), A = diag(2, 1). -(3, 4)/5 is wrong, and adds [[9, 12], [12, 16]] / 25.
    run = run_matrix_reference([[1, 0], [3, 4], [0, 0]], [1, -1, 1], SecondOrder(a=1.0))
    A = np.array([[59, 12], [12, 41]]) / 25
    v = np.array([1 - 3 / 5, -4 / 5])
    expected = [[0, 0], [1 / 2, 0], np.linalg.solve(A, v)]
    np.testing.assert_allclose(np.array(run.weights, float), expected, rtol=1e-15, atol=1e-16)
    assert run.survivals == [0, 1, 2]
    assert run.n_updates == run.n_corrections == 2


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("rho", [None, 0.5])
def test_higher_order_without_a_rate_is_the_p_norm_perceptron(p, rho):
    X, y = dense_problem()
    weights = np.random.RandomState(1).choice([0.0, 0.5, 2.0], 60)
    options = {"n_epochs": 2, "rho": rho, "sample_weight": weights}
    run = run_matrix_reference(X, y, HigherOrder(p=p, c=0.0), **options)
    expected = run_reference(X, y, Perceptron(), p, **options)
    assert run.correcting_trials == expected.correcting_trials
    assert run.survivals == expected.survivals
    assert run.n_updates == 0
    for ours, theirs in zip(run.weights, expected.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    # The rows of the trials in each epoch.
    used = np.tile(np.flatnonzero(weights), 2)
    assert run.mistakes == used[run.correcting_trials].tolist()
