"""Row caches: the rows of svmlight text in binary form, for the epochs after the first.

A cache is an archive of arrays (`sparsemargin.files.archive`), which ``numpy.load`` can open. The
document ``row_cache.json`` identifies the source. ``0.data``, ``0.indices``, ``0.indptr``,
``0.labels`` and, for several labels per row, ``0.label_start`` are the rows of the first block, and
so on. ``label_texts`` (a list in JSON), ``label_numbers`` (NaN for words) and ``rows.json`` hold
what is known only after the last row. A cache is a single file, because a folder could not be
replaced atomically.

A cache is written while text is scanned for the first time (`write_cache`), and read through a
memory map block by block (`RowCache`), in order or shuffled. The checksums and the rows of a block
are verified when it is first used. The engine then uses the arrays in the map without a copy.
"""

from __future__ import annotations

import json
import mmap
import os
import stat
import warnings
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import DTypeLike

from sparsemargin._engine.rows import csr
from sparsemargin.files import archive as archives
from sparsemargin.files.archive import CACHE_DOCUMENT, Archive, ArchiveWriter
from sparsemargin.files.atomic import replacing, unnamed
from sparsemargin.files.folders import CACHE_SUFFIX
from sparsemargin.files.remote import cache_folder, is_url
from sparsemargin.models.inputs.label_table import LabelTable
from sparsemargin.readers.reading import LARGEST_INDEX, run_ahead
from sparsemargin.readers.rows import LabelledRows, join_blocks

_VERSION = 1
_TEXTS, _NUMBERS, _END = "label_texts", "label_numbers", "rows.json"
# The pages of a block are released from the previous multiple of this many bytes on, because Linux
# maps the aligned 64 KiB around each page that is read.
_REACH = 1 << 16


class UnusableCacheError(ValueError):
    """A row cache that can't be read, and may be replaced."""

    def __init__(self, path: str, trouble: str):
        self.what = f"The row cache {path} {trouble}."
        super().__init__(f"{self.what} Delete it. It is then written again from its text.")


_ARRAYS = ("data", "indices", "indptr", "labels", "label_start")

_FAULTS = {
    csr.NOT_FINITE: "holds a value that is NaN or infinite",
    csr.OUT_OF_RANGE: "holds a column out of range",
    csr.NOT_CANONICAL: "holds a column twice",
}


def _fault(rows: LabelledRows, dtype: np.dtype, n_columns: int, n_labels: int) -> str | None:
    """Return what is wrong with rows of a cache, or None if the engine can use them safely."""
    index_type, start = rows.indices.dtype, rows.label_start
    if index_type not in csr.INDEX_TYPES:
        return f"indices is of type {index_type}, not int32 or int64"
    types = [dtype, index_type, index_type, np.dtype(np.int32), np.dtype(np.int64)]
    for name, array, wanted in zip(_ARRAYS, rows.arrays, types, strict=False):
        if array.dtype != wanted:
            return f"{name} is of type {array.dtype}, not {wanted}"
        if not (array.ndim == 1 and array.flags.c_contiguous and array.flags.aligned):
            return f"{name} is not one-dimensional and contiguous"
    n_entries, n_given = len(rows.data), len(rows.labels)
    per_row = n_given if start is None else len(start) - 1
    if n_entries != len(rows.indices) or per_row != rows.n_rows or per_row < 0:
        return "its arrays differ in the number of entries or of rows"
    if csr.bad_pointer(rows.indptr, n_entries) >= 0 or rows.indptr[-1] != n_entries:
        return "its row pointers do not divide its entries"
    status, row = csr.first_bad_row(rows.with_columns(n_columns), False)
    if status != csr.OK:
        return f"its row {row} {_FAULTS[status]}"
    rises = rows.indices[1:] > rows.indices[:-1]
    inner = rows.indptr[1:-1]
    rises[inner[(inner > 0) & (inner < n_entries)] - 1] = True
    if not rises.all():
        return "it has a row whose columns are not in increasing order"
    if start is not None and (csr.bad_pointer(start, n_given) >= 0 or start[-1] != n_given):
        return "its label pointers do not divide its labels"
    if n_given and not (rows.labels.min() >= 0 and rows.labels.max() < n_labels):
        return "it holds the id of a label that does not exist"
    return None


def _names(i: int, multilabel: bool) -> list[str]:
    """Return the names of the arrays of a block."""
    return [f"{i}.{name}" for name in _ARRAYS[: 5 if multilabel else 4]]


