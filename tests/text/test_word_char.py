"""Words and character n-grams in one matrix equal a `FeatureUnion` of two vectorizers."""

import pickle
import signal
from threading import Timer

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction import text as theirs
from sklearn.pipeline import FeatureUnion

from depth import some
from problems.csr import assert_identical
from sparsemargin import fit_text, load_model, save_model, to_sklearn
from sparsemargin._engine.text.weighing import Counted, weigh
from sparsemargin.evaluation import explain_row
from sparsemargin.text import (
    HashingVectorizer,
    WordCharHashingVectorizer,
    WordCharVectorizer,
    families,
)

TEXTS = [
    "Hello world, the World is HELLO: \xe9 \xc9T\xc9 \xe9t\xe9 \xe7a", "a b c", "", "   ",
    "Ὀδυσσεύς ΣΑΣ ΣΑΣ. İstanbul ῼ ǅ", "x\ty  z\n\nqq __init__ foo_bar 12 3 \x1c \x85 \xa0 .",
    "日本語 テキスト １２３ ٣٤٥ e\u0301 \u0300", "foo bar foo bar baz averyveryverylongword!",
    "averyveryverylongwore nul\0in \ud800x", "\x00", "z" * 300, "it's, isn't it? (singing)",
]  # fmt: skip
LABELS = ["spam", "ham"] * 6
PUNCTUATION = r"(?u)\w+|[^\w\s]"

OPTIONS = {
    "word_ngram_range": [(1, 2), (1, 1), (2, 3)],
    "char_ngram_range": [(3, 5), (1, 2), (2, 9)],
    "token_pattern": [r"(?u)\b\w\w+\b", PUNCTUATION, r"(?u)\b\w+\b", r"\S+", r"[a-z]+"],
    "lowercase": [True, False],
    "strip_accents": [None, "ascii", "unicode"],
    "norm": ["l2", "l1", None],
    "dtype": [np.float32, np.float64],
    "n_jobs": [1, 3],
}
TFIDF = {"word_min_df": [1, 2, 0.3], "char_min_df": [2, 1, 0.5], "sublinear_tf": [True, False]}


def union_of(vectorizer):
    """Return scikit-learn's vectorizers with the same parameters, side by side."""
    made = []
    for name, each in zip(("word", "char"), vectorizer.vectorizers(), strict=True):
        kind = getattr(theirs, type(each).__name__)
        own = {key: value for key, value in each.get_params().items() if key in kind().get_params()}
        made.append((name, kind(**own)))
    return FeatureUnion(made)


def assert_equal(X, Y):
    """Check that the rows are equal apart from the order of entries and rounding."""
    X, Y = X.tocsr(copy=True), Y.tocsr(copy=True)
    assert X.shape == Y.shape
    assert X.dtype == Y.dtype
    for each in X, Y:
        each.sort_indices()
    np.testing.assert_array_equal(X.indptr, Y.indptr)
    np.testing.assert_array_equal(X.indices, Y.indices)
    np.testing.assert_allclose(Y.data, X.data, rtol=2.4e-7 if X.dtype == np.float32 else 1e-14)


def assert_same(vectorizer, texts, others):
    union = union_of(vectorizer)
    try:
        expected = union.fit_transform(texts)
    except (ValueError, UnicodeEncodeError):
        return
    assert_equal(expected, vectorizer.fit_transform(texts))
    try:
        expected = union.transform(others)
    except (ValueError, UnicodeEncodeError) as error:
        with pytest.raises(type(error)):
            vectorizer.transform(others)
        return
    assert_equal(expected, vectorizer.transform(others))
    if hasattr(vectorizer, "char_vectorizer_"):
        names = [name.removeprefix("word__") for name in union.get_feature_names_out()]
        names = [
            "word: " + name if name.startswith(("char: ", "word: ")) else name for name in names
        ]
        names = [name.replace("char__", "char: ", 1) for name in names]
        assert vectorizer.get_feature_names_out().tolist() == names
        assert vectorizer.vocabulary_ == {name: i for i, name in enumerate(names)}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [WordCharVectorizer, WordCharHashingVectorizer])
