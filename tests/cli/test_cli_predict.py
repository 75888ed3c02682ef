"""``sparsemargin predict`` and ``evaluate``: labels, scores and figures of models on files."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix

from problems.command_line import assert_averages, evaluated, run, write
from sparsemargin import HigherOrderPerceptron, PNormPerceptron, load_model, load_svmlight
from sparsemargin import save_model as save
from sparsemargin.evaluation import margins

MODEL = "a.model"


@pytest.fixture(params=["", "3"], ids=["two classes", "three classes"])
def case(request):
    """A model's path and a file to test it on."""
    run("train", f"train{request.param}.svm", "-o", MODEL, "-q", "--algo", "pnorm", "--p", "3")
    return MODEL, f"test{request.param}.svm"


def file(lines):
    """The path of a file with a few lines."""
    Path("few.svm").write_bytes(lines if isinstance(lines, bytes) else lines.encode())
    return "few.svm"


def changed(path, change):
    """The lines of a file, their labels and what follows these given to a function."""
    return "".join(change(*line.rstrip().split(" ", 1)) + "\n" for line in Path(path).open())


def loaded(model, path):
    """The model, and the rows of the file without the features it does not know."""
    model = load_model(model)
    X, y = load_svmlight(path)
    return model, X[:, : model.n_features_in_], y


def predicted(*args):
    return run("predict", *args).stdout.splitlines()


def texts(labels):
    return [label if isinstance(label, str) else str(int(label)) for label in labels]


# ------------------------------------------------------------------------------------- predictions


def test_labels_and_scores_are_the_classifiers_to_the_bit(case):
    model, X, _ = loaded(*case)
    header, *lines = (line.split("\t") for line in predicted(*case, "--scores"))
    assert header == ["label", *(["1"] if len(model.classes_) == 2 else ["eggs", "ham", "spam"])]
    scores = np.array([line[1:] for line in lines], dtype=np.float64)
    np.testing.assert_array_equal(scores.squeeze(), model.decision_function(X))
    assert [line[0] for line in lines] == predicted(*case) == texts(model.predict(X))


@pytest.mark.parametrize(
    "change",
    [
        lambda label, rest: rest,
        lambda label, rest: f"a,b {rest}",
        lambda label, rest: f"{label} {rest} 5000000:3 9000000000000:1",
    ],
    ids=["no labels", "words never seen", "features the model does not know"],
)
def test_what_predictions_do_not_depend_on(case, change):
    model, test = case
    other = file(changed(test, change))
    assert predicted(model, other, "--scores") == predicted(model, test, "--scores")


def test_output_to_a_file(case):
    assert run("predict", *case, "-o", "labels.txt").stdout == ""
    assert Path("labels.txt").read_text().splitlines() == predicted(*case)
    # An error leaves what is there.
    Path("labels.txt").write_text("old")
    bad = file(Path(case[1]).read_text() + "1 3:x\n")
    result = run("predict", case[0], bad, "-o", "labels.txt", code=1)
    assert "few.svm, line 201, column 3: '3:x'" in result.stderr
    assert Path("labels.txt").read_text() == "old"


@pytest.mark.parametrize(("place", "name"), [(0, "MODEL"), (1, "FILE")])
def test_an_input_is_no_output(case, place, name):
    Path("link").symlink_to(case[place])
    before = Path(case[place]).read_bytes()
    for output in (case[place], "link"):
        error = run("predict", *case, "-o", output, code=2).stderr
        assert f"-o {output} and {name} {case[place]} are one file" in error
    assert Path(case[place]).read_bytes() == before


@pytest.mark.parametrize(
    ("lines", "n_labels", "told"),
    [
        ("\n# nothing\n", 0, "few.svm has no rows: there are no predictions"),
        ("1\n1\n", 2, "few.svm has rows but no features"),
    ],
)
def test_files_of_little_are_warned_of(case, lines, n_labels, told):
    result = run("predict", case[0], file(lines))
    assert len(result.stdout.splitlines()) == n_labels
    assert "Warning: " in result.stderr
    assert told in result.stderr
    assert run("predict", case[0], file(lines), "-q").stderr == ""


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_a_model_of_files_knows_how_indices_count(case, command):
    error = run(command, case[0], file("1 1:1\n1 0:1\n"), code=1).stderr
    assert "few.svm, line 2, column 3: '0:1' has index 0" in error
    assert "has learned from files whose indices count from 1, add 1 to the indices here" in error
    error = run(command, *case, "--zero-based", "yes", code=1).stderr
    assert "zero_based=True is for models of matrices" in error


@pytest.mark.parametrize("zero_based", [True, False])
def test_a_model_of_a_matrix_is_told_how_indices_count(zero_based):
    save(PNormPerceptron(random_state=0).fit(*load_svmlight("train.svm")), MODEL)
    path = write(Path("other.svm"), *load_svmlight("test.svm"), zero_based=zero_based)
    fitted, X, _ = loaded(MODEL, "test.svm")
    options = ["--zero-based", "yes"] if zero_based else []
    assert predicted(MODEL, path, *options) == texts(fitted.predict(X))
    if zero_based:
        error = run("predict", MODEL, file("1 0:1\n"), code=1).stderr
        assert "text that is read as one-based. Pass zero_based=True" in error


def test_hashed_features():
    run("train", "train.svm", "-o", MODEL, "-q", "--hash-bits", "12")
    X, _ = load_svmlight("test.svm", hash_bits=12)
    assert predicted(MODEL, "test.svm") == texts(load_model(MODEL).predict(X))


