"""Scales of the values of cells: counts, normalised counts and their logarithms.

`scale_of` recognises the scale of some cells. `conversion_between` returns the exact conversion
from one scale to another, if there is one.
"""

from __future__ import annotations

from math import e, isnan, log, nan
from typing import Literal, NamedTuple

import numpy as np

from sparsemargin._engine.rows.counts import NO_GENE
from sparsemargin._engine.rows.csr import Csr

#: Kinds of values. "linear": counts divided by a factor for each cell. The logarithms are those of
#: 1 + x, where x are linear values. "other": none of these, such as square roots.
ValueScale = Literal["counts", "linear", "log1p", "log2", "log10", "other", "negative"]

# Bases of the logarithms, the most common one first.
_BASES: dict[ValueScale, float] = {"log1p": e, "log2": 2.0, "log10": 10.0}

# Largest relative difference of totals that count as equal. float16 rounding errors are smaller.
_SAME_TOTAL = 0.01

# Smallest number of cells from which equal totals can be recognised.
_FEW_CELLS = 3

# Smallest number of values from which it can be recognised that they are multiples of one value.
_FEW_VALUES = 20

# Values of a cell are divided by its smallest one. They are counts times a factor if their distance
# from whole numbers is at most this.
_NEAR_WHOLE = 0.02

# Largest value that is compared with whole numbers. Larger ones have float32 rounding errors.
_MOST_COUNT = 100.0

# Largest factor between the totals of new cells and of training cells, in either direction, if the
# total to which the new cells were normalised is unknown.
_LARGEST_RATIO = 3.0

# Total that is usual in scanpy's tutorials. Cells with some genes only are assumed to have this
# total if it agrees best. Larger medians of training cells are not used by default: on generated
# cells with a median of 29,000 counts, macro F1 is 3.2 +- 0.8 points lower with the median.
USUAL_TOTAL = 1e4

# Largest exponent that is accepted as a logarithm. float64 overflows at e**709.
_LARGEST_EXPONENT = 300.0


class Scale(NamedTuple):
    """The form of values, and the total of each cell before logarithms were taken.

    `total` is NaN if cells differ or the form has no total. `raw` means that the values before
    logarithms were taken are counts that were not normalised. `of_genes` means that the total is
    the sum over the genes of the model. Otherwise it is the sum over all genes of a file.
    """

    form: ValueScale
    total: float = nan
    raw: bool = False
    of_genes: bool = False

    def __str__(self) -> str:
        if self.form == "counts":
            return "counts"
        if self.form == "negative":
            return "scaled values, some of which are negative"
        if self.form == "other":
            return "values that are neither counts nor logarithms of normalised counts"
        total = f"{self.total:,.0f}" if self.total >= 1000 else f"{self.total:.4g}"
        of = f" normalised to a total of {total}"
        if isnan(self.total):
            of = "" if self.raw else " normalised to a total that is not known"
        logarithm = {"linear": "", "log1p": "log1p of "}.get(self.form, f"{self.form}(1 + x) of ")
        return f"{logarithm}counts{of}"


class Conversion(NamedTuple):
    """Conversion of the values of cells to the scale of a model.

    `target` and `whole` are arguments of `find_scales`. `inverse` is the form whose logarithm is
    undone first. `form` is the form of the result if `target` is above 0. If `factor` is not 1,
    values without their logarithm are multiplied by it, and the form is not changed.
    """

    target: float
    whole: bool = False
    inverse: ValueScale | None = None
    form: ValueScale = "log1p"
    factor: float = 1.0


#: Conversions that do not change values: without a check, and with a check for valid logarithms.
UNCHECKED, CHECKED = Conversion(0.0), Conversion(nan)


def has_total(form: str) -> bool:
    """Return whether values of this form may be normalised to a total."""
    return form == "linear" or form in _BASES


def linear_of(form: ValueScale, data: np.ndarray) -> np.ndarray:
    """Undo the logarithm of values, as an array of float64."""
    data = data.astype(np.float64)
    return np.expm1(data * log(_BASES[form])) if form in _BASES else data


def from_log1p(form: ValueScale, data: np.ndarray) -> np.ndarray:
    """Convert log1p values to another form."""
    return np.expm1(data) if form == "linear" else data / log(_BASES[form])


def scale_of(rows: Csr, columns: np.ndarray, near: Scale | None = None) -> Scale:
    """Recognise the scale of some cells. Values of columns with `NO_GENE` do not count.

    `near`, the scale of the model, is preferred if several scales are possible. It is also the
    result if there are no values; without it, the result is then "counts".
    """
    data, cells = _values_of(rows, columns)
    bad = np.unique(cells[~np.isfinite(data)])
    keep = ~np.isin(cells, bad)
    data, cells = data[keep], cells[keep]
    if not len(data):
        return near or Scale("counts")
    _, cells = np.unique(cells, return_inverse=True)
    n_cells = int(cells[-1]) + 1
    if np.count_nonzero(np.bincount(cells[data < 0], minlength=n_cells)) * 2 > n_cells:
        return Scale("negative")
    has_fractions = np.bincount(cells, weights=data != np.rint(data), minlength=n_cells) > 0
    if np.count_nonzero(has_fractions) * 2 <= n_cells:
        return Scale("counts")
    # Cells that have only whole values do not show which logarithm was taken.
    keep = has_fractions[cells] & (data >= 0)
    data, cells = data[keep], np.unique(cells[keep], return_inverse=True)[1]
    every: list[ValueScale] = ["linear", *_BASES]
    most = _LARGEST_EXPONENT / data.max()
    forms = [form for form in every if log(_BASES.get(form, 1.0)) < most]
    return _by_totals(data, cells, forms, near) or _by_counts(data, cells, forms, near)


