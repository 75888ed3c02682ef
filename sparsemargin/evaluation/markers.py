"""Genes with the largest weights for each cell type, as a table and in scanpy's layout."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from sparsemargin.cells.annotate import AS_MODEL, cell_model, form_for
from sparsemargin.cells.genes import Match, columns_in
from sparsemargin.evaluation.vectors import vectors_by_class
from sparsemargin.models.inputs.labels import label_text

# Columns of scanpy's tables that cannot be computed from weights.
_UNKNOWN = "logfoldchanges", "pvals", "pvals_adj"


def marker_genes(
    model: Any,
    adata: Any = None,
    *,
    top: int = 20,
    var: str | None = AS_MODEL,
    match: Match | Literal["as model"] = AS_MODEL,
    groupby: str = "sparsemargin",
    key_added: str = "rank_genes_groups",
) -> Any:
    """Find the genes with the largest weights for each cell type.

    Parameters
    ----------
    model : CellClassifier, or pipeline of a `CellNormalizer` and a classifier
    adata : AnnData, default=None
        Cells to plot. Only genes of `adata` are returned, with their names in ``adata.var_names``,
        which scanpy's plots use. They are also written to ``adata.uns[key_added]``, as by
        ``scanpy.tl.rank_genes_groups``, so that ``scanpy.pl.rank_genes_groups_dotplot(adata)``
        works. Fold changes and p-values are NaN. None: all genes and their names are those of the
        model.
    top : int, default=20
        Number of genes for each type.
    var, match
        Names of the genes of `adata` and how they are compared, as for `annotate`.
    groupby : str, default="sparsemargin"
        The column of `obs` with the types, which is the `key_added` of `annotate`. scanpy's plots
        group the cells by it.
    key_added : str, default="rank_genes_groups"
        Key of `uns` for scanpy's plots.

    Returns
    -------
    DataFrame, or dict of arrays without pandas
        The columns "type", "gene", "score" and "rank", with `top` rows for each type. A score is
        the weight times the standard deviation of the gene, so that genes are comparable. The gene
        with the largest score has rank 1.

    Raises
    ------
    ValueError
        If the model is not such a pipeline, has no weight vector for each type, or shares no gene
        with `adata`.

    See Also
    --------
    top_features : Features with the largest weights of any linear model.
    sparsemargin.plotting.StrongestFeaturesDisplay.from_estimator : Plot the strongest features.
    """
    learner, normalizer = cell_model(model)
    deviations, genes = normalizer.deviations_, normalizer.get_feature_names_out()
    known = np.arange(len(genes))
    if adata is not None:
        form = form_for(model, None, var, match)
        with form.open(adata) as [cells]:
            found = columns_in(cells, genes, form)
        at = np.flatnonzero(found >= 0)
        at = at[np.argsort(found[at])]
        known, genes = found[at], np.asarray(adata.var_names, dtype=object)[at]
    names, scores, vectors = list[Any](), list[np.ndarray](), vectors_by_class(learner)
    for vector in vectors.values():
        score = vector[known] * deviations[known]
        at = np.argsort(-score, kind="stable")[:top]
        names.append(genes[at])
        scores.append(score[at].astype(np.float32))
    types = list(map(label_text, vectors))
    if adata is not None:
        params = {"groupby": groupby, "reference": "rest", "method": "sparsemargin",
                  "use_raw": False, "layer": None, "corr_method": None}  # fmt: skip
        adata.uns[key_added] = {"params": params, **_tables(types, names, scores)}
    n_genes = len(names[0])
    return frame_of({
        "type": np.repeat(np.array(types, dtype=object), n_genes), "gene": np.concatenate(names),
        "score": np.concatenate(scores), "rank": np.tile(np.arange(1, n_genes + 1), len(types)),
    })  # fmt: skip


def _tables(
    types: list[str], names: list[np.ndarray], scores: list[np.ndarray]
) -> dict[str, np.recarray]:
    """Return record arrays with a field for each type."""
    nothing = [np.full(len(each), np.nan, np.float32) for each in scores]
    columns = {"names": names, "scores": scores, **dict.fromkeys(_UNKNOWN, nothing)}
    kinds = {key: [(name, each[0].dtype) for name in types] for key, each in columns.items()}
    return {key: np.rec.fromarrays(each, dtype=kinds[key]) for key, each in columns.items()}


def frame_of(columns: dict[str, Any], index: str | None = None) -> Any:
    """Return a pandas DataFrame with these columns, one of which becomes its index. Without pandas,
    return the columns."""
    try:
        # pandas is an optional dependency.
        import pandas
    except ImportError:
        return columns
    frame = pandas.DataFrame(columns)
    return frame if index is None else frame.set_index(index)
