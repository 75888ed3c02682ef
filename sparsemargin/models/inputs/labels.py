"""Labels and the classes they stand for: of rows that have one each, and of rows that have any
number.

Labels come as arrays and lists, or from text as ids in a `LabelTable`. Nothing here needs
scikit-learn.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from math import isfinite, isnan, nan
from typing import Any, Literal, NoReturn, Self, get_args

import numpy as np

from sparsemargin._checks import check_count
from sparsemargin._engine.fitting.task import Positives
from sparsemargin._engine.messages import warn_user
from sparsemargin._shown import shown
from sparsemargin.models.inputs.label_values import (
    DROP_ROWS,
    is_missing,
    label_array,
    unwrapped,
)
from sparsemargin.models.inputs.label_values import label_text as label_text

#: What labels of rows that may have several came as, and predictions are given back as.
Form = Literal["dense", "sparse", "lists"]
FORMS = get_args(Form)

# Integer labels are looked up in a table where they span no more than this.
_WIDEST_TABLE = 1 << 20

# Words that are no numbers to files may be classes that are, such as 1 and -1 but not 01 or 1.0.
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,14}")

# Plain whole numbers as words: with a sign, and with the point that floats have in a csv.
_PLAIN_NUMBER = re.compile(r"\+?(-?)(0|[1-9][0-9]*)(?:\.0)?")

# Truths as Python, R, and JSON and pyarrow write them.
_TRUTHS = {each: each.capitalize() for word in ("true", "false") for each in
           (word, word.upper())}  # fmt: skip

# Of fewer rows, as in scikit-learn, all labels may differ.
_FEW_ROWS = 20

_NOT_FINITE = {"nan", "inf", "infinity"}

# The id of a number, or a word, that is several classes.
_EQUAL = -2

_COLLECTIONS = (list, tuple, set, frozenset, np.ndarray)
_NUMBERS = (int, float, np.number, np.bool_)
_NO_NEW_CLASS = (
    "Leave such rows out, or fit anew with all classes, which partial_fit needs in its first call."
)


def first_labels(labels: Sequence[Any], most: int = 10) -> str:
    """The first of the labels, for an error to tell what there are."""
    some = ", ".join(shown(label_text(label)) for label in labels[:most])
    return some + ", ..." * (len(labels) > most)


def number_of(label: Any) -> float:
    """Return the number that a label is; NaN for words. Words that only Python takes for numbers,
    and infinities, are words.

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
    """What labels of files of texts are compared by: the same for 1, +1 and 1.0, and for true,
    True and TRUE; other words stay as they are.

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
    """What a label of a file is compared by: its number, or, where that is NaN, its word."""
    return word_of(text) if isnan(number) else number


def _other_key(key: float | str) -> float | str:
    """The word that a number is written as, or the number that a word is the plain writing of, else
    the word itself: labels of files that have numbers and of files that have words are one."""
    if not isinstance(key, str):
        return label_text(key)
    number = number_of(key)
    return number if label_text(number) == key else key


def _refuse_equal(classes: Sequence[Any], label: str | float) -> NoReturn:
    """Refuse a label, a word or a number, that may be several of the classes."""
    texts = [label_text(each) for each in classes]
    if isinstance(label, str):
        same = [text for text in texts if word_of(text) == label]
        how = "one label in files of texts"
    else:
        same = [text for text in texts if number_of(text) == label]
        how = "equal as numbers, by which labels in svmlight text are told apart"
    raise ValueError(f"The classes {' and '.join(same[:2])} are {how}. Rename one of them.")


def whole_numbers(y: np.ndarray) -> np.ndarray | None:
    """The same labels as integers, None where they are no whole numbers."""
    if y.dtype.kind != "f":
        return y if y.dtype.kind in "iu" else None
    with np.errstate(invalid="ignore"):
        whole = y.astype(np.int64)
    return whole if np.array_equal(whole, y) else None


def places_among(classes: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The place of each label among the sorted classes, int64; -1 for labels that are none.

    Text is no number, and integers are compared exactly, also with those of another type.
    """
    if not len(classes) or (classes.dtype.kind == "U") != (labels.dtype.kind == "U"):
        return np.full(len(labels), -1, dtype=np.int64)
    if labels.dtype != classes.dtype and np.result_type(labels, classes).kind == "f":
        large = [each for each in (classes, labels) if len(each) and np.abs(each).max() > 2**53]
        if large:
            classes, labels = classes.astype(object), labels.astype(object)
    codes = np.searchsorted(classes, labels).astype(np.int64, copy=False)
    codes[codes == len(classes)] = 0
    codes[classes[codes] != labels] = -1
    return codes


