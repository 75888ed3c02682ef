"""Every hypothesis at intermediate states of a run, against models trained only up to there."""

from functools import partial
from itertools import product

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics.pairwise import polynomial_kernel

from papers.hypotheses import draw_hypothesis_errors, hypothesis_errors
from problems import first_order
from sparsemargin import (
    ALMAClassifier,
    CRAMMAClassifier,
    MarginPerceptron,
    PNormPerceptron,
    ROMMAClassifier,
)
from sparsemargin._engine.replay.replayed import points_of
from sparsemargin.kernels import Polynomial

# Models with few trials warn that they have not converged.
pytestmark = pytest.mark.filterwarnings("ignore:Stopped after")

MOMENTS = [0.01, 0.5, 1.3, 2.5]
HYPOTHESES = {
    f"{name}{'_normalized' * on}": {"hypothesis": name, "normalize_hypotheses": on}
    for name, on in product(("last", "average", "random", "vote"), (False, True))
    if (name, on) != ("vote", True)
}
RULES = {
    "perceptron": PNormPerceptron(normalize=False, fit_intercept=False),
    "pnorm": PNormPerceptron(intercept_scaling=1.0),
    "alma": ALMAClassifier(alpha=0.7),
    "margin": MarginPerceptron(margin=0.5, soft_margin=0.5),
    "romma": ROMMAClassifier(),
    "aggressive": ROMMAClassifier(aggressive=True),
    "cramma": CRAMMAClassifier(beta=0.5, eta0=0.3, delta=0.1),
}
SPACES = {
    "linear": {},
    "p = 6": {"p": 6},
    "p = 21.5": {"p": 21.5},
    "poly": {"kernel": Polynomial(coef0=1.0, gamma=0.1)},
    "rbf": {"kernel": "rbf"},
}
VOTE = {"hypothesis": "vote"}
# Each has two or three classes, alternately.
CASES = [
    (rule, space, 2 + i % 2)
    for i, (rule, space) in enumerate(product(RULES, SPACES))
    if not space.startswith("p = ") or rule in ("perceptron", "pnorm", "alma", "margin")
]


def make_problem(n_classes=2, m=90, n=12, noise=0.1):
    """Return sparse rows, names of their labels, and test rows with names."""
    problem = first_order.make_problem(0, m + 40, n, 0.6, noise, n_classes)
    X, names = problem.X, np.array(["cow", "ant", "bee"])[problem.y]
    return X[:m], names[:m], X[m:], names[m:]


def outputs_at_moments(model, X_test, trials):
    """Return the outputs by hypothesis, in the units of X, shape (n_moments, n_rows, n_vectors)."""
    rows = model.check_test_rows(X_test)
    shape = len(trials), X_test.shape[0], model.space.n_vectors
    found = {name: np.full(shape, np.nan) for name in HYPOTHESES}
    by_moment = model.space.outputs_by_moment(rows, trials, model.fitted.slice_seed, 1)
    for which, moment, outputs in by_moment:
        for name, values in outputs.items():
            found[name][moment, which] = values
    if not model.space.has_support:
        exponents = points_of(rows, model.space.bias)[1]
        for name in set(found) - {"vote"}:
            found[name] = np.ldexp(found[name], exponents)
    return found


