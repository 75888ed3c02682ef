"""The kernel space against the dense references, one by one over a Gram matrix.

If a decision of the reference is within rounding of its threshold, either result is right. Such
examples are skipped; the tolerance does not allow for them.
"""

from itertools import cycle, product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from depth import pairwise, some
from problems.first_order import RULES as OF_FIRST_ORDER
from problems.first_order import (
    Problem,
    assert_per_machine,
    assert_same_corrections,
    check_random_slices,
    check_votes,
    examples,
    make_problem,
    partial_epochs,
    problems,
    vectors,
)
from problems.kernels import (
    FORMS,
    KERNELS,
    PLAIN,
    RULES,
    KernelExtras,
    KernelMachine,
    any_problem,
    assert_agrees,
    assert_close,
    assert_same_outputs,
    augmentations,
    check_vectors,
    come_to_nothing,
    is_sure,
    machines,
    make_rows,
    weighted_rules,
)
from problems.models import HYPOTHESES
from references.first_order import ALMA, CRAMMA, ROMMA, MarginPerceptron, Perceptron, run_reference
from references.kernels import Kernel, feature_vectors
from references.runs import soft_margin_objective
from sparsemargin import ALMAClassifier, PNormPerceptron, SecondOrderPerceptron
from sparsemargin._engine.kernel import loop
from sparsemargin._engine.kernel.support import Points, SupportSet
from sparsemargin._engine.rows.csr import shuffle
from sparsemargin.evaluation import margins
from sparsemargin.kernels import Polynomial
from sparsemargin.models.learner import LARGEST_SEED

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

extras = st.builds(KernelExtras, **augmentations)


bounding_rules = st.one_of(OF_FIRST_ORDER[name] for name in ("margin", "CRAMMA", "ROMMA"))
cases = (
    st.tuples(machines(), extras)
    | st.tuples(
        machines(weighted_rules),
        st.builds(
            KernelExtras,
            n_epochs=partial_epochs,
            weighted=st.booleans(),
            class_weight=st.sampled_from([None, {0: 0.5, 1: 3.0}]),
            rho=st.sampled_from([None, 0.5]),
            max_corrections=st.sampled_from([None, 6]),
        ),
    )
    | st.tuples(
        machines(bounding_rules),
        st.builds(KernelExtras, n_epochs=st.just(10), delta=st.sampled_from([0.0, 0.5])),
    )
)


@examples(480)
@given(cases, any_problem, vectors, st.booleans())
def test_vectors_agree_with_the_reference(case, problem, hypothesis, normalized):
    check_vectors(case[0], problem, case[1], hypothesis, normalized)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("kernel", [None, PLAIN, *KERNELS], ids=repr)
def test_vector_that_returns_to_zero_counts_as_zero(kernel, dtype):
    """The second row cancels the first one; the result of its trial is not part of the average."""
    how = {"normalize_hypotheses": True, "hypothesis": "average", "shuffle": False, "max_iter": 1}
    how |= {"fit_intercept": False, "kernel": kernel.given() if kernel else "linear"}
    for seed in range(20):
        rows, y = make_rows(10, seed=seed)
        rows[1], y[:2] = rows[0], [1, 0]
        X = rows.astype(dtype)
        both, first = PNormPerceptron(**how), PNormPerceptron(**how)
        both.partial_fit(X[:2], y[:2], classes=[0, 1])
        first.partial_fit(X[:1], y[:1], classes=[0, 1])
        assert_close(both.decision_function(X), first.decision_function(X) / 2, 1e-6)


@examples(90)
@given(machines(), any_problem, extras)
def test_votes_agree_with_the_reference(machine, problem, extras):
    check_votes(machine, problem, extras)


@examples(100)
@given(machines(), any_problem, extras, st.booleans(), st.integers(0, 1000))
def test_random_hypotheses_are_shared_by_all_classes(
    machine, problem, extras, normalized, random_state
):
    check_random_slices(machine, problem, extras, normalized, random_state)


def shuffled_trials(n_rows, n_epochs, random_state):
    """Return the rows of all trials, in the order of a fit in the linear space with this seed."""
    seed = int(np.random.RandomState(random_state).randint(LARGEST_SEED))
    order, trials = np.arange(n_rows), []
    for epoch in range(n_epochs):
        shuffle(order, seed + epoch)
        trials.append(order.copy())
    return np.concatenate(trials)


