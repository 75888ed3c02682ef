"""``multi_class="joint"`` against a dense reference, and in streams, files and copies."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file

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
from references.first_order import ALMA, Perceptron
from references.joint import run_joint
from references.runs import augment
from sparsemargin import (
    ALMAClassifier,
    fit_csr,
    fit_svmlight,
    load_model,
    load_svmlight,
    save_model,
)
from sparsemargin.evaluation import margins
from sparsemargin.files import sources

POWERS = [2.0, 2.5, 6.0, "log"]
WITH_WEIGHTS = ["Perceptron", "ALMA"]


def several_classes(**fixed):
    return st.integers(3, 5).flatmap(lambda k: problems(n_classes=st.just(k), **fixed))


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
        """Return which rows are part of the data: those whose weights are not 0."""
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
    """Compare corrections, weights and dual vector; `expected` is the hypothesis."""
    assert type(fitted.n_corrections_) is int
    assert fitted.n_corrections_ == reference.n_corrections
    error = tolerance * float(np.abs(expected).max())
    n = fitted.n_features_in_
    np.testing.assert_allclose(fitted.coef_, expected[:, :n].astype(float), rtol=0, atol=error)
    if rho is not None:
        intercept = (expected[:, n] * rho).astype(float)
        np.testing.assert_allclose(fitted.intercept_, intercept, rtol=0, atol=error * rho)
    theta = reference.visible_theta.astype(float)
    atol = tolerance * np.abs(theta).max()
    np.testing.assert_allclose(fitted.theta_, theta, rtol=0, atol=atol)
    np.testing.assert_allclose(fitted.theta_norm_, [float(reference.theta_norm)], rtol=tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), [("f8", 1e-10), ("f4", 1e-4)])
@examples(140)
@given(joint_machines, st.data(), extras, st.booleans())
def test_joint_hypotheses_agree_with_the_reference(
    dtype, tolerance, machine, data, extras, normalized
):
    """Examples are skipped if a decision is within rounding of another."""
    normalized &= dtype == "f8"
    problem = data.draw(several_classes(value_dtype=st.just(dtype), index_dtype=index_types))
    reference = extras.run(machine, problem)
    assume(reference.smallest_gap > (1e-9 if dtype == "f8" else 1e-4))
    assume(not normalized or reference.smallest_norm > LEAST_NORM)
    for hypothesis in ("last", "average"):
        how = {"hypothesis": hypothesis, "normalize_hypotheses": normalized}
        fitted = extras.fit(machine, problem, **how)
        expected = getattr(reference, hypothesis)(normalized)
        assert_same(fitted, reference, expected, extras.rho, tolerance)
        outputs = problem.X_test.toarray() @ fitted.coef_.T + fitted.intercept_
        error = 1e-6 * np.abs(outputs).max()
        np.testing.assert_allclose(fitted.decision_function(problem.X_test), outputs, atol=error)


@examples(60)
@given(
    several_classes(n=st.integers(2, 5), integers=st.just(True)),
    st.builds(Joint, n_epochs=st.integers(1, 3), rho=st.sampled_from([None, 0.5])),
)
def test_exact_ties_are_mistakes_against_the_first_tied_class(problem, extras):
    machine = Machine(Perceptron(normalize=False), 2.0)
    reference = extras.run(machine, problem)
    fitted = extras.fit(machine, problem, hypothesis="last")
    assert_same(fitted, reference, reference.last(), extras.rho, tolerance=0)


@examples(60)
@given(machines(["ALMA"], POWERS), problems(n_classes=st.just(4)), extras)
def test_certificate_agrees_with_the_reference(machine, problem, extras):
    # Training ends with the last correction, after at most 13 epochs.
    extras = replace(extras, n_epochs=13, max_corrections=12)
    reference = extras.run(machine, problem)
    assume(reference.smallest_gap > 1e-9 and reference.smallest_norm > LEAST_NORM)
    assume(reference.bounds)
    fitted = replace(extras, n_epochs=None).fit(machine, problem, hypothesis="last")
    counts = extras.rows_that_count(problem)
    rows, codes = augment(problem.X.toarray(), rho=extras.rho)[counts], problem.y[counts]
    margin = reference.margin_of(rows, codes, machine.rule)
    assert fitted.margin_ == pytest.approx(float(margin), rel=1e-9, abs=1e-12)
    assert fitted.margin_upper_bound_ == pytest.approx(float(min(reference.bounds)), rel=1e-9)
    assert fitted.margin_ <= fitted.margin_upper_bound_ * (1 + 1e-12)
    assert fitted.history_["margin"][-1] == fitted.margin_
    # The margins of the distribution are those of the certificate.
    normalize = machine.rule.normalize is True
    of_rows = margins(fitted, problem.X[counts], codes, normalize=normalize)
    assert of_rows[rows.any(axis=1)].min() == pytest.approx(fitted.margin_, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("p", [6.0, 21.5])
def test_long_runs_are_exact_despite_huge_early_weights(p):
    problem, machine = make_problem(1, 1000, 12, 0.5, 0.3, n_classes=3), Machine(Perceptron(), p)
    extras = Joint(n_epochs=3, rho=1.0)
    reference, fitted = extras.run(machine, problem), extras.fit(machine, problem)
    assert reference.smallest_gap > 1e-9
    assert_same(fitted, reference, reference.average(), extras.rho, tolerance=1e-12)
    if p > 10:
        assert fitted.space.per_vector("flushes")[0] > 0


@examples(40)
@given(
    st.builds(Machine, st.sampled_from([Perceptron(), ALMA(), ALMA(0.5)]), st.sampled_from(POWERS)),
    problems(),
    st.builds(Joint, n_epochs=st.integers(1, 3), rho=st.sampled_from([None, 1.0])),
    vectors,
)
def test_two_joint_classes_equal_a_single_vector(machine, problem, extras, hypothesis):
    reference = extras.run(machine, problem)
    assume(reference.smallest_gap > 1e-9)
    fitted = extras.fit(machine, problem, hypothesis=hypothesis)
    assert fitted.n_corrections_ == reference.n_corrections
    first, second = getattr(reference, hypothesis)().astype(float)
    # The vectors are opposite: W.Phi / ||Phi||_p is w.x / ||x||_p.
    np.testing.assert_allclose(first, -second, rtol=1e-12, atol=1e-15)
    expected = 2 * second / 2 ** (1 / reference.p)
    error = 1e-10 * np.abs(expected).max()
    n = problem.X.shape[1]
    np.testing.assert_allclose(fitted.coef_[0], expected[:n], rtol=0, atol=error)


@pytest.mark.parametrize("p", [2.0, 6.0])
@pytest.mark.parametrize("hypothesis", ["last", "average"])
def test_batches_and_a_loaded_model_equal_one_epoch_bitwise(p, hypothesis, tmp_path):
    problem = make_problem(3, 400, 30, 0.3, 0.2, n_classes=4)
    X, y = problem.X, problem.y
    whole = ALMAClassifier(
        p=p, hypothesis=hypothesis, multi_class="joint", shuffle=False, max_iter=1, random_state=0,
        intercept_scaling=1.0,
    ).fit(X, y)  # fmt: skip
    parts = clone(whole)
    for start, stop in pairwise([0, 1, 2, 70, 71, 399, 400]):
        parts.partial_fit(X[start:stop], y[start:stop], classes=range(4))
        save_model(parts, tmp_path / "model")
        parts = load_model(tmp_path / "model")
        parts.decision_function(problem.X_test)
    for name in "coef_", "intercept_", "theta_", "n_corrections_":
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))


@pytest.mark.parametrize("options", [
    {"algo": "alma", "fit_intercept": False}, {"algo": "pnorm", "p": 21.5},
    {"algo": "alma", "hypothesis": "last", "normalize": "running"},
])  # fmt: skip
def test_joint_model_of_a_file_equals_that_of_its_matrix(options, tmp_path, monkeypatch):
    """The files have many blocks, and the number of features grows between them."""
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


wide_longdouble = pytest.mark.skipif(
    np.finfo(np.longdouble).maxexp <= np.finfo(np.float64).maxexp,
    reason="numpy.longdouble has no wider range than float64 here",
)


def met_by_tiny_features(seed):
    """Return rows and labels. Each row has a large feature that no other row has, and small common
    features, which alone transfer what early epochs learn to other rows."""
    rng = np.random.RandomState(seed)
    small = 1e-3 * rng.choice([-1, 1], (60, 5)) * rng.uniform(0.2, 1, (60, 5))
    y = rng.permutation(np.arange(60) % 4)
    return np.c_[small, np.eye(60)], y


@wide_longdouble
@pytest.mark.parametrize("p", [21.5, 64.0])
@pytest.mark.parametrize("rule", [Perceptron(), ALMA()])
def test_classes_whose_outputs_underflow_are_distinguished(rule, p):
    for seed in range(3):
        rows, y = met_by_tiny_features(seed)
        reference = run_joint(rows, y, rule, p, n_epochs=2)
        assert reference.smallest_gap > 1e-9
        fitted = Joint(n_epochs=2).estimator(Machine(rule, p), hypothesis="last")
        fitted.fit(rows, y)
        assert_same(fitted, reference, reference.last(), None, 1e-10)


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
def test_unsupported_joint_options_raise_an_error(params, message):
    problem = make_problem(0, 50, 5, 1.0, 0.0, n_classes=3)
    model = ALMAClassifier(multi_class="joint", warm_start=True).fit(problem.X, problem.y)
    for way in clone(model).fit, clone(model).partial_fit:
        way.__self__.set_params(**params)
        with pytest.raises(ValueError, match=message):
            way(problem.X, problem.y)
    with pytest.raises(ValueError, match="warm_start can't go on with another multi_class"):
        model.set_params(multi_class="ovr").fit(problem.X, problem.y)
