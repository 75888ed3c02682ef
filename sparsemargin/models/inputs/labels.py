"""Encoding of labels as classes, for rows with one class each and for multilabel problems.

Labels are arrays or lists in memory, and ids in a `LabelTable` if they are read from text. This
module does not need scikit-learn.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise
from math import isnan
from typing import Any, Self

import numpy as np

from sparsemargin._checks import check_count
from sparsemargin._engine.fitting.task import Positives
from sparsemargin._engine.messages import warn_user
from sparsemargin._heavy import scipy_sparse
from sparsemargin._shown import shown
from sparsemargin.models.inputs.label_table import (
    _EQUAL,
    _NOT_FINITE,
    LabelTable,
    _key,
    _refuse_equal,
    number_of,
    word_of,
)
from sparsemargin.models.inputs.label_table import label_text as label_text
from sparsemargin.models.inputs.label_values import label_array, unwrapped
from sparsemargin.models.inputs.multilabel_targets import (
    MultilabelTargets,
    TargetFormat,
    positives_of,
)

# Largest difference of integer labels that are encoded by a lookup table with an entry for each
# integer between them.
_WIDEST_TABLE = 1 << 20


# Up to this number of rows, there is no warning about many classes, as in scikit-learn.
_FEW_ROWS = 20


_NO_NEW_CLASS = (
    "Leave such rows out, or fit anew with all classes, which partial_fit needs in its first call."
)


def first_labels(labels: Sequence[Any], most: int = 10) -> str:
    """Return the first labels as text for an error message."""
    some = ", ".join(shown(label_text(label)) for label in labels[:most])
    return some + ", ..." * (len(labels) > most)


def whole_numbers(y: np.ndarray) -> np.ndarray | None:
    """Return numeric labels as integers, or None if they are not whole numbers."""
    if y.dtype.kind != "f":
        return y if y.dtype.kind in "iu" else None
    with np.errstate(invalid="ignore"):
        whole = y.astype(np.int64)
    return whole if np.array_equal(whole, y) else None


def places_among(classes: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the index of each label in the sorted classes, int64; -1 if it is not a class.

    Text never equals a number. Integers are compared exactly, even if their types differ.
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


class UnknownLabelError(Exception):
    """Raised if a row, numbered within its block, has a label that is not one of the classes."""

    def __init__(self, row: int, label: str) -> None:
        super().__init__(row, label)
        self.row, self.label = row, label


class LabelEncoder:
    """Encodes the class of each row as its index in the sorted classes.

    The classes are given, or found by `fit_transform`. If `positive` is a label, rows of text files
    are encoded as class 1 if they have this label, and as class -1 otherwise.
    """

    positive: Any = None

    def __init__(self, classes: Any = ()) -> None:
        self.classes = np.asarray(classes)
        # These are for text files: the code of each key, the code of all other keys (-1: they are
        # errors), and the code of each id in a label table.
        self._code_of: dict[float | str, int] = {}
        self._others = -1
        self._of_ids = np.empty(0, dtype=np.int64)

    @classmethod
    def of_text(cls, classes: np.ndarray) -> Self:
        """Return an encoder for labels of text files."""
        encoder = cls(classes)
        encoder._code_of = LabelTable.of_classes(classes)._ids
        return encoder

    @classmethod
    def of_positive(cls, positive: Any) -> LabelEncoder:
        """Return an encoder for text files that separates the rows with this label from others."""
        encoder = LabelEncoder([-1.0, 1.0])
        encoder.positive, encoder._others = positive, 0
        encoder._code_of = {number_of(positive): 1, word_of(label_text(positive)): 1}
        return encoder

    def fit_transform(self, y: Any) -> Any:
        """Set the sorted classes from y and return the code of each row's class, int64."""
        whole = whole_numbers(y)
        if whole is not None and len(y) and int(whole.max()) - int(whole.min()) < _WIDEST_TABLE:
            low = whole.min()
            shifted = whole.astype(np.int64) - low.astype(np.int64)
            present = np.zeros(int(whole.max()) - int(low) + 1, dtype=bool)
            present[shifted] = True
            # The sum is computed in the type of the labels. If it overflows, it wraps around to the
            # correct label.
            self.classes = (low + np.flatnonzero(present).astype(whole.dtype)).astype(y.dtype)
            return (np.cumsum(present) - 1)[shifted]
        self.classes, codes = np.unique(y, return_inverse=True)
        return codes.astype(np.int64, copy=False)

    def transform(self, y: Any) -> Any:
        """Return the code of each row's class, int64. A ValueError names the first label that is
        not one of the classes, and its row."""
        codes = places_among(self.classes, y)
        for row in np.flatnonzero(codes < 0)[:1].tolist():
            raise ValueError(
                f"y[{row}] = {y[row : row + 1].tolist()[0]!r} is not among the model's "
                f"classes {self.classes.tolist()}. {_NO_NEW_CLASS}"
            )
        return codes

    def transform_ids(self, table: LabelTable, ids: np.ndarray, start: np.ndarray | None) -> Any:
        """Return the codes of rows of a text file, shape (n_rows,), int64.

        `ids` are the ids of the labels in a table, which is the same in all calls. If `start` is
        given, the labels of row r are ``ids[start[r]:start[r + 1]]``, and its code is 1 if any of
        them has a code other than 0. An UnknownLabelError is raised for a label that is not a
        class.
        """
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