def _values_of(rows: Csr, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the nonzero values of genes, and the cell number of each."""
    data = rows.data.astype(np.float64)
    cells = np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr))
    keep = (data != 0) & (columns[np.clip(rows.indices, 0, len(columns) - 1)] != NO_GENE)
    return data[keep], cells[keep]


def _by_totals(
    data: np.ndarray, cells: np.ndarray, forms: list[ValueScale], near: Scale | None
) -> Scale | None:
    """Return the scale for which all cells have equal totals, or None."""
    found = list[tuple[float, Scale]]()
    for form in forms:
        totals = np.bincount(cells, weights=linear_of(form, data))
        total = float(np.median(totals))
        spread = float(np.quantile(np.abs(totals / total - 1), 0.9))
        if spread > _SAME_TOTAL:
            continue
        if near is not None and near.form == form and same_total(total, near.total):
            return near
        power = 10.0 ** round(np.log10(total))
        if len(totals) >= _FEW_CELLS or same_total(total, power):
            found.append((max(spread, 1e-6), Scale(form, total)))
    if not found:
        return None
    scale = min(found, key=lambda pair: pair[0])[1]
    power = 10.0 ** round(np.log10(scale.total))
    # A total is rounded to a power of 10 if rounding errors of float32 explain the difference.
    return Scale(scale.form, power if abs(scale.total / power - 1) < 1e-4 else scale.total)


def _by_counts(
    data: np.ndarray, cells: np.ndarray, forms: list[ValueScale], near: Scale | None
) -> Scale:
    """Return the scale for which values are multiples of the smallest one of their cell.

    If there are too few values, return the form of `near` with an unknown total, or "other".
    """
    found = list[tuple[float, Scale]]()
    for form in forms:
        linear = linear_of(form, data)
        least = np.full(int(cells[-1]) + 1, np.inf)
        np.minimum.at(least, cells, linear)
        counts = linear / least[cells]
        counts = counts[(counts > 1.5) & (counts < _MOST_COUNT)]
        if len(counts) >= _FEW_VALUES:
            distance = np.abs(counts - np.rint(counts))
            raw = bool(np.abs(least - 1).max() < _NEAR_WHOLE)
            found.append((float(np.quantile(distance, 0.75)), Scale(form, raw=raw)))
    if not found:
        return Scale("other") if near is None else near._replace(total=nan)
    distance, scale = min(found, key=lambda pair: pair[0])
    # Random numbers would have a mean distance of 1/4 from whole numbers.
    return scale if distance <= _NEAR_WHOLE else Scale("other")


def same_total(first: float, second: float) -> bool:
    """Return whether two totals are equal up to rounding errors."""
    return abs(first / second - 1) <= _SAME_TOTAL


def conversion_of_some(
    rows: Csr, columns: np.ndarray, form: ValueScale, own_total: float, means: np.ndarray
) -> Conversion | None:
    """Return the conversion of normalised values whose total is unknown because genes are missing.

    `means` are the means of the genes over the training cells, before logarithms were taken. The
    total is assumed to be that of the training cells, `own_total`, or `USUAL_TOTAL` if this agrees
    better with the means of the shared genes. None if the totals of the shared genes disagree.
    """
    expected = float(means[columns[columns >= 0]].sum())
    keep = columns[rows.indices] >= 0
    total = float(linear_of(form, rows.data[keep]).sum()) / max(1, rows.n_rows)
    if rows.n_rows < _FEW_CELLS or expected <= 0 or total <= 0:
        return CHECKED
    factors = [1.0] if isnan(own_total) else [1.0, own_total / USUAL_TOTAL]
    distances = [abs(log(total * factor / expected)) for factor in factors]
    if min(distances) > log(_LARGEST_RATIO):
        return None
    factor = factors[distances.index(min(distances))]
    return CHECKED if factor == 1 else Conversion(nan, inverse=form, form=form, factor=factor)


def conversion_between(found: Scale, own: Scale) -> Conversion | None:
    """Return the exact conversion from the scale `found` to the scale `own` of a model.

    None if there is no exact conversion. If both have the same form and one of the totals is
    unknown, values are not changed; the caller then calls `conversion_of_some`.
    """
    if found.form == own.form and found.raw == own.raw:
        if found.form in ("counts", "negative"):
            return UNCHECKED
        if not abs(found.total / own.total - 1) > _SAME_TOTAL:  # also true for NaN
            return CHECKED
    if isnan(own.total):
        return None
    if found.form == "counts":
        return Conversion(own.total, whole=True, form=own.form)
    if isnan(found.total) and not found.raw:
        return None
    return Conversion(own.total, inverse=found.form, form=own.form)
