"""Rows of CSR matrices with their labels, and the interface of their sources."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, Self

import numpy as np

from sparsemargin._engine.rows.csr import Csr
from sparsemargin._engine.rows.parts import gathered, pointers_of
from sparsemargin.models.inputs.label_table import LabelTable
from sparsemargin.readers.label_kinds import LabelKind
from sparsemargin.readers.reading import LARGEST_INDEX, Reading


class Origin(Protocol):
    """The location of the rows of a block, for error messages."""

    def location_of(self, row: int) -> str:
        """Return the file and the line of a row of the block, or a similar description."""

    def copy(self) -> Self:
        """Return a copy that stays valid after the next block has been requested."""
        return self


@dataclass(frozen=True, slots=True)
class Later:
    """The location of the rows of a part of a block, which starts at row `first`."""

    origin: Origin
    first: int

    def location_of(self, row: int) -> str:
        return self.origin.location_of(self.first + row)

    def copy(self) -> Later:
        return Later(self.origin.copy(), self.first)


@dataclass(frozen=True, slots=True)
class LabelledRows:
    """A block of rows of a CSR matrix with their labels.

    Arrays that were read from text are valid until the next block is requested.
    """

    data: np.ndarray  # float32 or float64, shape (n_entries,)
    indices: np.ndarray  # columns, int32 or int64, strictly increasing within a row
    indptr: np.ndarray  # dtype of indices, shape (n_rows + 1,)
    labels: np.ndarray  # label ids: one for each row, or, with label_start, of all rows end to end
    label_start: np.ndarray | None = None  # start of each row's labels, int64, shape (n_rows + 1,)
    lowest: int = LARGEST_INDEX  # lowest and highest index, as written
    highest: int = -1
    consumed: int | None = None  # bytes of the source up to the end of the block, if known
    origin: Origin | None = None
    first_row: int | None = None  # number of the first row, if the block is from a cache
    kept: tuple[list[Any], ...] = ()  # values of the columns that a prediction keeps
    texts: Sequence[str] = ()  # texts of the rows, if they come from files of texts

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1

    @property
    def arrays(self) -> list[np.ndarray]:
        """Arrays of the matrix and of the labels."""
        arrays = [self.data, self.indices, self.indptr, self.labels]
        return arrays if self.label_start is None else [*arrays, self.label_start]

    def with_columns(self, n_features: int) -> Csr:
        """Return the rows as a matrix with `n_features` columns, without labels."""
        return Csr(self.data, self.indices, self.indptr, n_features)

    def part(self, first: int, stop: int) -> LabelledRows:
        """Return the rows from `first` to before `stop` as views."""
        indptr, start = self.indptr[first : stop + 1], self.label_start
        entries, labels = slice(indptr[0], indptr[-1]), slice(first, stop)
        if start is not None:
            start = start[first : stop + 1]
            labels = slice(start[0], start[-1])
            start = start - start[0]
        return replace(
            self, data=self.data[entries], indices=self.indices[entries],
            indptr=indptr - indptr[0], labels=self.labels[labels], label_start=start,
            origin=None if self.origin is None else Later(self.origin, first),
            first_row=None if self.first_row is None else self.first_row + first,
            kept=tuple(values[first:stop] for values in self.kept), texts=self.texts[first:stop],
        )  # fmt: skip

    def take(self, rows: np.ndarray) -> LabelledRows:
        """Return a copy of the rows with these numbers, in this order."""
        indptr, entries = gathered(self.indptr, rows)
        start, labels = self.label_start, rows
        if start is not None:
            start, labels = gathered(start, rows)
        return replace(
            self, data=self.data[entries], indices=self.indices[entries], indptr=indptr,
            labels=self.labels[labels], label_start=start,
        )  # fmt: skip

    def copy(self) -> LabelledRows:
        """Return a copy that stays valid after the next block has been requested."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        copies = {name: value.copy() for name, value in values.items() if hasattr(value, "copy")}
        return replace(self, **copies)

    def location_of(self, row: int) -> str:
        """Return the location of a row for the start of an error message; "" if it is unknown."""
        return "" if self.origin is None else f"{self.origin.location_of(row)}: "


def join_blocks(blocks: Sequence[LabelledRows]) -> LabelledRows:
    """Return a copy of the rows of several blocks as one block."""
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
    """The interface of sources of labelled rows. Each kind of data is a subclass.

    `learn_rows` trains on any source. `names` describes the source in error messages. `reading`
    specifies the dtype of the values, whether rows may have several labels, and the number of
    columns or how columns follow from indices.
    """

    reading: Reading

    #: Description of a row at the end of the error message for a source without rows.
    form = "Each row has a label and features"

    #: True if the source itself warns of nearly as many different labels as rows.
    warns_of_labels = False

    #: True if, after several epochs, probabilities are fitted to held-out rows of the row cache.
    holds_rows_out = True

    @property
    @abstractmethod
    def names(self) -> str: ...

    @property
    def files(self) -> list[str]:
        """Names of the files that are read; empty for rows in memory."""
        return []

    @property
    def unversioned(self) -> list[str]:
        """Names of the files whose changes can't be detected, because they have no version."""
        return []

    @property
    @abstractmethod
    def size(self) -> int | None:
        """Bytes of the whole source; None if not known in advance."""

    @property
    @abstractmethod
    def rereadable(self) -> bool:
        """True if the rows can be read again from the first one."""

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Return values for JSON that change when the rows do. They assign row caches and
        checkpoints to a source."""

    @abstractmethod
    def scan(self, table: LabelTable, max_index: int | None = None) -> Generator[LabelledRows]:
        """Yield the rows in their order, in blocks.

        The labels are ids of the table. New labels are added by `LabelTable.take(texts, numbers)`,
        with NaN as the number of a word. The source checks that values are finite. If the number of
        columns is not known, an index above `max_index` raises a ValueError.
        """

    def all_labels(self) -> np.ndarray:
        """Return the distinct labels of all rows."""
        table = LabelTable()
        for _ in self.scan(table, LARGEST_INDEX):
            pass
        return table.values()

    def label_kind(self) -> LabelKind | None:
        """Return the kind of the first label, or None if labels have no types."""
        return None
