"""Multilabel targets as they are given: indicators, and lists of labels."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, NoReturn, get_args

import numpy as np

from sparsemargin._engine.fitting.task import Positives
from sparsemargin._heavy import scipy_sparse
from sparsemargin.models.inputs.label_values import (
    DROP_ROWS,
    is_missing,
    label_array,
    unwrapped,
)

#: Format of multilabel targets in training, and of predictions.
TargetFormat = Literal["dense", "sparse", "lists"]
FORMS = get_args(TargetFormat)

_COLLECTIONS = (list, tuple, set, frozenset, np.ndarray)
_NUMBERS = (int, float, np.number, np.bool_)


@dataclass(frozen=True)
class MultilabelTargets:
    """Multilabel targets before encoding.

    `given` has the columns of an indicator matrix of `shape`, or the concatenated labels of lists.
    """

    form: TargetFormat
    shape: tuple[int, ...]
    given: Positives

    @property
    def columns(self) -> np.ndarray | None:
        """Column numbers of an indicator matrix; None for lists."""
        return None if self.form == "lists" else np.arange(self.shape[1])


def multilabel_targets(y: Any, n_columns: int | None = None) -> MultilabelTargets | None:
    """Return y as multilabel targets, or None if y has one class per row.

    Lists of 0 and 1 are an indicator matrix if their length is `n_columns`. None: any length; 0:
    lists always contain labels. A ValueError names the row of an entry of an indicator that is not
    0 or 1, of a label that is missing or invalid, or of a row that is no collection.
    """
    y = unwrapped(y)
    if not may_have_several(y):
        return None
    if scipy_sparse().issparse(y):
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
            _refuse_gap(f"{place(at)} is {labels[at]}", "pandas.notna(label)")
    empty = ("", b"")
    for at in (at for at, label in enumerate(labels) if label in empty):
        _refuse_gap(f"{place(at)} is {labels[at]!r}", "label not in ('', b'')")
    return MultilabelTargets("lists", (len(y),), Positives(starts, label_array(labels, place)))


def _refuse_gap(what: str, is_kept: str) -> NoReturn:
    raise ValueError(
        f"{what}, which is no label. Leave it out of its list: "
        f"y = [[label for label in row if {is_kept}] for row in y]."
    )


def may_have_several(y: Any) -> bool:
    """Return whether y has the format of multilabel targets."""
    if scipy_sparse().issparse(y):
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
    """Return whether lists are the rows of an indicator matrix, as in scikit-learn."""
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


def _of_indicator(Y: Any, form: TargetFormat) -> MultilabelTargets:
    if Y.ndim != 2 or not Y.shape[1]:
        raise ValueError(
            f"y is of shape {Y.shape}. An indicator of labels is of shape (n_samples, n_labels)"
            ", with one label at least."
        )
    if form == "sparse":
        Y = scipy_sparse().csr_matrix(Y, copy=True)
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
        "label, else 0. For one class per row, pass one column, of shape (n_samples,)."
    )


def positives_of(chosen: np.ndarray) -> Positives:
    """Return the labels of each row of a boolean array of shape (n_rows, n_labels)."""
    n_rows, n_labels = chosen.shape
    flat = np.flatnonzero(chosen)
    starts = np.searchsorted(flat, np.arange(n_rows + 1) * n_labels)
    return Positives(starts.astype(np.int64, copy=False), flat % n_labels)
