"""Rows of CSR matrices with their labels, and what a source of them has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, Self

import numpy as np

from sparsemargin._engine.rows.csr import Csr
from sparsemargin._engine.rows.parts import gathered, pointers_of
from sparsemargin.models.inputs.labels import LabelTable
from sparsemargin.readers.reading import LARGEST_INDEX, Reading


class Origin(Protocol):
    """Where the rows of a block come from, for errors to tell."""

    def place_of(self, row: int) -> str:
        """The file and the line, or whatever finds it, of a row of the block."""

    def copied(self) -> Self:
        """A copy, which stays good when the next block has been asked for."""


@dataclass(frozen=True, slots=True)
class LabelledRows:
    """A block of rows of a CSR matrix, each with its labels.

    Arrays that come from text are good until the next block is asked for.
    """

    data: np.ndarray  # float32 or float64, one an entry
    indices: np.ndarray  # columns, int32 or int64, strictly increasing within a row
    indptr: np.ndarray  # of the type of indices, shape (n_rows + 1,)
    labels: np.ndarray  # ids: of each row's label, or, with label_start, of the labels of all rows
    label_start: np.ndarray | None = None  # where each row's begin, int64, shape (n_rows + 1,)
    lowest: int = LARGEST_INDEX  # of all indices, as written
    highest: int = -1
    consumed: int | None = None  # bytes of the source up to the end of the block, if known
    origin: Origin | None = None
    first_row: int | None = None  # number of the first one, if they come from a cache

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1

    @property
    def arrays(self) -> list[np.ndarray]:
        """Those of the matrix and of the labels."""
        arrays = [self.data, self.indices, self.indptr, self.labels]
        return arrays if self.label_start is None else [*arrays, self.label_start]

    def with_columns(self, n_features: int) -> Csr:
        """The rows by themselves, of so many columns."""
        return Csr(self.data, self.indices, self.indptr, n_features)

    def part(self, first: int, stop: int) -> LabelledRows:
        """The rows from the first to before another, in views."""
        indptr, start = self.indptr[first : stop + 1], self.label_start
        entries, labels = slice(indptr[0], indptr[-1]), slice(first, stop)
        if start is not None:
            start = start[first : stop + 1]
            labels = slice(start[0], start[-1])
            start = start - start[0]
        return replace(
            self, data=self.data[entries], indices=self.indices[entries],
            indptr=indptr - indptr[0], labels=self.labels[labels], label_start=start,
        )  # fmt: skip

    def taken(self, rows: np.ndarray) -> LabelledRows:
        """A copy of the rows with these numbers, in their order."""
        indptr, entries = gathered(self.indptr, rows)
        start, labels = self.label_start, rows
        if start is not None:
            start, labels = gathered(start, rows)
        return replace(
            self, data=self.data[entries], indices=self.indices[entries], indptr=indptr,
            labels=self.labels[labels], label_start=start,
        )  # fmt: skip

    def copied(self) -> LabelledRows:
        """A copy, which stays good."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        arrays = {name: value.copy() for name, value in values.items() if hasattr(value, "copy")}
        return replace(self, **arrays, origin=self.origin and self.origin.copied())

    def place_of(self, row: int) -> str:
        """Where a row comes from, as the beginning of an error's message."""
        return "" if self.origin is None else f"{self.origin.place_of(row)}: "


def joined(blocks: Sequence[LabelledRows]) -> LabelledRows:
    """The rows of blocks, one block's after the other's, in copies."""
    data, indices, labels = (
        np.concatenate([getattr(block, name) for block in blocks])
        for name in ("data", "indices", "labels")
    )
    lengths = np.concatenate([np.diff(block.indptr) for block in blocks])
    starts = [np.diff(block.label_start) for block in blocks if block.label_start is not None]
    return LabelledRows(
        data, indices, pointers_of(lengths, indices.dtype), labels,
        pointers_of(np.concatenate(starts), np.dtype(np.int64)) if starts else None,
    )  # fmt: skip


class RowSource(ABC):
    """Where labelled rows come from. Each kind of data is a subclass, from which everything that
    learns from a stream can then learn.

    `names` is what errors call the source. `reading` tells the type of the values, whether rows
    have any number of labels, and how many columns there are, or how indices become columns.
    """

    reading: Reading

    #: What a row looks like, for errors of sources that have none.
    form = "Each row has a label and features"

    #: Whether reading the rows already warns of labels that hardly repeat.
    warns_of_labels = False

    @property
    @abstractmethod
    def names(self) -> str: ...

    @property
    def files(self) -> list[str]:
        """Names of the files that are read; none for rows in memory."""
        return []

    @property
    def unversioned(self) -> list[str]:
        """Names of the files of which nothing tells whether they have changed."""
        return []

    @property
    @abstractmethod
    def size(self) -> int | None:
        """Bytes of all of it; None where that is not known beforehand."""

    @property
    @abstractmethod
    def rereadable(self) -> bool:
        """Whether the rows can be had again from the first one on."""

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """What changes when the rows do, as JSON can hold it: by it row caches and checkpoints are
        known to be of this source."""

    @abstractmethod
    def scan(self, table: LabelTable, max_index: int | None = None) -> Generator[LabelledRows]:
        """The rows in their order, block by block.

        The labels are ids of the table, which takes in new ones by `LabelTable.take(texts,
        numbers)`, numbers being NaN for words. That values are finite, the source checks. Where
        the number of columns is not known, an index above `max_index` is a ValueError.
        """

    def all_labels(self) -> np.ndarray:
        """Those of all rows, each once."""
        table = LabelTable()
        for _ in self.scan(table, LARGEST_INDEX):
            pass
        return table.values()
