"""``sparsemargin convert``, ``info`` and ``inspect``: files and what is in them."""

import bz2
import json
import lzma

import numpy as np
import pytest
from scipy import sparse as sp
from sklearn.datasets import load_svmlight_file

from problems.command_line import run, three_classes, two_classes
from sparsemargin import (
    MarginPerceptron,
    PNormPerceptron,
    fit_svmlight,
    load_model,
    load_svmlight,
    save_model,
)
from sparsemargin.io import sources

UNTIDY = (
    "# a comment\n"
    "+1 qid:3 7:0.1 2:1e-3 7:0.2 # another\r\n"
    "\n"
    "-1 qid:3 1:-0.0 9000000000000:5e-324\n"
    "1.0 qid:4"
)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """A text of some KB is then many blocks."""
    monkeypatch.setattr(sources, "BLOCK_BYTES", 4096)


@pytest.fixture
def untidy(tmp_path):
    path = tmp_path / "untidy.svm"
    path.write_bytes(UNTIDY.encode())
    return path


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


def test_tidy_text(untidy, tmp_path):
    tidy = tmp_path / "tidy.svm"
    run("convert", untidy, tidy, "-q")
    assert tidy.read_text() == (
        "1 qid:3 2:0.001 7:0.30000000000000004\n-1 qid:3 1:-0 9000000000000:5e-324\n1 qid:4\n"
    )
    same(load_svmlight(untidy, query_id=True), load_svmlight(tidy, query_id=True))


@pytest.mark.parametrize("files", [two_classes, three_classes])
def test_text_to_npz_and_back(tmp_path, files):
    path = files(tmp_path)[0]
    run("convert", path, tmp_path / "rows.npz", "-q")
    X, y = load_svmlight(path)
    stored = sp.load_npz(tmp_path / "rows.npz")
    labels = np.load(tmp_path / "rows.npz", allow_pickle=False)["labels"]
    same((X, y), (stored, labels))
    run("convert", tmp_path / "rows.npz", tmp_path / "again.svm", "-q")
    same((X, y), load_svmlight(tmp_path / "again.svm", n_features=X.shape[1]))


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_no_plain_text_under_the_name_of_a_compressed_file(untidy, tmp_path, suffix):
    target = tmp_path / f"tidy.svm{suffix}"
    for options in ([], ["--to", "svmlight"]):
        error = run("convert", untidy, target, *options, code=2).stderr
        assert f"would be written uncompressed; name it {tmp_path / 'tidy.svm'}." in error
    assert not target.exists()


def test_the_source_is_no_target(untidy):
    result = run("convert", untidy, untidy, code=2)
    assert f"OUT {untidy} and IN {untidy} are one file" in result.stderr
    assert untidy.read_text() == UNTIDY.replace("\r", "")


def test_indices_from_0_come_back(tmp_path):
    path = tmp_path / "zero.svm"
    path.write_text("1 0:1 3:2\n-1 1:1\n")
    run("convert", path, tmp_path / "rows.npz", "-q")
    run("convert", tmp_path / "rows.npz", tmp_path / "again.svm", "-q", "--zero-based", "yes")
    assert (tmp_path / "again.svm").read_text() == path.read_text()
    run("convert", tmp_path / "rows.npz", tmp_path / "one.svm", "-q")
    assert (tmp_path / "one.svm").read_text() == "1 1:1 4:2\n-1 2:1\n"


def test_hashed_features_are_written_by_their_columns(tmp_path):
    path = two_classes(tmp_path)[0]
    run("convert", path, tmp_path / "hashed.svm", "--hash-bits", "8", "-q")
    X, y = load_svmlight(path, hash_bits=8)
    again = load_svmlight(tmp_path / "hashed.svm", zero_based=True, n_features=256)
    same((X, y), again)


