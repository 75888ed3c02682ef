"""Predictions as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from sparsemargin._engine.fitting.task import Positives
from sparsemargin.evaluation.explainer import Explanation
from sparsemargin.files.tsv import CONTROL
from sparsemargin.models import Learner
from sparsemargin.models.inputs.labels import label_text
from sparsemargin.streaming.predict import PredictedBlock

# `json` escapes only those below 0x20.
_ESCAPES = {each: f"\\u{each:04x}" for each in CONTROL}

#: Returns the lines of each row of a block, without line ends.
Lines = Callable[[PredictedBlock], Iterator[list[bytes]]]

#: Returns the codes of the predicted classes of each row of a block, with their explanations.
Explained = Callable[[PredictedBlock], Iterator[list[tuple[int, Explanation]]]]

#: Returns the members of each row of a block, except its label.
Members = Callable[[PredictedBlock], Iterator[dict[str, Any]]]


def json_lines(learner: Learner, members: Members | None) -> Lines:
    """Return a function that writes an object for each row: its label, or the list of its labels,
    and further members. The label of a rejected row is null."""
    labels = [*map(_label, learner.classes_.tolist()), None]

    def lines(predicted: PredictedBlock) -> Iterator[list[bytes]]:
        found: Iterable[dict[str, Any]] = [{}] * predicted.block.n_rows
        if members is not None:
            found = members(predicted)
        for label, more in zip(_labels_of(predicted, labels), found, strict=True):
            yield [as_json({"label": label, **more}).encode("utf-8", "backslashreplace")]

    return lines


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


def numbers_by_class(
    name: str, learner: Learner, numbers: Callable[[PredictedBlock], np.ndarray]
) -> Members:
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
