"""Labels of files: their texts, their ids in the order of first occurrence, and their equality."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isfinite, isnan, nan
from typing import Any, NoReturn

import numpy as np

# Floats that are whole numbers are written without an exponent below this value, as in Python.
_LARGEST_IN_FULL = 1e16

# Text labels that match this become integer classes: 1, -1 and 1.0, but not 01 or +1. If some
# integers are missing, pandas writes the others as 1.0.
_WHOLE = re.compile(r"(0|-?[1-9][0-9]{0,14})(?:\.0)?")


# Whole numbers in a text may have a sign, and end in ".0", as floats do in CSV files.
_PLAIN_NUMBER = re.compile(r"\+?(-?)(0|[1-9][0-9]*)(?:\.0)?")


# Booleans as written by Python, R, JSON and pyarrow.
_TRUTHS = {each: each.capitalize() for word in ("true", "false") for each in
           (word, word.upper())}  # fmt: skip


_NOT_FINITE = {"nan", "inf", "infinity"}


# Id of a number or a text that matches several classes.
_EQUAL = -2


def label_text(label: Any) -> str:
    """Return a class as text: whole numbers without a decimal point, strings unchanged.

    Examples
    --------
    >>> label_text(-1.0), label_text(0.5), label_text("spam")
    ('-1', '0.5', 'spam')
    """
    if isinstance(label, float) and label.is_integer() and abs(label) < _LARGEST_IN_FULL:
        return str(int(label))
    return str(label)


def number_of(label: Any) -> float:
    """Return the value of a numeric label, or NaN for other text.

    Infinities, and text with non-ASCII characters or surrounding white space, are not numeric.

    Examples
    --------
    >>> number_of("+1e0"), number_of(" 1"), number_of("\uff11")
    (1.0, nan, nan)
    """
    if isinstance(label, str) and not (label.isascii() and label.strip() == label):
        return nan
    try:
        number = float(label)
    except (TypeError, ValueError, OverflowError):
        return nan
    return number if isfinite(number) else nan


def word_of(text: str) -> str:
    """Return the normalized text by which labels of text files are compared.

    It is equal for 1, +1 and 1.0, and for true, True and TRUE. Other text is unchanged.

    Examples
    --------
    >>> word_of("+1"), word_of("1.0"), word_of("01"), word_of("TRUE")
    ('1', '1', '01', 'True')
    """
    number = _PLAIN_NUMBER.fullmatch(text)
    if number is not None:
        return "0" if number[2] == "0" else number[1] + number[2]
    return _TRUTHS.get(text, text)


def _key(text: str, number: float) -> float | str:
    """Return the key by which a label of a file is compared: its number, or its text if NaN."""
    return word_of(text) if isnan(number) else number


def _other_key(key: float | str) -> float | str:
    """Return the equivalent key of the other kind, so that labels match across kinds of files.

    For a number, this is its text. For text, it is the number whose plain form is the text, or the
    text itself if there is none.
    """
    if not isinstance(key, str):
        return label_text(key)
    number = number_of(key)
    return number if label_text(number) == key else key


def _refuse_equal(classes: Sequence[Any], label: str | float) -> NoReturn:
    """Raise a ValueError for a label, as text or number, that matches several classes."""
    texts = [label_text(each) for each in classes]
    if isinstance(label, str):
        same = [text for text in texts if word_of(text) == label]
        how = "one label in files of texts"
    else:
        same = [text for text in texts if number_of(text) == label]
        how = "equal as numbers, by which labels in svmlight text are told apart"
    raise ValueError(f"The classes {' and '.join(same[:2])} are {how}. Rename one of them.")


class LabelTable:
    """All labels seen in files so far; their ids follow the order of their first rows.

    Labels with equal numbers are the same label, as are texts with an equal `word_of`. `texts` has
    each label as first written. `numbers` has the numbers of labels in svmlight and Vowpal Wabbit
    files, and NaN for labels in other text files, even if they look like numbers.
    """

    #: True if the labels of rows are looked up, as in training and evaluation.
    takes_labels = True

    def __init__(self, texts: Any = (), numbers: Any = ()) -> None:
        self.texts: list[str] = []
        self.numbers: list[float] = []
        self._ids: dict[float | str, int] = {}
        self._ids_by_scanner: dict[int, np.ndarray] = {}
        self.take(texts, numbers)

    @classmethod
    def of_classes(cls, classes: np.ndarray) -> LabelTable:
        """Return a table in which the id of each class is its code.

        Classes match text labels and numeric labels. True and False also match 1 and 0.
        """
        labels, table = classes.tolist(), cls()
        table.texts, table.numbers = [*map(label_text, labels)], [*map(number_of, labels)]
        for code, (text, number) in enumerate(zip(table.texts, table.numbers, strict=True)):
            for key in {word_of(text), _key(text, number)}:
                table._ids[key] = _EQUAL if key in table._ids else code
        return table

    def take(self, texts: Any, numbers: Any) -> np.ndarray:
        """Add new labels to the table and return the ids of all given labels, shape (n_labels,)."""
        ids = np.empty(len(texts), dtype=np.int32)
        for i, (text, number) in enumerate(zip(texts, numbers, strict=True)):
            key = _key(text, number)
            ids[i] = self._ids.setdefault(key, len(self.texts))
            if ids[i] == _EQUAL:
                _refuse_equal(self.texts, key)
            if ids[i] == len(self.texts):
                self._ids.setdefault(_other_key(key), len(self.texts))
                self.texts.append(text)
                self.numbers.append(number)
        return ids

    def forget_scanners(self) -> None:
        """Forget the ids of scanners, before new scanners are used."""
        self._ids_by_scanner.clear()

    def ids_of(self, scanner: Any, labels: np.ndarray) -> np.ndarray:
        """Return the table's ids for labels with a scanner's ids. New labels of the scanner are
        added to the table."""
        known = self._ids_by_scanner.get(id(scanner), np.empty(0, dtype=np.int32))
        if len(labels) and labels.max() >= len(known):
            new = self.take(*scanner.labels_from(len(known)))
            known = self._ids_by_scanner[id(scanner)] = np.concatenate([known, new])
        return known[labels]

    def values(self) -> np.ndarray:
        """Return the labels as an array: int64, float64 or str.

        Labels of svmlight and Vowpal Wabbit files are float64 if all are numbers. Labels of other
        files are int64 if all are texts of whole numbers, such as 3 and 3.0, and float64 if all are
        texts of floats, in their standard form.
        """
        if self.texts and not any(map(isnan, self.numbers)):
            return np.array(self.numbers)
        if all(map(_WHOLE.fullmatch, self.texts)):
            return np.array([int(word_of(text)) for text in self.texts], dtype=np.int64)
        written = list(map(number_of, self.texts))
        if any(number % 1 for number in written) and all(
            label_text(number) == word_of(text)
            for number, text in zip(written, self.texts, strict=True)
        ):
            return np.array(written)
        return np.array(self.texts)

    def short_texts(self) -> list[str]:
        """Return the labels as text in the order of ids; numbers are formatted by `label_text`."""
        given = zip(self.texts, self.numbers, strict=True)
        return [text if isnan(number) else label_text(number) for text, number in given]

    def find(self, label: Any) -> int:
        """Return the id of a label, a number or text, or -1 if it has not been seen so far."""
        found = self._ids.get(word_of(label_text(label)), -1)
        if found < 0:
            by_number = self._ids.get(number_of(label), -1)
            # Texts that are only equal as numbers, such as 01 and 1, are different labels.
            found = -1 if by_number < 0 or isnan(self.numbers[by_number]) else by_number
        return found
