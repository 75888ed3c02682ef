"""``sparsemargin convert``, ``info`` and ``inspect``: files and what is in them."""

import bz2
import json
import lzma
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse as sp
from sklearn.datasets import load_svmlight_file

from problems.command_line import run
from sparsemargin import (
    MarginPerceptron,
    PNormPerceptron,
    fit_svmlight,
    load_model,
    load_svmlight,
    save_model,
)


def convert(options, code=0):
    return run("convert", *options.split(), code=code)


def same(one, other):
    """Matrices and labels, to the bit."""
    (X, y, *q), (X_other, y_other, *q_other) = one, other
    assert X.shape == X_other.shape
    for name in ("data", "indices", "indptr"):
        a, b = getattr(X, name), getattr(X_other, name)
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes()
    assert np.array_equal(y, y_other)
    assert all(map(np.array_equal, q, q_other))


# ---------------------------------------------------------------------------------------- convert


def test_tidy_text():
    Path("untidy.svm").write_text(
        "# a comment\n+1 qid:3 7:0.1 2:1e-3 7:0.2 # another\r\n\n"
        "-1 qid:3 1:-0.0 9000000000000:5e-324\n1.0 qid:4"
    )
    convert("untidy.svm tidy.svm -q")
    assert Path("tidy.svm").read_text() == (
        "1 qid:3 2:0.001 7:0.30000000000000004\n-1 qid:3 1:-0 9000000000000:5e-324\n1 qid:4\n"
    )
    same(load_svmlight("untidy.svm", query_id=True), load_svmlight("tidy.svm", query_id=True))


@pytest.mark.parametrize("path", ["train.svm", "train3.svm"])
def test_text_to_npz_and_back(path):
    X, y = load_svmlight(path)
    told = convert(f"{path} rows.npz").stderr
    assert "rows.npz: 400 rows, " in told
    labels = np.load("rows.npz", allow_pickle=False)["labels"]
    same((X, y), (sp.load_npz("rows.npz"), labels))
    convert("rows.npz again.svm -q")
    same((X, y), load_svmlight("again.svm", n_features=X.shape[1]))
    to_output = convert("rows.npz - --to svmlight")
    assert to_output.stdout == Path("again.svm").read_text()
    assert to_output.stderr == ""


def test_indices_from_0_come_back():
    Path("zero.svm").write_text("1 0:1 3:2\n-1 1:1\n")
    convert("zero.svm rows.npz -q")
    convert("rows.npz again.svm -q --zero-based yes")
    assert Path("again.svm").read_text() == "1 0:1 3:2\n-1 1:1\n"
    convert("rows.npz one.svm -q")
    assert Path("one.svm").read_text() == "1 1:1 4:2\n-1 2:1\n"


