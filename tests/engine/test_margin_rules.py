"""Margin Perceptron, CRAMMA and ROMMA, and the margins certified, against the dense references.

As in ``test_against_reference.py``: corrections must agree exactly and weights to a small part of
the largest one; examples in which a decision lay within rounding of its threshold are skipped.
"""

from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.base import clone

from problems.first_order import (
    LEAST_NORM,
    Extras,
    Machine,
    assert_per_machine,
    assert_same_corrections,
    assert_same_dual_vectors,
    assert_same_weights,
    augmentations,
    check_random_slices,
    check_votes,
    check_weights,
    cramma_rules,
    epochs,
    examples,
    index_types,
    make_problem,
    margin_rules,
    problems,
    romma_rules,
    smallest_gap,
    vectors,
)
from references.first_order import (
    ALMA,
    CRAMMA,
    ROMMA,
    MarginPerceptron,
    Perceptron,
    RunningCRAMMA,
    soft_margin_objective,
)
from sparsemargin import CRAMMAClassifier, ROMMAClassifier
from sparsemargin._engine.fitting import epochs as learning

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

margin_perceptrons = st.builds(
    Machine, margin_rules, st.sampled_from([2.0, 2.5, 3.0, 6.0, 21.5, "log"])
)
crammas = st.builds(Machine, cramma_rules)
rommas = st.builds(Machine, romma_rules)
any_machine = margin_perceptrons | crammas | rommas

elder_rules = st.builds(Perceptron, normalize=st.booleans()) | st.builds(
    ALMA,
    alpha=st.sampled_from([0.9, 0.5, 0.2]),
    normalize=st.sampled_from([True, False, "running", "max"]),
)
elder_machines = st.builds(Machine, elder_rules, st.sampled_from([2.0, 2.5, 3.0, 6.0, "log"]))
certified = any_machine | elder_machines
certified_at_p_2 = st.builds(Machine, margin_rules | cramma_rules | romma_rules | elder_rules)

few_classes = st.integers(2, 4).flatmap(lambda k: problems(n_classes=st.just(k)))
extras = st.builds(Extras, **augmentations)
# Enough epochs for most runs to come to rest, or to the cancellation that inseparable rows bring.
many_epochs = st.builds(Extras, **(augmentations | {"n_epochs": st.integers(4, 30)}))


# -- vectors --------------------------------------------------------------------------------------


@examples(300)
@given(margin_perceptrons, problems(), extras, vectors, st.booleans())
def test_margin_perceptron(machine, problem, extras, hypothesis, normalized):
    check_weights(machine, problem, extras, hypothesis, normalized)


@examples(300)
@given(crammas, problems(), extras, vectors, st.booleans())
def test_cramma(machine, problem, extras, hypothesis, normalized):
    check_weights(machine, problem, extras, hypothesis, normalized)


@examples(300)
@given(rommas, problems(), extras, vectors, st.booleans())
def test_romma(machine, problem, extras, hypothesis, normalized):
    check_weights(machine, problem, extras, hypothesis, normalized)


@examples(240)
@given(any_machine, problems(), many_epochs, vectors)
def test_many_epochs(machine, problem, extras, hypothesis):
    check_weights(machine, problem, extras, hypothesis)


@examples(240)
@given(
    any_machine,
    st.integers(3, 4).flatmap(lambda k: problems(n_classes=st.just(k))),
    extras,
    vectors,
    st.booleans(),
)
def test_many_classes(machine, problem, extras, hypothesis, normalized):
    check_weights(machine, problem, extras, hypothesis, normalized)


@examples(150)
@given(
    margin_perceptrons,
    few_classes,
    st.builds(
        Extras,
        weighted=st.booleans(),
        class_weight=st.sampled_from([None, {0: 0.5, 1: 3.0}, {1: 2.0}]),
        **augmentations,
    ),
    vectors,
)
def test_sample_and_class_weights_of_the_margin_perceptron(machine, problem, extras, hypothesis):
    check_weights(machine, problem, extras, hypothesis)


@examples(150)
@given(any_machine, problems(index_dtype=st.just("i8")), extras, vectors)
def test_64_bit_indices(machine, problem, extras, hypothesis):
    assert problem.X.indices.dtype == problem.X.indptr.dtype == np.int64
    check_weights(machine, problem, extras, hypothesis)