def _wrong_field(document: dict[str, Any], n_bytes: int) -> str | None:
    """Return the name of the first invalid field of the documents, or None if all are valid."""
    texts, numbers, rows = document[_TEXTS], document[_NUMBERS], document["rows"]
    n_labels = len(texts) if type(texts) is list else -1
    lowest = {"lowest": 0, "highest": -1, "n_columns": 0, "n_entries": 0}
    sound = {
        "identity": type(document["identity"]) is dict,
        "dtype": document["dtype"] in ("float32", "float64"),
        "multilabel": type(document["multilabel"]) is bool,
        _TEXTS: n_labels >= 0 and all(type(text) is str for text in texts),
        _NUMBERS: numbers.dtype == np.float64 and numbers.shape == (n_labels,)
        and not np.isinf(numbers).any(),
        "rows": type(rows) is list and all(type(n) is int and n >= 0 for n in rows)
        and sum(rows) <= n_bytes,
        **{name: type(document[name]) is int and least <= document[name] < 2**63
           for name, least in lowest.items()},
    }  # fmt: skip
    return next((name for name, holds in sound.items() if not holds), None)


def write_cache(
    path: str | os.PathLike[str] | None,
    identity: dict[str, Any],
    dtype: DTypeLike,
    multilabel: bool,
    blocks: Iterable[LabelledRows],
    table: LabelTable,
    made_from: Sequence[str] = (),
) -> Generator[LabelledRows, None, RowCache]:
    """Write blocks of rows into a row cache, yield each of them, and return the open `RowCache`.

    When all blocks have been read, the table has the labels of all rows, and the file appears at
    `path`. After an error, or if the consumer stops early, `path` is unchanged. If `path` is None,
    the file has no name and is deleted with the `RowCache`. Only users who may read all files in
    `made_from` may read the cache. Memory use does not grow with the rows, except for some kB per
    block. The returned cache stays valid if its file is replaced later.
    """
    with unnamed() if path is None else replacing(path, made_from) as file:
        # Blocks are written while the consumer works.
        with ArchiveWriter(file) as archive, ThreadPoolExecutor(1) as writer:
            archive.document(CACHE_DOCUMENT, {
                "version": _VERSION, "identity": identity, "dtype": np.dtype(dtype).name,
                "multilabel": multilabel,
            })  # fmt: skip
            n_rows: list[int] = []
            n_columns, n_entries, lowest, highest = 0, 0, LARGEST_INDEX, -1
            for rows in blocks:
                written = writer.submit(_write, archive, _names(len(n_rows), multilabel), rows)
                n_rows.append(rows.n_rows)
                n_entries += len(rows.data)
                n_columns = max(n_columns, int(rows.indices.max(initial=-1)) + 1)
                lowest, highest = min(lowest, rows.lowest), max(highest, rows.highest)
                yield rows
                written.result()  # the next block may replace this one in memory
            raw = json.dumps(table.texts).encode("ascii")
            archive.array(_TEXTS, np.frombuffer(raw, np.uint8))
            archive.array(_NUMBERS, np.array(table.numbers, np.float64))
            archive.document(_END, {
                "lowest": lowest, "highest": highest, "n_columns": n_columns,
                "n_entries": n_entries, "rows": n_rows,
            })  # fmt: skip
        file.flush()
        file.seek(0)
        return RowCache.read("(temporary)" if path is None else os.fsdecode(path), file)


def _write(archive: ArchiveWriter, names: list[str], rows: LabelledRows) -> None:
    for name, array in zip(names, rows.arrays, strict=True):
        archive.array(name, array)


