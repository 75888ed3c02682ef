"""``sparsemargin predict`` and ``evaluate``: labels, scores and figures of models on files."""

import json
import re

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    confusion_matrix,
    precision_recall_fscore_support,
)

from problems.command_line import run, three_classes, two_classes, write
from sparsemargin import HigherOrderPerceptron, PNormPerceptron, load_model, load_svmlight
from sparsemargin import save_model as save
from sparsemargin.evaluation import margins
from sparsemargin.evaluation.files import Quantiles
from sparsemargin.io import sources


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """A text of some KB is then many blocks."""
    monkeypatch.setattr(sources, "BLOCK_BYTES", 4096)


@pytest.fixture(params=[two_classes, three_classes])
def case(request, tmp_path):
    """A model's path and a file to test it on."""
    train, test = request.param(tmp_path)
    model = tmp_path / "a.model"
    run("train", train, "-o", model, "-q", "--algo", "pnorm", "--p", "3")
    return model, test


def loaded(model, path):
    """The model, and the rows of the file without the features it does not know."""
    model = load_model(model)
    X, y = load_svmlight(path)
    return model, X[:, : model.n_features_in_], y


def predicted(*args):
    return run("predict", *args).stdout.splitlines()


# ------------------------------------------------------------------------------------- predictions


def test_labels_are_the_classifiers(case):
    model, X, _ = loaded(*case)
    expected = [str(int(y)) if model.classes_.dtype == float else y for y in model.predict(X)]
    assert predicted(*case) == expected


def test_scores_are_the_classifiers_to_the_bit(case):
    model, X, _ = loaded(*case)
    header, *lines = (line.split("\t") for line in predicted(*case, "--scores"))
    classes = ["1"] if len(model.classes_) == 2 else ["eggs", "ham", "spam"]
    assert header == ["label", *classes]
    scores = np.array([line[1:] for line in lines], dtype=np.float64)
    np.testing.assert_array_equal(scores.squeeze(), model.decision_function(X))
    assert [line[0] for line in lines] == predicted(*case)


def test_rows_need_no_labels(case, tmp_path):
    model, test = case
    bare = tmp_path / "bare.svm"
    bare.write_text("".join(line.split(" ", 1)[1] for line in test.open()))
    assert predicted(model, bare) == predicted(model, test)
    # Several of them, or words never seen, are no matter either.
    odd = tmp_path / "odd.svm"
    odd.write_text("".join(f"a,b {line.split(' ', 1)[1]}" for line in test.open()))
    assert predicted(model, odd) == predicted(model, test)


def test_features_that_the_model_does_not_know_count_for_nothing(case, tmp_path):
    model, test = case
    more = tmp_path / "more.svm"
    more.write_text("".join(f"{line.rstrip()} 5000000:3 9000000000000:1\n" for line in test.open()))
    assert predicted(model, more, "--scores") == predicted(model, test, "--scores")


def test_output_to_a_file(case, tmp_path):
    result = run("predict", *case, "-o", tmp_path / "labels.txt")
    assert result.stdout == ""
    assert (tmp_path / "labels.txt").read_text().splitlines() == predicted(*case)


@pytest.mark.parametrize(("place", "name"), [(0, "MODEL"), (1, "FILE")])
def test_an_input_is_no_output(case, tmp_path, place, name):
    link = tmp_path / "link"
    link.symlink_to(case[place])
    before = case[place].read_bytes()
    for output in (case[place], link):
        error = run("predict", *case, "-o", output, code=2).stderr
        assert f"-o {output} and {name} {case[place]} are one file" in error
    assert case[place].read_bytes() == before


def test_an_error_leaves_the_old_output(case, tmp_path):
    output, bad = tmp_path / "labels.txt", tmp_path / "bad.svm"
    output.write_text("old")
    bad.write_text(case[1].read_text() + "1 3:x\n")
    result = run("predict", case[0], bad, "-o", output, code=1)
    assert "bad.svm, line 201, column 3: '3:x'" in result.stderr
    assert output.read_text() == "old"


