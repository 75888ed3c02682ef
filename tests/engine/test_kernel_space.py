"""The kernel space against the dense references, one by one over a Gram matrix.

Corrections and the rows that made them must agree exactly, coefficients and outputs to a small part
of the largest one. A decision of the reference that lies within rounding of its threshold may
rightly go either way: such examples are skipped, never allowed for in the tolerance.
"""

from itertools import cycle, product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from depth import pairwise, some
from problems.first_order import (
    Problem,
    assert_per_machine,
    assert_same_corrections,
    check_random_slices,
    check_votes,
    cramma_rules,
    examples,
    make_problem,
    margin_rules,
    partial_epochs,
    problems,
    romma_rules,
    vectors,
)
from problems.kernels import (
    FORMS,
    PLAIN,
    KernelExtras,
    KernelMachine,
    any_problem,
    assert_agrees,
    augmentations,
    check_vectors,
    is_sure,
    machines,
    weighted_rules,
)
from problems.models import HYPOTHESES
from references.first_order import (
    ALMA,
    CRAMMA,
    ROMMA,
    MarginPerceptron,
    Perceptron,
    run_reference,
    soft_margin_objective,
)
from references.kernels import Kernel, feature_vectors
from sparsemargin import ALMAClassifier, PNormPerceptron
from sparsemargin._engine.first_order.trials import shuffle
from sparsemargin._engine.kernel import loop
from sparsemargin.evaluation import margins
from sparsemargin.models.base import LARGEST_SEED

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RULES = [
    Perceptron(), Perceptron(normalize=False),
    *(ALMA(normalize=normalize) for normalize in (True, False, "running", "max")),
    MarginPerceptron(1.0), MarginPerceptron(0.2, normalize=True), CRAMMA(0.5, 0.05),
    ROMMA(), ROMMA(aggressive=True),
]  # fmt: skip
KERNELS = [Kernel("poly", 4, 0.5, 1.0), Kernel("rbf", gamma=0.5), Kernel("polyrbf", 5, 0.5)]
extras = st.builds(KernelExtras, **augmentations)
all_rules = pytest.mark.parametrize("rule", RULES, ids=repr)


# -- against the references -----------------------------------------------------------------------


@examples(360)
@given(machines(), any_problem, extras, vectors, st.booleans())
def test_vectors(machine, problem, extras, hypothesis, normalized):
    check_vectors(machine, problem, extras, hypothesis, normalized)


@examples(90)
@given(
    machines(weighted_rules),
    problems(),
    st.builds(
        KernelExtras,
        n_epochs=partial_epochs,
        weighted=st.booleans(),
        class_weight=st.sampled_from([None, {0: 0.5, 1: 3.0}]),
        rho=st.sampled_from([None, 0.5]),
        max_corrections=st.sampled_from([None, 6]),
    ),
    vectors,
)
def test_weights_and_bounded_corrections(machine, problem, extras, hypothesis):
    check_vectors(machine, problem, extras, hypothesis)


@examples(90)
@given(machines(), any_problem, extras)
def test_votes(machine, problem, extras):
    check_votes(machine, problem, extras)


@examples(100)
@given(machines(), any_problem, extras, st.booleans(), st.integers(0, 1000))
def test_random_time_slices_are_shared_by_all_classes(
    machine, problem, extras, normalized, random_state
):
    check_random_slices(machine, problem, extras, normalized, random_state)


def shuffled_trials(n_rows, n_epochs, random_state):
    """Return the rows of all trials, as a fit with this seed takes them in the linear space."""
    seed = int(np.random.RandomState(random_state).randint(LARGEST_SEED))
    order, trials = np.arange(n_rows), []
    for epoch in range(n_epochs):
        shuffle(order, seed + epoch)
        trials.append(order.copy())
    return np.concatenate(trials)


