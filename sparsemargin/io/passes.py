"""Passes over the rows of files: from text, from a row cache, or from text into one."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sparsemargin.io.reading import LARGEST_INDEX, Reading
from sparsemargin.io.row_cache import CachedRows, RowCache, RowCacheWriter, find_cache, shuffled
from sparsemargin.io.scanning import RowBlock, scan
from sparsemargin.io.sources import Source
from sparsemargin.models.labels import LabelTable


@dataclass
class Corpus:
    """The files learned from, and how they are read.

    Attributes
    ----------
    sources : list of Source
    reading : Reading
    n_threads : int
        That scan text.
    cache : Path or None
        Where the rows are kept for further epochs and runs; None: nowhere.
    """

    sources: list[Source]
    reading: Reading
    n_threads: int
    cache: Path | None = None

    @property
    def names(self) -> str:
        return ", ".join(source.name for source in self.sources)

    @property
    def size(self) -> int | None:
        """Bytes of all files; None where they are not known beforehand."""
        sizes = [source.size for source in self.sources]
        return None if None in sizes else sum(size or 0 for size in sizes)

    @property
    def rereadable(self) -> bool:
        return all(source.rereadable for source in self.sources)

    def bytes_before(self, source: Source) -> int:
        # The same file may be named twice.
        place = next(i for i, other in enumerate(self.sources) if other is source)
        return sum(other.size or 0 for other in self.sources[:place])

    def identity(self) -> dict[str, Any]:
        """What a cache of these rows is known by."""
        # What can be read only once is never the same again.
        read = None if self.rereadable else time.time_ns()
        return {
            "sources": [source.identity() for source in self.sources],
            "reading": self.reading.settings(), "read": read,
        }  # fmt: skip

    def scan(self, table: LabelTable, max_index: int) -> Generator[RowBlock]:
        yield from scan(
            self.sources, self.reading, table, max_index=max_index, n_threads=self.n_threads
        )
        for source in self.sources:
            source.check_unchanged()

    def all_labels(self) -> np.ndarray:
        """Those of all rows, each once."""
        table = LabelTable()
        for _ in self.scan(table, LARGEST_INDEX):
            pass
        return table.values()


class Passes:
    """Passes over a corpus; all but the first need its cache.

    Parameters
    ----------
    corpus : Corpus
    max_index : int
        Larger indices are refused.

    Attributes
    ----------
    table : LabelTable
        The labels met so far.
    lowest, highest : int
        Range of the indices met so far, as written.
    """

    def __init__(self, corpus: Corpus, max_index: int) -> None:
        self.corpus, self.max_index = corpus, max_index
        self.table = LabelTable()
        self.lowest, self.highest = LARGEST_INDEX, -1
        self.cache: RowCache | None = None
        self.n_rows = 0
        # Of text, in a pass.
        self.n_bytes = corpus.size

    @property
    def labels_may_come(self) -> bool:
        """Whether rows not yet read, but readable again, may have labels not in the table."""
        return self.cache is None and self.corpus.rereadable

    def first(self) -> Generator[RowBlock]:
        """All rows in their order; where a cache is wanted it is made, or read if it is there."""
        corpus = self.corpus
        if corpus.cache is None:
            yield from self._watched(corpus.scan(self.table, self.max_index))
            return
        identity = corpus.identity()
        self.cache = find_cache(corpus.cache, identity)
        if self.cache is None:
            yield from self._write(corpus.cache, identity)
            self.cache = find_cache(corpus.cache, identity)
            if self.cache is None:
                raise ValueError(
                    f"{corpus.cache} was replaced by another run. Pass another cache path."
                )
        else:
            self._check_columns(self.cache)
            self.table.take(self.cache.label_texts, self.cache.label_numbers)
            for rows, _ in self.again(None, 1):
                yield rows

    def again(self, seed: int | None, epoch: int) -> Iterator[tuple[RowBlock, np.ndarray | None]]:
        """All rows from the cache, with the order in which to take those of a block; seed None:
        as they come."""
        cache = self.cache
        assert cache is not None
        self.lowest, self.highest, self.n_rows = cache.lowest, cache.highest, cache.n_rows
        if seed is None:
            return (
                (self._as_block(rows, int(cache.first_rows[i])), None)
                for i, rows in enumerate(cache.blocks())
            )
        return (
            (self._as_block(rows, int(cache.first_rows[i])), order)
            for i, rows, order in shuffled(cache, seed, epoch)
        )

    def consumed(self, block: RowBlock, n_rows: int) -> int:
        """Bytes that the rows of a pass take in the files, block being the last of n_rows."""
        if block.text is not None:
            consumed = self.corpus.bytes_before(block.text.source) + block.text.consumed
            self.n_bytes = max(consumed, self.corpus.size or 0)
            return consumed
        return (self.n_bytes or 0) * n_rows // self.n_rows

    def _write(self, path: Path, identity: dict[str, Any]) -> Iterator[RowBlock]:
        reading = self.corpus.reading
        with RowCacheWriter(path, identity, reading.dtype, reading.multilabel) as writer:
            for block in self._watched(self.corpus.scan(self.table, self.max_index)):
                writer.append(
                    block.data, block.indices, block.indptr, block.labels, block.label_start
                )
                yield block
            writer.finish(self.table.texts, self.table.numbers, self.lowest, self.highest)

    def _check_columns(self, cache: RowCache) -> None:
        """Refuse a cache whose columns go beyond its highest index: it was not made so."""
        if cache.n_columns > self.corpus.reading.columns_up_to(cache.highest):
            raise ValueError(
                f"{cache.path} is damaged: its columns go beyond its highest index. Delete it; it "
                "is made again from the text."
            )

    def _watched(self, blocks: Iterator[RowBlock]) -> Iterator[RowBlock]:
        for block in blocks:
            self.lowest = min(self.lowest, block.lowest)
            self.highest = max(self.highest, block.highest)
            yield block

    def _as_block(self, rows: CachedRows, first_row: int) -> RowBlock:
        return RowBlock(*rows, self.lowest, self.highest, first_row=first_row)
