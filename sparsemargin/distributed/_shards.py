"""Shards of the data, where the worker is that learns from them."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sparsemargin._engine.first_order.trials import shuffle
from sparsemargin.io.files import is_one_file
from sparsemargin.io.passes import Passes
from sparsemargin.io.reading import Corpus, Reading
from sparsemargin.io.row_cache import RowCache, default_cache_path, shuffled
from sparsemargin.io.rows import LARGEST_INDEX, LabelledRows
from sparsemargin.io.sources import CACHE_SUFFIX, open_sources
from sparsemargin.models import intercept_scale
from sparsemargin.models.base import Targets
from sparsemargin.models.labels import (
    LabelEncoder,
    LabelTable,
    MultilabelEncoder,
    UnknownLabelError,
    multilabel_targets,
)
from sparsemargin.models.rows import Rows, check_rows, open_rows

# Bytes that take longer to be sent to another worker than that one could save.
_HEAVY = 1 << 27


class Survey(NamedTuple):
    """What has to be known of a shard before any is learned from.

    Attributes
    ----------
    n_rows, n_entries : int
    n_columns : int or None
        Of a matrix.
    lowest, highest : int
        Range of the indices of a file, as written.
    dtype : str
        Of the values.
    labels : LabelTable or ndarray
        Those of a file; the classes of a matrix.
    form : str or None
        How the rows of a matrix have any number of labels; None: each has one.
    reading : Reading or None
        How a row cache was read.
    intercept_scale : float
        What `intercept_scaling="auto"` is for a model that begins with its rows.
    n_bytes : int
        Of text, or of the arrays.
    checksum : int
        Of rows and labels.
    """

    n_rows: int
    n_entries: int
    n_columns: int | None
    lowest: int
    highest: int
    dtype: str
    labels: Any
    form: str | None
    reading: Reading | None
    intercept_scale: float
    n_bytes: int
    checksum: int

    def identity(self) -> dict[str, Any]:
        """What the shard is known by when a fit goes on."""
        return {"n_rows": self.n_rows, "dtype": self.dtype, "checksum": self.checksum}


class Trials(NamedTuple):
    """Rows to learn from next: the number of the first one in the shard, and the order."""

    rows: Rows
    targets: Targets
    first_row: int
    order: np.ndarray | None


# ---------------------------------------------------------------------------------------- matrices


@dataclass
class MatrixShard:
    """Rows in memory.

    Attributes
    ----------
    rows : Rows
        Checked.
    y : ndarray or MultilabelTargets
    targets : ndarray, Positives or None
        None: not yet known.
    shuffled : tuple or None
        Seed, passes and order of the latest epoch here, so that the next need not start anew.
    """

    rows: Rows
    y: Any
    targets: Targets | None = None
    shuffled: tuple[int, int, np.ndarray] | None = None
    streams = False

    @classmethod
    def of(cls, X: Any, y: Any) -> MatrixShard:
        """A shard of a matrix and its labels.

        Raises
        ------
        ValueError
            If they can't be used; says where, and what helps.
        """
        from sparsemargin.models import validation as given

        given.check_sparse(y, "y")
        X, many = _as_csr(X), multilabel_targets(y)
        labels = given.check_labels(y) if many is None else many
        if labels.shape[0] != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows, and y {labels.shape[0]} labels.")
        return cls(check_rows(open_rows(X)), labels)

    def survey(self) -> Survey:
        rows, many = self.rows, hasattr(self.y, "form")
        encoder = MultilabelEncoder() if many else LabelEncoder()
        targets = encoder.fit_transform(self.y)
        classes = encoder.classes
        # A code tells of a label only by what this shard's classes are.
        checksum = zlib.crc32(_names(classes).encode())
        for array in (*rows.arrays, *(targets if many else (targets,))):
            checksum = zlib.crc32(np.ascontiguousarray(array).data, checksum)
        n_rows = len(rows.indptr) - 1
        return Survey(
            n_rows, len(rows.data), rows.n_features, LARGEST_INDEX, -1, rows.data.dtype.name,
            classes, self.y.form if many else None, None,
            intercept_scale([rows]),
            sum(array.nbytes for array in rows.arrays), checksum,
        )  # fmt: skip

    def coded(self, classes: np.ndarray, dtype: str) -> MatrixShard:
        """The shard, its labels as places among all classes, and its values of that type."""
        many = hasattr(self.y, "form")
        targets = (MultilabelEncoder if many else LabelEncoder)(classes).transform(self.y)
        rows = self.rows.with_data(self.rows.data.astype(dtype, copy=False))
        return MatrixShard(rows, self.y, targets)

    def epoch(self, seed: int | None, number: int) -> Iterator[Trials]:
        """The rows in the order that epoch `number`, from 1, of a fit on one machine takes."""
        assert self.targets is not None
        order = None if seed is None else self._order(seed, number)
        yield Trials(self.rows, self.targets, 0, order)

    def _order(self, seed: int, number: int) -> np.ndarray:
        """The rows' after so many passes, each of which shuffles the one before."""
        of_seed, done, order = self.shuffled or (seed, 0, np.arange(len(self.rows.indptr) - 1))
        if of_seed != seed or done > number:
            done, order = 0, np.arange(len(order))
        order = order.copy()
        for passes in range(done, number):
            shuffle(order, (seed + passes) % 2**64)
        self.shuffled = seed, number, order
        return order