@examples(60)
@given(machines(), any_problem, st.integers(1, 3), vectors, st.integers(0, 1000))
def test_shuffled_rows(machine, problem, n_epochs, hypothesis, random_state):
    extras = KernelExtras(n_epochs)
    trials = shuffled_trials(len(problem.y), n_epochs, random_state)
    runs = extras.runs(machine, problem, trials=trials)
    assume(is_sure(runs))
    estimator = extras.estimator(machine, hypothesis=hypothesis, random_state=random_state)
    estimator.set_params(shuffle=True).fit(machine.given(problem.X, problem), problem.y)
    assert_agrees(estimator, machine, problem, runs)


def hard_problem(m, n_classes=2, seed=0, noise=0.3):
    """Return rows of which many are corrected, whatever the kernel."""
    return make_problem(seed, m, n=10, density=0.6, noise=noise, n_classes=n_classes)


@pytest.mark.parametrize(
    ("rule", "form"), some(list(zip(RULES, cycle(FORMS))), list(product(RULES, FORMS)))
)
def test_across_the_borders_of_blocks(rule, form, monkeypatch):
    monkeypatch.setattr(loop, "BLOCK", 64)
    monkeypatch.setattr(loop, "MEMORY", 0)
    # The kernels in turn.
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
@pytest.mark.parametrize("hypothesis", ["last", "average"])
def test_steps_of_all_magnitudes(hypothesis, in_blocks, monkeypatch):
    """Norms are worked out afresh where they leave their range."""
    if in_blocks:
        monkeypatch.setattr(loop, "BLOCK", 64)
        monkeypatch.setattr(loop, "MEMORY", 0)
    machine, problem = KernelMachine(Perceptron(), kernel=KERNELS[0]), hard_problem(150)
    extras = KernelExtras(2, rho=0.5, delta=0.5)
    weights = 10.0 ** np.linspace(-100, 100, 150)
    runs = extras.runs(machine, problem, sample_weight=weights)
    assert is_sure(runs)
    estimator = extras.estimator(machine, hypothesis=hypothesis)
    estimator.fit(problem.X, problem.y, sample_weight=weights)
    assert_agrees(estimator, machine, problem, runs)


def test_a_rule_begins_anew_in_any_block(monkeypatch):
    """Aggressive ROMMA forgets all but a row of the vector's direction that is shorter."""
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


def test_more_rows_than_are_learned_through_a_gram_matrix():
    problem, extras = hard_problem(3100, noise=0.02), KernelExtras(0.6, delta=0.5)
    machine = KernelMachine(Perceptron(), kernel=KERNELS[0])
    runs = extras.runs(machine, problem, dtype=np.float64)
    assert is_sure(runs)
    assert runs[0].n_corrections > 100
    estimator = extras.fit(machine, problem, hypothesis="last")
    assert_agrees(estimator, machine, problem, runs)


@examples(40)
@given(
    machines(margin_rules | cramma_rules | romma_rules),
    problems(m=st.integers(5, 20)),
    st.builds(KernelExtras, n_epochs=st.just(10), delta=st.sampled_from([0.0, 0.5])),
)
def test_many_epochs(machine, problem, extras):
    check_vectors(machine, problem, extras, "last")


@pytest.mark.parametrize("delta", [0.0, 0.5])
@pytest.mark.parametrize("rule", [MarginPerceptron(0.5), CRAMMA(0.5, 0.02), ROMMA()])
def test_to_the_end(rule, delta):
    # A narrow Gaussian separates whatever rows differ.
    machine = KernelMachine(rule, kernel=Kernel("rbf", gamma=2.0))
    extras, problem = KernelExtras(None, delta=delta), hard_problem(100)
    runs = extras.runs(machine, problem)
    assert is_sure(runs, least_gap=1e-10)
    estimator = extras.fit(machine, problem, hypothesis="last")
    assert_agrees(estimator, machine, problem, runs)
    assert estimator.n_iter_ == runs[0].n_trials / 100 > 1
    # What it would go on to, it has come to.
    again = extras.estimator(machine, hypothesis="last").set_params(max_iter=1000)
    assert again.fit(problem.X, problem.y).n_corrections_ == runs[0].n_corrections


