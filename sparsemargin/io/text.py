"""Rows written as svmlight text that reads back to the same bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from sparsemargin._engine.svmlight.scan import PADDING, ScanError, Scanner, text_of_rows
from sparsemargin.io.kinds import begins_as_text
from sparsemargin.io.rows import LabelledRows
from sparsemargin.io.shown import quoted
from sparsemargin.models.labels import label_text


def inexact(values: np.ndarray) -> np.ndarray:
    """Places of those real numbers that are no doubles."""
    if values.dtype.kind == "f":
        with np.errstate(over="ignore"):
            doubles = values.astype(np.float64, copy=False)
        return np.flatnonzero((doubles != values) & ~np.isnan(values))
    large = np.flatnonzero((values > 2**53) | (values < -(2**53)))
    return np.array([i for i in large if int(float(values[i])) != int(values[i])], dtype=np.int64)


def readable_labels(name: str, rows: LabelledRows, labels: np.ndarray) -> list[str]:
    """The labels, by id, as svmlight text that is read back, once that is known of the rows as
    well.

    Text has no types. A number is read back as the double it equals, True as 1 and False as 0; so
    is a text that is a number, unless another label is a word. A ValueError names the file, and the
    rows whose labels would not be read back, or as one.
    """
    _check_lines(name, rows)
    texts = _texts_of(name, rows, labels)
    many = rows.label_start is not None
    found, ids = _scanned(texts, many)
    if found == texts:
        return texts
    for i, text in enumerate(texts):
        if _scanned([text], many)[0] != [text]:
            raise ValueError(
                f"{name}, row {_row_of(rows, i)}: label {quoted(text)} would not be read back from "
                "svmlight text. Labels there are finite numbers, or words of Unicode without "
                "blanks, commas, colons, '#' and NUL. Rename it."
            )
    second = int(np.flatnonzero(ids != np.arange(len(ids)))[0])
    first = int(ids[second])
    raise ValueError(
        f"{name}, rows {_row_of(rows, first)} and {_row_of(rows, second)}: labels "
        f"{quoted(texts[first])} and {quoted(texts[second])} are one number, and would be read "
        "back from svmlight text as one label. Rename one of them."
    )


def _check_lines(name: str, rows: LabelledRows) -> None:
    """Refuse a row that would be a blank line, which is none."""
    if rows.label_start is None or rows.query_ids is not None:
        return
    blank = np.flatnonzero((np.diff(rows.label_start) == 0) & (np.diff(rows.indptr) == 0))
    if len(blank):
        raise ValueError(
            f"{name}, row {blank[0]} has neither label nor feature, and svmlight text has no line "
            "for it. Drop the row."
        )


def _texts_of(name: str, rows: LabelledRows, labels: np.ndarray) -> list[str]:
    if labels.dtype.kind == "U":
        return labels.tolist()
    if labels.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} has labels of type {labels.dtype}; svmlight text has numbers and words. Save "
            "them as such."
        )
    lost = inexact(labels)
    if len(lost):
        raise ValueError(
            f"{name}, row {_row_of(rows, lost[0])}: label {labels[lost[0]]} is no double, as which "
            "it would be read back from svmlight text. Number the classes from 0, or name them."
        )
    return [label_text(label) for label in labels.astype(np.float64).tolist()]


def _scanned(texts: Sequence[str], many: bool) -> tuple[list[str], np.ndarray]:
    """The labels that the scanner finds where each text is a line, and those of the lines by id."""
    scanner = Scanner(np.float64, max_index=0, multilabel=many)
    try:
        lines = "\n".join(texts).encode("utf-8", "surrogateescape")
        rows = scanner.scan(bytearray(lines) + bytes(PADDING), len(lines))
    except (UnicodeEncodeError, ScanError):
        return [], np.zeros(0, dtype=np.int32)
    return scanner.label_texts, rows.labels


def _row_of(rows: LabelledRows, label: int) -> int:
    """The first row that has the label."""
    place = int(np.flatnonzero(rows.labels == label)[0])
    if rows.label_start is None:
        return place
    return int(np.searchsorted(rows.label_start, place, side="right")) - 1


def as_text(rows: LabelledRows, label_texts: Sequence[str], first: int) -> memoryview:
    """A line for each row; `first` is the index of the first column, texts of labels are as the
    scanner has them or `readable_labels`."""
    heads = [head.encode("utf-8", "surrogateescape") for head in _heads(rows, label_texts)]
    # The line may be a file's first, and a blank says that it begins with a label.
    if heads and not begins_as_text(heads[0] + b"\n"):
        heads[0] = b" " + heads[0]
    ends = np.cumsum([len(head) for head in heads], dtype=np.int64)
    joined = np.frombuffer(b"".join(heads), dtype=np.uint8)
    return text_of_rows(rows.data, rows.indices, rows.indptr, joined, ends, first).data


def _heads(rows: LabelledRows, label_texts: Sequence[str]) -> Iterator[str]:
    """What each line begins with."""
    labels: Any = (label_texts[i] for i in rows.labels.tolist())
    if rows.label_start is not None:
        given, bounds = list(labels), rows.label_start.tolist()
        labels = (",".join(given[a:b]) for a, b in pairwise(bounds))
    if rows.query_ids is None:
        return iter(labels)
    return (f"{head} qid:{q}" for head, q in zip(labels, rows.query_ids.tolist(), strict=True))