def test_single_parameters_agree_with_a_union(kind):
    plain = [text for text in TEXTS if "\ud800" not in text]
    own = TFIDF if kind is WordCharVectorizer else {"n_features": [64, 14, 2**21], "binary": [0, 1]}
    for name, values in {**OPTIONS, **own}.items():
        for value in values:
            if name == "binary":
                value = bool(value)
            assert_same(kind(**{name: value}), plain, plain[::-1])


PIECES = st.one_of(
    st.sampled_from(TEXTS),
    st.text(st.characters(), max_size=8),
    st.text(st.sampled_from("aB _9\n.é\0\x1b-"), max_size=12),
)


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=some(150, 2000), deadline=None)
@given(
    st.fixed_dictionaries(
        {key: st.sampled_from(values) for key, values in {**OPTIONS, **TFIDF}.items()}
    ),
    st.lists(st.lists(PIECES, max_size=6).map(" ".join), max_size=10),
    st.lists(PIECES, max_size=3),
)
def test_random_texts_agree_with_a_union(options, texts, others):
    assert_same(WordCharVectorizer(**options), texts, [*others, *texts])


@pytest.mark.parametrize("kind", [WordCharVectorizer, WordCharHashingVectorizer])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_do_not_change_the_matrix(kind, dtype):
    texts = [text.replace("\ud800", "") for text in TEXTS] * 30
    plain = kind(dtype=dtype)
    expected = plain.fit_transform(texts)
    for n_jobs in 2, 5:
        vectorizer = kind(dtype=dtype, n_jobs=n_jobs)
        assert_identical(vectorizer.fit_transform(texts), expected)
        assert_identical(vectorizer.transform(texts[:100]), plain.transform(texts[:100]))


@pytest.mark.parametrize("kind", [WordCharVectorizer, HashingVectorizer])
def test_more_jobs_than_texts(kind):
    vectorizer, expected = kind(n_jobs=2**40), kind().fit_transform(TEXTS[:8])
    assert_identical(vectorizer.fit_transform(TEXTS[:8]), expected)


