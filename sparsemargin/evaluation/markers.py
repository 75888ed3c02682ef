"""Genes with the largest weights for each cell type, as a table and in scanpy's layout."""

from __future__ import annotations

import sys
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_matrix

from sparsemargin._checks import check_count
from sparsemargin.cells.annotate import AS_MODEL, cell_model, form_for
from sparsemargin.cells.genes import Match, columns_in, warn_of_few_genes
from sparsemargin.cells.source import sample_of
from sparsemargin.evaluation.vectors import vectors_by_class
from sparsemargin.models.inputs.labels import label_text
from sparsemargin.readers.cell_files import Cells

# Number of cells that are read together to compute means.
_AT_ONCE = 4096

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

    A weight tells a type from the other types, given all other genes, so that a gene with a large
    weight may have a lower mean in the type than elsewhere. With `adata`, such genes are left out.

    Parameters
    ----------
    model : CellClassifier, or pipeline of a `CellNormalizer` and a classifier
    adata : AnnData, default=None
        Cells to plot. Only genes of `adata` are returned, with their names in ``adata.var_names``,
        which scanpy's plots use, and only if their mean in ``adata.X`` is higher for the cells of
        the type in ``adata.obs[groupby]`` than for all other cells. Counts are divided by the total
        of their cell. For a type without cells, means are not used. The genes are also written to
        ``adata.uns[key_added]``, as by ``scanpy.tl.rank_genes_groups``, so that
        ``scanpy.pl.rank_genes_groups_dotplot(adata)`` works. Fold changes and p-values are NaN.
        None: all genes and their names are those of the model.
    top : int, default=20
        Number of genes for each type.
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
        The columns "type", "gene", "score" and "rank", with at most `top` rows for each type. A
        score is the weight times the standard deviation of the gene, so that genes are comparable.
        The gene with the largest score has rank 1. In ``adata.uns``, all types have the same number
        of genes: shorter lists are filled with the genes of the next largest scores.

    Raises
    ------
    ValueError
        If the model is not such a pipeline, has no weight vector for each type, or shares no gene
        with `adata`, or `groupby` is not a column of `obs`.

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
    deviations, genes = normalizer.deviations_, normalizer.get_feature_names_out()
    known, vectors = np.arange(len(genes)), vectors_by_class(learner)
    types, means = list(map(label_text, vectors)), _Means({})
    if adata is not None:
        groups = _groups_of(adata, groupby)
        form = form_for(model, None, var, match)
        with form.open(adata) as [cells]:
            found = columns_in(cells, genes, form)
            warn_of_few_genes(cells, found, normalizer, form)
            means = _Means.of(cells, groups, types)
        at = np.flatnonzero(found >= 0)
        at = at[np.argsort(found[at])]
        known, genes = found[at], np.asarray(adata.var_names, dtype=object)[at]
        means = means.at(at)
    names, scores, numbers = list[Any](), list[np.ndarray](), list[int]()
    for kind, vector in zip(types, vectors.values(), strict=True):
        score, is_higher = vector[known] * deviations[known], means.higher(kind, len(known))
        at = np.lexsort((-score, ~is_higher))[:top]
        names.append(genes[at])
        scores.append(score[at].astype(np.float32))
        numbers.append(int(np.count_nonzero(is_higher[at])))
    if adata is not None:
        params = {"groupby": groupby, "reference": "rest", "method": "sparsemargin",
                  "use_raw": False, "layer": None, "corr_method": None}  # fmt: skip
        adata.uns[key_added] = {"params": params, **_tables(types, names, scores)}
    return frame_of({
        "type": np.repeat(np.array(types, dtype=object), numbers),
        "gene": np.concatenate([each[:n] for each, n in zip(names, numbers, strict=True)]),
        "score": np.concatenate([each[:n] for each, n in zip(scores, numbers, strict=True)]),
        "rank": np.concatenate([np.arange(1, n + 1) for n in numbers]),
    })  # fmt: skip


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
    return np.array(list(map(label_text, adata.obs[groupby].tolist())), dtype=object)


class _Means(NamedTuple):
    """Differences of the means of genes: those of the cells of a type less those of the others."""

    by_type: dict[str, np.ndarray]

    @classmethod
    def of(cls, cells: Cells, groups: np.ndarray, types: list[str]) -> Self:
        """Read the cells and compute the differences for the types that some of them have."""
        code = {kind: i for i, kind in enumerate(types)}
        codes = np.array([code.get(group, len(types)) for group in groups])
        sums = np.zeros((len(types) + 1, cells.n_genes))
        sample = sample_of(cells, np.zeros(cells.n_genes, np.int32), np.dtype(np.float64))
        is_counts = sample.scale.form == "counts"
        for start in range(0, cells.n_cells, _AT_ONCE):
            some = start, min(start + _AT_ONCE, cells.n_cells)
            rows = cells.read([some], np.dtype(np.float64))
            X = csr_matrix((rows.data, rows.indices, rows.indptr), (rows.n_rows, cells.n_genes))
            weights = 1 / np.maximum(X @ np.ones(cells.n_genes), 1) if is_counts else None
            at = np.arange(rows.n_rows)
            values = np.ones(rows.n_rows) if weights is None else weights
            of_type = csr_matrix((values, (codes[slice(*some)], at)), (len(sums), rows.n_rows))
            sums += (of_type @ X).toarray()
        counts = np.bincount(codes, minlength=len(sums))[:, np.newaxis]
        total, n_others = sums.sum(axis=0), cells.n_cells - counts
        differences = sums / np.maximum(counts, 1) - (total - sums) / np.maximum(n_others, 1)
        is_known = (counts > 0) & (n_others > 0)
        return cls({kind: differences[i] for kind, i in code.items() if is_known[i]})

    def at(self, columns: np.ndarray) -> Self:
        """Return the differences of some genes."""
        return type(self)({kind: each[columns] for kind, each in self.by_type.items()})

    def higher(self, kind: str, n_genes: int) -> np.ndarray:
        """Return whether the mean of each gene is higher in a type, or True if it is unknown."""
        found = self.by_type.get(kind)
        return np.ones(n_genes, dtype=bool) if found is None else found > 0


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
