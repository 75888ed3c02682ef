"""What is asked of shards of cells before training. Imported only for cells, see `cell_rows`."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import chain
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, vstack

from sparsemargin._engine.messages import warn_user
from sparsemargin._engine.rows.counts import LEFT_OUT, NO_GENE
from sparsemargin.cells.genes import CellForm, genes_of
from sparsemargin.cells.labels import labels_of
from sparsemargin.cells.learn import keep_outputs
from sparsemargin.cells.source import sample_of
from sparsemargin.distributed.backends import Backend, in_order
from sparsemargin.distributed.cell_rows import CellRows
from sparsemargin.distributed.shards import FileShard, Shard
from sparsemargin.genomes.cells import CellNormalizer
from sparsemargin.models import Learner
from sparsemargin.models.inputs.labels import label_text

#: Cells of all shards, and their types.
Sample = tuple[csr_matrix, list[str]]


def prepare(maker: CellRows, backend: Backend, options: Any) -> tuple[Any, Sample]:
    """Collect the genes of all shards, and fit the normalizer to some of their cells. Return the
    options with the classes, and these cells."""
    step = maker.step
    if maker.columns is None:
        of_shards = in_order(backend.each(_genes_and_classes, maker.form, maker.label))
        files = [each for genes, _ in of_shards for each in genes]
        step.scale = step.agreed([each.scale for each in files])
        step.feature_names_in_ = genes_of(files, maker.wanted, maker.form)
        backend.turn(_with_step, step)
        if options.positive is None:
            options = replace(options, classes=_all_of([classes for _, classes in of_shards]))
    sampled = in_order(backend.each(_some_cells, len(backend.shards)))
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
    shard: FileShard, form: CellForm, label: Any
) -> tuple[list[Any], np.ndarray]:
    """The genes and the scale of each file of a shard, and the classes of the shard."""
    with form.open(shard.paths) as cells:
        genes = list[Any]()
        for each in cells:
            is_gene = np.full(len(each.genes), True) if each.is_gene is None else each.is_gene
            columns = np.where(is_gene, LEFT_OUT, NO_GENE).astype(np.int32)
            scale = sample_of(each, columns, np.dtype(np.float64)).scale
            genes.append(
                SimpleNamespace(name=each.name, genes=each.genes, is_gene=each.is_gene, scale=scale)
            )
        return genes, labels_of(cells, label)[1]


def _with_step(shard: FileShard, step: CellNormalizer) -> FileShard:
    return replace(shard, making=replace(shard.making, step=step))  # type: ignore[type-var]


def _all_of(classes: list[np.ndarray]) -> np.ndarray:
    """The classes of all shards, as numbers if they are numbers in all shards."""
    if any(each.dtype.kind != "f" for each in classes):
        classes = [np.array([*map(label_text, each.tolist())]) for each in classes]
    return np.unique(np.concatenate(classes))


def _some_cells(shard: Shard, n_shards: int) -> tuple[csr_matrix, list[str], list[str]]:
    """Some normalized cells, their types, and warning messages."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        X, types = shard.some_cells(n_shards)
    return X, list(map(label_text, types)), [str(each.message) for each in caught]