def check_moments(model, data, moments=MOMENTS, tolerance=1e-9, **weights):
    """Compare a fitted model with models trained from scratch."""
    X, y, X_test, y_test = data
    curve = hypothesis_errors(model, X_test, y_test, moments)
    trials = [max(1, round(moment * model.fitted.trials_per_epoch)) for moment in moments]
    found = outputs_at_moments(model, X_test, trials)
    assert set(curve.errors) == set(HYPOTHESES)
    for name, parameters in HYPOTHESES.items():
        own = {key: parameters[key] for key in parameters.keys() & model.get_params().keys()}
        if len(own) < len(parameters) and parameters["normalize_hypotheses"]:
            continue  # ALMA and CRAMMA have no such models
        for k, moment in enumerate(moments):
            afresh = clone(model).set_params(max_iter=moment, warm_start=False, **own)
            afresh.fit(X, y, **weights)
            expected = afresh.decision_function(X_test).reshape(found[name][k].shape)
            error = tolerance * np.abs(expected).max()
            np.testing.assert_allclose(found[name][k], expected, rtol=0, atol=error, err_msg=name)
            assert curve.errors[name][k] == np.mean(afresh.predict(X_test) != y_test)
            np.testing.assert_array_equal(curve.n_corrections[k], afresh.n_corrections_)
            if afresh.space.has_support:
                assert curve.n_support[k] == len(afresh.support_)


@pytest.mark.parametrize(("rule", "space", "n_classes"), CASES)
def test_errors_equal_those_of_shorter_trained_models(rule, space, n_classes):
    data = make_problem(n_classes)
    parameters = {"hypothesis": "vote", "shuffle": True, "random_state": 3, "max_iter": 2.5}
    model = clone(RULES[rule]).set_params(**parameters, **SPACES[space])
    check_moments(model.fit(*data[:2]), data)


LOGS = {
    "normalized, linear": PNormPerceptron(hypothesis="vote", normalize_hypotheses=True),
    "normalized, p = 6": PNormPerceptron(p=6, hypothesis="random", normalize_hypotheses=True),
    "normalized, poly": PNormPerceptron(normalize_hypotheses=True, **VOTE, **SPACES["poly"]),
    "labels that stop": PNormPerceptron(max_corrections=12, **VOTE),
    "labels that stop, rbf": PNormPerceptron(max_corrections=12, kernel="rbf", **VOTE),
    "float32": PNormPerceptron(kernel="rbf", **VOTE),
}


@pytest.mark.parametrize("name", LOGS)
def test_logs_cover_three_classes(name):
    X, y, X_test, y_test = make_problem(3)
    dtype = np.float32 if name == "float32" else np.float64
    data = X.astype(dtype), y, X_test.astype(dtype), y_test
    model = clone(LOGS[name]).set_params(max_iter=2, random_state=0).fit(*data[:2])
    assert (model.space.per_vector("stopped") >= 0).any() == ("stop" in name)
    last = model.space.trials / len(y)
    moments = [moment for moment in (0.01, 0.5, 1.3) if moment < last] + [last]
    check_moments(model, data, moments, tolerance=1e-9 if dtype is np.float64 else 1e-4)


@pytest.mark.parametrize("space", ["linear", "rbf"])
def test_skipped_epochs_count(space):
    data = make_problem(m=60, n=20, noise=0)
    model = PNormPerceptron(max_iter=500, random_state=0, **VOTE, **SPACES[space])
    assert model.fit(*data[:2]).n_iter_ < 500
    check_moments(model, data, [1, 20, 500])


def test_rows_of_weight_zero_are_skipped():
    data = make_problem()
    weights = {"sample_weight": np.where(np.arange(len(data[1])) % 3, 2.0, 0.0)}
    model = ALMAClassifier(max_iter=2, random_state=0, **VOTE)
    check_moments(model.fit(*data[:2], **weights), data, [1, 2], **weights)
    model = PNormPerceptron(max_iter=1, shuffle=False, random_state=0, warm_start=True, **VOTE)
    for _ in range(3):
        model.fit(*data[:2])
    check_moments(model, data, [0.5, 1.5, 3])


@pytest.mark.parametrize("p", [2, 10])
def test_averages_avoid_cancellation(p):
    # Early vectors outweigh later ones by a factor of a million, and most points change rarely.
    X, *others = make_problem(m=400, n=60)
    data = sp.csr_matrix(X.multiply(np.logspace(-4, 4, 400)[:, np.newaxis])), *others
    how = {"normalize": False, "normalize_hypotheses": True, "random_state": 0, **VOTE}
    model = PNormPerceptron(p=p, max_iter=2, **how)
    check_moments(model.fit(*data[:2]), data, [0.5, 1, 2], tolerance=1e-8)