class RowCache:
    """A row cache that is open for reading. It is a context manager, and reading is thread-safe.

    `block_rows` and `first_rows` are the number of rows of each block and the number of its first
    row. `bounds` are the positions of the blocks in the file, and the end of the last block.
    `n_columns` is the highest column plus 1. `label_numbers` are NaN for words. `lowest` and
    `highest` are the range of the indices as written. `checksum` covers the rows and their labels.
    """

    def __init__(self, path: str, archive: Archive, document: dict[str, Any]):
        self.path = path
        self._archive: Archive | None = archive
        self.identity, self.multilabel = document["identity"], document["multilabel"]
        self.dtype = np.dtype(document["dtype"])
        self.n_columns, self.n_entries = document["n_columns"], document["n_entries"]
        self.lowest, self.highest = document["lowest"], document["highest"]
        self.label_texts: list[str] = document[_TEXTS]
        self.label_numbers: list[float] = document[_NUMBERS].tolist()
        self.block_rows = document["rows"]
        self.n_rows, self.n_blocks = sum(self.block_rows), len(self.block_rows)
        self.first_rows = np.cumsum([0, *self.block_rows], dtype=np.int64)[:-1]
        self._blocks: list[LabelledRows | None] = [None] * self.n_blocks
        names = [name for i in range(self.n_blocks) for name in _names(i, self.multilabel)]
        members = [archive.members[f"{name}.npy"] for name in names]
        members.append(archive.members[f"{_TEXTS}.npy"])
        crcs = np.array([member.CRC for member in members], dtype=np.uint32)
        self.checksum = zlib.crc32(crcs.tobytes())
        offsets = [member.header_offset for member in members]
        self.bounds = offsets[:: 5 if self.multilabel else 4]
        if offsets != sorted(offsets):
            raise ValueError("its blocks are in another order")

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> RowCache:
        """Open a cache. Its blocks are verified later, when they are first used.

        A ValueError means that the file is not a row cache. `UnusableCacheError` means that it has
        another format, was cut short or is damaged.
        """
        # Opening a pipe might wait forever.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ValueError(f"{os.fsdecode(path)} is not a regular file. Name another file.")
        with open(path, "rb") as file:
            return cls.read(os.fsdecode(path), file)

    @classmethod
    def read(cls, name: str, file: BinaryIO) -> RowCache:
        """Open a cache from an open file; `name` is used in errors. See `open`."""
        if not archives.begins_with(file.read(archives.HEAD_BYTES), CACHE_DOCUMENT):
            raise ValueError(f"{name} is not a row cache. Name another file.")
        try:
            archive = Archive(file)
            document = archive.document(CACHE_DOCUMENT)
            if document["version"] == _VERSION:
                document |= archive.document(_END)
                texts = archive.array(_TEXTS)
                is_text = texts.dtype == np.uint8 and texts.ndim == 1
                document[_TEXTS] = json.loads(bytes(texts)) if is_text else None
                document[_NUMBERS] = archive.array(_NUMBERS)
                wrong = _wrong_field(document, len(archive.map))
                if wrong:
                    raise ValueError(f"it is wrong at {wrong!r}")
                return cls(name, archive, document)
            version = document["version"]
        except (OSError, MemoryError):
            raise
        except Exception as error:
            raise _damaged(name, str(error) or type(error).__name__) from None
        raise UnusableCacheError(
            name, f"has format {version}, but this version reads only format {_VERSION}"
        )

    def close(self) -> None:
        """Release the file. It stays mapped as long as arrays from it are in use."""
        self._archive = None
        self._blocks = [None] * self.n_blocks

    def __enter__(self) -> RowCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def block(self, i: int) -> LabelledRows:
        """Return block `i` as read-only views of the file. Raise a ValueError if it is damaged."""
        if not 0 <= i < self.n_blocks:
            raise IndexError(f"{self.path} has {self.n_blocks} blocks, but no block {i}.")
        archive, rows = self._opened(), self._blocks[i]
        if rows is None:
            try:
                data, indices, indptr, labels, *start = map(
                    archive.array, _names(i, self.multilabel)
                )
                rows = LabelledRows(data, indices, indptr, labels, start[0] if start else None)
                wrong = _fault(rows, self.dtype, self.n_columns, len(self.label_texts))
                if rows.n_rows != self.block_rows[i]:
                    wrong = wrong or "it has other rows"
            except ValueError as error:
                wrong = str(error)
            if rows is None or wrong:
                raise _damaged(self.path, f"block {i} can't be read: {wrong}")
            self._blocks[i] = rows
        return rows

    def blocks(self, order: Iterable[int] | None = None) -> Iterator[LabelledRows]:
        """Yield all blocks, or those in `order`. The next block is fetched and verified meanwhile.

        The memory map releases the pages of a block when the next one is requested, so that a pass
        over any number of blocks takes little memory. The arrays of a block stay valid.
        """
        order = range(self.n_blocks) if order is None else map(int, order)
        with closing(run_ahead(1, ((i, partial(self._fetched, i)) for i in order))) as results:
            for i, future in results:
                yield future.result()
                self._advise(i, mmap.MADV_DONTNEED)

    def labels(self) -> Iterator[np.ndarray]:
        """Yield the ids of the labels of each block, without reading other arrays."""
        for i in range(self.n_blocks):
            ids = np.full(1, -1)
            with suppress(ValueError):
                ids = self._opened().array(f"{i}.labels")
            valid = ids.dtype == np.int32 and ids.ndim == 1
            if not (
                valid and 0 <= ids.min(initial=0) <= ids.max(initial=0) < len(self.label_texts)
            ):
                ids = self.block(i).labels  # raises the error for a damaged block
            yield ids

    def take(self, numbers: Iterable[np.ndarray]) -> Generator[LabelledRows]:
        """Yield, for each array of increasing row numbers, a copy of these rows as one block.

        The next rows are copied while the consumer works, and pages are released as in `blocks`.
        """
        ends = np.append(self.first_rows, self.n_rows)

        def calls() -> Iterator[tuple[int, Callable[[], LabelledRows]]]:
            for wanted in numbers:
                bounds = np.searchsorted(wanted, ends)
                found = np.flatnonzero(np.diff(bounds)).tolist()
                for left, i in zip(range(len(found))[::-1], found, strict=True):
                    rows = wanted[bounds[i] : bounds[i + 1]] - self.first_rows[i]
                    yield left, partial(self._taken, i, rows)

        parts = list[LabelledRows]()
        with closing(run_ahead(1, calls())) as results:
            for left, future in results:
                parts.append(future.result())
                if not left:
                    joined, parts = join_blocks(parts), []
                    yield joined
                    del joined  # the memory is needed for the next rows

    def _taken(self, i: int, rows: np.ndarray) -> LabelledRows:
        taken = self.block(i).take(rows)
        self._advise(i, mmap.MADV_DONTNEED)
        return taken

    def _fetched(self, i: int) -> LabelledRows:
        if self._blocks[i] is not None:
            self._advise(i, mmap.MADV_WILLNEED)
        return self.block(i)

    def _opened(self) -> Archive:
        if self._archive is None:
            raise ValueError(f"The row cache {self.path} is closed.")
        return self._archive

    def _advise(self, i: int, what: int) -> None:
        """Advise the system how the pages of a block will be used."""
        start = self.bounds[i] // _REACH * _REACH
        self._opened().map.madvise(what, start, self.bounds[i + 1] - start)


