"""Models with a kernel: saved to files, trained on files, and used from the command line."""

import copy
import json
import pickle
import re
from dataclasses import replace

import joblib
import numpy as np
import pytest
import scipy.sparse as sp

from depth import pairwise
from problems.command_line import evaluated, run, three_classes, write
from problems.models import HYPOTHESES, assert_same, fit, make_problem, outputs, widened
from sparsemargin import (
    ALMAClassifier,
    CRAMMAClassifier,
    PNormPerceptron,
    ROMMAClassifier,
    fit_svmlight,
    load_svmlight,
)
from sparsemargin.files import sources
from sparsemargin.kernels import RBF, Polynomial, PolynomialRBF
from sparsemargin.saving.model_files import read_summary, save_model
from sparsemargin.saving.readable import write_readable
from sparsemargin.tasks.load_model import load_model

KERNELS = {
    "poly": {"kernel": Polynomial(3, gamma=0.5, coef0=1.0)},
    "poly without a constant": {"kernel": Polynomial(2, gamma=0.5)},
    "rbf": {"kernel": "rbf"},
    "polyrbf": {"kernel": PolynomialRBF(gamma="auto")},
    "precomputed": {"kernel": "precomputed"},
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.model"


def problem(kernel, *, wide=False, n_classes=2, dtype="f8"):
    """Return rows (their products for a precomputed kernel) and labels; wide rows are sparse."""
    X, y = make_problem(n_classes=n_classes, dtype=dtype)
    if kernel == "precomputed":
        return (X @ X.T).toarray(), y
    return widened(X) if wide else X, y


@pytest.mark.parametrize(
    ("kernel", "hypothesis", "rows", "wide"),
    pairwise(list(KERNELS), HYPOTHESES, [("f4", 2), ("f4", 3), ("f8", 3)], [False, True]),
)
def test_saved_kernel_model_continues_bitwise_equally(kernel, hypothesis, rows, wide, path):
    dtype, n_classes = rows
    X, y = problem(kernel, wide=wide, n_classes=n_classes, dtype=dtype)
    model = ALMAClassifier(
        **KERNELS[kernel], hypothesis=hypothesis, fit_intercept=True, random_state=0
    )
    first = slice(None) if kernel == "precomputed" else slice(50)
    model.fit(X[first], y[first])
    assert model.space.support.is_sparse == (wide and kernel != "precomputed")
    later = copy.deepcopy(model)
    if kernel != "precomputed":
        later.partial_fit(X[50:], y[50:])
    save_model(model, path)
    for other in load_model(path), pickle.loads(pickle.dumps(model)), copy.deepcopy(model):
        assert_same(other, model)
        assert outputs(other, X) == outputs(model, X)
        assert other.support_.tolist() == model.support_.tolist()
        if kernel != "precomputed":
            assert_same(other.partial_fit(X[50:], y[50:]), later)
    assert read_summary(path)["n_support"] == len(model.support_)


@pytest.mark.parametrize(
    ("rule", "kernel"),
    [
        (ALMAClassifier(normalize="running"), "rbf"),
        (CRAMMAClassifier(radius=3.0, eta0=0.01), "rbf"),
        (ROMMAClassifier(), "precomputed"),
    ],
)
def test_warm_start_continues_from_a_file(rule, kernel, path):
    X, y = problem(kernel, n_classes=3)
    more = {"max_iter": 2, "soft_margin": 0.5, "warm_start": True}
    model = rule.set_params(**KERNELS[kernel], random_state=0, **more)
    save_model(fit(model, X, y), path)
    assert_same(fit(load_model(path), X, y), fit(model, X, y))


def test_memory_mapped_model_continues_training(path):
    X, y = problem("rbf")
    model = ALMAClassifier(kernel="rbf", warm_start=True, max_iter=2, random_state=0)
    joblib.dump(model.fit(X, y), path)
    mapped = joblib.load(path, mmap_mode="r")
    assert outputs(fit(mapped, X, y), X) == outputs(fit(model, X, y), X)
    assert outputs(mapped.partial_fit(X, 1 - y), X) == outputs(model.partial_fit(X, 1 - y), X)


def dot(X, Z):
    return np.asarray((X @ Z.T).todense()) if sp.issparse(X) else X @ Z.T


def test_kernel_function_is_pickled_but_not_saved(path):
    X, y = problem("rbf")
    for rows in X, X.toarray():
        model = PNormPerceptron(kernel=dot, random_state=0).fit(rows, y)
        again = pickle.loads(pickle.dumps(model))
        assert outputs(again, rows) == outputs(model, rows)
        assert again.space.kernel.function is dot
        with pytest.raises(ValueError, match=r"is a function.*kernel='precomputed'"):
            save_model(model, path)
        with pytest.raises(ValueError, match=r"space\.kernel\.function is of type"):
            save_model(model.set_params(kernel="rbf"), path)
    assert not path.exists()


def test_precomputed_kernel_rejects_partial_fit(path):
    X, y = problem("precomputed")
    save_model(PNormPerceptron(kernel="precomputed").fit(X, y), path)
    for kernel in "precomputed", "rbf":
        with pytest.raises(ValueError, match="the kernel of all pairs of rows"):
            load_model(path).set_params(kernel=kernel).partial_fit(X, y)


@pytest.fixture
def text(tmp_path, monkeypatch):
    """Return the path of a file with three classes, which is read in many blocks."""
    monkeypatch.setattr(sources, "BLOCK_BYTES", 4096)
    return three_classes(tmp_path)[0]


STREAM = {"kernel": RBF(0.1, max_support=400)}
ALGO = "alma"  # An algorithm must be named, as the default one has no kernels.


@pytest.mark.parametrize(
    ("features", "coef0", "epochs"),
    pairwise([{}, {"n_features": 3000}, {"n_features": 3500}], [0.0, 1.0], [1, 3]),
)
def test_epochs_of_a_file_equal_those_of_a_fit(text, features, coef0, epochs):
    """New features may occur in any row, and a row joins the pool only once."""
    kernel = Polynomial(gamma=0.1, coef0=coef0, max_support=400)
    params = {"kernel": kernel, "max_iter": epochs, "shuffle": False}
    streamed = fit_svmlight(text, "perceptron", **params, **features)
    X, y = load_svmlight(text, **features)
    fitted = PNormPerceptron(normalize=False, **params).fit(X, y)
    assert streamed.n_features_in_ == fitted.n_features_in_
    assert streamed.support_.tolist() == fitted.support_.tolist()
    np.testing.assert_allclose(streamed.dual_coef_, fitted.dual_coef_, rtol=1e-9)
    ours, theirs = streamed.decision_function(X), fitted.decision_function(X)
    np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-12)


