"""Row caches: the rows of svmlight text in binary, for the epochs after the first.

A cache is written while text is scanned for the first time (`RowCacheWriter`), and read through a
memory map block by block (`RowCache`), in order or shuffled. A block's checksum is verified, and
its rows are checked, when it is first used; the engine then runs on them as they lie in the file.
How the file is laid out is in `sparsemargin.io._cache_format`.
"""

from __future__ import annotations

import math
import mmap
import os
import warnings
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from sparsemargin._engine.first_order.trials import shuffle
from sparsemargin.io._cache_format import (
    CACHE_SUFFIX,
    UnusableCache,
    array_bytes,
    damaged,
    padded,
    stored,
    unpack,
)
from sparsemargin.io._cache_rows import fault
from sparsemargin.io._cache_writer import RowCacheWriter
from sparsemargin.io.rows import LabelledRows

__all__ = [
    "RowCache",
    "RowCacheWriter",
    "block_order",
    "default_cache_path",
    "find_cache",
    "shuffled",
]

# With a page that is touched, Linux maps those around it up to such bounds.
_REACH = 1 << 16


class RowCache:
    """A row cache, open for reading; a context manager. Any number of threads may read it.

    Attributes
    ----------
    path : str
    identity : dict
        What the rows come from, and how they were read.
    dtype : numpy.dtype
        Type of the values.
    multilabel : bool
        Whether a row has any number of labels.
    n_blocks, n_rows, n_entries : int
    first_rows : ndarray of shape (n_blocks,)
        Number of each block's first row among all.
    n_columns : int
        Greater by 1 than the highest column; 0 where there is no entry.
    label_texts : list of str
        Labels as written, by their ids.
    label_numbers : list of float
        The same as numbers; NaN for words.
    lowest, highest : int
        Range of the indices as written; 2**63 - 1 and -1 where there are none.
    """

    def __init__(self, path: str, contents: mmap.mmap):
        self._contents: mmap.mmap | None = contents
        footer, self._table, self._bounds = unpack(memoryview(contents), path)
        self._verified = bytearray(len(self._table))
        self.path = path
        self.identity = footer.identity
        self.dtype = np.dtype(footer.dtype)
        self.multilabel = footer.multilabel
        self.n_blocks = len(self._table)
        ends = np.cumsum(self._table["rows"], dtype=np.int64)
        self.first_rows = ends - self._table["rows"]
        self.n_rows = int(self._table["rows"].sum())
        self.n_entries = int(self._table["entries"].sum())
        self.n_columns = footer.n_columns
        self.label_texts = footer.label_texts
        self.label_numbers = [math.nan if n is None else n for n in footer.label_numbers]
        self.lowest, self.highest = footer.lowest, footer.highest

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> RowCache:
        """Open a cache. Its blocks are verified later, when they are first used.

        Raises
        ------
        ValueError
            If the file is no cache, of a newer format, cut short, or its footer is damaged.
        OSError
            If the file can't be read.
        """
        name = os.fsdecode(path)
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise ValueError(f"{name} is not a row cache: it is empty. Name another file.")
            contents = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return cls(name, contents)

    def close(self) -> None:
        """Let go of the file; arrays still in use keep it until they are gone."""
        self._contents = None

    def __enter__(self) -> RowCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def checksum(self) -> int:
        """Of the rows, by those of the blocks, and of their labels."""
        labels = zlib.crc32("\n".join(self.label_texts).encode("utf-8", "surrogateescape"))
        return zlib.crc32(self._table["crc"].tobytes(), labels)

    def block(self, i: int) -> LabelledRows:
        """Block i, as read-only views of the file.

        Raises
        ------
        IndexError
            If i is not from 0 to n_blocks - 1.
        ValueError
            If the block is damaged, or the cache is closed.
        """
        rows = self._rows(i)
        if not self._verified[i]:
            self._verify(i, rows)
        return rows

    def blocks(self, order: Iterable[int] | None = None, ahead: int = 1) -> Iterator[LabelledRows]:
        """Block after block, the next ones being fetched and verified meanwhile.

        The memory map lets go of a block as the next one is asked for, so that a pass over any
        number of them takes little memory; its arrays stay valid.

        Parameters
        ----------
        order : iterable of int, optional
            Which blocks, from the first to the last if not given.
        ahead : int, default=1
            How many are sent for before they are asked for.

        Yields
        ------
        LabelledRows

        Raises
        ------
        ValueError
            As the first damaged block is asked for.
        """
        order = list(range(self.n_blocks) if order is None else map(int, order))
        not_sent_for = iter(order)
        coming: deque[Future[LabelledRows] | None] = deque()
        with ThreadPoolExecutor(ahead + 1) as pool:
            for i in order:
                for j in islice(not_sent_for, ahead + 1 - len(coming)):
                    coming.append(self._send_for(j, pool))
                verified = coming.popleft()
                yield self.block(i) if verified is None else verified.result()
                self._advise(i, mmap.MADV_DONTNEED)

    def _map(self) -> mmap.mmap:
        if self._contents is None:
            raise ValueError(f"The row cache {self.path} is closed.")
        return self._contents

    def _rows(self, i: int) -> LabelledRows:
        if not 0 <= i < self.n_blocks:
            raise IndexError(f"{self.path} has {self.n_blocks} blocks, and no block {i}.")
        file = np.frombuffer(self._map(), np.uint8)
        record, start = self._table[i], int(self._bounds[i])
        index = np.dtype(f"i{record['index_bytes']}")
        types = [self.dtype, index, index, np.dtype(np.int32), np.dtype(np.int64)]
        arrays = []
        sizes = array_bytes(self.dtype.itemsize, self.multilabel, record)
        for kind, size in zip(types, map(int, sizes), strict=False):
            arrays.append(file[start : start + size].view(kind))
            start += padded(size)
        data, indices, indptr, labels, *starts = arrays
        return LabelledRows(data, indices, indptr, labels, starts[0] if starts else None)

    def _verify(self, i: int, rows: LabelledRows) -> None:
        start, end = self._bounds[i : i + 2]
        if zlib.crc32(memoryview(self._map())[start:end]) != self._table[i]["crc"]:
            raise damaged(self.path, f"the checksum of block {i} is wrong")
        wrong = fault(rows, self.n_columns, len(self.label_texts))
        if wrong:
            raise damaged(self.path, f"block {i} has the right checksum, but {wrong}")
        self._verified[i] = True

    def _send_for(self, i: int, pool: ThreadPoolExecutor) -> Future[LabelledRows] | None:
        if not self._verified[i]:
            return pool.submit(self.block, i)
        self._advise(i, mmap.MADV_WILLNEED)
        return None

    def _advise(self, i: int, what: int) -> None:
        """Tell the system what becomes of the pages of a block."""
        start = int(self._bounds[i]) // _REACH * _REACH
        self._map().madvise(what, start, int(self._bounds[i + 1]) - start)


