"""The dense references themselves, against hand calculations and identities of the papers."""

import numpy as np
import pytest

from problems.first_order import dense_problem
from references.first_order import (
    ALMA,
    CRAMMA,
    ROMMA,
    MarginPerceptron,
    Perceptron,
    run_one_versus_rest,
    run_reference,
)
from references.runs import augment, link, p_norm, resolve_p, soft_margin_objective

ROOT = np.sqrt(0.5)


@pytest.mark.parametrize("p", [2.0, 2.5, 6.0, 21.5])
def test_link_is_the_gradient_of_half_the_squared_p_norm(p):
    theta = np.random.RandomState(0).standard_normal(20).astype(np.longdouble)
    w, q, h = link(theta, p), np.longdouble(p) / (np.longdouble(p) - 1), np.longdouble(1e-6)
    assert p_norm(theta, p) == pytest.approx(np.sum(np.abs(theta) ** p) ** (1 / p), rel=1e-14)
    for e, slope in zip(h * np.eye(20), w, strict=True):
        rise = p_norm(theta + e, p) ** 2 - p_norm(theta - e, p) ** 2
        assert abs(rise / (4 * h) - slope) < 1e-9
    np.testing.assert_allclose(p_norm(w, q), p_norm(theta, p), rtol=1e-14)
    np.testing.assert_allclose(link(w, q), theta, rtol=1e-13)
    np.testing.assert_allclose(link(-3 * theta, p), -3 * w, rtol=1e-13)


def test_norm_and_link_scale_with_their_argument():
    for scale in (1e300, 1e-300):
        v = scale * np.array([3.0, 4.0])
        assert p_norm(v, 2) == pytest.approx(5 * scale, rel=1e-15, abs=0)
        np.testing.assert_allclose(link(v, 21.5) / scale, link(v / scale, 21.5), rtol=1e-13)
    assert resolve_p("log", 2) == 2
    assert resolve_p("log", 1000) == pytest.approx(13.815510557964274)
    assert resolve_p(6.0, 1000) == 6.0
    expected = [[1, 2, 0.5, 3, 0], [4, 5, 0.5, 0, 3]]
    np.testing.assert_array_equal(augment([[1, 2], [4, 5]], rho=0.5, delta=3.0), expected)


# Two features; w: 0 -> (1,0) on trial 0, kept on 1, wrong on 2 -> (1,1), 3 right, 4 a zero row,
# 5 a tie (1 - 1 = 0) and so a mistake -> (0,2).
HAND = [[1, 0], [2, 0], [0, 1], [1, 1], [0, 0], [-1, 1]], [1, 1, 1, 1, -1, 1]
# Sums of the steps 1/(2 sqrt(k)) of ALMA with C = 1/2 and p = 2.
ONE, TWO, THREE = np.cumsum([0.5, 0.5 / np.sqrt(2), 0.5 / np.sqrt(3)])
MARGIN = [[1, 0], [2, 0], [0, -1]], [1, 1, -1]
MARGIN_BOUNDS = [1, 3 / 2, np.sqrt(10) / 3, np.sqrt(13) / 4, np.sqrt(18) / 5]
LONG = np.sqrt(1.25)
TURNED = [0.7 / np.hypot(0.7, 0.725), 0.725 / np.hypot(0.7, 0.725)]
GROWING = [[1, 0], [10, 0], [0.5, 0], [0, -3]], [1] * 4
NEAR_RIGHT = [[2, 0], [1, 3], [4, 0], [2, 0]], [1] * 4
OPPOSITE = [[2, 0], [-2, 1e-7], [-1, 0]], [1] * 3
TO_THE_END = {"n_epochs": None}

