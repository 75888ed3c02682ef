"""Shards of the data: the forms they are given in, and what each is where it is learned from."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sparsemargin._engine.rows.csr import Csr, shuffle
from sparsemargin.distributed._schema import Schema, Survey
from sparsemargin.io.files import is_one_file
from sparsemargin.io.passes import Passes
from sparsemargin.io.reading import Corpus, Reading
from sparsemargin.io.row_cache import RowCache, default_cache_path
from sparsemargin.io.rows import LARGEST_INDEX
from sparsemargin.io.sources import CACHE_SUFFIX, STANDARD_INPUT, open_sources
from sparsemargin.models.class_weights import Targets
from sparsemargin.models.labels import (
    LabelEncoder,
    LabelTable,
    MultilabelEncoder,
    UnknownLabelError,
    multilabel_targets,
)
from sparsemargin.models.rows import check_rows, first_rows, open_rows

# So large that Dask moves the shard to no other worker.
_HEAVY = 1 << 27

_FORMS = (
    "Shards are a Dask array X of CSR blocks with its y, a list of pairs (X, y), or a list of paths"
)

#: Rows, their targets, the number of the first one in the shard, and the order to take them in.
Block = tuple[Csr, Targets, int, np.ndarray | None]


class Pair(NamedTuple):
    """A matrix and its labels, here or on the way."""

    X: Any
    y: Any


@dataclass
class MatrixShard:
    """Rows in memory, checked, and labels as an array or in another form."""

    rows: Csr
    y: Any
    # Of the fit that learns from them: their targets, and seed, passes and order of the latest
    # epoch here, so that the next need not start anew.
    targets: Targets | None = None
    shuffled: tuple[int, int, np.ndarray] | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Where it arrives arrays may lie at any address: what follows from them is made anew.
        return {"rows": self.rows, "y": self.y, "targets": None, "shuffled": None}

    @classmethod
    def of(cls, X: Any, y: Any) -> MatrixShard:
        """A shard of a matrix and its labels."""
        from scipy.sparse import issparse

        from sparsemargin.models import validation as given

        given.check_sparse(y, "y")
        if hasattr(X, "tocsr") and not issparse(X):
            X = X.tocsr()
        # A shard without rows is refused later, by its number.
        X = given.as_csr(X, ensure_min_samples=0, ensure_min_features=0)
        many = multilabel_targets(y)
        labels = given.check_labels(y) if many is None else many
        if labels.shape[0] != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows, and y {labels.shape[0]} labels.")
        return cls(check_rows(open_rows(X)), labels)

    def survey(self) -> Survey:
        rows, many = self.rows, hasattr(self.y, "form")
        encoder = MultilabelEncoder() if many else LabelEncoder()
        targets, classes = encoder.fit_transform(self.y), encoder.classes
        # The codes alone would be the same for other classes.
        checksum = zlib.crc32(names_of(classes).encode())
        for array in (*rows.arrays, *(targets if many else (targets,))):
            checksum = zlib.crc32(np.ascontiguousarray(array).data, checksum)
        return Survey(
            rows.n_rows, len(rows.data), rows.n_features, LARGEST_INDEX, -1, rows.data.dtype.name,
            classes, self.y.form if many else None, None, list(first_rows([rows])),
            sum(array.nbytes for array in rows.arrays), checksum,
        )  # fmt: skip

    def epoch(self, schema: Schema, seed: int | None, number: int) -> Iterator[Block]:
        """The rows in the order that epoch `number`, from 1, of a fit on one machine takes."""
        if self.targets is None:
            encoder = MultilabelEncoder if hasattr(self.y, "form") else LabelEncoder
            self.rows = self.rows.with_data(self.rows.data.astype(schema.dtype, copy=False))
            self.targets = encoder(schema.classes).transform(self.y)
        yield self.rows, self.targets, 0, None if seed is None else self._order(seed, number)

    def _order(self, seed: int, number: int) -> np.ndarray:
        """The order of the rows in an epoch: each shuffles that of the epoch before."""
        of_seed, done, order = self.shuffled or (seed, 0, np.arange(self.rows.n_rows))
        if of_seed != seed or done > number:
            done, order = 0, np.arange(len(order))
        order = order.copy()
        for passes in range(done, number):
            shuffle(order, (seed + passes) % 2**64)
        self.shuffled = seed, number, order
        return order


def names_of(classes: np.ndarray) -> str:
    """The classes as text; the same numbers of different types are the same classes."""
    return repr([x if isinstance(x, str) or x % 1 else int(x) for x in classes.tolist()])


@dataclass(frozen=True)
class FileShard:
    """Rows of svmlight files, or of a row cache, read where the worker is."""

    paths: list[str]
    reading: Reading
    cache_dir: str | None  # of the row cache, on the worker; None: beside the first file
    max_index: int  # larger ones have no room in memory

    def __sizeof__(self) -> int:
        # Dask leaves heavy objects where they are, and this one stands for a row cache.
        return _HEAVY

    @property
    def name(self) -> str:
        return ", ".join(self.paths)

    def reads(self, path: str | os.PathLike[str]) -> bool:
        """Whether a path is of one of the files, as this machine sees them."""
        named = (match for each in self.paths for match in (each, *glob(each, recursive=True)))
        return any(is_one_file(path, other) for other in named)

    def _passes(self) -> tuple[Passes, RowCache]:
        """Passes over the row cache, which is made first where there is none."""
        if len(self.paths) == 1 and self.paths[0].endswith(CACHE_SUFFIX):
            passes = Passes(Corpus([], self.reading, 1, "learning"), self.max_index)
            passes.cache = RowCache.open(self.paths[0])
            passes.n_bytes = Path(self.paths[0]).stat().st_size
            return passes, passes.cache
        sources = open_sources(self.paths)
        for source in sources:
            if not source.rereadable:
                raise ValueError(
                    f"{source.name} can be read only once, and every epoch may have to read it "
                    "anew, perhaps on another worker. Write it to a file first."
                )
        path = default_cache_path([source.name for source in sources], self.cache_dir)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise NotADirectoryError(
                f"{path.parent} is a file, and row caches need a folder. Pass another cache_dir."
            ) from None
        passes = Passes(Corpus(sources, self.reading, 1, "learning"), self.max_index, path)
        return passes, passes.keep()

    def survey(self) -> Survey:
        passes, cache = self._passes()
        with cache:
            return Survey(
                cache.n_rows, cache.n_entries, None, cache.lowest, cache.highest,
                cache.dtype.name, LabelTable(cache.label_texts, cache.label_numbers), None,
                Reading(**cache.identity["reading"]),
                list(first_rows(block.with_columns(0) for block in cache.blocks())),
                passes.n_bytes or 0, cache.checksum,
            )  # fmt: skip

    def epoch(self, schema: Schema, seed: int | None, number: int) -> Iterator[Block]:
        """The rows in the order that epoch `number`, from 1, of `fit_svmlight` takes: the first as
        they come."""
        passes, cache = self._passes()
        with cache:
            # Another machine, or a later hour, may have others.
            if cache.checksum != schema.checksums[self.name]:
                raise ValueError(
                    f"{self.name}: these {cache.n_rows:,} rows are not those that learning began "
                    "with. Every worker must find the same file, and it may not change."
                )
            table = LabelTable(cache.label_texts, cache.label_numbers)
            # An encoder remembers the labels of one table.
            encoder = deepcopy(schema.encoder)
            assert encoder is not None
            for block, order in passes.again(None if number == 1 else seed, number):
                first_row = block.first_row or 0
                try:
                    targets = encoder.transform_ids(table, block.labels, block.label_start)
                except UnknownLabelError as error:
                    raise ValueError(
                        f"{self.name}, row {first_row + error.row}: the label {error.label} is "
                        f"none of the classes {schema.classes.tolist()}. Pass all classes, or "
                        "leave classes out."
                    ) from None
                yield block.with_columns(schema.n_columns), targets, first_row, order


Shard = MatrixShard | FileShard


def shards_of(
    shards: Any, y: Any, reading: Reading, cache_dir: Any, max_index: int
) -> list[Pair] | list[FileShard]:
    """The shards, in their order."""
    if is_lazy(shards):
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
    # A pair among others that are none is not to blame.
    for shard in sorted(odd, key=lambda shard: isinstance(shard, tuple)):
        what = f"A shard can't be of type {type(shard).__name__}."
        if is_lazy(shard) or is_future(shard):
            what = "Of a pair that is made elsewhere give both: tuple(delayed(load, nout=2)(...))."
        raise ValueError(f"{what} {_FORMS}.")
    directory = None if cache_dir is None else os.path.abspath(cache_dir)
    return [FileShard(_paths(shard), reading, directory, max_index) for shard in listed]


def is_lazy(value: Any) -> bool:
    """Whether it is a collection of Dask's that has not been worked out."""
    return hasattr(value, "__dask_graph__")


def is_future(value: Any) -> bool:
    """Whether it is a Future of Dask, which need not be there; tables have columns of any name."""
    return type(value).__module__.startswith("distributed.") and hasattr(value, "result")


def _paths(shard: Any) -> list[str]:
    """Those of the files of a shard."""
    paths = [shard] if isinstance(shard, str | os.PathLike) else shard
    if not paths or not all(isinstance(path, str | os.PathLike) for path in paths):
        raise ValueError(f"A list among the shards holds paths, at least one. {_FORMS}.")
    # In a worker's folder there may be another file of the name.
    return [os.fspath(path) if path == STANDARD_INPUT else os.path.abspath(path) for path in paths]


def _blocks_of(X: Any, y: Any) -> list[Pair]:
    """A shard for each block of rows of a Dask array."""
    if not _is_array(X):
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
        together = _is_array(y) and y.ndim == 1
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


def _is_array(collection: Any) -> bool:
    """Whether it is a Dask array; others have attributes that are lazy, too."""
    return isinstance(getattr(collection, "numblocks", None), tuple)
