"""Results and estimators that are copied, pickled, or sent to other processes."""

import copy
import pickle
from functools import partial

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import sparsemargin
from sparsemargin import AROWClassifier, fit_text
from sparsemargin import text as vectorizers
from sparsemargin.genomes import CellNormalizer, KmerVectorizer

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

TEXTS = ["red apple pie", "blue sea and sky", "green apple tart", "grey sky over the sea"] * 10
SEQUENCES = ["ACGTACGT", "TTTTACGA", "ACGTTCGT", "TTATACGA"] * 10
Y = [0, 1] * 20
X = np.random.default_rng(0).normal(size=(40, 5))
COUNTS = np.random.default_rng(0).integers(0, 9, size=(40, 5)).astype(np.float64)

LINEAR = "AROWClassifier", "MaxMarginClassifier"
KERNEL = (
    "ALMAClassifier", "PNormPerceptron", "MarginPerceptron", "CRAMMAClassifier", "ROMMAClassifier",
    "HigherOrderPerceptron", "SecondOrderPerceptron",
)  # fmt: skip


def of_rows(name, y=Y, **params):
    """Return a fitted classifier and the rows that it was fitted to."""
    return getattr(sparsemargin, name)(max_iter=3, **params).fit(X, y), X


MATRICES = {
    "CountVectorizer": lambda: vectorizers.CountVectorizer().fit_transform(TEXTS),
    "CountVectorizer, threads": lambda: vectorizers.CountVectorizer(n_jobs=2).fit_transform(TEXTS),
    "TfidfVectorizer": lambda: vectorizers.TfidfVectorizer().fit_transform(TEXTS),
    "TfidfVectorizer, one text": lambda: (
        vectorizers.TfidfVectorizer().fit(TEXTS).transform(TEXTS[:1])
    ),
    "HashingVectorizer": lambda: vectorizers.HashingVectorizer(n_features=64).transform(TEXTS),
    "a text without a word": lambda: vectorizers.HashingVectorizer().transform([""]),
    "KmerVectorizer": lambda: KmerVectorizer(3).transform(SEQUENCES),
    "no sequence": lambda: KmerVectorizer(3).transform([]),
    "CellNormalizer": lambda: CellNormalizer().fit_transform(sp.csr_matrix(COUNTS)),
}  # fmt: skip


def n_bases(array):
    """Return how many objects the chain of `base` attributes has."""
    for n in range(20):
        if array is None:
            return n
        array = getattr(array, "base", None)
    raise AssertionError("the chain of bases does not end")


@pytest.mark.parametrize("name", MATRICES)
def test_arrays_of_matrices_are_writeable_with_few_bases(name):
    matrix = MATRICES[name]()
    for array in matrix.data, matrix.indices, matrix.indptr:
        assert n_bases(array) <= 3
        assert array.flags.writeable
    matrix.data *= 2
    again = pickle.loads(pickle.dumps(matrix))
    assert (again != matrix).nnz == 0


@pytest.mark.parametrize("classifier", LINEAR + KERNEL)
def test_arrays_of_models_have_few_bases(classifier):
    model, _ = of_rows(classifier)
    names = [name for name in dir(model) if name.endswith("_") and name[0] != "_"]
    results = [getattr(model, name) for name in names if hasattr(model, name)]
    results += [model.predict(X), model.decision_function(X)]
    for result in results:
        assert n_bases(result) <= 3


def test_matrices_are_passed_to_processes_by_memory_maps():
    # The processes are started only once. Arrays above 100 bytes are passed to them in files.
    with joblib.parallel_config(backend="loky", n_jobs=2, max_nbytes=100):
        for name in "CountVectorizer", "TfidfVectorizer", "HashingVectorizer", "KmerVectorizer":
            scores = cross_val_score(AROWClassifier(), MATRICES[name](), Y, cv=2)
            assert scores.shape == (2,), name
            assert np.isfinite(scores).all(), name


def pipeline():
    return make_pipeline(vectorizers.TfidfVectorizer(), AROWClassifier())


# Functions that return a fitted estimator and input for it.
FITTED = {
    **{name: partial(of_rows, name) for name in LINEAR + KERNEL},
    **{f"{name}, kernel": partial(of_rows, name, kernel="rbf") for name in KERNEL},
    "vote": partial(of_rows, "PNormPerceptron", hypothesis="vote"),
    "vote, kernel": partial(of_rows, "PNormPerceptron", hypothesis="vote", kernel="rbf"),
    "p": partial(of_rows, "PNormPerceptron", p=3.0),
    "three classes": partial(of_rows, "ALMAClassifier", [0, 1, 2, 1] * 10),
    "many labels": partial(of_rows, "AROWClassifier", [[1, 0, 1], [0, 1, 0]] * 20),
    "texts": lambda: (fit_text(TEXTS, Y, random_state=0), TEXTS),
    "CountVectorizer": lambda: (vectorizers.CountVectorizer().fit(TEXTS), TEXTS),
    "TfidfVectorizer": lambda: (vectorizers.TfidfVectorizer().fit(TEXTS), TEXTS),
    "HashingVectorizer": lambda: (vectorizers.HashingVectorizer(n_features=64), TEXTS),
    "KmerVectorizer": lambda: (KmerVectorizer(3), SEQUENCES),
    "CellNormalizer": lambda: (CellNormalizer().fit(COUNTS), COUNTS),
    "pipeline": lambda: (pipeline().fit(TEXTS, Y), TEXTS),
}


def output(estimator, given):
    name = next(n for n in ("decision_function", "transform") if hasattr(estimator, n))
    result = getattr(estimator, name)(given)
    return result.toarray() if sp.issparse(result) else result


@pytest.mark.parametrize("name", FITTED)
def test_pickling_and_copying_keep_the_estimator(name):
    estimator, given = FITTED[name]()
    copies = [
        pickle.loads(pickle.dumps(estimator, protocol))
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    ]
    for each in [*copies, copy.copy(estimator), copy.deepcopy(estimator)]:
        np.testing.assert_array_equal(output(each, given), output(estimator, given))


@pytest.mark.parametrize("name", FITTED)
def test_skops_restores_every_estimator(name):
    skops = pytest.importorskip("skops.io")
    estimator, given = FITTED[name]()
    kept = skops.dumps(estimator)
    again = skops.loads(kept, trusted=skops.get_untrusted_types(data=kept))
    np.testing.assert_array_equal(output(again, given), output(estimator, given))
