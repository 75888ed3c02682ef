"""Label encoders compared with those of scikit-learn."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import LabelEncoder as Reference
from sklearn.preprocessing import MultiLabelBinarizer

from problems.first_order import examples
from sparsemargin import AROWClassifier, AutoClassifier, fit_csr, fit_svmlight, fit_text
from sparsemargin.models.inputs.label_table import LabelTable
from sparsemargin.models.inputs.labels import (
    LabelEncoder,
    MultilabelEncoder,
    UnknownLabelError,
    given_encoder,
    places_among,
)
from sparsemargin.models.inputs.multilabel_targets import multilabel_targets

LISTS = st.lists(st.lists(st.integers(-3, 4)), min_size=1, max_size=8)


def indicator_of(places, n_labels):
    ones = np.ones(len(places.labels), dtype=int)
    return sp.csr_matrix((ones, places.labels, places.starts), (len(places.starts) - 1, n_labels))


@examples(200)
@given(st.lists(st.integers(0, 255), min_size=1), st.sampled_from(["u1", "i8", "f4", "f8", "U3"]))
def test_label_encoder_agrees_with_scikit_learn(values, kind):
    y = np.array(values).astype(kind)
    encoder, reference = LabelEncoder(), Reference()
    expected = reference.fit_transform(y)
    np.testing.assert_array_equal(encoder.fit_transform(y), expected)
    np.testing.assert_array_equal(encoder.classes, reference.classes_)
    assert encoder.classes.dtype == y.dtype
    np.testing.assert_array_equal(LabelEncoder(encoder.classes).transform(y), expected)


@examples(200)
@given(LISTS)
def test_label_lists_agree_with_an_indicator(lists):
    reference = MultiLabelBinarizer()
    expected = reference.fit_transform(lists)
    targets, encoder = multilabel_targets(lists, 0), MultilabelEncoder()
    places = encoder.fit_transform(targets)
    np.testing.assert_array_equal(encoder.classes, reference.classes_)
    np.testing.assert_array_equal(indicator_of(places, len(encoder.classes)).toarray(), expected)
    assert encoder.inverse_transform(places) == reference.inverse_transform(expected)


@examples(200)
@given(st.data(), LISTS)
def test_rows_match_if_their_label_sets_are_equal(data, lists):
    """Rows may also contain labels other than the classes 0, 1 and 2."""
    sets = st.lists(st.integers(0, 2), unique=True)
    told = data.draw(st.lists(sets, min_size=len(lists), max_size=len(lists)))
    encoder = MultilabelEncoder(np.arange(3))
    places = encoder.transform(multilabel_targets(told, 0))
    matches = encoder.matches(multilabel_targets(lists, 0), places)
    assert matches.tolist() == [set(a) == set(b) for a, b in zip(lists, told, strict=True)]


def test_text_labels_are_compared_as_numbers_or_words():
    table = LabelTable(["+1", "spam", "-1.0", "1"], [1.0, np.nan, -1.0, 1.0])
    assert table.texts == ["+1", "spam", "-1.0"]
    encoder = LabelEncoder.of_text(np.array(["-1", "1", "spam"]))
    ids = np.array([0, 1, 2, 0])
    assert encoder.transform_ids(table, ids, None).tolist() == [1, 2, 0, 1]
    table.take(["eggs", "1e0"], [np.nan, 1.0])
    with pytest.raises(UnknownLabelError) as caught:
        encoder.transform_ids(table, np.array([1, 3]), None)
    assert (caught.value.row, caught.value.label) == (1, "eggs")
    start = np.array([0, 2, 2, 3, 4])
    rest = LabelEncoder.of_positive("1.0").transform_ids(table, np.array([3, 0, 1, 2]), start)
    assert rest.tolist() == [1, 0, 0, 0]
    several = MultilabelEncoder.of_text(np.array(["-1", "1", "spam"]))
    places = several.transform_ids(table, np.array([1, 0, 1, 2]), start)
    assert several.inverse_transform(places) == [("1", "spam"), (), ("spam",), ("-1",)]


def test_mostly_unique_targets_warn_like_scikit_learn(tmp_path):
    X = sp.csr_matrix(np.eye(40))
    for n_rows, n_classes, warns in (
        (20, 20, False),
        (40, 20, False),
        (40, 21, True),
        (21, 21, True),
    ):
        y = np.arange(n_rows) % n_classes
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            AROWClassifier().fit(X[:n_rows], y)
        assert sum("different labels" in str(each.message) for each in told) == warns
    names = [f"text {i}" for i in range(40)]
    svmlight, texts = tmp_path / "a.svm", tmp_path / "a.tsv"
    svmlight.write_text("".join(f"{i} {i + 1}:1\n" for i in range(40)))
    texts.write_text("".join(f"{name}\tsome {name}\n" for name in names))
    for fit in (
        lambda: fit_csr(X, names),
        lambda: AutoClassifier().fit(X, names),
        lambda: fit_text(names, names),
        lambda: fit_text(texts),
        lambda: fit_svmlight(svmlight),
        lambda: fit_svmlight(svmlight, max_iter=2),
    ):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            fit()
        assert sum("different labels" in str(each.message) for each in told) == 1
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fit_svmlight(svmlight, classes=list(range(40)))
        fit_svmlight(svmlight, init_model=fit_svmlight(svmlight, classes=list(range(40))))
    assert not any("different labels" in str(each.message) for each in told)


def test_large_integers_of_other_types_are_compared_exactly():
    classes = np.array([2**53, 2**53 + 1], dtype=np.uint64)
    labels = np.array([2**53 + 1, 2**53, 2**53 + 2], dtype=np.int64)
    assert places_among(classes, labels).tolist() == [1, 0, -1]
    assert places_among(np.array(["1"]), np.array([1])).tolist() == [-1]
    assert given_encoder([2**53, 2**53 + 1], None, False).classes.tolist() == [
        str(2**53), str(2**53 + 1)
    ]  # fmt: skip


def test_two_spellings_of_one_class_are_rejected():
    encoder = LabelEncoder.of_text(np.array(["True", "true", "a"]))
    table = LabelTable(["TRUE"], [np.nan])
    with pytest.raises(ValueError, match="True and true are one label in files of texts"):
        encoder.transform_ids(table, np.array([0]), None)
