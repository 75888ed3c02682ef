"""Whole data sets as they come from the scanners."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sparsemargin._engine.svmlight.scan import Scanner

NOTHING_LOWEST = 2**63 - 1
NOTHING_HIGHEST = -1


class LabelIds(NamedTuple):
    """Labels of some rows, as the scanner numbered them."""

    ids: np.ndarray
    texts: list[str]
    numbers: list[float]

    @classmethod
    def of(cls, ids: np.ndarray, scanner: Scanner) -> LabelIds:
        return cls(ids, scanner.label_texts, scanner.label_numbers)


class Loaded(NamedTuple):
    """All rows.

    Attributes
    ----------
    data, indices, indptr : ndarray
        CSR; columns are indices as written, less what the scanner was told to subtract.
    labels : list of LabelIds
        Those of the rows in order, each part by a scanner of its own.
    lowest, highest : int
        Indices as written; NOTHING_LOWEST and NOTHING_HIGHEST where there are none.
    label_start : ndarray or None
        For many labels a row: where those of each row begin, and the end.
    query_ids : ndarray or None
        If they were asked for.
    """

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    labels: list[LabelIds]
    lowest: int
    highest: int
    label_start: np.ndarray | None = None
    query_ids: np.ndarray | None = None


def label_values(parts: list[LabelIds]) -> np.ndarray:
    """The labels: float64 if all are numbers, else all as text, as it was written first."""
    numbers = [np.array(part.numbers, dtype=np.float64) for part in parts]
    if not any(np.isnan(values).any() for values in numbers):
        return np.concatenate(
            [values[part.ids] for part, values in zip(parts, numbers, strict=True)]
        )
    first: dict[float | str, str] = {}
    words = [
        [
            first.setdefault(text if math.isnan(number) else number, text)
            for text, number in zip(part.texts, part.numbers, strict=True)
        ]
        for part in parts
    ]
    return np.concatenate(
        [np.array(texts, dtype=np.str_)[part.ids] for part, texts in zip(parts, words, strict=True)]
    )
