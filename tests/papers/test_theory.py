"""The papers' bounds against hand calculations, their limits, and runs that must satisfy them."""

from math import inf, sqrt

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from sklearn.svm import SVC

from depth import some
from papers import theory
from references.first_order import CRAMMA, Perceptron, run_reference
from references.optimum import largest_margin
from references.runs import augment, p_norm
from sparsemargin import ALMAClassifier, PNormPerceptron
from sparsemargin.evaluation import margins

each_seed = pytest.mark.parametrize("seed", range(some(1, 4)))
TO_CONVERGENCE = {"hypothesis": "last", "shuffle": False, "max_iter": None}
ONE_EPOCH = {"hypothesis": "last", "shuffle": False, "max_iter": 1, "fit_intercept": False}


def make_separable(seed, m=14, n=10, gap=0.15):
    """Return rows at least `gap` from a hyperplane through the origin, and its side in {-1, 1}."""
    rng = np.random.RandomState(seed)
    X, u = rng.standard_normal((40 * m, n)), rng.standard_normal(n)
    scores = X @ u / np.linalg.norm(u)
    kept = np.flatnonzero(np.abs(scores) > gap)[:m]
    assert len(kept) == m
    return X[kept], np.where(scores[kept] > 0, 1, -1)


def make_noisy(seed, m=300, n=20):
    """Return rows, labels of which 10 % are flipped, and the vector that determines the others."""
    rng = np.random.RandomState(seed)
    X, u = rng.standard_normal((m, n)), rng.standard_normal(n)
    y = np.where(X @ u > 0, 1, -1)
    return X, np.where(rng.uniform(size=m) < 0.1, -y, y), u


@each_seed
def test_perceptron_satisfies_theorems_1_and_2(seed):
    X, y = make_separable(seed)
    model = PNormPerceptron(normalize=False, **TO_CONVERGENCE).fit(X, y)
    R, gamma = np.linalg.norm(X, axis=1).max(), largest_margin(X, y, 2, normalize=False).upper
    assert 0 < model.n_corrections_ <= theory.perceptron_mistakes(R, gamma)

    X, y, u = make_noisy(seed)
    mistaken = run_reference(X, y, Perceptron(normalize=False)).correcting_trials
    achieved, norms = y * (X @ u) / np.linalg.norm(u), np.linalg.norm(X, axis=1)
    gammas = np.geomspace(0.01, 100, 400)
    D = np.array([np.linalg.norm(theory.deviations(achieved, gamma)) for gamma in gammas])
    bounds = theory.perceptron_mistakes(norms.max(), gammas, D)
    tightest = theory.tightest_mistake_bound(achieved, norms.max())
    assert bounds.min() * 0.999 <= tightest <= bounds.min()
    # Corollary 2: only rows with mistakes count.
    of_mistakes = theory.tightest_mistake_bound(achieved[mistaken], norms[mistaken].max())
    assert len(mistaken) <= of_mistakes <= tightest


def test_perceptron_bounds_by_hand_and_the_best_soft_margin():
    assert_array_equal(theory.deviations([1.0, 0.5, -1.0], 0.75), [0.0, 0.25, 1.75])
    # All rows are on the wrong side.
    assert theory.tightest_mistake_bound(-np.arange(7.0), 2.0) == 7.0
    assert_allclose([theory.voted_perceptron_error(20, k) for k in (10.5, [1, 2.5])], [1.0, 1 / 6])
    R, D, gamma = 3.0, 0.7, 0.4

    def in_extended_space(delta):
        return theory.perceptron_mistakes(np.hypot(R, delta), gamma / np.hypot(1, D / delta))

    best = theory.best_soft_margin(R, D)
    assert best == pytest.approx(sqrt(2.1))
    assert in_extended_space(best) == pytest.approx(theory.perceptron_mistakes(R, gamma, D))
    assert (in_extended_space(best * np.geomspace(0.1, 10, 40)) > in_extended_space(best)).all()


