"""Rows from text, scanned by threads, in the order of the text."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from sparsemargin._engine.svmlight.scan import ScanError, Scanner
from sparsemargin.io.blocks import Buffers, TextBlock
from sparsemargin.io.reading import Reading
from sparsemargin.io.scan_errors import located
from sparsemargin.io.sources import Source
from sparsemargin.models.labels import LabelTable


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Some rows of a file, in arrays that are good until the next block is asked for.

    Attributes
    ----------
    data, indices, indptr : ndarray
        The rows as CSR.
    labels : ndarray, int32
        Ids in the label table: of each row, or, with `label_start`, of all labels of all rows.
    label_start : ndarray of shape (n_rows + 1,), int64, or None
    lowest, highest : int
        Least and largest index, as written; 2**63 - 1 and -1 where there is none.
    text : TextBlock or None
        Where they come from, if from text.
    query_ids : ndarray of int64, or None
        If the reading asks for them: of the rows that have one.
    first_row : int or None
        Number of the first row in all, where they come from a cache.
    """

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    labels: np.ndarray
    label_start: np.ndarray | None
    lowest: int
    highest: int
    text: TextBlock | None = None
    query_ids: np.ndarray | None = None
    first_row: int | None = None

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1

    def kept(self) -> RowBlock:
        """A copy, which stays good."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        arrays: dict[str, Any] = {
            name: value.copy() for name, value in values.items() if isinstance(value, np.ndarray)
        }
        text = self.text and replace(self.text, buffer=bytearray(self.text.buffer))
        return replace(self, text=text, **arrays)


def scan(
    sources: Iterable[Source],
    reading: Reading,
    table: LabelTable,
    *,
    n_threads: int,
    max_index: int | None = None,
    base: int | None = None,
) -> Iterator[RowBlock]:
    """The rows of all sources, block by block.

    Parameters
    ----------
    sources : iterable of Source
    reading : Reading
    table : LabelTable
        Takes in the labels.
    n_threads : int
        That scan while the consumer is at work; the blocks are the same for any number.
    max_index : int, optional
        The largest index that memory has room for.
    base : int, optional
        What is subtracted from an index, if not what the reading says.

    Yields
    ------
    RowBlock

    Raises
    ------
    ValueError
        Names the file, the line and the column of what can't be read, and what helps.
    """
    idle = [reading.scanner(base=base, max_index=max_index) for _ in range(n_threads + 1)]
    under_way: deque[tuple[Scanner, TextBlock, Future]] = deque()
    pool = ThreadPoolExecutor(n_threads)

    def finish() -> Iterator[RowBlock]:
        scanner, text, future = under_way.popleft()
        try:
            rows = future.result()
        except ScanError as error:
            raise located(error, text, reading, max_index=max_index) from None
        yield _as_block(rows, text, table, scanner)
        idle.append(scanner)
        text.release()

    try:
        blocks = _blocks(sources)
        while True:
            try:
                text = next(blocks, None)
            except Exception:
                # What is wrong earlier in the text comes first.
                while under_way:
                    yield from finish()
                raise
            if text is None:
                break
            if not idle:
                yield from finish()
            scanner = idle.pop()
            under_way.append((scanner, text, pool.submit(scanner.scan, text.buffer, text.stop)))
        while under_way:
            yield from finish()
    finally:
        pool.shutdown(cancel_futures=True)


def _blocks(sources: Iterable[Source]) -> Iterator[TextBlock]:
    buffers = Buffers()
    for source in sources:
        yield from source.blocks(buffers)


def _as_block(rows: Any, text: TextBlock, table: LabelTable, scanner: Scanner) -> RowBlock:
    return RowBlock(
        rows.data, rows.indices, rows.indptr, table.ids_of(scanner, rows.labels),
        rows.label_start, rows.lowest, rows.highest, text, rows.query_ids,
    )  # fmt: skip
