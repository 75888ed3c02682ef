"""Labels as text has them, and the classes they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan
from typing import Any

import numpy as np

from sparsemargin._engine.fitting.task import Positives
from sparsemargin.io.shown import shown

# Whole numbers beyond are written with an exponent.
_LARGEST_IN_FULL = 1e16


class LabelTable:
    """All labels met so far, numbered in the order of their first rows.

    Labels that are the same number, such as 1 and +1, are one label.

    Attributes
    ----------
    texts : list of str
        As first written.
    numbers : list of float
        NaN for words.
    """

    def __init__(self, texts: Any = (), numbers: Any = ()) -> None:
        self.texts: list[str] = []
        self.numbers: list[float] = []
        self._ids: dict[float | str, int] = {}
        self._places: dict[int, np.ndarray] = {}
        self.take(texts, numbers)

    @classmethod
    def of_classes(cls, classes: np.ndarray) -> LabelTable:
        """The classes, each one's id being its place; True and False are 1 and 0 as well.

        Raises
        ------
        ValueError
            If files can't tell two of them apart.
        """
        labels, table = classes.tolist(), cls()
        texts = [label_text(label) for label in labels]
        ids = table.take(texts, [number_of(label) for label in labels])
        same = np.flatnonzero(ids != np.arange(len(ids)))
        if len(same):
            raise ValueError(
                f"The classes {labels[ids[same[0]]]!r} and {labels[same[0]]!r} are equal as "
                "numbers, by which labels in files are told apart. Rename one of them."
            )
        if classes.dtype.kind == "b":
            table._ids.update(zip(texts, ids.tolist(), strict=True))
        return table

    def take(self, texts: Any, numbers: Any) -> np.ndarray:
        """The table's ids of the labels, new ones taken in; shape (n_labels,)."""
        ids = np.empty(len(texts), dtype=np.int32)
        for i, (text, number) in enumerate(zip(texts, numbers, strict=True)):
            key = _key(text, number)
            if key not in self._ids:
                self._ids[key] = len(self.texts)
                self.texts.append(text)
                self.numbers.append(number)
            ids[i] = self._ids[key]
        return ids

    def ids_of(self, scanner: Any, labels: np.ndarray) -> np.ndarray:
        """The table's ids of what a scanner, whose own numbering goes on, has numbered so."""
        known = self._places.get(id(scanner), np.empty(0, dtype=np.int32))
        if len(labels) and labels.max() >= len(known):
            new = self.take(*scanner.labels_from(len(known)))
            known = self._places[id(scanner)] = np.concatenate([known, new])
        return known[labels]

    def values(self) -> np.ndarray:
        """The labels: float64 where all are numbers, as `load_svmlight` gives them, else str."""
        if any(map(isnan, self.numbers)):
            return np.array(self.texts)
        return np.array(self.numbers)

    def short_texts(self, start: int = 0) -> list[str]:
        """The labels from id `start` on, numbers as `label_text` has them."""
        given = zip(self.texts[start:], self.numbers[start:], strict=True)
        return [text if isnan(number) else label_text(number) for text, number in given]

    def find(self, label: Any) -> int:
        """The id of a label given as a number or as text; -1: not met so far."""
        return self._ids.get(_key(label), -1)


def as_labels(classes: np.ndarray) -> np.ndarray:
    """Classes as files have them: float64, or str."""
    return classes.astype(np.str_ if classes.dtype.kind in "UO" else np.float64)


def number_of(label: Any) -> float:
    """What a label is as a number; NaN for words, among them what only Python takes for a number.

    Examples
    --------
    >>> number_of("+1e0"), number_of(" 1"), number_of("\uff11")
    (1.0, nan, nan)
    """
    if isinstance(label, str) and not (label.isascii() and label.strip() == label):
        return nan
    try:
        return float(label)
    except (TypeError, ValueError):
        return nan


def _key(label: Any, number: float | None = None) -> float | str:
    """What labels are told apart by: the number, or the word."""
    number = number_of(label) if number is None else number
    return str(label) if isnan(number) else number


def label_text(label: Any) -> str:
    """A class as text has it: whole numbers without a point, words as they are.

    Examples
    --------
    >>> label_text(-1.0), label_text(0.5), label_text("spam")
    ('-1', '0.5', 'spam')
    """
    if isinstance(label, float) and label.is_integer() and abs(label) < _LARGEST_IN_FULL:
        return str(int(label))
    return str(label)


def first_labels(labels: Sequence[Any], most: int = 10) -> str:
    """The first of the labels, for an error to tell what there are."""
    return ", ".join(shown(str(label)) for label in labels[:most]) + ", ..." * (len(labels) > most)


class UnknownLabelError(Exception):
    """A label that is none of the classes.

    Attributes
    ----------
    label : object
    row : int
        In the block at hand.
    """

    def __init__(self, label: Any, row: int) -> None:
        super().__init__(label, row)
        self.label, self.row = label, row


