"""TextClassifier: forms of input, missing texts, model selection, explanations, files, copies."""

import json
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier
from sklearn.feature_extraction.text import HashingVectorizer as TheirHashingVectorizer
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.utils.estimator_checks import check_estimator

from problems.command_line import run
from problems.sources import standard_input
from sparsemargin import Rejector, TextClassifier, fit_text, load_model, save_model
from sparsemargin.evaluation.marked_text import as_html, word_contributions
from sparsemargin.files import sources
from sparsemargin.text import HashingVectorizer, TfidfVectorizer, WordCharHashingVectorizer

SUBJECTS = ["cheap pills", "lunch", "see you", "pills for free"] * 20
BODIES = ["buy now", "at noon today", "at the meeting", "free money"] * 20
QUEUES = ["spam", "ham", "ham", "spam"] * 20
TABLE = pd.DataFrame({"id": range(80), "subject": SUBJECTS, "body": BODIES, "queue": QUEUES})
BOTH = [f"{subject}\n{body}" for subject, body in zip(SUBJECTS, BODIES, strict=True)]

TABLES = {
    "pandas": lambda: TABLE,
    "pandas, arrow": lambda: TABLE.convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda: pytest.importorskip("polars").from_pandas(TABLE),
    "pyarrow": lambda: pa.Table.from_pandas(TABLE),
}


def made(**params):
    return TextClassifier(random_state=0, **params)


@pytest.fixture(autouse=True)
def _in_tmp_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def model():
    return made().fit(BOTH, QUEUES)


# ------------------------------------------------------------------------------------- input


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.filterwarnings("ignore:Only the text")
def test_columns_of_a_table_equal_the_joined_texts(name, model):
    table = TABLES[name]()
    for labels in ("queue", QUEUES):
        fitted = made(text=["subject", "body"]).fit(table, labels)
        np.testing.assert_array_equal(
            fitted.decision_function(table), model.decision_function(BOTH)
        )
    assert fitted.predict(table).tolist() == QUEUES
    assert fitted.score(table, "queue") == 1


def test_table_without_text_names_its_columns(model):
    for call in (lambda: made().fit(TABLE, "queue"), lambda: model.predict(TABLE)):
        with pytest.raises(ValueError, match=r"text=COLUMN.*'id', 'subject', 'body', 'queue'"):
            call()
    with pytest.raises(ValueError, match=r"text='bodi' is not a column. Did you mean 'body'\?"):
        made(text="bodi").fit(TABLE, "queue")
    with pytest.raises(ValueError, match="y='queue' names a column, but X is not a table"):
        made().fit(BOTH, "queue")
    with pytest.raises(ValueError, match="several times"):
        made(text=["body", "body"]).fit(TABLE, "queue")


def test_lazy_table_is_refused():
    lazy = pytest.importorskip("polars").from_pandas(TABLE).lazy()
    with pytest.raises(ValueError, match=r"collect\(\)"):
        made(text="body").fit(lazy, QUEUES)


def test_other_columns_are_named_in_a_warning():
    named = TABLE.rename(columns={"id": "a column without a warning yet"})
    with pytest.warns(UserWarning, match="no effect: 'a column without a warning yet', 'subject'"):
        fitted = made(text="body").fit(named, "queue")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made(text="body").fit(named, "queue")
        fitted.predict(TABLE)
        made(text="body").fit(TABLE[["body", "queue"]], TABLE["queue"])


MISSING = [None, np.nan, pd.NA, pd.NaT]


@pytest.mark.parametrize("value", MISSING, ids=repr)
def test_missing_texts(value):
    texts = pd.Series([*BODIES, value, "noon"], dtype=object)
    y = [*QUEUES, "spam", "ham"]
    table = pd.DataFrame({"text": texts})
    with pytest.raises(ValueError, match=r"Row 80 of column 'text' is .*missing='empty'"):
        made(text="text").fit(table, y)
    with pytest.raises((TypeError, ValueError, AttributeError), match=r"texts\[80\]"):
        made().fit(texts, y)
    filled, kept = texts.fillna(""), [i for i in range(82) if i != 80]
    for text, X in ((None, texts), (None, list(texts)), ("text", table)):
        empty = made(text=text, missing="empty").fit(X, y)
        expected = made().fit(list(filled), y)
        np.testing.assert_array_equal(
            empty.decision_function(X), expected.decision_function(list(filled))
        )
        weights = np.linspace(1, 2, 82)
        dropped = made(text=text, missing="drop").fit(X, y, weights)
        expected = made().fit([texts[i] for i in kept], [y[i] for i in kept], weights[kept])
        # A prediction has a row for each text.
        np.testing.assert_array_equal(
            dropped.decision_function(X), expected.decision_function(list(filled))
        )
    with pytest.raises(ValueError, match="All texts are missing"):
        made(missing="drop").fit([value, value], ["a", "b"])
    with pytest.raises(ValueError, match="missing must be one of"):
        made(missing="ignore").fit(BODIES, QUEUES)


def test_row_with_one_of_two_texts_is_kept():
    table = pd.DataFrame({"a": ["cheap", None, None], "b": [None, "noon", None]})
    fitted = made(text=["a", "b"], missing="drop").fit(table, ["spam", "ham", "ham"])
    assert fitted.classifier_.fitted.space.trials % 2 == 0
    assert fitted.predict(table).tolist()[:2] == ["spam", "ham"]


# ---------------------------------------------------------------------------------- features


