"""Normalisation of gene counts as in scanpy."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan
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

from sparsemargin._checks import check_no_anndata_or_mask
from sparsemargin._engine.messages import warn_user
from sparsemargin._engine.rows import csr
from sparsemargin._engine.rows.csr import Csr
from sparsemargin._engine.rows.parts import rows_at
from sparsemargin.genomes.conversion import (
    ADVICE,
    Advice,
    Part,
    Sample,
    columns_of_totals,
    convert_cells,
    spread,
)
from sparsemargin.genomes.scales import (
    CHECKED,
    UNCHECKED,
    USUAL_TOTAL,
    Conversion,
    Scale,
    conversion_between,
    conversion_of_some,
    has_total,
    linear_of,
    scale_of,
)

#: The parameter `normalize` of `CellNormalizer`.
Normalize = Literal["log1p", "counts"] | None

#: The parameter `target_sum` of `CellNormalizer`.
TargetSum = float | Literal["median", "auto"]

#: How the values of cells to predict are interpreted. See `annotate`.
Values = Literal["auto", "counts"] | None

# If the genes of a model have this share of the total of new cells, other genes are neglected.
_NEARLY_ALL = 0.9


def counts_of(X: Any) -> Csr:
    """Return the rows of a matrix, which need not be in canonical format."""
    check_no_anndata_or_mask(X)
    types = [np.float32, np.float64]
    X = csr_matrix(check_array(X, accept_sparse="csr", dtype=types, ensure_all_finite=False))
    if csr.bad_pointer(X.indptr, X.nnz) >= 0:
        raise ValueError("X is damaged: its rows do not divide its values.")
    return Csr(X.data, X.indices, X.indptr, X.shape[1])


class CellNormalizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Normalise counts of genes in cells as scanpy does, and keep other cells on the same scale.

    Counts are transformed like scanpy's ``normalize_total`` followed by ``log1p``.
    The scale of the training cells is recognised from their values and stored. Later cells on
    another scale are converted if this is exact: counts, normalised counts, and natural, binary or
    decimal logarithms of normalised counts. Counts that were normalised by size factors, as by
    scran, are converted if no gene of the model is missing. All other cells raise a ValueError.

    Parameters
    ----------
    normalize : {"log1p", "counts", None}, default="log1p"
        "log1p": counts are normalised. If the values of most cells are not whole numbers, they are
        interpreted as logarithms, and training cells are not changed. "counts": all values are
        counts, including fractional ones such as estimates. None: values are not changed.
    target_sum : float, "median" or "auto", default="auto"
        Total of each cell, over the genes of the model, before logarithms are taken. "median": the
        median of the totals of up to 256 training cells of each file or matrix, which are evenly
        spaced. "auto": the median, but at most 10,000.

    Attributes
    ----------
    n_features_in_ : int
        Number of genes.
    feature_names_in_ : ndarray of str, shape (n_genes,)
        Names of the genes. Only defined if the training cells have names.
    form_ : str
        Scale of the transformed values: "log1p", "log2" or "log10" of normalised counts;
        "linear" for normalised counts; "counts"; "negative" or "other" for other values.
    total_ : float
        Total of each cell before logarithms were taken. NaN if it differs between cells.
    raw_ : bool
        Whether the values are logarithms of counts that were not normalised.
    of_genes_ : bool
        Whether totals are sums over the genes of the model. This is so if training cells have
        counts. Otherwise, totals are sums over all genes of a file.
    deviations_ : ndarray of float64, shape (n_genes,)
        Standard deviation of each gene over the normalised training cells.
    means_ : ndarray of float64, shape (n_genes,)
        Mean of each gene over the training cells, before logarithms were taken.

    Examples
    --------
    >>> from sparsemargin.genomes import CellNormalizer
    >>> CellNormalizer(target_sum=4).fit_transform([[1, 0, 3], [0, 2, 2]]).toarray().round(3)
    array([[0.693, 0.   , 1.386],
           [0.   , 1.099, 1.099]], dtype=float32)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "normalize": [StrOptions({"log1p", "counts"}), None],
        "target_sum": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto", "median"})],
    }  # fmt: skip

    def __init__(self, *, normalize: Normalize = "log1p", target_sum: TargetSum = "auto") -> None:
        self.normalize = normalize
        self.target_sum = target_sum

    def fit(self, X: Any, y: Any = None) -> Self:
        """Determine the scale of the cells, and the names, means and deviations of the genes.

        Parameters
        ----------
        X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_cells, n_genes)
        y : object
            Not used.

        Returns
        -------
        self : object
        """
        return self.keep_statistics(*self._made(X, reset=True))

    @property
    def scale(self) -> Scale:
        """The scale of the transformed values."""
        return Scale(self.form_, self.total_, self.raw_, self.of_genes_)

    @scale.setter
    def scale(self, scale: Scale) -> None:
        self.form_, self.total_, self.raw_, self.of_genes_ = scale

    def keep_statistics(self, X: csr_matrix, scale: Scale) -> Self:
        """Store the scale, means and deviations of normalised cells X."""
        self.n_features_in_, self.scale = X.shape[1], scale
        self.deviations_ = np.sqrt(mean_variance_axis(X, axis=0)[1]).astype(np.float64)
        linear = linear_of(scale.form, X.data)
        sums = np.bincount(X.indices, weights=linear, minlength=X.shape[1])
        self.means_ = sums / max(1, X.shape[0])
        return self

    def transform(self, X: Any) -> csr_matrix:
        """Normalise cells.

        Parameters
        ----------
        X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_cells, n_genes)
            Cells with the genes of `fit`, in the same order.

        Returns
        -------
        csr_matrix of shape (n_cells, n_genes)
            Normalised cells. The dtype is float64 if X has float64 values, otherwise float32.

        Raises
        ------
        ValueError
            If X has a different number of genes, different names, values that `normalize` does not
            allow (the message names the first such cell), or a scale that can't be converted.

        Warns
        -----
        UserWarning
            If X is on another scale than the training cells.
        """
        check_is_fitted(self)
        return self._made(X, reset=False)[0]

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> csr_matrix:
        """Fit to cells and normalise them. See `fit` and `transform`."""
        made, scale = self._made(X, reset=True)
        self.keep_statistics(made, scale)
        return made

    def _made(self, X: Any, reset: bool) -> tuple[csr_matrix, Scale]:
        """Return the rows of a matrix on the scale of the model, and this scale.

        With `reset`, the normalizer is fitted, and the scale is that of the rows.
        """
        self._validate_params()
        if hasattr(X, "columns"):  # Matrices of AnnData have no names and should not warn.
            _check_feature_names(self, X, reset=reset)
        rows = counts_of(X)
        columns = np.arange(rows.n_features, dtype=np.int32)
        _check_n_features(self, X, reset=reset)
        return self.normalised(rows, columns, rows.n_features, "X", is_new=reset)

    def normalised(
        self, rows: Csr, columns: np.ndarray, n_columns: int, name: str, *, is_new: bool = False
    ) -> tuple[csr_matrix, Scale]:
        """Return all rows of a matrix on the scale of the model, and this scale."""
        advice = ADVICE if is_new else Advice(counts="", none="")
        chosen = np.array([start for start, _ in spread(rows.n_rows, 1)][: rows.n_rows], np.intp)
        sample = Sample(name, rows_at(rows, chosen), columns, advice)
        scale = self.agreed([sample]) if is_new else self.scale
        conversion = self.conversion_of(sample, scale, is_new=is_new)
        part = Part(rows, columns_of_totals(columns, scale), conversion)
        location_of = f"{name}, cell {{}}".format
        return convert_cells([part], n_columns, location_of, advice=advice), scale

    def agreed(self, samples: Sequence[Any]) -> Scale:
        """Return the scale of a model with these samples of training cells, one for each file.

        Only the properties `scale` and `totals` of a `Sample` are used.
        """
        self._validate_params()
        forms = [each.scale.form for each in samples] if self.normalize != "counts" else ["counts"]
        if self.normalize is None or "counts" not in forms:
            return samples[0].scale
        if not isinstance(self.target_sum, str):
            return Scale("log1p", float(self.target_sum), of_genes=True)
        totals = np.concatenate([each.totals for each in samples])
        totals = totals[np.isfinite(totals) & (totals > 0)]
        median = float(np.median(totals)) if len(totals) else USUAL_TOTAL
        total = min(median, USUAL_TOTAL) if self.target_sum == "auto" else median
        return Scale("log1p", total, of_genes=True)

    def conversion_of(
        self, sample: Sample, own: Scale, *, is_new: bool, values: Values = "auto"
    ) -> Conversion:  # fmt: skip
        """Return the conversion of the values of a sample to the scale `own` of a model.

        `is_new` says that the model is not yet trained. Values that can't be converted raise a
        ValueError. A conversion of values other than counts issues a UserWarning.
        """
        if is_new and (values is None or self.normalize is None):
            return UNCHECKED
        found = sample.scale if is_new else scale_of(sample.rows, sample.columns, own)
        if values is None:
            if found.form == "counts" != own.form:
                warn_user(
                    f"{sample.name} has counts, and the model was trained on {own}. normalize=None "
                    "takes the counts as they are, so predictions are probably wrong. Pass values "
                    "like those of the training cells."
                )
            return UNCHECKED
        can_take_counts = not isnan(own.total) and self.normalize is not None
        if can_take_counts and (values == "counts" or self._is_estimate(sample, found, is_new)):
            return Conversion(own.total, form=own.form)
        if found.form == "negative" and not (self.normalize is None and own.form == "negative"):
            return CHECKED  # The check then raises the error that names the cell.
        conversion = conversion_between(found, own) if values == "auto" else None
        if values == "auto" and not is_new and self._needs_totals(sample, found):
            conversion = Conversion(own.total, inverse=found.form, form=own.form)
        as_they_are = conversion in (CHECKED, UNCHECKED)
        if not as_they_are and self.normalize is None:
            conversion = None
        is_unsure = isnan(found.total) or isnan(own.total)
        if conversion is CHECKED and is_unsure and hasattr(self, "means_") and not is_new:
            total = nan if self.normalize is None else own.total
            conversion = conversion_of_some(
                sample.rows, sample.columns, found.form, total, self.means_
            )
            as_they_are = conversion is CHECKED
        if conversion is None and not np.isfinite(sample.rows.data).all():
            return UNCHECKED  # Later checks then raise the error that names the cell.
        if conversion is None:
            advice = sample.advice.layer if can_take_counts else ""
            if can_take_counts and found.form == "other":
                advice += sample.advice.counts
            unlike = f"{found}, which can't be converted to what the model was trained on: {own}"
            if str(found) == str(own):
                unlike = f"{found}, as the training cells, but their totals are far from those"
            advice += sample.advice.none
            if found.form == "counts":
                advice = " Normalise and transform the counts as those of the training cells were."
            raise ValueError(f"{sample.name} has {unlike}.{advice}")
        if not as_they_are and found.form != "counts":
            taken = "" if conversion.factor == 1 else f", which is taken for {USUAL_TOTAL:,.0f}"
            warn_user(f"{sample.name} has {found}{taken}. They are converted to {own}.")
        elif conversion is CHECKED and isnan(found.total) and not isnan(own.total):
            warn_user(f"{sample.name} has {found}. They are taken for {own}, as they are.")
        return UNCHECKED if self.normalize is None else conversion

    def _needs_totals(self, sample: Sample, found: Scale) -> bool:
        """Return whether the total of each cell has to be computed from the genes of the model.

        This is so if totals of the model are sums over its genes, and the cells were normalised
        over other genes, too, or to an unknown total while no gene of the model is missing.
        """
        if not self.of_genes_ or found.raw or not has_total(found.form):
            return False
        if isnan(found.total):
            return len(np.unique(sample.columns[sample.columns >= 0])) == len(self.means_)
        sums = sample.sums_of(linear_of(found.form, sample.rows.data))
        sums = sums[sums > 0]
        return len(sums) > 0 and bool(np.median(sums) < _NEARLY_ALL * found.total)

    def _is_estimate(self, sample: Sample, found: Scale, is_new: bool) -> bool:
        """Return whether normalize="counts" applies. Logarithms raise a ValueError if `is_new`."""
        if self.normalize != "counts":
            return False
        is_logarithm = found.form in ("log1p", "log2", "log10")
        if is_new and is_logarithm and (found.raw or not isnan(found.total)):
            raise ValueError(
                f"{sample.name} has {found}. Leave out normalize='counts', which is for counts."
            )
        return is_new or not is_logarithm

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.normalize is not None
        return tags
