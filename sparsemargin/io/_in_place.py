"""Plain files into arrays of the right size: parts are counted, then filled side by side."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sparsemargin._engine._scan import ScanError, Scanner, count
from sparsemargin._engine.threads import run_together
from sparsemargin.io import blocks
from sparsemargin.io._loaded import NOTHING_HIGHEST, NOTHING_LOWEST, LabelIds, Loaded
from sparsemargin.io.blocks import Buffers
from sparsemargin.io.reading import Reading
from sparsemargin.io.scan_errors import located
from sparsemargin.io.sources import Source

# Enough parts for threads to end together, each long enough for its start not to matter.
_PART_BYTES = 1 << 23

_LARGEST_INT32 = 2**31 - 1


class Place(NamedTuple):
    """A place in the arrays, or a distance between two."""

    row: int
    entry: int


class Part(NamedTuple):
    """Some lines of a file."""

    source: Source
    first: int
    last: int


class Arrays(NamedTuple):
    """What is filled: `ends` is indptr without its first element."""

    data: np.ndarray
    indices: np.ndarray
    ends: np.ndarray
    labels: np.ndarray

    def until(self, end: Place) -> Arrays:
        """The arrays up to there."""
        return Arrays(
            self.data[: end.entry],
            self.indices[: end.entry],
            self.ends[: end.row],
            self.labels[: end.row],
        )

    def move_down(self, begin: Place, end: Place, to: Place) -> Place:
        """Close the gap between `to` and the rows from `begin` to `end`: where they end then."""
        if begin.entry > to.entry:
            _move(self.data, begin.entry, end.entry, to.entry)
            _move(self.indices, begin.entry, end.entry, to.entry)
            self.ends[begin.row : end.row] -= begin.entry - to.entry
        if begin.row > to.row:
            _move(self.ends, begin.row, end.row, to.row)
            _move(self.labels, begin.row, end.row, to.row)
        return Place(to.row + end.row - begin.row, to.entry + end.entry - begin.entry)


class Filled(NamedTuple):
    """Where the rows of a part lie, and what the scanner found."""

    begin: Place
    end: Place
    lowest: int
    highest: int
    scanner: Scanner


class _TooWide(Exception):
    """An index asks for int64."""


class InPlaceLoader:
    """All rows of plain files, one label each.

    Parameters
    ----------
    sources : list of Source
        The files.
    reading : Reading
        How they are read.
    base : int
        What is subtracted from an index.
    n_threads : int
        How many parts are read at a time.
    """

    def __init__(self, sources: list[Source], reading: Reading, base: int, n_threads: int) -> None:
        self._reading, self._base, self._n_threads = reading, base, n_threads
        self._buffers = Buffers()
        self._parts = [
            Part(source, first, last)
            for source in sources
            for first, last in source.ranges(_n_parts(source.size or 0, n_threads))
        ]

    def load(self) -> Loaded:
        """Read everything twice: to count, and to fill.

        Raises
        ------
        ValueError
            If the text is wrong, with its place; or if a file changes in the meantime.
        """
        begins = [Place(0, 0)]
        for size in run_together([partial(self._count, p) for p in self._parts], self._n_threads):
            begins.append(Place(begins[-1].row + size.row, begins[-1].entry + size.entry))
        if begins[-1].entry <= _LARGEST_INT32:
            try:
                return self._load(begins, np.int32)
            except _TooWide:
                pass
        return self._load(begins, np.int64)

    def _count(self, part: Part) -> Place:
        """How many rows and entries a part has at the most."""
        rows = entries = 0
        for block in part.source.blocks(self._buffers, part.first, part.last):
            n_lines, n_colons = count(block.buffer, block.stop)
            rows, entries = rows + n_lines, entries + n_colons
            block.release()
        return Place(rows, entries)

    def _load(self, begins: list[Place], index_type: type) -> Loaded:
        room = begins[-1]
        indptr: np.ndarray = np.zeros(room.row + 1, dtype=index_type)
        arrays = Arrays(
            np.empty(room.entry, dtype=self._reading.dtype),
            np.empty(room.entry, dtype=index_type),
            indptr[1:],
            np.empty(room.row, dtype=np.int32),
        )
        calls = [
            partial(self._fill, part, begin, end, arrays)
            for part, (begin, end) in zip(self._parts, pairwise(begins), strict=True)
        ]
        filled = run_together(calls, self._n_threads)
        at, labels = Place(0, 0), []
        for part in filled:
            at, begin = arrays.move_down(part.begin, part.end, at), at
            labels.append(LabelIds.of(arrays.labels[begin.row : at.row], part.scanner))
        return Loaded(
            arrays.data[: at.entry],
            arrays.indices[: at.entry],
            indptr[: at.row + 1],
            labels,
            min((part.lowest for part in filled), default=NOTHING_LOWEST),
            max((part.highest for part in filled), default=NOTHING_HIGHEST),
        )

    def _fill(self, part: Part, begin: Place, end: Place, arrays: Arrays) -> Filled:
        """Scan a part into its place in the arrays."""
        scanner = self._reading.scanner(base=self._base)
        room = arrays.until(end)
        at, lowest, highest = begin, NOTHING_LOWEST, NOTHING_HIGHEST
        for block in part.source.blocks(self._buffers, part.first, part.last):
            try:
                row, entry, low, high = scanner.fill(block.buffer, block.stop, *room, *at)
            except ScanError as error:
                if error.code == "index_too_large" and self._may_be_wider(arrays.indices.dtype):
                    raise _TooWide from None
                raise located(error, block, self._reading) from None
            except ValueError:
                # More than was counted.
                raise part.source.changed() from None
            at, lowest, highest = Place(row, entry), min(lowest, low), max(highest, high)
            block.release()
        return Filled(begin, at, lowest, highest, scanner)

    def _may_be_wider(self, index_type: np.dtype) -> bool:
        """Whether an index that is too large for the arrays may be right nevertheless."""
        return index_type == np.int32 and self._reading.max_index > _LARGEST_INT32


def _n_parts(n_bytes: int, n_threads: int) -> int:
    wanted = min(_PART_BYTES, max(n_bytes // n_threads, blocks.BLOCK_BYTES))
    return -(-n_bytes // wanted)


def _move(array: np.ndarray, begin: int, end: int, to: int) -> None:
    # NumPy would make a copy where the two places overlap.
    view = memoryview(array)  # type: ignore[arg-type]
    view[to : to + end - begin] = view[begin:end]
