"""Tables of texts and labels, as pyarrow reads them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import Any

from sparsemargin.io.forms import DocumentForm
from sparsemargin.io.lines import (
    Cut,
    LineError,
    content_of,
    cut_values,
    not_utf8,
    numbered,
)
from sparsemargin.io.sources import Source, TextBlock

# Rows of a table that are read together.
_ROWS_AT_ONCE = 4096

# Bytes of a csv that are read together: what a row may take.
_CSV_BYTES = 1 << 23

_DELIMITERS = ",;\t|"


def batches(source: Source, how: DocumentForm) -> Iterator[Any]:
    """Record batches of a table that has the columns, perhaps."""
    form = how.of(source)
    try:
        import pyarrow
    except ImportError:
        raise ModuleNotFoundError(
            f"{source.name}: {form} is read by pyarrow. Install it: "
            "pip install 'sparsemargin[text]'"
        ) from None
    try:
        if form == "parquet":
            from pyarrow.parquet import ParquetFile

            file = source.seekable
            if file is None:
                raise ValueError(f"{source.name}: parquet is read from files by name. Pass a path.")
            yield from ParquetFile(file).iter_batches(_ROWS_AT_ONCE)
        else:
            yield from _batches_of_csv(_Content(source), how)
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(_told(str(error), source.name, form)) from None


def _batches_of_csv(content: _Content, how: DocumentForm) -> Iterator[Any]:
    import pyarrow
    from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, open_csv

    def found_by(delimiter: str) -> tuple[int, int]:
        """How many of the columns, and of all columns."""
        names = next(csv.reader([content.first_line()], delimiter=delimiter), [])
        return len(set(how.columns).intersection(names)), len(names)

    # A column is text whatever its first values look like.
    words = ConvertOptions(column_types=dict.fromkeys(how.columns, pyarrow.string()))
    lines = ParseOptions(delimiter=max(_DELIMITERS, key=found_by), newlines_in_values=True)
    # By one thread rows have numbers, for errors.
    reading = ReadOptions(block_size=_CSV_BYTES, use_threads=False)
    yield from open_csv(io.BufferedReader(content, _CSV_BYTES), reading, lines, words)


class _Content(io.RawIOBase):
    """The text of a file, whatever it is compressed by."""

    def __init__(self, source: Source) -> None:
        self._blocks = map(_checked, numbered(source.blocks([])))
        # A byte-order mark has become blanks.
        self._next = next(self._blocks, b"").lstrip(b" ")

    def first_line(self) -> str:
        return self._next.decode().partition("\n")[0].rstrip("\r")

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        self._next = self._next or next(self._blocks, b"")
        n = min(len(room), len(self._next))
        room[:n], self._next = self._next[:n], self._next[n:]
        return n


def _checked(block: TextBlock) -> bytes:
    content = content_of(block)
    try:
        content.decode()
    except UnicodeDecodeError as error:
        raise not_utf8(block, error) from None
    return content


def _told(error: str, name: str, form: str) -> str:
    if "straddling object" in error:
        return (
            f"{name}: a row is longer than {_CSV_BYTES:,} bytes. Shorten its text, or make the "
            "file .parquet."
        )
    row = re.search(r"Row #(\d+): (.*)", error, re.DOTALL)
    if row is None:
        return f"{name} is no sound {form}: {error}"
    return (
        f"{name}, row {int(row[1]) - 1}: {row[2][:100]}. Quote texts that hold a delimiter or "
        'quotes: "a text, ""quoted"""'
    )


def cut_batch(batch: Any, how: DocumentForm) -> Cut:
    """The texts and labels of a record batch; a `LineError` where one is missing."""
    texts, *labels = (_values(batch, name, how) for name in how.columns)
    return cut_values(texts, labels[0] if labels else [], how)


def _values(batch: Any, name: str, how: DocumentForm) -> list[Any]:
    """The values of a column as Python has them; a `LineError` names the row of one that can't be
    read."""
    if name not in batch.schema.names:
        raise LineError(0, how.missing(name, batch.schema.names))
    column = batch.column(batch.schema.names.index(name))
    try:
        return column.to_pylist()
    except (ValueError, OverflowError, NotImplementedError):
        return [_value(column, name, row) for row in range(len(column))]


def _value(column: Any, name: str, row: int) -> Any:
    try:
        return column[row].as_py()
    except UnicodeDecodeError:
        raise LineError(
            row, f"{name!r} is not UTF-8. Write the file anew from its source."
        ) from None
    except (ValueError, OverflowError, NotImplementedError) as error:
        raise LineError(row, f"{name!r} is of type {column.type}, which can't be read: {error}. "
                        "Make text or whole numbers of it.") from None  # fmt: skip
