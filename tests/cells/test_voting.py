"""Votes on the types of cells over clusters and over graphs of neighbours."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from problems.cells import adata_of, counts_of
from sparsemargin import CellClassifier, annotate
from sparsemargin.cells.voting import Voting

COUNTS, TYPES = counts_of(300, 200)


def cells(X=COUNTS, **obs):
    return adata_of(X.copy(), TYPES, **obs)


@pytest.fixture(scope="module")
def model():
    return CellClassifier(random_state=0, max_iter=3).fit(cells())


def test_clusters_get_their_most_frequent_type(model):
    clusters = np.where(np.arange(300) % 10 == 0, "other", TYPES)
    adata = cells(leiden=clusters)
    own, voted = annotate(model, adata), annotate(model, adata, majority_voting="leiden")
    for kind in np.unique(clusters):
        names, counts = np.unique(own.predicted[clusters == kind], return_counts=True)
        assert set(voted.predicted[clusters == kind]) == {names[counts.argmax()]}
    assert np.array_equal(voted.confidence, own.confidence)
    assert adata.obs["sparsemargin"].tolist() == voted.predicted.tolist()
    few = annotate(model, adata, majority_voting="leiden", min_share=0.6)
    assert set(few.predicted[clusters == "other"]) == {"unassigned"}
    assert np.array_equal(few.predicted[clusters == "B"], voted.predicted[clusters == "B"])


def test_unassigned_cells_neither_vote_nor_get_a_type(model):
    adata = cells(leiden=["one"] * 300)
    types = annotate(model, adata)
    threshold = float(np.quantile(types.confidence, 0.4))
    voted = annotate(model, adata, majority_voting="leiden", threshold=threshold)
    unsure = types.confidence < threshold
    names, counts = np.unique(types.predicted[~unsure], return_counts=True)
    assert set(voted.predicted[unsure]) == {"unassigned"}
    assert set(voted.predicted[~unsure]) == {names[counts.argmax()]}
    # Cells that do not vote count for the size of the cluster.
    few = annotate(model, adata, majority_voting="leiden", threshold=threshold, min_share=0.4)
    assert set(few.predicted) == {"unassigned"}


def test_cells_without_a_cluster_keep_their_type(model):
    adata = cells(leiden=np.where(np.arange(300) < 290, "one", None))
    types, voted = annotate(model, adata), annotate(model, adata, majority_voting="leiden")
    assert len(set(voted.predicted[:290])) == 1
    assert np.array_equal(voted.predicted[290:], types.predicted[290:])


def test_probabilities_are_averaged_over_neighbours(model):
    adata, random = cells(), np.random.RandomState(0)
    graph = np.where(random.uniform(size=(300, 300)) < 0.02, random.uniform(size=(300, 300)), 0)
    adata.obsp["connectivities"] = csr_matrix(graph)
    own = model.predict_proba(adata)
    weights = graph + np.eye(300)
    expected = weights @ own / weights.sum(axis=1, keepdims=True)
    types = annotate(model, adata, majority_voting="connectivities", proba=True, threshold=0.6)
    np.testing.assert_allclose(adata.obsm["sparsemargin_proba"], expected)
    np.testing.assert_allclose(types.confidence, expected.max(axis=1))
    names = model.classes_[expected.argmax(axis=1)].astype(object)
    assert np.array_equal(types.predicted, np.where(types.confidence < 0.6, "unassigned", names))
    adata.obsp["distances"] = csr_matrix(graph * 7)
    with pytest.raises(ValueError, match="Pass 'connectivities', not distances"):
        annotate(model, adata, majority_voting="distances")


def test_votes_are_written_to_files_and_correct_errors(model, tmp_path):
    noisy = csr_matrix(np.random.RandomState(1).poisson(COUNTS.toarray() * 0.03).astype(np.float32))
    adata = cells(noisy, leiden=TYPES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = annotate(model, adata).predicted
        voted = annotate(model, adata, majority_voting="leiden").predicted
        annotate(model, adata, majority_voting="leiden", output=tmp_path / "types.tsv")
    assert np.mean(own == TYPES) < 0.9
    assert np.mean(voted == TYPES) > 0.95
    lines = (tmp_path / "types.tsv").read_text().splitlines()[1:]
    assert [line.split("\t")[1] for line in lines] == voted.tolist()


def test_unknown_clusters_are_refused(model):
    adata = cells()
    with pytest.raises(ValueError, match=r"neither a column of obs \(cell_type\) nor a graph in "
                       r"obsp \(none\). Make clusters first"):  # fmt: skip
        annotate(model, adata, majority_voting="leiden")
    adata.obsp["graph"] = csr_matrix(np.eye(300))
    with pytest.raises(ValueError, match=r"min_share is for clusters, and .*is a graph"):
        annotate(model, adata, majority_voting="graph", min_share=0.5)
    adata.obs["total"] = np.linspace(0, 99, 300)
    with pytest.raises(ValueError, match="measurements, not clusters"):
        annotate(model, adata, majority_voting="total")
    adata.obs["number"] = np.arange(300)
    with pytest.warns(UserWarning, match="300 different values for 300 cells"):
        annotate(model, adata, majority_voting="number")
    with pytest.raises(ValueError, match=r"needs an AnnData\. Read the file first"):
        annotate(model, "cells.h5ad", majority_voting="leiden")
    with pytest.raises(ValueError, match="min_share must be a number from 0 to 1"):
        annotate(model, cells(leiden=TYPES), majority_voting="leiden", min_share=2)


def test_first_type_wins_a_tie():
    voting = Voting(np.array([0, 0, 1, 1, 1]), None, 0.0)
    assert voting.types(np.array([1, 0, 2, -1, -1]), 3).tolist() == [0, 0, 2, 2, 2]
    assert voting.types(np.array([1, 0, -1, -1, -1]), 3).tolist() == [0, 0, -1, -1, -1]
