"""Labels of rows that may have several, as the user gives them and gets them back."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.preprocessing import MultiLabelBinarizer

from sparsemargin._engine.fitting.task import Positives
from sparsemargin.models._many_labels import Form
from sparsemargin.models.validation import check_sparse

_COLLECTIONS = (list, tuple, set, frozenset, np.ndarray)
_NUMBERS = (int, float, np.number, np.bool_)


class ManyLabels:
    """The labels of rows that may have several; base of the forms in which they are given.

    Attributes
    ----------
    form : {"dense", "sparse", "lists"}
    shape : tuple of int
        The first is the number of rows.
    """

    form: Form
    shape: tuple[int, ...]

    @abstractmethod
    def find_classes(self) -> tuple[np.ndarray, Positives]:
        """All labels there are, sorted, and those of each row."""

    @abstractmethod
    def among(self, classes: np.ndarray) -> Positives:
        """Those of each row, among known labels.

        Raises
        ------
        ValueError
            If there are others.
        """

    @abstractmethod
    def agree(self, told: Positives, classes: np.ndarray) -> np.ndarray:
        """Whether each row has the very labels that it was told to have, shape (n_rows,)."""


class Indicator(ManyLabels):
    """A matrix of shape (n_rows, n_labels): 1 where the row has the label, else 0.

    Raises
    ------
    ValueError
        If it has another entry; names the row and the label.
    """

    def __init__(self, Y: Any) -> None:
        self.form = "sparse" if issparse(Y) else "dense"
        self.shape = Y.shape
        if Y.ndim != 2 or not Y.shape[1]:
            raise ValueError(
                f"y is of shape {Y.shape}. An indicator of labels is of shape (n_samples, n_labels)"
                ", with one label at least."
            )
        self._positives = _of_sparse(Y) if self.form == "sparse" else _of_dense(Y)

    def find_classes(self) -> tuple[np.ndarray, Positives]:
        return np.arange(self.shape[1]), self._positives

    def among(self, classes: np.ndarray) -> Positives:
        if self.shape[1] != len(classes):
            raise ValueError(
                f"y is an indicator of {self.shape[1]} labels, where the model has "
                f"{len(classes)}. Pass a column for each of these; others need a new fit."
            )
        return self._positives

    def agree(self, told: Positives, classes: np.ndarray) -> np.ndarray:
        own, other = (as_matrix(labels, len(classes)) for labels in (self.among(classes), told))
        differences: np.ndarray = abs(own - other).sum(axis=1)
        return np.asarray(differences).ravel() == 0


def _of_dense(Y: np.ndarray) -> Positives:
    if Y.dtype.kind in "biufc":
        wrong = (Y != 0) & (Y != 1)
    else:
        bits = [_is_bit(entry) for entry in Y.astype(object).ravel()]
        wrong = ~np.array(bits, dtype=bool).reshape(Y.shape)
    if wrong.any():
        row, label = np.argwhere(wrong)[0].tolist()
        _refuse_entry(row, label, Y[row, label])
    rows, labels = np.nonzero(Y)
    starts = np.searchsorted(rows, np.arange(len(Y) + 1))
    return Positives(starts.astype(np.int64), np.ascontiguousarray(labels, dtype=np.int64))


def _of_sparse(Y: Any) -> Positives:
    check_sparse(Y, "y")
    Y = csr_matrix(Y)  # another object, over the same arrays if it can be
    if not Y.has_canonical_format:
        Y = Y.copy()
        Y.sum_duplicates()
    wrong = np.flatnonzero((Y.data != 0) & (Y.data != 1))
    if len(wrong):
        row = int(np.searchsorted(Y.indptr, wrong[0], side="right")) - 1
        _refuse_entry(row, int(Y.indices[wrong[0]]), Y.data[wrong[0]])
    if not Y.data.all():
        Y = Y.copy()
        Y.eliminate_zeros()
    return Positives(Y.indptr.astype(np.int64), Y.indices.astype(np.int64))


def _is_bit(entry: Any) -> bool:
    return isinstance(entry, _NUMBERS) and entry in (0, 1)


def _refuse_entry(row: int, label: int, entry: Any) -> NoReturn:
    plain = entry.item() if isinstance(entry, np.generic) else entry
    raise ValueError(
        f"y[{row}, {label}] = {plain!r} is neither 0 nor 1: an indicator has 1 where a row has a "
        "label, else 0. Classes of which each row has one are of shape (n_samples,)."
    )


class Lists(ManyLabels):
    """A list of labels for each row, in any order.

    Raises
    ------
    ValueError
        If a row is no list.
    """

    form: Form = "lists"

    def __init__(self, rows: Any) -> None:
        self._rows, self.shape = rows, (len(rows),)
        for i, row in enumerate(rows):
            if not _is_collection(row):
                raise ValueError(
                    f"y[{i}] = {row!r} is no list of labels, as other rows are. Pass a list for "
                    "every row, or one class for every row."
                )

    def find_classes(self) -> tuple[np.ndarray, Positives]:
        binarizer = MultiLabelBinarizer(sparse_output=True)
        try:
            Y = binarizer.fit_transform(self._rows)
            classes = np.array(binarizer.classes_.tolist())
            sound = classes.ndim == 1 and bool((classes[1:] > classes[:-1]).all())
        except (TypeError, ValueError) as error:
            raise ValueError(f"The labels in y can't be sorted: {error}. {_ONE_TYPE}") from None
        if not sound or classes.dtype.kind not in "biufU":
            raise ValueError(f"The labels in y are neither numbers nor text. {_ONE_TYPE}")
        if not len(classes):
            raise ValueError("No row of y has a label: nothing to learn.")
        return classes, _of_sparse(Y)

    def among(self, classes: np.ndarray) -> Positives:
        known = set(classes.tolist())
        for i, own in enumerate(self._sets()):
            if not own <= known:
                label = next(label for label in self._rows[i] if label not in known)
                raise ValueError(
                    f"y[{i}] has the label {label!r}, which is not among the classes "
                    f"{classes.tolist()}. partial_fit needs all classes in its first call; "
                    "after a fit, a new label needs a new fit."
                )
        binarizer = MultiLabelBinarizer(classes=classes.tolist(), sparse_output=True)
        return _of_sparse(binarizer.fit_transform(self._rows))

    def agree(self, told: Positives, classes: np.ndarray) -> np.ndarray:
        pairs = zip(self._sets(), as_lists(told, classes), strict=True)
        return np.array([own == set(other) for own, other in pairs])

    def _sets(self) -> Iterator[set[Any]]:
        for i, row in enumerate(self._rows):
            try:
                yield set(row)
            except TypeError:
                raise ValueError(
                    f"y[{i}] = {row!r} has labels that are neither numbers nor text. {_ONE_TYPE}"
                ) from None


_ONE_TYPE = "Give labels of one type, numbers or text."


def read_many_labels(y: Any, n_columns: int | None = None) -> ManyLabels | None:
    """Labels of rows that may have several; None: y has one class for each row.

    Parameters
    ----------
    y : array-like or sparse matrix
    n_columns : int or None
        Of an indicator that is given as lists; None: any number; 0: lists name labels, even if
        they could be the rows of an indicator.
    """
    if issparse(y):
        return Indicator(y)
    if not isinstance(y, list | tuple):
        y = np.asarray(y)
        if y.ndim == 2 and y.shape[1] > 1:
            return Indicator(y)
        if y.ndim != 1 or y.dtype.kind != "O":
            return None
    if not any(_is_collection(row) for row in y):
        return None
    return Indicator(np.array(y)) if _are_rows_of_an_indicator(y, n_columns) else Lists(y)


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


def as_matrix(labels: Positives, n_labels: int) -> csr_matrix:
    """An indicator."""
    ones = np.ones(len(labels.labels), dtype=np.int64)
    shape = (len(labels.starts) - 1, n_labels)
    return csr_matrix((ones, labels.labels, labels.starts), shape=shape)


def as_lists(labels: Positives, classes: np.ndarray) -> list[tuple[Any, ...]]:
    """A tuple for each row."""
    names = classes[labels.labels].tolist()
    return [tuple(names[start:end]) for start, end in pairwise(labels.starts.tolist())]


def in_form(labels: Positives, classes: np.ndarray, form: Form) -> Any:
    """The labels of rows, as they were given."""
    if form == "lists":
        return as_lists(labels, classes)
    matrix = as_matrix(labels, len(classes))
    return matrix if form == "sparse" else matrix.toarray()