class LabelTable:
    """All labels met so far, numbered in the order of their first rows.

    Labels with the same number are one label, and so are words that `word_of` makes the same.
    `texts` are as first written. `numbers` are NaN for words: svmlight text and Vowpal Wabbit's
    form have numbers, other files of texts have words, which may look like numbers.
    """

    #: Whether the labels of rows are looked up, as for training and evaluation.
    takes_labels = True

    def __init__(self, texts: Any = (), numbers: Any = ()) -> None:
        self.texts: list[str] = []
        self.numbers: list[float] = []
        self._ids: dict[float | str, int] = {}
        self._ids_by_scanner: dict[int, np.ndarray] = {}
        self.take(texts, numbers)

    @classmethod
    def of_classes(cls, classes: np.ndarray) -> LabelTable:
        """The classes, each one's id being its code, for labels that are words and such that are
        numbers; True and False are 1 and 0 as well."""
        labels, table = classes.tolist(), cls()
        table.texts, table.numbers = [*map(label_text, labels)], [*map(number_of, labels)]
        for code, (text, number) in enumerate(zip(table.texts, table.numbers, strict=True)):
            for key in {word_of(text), _key(text, number)}:
                table._ids[key] = _EQUAL if key in table._ids else code
        return table

    def take(self, texts: Any, numbers: Any) -> np.ndarray:
        """The table's ids of the labels, new ones taken in; shape (n_labels,)."""
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
        """Let others come, whose numbering begins anew."""
        self._ids_by_scanner.clear()

    def ids_of(self, scanner: Any, labels: np.ndarray) -> np.ndarray:
        """The table's ids of what a scanner, whose own numbering goes on, has numbered so."""
        known = self._ids_by_scanner.get(id(scanner), np.empty(0, dtype=np.int32))
        if len(labels) and labels.max() >= len(known):
            new = self.take(*scanner.labels_from(len(known)))
            known = self._ids_by_scanner[id(scanner)] = np.concatenate([known, new])
        return known[labels]

    def values(self) -> np.ndarray:
        """The labels: float64 where all are numbers, as `load_svmlight` gives them, or are words
        that are plain whole numbers, or numbers as programs write them; else str."""
        if all(map(_WHOLE.fullmatch, self.texts)):
            return np.array(self.texts, dtype=np.float64)
        if not any(map(isnan, self.numbers)):
            return np.array(self.numbers)
        written = list(map(number_of, self.texts))
        if any(number % 1 for number in written) and all(
            label_text(number) == word_of(text)
            for number, text in zip(written, self.texts, strict=True)
        ):
            return np.array(written)
        return np.array(self.texts)

    def short_texts(self) -> list[str]:
        """The labels by id, numbers as `label_text` has them."""
        given = zip(self.texts, self.numbers, strict=True)
        return [text if isnan(number) else label_text(number) for text, number in given]

    def find(self, label: Any) -> int:
        """The id of a label given as a number or as text; -1 if it has not been met so far."""
        found = self._ids.get(word_of(label_text(label)), -1)
        if found < 0:
            by_number = self._ids.get(number_of(label), -1)
            # Words that are equal as numbers only, such as 01 and 1, are not the same label.
            found = -1 if by_number < 0 or isnan(self.numbers[by_number]) else by_number
        return found


