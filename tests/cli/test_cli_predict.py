"""``sparsemargin predict`` and ``evaluate``: labels, scores and figures for files."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix

from problems.command_line import assert_averages, evaluated, run, write
from sparsemargin import (
    HigherOrderPerceptron,
    PNormPerceptron,
    TextClassifier,
    load_model,
    load_svmlight,
)
from sparsemargin import save_model as save
from sparsemargin.evaluation import margins


@pytest.fixture(params=["", "3"], ids=["two classes", "three classes"])
def case(request):
    """The path of a model and of a test file."""
    return f"a{request.param}.model", f"test{request.param}.svm"


def file(lines, path="few.svm"):
    """Write a file with a few lines and return its path."""
    Path(path).write_text(lines)
    return path


def changed(path, change):
    """Return the lines of a file after a function of the label and the rest of each line."""
    return "".join(change(*line.rstrip().split(" ", 1)) + "\n" for line in Path(path).open())


def loaded(model, path):
    """Return the model, and the rows of the file without features unknown to the model."""
    model = load_model(model)
    X, y = load_svmlight(path)
    return model, X[:, : model.n_features_in_], y


def predicted(*args):
    return run("predict", *args).stdout.splitlines()


def texts(labels):
    return [label if isinstance(label, str) else str(int(label)) for label in labels]


def test_predicted_labels_and_scores_equal_those_of_the_model(case):
    model, X, _ = loaded(*case)
    header, *lines = (line.split("\t") for line in predicted(*case, "--scores"))
    assert header == ["label", *(["1"] if len(model.classes_) == 2 else ["eggs", "ham", "spam"])]
    scores = np.array([line[1:] for line in lines], dtype=np.float64)
    np.testing.assert_array_equal(scores.squeeze(), model.decision_function(X))
    labels = [line[0] for line in lines]
    assert labels == predicted(*case) == texts(model.predict(X))
    # Labels and unknown features do not change the predictions.
    for change in (
        lambda label, rest: rest,
        lambda label, rest: f"a,b {rest}",
        lambda label, rest: f"{label} {rest} 5000000:3 9000000000000:1",
    ):
        other = predicted(case[0], file(changed(case[1], change)), "--scores")
        assert [line.split("\t") for line in other] == [header, *lines]


def test_top_option_lists_the_best_classes(case):
    model, X, _ = loaded(*case)
    best = [",".join(texts(row)) for row in model.predict_labels(X, top_k=2)]
    assert predicted(*case, "--top-k", 2) == best
    _, *scored = (line.split("\t") for line in predicted(*case, "--top-k", 2, "--scores"))
    _, *plain = (line.split("\t") for line in predicted(*case, "--scores"))
    assert [row[0] for row in scored] == best
    assert [row[1:] for row in scored] == [row[1:] for row in plain]
    _, *why = (line.split("\t") for line in predicted(*case, "--top-k", 2, "--explain", 1))
    told = [row[1] for row in why if row[2] == "(output)"]
    assert ",".join(told) == ",".join(best)


def test_classes_with_commas_are_not_split():
    model = PNormPerceptron().fit([[1, 0], [0, 1]], ["a,b", "c"])
    save(model, "a.model")
    assert predicted("a.model", file("1:1\n")) == ["a,b"]
    error = run("predict", "a.model", "few.svm", "--top-k", 1, code=1).stderr
    assert "class 'a,b' can't be printed" in error


def test_predictions_are_written_to_a_file():
    assert run("predict", "a.model", "test.svm", "-o", "labels.txt").stdout == ""
    assert Path("labels.txt").read_text().splitlines() == predicted("a.model", "test.svm")
    # After an error, the existing output is unchanged.
    file("old", "labels.txt")
    bad = file(Path("test.svm").read_text() + "1 3:x\n")
    error = run("predict", "a.model", bad, "-o", "labels.txt", code=1).stderr
    assert "few.svm, line 201, column 3: '3:x'" in error
    assert Path("labels.txt").read_text() == "old"


def test_files_without_rows_or_features_warn():
    for lines, n_labels, told in ("#\n", 0, "no rows"), ("1\n1\n", 2, "rows but no features"):
        result = run("predict", "a.model", file(lines))
        assert len(result.stdout.splitlines()) == n_labels
        assert f"Warning: few.svm has {told}" in result.stderr
        assert run("predict", "a.model", file(lines), "-q").stderr == ""


def test_index_base_of_a_file_model_is_checked():
    for command in "predict", "evaluate":
        error = run(command, "a.model", file("1 1:1\n1 0:1\n"), code=1).stderr
        assert "few.svm, line 2, column 3: '0:1' has index 0" in error
        assert "trained on files whose indices count from 1, add 1 to the indices" in error
        error = run(command, "a.model", "test.svm", "--zero-based", "yes", code=1).stderr
        assert "--zero-based yes is for models that were trained on matrices" in error


def test_models_of_matrices_and_hashed_features_predict_files():
    fitted = PNormPerceptron(random_state=0).fit(*load_svmlight("train.svm"))
    save(fitted, "a.model")
    _, X, y = loaded("a.model", "test.svm")
    assert predicted("a.model", "test.svm") == texts(fitted.predict(X))
    path = write(Path("other.svm"), X, y, zero_based=True)
    assert predicted("a.model", path, "--zero-based", "yes") == texts(fitted.predict(X))
    error = run("predict", "a.model", file("1 0:1\n"), code=1).stderr
    assert "text that is read as one-based. Pass --zero-based yes" in error
    run("train", "train.svm", "-o", "a.model", "-q", "--hash-bits", "12")
    X, _ = load_svmlight("test.svm", hash_bits=12)
    assert predicted("a.model", "test.svm") == texts(load_model("a.model").predict(X))


@pytest.mark.parametrize("hypothesis", ["vote", "random", "matrix"])
def test_models_of_every_kind_predict(hypothesis):
    classifier = HigherOrderPerceptron(random_state=0)
    if hypothesis != "matrix":
        params = {"random_state": 0, "fit_intercept": hypothesis == "random"}
        classifier = PNormPerceptron(hypothesis=hypothesis, **params)
    save(classifier.fit(*load_svmlight("train.svm")), "a.model")
    _, X, y = loaded("a.model", "test.svm")
    assert predicted("a.model", "test.svm") == texts(classifier.predict(X))
    # The hypothesis "vote" has margins, "random" has none.
    told = evaluated("a.model", "test.svm")["margins"]
    if hypothesis == "random":
        assert told is None
    else:
        assert told["least"] == pytest.approx(margins(classifier, X, y).min(), abs=1e-12)


def test_labels_that_are_not_utf_8_are_printed_unchanged():
    Path("few.svm").write_bytes(b"\xe9t\xe9 1:1\nhiver 2:1\n" * 30)
    run("train", "few.svm", "-o", "a.model", "-q")
    for command, times in {
        "predict a.model few.svm": 30, "evaluate a.model few.svm": 3, "info few.svm": 1,
        "inspect a.model": 3,
    }.items():  # fmt: skip
        assert run(*command.split()).stdout_bytes.count(b"\xe9t\xe9") == times


def test_evaluate_agrees_with_scikit_learn_metrics(case):
    model, X, y = loaded(*case)
    guess, figures = model.predict(X), evaluated(*case)
    assert figures["rows"] == len(y)
    assert figures["mistakes"] == (guess != y).sum()
    assert figures["accuracy"] == accuracy_score(y, guess)
    assert figures["error"] == pytest.approx(1 - accuracy_score(y, guess), abs=1e-15)
    assert_averages(figures, y, guess, labels=model.classes_)
    matrix = confusion_matrix(y, guess, labels=model.classes_)
    labels = [entry["label"] for entry in figures["classes"]]
    told = np.zeros_like(matrix)
    for entry in figures["confusion"]:
        told[labels.index(entry["label"]), labels.index(entry["predicted"])] = entry["rows"]
    np.testing.assert_array_equal(told, matrix)
    expected, told = margins(model, X, y), figures["margins"]
    assert told["least"] == pytest.approx(expected.min(), rel=1e-12)
    assert told["largest"] == pytest.approx(expected.max(), rel=1e-12)
    for entry in told["quantiles"]:
        exact = np.quantile(expected, entry["share"], method="inverted_cdf")
        assert entry["margin"] == pytest.approx(exact, rel=1e-12)
    # The text output contains the same figures.
    text = run("evaluate", *case).stdout
    assert re.search(rf"^accuracy +{100 * figures['accuracy']:.2f} %$", text, re.MULTILINE)
    for entry in figures["classes"]:
        line = next(line for line in text.splitlines() if line.startswith(entry["label"] + " "))
        assert f"{100 * entry['f1']:.2f} %" in line
    assert "class \\ predicted" in text
    assert "margin up to" in text


def test_evaluate_compares_numbers_and_reports_unknown_labels():
    same = {"1": "+1.0", "-1": "-1e0"}
    other = file(changed("test.svm", lambda label, rest: f"{same[label]} {rest}"))
    assert evaluated("a.model", other) == evaluated("a.model", "test.svm")
    known = evaluated("a3.model", "test3.svm")
    more = file(Path("test3.svm").read_text() + "sausage 1:1\n" * 3 + "bacon 2:1 7:1\n")
    figures = evaluated("a3.model", more)
    unknown = figures.pop("unknown_labels")
    assert unknown == [{"label": "sausage", "rows": 3}, {"label": "bacon", "rows": 1}]
    assert known.pop("unknown_labels") == []
    assert figures == known
    text = run("evaluate", "a3.model", more).stdout
    assert "4 rows of labels that the model does not have: sausage (3), bacon (1)" in text
    told = run("evaluate", "a3.model", file("sausage 1:1\nbacon 2:1\n"), code=1).stderr
    assert "has none of the labels that the model has learned" in told


def test_positive_option_selects_one_label():
    path = file("C15,M11 1:1\nM11 2:1\nC15 1:2 3:1\n 2:2 3:-1\n" * 20)
    run("train", path, "-o", "b.model", "--positive", "C15", "-q")
    figures = evaluated("b.model", path, "--positive", "C15")
    assert figures["rows"] == 80
    assert figures["accuracy"] == 1.0
    assert [entry["rows"] for entry in figures["classes"]] == [40, 40]
    assert evaluated("b.model", path, "--positive", "M11")["accuracy"] == 0.5
    # Without --positive, rows with several labels are an error.
    error = run("evaluate", "b.model", path, code=1).stderr
    assert "more than one label. The model predicts one class for each row. Give each row" in error
    assert "or pass --positive LABEL if the model was trained with it" in error
    # The positive label must occur in the file, even if it is a class of the model.
    for label, lines, there in ("999", "1 1:1\n2 2:1\n", "1, 2"), ("1", "2 1:1\n3 2:1\n", "2, 3"):
        error = run("evaluate", "a.model", file(lines), "--positive", label, code=1).stderr
        assert f"no row has the label --positive {label}. There are: {there}." in error
    error = run("evaluate", "a.model", file("5 1:1\n6 1:1\n"), code=1).stderr
    assert "If the model tells one label from all others, pass --positive 5, or" in error
    error = run("evaluate", "a3.model", "test3.svm", "--positive", "ham", code=1).stderr
    assert "--positive ham needs a model of two classes; this one has 3" in error


def test_evaluate_lists_frequent_mistakes_of_many_classes():
    rng = np.random.default_rng(0)
    path = write(Path("many.svm"), rng.normal(size=(300, 20)), rng.integers(15, size=300))
    run("train", path, "-o", "b.model", "-q")
    text, figures = run("evaluate", "b.model", path).stdout, evaluated("b.model", path)
    mistakes = [e["rows"] for e in figures["confusion"] if e["label"] != e["predicted"]]
    table = text.split("Most frequent mistakes\n")[1].split("\n\n")[0].splitlines()[1:]
    assert [int(line.split()[-1]) for line in table] == sorted(mistakes, reverse=True)[:20]


def test_explanations_of_hashed_texts_name_their_terms_as_in_python():
    texts = ["cheap pills now", "lunch at noon", "cheap watches", "?!"]
    labels = ["spam", "ham", "spam", "ham"]
    model = TextClassifier(features="hashed", random_state=0).fit(texts * 9, labels * 9)
    model.vectorizer_.terms_ = {}  # as for terms that are not among the first texts
    save(model, "texts.model")
    file("".join(f"{text}\n" for text in texts), "few.tsv")
    header, *lines = (line.split("\t") for line in predicted("texts.model", "few.tsv", "--explain"))
    assert header == ["row", "label", "feature", "adds"]
    for i, text in enumerate(texts, 1):
        (why,) = model.explain(text)
        found = [name for row, _, name, _ in lines if row == str(i) and not name.startswith("(")]
        assert found == why.names[:10]
        assert not any(map(str.isdecimal, found))