def _names(classes: np.ndarray) -> str:
    """The classes as text; the same numbers of different types are the same classes."""
    names = (
        label if isinstance(label, str) or label % 1 else int(label) for label in classes.tolist()
    )
    return repr(list(names))


def _as_csr(X: Any) -> Any:
    """X as CSR of types the engine takes; the rows themselves are not yet checked."""
    from scipy.sparse import csr_matrix, issparse
    from sklearn.utils import check_array

    from sparsemargin.models import validation as given
    from sparsemargin.models.validation import check_sparse

    given.refuse_text(X)
    if hasattr(X, "tocsr") and not issparse(X):
        X = X.tocsr()
    if given.is_plain_csr(X):
        return X
    check_sparse(X)
    X = check_array(
        X, accept_sparse="csr", accept_large_sparse=True, dtype=[np.float64, np.float32],
        ensure_min_samples=0, ensure_min_features=0,
    )  # fmt: skip
    return X if issparse(X) else csr_matrix(X)


# ------------------------------------------------------------------------------------------- files


@dataclass
class FileShard:
    """Rows of svmlight files, or of a row cache, read where the worker is.

    Attributes
    ----------
    paths : list of str
    reading : Reading
    cache_dir : str or None
        Where the row cache is kept on the worker; None: beside the first file.
    max_index : int
        Larger indices have no room in memory.
    coder : LabelEncoder or None
        What tells the classes of rows; None: not yet known.
    n_columns : int
        Of all shards.
    checksum : int
        Of the rows that learning began with.
    """

    paths: list[str]
    reading: Reading
    cache_dir: str | None
    max_index: int
    coder: LabelEncoder | None = None
    n_columns: int = 0
    checksum: int = 0
    streams = True

    def __sizeof__(self) -> int:
        # Dask leaves heavy objects where they are, and this one stands for a row cache.
        return _HEAVY

    def reads(self, path: str | os.PathLike[str]) -> bool:
        """Whether a path is of one of the files, as this machine sees them."""
        named = (match for each in self.paths for match in (each, *glob(each, recursive=True)))
        return any(is_one_file(path, other) for other in named)

    @property
    def _is_cache(self) -> bool:
        return len(self.paths) == 1 and self.paths[0].endswith(CACHE_SUFFIX)

    def _open(self) -> tuple[RowCache, int]:
        """The row cache, made first where there is none; and the bytes of what it is made of."""
        if self._is_cache:
            return RowCache.open(self.paths[0]), Path(self.paths[0]).stat().st_size
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
        passes = Passes(Corpus(sources, self.reading, 1, path), self.max_index)
        for _ in passes.first():
            # One that was found is not read for nothing.
            if passes.cache is not None:
                break
        assert passes.cache is not None
        return passes.cache, passes.n_bytes or 0

    def survey(self) -> Survey:
        cache, n_bytes = self._open()
        with cache:
            scale = intercept_scale(cache.blocks()) if cache.n_rows else 0.0
            return Survey(
                cache.n_rows, cache.n_entries, None, cache.lowest, cache.highest,
                cache.dtype.name, LabelTable(cache.label_texts, cache.label_numbers), None,
                Reading(**cache.identity["reading"]), scale, n_bytes, cache.checksum,
            )  # fmt: skip

    def coded(self, coder: LabelEncoder, n_columns: int, survey: Survey) -> FileShard:
        """The shard, with what tells the classes of its rows, as all shards have them."""
        return FileShard(
            self.paths, self.reading, self.cache_dir, self.max_index, coder, n_columns,
            survey.checksum,
        )  # fmt: skip

    def epoch(self, seed: int | None, number: int) -> Iterator[Trials]:
        """The rows in the order that epoch `number`, from 1, of `fit_svmlight` takes: the first as
        they come."""
        cache, _ = self._open()
        with cache:
            self._check_same(cache)
            targets_of = self._targets_of(cache)
            blocks: Iterator[tuple[int, LabelledRows, np.ndarray | None]]
            if seed is None or number == 1:
                blocks = ((i, rows, None) for i, rows in enumerate(cache.blocks()))
            else:
                blocks = shuffled(cache, seed, number)
            for i, block, order in blocks:
                first_row = int(cache.first_rows[i])
                rows = block.with_columns(self.n_columns)
                yield Trials(rows, targets_of(block, first_row), first_row, order)

    def _check_same(self, cache: RowCache) -> None:
        """Refuse to go on with other rows, as another machine, or a later hour, may have."""
        if cache.checksum != self.checksum:
            raise ValueError(
                f"{', '.join(self.paths)}: these {cache.n_rows:,} rows are not those that learning "
                "began with. Every worker must find the same file, and it may not change."
            )

    def _targets_of(self, cache: RowCache) -> Callable[[LabelledRows, int], Targets]:
        """What tells the classes of a block's rows; the number of its first row is for errors."""
        assert self.coder is not None
        # A coder keeps in mind the labels of one table.
        table, coder = LabelTable(cache.label_texts, cache.label_numbers), deepcopy(self.coder)

        def targets_of(block: LabelledRows, first_row: int) -> Targets:
            try:
                return coder.transform_ids(table, block.labels, block.label_start)
            except UnknownLabelError as error:
                raise ValueError(
                    f"{', '.join(self.paths)}, row {first_row + error.row}: the label "
                    f"{error.label} is none of the classes {coder.classes.tolist()}. Pass all "
                    "classes, or leave classes out."
                ) from None

        return targets_of


Shard = MatrixShard | FileShard