def test_features(model):
    assert type(model.vectorizer_).__name__ == "WordCharVectorizer"
    assert type(made(features="words").fit(BOTH, QUEUES).vectorizer_) is TfidfVectorizer
    hashed = made(features="hashed").fit(BOTH, QUEUES)
    assert type(hashed.vectorizer_).__name__ == "WordCharHashingVectorizer"
    assert "pills" in dict(hashed.top_features(50)["spam"])
    own = TfidfVectorizer(ngram_range=(1, 3))
    fitted = made(features=own).fit(BOTH, QUEUES)
    assert fitted.vectorizer_.ngram_range == (1, 3)
    assert not hasattr(own, "vocabulary_")
    with pytest.raises(ValueError, match="features must be one of"):
        made(features="letters").fit(BOTH, QUEUES)


def test_parameters_of_the_classifier():
    fitted = made(r=0.1, class_weight="balanced", max_iter=3).fit(BOTH, QUEUES)
    classifier = fitted.classifier_
    assert (classifier.r, classifier.class_weight, classifier.max_iter) == (0.1, "balanced", 3)
    assert classifier.prior == "naive_bayes"
    assert made(algo="pnorm", params={"p": 4}).fit(BOTH, QUEUES).classifier_.p == 4
    with pytest.raises(ValueError, match="r is an argument and in params"):
        made(r=0.1, params={"r": 1}).fit(BOTH, QUEUES)
    with pytest.raises(ValueError, match="Unknown parameter 'C'"):
        made(params={"C": 1}).fit(BOTH, QUEUES)
    same = fit_text(BOTH, QUEUES, random_state=0, r=0.1, class_weight="balanced", max_iter=3)
    assert same.get_params() == fitted.get_params()
    np.testing.assert_array_equal(same.decision_function(BOTH), fitted.decision_function(BOTH))


# --------------------------------------------------------------- tools of scikit-learn, copies


@pytest.mark.filterwarnings("ignore:Only the text")
def test_model_selection():
    whole = made(text=["subject", "body"])
    assert is_classifier(whole)
    assert cross_val_score(whole, TABLE, TABLE["queue"], cv=4).tolist() == [1] * 4
    assert cross_val_score(whole, TABLE, TABLE["queue"], cv=2, n_jobs=2).tolist() == [1] * 2
    probabilities = cross_val_predict(whole, TABLE, QUEUES, cv=4, method="predict_proba")
    assert probabilities.shape == (80, 2)
    grid = {"r": [0.1, 1], "text": ["subject", ["subject", "body"]], "features": ["words", "auto"]}
    search = GridSearchCV(whole, grid, cv=2).fit(TABLE, QUEUES)
    assert search.best_score_ == 1
    nested = made(features=TfidfVectorizer())
    search = GridSearchCV(nested, {"features__ngram_range": [(1, 1), (1, 2)]}, cv=2)
    assert search.fit(BOTH, QUEUES).best_estimator_.vectorizer_.ngram_range in ((1, 1), (1, 2))


def test_scikit_learn_checks_and_metadata_routing():
    # Most of scikit-learn's checks pass a matrix of numbers, and skip an estimator of texts.
    check_estimator(made())
    weights = np.linspace(1, 2, 80)
    with config_context(enable_metadata_routing=True):
        weighted = made().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        scores = cross_validate(
            weighted, BOTH, QUEUES, cv=2, params={"sample_weight": weights}, return_estimator=True
        )
    folds = StratifiedKFold(2).split(BOTH, QUEUES)
    for found, (rows, _) in zip(scores["estimator"], folds, strict=True):
        chosen = [[each[i] for i in rows] for each in (BOTH, QUEUES, weights)]
        expected = made().fit(*chosen)
        np.testing.assert_array_equal(
            found.decision_function(BOTH), expected.decision_function(BOTH)
        )


def test_wrapping_by_other_estimators(model):
    stacked = StackingClassifier([("a", made()), ("b", made(features="words"))], cv=3)
    assert stacked.fit(BOTH, QUEUES).predict(BOTH).tolist() == QUEUES
    calibrated = CalibratedClassifierCV(made(), cv=3).fit(BOTH, QUEUES)
    assert calibrated.predict_proba(BOTH).shape == (80, 2)
    rejector = Rejector(made(), max_error=0.3).fit(BOTH, QUEUES)
    assert set(rejector.predict(BOTH)) <= {"spam", "ham", "unknown"}


@pytest.mark.parametrize("params", [
    {}, {"features": "hashed"}, {"text": ["subject", "body"], "missing": "empty"},
    {"features": TfidfVectorizer(), "algo": "alma", "params": {"p": 4.0}},
    {"class_weight": {"spam": 2.0}, "max_iter": 3},
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:Only the text")
def test_copies(params, tmp_path):
    X = TABLE if "text" in params else BOTH
    fitted = made(**params).fit(X, QUEUES)
    save_model(fitted, tmp_path / "m.model")
    loaded = load_model(tmp_path / "m.model")
    assert type(loaded) is TextClassifier
    assert str(loaded.get_params()) == str(fitted.get_params())
    for copy in (loaded, pickle.loads(pickle.dumps(fitted)), clone(fitted).fit(X, QUEUES)):
        np.testing.assert_array_equal(copy.predict_proba(X), fitted.predict_proba(X))
    again = loaded.fit(X, QUEUES)
    np.testing.assert_array_equal(again.decision_function(X), fitted.decision_function(X))


def test_damaged_parameters_of_a_file_are_refused(model, tmp_path):
    good = model.saved_wrapper()
    for name, value in {"text": [1], "missing": "no", "features": "all", "more": 1}.items():
        with pytest.raises(ValueError, match=r"\w"):
            TextClassifier.restored(good[0], {**good[1], name: value})
    with pytest.raises(ValueError, match="no pipeline"):
        TextClassifier.restored(model.classifier_, good[1])


def test_single_predictions_in_threads(model):
    expected = model.predict(BOTH).tolist()
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda text: model.predict([text])[0], BOTH * 5))
    assert found == expected * 5


