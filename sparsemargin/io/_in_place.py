"""Plain files into whole arrays: parts are counted, then filled side by side.

What the last part holds need not be known beforehand, so it is not counted: it is as long as one
thread's share, which is the first that is filled. It gets room for the densest text there could
be: the system provides memory when it is written to, and what is left over is given back.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sparsemargin._engine.fitting.threads import run_together
from sparsemargin._engine.svmlight.scan import ScanError, Scanner, count
from sparsemargin.io import blocks
from sparsemargin.io._in_stream import refuse_first
from sparsemargin.io._loaded import NOTHING_HIGHEST, NOTHING_LOWEST, LabelIds, Loaded
from sparsemargin.io.blocks import Buffers
from sparsemargin.io.reading import Reading
from sparsemargin.io.scan_errors import located
from sparsemargin.io.sources import Source

# Enough parts for threads to end together, each long enough for its start not to matter.
_PART_BYTES = 1 << 23
_MOST_UNCOUNTED_BYTES = 1 << 28

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
        self._sources, self._reading = sources, reading
        self._base, self._n_threads = base, n_threads
        self._buffers = Buffers()
        self._parts = _split(sources, n_threads)

    def load(self) -> Loaded:
        """Read most of the text twice: to count, and to fill.

        Raises
        ------
        ValueError
            If the text is wrong, with its place; or if a file changes in the meantime.
        """
        counts = [partial(self._count, part) for part in self._parts[:-1]]
        rooms = run_together(counts, self._n_threads) + [_most(part) for part in self._parts[-1:]]
        begins = [Place(0, 0)]
        for room in rooms:
            begins.append(Place(begins[-1].row + room.row, begins[-1].entry + room.entry))
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
        filled = self._fill_all(arrays, begins)
        at, labels = Place(0, 0), []
        for part in filled:
            at, begin = arrays.move_down(part.begin, part.end, at), at
            labels.append(LabelIds.of(arrays.labels[begin.row : at.row], part.scanner))
        for array in arrays.data, arrays.indices:
            array.resize(at.entry, refcheck=False)
        return Loaded(
            arrays.data,
            arrays.indices,
            indptr[: at.row + 1].copy(),
            labels,
            min((part.lowest for part in filled), default=NOTHING_LOWEST),
            max((part.highest for part in filled), default=NOTHING_HIGHEST),
        )

    def _fill_all(self, arrays: Arrays, begins: list[Place]) -> list[Filled]:
        calls = [
            partial(self._fill, part, begin, end, arrays)
            for part, (begin, end) in zip(self._parts, pairwise(begins), strict=True)
        ]
        try:
            filled = run_together(calls[-1:] + calls[:-1], self._n_threads)
        except ValueError:
            for source in self._sources:
                source.check_unchanged()
            # The parts were not read in their order.
            refuse_first(self._sources, self._reading)
            raise
        return filled[1:] + filled[:1]

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


def _split(sources: list[Source], n_threads: int) -> list[Part]:
    """Parts of about _PART_BYTES; the last ones are made one, which is a thread's share."""
    n_bytes = sum(source.size or 0 for source in sources)
    longest = min(_PART_BYTES, max(n_bytes // n_threads, blocks.BLOCK_BYTES))
    parts = [
        Part(source, first, last)
        for source in sources
        for first, last in source.ranges(-(-(source.size or 0) // longest))
    ]
    share = min(n_bytes // n_threads, _MOST_UNCOUNTED_BYTES)
    while len(parts) > 1 and parts[-2].source is parts[-1].source:
        if parts[-1].last - parts[-2].first > share:
            break
        parts[-2:] = [Part(parts[-1].source, parts[-2].first, parts[-1].last)]
    return parts


def _most(part: Part) -> Place:
    """More rows and entries than so many bytes can hold."""
    n_bytes = part.last - part.first
    return Place(n_bytes // 2 + 1, n_bytes // 4 + 1)


def _move(array: np.ndarray, begin: int, end: int, to: int) -> None:
    # NumPy would make a copy where the two places overlap.
    view = memoryview(array)  # type: ignore[arg-type]
    view[to : to + end - begin] = view[begin:end]
