"""Genes with the largest weights for each cell type, in scanpy's layout."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemargin.cells.genes import CellForm, Match, columns_in
from sparsemargin.evaluation.vectors import vectors_by_class
from sparsemargin.models.inputs.labels import label_text
from sparsemargin.models.pipelines import parts_of

# Columns of scanpy's tables that cannot be computed from weights.
_UNKNOWN = "logfoldchanges", "pvals", "pvals_adj"


def marker_genes(
    model: Any,
    adata: Any = None,
    *,
    top: int = 20,
    var: str | None = None,
    match: Match = "exact",
    groupby: str = "predicted",
) -> dict[str, Any]:
    """Find the genes with the largest weights for each cell type.

    Parameters
    ----------
    model : pipeline of `fit_anndata`
    adata : AnnData, default=None
        Cells to plot. Only genes of `adata` are returned, with their names in ``adata.var_names``,
        which scanpy's plots use. None: all genes and their names are those of the model.
    top : int, default=20
        Number of genes for each type.
    var, match
        Names of the genes of `adata` and how they are compared, as for `annotate`.
    groupby : str, default="predicted"
        The column of `obs` with the types. scanpy's plots group the cells by it.

    Returns
    -------
    dict
        A dict in the layout of scanpy's ``rank_genes_groups``. scanpy's plots use it if it is
        stored as ``adata.uns["rank_genes_groups"]``. ``names`` and ``scores`` are record arrays
        with one field for each type. A score is the weight times the standard deviation of the
        gene, so that genes are comparable. Fold changes and p-values are NaN.

    Raises
    ------
    ValueError
        If the model is not a pipeline of `fit_anndata`, has no weight vector for each type, or
        shares no gene with `adata`.

    See Also
    --------
    top_features : Features with the largest weights of any linear model.
    sparsemargin.plotting.StrongestFeaturesDisplay.from_estimator : Plot the strongest features.
    """
    before, learner = parts_of(model)
    if not hasattr(before and before[-1], "deviations_"):
        raise ValueError("model must be a pipeline that fit_anndata has made.")
    deviations, genes = before[-1].deviations_, before.get_feature_names_out()
    known = np.arange(len(genes))
    if adata is not None:
        with CellForm(var=var, match=match).open(adata) as [cells]:
            found = columns_in(cells, genes, CellForm(var=var, match=match))
        at = np.flatnonzero(found >= 0)
        at = at[np.argsort(found[at])]
        known, genes = found[at], np.asarray(adata.var_names, dtype=object)[at]
    names, scores, vectors = list[Any](), list[np.ndarray](), vectors_by_class(learner)
    for vector in vectors.values():
        score = vector[known] * deviations[known]
        at = np.argsort(-score, kind="stable")[:top]
        names.append(genes[at])
        scores.append(score[at].astype(np.float32))
    params = {"groupby": groupby, "reference": "rest", "method": "sparsemargin", "use_raw": False,
              "layer": None, "corr_method": None}  # fmt: skip
    return {"params": params, **_tables(list(map(label_text, vectors)), names, scores)}


def _tables(
    types: list[str], names: list[np.ndarray], scores: list[np.ndarray]
) -> dict[str, np.recarray]:
    """Return record arrays with a field for each type."""
    nothing = [np.full(len(each), np.nan, np.float32) for each in scores]
    columns = {"names": names, "scores": scores, **dict.fromkeys(_UNKNOWN, nothing)}
    kinds = {key: [(name, each[0].dtype) for name in types] for key, each in columns.items()}
    return {key: np.rec.fromarrays(each, dtype=kinds[key]) for key, each in columns.items()}
