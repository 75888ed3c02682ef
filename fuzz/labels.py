"""Learns labels of every type from memory and from files of every form: see fuzz/README.md.

Whatever the labels are, they are learned, or there is a clear error of an expected kind. Values
that a container or a form holds as they are give the very labels, or the very kind of refusal, that
they give in a list.
"""

from __future__ import annotations

import datetime
import math
import re
import warnings
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from harness import Given, main

from problems.label_forms import CONTAINERS, KINDS, TYPED, WRITERS, vectorizer
from sparsemargin import fit_text
from sparsemargin.models.inputs.label_table import word_of
from sparsemargin.models.inputs.labels import label_text

ODD = [
    None, math.nan, math.inf, -math.inf, True, False, 0, 1, -1, 2**53, 2**53 + 1, 2**63, 2**64,
    -(2**63) - 1, 10**30, 0.0, -0.0, 1.0, 0.5, 1e16, 1e300, 5e-324, Decimal("NaN"), Decimal("1E+3"),
    Decimal("0.1"), Decimal("1E+400"), Fraction(1, 3), 1j, "", " ", "a ", "a,b", "a\nb", "a\tb",
    "a\rb", '"', "'", "\\", "nan", "NaN", "inf", "Infinity", "1e5", "01", "+1", "1.0", "-0", "true",
    "TRUE", "None", "null", "\0", "a\0", "\ufeffa", "a\xa0b", "\u2028", "\ud800", "\udce9", "é",
    "e\u0301", "x" * 5000, b"a", b"\xff", bytearray(b"a"), np.datetime64("NaT"), np.float16(1),
    np.uint64(2**64 - 1), np.longdouble(1), np.array(1), np.array([1]), [], ["a"], [1, 0], (),
    ("a",), {"a": 1}, {"a"}, object(), datetime.date(2020, 1, 1), datetime.timedelta(1), Ellipsis,
]  # fmt: skip
# Messages of Python, numpy or pyarrow about values that should have been checked before.
UNCLEAR = re.compile(
    "object is not|unhashable|has no attribute|Unsupported|setting an array|inhomog"
)
MISSING = "no label"


class OddLabels:
    """Labels, some of which are odd, from a list, a container and a file."""

    MOST_CHANGES = 3

    def __init__(self, folder: Path):
        self.folder = folder

    def check(self, given: Given) -> None:
        random = given.random
        kind = list(KINDS)[random.randint(len(KINDS))]
        n_rows = int(random.randint(4, 30))
        values = [KINDS[kind][0][i] for i in random.permutation(np.arange(n_rows) % 2)]
        for of_change in given.changes(random.randint(self.MOST_CHANGES + 1)):
            values[of_change.randint(n_rows)] = ODD[of_change.randint(len(ODD))]
        given.log.append(f"{kind}: {values!r}")
        plain = self._outcome(["ab cd", "ef gh"] * 15, list(values))
        given.outcomes[plain if isinstance(plain, str) else "learned"] += 1
        for name in random.permutation(list(CONTAINERS))[:4].tolist():
            held = _held(CONTAINERS[name], values)
            if held is not None:
                got = self._outcome(["ab cd", "ef gh"] * 15, held)
                same = name in ("tuple", "objects of numpy", "objects of pandas")
                assert not same or got == plain, (name, got, plain)
        for name in random.permutation(list(WRITERS))[:2].tolist():
            path, write = self.folder / name, WRITERS[name]
            texts = (["ab cd", "ef gh"] * 15)[:n_rows]
            if _held(partial(_written, write, path, texts), values) is None:
                continue
            epochs = int(random.randint(1, 3))
            got = self._outcome(path, None, features=vectorizer(), max_iter=epochs)
            # Of several faults, memory and files report different ones. Numbers of any size are
            # words of a file, and white space is none.
            if name in TYPED and len(set(map(type, values))) == 1 and _is_plain(values):
                assert got == plain, (name, got, plain)

    def _outcome(self, texts: Any, y: Any, **params: Any) -> list[str] | str:
        texts = texts[: len(y)] if isinstance(texts, list) else texts
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model = fit_text(texts, y, algo="perceptron", random_state=0, **params)
            except ValueError as error:
                assert not UNCLEAR.search(str(error)), error
                return MISSING if MISSING in str(error) else "refused"
        return sorted(word_of(label_text(label)) for label in model.classes_.tolist())


def _held(make: Any, values: list) -> Any:
    """What holds the values; None where it can't."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return make(values)
        except Exception:  # whatever pandas, polars and pyarrow raise
            return None


def _written(write: Any, path: Path, texts: list, labels: list) -> Path:
    write(path, texts, labels)
    return path


def _is_plain(values: list) -> bool:
    """Return whether files and memory have the same rule for these values."""
    return all(
        each.strip() == each != "" and "\ufeff" not in each and word_of(each) == each
        and not any("\ud800" <= c <= "\udfff" for c in each)
        and each.lower() not in ("nan", "inf", "infinity")
        if isinstance(each, str)
        else isinstance(each, bool | float) or (isinstance(each, int) and abs(each) < 2**53)
        for each in values
    )  # fmt: skip


if __name__ == "__main__":
    main(OddLabels)
