"""Detection of rows that are sorted by their labels, an order that harms online learning."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from sparsemargin._engine.fitting.task import Positives
from sparsemargin.models.inputs.training_set import Targets

# Rows count as sorted if their label changes less often than `_SHARE` times the number of changes
# expected in random order. Below `_LEAST_EXPECTED` expected changes this could be chance.
_SHARE, _LEAST_EXPECTED = 0.1, 20.0


class SortedRowsError(Exception):
    """Raised if the rows are sorted by their labels and should be mixed with `seed`."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.seed = seed


@dataclass
class LabelOrder:
    """Counter of the rows of each class, and of changes of the class from row to row."""

    counts: np.ndarray = field(default_factory=partial(np.zeros, 0, dtype=np.int64))
    changes: int = 0
    first: int | None = None
    last: int | None = None

    def add(self, codes: Targets, order: np.ndarray | None = None) -> None:
        """Count the classes of the next rows, which are visited in `order`. Rows with several
        labels are not counted."""
        if isinstance(codes, Positives) or not len(codes):
            return
        codes = codes if order is None else codes[order]
        changes = int(np.count_nonzero(codes[1:] != codes[:-1]))
        self.join(LabelOrder(np.bincount(codes), changes, int(codes[0]), int(codes[-1])))

    def join(self, other: LabelOrder) -> None:
        """Add the counts of `other`, which has seen the rows that follow."""
        if other.first is None:
            return
        counts = np.zeros(max(len(self.counts), len(other.counts)), dtype=np.int64)
        for each in self, other:
            counts[: len(each.counts)] += each.counts
        changes_between = self.last is not None and self.last != other.first
        self.counts, self.changes = counts, self.changes + other.changes + changes_between
        self.first = other.first if self.first is None else self.first
        self.last = other.last

    @property
    def expected(self) -> float:
        """Expected number of changes of the class in random order."""
        n_rows = float(self.counts.sum())
        return n_rows - float(np.square(self.counts / max(n_rows, 1.0)).sum()) * n_rows

    @property
    def is_sorted(self) -> bool:
        """True if rows of one class follow each other far more often than by chance."""
        return self.expected >= _LEAST_EXPECTED and self.changes < _SHARE * self.expected

    def description(self, names: str) -> str:
        """Return the sentence that says that the rows of these files are sorted."""
        return (
            f"{names}: the rows are sorted by their labels, which change {self.changes:,} times "
            f"in {self.counts.sum():,} rows, instead of about {self.expected:,.0f} times as in "
            "random order."
        )

    def warning(self, names: str, remedy: str = "Shuffle the rows first.") -> str:
        """Return the warning for a model that is trained on the sorted rows in their order."""
        return (
            f"{self.description(names)} In this order, the last rows outweigh the others. {remedy}"
        )
