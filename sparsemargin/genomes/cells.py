"""Counts of genes in cells, normalised as scanpy does."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    check_array,
    check_is_fitted,
)

#: What becomes of values: see `CellNormalizer`.
Normalize = Literal["log1p", "counts"] | None

# No logarithm of a count is as large: that is of 4.8e8.
_LARGEST_LOG = 20

_AS_THEY_ARE = "normalize=None takes values as they are"


def normalised(
    X: csr_matrix, columns: np.ndarray, how: CellNormalizer, place_of: Callable[[int], str]
) -> tuple[csr_matrix, int]:
    """Cells normalised, and how many of them were taken for logarithms.

    `columns` has the column of each gene, -1 where there is none, which counts for the total all
    the same; `place_of` tells where a cell comes from, for errors.
    """
    how._validate_params()
    data, lengths, is_log = X.data, np.diff(X.indptr), np.zeros(X.shape[0], dtype=bool)

    def refuse(bad: np.ndarray, fault: str) -> None:
        if bad.any():
            row = int(np.searchsorted(X.indptr, bad.argmax(), side="right")) - 1
            raise ValueError(f"{place_of(row)}: {fault}.")

    refuse(~np.isfinite(data), "a value is NaN or infinite. Drop the cell, or give it another")
    if how.normalize is not None:
        refuse(data < 0, "Negative values in data, as scaled ones have. Counts may be in a layer, "
               f"or in raw: layer='raw'. {_AS_THEY_ARE}")  # fmt: skip
        parts = data != np.floor(data)
        if how.normalize == "log1p" and parts.any():
            is_log[np.repeat(np.arange(len(is_log)), lengths)[parts]] = True
            refuse(np.repeat(is_log, lengths) & (data > _LARGEST_LOG), "values are not whole, as "
                   "counts are, and too large for logarithms. normalize='counts' takes them as "
                   f"counts, if they are estimates of these; {_AS_THEY_ARE}")  # fmt: skip
        totals = X @ np.ones(X.shape[1])
        scales = np.divide(how.target_sum, totals, out=np.ones_like(totals), where=totals > 0)
        logs = np.log1p(data * np.repeat(scales.astype(data.dtype), lengths))
        data = np.where(np.repeat(is_log, lengths), data, logs) if is_log.any() else logs
    indices, indptr = columns.take(X.indices), X.indptr
    kept = indices >= 0
    if not kept.all():
        data, indices, indptr = data[kept], indices[kept], np.append(0, np.cumsum(kept))[indptr]
    made = csr_matrix((data, indices, indptr), shape=(X.shape[0], columns.max(initial=-1) + 1))
    made = made if made.has_sorted_indices else made.sorted_indices()
    if not made.has_canonical_format:
        raise ValueError(
            f"{place_of(0)}, or one after it: a gene has two values. Call sum_duplicates() of the "
            "matrix."
        )
    return made, int(is_log.sum())


class CellNormalizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
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
    feature_names_in_ : ndarray of str, shape (n_genes,)
        The genes, where they have names.
    deviations_ : ndarray of float64, shape (n_genes,)
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
        return self._keep(self._made(X, reset=True))

    def _keep(self, X: csr_matrix) -> Self:
        """Learn from cells that are normalised."""
        self.n_features_in_ = X.shape[1]
        self.deviations_ = np.sqrt(mean_variance_axis(X, axis=0)[1]).astype(np.float64)
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
        return self._made(X, reset=False)

    def _made(self, X: Any, reset: bool) -> csr_matrix:
        if hasattr(X, "columns"):  # AnnData's matrices have no names, and need no warning
            _check_feature_names(self, X, reset=reset)
        X = csr_matrix(check_array(X, accept_sparse="csr", ensure_all_finite=False))
        _check_n_features(self, X, reset=reset)
        X = csr_matrix((as_floats(X.data), X.indices, X.indptr), shape=X.shape)
        columns = np.arange(X.shape[1], dtype=np.int32)
        return normalised(X, columns, self, "X, cell {}".format)[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.normalize is not None
        return tags


def as_floats(values: np.ndarray) -> np.ndarray:
    """Values of a type that rows are made of."""
    return values.astype(np.float64 if values.dtype == np.float64 else np.float32, copy=False)
