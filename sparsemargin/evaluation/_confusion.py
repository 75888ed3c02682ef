"""How often rows of one class are taken for another, and the scores that follow from it."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np


class ClassScores(NamedTuple):
    """Scores of each class, arrays of shape (n_classes,).

    Attributes
    ----------
    precision, recall, f1 : ndarray
        0 where there is nothing to divide by.
    rows, predicted : ndarray of int64
        Rows of the class, and rows taken for it.
    """

    precision: np.ndarray
    recall: np.ndarray
    f1: np.ndarray
    rows: np.ndarray
    predicted: np.ndarray


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

    def scores(self) -> ClassScores:
        """Scores of each class."""
        right, rows, predicted = np.zeros((3, self.n_classes), dtype=np.int64)
        for (own, other), count in self.pairs.items():
            rows[own] += count
            predicted[other] += count
            right[own] += count * (own == other)
        return ClassScores(
            _ratio(right, predicted), _ratio(right, rows), _ratio(2 * right, rows + predicted),
            rows, predicted,
        )  # fmt: skip

    def macro_f1(self) -> float:
        """Mean F1 of the classes that occur, in the rows or in the predictions."""
        scores = self.scores()
        occurs = (scores.rows > 0) | (scores.predicted > 0)
        return float(scores.f1[occurs].mean())


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    zeros = np.zeros(len(numerator))
    return np.divide(numerator, denominator, out=zeros, where=denominator > 0)
