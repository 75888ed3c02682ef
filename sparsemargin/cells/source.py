"""A source of rows that reads cells, matches their genes by name and normalises their counts."""

from __future__ import annotations

import time
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from sparsemargin._engine.messages import warn_user
from sparsemargin._shown import first_three
from sparsemargin.cells.genes import CellForm, check_shared, columns_in
from sparsemargin.cells.labels import labels_of
from sparsemargin.genomes.cells import CellNormalizer
from sparsemargin.genomes.conversion import (
    Advice,
    Part,
    Sample,
    columns_of_totals,
    convert_cells,
    spread,
)
from sparsemargin.genomes.scales import CHECKED
from sparsemargin.models.inputs.label_table import LabelTable, number_of
from sparsemargin.models.inputs.labels import label_text
from sparsemargin.readers.cell_files import Cells, warn_of_left_out
from sparsemargin.readers.reading import Reading, run_ahead
from sparsemargin.readers.rows import LabelledRows, Origin, RowSource

# Cells are shuffled in a buffer of `_BUFFERED` values, zeros included: 1,258 cells of 20,000 genes.
# Stored values are not counted, because dense and sparse matrices store different ones, and the
# order of the cells must not depend on that. Usually, 2 to 10 % of the values are not zero.
_BUFFERED = 24 << 20

# The buffer is filled with `_SPANS` spans of adjacent cells or more. A span has at least `_SPAN`
# cells unless they have many genes or are sorted by type, because short spans are read slowly.
_SPANS, _SPAN = 16, 64

# Number of adjacent cells that are read together for the sample from which the scale is recognised.
_SAMPLED_TOGETHER = 32

# If at least this many consecutive cells have one type, a file counts as sorted there, and shorter
# spans are read.
_RUN = 16


@dataclass(frozen=True)
class _CellNumbers(Origin):
    """Numbers of cells, counted through all files. `starts` has the first number of each file."""

    cells: list[Cells]
    starts: np.ndarray
    numbers: np.ndarray

    def location_of(self, row: int) -> str:
        number = int(self.numbers[row])
        i = int(np.searchsorted(self.starts, number, side="right")) - 1
        return f"{self.cells[i].name}, cell {number - int(self.starts[i]) + 1}"


