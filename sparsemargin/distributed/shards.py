"""Shards of the data on the worker: rows in memory, or files that are read there."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from errno import EACCES, EPERM, EROFS
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse

from sparsemargin._engine.fitting.task import Positives
from sparsemargin._engine.rows.csr import Csr, shuffle
from sparsemargin._engine.rows.parts import part_of, rows_at
from sparsemargin._shown import first_three
from sparsemargin.distributed.row_makers import RowMaker, Texts
from sparsemargin.distributed.schema import WHOLE, Part, Schema, Survey
from sparsemargin.files.folders import CACHE_SUFFIX, files_beside
from sparsemargin.files.remote import is_url
from sparsemargin.files.sources import Source, open_sources
from sparsemargin.models.inputs.label_table import LabelTable
from sparsemargin.models.inputs.labels import LabelEncoder, MultilabelEncoder, UnknownLabelError
from sparsemargin.models.inputs.multilabel_targets import multilabel_targets
from sparsemargin.models.inputs.rows import check_rows, first_rows, open_rows
from sparsemargin.models.inputs.training_set import Targets, rows_by_class
from sparsemargin.readers.cache_order import block_order
from sparsemargin.readers.reading import LARGEST_INDEX, Reading
from sparsemargin.readers.row_cache import RowCache, default_cache_path
from sparsemargin.readers.rows import LabelledRows
from sparsemargin.readers.svmlight import Corpus
from sparsemargin.streaming.label_order import LabelOrder
from sparsemargin.streaming.passes import Passes

# Bytes reported to Dask, so large that it does not move the shard to another worker.
_HEAVY = 1 << 27

#: Texts kept to find the words of hashed columns.
TEXTS_KEPT = 1000

# Cells kept to measure the variance of genes, and, if the data have no more cells, to calibrate
# probabilities.
_CELLS_KEPT = 4096

# Some rows of a shard, and their targets.
SampledRows = tuple[Csr, np.ndarray]

#: Rows, their targets, the number of the first row in the shard, and the order of the rows.
Block = tuple[Csr, Targets, int, np.ndarray | None]


@dataclass
class MatrixShard:
    """Checked rows in memory, and labels as an array or as multilabel targets."""

    rows: Csr
    y: Any
    texts: Sequence[str] = ()  # the first texts that the rows were made of
    # The following fields belong to the current fit.
    targets: Targets | None = None
    # Seed, part, number and row order of the latest epoch. The next epoch shuffles this order.
    shuffled: tuple[int, Part, int, np.ndarray] | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Derived data is not sent but recomputed by the receiver, because arrays that are views
        # might be misaligned there.
        return {**vars(self), "targets": None, "shuffled": None}

    @classmethod
    def of(cls, X: Any, y: Any, row_maker: RowMaker | None = None) -> MatrixShard:
        """A shard from a matrix, or from texts or cells, and its labels."""
        # Imported here because it imports scikit-learn, which shards of files do not need.
        from sparsemargin.estimators.validation import as_csr, check_labels, check_sparse

        texts: Sequence[str] = ()
        if isinstance(row_maker, Texts):
            if getattr(X, "ndim", 1) != 1:
                raise ValueError("X is a matrix, and features are for texts. Leave features out.")
            if not isinstance(y, np.ndarray):
                y = y.to_numpy() if hasattr(y, "to_numpy") else list(y)
            X, y = row_maker.present(list(X), y)
            texts = X[:TEXTS_KEPT]
        if getattr(X, "shape", (len(X),) if isinstance(X, list) else ())[:1] == (0,):
            X = csr_matrix((0, 0))  # a shard without rows, which is left out later
        elif row_maker is not None:
            X = row_maker.rows(X)
        elif isinstance(X, list) and isinstance(X[0], str):  # a Delayed does not show its type
            raise ValueError(
                "X is a list of texts. Pass features=HashingVectorizer(n_features=2**20), or a "
                "fitted vectorizer, by which they become rows."
            )
        y = check_sparse(y, "y")
        if hasattr(X, "tocsr") and not issparse(X):
            X = X.tocsr()
        X = as_csr(X, ensure_min_samples=0, ensure_min_features=0)
        many = multilabel_targets(y)
        labels = check_labels(y) if many is None else many
        if labels.shape[0] != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows, and y {labels.shape[0]} labels.")
        return cls(check_rows(open_rows(X)), labels, texts)

    def survey(self) -> Survey:
        rows, many = self.rows, hasattr(self.y, "form")
        encoder = MultilabelEncoder() if many else LabelEncoder()
        targets, classes = encoder.fit_transform(self.y), encoder.classes
        label_order = LabelOrder()
        label_order.add(targets)
        # The names of the classes are included, because different classes may have the same codes.
        checksum = zlib.crc32(names_of(classes).encode())
        for array in (*rows.arrays, *(targets if many else (targets,))):
            checksum = zlib.crc32(np.ascontiguousarray(array).data, checksum)
        return Survey(
            rows.n_rows, len(rows.data), rows.n_features, LARGEST_INDEX, -1, rows.data.dtype.name,
            classes, self.y.form if many else None, None, list(first_rows([rows])),
            sum(array.nbytes for array in rows.arrays), checksum, label_order,
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
        """Indices of a sample of the rows, on which a learner is selected."""
        return np.sort(np.random.RandomState(0).permutation(rows.n_rows)[:n_rows])

    def _targets(self, schema: Schema) -> Targets:
        if self.targets is None:
            encoder = MultilabelEncoder if hasattr(self.y, "form") else LabelEncoder
            self.targets = encoder(schema.classes).transform(self.y)
        return self.targets

    def indices(self, schema: Schema, part: Part) -> Iterator[np.ndarray]:
        """The columns of the entries of a part of the rows."""
        yield self._part(schema, part)[0].indices

    def epoch(
        self, schema: Schema, seed: int | None, number: int, part: Part = WHOLE
    ) -> Iterator[Block]:
        """Yield the rows in the order of epoch `number`, from 1, of a fit on one machine."""
        self.rows = self.rows.with_data(self.rows.data.astype(schema.dtype, copy=False))
        rows, chosen = self._part(schema, part)
        order = None if seed is None else self._order(seed, part, number, rows.n_rows)
        first, _ = part.bounds(self.rows.n_rows)
        yield rows, some_targets(self._targets(schema), chosen), first, order

    def _part(self, schema: Schema, part: Part) -> tuple[Csr, slice | np.ndarray]:
        """The rows of a part, and their numbers."""
        bounds, n_rows = part.bounds(self.rows.n_rows), self.rows.n_rows
        if schema.mixed is None or bounds == (0, n_rows):
            return part_of(self.rows, *bounds), slice(*bounds)
        # The epochs use the seeds from `schema.mixed` on, so this order uses the seed before them.
        chosen = block_order(n_rows, (schema.mixed - 1) % 2**64)[slice(*bounds)]
        return rows_at(self.rows, chosen), chosen

    def _order(self, seed: int, part: Part, number: int, n_rows: int) -> np.ndarray:
        """The order of the rows in an epoch, which is a shuffle of the previous epoch's order."""
        done, order = 0, np.arange(n_rows)
        if self.shuffled is not None and self.shuffled[:2] == (seed, part):
            before, latest = self.shuffled[2:]
            if before <= number:
                done, order = before, latest.copy()
        for passes in range(done, number):
            shuffle(order, (seed + passes) % 2**64)
        self.shuffled = seed, part, number, order
        return order