# -- the certificate ------------------------------------------------------------------------------


def assert_margins(estimator, runs, tolerance=1e-8):
    within = {"rtol": 0, "atol": tolerance * float(max(run.largest_size for run in runs))}
    for name in "margin", "margin_upper_bound":
        expected = np.array([getattr(run, name) for run in runs]).astype(float)
        assert_per_machine(getattr(estimator, f"{name}_"), expected, **within)
    assert np.all(estimator.margin_ <= np.multiply(1 + 1e-12, estimator.margin_upper_bound_))


# By default ALMA and the Perceptron look for no margin.
certified = st.tuples(machines(margin_rules | cramma_rules | romma_rules), extras) | st.tuples(
    machines(),
    st.builds(
        KernelExtras,
        n_epochs=st.integers(1, 12),
        tol=st.sampled_from([0.2, 0.5, 0.9]),
        delta=st.sampled_from([0.0, 0.5]),
    ),
)


@examples(190)
@given(certified, any_problem, st.booleans())
def test_certificate(certified, problem, normalized):
    machine, extras = certified
    runs = extras.runs(machine, problem)
    assume(is_sure(runs, normalized=True) and all(run.bounds for run in runs))
    estimator = extras.fit(machine, problem, hypothesis="last", normalize_hypotheses=normalized)
    assert_same_corrections(estimator, runs)
    assert_margins(estimator, runs)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("rule", [ALMA(), MarginPerceptron(0.2, normalize=True)])
def test_soft_margin_objective(rule, kernel):
    problem = hard_problem(60)
    rows = problem.X.toarray()
    V, y = feature_vectors(kernel.matrix(rows, rows)), np.where(problem.y == 1, 1, -1)
    run = run_reference(V, y, rule, n_epochs=20, rho=0.5, delta=0.5)
    assert min(run.margin, run.smallest_gap) > 1e-9
    machine, extras = KernelMachine(rule, kernel=kernel), KernelExtras(20, rho=0.5, delta=0.5)
    estimator = extras.fit(machine, problem, hypothesis="last", keep_history=True)
    objective, deviation = soft_margin_objective(run)
    assert estimator.objective_ == pytest.approx(float(objective), rel=1e-8)
    assert estimator.relative_deviation_ == pytest.approx(float(deviation), rel=1e-6)
    assert_array_equal(estimator.history_["n_iter"], np.arange(1, estimator.n_iter_ + 1))
    assert estimator.history_["margin"][-1] == estimator.margin_


def quadratic_features(X):
    """Of which the dot products are ``(x.z + 1)**2``."""
    n = X.shape[1]
    pairs = [np.sqrt(2) * X[:, i] * X[:, j] for i in range(n) for j in range(i)]
    return np.column_stack([X**2, *pairs, np.sqrt(2) * X, np.ones(len(X))])


@pytest.mark.parametrize(
    ("n_classes", "fit_intercept", "normalize", "hypothesis"),
    pairwise([2, 3], [False, True], [True, False], ["last", "average", "vote"]),
)
def test_margins_are_those_of_explicit_features(n_classes, fit_intercept, normalize, hypothesis):
    problem = hard_problem(600, n_classes)
    X, y = problem.X.toarray(), problem.y
    params = {
        "hypothesis": hypothesis, "fit_intercept": fit_intercept, "intercept_scaling": 1.0,
        "random_state": 0,
    }  # fmt: skip
    explicit = ALMAClassifier(**params).fit(quadratic_features(X), y)
    model = ALMAClassifier(kernel="poly", degree=2, gamma=1.0, coef0=1.0, **params).fit(X, y)
    expected = margins(explicit, quadratic_features(X), y, normalize=normalize)
    within = {"rtol": 1e-9, "atol": 1e-11}
    assert_allclose(margins(model, X, y, normalize=normalize), expected, **within)