@dataclass
class CellCorpus(RowSource):
    """Normalised cells of files, with genes as columns.

    `codes` has for each file the index of each cell's label in `classes`, or -1 for cells that are
    left out; it is None for cells without labels. `seed` shuffles the cells: spans of cells are
    read in random order, and the cells of many spans are shuffled together. None keeps the order
    of the files. `tables` are files that hold the labels.
    """

    # `learn_cells` holds cells out itself.
    holds_rows_out = False

    cells: list[Cells]
    genes: np.ndarray
    how: CellNormalizer
    cell_form: CellForm
    codes: list[np.ndarray] | None = None
    classes: np.ndarray = field(default_factory=lambda: np.zeros(0))
    seed: int | None = None
    tables: Sequence[str] = ()

    form = "Each cell has a label and values of genes"

    def __post_init__(self) -> None:
        wide = any(each.data.dtype == np.float64 for each in self.cells)
        dtype = np.dtype(np.float64 if wide else np.float32)
        self.reading = Reading(dtype, zero_based=True, n_features=len(self.genes))
        self.columns = [columns_in(each, self.genes, self.cell_form) for each in self.cells]
        self.starts = np.cumsum([0, *(each.n_cells for each in self.cells)])
        self.is_new = not hasattr(self.how, "form_")
        samples = [
            sample_of(each, columns, self.reading.dtype, is_new=self.is_new)
            for each, columns in zip(self.cells, self.columns, strict=True)
        ]
        self.scale = self.how.agreed(samples) if self.is_new else self.how.scale
        values = self.cell_form.values
        self.conversions = [
            self.how.conversion_of(each, self.scale, is_new=self.is_new, values=values)
            for each in samples
        ]
        self.columns = [columns_of_totals(each, self.scale) for each in self.columns]

    def check_genes(self) -> None:
        """Check that the cells have enough genes of a model, and set `weights` (`check_shared`)."""
        self.weights = [
            check_shared(each, columns, self.how, self.cell_form)
            for each, columns in zip(self.cells, self.columns, strict=True)
        ]

    @property
    def names(self) -> str:
        return first_three(each.name for each in self.cells)

    @property
    def files(self) -> list[str]:
        names = [name for each in self.cells if each.source for name in each.source.files]
        return [*names, *self.tables]

    @property
    def size(self) -> int:
        return sum(
            each.nbytes if each.source is None else each.source.size or 0 for each in self.cells
        )

    @property
    def rereadable(self) -> bool:
        return True

    def identity(self) -> dict[str, Any]:
        # Data in memory may change at any time, so a new value is returned in each call.
        files = [
            time.time_ns() if each.source is None else each.source.identity for each in self.cells
        ]
        how = {**self.how.get_params(), "form": str(self.cell_form), "seed": self.seed,
               "scale": str(self.scale)}  # fmt: skip
        genes = zlib.crc32("\n".join(map(str, self.genes)).encode())
        arrays = [*self.columns, *(self.codes or ())]
        hashes = [zlib.crc32(each.tobytes()) for each in arrays]
        return {"sources": files, "genes": genes, "how": how, "columns and labels": hashes}

    def scan(self, table: LabelTable, max_index: int | None = None) -> Generator[LabelledRows]:
        texts = list(map(label_text, self.classes.tolist()))
        ids = table.take(texts, map(number_of, texts))
        n_done, calls = 0, ((None, partial(self._made, group)) for group in self._groups())
        with closing(run_ahead(1, calls)) as results:
            for _, future in results:
                rows = future.result()
                n_done += rows.n_rows
                labels = ids[rows.labels] if self.codes is not None else rows.labels
                consumed = self.size * n_done // max(1, int(self.starts[-1]))
                yield replace(rows, labels=labels, consumed=consumed)
        for each in self.cells:
            if each.source is not None:
                each.source.check_unchanged()

    def _spans(self, i: int) -> np.ndarray:
        """Return the bounds of the spans of file `i`: the first cell of each, and the last end."""
        cells = self.cells[i]
        most = max(1, _BUFFERED // cells.n_genes)
        if self.seed is None:
            return np.append(np.arange(0, cells.n_cells, most), cells.n_cells)
        step = max(1, min(max(_SPAN, most // _SPANS), most // 4))
        cuts = [np.append(np.arange(0, cells.n_cells, step), cells.n_cells)]
        if self.codes is not None:
            # Sorted cells are split into short spans, so that each buffer has cells of all types.
            n_cells = np.bincount(np.concatenate(self.codes) + 1)
            together = np.maximum(1, n_cells * most // int(self.starts[-1]))
            runs = np.flatnonzero(np.diff(self.codes[i], prepend=-2, append=-2))
            for start, stop in pairwise(runs.tolist()):
                part = int(together[self.codes[i][start] + 1])
                if stop - start >= _RUN and part < step:
                    cuts.append(np.append(np.arange(start, stop, part), stop))
        return np.unique(np.concatenate(cuts))

    def _groups(self) -> Iterator[list[tuple[int, int, int]]]:
        """Yield groups of spans (file, first cell, end) that are in memory together."""
        spans = [
            (i, *span) for i in range(len(self.cells)) for span in pairwise(self._spans(i).tolist())
        ]
        if self.codes is not None:  # spans without any label are not read
            spans = [(i, *span) for i, *span in spans if (self.codes[i][slice(*span)] >= 0).any()]
        if self.seed is not None:
            spans = [spans[i] for i in np.random.RandomState(self.seed).permutation(len(spans))]
        group, n_values = list[tuple[int, int, int]](), 0
        for i, start, stop in spans:
            group.append((i, start, stop))
            n_values += (stop - start) * self.cells[i].n_genes
            if n_values >= _BUFFERED:
                yield group
                group, n_values = [], 0
        if group:
            yield group

    def _made(self, spans: list[tuple[int, int, int]]) -> LabelledRows:
        """Return the normalised cells of spans, shuffled if there is a seed."""
        parts, numbers, codes = list[Part](), list[np.ndarray](), list[np.ndarray]()
        for i in dict.fromkeys(i for i, *_ in spans):
            of_file = [span[1:] for span in spans if span[0] == i]
            at = np.concatenate([np.arange(*span) for span in of_file])
            rows = self.cells[i].read(of_file, self.reading.dtype)
            parts.append(Part(rows, self.columns[i], self.conversions[i]))
            numbers.append(self.starts[i] + at)
            codes.append(np.zeros(0, np.int32) if self.codes is None else self.codes[i][at])
        cell_numbers, labels = np.concatenate(numbers), np.concatenate(codes)
        order = np.arange(len(cell_numbers))
        if self.seed is not None:
            order = np.random.RandomState([self.seed, *spans[0]]).permutation(order)
        if self.codes is not None:
            order = order[labels[order] >= 0]
            labels = labels[order]
        numbered = partial(_CellNumbers, self.cells, self.starts)
        advice = advice_of([self.cells[i] for i, *_ in spans], is_new=self.is_new)
        X = convert_cells(parts, len(self.genes), numbered(cell_numbers).location_of, order, advice)
        return LabelledRows(
            X.data, X.indices, X.indptr, labels, lowest=0, highest=len(self.genes) - 1,
            origin=numbered(cell_numbers[order]),
        )  # fmt: skip

    def sample(self) -> LabelledRows:
        """Return the first buffer of shuffled cells, which are from all parts of the files."""
        mixed = replace(self, seed=self.seed or 0)
        return mixed._made(next(mixed._groups(), []))

    def survey(self) -> tuple[csr_matrix, LabelledRows]:
        """Fit the normalizer to a sample. Return the sample as a matrix and as labelled rows."""
        rows = self.sample()
        if self.how.normalize == "log1p" and self.conversions[0] is CHECKED:
            warn_user(
                f"{self.names}: the values are not whole numbers. They are assumed to be "
                f"{self.scale}, and are not changed."
            )
        X = csr_matrix((rows.data, rows.indices, rows.indptr), (rows.n_rows, len(self.genes)))
        self.how.keep_statistics(X, self.scale).feature_names_in_ = self.genes
        return X, rows


def sample_of(cells: Cells, columns: np.ndarray, dtype: np.dtype, *, is_new: bool = True) -> Sample:
    """Read a sample of the cells, from which their scale is recognised. `is_new` is as for
    `advice_of`."""
    rows = cells.read(spread(cells.n_cells, _SAMPLED_TOGETHER), dtype)
    return Sample(cells.name, rows, columns, advice_of([cells], is_new=is_new))


def advice_of(cells: list[Cells], *, is_new: bool) -> Advice:
    """Return advice for cells with invalid values; it names the layers of the files. `is_new` says
    that they are training cells of a new model."""
    layers = list(dict.fromkeys(name for each in cells for name in each.layers))
    return Advice.of_layers(layers, is_new=is_new)


def corpus_for(
    cells: list[Cells], how: CellNormalizer, form: CellForm, label: Any = None,
    argument: str = "label",
) -> CellCorpus:  # fmt: skip
    """Return the cells in their order, with the genes of a fitted normalizer. The genes are checked
    by `check_shared`."""
    warn_of_left_out(cells)
    codes, classes = (None, np.zeros(0)) if label is None else labels_of(cells, label, argument)
    corpus = CellCorpus(cells, how.feature_names_in_, how, form, codes, classes)
    corpus.check_genes()
    return corpus
