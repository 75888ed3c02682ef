"""`CellNormalizer` used like scikit-learn's transformers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, random_array
from sklearn.utils.estimator_checks import check_estimator

from sparsemargin._engine.rows.counts import LEFT_OUT, NO_GENE
from sparsemargin._engine.rows.csr import Csr
from sparsemargin.genomes import CellNormalizer, KmerVectorizer
from sparsemargin.genomes.cells import Part, convert_cells
from sparsemargin.genomes.scales import CHECKED, Conversion


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.floats(1, 1e6), st.booleans(), st.floats(0.1, 500))
def test_any_counts_are_normalized(seed, target, wide, mean):
    random = np.random.RandomState(seed)
    dense = random.poisson(random.gamma(0.3, mean, (7, 30))) * (random.rand(7, 30) < 0.5)
    dense = dense.astype(np.float64 if wide else np.float32)
    made = CellNormalizer(target_sum=target).fit_transform(csr_matrix(dense))
    totals = np.maximum(dense.sum(axis=1, keepdims=True, dtype=np.float64), 1e-300)
    expected = np.log1p(dense.astype(np.float64) * target / totals)
    assert made.dtype == dense.dtype
    assert np.allclose(made.toarray(), expected, rtol=1e-12 if wide else 1e-6, atol=0)


def test_scikit_learn_estimator_checks():
    check_estimator(CellNormalizer())


def test_data_frames_keep_gene_names():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pd.DataFrame([[1, 2], [3, 0]], columns=["g", "h"])
    normalizer = CellNormalizer().fit(frame)
    assert normalizer.get_feature_names_out().tolist() == ["g", "h"]
    with pytest.raises(ValueError, match="same order"):
        normalizer.transform(frame[["h", "g"]])


def test_input_is_not_modified():
    X = csr_matrix(random_array((20, 30), density=0.3, rng=np.random.default_rng(0)) * 10)
    X.data = np.ceil(X.data)
    before = X.copy()
    CellNormalizer().fit_transform(X)
    assert np.array_equal(X.data, before.data)
    for array in X.data, X.indices, X.indptr:
        array.flags.writeable = False
    CellNormalizer().fit_transform(X)
    unsorted = csr_matrix(([1.5, 2.5], [2, 0], [0, 2]), shape=(1, 3))
    made = CellNormalizer(normalize=None).fit_transform(unsorted)
    assert made.toarray().tolist() == [[2.5, 0, 1.5]]
    assert unsorted.data.tolist() == [1.5, 2.5]
    assert KmerVectorizer().fit().transform([]).shape == (0, 4096)


@settings(deadline=None)
@given(st.data(), st.sampled_from([np.float32, np.float64]), st.sampled_from([np.int32, np.int64]))
def test_normalization_agrees_with_a_dense_table(data, dtype, index_type):
    """The cells contain counts or logarithms, and may be empty.

    Genes may have a different order, be left out or be columns that are not genes. Cells may have
    any order or be left out.
    """
    n_cells, n_genes = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 8))
    is_log = data.draw(st.booleans())
    values = st.sampled_from([0, 0.5, 3.25] if is_log else [0, 1, 2, 63, 64, 70_000])
    dense = np.array(data.draw(st.lists(
        st.lists(values, min_size=n_genes, max_size=n_genes), min_size=n_cells, max_size=n_cells,
    )), dtype)  # fmt: skip
    places = data.draw(st.permutations([*range(n_genes), *[LEFT_OUT] * 2, *[NO_GENE] * 2]))
    columns = np.array(places[:n_genes], np.int32)
    order = np.array(data.draw(st.lists(st.integers(0, n_cells - 1), unique=True)), np.intp)
    X = csr_matrix(dense)
    rows = Csr(X.data, X.indices.astype(index_type), X.indptr.astype(index_type), n_genes)
    part = Part(rows, columns, CHECKED if is_log else Conversion(100.0, whole=True))
    made = convert_cells([part], n_genes, str, order)
    assert made.dtype == dtype
    genes = dense[:, columns != NO_GENE].astype(np.float64)
    totals = genes.sum(axis=1, keepdims=True)
    shares = np.divide(dense * 100.0, totals, out=np.zeros(dense.shape), where=totals > 0)
    expected = np.zeros((n_cells, n_genes))
    for j in np.flatnonzero(columns >= 0):
        expected[:, columns[j]] = dense[:, j] if is_log else np.log1p(shares[:, j])
    tolerance = 1e-6 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(made.toarray(), expected[order], rtol=tolerance)
    assert made.has_canonical_format


def test_masked_values_and_anndata_are_refused():
    masked = np.ma.masked_equal([[1.0, 2.0], [3.0, 0.0]], 3)
    with pytest.raises(ValueError, match=r"X\[1, 0\] is masked: this value is missing"):
        CellNormalizer().fit(masked)
    anndata = pytest.importorskip("anndata")
    with pytest.raises(ValueError, match=r"X is an AnnData, .* Pass adata\.X"):
        CellNormalizer().fit(anndata.AnnData(np.eye(3, dtype=np.float32)))