def _damaged(path: str, trouble: str) -> UnusableCacheError:
    return UnusableCacheError(path, f"is damaged: {trouble.rstrip('.')}")


def find_cache(path: str | os.PathLike[str], identity: dict[str, Any]) -> RowCache | None:
    """Return the cache at `path` if it was made from the same source with the same settings.

    A damaged cache gives a warning and None. A file that is not a row cache raises a ValueError,
    because it must not be replaced by one.
    """
    try:
        cache = RowCache.open(path)
    except FileNotFoundError:
        return None
    except UnusableCacheError as error:
        warnings.warn(f"{error.what} It is written again.", RuntimeWarning, stacklevel=2)
        return None
    if cache.identity == json.loads(json.dumps(identity)):
        return cache
    cache.close()
    return None


def default_cache_path(
    source_paths: Sequence[str | os.PathLike[str]], folder: str | os.PathLike[str] | None = None
) -> Path:
    """Return the default path of the cache of these files.

    It is next to the first file, or in `folder`. A hash in its name distinguishes files of the same
    name from several folders. Caches of remote files are in the user's cache folder, unless
    `folder` is given.

    Examples
    --------
    >>> default_cache_path(["data/train.svm"]).as_posix()
    'data/train.svm.smcache'
    """
    elsewhere = is_url(source_paths[0])
    first = Path(urlsplit(str(source_paths[0])).path if elsewhere else source_paths[0])
    if elsewhere and folder is None:
        folder = cache_folder()
        folder.mkdir(0o700, parents=True, exist_ok=True)
    if len(source_paths) == 1 and folder is None:
        return first.with_name(first.name + CACHE_SUFFIX)
    all_paths = b"\0".join(
        os.fsencode(path if is_url(path) else os.path.abspath(path)) for path in source_paths
    )
    name = blake2b(all_paths, digest_size=6).hexdigest()
    return Path(folder or first.parent, f"{first.name}.{name}{CACHE_SUFFIX}")
