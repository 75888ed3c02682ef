"""Predictions as lines of JSON, and the kept columns that are printed beside predictions."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import pairwise
from math import isfinite
from typing import Any

import numpy as np

from sparsemargin._engine.fitting.task import Positives
from sparsemargin.evaluation.explainer import Explanation
from sparsemargin.files.tsv import CONTROL, tsv_field
from sparsemargin.models import Learner
from sparsemargin.models.inputs.labels import label_text
from sparsemargin.streaming.predict import PredictedBlock

# `json` escapes only those below 0x20.
_ESCAPES = {each: f"\\u{each:04x}" for each in CONTROL}

#: Returns the lines of each row of a block, without line ends.
Lines = Callable[[PredictedBlock], Iterator[list[bytes]]]

#: Returns numbers of a block, shape (n_rows, n_numbers).
Numbers = Callable[[PredictedBlock], np.ndarray]

#: Returns the codes of the predicted classes of each row of a block, with their explanations.
Explained = Callable[[PredictedBlock], Iterator[list[tuple[int, Explanation]]]]

#: Returns the members of each row of a block, except its label.
Members = Callable[[PredictedBlock], Iterator[dict[str, Any]]]


def json_lines(learner: Learner, keep: Sequence[str], members: Members | None) -> Lines:
    """Return a function that writes an object for each row: its kept columns, its label, or the
    list of its labels, and further members. The label of a rejected row is null."""
    labels = [*map(_label, learner.classes_.tolist()), None]

    def lines(predicted: PredictedBlock) -> Iterator[list[bytes]]:
        found: Iterable[dict[str, Any]] = [{}] * predicted.block.n_rows
        if members is not None:
            found = members(predicted)
        rows = zip(_kept_of(predicted), _labels_of(predicted, labels), found, strict=True)
        for kept, label, more in rows:
            own = {"label": label, **more}
            beside = zip(names_beside(own, keep), map(_plain, kept), strict=True)
            record = as_json({**dict(beside), **own})
            yield [record.encode("utf-8", "backslashreplace")]

    return lines


def lines_beside(lines: Lines) -> Lines:
    """Return a function that writes the kept columns before each line, as fields of a table."""

    def beside(predicted: PredictedBlock) -> Iterator[list[bytes]]:
        for kept, row in zip(_kept_of(predicted), lines(predicted), strict=True):
            fields = b"".join([tsv_field(_as_text(value)) + b"\t" for value in kept])
            yield [fields + line for line in row]

    return beside


def names_beside(own: Container[str], keep: Sequence[str]) -> list[str]:
    """Return the names of kept columns. Those that predictions have, too, begin with ``kept_``."""
    names = list[str]()
    for name in keep:
        while name in own or name in names:
            name = f"kept_{name}"
        names.append(name)
    return names


def _kept_of(predicted: PredictedBlock) -> Iterable[tuple[Any, ...]]:
    """Return the values of the kept columns of each row."""
    block = predicted.block
    return zip(*block.kept, strict=True) if block.kept else [()] * block.n_rows


def _plain(value: Any) -> Any:
    """Return a value of a table as JSON can hold it. Numbers that are not finite are null, and
    values of other types are text."""
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_plain, value))
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if isinstance(value, str | int | None) else str(value)


def _as_text(value: Any) -> str:
    """Return a value of a table as text. A missing value is empty."""
    plain = _plain(value)
    return plain if isinstance(plain, str) else "" if plain is None else as_json(plain)


def _label(label: Any) -> Any:
    """Return a class as JSON writes it. Whole numbers have no decimal point, as in files."""
    return int(label) if isinstance(label, float) and label.is_integer() else label


def as_json(value: Any) -> str:
    """Write a value as JSON in one line, without control characters. Halves of surrogate pairs
    remain, which ``backslashreplace`` encodes as escapes of JSON."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).translate(_ESCAPES)


def _labels_of(predicted: PredictedBlock, labels: list[Any]) -> Iterator[Any]:
    codes = predicted.codes
    if not isinstance(codes, Positives):
        yield from [labels[code] for code in codes.tolist()]
        return
    chosen = [labels[code] for code in codes.labels.tolist()]
    for start, end in pairwise(codes.starts.tolist()):
        yield chosen[start:end]


def numbers_by_class(name: str, learner: Learner, numbers: Numbers) -> Members:
    """Return a function that gives the member `name`, an object with the numbers of the classes.
    With one number for two classes, it is that of the second class."""
    classes = list(map(label_text, learner.classes_.tolist()))

    def members(predicted: PredictedBlock) -> Iterator[dict[str, Any]]:
        values = numbers(predicted)
        keys = classes[-values.shape[1] :]
        for row in values.tolist():
            yield {name: dict(zip(keys, row, strict=True))}

    return members


def explanations(explained: Explained, n_features: int, *, lists: bool) -> Members:
    """Return a function that gives the `n_features` largest contributions. If rows have lists of
    labels, there is a member with a list of one explanation for each label."""

    def members(predicted: PredictedBlock) -> Iterator[dict[str, Any]]:
        for row in explained(predicted):
            parts = [_parts(each, n_features) for _, each in row]
            if not lists:
                yield parts[0]
                continue
            pairs = zip(row, parts, strict=True)
            yield {
                "explanations": [{"label": _label(each.label), **part} for (_, each), part in pairs]
            }

    return members


def _parts(explained: Explanation, n_features: int) -> dict[str, Any]:
    added = explained.contributions.tolist()
    named = zip(explained.names[:n_features], added, strict=False)
    return {
        "output": explained.output, "intercept": explained.intercept,
        "contributions": [{"feature": name, "contribution": value} for name, value in named],
        "others": sum(added[n_features:], 0.0),
    }  # fmt: skip
