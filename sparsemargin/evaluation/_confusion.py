"""How often rows of one class are taken for another."""

from __future__ import annotations

from collections import Counter

import numpy as np

from sparsemargin.evaluation._label_counts import LabelCounts


class Confusion:
    """Counts of rows by class and predicted class, in memory for the pairs that occur.

    Parameters
    ----------
    n_classes : int

    Attributes
    ----------
    pairs : Counter
        Rows of each (class, predicted class), places both.
    """

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes
        self.pairs: Counter[tuple[int, int]] = Counter()

    def add(self, codes: np.ndarray, predicted: np.ndarray) -> None:
        """Count rows of these classes and predicted classes."""
        pairs, counts = np.unique(
            codes.astype(np.int64) * self.n_classes + predicted, return_counts=True
        )
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
            self.pairs[divmod(pair, self.n_classes)] += count

    @property
    def n_rows(self) -> int:
        return sum(self.pairs.values())

    @property
    def n_right(self) -> int:
        return sum(count for (own, predicted), count in self.pairs.items() if own == predicted)

    def counts(self) -> LabelCounts:
        """Rows by class."""
        right, rows, predicted = np.zeros((3, self.n_classes), dtype=np.int64)
        for (own, other), count in self.pairs.items():
            rows[own] += count
            predicted[other] += count
            right[own] += count * (own == other)
        return LabelCounts(right, rows, predicted)