def test_npz_that_scipy_wrote_needs_labels(tmp_path):
    X = sp.random(5, 7, density=0.5, format="csr", random_state=0)
    sp.save_npz(tmp_path / "bare.npz", X)
    result = run("convert", tmp_path / "bare.npz", tmp_path / "x.svm", code=1)
    assert "Missing here: labels" in result.stderr
    with np.load(tmp_path / "bare.npz") as stored:
        arrays = dict(stored)
    np.savez_compressed(tmp_path / "full.npz", **arrays, labels=np.arange(5))
    run("convert", tmp_path / "full.npz", tmp_path / "x.svm", "-q")
    same((X, np.arange(5.0)), load_svmlight(tmp_path / "x.svm", n_features=7))


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
def test_npz_that_holds_no_rows_is_refused(tmp_path, changed, words):
    arrays = {
        "data": np.ones(3), "indices": np.array([0, 1, 2]), "indptr": np.array([0, 1, 2, 3]),
        "shape": np.array([3, 3]), "format": np.array(b"csr"), "labels": np.arange(3),
    }  # fmt: skip
    np.savez(tmp_path / "rows.npz", **{**arrays, **changed})
    result = run("convert", tmp_path / "rows.npz", tmp_path / "x.svm", code=1)
    assert words in result.stderr
    assert "inside sparsemargin" not in result.stderr
    assert not (tmp_path / "x.svm").exists()


def test_npz_cut_short_is_refused(tmp_path):
    run("convert", two_classes(tmp_path)[0], tmp_path / "rows.npz", "-q")
    whole = (tmp_path / "rows.npz").read_bytes()
    for length in (10, len(whole) - 10):
        (tmp_path / "cut.npz").write_bytes(whole[:length])
        result = run("convert", tmp_path / "cut.npz", tmp_path / "x.svm", code=1)
        assert "cut.npz can't be read as an npz file" in result.stderr


def test_mixed_query_ids_are_refused(tmp_path):
    path = tmp_path / "mixed.svm"
    path.write_text("1 qid:1 1:1\n2 1:1\n")
    for target in "x.npz", "x.svm":
        result = run("convert", path, tmp_path / target, code=1)
        assert "have a qid" in result.stderr
        assert not (tmp_path / target).exists()


def test_a_failed_conversion_leaves_what_was_there(tmp_path):
    path, old = tmp_path / "bad.svm", tmp_path / "old"
    path.write_text("1 1:1\n" * 3000 + "1 x\n")
    for form in ("svmlight", "npz", "cache"):
        old.write_text("old")
        result = run("convert", path, old, "--to", form, code=1)
        assert ("line 3001" if form != "cache" else "old") in result.stderr
        assert old.read_text() == "old"
    assert {entry.name for entry in tmp_path.iterdir()} == {"bad.svm", "old"}


def test_what_was_converted_is_told(tmp_path):
    path = two_classes(tmp_path)[0]
    result = run("convert", path, tmp_path / "rows.npz")
    assert f"{tmp_path / 'rows.npz'}: 400 rows, " in result.stderr
    text = run("convert", path, "-", "--to", "svmlight")
    run("convert", path, tmp_path / "tidy.svm", "-q")
    assert text.stdout == (tmp_path / "tidy.svm").read_text()
    assert text.stderr == ""


# ------------------------------------------------------------------------------------------- info


def told(path, *options):
    return json.loads(run("info", path, "--json", *options).stdout)["files"][0]


@pytest.mark.parametrize("pack", [None, bz2.compress, lzma.compress])
def test_info_of_text(tmp_path, pack):
    path = two_classes(tmp_path)[0]
    X, y = load_svmlight_file(str(path))
    if pack:
        path.write_bytes(pack(path.read_bytes()))
    figures = told(path)
    assert figures["kind"] == "svmlight"
    assert figures["compression"] == {None: None, bz2.compress: "bz2", lzma.compress: "xz"}[pack]
    assert (figures["rows"], figures["features"]) == X.shape
    assert figures["entries"] == X.nnz
    assert figures["density"] == X.nnz / np.prod(X.shape)
    counts = {str(int(label)): int((y == label).sum()) for label in np.unique(y)}
    assert {entry["label"]: entry["rows"] for entry in figures["labels"]} == counts
    assert figures["zero_based"] is False
    assert figures["bytes"] == path.stat().st_size
    text = run("info", path).stdout
    assert f"rows      {X.shape[0]:,}" in text
    assert "counted from 1" in text


def test_info_of_rows_with_any_number_of_labels(tmp_path):
    path = tmp_path / "many.svm"
    path.write_text("a,b 0:1\nb 3:0.25\n 2:1\nc,a,b\n")
    figures = told(path)
    assert (figures["rows"], figures["features"], figures["zero_based"]) == (4, 4, True)
    assert figures["rows_without_label"] == 1
    assert figures["rows_of_several_labels"] == 2
    assert figures["labels"] == [
        {"label": "b", "rows": 3}, {"label": "a", "rows": 2}, {"label": "c", "rows": 1}
    ]  # fmt: skip
    text = run("info", path).stdout
    assert "several labels  2 rows" in text
    assert "counted from 0" in text