@examples(180)
@given(
    st.builds(Machine, margin_rules) | crammas | rommas,
    problems(value_dtype=st.just("f4"), index_dtype=index_types),
    extras,
    vectors,
)
def test_float32_rows_at_p_2_where_the_state_is_float32_too(machine, problem, extras, hypothesis):
    check_weights(machine, problem, extras, hypothesis, tolerance=1e-4, least_gap=1e-4)


@examples(100)
@given(
    st.builds(Machine, margin_rules, st.sampled_from([2.5, 3.0, 6.0, 21.5])),
    problems(value_dtype=st.just("f4"), index_dtype=index_types),
    extras,
    vectors,
)
def test_float32_rows_at_larger_p_where_the_state_is_float64(machine, problem, extras, hypothesis):
    # The tolerance leaves room for coefficients handed out as float32.
    check_weights(machine, problem, extras, hypothesis, tolerance=1e-6)


# Sums of a few small dyadic numbers are exact even in float32, so no example is skipped.
whole_number_rules = st.builds(
    MarginPerceptron,
    margin=st.sampled_from([0.0, 0.5, 1.0, 4.0, 20.0]),
    eta=st.sampled_from([1.0, 0.5]),
)
whole_number_problems = problems(
    integers=st.just(True), value_dtype=st.sampled_from(["f4", "f8"]), n=st.integers(2, 5)
)
whole_number_extras = {
    "n_epochs": st.integers(1, 60),
    "rho": st.sampled_from([None, 0.5]),
    "delta": st.sampled_from([0.0, 0.5]),
}


def check_exactly(machine, problem, extras):
    runs = extras.runs(machine, problem)
    estimator = extras.fit(machine, problem, hypothesis="last")
    assert_same_corrections(estimator, runs)
    assert_same_weights(estimator, problem, runs, np.array([runs[0].last()]), tolerance=0)


@examples(180)
@given(
    whole_number_rules,
    whole_number_problems,
    st.builds(Extras, weighted=st.booleans(), **whole_number_extras),
)
def test_exact_ties_of_whole_numbers_are_corrected(rule, problem, extras):
    check_exactly(Machine(rule), problem, extras)


def test_whole_number_problems_do_tie_with_a_margin():
    ties = 0
    for seed in range(20):
        problem = make_problem(seed, 30, 3, 1.0, 0.2, integers=True)
        (run,) = Extras(10).runs(Machine(MarginPerceptron(4.0)), problem)
        ties += run.smallest_gap == 0
    assert ties > 10


# -- passes by dot products -----------------------------------------------------------------------


@contextmanager
def by_dot_products():
    """Let every pass but the first run over the matrix of dot products; yield what ran there."""
    passes = []

    class Recorded(learning.GramLoop):
        @staticmethod
        def cost_of_pass(*_):
            return 1

        def run(self, *args):
            result = super().run(*args)
            passes.append(result[1])
            return result

    with patch.multiple(learning, GramLoop=Recorded, PATIENCE=0):
        yield passes


@examples(300)
@given(
    certified_at_p_2,
    few_classes,
    many_epochs,
)
def test_passes_by_dot_products(machine, problem, extras):
    with by_dot_products() as passes:
        estimator = check_weights(machine, problem, extras, "last")
    assert sum(passes) == estimator.n_iter_ - 1


@examples(120)
@given(
    certified_at_p_2,
    few_classes,
    st.builds(
        Extras,
        tol=st.sampled_from([1e-9, 0.5, 0.8]),
        max_corrections=st.sampled_from([None, 3, 50]),
        **(augmentations | {"n_epochs": st.integers(2, 10)}),
    ),
    st.booleans(),
)
def test_certificate_by_dot_products(machine, problem, extras, normalized):
    with by_dot_products():
        check_certificate(machine, problem, extras, normalized)


@examples(100)
@given(whole_number_rules, whole_number_problems, st.builds(Extras, **whole_number_extras))
def test_exact_ties_by_dot_products(rule, problem, extras):
    with by_dot_products():
        check_exactly(Machine(rule), problem, extras)


# -- votes and random time slices -----------------------------------------------------------------


@examples(240)
@given(any_machine, few_classes, extras)
def test_votes(machine, problem, extras):
    check_votes(machine, problem, extras)