def test_no_rows_no_labels(case, tmp_path):
    (tmp_path / "empty.svm").write_text("\n# nothing\n")
    result = run("predict", case[0], tmp_path / "empty.svm")
    assert result.stdout == ""
    assert "Warning: " in result.stderr
    assert "empty.svm has no rows: there are no predictions" in result.stderr


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_a_file_that_counts_from_0_is_told_what_the_model_counts_from(case, tmp_path, command):
    path = tmp_path / "zero.svm"
    path.write_text("1 1:1\n1 0:1\n")
    error = run(command, case[0], path, code=1).stderr
    assert "zero.svm, line 2, column 3: '0:1' has index 0" in error
    assert "has learned from files whose indices count from 1, add 1 to the indices here" in error


def test_a_model_of_a_matrix_can_be_told_what_to_count_from(tmp_path):
    save(PNormPerceptron().fit(np.eye(2), [-1, 1]), tmp_path / "a.model")
    path = tmp_path / "zero.svm"
    path.write_text("1 1:1\n-1 0:1\n")
    error = run("predict", tmp_path / "a.model", path, code=1).stderr
    assert "text that is read as one-based. Pass zero_based=True" in error
    assert predicted(tmp_path / "a.model", path, "--zero-based", "yes") == ["1", "-1"]


def test_rows_without_features_are_warned_of(case, tmp_path):
    (tmp_path / "labels.svm").write_text("1\n1\n")
    result = run("predict", case[0], tmp_path / "labels.svm")
    assert "labels.svm has rows but no features" in result.stderr
    assert len(result.stdout.splitlines()) == 2
    assert run("predict", case[0], tmp_path / "labels.svm", "-q").stderr == ""


def test_hashed_features(tmp_path):
    train, test = two_classes(tmp_path)
    model = tmp_path / "a.model"
    run("train", train, "-o", model, "-q", "--hash-bits", "12")
    X, _ = load_svmlight(test, hash_bits=12)
    expected = load_model(model).predict(X)
    assert predicted(model, test) == [str(int(y)) for y in expected]


@pytest.mark.parametrize("zero_based", [True, False])
def test_a_model_of_a_matrix_is_told_how_indices_count(tmp_path, zero_based):
    train, test = two_classes(tmp_path)
    X, y = load_svmlight(train)
    path = write(tmp_path / "other.svm", *load_svmlight(test), zero_based=zero_based)
    model = PNormPerceptron(random_state=0).fit(X, y)
    save(model, tmp_path / "a.model")
    X_test = load_svmlight(test)[0][:, : X.shape[1]]
    options = ["--zero-based", "yes"] if zero_based else []
    expected = [str(int(label)) for label in model.predict(X_test)]
    assert predicted(tmp_path / "a.model", path, *options) == expected


def test_a_model_of_files_knows_how_indices_count(case):
    for command in "predict", "evaluate":
        result = run(command, *case, "--zero-based", "yes", code=1)
        assert "zero_based=True is for models of matrices" in result.stderr


@pytest.mark.parametrize(
    "model",
    [
        PNormPerceptron(hypothesis="vote", random_state=0, fit_intercept=False),
        PNormPerceptron(hypothesis="random", random_state=0),
        HigherOrderPerceptron(random_state=0),
    ],
    ids=["vote", "random", "ho"],
)
def test_models_of_every_kind_predict(tmp_path, model):
    train, test = two_classes(tmp_path)
    model.fit(*load_svmlight(train))
    save(model, tmp_path / "a.model")
    X = load_svmlight(test)[0][:, : model.n_features_in_]
    expected = [str(int(y)) for y in model.predict(X)]
    assert predicted(tmp_path / "a.model", test) == expected


# ------------------------------------------------------------------------------------- evaluation


def evaluated(*args):
    return json.loads(run("evaluate", *args, "--json").stdout)