@examples(60)
@given(machines(), any_problem, st.integers(1, 3), vectors, st.integers(0, 1000))
def test_shuffled_rows_agree_with_the_reference(
    machine, problem, n_epochs, hypothesis, random_state
):
    extras = KernelExtras(n_epochs)
    trials = shuffled_trials(len(problem.y), n_epochs, random_state)
    runs = extras.runs(machine, problem, trials=trials)
    assume(is_sure(runs))
    estimator = extras.estimator(machine, hypothesis=hypothesis, random_state=random_state)
    estimator.set_params(shuffle=True).fit(machine.given(problem.X, problem), problem.y)
    assert_agrees(estimator, machine, problem, runs)


def hard_problem(m, n_classes=2, seed=0, noise=0.3):
    """Return rows of which many are corrected with any kernel."""
    return make_problem(seed, m, n=10, density=0.6, noise=noise, n_classes=n_classes)


@pytest.mark.parametrize(
    ("rule", "form"), some(list(zip(RULES, cycle(FORMS))), list(product(RULES, FORMS)))
)
def test_block_borders_do_not_change_the_model(rule, form, monkeypatch):
    monkeypatch.setattr(loop, "BLOCK", 64)
    monkeypatch.setattr(loop, "MEMORY", 0)
    # The kernels are used alternately.
    kernel = KERNELS[(RULES.index(rule) + FORMS.index(form)) % len(KERNELS)]
    machine = KernelMachine(rule, kernel=kernel, form=form)
    problem, extras = hard_problem(150), KernelExtras(2.3, rho=0.5, delta=0.5)
    runs = extras.runs(machine, problem)
    assert is_sure(runs)
    assert runs[0].n_corrections > 30
    for hypothesis in "last", "average":
        estimator = extras.fit(machine, problem, hypothesis=hypothesis)
        assert_agrees(estimator, machine, problem, runs)
        if hypothesis == "last" and not isinstance(rule, Perceptron | ALMA):
            assert_margins(estimator, runs)


@pytest.mark.parametrize("in_blocks", [False, True])
def test_growing_steps_rescale_the_norm(in_blocks, monkeypatch):
    """The norm must then be recomputed, and t rescaled."""
    if in_blocks:
        monkeypatch.setattr(loop, "BLOCK", 16)
        monkeypatch.setattr(loop, "MEMORY", 0)
    machine, problem = KernelMachine(Perceptron(), kernel=KERNELS[0]), hard_problem(150)
    extras = KernelExtras(1, rho=0.5, delta=0.5)
    # The norm exceeds 2**300 times the first step; from then on, steps are equal.
    weights = 10.0 ** (3 * np.minimum(np.linspace(0, 183, 150), 91))
    in_fit, in_stream = (
        extras.runs(machine, problem, sample_weight=weights, first_call=first) for first in (150, 2)
    )
    assert is_sure(in_fit)
    for hypothesis in "last", "average":
        fitted, stream = (extras.estimator(machine, hypothesis=hypothesis) for _ in range(2))
        fitted.fit(problem.X, problem.y, sample_weight=weights)
        for part in np.split(np.arange(150), [2]):
            rows = problem.X[part], problem.y[part]
            stream.partial_fit(*rows, classes=[0, 1], sample_weight=weights[part])
        for estimator, runs in (fitted, in_fit), (stream, in_stream):
            assert_agrees(estimator, machine, problem, runs)


def test_rule_can_restart_in_any_block(monkeypatch):
    """Aggressive ROMMA restarts at a shorter row with the direction of its vector."""
    monkeypatch.setattr(loop, "BLOCK", 16)
    monkeypatch.setattr(loop, "MEMORY", 0)
    rows = np.linspace(1, 0.1, 150)[:, np.newaxis]
    X = sp.csr_matrix(rows * np.random.RandomState(0).uniform(0.5, 1, (150, 10)))
    problem = Problem(X, (np.arange(150) < 147).astype(int), X[:9])
    machine, extras = KernelMachine(ROMMA(aggressive=True), kernel=PLAIN), KernelExtras(1)
    runs = extras.runs(machine, problem)
    assert is_sure(runs)
    forgotten = [row for row in runs[0].joined if runs[0].last()[row] == 0]
    assert len(forgotten) > 20
    for hypothesis in "last", "average":
        assert_agrees(extras.fit(machine, problem, hypothesis=hypothesis), machine, problem, runs)
        stream = extras.estimator(machine, hypothesis=hypothesis)
        for part in np.split(np.arange(150), [2, 60]):
            stream.partial_fit(X[part], problem.y[part], classes=[0, 1])
        assert_agrees(stream, machine, problem, runs)