@examples(120)
@given(any_machine, few_classes, extras, st.booleans(), st.integers(0, 1000))
def test_random_time_slices(machine, problem, extras, normalized, random_state):
    check_random_slices(machine, problem, extras, normalized, random_state)


# -- what is particular to one rule ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "power"),
    [
        (CRAMMA(0.5, 0.1), 0),
        (ROMMA(), -1),
        (ROMMA(aggressive=True), -1),
    ],
)
@pytest.mark.parametrize("hypothesis", ["last", "average"])
@pytest.mark.parametrize("exponent", [-500, -60, 60, 500])
def test_rules_without_a_unit_do_not_see_the_scale_of_the_rows(rule, power, hypothesis, exponent):
    problem = make_problem(5, 30, 8, 0.5, 0.2)
    fitted = Extras(5).fit(Machine(rule), problem, hypothesis=hypothesis)
    problem.X.data = np.ldexp(problem.X.data, exponent)
    scaled = Extras(5).fit(Machine(rule), problem, hypothesis=hypothesis)
    assert scaled.n_corrections_ == fitted.n_corrections_
    np.testing.assert_array_equal(scaled.coef_, np.ldexp(fitted.coef_, power * exponent))
    if hypothesis == "last":
        assert scaled.margin_ == np.ldexp(fitted.margin_, exponent)
        assert scaled.margin_upper_bound_ == np.ldexp(fitted.margin_upper_bound_, exponent)


@pytest.mark.parametrize("exponent", [-900, 900])
def test_romma_refuses_rows_whose_step_no_float_can_hold(exponent):
    # The first step is by 1 / ||x||^2.
    problem = make_problem(5, 30, 8, 0.5, 0.2)
    problem.X.data = np.ldexp(problem.X.data, exponent)
    with pytest.raises(ValueError, match="Row 0 of X"):
        ROMMAClassifier().fit(problem.X, problem.y)


def test_cramma_starts_at_the_first_row_that_has_a_direction():
    # Two zero rows, then (3,4): from (3,4)/5 it goes on, by thresholds of 2.5/t.
    X = sp.csr_matrix([[0.0, 0.0], [0.0, 0.0], [3.0, 4.0], [-4.0, 3.0]])
    model = CRAMMAClassifier(beta=0.5, eta0=0.25, epsilon=1.0, max_iter=1, fit_intercept=False)
    averaged = clone(model).set_params(hypothesis="average").fit(X, [1, 0, 1, 0])
    second = np.array([1.0, 0.5]) / np.sqrt(1.25)
    assert averaged.n_corrections_ == 1
    np.testing.assert_allclose(averaged.coef_[0], (np.array([0.6, 0.8]) + second) / 4, rtol=1e-15)
    last = model.fit(X, [1, 0, 1, 0])
    np.testing.assert_allclose(last.coef_[0], second, rtol=1e-15)
    assert last.margin_ == pytest.approx(2.5 / np.sqrt(1.25), rel=1e-15)
    assert last.margin_upper_bound_ == pytest.approx(np.sqrt(1.25) / 0.3, rel=1e-15)


def test_crammas_start_is_no_correction():
    model = CRAMMAClassifier(beta=0.4, max_iter=1, fit_intercept=False)
    model.fit(sp.csr_matrix([[2.0], [-1.0]]), [1, 0])
    assert model.n_corrections_ == 0
    np.testing.assert_array_equal(model.theta_, [[1.0]])
    assert model.margin_ == model.margin_upper_bound_ / 2 == 1


def test_crammas_rate_falls_with_the_power_delta_of_beta():
    problem = make_problem(3, 30, 8, 0.5, 0.0)
    (run,) = Extras(3).runs(Machine(CRAMMA(2.0, 0.4 * 2.0**-0.3, epsilon=2.0)), problem)
    model = CRAMMAClassifier(
        beta=2.0, eta0=0.4, delta=0.3, epsilon=2.0, max_iter=3, fit_intercept=False
    )  # fmt: skip
    assert_same_weights(
        model.fit(problem.X, problem.y), problem, [run], np.array([run.last()]), tolerance=1e-12
    )