def test_shuffled_epochs_add_each_row_once(text):
    kernel = RBF("auto", max_support=400)
    model = fit_svmlight(text, ALGO, kernel=kernel, hash_bits=6, max_iter=5)
    assert model.gamma_ == 1 / 64
    assert len(np.unique(model.support_)) == len(model.support_) <= 400
    assert model.space.rows_taken == 400


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("coef0", [0.0, 1.0])
def test_features_are_renumbered(wide, coef0):
    """Added features are 0 in the rows of the pool, and an unused column 0 is removed."""
    X, y = problem("poly", wide=wide)
    X = sp.hstack([sp.csr_matrix((80, 1)), X], format="csr")
    model = PNormPerceptron(kernel=Polynomial(gamma=0.5, coef0=coef0)).fit(X, y)
    expected = model.decision_function(X)
    shifted = sp.hstack([X[:, 1:], sp.csr_matrix((80, 7))], format="csr")
    model.n_features_in_ = shifted.shape[1]
    model.space.resize(shifted.shape[1], 1)
    np.testing.assert_allclose(model.decision_function(shifted), expected, rtol=1e-12, atol=1e-12)


def test_continued_matrix_model_treats_rows_as_new(text):
    X, y = load_svmlight(text)
    model = ALMAClassifier(kernel=RBF(max_support=900), random_state=0)
    model.fit(X[:200], y[:200])
    went_on = fit_svmlight(text, init_model=model)
    assert went_on.support_[: len(model.support_)].tolist() == model.support_.tolist()
    assert len(np.unique(went_on.support_)) == len(went_on.support_)
    stepwise = copy.deepcopy(model).partial_fit(X, y)
    np.testing.assert_allclose(went_on.dual_coef_, stepwise.dual_coef_, rtol=1e-9)


