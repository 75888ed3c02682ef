"""The conversion of shards of cells to rows. It imports scikit-learn, so it is imported only for
cells."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sparsemargin.cells.genes import CellForm, columns_in, genes_of
from sparsemargin.cells.labels import labels_of
from sparsemargin.cells.learn import mixing_seed
from sparsemargin.cells.source import CellCorpus
from sparsemargin.files.sources import Source
from sparsemargin.genomes.cells import CellNormalizer, counts_of
from sparsemargin.genomes.scales import scale_of
from sparsemargin.readers.cell_files import cells_of
from sparsemargin.readers.label_tables import named_table

# Cells of a Dask array by which the scale of all is recognised.
_FIRST_CELLS = 512


@dataclass
class CellRows:
    """The conversion of cells to rows: the labels, the format of files, the normalizer, and the
    selected genes, as in `fit_anndata`."""

    label: Any
    form: CellForm
    step: CellNormalizer
    wanted: Any = None
    seed: int | None = 0  # seed for shuffling the cells of a file
    columns: np.ndarray | None = None  # columns of the genes, for shards of matrices

    name: ClassVar = "normalizer"

    def __post_init__(self) -> None:
        # A relative path is meaningless in the folders of workers.
        if named_table(self.label) is not None:
            self.label = os.path.abspath(self.label)

    @contextmanager
    def opened(self, sources: list[Source], multilabel: bool) -> Iterator[CellCorpus]:
        with self.form.open([source.name for source in sources]) as cells:
            genes = self.step.feature_names_in_
            of = labels_of(cells, self.label)
            yield CellCorpus(cells, genes, self.step, self.form, *of, self.seed)

    def rows(self, X: Any) -> Any:
        assert self.columns is not None
        return self.step.normalised(
            counts_of(X), self.columns, len(self.step.feature_names_in_), "The Dask array"
        )[0]

    def cells_and_types(self, adata: Any) -> tuple[Any, np.ndarray]:
        """The Dask array of an AnnData, and the types of its cells."""
        cells = cells_of(adata, self.form.layer, self.form.var)
        (codes,), classes = labels_of([cells], self.label)
        if (codes < 0).any():
            raise ValueError("Some of the cells have no label. Leave them out of the AnnData.")
        self.step.feature_names_in_ = genes = genes_of([cells], self.wanted, self.form)
        self.columns = columns_in(cells, genes, self.form)
        first = counts_of(cells.data[:_FIRST_CELLS].compute())
        self.step.scale = self.step.agreed([scale_of(first, self.columns)])
        return cells.data, classes[codes]


def cell_rows(label: Any, params: dict[str, Any]) -> CellRows:
    """The conversion of cells with its parameters, which are removed from `params`."""

    def settings(*names: str) -> dict[str, Any]:
        return {name: params.pop(name) for name in names if name in params}

    if "batch" in params:
        raise ValueError("batch can't be had over shards. Leave it out, or call fit_anndata.")
    form, step = settings("layer", "var", "match"), settings("normalize", "target_sum")
    wanted = params.pop("genes", None)
    seed = mixing_seed(params)
    normalizer = CellNormalizer(**step)
    # The scale of the first shard is not compared with those of others where none is to change.
    values: Any = "auto" if normalizer.normalize is not None else None
    return CellRows(label, CellForm(**form, values=values), normalizer, wanted, seed)
