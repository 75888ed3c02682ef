"""Genes that tell each cell type from the others, as a table and in scanpy's layout."""

from __future__ import annotations

import sys
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_matrix

from sparsemargin._checks import check_count
from sparsemargin._engine.rows.counts import NO_GENE
from sparsemargin._shown import first_three
from sparsemargin.cells.annotate import AS_MODEL, cell_model, form_for
from sparsemargin.cells.genes import Match, columns_in, warn_of_few_genes
from sparsemargin.cells.source import sample_of
from sparsemargin.evaluation.vectors import vectors_by_class
from sparsemargin.genomes.cells import CellNormalizer
from sparsemargin.genomes.conversion import NOT_FINITE, columns_of_totals
from sparsemargin.genomes.scales import USUAL_TOTAL
from sparsemargin.models.inputs.labels import label_text
from sparsemargin.readers.cell_files import Cells, pandas_column

# Number of cells that are read together to compute means.
_AT_ONCE = 4096

# Columns of scanpy's tables that cannot be computed from weights.
_UNKNOWN = "logfoldchanges", "pvals", "pvals_adj"


def marker_genes(
    model: Any,
    adata: Any = None,
    *,
    top: int = 20,
    layer: str | None = None,
    var: str | None = AS_MODEL,
    match: Match | Literal["as model"] = AS_MODEL,
    groupby: str = "sparsemargin",
    key_added: str = "rank_genes_groups",
) -> Any:
    """Find the genes that tell each cell type from the others.

    Without `adata`, these are the genes with the largest weights. With `adata`, the weight of a
    gene is multiplied by the difference between its mean in the cells of the type and its mean in
    all other cells. This is the contribution of the gene to the difference of the mean outputs.

    Parameters
    ----------
    model : CellClassifier, or pipeline of a `CellNormalizer` and a classifier
    adata : AnnData, default=None
        Cells to plot. Only genes of `adata` with a positive weight and a higher mean in the type
        are returned, and only types that some cells have. Counts are normalised for the means. The
        genes are also written to ``adata.uns[key_added]``, as by ``scanpy.tl.rank_genes_groups``,
        so that ``scanpy.pl.rank_genes_groups_dotplot(adata)`` works. Fold changes and p-values are
        NaN. None: all genes and their names are those of the model.
    top : int, default=20
        Number of genes for each type.
    layer : str, default=None
        The values from which means are computed: a layer, or "raw" for ``adata.raw`` and its genes.
        None: ``adata.X``. "as model": as the model does. scanpy's plots read ``adata.raw``, if it
        exists, or else ``adata.X``, unless you pass them ``use_raw`` or ``layer``.
    var, match
        Names of the genes of `adata` and how they are compared. "as model": as the model does. If
        you passed another value to `annotate`, pass it here, too.
    groupby : str, default="sparsemargin"
        The column of `obs` with the types, which is the `key_added` of `annotate`. scanpy's plots
        group the cells by it.
    key_added : str, default="rank_genes_groups"
        Key of `uns` for scanpy's plots.

    Returns
    -------
    DataFrame, or dict of arrays without pandas
        The columns "type", "gene", "score" and "rank", with at most `top` rows for each type. The
        score is the product described above, or the weight without `adata`. Genes have their names
        in ``var_names`` of `adata` (or of ``adata.raw``), which scanpy's plots use. The gene with
        the largest score has rank 1. In ``adata.uns``, all types have the same number of genes:
        shorter lists are filled with other genes, the largest weights first, whose score is 0.

    Raises
    ------
    ValueError
        If the model is not such a pipeline, has no weight vector for each type, or shares no gene
        with `adata`, or `groupby` is not a column of `obs`, or no cell has one of the types, or a
        value of a cell is not finite.

    Warns
    -----
    UserWarning
        If the genes of `adata` have less than 90 % of the variance of the training cells.

    See Also
    --------
    top_features : Features with the largest weights of any linear model.
    sparsemargin.plotting.StrongestFeaturesDisplay.from_estimator : Plot the strongest features.
    """
    learner, normalizer = cell_model(model)
    top = check_count("top", top, 1, sys.maxsize)
    vectors = {label_text(kind): each for kind, each in vectors_by_class(learner).items()}
    genes, found = normalizer.get_feature_names_out(), list[_Markers]()
    if adata is None:
        for kind, weights in vectors.items():
            at = np.argsort(-weights, kind="stable")[:top]
            found.append(_Markers(kind, genes[at], weights[at], len(at)))
        return _frame(found)
    groups = _groups_of(adata, groupby)
    form = form_for(model, layer, var, match)
    with form.open(adata) as [cells]:
        columns = columns_in(cells, genes, form)
        warn_of_few_genes(cells, columns, normalizer, form)
        differences = _differences(cells, groups, list(vectors), columns, normalizer)
    at = np.flatnonzero(columns >= 0)
    at = at[np.argsort(columns[at])]
    is_raw = form.layer == "raw"
    names = np.asarray((adata.raw if is_raw else adata).var_names, dtype=object)[at]
    for kind, difference in differences.items():
        weights = vectors[kind][columns[at]]
        found.append(_Markers.of(kind, names, weights, difference[at], top))
    if not found:
        raise ValueError(
            f"No cell has one of the types of the model in obs[{groupby!r}], which has "
            f"{first_three(map(repr, dict.fromkeys(groups)))}. Pass groupby= the column with them."
        )
    params = {"groupby": groupby, "reference": "rest", "method": "sparsemargin",
              "use_raw": is_raw, "layer": None if is_raw else form.layer,
              "corr_method": None}  # fmt: skip
    adata.uns[key_added] = {"params": params, **_tables(found)}
    return _frame(found)


