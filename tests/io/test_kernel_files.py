"""Models with a kernel in files, made of files, and from the command line."""

import copy
import json
import pickle
import re
from functools import partial

import joblib
import numpy as np
import pytest
import scipy.sparse as sp

from depth import pairwise
from problems.command_line import run, three_classes, write
from problems.hostile import at, opened, rewritten
from problems.models import HYPOTHESES, assert_same, fit, make_problem, outputs, widened
from sparsemargin import (
    ALMAClassifier,
    CRAMMAClassifier,
    HigherOrderPerceptron,
    PNormPerceptron,
    ROMMAClassifier,
    fit_svmlight,
    load_svmlight,
)
from sparsemargin.io import sources
from sparsemargin.io.model_files import load_model, read_summary, save_model
from sparsemargin.io.readable import write_readable

KERNELS = {
    "poly": {"kernel": "poly", "degree": 3, "gamma": 0.5, "coef0": 1.0},
    "poly without a constant": {"kernel": "poly", "degree": 2, "gamma": 0.5},
    "rbf": {"kernel": "rbf"},
    "polyrbf": {"kernel": "polyrbf", "gamma": "auto"},
    "precomputed": {"kernel": "precomputed"},
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.model"


def problem(kernel, *, wide=False, n_classes=2, dtype="f8"):
    """Rows, or their products; wide ones are kept sparse."""
    X, y = make_problem(n_classes=n_classes, dtype=dtype)
    X = widened(X) if wide else X
    if kernel == "precomputed":
        X = (X @ X.T).toarray()
    return X, y


@pytest.mark.parametrize(
    ("kernel", "hypothesis", "rows", "wide"),
    pairwise(list(KERNELS), HYPOTHESES, [("f4", 2), ("f4", 3), ("f8", 3)], [False, True]),
)
def test_a_model_comes_back_and_learns_on_to_the_bit(kernel, hypothesis, rows, wide, path):
    dtype, n_classes = rows
    X, y = problem(kernel, wide=wide, n_classes=n_classes, dtype=dtype)
    model = ALMAClassifier(
        **KERNELS[kernel], hypothesis=hypothesis, fit_intercept=True, random_state=0
    )
    first = slice(None) if kernel == "precomputed" else slice(50)
    model.fit(X[first], y[first])
    assert model._space.support.is_sparse == (wide and kernel != "precomputed")
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
        (ALMAClassifier(normalize="running"), "rbf"), (ALMAClassifier(), "precomputed"),
        (CRAMMAClassifier(radius=3.0, eta0=0.01), "rbf"), (ROMMAClassifier(), "precomputed"),
    ],
)  # fmt: skip
def test_a_warm_start_goes_on_from_a_file(rule, kernel, path):
    X, y = problem(kernel, n_classes=3)
    model = rule.set_params(
        **KERNELS[kernel], max_iter=2, soft_margin=0.5, warm_start=True, random_state=0,
        max_support=80,
    )  # fmt: skip
    save_model(fit(model, X, y), path)
    assert_same(fit(load_model(path), X, y), fit(model, X, y))


def test_a_model_in_a_read_only_memory_map_learns_on(tmp_path):
    X, y = problem("rbf")
    model = ALMAClassifier(kernel="rbf", warm_start=True, max_iter=2, random_state=0)
    joblib.dump(model.fit(X, y), tmp_path / "a.joblib")
    mapped = joblib.load(tmp_path / "a.joblib", mmap_mode="r")
    assert outputs(fit(mapped, X, y), X) == outputs(fit(model, X, y), X)
    assert outputs(mapped.partial_fit(X, 1 - y), X) == outputs(model.partial_fit(X, 1 - y), X)


def dot(X, Z):
    return np.asarray((X @ Z.T).todense()) if sp.issparse(X) else X @ Z.T


def test_a_function_is_pickled_by_its_name_and_never_in_a_model_file(path):
    X, y = problem("rbf")
    for rows in X, X.toarray():
        model = PNormPerceptron(kernel=dot, random_state=0).fit(rows, y)
        again = pickle.loads(pickle.dumps(model))
        assert outputs(again, rows) == outputs(model, rows)
        assert again._space.kernel.function is dot
        with pytest.raises(ValueError, match=r"a function for its kernel.*kernel='precomputed'"):
            save_model(model, path)
        with pytest.raises(ValueError, match=r"_space\.kernel\.function is of type"):
            save_model(model.set_params(kernel="rbf"), path)
    assert not path.exists()