def some_targets(targets: Targets, chosen: Any) -> Targets:
    """The targets of chosen rows. `chosen` must be a slice if rows may have several labels."""
    if not isinstance(targets, Positives):
        return targets[chosen]
    starts = targets.starts[chosen.start : chosen.stop + 1]
    return Positives(starts - starts[0], targets.labels[starts[0] : starts[-1]])


def names_of(classes: np.ndarray) -> str:
    """The classes as text; equal numbers of different types give the same text."""
    return repr([x if isinstance(x, str) or x % 1 else int(x) for x in classes.tolist()])


@dataclass
class FileShard:
    """Rows of files, or of a row cache, read on the worker. Methods without a description are those
    of `MatrixShard`."""

    paths: list[str]
    reading: Reading
    cache_dir: str | None  # folder on the worker; None: next to the first file
    max_index: int  # limit of the indices, given by the available memory
    row_maker: RowMaker | None = None  # conversion of texts or cells; None: svmlight text
    passes: Passes | None = field(default=None, init=False)  # passes of the current fit
    read_in: int = field(default=0, init=False)  # number of the latest epoch; 0: none yet

    def __sizeof__(self) -> int:
        # Dask does not move large objects. This one is small, but its row cache is on the worker.
        return _HEAVY

    def __getstate__(self) -> dict[str, Any]:
        # `passes` has an open file, which cannot be sent.
        return {**vars(self), "passes": None, "read_in": 0}

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

    @property
    def _is_row_cache(self) -> bool:
        return len(self.paths) == 1 and self.paths[0].endswith(CACHE_SUFFIX)

    def rows(self) -> tuple[Passes, RowCache]:
        """Return passes over the row cache, and the cache, which is created if necessary."""
        if self.passes is None:
            self.passes = self._passes()
        assert self.passes.cache is not None
        return self.passes, self.passes.cache

    def _passes(self) -> Passes:
        if self._is_row_cache:
            passes = Passes(Corpus([], self.reading, 1, "learning"), self.max_index)
            passes.cache = RowCache.open(self.paths[0])
            passes.n_bytes = Path(self.paths[0]).stat().st_size
            return passes
        with self._opened() as (sources, rows):
            path = default_cache_path([source.name for source in sources], self.cache_dir)
            with _naming_cache_dir(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                passes = Passes(rows, self.max_index, path)
                passes.keep()
        return passes

    @contextmanager
    def _opened(self) -> Iterator[tuple[list[Source], Any]]:
        """The files, and the rows made from them."""
        try:
            sources = open_sources(self.paths)
        except FileNotFoundError as error:
            if all(map(is_url, self.paths)):
                raise
            raise FileNotFoundError(
                f"{error} Every worker must find the file by this path, for example in a shared "
                "folder. A URL is found everywhere."
            ) from None
        for source in sources:
            if not source.rereadable:
                raise ValueError(
                    f"{source.name} can be read only once, and every epoch may have to read it "
                    "anew, perhaps on another worker. Write it to a file first."
                )
        if self.row_maker is None:
            yield sources, Corpus(sources, self.reading, 1, "learning")
            return
        with self.row_maker.opened(sources, self.reading.multilabel) as rows:
            yield sources, rows

    def terms(self, vectorizer: Any) -> dict[int, str]:
        with self._opened() as (_, rows):
            rows.vectorizer, rows.first_texts = vectorizer, []
            rows.name_columns()
        return getattr(vectorizer, "terms_", {})

    def some_cells(self, n_shards: int) -> tuple[csr_matrix, np.ndarray]:
        with self._opened() as (_, rows):
            X, found = rows.survey()
        some = slice(-(-_CELLS_KEPT // n_shards))
        return X[some], rows.classes[found.labels[some]]

    def sample_of(self, rows: Csr, n_rows: int) -> np.ndarray:
        """See `MatrixShard.sample_of`; these are the first rows of a block."""
        return np.arange(min(n_rows, rows.n_rows))

    def survey(self) -> Survey:
        passes, cache = self.rows()
        label_order = LabelOrder()
        for labels in cache.labels() if not cache.multilabel else _single_labels(cache):
            label_order.add(labels)
        return Survey(
            cache.n_rows, cache.n_entries, None, cache.lowest, cache.highest,
            cache.dtype.name, LabelTable(cache.label_texts, cache.label_numbers), None,
            Reading(**cache.identity["reading"]),
            list(first_rows(block.with_columns(0) for block in cache.blocks())),
            passes.n_bytes or 0, cache.checksum, label_order, passes.source.label_kind(),
            self._is_row_cache,
        )  # fmt: skip

    def indices(self, schema: Schema, part: Part) -> Iterator[np.ndarray]:
        for rows, _ in self._blocks(schema, None, 1, part):
            yield rows.indices

    def _blocks(
        self, schema: Schema, seed: int | None, number: int, part: Part
    ) -> Iterator[tuple[LabelledRows, np.ndarray | None]]:
        """The blocks of a part of the rows, and the orders of their rows in epoch `number`. Rows
        are shuffled from the second epoch on; with `schema.mixed`, also in the first."""
        passes, cache = self.rows()
        passes.shuffle_seed = schema.mixed
        seed = seed if number > 1 else schema.mixed
        return passes.again(seed, number, part.bounds(cache.n_rows))

    def epoch(
        self, schema: Schema, seed: int | None, number: int, part: Part = WHOLE
    ) -> Iterator[Block]:
        """Yield the rows in the order of epoch `number`, from 1, of `fit_svmlight`."""
        if number != max(1, self.read_in):
            self.passes = None  # the file may have changed since the last epoch
        self.read_in = number
        _, cache = self.rows()
        # The file may differ on another machine, or may have been changed.
        if cache.checksum != schema.checksums[self.name]:
            raise ValueError(
                f"{first_three(self.paths)}: these {cache.n_rows:,} rows are not those that "
                "training began with. Every worker must find the same file, and it may not change."
            )
        table = LabelTable(cache.label_texts, cache.label_numbers)
        # The encoder is copied, because it caches the labels of a single table.
        encoder = deepcopy(schema.encoder)
        assert encoder is not None
        for block, order in self._blocks(schema, seed, number, part):
            first_row = block.first_row or 0
            try:
                targets = encoder.transform_ids(table, block.labels, block.label_start)
            except UnknownLabelError as error:
                if schema.mixed is not None:
                    counts_of(self, schema)  # raises the error with the row's number in the file
                raise ValueError(
                    f"{first_three(self.paths)}, row {first_row + error.row}: the label "
                    f"{error.label} is none of the classes {schema.classes.tolist()}. Pass all "
                    "classes, or leave classes out."
                ) from None
            rows = block.with_columns(schema.n_columns)
            rows = rows.with_data(rows.data.astype(schema.dtype, copy=False))
            yield rows, targets, first_row, order


@contextmanager
def _naming_cache_dir(path: Path) -> Iterator[None]:
    """Name the parameter in errors of the folder of a row cache."""
    try:
        yield
    except FileExistsError:
        raise NotADirectoryError(
            f"{path.parent} is a file, and row caches need a folder. Pass another cache_dir."
        ) from None
    except OSError as error:
        of_source = error.filename is None or Path(error.filename) not in (path, *path.parents)
        if error.errno not in (EACCES, EPERM, EROFS) or of_source:
            raise
        raise PermissionError(
            f"{path.parent}: row caches can't be written there ({error.strerror}). Pass another "
            "cache_dir."
        ) from None


def counts_of(shard: Shard, schema: Schema) -> np.ndarray:
    """The number of rows without and with each class."""
    counts = np.zeros((2, len(schema.classes)), np.int64)
    for _, targets, *_ in shard.epoch(replace(schema, mixed=None), None, 1):
        counts += rows_by_class(targets, len(schema.classes))
    return counts


def sampled(shard: Shard, schema: Schema, n_rows: int) -> tuple[np.ndarray, list[SampledRows]]:
    """The number of rows without and with each class, and up to n_rows rows with their targets."""
    some = list[SampledRows]()
    for rows, targets, *_ in shard.epoch(schema, None, 1):
        if not (n_rows and isinstance(targets, np.ndarray)):
            break
        chosen = shard.sample_of(rows, n_rows)
        some.append((rows_at(rows, chosen), targets[chosen]))
        n_rows -= len(chosen)
    return counts_of(shard, schema), some


def _single_labels(cache: RowCache) -> Iterator[np.ndarray]:
    """The label ids of each block whose rows all have one label. Files that are read for `positive`
    are multilabel, even if they have one label per row."""
    for block in cache.blocks():
        if block.label_start is None or (np.diff(block.label_start) == 1).all():
            yield block.labels


Shard = MatrixShard | FileShard