def find_cache(path: str | os.PathLike[str], identity: dict[str, Any]) -> RowCache | None:
    """The cache at `path`, if there is one of this source, read with these settings.

    A damaged one counts as none, with a warning.

    Raises
    ------
    ValueError
        If there is a file that is no cache, and should not be replaced by one.
    OSError
        If there is a file that can't be read.
    """
    try:
        cache = RowCache.open(path)
    except FileNotFoundError:
        return None
    except UnusableCache as error:
        warnings.warn(f"{error.what} It is written anew.", RuntimeWarning, stacklevel=2)
        return None
    if cache.identity == stored(identity):
        return cache
    cache.close()
    return None


def default_cache_path(
    source_paths: Sequence[str | os.PathLike[str]], folder: str | os.PathLike[str] | None = None
) -> Path:
    """Where the cache of these files is kept: beside the first one, or in a folder, where those of
    files of one name from several folders find room.

    Examples
    --------
    >>> default_cache_path(["data/train.svm"]).as_posix()
    'data/train.svm.smcache'
    """
    first = Path(source_paths[0])
    if len(source_paths) == 1 and folder is None:
        return first.with_name(first.name + CACHE_SUFFIX)
    all_paths = b"\0".join(os.fsencode(os.path.abspath(path)) for path in source_paths)
    name = blake2b(all_paths, digest_size=6).hexdigest()
    return Path(folder or first.parent, f"{first.name}.{name}{CACHE_SUFFIX}")


def block_order(n_blocks: int, seed: int) -> np.ndarray:
    """A random permutation of the blocks, the same for the same seed from 0 to 2**64 - 1."""
    return _permutation(n_blocks, seed)


def shuffled(
    cache: RowCache, seed: int, epoch: int
) -> Iterator[tuple[int, LabelledRows, np.ndarray]]:
    """The blocks of a cache in random order, each with a random order of its rows.

    Both depend on `seed` and `epoch` alone.

    Yields
    ------
    i : int
        The block's place in the cache.
    rows : LabelledRows
    order : ndarray of shape (n_rows,), int64
        A permutation of the rows of this block.
    """
    order = block_order(cache.n_blocks, _seed(seed, epoch))
    for i, rows in zip(order, cache.blocks(order), strict=True):
        yield int(i), rows, _permutation(rows.n_rows, _seed(seed, epoch, i))


def _permutation(n: int, seed: int) -> np.ndarray:
    order = np.arange(n, dtype=np.int64)
    shuffle(order, seed)
    return order


def _seed(*key: int) -> int:
    """A seed for each key, without any pattern among them."""
    digest = blake2b(" ".join(map(str, key)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")