def test_unfitted_model_is_refused():
    unfitted = made()
    for name in ("predict", "decision_function", "explain", "unknown_share", "score"):
        with pytest.raises(Exception, match="not fitted") as caught:
            getattr(unfitted, name)(*(["a"], ["b"])[: 2 if name == "score" else 1])
        assert type(caught.value).__name__ == "NotFittedError"


def test_failed_fit_leaves_the_model_unchanged(model):
    before = model.decision_function(BOTH)
    with pytest.raises(ValueError, match=r"\w"):
        model.fit(BOTH, QUEUES[:-1])
    np.testing.assert_array_equal(model.decision_function(BOTH), before)


# ------------------------------------------------------------------------------- partial_fit


def test_partial_fit_from_the_beginning_and_after_fit(model):
    fresh = made().partial_fit(BOTH[:40], QUEUES[:40], classes=["ham", "spam"])
    fresh.partial_fit(BOTH[40:], QUEUES[40:])
    assert fresh.score(BOTH, QUEUES) == 1
    assert "pills" in dict(fresh.top_features(50)["spam"])
    n_before = model.classifier_.fitted.space.trials
    model.partial_fit(["a new word: zebra"], ["spam"])
    assert model.classifier_.fitted.space.trials > n_before
    with pytest.raises(ValueError, match="features='hashed'"):
        made(features="words").partial_fit(BOTH, QUEUES, classes=["ham", "spam"])
    with pytest.raises(ValueError, match="classes must be passed"):
        made().partial_fit(BOTH, QUEUES)
    own = made(features=HashingVectorizer(n_features=1 << 10))
    own.partial_fit(BOTH, QUEUES, classes=["ham", "spam"])
    assert own.vectorizer_.n_features == 1 << 10
    theirs = made(features=TheirHashingVectorizer(n_features=1 << 10))
    theirs.partial_fit(BOTH, QUEUES, classes=["ham", "spam"])
    assert theirs.score(BOTH, QUEUES) == 1


@pytest.mark.parametrize("first", [["a", "b", "c"], ["a", "c"], ["b", "d"]])
@pytest.mark.parametrize("begin", ["fit", "partial_fit"])
def test_new_classes(begin, first):
    words = {"a": "pills", "b": "noon", "c": "score", "d": "bank"}
    y = np.array(list("abcd"))[np.random.RandomState(0).permutation(400) % 4]
    texts = [f"{words[each]} {i % 7} text{i % 5}" for i, each in enumerate(y)]
    old = np.flatnonzero(np.isin(y[:200], first))
    hashing = WordCharHashingVectorizer(1 << 12)
    model = made(features=hashing, params={"intercept_scaling": 0.4, "prior": None})
    known, labels = [texts[i] for i in old], y[old]
    whole = clone(model).partial_fit(known, labels, classes=list("abcd"))
    model = model.partial_fit(known, labels, classes=first)
    if begin == "fit":
        model = clone(model).fit(known, labels)
    before = model.decision_function(texts)
    of_old = ["abcd".index(each) for each in first]
    model.partial_fit(texts[200:], y[200:])
    assert model.classes_.tolist() == list("abcd")
    assert model.score(texts, y) > 0.99
    if begin == "partial_fit":
        # The vectors of earlier classes do not depend on when a new class was announced.
        whole.partial_fit(texts[200:], y[200:])
        np.testing.assert_array_equal(
            model.decision_function(texts)[:, of_old], whole.decision_function(texts)[:, of_old]
        )
        assert model.predict_proba(texts).shape == (400, 4)
    assert before.shape == ((400,) if len(first) == 2 else (400, 3))
    save_model(model, "m.model")
    loaded = load_model("m.model")
    for each in (model, loaded):
        each.partial_fit(["another one", "pills"], ["e", "a"], classes=list("abcdef"))
    assert loaded.classes_.tolist() == list("abcdef")
    np.testing.assert_array_equal(loaded.decision_function(texts), model.decision_function(texts))