class ClassCodes:
    """What class each row is of: its label's place among the classes.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        Sorted.

    Raises
    ------
    ValueError
        If files can't tell two of them apart.
    """

    def __init__(self, classes: np.ndarray) -> None:
        self.classes = classes
        self._codes = LabelTable.of_classes(classes)._ids
        self._known = np.empty(0, dtype=np.int64)

    def of_rows(
        self, table: LabelTable, labels: np.ndarray, label_start: np.ndarray | None
    ) -> np.ndarray:
        """Codes of the rows, int64; `table` is always the same.

        Raises
        ------
        UnknownLabelError
        """
        codes = self.of_labels(table, labels)
        unknown = np.flatnonzero(codes < 0)
        if len(unknown):
            row = int(unknown[0])
            raise UnknownLabelError(table.texts[labels[row]], row)
        return codes

    def of_labels(self, table: LabelTable, labels: np.ndarray) -> np.ndarray:
        """Codes of labels by their ids, int64; -1: none of the classes."""
        new = map(_key, table.texts[len(self._known) :], table.numbers[len(self._known) :])
        self._known = np.append(self._known, [self._codes.get(key, -1) for key in new])
        return self._known.astype(np.int64)[labels]


class LabelSets:
    """Which of the classes each row has, where it may have any number of them.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        Sorted.
    """

    def __init__(self, classes: np.ndarray) -> None:
        self.classes = classes
        self._codes = ClassCodes(classes)

    def of_rows(
        self, table: LabelTable, labels: np.ndarray, label_start: np.ndarray | None
    ) -> Positives:
        """Labels of the rows; `table` is always the same.

        Raises
        ------
        UnknownLabelError
        """
        assert label_start is not None
        codes = self._codes.of_labels(table, labels)
        unknown = np.flatnonzero(codes < 0)
        if len(unknown):
            row = int(np.searchsorted(label_start, unknown[0], side="right")) - 1
            raise UnknownLabelError(table.texts[labels[unknown[0]]], row)
        return label_sets(codes, label_start, len(self.classes))


def label_sets(codes: np.ndarray, label_start: np.ndarray, n_classes: int) -> Positives:
    """The labels of rows, each once and in order, by the codes that text has in any order."""
    n_rows = len(label_start) - 1
    rows = np.repeat(np.arange(n_rows), np.diff(label_start))
    places = np.unique(rows * n_classes + codes)
    starts = np.searchsorted(places, n_classes * np.arange(n_rows + 1))
    return Positives(starts.astype(np.int64, copy=False), places % n_classes)


class OneAgainstTheRest:
    """Class 1 for rows that have one label, perhaps among others; class -1 for the others.

    Parameters
    ----------
    positive : str or number
    """

    classes = np.array([-1.0, 1.0])

    def __init__(self, positive: Any) -> None:
        self.positive = positive

    def of_rows(
        self, table: LabelTable, labels: np.ndarray, label_start: np.ndarray | None
    ) -> np.ndarray:
        """Codes of the rows, int64."""
        hits = labels == table.find(self.positive)
        if label_start is None:
            return hits.astype(np.int64)
        codes = np.zeros(len(label_start) - 1, dtype=np.int64)
        codes[np.searchsorted(label_start, np.flatnonzero(hits), side="right") - 1] = 1
        return codes


Coder = ClassCodes | LabelSets | OneAgainstTheRest


def told_coder(classes: Any, positive: Any, many: bool) -> Coder | None:
    """What tells the classes of rows by what the caller has said of them; None: nothing.

    Raises
    ------
    ValueError
        As `coder_of`, or if `positive` is no label.
    """
    if not isinstance(positive, str | int | float | np.number | None):
        raise ValueError(f"positive must be a label, a number or a word, got {positive!r}.")
    if positive is not None:
        return OneAgainstTheRest(positive)
    return None if classes is None else coder_of(as_labels(_listed(classes)), "classes", many)


def _listed(classes: Any) -> np.ndarray:
    labels = np.array(list(classes) if isinstance(classes, set | frozenset) else classes)
    return np.array(labels.tolist()) if labels.dtype == object else labels


def coder_of(labels: np.ndarray, names: str, many: bool) -> ClassCodes | LabelSets:
    """What tells which of the classes, those among the labels, rows have.

    Parameters
    ----------
    labels : ndarray
    names : str
        Where they come from.
    many : bool
        Whether rows have any number of them.

    Raises
    ------
    ValueError
        If there is but one, of which each row has one, or they are no classes but measurements.
    """
    if labels.dtype.kind == "f" and (labels % 1).any():
        odd = labels[labels % 1 != 0][0]
        raise ValueError(
            f"{names} has labels such as {odd:g}, which are not classes but measurements, and "
            "can't be learned by a classifier. Give each class a number, or a word."
        )
    classes = np.unique(labels)
    if many:
        if not len(classes):
            raise ValueError(f"{names} has no row with a label: there is nothing to learn.")
        return LabelSets(classes)
    if len(classes) < 2:
        raise ValueError(f"{names} has one class only, {classes.tolist()}; at least 2 are needed.")
    return ClassCodes(classes)
