"""The generators: shapes and formats, the papers' protocols, and statistics of the text."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.svm import LinearSVC

from depth import long, pairwise
from sparsemargin.datasets import (
    _targets,
    _text,
    make_alma_target,
    make_genotypes,
    make_ho_target,
    make_zipf_text,
)

MAKERS = [make_alma_target, make_ho_target]
SMALL = {"n_train": 300, "n_test": 200, "n_features": 60, "n_relevant": 5}
each_target = pytest.mark.parametrize("make", MAKERS)


def assert_canonical_csr(X, dtype):
    assert sparse.issparse(X)
    assert X.format == "csr"
    assert X.dtype == dtype
    assert X.indices.dtype == X.indptr.dtype == np.int32
    # The flags of the generator are not used: a new matrix checks its format itself.
    assert sparse.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape).has_canonical_format
    assert np.all(X.data != 0)


def assert_same_data(one, other):
    for a, b in zip(one, other, strict=True):
        a, b = (each.toarray() if sparse.issparse(each) else each for each in (a, b))
        assert_array_equal(a, b)


def assert_rate(hits, expected):
    """The rate must be within five standard deviations of a binomial proportion."""
    deviation = np.sqrt(expected * (1 - expected) / len(hits))
    assert abs(np.mean(hits) - expected) <= 5 * deviation


def signs(X, target):
    return np.where(X @ target >= 0, 1, -1)


@pytest.mark.parametrize(
    ("make", "dtype", "density"), pairwise(MAKERS, [np.float32, np.float64], [1.0, 0.3])
)
def test_target_formats(make, dtype, density):
    options = {**SMALL, "density": density, "dtype": dtype, "random_state": 0}
    X_train, y_train, X_test, y_test, target = as_sparse = make(**options)
    for X, y, n_rows in (X_train, y_train, 300), (X_test, y_test, 200):
        assert X.shape == (n_rows, 60)
        assert_canonical_csr(X, dtype)
        assert y.shape == (n_rows,)
        assert y.dtype == np.int64
        assert_array_equal(np.unique(y), [-1, 1])
    assert target.shape == (60,)
    assert target.dtype == np.float64
    assert_array_equal(target != 0, np.arange(60) < 5)
    as_dense = make(**options, sparse=False)
    assert all(isinstance(each, np.ndarray) for each in as_dense)
    assert_same_data(as_sparse, as_dense)
    if make is make_alma_target:
        assert 1 - 1e-12 <= (y_train * (X_train @ target)).min() < 1.1


@each_target
def test_target_seed(make):
    small = {**SMALL, "random_state": 3}
    stream = np.random.RandomState(3)
    first, second = (make(**{**small, "random_state": stream}) for _ in range(2))
    assert_same_data(first, make(**small))
    assert (first[0] != second[0]).nnz > 0
    noisy = make(**small, noise=0.3)
    assert_same_data((first[0], first[2], first[4]), (noisy[0], noisy[2], noisy[4]))
    assert np.any(first[1] != noisy[1])


@each_target
def test_target_density_is_the_share_of_coordinates_kept(make):
    shape = {"n_train": 2000, "n_test": 2000, "n_features": 200, "n_relevant": 20}
    X_train, _, X_test, _, _ = make(**shape, density=0.05, random_state=0)
    for X in X_train, X_test:
        # Rejection prefers rows with relevant coordinates, so the irrelevant ones are counted.
        assert_rate(X[:, 20:].toarray().ravel() != 0, 0.05)
        counts = X[:, 20:].getnnz(axis=0)
        assert np.all(np.abs(counts - 100) < 5 * np.sqrt(100 * 0.95))
    _, _, X_test, y_test, _ = make(**{**SMALL, "n_test": 0}, random_state=0)
    assert (X_test.shape, y_test.shape) == ((0, 60), (0,))


def test_kept_cells_continue_after_the_first_batch_of_gaps():
    class SmallestGaps:
        def geometric(self, p, size):
            return np.ones(size, dtype=np.int64)

    assert_array_equal(_targets._kept_cells(SmallestGaps(), 1000, 0.5), np.arange(1000))


def test_generator_defaults_are_those_of_the_papers():
    X_train, _, X_test, _, target = make_alma_target(random_state=0)
    assert X_train.shape == X_test.shape == (10000, 300)
    assert_array_equal(np.abs(target), np.arange(300) < 3)
    X_train, _, X_test, _, target = make_ho_target(random_state=0)
    assert X_train.shape == X_test.shape == (1000, 500)
    assert_allclose(np.abs(target), (np.arange(500) < 50) / np.sqrt(50))
    assert (X_train != X_test).nnz > 0


def test_alma_instances_are_uniform_with_a_clean_test_set():
    X_train, y_train, X, y, target = make_alma_target(
        n_train=3000, n_test=4000, n_features=30, n_relevant=2, noise=0.4, sparse=False,
        random_state=0,
    )  # fmt: skip
    assert_rate(y_train != signs(X_train, target), 0.4)
    values = X.ravel()
    assert values.min() < -0.999
    assert values.max() > 0.999
    assert_rate(values < 0, 0.5)
    assert_rate(np.abs(values) < 0.25, 0.25)
    assert_array_equal(y, signs(X, target))
    # |x1 + x2| < 1 has probability 3/4 for two uniform coordinates.
    assert_rate(np.abs(X @ target) < 1, 0.75)
    assert_rate(y_train == 1, 0.5)
    options = {"n_train": 50, "n_test": 500, "n_features": 40, "density": 0.05}
    _, _, X, y, target = make_alma_target(**options, random_state=0)
    undecided = X @ target == 0
    assert undecided.any()
    assert np.all(y[undecided] == 1)


@pytest.mark.parametrize(
    ("dtype", "rounding", "density"), [(np.float32, 1e-6, 1.0), (np.float64, 1e-14, 0.1)]
)
def test_ho_norms_margin_and_noise(dtype, rounding, density):
    X_train, y_train, X_test, y_test, target = make_ho_target(
        density=density, dtype=dtype, noise=0.1, random_state=0
    )
    assert_allclose(np.linalg.norm(target), 1)
    for X, y in (X_train, y_train), (X_test, y_test):
        assert_allclose(sparse.linalg.norm(X, axis=1), 1, rtol=rounding)
        assert 0.005 - 1e-15 <= np.abs(X @ target).min() < 0.006
        assert_rate(y != signs(X, target), 0.1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_genotypes_do_not_depend_on_the_batch_size(dtype, monkeypatch):
    X, y, effects = made = make_genotypes(201, 3000, dtype=dtype, random_state=0)
    assert X.shape == (201, 3000)
    assert_canonical_csr(X, dtype)
    assert_array_equal(np.unique(X.data), [1, 2])
    assert y.dtype == np.int64
    assert_array_equal(np.unique(y, return_counts=True), [[-1, 1], [100, 101]])
    assert effects.dtype == np.float64
    assert np.count_nonzero(effects) == 30
    assert (make_genotypes(201, 3000, random_state=1)[0] != X).nnz > 0
    monkeypatch.setattr(_targets, "_BATCH_VALUES", 10_000)
    assert_same_data(made, make_genotypes(201, 3000, dtype=dtype, random_state=0))


def test_genotypes_have_hardy_weinberg_proportions():
    X, y, effects = make_genotypes(5000, 400, n_causal=20, heritability=0.7, random_state=0)
    counts = X.toarray()
    frequencies = counts.mean(axis=0) / 2
    assert 0.005 < frequencies.min() < 0.02
    assert 0.4 < frequencies.max() < 0.55
    assert frequencies.mean() == pytest.approx(0.5 * 0.8 / 3, abs=0.02)
    assert frequencies[effects != 0].min() > 0.08
    twos = (counts == 2).mean(axis=0)
    assert np.all(np.abs(twos - frequencies**2) < 5 * np.sqrt(twos / 5000) + 1e-3)
    scores = X @ effects
    assert scores.var() == pytest.approx(0.7, rel=0.1)
    # Signs of two normal variables with correlation r agree with probability 1/2 + arcsin(r) / pi.
    agree = 0.5 + np.arcsin(np.sqrt(0.7)) / np.pi
    assert np.mean((scores > np.median(scores)) == (y == 1)) == pytest.approx(agree, abs=0.03)
    X, y, effects = make_genotypes(300, 400, heritability=1.0, random_state=0)
    assert (X @ effects)[y == 1].min() > (X @ effects)[y == -1].max()


@pytest.mark.parametrize(("dtype", "n_classes"), [(np.float32, 2), (np.float64, 5)])
def test_zipf_text_does_not_depend_on_the_chunk_size(dtype, n_classes, monkeypatch):
    options = {"mean_nnz": 40, "n_classes": n_classes, "dtype": dtype}
    X, y = make_zipf_text(800, 5000, **options, random_state=0)
    assert X.shape == (800, 5000)
    assert_canonical_csr(X, dtype)
    assert_allclose(sparse.linalg.norm(X, axis=1), 1, rtol=1e-5)
    assert y.dtype == np.int64
    assert_array_equal(np.unique(y), [-1, 1] if n_classes == 2 else np.arange(n_classes))
    other, _ = make_zipf_text(800, 5000, **options, random_state=8)
    assert (other != X).nnz > 0
    monkeypatch.setattr(_text, "_CHUNK_TOKENS", 1000)
    assert_same_data((X, y), make_zipf_text(800, 5000, **options, random_state=0))


@pytest.mark.parametrize(("n_rows", "n_features", "mean_nnz", "options"), [
    (4000, 47236, 76, {"n_classes": 50}),
    (4000, 2000, 5, {"topic_share": 0.8}),
    (1000, 1000, 500, {"exponent": 0.0}),
    (4000, 20000, 60, {"exponent": 1.6}),
])  # fmt: skip
def test_zipf_mean_nonzeros(n_rows, n_features, mean_nnz, options):
    X, _ = make_zipf_text(n_rows, n_features, mean_nnz=mean_nnz, **options, random_state=0)
    assert X.nnz / X.shape[0] == pytest.approx(mean_nnz, rel=0.05)


def test_zipf_values_are_tf_idf():
    X, _ = make_zipf_text(1000, 3000, mean_nnz=60, random_state=0)
    idf = 1 + np.log((1 + X.shape[0]) / (1 + X.getnnz(axis=0)))
    log_tf = sparse.csr_matrix(X / idf)
    # Rows are scaled. A document of this length has some word exactly once: tf = 1, 1 + ln 1.
    log_tf.data /= np.repeat(np.minimum.reduceat(log_tf.data, X.indptr[:-1]), X.getnnz(axis=1))
    counts = log_tf.copy()
    counts.data = np.exp(log_tf.data - 1)
    assert_allclose(counts.data, np.rint(counts.data), rtol=1e-8)
    assert counts.data.max() > 5
    counts.data = np.rint(counts.data)
    expected = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    assert_allclose(X.toarray(), expected.toarray(), atol=1e-12)


def test_zipf_document_frequencies_follow_a_power_law():
    X, _ = make_zipf_text(8000, random_state=0)
    counts = X.getnnz(axis=0)
    frequency = np.sort(counts)[::-1]
    ranks = np.arange(100, 4000)
    slope, _ = np.polyfit(np.log(ranks), np.log(frequency[ranks]), 1)
    assert -1.3 < slope < -0.7
    assert frequency[0] > 0.3 * X.shape[0]
    frequent = np.sort(np.argsort(-counts)[:100])
    assert np.median(np.diff(frequent)) > 47236 / 100 / 5
    assert 0.3 < np.log(X.getnnz(axis=1)).std() < 0.8
    steep, _ = make_zipf_text(8000, exponent=1.4, random_state=0)
    assert np.count_nonzero(steep.getnnz(axis=0)) < np.count_nonzero(counts)


def test_zipf_largest_draw_is_still_a_word():
    class LargestDraws:
        def random_sample(self, size):
            return np.full(size, np.nextafter(1, 0))

    even, shares = np.full(10, 0.1), np.linspace(0, 0.99, 1000)
    lengths = np.ones(1000, int)
    ((_, ranks),) = _text._token_chunks(
        LargestDraws(), even, even, np.zeros(1000, int), shares, lengths, 2
    )
    assert_array_equal(ranks, 9)


@pytest.mark.parametrize(("n_train", "options", "least", "most"), [
    (3000, {"n_features": 20000, "topic_share": 0.0}, 0.45, 0.55),
    (4000, {"n_features": 20000, "n_classes": 8}, 0.02, 0.12),
    (3000, {"n_features": 20000}, 0.02, 0.12),
    (3000, {"n_features": 20000, "topic_share": 0.6}, 0.0, 0.02),
    pytest.param(20000, {}, 0.03, 0.08, marks=long),
])  # fmt: skip
def test_zipf_topic_share_determines_the_error(n_train, options, least, most):
    X, y = make_zipf_text(2 * n_train, random_state=0, **options)
    error = 1 - LinearSVC().fit(X[:n_train], y[:n_train]).score(X[n_train:], y[n_train:])
    assert least <= error < most


@pytest.mark.parametrize("n_classes", [2, 4])
def test_zipf_noise_replaces_labels(n_classes):
    options = {"n_features": 1000, "mean_nnz": 10, "n_classes": n_classes, "random_state": 0}
    X_clean, clean = make_zipf_text(4000, **options)
    X_noisy, noisy = make_zipf_text(4000, **options, noise=0.2)
    assert_same_data([X_clean], [X_noisy])
    assert_rate(clean != noisy, 0.2)
    assert_array_equal(np.unique(noisy), np.unique(clean))
    fewest = {**options, "n_features": 2 * n_classes + 1, "mean_nnz": 1, "topic_share": 0.99}
    assert len(np.unique(make_zipf_text(200, **fewest)[1])) == n_classes


TARGET = {**SMALL, "random_state": 0}
TEXT = {"n_samples": 10, "n_features": 1000, "mean_nnz": 10}
GENOTYPES = {"n_samples": 10, "n_features": 50, "n_causal": 5}


@pytest.mark.parametrize(("make", "options", "names"), [
    *((make, TARGET, [
        ("n_train", 0), ("n_train", 10.0), ("n_test", -1), ("n_features", True), ("n_relevant", 61),
        ("noise", 1.5), ("noise", np.nan), ("density", 0.0), ("density", "all"), ("sparse", "csr"),
        ("dtype", np.int64), ("dtype", "no type"), ("random_state", "seed"),
    ]) for make in MAKERS),
    (make_alma_target, TARGET, [("n_relevant", 1)]),
    (make_zipf_text, TEXT, [
        ("n_samples", 0), ("n_features", 3), ("mean_nnz", 0.5), ("mean_nnz", 501),
        ("mean_nnz", np.inf), ("n_classes", 1), ("noise", 2), ("topic_share", 1.0),
        ("topic_share", -0.1), ("exponent", -1), ("exponent", None), ("dtype", np.float16),
        ("random_state", "seed"),
    ]),
    (make_genotypes, GENOTYPES, [
        ("n_samples", 1), ("n_features", 0), ("n_causal", 51), ("heritability", 1.1),
        ("dtype", np.int8), ("random_state", "seed"),
    ]),
])  # fmt: skip
def test_errors_name_the_argument(make, options, names):
    for name, value in names:
        with pytest.raises(ValueError, match=f"^{name} must be"):
            make(**{**options, name: value})


@pytest.mark.parametrize(("make", "options", "words"), [
    (make_alma_target, {**SMALL, "density": 1e-5}, "margin 1.0: raise density or n_relevant"),
    (make_ho_target, {"n_train": 10, "n_test": 10, "n_features": 1_000_000, "density": 0.01},
     "margin 0.005: .* lower n_features"),
    (make_zipf_text, {"n_samples": 10, "n_features": 39, "n_classes": 20, "mean_nnz": 2},
     "^n_features must be an integer from 40"),
    (make_zipf_text, TEXT | {"mean_nnz": 400, "exponent": 5}, "lower mean_nnz or exponent"),
    (make_genotypes, GENOTYPES | {"n_causal": 50}, "too few for n_causal=50: lower it"),
])  # fmt: skip
def test_impossible_problems_raise_an_error(make, options, words, monkeypatch):
    monkeypatch.setattr(_targets, "_BATCH_VALUES", 2**14)
    with pytest.raises(ValueError, match=words):
        make(**options, random_state=0)