def test_restart_within_a_block_applies_to_earlier_blocks(monkeypatch):
    """ROMMA restarts at the third row; the first row has its coefficient from an earlier block."""
    monkeypatch.setattr(loop, "BLOCK", 3)
    monkeypatch.setattr(loop, "MEMORY", 0)
    X = sp.csr_matrix([[1.0, 0.0], [0.0, 1e-13], [1.0, 0.0], [1.0, 0.5], [-0.5, 1.0]])
    problem = Problem(X, np.array([1, 1, 0, 1, 1]), X)
    machine, extras = KernelMachine(ROMMA(), kernel=PLAIN), KernelExtras(0.2)
    model = extras.fit(machine, problem, hypothesis="last", warm_start=True)
    model.set_params(max_iter=1).fit(X, problem.y)
    runs = extras.runs(machine, problem, trials=[0, *range(5)])
    assert_agrees(model, machine, problem, runs)


def test_norm_of_cancelling_rows_in_two_blocks(monkeypatch):
    monkeypatch.setattr(loop, "BLOCK", 16)
    monkeypatch.setattr(loop, "MEMORY", 0)
    X, weights = sp.vstack([sp.eye(16)] * 2, format="csr"), np.repeat([1.0, 0.999], 16)
    problem = Problem(X, np.repeat([1, 0], 16), X)
    machine, extras = KernelMachine(Perceptron(), kernel=PLAIN), KernelExtras(1)
    model = extras.estimator(machine, hypothesis="last").fit(X, problem.y, sample_weight=weights)
    assert_agrees(model, machine, problem, extras.runs(machine, problem, sample_weight=weights))


@pytest.mark.parametrize("delta", [0.0, 0.5])
@pytest.mark.parametrize("rule", [MarginPerceptron(0.5), CRAMMA(0.5, 0.02), ROMMA()])
def test_converged_fit_agrees_with_the_reference(rule, delta):
    # A narrow Gaussian separates all distinct rows.
    machine = KernelMachine(rule, kernel=Kernel("rbf", gamma=2.0))
    extras, problem = KernelExtras(None, delta=delta), hard_problem(100)
    runs = extras.runs(machine, problem)
    assert is_sure(runs, least_gap=1e-10)
    estimator = extras.fit(machine, problem, hypothesis="last")
    assert_agrees(estimator, machine, problem, runs)
    assert estimator.n_iter_ == runs[0].n_trials / 100 > 1
    # More epochs would not change the model.
    again = extras.estimator(machine, hypothesis="last").set_params(max_iter=1000)
    assert again.fit(problem.X, problem.y).n_corrections_ == runs[0].n_corrections


# A bound is the square root of a difference of rows, so its error is the root of some roundings.
def assert_margins(estimator, runs, tolerance=6e-8):
    within = {"rtol": 0, "atol": tolerance * float(max(run.largest_size for run in runs))}
    for name in "margin", "margin_upper_bound":
        expected = np.array([getattr(run, name) for run in runs]).astype(float)
        assert_per_machine(getattr(estimator, f"{name}_"), expected, **within)
    assert np.all(estimator.margin_ <= np.multiply(1 + 1e-12, estimator.margin_upper_bound_))


# With default settings, ALMA and the Perceptron have no certificate.
certified = st.tuples(machines(bounding_rules), extras) | st.tuples(
    machines(bounding_rules),
    st.builds(
        KernelExtras,
        n_epochs=st.integers(1, 12),
        tol=st.sampled_from([0.2, 0.5, 0.9]),
        delta=st.sampled_from([0.0, 0.5]),
    ),
)


@examples(190)
@given(certified, any_problem, st.booleans())
def test_certificate_agrees_with_the_reference(certified, problem, normalized):
    machine, extras = certified
    runs = extras.runs(machine, problem)
    assume(is_sure(runs, normalized=True) and all(run.bounds for run in runs))
    assume(not any(map(come_to_nothing, runs)))
    estimator = extras.fit(machine, problem, hypothesis="last", normalize_hypotheses=normalized)
    assert_same_corrections(estimator, runs)
    assert_margins(estimator, runs)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("rule", [MarginPerceptron(1.0), MarginPerceptron(0.2, normalize=True)])
