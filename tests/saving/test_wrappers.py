"""Estimators around a classifier or pipeline are saved with it, and their values are checked."""

import json
import warnings

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline

from problems.command_line import run
from problems.hostile import at, contents_of, opened, rewritten
from problems.models import make_problem
from sparsemargin import (
    ALMAClassifier,
    AROWClassifier,
    Rejector,
    TextClassifier,
    load_model,
    save_model,
    text,
)
from sparsemargin.saving.model_files import read_summary

X, Y = make_problem(n_classes=3)
TEXTS = ["free money now", "see you now", "money, money", "you see the plan"] * 20
LABELS = ["spam", "ham"] * 40


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.model"


def pipeline():
    return make_pipeline(text.TfidfVectorizer(), AROWClassifier(random_state=0))


def rejector_of_texts():
    return Rejector(pipeline(), max_error=0.2).fit(TEXTS, LABELS)


REJECTORS = {
    "numbers": lambda: Rejector(AROWClassifier(random_state=0), max_error=0.2).fit(X, Y),
    "another label": lambda: Rejector(ALMAClassifier(), max_error=0.5, unknown=7).fit(X, Y),
    "bytes": lambda: Rejector(AROWClassifier(), max_error=0.5, unknown=b"?").fit(
        X, np.array([b"a", b"b", b"c"])[Y]
    ),
    "none accepted": lambda: Rejector(AROWClassifier(), max_error=0.0).fit(
        X, np.random.RandomState(0).permutation(Y)
    ),
    # The factor makes no row of X one whose confidence equals the threshold.
    "frozen": lambda: Rejector(FrozenEstimator(AROWClassifier().fit(X, Y)), max_error=0.3).fit(
        0.99 * X, Y
    ),
    "search": lambda: Rejector(
        GridSearchCV(ALMAClassifier(random_state=0), {"p": [2, 4]}, cv=2), max_error=0.3
    ).fit(X, Y),
}


