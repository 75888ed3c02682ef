"""Votes on cell types: over clusters of cells, or over the neighbours of each cell in a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, eye_array

from sparsemargin._checks import check_real
from sparsemargin._engine.messages import warn_user
from sparsemargin.readers.cell_files import pandas_column

# Largest number of cells for which clusters of one cell each do not cause a warning.
_FEW_CELLS = 20


@dataclass(frozen=True)
class Voting:
    """Clusters of cells, or a graph of neighbours, shape (n_cells, n_cells); the other one is None.

    `clusters` has the number of the cluster of each cell, or -1. `min_share` is the least share of
    the cells of a cluster that must have its type.
    """

    clusters: np.ndarray | None
    graph: csr_matrix | None
    min_share: float

    @classmethod
    def of(cls, adata: Any, name: str, min_share: float) -> Voting:
        """Return the column `name` of obs or the graph `name` of obsp, or raise a ValueError."""
        check_real("min_share", min_share, 0, 1)
        if not hasattr(adata, "obs_names"):
            raise ValueError(
                f"majority_voting={name!r} needs an AnnData. Read the file first: "
                "anndata.read_h5ad(path)."
            )
        if name in adata.obs.columns:
            column = pandas_column(adata.obs, name)
            _check_clusters(column, name)
            clusters = column.astype("category").cat.codes
            return cls(np.asarray(clusters, dtype=np.intp), None, min_share)
        if name not in adata.obsp:
            columns, graphs = (", ".join(map(str, each)) for each in (adata.obs, adata.obsp))
            raise ValueError(
                f"majority_voting={name!r} is neither a column of obs ({columns or 'none'}) nor a "
                f"graph in obsp ({graphs or 'none'}). Make clusters first, as with "
                "scanpy.tl.leiden, and pass the name of their column."
            )
        if min_share:
            raise ValueError(
                f"min_share is for clusters, and majority_voting={name!r} is a graph. Leave "
                "min_share out, pass threshold=, or name a column of clusters."
            )
        graph = csr_matrix(adata.obsp[name])
        if graph.nnz and not (graph.data.min() >= 0 and graph.data.max() <= 1):
            raise ValueError(
                f"majority_voting={name!r}: obsp[{name!r}] has values below 0 or above 1, which "
                "are no weights of neighbours. Pass 'connectivities', not distances."
            )
        return cls(None, graph, min_share)

    def probabilities(self, own: np.ndarray) -> np.ndarray:
        """Return the means over neighbours of the cells' `own` probabilities, shape (n_cells,
        n_classes). The cell itself has weight 1. Clusters do not change probabilities."""
        if self.graph is None:
            return own
        weights = self.graph + eye_array(len(own), format="csr")
        return np.asarray(weights @ own / np.asarray(weights.sum(axis=1)).reshape(-1, 1))

    def types(self, own: np.ndarray, n_types: int) -> np.ndarray:
        """Return the types of the cells after the vote of each cluster.

        `own` are their types, or -1 for cells that do not vote. A cluster gets its most frequent
        type, the first one of a tie, or -1 if less than `min_share` of all its cells have it. Cells
        without a cluster keep their type.
        """
        if self.clusters is None:
            return own
        votes = np.zeros((self.clusters.max(initial=-1) + 2, n_types + 1))
        np.add.at(votes, (self.clusters, own), 1)
        best, counts = votes[:, :-1].argmax(axis=1), votes[:, :-1].max(axis=1, initial=0)
        is_won = (counts > 0) & (counts >= self.min_share * votes.sum(axis=1))
        voted = np.where(is_won, best, -1)[self.clusters]
        return np.where(self.clusters < 0, own, voted)


def _check_clusters(column: Any, name: str) -> None:
    """Raise a ValueError for measurements, and warn if most cells have a cluster of their own."""
    known = column.dropna()
    values = known.unique()
    fractions = [each for each in values if isinstance(each, float | np.floating) and each % 1]
    if fractions:
        raise ValueError(
            f"majority_voting={name!r}: the column has values such as {fractions[0]:g}, which are "
            "measurements, not clusters. Name a column of clusters, such as that of "
            "scanpy.tl.leiden."
        )
    if len(known) > _FEW_CELLS and len(values) > len(known) / 2:
        warn_user(
            f"majority_voting={name!r}: the column has {len(values):,} different values for "
            f"{len(known):,} cells, and each is a cluster. Check that these are clusters."
        )