def test_crammas_rate_with_a_soft_margin_follows_from_its_least_margin():
    # Delta / sqrt(m) is a margin in the extended space (eq. 27), and Table 4 takes 1.7 times it
    # in units of R.
    problem = make_problem(3, 30, 8, 0.5, 0.2)
    rows = problem.X.toarray()
    R = np.sqrt((rows**2).sum(axis=1).max() + 3.0**2 + 0.5**2)
    rate = 1.7 * 0.5 / (R * np.sqrt(len(rows)))
    extras = Extras(3, rho=3.0, delta=0.5)
    runs = extras.runs(Machine(CRAMMA(2.0, rate / 2)), problem)
    model = CRAMMAClassifier(
        beta=2.0, fit_intercept=True, intercept_scaling=3.0, soft_margin=0.5, max_iter=3
    )
    assert_same_weights(
        model.fit(problem.X, problem.y), problem, runs, np.array([runs[0].last()]), tolerance=1e-12
    )


@pytest.mark.parametrize("aggressive", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_romma_passes_over_rows_opposite_to_its_vector(aggressive, dtype):
    rows = np.array([[0.3, 0.7], [-0.9, -2.1], [0.1, -0.2], [0.3, 0.7]])
    problem = make_problem(0, 5, 2, 1.0, 0.0)
    problem.X, problem.y = sp.csr_matrix(rows.astype(dtype)), np.array([1, 1, 0, 1])
    (run,) = Extras(1).runs(Machine(ROMMA(aggressive)), problem)
    assert 1 not in run.correcting_trials
    model = ROMMAClassifier(aggressive=aggressive, max_iter=1, fit_intercept=False)
    model.fit(problem.X, problem.y)
    assert model.n_corrections_ == run.n_corrections
    assert model.n_infeasible_ == 1
    np.testing.assert_allclose(model.coef_[0], run.last().astype(float), rtol=1e-5)


@pytest.mark.parametrize(("length", "expected"), [(1e-13, [-1, 0]), (1e-11, [-1, 1e11])])
def test_romma_restarts_where_no_margin_is_left(length, expected):
    X = sp.csr_matrix([[1.0, 0.0], [0.0, length], [1.0, 0.0]])
    model = ROMMAClassifier(max_iter=1, fit_intercept=False).fit(X, [1, 1, 0])
    np.testing.assert_allclose(model.theta_, [expected], rtol=1e-15)


def test_aggressive_romma_leaves_an_output_of_one_alone():
    # (2,0)/4 scores exactly 1 on (2,0), and (1,0), which scores 1/2, makes it forget.
    X, y = sp.csr_matrix([[2.0, 0.0], [2.0, 0.0], [1.0, 0.0], [0.0, -1.0]]), [1, 1, 1, 0]
    model = ROMMAClassifier(aggressive=True, max_iter=1, fit_intercept=False).fit(X, y)
    assert model.n_corrections_ == 3
    np.testing.assert_allclose(model.theta_, [[1.0, 1.0]], rtol=1e-15)


# -- streams --------------------------------------------------------------------------------------


@examples(150)
@given(
    margin_perceptrons
    | st.builds(Machine, st.builds(CRAMMA, st.just(0.5), st.just(0.1), radius=st.just(2.0)))
    | rommas,
    st.integers(2, 3).flatmap(
        lambda k: problems(n_classes=st.just(k), value_dtype=st.sampled_from(["f4", "f8"]))
    ),
    st.builds(Extras, **(augmentations | {"n_epochs": st.just(1)})),
    st.lists(st.integers(0, 40), max_size=4),
    st.sampled_from(["last", "average", "vote"]),
)
def test_partial_fit_in_batches_is_an_epoch_of_fit(machine, problem, extras, cuts, hypothesis):
    fitted = extras.fit(machine, problem, hypothesis=hypothesis)
    streamed = extras.estimator(machine, hypothesis=hypothesis)
    for rows in np.split(np.arange(len(problem.y)), sorted(cuts)):
        if len(rows):
            streamed.partial_fit(problem.X[rows], problem.y[rows], classes=np.unique(problem.y))
    np.testing.assert_array_equal(streamed.n_corrections_, fitted.n_corrections_)
    np.testing.assert_array_equal(streamed.theta_, fitted.theta_)
    np.testing.assert_array_equal(streamed.theta_norm_, fitted.theta_norm_)
    if hypothesis == "last":
        np.testing.assert_array_equal(streamed.margin_upper_bound_, fitted.margin_upper_bound_)
    np.testing.assert_array_equal(
        streamed.decision_function(problem.X_test), fitted.decision_function(problem.X_test)
    )


@examples(150)
@given(
    cramma_rules,
    few_classes,
    st.builds(Extras, **(augmentations | {"n_epochs": st.just(1)})),
    st.integers(1, 40),
    vectors,
)
def test_cramma_streams_by_the_largest_norm_so_far(rule, problem, extras, cut, hypothesis):
    running = RunningCRAMMA(rule.beta, rule.eta_eff, rule.epsilon)
    runs = extras.runs(Machine(running), problem)
    assume(smallest_gap(runs) > 1e-9)
    model = extras.estimator(Machine(replace(rule, radius=None)), hypothesis=hypothesis)
    for rows in (slice(0, cut), slice(cut, None)):
        if problem.X[rows].shape[0]:
            model.partial_fit(problem.X[rows], problem.y[rows], classes=np.unique(problem.y))
    assert_same_corrections(model, runs)
    assert_same_dual_vectors(model, runs, 1e-10)
    expected = np.array([getattr(run, hypothesis)() for run in runs])
    assert_same_weights(model, problem, runs, expected, 1e-10)


# -- the certificate ------------------------------------------------------------------------------


def comparable_runs(machine, problem, extras):
    """Return the runs, if rounding decided nothing and their vectors have a direction."""
    runs = extras.runs(machine, problem)
    assume(smallest_gap(runs) > 1e-9)
    assume(all(run.bounds and run.smallest_norm > LEAST_NORM for run in runs))
    return runs


def assert_margins(margin, bound, runs):
    longest = np.sqrt(max(np.sum(run.rows**2, axis=1).max() for run in runs))
    within = {"rtol": 0, "atol": 1e-10 * float(longest)}
    expected = np.array([[run.margin, run.margin_upper_bound] for run in runs]).astype(float)
    assert_per_machine(margin, expected[:, 0], **within)
    assert_per_machine(bound, expected[:, 1], **within)


def check_certificate(machine, problem, extras, normalized):
    runs = comparable_runs(machine, problem, extras)
    estimator = extras.fit(machine, problem, hypothesis="last", normalize_hypotheses=normalized)
    assert_same_corrections(estimator, runs)
    assert_margins(estimator.margin_, estimator.margin_upper_bound_, runs)
    return runs, estimator


@examples(300)
@given(any_machine, few_classes, extras, st.booleans())
def test_certificate_of_the_margin_rules(machine, problem, extras, normalized):
    check_certificate(machine, problem, extras, normalized)


@examples(450)
@given(
    certified,
    few_classes,
    st.builds(
        Extras, tol=st.sampled_from([1e-9, 0.5, 0.8]), **(augmentations | {"n_epochs": epochs})
    ),
    st.booleans(),
)
def test_certificate_with_a_tolerance(machine, problem, extras, normalized):
    runs, estimator = check_certificate(machine, problem, extras, normalized)
    m = len(problem.y)
    # Epochs after one in which no machine corrects are not swept.
    at_rest = 2 + max(trial // m for run in runs for trial in [-m, *run.correcting_trials])
    assert estimator.n_iter_ == min(at_rest, max(run.n_trials // m for run in runs))


@examples(300)
@given(
    certified,
    few_classes,
    st.builds(
        Extras,
        **(augmentations | {"n_epochs": st.none()}),
        max_corrections=st.integers(1, 300),
    ),
    st.booleans(),
)
def test_certificate_after_the_last_correction(machine, problem, extras, normalized):
    check_certificate(machine, problem, extras, normalized)


@examples(60)
@given(any_machine, few_classes, st.builds(Extras, **augmentations), st.booleans())
def test_history_of_every_epoch(machine, problem, extras, normalized):
    comparable_runs(machine, problem, extras)
    estimator = extras.fit(
        machine, problem, hypothesis="last", keep_history=True, normalize_hypotheses=normalized
    )
    history = estimator.history_
    np.testing.assert_array_equal(history["n_iter"], np.arange(1, estimator.n_iter_ + 1))
    for epoch, corrections, margin, bound in zip(*history.values(), strict=True):
        runs = comparable_runs(machine, problem, replace(extras, n_epochs=int(epoch)))
        np.testing.assert_array_equal(
            np.atleast_1d(corrections), [run.n_corrections for run in runs]
        )
        assert_margins(margin, bound, runs)


HARD = sp.csr_matrix([[1.0, 0.01], [-1.0, 0.01], [1.0, -0.01], [-1.0, -0.01]]), [1, 1, 0, 0]
EASY = sp.csr_matrix([[0.0, 1.0], [0.0, -1.0]]), [1, 0]


@pytest.mark.parametrize("rule", [MarginPerceptron(0.5), ROMMA(aggressive=True)])
@pytest.mark.parametrize("delta", [0.0, 0.5])
def test_other_rows_end_the_certificate_of_a_warm_start(rule, delta):
    model = Extras(300, delta=delta).estimator(Machine(rule), warm_start=True).fit(*HARD)
    assert model.margin_ <= model.margin_upper_bound_ * (1 + 1e-12)
    model.fit(*EASY)
    assert not hasattr(model, "margin_")
    with pytest.raises(ValueError, match=r"tol=0\.1 can't be had from a fit that goes on"):
        model.set_params(tol=0.1).fit(*HARD)
    model.set_params(warm_start=False).fit(*HARD)
    assert model.margin_ <= model.margin_upper_bound_ * (1 + 1e-12)


@pytest.mark.parametrize("rule", [MarginPerceptron(0.5), ROMMA(aggressive=True)])
def test_rows_streamed_end_the_certificate_of_a_warm_start(rule):
    model = Extras(300).estimator(Machine(rule), warm_start=True).fit(*HARD)
    model.partial_fit(*EASY).fit(*HARD)
    assert not hasattr(model, "margin_")


@pytest.mark.parametrize("delta", [0.0, 0.5])
def test_a_warm_start_with_the_same_rows_goes_on_with_the_proof(delta):
    rule = Machine(ROMMA(aggressive=True))
    cold = Extras(9, delta=delta).estimator(rule).fit(*HARD)
    model = Extras(4, delta=delta).estimator(rule, warm_start=True).fit(*HARD)
    model.set_params(max_iter=5).fit(HARD[0].copy(), HARD[1])
    # Not to the bit: the two take the loop of dot products from different epochs on.
    close = {"rtol": 1e-9, "atol": 1e-10 * abs(cold.theta_).max()}
    np.testing.assert_allclose(model.theta_, cold.theta_, **close)
    assert model.n_corrections_ == cold.n_corrections_
    assert model.margin_ == pytest.approx(cold.margin_, rel=1e-9)
    assert model.margin_upper_bound_ == pytest.approx(cold.margin_upper_bound_, rel=1e-9)


@examples(150)
@given(
    margin_perceptrons | elder_machines,
    few_classes,
    st.builds(
        Extras,
        weighted=st.booleans(),
        class_weight=st.sampled_from([None, {0: 0.5, 1: 3.0}, {0: 0.0}]),
        tol=st.just(1e-9),
        **augmentations,
    ),
    st.booleans(),
)
def test_certificate_with_weights(machine, problem, extras, normalized):
    # A radius is that of all rows, whatever a label makes of their classes.
    assume(machine.rule.normalize != "max" or extras.class_weight != {0: 0.0})
    check_certificate(machine, problem, extras, normalized)


@examples(200)
@given(
    certified_at_p_2,
    few_classes,
    st.builds(
        Extras,
        tol=st.just(1e-9),
        **(augmentations | {"delta": st.sampled_from([0.5, 2.0]), "n_epochs": st.integers(1, 20)}),
    ),
    st.booleans(),
)
def test_soft_margin_objective(machine, problem, extras, normalized):
    runs = comparable_runs(machine, problem, extras)
    # Where the margin or a deviation is near zero, rounding errors are what is divided by.
    assume(all(abs(run.margin) > 1e-3 for run in runs))
    expected = np.array([soft_margin_objective(run) for run in runs]).astype(float)
    assume(np.abs(expected[[run.margin > 0 for run in runs]]).max(initial=0) < 1e6)
    estimator = extras.fit(machine, problem, hypothesis="last", normalize_hypotheses=normalized)
    assert_per_machine(estimator.objective_, expected[:, 0], rtol=1e-6)
    assert_per_machine(estimator.relative_deviation_, expected[:, 1], rtol=1e-6)