@pytest.mark.parametrize("name", REJECTORS)
def test_rejectors_are_restored(name, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = REJECTORS[name]()
    save_model(model, path)
    loaded = load_model(path)
    assert type(loaded) is Rejector
    for method in "predict", "decision_function", "predict_proba", "confidence":
        expected, found = (getattr(each, method)(X) for each in (model, loaded))
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    for attribute in "classes_", "unknown_", "threshold_", "share_":
        np.testing.assert_array_equal(getattr(loaded, attribute), getattr(model, attribute))
    if name != "search":  # of a search, the selected classifier is saved
        assert repr(loaded) == repr(model)
    assert (loaded.estimator is loaded.estimator_) == (name == "frozen")
    before = path.read_bytes()
    save_model(loaded, path)
    assert path.read_bytes() == before


def test_a_rejector_of_a_pipeline_is_restored_and_read_by_commands(path):
    model = rejector_of_texts()
    save_model(model, path)
    loaded = load_model(path)
    assert loaded.predict(TEXTS).tolist() == model.predict(TEXTS).tolist()
    assert read_summary(path)["wrappers"] == ["Rejector"]
    assert "Rejector" in run("info", path).stdout
    assert json.loads(run("inspect", path, "--json").stdout)["strongest"]
    texts = path.with_suffix(".tsv")
    texts.write_text("".join(f"{a}\t{b}\n" for a, b in zip(LABELS, TEXTS, strict=True)))
    for given in (), ("--reject", "0.2"):
        told = run("predict", path, texts, *given).stdout.split()
        assert told == model.predict(TEXTS).tolist()
    run("predict", path, texts, "--explain", "3")


@pytest.mark.parametrize("name", REJECTORS)
@pytest.mark.filterwarnings("ignore")
def test_commands_reject_rows_as_the_estimator_does(name, path):
    model = REJECTORS[name]()
    save_model(model, path)
    rows = path.with_suffix(".svm")
    names = model.classes_.tolist()
    dump_svmlight_file(X, Y, str(rows), zero_based=False)
    answers = model.predict(X)
    assert run("predict", path, rows).stdout.split() == list(map(str, answers.tolist()))
    rejected = answers == model.unknown_
    told = map(json.loads, run("predict", path, rows, "--json", "--proba").stdout.splitlines())
    assert [each["label"] is None for each in told] == rejected.tolist()
    if isinstance(names[0], str):
        return  # the rows have numbers as labels
    figures = json.loads(run("evaluate", path, rows, "--json").stdout)
    assert figures["rejected"] == rejected.sum()
    assert figures["coverage"] == pytest.approx(1 - rejected.mean())
    expected = None if rejected.all() else pytest.approx(np.mean((answers != Y)[~rejected]))
    assert figures["accepted_error"] == expected
    assert figures["error"] == pytest.approx(np.mean(model.estimator_.predict(X) != Y))
    assert "error of accepted rows" in run("evaluate", path, rows).stdout


def test_damaged_values_of_a_rejector_are_refused_by_commands(path):
    document, arrays = contents_of(rejector_of_texts())
    at(document, VALUES)["threshold_"] = "high"
    rewritten(path, document, arrays)
    texts = path.with_suffix(".tsv")
    texts.write_text("spam\tfree money\n")
    for command in "predict", "evaluate":
        error = run(command, path, texts, code=1).stderr
        assert f"{path}: " in error
        assert "'threshold_' is not a number" in error


def test_files_without_wrappers_do_not_mention_them(path):
    save_model(AROWClassifier().fit(X, Y), path)
    assert "wrappers" not in opened(path)[0]
    assert "wrappers" not in read_summary(path)


class OwnRejector(Rejector):
    pass


class OwnTextClassifier(TextClassifier):
    """A model file would hold its pipeline alone, which predicts the texts unreversed."""

    def texts_of(self, X, argument="X"):
        return [each[::-1] for each in super().texts_of(X, argument)]


def test_wrappers_that_files_cannot_hold_are_refused(path):
    with pytest.raises(NotFittedError, match="Rejector instance is not fitted"):
        save_model(Rejector(AROWClassifier()), path)
    rejector = OwnRejector(AROWClassifier(), max_error=0.5).fit(X, Y)
    for own in rejector, OwnTextClassifier().fit(TEXTS, LABELS):
        with pytest.raises(ValueError, match=rf"got .*{type(own).__name__}.*joblib\.dump"):
            save_model(own, path)


FIRST = ("wrappers", 0)
VALUES = (*FIRST, "values", "dict")


@pytest.mark.parametrize(("place", "value", "words"), [
    (("wrappers",), 3, "'wrappers' is of another type"),
    (("wrappers",), {"dict": {}}, "'wrappers' is of another type"),
    (("wrappers",), None, "'wrappers' is of another type"),
    (("wrappers",), [{"class": "Rejector", "values": {"dict": {}}}] * 5, "of another type"),
    (("wrappers",), [3], "where names should be"),
    (("wrappers",), [{"values": {"dict": {}}}], "no 'class'"),
    (("wrappers",), [{"class": "Rejector"}], "no 'values'"),
    ((*FIRST, "class"), "FunctionTransformer", "there is no estimator 'FunctionTransformer'"),
    ((*FIRST, "class"), ["Rejector"], "'class' is of another type"),
    ((*FIRST, "values"), [], "'values' is of another type"),
    ((*FIRST, "values"), {"dict": {}}, "has no 'max_error'"),
    ((*VALUES, "max_error"), 1.5, "'max_error' is not a number"),
    ((*VALUES, "max_error"), "x", "'max_error' is not a number"),
    ((*VALUES, "threshold_"), np.nan, "'threshold_' is not a number"),
    ((*VALUES, "share_"), -1, "'share_' is not a number"),
    ((*VALUES, "frozen"), 1, "'frozen' is not True or False"),
    ((*VALUES, "unknown"), "x", "unknown='x' is not of the type of the classes"),
    ((*VALUES, "unknown"), 1, "unknown=1 is one of the classes"),
    ((*VALUES, "unknown"), [1, 2], "is not of the type of the classes"),
    ((*VALUES, "unknown"), 10**400, "is not of the type of the classes"),
    ((*VALUES, "unknown"), {"dict": {}}, "is not of the type of the classes"),
])  # fmt: skip
def test_invalid_wrappers_are_rejected(path, place, value, words):
    document, arrays = contents_of(Rejector(AROWClassifier(), max_error=0.5).fit(X, Y))
    at(document, place[:-1])[place[-1]] = value
    rewritten(path, document, arrays)
    with pytest.raises(ValueError, match=f"^{path}.*{words}"):
        load_model(path)


@pytest.mark.parametrize("last", [
    TextClassifier(), Rejector(TextClassifier(), max_error=0.5)
], ids=str)  # fmt: skip
def test_pipeline_that_ends_in_a_whole_task_is_refused_with_a_remedy(last, path):
    texts, labels = ["red car", "blue sky"] * 20, ["a", "b"] * 20
    pipeline = Pipeline([("last", last)]).fit(texts, labels)
    name = type(last).__name__
    with pytest.raises(ValueError, match=rf"ends in a {name}.*Save pipeline\[-1\]"):
        save_model(pipeline, path)
    save_model(pipeline[-1], path)
    assert load_model(path).predict(texts).tolist() == pipeline.predict(texts).tolist()


def test_a_rejector_needs_a_classifier_of_one_class_per_row(path):
    wrappers = contents_of(Rejector(AROWClassifier(), max_error=0.5).fit(X, Y))[0]["wrappers"]
    document, arrays = contents_of(AROWClassifier().fit(X, [[label] for label in Y.tolist()]))
    rewritten(path, {**document, "wrappers": wrappers}, arrays)
    with pytest.raises(ValueError, match=f"^{path}.*a Rejector has no classifier"):
        load_model(path)
    document, arrays = contents_of(AROWClassifier().fit(X, Y))
    rewritten(path, {**document, "wrappers": wrappers * 2}, arrays)
    with pytest.raises(ValueError, match=f"^{path}.*a Rejector has no classifier"):
        load_model(path)
