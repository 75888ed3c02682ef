"""Counts of rows by label, and the scores that follow from them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sparsemargin._engine.fitting.task import Positives


class LabelScores(NamedTuple):
    """Scores of each label, arrays of shape (n_labels,).

    Attributes
    ----------
    precision, recall, f1 : ndarray
        0 where there is nothing to divide by.
    rows, predicted : ndarray of int64
        Rows that have the label, and rows that were told to have it.
    """

    precision: np.ndarray
    recall: np.ndarray
    f1: np.ndarray
    rows: np.ndarray
    predicted: np.ndarray


class LabelCounts(NamedTuple):
    """Rows by label, arrays of int64 of shape (n_labels,).

    Attributes
    ----------
    right, rows, predicted : ndarray
        Rows that have the label and were told so; rows that have it; rows that were told so.
    """

    right: np.ndarray
    rows: np.ndarray
    predicted: np.ndarray

    def scores(self) -> LabelScores:
        return LabelScores(*_scores(*self), self.rows, self.predicted)

    def averages(self) -> dict[str, float]:
        """Precision, recall and F1: micro, of the counts of all labels together; macro, the mean
        over all labels, 0 where there is nothing to divide by."""
        micro = _scores(*(counts.sum(keepdims=True) for counts in self))
        names = ("precision", "recall", "f1")
        return {
            f"{kind}_{name}": float(values.mean())
            for kind, scores in (("micro", micro), ("macro", _scores(*self)))
            for name, values in zip(names, scores, strict=True)
        }


def _scores(right: Any, rows: Any, predicted: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Precision, recall and F1."""
    return _ratio(right, predicted), _ratio(right, rows), _ratio(2 * right, rows + predicted)


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    zeros = np.zeros(len(numerator))
    return np.divide(numerator, denominator, out=zeros, where=denominator > 0)


class SetCounts:
    """How well sets of labels were told, in memory for the labels.

    Parameters
    ----------
    n_labels : int
        That could be told; rows may have further ones, which can't be.

    Attributes
    ----------
    n_rows, n_exact : int
        Rows, and those of them with the very labels that were told.
    counts : LabelCounts
    """

    def __init__(self, n_labels: int) -> None:
        self.n_rows = self.n_exact = 0
        self.counts = LabelCounts(*np.zeros((3, n_labels), dtype=np.int64))

    @property
    def n_labels(self) -> int:
        return len(self.counts.rows)

    @property
    def hamming_loss(self) -> float:
        """The share of wrong entries in the indicator of what was told."""
        right, rows, predicted = (int(counts.sum()) for counts in self.counts)
        return (rows + predicted - 2 * right) / (self.n_rows * self.n_labels)

    def add(self, own: Positives, told: Positives) -> None:
        """Count the rows that have some labels and were told others."""
        n_rows, known = len(own.starts) - 1, own.labels < self.n_labels
        own_rows, told_rows = (np.repeat(np.arange(n_rows), np.diff(p.starts)) for p in (own, told))
        own_places = own_rows[known] * self.n_labels + own.labels[known]
        told_places = told_rows * self.n_labels + told.labels
        right = np.intersect1d(own_places, told_places, assume_unique=True)
        parts = right % self.n_labels, own.labels[known], told.labels
        for counts, labels in zip(self.counts, parts, strict=True):
            counts += np.bincount(labels, minlength=self.n_labels)
        n_right = np.bincount(right // self.n_labels, minlength=n_rows)
        exact = (n_right == np.diff(own.starts)) & (n_right == np.diff(told.starts))
        self.n_rows += n_rows
        self.n_exact += int(np.count_nonzero(exact))
