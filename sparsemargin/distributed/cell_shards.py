"""Shards of cells: their conversion to rows on a worker, and the facts collected before training.

This module imports scikit-learn. Other modules import it inside functions, only for cells.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_matrix, vstack

from sparsemargin._engine.messages import collected_warnings, warn_user
from sparsemargin.cells.genes import CellForm, columns_in, genes_of
from sparsemargin.cells.labels import check_kinds, labels_of, warn_of_unassigned
from sparsemargin.cells.learn import keep_outputs, mixing_seed
from sparsemargin.cells.source import CellCorpus, sample_of
from sparsemargin.distributed.backends import Backend
from sparsemargin.distributed.shards import FileShard, Shard
from sparsemargin.files.sources import Source, open_sources
from sparsemargin.genomes.cells import CellNormalizer, counts_of
from sparsemargin.genomes.conversion import Sample as CellSample
from sparsemargin.models import Learner
from sparsemargin.models.inputs.labels import label_text
from sparsemargin.readers.cell_files import NoCellsError, cells_of
from sparsemargin.readers.label_tables import named_table

# Number of first cells that decide whether a Dask array has counts or logarithms.
_FIRST_CELLS = 512

#: Some cells of all shards, and their types.
Sample = tuple[csr_matrix, list[str]]


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
    of_truths: bool = False  # whether the labels of files are truth values, encoded as texts

    on_one_machine: ClassVar = "fit_anndata"

    def __post_init__(self) -> None:
        # A relative path would refer to the current folder of a worker.
        if named_table(self.label) is not None:
            self.label = os.path.abspath(self.label)

    @contextmanager
    def opened(self, sources: list[Source], multilabel: bool) -> Iterator[CellCorpus]:
        with self.form.open(sources) as cells:
            genes = self.step.feature_names_in_
            of = labels_of(cells, self.label)
            yield CellCorpus(cells, genes, self.step, self.form, *of, self.seed)

    def rows(self, X: Any) -> Any:
        assert self.columns is not None
        return self.step.normalised(
            counts_of(X), self.columns, len(self.step.feature_names_in_), "The Dask array"
        )[0]

    def estimator(self, classifier: Any) -> Any:
        # Imported here because it takes 0.2 s, and workers do not need it.
        from sparsemargin.tasks.cell_classifier import CellClassifier

        form = self.form
        empty = CellClassifier(self.label, layer=form.layer, var=form.var, match=form.match)
        return empty.keep(self.step, classifier)

    def cells_and_types(self, adata: Any) -> tuple[Any, np.ndarray]:
        """The Dask array of an AnnData, and the types of its cells."""
        cells = cells_of(adata, self.form.layer, self.form.var)
        (codes,), classes = labels_of([cells], self.label)
        if (codes < 0).any():
            raise ValueError("Some of the cells have no label. Leave them out of the AnnData.")
        self.step.feature_names_in_ = genes = genes_of([cells], self.wanted, self.form)
        self.columns = columns_in(cells, genes, self.form)
        first = counts_of(cells.data[:_FIRST_CELLS].compute())
        self.step.scale = self.step.agreed([CellSample("The Dask array", first, self.columns)])
        return cells.data, classes[codes]


def cell_rows(label: Any, params: dict[str, Any]) -> CellRows:
    """Return the conversion of cells to rows. Its parameters are removed from `params`."""

    def settings(*names: str) -> dict[str, Any]:
        return {name: params.pop(name) for name in names if name in params}

    if "batch" in params:
        raise ValueError("batch can't be had over shards. Leave it out, or call fit_anndata.")
    form, step = settings("layer", "var", "match"), settings("normalize", "target_sum")
    wanted = params.pop("genes", None)
    seed = mixing_seed(params)
    normalizer = CellNormalizer(**step)
    # With normalize=None, no values are changed, so their scales are not compared.
    values: Any = "auto" if normalizer.normalize is not None else None
    return CellRows(label, CellForm(**form, values=values), normalizer, wanted, seed)


def prepare(maker: CellRows, backend: Backend, options: Any) -> tuple[Any, Sample]:
    """Collect the genes of all shards, and fit the normalizer to some of their cells. Return the
    options with the classes, and these cells."""
    step = maker.step
    found = backend.each(_genes_and_classes, maker.form, maker.label)
    backend.keep_rows([each is not None for each in found])
    if maker.columns is None:
        of_shards = [each for each in found if each is not None]
        files = [each for genes, _ in of_shards for each in genes]
        step.feature_names_in_ = genes = genes_of(files, maker.wanted, maker.form)
        step.scale = step.agreed([*chain(*backend.each(_scales, maker.form, genes))])
        given = dict.fromkeys(range(len(backend.shards)), (backend.share(step),))
        backend.shards = [*backend.over_shards(_with_step, given).values()]
        of_files = [classes for _, classes in of_shards]
        names = [genes[0].name for genes, _ in of_shards]
        check_kinds(maker.label, names, [classes.tolist() for classes in of_files])
        classes = _all_of(of_files)
        warn_of_unassigned(classes)
        if options.positive is None:
            options = replace(options, classes=classes)
            maker.of_truths = all(each.dtype.kind == "b" for each in of_files)
    sampled = backend.each(_some_cells, len(backend.shards))
    for message in dict.fromkeys(chain.from_iterable(messages for *_, messages in sampled)):
        warn_user(message)
    X = vstack([cells for cells, *_ in sampled], format="csr")
    step.keep_statistics(X, step.scale)
    return options, (X, list(chain.from_iterable(types for _, types, _ in sampled)))


def calibrate(learner: Learner, sample: Sample, seed: int | None) -> None:
    """Fit the probabilities to held-out outputs of the cells, as `fit_anndata` does."""
    X, types = sample
    names = list(map(label_text, learner.fitted.classes.tolist()))
    codes = np.array([*map(names.index, types)])
    # Shuffled because the shards may be sorted by type.
    order = np.random.RandomState(seed or 0).permutation(len(codes))
    keep_outputs(learner, X[order], codes[order])


def _genes_and_classes(
    shard: Shard, form: CellForm, label: Any
) -> tuple[list[Any], np.ndarray] | None:
    """The genes of each file of a shard, and the classes of the shard; of a block neither is read.
    None if the shard has no cells. An empty file among others of a shard raises an error."""
    if not isinstance(shard, FileShard):
        return ([], np.zeros(0)) if shard.rows.n_rows else None
    sources = open_sources(shard.paths)
    try:
        with form.open(shard.paths) as cells:
            genes = [
                SimpleNamespace(
                    name=each.name, genes=each.genes, is_gene=each.is_gene,
                    var=SimpleNamespace(texts=dict),  # no columns, because they are large messages
                )
                for each in cells
            ]  # fmt: skip
            return genes, labels_of(cells, label)[1]
    except NoCellsError:
        if len(sources) > 1:
            raise
        return None


def _scales(shard: FileShard, form: CellForm, genes: np.ndarray) -> list[Any]:
    """The scale of each file of a shard, and the totals of some cells over the genes of a model."""
    with form.open(shard.paths) as cells:
        samples = [
            sample_of(each, columns_in(each, genes, form), np.dtype(np.float64)) for each in cells
        ]
        return [SimpleNamespace(scale=each.scale, totals=each.totals) for each in samples]


def _with_step(shard: FileShard, step: CellNormalizer) -> FileShard:
    return replace(shard, row_maker=replace(shard.row_maker, step=step))  # type: ignore[type-var]


def _all_of(classes: list[np.ndarray]) -> np.ndarray:
    """The classes of all shards, as numbers if they are numbers in all shards."""
    if any(each.dtype.kind in "bU" for each in classes):
        classes = [np.array([*map(label_text, each.tolist())]) for each in classes]
    return np.unique(np.concatenate(classes))


def _some_cells(shard: Shard, n_shards: int) -> tuple[csr_matrix, list[str], list[str]]:
    """Some normalized cells, their types, and warning messages."""
    with collected_warnings() as caught:
        X, types = shard.some_cells(n_shards)
    return X, list(map(label_text, types)), [message for message, _ in caught]
