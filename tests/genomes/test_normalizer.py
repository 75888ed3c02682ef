"""`CellNormalizer` as scikit-learn's transformers are used."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, random_array
from sklearn.utils.estimator_checks import check_estimator

from sparsemargin.genomes import CellNormalizer, KmerVectorizer


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.floats(1, 1e6), st.booleans(), st.floats(0.1, 500))
def test_any_counts_are_normalised(seed, target, wide, mean):
    random = np.random.RandomState(seed)
    dense = random.poisson(random.gamma(0.3, mean, (7, 30))) * (random.rand(7, 30) < 0.5)
    dense = dense.astype(np.float64 if wide else np.float32)
    made = CellNormalizer(target_sum=target).fit_transform(csr_matrix(dense))
    totals = np.maximum(dense.sum(axis=1, keepdims=True, dtype=np.float64), 1e-300)
    expected = np.log1p(dense.astype(np.float64) * target / totals)
    assert made.dtype == dense.dtype
    assert np.allclose(made.toarray(), expected, rtol=1e-12 if wide else 1e-6, atol=0)


def test_it_keeps_scikit_learns_contract():
    check_estimator(CellNormalizer())


def test_frames_keep_the_names_of_genes():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pd.DataFrame([[1, 2], [3, 0]], columns=["g", "h"])
    normalizer = CellNormalizer().fit(frame)
    assert normalizer.get_feature_names_out().tolist() == ["g", "h"]
    with pytest.raises(ValueError, match="another order"):
        normalizer.transform(frame[["h", "g"]])


def test_what_is_given_stays_as_it_is():
    X = csr_matrix(random_array((20, 30), density=0.3, rng=np.random.default_rng(0)) * 10)
    X.data = np.ceil(X.data)
    before = X.copy()
    CellNormalizer().fit_transform(X)
    assert np.array_equal(X.data, before.data)
    for array in X.data, X.indices, X.indptr:
        array.flags.writeable = False
    CellNormalizer().fit_transform(X)
    assert KmerVectorizer().fit().transform([]).shape == (0, 4096)