class _Markers(NamedTuple):
    """Genes of a type and their scores. The first `n` of them are markers."""

    kind: str
    names: np.ndarray
    scores: np.ndarray
    n: int

    @classmethod
    def of(
        cls, kind: str, names: np.ndarray, weights: np.ndarray, difference: np.ndarray, top: int
    ) -> Self:
        """Rank genes with these weights and differences of means."""
        is_marker = (weights > 0) & (difference > 0)
        score = np.where(is_marker, weights * difference, 0.0)
        at = np.lexsort((-weights, -score))[:top]
        return cls(kind, names[at], score[at], int(np.count_nonzero(is_marker[at])))


def _groups_of(adata: Any, groupby: str) -> np.ndarray:
    """Return the type of each cell as text, or raise a ValueError."""
    if not hasattr(adata, "obs_names"):
        raise ValueError(
            f"adata must be an AnnData, got a {type(adata).__name__}. Read the file first: "
            "anndata.read_h5ad(path)."
        )
    if groupby not in adata.obs.columns:
        known = ", ".join(map(str, adata.obs.columns)) or "none"
        raise ValueError(
            f"groupby={groupby!r} is not a column of obs ({known}). Call annotate(model, adata) "
            "first, or pass groupby= the column with the types of the cells."
        )
    return np.array(list(map(label_text, pandas_column(adata.obs, groupby).tolist())), dtype=object)


def _differences(
    cells: Cells, groups: np.ndarray, types: list[str], columns: np.ndarray,
    normalizer: CellNormalizer,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Return the mean of each gene in the cells of a type minus its mean in all other cells, for
    the types that some cells have. If all cells have one type, the differences are its means.

    `columns` are as for `sample_of`. Counts, also estimated and normalised ones, are normalised as
    for the model; a logarithm of another base would multiply all differences by one number.
    """
    code = {kind: i for i, kind in enumerate(types)}
    codes = np.array([code.get(group, len(types)) for group in groups])
    sums = np.zeros((len(types) + 1, cells.n_genes))
    form = sample_of(cells, columns, np.dtype(np.float64)).scale.form
    is_estimate = normalizer.normalize == "counts" and form in ("linear", "other")
    if is_estimate or form == "linear" != normalizer.form_:
        form = "counts"
    counted = columns_of_totals(columns, normalizer.scale) != NO_GENE
    total = normalizer.total_ if normalizer.total_ > 0 else USUAL_TOTAL
    for start in range(0, cells.n_cells, _AT_ONCE):
        some = start, min(start + _AT_ONCE, cells.n_cells)
        rows = cells.read([some], np.dtype(np.float64))
        X = csr_matrix((rows.data, rows.indices, rows.indptr), (rows.n_rows, cells.n_genes))
        bad = np.flatnonzero(~np.isfinite(X.sum(axis=1)))
        if len(bad):
            raise ValueError(f"{cells.name}, cell {start + bad[0] + 1}: {NOT_FINITE}")
        if form == "counts" != normalizer.form_:
            factors = total / np.maximum(X @ counted.astype(np.float64), 1)
            X.data = X.data * np.repeat(factors, np.diff(X.indptr))
            X.data = X.data if normalizer.form_ == "linear" else np.log1p(X.data)
        at = np.arange(rows.n_rows)
        of_type = csr_matrix((np.ones(len(at)), (codes[slice(*some)], at)), (len(sums), len(at)))
        sums += (of_type @ X).toarray()
    counts = np.bincount(codes, minlength=len(sums))[:, np.newaxis]
    rest, n_others = sums.sum(axis=0) - sums, cells.n_cells - counts
    differences = sums / np.maximum(counts, 1) - rest / np.maximum(n_others, 1)
    return {kind: differences[i] for kind, i in code.items() if counts[i, 0]}


def _tables(found: list[_Markers]) -> dict[str, np.recarray]:
    """Return record arrays with a field for each type."""
    scores = [each.scores.astype(np.float32) for each in found]
    nothing = [np.full(len(each), np.nan, np.float32) for each in scores]
    columns = {"names": [each.names for each in found], "scores": scores,
               **dict.fromkeys(_UNKNOWN, nothing)}  # fmt: skip
    return {
        key: np.rec.fromarrays(each, dtype=[(of.kind, each[0].dtype) for of in found])
        for key, each in columns.items()
    }


def _frame(found: list[_Markers]) -> Any:
    """Return the table of the markers of all types."""
    return frame_of({
        "type": np.repeat(np.array([each.kind for each in found], dtype=object),
                          [each.n for each in found]),
        "gene": np.concatenate([each.names[: each.n] for each in found]),
        "score": np.concatenate([each.scores[: each.n] for each in found]).astype(np.float32),
        "rank": np.concatenate([np.arange(1, each.n + 1) for each in found]),
    })  # fmt: skip


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
