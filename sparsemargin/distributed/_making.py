"""The step that makes rows of shards of texts or cells, before the classifier."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import chain
from operator import itemgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sparsemargin._engine.messages import warn_user
from sparsemargin._engine.rows.counts import LEFT_OUT, NO_GENE
from sparsemargin.files.sources import Source
from sparsemargin.models import Learner
from sparsemargin.models.inputs.labels import label_text
from sparsemargin.readers.label_tables import named_table
from sparsemargin.readers.text_forms import DocumentForm, form_elsewhere
from sparsemargin.readers.texts import DocumentCorpus
from sparsemargin.streaming.learn_texts import HASHED_BITS, hashed_pairs

if TYPE_CHECKING:
    from sparsemargin.cells.genes import CellForm
    from sparsemargin.cells.source import CellCorpus
    from sparsemargin.distributed._backends import Backend
    from sparsemargin.distributed._rounds import ShardOptions
    from sparsemargin.distributed._shards import FileShard, Shard
    from sparsemargin.genomes.cells import CellNormalizer


# Cells of a Dask array by which the scale of all is recognised.
_FIRST_CELLS = 512


@dataclass(frozen=True)
class Texts:
    """The conversion of texts to rows: the format of files and tables, and the vectorizer."""

    how: DocumentForm
    step: Any

    name: ClassVar = "vectorizer"

    @contextmanager
    def opened(self, sources: list[Source], multilabel: bool) -> Iterator[DocumentCorpus]:
        """Open files as a corpus of rows."""
        step, how = self.step, replace(self.how, multilabel=multilabel)
        n_features = getattr(step, "n_features", None) or len(step.get_feature_names_out())
        yield DocumentCorpus(sources, how, step, n_features, 1)

    def rows(self, texts: Any) -> Any:
        """The rows of texts in memory."""
        return self.step.transform(texts)

    def meet(self, backend: Backend, options: ShardOptions) -> ShardOptions:
        """Collect what must be known from all shards before training; return updated options."""
        return options

    @property
    def asks(self) -> bool:
        """True if the vectorizer must remember terms of the first texts."""
        return hasattr(self.step, "remember_terms") and not hasattr(self.step, "terms_")

    def settle(self, options: ShardOptions, n_rows: int) -> ShardOptions:
        """Return options in which settings that depend on the rows are resolved."""
        return options

    def finish(self, learner: Learner) -> bool:
        """Complete a trained learner; return whether it has changed."""
        return False


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
    # Cells of all shards and their types; None if these are not all cells.
    sample: tuple[Any, list[str]] | None = None

    name: ClassVar = "normalizer"
    asks: ClassVar = False

    def __post_init__(self) -> None:
        # A relative path is meaningless in the folders of workers.
        if named_table(self.label) is not None:
            self.label = os.path.abspath(self.label)

    @contextmanager
    def opened(self, sources: list[Source], multilabel: bool) -> Iterator[CellCorpus]:
        """See `Texts.opened`."""
        from sparsemargin.cells.source import CellCorpus, labels_of

        with self.form.open([source.name for source in sources]) as cells:
            genes = self.step.feature_names_in_
            of = labels_of(cells, self.label)
            yield CellCorpus(cells, genes, self.step, self.form, *of, self.seed)

    def rows(self, counts: Any) -> Any:
        """See `Texts.rows`."""
        from sparsemargin.genomes.cells import counts_of

        assert self.columns is not None
        return self.step.normalised(
            counts_of(counts), self.columns, len(self.step.feature_names_in_), "The Dask array"
        )[0]

    def parts_of(self, adata: Any) -> tuple[Any, np.ndarray]:
        """The Dask array of an AnnData, and the types of its cells."""
        from sparsemargin.cells.genes import columns_in, genes_of
        from sparsemargin.cells.source import labels_of
        from sparsemargin.genomes.cells import counts_of
        from sparsemargin.genomes.scales import scale_of
        from sparsemargin.readers.cell_files import cells_of

        cells = cells_of(adata, self.form.layer, self.form.var)
        (codes,), classes = labels_of([cells], self.label)
        if (codes < 0).any():
            raise ValueError("Some of the cells have no label. Leave them out of the AnnData.")
        self.step.feature_names_in_ = genes = genes_of([cells], self.wanted, self.form)
        self.columns = columns_in(cells, genes, self.form)
        first = counts_of(cells.data[:_FIRST_CELLS].compute())
        self.step.scale = self.step.agreed([scale_of(first, self.columns)])
        return cells.data, classes[codes]

    def meet(self, backend: Backend, options: ShardOptions) -> ShardOptions:
        """Collect the genes of all shards, fit the normalizer to some of their cells, and return
        the options with the classes."""
        from scipy.sparse import vstack

        from sparsemargin.cells.genes import genes_of

        if self.columns is None:
            met = in_order(backend.each(_met, self.form, self.label))
            named = [each for some, _ in met for each in some]
            self.step.scale = self.step.agreed([each.scale for each in named])
            self.step.feature_names_in_ = genes_of(named, self.wanted, self.form)
            backend.turn(_with_step, self.step)
            if options.positive is None:
                options = replace(options, classes=_all_of([classes for _, classes in met]))
        found = in_order(backend.each(_sampled, len(backend.shards)))
        for message in dict.fromkeys(chain.from_iterable(told for *_, told in found)):
            warn_user(message)
        X = vstack([some for some, *_ in found], format="csr")
        self.step.keep_statistics(X, self.step.scale)
        self.sample = X, list(chain.from_iterable(types for _, types, _ in found))
        return options

    def settle(self, options: ShardOptions, n_rows: int) -> ShardOptions:
        """See `Texts.settle`."""
        from sparsemargin.cells.learn import with_cell_defaults

        if options.positive is not None or self.sample is None or len(self.sample[1]) < n_rows:
            self.sample = None
        return with_cell_defaults(options, n_rows, has_max_iter=options.max_iter != "auto")

    def finish(self, learner: Learner) -> bool:
        """Calibrate probabilities for few cells as in `fit_anndata`; return whether that was
        done."""
        from sparsemargin.cells.learn import keep_outputs

        if self.sample is None:
            return False
        X, types = self.sample
        names = list(map(label_text, learner.fitted.classes.tolist()))
        codes = np.array([*map(names.index, types)])
        # Shuffled because the shards may be sorted by type.
        order = np.random.RandomState(self.seed or 0).permutation(len(codes))
        keep_outputs(learner, X[order], codes[order])
        return True


def _met(shard: FileShard, form: CellForm, label: Any) -> tuple[list[Any], np.ndarray]:
    """The genes and the scale of each file of a shard, and the classes of the shard."""
    from sparsemargin.cells.source import labels_of, sample_of

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


def _sampled(shard: Shard, n_shards: int) -> tuple[Any, list[str], list[str]]:
    """Some normalized cells, their types, and warning messages."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        X, types = shard.some_cells(n_shards)
    return X, list(map(label_text, types)), [str(each.message) for each in told]


