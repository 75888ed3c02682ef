"""``multi_class="joint"`` against a dense reference, and in all places a model comes to."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file

from depth import long
from problems.first_order import (
    LEAST_NORM,
    Extras,
    Machine,
    examples,
    index_types,
    machines,
    make_problem,
    partial_epochs,
    problems,
    vectors,
)
from references.first_order import ALMA, Perceptron, augment
from references.joint import run_joint
from sparsemargin import (
    ALMAClassifier,
    PNormPerceptron,
    fit_csr,
    fit_svmlight,
    load_model,
    load_svmlight,
    save_model,
)
from sparsemargin.evaluation import margins
from sparsemargin.io import sources

POWERS = [2.0, 2.5, 6.0, "log"]
WITH_WEIGHTS = ["Perceptron", "ALMA"]


def several_classes(**fixed):
    return st.integers(3, 5).flatmap(lambda k: problems(n_classes=st.just(k), **fixed))


@long
@dataclass
class Joint(Extras):
    """The extras of a run of the joint machine."""

    def options(self, problem):
        options = super().options(problem)
        return {name: options[name] for name in options if name not in ("delta", "tol")}

    def run(self, machine, problem):
        X = problem.X.toarray()
        return run_joint(X, problem.y, machine.rule, machine.p, **self.options(problem))

    def estimator(self, machine, **params):
        return super().estimator(machine, multi_class="joint", **params)

    def rows_that_count(self, problem):
        """Return which rows are part of the data: those of no weight of any kind are none."""
        weights = self.sample_weight(problem) if self.weighted else np.ones(len(problem.y))
        of_classes = self.class_weight or {}
        return (weights > 0) & np.array([of_classes.get(c, 1) > 0 for c in problem.y])


extras = st.builds(
    Joint,
    n_epochs=partial_epochs,
    rho=st.sampled_from([None, 0.5, 3.0]),
    weighted=st.booleans(),
    class_weight=st.sampled_from([None, {0: 0.5, 1: 3.0}, {2: 0.0}]),
    max_corrections=st.sampled_from([None, 5, 12]),
)
joint_machines = machines(WITH_WEIGHTS, POWERS)


def assert_same(fitted, reference, expected, rho, tolerance):
    """Compare corrections, weights and dual vector; expected is the hypothesis."""
    assert type(fitted.n_corrections_) is int
    assert fitted.n_corrections_ == reference.n_corrections
    error = tolerance * float(np.abs(expected).max())
    n = fitted.n_features_in_
    np.testing.assert_allclose(fitted.coef_, expected[:, :n].astype(float), rtol=0, atol=error)
    if rho is not None:
        intercept = (expected[:, n] * rho).astype(float)
        np.testing.assert_allclose(fitted.intercept_, intercept, rtol=0, atol=error * rho)
    theta = reference.theta.astype(float)
    atol = tolerance * np.abs(theta).max()
    np.testing.assert_allclose(fitted.theta_, theta, rtol=0, atol=atol)
    np.testing.assert_allclose(fitted.theta_norm_, [float(reference.theta_norm)], rtol=tolerance)


def check(machine, problem, extras, normalized=False, tolerance=1e-10, least_gap=1e-9):
    """Fit with either hypothesis and compare, unless a decision lay within rounding of another."""
    reference = extras.run(machine, problem)
    assume(reference.smallest_gap > least_gap)
    assume(not normalized or reference.smallest_norm > LEAST_NORM)
    X_test = problem.X_test.toarray()
    for hypothesis in ("last", "average"):
        how = {"hypothesis": hypothesis, "normalize_hypotheses": normalized}
        fitted = extras.fit(machine, problem, **how)
        expected = getattr(reference, hypothesis)(normalized)
        assert_same(fitted, reference, expected, extras.rho, tolerance)
        outputs = X_test @ fitted.coef_.T + fitted.intercept_
        error = 1e-6 * np.abs(outputs).max()
        np.testing.assert_allclose(fitted.decision_function(problem.X_test), outputs, atol=error)


@examples(200)
@given(joint_machines, several_classes(index_dtype=index_types), extras, st.booleans())
def test_rows_of_float64(machine, problem, extras, normalized):
    check(machine, problem, extras, normalized)


@examples(80)
@given(joint_machines, several_classes(value_dtype=st.just("f4"), index_dtype=index_types), extras)
def test_rows_of_float32(machine, problem, extras):
    check(machine, problem, extras, tolerance=1e-4, least_gap=1e-4)


@examples(60)
@given(
    several_classes(n=st.integers(2, 5), integers=st.just(True)),
    st.builds(Joint, n_epochs=st.integers(1, 3), rho=st.sampled_from([None, 0.5])),
)
def test_exact_ties_are_mistakes_and_the_lowest_of_equal_rivals_moves(problem, extras):
    machine = Machine(Perceptron(normalize=False), 2.0)
    reference = extras.run(machine, problem)
    fitted = extras.fit(machine, problem, hypothesis="last")
    assert_same(fitted, reference, reference.last(), extras.rho, tolerance=0)


@examples(60)
@given(machines(["ALMA"], POWERS), problems(n_classes=st.just(4)), extras, st.booleans())
def test_certificate(machine, problem, extras, normalized):
    reference = extras.run(machine, problem)
    assume(reference.smallest_gap > 1e-9 and reference.smallest_norm > LEAST_NORM)
    assume(reference.bounds)
    fitted = extras.fit(
        machine, problem, hypothesis="last", keep_history=True, normalize_hypotheses=normalized
    )
    counts = extras.rows_that_count(problem)
    rows, codes = augment(problem.X.toarray(), rho=extras.rho)[counts], problem.y[counts]
    margin = reference.margin(rows, codes, machine.rule)
    assert fitted.margin_ == pytest.approx(float(margin), rel=1e-9, abs=1e-12)
    assert fitted.margin_upper_bound_ == pytest.approx(float(min(reference.bounds)), rel=1e-9)
    assert fitted.margin_ <= fitted.margin_upper_bound_ * (1 + 1e-12)
    assert len(fitted.history_["margin"]) == np.ceil(fitted.n_iter_)
    # The rows' margins in the distribution are those that the certificate is made of.
    normalize = machine.rule.normalize is True
    of_rows = margins(fitted, problem.X[counts], codes, normalize=normalize)
    assert of_rows[rows.any(axis=1)].min() == pytest.approx(fitted.margin_, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("p", [6.0, 21.5])
def test_long_runs_stay_exact_though_early_weights_dwarf_later_ones(p):
    problem, machine = make_problem(1, 1000, 12, 0.5, 0.3, n_classes=3), Machine(Perceptron(), p)
    extras = Joint(n_epochs=3, rho=1.0)
    reference, fitted = extras.run(machine, problem), extras.fit(machine, problem)
    assert reference.smallest_gap > 1e-9
    assert_same(fitted, reference, reference.average(), extras.rho, tolerance=1e-12)
    if p > 10:
        assert fitted._space.per_label("flushes")[0] > 0


def test_a_proven_margin_ends_a_fit():
    rng = np.random.RandomState(0)
    y = np.arange(60) % 3
    X = np.eye(3)[y] + 0.1 * rng.normal(size=(60, 3))
    model = ALMAClassifier(
        alpha=0.3, hypothesis="last", multi_class="joint", max_iter=500, tol=0.2, random_state=0
    ).fit(X, y)
    assert model.n_iter_ < 500
    assert model.margin_ >= 0.8 * model.margin_upper_bound_ > 0


# -- two classes ----------------------------------------------------------------------------------


@examples(40)
@given(
    st.builds(Machine, st.sampled_from([Perceptron(), ALMA(), ALMA(0.5)]), st.sampled_from(POWERS)),
    problems(),
    st.builds(Joint, n_epochs=st.integers(1, 3), rho=st.sampled_from([None, 1.0])),
    vectors,
)
def test_two_classes_are_the_lone_vector_up_to_a_factor(machine, problem, extras, hypothesis):
    reference = extras.run(machine, problem)
    assume(reference.smallest_gap > 1e-9)
    fitted = extras.fit(machine, problem, hypothesis=hypothesis)
    assert fitted.n_corrections_ == reference.n_corrections
    first, second = getattr(reference, hypothesis)().astype(float)
    # One is the other's opposite: W.Phi / ||Phi||_p is w.x / ||x||_p.
    np.testing.assert_allclose(first, -second, rtol=1e-12, atol=1e-15)
    expected = 2 * second / 2 ** (1 / reference.p)
    error = 1e-10 * np.abs(expected).max()
    n = problem.X.shape[1]
    np.testing.assert_allclose(fitted.coef_[0], expected[:n], rtol=0, atol=error)


# -- streams, batches and files -------------------------------------------------------------------


def words(model, path):
    """What a model's file holds, to the bit."""
    save_model(model, path)
    return path.read_bytes()


