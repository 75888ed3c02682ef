"""Weights as text: what is written is what the model has, and dictionaries are read with care."""

import io

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from problems.models import fit, make_problem
from sparsemargin import ALMAClassifier, HigherOrderPerceptron, PNormPerceptron
from sparsemargin.io.readable import read_dictionary, write_readable

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


# -- weights --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    "model", [ALMAClassifier(), PNormPerceptron(p=6), HigherOrderPerceptron(fit_intercept=False)]
)
def test_every_weight_is_there_to_the_last_digit(model, dtype):
    fit(model, X2.astype(dtype), Y2)
    weights = dict(entries_of(model))
    intercept = float(weights.pop("(intercept)", 0))
    assert intercept == model.intercept_[0]
    coef = np.zeros(25)
    coef[[int(name) for name in weights]] = [float(text) for text in weights.values()]
    assert coef.tolist() == model.coef_[0].tolist()


@pytest.mark.parametrize("make", [lambda model: model, lambda model: model.sparsify()])
def test_weights_of_many_classes_stand_by_class_and_fall(make):
    words = np.array(["ham", "eggs\t", "spam"])[Y3]
    model = make(fit(ALMAClassifier(), X3, words))
    entries = entries_of(model, NAMES)
    assert len(entries) == np.count_nonzero(model._weights())
    named = ["eggs\\t", "ham", "spam"]
    assert list(dict.fromkeys(entry[0] for entry in entries)) == named
    for label, name in enumerate(named):
        of_label = [entry[1:] for entry in entries if entry[0] == name]
        assert of_label[0] == ["(intercept)", repr(float(model.intercept_[label]))]
        sizes = [abs(float(text)) for _, text in of_label[1:]]
        assert sizes == sorted(sizes, reverse=True)
        coef = model._weights()[label, :25]
        assert {word: float(text) for word, text in of_label[1:]} == {
            NAMES[i]: coef[i] for i in np.flatnonzero(coef)
        }


def test_the_header_tells_of_the_model():
    model = fit(ALMAClassifier(alpha=0.7, random_state=np.random.RandomState(0)), X2, Y2)
    header = [line for line in text_of(model).splitlines() if line.startswith("#")]
    assert header[0].endswith(", ALMAClassifier")
    for line in "# alpha: 0.7", "# classes: [0, 1]", "# n_features: 25", "# n_trials: 400":
        assert line in header
    assert f"# n_corrections: {model.n_corrections_}" in header
    assert text_of(model) == text_of(model)
    assert not any(" at 0x" in line for line in header)


def test_names_and_classes_that_look_like_other_lines_are_escaped(tmp_path):
    """So are those that are not UTF-8."""
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


def test_names_come_from_a_vectorizer_or_from_the_fit():
    stories = ["cheap pills now", "meeting on monday", "pills cheap offer", "monday agenda notes"]
    vectorizer = TfidfVectorizer()
    X = vectorizer.fit_transform(stories * 5)
    model = fit(ALMAClassifier(), X, ["spam", "ham"] * 10)
    words = {entry[0] for entry in entries_of(model, vectorizer)}
    assert {"pills", "monday"} <= words
    model.feature_names_in_ = vectorizer.get_feature_names_out()
    assert {entry[0] for entry in entries_of(model)} == words


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (NAMES[1:], "names has 24 entries; the model has 25 features"),
        ([*NAMES[1:], None], r"names\[24\] = None is not a str"),
        ("words.txt", "names is a single text, 'words.txt'. read_dictionary reads"),
    ],
)
def test_other_names_are_refused(names, message, tmp_path):
    path = tmp_path / "weights.txt"
    with pytest.raises(ValueError, match=message):
        write_readable(path, fit(ALMAClassifier(), X2, Y2), names)
    assert not path.exists()


@pytest.mark.parametrize("hypothesis", ["vote", "random"])
def test_models_without_a_single_vector_are_refused(hypothesis):
    with pytest.raises(ValueError, match=f"hypothesis='{hypothesis}' has no single weight vector"):
        text_of(fit(ALMAClassifier(hypothesis=hypothesis), X2, Y2))
    with pytest.raises(ValueError, match="not fitted"):
        text_of(ALMAClassifier(hypothesis=hypothesis))


# -- dictionaries ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "contents",
    [
        b"a\nb c\n#d\n", b"a\nb c\n#d", b"a\r\nb c\r\n#d\r\n", b"\xef\xbb\xbfa\nb c\n#d\n",
        b"#d\t2\nb c\t1\na\t0\n",
    ],
    ids=["plain", "no last line end", "other line ends", "byte order mark", "numbered"],
)  # fmt: skip
def test_dictionaries_are_read(contents, tmp_path):
    (tmp_path / "words").write_bytes(contents)
    assert read_dictionary(tmp_path / "words", 3) == ["a", "b c", "#d"]
    (tmp_path / "words").write_bytes("a\tb\t1\nwörd\t0\n".encode())
    assert read_dictionary(tmp_path / "words", 2) == ["wörd", "a\tb"]


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "has 0 names for 3 features: feature 0, counted from 0, has none"),
        (b"a\nb\n", "has 2 names for 3 features: feature 2"),
        (b"a\t0\nb\t2\n", "has 2 names for 3 features: feature 1"),
        (b"a\nb\nc\nd\n", "line 4 names feature 3; the model has 3"),
        (b"a\t0\nb\t3\n", "line 2 names feature 3; the model has 3"),
        (b"a\t0\nb\t0\nc\t2", "line 2 names feature 0, as line 1 does"),
        (b"a\nb\na\n", "line 3 has the name 'a' of line 1"),
        (b"a\n\nc\n", "line 2 has no name"),
        (b"\t0\nb\t1\nc\t2", "line 1 has no name"),
        (b"a\nb\t1\nc", r"line 2 reads 'b\\t1': expected a name without a tab"),
        (b"a\t0\nb\nc\t2", "line 2 reads 'b': expected a name, a tab and the number"),
        (b"a\t0\nb\t-1\nc\t2", r"line 2 reads 'b\\t-1': expected a name, a tab and the number"),
        (b"a\tb\nb\t1\nc\t2", r"line 1 reads 'a\\tb': expected a name, a tab and the number"),
        (b"a\nb\xff\nc\n", "line 2 is not UTF-8"),
    ],
)
def test_bad_dictionaries_are_refused_by_line(contents, message, tmp_path):
    path = tmp_path / "words"
    path.write_bytes(contents)
    with pytest.raises(ValueError, match=f"^{path}.*{message}"):
        read_dictionary(path, 3)
    with pytest.raises(FileNotFoundError, match="absent"):
        read_dictionary(tmp_path / "absent", 3)
