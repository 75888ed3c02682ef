"""The estimators against the dense references, over random sparse problems.

Corrections must agree exactly and weights to a small part of the largest one. Where a decision of
the reference lies within rounding of its threshold, the engine may decide it either way, and all
that follows would differ: such examples are skipped, never allowed for in the tolerance. Scores
that are zero in any arithmetic (nothing added up yet, or whole numbers cancelling) are no such
case: they must be decided alike.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from problems.first_order import (
    Extras,
    Machine,
    all_slice_scores,
    alma_rules,
    assert_same_corrections,
    assert_same_weights,
    augmentations,
    check_random_slices,
    check_votes,
    check_weights,
    epochs,
    examples,
    index_types,
    make_problem,
    partial_epochs,
    perceptron_rules,
    problems,
    vectors,
)
from references.first_order import ALMA, Perceptron, run_reference
from references.first_order import MarginPerceptron as Margin
from sparsemargin import MarginPerceptron, PNormPerceptron

POWERS = [2.0, 2.5, 3.0, 6.0, 10.0, 21.5, "log"]
# B and C beside the defaults: Remark 4 of Gentile (2001) at alpha = 0.5, and a step too small to
# reach the unit sphere soon.
tuned_alma_rules = st.builds(
    ALMA,
    alpha=st.just(0.5),
    B=st.sampled_from([None, 0.5 / np.sqrt(0.5), 2.0]),
    C=st.sampled_from([None, np.sqrt(0.5), 0.1]),
    normalize=st.booleans(),
)


def machines(rules=perceptron_rules | alma_rules | tuned_alma_rules, powers=POWERS):
    return st.builds(Machine, rules, st.sampled_from(powers))


@examples(240)
@given(machines(perceptron_rules), problems(), epochs, vectors, st.booleans())
def test_perceptron(machine, problem, n_epochs, hypothesis, normalized):
    check_weights(machine, problem, Extras(n_epochs), hypothesis, normalized)


@examples(450)
@given(machines(alma_rules), problems(), epochs, vectors, st.booleans())
def test_alma(machine, problem, n_epochs, hypothesis, normalized):
    check_weights(machine, problem, Extras(n_epochs), hypothesis, normalized)


@examples(150)
@given(machines(tuned_alma_rules), problems(), epochs, vectors)
def test_alma_with_given_constants(machine, problem, n_epochs, hypothesis):
    check_weights(machine, problem, Extras(n_epochs), hypothesis)


@examples(300)
@given(machines(), problems(), st.builds(Extras, **augmentations), vectors, st.booleans())
def test_intercept_and_soft_margin(machine, problem, extras, hypothesis, normalized):
    check_weights(machine, problem, extras, hypothesis, normalized)


@examples(240)
@given(
    machines(),
    problems(),
    # What "balanced" means beside sample weights is not the references' to say.
    st.builds(
        Extras,
        n_epochs=partial_epochs,
        weighted=st.booleans(),
        class_weight=st.sampled_from([None, {0: 0.5, 1: 3.0}, {1: 2.0}]),
    )
    | st.builds(Extras, n_epochs=epochs, class_weight=st.just("balanced")),
    vectors,
)
def test_sample_and_class_weights(machine, problem, extras, hypothesis):
    check_weights(machine, problem, extras, hypothesis)


@examples(240)
@given(
    machines(),
    st.integers(3, 4).flatmap(lambda k: problems(n_classes=st.just(k))),
    st.builds(Extras, weighted=st.booleans(), **augmentations),
    vectors,
    st.booleans(),
)
def test_many_classes(machine, problem, extras, hypothesis, normalized):
    check_weights(machine, problem, extras, hypothesis, normalized)


@examples(150)
@given(machines(), problems(index_dtype=st.just("i8")), st.builds(Extras, **augmentations), vectors)
def test_64_bit_indices(machine, problem, extras, hypothesis):
    assert problem.X.indices.dtype == problem.X.indptr.dtype == np.int64
    check_weights(machine, problem, extras, hypothesis)


@examples(180)
@given(
    machines(powers=[2.0]),
    problems(value_dtype=st.just("f4"), index_dtype=index_types),
    st.builds(Extras, **augmentations),
    vectors,
)
def test_float32_rows_at_p_2_where_the_state_is_float32_too(machine, problem, extras, hypothesis):
    check_weights(machine, problem, extras, hypothesis, tolerance=1e-4, least_gap=1e-4)


@examples(180)
@given(
    machines(powers=POWERS[1:-1]),
    problems(value_dtype=st.just("f4"), index_dtype=index_types),
    st.builds(Extras, **augmentations),
    vectors,
)
def test_float32_rows_at_larger_p_where_the_state_is_float64(machine, problem, extras, hypothesis):
    # The tolerance leaves room for coefficients handed out as float32.
    check_weights(machine, problem, extras, hypothesis, tolerance=1e-6)


@examples(180)
@given(
    problems(
        integers=st.just(True), value_dtype=st.sampled_from(["f4", "f8"]), n=st.integers(2, 5)
    ),
    st.builds(Extras, n_epochs=epochs, rho=st.sampled_from([None, 0.5]), weighted=st.booleans()),
)
def test_exact_ties_of_whole_numbers_are_mistakes(problem, extras):
    # Sums of a few small dyadic numbers are exact even in float32, so no example is skipped.
    machine = Machine(Perceptron(normalize=False), 2.0)
    runs = extras.runs(machine, problem)
    estimator = extras.fit(machine, problem, hypothesis="last")
    assert_same_corrections(estimator, runs)
    assert_same_weights(estimator, problem, runs, np.array([runs[0].last()]), tolerance=0)


def test_whole_number_problems_do_tie():
    ties = 0
    for seed in range(20):
        problem = make_problem(seed, 30, 3, 1.0, 0.2, integers=True)
        (run,) = Extras().runs(Machine(Perceptron(normalize=False), 2.0), problem)
        ties += run.smallest_gap == 0
    assert ties > 10


@examples(300)
@given(
    machines(),
    st.integers(2, 4).flatmap(lambda k: problems(n_classes=st.just(k))),
    st.builds(Extras, weighted=st.booleans(), **(augmentations | {"n_epochs": partial_epochs})),
)
def test_votes(machine, problem, extras):
    check_votes(machine, problem, extras)


def test_a_vote_of_zero_score_counts_zero():
    # One vote for the first column, and the second has never been seen.
    X, y = sp.csr_matrix([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]), [1, 1, 0]
    how = {"max_iter": 1, "shuffle": False, "fit_intercept": False}
    estimator = PNormPerceptron(hypothesis="vote", **how).fit(X, y)
    votes = estimator.decision_function(sp.csr_matrix([[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0]]))
    np.testing.assert_array_equal(votes, [1, 0, -1])


@pytest.mark.filterwarnings("ignore:Stopped after")
@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_a_vote_of_a_score_that_is_zero_again_counts_zero(kernel):
    """Every row is learned, and then the other way round, with others on other features."""
    rng = np.random.RandomState(0)
    rows, order = rng.randint(-9, 10, (20, 6)), rng.permutation(20)
    X = np.zeros((80, 9))
    X[:40, :6], X[40:, 6:] = np.vstack([rows, rows[order]]), rng.randint(1, 10, (40, 3))
    y = np.concatenate([np.repeat([1, -1], 20), rng.choice([-1, 1], 40)])
    points = np.vstack([rng.randint(-9, 10, (30, 9)), np.eye(9)])
    points[:20, 6:] = 0
    run = run_reference(X, y, Margin(margin=1e9))
    assert (run._scores(points) == 0).any()
    # By the factor all products are rounded, and no sign changes.
    how = {"kernel": kernel, "gamma": 0.1, "degree": 1, "coef0": 0.0, "fit_intercept": False}
    model = MarginPerceptron(margin=1e9, max_iter=1, hypothesis="vote", **how).fit(X, y)
    assert model.n_corrections_ == run.n_corrections == 80
    votes = (run.votes(points) / run.n_trials).astype(float)
    np.testing.assert_allclose(model.decision_function(points), votes, rtol=0, atol=1e-14)


@examples(120)
@given(
    machines(),
    st.integers(2, 4).flatmap(lambda k: problems(n_classes=st.just(k))),
    st.builds(Extras, **augmentations),
    st.booleans(),
    st.integers(0, 1000),
)
def test_random_time_slices_are_shared_by_all_classes(
    machine, problem, extras, normalized, random_state
):
    check_random_slices(machine, problem, extras, normalized, random_state)


def draws(estimator, row, n_draws):
    """Return the outputs of one row for many draws of a slice.

    A draw may depend on the row and on nothing else, so the row is stretched a little each time,
    and its output shrunk back.
    """
    factors = 1 + np.arange(n_draws) / n_draws
    return estimator.decision_function(sp.csr_matrix(factors[:, None] * row)) / factors


@pytest.mark.parametrize("p", [2.0, 6.0])
def test_random_time_slices_are_uniform_and_drawn_per_row(p):
    problem = make_problem(5, 30, 8, 1.0, 0.2)
    machine, extras = Machine(ALMA(alpha=0.9), p), Extras(n_epochs=2)
    runs = extras.runs(machine, problem)
    (row,) = problem.X_test[:1].toarray()
    by_slice = all_slice_scores(runs, row[None])[:, 0, 0].astype(float)
    values, n_slices = np.unique(np.round(by_slice, 9), return_counts=True)
    n_draws = 20_000
    estimator = extras.fit(machine, problem, hypothesis="random", random_state=0)
    drawn = draws(estimator, row, n_draws)
    expected = n_draws * n_slices / n_slices.sum()
    drawn_counts = np.array([np.sum(np.abs(drawn - v) < 2e-9) for v in values])
    assert drawn_counts.sum() == n_draws
    statistic = np.sum((drawn_counts - expected) ** 2 / expected)
    assert statistic < chi2.ppf(1 - 1e-6, len(values) - 1)


def test_random_time_slices_include_both_ends():
    # A zero row, then a correction: w_1 = 0 exists at slice 0, and w_2 at slices 1 and 2.
    X = sp.csr_matrix([[0.0], [1.0]])
    estimator = PNormPerceptron(
        hypothesis="random", max_iter=1, shuffle=False, random_state=0, fit_intercept=False
    )  # fmt: skip
    drawn = draws(estimator.fit(X, [0, 1]), np.ones(1), 30_000)
    np.testing.assert_allclose(np.unique(np.round(drawn, 9)), [0, 1])
    # Four standard deviations of the share.
    assert np.mean(drawn > 0.5) == pytest.approx(2 / 3, abs=4 * np.sqrt(2 / 9 / 30_000))


def test_random_hypothesis_is_reproducible():
    problem = make_problem(5, 30, 8, 1.0, 0.2)

    def outputs(random_state):
        params = {"hypothesis": "random", "random_state": random_state}
        fitted = Extras().fit(Machine(ALMA(), 2.0), problem, **params)
        return draws(fitted, problem.X_test[0].toarray()[0], 200)

    np.testing.assert_array_equal(outputs(3), outputs(3))
    assert not np.array_equal(outputs(3), outputs(4))


@examples(360)
@given(
    machines(),
    st.integers(2, 4).flatmap(lambda k: problems(n_classes=st.just(k), index_dtype=index_types)),
    st.builds(
        Extras,
        weighted=st.booleans(),
        class_weight=st.sampled_from([None, {0: 0.5, 1: 3.0}]),
        **augmentations,
    ),
    vectors,
    st.booleans(),
)
def test_everything_together(machine, problem, extras, hypothesis, normalized):
    check_weights(machine, problem, extras, hypothesis, normalized)
