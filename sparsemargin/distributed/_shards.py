"""Shards of the data: the forms in which they are given, and their form on the worker."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from glob import glob
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from sparsemargin._engine.fitting.task import Positives
from sparsemargin._engine.rows.columns import NO_ROWS, Chosen
from sparsemargin._engine.rows.csr import Csr, shuffle
from sparsemargin._engine.rows.parts import part_of, rows_at
from sparsemargin.distributed._making import CellRows, Making, Texts, is_array
from sparsemargin.distributed._mixing import Part
from sparsemargin.distributed._schema import Schema, Survey, packed
from sparsemargin.files.remote import is_url
from sparsemargin.files.sources import (
    CACHE_SUFFIX,
    STANDARD_INPUT,
    Source,
    files_beside,
    files_named,
    open_sources,
)
from sparsemargin.models.inputs.label_table import LabelTable
from sparsemargin.models.inputs.labels import LabelEncoder, MultilabelEncoder, UnknownLabelError
from sparsemargin.models.inputs.multilabel_targets import multilabel_targets
from sparsemargin.models.inputs.rows import check_rows, first_rows, open_rows
from sparsemargin.models.inputs.training_set import Targets, rows_by_class
from sparsemargin.readers.reading import LARGEST_INDEX, Reading
from sparsemargin.readers.row_cache import RowCache, default_cache_path
from sparsemargin.readers.svmlight import Corpus
from sparsemargin.readers.text_forms import DocumentForm
from sparsemargin.streaming.passes import Passes, bounds_of

# Bytes reported to Dask, so large that it does not move the shard to another worker.
_HEAVY = 1 << 27

# Number of texts in memory from which terms of columns are taken. Number of cells from which the
# variation of genes is measured, and, if there are no more, probabilities are calibrated.
_TEXTS_KEPT, _CELLS_KEPT = 1000, 4096

_FORMS = (
    "Shards are a Dask array X of CSR blocks with its y, a list of pairs (X, y), a list of paths, "
    "or an AnnData with a Dask array"
)

#: Rows, their targets, the number of the first row in the shard, and the order of the rows.
Block = tuple[Csr, Targets, int, np.ndarray | None]


@dataclass
class MatrixPart:
    """Rows of a matrix in the form used in training."""

    rows: Csr
    targets: Targets
    first_row: int
    # Seed, epochs and order of the latest epoch, from which the next one continues.
    shuffled: tuple[int, int, np.ndarray] | None = None
    chosen: Chosen | None = None  # the columns of the rows, if the rows are restricted to them

    def order(self, seed: int, number: int) -> np.ndarray:
        """The order of the rows in an epoch, which is a shuffle of the previous epoch's order."""
        of_seed, done, order = self.shuffled or (seed, 0, np.arange(self.rows.n_rows))
        if of_seed != seed or done > number:
            done, order = 0, np.arange(len(order))
        order = order.copy()
        for passes in range(done, number):
            shuffle(order, (seed + passes) % 2**64)
        self.shuffled = seed, number, order
        return order


class Pair(NamedTuple):
    """A matrix and its labels, in memory or to be computed."""

    X: Any
    y: Any