def test_texts_of_any_container_are_accepted():
    expected = WordCharVectorizer().fit_transform(TEXTS[:8])
    for texts in (iter(TEXTS[:8]), tuple(TEXTS[:8]), np.array(TEXTS[:8], dtype=object),
                  [text.encode() for text in TEXTS[:8]]):  # fmt: skip
        assert_identical(WordCharVectorizer().fit_transform(texts), expected)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_stops_a_fit(n_jobs):
    texts = ["some words of a text that is read again and again"] * 10**5
    vectorizer = WordCharVectorizer(n_jobs=n_jobs).fit(TEXTS[:8])
    before = vectorizer.transform(TEXTS[:4])
    timer = Timer(0.05, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        list(map(vectorizer.fit, [texts] * 1000))
    timer.join()
    if vectorizer.n_columns == before.shape[1]:
        assert_identical(vectorizer.transform(TEXTS[:4]), before)


def test_counts_beyond_the_table_of_logarithms(monkeypatch):
    texts = ["aa bb " * 9 + "cc", "aa cc " * 30, "aab"]
    expected = WordCharVectorizer().fit_transform(texts)
    monkeypatch.setattr(families, "N_LOGS", 4)
    vectorizer = WordCharVectorizer()
    assert_identical(vectorizer.fit_transform(texts), expected)
    np.testing.assert_array_equal(
        vectorizer.transform(texts).toarray(),
        WordCharVectorizer().fit(texts).transform(texts).toarray(),
    )


def test_family_without_terms_has_no_columns(tmp_path):
    for texts in ["cheap pills", "lunch at noon"], ["a b cde", "x - cde"], ["日 本", "日 語"]:
        vectorizer = WordCharVectorizer(char_ngram_range=(3, 3))
        X = vectorizer.fit_transform(texts)
        assert X.shape == (2, len(vectorizer.vocabulary_))
        np.testing.assert_array_equal(vectorizer.transform(texts).toarray(), X.toarray())
        model = fit_text(texts, ["spam", "ham"], features=vectorizer, random_state=0)
        save_model(model, tmp_path / "a.model")
        outputs = load_model(tmp_path / "a.model").decision_function(texts)
        assert outputs.tolist() == model.decision_function(texts).tolist()
    with pytest.raises(ValueError, match="All terms were left out") as refused:
        WordCharVectorizer(word_min_df=2).fit(["ab", "cd"])
    remedy = str(refused.value).rpartition("minimum: ")[2].rstrip(".")
    eval(remedy, {"WordCharVectorizer": WordCharVectorizer}).fit(["ab", "cd"])
    for texts in ["", " "], []:
        with pytest.raises(ValueError, match="contain no words"):
            WordCharVectorizer().fit(texts)
    for vectorizer in WordCharVectorizer().fit(["ab cd"] * 2), WordCharHashingVectorizer():
        with pytest.raises(ValueError, match="X has no texts"):
            vectorizer.transform([])


def test_names_are_unique():
    texts = ["char: ing word: char: ing", "char: bing"] * 2
    vectorizer = WordCharVectorizer(token_pattern=r"\S+", word_ngram_range=(1, 3))
    vectorizer.fit(texts)
    names = vectorizer.get_feature_names_out().tolist()
    assert len(set(names)) == len(names)
    assert {"word: char: ing", "char: ing"} <= set(names)


@pytest.mark.parametrize("protocol", range(6))
def test_copies_transform_equally(protocol, tmp_path):
    for vectorizer in WordCharVectorizer(), WordCharHashingVectorizer(2**12):
        texts = TEXTS[:8]
        expected = vectorizer.fit_transform(texts)
        vectorizer.transform(texts)
        restored = pickle.loads(pickle.dumps(vectorizer, protocol))
        assert_identical(restored.transform(TEXTS[:4]), vectorizer.transform(TEXTS[:4]))
        assert_identical(clone(vectorizer).fit_transform(texts), expected)
        assert restored.get_params() == vectorizer.get_params()


@pytest.mark.parametrize("in_file", [False, True])
def test_pipelines_are_saved_explained_and_converted(in_file, tmp_path):
    texts = ["it was singing", "hills and forest", "it sings well", "a dark wood"] * 5
    labels = ["sea", "land"] * 10
    if in_file:
        path = tmp_path / "a.tsv"
        path.write_text("".join(f"{y}\t{text}\n" for y, text in zip(labels, texts, strict=True)))
        vectorizer = WordCharHashingVectorizer(2**14)
        model = fit_text(path, features=vectorizer, random_state=0)
    else:
        model = fit_text(texts, labels, features=WordCharVectorizer(), random_state=0)
    assert model.predict(texts).tolist() == labels
    save_model(model, tmp_path / "a.model")
    loaded = load_model(tmp_path / "a.model")
    assert loaded.vectorizer_.get_params() == model.vectorizer_.get_params()
    assert_identical(loaded.pipeline_[:-1].transform(texts), model.pipeline_[:-1].transform(texts))
    [explanation] = explain_row(loaded, ["singing"])
    assert {"singing", "char: ing"} <= set(explanation.names)
    converted = to_sklearn(model)
    assert type(converted[0]).__module__.startswith("sklearn")
    assert converted.predict(texts).tolist() == labels


def test_hashed_words_and_ngrams_have_half_of_the_columns():
    words, ngrams = WordCharHashingVectorizer(128, norm=None).vectorizers()
    assert type(words) is type(ngrams) is HashingVectorizer
    assert (words.n_features, ngrams.n_features) == (64, 64)
    vectorizer = WordCharHashingVectorizer(128).remember_terms(["sing"])
    X = vectorizer.transform(["sing"])
    names = [vectorizer.get_feature_names_out()[int(j)] for j in X.indices]
    assert "sing" in names
    assert all(
        name.startswith("char: ") == (j >= 64) for name, j in zip(names, X.indices, strict=True)
    )
    with pytest.raises(AttributeError):
        WordCharHashingVectorizer().get_feature_names_out()


@pytest.mark.parametrize(("given", "message"), [
    ({"char_ngram_range": (3, 1)}, "char_ngram_range must be two integers"),
    ({"word_ngram_range": (0, 1)}, "word_ngram_range must be two integers"),
    ({"word_ngram_range": (1, 10**12)}, "word_ngram_range must be two integers from 1 to 1000"),
    ({"char_ngram_range": ("a", "b")}, "char_ngram_range must be two integers"),
    ({"char_ngram_range": (1.5, 2.5)}, "char_ngram_range must be two integers"),
    ({"dtype": "foo"}, "dtype must be float32 or float64"),
    ({"norm": "l3"}, "'norm' parameter"), ({"dtype": int}, "dtype must be float32 or float64"),
    ({"token_pattern": None}, "'token_pattern' parameter"), ({"n_jobs": 0.5}, "'n_jobs' parameter"),
])  # fmt: skip
def test_invalid_parameters_are_named(given, message):
    for kind in WordCharVectorizer, WordCharHashingVectorizer:
        with pytest.raises(ValueError, match=message):
            kind(**given).fit(TEXTS)
    with pytest.raises(ValueError, match="'char_min_df' parameter"):
        WordCharVectorizer(char_min_df=0).fit(TEXTS)
    with pytest.raises(ValueError, match="n_features must be even, got 7"):
        WordCharHashingVectorizer(7).transform(TEXTS)


def test_unfitted_vectorizer_is_refused():
    for use in "transform", "get_feature_names_out":
        with pytest.raises(NotFittedError):
            getattr(WordCharVectorizer(), use)(TEXTS)
    with pytest.raises(AttributeError, match=r"texts\[1\] is None"):
        WordCharVectorizer().fit(["a text", None])


def test_output_as_data_frame_is_refused():
    for vectorizer in WordCharVectorizer(), WordCharHashingVectorizer():
        vectorizer.set_output(transform="default")
        with config_context(transform_output="pandas"):
            assert vectorizer.fit_transform(TEXTS[:8]).format == "csr"
        with pytest.raises(ValueError, match=r"sparse. Pass transform='default'"):
            vectorizer.set_output(transform="pandas")


def test_damaged_rows_of_counts_are_refused():
    ints = lambda *values: np.array(values, np.int32)  # noqa: E731
    longs = lambda *values: np.array(values, np.int64)  # noqa: E731
    good = [ints(1, 2), ints(0, 1), longs(0, 2), 2]
    for i, bad in (1, ints(0, 2)), (1, ints(-1, 0)), (3, 1):
        with pytest.raises(ValueError, match="a number is not below"):
            Counted(*good[:i], bad, *good[i + 1 :])
    for bad in longs(0, 3), longs(2, 1), longs(-1, 2), longs():
        with pytest.raises(ValueError, match="end elsewhere"):
            Counted(*good[:2], bad, 2)
    with pytest.raises(ValueError, match="number is not below 1"):
        Counted(*good, ints(0, 1), longs(0, 2))
    with pytest.raises(ValueError, match="end elsewhere"):
        Counted(*good, ints(0, 1), longs(0, 1, 3))
    counted, logs = Counted(*good), np.ones(9, np.float32)
    room = np.empty(1, np.int32), np.empty(1, np.float32), np.empty(1, np.int64)
    with pytest.raises(ValueError, match="room for 1"):
        weigh([(counted, None, None, 0)], logs, None, *room)
    with pytest.raises(ValueError, match="other numbers of columns or rows"):
        weigh([(counted, ints(0), None, 0)], logs, None, *room)
    words = Counted(*good, ints(0, 1), longs(0, 1, 2))
    with pytest.raises(ValueError, match="need columns"):
        weigh([(words, None, None, 0)], logs, None, *room)


def test_rows_are_weighted_as_in_fit_after_parameters_change():
    texts = ["the goal of the match", "the minister and the bill"]
    vectorizer = WordCharVectorizer().fit(texts)
    before = vectorizer.transform(texts).toarray()
    vectorizer.set_params(norm=None, sublinear_tf=False)
    np.testing.assert_array_equal(vectorizer.transform(texts).toarray(), before)
