"""The loader of RCV1 with a small sample, and with a small corpus."""

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from problems.synthetic_files import BY_HAND
from sparsemargin.datasets import load_rcv1

VECTORS = "rcv1_subsets_topics.svm.bz2"
# The content of the small sample in the order of its file; its source does not have M143.
ROWS = np.array([[0.6, 0, 0, 0.8, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 1],
                 [0.8, 0, 0, 0, 0.6], [0, 0, 1, 0, 0], [0, 0.6, 0.8, 0, 0]])  # fmt: skip
INDICATOR = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 0]])
GIVEN, SHUFFLED = np.arange(6), np.random.RandomState(0).permutation(6)
# The document numbers of the corpus, which are not sorted.
NUMBERS, BY_NUMBER = np.array([2290, 2286, 810596, 2289]), [1, 3, 0, 2]


@pytest.mark.parametrize(("options", "rows"), [
    ({}, SHUFFLED), ({"order": "given", "dtype": np.float32}, GIVEN),
    ({"random_state": 7}, np.random.RandomState(7).permutation(6)),
])  # fmt: skip
def test_one_topic_of_the_sample(home, options, rows):
    stories = load_rcv1("GCAT", data_home=home, **options)
    dtype = options.get("dtype", np.float64)
    assert isinstance(stories.data, sp.csr_matrix)
    assert stories.data.dtype == dtype
    assert stories.data.indices.dtype == stories.data.indptr.dtype == np.int32
    assert_array_equal(stories.data.toarray(), ROWS[rows].astype(dtype))
    assert_array_equal(stories.target, 2 * INDICATOR[rows, 1] - 1)
    assert stories.target.dtype == np.int64
    assert stories.target_names.tolist() == ["not GCAT", "GCAT"]
    assert_array_equal(stories.sample_id, rows)
    assert stories.source == "sample"


@pytest.mark.parametrize(("topics", "columns"), [
    (["MCAT", "C15"], [2, 0]), (("GCAT",), [1]), (iter(["C15"]), [0]), (None, [0, 1, 2]),
])  # fmt: skip
def test_several_topics(home, topics, columns):
    stories = load_rcv1(topics, order="given", data_home=home)
    assert isinstance(stories.target, sp.csr_matrix)
    assert stories.target.dtype == np.uint8
    assert_array_equal(stories.target.toarray(), INDICATOR[:, columns])
    assert_array_equal(stories.target_names, np.array(["C15", "GCAT", "MCAT"])[columns])


def write_corpus(folder):
    """Write the files that fetch_rcv1 leaves."""
    (folder / "RCV1").mkdir(parents=True)
    parts = {
        "samples": sp.csr_matrix(ROWS[:4]),
        "sample_id": NUMBERS.astype(np.uint32),
        "sample_topics": sp.csr_matrix(np.eye(4, dtype=np.uint8)),
        "topics_names": np.array(["C15", "GCAT", "M143", "MCAT"], dtype=object),
    }
    for name, part in parts.items():
        joblib.dump(part, folder / "RCV1" / f"{name}_py3.pkl")


@pytest.mark.parametrize("below", ["home", "cache/sparsemargin", "scikit-learn"])
def test_corpus_is_sorted_by_document_number(nowhere, below):
    write_corpus(nowhere / below)
    (nowhere / "home").mkdir(exist_ok=True)
    corpus = {"source": "corpus", "data_home": nowhere / "home"}
    stories = load_rcv1("M143", dtype=np.float32, **corpus)
    assert stories.source == "corpus"
    assert_array_equal(stories.sample_id, NUMBERS[BY_NUMBER])
    assert_array_equal(stories.data.toarray(), ROWS[BY_NUMBER].astype(np.float32))
    assert stories.data.dtype == np.float32
    assert_array_equal(stories.target, [-1, -1, -1, 1])
    assert "RCV1" in stories.DESCR
    stories = load_rcv1(None, **corpus)
    assert_array_equal(stories.target.toarray(), np.eye(4)[BY_NUMBER])
    shuffled = load_rcv1(order="shuffled", random_state=3, **corpus)
    assert_array_equal(shuffled.sample_id, NUMBERS[np.random.RandomState(3).permutation(4)])


def test_sample_has_priority_even_if_it_is_damaged(home, nowhere):
    with pytest.raises(FileNotFoundError, match=rf"download rcv1\n(.|\n)*{VECTORS} was taken from"):
        load_rcv1(data_home=nowhere)
    with pytest.raises(FileNotFoundError, match=r"no copy of the whole corpus.*download rcv1$"):
        load_rcv1(source="corpus")
    write_corpus(nowhere / "scikit-learn")
    assert load_rcv1(data_home=home).source == "sample"
    (home / VECTORS).write_bytes(BY_HAND[VECTORS][:-1])
    with pytest.raises(ValueError, match="is not the registered file: it has"):
        load_rcv1(data_home=home)
    (home / VECTORS).unlink()
    assert load_rcv1(data_home=home).source == "corpus"
    with pytest.raises(FileNotFoundError, match=f"^{VECTORS} not found"):
        load_rcv1(source="sample", data_home=home)


@pytest.mark.parametrize(("topic", "options", "words"), [
    (4, {}, "got 4$"),
    ("M143", {}, r"^topic must be one of those of the sample, C15, .*'M143'$"),
    ("C15", {"source": "corpus", "data_home": "none"}, "^data_home must be"),
])  # fmt: skip
def test_unavailable_data_raises_an_error(home, topic, options, words):
    with pytest.raises(ValueError, match=words):
        load_rcv1(topic, **{"data_home": home, **options})
