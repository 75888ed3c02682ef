"""Sources of any kind into arrays that grow, each byte being read once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from numpy.typing import DTypeLike

from sparsemargin._engine._scan import ScanError, ScannedRows, Scanner
from sparsemargin.io._loaded import NOTHING_HIGHEST, NOTHING_LOWEST, LabelIds, Loaded
from sparsemargin.io.blocks import Buffers, TextBlock
from sparsemargin.io.reading import Reading
from sparsemargin.io.scan_errors import located
from sparsemargin.io.sources import Source


class Growing:
    """A vector with room at its end."""

    def __init__(self, dtype: DTypeLike) -> None:
        self._room = np.empty(0, dtype=dtype)
        self.size = 0

    def extend(self, values: np.ndarray) -> None:
        """Append values; where theirs is the wider type, all become of that."""
        self._room = self._room.astype(np.promote_types(self._room.dtype, values.dtype), copy=False)
        end = self.size + len(values)
        if end > len(self._room):
            # The system moves large vectors by renaming pages: nothing is copied.
            self._room.resize(max(end, 5 * len(self._room) // 4), refcheck=False)
        self._room[self.size : end] = values
        self.size = end

    def trimmed(self) -> np.ndarray:
        """All values, without the room; nothing can be appended any more."""
        self._room.resize(self.size, refcheck=False)
        return self._room


class StreamLoader:
    """All rows of any sources.

    Parameters
    ----------
    sources : list of Source
        Files, compressed or not, and standard input.
    reading : Reading
        How they are read.
    base : int
        What is subtracted from an index.
    n_threads : int
        With more than one, a block is scanned while the next one is read.
    """

    def __init__(self, sources: list[Source], reading: Reading, base: int, n_threads: int) -> None:
        self._sources, self._reading, self._ahead = sources, reading, n_threads > 1
        self._scanner = reading.scanner(base=base)
        self._data, self._indices = Growing(reading.dtype), Growing(np.int32)
        self._ends, self._labels = Growing(np.int64), Growing(np.int32)
        self._label_ends, self._query_ids = Growing(np.int64), Growing(np.int64)
        self._lowest, self._highest = NOTHING_LOWEST, NOTHING_HIGHEST

    def load(self) -> Loaded:
        """Read everything.

        Raises
        ------
        ValueError
            If the text is wrong, with its place; or if an archive is damaged.
        """
        for_each_block(self._sources, self._take, ahead=self._ahead)
        reading = self._reading
        return Loaded(
            self._data.trimmed(),
            self._indices.trimmed(),
            _from_zero(self._ends),
            [LabelIds.of(self._labels.trimmed(), self._scanner)],
            self._lowest,
            self._highest,
            _from_zero(self._label_ends) if reading.multilabel else None,
            self._query_ids.trimmed() if reading.query_id else None,
        )

    def _take(self, block: TextBlock) -> None:
        rows = _scan(block, self._scanner, self._reading)
        self._ends.extend(rows.indptr[1:].astype(np.int64) + self._data.size)
        if rows.label_start is not None:
            self._label_ends.extend(rows.label_start[1:] + self._labels.size)
        if rows.query_ids is not None:
            self._query_ids.extend(rows.query_ids)
        self._data.extend(rows.data)
        self._indices.extend(rows.indices)
        self._labels.extend(rows.labels)
        self._lowest = min(self._lowest, rows.lowest)
        self._highest = max(self._highest, rows.highest)


def refuse_first(sources: list[Source], reading: Reading) -> None:
    """Raise a ValueError for the first text that is wrong, if there is any."""
    scanner = reading.scanner()
    for_each_block(sources, lambda block: _scan(block, scanner, reading), ahead=False)


def for_each_block(
    sources: list[Source], take: Callable[[TextBlock], object], *, ahead: bool
) -> None:
    """Call `take` with one block after another, and release them.

    Parameters
    ----------
    sources : list of Source
        What is read.
    take : callable
        Called with a TextBlock.
    ahead : bool
        Whether the next block is read meanwhile. It is `take` that another thread calls, so that
        Ctrl-C need not wait for a pipe.
    """
    buffers = Buffers()
    blocks = (block for source in sources for block in source.blocks(buffers))

    def take_and_release(block: TextBlock) -> None:
        take(block)
        block.release()

    if not ahead:
        for block in blocks:
            take_and_release(block)
        return
    with ThreadPoolExecutor(1) as pool:
        under_way: Future[None] = pool.submit(lambda: None)
        try:
            for block in blocks:
                under_way.result()
                under_way = pool.submit(take_and_release, block)
        except Exception:
            # What is wrong earlier in the text comes first.
            under_way.result()
            raise
        under_way.result()


def _scan(block: TextBlock, scanner: Scanner, reading: Reading) -> ScannedRows:
    try:
        return scanner.scan(block.buffer, block.stop)
    except ScanError as error:
        raise located(error, block, reading) from None


def _from_zero(ends: Growing) -> np.ndarray:
    return np.concatenate([np.zeros(1, dtype=np.int64), ends.trimmed()])
