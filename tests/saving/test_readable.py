"""Weights written as text equal those of the model, and invalid dictionaries are refused."""

import copy
import io

import numpy as np
import pytest
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from problems.models import fit, make_problem
from sparsemargin import ALMAClassifier, HigherOrderPerceptron, PNormPerceptron
from sparsemargin.saving.readable import read_dictionary, write_readable

X2, Y2 = make_problem()
X3, Y3 = make_problem(n_classes=3)
NAMES = [f"word {i}" for i in range(25)]


def text_of(model, names=None):
    stream = io.StringIO()
    write_readable(stream, model, names)
    return stream.getvalue()


def entries_of(model, names=None):
    lines = text_of(model, names).splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")]


@pytest.mark.parametrize(
    ("model", "dtype"), [(PNormPerceptron(p=6), "f4"), (HigherOrderPerceptron(), "f8")]
)
def test_readable_weights_have_full_precision(model, dtype):
    fit(model, X2.astype(dtype), Y2)
    weights = dict(entries_of(model))
    assert float(weights.pop("(intercept)", 0)) == model.intercept_[0]
    coef = np.zeros(25)
    coef[[int(name) for name in weights]] = [float(text) for text in weights.values()]
    assert coef.tolist() == model.coef_[0].tolist()


@pytest.mark.parametrize("make", [lambda model: model, lambda model: model.sparsify()])
def test_readable_weights_are_sorted_within_each_class(make):
    words = np.array(["ham", "eggs\t", "spam"])[Y3]
    model = make(fit(ALMAClassifier(), X3, words))
    expected = []
    for name, coef, intercept in zip(
        ["eggs\\t", "ham", "spam"], model.fitted.weights(), model.intercept_, strict=True
    ):
        expected.append([name, "(intercept)", repr(float(intercept))])
        falling = np.argsort(-np.abs(coef[:25]), kind="stable")
        expected += [[name, NAMES[i], repr(float(coef[i]))] for i in falling if coef[i]]
    assert entries_of(model, NAMES) == expected


def test_readable_header_describes_the_model():
    model = fit(ALMAClassifier(alpha=0.7, random_state=np.random.RandomState(0)), X2, Y2)
    header = [line for line in text_of(model).splitlines() if line.startswith("#")]
    assert header[0].endswith(", ALMAClassifier")
    for line in "# alpha: 0.7", "# classes: [0, 1]", "# n_features: 25", "# n_trials: 400":
        assert line in header
    assert f"# n_corrections: {model.n_corrections_}" in header
    assert text_of(model) == text_of(model)
    assert not any(" at 0x" in line for line in header)


def test_ambiguous_names_and_classes_are_escaped(tmp_path):
    """Names and classes that are not valid UTF-8 are also escaped."""
    escaped = {
        "a\tb": "a\\tb", "line\nend": "line\\nend", "back\\slash": "back\\\\slash", "\r": "\\r",
        "# no header": "\\# no header", "(intercept)": "\\(intercept)", "(other)": "(other)",
        "\udce9\ud800": "\\udce9\\ud800", "\xe9": "\xe9",
    }  # fmt: skip
    names = [*escaped, *NAMES[len(escaped) :]]
    assert set(escaped.values()) <= {e[0] for e in entries_of(fit(ALMAClassifier(), X2, Y2), names)}
    model = fit(ALMAClassifier(), X3, np.array(["\udce9", "\xe9", "a\\b"], object)[Y3])
    write_readable(tmp_path / "weights.txt", model)
    text = (tmp_path / "weights.txt").read_text(encoding="utf-8")
    assert text == text_of(model)
    assert {entry[0] for entry in entries_of(model)} == {"\\udce9", "\xe9", "a\\\\b"}


def test_readable_names_are_of_the_vectorizer_or_the_fit():
    stories = ["cheap pills now", "meeting on monday", "pills cheap offer", "monday agenda notes"]
    vectorizer = TfidfVectorizer()
    X = vectorizer.fit_transform(stories * 5)
    model = fit(ALMAClassifier(), X, ["spam", "ham"] * 10)
    words = {entry[0] for entry in entries_of(model, vectorizer)}
    assert {"pills", "monday"} <= words
    model.feature_names_in_ = vectorizer.get_feature_names_out()
    assert {entry[0] for entry in entries_of(model)} == words


def test_readable_pipeline_lists_its_words():
    stories, kernel = ["cheap pills now", "meeting on monday"] * 5, ALMAClassifier(kernel="rbf")
    pipeline = make_pipeline(TfidfVectorizer(), ALMAClassifier(random_state=0))
    pipeline.fit(stories, ["spam", "ham"] * 5)
    assert text_of(pipeline) == text_of(pipeline[-1], pipeline[0])
    hashed = make_pipeline(HashingVectorizer(n_features=64), ALMAClassifier(random_state=0))
    hashed.fit(stories, ["spam", "ham"] * 5)
    assert text_of(hashed) == text_of(hashed[-1])
    pipeline = make_pipeline(TfidfVectorizer(), kernel).fit(stories, ["spam", "ham"] * 5)
    assert text_of(pipeline) == text_of(pipeline[-1])
    with pytest.raises(ValueError, match=r"a pipeline that ends in one, got LinearSVC\."):
        text_of(make_pipeline(TfidfVectorizer(), LinearSVC()).fit(stories, [0, 1] * 5))


def test_models_without_readable_weights_are_rejected(tmp_path):
    path, model = tmp_path / "weights.txt", fit(ALMAClassifier(), X2, Y2)
    votes = ALMAClassifier(hypothesis="vote")
    for asked, names, message in (
        (model, NAMES[1:], "^names has 24 names, but there are 25 features"),
        (votes, None, "not fitted"),
        (fit(copy.copy(votes), X2, Y2), None, "hypothesis='vote' has no single weight vector"),
    ):
        with pytest.raises(ValueError, match=message):
            write_readable(path, asked, names)
    assert not path.exists()


def test_dictionaries_are_read(tmp_path):
    for contents, names in (
        (b"a\nb c\n#d\n", ["a", "b c", "#d"]),
        (b"a\r\nb c", ["a", "b c"]),
        (b"\xef\xbb\xbfa\n", ["a"]),
        ("wörd\n".encode(), ["wörd"]),
    ):
        (tmp_path / "words").write_bytes(contents)
        assert read_dictionary(tmp_path / "words", len(names)) == names


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "has 0 names for 3 features. It must have one name in each line, from feature 0"),
        (b"a\nb\nc\nd\n", "has 4 names for 3 features"),
        (b"a\nb\na\n", "line 3 has the name 'a' of line 1"),
        (b"a\n\nc\n", "line 2 reads '': expected a name"),
        (b"a\nb\t1\nc", r"line 2 reads 'b\\t1': expected a name without a tab"),
        (b"a\nb\xff\nc\n", "line 2 is not UTF-8"),
    ],
)
def test_invalid_dictionaries_are_reported_with_their_line(contents, message, tmp_path):
    path = tmp_path / "words"
    path.write_bytes(contents)
    with pytest.raises(ValueError, match=f"^{path}.*{message}"):
        read_dictionary(path, 3)
    with pytest.raises(FileNotFoundError, match="absent"):
        read_dictionary(tmp_path / "absent", 3)
