"""Samples of cells, and conversion of cells to the scale of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import nan
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from sparsemargin._engine.rows import counts, csr
from sparsemargin._engine.rows.csr import Csr
from sparsemargin._engine.rows.parts import pointers_of
from sparsemargin.genomes.scales import (
    Conversion,
    Scale,
    ValueScale,
    from_log1p,
    linear_of,
    scale_of,
)

# Number of cells from which a scale is recognised.
_SAMPLED_CELLS = 256

# Error messages for invalid cells. Placeholders are fields of `Advice`.
NOT_FINITE = "a value is NaN or infinite. Drop the cell, or give it another."
_FAULTS = {
    csr.NOT_FINITE: NOT_FINITE,
    csr.OUT_OF_RANGE: "it has a value of a gene beyond the last. The matrix is damaged.",
    counts.NEGATIVE: "Negative values in data, as scaled ones have.{0.layer}{0.none}",
    counts.NO_LOGARITHM: "values are not whole, as counts are, and too large for logarithms."
    "{0.counts}{0.none}",
    counts.NOT_WHOLE: "values are not whole, and those of most cells are.{0.counts}{0.none}",
    counts.COUNTS_AMONG_LOGARITHMS: "values are whole, as counts are, and those of most cells are "
    "not.{0.layer}{0.none}",
    csr.NOT_CANONICAL: "a gene has two values. Call sum_duplicates() of the matrix.",
}  # fmt: skip


class Advice(NamedTuple):
    """Advice in error messages: sentences, each with a leading space."""

    layer: str = " Pass the counts."
    counts: str = " normalize='counts' takes all as counts, if they are estimates of these."
    none: str = " normalize=None takes values as they are."

    @classmethod
    def of_layers(cls, layers: Sequence[str], *, is_new: bool) -> Advice:
        """Return the advice for cells with these layers; `is_new` is as for `conversion_of`."""
        own = cls() if is_new else cls(none=f"{cls().none[:-1]}, if the training cells are alike.")
        likely = [each for each in layers if "count" in each or "raw" in each] or list(layers)
        if not likely:
            return own
        named = " or ".join(f"layer={each!r}" for each in likely[:3])
        return own._replace(layer=f" Pass the counts, if they are in another matrix: {named}.")


ADVICE = Advice()


@dataclass(frozen=True)
class Sample:
    """A sample of cells on one scale. `name` is their source, for error messages."""

    name: str
    rows: Csr
    columns: np.ndarray
    advice: Advice = ADVICE

    @cached_property
    def scale(self) -> Scale:
        """The scale of the values, recognised without a model."""
        return scale_of(self.rows, self.columns)

    @cached_property
    def totals(self) -> np.ndarray:
        """The sum of the counts of the model's genes in each cell, shape (n_cells,)."""
        return self.sums_of(self.rows.data)

    def sums_of(self, data: np.ndarray) -> np.ndarray:
        """The sum of values of the model's genes in each cell, shape (n_cells,)."""
        rows, is_known = self.rows, self.columns >= 0
        X = csr_matrix((data, rows.indices, rows.indptr), (rows.n_rows, len(is_known)))
        return X @ is_known.astype(np.float64)


def spread(n_cells: int, at_once: int) -> list[tuple[int, int]]:
    """Return starts and ends of evenly spaced blocks of cells, to recognise their scale.

    Each block has `at_once` cells. The last one may be shorter.
    """
    n_parts = max(1, min(_SAMPLED_CELLS, n_cells) // at_once)
    starts = np.unique(np.linspace(0, max(0, n_cells - at_once), n_parts).astype(np.int64))
    return [(start, min(start + at_once, n_cells)) for start in starts.tolist()]


def columns_of_totals(columns: np.ndarray, own: Scale) -> np.ndarray:
    """Return the new columns of genes (as for `find_scales`) for a model on the scale `own`.

    If the totals of the model are sums over its genes, other genes do not contribute to totals.
    """
    if not own.of_genes:
        return columns
    return np.where(columns < 0, counts.NO_GENE, columns).astype(np.int32)


class Part(NamedTuple):
    """Some cells, the new column of each gene (as for `find_scales`), and the conversion."""

    rows: Csr
    columns: np.ndarray
    conversion: Conversion


def convert_cells(
    parts: Sequence[Part], n_columns: int, location_of: Callable[[int], str],
    order: np.ndarray | None = None, advice: Advice = ADVICE,
) -> csr_matrix:  # fmt: skip
    """Return the cells of all parts on the scale of a model.

    Rows are numbered consecutively over all parts. `order` contains the numbers of the rows to
    return; None returns all. `location_of` gives the source of a row for error messages.
    """

    def refused(row: int, status: int) -> ValueError:
        return ValueError(f"{location_of(row)}: {_FAULTS[status].format(advice)}")

    first, found, made_of = 0, list[tuple[np.ndarray, np.ndarray]](), list[Part]()
    for each in parts:
        try:
            prepared, factors = _prepared(each)
        except csr.BadRow as bad:
            raise refused(first + bad.row, bad.status) from None
        found.append(factors)
        made_of.append(prepared)
        first += each.rows.n_rows
    lengths, scales = map(np.concatenate, zip(*found, strict=True))
    order = np.arange(first) if order is None else order
    indptr, starts = pointers_of(lengths[order], np.int64), np.full(first, -1)
    starts[order] = indptr[:-1]
    data = np.empty(indptr[-1], parts[0].rows.data.dtype)
    indices, rising, first = np.empty(indptr[-1], np.int32), True, 0
    for rows, columns, _ in made_of:
        some = slice(first, first + rows.n_rows)
        rising &= counts.write_rows(
            *rows.arrays, columns, scales[some], starts[some], data, indices
        )
        first = some.stop
    forms = (conversion.form for *_, conversion in made_of)
    form: ValueScale = next((form for form in forms if form != "log1p"), "log1p")
    if form != "log1p":
        entries = np.repeat(~np.isnan(scales[order]), lengths[order])
        data[entries] = from_log1p(form, data[entries].astype(np.float64))
    made = csr_matrix((data, indices, indptr), shape=(len(order), n_columns))
    if not rising:
        made.sort_indices()
        status, row = csr.first_bad_row(Csr(made.data, made.indices, made.indptr, n_columns), False)
        if status != csr.OK:
            raise refused(int(order[row]), status)
    return made


def _prepared(part: Part) -> tuple[Part, tuple[np.ndarray, np.ndarray]]:
    """Return the part after undoing its logarithm, if required, and the result of `find_scales`."""
    rows, columns, conversion = part
    if conversion.factor != 1:
        counts.find_scales(*rows.arrays, columns, nan, False)
        data = np.log1p(linear_of(conversion.form, rows.data) * conversion.factor)
        data = from_log1p(conversion.form, data).astype(rows.data.dtype)
        part = part._replace(rows=Csr(data, rows.indices, rows.indptr, rows.n_features))
    elif conversion.inverse in ("log1p", "log2", "log10"):
        counts.find_scales(
            *rows.arrays, columns, nan, False
        )  # checks that the logarithms are valid
        data = linear_of(conversion.inverse, rows.data).astype(rows.data.dtype)
        part = part._replace(rows=Csr(data, rows.indices, rows.indptr, rows.n_features))
    return part, counts.find_scales(*part.rows.arrays, columns, conversion.target, conversion.whole)