def assert_averages(figures, y, guess, **labels):
    for kind in ("micro", "macro"):
        expected = precision_recall_fscore_support(
            y, guess, average=kind, zero_division=0, **labels
        )
        told = [figures[f"{kind}_{name}"] for name in ("precision", "recall", "f1")]
        assert told == pytest.approx(expected[:3], abs=1e-15)


def test_figures_are_those_of_scikit_learn(case):
    model, X, y = loaded(*case)
    guess, figures = model.predict(X), evaluated(*case)
    assert figures["rows"] == len(y)
    assert figures["mistakes"] == (guess != y).sum()
    assert figures["accuracy"] == accuracy_score(y, guess)
    assert figures["error"] == pytest.approx(1 - accuracy_score(y, guess), abs=1e-15)
    assert_averages(figures, y, guess, labels=model.classes_)
    columns = precision_recall_fscore_support(y, guess, labels=model.classes_)
    for name, column in zip(("precision", "recall", "f1", "rows"), columns, strict=True):
        assert [entry[name] for entry in figures["classes"]] == pytest.approx(column, abs=1e-15)
    matrix = confusion_matrix(y, guess, labels=model.classes_)
    labels = [entry["label"] for entry in figures["classes"]]
    told = np.zeros_like(matrix)
    for entry in figures["confusion"]:
        told[labels.index(entry["label"]), labels.index(entry["predicted"])] = entry["rows"]
    np.testing.assert_array_equal(told, matrix)


def test_margins_are_those_of_the_library(case):
    model, X, y = loaded(*case)
    expected, told = margins(model, X, y), evaluated(*case)["margins"]
    assert told["least"] == pytest.approx(expected.min(), rel=1e-12)
    assert told["largest"] == pytest.approx(expected.max(), rel=1e-12)
    for entry in told["quantiles"]:
        exact = np.quantile(expected, entry["share"], method="inverted_cdf")
        assert entry["margin"] == pytest.approx(exact, rel=1 / 4096)


def test_votes_have_margins_and_draws_have_none(tmp_path):
    train, test = two_classes(tmp_path)
    X, y = load_svmlight(train)
    X_test, y_test = load_svmlight(test)
    for hypothesis in ("vote", "random"):
        model = PNormPerceptron(hypothesis=hypothesis, random_state=0).fit(X, y)
        save(model, tmp_path / "a.model")
        told = evaluated(tmp_path / "a.model", test)["margins"]
        if hypothesis == "random":
            assert told is None
        else:
            expected = margins(model, X_test[:, : X.shape[1]], y_test)
            assert told["least"] == pytest.approx(expected.min(), abs=1e-12)


def test_labels_never_learned_are_left_out_and_told(tmp_path):
    train, test = three_classes(tmp_path)
    run("train", train, "-o", tmp_path / "a.model", "-q")
    known = evaluated(tmp_path / "a.model", test)
    more = tmp_path / "more.svm"
    more.write_text(test.read_text() + "sausage 1:1\n" * 3 + "bacon 2:1 7:1\n")
    figures = evaluated(tmp_path / "a.model", more)
    assert figures.pop("unknown_labels") == [
        {"label": "sausage", "rows": 3}, {"label": "bacon", "rows": 1}
    ]  # fmt: skip
    assert known.pop("unknown_labels") == []
    assert figures == known
    text = run("evaluate", tmp_path / "a.model", more).stdout
    assert "4 rows of labels that the model has not learned: sausage (3), bacon (1)" in text


def test_a_file_without_any_known_label_is_refused(case, tmp_path):
    (tmp_path / "other.svm").write_text("sausage 1:1\nbacon 2:1\n")
    result = run("evaluate", case[0], tmp_path / "other.svm", code=1)
    assert "has none of the labels that the model has learned" in result.stderr
    assert "sausage, bacon" in result.stderr