@pytest.mark.parametrize("normalize_hypotheses", [False, True])
def test_a_precomputed_kernel_has_margins_in_its_own_units(normalize_hypotheses):
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


# -- where decisions are exact --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "rule", "degree"),
    pairwise(FORMS, [Perceptron(normalize=False), MarginPerceptron(16.0)], [1, 2, 3]),
)
def test_exact_ties_are_mistakes(form, rule, degree):
    # Lengths are powers of two, so that nothing is rounded when rows are divided by them.
    problem = hard_problem(60)
    problem.X = sp.csr_matrix(np.random.RandomState(0).choice([-1.0, 1.0], (60, 4)))
    machine, extras = KernelMachine(rule, kernel=Kernel("poly", degree), form=form), KernelExtras(2)
    (run,) = extras.runs(machine, problem)
    assert run.smallest_gap == 0
    estimator = extras.fit(machine, problem, hypothesis="last")
    assert_same_corrections(estimator, [run])


@pytest.mark.parametrize(("rule", "kernel", "delta"), pairwise(RULES, KERNELS, [0.0, 0.5]))
def test_repeated_rows_are_rows_of_their_own(rule, kernel, delta):
    once = hard_problem(25)
    X, y = sp.vstack([once.X] * 3, format="csr"), np.concatenate([once.y, once.y, 1 - once.y])
    problem, machine = Problem(X, y, once.X_test), KernelMachine(rule, kernel=kernel)
    extras = KernelExtras(2, delta=delta)
    runs = extras.runs(machine, problem)
    assert is_sure(runs)
    estimator = extras.fit(machine, problem, hypothesis="average")
    assert_agrees(estimator, machine, problem, runs)


# -- against the linear space ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "n_epochs", "n_classes", "hypothesis"),
    pairwise(RULES, [0.3, 2], [2, 3], ["last", "average", "vote"]),
)
def test_the_linear_kernel_is_the_linear_space(rule, n_epochs, n_classes, hypothesis):
    problem = hard_problem(400, n_classes)
    extras = KernelExtras(n_epochs, rho=0.5, delta=0.5)
    machine = KernelMachine(rule, kernel=PLAIN)
    plain = extras.estimator(machine, hypothesis=hypothesis).set_params(
        shuffle=True, random_state=5
    )
    linear = clone(plain).set_params(kernel="linear").fit(problem.X, problem.y)
    plain.fit(problem.X, problem.y)
    assert_array_equal(linear.n_corrections_, plain.n_corrections_)
    expected = linear.decision_function(problem.X_test)
    within = {"rtol": 0, "atol": 1e-9 * np.abs(expected).max()}
    assert_allclose(plain.decision_function(problem.X_test), expected, **within)
    assert_allclose(plain.theta_norm_, linear.theta_norm_, rtol=1e-9)
    if hypothesis != "vote":
        within["atol"] = 1e-9 * np.abs(linear.coef_).max()
        assert_allclose(plain.dual_coef_ @ problem.X[plain.support_], linear.coef_, **within)
        assert_allclose(plain.intercept_, linear.intercept_, **within)


# -- the same another way -------------------------------------------------------------------------


def test_rows_with_few_of_many_features():
    # Too many features to be kept with their zeros.
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
def test_partial_fit_in_batches_is_an_epoch_of_fit(rule, kernel, delta, hypothesis):
    problem, extras = hard_problem(300, n_classes=3), KernelExtras(1, rho=0.5, delta=delta)
    machine = KernelMachine(rule, kernel=kernel)
    fitted = extras.fit(machine, problem, hypothesis=hypothesis)
    streamed = extras.estimator(machine, hypothesis=hypothesis)
    for rows in np.split(np.arange(300), [1, 7, 100, 140]):
        streamed.partial_fit(problem.X[rows], problem.y[rows], classes=[0, 1, 2])
    assert_array_equal(streamed.n_corrections_, fitted.n_corrections_)
    assert_array_equal(streamed.support_, fitted.support_)
    expected = fitted.decision_function(problem.X_test)
    within = {"rtol": 0, "atol": 1e-9 * np.abs(expected).max()}
    assert_allclose(streamed.decision_function(problem.X_test), expected, **within)
    if hypothesis == "last" and not isinstance(rule, Perceptron | ALMA):
        assert_allclose(streamed.margin_upper_bound_, fitted.margin_upper_bound_, rtol=1e-9)