@pytest.mark.parametrize(
    "classifier",
    [
        PNormPerceptron(hypothesis="vote", random_state=0, fit_intercept=False),
        PNormPerceptron(hypothesis="random", random_state=0),
        HigherOrderPerceptron(random_state=0),
    ],
    ids=["vote", "random", "ho"],
)
def test_models_of_every_kind_predict(classifier):
    save(classifier.fit(*load_svmlight("train.svm")), MODEL)
    _, X, y = loaded(MODEL, "test.svm")
    assert predicted(MODEL, "test.svm") == texts(classifier.predict(X))
    # Votes have margins, draws have none.
    told = evaluated(MODEL, "test.svm")["margins"]
    if classifier.hypothesis == "random":
        assert told is None
    else:
        assert told["least"] == pytest.approx(margins(classifier, X, y).min(), abs=1e-12)


def test_bytes_that_are_not_utf_8_come_back_as_labels():
    path = file(b"\xe9t\xe9 1:1\nhiver 2:1\n" * 30)
    run("train", path, "-o", MODEL, "-q")
    for command, times in (
        (["predict", MODEL, path], 30), (["evaluate", MODEL, path], 3),
        (["info", path], 1), (["inspect", MODEL], 3),
    ):  # fmt: skip
        assert run(*command).stdout_bytes.count(b"\xe9t\xe9") == times


# ------------------------------------------------------------------------------------- evaluation


def test_figures_are_those_of_scikit_learn(case):
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


def test_margins_are_those_of_the_library(case):
    model, X, y = loaded(*case)
    expected, told = margins(model, X, y), evaluated(*case)["margins"]
    assert told["least"] == pytest.approx(expected.min(), rel=1e-12)
    assert told["largest"] == pytest.approx(expected.max(), rel=1e-12)
    for entry in told["quantiles"]:
        exact = np.quantile(expected, entry["share"], method="inverted_cdf")
        assert entry["margin"] == pytest.approx(exact, rel=1 / 4096)


def test_labels_never_learned_are_left_out_and_told():
    run("train", "train3.svm", "-o", MODEL, "-q")
    known = evaluated(MODEL, "test3.svm")
    more = file(Path("test3.svm").read_text() + "sausage 1:1\n" * 3 + "bacon 2:1 7:1\n")
    figures = evaluated(MODEL, more)
    assert figures.pop("unknown_labels") == [
        {"label": "sausage", "rows": 3}, {"label": "bacon", "rows": 1}
    ]  # fmt: skip
    assert known.pop("unknown_labels") == []
    assert figures == known
    text = run("evaluate", MODEL, more).stdout
    assert "4 rows of labels that the model has not learned: sausage (3), bacon (1)" in text
    told = run("evaluate", MODEL, file("sausage 1:1\nbacon 2:1\n"), code=1).stderr
    assert "has none of the labels that the model has learned" in told
    assert "sausage, bacon" in told


def test_one_label_against_the_rest():
    path = file("C15,M11 1:1\nM11 2:1\nC15 1:2 3:1\n 2:2 3:-1\n" * 20)
    run("train", path, "-o", MODEL, "--positive", "C15", "-q")
    figures = evaluated(MODEL, path, "--positive", "C15")
    assert figures["rows"] == 80
    assert figures["accuracy"] == 1.0
    assert [entry["rows"] for entry in figures["classes"]] == [40, 40]
    assert evaluated(MODEL, path, "--positive", "M11")["accuracy"] == 0.5
    # It may be misspelt; that it is a class of the model is not enough.
    for label, lines, there in ("999", "1 1:1\n2 2:1\n", "1, 2"), ("1", "2 1:1\n3 2:1\n", "2, 3"):
        error = run("evaluate", MODEL, file(lines), "--positive", label, code=1).stderr
        assert f"no row has the label positive='{label}'. There are: {there}." in error
    path = file("a 1:1\nb 2:1\nc 3:1\n")
    run("train", path, "-o", MODEL, "-q")
    error = run("evaluate", MODEL, path, "--positive", "a", code=1).stderr
    assert "positive='a' needs a model of two classes; this one has 3" in error


def test_labels_are_equal_as_numbers():
    run("train", "train.svm", "-o", MODEL, "-q")
    same = {"1": "+1.0", "-1": "-1e0"}
    other = file(changed("test.svm", lambda label, rest: f"{same[label]} {rest}"))
    assert evaluated(MODEL, other) == evaluated(MODEL, "test.svm")


def test_the_report_for_people(case):
    text = run("evaluate", *case).stdout
    figures = evaluated(*case)
    assert re.search(rf"^accuracy +{100 * figures['accuracy']:.2f} %$", text, re.MULTILINE)
    for entry in figures["classes"]:
        line = next(line for line in text.splitlines() if line.startswith(entry["label"] + " "))
        assert f"{100 * entry['f1']:.2f} %" in line
    assert "class \\ predicted" in text
    assert "margin up to" in text


def test_many_classes_are_told_by_their_most_frequent_mistakes():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 20)), rng.integers(15, size=300)
    path = write(Path("many.svm"), X, y)
    run("train", path, "-o", MODEL, "-q")
    text, figures = run("evaluate", MODEL, path).stdout, evaluated(MODEL, path)
    mistakes = [e["rows"] for e in figures["confusion"] if e["label"] != e["predicted"]]
    table = text.split("Most frequent mistakes\n")[1].split("\n\n")[0].splitlines()[1:]
    assert [int(line.split()[-1]) for line in table] == sorted(mistakes, reverse=True)[:20]