def test_soft_margin_objective(rule, kernel):
    problem = hard_problem(60)
    rows = problem.X.toarray()
    V, y = feature_vectors(kernel.matrix(rows, rows)), np.where(problem.y == 1, 1, -1)
    run = run_reference(V, y, rule, n_epochs=20, rho=0.5, delta=0.5)
    assert min(run.margin, run.smallest_gap) > 1e-9
    machine = KernelMachine(rule, kernel=kernel)
    extras = KernelExtras(20, rho=0.5, delta=0.5, tol=1e-12)
    estimator = extras.fit(machine, problem, hypothesis="last")
    _, deviation = soft_margin_objective(run)
    # If no row falls short, rounding decides between a huge number and infinity.
    found, expected = (min(each, 1e9) for each in (estimator.relative_deviation_, float(deviation)))
    assert found == pytest.approx(expected, rel=1e-6)
    assert estimator.history_["n_iter"][-1] == estimator.n_iter_
    assert estimator.history_["margin"][-1] == estimator.margin_


@pytest.mark.parametrize(
    ("n_classes", "normalize", "hypothesis"),
    pairwise([2, 3], [True, False], ["last", "average", "vote"]),
)
def test_margins_equal_those_of_explicit_features(n_classes, normalize, hypothesis):
    problem = hard_problem(300, n_classes)
    X, y = problem.X.toarray(), problem.y
    params = {"hypothesis": hypothesis, "intercept_scaling": 1.0, "random_state": 0}
    V = feature_vectors(Kernel("poly", 2, coef0=1.0).matrix(X, X)).astype(float)
    expected = margins(ALMAClassifier(**params).fit(V, y), V, y, normalize=normalize)
    model = ALMAClassifier(kernel=Polynomial(2, gamma=1.0, coef0=1.0), **params).fit(X, y)
    assert_close(margins(model, X, y, normalize=normalize), expected, 1e-9)


@pytest.mark.parametrize("normalize_hypotheses", [False, True])
def test_precomputed_kernel_has_margins_in_its_own_units(normalize_hypotheses):
    problem = hard_problem(300, 3)
    X, y = problem.X.toarray(), problem.y
    K = X @ X.T
    params = {"hypothesis": "last", "normalize_hypotheses": normalize_hypotheses, "random_state": 0}
    model = PNormPerceptron(kernel="precomputed", **params).fit(K, y)
    plain = PNormPerceptron(fit_intercept=False, **params)
    expected = margins(plain.fit(X, y), X, y, normalize=False)
    assert_allclose(margins(model, K, y, normalize=False), expected, rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="normalize=False"):
        margins(model, K, y)
    with pytest.raises(ValueError, match="hypothesis='last'"):
        margins(PNormPerceptron(kernel="precomputed").fit(K, y), K, y, normalize=False)
    with pytest.raises(ValueError, match="Pass the kernel as a function"):
        margins(SecondOrderPerceptron(kernel="precomputed").fit(K, y), K, y)


@pytest.mark.parametrize(
    ("form", "rule", "degree"),
    pairwise(FORMS, [Perceptron(normalize=False), MarginPerceptron(16.0)], [1, 2, 3]),
)
def test_exact_ties_are_mistakes(form, rule, degree):
    # Lengths are powers of two, so that dividing rows by them is exact.
    problem = hard_problem(60)
    problem.X = sp.csr_matrix(np.random.RandomState(0).choice([-1.0, 1.0], (60, 4)))
    machine, extras = KernelMachine(rule, kernel=Kernel("poly", degree), form=form), KernelExtras(2)
    (run,) = extras.runs(machine, problem)
    assert run.smallest_gap == 0
    estimator = extras.fit(machine, problem, hypothesis="last")
    assert_same_corrections(estimator, [run])


def test_rows_with_few_of_many_features():
    # The number of features is too large for dense rows.
    problem = make_problem(0, 100, n=600, density=0.03, noise=0.2)
    for kernel in KERNELS:
        for form in "named", "callable", "dense":
            machine = KernelMachine(ALMA(), kernel=kernel, form=form)
            extras = KernelExtras(1, rho=0.5)
            runs = extras.runs(machine, problem, dtype=np.float64)
            assert is_sure(runs)
            estimator = extras.fit(machine, problem, hypothesis="last")
            assert_agrees(estimator, machine, problem, runs)