def test_info_of_a_cache_and_of_npz_is_that_of_the_text(tmp_path):
    path = three_classes(tmp_path)[0]
    figures = told(path)
    for name in ("rows.npz", "rows.smcache"):
        run("convert", path, tmp_path / name, "-q")
        of_file = told(tmp_path / name)
        for key in ("rows", "features", "entries", "density"):
            assert of_file[key] == figures[key]
        assert {e["label"]: e["rows"] for e in of_file["labels"]} == {
            e["label"]: e["rows"] for e in figures["labels"]
        }
    assert of_file["kind"] == "cache"


def test_info_of_a_model(tmp_path):
    path = two_classes(tmp_path)[0]
    run("train", path, "-o", tmp_path / "a.model", "-q")
    figures = told(tmp_path / "a.model")
    names = ("kind", "class", "classes")
    assert [figures[name] for name in names] == ["model", "ALMAClassifier", ["-1", "1"]]


def test_info_of_empty_and_of_several_files(tmp_path):
    (tmp_path / "a.svm").write_text("")
    (tmp_path / "b.svm").write_text("1\n2\n")
    files = json.loads(run("info", tmp_path / "*.svm", "--json").stdout)["files"]
    assert [(entry["rows"], entry["features"]) for entry in files] == [(0, 0), (2, 0)]
    assert run("info", tmp_path / "*.svm").stdout.count("file  ") == 2


# ---------------------------------------------------------------------------------------- inspect


def inspected(*args):
    return json.loads(run("inspect", *args, "--json").stdout)


def test_inspect_tells_the_strongest_features(tmp_path):
    path = two_classes(tmp_path)[0]
    run("train", path, "-o", tmp_path / "a.model", "-q", "--alpha", "0.7")
    model = load_model(tmp_path / "a.model")
    figures = inspected(tmp_path / "a.model", "--top", "5")
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
    text = run("inspect", tmp_path / "a.model", "--top", "5").stdout
    assert "alpha                 0.7" in text
    assert "for 1" in text


def test_inspect_names_features_by_a_dictionary_or_as_files_do(tmp_path):
    path = three_classes(tmp_path)[0]
    run("train", path, "-o", tmp_path / "a.model", "-q")
    model = load_model(tmp_path / "a.model")
    words = tmp_path / "words.txt"
    words.write_text("".join(f"w{i}\n" for i in range(model.n_features_in_)))
    figures = inspected(tmp_path / "a.model", "--top", "3", "--dictionary", words)
    assert [entry["label"] for entry in figures["strongest"]] == ["eggs", "ham", "spam"]
    for entry, weights in zip(figures["strongest"], model.coef_, strict=True):
        assert entry["for"][0]["feature"] == f"w{weights.argmax()}"
        assert len(entry["against"]) == 3
    words.write_text("w0\nw0\n")
    result = run("inspect", tmp_path / "a.model", "--dictionary", words, code=1)
    assert "line 2 has the name 'w0' of line 1" in result.stderr
    model = fit_svmlight(two_classes(tmp_path)[0], zero_based=True, random_state=0)
    save_model(model, tmp_path / "a.model")
    (entry,) = inspected(tmp_path / "a.model", "--top", "1")["strongest"]
    assert int(entry["for"][0]["feature"]) == model.coef_[0].argmax()


def test_inspect_tells_the_certificate(tmp_path):
    X, y = np.array([[1.0, 0.2], [-1.0, 0.3], [2.0, -1.0]]), np.array([1, -1, 1])
    model = MarginPerceptron(margin=5.0, tol=0.1).fit(X, y)
    save_model(model, tmp_path / "a.model")
    figures = inspected(tmp_path / "a.model")
    assert figures["margin"] == [model.margin_]
    assert figures["margin_upper_bound"] == [model.margin_upper_bound_]
    assert f"margin         {model.margin_:.6g}" in run("inspect", tmp_path / "a.model").stdout


def test_inspect_of_votes(tmp_path):
    save_model(PNormPerceptron(hypothesis="vote").fit(np.eye(2), [0, 1]), tmp_path / "a.model")
    assert inspected(tmp_path / "a.model")["strongest"] is None
    assert "has no weights to show" in run("inspect", tmp_path / "a.model").stdout