def in_order(found: Iterable[tuple[int, Any]]) -> list[Any]:
    return [each for _, each in sorted(found, key=itemgetter(0))]


Making = Texts | CellRows


def making_of(
    shards: Any, vectorizer: Any, how: DocumentForm, params: dict[str, Any]
) -> Making | None:
    """The conversion to rows, from the type of the shards, the names of files, a vectorizer or a
    format; None: the shards are rows. Parameters for cells are removed from `params`."""
    if hasattr(type(shards), "obs_names"):
        return _cells(how.label, params)
    # The test uses types, because a Delayed has attributes of any name.
    is_text = hasattr(type(shards), "to_delayed") and not is_array(shards)
    first = shards[0] if isinstance(shards, list) and shards else shards
    first = first[0] if isinstance(first, list) and first else first
    if isinstance(first, tuple) and isinstance(first[0], list):
        is_text = bool(first[0]) and isinstance(first[0][0], str)
    if isinstance(first, str | os.PathLike):
        kind = form_elsewhere(os.fspath(first), how.form)
        if kind == "cells":
            return _cells(how.label, params)
        is_text = kind is not None
    if not is_text and vectorizer is None and how.form is None:
        return None
    if vectorizer is None:
        vectorizer = hashed_pairs(HASHED_BITS)
    from sklearn.exceptions import NotFittedError

    vectorizer = deepcopy(vectorizer)
    try:
        vectorizer.transform(["one text"])
    except NotFittedError:
        raise ValueError(
            f"vectorizer={vectorizer!r} has to read all texts first, and these are in shards. Pass "
            "one that is fitted, or a HashingVectorizer."
        ) from None
    return Texts(how, vectorizer)


def is_array(collection: Any) -> bool:
    """Return whether it is a Dask array; other collections have lazy attributes of any name."""
    return isinstance(getattr(collection, "numblocks", None), tuple)


def _cells(label: Any, params: dict[str, Any]) -> CellRows:
    """The conversion of cells with its parameters, which are removed from `params`."""
    from sparsemargin.cells.genes import CellForm
    from sparsemargin.cells.learn import mixing_seed
    from sparsemargin.genomes.cells import CellNormalizer

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
