"""Svmlight text as a source of rows, and errors that locate faults in it."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from sparsemargin._engine.messages import warn_user
from sparsemargin._engine.svmlight.scan import ScanError, Scanner
from sparsemargin._shown import first_three, quoted
from sparsemargin.files.sources import Source, TextBlock
from sparsemargin.models.inputs.label_table import LabelTable
from sparsemargin.models.inputs.labels import first_labels
from sparsemargin.readers.reading import Reading, run_ahead
from sparsemargin.readers.rows import LabelledRows, RowSource

FORM = "svmlight lines are 'label index:value index:value ...'"

_PAIR = re.compile(rb"\d:")

# Lines that match this are JSON. A bracket alone is not enough, because a label may begin with one.
_JSON = re.compile(rb'\s*(\{\s*("|$)|\[\s*([\[{"\d-]|$))')

Purpose = Literal["loading", "learning", "predicting", "counting"]


@dataclass
class Corpus(RowSource):
    """Files of svmlight text, their settings, the number of threads and the purpose of reading
    them."""

    sources: list[Source]
    reading: Reading
    n_threads: int
    purpose: Purpose = "loading"

    form = FORM

    @property
    def names(self) -> str:
        return first_three(source.name for source in self.sources)

    @property
    def files(self) -> list[str]:
        return [name for source in self.sources for name in source.files]

    @property
    def unversioned(self) -> list[str]:
        remote = [source.remote for source in self.sources if source.remote is not None]
        return [each.url for each in remote if each.version is None]

    @property
    def size(self) -> int | None:
        sizes = [source.size for source in self.sources]
        return None if None in sizes else sum(size or 0 for size in sizes)

    @property
    def rereadable(self) -> bool:
        return all(source.rereadable for source in self.sources)

    def _bytes_before(self, source: Source) -> int:
        """Return the total size of the files before one of them."""
        # Sources are compared by identity, because the same file may be named twice.
        index = next(i for i, other in enumerate(self.sources) if other is source)
        return sum(other.size or 0 for other in self.sources[:index])

    def identity(self) -> dict[str, Any]:
        # A source that can be read only once has a different identity each time.
        read = None if self.rereadable else time.time_ns()
        return {"sources": [source.identity for source in self.sources], "read": read}

    def scan(
        self, table: LabelTable, max_index: int | None = None, base: int | None = None
    ) -> Generator[LabelledRows]:
        """Yield the rows; see `RowSource.scan`. Threads scan ahead while the consumer works. The
        rows do not depend on the number of threads.

        For `base`, see `Reading.scanner`. A ValueError names the file, the line and the column of a
        fault, with a remedy, or a file that changes while it is read.
        """
        free, n_passed_over = list[bytearray](), 0
        n_lines = dict.fromkeys(map(id, self.sources), 0)
        idle = [
            self.reading.scanner(base=base, max_index=max_index) for _ in range(self.n_threads + 1)
        ]
        table.forget_scanners()

        def scans() -> Iterator[tuple[tuple[Scanner, TextBlock], Callable[[], Any]]]:
            for source in self.sources:
                for text in source.blocks(free):
                    scanner = idle.pop()
                    yield (scanner, text), partial(scanner.scan, text.buffer, text.stop)

        with closing(run_ahead(self.n_threads, scans())) as results:
            for (scanner, text), future in results:
                text.n_lines_before = n_lines[id(text.source)]
                try:
                    rows = future.result()
                except ScanError as error:
                    raise located(
                        error, text, self.reading, max_index=max_index, purpose=self.purpose
                    ) from None
                n_lines[id(text.source)] += rows.n_lines
                n_passed_over += rows.n_lines - (len(rows.indptr) - 1)
                yield LabelledRows(
                    rows.data, rows.indices, rows.indptr, table.ids_of(scanner, rows.labels),
                    rows.label_start, rows.lowest, rows.highest,
                    self._bytes_before(text.source) + text.consumed, text,
                )  # fmt: skip
                idle.append(scanner)
                free.append(text.buffer)
        if n_passed_over and self.purpose == "predicting" and not table.takes_labels:
            warn_user(
                f"{self.names}: {n_passed_over:,} lines are blank or hold only a comment. They are "
                "not rows, and the output has no lines for them."
            )
        for each in self.sources:
            each.check_unchanged()


# Descriptions of faults, and remedies, by error code of the scanner. {token} stands for the faulty
# text.
_FAULTS = {
    "no_label": (
        "{token} is a feature, but the line has no label before it",
        "Put a label first, or pass multilabel=True, which allows rows without labels.",
    ),
    "several_labels": ("{token} is more than one label", "Pass multilabel=True."),
    "bad_label": ("{token} has an empty label", "Separate labels by single commas."),
    "missing_colon": ("{token} is not index:value", f"Correct the line: {FORM}."),
    "bad_index": (
        "{token} has an index that is not a whole number",
        "Pass hash_bits=20, which also allows names, or replace each name by a number.",
    ),
    "negative_index": ("{token} has a negative index", "Number the features from 0 or 1."),
    "zero_index": (
        "{token} has index 0 in text that is read as one-based",
        "Pass zero_based=True or zero_based='auto'. If the model was trained on files whose "
        "indices count from 1, add 1 to the indices of this file.",
    ),
    "index_too_large": ("{token} has an index above 2**63 - 2", "Number the features from 0 or 1."),
    "overlong": ("{token} is too long for a number", "Is the file damaged?"),
    "bad_value": ("{token} has a value that is not a number", "Values are decimal: 0.5 or 1e-3."),
    "not_finite": ("{token} is not finite", "Impute the value, or drop the row."),
    "nul": (
        "a NUL byte",
        "Is the file binary? Only text can be read, plain or compressed by gz, bz2, xz or zst.",
    ),
    "invisible": (
        "label {token} has a byte-order mark or a no-break space",
        "Delete it, or replace it by a plain space. Pass files that begin with a mark one by one "
        "instead of joining them.",
    ),
}

#: The remedy for training rows that have several labels.
SEVERAL_LABELS = (
    "Pass multilabel=True to learn all labels, or positive=LABEL to learn one label against all "
    "others."
)

# Remedies that depend on the purpose for which a file is read. They replace remedies in `_FAULTS`.
_REMEDIES = {
    ("several_labels", "learning"): SEVERAL_LABELS,
    ("several_labels", "predicting"): "The model predicts one class for each row. Give each row "
    "one label, or pass positive=LABEL if the model was trained with it.",
    ("no_label", "predicting"): "Put a label first.",
    ("bad_index", "predicting"): "The features of the model are numbers. Replace each name by its "
    "number.",
    ("bad_index", "counting"): "Only numbered features can be counted. sparsemargin train also "
    "reads names, with --hash-bits 20.",
}


def located(
    error: ScanError, block: TextBlock, reading: Reading, *, max_index: int | None = None,
    purpose: str = "learning",
) -> ValueError:  # fmt: skip
    """Return the error for the user for a fault that the scanner found in a block. It has file,
    line, column (in bytes, from 1), text and remedy. `max_index` is the largest index that memory
    allows."""
    start = block.buffer.rfind(b"\n", 0, error.offset) + 1
    end = block.buffer.find(b"\n", error.offset, block.stop)
    line = bytes(block.buffer[start : block.stop if end < 0 else end])
    token = bytes(block.buffer[error.offset : error.offset + error.length])
    what, remedy = _fault(error.code, token, line, reading, max_index)
    if remedy == _FAULTS[error.code][1]:
        remedy = _REMEDIES.get((error.code, purpose), remedy)
    shown = quoted(token.decode(errors="backslashreplace"))
    return ValueError(
        f"{block.place_at(start)}, column {error.offset - start + 1}: "
        f"{what.format(token=shown)}. {remedy}"
    )


def located_label(
    block: LabelledRows, row: int, label: object, classes: list, remedy: str
) -> ValueError:
    """Return the error for a row of the block whose label is not among the classes."""
    return ValueError(
        f"{block.location_of(row)}label {first_labels([label])} is none of the classes, "
        f"{first_labels(classes)}. {remedy}"
    )


def located_index(block: LabelledRows, most: int) -> ValueError:
    """Return the error for the largest index of the block, for which the memory limit is too low.
    `most` is the largest number of features that the limit allows."""
    row = np.searchsorted(block.indptr, block.indices.argmax(), side="right") - 1
    what, remedy = _beyond_memory(most)
    return ValueError(f"{block.location_of(int(row))}{what.format(token=block.highest)}. {remedy}")


def _beyond_memory(most: int) -> tuple[str, str]:
    return (
        "index {token} needs more weights than memory_limit allows",
        f"The limit allows {most:,} features. Raise it, or pass hash_bits.",
    )


def _fault(
    code: str, token: bytes, line: bytes, reading: Reading, max_index: int | None
) -> tuple[str, str]:
    """Return the description of a fault and its remedy."""
    what, _ = _FAULTS[code]
    if code == "bad_index" and reading.hash_bits is not None:
        return "{token} has nothing before its colon", "Put the feature's number or name there."
    if code == "missing_colon" and token.startswith(b"|"):
        return what, _looks_like("Vowpal Wabbit's format", "vw")
    if _JSON.match(line):
        return what, _looks_like("JSON", "jsonl")
    if line.startswith(b"__label__"):
        return what, _looks_like("fastText's format", "fasttext")
    if code in ("several_labels", "bad_label", "missing_colon") and not _PAIR.search(line):
        if b"\t" in line:
            return what, _looks_like("tab-separated values", "tsv")
        if b"," in line:
            return what, _looks_like("comma-separated values", "csv")
        return what, f"This looks like a table. {FORM[0].upper()}{FORM[1:]}."
    if (
        code == "index_too_large" and reading.hash_bits is None
        and max_index is not None and max_index < reading.max_index
    ):  # fmt: skip
        return _beyond_memory(max_index)
    if code == "index_too_large" and reading.n_features is not None:
        return (
            f"{{token}} has an index beyond n_features={reading.n_features}",
            f"The largest index allowed is {reading.max_index}. Raise n_features, or leave it out.",
        )
    if code == "not_finite" and reading.dtype == np.float32 and _fits_float64(token):
        return "{token} is too large for float32", "Pass dtype=numpy.float64."
    return _FAULTS[code]


def _looks_like(what: str, form: str) -> str:
    return (
        f"This looks like {what}, but {FORM}. To train on texts, use fit_text, or sparsemargin "
        f"train with --format {form}."
    )


def _fits_float64(token: bytes) -> bool:
    try:
        return math.isfinite(float(token.rpartition(b":")[2]))
    except ValueError:
        return False
