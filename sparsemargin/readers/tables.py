"""Tables of texts and labels, read by pyarrow."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any
from urllib.parse import unquote

from pyarrow import ArrowException, RecordBatch, repeat, scalar, string
from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, open_csv
from pyarrow.parquet import ParquetFile

from sparsemargin.files.sources import Source, TextBlock
from sparsemargin.readers.text_forms import DocumentForm, Layout
from sparsemargin.readers.text_lines import LineError, Parsed, content_of, not_utf8, parse_values

# Rows of a table that are read together.
_ROWS_AT_ONCE = 4096

# Bytes of a csv that are read together. A longer row is an error.
_CSV_BYTES = 1 << 23

# Text in the name of a folder that marks a missing value.
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"

# Content of the fields of a row that is appended to a csv to detect unclosed quotes.
_END = "\x03end of the table\x03"


def batches_of_parquet(source: Source, how: DocumentForm) -> Iterator[Any]:
    """Yield record batches of the required columns of a parquet file."""
    with _naming(source.name, "parquet"):
        opened = source.seekable
        if opened is None:
            raise ValueError(f"{source.name}: parquet files must be given by name. Pass a path.")
        with ParquetFile(opened) as file:
            names, of_path = file.schema_arrow.names, columns_of_path(source.name)
            _check_columns(source.name, names, how, of_path)
            for batch in file.iter_batches(_ROWS_AT_ONCE, columns=how.columns):
                columns = [
                    batch.column(name) if name in names
                    else repeat(scalar(of_path[name]), len(batch)) for name in how.columns
                ]  # fmt: skip
                yield RecordBatch.from_arrays(columns, names=how.columns)


def columns_of_path(path: str) -> dict[str, str | None]:
    """Return the columns that the folders of a partitioned data set give, ``NAME=VALUE``, as Hive,
    Spark and pandas write them."""
    folders = [each.partition("=") for each in path.replace("\\", "/").split("/")[:-1]]
    values = {unquote(name): unquote(value) for name, equals, value in folders if name and equals}
    return {name: None if value == _HIVE_NULL else value for name, value in values.items()}


def batches_of_csv(
    name: str, form: str, blocks: Iterator[TextBlock], layout: Layout, how: DocumentForm
) -> Iterator[Any]:
    """Yield record batches of the required columns of a csv or tsv file."""
    _check_columns(f"{name}, line 1", layout.names, how)
    with _naming(name, form, layout.n_header_rows):
        # Columns are identified by their numbers, because unused names may be repeated. All are
        # read as text, even if their values look like numbers.
        read = [str(layout.names.index(column)) for column in how.columns]
        # An empty field without quotes is a missing value, as pandas writes it; the empty line of a
        # single-column table is an empty text.
        text = ConvertOptions(
            include_columns=read, column_types=dict.fromkeys(read, string()), null_values=[""],
            strings_can_be_null=len(layout.names) > 1, quoted_strings_can_be_null=False,
        )  # fmt: skip
        lines = ParseOptions(
            delimiter=layout.delimiter,
            newlines_in_values=True,
            ignore_empty_lines=len(layout.names) > 1,
        )
        # pyarrow reports row numbers in errors only with a single thread.
        reading = ReadOptions(
            block_size=_CSV_BYTES, use_threads=False,
            column_names=list(map(str, range(len(layout.names)))),
            skip_rows_after_names=layout.n_header_rows,
        )  # fmt: skip
        last_row = layout.delimiter.join([_END] * len(layout.names)).encode()
        content = io.BufferedReader(_Content(blocks, last_row), _CSV_BYTES)
        before, n_rows = None, 0
        for batch in open_csv(content, reading, lines, text):
            if before is not None and len(before):
                yield _with_empty_labels(before, how)
            before, n_rows = batch, n_rows + len(batch)
        if before is None or not len(before) or before.column(0)[-1].as_py() != _END:
            raise ValueError(
                f"{name}, row {n_rows}: a quote is not closed before the end of the file. Close "
                'it, or quote the text and double its quotes: "a ""text"""'
            )
        yield _with_empty_labels(before.slice(0, len(before) - 1), how)


