"""Sources of any kind into arrays that grow, each byte being read once."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from sparsemargin.io._loaded import NOTHING_HIGHEST, NOTHING_LOWEST, LabelIds, Loaded
from sparsemargin.io.reading import Reading
from sparsemargin.io.scanning import RowBlock, scan
from sparsemargin.io.sources import Source
from sparsemargin.models.labels import LabelTable


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
        How many scan while the next blocks are read.
    """

    def __init__(self, sources: list[Source], reading: Reading, base: int, n_threads: int) -> None:
        self._reading, self._table = reading, LabelTable()
        self._blocks = scan(sources, reading, self._table, n_threads=n_threads, base=base)
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
        for block in self._blocks:
            self._take(block)
        reading, table = self._reading, self._table
        return Loaded(
            self._data.trimmed(),
            self._indices.trimmed(),
            _from_zero(self._ends),
            [LabelIds(self._labels.trimmed(), table.texts, table.numbers)],
            self._lowest,
            self._highest,
            _from_zero(self._label_ends) if reading.multilabel else None,
            self._query_ids.trimmed() if reading.query_id else None,
        )

    def _take(self, block: RowBlock) -> None:
        self._ends.extend(block.indptr[1:].astype(np.int64) + self._data.size)
        if block.label_start is not None:
            self._label_ends.extend(block.label_start[1:] + self._labels.size)
        if block.query_ids is not None:
            self._query_ids.extend(block.query_ids)
        self._data.extend(block.data)
        self._indices.extend(block.indices)
        self._labels.extend(block.labels)
        self._lowest = min(self._lowest, block.lowest)
        self._highest = max(self._highest, block.highest)


def refuse_first(sources: list[Source], reading: Reading) -> None:
    """Raise a ValueError for the first text that is wrong, if there is any."""
    for _ in scan(sources, reading, LabelTable(), n_threads=1):
        pass


def _from_zero(ends: Growing) -> np.ndarray:
    return np.concatenate([np.zeros(1, dtype=np.int64), ends.trimmed()])