@each_seed
@pytest.mark.parametrize(
    ("p", "alpha"), [(2.0, 0.3), (2.0, 0.9), (4.0, 0.9), (6.0, 0.5), (10.0, 0.3)]
)
def test_alma_satisfies_parts_1_and_2_on_separable_data(p, alpha, seed):
    X, y = make_separable(seed)
    model = ALMAClassifier(p=p, alpha=alpha, **TO_CONVERGENCE).fit(X, y)
    best = largest_margin(X, y, p, normalize=True).upper
    assert 0 < model.n_corrections_ <= theory.alma_corrections(best, alpha=alpha, p=p)
    B = sqrt(8) / alpha
    k = np.arange(1, model.n_corrections_ + 2)
    assert (theory.alma_margin_estimate(k, B=B, p=p) >= best).all()
    surely = theory.alma_margin_reached(model.n_corrections_, alpha=alpha, B=B, p=p)
    assert (1 - alpha) * best <= surely <= margins(model, X, y).min()
    # Part 2, and Remark 4.
    B, C = theory.alma_constants(0.5)
    model = ALMAClassifier(p=p, alpha=theory.alma_alpha(0.5, B=B), C=C, **TO_CONVERGENCE).fit(X, y)
    bound = theory.alma_corrections_inseparable(best, alpha=0.5, B=B, C=C, p=p)
    assert 0 < model.n_corrections_ <= bound
    assert bound <= (1 + sqrt(5)) / 2 * (p - 1) / (best**2 * 0.5)
    assert theory.alma_margin_estimate(bound, B=B, p=p) >= best / 3
    surely = theory.alma_margin_reached(bound, alpha=0.5, B=B, p=p)
    assert best / 6 <= surely <= margins(model, X, y).min()


@each_seed
@pytest.mark.parametrize(("p", "alpha"), [(2.0, 1.0), (6.0, 0.6)])
def test_alma_satisfies_part_2_on_noisy_data(p, alpha, seed):
    X, y, u = make_noisy(seed)
    B, C = theory.alma_constants(alpha)
    model = ALMAClassifier(p=p, alpha=theory.alma_alpha(alpha, B=B), C=C, **ONE_EPOCH).fit(X, y)
    achieved = y * (X @ u) / [p_norm(x, p) for x in X] / p_norm(u, p / (p - 1))
    for gamma in (0.1, 0.3, 1.0):
        short = theory.deviations(achieved, gamma)
        for bound in (theory.alma_corrections_inseparable, theory.alma_corrections_repaired):
            assert model.n_corrections_ <= bound(gamma, short, alpha=alpha, B=B, C=C, p=p)


def make_unlucky_order(gamma):
    """Return rows with a correction of ALMA_2(1; B, 1) on each. All have margin gamma for
    u = (1, 0, 0), except the first, which is -u.

    While u.theta is negative, a row shortens theta, so that there is no projection, and theta moves
    back slowly. After that every row is orthogonal to theta, and the divisor is the largest
    possible.
    """
    rows, theta = [np.array([-1.0, 0.0, 0.0])], np.array([-1.0, 0.0, 0.0])
    across = sqrt(1 - gamma**2)
    while True:
        eta = 1 / sqrt(len(rows) + 1)
        score = -eta / 2 if theta[0] < 0 else 0.0
        rest = np.linalg.norm(theta[1:])
        # Slightly smaller, so that rounding does not prevent a mistake.
        wanted = (score - 1e-12 - theta[0] * gamma) / across
        if rest < abs(wanted) and theta[0] > 0:
            return np.array(rows)
        turn = np.arctan2(theta[2], theta[1]) + np.arccos(np.clip(wanted / max(rest, 1e-99), -1, 1))
        rows.append(np.array([gamma, across * np.cos(turn), across * np.sin(turn)]))
        theta = theta + eta * rows[-1]
        theta = theta / max(1.0, np.linalg.norm(theta))


