"""What the scanner refuses, told with its place and what helps."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import numpy as np

from sparsemargin._engine.svmlight.scan import ScanError
from sparsemargin.io.blocks import TextBlock
from sparsemargin.io.reading import Reading
from sparsemargin.models.labels import first_labels

NEWLINE = b"\n"

_SHOWN = 40
_FORM = "svmlight lines are 'label index:value index:value ...'"
_PAIR = re.compile(rb"\d:")


class Flaw(NamedTuple):
    """What is wrong, {token} being the text in question, and what helps."""

    what: str
    remedy: str


_FLAWS = {
    "no_label": Flaw(
        "{token} is a feature, but the line has no label before it",
        "Put one first, or pass multilabel=True, which lets rows have none.",
    ),
    "several_labels": Flaw("{token} is more than one label", "Pass multilabel=True."),
    "bad_label": Flaw("{token} has an empty label", "Separate labels by one comma each."),
    "missing_colon": Flaw("{token} is not index:value", f"Correct the line: {_FORM}."),
    "bad_index": Flaw(
        "{token} has an index that is not a whole number",
        "Features are numbered, not named: give each name a number.",
    ),
    "negative_index": Flaw("{token} has a negative index", "Number the features from 0 or 1."),
    "zero_index": Flaw(
        "{token} has index 0 in text that is read as one-based",
        "Pass zero_based=True or zero_based='auto'. To go on with a model that has learned from "
        "files whose indices count from 1, add 1 to the indices here.",
    ),
    "index_too_large": Flaw(
        "{token} has an index above 2**63 - 2", "Number the features from 0 or 1."
    ),
    "overlong": Flaw("{token} is too long for a number", "Is the file damaged?"),
    "bad_value": Flaw(
        "{token} has a value that is not a number", "Values are decimal: 0.5 or 1e-3."
    ),
    "not_finite": Flaw(
        "{token} is not finite", "Impute what is missing or infinite, or drop its row."
    ),
    "nul": Flaw(
        "a NUL byte",
        "Is it a binary or compressed file? Text is read, plain or packed by gz, bz2, xz or zst.",
    ),
    "bad_query_id": Flaw("{token} is not a query's number", "Write qid:N, N an integer."),
}


def located(
    error: ScanError, block: TextBlock, reading: Reading, *, max_index: int | None = None
) -> ValueError:
    """The error for the user: file, line, column (in bytes, from 1), text and remedy.

    Parameters
    ----------
    error : ScanError
        What the scanner raised.
    block : TextBlock
        What it was given. Where the block doesn't know its line, the file is read again up to it.
    reading : Reading
        How it was told to read.
    max_index : int, optional
        The largest index that memory has room for.
    """
    start = block.buffer.rfind(b"\n", 0, error.offset) + 1
    end = block.buffer.find(b"\n", error.offset, block.stop)
    line = bytes(block.buffer[start : block.stop if end < 0 else end])
    token = bytes(block.buffer[error.offset : error.offset + error.length])
    flaw = _flaw(error.code, token, line, reading, max_index)
    return ValueError(
        f"{_line_at(block, start)}, column {error.offset - start + 1}: "
        f"{flaw.what.format(token=_shown(token))}. {flaw.remedy}"
    )


def located_output(row: int, block: TextBlock | None) -> ValueError:
    """The error for a row, of those of the block, whose output no float64 can hold."""
    return ValueError(
        f"{_place_of(row, block)}the output for this row exceeds a float64. Rescale the values."
    )


def located_label(row: int, label: object, block: TextBlock | None, classes: list) -> ValueError:
    """The error for a row, of those of the block, whose label is none of the classes."""
    return ValueError(
        f"{_place_of(row, block)}label {first_labels([label])} is none of the classes, "
        f"{first_labels(classes)}. Pass classes=[...] with all there are; a model that has learned "
        "its classes can't learn others."
    )


def located_index(index: int, block: TextBlock | None, reading: Reading, most: int) -> ValueError:
    """The error for the largest index of the block, whose weights would take more memory than
    `most` features may."""
    if block is not None:
        try:
            reading.scanner(max_index=index - 1).scan(block.buffer, block.stop)
        except ScanError as error:
            return located(error, block, reading, max_index=most)
    flaw = _beyond_memory(most)
    return ValueError(f"{flaw.what.format(token=index)}. {flaw.remedy}")


def _beyond_memory(most: int) -> Flaw:
    return Flaw(
        "index {token} asks for more weights than memory_limit has room for",
        f"That is for {most:,} features at the most. Raise it, or pass hash_bits.",
    )


def _line_at(block: TextBlock, offset: int) -> str:
    """The file and the line of a byte of the block."""
    before = block.lines_before
    if before is None:
        before = block.source.lines_before(block.offset)
    return f"{block.source.name}, line {before + block.buffer.count(NEWLINE, 0, offset) + 1}"


def _place_of(row: int, block: TextBlock | None) -> str:
    return "" if block is None else f"{_line_at(block, _start_of_row(block, row))}: "


def _start_of_row(block: TextBlock, row: int) -> int:
    """Where a row begins, lines without one left out."""
    start = 0
    for line in bytes(block.buffer[: block.stop]).split(NEWLINE):
        if line.split(b"#", 1)[0].strip():
            if row == 0:
                break
            row -= 1
        start += len(line) + 1
    return start


def _flaw(code: str, token: bytes, line: bytes, reading: Reading, max_index: int | None) -> Flaw:
    flaw = _FLAWS[code]
    if code == "missing_colon" and token.startswith(b"|"):
        return flaw._replace(remedy=f"This looks like Vowpal Wabbit's format; {_FORM}.")
    if code in ("several_labels", "bad_label", "missing_colon") and not _PAIR.search(line):
        kind = "comma-separated values" if b"," in line else "a table"
        return flaw._replace(remedy=f"This looks like {kind}; {_FORM}.")
    if max_index is not None:
        if code == "several_labels":
            return flaw._replace(
                remedy="Pass multilabel=True, to learn them all, or positive=LABEL, to tell that "
                "one from all others."
            )
        bounded = reading.hash_bits is None and max_index < reading.max_index
        if code == "index_too_large" and bounded:
            return _beyond_memory(max_index)
    if code == "index_too_large" and reading.n_features is not None:
        return Flaw(
            f"{{token}} has an index beyond n_features={reading.n_features}",
            f"The largest may be {reading.max_index} here. Raise n_features, or leave it out.",
        )
    if code == "not_finite" and reading.dtype == np.float32 and _fits_float64(token):
        return Flaw("{token} is too large for float32", "Pass dtype=numpy.float64.")
    return flaw


def _fits_float64(token: bytes) -> bool:
    try:
        return math.isfinite(float(token.rpartition(b":")[2]))
    except ValueError:
        return False


def _shown(token: bytes) -> str:
    text = token.decode("utf-8", errors="backslashreplace")
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")