def test_full_pool_stops_a_stream_or_warns(text):
    small = RBF(0.1, max_support=10)
    with pytest.raises(ValueError, match=r"After [0-9]+ trials another row.*max_support=10"):
        fit_svmlight(text, ALGO, kernel=small)
    with pytest.warns(UserWarning, match="holds max_support=10 rows") as told:
        model = fit_svmlight(text, ALGO, kernel=replace(small, when_full="skip"))
    assert len(told) == 1
    assert len(model.support_) == 10
    assert model.n_passed_over_.sum() > 0


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"kernel": RBF(0.1)}, "max_support=None keeps every row that .*Pass max_support=1000"),
        ({"kernel": RBF(max_support=9)}, "gamma='scale' needs the variance of all rows"),
        ({"kernel": RBF("auto", max_support=9)}, "pass n_features, or hash_bits"),
        ({"kernel": "precomputed"}, "needs the kernel of all pairs of rows"),
        ({"memory_limit": 15_000, "n_features": 3000}, "raise it"),
        ({"memory_limit": 50_000, "n_features": 3000}, "rows take .* memory_limit=50,000"),
    ],
)
def test_kernels_that_cannot_stream_are_rejected(text, params, words):
    with pytest.raises(ValueError, match=f"(?i){words}"):
        fit_svmlight(text, ALGO, **{**STREAM, **params})


OPTIONS = ["--algo", ALGO, "--kernel", "rbf", "--gamma", 0.1, "--max-support", 400]


def test_commands_train_inspect_and_use_kernel_models(text, path, tmp_path):
    figures = json.loads(run("train", text, "-o", path, "-q", "--json", *OPTIONS).stdout)
    model = fit_svmlight(text, ALGO, **STREAM, random_state=0)
    save_model(model, tmp_path / "other")
    assert path.read_bytes() == (tmp_path / "other").read_bytes()
    n = len(model.support_)
    assert (figures["support_rows"], figures["passed_over"]) == (n, 0)
    assert re.search(rf"support rows +{n}\n", run("train", text, "-o", path, *OPTIONS).stderr)
    assert f"support rows  {n}\n" in run("info", path).stdout
    assert "has no weights to show" in run("inspect", path).stdout
    assert json.loads(run("inspect", path, "--json").stdout)["n_support"] == n
    X, y = load_svmlight(text)
    assert run("predict", path, text).stdout.split() == model.predict(X).tolist()
    lines = run("predict", path, text, "--scores").stdout.split("\n")[1:-1]
    scores = np.array([line.split("\t")[1:] for line in lines], float)
    np.testing.assert_allclose(scores, model.decision_function(X), rtol=1e-9)
    figures = evaluated(path, text)
    assert figures["accuracy"] == pytest.approx(model.score(X, y))
    assert figures["margins"]["least"] < figures["margins"]["largest"]
    run("train", text, "-o", path, "-q", "--init", path, code=1)
    with pytest.raises(ValueError, match="Raise max_support"):
        fit_svmlight(text, init_model=model)


@pytest.mark.parametrize("hypothesis", ["last", "average", "vote"])
def test_precomputed_kernel_rows_of_a_file_are_predicted(hypothesis, path, tmp_path):
    """Precomputed rows have no norms, so that outputs can't be converted to margins."""
    X, y = problem("precomputed")
    model = PNormPerceptron(kernel="precomputed", hypothesis=hypothesis, random_state=0).fit(X, y)
    save_model(model, path)
    figures = evaluated(path, write(tmp_path / "rows.svm", X, y))
    assert figures["accuracy"] == pytest.approx(model.score(X, y))
    assert (figures["margins"] is None) == (hypothesis != "vote")


def test_readable_file_lists_dual_coefficients(text, path, tmp_path):
    run("train", text, "-o", path, "-q", *OPTIONS, "--readable", tmp_path / "a.txt")
    model, expected = load_model(path), []
    rows = [*map(str, model.support_), "(intercept)"]
    for label, *values in zip(model.classes_, *model.dual_coef_.T, model.intercept_, strict=True):
        told = zip(rows, values, strict=True)
        expected += [[str(label), row, repr(float(value))] for row, value in told if value]
    lines = [line.split("\t") for line in (tmp_path / "a.txt").read_text().splitlines()]
    assert sorted(line for line in lines if line[0][0] != "#") == sorted(expected)
    with pytest.raises(ValueError, match="A model with a kernel has coefficients of rows"):
        write_readable(tmp_path / "b.txt", model, ["a"] * model.n_features_in_)
    voting = PNormPerceptron(kernel="rbf", hypothesis="vote").fit(*problem("rbf"))
    with pytest.raises(ValueError, match="no single weight vector"):
        write_readable(tmp_path / "b.txt", voting)