def test_rows_of_one_new_class_warn():
    only_new = r"All of these rows have the label 'new', which is new to the model.*Mix them"
    model = made(features="hashed").partial_fit(BOTH, QUEUES, classes=["ham", "spam"])
    save_model(model, "m.model")
    with pytest.warns(UserWarning, match=only_new):
        deepcopy(model).partial_fit(["a", "b"], ["new", "new"])
    Path("new.tsv").write_text("new\ta text\n" * 20)
    warned = " ".join(run("train", "new.tsv", "--init", "m.model", "-o", "n.model").stderr.split())
    assert "The first rows have the label 'new', which is new to the model." in warned
    Path("new.tsv").write_text("new\ta text\nham\tanother\n" * 20)
    assert (
        "new to the model"
        not in run("train", "new.tsv", "--init", "m.model", "-o", "n.model").stderr
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(["a", "b"], ["new", "ham"]).partial_fit(["c"], ["new"])


def test_new_classes_that_are_refused(model):
    with pytest.raises(ValueError, match=r"label 'other' is new.*features='hashed'.*Fit anew"):
        model.partial_fit(["a text"], ["other"])
    pnorm = made(algo="pnorm").partial_fit(BOTH, QUEUES, classes=["ham", "spam"])
    with pytest.raises(ValueError, match="Only AROW"):
        pnorm.partial_fit(["a text"], ["other"])
    hashed = made(features="hashed").fit(BOTH, QUEUES)
    outputs = hashed.decision_function(BOTH)
    with pytest.raises(ValueError, match="sample_weight 2 entries"):
        hashed.partial_fit(["a text"], ["other"], sample_weight=[1, 2])
    np.testing.assert_array_equal(hashed.decision_function(BOTH), outputs)


def tickets(classes, n, seed):
    """Texts with words of their classes, and the classes."""
    random = np.random.RandomState(seed)
    y = random.choice(list(classes), n).tolist()
    words = random.randint(50, size=(n, 8)).astype(str).tolist()
    return [" ".join(random.choice([each, "any"]) + word for word in row)
            for each, row in zip(y, words, strict=True)], y  # fmt: skip


def in_file(texts, y, path="more.tsv"):
    lines = [f"{label}\t{text}\n" for label, text in zip(y, texts, strict=True)]
    Path(path).write_text("".join(lines))
    return path


@pytest.mark.parametrize("first", ["ab", "abc"])
def test_new_classes_in_files(first, monkeypatch):
    model = made(features=HashingVectorizer(n_features=1 << 12)).fit(*tickets(first, 200, 0))
    monkeypatch.setattr(sources, "BLOCK_BYTES", 4096)
    (early, of_early), (late, of_late) = tickets("abcd", 200, 1), tickets("ae", 40, 2)
    texts, y = [*early, *late], [*of_early, *of_late]  # class e occurs in the last rows only
    expected = deepcopy(model).partial_fit(texts, y)
    path = in_file(texts, y)
    announced = {"classes": [*"edcba"]}
    for options in {}, announced:
        one = fit_text(path, init_model=model, **options)
        assert one.classes_.tolist() == [*"abcde"]
        np.testing.assert_array_equal(
            one.decision_function(texts), expected.decision_function(texts)
        )
    with open(path, "rb") as file, standard_input(file.read()):
        once = fit_text("-", format="tsv", init_model=model, **announced)
    np.testing.assert_array_equal(once.decision_function(texts), expected.decision_function(texts))
    with pytest.raises(ValueError, match=r"more.tsv, line .*label e is none.*all classes of"):
        fit_text(path, init_model=model, classes=[*"abcd"])
    with pytest.raises(ValueError, match=r"model are .*Pass all classes of the model and the"):
        fit_text(path, init_model=model, classes=[*"bcde"])
    # Files of one class, and with other spellings of known labels.
    assert fit_text(in_file(["a text"], ["z"]), init_model=model).classes_.tolist() == [*first, "z"]


def test_new_classes_in_files_have_the_type_of_the_classes():
    texts, y = tickets("123", 100, 0)
    model = made(features="hashed").fit(texts, list(map(int, y)))
    more = fit_text(in_file(["a text", "another"], ["4", "1.0"]), init_model=model)
    assert more.classes_.tolist() == [1, 2, 3, 4]
    with pytest.raises(ValueError, match=r"label x is none.*The classes are numbers. Correct"):
        fit_text(in_file(["a text", "another"], ["4", "x"]), init_model=model)


def test_new_classes_in_files_that_are_refused(model):
    path = in_file(["a text"], ["other"])
    with pytest.raises(ValueError, match=r"init_model has a vocabulary.*features='hashed'"):
        fit_text(path, init_model=model)
    alma = made(features="hashed", algo="alma").fit(BOTH, QUEUES)
    with pytest.raises(ValueError, match=r"label other is none.*Only AROW.*Train a new model"):
        fit_text(path, init_model=alma)


def test_labels_of_another_type_are_no_new_classes():
    model = made(features="hashed").fit(BOTH, QUEUES)
    outputs = model.decision_function(BOTH)
    with pytest.raises(ValueError, match=r"label 0 is new.*classes are text, such as 'ham'. Conv"):
        model.partial_fit(["a text", "another"], [0, 1])
    with pytest.raises(ValueError, match=r"label True is new.*truth values.*Convert the labels to"):
        model.partial_fit(["a text", "another"], ["ham", "ham"], classes=[True])
    np.testing.assert_array_equal(model.decision_function(BOTH), outputs)
    model.partial_fit(["a text", "another"], list(map(str, [0, 1])))
    assert model.classes_.tolist() == ["0", "1", "ham", "spam"]


# ------------------------------------------------------------------------------ explanations


def test_explanation_as_table_frame_and_html(model):
    (why,) = model.explain("Free <pills> at noon")
    assert why.label == "spam"
    lines = str(why).splitlines()
    assert lines[0] == "'spam'"
    assert lines[-1].split() == ["output", f"{why.output:+.4f}"]
    frame = why.to_frame()
    assert list(frame) == ["feature", "contribution"]
    assert frame["contribution"].sum() + why.intercept == pytest.approx(why.output, abs=1e-5)
    html = why._repr_html_()
    assert "&lt;" in html
    assert "<pills>" not in html
    assert "rgba(46, 160, 67" in html
    lone = why._replace(text=None)._repr_html_()
    assert lone.startswith("<pre>")


def test_hashed_terms_have_the_names_of_the_text_and_of_later_batches():
    model = made(features="hashed").fit(BOTH, QUEUES)
    model.partial_fit([f"the attorney filed lawsuit {i}" for i in range(30)], ["legal"] * 30)
    text = "an attorney filed a new lawsuit"
    names = model.explain(text)[0].names
    assert {"attorney", "lawsuit", "attorney filed"} <= set(names)
    assert all(name.removeprefix("char: ").strip() in text for name in names)
    leading = [name for name, _ in model.top_features(20)["legal"]]
    assert not any(name.isdecimal() for name in leading)
    model.partial_fit(["?!"], ["legal"])  # a batch without words


def test_repeated_rows_end_probabilities_with_a_warning():
    model = made(features="hashed").fit(BOTH, QUEUES)
    more = [f"{text} number {i}" for i, text in enumerate(BOTH)]
    model.partial_fit(more, QUEUES)
    with pytest.warns(UserWarning, match="trained on some rows more than once"):
        model.partial_fit(more, QUEUES)
    assert not hasattr(model, "predict_proba")


def test_contributions_are_divided_among_words():
    text = "Cheap pills: a cheap trick"
    names = ["cheap", "cheap trick", "pills cheap", "char: ill", "unknown", "17"]
    spans, shares = word_contributions(text, names, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    words = [text[start:end] for start, end in spans]
    assert words == ["Cheap", "pills", "a", "cheap", "trick"]
    # Word pairs skip the word of one letter.
    assert shares.tolist() == [0.5, 10.0, 0.0, 3.5, 1.0]
    assert as_html("", [], []) == ""
    assert as_html("<b>", ["x"], [1.0]) == "&lt;b&gt;"


def texts_with_rare_words(n_texts, random_state):
    """Texts of ten words, of which most occur in one text, and one or two depend on the class."""
    random = np.random.RandomState(random_state)
    y = random.randint(2, size=n_texts)
    words = np.minimum(random.zipf(1.3, size=(n_texts, 10)), 10**9)
    of_class = random.rand(n_texts, 10) < 0.12
    own = np.char.add(np.char.add("t", y.astype(str))[:, np.newaxis], (words % 40).astype(str))
    words = np.where(of_class, own, np.char.add("w", words.astype(str)))
    return [" ".join(row) for row in words], y


@pytest.mark.parametrize("params", [
    {"features": "words"}, {"features": "words", "algo": "pnorm"}, {},
    {"features": TfidfVectorizer(norm="l1")},
], ids=str)  # fmt: skip
def test_probabilities_with_a_vocabulary_are_not_too_large(params):
    X, y = texts_with_rare_words(5000, 1)
    model = TextClassifier(random_state=0, **params).fit(X[:1000], y[:1000])
    probability = model.predict_proba(X[1000:]).max(axis=1).mean()
    assert probability - model.score(X[1000:], y[1000:]) < 0.025


def test_most_confident_errors_are_the_wrong_labels(model):
    y = QUEUES.copy()
    y[2], y[7] = "spam", "ham"
    errors = model.most_confident_errors(BOTH, y)
    assert {(each.position, each.label, each.predicted) for each in errors} == {
        (2, "spam", "ham"), (7, "ham", "spam")
    }  # fmt: skip
    assert errors[0].confidence >= errors[1].confidence > 0.5
    assert errors[0].text == BOTH[errors[0].position]
    assert model.most_confident_errors(BOTH, QUEUES) == []
    assert len(model.most_confident_errors(BOTH, y, n=1)) == 1
    with pytest.raises(ValueError, match="X has 80 texts, and y 3 entries"):
        model.most_confident_errors(BOTH, y[:3])


@pytest.mark.parametrize("features", ["auto", "words", "hashed"])
def test_unknown_share(features):
    fitted = made(features=features).fit(BOTH, QUEUES)
    found = fitted.unknown_share(["cheap pills", "cheap zebra", "zebra crossing", "", "?"])
    assert found.tolist() == [0, 0.5, 1, 0, 0]
    characters = made(features=TfidfVectorizer(analyzer="char")).fit(BOTH, QUEUES)
    with pytest.raises(ValueError, match="single words"):
        characters.unknown_share(["a"])


# ----------------------------------------------------------------------------------- files


def written(form, table):
    path = f"t.{form}"
    if form == "parquet":
        table.to_parquet(path)
    elif form == "jsonl":
        table.to_json(path, orient="records", lines=True)
    elif form == "folder":
        path = "folder"
        table.to_parquet(path, partition_cols=["id"])
    else:
        table.to_csv(path, index=False, sep="\t" if form == "tsv" else ",")
    return path


FORMS = ["csv", "tsv", "jsonl", "parquet", "folder"]
HOW = {"text": ["subject", "body"], "missing": "drop"}


@pytest.mark.parametrize("form", FORMS)
def test_files_with_several_texts_and_missing_values(form):
    table = TABLE.assign(id=TABLE["id"] // 40)
    table.loc[[3, 50], "subject"] = None
    table.loc[[3, 60], "body"] = None
    path, how = written(form, table), {"algo": "arow", "shuffle": False, "max_iter": 1}
    fitted = fit_text(path, label="queue", **HOW, **how)
    texts = table.fillna({"subject": "", "body": ""}).drop(index=3)
    joined = (texts["subject"] + "\n" + texts["body"]).tolist()
    same = fit_text(joined, texts["queue"], features=fitted.vectorizer_, **how)
    np.testing.assert_array_equal(fitted.classifier_.coef_, same.classifier_.coef_)
    for missing in ("error", "empty"):
        if missing == "error":
            with pytest.raises(ValueError, match=r"(row|line) \d+.*'subject' is empty.*missing="):
                fit_text(path, label="queue", text=HOW["text"], **how)
            continue
        fitted = fit_text(path, label="queue", text=HOW["text"], missing="empty", **how)
        assert fitted.classifier_.fitted.space.trials == 80


@pytest.mark.parametrize("form", FORMS)
def test_commands_with_several_texts_and_missing_values(form):
    table = TABLE.assign(id=TABLE["id"] // 40)
    table.loc[[3, 50], "subject"] = None
    path = written(form, table)
    reading = ("--text", "subject", "--text", "body", "--label", "queue")
    assert "--missing empty" in run("train", path, "-o", "m.model", *reading, code=1).stderr
    run("train", path, "-o", "m.model", *reading, "--missing", "empty", "-q")
    loaded = load_model("m.model")
    assert (loaded.text, loaded.missing) == (["subject", "body"], "empty")
    # The columns and the treatment of missing texts are by default those of the model.
    for how in (reading[4:], (*reading, "--missing", "empty")):
        told = run("evaluate", "m.model", path, *how, "--json").stdout
        assert json.loads(told)["rows"] == 80
    order = table.sort_values("id", kind="stable") if form == "folder" else table
    labels = run("predict", "m.model", path).stdout
    assert labels.split() == loaded.predict(order).tolist()
    labels = run("predict", "m.model", path, "--text", "body").stdout
    assert labels.split() == loaded.predict(order["body"]).tolist()


def test_partitioned_folder_gives_the_label(tmp_path):
    TABLE.to_parquet("parts", partition_cols=["queue"])
    (tmp_path / "parts" / "_metadata.parquet").write_bytes(b"no table")
    fitted = fit_text("parts", text="body", label="queue", random_state=0)
    assert fitted.classes_.tolist() == ["ham", "spam"]
    assert fitted.predict(BODIES).tolist() == QUEUES
    pq.write_table(pa.table({"body": ["a"], "queue": ["other"]}), "parts/queue=ham/one.parquet")
    # A column in a file is used rather than the name of its folder.
    assert "other" in fit_text("parts", text="body", label="queue").classes_


def test_continued_training_on_texts_and_files(model):
    more = fit_text(BOTH[:10], QUEUES[:10], init_model=model)
    assert more.classifier_.fitted.space.trials == model.classifier_.fitted.space.trials + 10
    assert type(more) is TextClassifier
    with pytest.raises(ValueError, match="Pass no others"):
        fit_text(BOTH, QUEUES, "alma", init_model=model)
    path = written("csv", TABLE)
    first = fit_text(path, text="body", label="queue")
    again = fit_text(path, text="body", label="queue", init_model=first)
    assert again.classifier_.fitted.space.trials > first.classifier_.fitted.space.trials


# --------------------------------------------------------------------------------- odd input


def test_one_row_of_a_table_is_not_a_collection_of_texts():
    fitted = made(text=["subject", "body"]).fit(TABLE[["subject", "body", "queue"]], "queue")
    with pytest.raises(ValueError, match=r"one row of a table.*df.loc\[\[label\]\]"):
        fitted.predict(TABLE.loc[3, ["subject", "body"]])
    assert fitted.predict(TABLE.loc[[3]]).tolist() == ["spam"]
    (why,) = fitted.explain(TABLE.loc[[3]])
    assert why.text == BOTH[3]
    for several in (TABLE[:2], []):
        with pytest.raises(ValueError, match="a single text"):
            fitted.explain(several)


def test_values_that_are_not_texts_are_named(model):
    with pytest.raises(ValueError, match=r"Row 0 of column 'id' is 0.*astype\('string'\)"):
        made(text="id").fit(TABLE, "queue")
    with pytest.raises(ValueError, match=r"texts\[0\] is a dict. Pass a table, pandas.DataFrame"):
        model.predict([{"body": "a text"}])
    with pytest.raises(ValueError, match=r"Rename the columns.*df.columns.map\(str\)"):
        made(text="0").fit(pd.DataFrame({0: BODIES}), QUEUES)
    with pytest.raises(ValueError, match="text must be the name of a column"):
        made(text=3).fit(TABLE, QUEUES)
    with pytest.raises(ValueError, match=r"features must be one of .*, or a vectorizer"):
        made(features=5).fit(BODIES, QUEUES)
    with pytest.raises(ValueError, match="params must be a dict"):
        made(params=5).fit(BODIES, QUEUES)
    with pytest.raises(ValueError, match="y and text name the same column"):
        made(text=["body", "queue"]).fit(TABLE, "queue")


def test_labels_with_the_name_of_the_texts():
    labels = TABLE["body"].isin(TABLE["body"][:2])
    fitted = made(text="body").fit(TABLE, labels)
    assert fitted.predict(TABLE).dtype == bool


def test_columns_of_labels_do_not_depend_on_their_package():
    lists = [["news", queue] for queue in QUEUES]
    table = pytest.importorskip("polars").DataFrame({"body": BODIES, "topics": lists})
    fitted = made(text="body").fit(table, "topics")
    assert fitted.classes_.tolist() == ["ham", "news", "spam"]
    assert fitted.score(table, "topics") == made(text="body").fit(table, lists).score(table, lists)
    for dtype in ("float64", "Float64", "Float32", "float[pyarrow]"):
        numbers = TABLE.assign(queue=pd.Series([1, 2] * 40, dtype=dtype))
        assert made(text="body").fit(numbers, "queue").classes_.dtype == np.int64


def test_missing_labels_and_other_lengths():
    table = TABLE.assign(queue=[None, *QUEUES[1:]])
    with pytest.raises(ValueError, match=r"Row 0 of column 'queue'.*dropna\(subset=\['queue'\]\)"):
        made(text="body").fit(table, "queue")
    fitted = made(text="body").fit(table.dropna(subset=["queue"]), "queue")
    assert fitted.classifier_.fitted.space.trials % 79 == 0
    for texts in (BODIES, [None, *BODIES[1:]]):
        for how in ({"y": [*QUEUES, "ham"]}, {"y": QUEUES, "sample_weight": np.ones(81)}):
            with pytest.raises(ValueError, match=r"X has 80 texts, and .* 81 entries"):
                made(missing="drop").fit(texts, **how)
    assert made().fit(iter(BODIES), iter(QUEUES)).score(BODIES, QUEUES) == 1


def test_rows_without_text_and_label_are_dropped_everywhere():
    table = TABLE.copy()
    table.loc[[0, 5], ["body", "queue"]] = None
    kept = table.dropna(subset=["body"])
    how = {"algo": "arow", "shuffle": False, "max_iter": 1}
    for form in ("csv", "jsonl", "parquet"):
        fitted = fit_text(
            written(form, table), text="body", label="queue", missing="drop", **how
        )  # fmt: skip
        same = fit_text(list(kept["body"]), kept["queue"], features=fitted.vectorizer_, **how)
        np.testing.assert_array_equal(fitted.classifier_.coef_, same.classifier_.coef_)
    table.loc[7, "queue"] = None
    with pytest.raises(ValueError, match=r"row 8: 'queue'"):
        fit_text(written("parquet", table), text="body", label="queue", missing="drop", **how)


def test_remedies_for_rows_in_other_forms(model):
    row = {"subject": "cheap pills", "body": "buy now"}
    both = made(text=["subject", "body"]).fit(TABLE, QUEUES)
    with pytest.raises(ValueError, match=r"for one row of a table, pandas.DataFrame\(\[X\]\)"):
        both.predict(row)
    assert both.predict(pd.DataFrame([row])).tolist() == ["spam"]
    with pytest.raises(ValueError, match=r"X\[:, j\], or a DataFrame and text=\[COLUMN, COLUMN\]"):
        both.predict(TABLE[["subject", "body"]].to_numpy())
    with pytest.raises(ValueError, match="without a vectorizer before"):
        made().fit(TfidfVectorizer().fit_transform(BOTH), QUEUES)
    with pytest.raises(ValueError, match=r"texts\[1\] is 5, and not a text. Convert the numbers"):
        made().fit(["a text", 5], ["a", "b"])
    with pytest.raises(ValueError, match=r"df.columns = df.columns.map\(str\)"):
        made(text=[0, 1]).fit(TABLE.T.reset_index(drop=True).T, QUEUES)
    with pytest.raises(ValueError, match="X has no texts"):
        made().fit([], [])
    with pytest.raises(ValueError, match="Mix of label input types"):
        model.most_confident_errors(BOTH, np.arange(80))
    labels = np.array(QUEUES, dtype=object)
    labels[3] = np.nan
    with pytest.raises(ValueError, match=r"then X\[keep\]"):
        made(text="body").fit(TABLE, labels)
    keep = pd.notna(labels)
    assert made(text="body").fit(TABLE[keep], labels[keep]).classes_.tolist() == ["ham", "spam"]


def test_output_settings_of_scikit_learn_have_no_effect():
    with config_context(transform_output="pandas"):
        assert made().fit(BOTH, QUEUES).predict(BOTH[:1]).tolist() == ["spam"]


def test_initial_model_gives_the_columns_of_further_files():
    TABLE.assign(body=None).to_csv("a.csv", index=False)
    train = ["train", "a.csv", "--label", "queue", "-o"]
    run(*train, "a.model", "--text", "subject", "--text", "body", "--missing", "empty")
    run(*train, "b.model", "--init", "a.model")
    assert load_model("b.model").get_params()["text"] == ["subject", "body"]
    assert load_model("b.model").missing == "empty"


def test_unknown_features_are_refused_by_all_fits():
    path = written("csv", TABLE)
    for call in (
        lambda model: model.fit(BODIES, QUEUES), lambda model: model.fit_files(path, label="queue"),
        lambda model: model.partial_fit(BODIES, QUEUES, classes=["ham", "spam"]),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="features must be one of"):
            call(made(text="body", features="typo"))


def test_columns_in_an_array_are_saved(tmp_path):
    fitted = made(text=np.array(["subject", "body"])).fit(TABLE, "queue")
    save_model(fitted, tmp_path / "m.model")
    assert load_model(tmp_path / "m.model").text == ["subject", "body"]


def test_model_of_files_reads_a_table_with_the_same_column(tmp_path):
    TABLE.rename(columns={"body": "text", "queue": "label"}).to_csv(tmp_path / "t.csv")
    fitted = fit_text(tmp_path / "t.csv")
    assert fitted.predict(pd.DataFrame({"text": BODIES})).tolist() == QUEUES


def test_new_classes_of_numbers_and_without_an_intercept():
    fitted = made(features="hashed").fit(BODIES, np.array([0.0, 1.0, 1.0, 0.0] * 20))
    fitted.partial_fit(["something else"], np.array([2], np.uint8))
    assert fitted.classes_.tolist() == [0, 1, 2]
    without = made(features="hashed", params={"fit_intercept": False}).fit(BODIES, QUEUES)
    with pytest.raises(ValueError, match="with an intercept"):
        without.partial_fit(["something else"], ["other"])


# ------------------------------------------------------------------------- the label's column


def train_by_command(path):
    run("train", path, "--text", "subject", "--text", "body", "--label", "queue", "-o", "a.model")


def train_by_fit_text(path):
    save_model(fit_text(path, text=["subject", "body"], label="queue"), "a.model")


def train_in_memory(path):
    save_model(made(text=["subject", "body"], features="hashed").fit(TABLE, "queue"), "a.model")


def train_in_batches(path):
    fitted = made(text=["subject", "body"], features="hashed")
    fitted.partial_fit(TABLE, TABLE["queue"], classes=["ham", "spam"]).partial_fit(TABLE, "queue")
    save_model(fitted, "a.model")


def train_a_rejector(path):
    fitted = made(text=["subject", "body"], features="hashed")
    save_model(Rejector(fitted).fit(TABLE, "queue"), "a.model")


@pytest.mark.parametrize(
    "train",
    [train_by_command, train_by_fit_text, train_in_memory, train_in_batches, train_a_rejector],
)
@pytest.mark.filterwarnings("ignore:Only the text")
def test_models_remember_the_column_of_the_labels(train):
    TABLE.to_csv("test.csv", index=False)
    train("test.csv")
    with open("queue", "w") as file:  # it is not read in place of the column
        file.write("no table")
    assert json.loads(run("evaluate", "a.model", "test.csv", "--json").stdout)["accuracy"] == 1
    run("train", "test.csv", "--init", "a.model", "-o", "b.model")
    further = load_model("b.model")
    assert further.label_ == "queue"
    assert fit_text("test.csv", init_model=further).label_ == "queue"
    error = run("evaluate", "b.model", "test.csv", "--label", "no", code=1).stderr
    assert "no column 'no'" in error


@pytest.mark.filterwarnings("ignore:Only the text")
def test_labels_without_a_name_are_not_remembered(model):
    assert model.label_ is None
    assert made(text="body").fit(TABLE, "queue").fit(TABLE, QUEUES).label_ is None
    save_model(model, "a.model")
    assert load_model("a.model").label_ is None


# --------------------------------------------------------------------------------- remedies


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA], ids=repr)
def test_remedies_for_numbers_among_texts_keep_missing_values(gap):
    values = [5, gap, *BODIES[2:]]
    table = pd.DataFrame({"body": pd.Series(values, dtype=object), "queue": QUEUES})
    with pytest.raises(ValueError, match=r"by df\['body'\].astype\('string'\)\.$"):
        made(text="body", missing="empty").fit(table, "queue")
    table["body"] = table["body"].astype("string")
    with pytest.raises(ValueError, match="Row 1 of column 'body' is <NA>"):
        made(text="body").fit(table, "queue")
    expected = made().fit(["5", "", *BODIES[2:]], QUEUES).decision_function(BODIES)
    fitted = made(text="body", missing="empty").fit(table, "queue")
    np.testing.assert_array_equal(fitted.decision_function(BODIES), expected)
    with pytest.raises(ValueError, match=r"pandas.Series\(X, dtype=object\).astype\('string'\)"):
        made(missing="empty").fit(values, QUEUES)
    texts = pd.Series(values, dtype=object).astype("string")
    fitted = made(missing="empty").fit(texts, QUEUES)
    np.testing.assert_array_equal(fitted.decision_function(BODIES), expected)


@pytest.mark.filterwarnings("ignore:Only the text")
def test_names_of_several_levels_are_refused_with_a_remedy(model):
    table = pd.concat({"t": TABLE}, axis=1)
    calls = [
        lambda: made(text="subject").fit(table, "queue"),
        lambda: made(text=[("t", "subject")]).fit(table, ("t", "queue")),
        lambda: made().fit(table, QUEUES),
        lambda: model.most_confident_errors(table, "queue"),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="several levels") as error:
            call()
    df = table.copy()
    exec(str(error.value).split("levels: ")[1].removesuffix("."), {}, {"df": df})
    assert made(text="t_subject").fit(df, "t_queue").predict(df).tolist() == QUEUES
    df.columns = range(4)
    with pytest.raises(ValueError, match="Rename") as error:
        made(text="1").fit(df, "3")
    exec(str(error.value).split("pandas by ")[1].removesuffix("."), {}, {"df": df})
    assert made(text="1").fit(df, "3").predict(df).tolist() == QUEUES


@pytest.mark.filterwarnings("ignore:Only the text")
def test_empty_labels_are_refused_as_missing_ones():
    labels = ["", *QUEUES[1:]]
    table = TABLE.assign(queue=labels)
    with pytest.raises(ValueError, match=r"Row 0 of .* no label.* by df\[df\['queue'\] != ''\]"):
        made(text="body").fit(table, "queue")
    kept = table[table["queue"] != ""]
    assert made(text="body").fit(kept, "queue").classes_.tolist() == ["ham", "spam"]
    for y in labels, np.array(labels), np.array(labels, dtype=object), table["queue"]:
        with pytest.raises(ValueError, match=r"y\[0\] is '': this row has no label.* != ''"):
            made().fit(BODIES, y)
        y = np.array(y, dtype=object).ravel()
        keep = y != ""
        fitted = made().fit(np.asarray(BODIES)[keep], y[keep])
        assert fitted.classes_.tolist() == ["ham", "spam"]
    for form in "csv", "jsonl", "parquet":
        with pytest.raises(ValueError, match=r"row 1: 'queue' is empty|line 1: 'queue' is empty"):
            fit_text(written(form, table), text="body", label="queue")


def test_a_path_in_place_of_texts_is_recognised(model):
    with open("notes", "w") as file:
        file.write("spam\n")
    for path in "no.csv", "no.tsv.gz", "notes", Path("notes"):
        for call in made().fit, model.score, model.most_confident_errors:
            with pytest.raises(ValueError, match=r"names a file.*fit_text\(PATH.*predict MODEL"):
                call(path, QUEUES)
        with pytest.raises(ValueError, match=r"names a file.*fit_text\(PATH.*predict MODEL"):
            model.predict(path)
        with pytest.raises(ValueError, match=r"Leave y out: fit_text\(PATH, label='queue'\)"):
            fit_text(path, "queue")
    with pytest.raises(ValueError, match=r"Pass a list of texts: X=\[text\]"):
        model.predict("cheap pills")


@pytest.mark.parametrize("wrong", [None, 5, {"body": "a"}, {"a"}, np.zeros((2, 2)), TABLE])
def test_explain_names_its_argument(model, wrong):
    with pytest.raises((TypeError, ValueError), match=r"^text (is|must)"):
        model.explain(wrong)