class UnknownLabelError(Exception):
    """A row, of those at hand, has a label that is none of the classes."""

    def __init__(self, row: int, label: str) -> None:
        super().__init__(row, label)
        self.row, self.label = row, label


class LabelEncoder:
    """Tells the class of each row, as its index among the classes: those given, sorted, or those
    that `fit_transform` finds. `positive` is a label of text that is told from all others, by
    classes 1 and -1."""

    positive: Any = None

    def __init__(self, classes: Any = ()) -> None:
        self.classes = np.asarray(classes)
        # Of text: classes by what labels are told apart by, that of all others, and those of the
        # ids of one table.
        self._code_of: dict[float | str, int] = {}
        self._others = -1
        self._of_ids = np.empty(0, dtype=np.int64)

    @classmethod
    def of_text(cls, classes: np.ndarray) -> Self:
        """One for labels of text."""
        encoder = cls(classes)
        encoder._code_of = LabelTable.of_classes(classes)._ids
        return encoder

    @classmethod
    def of_positive(cls, positive: Any) -> LabelEncoder:
        """One for text that tells rows with this label, perhaps among others, from the rest."""
        encoder = LabelEncoder([-1.0, 1.0])
        encoder.positive, encoder._others = positive, 0
        encoder._code_of = {number_of(positive): 1, word_of(label_text(positive)): 1}
        return encoder

    def fit_transform(self, y: Any) -> Any:
        """Find the sorted classes of y, and the code of each row's, int64."""
        whole = whole_numbers(y)
        if whole is not None and len(y) and int(whole.max()) - int(whole.min()) < _WIDEST_TABLE:
            low = whole.min()
            shifted = whole.astype(np.int64) - low.astype(np.int64)
            present = np.zeros(int(whole.max()) - int(low) + 1, dtype=bool)
            present[shifted] = True
            # In the labels' own type, in which the sums wrap back to labels of y.
            self.classes = (low + np.flatnonzero(present).astype(whole.dtype)).astype(y.dtype)
            return (np.cumsum(present) - 1)[shifted]
        self.classes, codes = np.unique(y, return_inverse=True)
        return codes.astype(np.int64, copy=False)

    def transform(self, y: Any) -> Any:
        """The code of each row's class, int64; a ValueError names the first label that is none of
        the classes, and its row."""
        codes = places_among(self.classes, y)
        for row in np.flatnonzero(codes < 0)[:1].tolist():
            raise ValueError(
                f"y[{row}] = {y[row : row + 1].tolist()[0]!r} is not among the model's "
                f"classes {self.classes.tolist()}. {_NO_NEW_CLASS}"
            )
        return codes

    def transform_ids(self, table: LabelTable, ids: np.ndarray, start: np.ndarray | None) -> Any:
        """The classes of rows of text, by the ids that always the same table gives each row's
        label, or, with `start`, the labels of all rows, each row's from there; or an
        UnknownLabelError."""
        codes = self._codes_of_ids(table, ids, start)
        if start is None:
            return codes
        hits = np.zeros(len(start) - 1, dtype=np.int64)
        hits[np.searchsorted(start, np.flatnonzero(codes), side="right") - 1] = 1
        return hits

    def _codes_of_ids(
        self, table: LabelTable, ids: np.ndarray, start: np.ndarray | None
    ) -> np.ndarray:
        known = len(self._of_ids)
        keys = list(map(_key, table.texts[known:], table.numbers[known:]))
        new = np.array([self._code_of.get(key, self._others) for key in keys], dtype=np.int64)
        for at in np.flatnonzero(new == _EQUAL).tolist():
            _refuse_equal(self.classes.tolist(), keys[at])
        self._of_ids = np.append(self._of_ids, new)
        codes = self._of_ids[ids]
        unknown = np.flatnonzero(codes < 0)
        if len(unknown):
            at = int(unknown[0])
            row = at if start is None else int(np.searchsorted(start, at, side="right")) - 1
            raise UnknownLabelError(row, table.texts[ids[at]])
        return codes