@pytest.mark.parametrize("gamma", [0.3, 0.05])
def test_one_misclassified_row_can_violate_part_2_as_printed(gamma):
    rows = make_unlucky_order(gamma)
    y = np.resize([1, -1], len(rows))
    constants = {"alpha": 1.0, "B": 0.5, "C": 1.0}
    model = ALMAClassifier(alpha=1.0, C=1.0, **ONE_EPOCH).fit(rows * y[:, np.newaxis], y)
    short = theory.deviations(rows[:, 0], gamma)
    assert_allclose(short, [1 + gamma, *[0.0] * (len(rows) - 1)], atol=1e-12)
    assert model.n_corrections_ == len(rows)
    assert len(rows) > theory.alma_corrections_inseparable(gamma, short, **constants)
    assert len(rows) <= theory.alma_corrections_repaired(gamma, short, **constants)


def test_formulas_of_theorem_3_by_hand():
    assert_allclose(theory.alma_corrections([0.5, 1.0], alpha=0.5, p=3.0), [156.0, 48.0])
    assert theory.alma_margin_reached(24, alpha=0.75, B=2.0, p=10.0) == pytest.approx(0.3)
    for alpha in (0.1, 0.5, 1.0):
        B, C = theory.alma_constants(alpha)
        assert C**2 + 2 * (1 - alpha) * B * C == pytest.approx(1.0)
    # Part 2 solves the inequality from which it is derived.
    alpha, gamma, p, short = 0.5, 0.2, 3.0, np.array([0.1, 0.7, 0.4])
    B, C = theory.alma_constants(alpha)
    c, constants = C / sqrt(p - 1), {"alpha": alpha, "B": B, "C": C, "p": p}
    m = theory.alma_corrections_inseparable(gamma, short, **constants)
    assert m * gamma == pytest.approx(sqrt(m + 1) / c + short.sum())
    m = theory.alma_corrections_repaired(gamma, short, **constants)
    weighted = 0.7 + 0.4 / sqrt(2) + 0.1 / sqrt(3)
    assert m * gamma / sqrt(m + 1) == pytest.approx(1 / c + weighted)


@each_seed
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_cramma_satisfies_its_bounds(epsilon, seed):
    X, y = make_separable(seed, gap=0.4)
    A = y[:, np.newaxis] * X
    R, best = np.linalg.norm(A, axis=1).max(), largest_margin(X, y, 2, normalize=False).upper
    limit = theory.cramma_rate_limit(best, R)
    for beta, share in ((0.5, 0.9), (2.0, 0.3), (2.0, 0.05)):
        rule = {"beta": beta, "eta_eff": share * limit, "epsilon": epsilon}
        run = run_reference(X, y, CRAMMA(**rule), n_epochs=None, dtype=np.float64)
        assert 0 < run.n_corrections <= theory.cramma_corrections(best, R, **rule)
        reached = (A @ run.weights[-1]).min() / np.linalg.norm(run.weights[-1])
        assert reached >= theory.cramma_margin_fraction(best, R, **rule) * best


@pytest.mark.parametrize("epsilon", [0.2, 0.999999, 1.0, 1.000001, 3.0])
def test_root_solves_equation_13_for_all_epsilon(epsilon):
    g, beta, eta = 0.05, 1.5, 0.02
    fraction = theory.cramma_margin_fraction(g, 1.0, beta=beta, eta_eff=eta, epsilon=epsilon)
    tau = fraction ** (-1 / epsilon) - 1
    chi, omega = 1 - eta / 2 * (1 + eta) / g, eta * (1 + eta) * g
    grown = quad(lambda t: (1 + t) ** -epsilon, 0, tau, epsabs=0)[0]
    left = beta ** (-1 / epsilon) * g ** (1 / epsilon - 1) * (1 + omega) / eta
    assert chi * tau - (1 + eta) * grown == pytest.approx(left)
    assert tau > ((1 + eta) / chi) ** (1 / epsilon) - 1
    updates = theory.cramma_corrections(g, 1.0, beta=beta, eta_eff=eta, epsilon=epsilon)
    assert updates == pytest.approx((beta / g) ** (1 / epsilon) * (1 + tau))
    # There is no bound if convergence is not proved.
    limit = theory.cramma_rate_limit(0.1, 1.0)
    assert limit * (1 + limit) / 2 == pytest.approx(0.1)
    shares = np.array([0.9, 0.999, 0.999999, 1.0, 2.0])
    updates = theory.cramma_corrections(0.1, 1.0, beta=1.0, eta_eff=shares * limit)
    assert (np.diff(updates[:4]) > 0).all()
    assert updates[3] > 1e24
    assert updates[4] == inf
    assert theory.cramma_margin_fraction(0.1, 1.0, beta=1.0, eta_eff=2 * limit) == 0.0