def test_hashed_features_are_written_by_their_columns():
    convert("train.svm hashed.svm --hash-bits 8 -q")
    hashed = load_svmlight("train.svm", hash_bits=8)
    same(hashed, load_svmlight("hashed.svm", zero_based=True, n_features=256))


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ("train.svm x.svm.gz", 2, "would be written uncompressed; name it x.svm."),
        ("train.svm x.svm.zst --to svmlight", 2, "would be written uncompressed; name it x.svm."),
        ("train.svm train.svm", 2, "OUT train.svm and IN train.svm are one file"),
        ("mixed.svm x.npz", 1, "have a qid"),
        ("mixed.svm x.svm", 1, "have a qid"),
        ("late.svm old --to svmlight", 1, "line 3001"),
        ("late.svm old --to npz", 1, "line 3001"),
        ("late.svm old --to cache", 1, "old"),
        ("cut.npz x.svm", 1, "cut.npz can't be read as an npz file"),
        ("head.npz x.svm", 1, "head.npz can't be read as an npz file"),
        ("bare.npz x.svm", 1, "Missing here: labels"),
    ],
)
def test_what_is_not_converted_leaves_what_was_there(options, code, words):
    Path("mixed.svm").write_text("1 qid:1 1:1\n2 1:1\n")
    Path("late.svm").write_text("1 1:1\n" * 3000 + "1 x\n")
    Path("old").write_text("old")
    convert("train.svm whole.npz -q")
    whole = Path("whole.npz").read_bytes()
    Path("cut.npz").write_bytes(whole[:-10])
    Path("head.npz").write_bytes(whole[:10])
    sp.save_npz("bare.npz", sp.eye(3, format="csr"))
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    assert words in convert(options, code).stderr
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"labels": np.arange(4)}, "has labels of shape (4,) for 3 rows"),
        ({"indptr": np.array([0, 5, 2, 3])}, "corrupted"),
        ({"indices": np.array([0, 1, 9])}, "outside"),
        ({"data": np.array([1.0, np.nan, 1.0])}, "NaN"),
        ({"label_start": np.array([0, 2, 1, 3])}, "label_start does not divide"),
        ({"query_ids": np.array([1.5, 2, 3])}, "query_ids are not one integer a row"),
        ({"format": np.array(b"csc")}, "no CSR matrix"),
        ({"data": np.array([{}, 1, 2], dtype=object)}, "can't be read as an npz file"),
        ({"data": np.array(["a", "b", "c"])}, "rows.npz"),
    ],
)
def test_npz_that_holds_no_rows_is_refused(changed, words):
    # What scipy writes needs labels beside it.
    sp.save_npz("bare.npz", sp.eye(3, format="csr"))
    arrays = {**np.load("bare.npz"), "labels": np.arange(3)}
    np.savez("rows.npz", **arrays)
    convert("rows.npz sound.svm -q")
    same((sp.eye(3, format="csr"), np.arange(3)), load_svmlight("sound.svm"))
    np.savez("rows.npz", **{**arrays, **changed})
    error = convert("rows.npz x.svm", 1).stderr
    assert words in error
    assert "inside sparsemargin" not in error
    assert not Path("x.svm").exists()


# ------------------------------------------------------------------------------------------- info


def told(path):
    return json.loads(run("info", path, "--json").stdout)["files"][0]


@pytest.mark.parametrize("pack", [None, bz2.compress, lzma.compress])
def test_info_of_text(pack):
    X, y = load_svmlight_file("train.svm")
    path = Path("train.svm")
    if pack:
        path.write_bytes(pack(path.read_bytes()))
    figures = told(path)
    counts = {str(int(label)): int((y == label).sum()) for label in np.unique(y)}
    assert {entry["label"]: entry["rows"] for entry in figures["labels"]} == counts
    assert (
        figures.items()
        >= {
            "kind": "svmlight",
            "compression": {None: None, bz2.compress: "bz2", lzma.compress: "xz"}[pack],
            "rows": X.shape[0],
            "features": X.shape[1],
            "entries": X.nnz,
            "density": X.nnz / np.prod(X.shape),
            "zero_based": False,
            "bytes": path.stat().st_size,
        }.items()
    )
    text = run("info", path).stdout
    assert f"rows      {X.shape[0]:,}" in text
    assert "counted from 1" in text


def test_info_of_rows_with_any_number_of_labels():
    Path("many.svm").write_text("a,b 0:1\nb 3:0.25\n 2:1\nc,a,b\n")
    figures = told("many.svm")
    assert (figures["rows"], figures["features"], figures["zero_based"]) == (4, 4, True)
    assert figures["rows_without_label"] == 1
    assert figures["rows_of_several_labels"] == 2
    assert figures["labels"] == [
        {"label": "b", "rows": 3}, {"label": "a", "rows": 2}, {"label": "c", "rows": 1}
    ]  # fmt: skip
    text = run("info", "many.svm").stdout
    assert "several labels  2 rows" in text
    assert "counted from 0" in text