def separable_problem(value_dtype, seed=0):
    """Return rows of norm 1 in two classes, none of them near the other."""
    rng = np.random.RandomState(seed)
    rows = rng.uniform(-1, 1, (400, 10))
    target = rng.choice([-1, 1], 10)
    rows += 0.3 * np.sign(rows @ target)[:, np.newaxis] * target
    X = sp.csr_matrix((rows / np.linalg.norm(rows, axis=1)[:, np.newaxis]).astype(value_dtype))
    return Problem(X[:300], (rows[:300] @ target > 0).astype(int), X[300:])


@pytest.mark.parametrize(
    ("rule", "form", "hypothesis", "kernel"),
    pairwise(
        [RULES[i] for i in (0, 1, 2, 4, 7, 8)], ["named", "dense"], ["last", "average"], KERNELS
    ),
)
def test_float32_rows(rule, form, hypothesis, kernel):
    narrow = separable_problem("f4")
    # Of the very same numbers, but for their type.
    wide = Problem(narrow.X.astype(float), narrow.y, narrow.X_test.astype(float))
    machine, extras = KernelMachine(rule, kernel=kernel, form=form), KernelExtras(1)
    expected, model = (extras.fit(machine, p, hypothesis=hypothesis) for p in (wide, narrow))
    assert_array_equal(model.n_corrections_, expected.n_corrections_)
    outputs = expected.decision_function(machine.given(wide.X_test, wide))
    within = {"rtol": 0, "atol": 1e-4 * np.abs(outputs).max()}
    assert_allclose(model.decision_function(machine.given(narrow.X_test, wide)), outputs, **within)


@pytest.mark.parametrize("degree", [6, 40])
def test_large_degrees_stay_within_float32(degree):
    # Products of raw rows reach 1e46 and 1e200.
    problem = hard_problem(200)
    problem.X, problem.X_test = (100 * X for X in (problem.X, problem.X_test))
    machine = KernelMachine(ALMA(), kernel=Kernel("poly", degree))
    extras = KernelExtras(1)
    wide = extras.fit(machine, problem)
    narrow = Problem(problem.X.astype("f4"), problem.y, problem.X_test.astype("f4"))
    model = extras.fit(machine, narrow)
    assert_array_equal(model.n_corrections_, wide.n_corrections_)
    outputs = wide.decision_function(problem.X_test)
    assert np.isfinite(outputs).all()
    within = {"rtol": 0, "atol": 1e-3 * np.abs(outputs).max()}
    assert_allclose(model.decision_function(narrow.X_test), outputs, **within)


def test_a_warm_start_goes_on():
    problem = hard_problem(300, n_classes=3)
    for rule in RULES:
        machine = KernelMachine(rule, kernel=KERNELS[0])
        warm = KernelExtras(1, delta=0.5).estimator(machine, warm_start=True)
        for _ in range(2):
            warm.fit(problem.X, problem.y)
        expected = KernelExtras(2, delta=0.5).fit(machine, problem)
        assert_array_equal(warm.n_corrections_, expected.n_corrections_)
        outputs = expected.decision_function(problem.X_test)
        within = {"rtol": 0, "atol": 1e-9 * np.abs(outputs).max()}
        assert_allclose(warm.decision_function(problem.X_test), outputs, **within)


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
    X_test = machine.given(problem.X_test, problem)
    assert_array_equal(alone.decision_function(X_test), shared.decision_function(X_test))
