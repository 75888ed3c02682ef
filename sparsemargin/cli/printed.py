"""Predictions as lines of labels, of a table or of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, pairwise, repeat
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from sparsemargin._engine.fitting.task import Positives
from sparsemargin.evaluation.explainer import Explainer, Explanation
from sparsemargin.files.tsv import CONTROL, escaped, quoted, tsv_row
from sparsemargin.saving.readable import INTERCEPT
from sparsemargin.streaming.predict import PredictedBlock

_EXPLAINED = ["row", "label", "feature", "adds"]
_OUTPUT, _OTHERS = "(output)", "(others)"

# Escapes of control characters. `json` escapes only the characters below 0x20.
_ESCAPES = {each: f"\\u{each:04x}" for each in CONTROL}

#: Returns the lines of a block, with their ends.
Lines = Callable[[PredictedBlock], Iterator[bytes]]


class Numbers(NamedTuple):
    """Numbers that are printed for each row: their name, their classes, and the function that
    computes them for a block, shape (n_rows, n_classes)."""

    name: str
    classes: list[str]
    compute: Callable[[PredictedBlock], np.ndarray]


@dataclass
class Printed:
    """The settings of the printed rows.

    A row has the columns `keep`, its label, or several labels if there are `lists` of them, and
    `numbers` or the `n_explained` largest contributions. `names_in` returns the names of all
    features by the terms of some texts; if it is None, the explainer names them. `separator` stands
    between the columns of a table.
    """

    keep: tuple[str, ...]
    lists: bool
    numbers: Numbers | None = None
    explainer: Explainer | None = None
    n_explained: int = 0
    names_in: Callable[[list[str]], Sequence[str]] | None = None
    separator: bytes = b"\t"

    def rows(self, predicted: PredictedBlock) -> Iterator[tuple[Any, ...]]:
        """Yield the kept values of each row, the codes of its labels, its numbers, and the
        explanations of its labels."""
        found, kept = predicted.codes, predicted.block.kept
        if isinstance(found, Positives):
            labels = found.labels.tolist()
            codes = [labels[start:end] for start, end in pairwise(found.starts.tolist())]
        else:
            codes = [[code] for code in found.tolist()]
        yield from zip(
            zip(*kept, strict=True) if kept else repeat(()),
            codes,
            self.numbers.compute(predicted).tolist() if self.numbers else repeat(()),
            self._explanations(predicted, codes) if self.explainer else repeat(()),
            strict=False,
        )

    def _explanations(
        self, predicted: PredictedBlock, codes: list[list[int]]
    ) -> Iterator[list[Explanation]]:
        assert self.explainer is not None
        rows, outputs, texts = predicted.rows, predicted.outputs, predicted.block.texts
        for i, (start, end) in enumerate(pairwise(rows.indptr.tolist())):
            entries = rows.indices[start:end], rows.data[start:end]
            names = None if self.names_in is None else self.names_in([texts[i]])
            yield [self.explainer.explain(code, outputs[i], *entries, names) for code in codes[i]]

    def header(self) -> bytes:
        """Return the names of the columns of a table."""
        own = ["label", *(self.numbers.classes if self.numbers else ())]
        own = own if self.explainer is None else _EXPLAINED
        return tsv_row([*self._names_beside(own), *own], self.separator)

    def _names_beside(self, own: list[str]) -> list[str]:
        """Return the names of kept columns, with ``kept_`` before names that are taken already."""
        names = list[str]()
        for name in self.keep:
            while name in own or name in names:
                name = f"kept_{name}"
            names.append(name)
        return names

    def as_text(self, texts: list[bytes], *, in_table: bool) -> Lines:
        """Return the function that writes lines of labels or of a table. `texts` are the escaped
        classes."""
        field = partial(quoted, separator=self.separator)
        # Labels in a .csv are quoted even if they are its only column.
        has_fields = in_table or self.separator == b","
        ended = [(field(text) if has_fields else text) + b"\n" for text in texts]
        numbers_of_rows = count(1)

        def lines(predicted: PredictedBlock) -> Iterator[bytes]:
            if not in_table and not isinstance(predicted.codes, Positives):
                # This is twice as fast as the general case.
                yield from [ended[code] for code in predicted.codes.tolist()]
                return
            for kept, codes, numbers, why in self.rows(predicted):
                before = [field(escaped(_as_text(value))) for value in kept]
                if self.explainer is None:
                    label = b",".join([texts[code] for code in codes])
                    values = [repr(number).encode() for number in numbers]
                    fields = [*before, field(label) if has_fields else label, *values]
                    yield self.separator.join(fields) + b"\n"
                    continue
                before.append(b"%d" % next(numbers_of_rows))
                for code, explained in zip(codes, why, strict=True):
                    for name, value in _parts(explained, self.n_explained):
                        adds = repr(value).encode()
                        fields = [*before, field(texts[code]), field(name), adds]
                        yield self.separator.join(fields) + b"\n"

        return lines

    def as_json(self, classes: list[Any]) -> Lines:
        """Return the function that writes an object for each row. The label of a rejected row is
        null."""
        # Whole numbers have no decimal point, as in files.
        values = [int(each) if isinstance(each, float) and each % 1 == 0 else each
                  for each in classes]  # fmt: skip
        values.append(None)

        def lines(predicted: PredictedBlock) -> Iterator[bytes]:
            for kept, codes, numbers, why in self.rows(predicted):
                labels = [values[code] for code in codes]
                own: dict[str, Any] = {"label": labels if self.lists else labels[0]}
                if self.numbers:
                    own[self.numbers.name] = dict(zip(self.numbers.classes, numbers, strict=True))
                parts = [_members(each, self.n_explained) for each in why]
                if self.explainer and self.lists:
                    pairs = zip(labels, parts, strict=True)
                    own["explanations"] = [{"label": label, **part} for label, part in pairs]
                elif self.explainer:
                    own |= parts[0]
                beside = zip(self._names_beside(list(own)), map(_plain, kept), strict=True)
                # A lone half of a surrogate pair becomes an escape of JSON.
                yield _as_json({**dict(beside), **own}).encode("utf-8", "backslashreplace") + b"\n"

        return lines


def _parts(explained: Explanation, n_features: int) -> Iterator[tuple[bytes, float]]:
    """Yield escaped names and values: the output, the intercept and the largest contributions.

    The last pair is the sum of all other contributions, if there are any.
    """
    yield _OUTPUT.encode(), explained.output
    yield INTERCEPT.encode(), explained.intercept
    added = explained.contributions.tolist()
    for name, value in zip(explained.names[:n_features], added, strict=False):
        taken = name in (_OUTPUT, INTERCEPT, _OTHERS)
        yield b"\\" * taken + escaped(name), value
    if len(added) > n_features:
        yield _OTHERS.encode(), sum(added[n_features:])


def _members(explained: Explanation, n_features: int) -> dict[str, Any]:
    """Return the same parts as members of a JSON object. The sum of no contributions is 0."""
    added = explained.contributions.tolist()
    named = zip(explained.names[:n_features], added, strict=False)
    return {
        "output": explained.output, "intercept": explained.intercept,
        "contributions": [{"feature": name, "contribution": value} for name, value in named],
        "others": sum(added[n_features:], 0.0),
    }  # fmt: skip


def _plain(value: Any) -> Any:
    """Return a value of a table as JSON can hold it. Numbers that are not finite are null, and
    values of other types are text."""
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_plain, value))
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, float) and not isfinite(value):
        return None
    return value if isinstance(value, str | int | float | None) else str(value)


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).translate(_ESCAPES)


def _as_text(value: Any) -> str:
    plain = _plain(value)
    return plain if isinstance(plain, str) else "" if plain is None else _as_json(plain)