def test_info_of_a_cache_and_of_npz_is_that_of_the_text():
    of_text = told("train3.svm")
    for name, kind in ("rows.npz", "npz"), ("rows.smcache", "cache"):
        convert(f"train3.svm {name} -q")
        figures = told(name)
        assert figures["kind"] == kind
        for key in "rows", "features", "entries", "density":
            assert figures[key] == of_text[key]
        for each in figures, of_text:
            each["labels"].sort(key=lambda entry: entry["label"])
        assert figures["labels"] == of_text["labels"]


def test_info_of_models_and_of_several_files():
    run("train", "train.svm", "-o", "a.model", "-q")
    figures = told("a.model")
    names = "kind", "class", "classes"
    assert [figures[name] for name in names] == ["model", "ALMAClassifier", ["-1", "1"]]
    Path("a.svm").write_text("")
    Path("b.svm").write_text("1\n2\n")
    files = json.loads(run("info", "?.svm", "--json").stdout)["files"]
    assert [(entry["rows"], entry["features"]) for entry in files] == [(0, 0), (2, 0)]
    assert run("info", "?.svm").stdout.count("file  ") == 2


# ---------------------------------------------------------------------------------------- inspect


def inspected(*options):
    return json.loads(run("inspect", "a.model", "--json", *options).stdout)


def test_inspect_tells_the_strongest_features():
    run("train", "train.svm", "-o", "a.model", "-q", "--alpha", "0.7")
    model, figures = load_model("a.model"), inspected("--top", "5")
    assert figures["settings"]["alpha"] == 0.7
    assert figures["n_corrections"] == model.n_corrections_
    assert figures["n_features"] == model.n_features_in_
    assert figures["intercepts"] == model.intercept_.tolist()
    (entry,) = figures["strongest"]
    order = np.argsort(model.coef_[0], kind="stable")
    assert entry["label"] == "1"
    # Indices as the file has them, from 1.
    assert [int(e["feature"]) - 1 for e in entry["for"]] == order[::-1][:5].tolist()
    assert [int(e["feature"]) - 1 for e in entry["against"]] == order[:5].tolist()
    assert [e["weight"] for e in entry["against"]] == model.coef_[0][order[:5]].tolist()
    text = run("inspect", "a.model", "--top", "5").stdout
    assert "alpha                 0.7" in text
    assert "\nepochs         1\n" in text
    assert "for 1" in text
    # Or from 0.
    model = fit_svmlight("train.svm", zero_based=True, random_state=0)
    save_model(model, "a.model")
    (entry,) = inspected("--top", "1")["strongest"]
    assert int(entry["for"][0]["feature"]) == model.coef_[0].argmax()


def test_inspect_names_features_by_a_dictionary():
    run("train", "train3.svm", "-o", "a.model", "-q")
    model, words = load_model("a.model"), Path("words.txt")
    words.write_text("".join(f"w{i}\n" for i in range(model.n_features_in_)))
    figures = inspected("--top", "3", "--dictionary", words)
    assert [entry["label"] for entry in figures["strongest"]] == ["eggs", "ham", "spam"]
    for entry, weights in zip(figures["strongest"], model.coef_, strict=True):
        assert entry["for"][0]["feature"] == f"w{weights.argmax()}"
        assert len(entry["against"]) == 3
    words.write_text("w0\nw0\n")
    error = run("inspect", "a.model", "--dictionary", words, code=1).stderr
    assert "line 2 has the name 'w0' of line 1" in error


def test_inspect_tells_the_certificate_and_that_votes_have_no_weights():
    X, y = np.array([[1.0, 0.2], [-1.0, 0.3], [2.0, -1.0]]), np.array([1, -1, 1])
    model = MarginPerceptron(margin=5.0, tol=0.1).fit(X, y)
    save_model(model, "a.model")
    figures = inspected()
    assert figures["margin"] == [model.margin_]
    assert figures["margin_upper_bound"] == [model.margin_upper_bound_]
    assert f"margin         {model.margin_:.6g}" in run("inspect", "a.model").stdout
    save_model(PNormPerceptron(hypothesis="vote").fit(X, y), "a.model")
    assert inspected()["strongest"] is None
    assert "has no weights to show" in run("inspect", "a.model").stdout
