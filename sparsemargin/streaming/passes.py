"""Passes over the rows of a source, read from the source itself or from its row cache."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from sparsemargin._engine.messages import warn_user
from sparsemargin.models.inputs.label_table import LabelTable
from sparsemargin.readers.cache_order import ordered, shuffled_blocks
from sparsemargin.readers.reading import LARGEST_INDEX
from sparsemargin.readers.row_cache import RowCache, find_cache, write_cache
from sparsemargin.readers.rows import LabelledRows, RowSource

# Largest number of entries and of rows of a sample of the row cache. The entries take 48 MB.
_MOST_ENTRIES, _MOST_ROWS = 1 << 22, 30_000


@cache
def _warn_of_no_version(name: str, path: Path) -> None:
    """Warn, once in a process, that a row cache can't be reused."""
    warn_user(
        f"{name}: the server sends neither ETag nor Last-Modified, so that nothing shows whether "
        f"the file has changed. The row cache {path} is for this run only."
    )


class Passes:
    """Passes over a source. Every pass after the first reads a row cache.

    `cache` is the path of the row cache; a temporary file is used if it is True. Indices larger
    than `max_index` are refused. `table` holds the labels found so far; `lowest` and `highest` are
    the extreme indices, as written in the source. `shuffle_seed` is the seed with which shuffled
    passes mix the rows of many blocks; None: they shuffle the blocks and the rows of each block.
    """

    shuffle_seed: int | None = None

    def __init__(self, source: RowSource, max_index: int, cache: Path | bool = False) -> None:
        self.source, self.max_index, self._cache_place = source, max_index, cache
        self.table = LabelTable()
        self.lowest, self.highest = LARGEST_INDEX, -1
        self.cache: RowCache | None = None
        self.n_rows = 0
        # `_peeked` has the first blocks, which `peek` has read. `_begun` yields the later blocks.
        self._peeked: list[LabelledRows] = []
        self._begun: Generator[LabelledRows] | None = None
        # Bytes of the source that one pass reads; None if unknown.
        self.n_bytes = source.size
        self.started = time.perf_counter()

    @property
    def labels_may_come(self) -> bool:
        """True if unread rows may have new labels, and the source can be read again for them."""
        return self.cache is None and self.source.rereadable

    def peek(self, n_rows: int) -> list[LabelledRows]:
        """Return copies of the first blocks, which have at least `n_rows` rows if the source has so
        many. The next pass in order does not read them again. With a `shuffle_seed`, they are the
        first blocks of a shuffled pass."""
        if self.shuffle_seed is not None:
            self.keep()
            found = list[LabelledRows]()
            for rows, _ in self.again(self.shuffle_seed, 1):
                found.append(rows.copy())
                n_rows -= rows.n_rows
                if n_rows <= 0:
                    break
            return found
        self._begun = self._begun or self._read()
        n_blocks = 0
        while n_rows > 0:
            if n_blocks == len(self._peeked):
                block = next(self._begun, None)
                if block is None:
                    break
                self._peeked.append(block.copy())
            n_rows -= self._peeked[n_blocks].n_rows
            n_blocks += 1
        return self._peeked[:n_blocks]

    def close(self) -> None:
        """End a pass that `peek` has begun."""
        if self._begun is not None:
            self._begun.close()
        self._begun, self._peeked = None, []

    def first(self) -> Generator[LabelledRows]:
        """Yield all rows in order. If a row cache is wanted, write it, or read an existing one."""
        peeked, blocks = self._peeked, self._begun or self._read()
        self._begun, self._peeked = None, []
        with closing(blocks):
            while peeked:
                yield peeked.pop(0)
            yield from blocks

    def _read(self) -> Generator[LabelledRows]:
        cached = self._cache_place or self.shuffle_seed is not None
        scanned = self.source.scan(self.table, self.max_index)
        with closing(self._cached() if cached else scanned) as blocks:
            for block in blocks:
                self.lowest = min(self.lowest, block.lowest)
                self.highest = max(self.highest, block.highest)
                yield block

    def _cached(self) -> Generator[LabelledRows]:
        identity = {**self.source.identity(), "reading": self.source.reading.settings()}
        path = self._cache_place if isinstance(self._cache_place, Path) else None
        if self.cache is None and path is not None:
            self.cache = find_cache(path, identity)
            for name in self.source.unversioned[:1]:
                _warn_of_no_version(name, path)
        if self.cache is None:
            reading = self.source.reading
            # Without closing, the traceback of an error would keep the scan and its threads alive.
            with closing(self.source.scan(self.table, self.max_index)) as blocks:
                self.cache = yield from write_cache(
                    path, identity, reading.dtype, reading.multilabel, blocks, self.table,
                    self.source.files,
                )  # fmt: skip
        else:
            self._check_columns(self.cache)
            self.table.take(self.cache.label_texts, self.cache.label_numbers)
            for rows, _ in self.again(None, 1):
                yield rows

    def keep(self) -> RowCache:
        """Return the row cache, which is written first if there is none."""
        for _ in self.first():
            # The cache exists already, so its rows need not be read now.
            if self.cache is not None:
                break
        assert self.cache is not None
        return self.cache

    def again(
        self, seed: int | None, epoch: int, part: tuple[int, int | None] = (0, None)
    ) -> Iterator[tuple[LabelledRows, np.ndarray | None]]:
        """Yield blocks of the cache, or of its rows from part[0] to before part[1], each with the
        order in which to visit its rows. Without a `seed`, the order is None, and rows keep the
        order of the cache. With a `shuffle_seed`, `part` counts the rows in shuffled order."""
        cache = self.cache
        assert cache is not None
        self.lowest, self.highest, self.n_rows = cache.lowest, cache.highest, cache.n_rows
        blocks: Iterator[tuple[int, LabelledRows, np.ndarray | None]]
        if seed is not None and self.shuffle_seed is not None:
            blocks = shuffled_blocks(cache, self.shuffle_seed, epoch, *part)
        else:
            blocks = ordered(cache, seed, epoch, *part)
        for first, rows, order in blocks:
            yield replace(rows, lowest=self.lowest, highest=self.highest, first_row=first), order

    def sampled(self) -> LabelledRows:
        """Return a random sample of the rows of the cache, in the order of the cache."""
        cache = self.cache
        assert cache is not None
        fitting = int(cache.n_rows * min(1.0, _MOST_ENTRIES / max(1, cache.n_entries)))
        n_rows = min(cache.n_rows, _MOST_ROWS, max(1, fitting))
        drawn = np.random.RandomState(0).choice(cache.n_rows, n_rows, replace=False)
        with closing(cache.take([np.sort(drawn)])) as taken:
            return next(taken)

    def share_of(self, blocks: list[LabelledRows]) -> float:
        """Return the share of the rows that are in the first blocks; 1 if it is not known."""
        n_rows, last, size = sum(block.n_rows for block in blocks), blocks[-1], self.source.size
        if last.first_row is not None:  # the blocks are from the cache
            return n_rows / self.n_rows
        return min(1.0, last.consumed / size) if last.consumed and size else 1.0

    def consumed(self, block: LabelledRows, n_rows: int) -> int:
        """Return the number of bytes of the source that a pass has read after `n_rows` rows, the
        last of which are in `block`."""
        if block.first_row is not None:  # the block is from the cache
            return (self.n_bytes or 0) * n_rows // self.n_rows
        consumed = block.consumed or 0
        self.n_bytes = max(consumed, self.source.size or 0)
        return consumed

    def _check_columns(self, cache: RowCache) -> None:
        """Refuse a damaged cache, whose columns exceed its highest index."""
        if cache.n_columns > self.source.reading.columns_up_to(cache.highest):
            raise ValueError(
                f"{cache.path} is damaged: its columns go beyond its highest index. Delete it; it "
                "is made again from the text."
            )
