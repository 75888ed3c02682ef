"""Counts of genes in cells, normalised as scanpy does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

from sparsemargin._engine.rows.counts import NEGATIVE, NO_LOGARITHM, find_scales, write_rows
from sparsemargin._engine.rows.csr import (
    NOT_CANONICAL,
    NOT_FINITE,
    OK,
    OUT_OF_RANGE,
    BadRow,
    Csr,
    bad_pointer,
    first_bad_row,
)
from sparsemargin._engine.rows.parts import pointers_of

#: What becomes of values: see `CellNormalizer`.
Normalize = Literal["log1p", "counts"] | None

_AS_THEY_ARE = "normalize=None takes values as they are"
_FAULTS = {
    NOT_FINITE: "a value is NaN or infinite. Drop the cell, or give it another",
    OUT_OF_RANGE: "it has a value of a gene beyond the last. The matrix is damaged",
    NEGATIVE: "Negative values in data, as scaled ones have. Counts may be in a layer, or in raw: "
    f"layer='raw'. {_AS_THEY_ARE}",
    NO_LOGARITHM: "values are not whole, as counts are, and too large for logarithms. "
    f"normalize='counts' takes them as counts, if they are estimates of these; {_AS_THEY_ARE}",
    NOT_CANONICAL: "a gene has two values. Call sum_duplicates() of the matrix",
}  # fmt: skip


def normalised(
    parts: Sequence[tuple[Csr, np.ndarray]], n_columns: int, how: CellNormalizer,
    place_of: Callable[[int], str], order: np.ndarray | None = None,
) -> tuple[csr_matrix, int]:  # fmt: skip
    """Cells normalised, and how many of them were taken for logarithms.

    `parts` are rows, numbered throughout, with the column of each gene as `find_scales` takes them;
    `order` has the numbers of those that are wanted, `place_of` tells for errors where one is.
    """
    how._validate_params()

    def refused(row: int, status: int) -> ValueError:
        return ValueError(f"{place_of(row)}: {_FAULTS[status]}.")

    target = 0.0 if how.normalize is None else how.target_sum
    first, found = 0, list[tuple[np.ndarray, np.ndarray]]()
    for rows, columns in parts:
        try:
            found.append(find_scales(*rows.arrays, columns, target, how.normalize == "log1p"))
        except BadRow as bad:
            raise refused(first + bad.row, bad.status) from None
        first += rows.n_rows
    lengths, scales = map(np.concatenate, zip(*found, strict=True))
    order = np.arange(first) if order is None else order
    indptr, starts = pointers_of(lengths[order], np.int64), np.full(first, -1)
    starts[order] = indptr[:-1]
    data = np.empty(indptr[-1], parts[0][0].data.dtype)
    indices, rising, first = np.empty(indptr[-1], np.int32), True, 0
    for rows, columns in parts:
        some = slice(first, first + rows.n_rows)
        rising &= write_rows(*rows.arrays, columns, scales[some], starts[some], data, indices)
        first = some.stop
    made = csr_matrix((data, indices, indptr), shape=(len(order), n_columns))
    if not rising:
        made.sort_indices()
        status, row = first_bad_row(Csr(made.data, made.indices, made.indptr, n_columns), False)
        if status != OK:
            raise refused(int(order[row]), status)
    return made, 0 if how.normalize is None else int(np.isnan(scales[order]).sum())


def counts_of(X: Any) -> Csr:
    """The rows of a matrix, which need not be canonical."""
    types = [np.float32, np.float64]
    X = csr_matrix(check_array(X, accept_sparse="csr", dtype=types, ensure_all_finite=False))
    if bad_pointer(X.indptr, X.nnz) >= 0:
        raise ValueError("X is damaged: its rows do not divide its values.")
    return Csr(X.data, X.indices, X.indptr, X.shape[1])


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
        rows = counts_of(X)
        columns = np.arange(rows.n_features, dtype=np.int32)
        _check_n_features(self, X, reset=reset)
        return normalised([(rows, columns)], rows.n_features, self, "X, cell {}".format)[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.normalize is not None
        return tags