@pytest.mark.parametrize("p", [2.0, 6.0])
@pytest.mark.parametrize("hypothesis", ["last", "average"])
def test_batches_are_one_epoch_to_the_bit(p, hypothesis, tmp_path):
    problem = make_problem(3, 400, 30, 0.3, 0.2, n_classes=4)

    def model():
        return ALMAClassifier(
            p=p, hypothesis=hypothesis, multi_class="joint", shuffle=False, max_iter=1,
            random_state=0, intercept_scaling=1.0,
        )  # fmt: skip

    whole = model().partial_fit(problem.X, problem.y, classes=range(4))
    parts = model()
    cuts = [0, 1, 2, 70, 71, 399, 400]
    for start, stop in pairwise(cuts):
        parts.partial_fit(problem.X[start:stop], problem.y[start:stop], classes=range(4))
        parts.decision_function(problem.X_test)
    assert words(parts, tmp_path / "parts") == words(whole, tmp_path / "whole")
    fitted = model().fit(problem.X, problem.y)
    np.testing.assert_array_equal(fitted.coef_, whole.coef_)
    np.testing.assert_array_equal(fitted.intercept_, whole.intercept_)


@pytest.mark.parametrize("options", [
    {"algo": "alma", "fit_intercept": False}, {"algo": "pnorm", "p": 21.5},
    {"algo": "alma", "hypothesis": "last", "normalize": "running"},
])  # fmt: skip
def test_files_are_learned_as_matrices_are(options, tmp_path, monkeypatch):
    """By many blocks, from one to the next of which the features grow."""
    monkeypatch.setattr(sources, "BLOCK_BYTES", 512)
    problem = make_problem(3, 300, 400, 0.02, 0.2, n_classes=4)
    dump_svmlight_file(problem.X, problem.y, str(tmp_path / "rows.svm"), zero_based=False)
    options = {
        "multi_class": "joint", "max_iter": 2, "shuffle": False, "intercept_scaling": 1.0, **options
    }  # fmt: skip
    streamed = fit_svmlight(tmp_path / "rows.svm", **options)
    fitted = fit_csr(*load_svmlight(tmp_path / "rows.svm")[:2], **options)
    assert streamed.n_corrections_ == fitted.n_corrections_ > 0
    np.testing.assert_array_equal(streamed.coef_, fitted.coef_)
    np.testing.assert_array_equal(streamed.intercept_, fitted.intercept_)