class MultilabelEncoder(LabelEncoder):
    """Encodes the labels of each row as indices of classes; `inverse_transform` decodes them to
    the format `form`."""

    def __init__(self, classes: Any = (), form: TargetFormat = "lists") -> None:
        super().__init__(classes)
        self.form = form

    def fit_transform(self, y: MultilabelTargets) -> Positives:
        """Set the sorted classes, none if no row has a label, and return the codes of the labels of
        each row."""
        self.form = y.form
        self.classes = np.unique(y.given.labels) if y.columns is None else y.columns
        return self.transform(y)

    def transform(self, y: MultilabelTargets) -> Positives:
        """Return the codes of the labels of each row. A ValueError names the first label that is
        not one of the classes, and its row, or a wrong number of columns of an indicator."""
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
        """Return labels in the encoder's format: an indicator matrix, or a list of tuples."""
        n_rows = len(labels.starts) - 1
        if self.form == "lists":
            names = self.classes[labels.labels].tolist()
            return [tuple(names[start:end]) for start, end in pairwise(labels.starts.tolist())]
        ones = np.ones(len(labels.labels), dtype=np.int64)
        shape = (n_rows, len(self.classes))
        matrix = scipy_sparse().csr_matrix((ones, labels.labels, labels.starts), shape=shape)
        matrix.sort_indices()
        return matrix if self.form == "sparse" else matrix.toarray()

    def matches(self, y: MultilabelTargets, predicted: Positives) -> np.ndarray:
        """Return whether the labels of each row equal the predicted labels `predicted`, shape
        (n_rows,)."""
        return agreement(self._codes_of(y), predicted, len(self.classes))[1]

    def _codes_of(self, y: MultilabelTargets) -> Positives:
        """Return the codes of the labels of each row; -1 for labels that are not classes."""
        if y.columns is not None:
            if y.shape[1] != len(self.classes):
                raise ValueError(
                    f"y is an indicator of {y.shape[1]} labels, where the model has "
                    f"{len(self.classes)}. Pass a column for each of these; others need a new fit."
                )
            return y.given
        # Codes are shifted by 1, because `label_sets` needs codes of at least 0.
        codes = places_among(self.classes, y.given.labels) + 1
        starts, labels = label_sets(codes, y.given.starts, len(self.classes) + 1)
        return Positives(starts, labels - 1)


def label_sets(codes: np.ndarray, start: np.ndarray, n_classes: int) -> Positives:
    """Return the sorted, unique labels of rows. `codes` may be unsorted and have duplicates."""
    n_rows = len(start) - 1
    rows = np.repeat(np.arange(n_rows), np.diff(start))
    flat = np.unique(rows * n_classes + codes)
    starts = np.searchsorted(flat, n_classes * np.arange(n_rows + 1))
    return Positives(starts.astype(np.int64, copy=False), flat % n_classes)


