"""The loader of RCV1: from a small sample, and from a small corpus."""

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from problems.synthetic_files import BY_HAND
from sparsemargin.datasets import load_rcv1

VECTORS, TOPICS = "rcv1_subsets_topics.svm.bz2", "rcv1_topics.txt"
# What the small sample holds, in the order of its file; its source knows no M143.
ROWS = np.array([[0.6, 0, 0, 0.8, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 1],
                 [0.8, 0, 0, 0, 0.6], [0, 0, 1, 0, 0], [0, 0.6, 0.8, 0, 0]])  # fmt: skip
INDICATOR = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 0]])
SHUFFLED = np.random.RandomState(0).permutation(6)

# -- the sample ----------------------------------------------------------------------------------


def test_one_topic(home):
    stories = load_rcv1("GCAT", data_home=home)
    assert isinstance(stories.data, sp.csr_matrix)
    assert_array_equal(stories.data.toarray(), ROWS[SHUFFLED])
    assert_array_equal(stories.target, 2 * INDICATOR[SHUFFLED, 1] - 1)
    assert stories.target.dtype == np.int64
    assert stories.target_names.tolist() == ["not GCAT", "GCAT"]
    assert_array_equal(stories.sample_id, SHUFFLED)
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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_types(home, dtype):
    X, _ = load_rcv1(dtype=dtype, order="given", return_X_y=True, data_home=home)
    assert X.dtype == dtype
    assert X.indices.dtype == X.indptr.dtype == np.int32
    assert_array_equal(X.toarray(), ROWS.astype(dtype))


@pytest.mark.parametrize(("subset", "rows"), [
    ("train", slice(0, 3)), ("test", slice(3, 5)), ("all", slice(0, 6)),
])  # fmt: skip
def test_subsets_are_pieces_of_one_order(home, subset, rows):
    stories = load_rcv1("C15", subset=subset, n_train=3, n_test=2, data_home=home)
    assert_array_equal(stories.sample_id, SHUFFLED[rows])
    assert_array_equal(stories.data.toarray(), ROWS[SHUFFLED[rows]])
    assert_array_equal(stories.target == 1, INDICATOR[SHUFFLED[rows], 0] == 1)


@pytest.mark.parametrize(("options", "rows"), [
    ({"order": "given"}, np.arange(6)), ({"order": "shuffled"}, SHUFFLED),
    ({"random_state": 7}, np.random.RandomState(7).permutation(6)), ({}, SHUFFLED),
])  # fmt: skip
def test_order(home, options, rows):
    stories = load_rcv1(data_home=home, **options)
    assert_array_equal(stories.sample_id, rows)
    assert_array_equal(stories.target == 1, INDICATOR[rows, 0] == 1)


@pytest.mark.parametrize("topic", ["M143", ["C15", "M143"]])
def test_the_topic_without_a_row_is_refused(home, topic):
    with pytest.raises(ValueError, match=r"^topic 'M143' has no row in the sample.*'corpus'$"):
        load_rcv1(topic, data_home=home)


# -- the corpus ----------------------------------------------------------------------------------


def write_corpus(folder):
    """Leave what fetch_rcv1 leaves, of four stories that are not in order."""
    (folder / "RCV1").mkdir(parents=True)
    parts = {
        "samples": sp.csr_matrix(ROWS[:4]),
        "sample_id": np.array([2290, 2286, 810596, 2289], dtype=np.uint32),
        "sample_topics": sp.csr_matrix(np.eye(4, dtype=np.uint8)),
        "topics_names": np.array(["C15", "GCAT", "M143", "MCAT"], dtype=object),
    }
    for name, part in parts.items():
        joblib.dump(part, folder / "RCV1" / f"{name}_py3.pkl")


BY_NUMBER = [1, 3, 0, 2]


@pytest.mark.parametrize("below", ["home", "scikit-learn"])
def test_corpus_comes_by_document_number(nowhere, below):
    write_corpus(nowhere / below)
    (nowhere / "home").mkdir(exist_ok=True)
    stories = load_rcv1("M143", source="corpus", dtype=np.float32, data_home=nowhere / "home")
    assert stories.source == "corpus"
    assert_array_equal(stories.sample_id, [2286, 2289, 2290, 810596])
    assert_array_equal(stories.data.toarray(), ROWS[BY_NUMBER].astype(np.float32))
    assert stories.data.dtype == np.float32
    assert_array_equal(stories.target, [-1, -1, -1, 1])
    assert "RCV1" in stories.DESCR


def test_corpus_subsets_and_order(nowhere):
    write_corpus(nowhere / "scikit-learn")
    test = load_rcv1(None, subset="test", n_train=1, n_test=2, source="corpus")
    assert_array_equal(test.sample_id, [2289, 2290])
    assert_array_equal(test.target.toarray(), np.eye(4)[[3, 0]])
    shuffled = load_rcv1(source="corpus", order="shuffled", random_state=3)
    numbers = np.array([2290, 2286, 810596, 2289])
    assert_array_equal(shuffled.sample_id, numbers[np.random.RandomState(3).permutation(4)])


def test_sample_goes_before_the_corpus(home, nowhere):
    write_corpus(nowhere / "scikit-learn")
    assert load_rcv1(data_home=home).source == "sample"
    (home / VECTORS).unlink()
    assert load_rcv1(data_home=home).source == "corpus"
    with pytest.raises(FileNotFoundError, match=f"^{VECTORS} not found"):
        load_rcv1(source="sample", data_home=home)


def test_a_spoiled_sample_is_not_passed_over(home, nowhere):
    write_corpus(nowhere / "scikit-learn")
    (home / VECTORS).write_bytes(BY_HAND[VECTORS][:-1])
    with pytest.raises(ValueError, match="is not the registered file: it has"):
        load_rcv1(data_home=home)


# -- what goes wrong -----------------------------------------------------------------------------


def test_without_a_source_all_ways_to_one_are_told(nowhere):
    with pytest.raises(FileNotFoundError) as caught:
        load_rcv1(data_home=nowhere)
    message = str(caught.value)
    assert message.startswith(f"{VECTORS}, {TOPICS} not found. Looked in\n")
    assert f"data_home: {nowhere}\n" in message
    assert f"{VECTORS} was taken from A source; A recipe" in message
    assert 'python -c "from sklearn.datasets import fetch_rcv1; fetch_rcv1()"' in message
    with pytest.raises(FileNotFoundError, match=r"^scikit-learn has no copy of RCV1"):
        load_rcv1(source="corpus")


def test_numbers_of_the_paper_are_refused_with_a_hint(home):
    with pytest.raises(ValueError, match=r"got 4; the papers' numbers are the keys of BROTTO_"):
        load_rcv1(4, data_home=home)


@pytest.mark.parametrize("source", ["sample", "corpus"])
def test_a_folder_is_checked_for_each_source(home, source):
    with pytest.raises(ValueError, match=r"^data_home must be"):
        load_rcv1(source=source, data_home=home / "none")
    assert not (home / "none").exists()


@pytest.mark.parametrize(("subset", "n_train", "n_test", "row"), [
    ("train", 7, 1, 7), ("test", 3, 4, 7), ("test", 10_000, 10_000, 20_000),
])  # fmt: skip
def test_more_rows_than_there_are_cannot_be_had(home, subset, n_train, n_test, row):
    with pytest.raises(ValueError, match=f"^n_train=.* ask for row {row} .* which has 6: lower"):
        load_rcv1(subset=subset, n_train=n_train, n_test=n_test, data_home=home)