def _with_empty_labels(batch: Any, how: DocumentForm) -> Any:
    """Return a batch of a csv with "" in place of missing labels, because an empty field means that
    the row has no labels. Missing texts stay missing."""
    label = how.label if how.labelled else None
    columns = [
        column.fill_null("") if name == label else column
        for name, column in zip(how.columns, batch.columns, strict=True)
    ]
    return RecordBatch.from_arrays(columns, names=how.columns)


def _check_columns(
    where: str, names: list[str], how: DocumentForm, of_path: Mapping[str, Any] | None = None
) -> None:
    """Raise a ValueError if a column is missing or repeated. `of_path` are the columns from the
    path of a parquet file, or None if `names` are from the header of a csv."""
    if found := how.repeated_in(names):
        raise ValueError(f"{where}: {found}")
    all_names = [*names, *(of_path or ())]
    for column in how.columns:
        if column not in all_names:
            found = how.no_column(column, all_names, in_header=of_path is None)
            raise ValueError(f"{where}: {found}")


@contextmanager
def _naming(name: str, form: str, n_header_rows: int = 0) -> Iterator[None]:
    """Add the name of the file to errors of pyarrow."""
    try:
        yield
    except (ArrowException, OSError) as error:
        # Errors of the operating system have an error number, errors of a damaged file have none.
        if isinstance(error, MemoryError) or getattr(error, "errno", None) is not None:
            raise
        raise ValueError(_described(str(error), name, form, n_header_rows)) from None


class _Content(io.RawIOBase):
    """The text of blocks, followed by a last row. If that row is found, all quotes are closed."""

    def __init__(self, blocks: Iterator[TextBlock], last_row: bytes) -> None:
        self._blocks = chain(map(_checked, blocks), [last_row + b"\n"])
        # `Source.blocks` has replaced a byte order mark by blanks.
        self._next = next(self._blocks).lstrip(b" \r\n")

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        self._next = self._next or next(self._blocks, b"")
        n = min(len(room), len(self._next))
        room[:n], self._next = self._next[:n], self._next[n:]
        return n


def _checked(block: TextBlock) -> bytes:
    content = content_of(block, as_lines=False)
    try:
        content.decode()
    except UnicodeDecodeError as error:
        raise not_utf8(block, error) from None
    return content


def _described(error: str, name: str, form: str, n_header_rows: int) -> str:
    if "straddling object" in error:
        return (
            f"{name}: a row is longer than {_CSV_BYTES:,} bytes. Close its quotes, shorten its "
            "text, or write the table to a .parquet file."
        )
    row = re.search(r"Row #(\d+): (.*)", error, re.DOTALL)
    if row is None:
        return f"{name} is not a valid {form} file: {error}"
    return (
        f"{name}, row {int(row[1]) - n_header_rows}: {row[2].split(_END)[0][:100]}. Quote texts "
        'that contain a delimiter or quotes: "a text, ""quoted"""'
    )


def parse_batch(batch: Any, how: DocumentForm, *, typed: bool) -> Parsed:
    """Return the texts and labels of a record batch. A `LineError` names the row of a missing one.
    `typed` is False for labels of a csv or from names of folders, which are text without a type."""
    values = {name: _values(batch, name, how) for name in how.columns}
    labels = values[how.label] if how.labelled else []
    parsed = parse_values([values[name] for name in how.texts], labels, how)
    kept = tuple(values[name] for name in how.keep)
    return parsed._replace(kept=kept, kinds=parsed.kinds if typed else ())


def _values(batch: Any, name: str, how: DocumentForm) -> list[Any]:
    """Return the values of a column as Python objects. A `LineError` names the row of a value that
    can't be read."""
    if name not in batch.schema.names:
        raise LineError(0, how.no_column(name, batch.schema.names))
    column = batch.column(batch.schema.names.index(name))
    try:
        return column.to_pylist()
    except (ValueError, OverflowError, NotImplementedError):
        return [_value(column, name, row) for row in range(len(column))]


def _value(column: Any, name: str, row: int) -> Any:
    try:
        return column[row].as_py()
    except UnicodeDecodeError:
        raise LineError(row, f"{name!r} is not UTF-8. Write the file again as UTF-8.") from None
    except (ValueError, OverflowError, NotImplementedError) as error:
        raise LineError(row, f"{name!r} is of type {column.type}, which can't be read: {error}. "
                        "Convert it to text or whole numbers.") from None  # fmt: skip
