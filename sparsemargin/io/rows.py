"""Rows of CSR matrices with their labels."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from sparsemargin._engine.rows.csr import Csr
from sparsemargin.io.sources import TextBlock

LARGEST_INDEX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class LabelledRows:
    """Rows of a CSR matrix, each with its labels.

    Attributes
    ----------
    data : ndarray of shape (n_entries,), float32 or float64
    indices : ndarray of shape (n_entries,), int32 or int64
        Columns, strictly increasing within a row.
    indptr : ndarray of shape (n_rows + 1,), the type of `indices`
    labels : ndarray of int
        Ids: of each row's label, or, with `label_start`, of the labels of all rows.
    label_start : ndarray of shape (n_rows + 1,), int64, or None
        Where the labels of each row begin; None: each row has one.
    query_ids : ndarray of int64, or None
        Of the rows that have one.
    lowest, highest : int
        Least and largest index, as written; LARGEST_INDEX and -1 where there is none.
    text : TextBlock or None
        Where they come from, if from text; its buffer and their arrays are then good until the
        next rows are asked for.
    first_row : int or None
        Number of the first row in all, where they come from a cache.
    """

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    labels: np.ndarray
    label_start: np.ndarray | None = None
    query_ids: np.ndarray | None = None
    lowest: int = LARGEST_INDEX
    highest: int = -1
    text: TextBlock | None = None
    first_row: int | None = None

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
        indptr, start, queries = self.indptr[first : stop + 1], self.label_start, self.query_ids
        entries, labels = slice(indptr[0], indptr[-1]), slice(first, stop)
        if start is not None:
            start = start[first : stop + 1]
            labels = slice(start[0], start[-1])
            start = start - start[0]
        return replace(
            self, data=self.data[entries], indices=self.indices[entries],
            indptr=indptr - indptr[0], labels=self.labels[labels], label_start=start,
            query_ids=None if queries is None else queries[first:stop],
        )  # fmt: skip

    def copied(self) -> LabelledRows:
        """A copy, which stays good."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        arrays = {name: value.copy() for name, value in values.items() if hasattr(value, "copy")}
        text = self.text and replace(self.text, buffer=self.text.buffer[:])
        return replace(self, **{**arrays, "text": text})