def test_hypothesis_errors_support_kernels_and_dense_rows():
    X, y, X_test, y_test = make_problem(3)
    X, X_test = X.toarray(), X_test.toarray()
    cubic = partial(polynomial_kernel, degree=3, gamma=1.0, coef0=1.0)
    cases = [
        ({"kernel": Polynomial(coef0=1.0, gamma=1.0)}, X, X_test),
        ({"kernel": cubic}, X, X_test),
        ({"kernel": "precomputed"}, cubic(X, X), cubic(X_test, X)),
    ]
    curves = []
    for kernel, rows, points in cases:
        model = PNormPerceptron(max_iter=2, random_state=0, **VOTE, **kernel).fit(rows, y)
        curves.append(hypothesis_errors(model, points, y_test, [0.5, 2]))
    first, *others = curves
    for curve in others:
        np.testing.assert_array_equal(curve.n_corrections, first.n_corrections)
        for name in set(HYPOTHESES) - {"random", "random_normalized"}:
            np.testing.assert_array_equal(curve.errors[name], first.errors[name])


def test_points_beyond_one_replay_are_evaluated(monkeypatch):
    X, y, X_test, y_test = make_problem(3)
    for space in ("linear", "poly"):
        model = ALMAClassifier(hypothesis="vote", max_iter=1, random_state=0, **SPACES[space])
        model.fit(X, y)
        whole = hypothesis_errors(model, X_test, y_test, [0.5, 1])
        with monkeypatch.context() as patched:
            patched.setattr("sparsemargin._engine.replay.replayed._POINTS_WITH_MOMENTS", 7)
            patched.setattr("sparsemargin._engine.kernel.outputs._POINTS", 7)
            parts = hypothesis_errors(model, X_test, y_test, [0.5, 1])
        for name, errors in whole.errors.items():
            np.testing.assert_array_equal(parts.errors[name], errors)


def test_unknown_label_is_counted_as_an_error():
    X, y, X_test, _ = make_problem(3)
    model = PNormPerceptron(max_iter=1, random_state=0, **VOTE).fit(X, y)
    unknown = hypothesis_errors(model, X_test, np.full(X_test.shape[0], "dog"), [1])
    assert all(errors.tolist() == [1.0] for errors in unknown.errors.values())


def of_labels_that_learned_on(X, y):
    model = PNormPerceptron(max_corrections=12, max_iter=1, warm_start=True, **VOTE)
    return model.fit(X, y).set_params(max_corrections=None).fit(X, y)


@pytest.mark.parametrize(("fit", "moments", "message"), [
    (PNormPerceptron().fit, [1], "keeps no log"),
    (PNormPerceptron(kernel="rbf").fit, [1], "keeps no log"),
    (PNormPerceptron(max_iter=1, **VOTE).fit, [0.5, 1.5], "reach 1.5 epochs"),
    (of_labels_that_learned_on, [1], "after max_corrections had stopped it"),
])  # fmt: skip
def test_models_without_a_log_are_rejected(fit, moments, message):
    X, y, X_test, y_test = make_problem(3)
    with pytest.raises(ValueError, match=message):
        hypothesis_errors(fit(X, y), X_test, y_test, moments)


def test_hypotheses_are_drawn_as_replayed():
    X, y, *test = make_problem()
    model = PNormPerceptron(p=6, max_iter=3, random_state=0, **VOTE).fit(X, y)
    found, (figure, axes) = hypothesis_errors(model, *test, [0.5, 1, 2, 3]), plt.subplots()
    draw_hypothesis_errors(found, axes, ("random", "vote"))
    for name, line in zip(("random", "vote"), axes.lines, strict=True):
        np.testing.assert_array_equal(line.get_data(), [found.moments, 100 * found.errors[name]])
    plt.close(figure)