@pytest.mark.parametrize("rho", [0.5, 50.0])
def test_geometric_margin_satisfies_equation_2(rho):
    X, y = make_separable(1, n=4)
    X = X + np.array([2.0, -1.0, 0.0, 1.0])
    machine = SVC(kernel="linear", C=1e8, tol=1e-10).fit(X, y)
    geometric = (y * machine.decision_function(X)).min() / np.linalg.norm(machine.coef_)
    R = np.linalg.norm(augment(X, rho=rho, dtype=np.float64), axis=1).max()
    best = largest_margin(X, y, 2, normalize=False, rho=rho).upper
    lowest, highest = theory.geometric_margin_range(best, R, rho)
    assert lowest <= geometric * (1 + 1e-6)
    assert geometric <= highest == lowest * R / rho


@each_seed
def test_soft_margins_satisfy_equation_27(seed):
    X, y, _ = make_noisy(seed, m=25, n=3)
    delta = 0.8
    best = largest_margin(X, y, 2, normalize=False, delta=delta).lower
    assert best >= theory.least_soft_margin(delta, 25) == 0.8 / 5
    best = largest_margin(np.ones((20, 1)), [1, -1] * 10, 2, normalize=False, delta=delta).upper
    assert best == pytest.approx(theory.least_soft_margin(delta, 20))
    assert theory.automatic_rate(1.0, sqrt(917), 683) == pytest.approx(1.7 / sqrt(917 * 683))
    for n_samples, proved in ((2, False), (93, True), (10**6, True)):
        # With zero rows, R is determined by Delta alone, and is as small as possible.
        limit = theory.cramma_rate_limit(theory.least_soft_margin(0.5, n_samples), 0.5)
        assert (theory.automatic_rate(0.5, 0.5, n_samples) < limit) == proved


@pytest.mark.parametrize(("bound", "arguments", "options", "words"), [
    ("deviations", [[0.1], 0.0], {}, "margin must be greater than 0, got 0.0"),
    ("perceptron_mistakes", [inf, 1.0], {}, "radius must be finite"),
    ("perceptron_mistakes", [1.0, 0.1, -1], {}, "deviation must be at least 0"),
    ("tightest_mistake_bound", [[], 1.0], {}, "margins must be a one-dimensional"),
    ("alma_constants", [1.5], {}, "alpha must be greater than 0 and at most 1"),
    ("alma_corrections_inseparable", [0.1], {"alpha": 0.25, "B": 1.0, "C": 0.6},
     "B=1.0 and C=0.6 give .* 1.26.*alma_constants"),
    ("cramma_rate_limit", [2.0, 1.0], {}, "margin=2.0 exceeds radius=1.0"),
    ("geometric_margin_range", [0.1, 1.0, 2.0], {}, "radius=1.0 is less than intercept_scaling"),
    ("least_soft_margin", [0.0, 5], {}, "soft_margin must be a positive number"),
    ("higher_order_mistakes", [0.1], {"c": 1.0}, "c must be at least 0 and less than 1"),
    ("higher_order_mistakes", [0.1], {"c": 0.2, "p": 3.0}, "p=3.0 needs radius"),
    ("higher_order_mistakes", [0.1], {"c": 0.2, "p": 1.5}, "p must be at least 2"),
    ("HigherOrderRun", [[[1.0], [0.0]], [1, -1]], {"c": 0.2}, "Row 1 of X is zero"),
    ("HigherOrderRun", [[[1.0], [2.0]], [1, 0]], {"c": 0.2}, "labels other than -1 and 1"),
    ("HigherOrderRun", [[[1.0], [2.0]], [1]], {"c": 0.2}, "inconsistent numbers of samples"),
])  # fmt: skip
def test_arguments_out_of_range_are_named(bound, arguments, options, words):
    with pytest.raises(ValueError, match=words):
        getattr(theory, bound)(*arguments, **options)
