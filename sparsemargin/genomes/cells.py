"""Counts of genes in cells, normalised as scanpy does."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import check_array, check_is_fitted

from sparsemargin._engine.rows import cells

#: What becomes of values: see `CellNormalizer`.
Normalize = Literal["log1p", "counts"] | None

_KINDS = {None: cells.AS_THEY_ARE, "log1p": cells.WHOLE, "counts": cells.ALL}

_AS_THEY_ARE = "normalize=None takes values as they are"
_FAULTS = {
    cells.NOT_FINITE: "a value is NaN or infinite. Drop the cell, or give it another",
    cells.NEGATIVE: "Negative values in data, as scaled ones have. Counts may be in a layer, or in "
    f"raw: layer='raw'. {_AS_THEY_ARE}",
    cells.OUT_OF_RANGE: "a value has no gene. The file is damaged: write it again",
    cells.NEITHER: "values are not whole, as counts are, and too large for logarithms. "
    f"normalize='counts' takes them as counts, if they are estimates of these; {_AS_THEY_ARE}",
}

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]


def normalised(
    rows: Arrays, order: np.ndarray, columns: np.ndarray, how: CellNormalizer,
    place_of: Callable[[int], str],
) -> tuple[Arrays, int]:  # fmt: skip
    """Rows of these numbers, normalised, and how many of them were taken for logarithms.

    `rows` are data, indices and pointers (int64), `columns` (int32) the column of each gene, as the
    engine's `made_rows` takes it; `place_of` tells where a row comes from, for errors.
    """
    how._validate_params()
    status, row, n_logs, is_sorted, made = cells.made_rows(
        *rows, order, columns, how.target_sum, _KINDS[how.normalize]
    )
    if status:
        raise ValueError(f"{place_of(row)}: {_FAULTS[status]}.")
    if not is_sorted:
        made = _sorted(made, len(columns), lambda i: place_of(int(order[i])))
    return made, n_logs


def _sorted(rows: Arrays, n_columns: int, place_of: Callable[[int], str]) -> Arrays:
    """The rows with rising columns."""
    X = csr_matrix(rows, shape=(len(rows[2]) - 1, n_columns))
    X.sort_indices()
    twice = np.flatnonzero(np.diff(X.indices) == 0) + 1
    # Where a row ends, the next may begin with the same gene.
    for at in twice[~np.isin(twice, X.indptr)][:1]:
        place = place_of(int(np.searchsorted(X.indptr, at, side="right")) - 1)
        raise ValueError(f"{place}: a gene has two values. Call sum_duplicates() of the matrix.")
    return X.data, X.indices, X.indptr


class CellNormalizer(TransformerMixin, BaseEstimator):
    """Counts of genes brought to the same total in each cell, and their logarithms: what scanpy's
    ``normalize_total(target_sum=1e4)`` and ``log1p`` make of them.

    Parameters
    ----------
    normalize : {"log1p", "counts", None}, default="log1p"
        "log1p": a cell of whole numbers has counts, which are normalised; one of others has their
        logarithms already, and stays as it is. "counts": all are counts, whole or not, as tools
        that estimate them give. None: all stay as they are.
    target_sum : float, default=1e4
        The total of a cell before logarithms are taken.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        The genes, where they have names.
    deviations_ : ndarray of float64, shape (n_features_in_,)
        Standard deviation of each gene over cells it was fitted to, normalised.

    Examples
    --------
    >>> from sparsemargin.genomes import CellNormalizer
    >>> CellNormalizer(target_sum=4).fit_transform([[1, 0, 3], [0, 2, 2]]).toarray().round(3)
    array([[0.693, 0.   , 1.386],
           [0.   , 1.099, 1.099]], dtype=float32)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "normalize": [StrOptions({"log1p", "counts"}), None],
        "target_sum": [Interval(Real, 0, None, closed="neither")],
    }  # fmt: skip

    def __init__(self, *, normalize: Normalize = "log1p", target_sum: float = 1e4) -> None:
        self.normalize = normalize
        self.target_sum = target_sum

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the number, the names and the deviations of genes.

        Parameters
        ----------
        X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_cells, n_genes)
        y : object
            Not used.

        Returns
        -------
        self : object
        """
        return self._keep(self._made(X), getattr(X, "columns", None))

    def _keep(self, X: csr_matrix, genes: Any = None) -> Self:
        """Learn from cells that are normalised."""
        self.n_features_in_ = X.shape[1]
        self.deviations_ = np.sqrt(mean_variance_axis(X, axis=0)[1]).astype(np.float64)
        if genes is not None:
            self.feature_names_in_ = np.asarray(genes, dtype=object)
        return self

    def transform(self, X: Any) -> csr_matrix:
        """Normalise cells.

        Parameters
        ----------
        X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_cells, n_genes)
            Genes are those of `fit`, in the same order.

        Returns
        -------
        csr_matrix of shape (n_cells, n_genes)
            Of float64 where X is, else of float32.

        Raises
        ------
        ValueError
            If X has another number of genes, other names, or values that can't be what `normalize`
            says; names the first cell.
        """
        check_is_fitted(self)
        names = getattr(X, "columns", None)
        if names is not None and not np.array_equal(
            names, getattr(self, "feature_names_in_", names)
        ):
            raise ValueError("X has other genes than those learned, or another order of them.")
        made = self._made(X)
        if made.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {made.shape[1]} features, but CellNormalizer is expecting "
                f"{self.n_features_in_} features as input."
            )
        return made

    def _made(self, X: Any) -> csr_matrix:
        X = csr_matrix(check_array(X, accept_sparse="csr", ensure_all_finite=False))
        rows = as_floats(X.data), X.indices, X.indptr.astype(np.int64, copy=False)
        order, columns = np.arange(X.shape[0]), np.arange(X.shape[1], dtype=np.int32)
        made, _ = normalised(rows, order, columns, self, "X, cell {}".format)
        return csr_matrix(made, shape=X.shape)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The genes.

        Raises
        ------
        AttributeError
            If they have no names.
        """
        return self.feature_names_in_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.normalize is not None
        return tags


def as_floats(values: np.ndarray) -> np.ndarray:
    """Values of a type that rows are made of."""
    return values.astype(np.float64 if values.dtype == np.float64 else np.float32, copy=False)