def test_precomputed_rows_do_not_go_on_in_a_stream(path):
    X, y = problem("precomputed")
    save_model(PNormPerceptron(kernel="precomputed").fit(X, y), path)
    for kernel in "precomputed", "rbf":
        with pytest.raises(ValueError, match="the kernel of all pairs of rows"):
            load_model(path).set_params(kernel=kernel).partial_fit(X, y)


SPACE = ("state", "_space", "KernelSpace")
KERNEL = (*SPACE, "kernel", "dict")
poly = ALMAClassifier(kernel="poly", gamma=0.5, coef0=1.0, random_state=0)
vote = ALMAClassifier(kernel="rbf", hypothesis="vote", random_state=0)
given = ALMAClassifier(kernel="precomputed", random_state=0)


def put(place, value):
    def change(array):
        array = array.copy()
        array[place] = value
        return array

    return change


def cut(array):
    return array[1:]


CHANGES = [
    (poly, False, (*SPACE, "n_features"), 24, "'n_features_in_' is not|'matrix' is not an array"),
    (poly, False, (*SPACE, "n_labels"), 4, "is not an array|not of 3 labels"),
    (poly, False, (*SPACE, "max_support"), 0, "'max_support' is not a whole number"),
    (poly, False, (*SPACE, "rows_taken"), -1, "'rows_taken' is not a whole number"),
    (poly, False, (*KERNEL, "kind"), "os", "there is no kernel 'os'"),
    (poly, False, (*KERNEL, "kind"), "CallableKernel", "it has no 'function'"),
    (poly, False, (*KERNEL, "kind"), "PrecomputedKernel", "'matrix' is not an array of int64"),
    (poly, False, (*KERNEL, "degree"), 0, "'degree' is not a whole number"),
    (poly, False, (*KERNEL, "degree"), 2**31, "'degree' is not a whole number"),
    (poly, False, (*KERNEL, "gamma"), 0.0, "'gamma' is not a number"),
    (poly, False, (*KERNEL, "gamma"), np.inf, "'gamma' is not a number"),
    (poly, False, (*KERNEL, "coef0"), 0.0, "'matrix' is not an array"),
    (poly, False, (*KERNEL, "coef0"), np.nan, "'coef0' is not a number"),
    (poly, False, (*KERNEL, "dense"), False, "it has no 'indices'"),
    (poly, True, (*KERNEL, "dense"), True, "it has no 'matrix'"),
    (poly, False, "_space.pool.matrix", cut, "'matrix' is not an array"),
    (poly, False, "_space.pool.matrix", lambda m: m.astype("i8"), "'matrix' is not of a type"),
    (poly, False, "_space.pool.lengths", cut, "is not an array"),
    (poly, False, "_space.pool.lengths", put(0, np.nan), "'lengths' are out of range"),
    (poly, False, "_space.pool.squares", put(0, -1.0), "'squares' are out of range"),
    (poly, True, "_space.pool.indices", put(0, 3025), "'indices' holds 3025"),
    (poly, True, "_space.pool.indices", put(0, -1), "'indices' holds -1"),
    (poly, True, "_space.pool.indices", lambda i: i.astype("i4"), "'indices' is not an array"),
    (poly, True, "_space.pool.data", cut, "'data' is not an array"),
    (poly, True, "_space.pool.ends", put(0, 10**6), "'ends' falls"),
    (poly, True, "_space.pool.ends", put(-1, 7), "'ends' does not lead from 0"),
    (poly, False, "_space.t", lambda t: t[:, 1:], "'t' is not an array"),
    (poly, False, "_space.t", lambda t: t.astype("f4"), "'t' is not an array"),
    (poly, False, "_space.acc", lambda acc: acc[:, :0], "'acc' is not an array"),
    (poly, False, "_space.origin", cut, "'origin' is not an array"),
    (poly, False, "_space.passed_over", put(0, -1), "'passed_over' holds -1"),
    (poly, False, "_space.labels.corrections", put(0, 2**62), "'corrections' holds"),
    (vote, False, "_space.log.row", put(0, 10**6), "'row' holds"),
    (vote, False, "_space.log.row", put(0, -1), "'row' holds -1"),
    (vote, False, "_space.log.label", put(0, 3), "'label' holds 3"),
    (vote, False, (*SPACE, "log"), None, "has another hypothesis"),
    (given, False, "_space.pool.matrix", put(0, 80), "'matrix' holds 80"),
    (given, False, "_space.pool.matrix", put(0, -1), "'matrix' holds -1"),
    (poly, False, ("class",), "MaxMarginClassifier", "'_space' is none of MaxMarginClassifier"),
    (poly, False, ("class",), "SecondOrderPerceptron", "'_space' is none of SecondOrder"),
    (poly, False, ("state", "_rule"), None, "'_rule' is no rule"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "wide", "place", "change", "message"), CHANGES)