STREAMED = [*RULES[:5], *RULES[6:8], *RULES[9:], CRAMMA(0.5, 0.05, radius=9)]


@pytest.mark.parametrize(
    ("rule", "kernel", "delta", "hypothesis"),
    pairwise(STREAMED, KERNELS, [0.0, 0.5], ["last", "average", "vote"]),
)
def test_partial_fit_in_batches_equals_one_epoch(rule, kernel, delta, hypothesis):
    problem, extras = hard_problem(300, n_classes=3), KernelExtras(1, rho=0.5, delta=delta)
    machine = KernelMachine(rule, kernel=kernel)
    fitted = extras.fit(machine, problem, hypothesis=hypothesis)
    streamed = extras.estimator(machine, hypothesis=hypothesis)
    for rows in np.split(np.arange(300), [1, 7, 100, 140]):
        streamed.partial_fit(problem.X[rows], problem.y[rows], classes=[0, 1, 2])
    assert_array_equal(streamed.n_corrections_, fitted.n_corrections_)
    assert_array_equal(streamed.support_, fitted.support_)
    assert_same_outputs(streamed, fitted, problem.X_test, 1e-9)
    if hypothesis == "last" and not isinstance(rule, Perceptron | ALMA):
        assert_allclose(streamed.margin_upper_bound_, fitted.margin_upper_bound_, rtol=1e-9)


@examples(60)
@given(
    machines(weighted_rules, forms=["named", "dense"]),
    problems(value_dtype=st.just("f4")), extras, vectors,
)  # fmt: skip
def test_float32_rows_agree_with_the_reference(machine, problem, extras, hypothesis):
    check_vectors(machine, problem, extras, hypothesis, tolerance=1e-3, least_gap=1e-3)


@pytest.mark.parametrize("degree", [6, 40])
def test_large_degrees_stay_within_float32(degree):
    # Products of raw rows reach 1e46 and 1e200.
    problem = hard_problem(200)
    problem.X, problem.X_test = (100 * X for X in (problem.X, problem.X_test))
    machine = KernelMachine(ALMA(), kernel=Kernel("poly", degree))
    extras = KernelExtras(1)
    wide = extras.fit(machine, problem)
    narrow = extras.fit(machine, Problem(problem.X.astype("f4"), problem.y, problem.X_test))
    assert np.isfinite(wide.decision_function(problem.X_test)).all()
    assert_array_equal(narrow.n_corrections_, wide.n_corrections_)
    assert_same_outputs(narrow, wide, problem.X_test.astype("f4"), 1e-3)


def test_warm_start_continues_kernel_models():
    problem = hard_problem(300, n_classes=3)
    for rule in RULES:
        machine = KernelMachine(rule, kernel=KERNELS[0])
        warm = KernelExtras(1, delta=0.5).estimator(machine, warm_start=True)
        for _ in range(2):
            warm.fit(problem.X, problem.y)
        expected = KernelExtras(2, delta=0.5).fit(machine, problem)
        assert_array_equal(warm.n_corrections_, expected.n_corrections_)
        assert_same_outputs(warm, expected, problem.X_test, 1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("hypothesis", some(["average", "vote"], HYPOTHESES))
def test_threads_change_no_bit(form, hypothesis):
    problem = hard_problem(300, n_classes=3)
    machine = KernelMachine(ALMA(), kernel=KERNELS[0], form=form)
    alone, shared = (
        KernelExtras(2).fit(machine, problem, hypothesis=hypothesis, n_jobs=n_jobs, random_state=0)
        for n_jobs in (1, 2)
    )
    assert_array_equal(alone.n_corrections_, shared.n_corrections_)
    assert_same_outputs(shared, alone, machine.given(problem.X_test, problem), 0)


@pytest.mark.parametrize("first", [-1, 1])
def test_dense_pool_rows_follow_their_features(first):
    pool = SupportSet()
    pool.extend(Points(np.array([[0.0, 2.0, 9.0]]), np.ones(1), np.ones(1)))
    pool.resize(2, 3, first)
    expected = [[0.0, 0.0, 2.0, 9.0]] if first < 0 else [[2.0, 0.0, 0.0, 9.0]]
    assert_array_equal(pool.points.matrix, expected)
