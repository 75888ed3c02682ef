"""The genes that tell types of cells, as scanpy keeps them."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemargin._engine.numerics.norms import vectors_of
from sparsemargin.evaluation.weights import coef_of, strongest_features
from sparsemargin.models.labels import label_text
from sparsemargin.models.pipelines import parts_of

# What scanpy's tables have besides, of which weights tell nothing.
_UNKNOWN = "logfoldchanges", "pvals", "pvals_adj"


def marker_genes(model: Any, top: int = 20, *, groupby: str = "predicted") -> dict[str, Any]:
    """The genes that speak most for each type of cells.

    Parameters
    ----------
    model : pipeline of `fit_anndata`
    top : int, default=20
        How many genes of each type.
    groupby : str, default="predicted"
        The column of `obs` with the types, by which scanpy's plots group cells.

    Returns
    -------
    dict
        In the layout of scanpy's ``rank_genes_groups``: put it into ``adata.uns`` by that name, and
        its plots take it. ``names`` and ``scores`` are record arrays with a field for each type;
        scores are weights times the deviation of the gene, so that they compare. Fold changes and p
        values are NaN.

    Raises
    ------
    ValueError
        If the model is no such pipeline, or has no weight vector for each type.

    See Also
    --------
    top_features : The same of any linear model, by weights as they are.
    sparsemargin.plotting.StrongestFeaturesDisplay.from_markers : As a picture.
    """
    before, learner = parts_of(model)
    if not hasattr(before and before[-1], "deviations_"):
        raise ValueError("model must be a pipeline that fit_anndata has made.")
    deviations, genes = before[-1].deviations_, before.get_feature_names_out()
    vectors = list(vectors_of(coef_of(learner)))
    vectors = [-vectors[0], vectors[0]] if len(vectors) == 1 else vectors
    types = list(map(label_text, learner.classes_.tolist()))
    names, scores = list[Any](), list[np.ndarray]()
    for vector in vectors:
        score = vector * deviations
        at = strongest_features(np.maximum(score, 0), top)
        # Columns of records have one length: what is left over speaks against the type, if it does.
        rest = np.argsort(-score, kind="stable")
        at = np.concatenate([at, rest[~np.isin(rest, at)]])[:top]
        names.append(genes[at])
        scores.append(score[at].astype(np.float32))
    nothing = [np.full(len(each), np.nan, np.float32) for each in scores]
    params = {"groupby": groupby, "reference": "rest", "method": "sparsemargin", "use_raw": False,
              "layer": None, "corr_method": None}  # fmt: skip
    columns = {"names": names, "scores": scores, **dict.fromkeys(_UNKNOWN, nothing)}
    kinds = {key: [(name, each[0].dtype) for name in types] for key, each in columns.items()}
    tables = {key: np.rec.fromarrays(each, dtype=kinds[key]) for key, each in columns.items()}
    return {"params": params, **tables}