def test_what_no_model_holds_is_refused_by_name(model, wide, place, change, message, path):
    X, y = problem(model.kernel, wide=wide, n_classes=3)
    save_model(model.fit(X, y), path)
    document, arrays = opened(path)
    if isinstance(place, str):
        arrays[place] = change(arrays[place])
    else:
        assert place[-1] in at(document, place[:-1])
        at(document, place[:-1])[place[-1]] = change
    rewritten(path, document, arrays)
    for load in load_model, read_summary:
        with pytest.raises(ValueError, match=f"^{path}: .*({message})"):
            load(path)


@pytest.mark.parametrize(
    "make", [ALMAClassifier, partial(HigherOrderPerceptron, solver="dual")], ids=["ALMA", "dual"]
)
@pytest.mark.parametrize("change", [cut, put(0, 80), put(0, -2), lambda kept: kept.astype("i4")])
def test_slots_that_rows_had_are_checked_when_they_come_again(make, change, path):
    X, y = problem("rbf")
    save_model(make(kernel="rbf", warm_start=True).fit(X, y), path)
    document, arrays = opened(path)
    rewritten(path, document, {**arrays, "_learned.1.0": change(arrays["_learned.1.0"])})
    with pytest.raises(ValueError, match=r"'slots' (is not an array|holds)"):
        load_model(path).fit(X, y)


@pytest.fixture
def text(tmp_path, monkeypatch):
    """Three classes, in many blocks."""
    monkeypatch.setattr(sources, "BLOCK_BYTES", 4096)
    return three_classes(tmp_path)[0]


STREAM = {"kernel": "rbf", "gamma": 0.1, "max_support": 400}


@pytest.mark.parametrize(
    ("features", "coef0", "epochs"),
    pairwise([{}, {"n_features": 3000}, {"n_features": 3500}], [0.0, 1.0], [1, 3]),
)
def test_epochs_of_a_file_are_those_of_a_fit(text, features, coef0, epochs):
    """Features may come as they like, and rows that have joined the pool join it once."""
    params = {**STREAM, "kernel": "poly", "coef0": coef0, "max_iter": epochs, "shuffle": False}
    streamed = fit_svmlight(text, "perceptron", **params, **features)
    X, y = load_svmlight(text, **features)
    fitted = PNormPerceptron(normalize=False, **params).fit(X, y)
    assert streamed.n_features_in_ == fitted.n_features_in_
    assert streamed.support_.tolist() == fitted.support_.tolist()
    np.testing.assert_allclose(streamed.dual_coef_, fitted.dual_coef_, rtol=1e-9)
    np.testing.assert_allclose(
        streamed.decision_function(X), fitted.decision_function(X), rtol=1e-7, atol=1e-12
    )


def test_shuffled_epochs_let_no_row_join_twice(text):
    model = fit_svmlight(text, **{**STREAM, "gamma": "auto"}, hash_bits=6, max_iter=5)
    assert model.gamma_ == 1 / 64
    assert len(np.unique(model.support_)) == len(model.support_) <= 400
    assert model._space.rows_taken == 400


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("coef0", [0.0, 1.0])
def test_features_are_renumbered(wide, coef0):
    """Those that come are 0 in all rows there are; one that turns out to be none goes."""
    X, y = problem("poly", wide=wide)
    X = sp.hstack([sp.csr_matrix((80, 1)), X], format="csr")
    model = PNormPerceptron(kernel="poly", gamma=0.5, coef0=coef0).fit(X, y)
    expected = model.decision_function(X)
    n = X.shape[1] - 1 + 7
    model._space.resize(n, 1)
    model.n_features_in_ = n
    shifted = sp.hstack([X[:, 1:], sp.csr_matrix((80, 7))], format="csr")
    np.testing.assert_allclose(model.decision_function(shifted), expected, rtol=1e-12, atol=1e-12)


def test_going_on_from_a_model_of_a_matrix_takes_rows_for_new_ones(text):
    X, y = load_svmlight(text)
    model = ALMAClassifier(**{**STREAM, "max_support": 900, "gamma": "scale"}, random_state=0)
    model.fit(X[:200], y[:200])
    before = model.decision_function(X)
    went_on = fit_svmlight(text, init_model=model)
    assert (model.decision_function(X) == before).all()
    assert went_on.support_[: len(model.support_)].tolist() == model.support_.tolist()
    assert len(np.unique(went_on.support_)) == len(went_on.support_)
    stepwise = copy.deepcopy(model).partial_fit(X, y)
    np.testing.assert_allclose(went_on.dual_coef_, stepwise.dual_coef_, rtol=1e-9)