@dataclass(frozen=True)
class MultilabelTargets:
    """Labels of rows that may have several, as they are given: the columns of an indicator of
    `shape`, or the labels of lists, all of them end to end."""

    form: Form
    shape: tuple[int, ...]
    given: Positives

    @property
    def columns(self) -> np.ndarray | None:
        """The labels of an indicator; None for lists."""
        return None if self.form == "lists" else np.arange(self.shape[1])


class MultilabelEncoder(LabelEncoder):
    """Tells the labels of each row, as their indices among the classes; `inverse_transform` gives
    labels back in the form."""

    def __init__(self, classes: Any = (), form: Form = "lists") -> None:
        super().__init__(classes)
        self.form = form

    def fit_transform(self, y: MultilabelTargets) -> Positives:
        """Find all labels there are, sorted, and the codes of each row's; a ValueError
        where lists have no label, or labels of several types."""
        self.form = y.form
        self.classes = np.unique(y.given.labels) if y.columns is None else y.columns
        if not len(self.classes):
            raise ValueError("No row of y has a label: nothing to learn.")
        return self.transform(y)

    def transform(self, y: MultilabelTargets) -> Positives:
        """The codes of each row's labels; a ValueError names the first label that is none of the
        classes, and its row, or the number of labels of an indicator that has another."""
        if y.columns is None:
            for at in np.flatnonzero(places_among(self.classes, y.given.labels) < 0)[:1].tolist():
                row = int(np.searchsorted(y.given.starts, at, side="right")) - 1
                label = y.given.labels[at : at + 1].tolist()[0]
                raise ValueError(
                    f"y[{row}] has the label {label!r}, which is not among the model's "
                    f"classes {self.classes.tolist()}. {_NO_NEW_CLASS}"
                )
        return self._codes_of(y)

    def transform_ids(
        self, table: LabelTable, ids: np.ndarray, start: np.ndarray | None
    ) -> Positives:
        assert start is not None
        return label_sets(self._codes_of_ids(table, ids, start), start, len(self.classes))

    def inverse_transform(self, labels: Positives) -> Any:
        """The labels of rows in the encoder's form: an indicator, or a list of tuples."""
        n_rows = len(labels.starts) - 1
        if self.form == "lists":
            names = self.classes[labels.labels].tolist()
            return [tuple(names[start:end]) for start, end in pairwise(labels.starts.tolist())]
        from scipy.sparse import csr_matrix

        ones = np.ones(len(labels.labels), dtype=np.int64)
        shape = (n_rows, len(self.classes))
        matrix = csr_matrix((ones, labels.labels, labels.starts), shape=shape)
        matrix.sort_indices()
        return matrix if self.form == "sparse" else matrix.toarray()

    def matches(self, y: MultilabelTargets, told: Positives) -> np.ndarray:
        """Whether each row has the very labels that it was told to have, shape (n_rows,)."""
        return agreement(self._codes_of(y), told, len(self.classes))[1]

    def _codes_of(self, y: MultilabelTargets) -> Positives:
        """Those of each row's labels; -1 for one that lists have and the classes have not."""
        if y.columns is not None:
            if y.shape[1] != len(self.classes):
                raise ValueError(
                    f"y is an indicator of {y.shape[1]} labels, where the model has "
                    f"{len(self.classes)}. Pass a column for each of these; others need a new fit."
                )
            return y.given
        # Labels that are none of the classes come first, as code 0, until 1 is subtracted.
        codes = places_among(self.classes, y.given.labels) + 1
        starts, labels = label_sets(codes, y.given.starts, len(self.classes) + 1)
        return Positives(starts, labels - 1)