def agreement(
    actual: Positives, predicted: Positives, n_labels: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the label of each correct prediction, shape (n_right,), and whether the predicted
    labels of each row equal the actual ones, shape (n_rows,). Labels outside the n_labels are never
    correct."""
    n_rows, cells = len(predicted.starts) - 1, []
    for each in (actual, predicted):
        rows, labels = np.repeat(np.arange(n_rows), np.diff(each.starts)), each.labels
        cells.append((rows * n_labels + labels)[(labels >= 0) & (labels < n_labels)])
    right = np.intersect1d(cells[0], cells[1], assume_unique=True)
    n_right = np.bincount(right // n_labels, minlength=n_rows)
    exact = (n_right == np.diff(actual.starts)) & (n_right == np.diff(predicted.starts))
    return right % n_labels, exact


def given_encoder(classes: Any, positive: Any, many: bool) -> LabelEncoder | None:
    """Return an encoder for `classes` or `positive`; None if neither is given."""
    if not isinstance(positive, str | int | float | np.number | None):
        raise ValueError(f"positive must be a label, a number or a word, got {positive!r}.")
    if positive is not None:
        return LabelEncoder.of_positive(positive)
    if classes is None:
        return None
    given = list(classes) if isinstance(classes, set | frozenset) else unwrapped(classes)
    given = np.ravel(given) if isinstance(given, np.ndarray) else given
    labels = label_array(given, "classes[{}]".format)
    if (
        labels.dtype.kind in "biu"
        and (labels.astype(np.float64).astype(object) != labels.astype(object)).any()
    ):
        # Doubles can't represent some of these integers, so they become strings, as in files.
        labels = labels.astype(np.str_)
    if labels.dtype.kind != "U":  # truth values become 0 and 1, as in files of numbers
        labels = labels.astype(np.float64 if labels.dtype.kind == "f" else np.int64)
    return encoder_of(labels, "classes", many)


def encoder_of(labels: np.ndarray, names: str, many: bool) -> LabelEncoder:
    """Return an encoder for the distinct labels, for multilabel problems if `many`.

    A ValueError that contains `names`, the source of the labels, is raised if there are too few
    classes or if labels are not whole numbers.
    """
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
    """Raise a ValueError if nan or inf is a label and all other labels are numbers, because such
    rows have a missing label."""
    words = [label for label in labels if isnan(number_of(label))]
    marks = [label for label in words if label.lower().lstrip("+-") in _NOT_FINITE]
    if marks and len(marks) == len(words) < len(labels):
        raise ValueError(
            f"{names} has the label {first_labels(marks[:1])} among numbers: such a row has no "
            "label. Give it one, or drop the row; or write the classes as words."
        )


def refuse_no_labels(classes: np.ndarray) -> None:
    """Raise a ValueError if there are no classes, because no row has a label."""
    if not len(classes):
        raise ValueError("No row of y has a label: nothing to learn.")


def refuse_lone(classes: np.ndarray, name: str) -> None:
    """Raise a ValueError if there are fewer than two classes."""
    if len(classes) < 2:
        lone = first_labels(classes.tolist())
        raise ValueError(f"{name} has one class only, {lone}; at least 2 are needed.")


def many_classes(n_classes: int, n_rows: int) -> str | None:
    """Return the end of a warning if more than half of the labels of more than 20 rows differ.

    scikit-learn warns in the same cases. Fits to data in memory and to svmlight files use
    `warn_of_many_classes`. For text files, the notes on the first rows include this warning.
    """
    if n_rows <= _FEW_ROWS or n_classes <= round(n_rows / 2):
        return None
    return (
        f"{n_classes:,} different labels in {n_rows:,} rows, and each becomes a class. Check that "
        "these are labels, not texts, numbers of rows or values of a regression."
    )


def warn_of_many_classes(n_classes: int, n_rows: int, name: str) -> None:
    """Warn if most labels differ. `name` is the source of the labels: "y", or names of files."""
    found = many_classes(n_classes, n_rows)
    if found is not None:
        warn_user(f"{name} has {found}")


class Choice:
    """Selects the labels with an output of at least `threshold`, and of these the `top_k` (None:
    all) with the largest outputs. Lower labels win ties. The threshold is a number, or one for each
    label. None means 0, or no threshold if `top_k` is given."""

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
        """Return whether each label is predicted, bool, for outputs (n_rows, n_labels)."""
        reached = outputs >= self.threshold
        if self.top_k is None or self.top_k >= outputs.shape[1]:
            return reached
        least = np.partition(outputs, -self.top_k, axis=1)[:, -self.top_k, np.newaxis]
        above, equal = outputs > least, outputs == least
        room = self.top_k - above.sum(axis=1, keepdims=True)
        return reached & (above | (equal & (np.cumsum(equal, axis=1) <= room)))

    def lone_codes(self, outputs: np.ndarray) -> np.ndarray:
        """Return the class of each row for two classes: 1 if its output reaches the threshold."""
        return self.of(outputs)[:, 0].astype(np.intp)

    def labels(self, outputs: np.ndarray) -> Positives:
        """Return the labels of each row, sorted by code, or by decreasing output with `top_k`."""
        starts, labels = positives_of(self.of(outputs))
        if self.top_k is not None:
            rows = np.repeat(np.arange(len(outputs)), np.diff(starts))
            labels = labels[np.lexsort((labels, -outputs[rows, labels], rows))]
        return Positives(starts, labels)


def concatenate_labels(parts: list[Positives]) -> Positives:
    """Concatenate the labels of consecutive blocks of rows."""
    counts = [np.diff(part.starts) for part in parts]
    starts = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    return Positives(starts, np.concatenate([part.labels for part in parts]))