def test_a_full_pool_ends_a_stream_or_is_told(text):
    small = {**STREAM, "max_support": 10}
    with pytest.raises(ValueError, match=r"After [0-9]+ trials another row.*max_support=10"):
        fit_svmlight(text, **small)
    with pytest.warns(UserWarning, match="holds max_support=10 rows") as told:
        model = fit_svmlight(text, **small, when_full="skip")
    assert len(told) == 1
    assert len(model.support_) == 10
    assert model.n_passed_over_.sum() > 0


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"max_support": None}, "max_support=None keeps every row that makes a correction"),
        ({"gamma": "scale"}, "gamma='scale' needs the variance of all rows"),
        ({"gamma": "auto"}, "pass n_features, or hash_bits"),
        ({"kernel": "precomputed"}, "needs the kernel of all pairs of rows"),
        ({"memory_limit": 15_000, "n_features": 3000}, "raise it"),
        ({"memory_limit": 50_000, "n_features": 3000}, "rows take .* memory_limit=50,000"),
    ],
)
def test_what_cannot_stream_is_refused_with_the_remedy(text, params, words):
    with pytest.raises(ValueError, match=f"(?i){words}"):
        fit_svmlight(text, **{**STREAM, **params})


OPTIONS = ["--kernel", "rbf", "--gamma", 0.1, "--max-support", 400]


def test_commands_make_the_model_of_fit_svmlight_tell_of_it_and_use_it(text, path, tmp_path):
    figures = json.loads(run("train", text, "-o", path, "-q", "--json", *OPTIONS).stdout)
    model = fit_svmlight(text, **STREAM, random_state=0)
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
    figures = json.loads(run("evaluate", path, text, "--json").stdout)
    assert figures["accuracy"] == pytest.approx(model.score(X, y))
    assert figures["margins"]["least"] < figures["margins"]["largest"]
    run("train", text, "-o", path, "-q", "--init", path, code=1)
    with pytest.raises(ValueError, match="Raise max_support"):
        fit_svmlight(text, init_model=model)


@pytest.mark.parametrize("hypothesis", ["last", "average", "vote"])
def test_precomputed_rows_in_a_file_are_predicted(hypothesis, path, tmp_path):
    """They tell no lengths, by which outputs would become margins."""
    X, y = problem("precomputed")
    model = PNormPerceptron(kernel="precomputed", hypothesis=hypothesis, random_state=0).fit(X, y)
    save_model(model, path)
    rows = write(tmp_path / "rows.svm", X, y)
    figures = json.loads(run("evaluate", path, rows, "--json").stdout)
    assert figures["accuracy"] == pytest.approx(model.score(X, y))
    assert (figures["margins"] is None) == (hypothesis != "vote")


def test_what_the_command_refuses_leaves_no_model(text, path):
    for options, code, words in [
        ("--kernel rbf --gamma 0.1", 1, "Pass max_support=1000, say"),
        ("--kernel cosine", 2, "cosine is not linear|poly|polyrbf|precomputed|rbf"),
    ]:
        assert words in run("train", text, "-o", path, *options.split(), code=code).stderr
        assert not path.exists()


def test_coefficients_as_text(text, path, tmp_path):
    run("train", text, "-o", path, "-q", *OPTIONS, "--readable", tmp_path / "a.txt")
    model = load_model(path)
    rows = [*map(str, model.support_), "(intercept)"]
    values = np.column_stack([model.dual_coef_, model.intercept_])
    expected = {
        (str(label), row): value
        for label, of_label in zip(model.classes_, values, strict=True)
        for row, value in zip(rows, of_label, strict=True)
        if value
    }
    lines = [line.split("\t") for line in (tmp_path / "a.txt").read_text().splitlines()]
    found = {(line[0], line[1]): float(line[2]) for line in lines if not line[0].startswith("#")}
    assert found == expected
    with pytest.raises(ValueError, match="a model with a kernel has coefficients of rows"):
        write_readable(tmp_path / "b.txt", model, ["a"] * model.n_features_in_)
    voting = PNormPerceptron(kernel="rbf", hypothesis="vote").fit(*problem("rbf"))
    with pytest.raises(ValueError, match="no single weight vector"):
        write_readable(tmp_path / "b.txt", voting)