def multilabel_targets(y: Any, n_columns: int | None = None) -> MultilabelTargets | None:
    """Labels of rows that may have several; None: y has one class for each row.

    An indicator that is given as lists has `n_columns`; None: any number; 0: lists name labels,
    even if they could be its rows. A ValueError names the row and the label of an entry of an
    indicator that is neither 0 nor 1, or the row that is no list where others are.
    """
    from scipy.sparse import issparse

    y = unwrapped(y)
    if not may_have_several(y):
        return None
    if issparse(y):
        return _of_indicator(y, "sparse")
    if not isinstance(y, list | tuple):
        y = np.asarray(y)
        if y.ndim == 2:
            return _of_indicator(y, "dense")
    if _are_rows_of_an_indicator(y, n_columns):
        return _of_indicator(np.array(y), "dense")
    for i, row in enumerate(y):
        if not _is_collection(row):
            if is_missing(row):
                raise ValueError(f"y[{i}] is {row}: this row has no label. {DROP_ROWS}")
            raise ValueError(
                f"y[{i}] = {row!r} is no list of labels, as other rows are. Pass a list for "
                "every row, or one class for every row."
            )
    starts = np.cumsum([0, *map(len, y)], dtype=np.int64)

    def place(at: int) -> str:
        row = int(np.searchsorted(starts, at, side="right")) - 1
        return f"y[{row}][{at - starts[row]}]"

    labels = list(chain.from_iterable(y))
    if not set(map(type, labels)) <= {str, bool, int}:
        for at in (at for at, label in enumerate(labels) if is_missing(label)):
            raise ValueError(
                f"{place(at)} is {labels[at]}, which is no label. Leave it out of its list: "
                "y = [[label for label in row if pandas.notna(label)] for row in y]."
            )
    return MultilabelTargets("lists", (len(y),), Positives(starts, label_array(labels, place)))


def may_have_several(y: Any) -> bool:
    """Whether y is of labels of rows that may have several."""
    from scipy.sparse import issparse

    if issparse(y):
        return True
    y = unwrapped(y)
    if not isinstance(y, list | tuple):
        y = np.asarray(y)
        if y.ndim != 1 or y.dtype.kind != "O":
            return y.ndim == 2 and y.shape[1] > 1
    return any(map(_is_collection, y))


def _is_collection(row: Any) -> bool:
    return isinstance(row, _COLLECTIONS) and getattr(row, "ndim", 1) > 0


def _are_rows_of_an_indicator(rows: Any, n_columns: int | None) -> bool:
    """Whether lists are the rows of one, as scikit-learn takes them."""
    n_labels = len(rows[0]) if _is_collection(rows[0]) else 0
    return (
        n_labels > 1
        and n_columns in (None, n_labels)
        and all(
            _is_collection(row)
            and not isinstance(row, set | frozenset)
            and len(row) == n_labels
            and all(map(_is_bit, row))
            for row in rows
        )
    )


def _is_bit(entry: Any) -> bool:
    return isinstance(entry, _NUMBERS) and entry in (0, 1)


def _of_indicator(Y: Any, form: Form) -> MultilabelTargets:
    if Y.ndim != 2 or not Y.shape[1]:
        raise ValueError(
            f"y is of shape {Y.shape}. An indicator of labels is of shape (n_samples, n_labels)"
            ", with one label at least."
        )
    if form == "sparse":
        from scipy.sparse import csr_matrix

        Y = csr_matrix(Y, copy=True)
        Y.sum_duplicates()
        Y.eliminate_zeros()
        for at in np.flatnonzero(Y.data != 1)[:1]:
            row = int(np.searchsorted(Y.indptr, at, side="right")) - 1
            _refuse_entry(row, int(Y.indices[at]), Y.data[at])
        codes = Positives(Y.indptr.astype(np.int64), Y.indices.astype(np.int64))
    else:
        is_bit = (Y == 0) | (Y == 1) if Y.dtype.kind in "biufc" else np.vectorize(_is_bit)(Y)
        for row, label in np.argwhere(~is_bit)[:1].tolist():
            _refuse_entry(row, label, Y[row, label])
        codes = positives_of(Y == 1)
    return MultilabelTargets(form, Y.shape, codes)