@dataclass
class MatrixShard:
    """Checked rows in memory, and labels as an array or in another form."""

    rows: Csr
    y: Any
    texts: Sequence[str] = ()  # the first texts that the rows were made of
    # The following fields belong to the current fit.
    parts: dict[Part, MatrixPart] = field(default_factory=dict)
    own: Chosen | None = None  # the columns of all rows

    def __getstate__(self) -> dict[str, Any]:
        # Views would have any alignment on arrival; derived data is recomputed there.
        return {**vars(self), "parts": {}, "own": None}

    @classmethod
    def of(cls, X: Any, y: Any, making: Making | None = None) -> MatrixShard:
        """A shard from a matrix, or from texts or cells, and its labels."""
        from scipy.sparse import issparse

        from sparsemargin.estimators import validation as given

        texts: Sequence[str] = ()
        if isinstance(making, Texts):
            X = list(X)
            texts = X[:_TEXTS_KEPT]
            if not isinstance(y, np.ndarray):
                y = y.to_numpy() if hasattr(y, "to_numpy") else list(y)
        if making is not None:
            X = making.rows(X)
        y = given.check_sparse(y, "y")
        if hasattr(X, "tocsr") and not issparse(X):
            X = X.tocsr()
        # A shard without rows is rejected later, with its index in the message.
        X = given.as_csr(X, ensure_min_samples=0, ensure_min_features=0)
        many = multilabel_targets(y)
        labels = given.check_labels(y) if many is None else many
        if labels.shape[0] != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows, and y {labels.shape[0]} labels.")
        return cls(check_rows(open_rows(X)), labels, texts)

    def survey(self, columns: bool) -> Survey:
        rows, many = self.rows, hasattr(self.y, "form")
        encoder = MultilabelEncoder() if many else LabelEncoder()
        targets, classes = encoder.fit_transform(self.y), encoder.classes
        # The codes alone would be equal for different classes.
        checksum = zlib.crc32(names_of(classes).encode())
        for array in (*rows.arrays, *(targets if many else (targets,))):
            checksum = zlib.crc32(np.ascontiguousarray(array).data, checksum)
        return Survey(
            rows.n_rows, len(rows.data), rows.n_features, LARGEST_INDEX, -1, rows.data.dtype.name,
            classes, self.y.form if many else None, None, list(first_rows([rows])),
            sum(array.nbytes for array in rows.arrays), checksum,
            packed(Chosen(rows.n_features, rows).columns, rows.n_features)
            if columns and rows.n_features else None,
        )  # fmt: skip

    def terms(self, vectorizer: Any) -> dict[int, str]:
        """Words of the first texts, by the columns that they are hashed to."""
        return vectorizer.remember_terms(self.texts).terms_ if self.texts else {}

    def some_cells(self, n_shards: int) -> tuple[csr_matrix, np.ndarray]:
        """Some cells and their types; the number of cells is divided among the shards."""
        chosen = self.sample_of(self.rows, -(-_CELLS_KEPT // n_shards))
        rows = rows_at(self.rows, chosen)
        shape = len(chosen), rows.n_features
        return csr_matrix(tuple(rows.arrays), shape=shape), self.y[chosen]

    def sample_of(self, rows: Csr, n_rows: int) -> np.ndarray:
        """Indices of some rows from which a learner is selected."""
        return np.sort(np.random.RandomState(0).permutation(rows.n_rows)[:n_rows])

    def part(self, schema: Schema, which: Part) -> MatrixPart:
        """A part of the rows."""
        if (0, 1) not in self.parts:
            encoder = MultilabelEncoder if hasattr(self.y, "form") else LabelEncoder
            self.rows = self.rows.with_data(self.rows.data.astype(schema.dtype, copy=False))
            self.parts[0, 1] = MatrixPart(self.rows, encoder(schema.classes).transform(self.y), 0)
        if which not in self.parts:
            whole = self.parts[0, 1]
            first, last = bounds_of(which, self.rows.n_rows)
            rows = part_of(self.rows, first, last)
            self.parts[which] = MatrixPart(rows, some_targets(whole.targets, first, last), first)
        return self.parts[which]

    def columns(self, schema: Schema, which: Part, n_coordinates: int) -> Chosen:
        """The coordinates of a part of the rows, to which the part is restricted from now on."""
        part = self.part(schema, which)
        if part.chosen is None:
            if self.own is None:
                self.own = Chosen(n_coordinates, self.rows)
            # The time depends on the columns of the shard, not on the number of all columns.
            rows, has_bias = self.own.of_rows(part.rows), n_coordinates > part.rows.n_features
            places = Chosen(len(self.own.columns), rows)
            part.rows, part.chosen = over(places, rows, has_bias), places.within(self.own)
        return part.chosen

    def epoch(
        self, schema: Schema, seed: int | None, number: int, which: Part = (0, 1),
        chosen: Chosen | None = None, has_bias: bool = False,
    ) -> Iterator[Block]:  # fmt: skip
        """Yield the rows in the order of epoch `number`, from 1, of a fit on one machine,
        restricted to the chosen coordinates."""
        part = self.part(schema, which)
        order = None if seed is None else part.order(seed, number)
        yield part.rows, part.targets, part.first_row, order


def some_targets(targets: Targets, first: int, last: int) -> Targets:
    """The targets of the rows first..last-1."""
    if not isinstance(targets, Positives):
        return targets[first:last]
    starts = targets.starts[first : last + 1]
    return Positives(starts - starts[0], targets.labels[starts[0] : starts[-1]])


def over(chosen: Chosen, rows: Csr, has_bias: bool) -> Csr:
    """The rows restricted to the chosen columns, with one more column that is empty."""
    data, indices, indptr = chosen.of_rows(rows).arrays
    return Csr(data, indices, indptr, len(chosen.columns) + 1 - has_bias)


def names_of(classes: np.ndarray) -> str:
    """The classes as text; equal numbers of different types give the same text."""
    return repr([x if isinstance(x, str) or x % 1 else int(x) for x in classes.tolist()])


@dataclass
class FileShard:
    """Rows of files, or of a row cache, read on the worker."""

    paths: list[str]
    reading: Reading
    cache_dir: str | None  # folder on the worker; None: next to the first file
    max_index: int  # limit of the indices, given by the available memory
    making: Making | None = None  # conversion of texts or cells; None: svmlight text
    # The following fields belong to the current fit.
    chosen: dict[Part, Chosen] = field(default_factory=dict, compare=False)
    own: Chosen | None = field(default=None, compare=False)  # the columns of all rows
    passes: Passes | None = field(default=None, compare=False)

    def __sizeof__(self) -> int:
        # Dask does not move large objects, and this one stands for a row cache.
        return _HEAVY

    def __getstate__(self) -> dict[str, Any]:
        # An open file cannot be sent.
        return {**vars(self), "chosen": {}, "own": None, "passes": None}

    @property
    def name(self) -> str:
        return ", ".join(self.paths)

    @property
    def files(self) -> list[str]:
        """Names of the files that are read, as this machine sees them."""
        patterns = [each for each in self.paths if not is_url(each)]
        found = {match for each in patterns for match in glob(each, recursive=True)}
        beside = (name for each in found for name in files_beside(each))
        return [*self.paths, *sorted(found), *beside]

    def rows(self) -> tuple[Passes, RowCache]:
        """Passes over the row cache, which is created if necessary."""
        if self.passes is None:
            self.passes = self._passes()
        assert self.passes.cache is not None
        return self.passes, self.passes.cache

    def _passes(self) -> Passes:
        if len(self.paths) == 1 and self.paths[0].endswith(CACHE_SUFFIX):
            passes = Passes(Corpus([], self.reading, 1, "learning"), self.max_index)
            passes.cache = RowCache.open(self.paths[0])
            passes.n_bytes = Path(self.paths[0]).stat().st_size
            return passes
        with self._opened() as (sources, rows):
            path = default_cache_path([source.name for source in sources], self.cache_dir)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except FileExistsError:
                raise NotADirectoryError(
                    f"{path.parent} is a file, and row caches need a folder. Pass another "
                    "cache_dir."
                ) from None
            passes = Passes(rows, self.max_index, path)
            passes.keep()
        return passes

    @contextmanager
    def _opened(self) -> Iterator[tuple[list[Source], Any]]:
        """The files, and the rows made from them."""
        sources = open_sources(self.paths)
        for source in sources:
            if not source.rereadable:
                raise ValueError(
                    f"{source.name} can be read only once, and every epoch may have to read it "
                    "anew, perhaps on another worker. Write it to a file first."
                )
        if self.making is None:
            yield sources, Corpus(sources, self.reading, 1, "learning")
            return
        with self.making.opened(sources, self.reading.multilabel) as rows:
            yield sources, rows

    def terms(self, vectorizer: Any) -> dict[int, str]:
        """See `MatrixShard.terms`."""
        with self._opened() as (_, rows):
            rows.vectorizer, rows.first_texts = vectorizer, []
            with closing(rows.scan(LabelTable())) as blocks:
                for _ in blocks:
                    if rows.first_texts is None:
                        break
            rows.name_columns()
        return getattr(vectorizer, "terms_", {})

    def some_cells(self, n_shards: int) -> tuple[csr_matrix, np.ndarray]:
        """See `MatrixShard.some_cells`."""
        with self._opened() as (_, rows):
            X, found = rows.survey()
        some = slice(-(-_CELLS_KEPT // n_shards))
        return X[some], rows.classes[found.labels[some]]

    def sample_of(self, rows: Csr, n_rows: int) -> np.ndarray:
        """See `MatrixShard.sample_of`; these are the first rows of a block."""
        return np.arange(min(n_rows, rows.n_rows))

    def _columns(self, cache: RowCache) -> np.ndarray:
        indices = (block.indices for block in cache.blocks())
        chosen = Chosen(cache.n_columns, NO_ROWS, indices, cache.n_entries)
        return packed(chosen.columns, cache.n_columns)

    def survey(self, columns: bool) -> Survey:
        passes, cache = self.rows()
        return Survey(
            cache.n_rows, cache.n_entries, None, cache.lowest, cache.highest,
            cache.dtype.name, LabelTable(cache.label_texts, cache.label_numbers), None,
            Reading(**cache.identity["reading"]),
            list(first_rows(block.with_columns(0) for block in cache.blocks())),
            passes.n_bytes or 0, cache.checksum,
            self._columns(cache) if columns and cache.n_columns else None,
        )  # fmt: skip

    def columns(self, schema: Schema, which: Part, n_coordinates: int) -> Chosen:
        """The coordinates of a part of the rows."""
        if which not in self.chosen:
            passes, cache = self.rows()
            if self.own is None:
                of_all = (block.indices for block in cache.blocks())
                self.own = Chosen(n_coordinates, NO_ROWS, of_all, cache.n_entries)
            met = (self.own.position(rows.indices) for rows, _ in passes.again(None, 1, which))
            places = Chosen(len(self.own.columns), NO_ROWS, met, cache.n_entries // which[1])
            self.chosen[which] = places.within(self.own)
        return self.chosen[which]

    def epoch(
        self, schema: Schema, seed: int | None, number: int, which: Part = (0, 1),
        chosen: Chosen | None = None, has_bias: bool = False,
    ) -> Iterator[Block]:  # fmt: skip
        """Yield the rows in the order of epoch `number`, from 1, of `fit_svmlight`, whose first
        epoch does not shuffle; restricted to the chosen coordinates."""
        if not which[0]:
            self.passes = None  # the file may have changed since the last epoch
        passes, cache = self.rows()
        # The file may differ on another machine, or may have been changed.
        if cache.checksum != schema.checksums[self.name]:
            raise ValueError(
                f"{self.name}: these {cache.n_rows:,} rows are not those that learning began "
                "with. Every worker must find the same file, and it may not change."
            )
        table = LabelTable(cache.label_texts, cache.label_numbers)
        # An encoder caches the labels of one table.
        encoder = deepcopy(schema.encoder)
        assert encoder is not None
        for block, order in passes.again(None if number == 1 else seed, number, which):
            first_row = block.first_row or 0
            try:
                targets = encoder.transform_ids(table, block.labels, block.label_start)
            except UnknownLabelError as error:
                raise ValueError(
                    f"{self.name}, row {first_row + error.row}: the label {error.label} is "
                    f"none of the classes {schema.classes.tolist()}. Pass all classes, or "
                    "leave classes out."
                ) from None
            rows = block.with_columns(schema.n_columns)
            rows = rows.with_data(rows.data.astype(schema.dtype, copy=False))
            if chosen is not None:
                rows = over(chosen, rows, has_bias)
            yield rows, targets, first_row, order


def sampled(
    shard: Shard, schema: Schema, n_rows: int
) -> tuple[np.ndarray, list[tuple[Csr, Targets]]]:
    """The number of rows without and with each class, and n_rows rows with their targets."""
    counts, some = np.zeros((2, len(schema.classes)), np.int64), []
    for rows, targets, *_ in shard.epoch(schema, None, 1):
        counts += rows_by_class(targets, len(schema.classes))
        if n_rows and isinstance(targets, np.ndarray):
            chosen = shard.sample_of(rows, n_rows)
            some.append((rows_at(rows, chosen), targets[chosen]))
            n_rows -= len(chosen)
    return counts, some


Shard = MatrixShard | FileShard


def shards_of(
    shards: Any, y: Any, reading: Reading, cache_dir: Any, max_index: int,
    making: Making | None = None,
) -> list[Pair] | list[FileShard]:  # fmt: skip
    """The shards in their order; a pattern of names is expanded to its files."""
    if isinstance(making, CellRows) and hasattr(type(shards), "obs_names"):
        shards, y = making.parts_of(shards)
        return _blocks_of(shards, y)
    if is_lazy(shards):
        if isinstance(making, Texts):
            return _partitions_of(shards, y, making.how)
        return _blocks_of(shards, y)
    if y is not None:
        raise ValueError(f"y goes with a Dask array X. {_FORMS}.")
    if isinstance(shards, str | os.PathLike):
        shards = [shards]
    listed = list(shards) if isinstance(shards, Iterable) else []
    if not listed:
        raise ValueError(f"There are no shards in {type(shards).__name__}. {_FORMS}.")
    if all(isinstance(shard, tuple) and len(shard) == 2 for shard in listed):
        return [Pair(*shard) for shard in listed]
    odd = [shard for shard in listed if not isinstance(shard, str | os.PathLike | list)]
    # A pair is not the cause of the error if other shards are not pairs.
    for shard in sorted(odd, key=lambda shard: isinstance(shard, tuple)):
        what = f"A shard can't be of type {type(shard).__name__}."
        if is_lazy(shard) or is_future(shard):
            what = "Of a pair that is made elsewhere give both: tuple(delayed(load, nout=2)(...))."
        raise ValueError(f"{what} {_FORMS}.")
    directory = None if cache_dir is None else os.path.abspath(cache_dir)
    named = chain.from_iterable(
        [shard] if isinstance(shard, list) else files_named(os.fspath(shard)) for shard in listed
    )
    return [FileShard(_paths(shard), reading, directory, max_index, making) for shard in named]


def is_lazy(value: Any) -> bool:
    """Return whether it is a Dask collection that has not been computed."""
    return hasattr(value, "__dask_graph__")


def is_future(value: Any) -> bool:
    """Return whether it is a Dask Future; the type is tested, as tables have columns of any
    name."""
    return type(value).__module__.startswith("distributed.") and hasattr(value, "result")


def _paths(shard: Any) -> list[str]:
    """The paths of the files of a shard."""
    paths = [shard] if isinstance(shard, str | os.PathLike) else shard
    if not paths or not all(isinstance(path, str | os.PathLike) for path in paths):
        raise ValueError(f"A list among the shards holds paths, at least one. {_FORMS}.")
    # A worker's folder may have another file of the same name.
    return [
        os.fspath(path) if path == STANDARD_INPUT or is_url(path) else os.path.abspath(path)
        for path in paths
    ]


def _blocks_of(X: Any, y: Any) -> list[Pair]:
    """Make a shard of each block of rows of a Dask array."""
    if not is_array(X):
        raise ValueError(f"Of Dask's collections an array is taken, got {X!r}. {_FORMS}.")
    if y is None:
        raise ValueError("y is missing: pass the labels of the rows beside the Dask array X.")
    if X.ndim != 2 or X.numblocks[1] != 1:
        raise ValueError(
            f"X must be a Dask array of two dimensions whose blocks have all columns, got "
            f"{X!r}. Rechunk it: X.rechunk({{1: -1}})."
        )
    lengths, blocks = X.chunks[0], X.to_delayed().ravel().tolist()
    if is_lazy(y):
        together = is_array(y) and y.ndim == 1
        if not together or not np.array_equal(y.chunks[0], lengths, equal_nan=True):
            raise ValueError(
                f"y must be a Dask array of one dimension with the blocks of X, {lengths}, got "
                f"{y!r}. Rechunk it: y.rechunk((X.chunks[0],))."
            )
        return [Pair(*pair) for pair in zip(blocks, y.to_delayed().ravel(), strict=True)]
    if np.isnan(lengths).any():
        raise ValueError(
            "The blocks of X have unknown lengths, by which y can't be cut. Pass y as a Dask array "
            "with the same blocks, or call X.compute_chunk_sizes()."
        )
    n_labels = y.shape[0] if hasattr(y, "shape") else len(y)
    if n_labels != sum(lengths):
        raise ValueError(f"X has {sum(lengths)} rows, and y {n_labels} labels.")
    starts = np.cumsum((0, *lengths))
    return [Pair(block, y[a:b]) for block, a, b in zip(blocks, starts, starts[1:], strict=False)]


def _partitions_of(texts: Any, y: Any, how: DocumentForm) -> list[Pair]:
    """Make a shard of each partition of texts, or of a table with a column of texts."""
    if getattr(texts, "ndim", 1) == 2:
        for name in how.text, how.label:
            if name not in texts.columns:
                names = ", ".join(map(str, texts.columns))
                raise ValueError(f"The table has no column {name!r}, but {names}. Name the one by "
                                 f"{'text' if name == how.text else 'label'}=.")  # fmt: skip
        texts, y = texts[how.text], texts[how.label]
    if not hasattr(texts, "to_delayed") or not hasattr(y, "to_delayed"):
        raise ValueError(
            "Texts in Dask's collections need y, their labels, in one like it: two bags, or two "
            "columns of one table. A table has both, by text= and label=."
        )
    pairs = texts.to_delayed(), y.to_delayed()
    if len(pairs[0]) != len(pairs[1]):
        raise ValueError(
            f"The texts are in {len(pairs[0])} partitions, their labels in {len(pairs[1])}. "
            "Repartition them alike."
        )
    return [Pair(*pair) for pair in zip(*pairs, strict=True)]
