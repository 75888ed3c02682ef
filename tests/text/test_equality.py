"""Matrices and vocabularies are identical to those of scikit-learn's vectorizers."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.feature_extraction import text as theirs

from depth import some
from problems.csr import assert_identical
from sparsemargin import text as ours
from sparsemargin.text.analysis import Parts

NAMES = ("CountVectorizer", "TfidfVectorizer", "HashingVectorizer")

TEXTS = [
    "Hello world, the World is HELLO: \xe9 \xc9T\xc9 \xe9t\xe9 \xe7a", "a b c", "", "   ",
    "Ὀδυσσεύς ΣΑΣ ΣΑΣ. İstanbul ῼ ǅ", "x\ty  z\n\nqq __init__ foo_bar 12 3 \x1c \x85 \xa0 .",
    "日本語 テキスト １２３ ٣٤٥ क्षि e\u0301 \u0300", "foo bar foo bar baz averyveryverylongword",
    "averyveryverylongwore nul\0in \ud800x", "\x00", "z" * 300, "z" * 300 + " y" * 300,
    "the fox of the fox of the foo", "\U0001d7d8\U00010400 \U0010ffff \ufb01 \u0131 K",
]  # fmt: skip

OPTIONS = {
    "analyzer": ("word", "char", "char_wb"),
    "ngram_range": ((1, 1), (1, 2), (2, 2), (1, 3), (3, 5), (2, 9)),
    "lowercase": (True, False),
    "strip_accents": (None, "unicode", "ascii"),
    "stop_words": (None, "english", ["the", "foo", ""]),
    "token_pattern": (
        r"(?u)\b\w\w+\b", r"\S+", r"(?u)\b\w+\b", r"(?u)\b\w\w\w+\b", r"(?u)\b(\w)\w+\b",
        r"(?u)\w+|[^\w\s]",
    ),
    "binary": (False, True),
    "dtype": (None, np.float32, np.float64, np.int64, np.int32, np.uint8),
    "min_df": (1, 2, 0.3),
    "max_df": (1.0, 0.5, 3),
    "max_features": (None, 3, 40),
    "vocabulary": (
        None, None, None, ["the", "foo bar", "foo", "ab", "x y ", " ", "a  b", "", "fo", "\ud800"],
    ),
    "norm": ("l2", "l1", None),
    "use_idf": (True, False),
    "smooth_idf": (True, False),
    "sublinear_tf": (False, True),
    "alternate_sign": (True, False),
    "n_features": (2**20, 7, 64, 2**24 + 3, 2**31 - 2),
}  # fmt: skip


def own(name, options):
    """Return the options that a vectorizer has."""
    known = getattr(theirs, name)().get_params()
    return {
        key: value
        for key, value in options.items()
        if key in known and not (key == "dtype" and value is None)
    }


def vectorizers(name, options):
    given = own(name, options)
    return getattr(theirs, name)(**given), getattr(ours, name)(**given)


def outcome(vectorizer, texts, others):
    """Return the matrices of the training texts and of other texts, or the exception."""
    try:
        with np.errstate(all="ignore"):
            return vectorizer.fit_transform(texts), vectorizer.transform(others)
    except Exception as error:
        return error


def parts(texts):
    """Return the same texts in one buffer, without lone surrogates."""
    encoded = [text.encode(errors="ignore") for text in texts]
    ends = np.cumsum([len(each) for each in encoded], dtype=np.int64)
    starts = ends - [len(each) for each in encoded]
    return Parts(b"".join(encoded), starts, ends)


def assert_same(reference, vectorizer, texts, others):
    expected = outcome(reference, texts, others)
    found = outcome(vectorizer, texts, others)
    if isinstance(expected, Exception):
        assert type(found) is type(expected), found
        return
    if isinstance(found, Exception):
        raise found
    in_parts = parts([text for text in others if isinstance(text, str)])
    if len(in_parts):
        with np.errstate(all="ignore"):
            assert_identical(vectorizer.transform(list(in_parts)), vectorizer.transform(in_parts))
    for X, Y in zip(expected, found, strict=True):
        assert_identical(X, Y)
    if hasattr(reference, "vocabulary_"):
        names = reference.get_feature_names_out()
        assert list(vectorizer.get_feature_names_out()) == list(names)
        assert list(vectorizer.vocabulary_.items()) == list(reference.vocabulary_.items())
    if hasattr(reference, "idf_"):
        assert vectorizer.idf_.tobytes() == reference.idf_.tobytes()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("analyzer", OPTIONS["analyzer"])
def test_single_parameters_agree_with_scikit_learn(name, analyzer):
    for ngram_range in some([(1, 1), (2, 3)], OPTIONS["ngram_range"]):
        for key, values in own(name, OPTIONS).items():
            for value in values:
                options = {"analyzer": analyzer, "ngram_range": ngram_range, key: value}
                assert_same(*vectorizers(name, options), TEXTS, TEXTS[::-1])


def any_text():
    piece = st.one_of(
        st.sampled_from(TEXTS),
        st.text(st.characters(), max_size=8),
        st.sampled_from(
            ["ΑΣ", "Σ", "İ", "foo", "Foo bar", "  ", "\u0345", "ǅ", "\ud83d", "\0", "é"]
        ),
        st.text(st.sampled_from("aB _9\n.é"), max_size=12),
    )
    return st.lists(piece, max_size=12).map("".join)


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=some(200, 3000), deadline=None)
@given(
    st.sampled_from(NAMES),
    st.fixed_dictionaries({key: st.sampled_from(values) for key, values in OPTIONS.items()}),
    st.lists(any_text(), max_size=12),
    st.lists(any_text(), max_size=3),
)
def test_random_texts_agree_with_scikit_learn(name, options, texts, others):
    assert_same(*vectorizers(name, options), texts, [*others, *texts])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_threads_do_not_change_the_matrix(name, n_jobs):
    texts = TEXTS * 40
    for options in (
        {}, {"ngram_range": (1, 3)}, {"ngram_range": (2, 2), "min_df": 2, "dtype": np.float32},
        {"analyzer": "char_wb", "ngram_range": (2, 4)}, {"vocabulary": ["foo", "the"]},
        {"max_features": 5, "dtype": np.uint8}, {"n_features": 2**24 + 3},
    ):  # fmt: skip
        reference, vectorizer = vectorizers(name, options)
        assert_same(reference, vectorizer.set_params(n_jobs=n_jobs), texts, TEXTS[::-1])
    assert_same(reference, vectorizer, [], TEXTS[:1])
    with pytest.raises(AttributeError, match=r"texts\[561\] is None"):
        vectorizer.fit_transform([*texts, TEXTS[0], None, None])


def test_every_character_is_lowercased_as_in_python():
    # Each character is tested alone, because some depend on their neighbours.
    texts = [f"x{chr(c)} {chr(c)}{chr(c)}" for c in range(0x110000)]
    texts = [" ".join(texts[i : i + 256]) for i in range(0, len(texts), 256)]
    vectorizer = ours.CountVectorizer(token_pattern=r"(?u)\b\w+\b")
    vectorizer.fit(texts)
    reference = theirs.CountVectorizer(token_pattern=r"(?u)\b\w+\b").fit(texts)
    assert vectorizer.vocabulary_ == reference.vocabulary_


@pytest.mark.parametrize("name", NAMES)
def test_copies_transform_equally(name):
    vectorizer = getattr(ours, name)(ngram_range=(1, 2))
    expected = vectorizer.fit_transform(TEXTS[:8])
    restored = pickle.loads(pickle.dumps(vectorizer))
    assert_identical(restored.transform(TEXTS), vectorizer.transform(TEXTS))
    assert_identical(clone(vectorizer).fit_transform(TEXTS[:8]), expected)
    assert restored.get_params() == vectorizer.get_params()


def test_changed_vocabulary_is_used():
    vectorizer = ours.CountVectorizer().fit(["foo bar"])
    vectorizer.vocabulary_["baz"] = 2
    assert vectorizer.transform(["baz foo"]).toarray().tolist() == [[0, 1, 1]]
    vectorizer.vocabulary_ = {"baz": 0}
    assert vectorizer.transform(["baz foo"]).toarray().tolist() == [[1]]


def test_vocabulary_may_have_columns_of_type_float():
    both = vectorizers("CountVectorizer", {"vocabulary": {"foo": 1.0, "bar": 0.0}})
    reference, vectorizer = (each.fit_transform(["foo bar", "foo"]) for each in both)
    assert_identical(reference, vectorizer)


def test_settings_changed_after_the_fit_apply():
    reference, vectorizer = vectorizers("CountVectorizer", {"ngram_range": (1, 2)})
    for each in reference, vectorizer:
        each.fit(TEXTS[:5])
        each.set_params(stop_words=["world", "the"], ngram_range=(1, 3), lowercase=False)
    assert_identical(reference.transform(TEXTS), vectorizer.transform(TEXTS))
    for each in reference, vectorizer:
        each.set_params(analyzer="char", stop_words=None)
    assert_identical(reference.transform(TEXTS), vectorizer.transform(TEXTS))


class Shouting(theirs.CountVectorizer):
    def build_preprocessor(self):
        return str.upper


class OurShouting(ours.CountVectorizer):
    build_preprocessor = Shouting.build_preprocessor


def test_overridden_methods_and_callables_are_used():
    assert_same(Shouting(), OurShouting(), TEXTS[:2], TEXTS[:2])
    for options in (
        {"tokenizer": str.split}, {"preprocessor": str.upper}, {"analyzer": str.split},
        {"strip_accents": lambda text: text.replace("e", "o")},
    ):  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert_same(*vectorizers("TfidfVectorizer", options), TEXTS[:2], TEXTS[:2])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["a bc", None], r"texts\[1\] is None: leave it out, or '' in its place"),
        (["a bc", 3], r"texts\[1\] is int"),
        (["a bc", np.nan], r"np.nan is an invalid document.*texts\[1\]"),
        ("a bc", "Iterable over raw text documents expected"),
    ],
)
def test_values_that_are_not_texts_are_named(name, texts, words):
    with pytest.raises(Exception, match=words) as found:
        getattr(ours, name)().fit_transform(texts)
    with pytest.raises(Exception) as expected:  # noqa: PT011
        getattr(theirs, name)().fit_transform(texts)
    assert found.type is expected.type


def test_undecodable_bytes_are_named():
    with pytest.raises(UnicodeDecodeError) as found:
        ours.CountVectorizer().fit([b"abc", b"\xff\xff"])
    assert found.value.__notes__ == ["It is texts[1]."]
    texts = [b"abc \xff\xff d\xe9f", "abc"]
    for options in {"decode_error": "replace"}, {"encoding": "latin-1"}:
        assert_same(*vectorizers("CountVectorizer", options), texts, texts)


def test_files_and_generators_are_accepted_as_input(tmp_path):
    paths = [tmp_path / f"{i}.txt" for i in range(3)]
    for path, text in zip(paths, TEXTS, strict=False):
        path.write_text(text, "utf-8")
    named = vectorizers("TfidfVectorizer", {"input": "filename"})
    assert_same(*named, [str(path) for path in paths], paths)
    plain = ours.TfidfVectorizer().fit_transform(text for text in TEXTS[:3])
    assert_identical(named[1].fit_transform(paths), plain)
    with paths[0].open("rb") as file:
        counts = ours.CountVectorizer(input="file").fit_transform([file])
    assert_identical(counts, theirs.CountVectorizer().fit_transform(TEXTS[:1]))


def test_scikit_learn_is_imported_only_if_used():
    code = "import sys, sparsemargin, sparsemargin.text; assert 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("norm", ["l1", "l2", None])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_infinite_weights_are_rejected_as_by_scikit_learn(norm, dtype):
    results = []
    for module in theirs, ours:
        # No training text contains "the", so its idf is infinite.
        vectorizer = module.TfidfVectorizer(
            vocabulary=["goal", "the"], smooth_idf=False, norm=norm, dtype=dtype
        )
        with np.errstate(divide="ignore"):
            vectorizer.fit(["goal", "a goal"])
        assert vectorizer.transform(["a goal"]).toarray().tolist() == [[1.0, 0.0]]
        try:
            results.append(vectorizer.transform(["goal", "the goal"]).toarray().tolist())
        except ValueError as error:
            results.append(str(error))
    assert results[0] == results[1]
    assert ("infinity" in results[1]) == (norm is not None)


@pytest.mark.parametrize("weight", [np.nan, np.inf, 1e308])
def test_assigned_idf_is_checked_as_by_scikit_learn(weight):
    results = []
    for module in theirs, ours:
        vectorizer = module.TfidfVectorizer().fit(["a goal", "the goal"])
        vectorizer.idf_ = np.array([1.0, weight])
        try:
            with np.errstate(over="ignore"):
                results.append(vectorizer.transform(["the the goal"]).toarray().tolist())
        except ValueError as error:
            results.append(str(error))
    assert str(results[0]) == str(results[1])


def test_vocabulary_of_another_length_is_rejected():
    for module in theirs, ours:
        vectorizer = module.TfidfVectorizer().fit(["a goal", "the goal"])
        vectorizer.vocabulary_ = {"goal": 0, "the": 1, "new": 2}
        with pytest.raises(ValueError, match="3 features"):
            vectorizer.transform(["the goal"])
