"""``sparsemargin predict --json``: an object for each row."""

import json
from pathlib import Path

import numpy as np
import pytest

from problems.command_line import run
from sparsemargin import AROWClassifier, load_model, load_svmlight, save_model
from sparsemargin.files.sources import BLOCK_BYTES

TEXTS = "spam\tcheap pills\nham\tlunch at noon\nspam\tcheap watches\nham\tsee you at noon\n"


def objects(*args):
    """The objects that ``predict --json`` prints, by a parser that refuses NaN and infinity."""
    lines = run("predict", *args, "--json").stdout_bytes.decode().split("\n")
    assert lines.pop() == ""

    def refuse(constant):
        raise AssertionError(constant)

    return [json.loads(line, parse_constant=refuse) for line in lines]


def texts(classes):
    return [each if isinstance(each, str) else str(int(each)) for each in classes.tolist()]


def texts_model(lines=TEXTS * 20, path="texts.tsv"):
    Path(path).write_text(lines)
    run("train", path, "-o", "texts.model", "-q")
    return load_model("texts.model")


@pytest.mark.parametrize("n", ["", "3"], ids=["two classes", "three classes"])
def test_objects_have_labels_scores_and_probabilities_of_the_model(n):
    test = f"test{n}.svm"
    # The file has several blocks.
    assert Path(test).stat().st_size > 2 * 4096 < BLOCK_BYTES
    for algo in "pnorm", "arow":
        run("train", f"train{n}.svm", "-o", "b.model", "-q", "--algo", algo)
        model = load_model("b.model")
        X = load_svmlight(test)[0][:, : model.n_features_in_]
        # Classes that are numbers are numbers, and words are strings.
        labels = model.predict(X).tolist()
        assert objects("b.model", test) == [{"label": label} for label in labels]
        classes = texts(model.classes_)
        scored = model.decision_function(X).reshape(len(labels), -1).tolist()
        for kind, name, rows in (
            ("--scores", "scores", scored),
            ("--proba", "probabilities", model.predict_proba(X).tolist()),
        ):
            found = objects("b.model", test, kind)
            assert [list(each) for each in found] == [["label", name]] * len(labels)
            assert [each["label"] for each in found] == labels
            assert {tuple(each[name]) for each in found} == {tuple(classes[-len(rows[0]) :])}
            printed = [list(each[name].values()) for each in found]
            np.testing.assert_allclose(printed, rows, rtol=1e-12)


def test_several_labels_are_a_list():
    model = load_model("a3.model")
    X = load_svmlight("test3.svm")[0][:, : model.n_features_in_]
    best = [list(row) for row in model.predict_labels(X, top_k=2)]
    assert [each["label"] for each in objects("a3.model", "test3.svm", "--top-k", 2)] == best
    Path("many.svm").write_text("1,2 1:1 3:1\n2 2:1\n 4:1\n" * 20)
    run("train", "many.svm", "-o", "many.model", "-q", "--multilabel")
    labels = [each["label"] for each in objects("many.model", "many.svm")]
    assert labels == [[1, 2], [2], []] * 20
    found = objects("many.model", "many.svm", "--explain", 1)[:3]
    assert [[why["label"] for why in each["explanations"]] for each in found] == labels[:3]


def test_rejected_rows_have_no_label_and_unknown_may_be_a_class():
    lines = TEXTS.replace("ham", "unknown") * 20
    texts_model(lines)
    assert "class 'unknown'" in run(
        "predict", "texts.model", "texts.tsv", "--reject", code=1
    ).stderr  # fmt: skip
    Path("new.tsv").write_text("cheap pills\nqqqq\n")
    labels = [each["label"] for each in objects("texts.model", "new.tsv", "--reject", 0.01)]
    assert labels == ["spam", None]


def test_explanations_agree_with_explain():
    model = texts_model()
    found = objects("texts.model", "texts.tsv", "--explain", 3)
    assert len(found) == 80
    for entry, text in zip(found, ["cheap pills", "lunch at noon"], strict=False):
        (why,) = model.explain(text)
        assert entry["label"] == why.label
        assert entry["output"] == pytest.approx(why.output)
        assert entry["intercept"] == pytest.approx(why.intercept)
        added = [each["contribution"] for each in entry["contributions"]]
        np.testing.assert_allclose(added, why.contributions[:3])
        assert [each["feature"] for each in entry["contributions"]] == why.names[:3]
        total = entry["intercept"] + sum(added) + entry["others"]
        assert total == pytest.approx(entry["output"])


def test_any_class_is_printed_in_a_line_of_utf_8():
    # Tables of tabs and lines of labels cannot hold some of these classes.
    names = ["a,b", "c\nd", 'é"\\', "\x1b[1m\x9b\u2028", " ", "日本"]
    model = AROWClassifier(random_state=0).fit(np.eye(6), names)
    save_model(model, "names.model")
    Path("few.svm").write_text("".join(f"{i + 1}:1\n" for i in range(6)))
    printed = run("predict", "names.model", "few.svm", "--json").stdout_bytes.decode()
    assert len(printed.splitlines()) == 6
    assert "日本" in printed
    assert "\x1b" not in printed
    assert "\x9b" not in printed
    best = objects("names.model", "few.svm", "--top-k", 2, "--scores")
    assert [each["label"][0] for each in best] == names
    assert set(best[0]["scores"]) == set(names)
    # Labels that are not UTF-8 become escapes, so that all output is UTF-8.
    Path("raw.svm").write_bytes(b"\xe9t\xe9 1:1\nhiver 2:1\n" * 30)
    run("train", "raw.svm", "-o", "raw.model", "-q")
    labels = [each["label"] for each in objects("raw.model", "raw.svm")]
    assert labels == [b"\xe9t\xe9".decode(errors="surrogateescape"), "hiver"] * 30


def test_output_file_and_files_without_rows():
    run("predict", "a.model", "test.svm", "--json", "-o", "out.jsonl")
    assert Path("out.jsonl").read_text() == run("predict", "a.model", "test.svm", "--json").stdout
    Path("empty.svm").write_text("")
    result = run("predict", "a.model", "empty.svm", "--json")
    assert result.stdout == ""
    assert "no rows" in result.stderr
    assert run("predict", "a.model", "test.svm", "--json", "--scores", "--proba", code=2).stderr
