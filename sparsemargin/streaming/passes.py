"""Passes over the rows of a source: from itself, from its row cache, or into one."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from sparsemargin._engine.messages import warn_user
from sparsemargin.models.inputs.labels import LabelTable
from sparsemargin.readers.reading import LARGEST_INDEX
from sparsemargin.readers.row_cache import RowCache, find_cache, mixed, ordered, write_cache
from sparsemargin.readers.rows import LabelledRows, RowSource


def bounds_of(part: tuple[int, int], n_rows: int) -> tuple[int, int]:
    """The first row of one of so many parts of the rows, and the one after its last."""
    which, n_parts = part
    return n_rows * which // n_parts, n_rows * (which + 1) // n_parts


@cache
def _warn_of_no_version(name: str, path: Path) -> None:
    """Say, once in a process, that a row cache can't be used again."""
    warn_user(
        f"{name}: the server sends neither ETag nor Last-Modified, so that nothing shows whether "
        f"the file has changed. The row cache {path} is for this run only."
    )


class Passes:
    """Passes over a source; all but the first need a row cache, which is made at the path `cache`,
    or, if that is True, in a file without a name. Larger indices than `max_index` are refused;
    `table` has the labels met so far, `lowest` and `highest` the indices, as written. Shuffled
    passes mix the rows of many blocks by the seed `mixing`, unless that is None."""

    mixing: int | None = None

    def __init__(self, source: RowSource, max_index: int, cache: Path | bool = False) -> None:
        self.source, self.max_index, self._cache = source, max_index, cache
        self.table = LabelTable()
        self.lowest, self.highest = LARGEST_INDEX, -1
        self.cache: RowCache | None = None
        self.n_rows = 0
        # Of the source, in a pass.
        self.n_bytes = source.size

    @property
    def labels_may_come(self) -> bool:
        """Whether rows not yet read, but readable again, may have labels not in the table."""
        return self.cache is None and self.source.rereadable

    def first(self) -> Generator[LabelledRows]:
        """All rows in their order; where a cache is wanted it is made, or read once it is there."""
        cached = self._cache or self.mixing is not None
        scanned = self.source.scan(self.table, self.max_index)
        with closing(self._cached() if cached else scanned) as blocks:
            for block in blocks:
                self.lowest = min(self.lowest, block.lowest)
                self.highest = max(self.highest, block.highest)
                yield block

    def _cached(self) -> Generator[LabelledRows]:
        identity = {**self.source.identity(), "reading": self.source.reading.settings()}
        path = self._cache if isinstance(self._cache, Path) else None
        if self.cache is None and path is not None:
            self.cache = find_cache(path, identity)
            for name in self.source.unversioned[:1]:
                _warn_of_no_version(name, path)
        if self.cache is None:
            reading = self.source.reading
            # An error's traceback would otherwise keep the scan, and its threads, alive.
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
        """The cache, which is made first where there is none."""
        for _ in self.first():
            # A cache that was found is not read now.
            if self.cache is not None:
                break
        assert self.cache is not None
        return self.cache

    def again(
        self, seed: int | None, epoch: int, part: tuple[int, int] = (0, 1)
    ) -> Iterator[tuple[LabelledRows, np.ndarray | None]]:
        """All rows from the cache, or one of so many parts of them, with the order in which to take
        those of a block; seed None: as they come."""
        cache = self.cache
        assert cache is not None
        self.lowest, self.highest, self.n_rows = cache.lowest, cache.highest, cache.n_rows
        blocks: Iterator[tuple[int, LabelledRows, np.ndarray | None]]
        if seed is not None and self.mixing is not None:
            blocks = mixed(cache, self.mixing, epoch)
        else:
            blocks = ordered(cache, seed, epoch, *bounds_of(part, cache.n_rows))
        for first, rows, order in blocks:
            yield replace(rows, lowest=self.lowest, highest=self.highest, first_row=first), order

    def consumed(self, block: LabelledRows, n_rows: int) -> int:
        """Bytes that the rows of a pass take in the source, block being the last of n_rows."""
        if block.first_row is not None:  # from the cache
            return (self.n_bytes or 0) * n_rows // self.n_rows
        consumed = block.consumed or 0
        self.n_bytes = max(consumed, self.source.size or 0)
        return consumed

    def _check_columns(self, cache: RowCache) -> None:
        """Refuse a cache whose columns go beyond its highest index, as in none that was written."""
        if cache.n_columns > self.source.reading.columns_up_to(cache.highest):
            raise ValueError(
                f"{cache.path} is damaged: its columns go beyond its highest index. Delete it; it "
                "is made again from the text."
            )