def _refuse_entry(row: int, label: int, entry: Any) -> NoReturn:
    plain = entry.item() if isinstance(entry, np.generic) else entry
    raise ValueError(
        f"y[{row}, {label}] = {plain!r} is neither 0 nor 1: an indicator has 1 where a row has a "
        "label, else 0. Classes of which each row has one are of shape (n_samples,)."
    )


def label_sets(codes: np.ndarray, start: np.ndarray, n_classes: int) -> Positives:
    """The labels of rows, each once and in order, by the codes that text has in any order."""
    n_rows = len(start) - 1
    rows = np.repeat(np.arange(n_rows), np.diff(start))
    flat = np.unique(rows * n_classes + codes)
    starts = np.searchsorted(flat, n_classes * np.arange(n_rows + 1))
    return Positives(starts.astype(np.int64, copy=False), flat % n_classes)


def agreement(actual: Positives, told: Positives, n_labels: int) -> tuple[np.ndarray, np.ndarray]:
    """The label of each that a row has and is told to have, and whether each row is told the very
    labels that it has; those outside the n_labels are told of no row."""
    n_rows, cells = len(told.starts) - 1, []
    for each in (actual, told):
        rows, labels = np.repeat(np.arange(n_rows), np.diff(each.starts)), each.labels
        cells.append((rows * n_labels + labels)[(labels >= 0) & (labels < n_labels)])
    right = np.intersect1d(cells[0], cells[1], assume_unique=True)
    n_right = np.bincount(right // n_labels, minlength=n_rows)
    exact = (n_right == np.diff(actual.starts)) & (n_right == np.diff(told.starts))
    return right % n_labels, exact


def told_encoder(classes: Any, positive: Any, many: bool) -> LabelEncoder | None:
    """The encoder for what the caller has said of the classes; None: nothing."""
    if not isinstance(positive, str | int | float | np.number | None):
        raise ValueError(f"positive must be a label, a number or a word, got {positive!r}.")
    if positive is not None:
        return LabelEncoder.of_positive(positive)
    if classes is None:
        return None
    told = list(classes) if isinstance(classes, set | frozenset) else unwrapped(classes)
    told = np.ravel(told) if isinstance(told, np.ndarray) else told
    labels = label_array(told, "classes[{}]".format)
    if (
        labels.dtype.kind in "biu"
        and (labels.astype(np.float64).astype(object) != labels.astype(object)).any()
    ):
        # A double can't hold them, and files have them as words.
        labels = labels.astype(np.str_)
    as_in_files = labels.astype(np.str_ if labels.dtype.kind == "U" else np.float64)
    return encoder_of(as_in_files, "classes", many)


def encoder_of(labels: np.ndarray, names: str, many: bool) -> LabelEncoder:
    """The encoder for the classes among the labels, of which rows have one or `many`; a ValueError,
    which names where they come from, if there are too few or they are measurements."""
    if labels.dtype.kind == "f" and (labels % 1).any():
        odd = labels[labels % 1 != 0][0]
        raise ValueError(
            f"{names} has labels such as {odd:g}, which are not classes but measurements, and "
            "can't be learned by a classifier. Give each class a number, or a word; or pass all "
            f"classes as words, such as '{odd:g}': classes=[...]."
        )
    if labels.dtype.kind == "U":
        _refuse_missing_among_numbers(labels.tolist(), names)
    classes = np.unique(labels)
    if many:
        if not len(classes):
            raise ValueError(f"{names} has no row with a label: there is nothing to learn.")
        return MultilabelEncoder.of_text(classes)
    refuse_lone(classes, names)
    return LabelEncoder.of_text(classes)


def _refuse_missing_among_numbers(labels: list[str], names: str) -> None:
    """Refuse the words nan and inf where all other labels are numbers: they mark missing ones."""
    words = [label for label in labels if isnan(number_of(label))]
    marks = [label for label in words if label.lower().lstrip("+-") in _NOT_FINITE]
    if marks and len(marks) == len(words) < len(labels):
        raise ValueError(
            f"{names} has the label {first_labels(marks[:1])} among numbers: such a row has no "
            "label. Give it one, or drop the row; or write the classes as words."
        )


def refuse_lone(classes: np.ndarray, name: str) -> None:
    """Refuse a single class, which there is nothing to tell from."""
    if len(classes) < 2:
        lone = first_labels(classes.tolist())
        raise ValueError(f"{name} has one class only, {lone}; at least 2 are needed.")


def many_classes(n_classes: int, n_rows: int) -> str | None:
    """Return the end of a warning if more than half of the labels of more than 20 rows differ.

    scikit-learn warns in the same cases. Fits of memory and svmlight files warn by
    `warn_of_many_classes`, files of texts by the notes on their first rows.
    """
    if n_rows <= _FEW_ROWS or n_classes <= round(n_rows / 2):
        return None
    return (
        f"{n_classes:,} different labels in {n_rows:,} rows, and each becomes a class. Check that "
        "these are labels, not texts, numbers of rows or values of a regression."
    )


def warn_of_many_classes(n_classes: int, n_rows: int, name: str) -> None:
    """Warn if most labels differ; `name` is where the labels are: "y", or names of files."""
    found = many_classes(n_classes, n_rows)
    if found is not None:
        warn_user(f"{name} has {found}")


class Choice:
    """Which labels are predicted: those whose outputs reach the threshold, one number or one for
    each label (None: 0, or anything where `top_k` is given), and of these only the `top_k` largest,
    the lowest of those that are equal, in this order."""

    def __init__(self, n_labels: int, threshold: Any = None, top_k: Any = None) -> None:
        if top_k is not None:
            top_k = check_count("top_k", top_k, 1, sys.maxsize)
        if threshold is None:
            threshold = 0.0 if top_k is None else -np.inf
        try:
            least = np.asarray(threshold)
            sound = least.dtype.kind in "iuf" and least.shape in ((), (n_labels,))
        except ValueError:
            sound = False
        if not sound or np.isnan(least).any():
            raise ValueError(
                f"threshold must be a number, one for each of the {n_labels} labels, or 'f1', got "
                f"{threshold!r}."
            )
        self.threshold = least
        self.top_k = top_k

    def of(self, outputs: np.ndarray) -> np.ndarray:
        """Whether each label is predicted, of outputs of shape (n_rows, n_labels)."""
        reached = outputs >= self.threshold
        if self.top_k is None or self.top_k >= outputs.shape[1]:
            return reached
        least = np.partition(outputs, -self.top_k, axis=1)[:, -self.top_k, np.newaxis]
        above, equal = outputs > least, outputs == least
        room = self.top_k - above.sum(axis=1, keepdims=True)
        return reached & (above | (equal & (np.cumsum(equal, axis=1) <= room)))

    def lone_codes(self, outputs: np.ndarray) -> np.ndarray:
        """The class of each row, of two: the second where the only output reaches the threshold."""
        return self.of(outputs)[:, 0].astype(np.intp)

    def labels(self, outputs: np.ndarray) -> Positives:
        """The labels of each row: in their own order, or, with `top_k`, by falling output."""
        starts, labels = positives_of(self.of(outputs))
        if self.top_k is not None:
            rows = np.repeat(np.arange(len(outputs)), np.diff(starts))
            labels = labels[np.lexsort((labels, -outputs[rows, labels], rows))]
        return Positives(starts, labels)


def positives_of(chosen: np.ndarray) -> Positives:
    """The labels that a boolean array of shape (n_rows, n_labels) has in each row."""
    n_rows, n_labels = chosen.shape
    flat = np.flatnonzero(chosen)
    starts = np.searchsorted(flat, np.arange(n_rows + 1) * n_labels)
    return Positives(starts.astype(np.int64, copy=False), flat % n_labels)


def joined(parts: list[Positives]) -> Positives:
    """The labels of rows that follow upon each other."""
    counts = [np.diff(part.starts) for part in parts]
    starts = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    return Positives(starts, np.concatenate([part.labels for part in parts]))