def test_one_label_against_the_rest(tmp_path):
    path = tmp_path / "topics.svm"
    path.write_text("C15,M11 1:1\nM11 2:1\nC15 1:2 3:1\n 2:2 3:-1\n" * 20)
    model = tmp_path / "a.model"
    run("train", path, "-o", model, "--positive", "C15", "-q")
    figures = evaluated(model, path, "--positive", "C15")
    assert figures["rows"] == 80
    assert figures["accuracy"] == 1.0
    assert [entry["rows"] for entry in figures["classes"]] == [40, 40]
    assert evaluated(model, path, "--positive", "M11")["accuracy"] == 0.5


def test_a_label_that_no_row_has_is_misspelt(tmp_path):
    train, test = two_classes(tmp_path)
    model = tmp_path / "a.model"
    run("train", train, "-o", model, "-q")
    result = run("evaluate", model, test, "--positive", "999", code=1)
    assert re.search(r"no row has the label positive='999'\. There are: -?1, -?1\.", result.stderr)
    # That it is a class of the model is not enough.
    test.write_text("2 1:1\n3 2:1\n")
    result = run("evaluate", model, test, "--positive", "1", code=1)
    assert "no row has the label positive='1'. There are: 2, 3." in result.stderr


def test_one_label_against_the_rest_needs_two_classes(tmp_path):
    train, test = three_classes(tmp_path)
    run("train", train, "-o", tmp_path / "a.model", "-q")
    result = run("evaluate", tmp_path / "a.model", test, "--positive", "spam", code=1)
    assert "positive='spam' needs a model of two classes; this one has 3" in result.stderr


def test_labels_are_equal_as_numbers(tmp_path):
    train, test = two_classes(tmp_path)
    run("train", train, "-o", tmp_path / "a.model", "-q")
    other = tmp_path / "other.svm"
    other.write_text(
        "".join(
            f"{'+1.0' if line[0] == '1' else '-1e0'} {line.split(' ', 1)[1]}"
            for line in test.open()
        )
    )
    assert evaluated(tmp_path / "a.model", other) == evaluated(tmp_path / "a.model", test)


def test_the_report_for_people(case):
    text = run("evaluate", *case).stdout
    figures = evaluated(*case)
    assert re.search(rf"^accuracy +{100 * figures['accuracy']:.2f} %$", text, re.MULTILINE)
    for entry in figures["classes"]:
        line = next(line for line in text.splitlines() if line.startswith(entry["label"] + " "))
        assert f"{100 * entry['f1']:.2f} %" in line
    assert "class \\ predicted" in text
    assert "margin up to" in text


def test_many_classes_are_told_by_their_most_frequent_mistakes(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 20)), rng.integers(15, size=300)
    path = write(tmp_path / "many.svm", X, y)
    run("train", path, "-o", tmp_path / "a.model", "-q")
    text = run("evaluate", tmp_path / "a.model", path).stdout
    figures = evaluated(tmp_path / "a.model", path)
    mistakes = [e["rows"] for e in figures["confusion"] if e["label"] != e["predicted"]]
    table = text.split("Most frequent mistakes\n")[1].split("\n\n")[0].splitlines()[1:]
    assert [int(line.split()[-1]) for line in table] == sorted(mistakes, reverse=True)[:20]


# -------------------------------------------------------------------------------------- quantiles


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1.0, 1e30])
def test_quantiles_of_parts(scale):
    rng = np.random.default_rng(0)
    values = scale * rng.normal(size=1000) * (rng.random(1000) > 0.1)
    quantiles = Quantiles()
    for part in np.array_split(values, [0, 100, 101, 700]):
        quantiles.add(part)
    shares = [0.0, 0.001, 0.01, 0.3, 0.45, 0.5, 0.55, 0.9, 1.0]
    exact = np.quantile(values, shares, method="inverted_cdf")
    np.testing.assert_allclose(quantiles.at(shares), exact, rtol=1 / 4096)
    assert (quantiles.least, quantiles.largest) == (values.min(), values.max())