@pytest.mark.parametrize("params", [{"p": 6.0}, {"hypothesis": "last", "fit_intercept": True}])
def test_a_loaded_model_goes_on_to_the_bit(params, tmp_path):
    problem = make_problem(5, 200, 20, 0.4, 0.2, n_classes=5)
    model = PNormPerceptron(multi_class="joint", random_state=0, **params)
    model.partial_fit(problem.X[:90], problem.y[:90], classes=range(5))
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    X_test = problem.X_test
    np.testing.assert_array_equal(loaded.decision_function(X_test), model.decision_function(X_test))
    for one in (model, loaded):
        one.partial_fit(problem.X[90:], problem.y[90:])
    assert words(loaded, tmp_path / "one") == words(model, tmp_path / "other")


# -- in extremis ----------------------------------------------------------------------------------

wide_longdouble = pytest.mark.skipif(
    np.finfo(np.longdouble).maxexp <= np.finfo(np.float64).maxexp,
    reason="numpy.longdouble has no wider range than float64 here",
)


def met_by_tiny_features(seed):
    """Return rows that have a large feature of their own each, and small ones in common, to which
    all that the first passes know of other rows belongs; and labels."""
    rng = np.random.RandomState(seed)
    small = 1e-3 * rng.choice([-1, 1], (60, 5)) * rng.uniform(0.2, 1, (60, 5))
    y = rng.permutation(np.arange(60) % 4)
    return np.c_[small, np.eye(60)], y


@wide_longdouble
@pytest.mark.parametrize("p", [21.5, 64.0])
@pytest.mark.parametrize("rule", [Perceptron(), ALMA()])
def test_rivals_whose_outputs_underflow_are_told_apart(rule, p):
    for seed in range(3):
        rows, y = met_by_tiny_features(seed)
        reference = run_joint(rows, y, rule, p, n_epochs=2)
        assert reference.smallest_gap > 1e-9
        fitted = Joint(n_epochs=2).estimator(Machine(rule, p), hypothesis="last")
        fitted.fit(rows, y)
        assert_same(fitted, reference, reference.last(), None, 1e-10)


# -- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"hypothesis": "vote"}, "no hypothesis='vote'. Pass hypothesis='average' or 'last'"),
        ({"hypothesis": "random"}, "no hypothesis='random'. Pass"),
        ({"kernel": "rbf"}, "no kernel='rbf'. Pass kernel='linear', or multi_class='ovr'"),
        ({"soft_margin": 0.5}, "no soft_margin=0.5. Pass soft_margin=0, or multi_class='ovr'"),
        ({"multi_class": "crammer"}, "'multi_class' parameter .* among {'joint', 'ovr'}"),
    ],
)
def test_what_no_joint_machine_has_is_refused(params, message):
    problem = make_problem(0, 20, 5, 1.0, 0.0, n_classes=3)
    model = ALMAClassifier(**{"multi_class": "joint", **params})
    with pytest.raises(ValueError, match=message):
        model.fit(problem.X, problem.y)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(problem.X, problem.y, classes=range(3))


def test_the_classes_are_learned_on_as_they_were():
    problem = make_problem(0, 50, 5, 1.0, 0.0, n_classes=3)
    model = ALMAClassifier(multi_class="joint", warm_start=True).fit(problem.X, problem.y)
    model.fit(problem.X, problem.y)
    with pytest.raises(ValueError, match="warm_start can't go on with another multi_class"):
        model.set_params(multi_class="ovr").fit(problem.X, problem.y)
