"""Inputs other than lists of texts raise errors that name the argument and a remedy."""

import inspect
import re

import numpy as np
import pytest

from sparsemargin import fit_text
from sparsemargin.genomes import KmerVectorizer
from sparsemargin.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfVectorizer,
    WordCharHashingVectorizer,
    WordCharVectorizer,
)

TEXTS, LABELS = ["waves and salt", "hills and forest"] * 20, ["sea", "land"] * 20


def table_of(library):
    columns = {"text": TEXTS, "label": LABELS}
    if library == "pyarrow":
        return pytest.importorskip("pyarrow").table(columns)
    return pytest.importorskip(library).DataFrame(columns)


USES = {
    "fit": lambda X: CountVectorizer().fit(X),
    "fit_transform": lambda X: TfidfVectorizer().fit_transform(X),
    "transform": lambda X: HashingVectorizer().transform(X),
    "hashing fit": lambda X: HashingVectorizer().fit(X),
    "families": lambda X: WordCharVectorizer().fit(X),
    "hashed families": lambda X: WordCharHashingVectorizer().transform(X),
    "own tokens": lambda X: CountVectorizer(tokenizer=str.split, token_pattern=None).fit(X),
    "k-mers": lambda X: KmerVectorizer().transform(X),
    "predict": lambda X: fit_text(TEXTS, LABELS, random_state=0).predict(X),
    "predict_proba": lambda X: fit_text(TEXTS, LABELS, random_state=0).predict_proba(X),
    "decision_function": lambda X: fit_text(TEXTS, LABELS, random_state=0).decision_function(X),
    "fit_text": lambda X: fit_text(X, LABELS, random_state=0),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frame_is_rejected_but_its_column_is_accepted(use, library):
    table = table_of(library)
    told = r"with the columns text, label. Pass .*\['text'\]\.|Pass text=COLUMN.*'text', 'label'"
    with pytest.raises(ValueError, match=told):
        USES[use](table)
    USES[use](table["text"])


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(("given", "message"), [
    ({"text": TEXTS}, "is a dict, whose keys are no texts. Pass"),
    (set(TEXTS), "is a set, which has no order. Pass a list of texts."),
    (np.array([TEXTS]).T, "of 2 dimensions, and texts have one. Pass"),
    (np.array("a text"), "of 0 dimensions"),
    ("a text", "Pass a list of texts|pass a list of them"),
    (b"a text", "Pass a list of texts|pass a list of them"),
    (None, "must be a list of texts, got None"),
])  # fmt: skip
def test_invalid_collections_of_texts_are_rejected(use, given, message):
    with pytest.raises((ValueError, TypeError), match=message):
        USES[use](given)


@pytest.mark.parametrize("use", [use for use in USES if use not in ("k-mers", "hashing fit")])
@pytest.mark.parametrize("missing", [None, np.nan, 3])
def test_value_that_is_not_a_text_is_named(use, missing):
    with pytest.raises((AttributeError, ValueError), match=r"texts\[7\] is "):
        USES[use]([*TEXTS[:7], missing, *TEXTS[8:]])


def test_fit_text_without_labels_explains_what_to_pass():
    table = table_of("pandas")
    with pytest.raises(ValueError, match="fit_text") as refused:
        fit_text(table)
    remedy = re.search(r"fit_text\(.*\)", str(refused.value))[0]
    eval(remedy, {"fit_text": fit_text, "table": table})
    with pytest.raises(
        ValueError, match=r"texts is a Series, and y is missing.*fit_text\(texts, y"
    ):
        fit_text(table["text"])
    with pytest.raises(ValueError, match="texts is a ndarray, and y is missing"):
        fit_text(np.array(TEXTS))


@pytest.mark.parametrize("vectorizer", [CountVectorizer, HashingVectorizer, TfidfVectorizer])
def test_sections_of_docstrings_are_not_indented(vectorizer):
    assert "\n\nParameters\n----------\n**params\n    Par" in inspect.getdoc(vectorizer)


@pytest.mark.parametrize("name", ["ngram_range", "analyzer", "min_df", "stop_words"])
def test_parameters_of_the_vectorizer_are_recognized(name, tmp_path):
    with pytest.raises(ValueError, match=rf"Pass features=TfidfVectorizer\({name}=\.\.\.\)"):
        fit_text(TEXTS, LABELS, **{name: (1, 2)})
    with pytest.raises(
        ValueError, match=rf"HashingVectorizer\({name}=|{name} is a parameter of Tf"
    ):
        fit_text(tmp_path / "a.tsv", **{name: (1, 2)})
    fit_text(TEXTS, LABELS, features=TfidfVectorizer(ngram_range=(1, 2)), random_state=0)
    with pytest.raises(ValueError, match=r"no parameter vectorizer. Pass it as features="):
        fit_text(TEXTS, LABELS, vectorizer=TfidfVectorizer())