# The input of each run, and its expected record.
RUNS = {
    "Perceptron": (HAND, Perceptron(False), {}, {
        "weights": [[0, 0], [1, 0], [1, 1], [0, 2]], "survivals": [0, 2, 3, 1],
        "correcting_trials": [0, 2, 5], "smallest_gap": 0, "last": [0, 2],
        "average": [5 / 6, 5 / 6],
        # The last of (1,0), (1,1), (0,2) was computed from numbers up to 1 and 2.
        "smallest_norm": 2 / np.sqrt(5),
    }),
    # Thresholds 1/sqrt(k): 0.854 exceeds 1/sqrt(4), so the remaining two rows are not corrected.
    # The closest decision is the second trial's: 1/sqrt(2) - 1/2, with terms 1/2 and 1/sqrt(2).
    "ALMA": (([[2, 0], [5, 0], [0, 3], [1, 0], [1, 0]], [1] * 5), ALMA(0.5, B=2.0, C=0.5), {}, {
        "weights": [[0, 0], [ONE, 0], [TWO, 0], [TWO, THREE - TWO]], "survivals": [0, 1, 1, 3],
        "correcting_trials": [0, 1, 2], "smallest_gap": (np.sqrt(2) - 1) / (np.sqrt(2) + 1),
    }),
    # w_2 = (1,0). The long second row has the score 10 > 1/sqrt(2) * 1 and is not corrected, so the
    # third is still measured in units of 1: the threshold 0.71 is above 0.5.
    "running norm": (GROWING, ALMA(0.5, 2.0, 1.0, "running"), {}, {"correcting_trials": [0, 2, 3]}),
    "largest norm": (GROWING, ALMA(0.5, 2.0, 1.0, "max"), {}, {"correcting_trials": [0, 1, 2, 3]}),
    # b = 2. Epochs: (1,0), a tie and so (3,0), (3,1) | (3,2) | another tie, (3,3) | no correction.
    "margin": (MARGIN, MarginPerceptron(2), TO_THE_END, {
        "weights": [[0, 0], [1, 0], [3, 0], [3, 1], [3, 2], [3, 3]], "n_trials": 12,
        "correcting_trials": [0, 1, 2, 5, 8], "multipliers": [1, 1, 3], "bounds": MARGIN_BOUNDS,
        "margin": ROOT,
    }),
    # The second vector does not change the bound.
    "two corrections": (MARGIN, MarginPerceptron(2), {"max_corrections": 2}, {
        "margin_upper_bound": 1, "correcting_trials": [0, 1], "n_trials": 2,
    }),
    "beyond rest": (MARGIN, MarginPerceptron(2), {"n_epochs": 7}, {"n_trials": 21}),
    # Two epochs prove 2/sqrt(13) of sqrt(13)/4, and the third 3/sqrt(18) of sqrt(18)/5.
    "four fifths": (MARGIN, MarginPerceptron(2), TO_THE_END | {"tol": 0.2}, {"n_trials": 9}),
    "three fifths": (MARGIN, MarginPerceptron(2), TO_THE_END | {"tol": 0.4}, {"n_trials": 6}),
    # R = 5, thresholds 2.5/t. u_1 = (3,4)/5 has scores 5, then 0; u_2 is along (0.6,0.8) +
    # (0.4,-0.3).
    "CRAMMA": (([[3, 4], [-4, 3]], [1, -1]), CRAMMA(0.5, 0.5, epsilon=1.0), TO_THE_END, {
        "weights": [[0, 0], [0.6, 0.8], [1 / LONG, 0.5 / LONG]], "correcting_trials": [1],
        "survivals": [0, 1, 3], "multipliers": [0.2 / LONG, 0.1 / LONG], "bounds": [5, LONG / 0.3],
        "margin": 2.5 / LONG,
    }),
    # In units of 20, the first threshold is 10 instead of 2.5, and the steps are a quarter.
    "CRAMMA, radius": (([[3, 4], [-4, 3]], [1, -1]), CRAMMA(0.5, 0.5, 1.0, radius=20), {}, {
        "correcting_trials": [0, 1], "last": TURNED,
    }),
    "CRAMMA, zero row first": (([[0, 0], [0, 2], [1, 0]], [1, -1, 1]), CRAMMA(0.1, 0.5), {}, {
        "correcting_trials": [2], "survivals": [1, 1, 1],
    }),
    # From (1/2,0), with s = -1/2, Q = 2, W = 1/4: a = 4, b = 3/2. (2,0) still has the score 1. For
    # two rows ROMMA finds the largest margin: the bracket closes.
    "ROMMA": (([[2, 0], [1, -1]], [1, -1]), ROMMA(), TO_THE_END, {
        "weights": [[0, 0], [0.5, 0], [0.5, 1.5]], "correcting_trials": [0, 1], "n_trials": 4,
        "multipliers": [1, 1.5], "bounds": [2, np.sqrt(0.4)], "margin": np.sqrt(0.4),
    }),
    # The excess over the required margin is measured in units of the longest row.
    "ROMMA, one pass proves it": (
        ([[2, 0], [1, -1]], [1, -1]), ROMMA(), TO_THE_END | {"tol": 2**-10},
        {"n_trials": 2, "smallest_gap": 2**-10 * np.sqrt(0.4) / 2},
    ),
    # All three later rows are right. (1,3) has the score 1/2, less than 1: a = 8/9, b = 1/18. (4,0)
    # then has the score 2. (2,0) has exactly 1, and is not corrected.
    "aggressive": (NEAR_RIGHT, ROMMA(True), {}, {
        "weights": [[0, 0], [0.5, 0], [0.5, 1 / 6]], "correcting_trials": [0, 1], "smallest_gap": 0,
    }),
    "not aggressive": (NEAR_RIGHT, ROMMA(), {}, {"correcting_trials": [0]}),
    "opposite half-spaces": (OPPOSITE, ROMMA(), {}, {"correcting_trials": [0]}),
    "opposite, aggressive": (OPPOSITE, ROMMA(True), {}, {"survivals": [0, 3]}),
    "nearly opposite": (([[2, 0], [-2, 1e-4]], [1, 1]), ROMMA(), {}, {"survivals": [0, 1, 1]}),
    # From (1,1e13), the third row, of length 1, could not distinguish a margin from none.
    "no margin left": (([[1, 0], [0, 1e-13], [-1, 0]], [1] * 3), ROMMA(), {}, {
        "weights": [[0, 0], [1, 0], [1, 1e13], [-1, 0]],
    }),
    "some margin": (([[1, 0], [0, 1e-11], [-1, 0]], [1] * 3), ROMMA(), {}, {"last": [-1, 1e11]}),
    "rows without a margin": (([[0, 0], [3, 0], [-9, 0]], [1] * 3), Perceptron(False),
        {"sample_weight": [1, 1, 0]}, {"margin": 3, "margin_upper_bound": 3},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_first_order_runs_agree_with_results_by_hand(name):
    (X, y), rule, options, expected = RUNS[name]
    run = run_reference(X, y, rule, **options)
    for attribute, value in expected.items():
        told = getattr(run, attribute)
        told = np.array(told() if callable(told) else told).astype(float)
        np.testing.assert_allclose(told, value, rtol=2e-15, atol=1e-18, err_msg=attribute)


def test_votes_and_averages_agree_with_results_by_hand():
    run = run_reference(*HAND, Perceptron(normalize=False))
    of_root = np.array([2 + 3 * ROOT, 3 * ROOT + 1]) / 6
    np.testing.assert_allclose(run.average(normalized=True), of_root, rtol=1e-15)
    # Signs of (1,0).x, (1,1).x, (0,2).x with weights 2, 3, 1; w_1 = 0 and ties count 0.
    X = [[1, 0], [1, -1], [-1, 3], [0, 0]]
    np.testing.assert_array_equal(run.votes(X), [2 + 3 + 0, 2 + 0 - 1, -2 + 3 + 1, 0])
    assert run.vote_gap(X) == 0
    # A score is ignored if none of its coordinates was ever changed, like (1,0).(0,3) here.
    assert run.vote_gap([[0, 3]]) == 1
    # The 0 of (0,2) was 1 before, and its error may be proportional to that.
    assert run.vote_gap([[1, 3]]) == pytest.approx(6 / 7, rel=1e-15)
    assert run.vote_gap([[-1, 3]]) == 0.5
    # c = 0, 2, 3, 1: the sums below l are 0, 0, 2, 5, so w_2 exists from slice 0 on.
    assert [run.slice_index(r) for r in range(7)] == [1, 1, 2, 2, 2, 3, 3]
    np.testing.assert_array_equal(run.slice_scores([[1, 3]], 1), [1])
    np.testing.assert_allclose(run.slice_scores([[1, 3]], 2, normalized=True), [4 * ROOT])
    # The start of CRAMMA exists from slice 1 on.
    (X, y), rule, *_ = RUNS["CRAMMA, zero row first"]
    assert [run_reference(X, y, rule).slice_index(r) for r in range(4)] == [0, 1, 2, 2]


def test_alma_constants_agree_with_theorem_3():
    rule = ALMA(alpha=0.5)
    assert rule.threshold(4, 10) == pytest.approx(0.5 * np.sqrt(8) / 0.5 * 3 / 2, rel=1e-15)
    assert rule.step(4, 10) == pytest.approx(np.sqrt(2) / (3 * 2), rel=1e-15)
    # Norms 1, 2, 4; alpha = 1 makes every threshold 0, for any scale of the test.
    X, y = [[1, 0], [-2, 0], [0, 4]], [1, 1, 1]
    step = np.array([1, 1 / np.sqrt(2), 1 / np.sqrt(3)]) / 2
    scales = {True: (1, 2, 4), False: (1, 1, 1), "max": (4, 4, 4), "running": (1, 2, 4)}
    for normalize, scale in scales.items():
        run = run_reference(X, y, ALMA(alpha=1.0, C=0.5, normalize=normalize))
        theta = [0, 0]
        for row, eta, s in zip(X, step, scale, strict=True):
            theta = theta + eta * np.array(row) / s
            theta = theta / max(1, np.hypot(*theta))
        np.testing.assert_allclose(run.theta, theta, rtol=1e-14)


def test_weights_scale_the_step_and_zero_removes_the_row():
    X, y = dense_problem()
    weight = np.random.RandomState(3).choice([0, 1], len(X))
    kept = weight > 0
    for rule in (Perceptron(), ALMA(normalize="max"), ALMA(normalize="running")):
        weighted = run_reference(X, y, rule, 3.0, sample_weight=weight, n_epochs=2)
        without = run_reference(X[kept], y[kept], rule, 3.0, n_epochs=2)
        np.testing.assert_array_equal(weighted.average(), without.average())
        assert weighted.n_trials == without.n_trials == 2 * kept.sum()
    doubled = run_reference(X, y, Perceptron(), 3.0, sample_weight=2 * np.ones(len(X)))
    np.testing.assert_allclose(doubled.last(), 2 * run_reference(X, y, Perceptron(), 3.0).last())


def test_vectors_of_classes_use_class_weights():
    X, y = dense_problem()
    labels = np.where(y > 0, 2, np.where(X[:, 2] > 0, 0, 1))
    for names, n_runs, class_weight, weights in (
        (labels, 3, None, None),
        (y, 1, None, None),
        (y, 1, {-1: 4.0, 1: 4.0}, None),
        (y, 1, {-1: 0.5, 1: 4.0}, np.where(y > 0, np.cbrt(4.5), np.cbrt(0.5625))),
        (labels, 3, {0: 1.0, 2: 8.0}, np.where(y > 0, np.cbrt(17 / 3), 1)),
    ):
        runs = run_one_versus_rest(X, names, Perceptron(), 3.0, class_weight=class_weight)
        expected = run_reference(X, y, Perceptron(), 3.0, sample_weight=weights)
        assert len(runs) == n_runs
        np.testing.assert_allclose(runs[-1].last(), expected.last(), rtol=1e-14)


def test_cancelled_weight_is_within_rounding_of_a_tie():
    # The steps C/sqrt(k) are sqrt(2), limited to 1, and 1: in exact arithmetic, theta returns to 0.
    for p in (2.0, 6.0):
        run = run_reference(np.ones((3, 1)), [1, -1, 1], ALMA(alpha=1.0, C=np.sqrt(2 * (p - 1))), p)
        assert run.smallest_gap < 1e-15
        assert not run.hypotheses(normalized=True)[2].any()


@pytest.mark.parametrize("aggressive", [False, True])
def test_romma_solves_its_quadratic_program(aggressive):
    # The shortest w' with yx.w' >= 1, w.w' >= W is a nonnegative combination of w and yx; each has
    # a nonzero coefficient only if its constraint is tight.
    rng = np.random.RandomState(0)
    n_restarts = 0
    for _ in range(300):
        w, yx = rng.standard_normal((2, 3)).astype(np.longdouble) * rng.choice([0.3, 1, 3], (2, 1))
        if w @ yx >= aggressive:
            continue
        a, b, _ = ROMMA(aggressive).update(w, yx, 1, 2, 2.0)
        new = a * w + b * yx
        slack = np.array([new @ w - w @ w, new @ yx - 1])
        assert min(a, b) >= 0
        assert slack.min() > -1e-13
        assert np.abs(slack * [a, b]).max() < 1e-13
        n_restarts += a == 0
    assert (n_restarts > 10) == aggressive


RULES_AND_POWERS = [
    *[(rule, p) for rule in (Perceptron(), Perceptron(False)) for p in (2.0, 6.0)],
    *[(ALMA(0.5, normalize=n), p) for n in (True, False, "running", "max") for p in (2.0, 6.0)],
    *[(MarginPerceptron(0.5, n), p) for n in (True, False) for p in (2.0, 6.0)],
    (CRAMMA(0.5, 0.1), 2.0),
    (CRAMMA(0.5, 0.1, radius=30), 2.0),
    (ROMMA(), 2.0),
    (ROMMA(aggressive=True), 2.0),
]


def lifted_problem(p):
    """Return rows that a hyperplane separates by a margin of at least 0.2 in the dual norm."""
    X, _ = dense_problem()
    margins = (X[:, 0] - X[:, 1]) / p_norm(np.array([1.0, -1.0]), p / (p - 1))
    wide = np.abs(margins) > 0.2
    return X[wide], np.sign(margins[wide])


@pytest.mark.parametrize(("rule", "p"), RULES_AND_POWERS)
def test_dual_vector_is_a_nonnegative_combination_of_rows(rule, p):
    X, y = dense_problem()
    weight = {} if p == 2 else {"sample_weight": np.arange(len(X)) % 3}
    run = run_reference(X, y, rule, p, n_epochs=3, rho=0.5, **weight)
    assert run.n_corrections > 10
    assert run.multipliers.min() >= 0
    size = np.abs(run.rows).T @ run.multipliers
    np.testing.assert_array_less(np.abs(run.multipliers @ run.rows - run.theta), 1e-15 * size)
    X, y = lifted_problem(p)
    run = run_reference(X, y, rule, p, n_epochs=None, max_corrections=100)
    if rule.normalize is True:
        X = np.array([x / p_norm(x, p) for x in X])
    exists = (y * (X[:, 0] - X[:, 1])).min() / p_norm(np.array([1.0, -1.0]), p / (p - 1))
    assert run.margin_upper_bound >= max(exists, run.margin)
    assert len(run.bounds) == run.n_corrections + rule.starts_at_first_row


def test_soft_margin_objective_agrees_with_results_by_hand():
    # The rows (2|2,0) and (-1|0,2) in the extended space, w = their sum = (1|2,2) of length 3:
    # Gamma = 3/3, gamma = 3, D^2 = (3-2)^2 + (3+1)^2, D'^2 = 4 (9-1).
    run = run_reference([[2], [1]], [1, -1], Perceptron(normalize=False), delta=2.0)
    assert run.margin == 1
    objective, deviation = soft_margin_objective(run)
    assert objective == pytest.approx(1 / 9 + 17 / (4 * 9), rel=1e-15)
    assert deviation == pytest.approx(np.sqrt(32 / 17) - 1, rel=1e-14)
    wrong = run_reference([[2], [1]], [1, -1], Perceptron(normalize=False), delta=0.5)
    assert wrong.margin < 0
    assert soft_margin_objective(wrong) == (np.inf, np.inf)
    # With unit length: the rows (3|4,0)/5 and (0|0,4)/4, w = their sum = (3|4,5)/5 of squared
    # length 2: the outputs are 1 and 1, gamma = 1/|a| = 5/3. In units of their own coordinates 4/5
    # and 1, the slacks are (5/3 - 3/5) 5/4 = 4/3 and 5/3; w has (4/5)/|a| and 1/|a| there.
    run = run_reference([[3], [0]], [1, 1], Perceptron(), delta=4.0)
    assert run.margin == pytest.approx(np.sqrt(0.5), rel=1e-15)
    objective, deviation = soft_margin_objective(run)
    assert objective == pytest.approx((1 + 16 / 9 + 25 / 9) * 9 / 25, rel=1e-15)
    assert objective == pytest.approx(run.margin**-2, rel=1e-15)
    assert abs(deviation) < 1e-15
