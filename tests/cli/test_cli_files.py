"""``sparsemargin info`` and ``inspect`` describe files and models."""

import bz2
import json
import re
from pathlib import Path

import numpy as np
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


def told(path):
    return json.loads(run("info", path, "--json").stdout)["files"][0]


def test_info_describes_svmlight_text():
    X, y = load_svmlight_file("train.svm")
    Path("packed.svm").write_bytes(bz2.compress(Path("train.svm").read_bytes()))
    for path, kind in ("packed.svm", "bz2"), ("train.svm", None):
        figures = told(path)
        labels = {entry["label"]: entry["rows"] for entry in figures.pop("labels")}
        assert labels == {str(int(label)): (y == label).sum() for label in np.unique(y)}
        expected = {
            "kind": "svmlight", "compression": kind, "rows": X.shape[0], "features": X.shape[1],
            "entries": X.nnz, "density": X.nnz / np.prod(X.shape), "zero_based": False,
            "bytes": Path(path).stat().st_size,
        }  # fmt: skip
        assert figures.items() >= expected.items()
    text = run("info", path).stdout
    assert f"rows      {X.shape[0]:,}" in text
    assert "counted from 1" in text


def test_info_describes_multilabel_rows():
    Path("many.svm").write_text("a,b 0:1\nb 3:0.25\n 2:1\nc,a,b\n")
    figures = told("many.svm")
    labels = [(entry["label"], entry["rows"]) for entry in figures.pop("labels")]
    assert labels == [("b", 3), ("a", 2), ("c", 1)]
    expected = {"rows": 4, "features": 4, "zero_based": True, "rows_without_label": 1}
    assert figures.items() >= {**expected, "rows_of_several_labels": 2}.items()
    text = run("info", "many.svm").stdout
    assert "several labels  2 rows" in text
    assert "counted from 0" in text


def test_info_of_a_cache_equals_that_of_its_text():
    fit_svmlight("train3.svm", "perceptron", cache="rows.smcache")
    of_text, figures = told("train3.svm"), told("rows.smcache")
    assert figures["kind"] == "cache"
    for key in "rows", "features", "entries", "density":
        assert figures[key] == of_text[key]
    assert sorted(figures["labels"], key=str) == sorted(of_text["labels"], key=str)


def test_info_describes_models_and_several_files():
    figures = told("a.model")
    names = "kind", "class", "classes"
    assert [figures[name] for name in names] == ["model", "PNormPerceptron", ["-1", "1"]]
    Path("a.svm").write_text("")
    Path("b.svm").write_text("1\n2\n")
    files = json.loads(run("info", "?.svm", "--json").stdout)["files"]
    assert [(entry["rows"], entry["features"]) for entry in files] == [(0, 0), (2, 0)]
    assert run("info", "?.svm").stdout.count("file  ") == 2


def test_info_continues_after_an_invalid_file():
    Path("a.svm").write_text("1 1:1\n")
    Path("b.svm").write_text("1 x\n")
    Path("c.svm").write_text("1 2:1\n")
    result = run("info", "?.svm", code=1)
    assert [line.split()[1] for line in result.stdout.splitlines() if "file" in line] == [
        "a.svm", "c.svm",
    ]  # fmt: skip
    assert result.stderr.startswith("Error: b.svm, line 1, column 3: 'x' is not index:value")
    first, second, third = json.loads(run("info", "?.svm", "--json", code=1).stdout)["files"]
    assert (first["features"], third["features"]) == (1, 2)
    assert second.keys() == {"file", "error"}
    assert second["error"].startswith("b.svm, line 1")


def test_info_suggests_hash_bits_for_named_features():
    Path("a.svm").write_text("1 goal:1\n")
    told = run("info", "a.svm", code=1).stderr
    assert "sparsemargin train also reads names, with --hash-bits 20." in told
    assert "hash_bits" not in told


def inspected(*options, model="a.model"):
    return json.loads(run("inspect", model, "--json", *options).stdout)


def test_inspect_lists_the_strongest_features():
    # Indices start at 1 or 0, as in the file.
    for first in 1, 0:
        model = fit_svmlight("train.svm", "alma", alpha=0.7, zero_based=first == 0, random_state=0)
        save_model(model, "a.model")
        figures = inspected("--top", "5")
        assert figures["settings"]["alpha"] == 0.7
        assert figures["n_corrections"] == model.n_corrections_
        assert figures["n_features"] == model.n_features_in_
        assert figures["intercepts"] == model.intercept_.tolist()
        (entry,) = figures["strongest"]
        order = np.argsort(model.coef_[0], kind="stable")
        assert entry["label"] == "1"
        assert [int(e["feature"]) - first for e in entry["for"]] == order[::-1][:5].tolist()
        assert [int(e["feature"]) - first for e in entry["against"]] == order[:5].tolist()
        assert [e["weight"] for e in entry["against"]] == model.coef_[0][order[:5]].tolist()
    text = run("inspect", "a.model", "--top", "5").stdout
    # Names and weights are aligned in columns.
    table = text.split("\n\n")[-1].splitlines()
    assert re.split(r" {2,}", table[0]) == ["for 1", "weight", "against 1", "weight"]
    assert {len(line.rstrip()) for line in table} == {len(table[0])}
    starts = {line.index(re.split(r" {2,}", line)[2], len(line) // 3) for line in table}
    assert len(starts) == 1
    for words in "alpha              0.7", "\nepochs           1 in the last run\n", "for 1":
        assert words in text


def test_inspect_names_features_by_a_dictionary():
    model, words = load_model("a3.model"), Path("words.txt")
    words.write_text("".join(f"w{i}\n" for i in range(model.n_features_in_)))
    strongest = inspected("--top", "3", "--dictionary", words, model="a3.model")["strongest"]
    assert [entry["label"] for entry in strongest] == ["eggs", "ham", "spam"]
    for entry, weights in zip(strongest, model.coef_, strict=True):
        assert entry["for"][0]["feature"] == f"w{weights.argmax()}"
        assert len(entry["against"]) == 3


def test_inspect_uses_feature_names_of_the_fit():
    X, y = load_svmlight("train.svm")
    model = PNormPerceptron(random_state=0).fit(X, y)
    model.feature_names_in_ = np.array([f"w{i}" for i in range(X.shape[1])], dtype=object)
    save_model(model, "a.model")
    (entry,) = inspected("--top", "1")["strongest"]
    assert entry["for"][0]["feature"] == f"w{model.coef_.argmax()}"
    Path("words.txt").write_text("".join(f"v{i}\n" for i in range(X.shape[1])))
    (entry,) = inspected("--dictionary", "words.txt")["strongest"]
    assert entry["for"][0]["feature"] == f"v{model.coef_.argmax()}"
    assert "\tw" in run("predict", "a.model", "test.svm", "--explain").stdout


def test_inspect_shows_certificates_and_explains_votes():
    X, y = np.array([[1.0, 0.2], [-1.0, 0.3], [2.0, -1.0]]), np.array([1, -1, 1])
    model = MarginPerceptron(margin=5.0, tol=0.1).fit(X, y)
    save_model(model, "a.model")
    figures = inspected()
    assert figures["margin"] == [model.margin_]
    assert figures["margin_upper_bound"] == [model.margin_upper_bound_]
    assert re.search(rf"margin +{model.margin_:.6g}\n", run("inspect", "a.model").stdout)
    save_model(PNormPerceptron(hypothesis="vote").fit(X, y), "a.model")
    assert inspected()["strongest"] is None
    assert "has no weights to show" in run("inspect", "a.model").stdout
