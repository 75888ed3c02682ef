"""Tables of labels: files whose rows are a name and a label, or a name and several columns."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping
from typing import Any

from sparsemargin.files.kinds import kind_of
from sparsemargin.files.sources import open_sources
from sparsemargin.models.inputs.label_values import is_missing
from sparsemargin.readers.stored_arrays import room_for

# Length of the longest field in characters, the default limit of `csv`. The limit of `csv` itself
# is global, and other code may raise it. A longer field usually begins with an unclosed quote.
_LONGEST_FIELD = 131_072

_FORM = "Each line must have a name and a label, separated by commas (.csv) or tabs."

#: Name of the first column of tables that `annotate` writes for the cells of several files.
FILE_COLUMN = "file"

#: Texts that stand for a missing label of a cell. "nan" comes from `astype(str)` of missing
#: values, with pandas 2.
MISSING_LABELS = "", "nan"

# Separator between the path of a table and the name of a column.
_COLUMN = ":"


def named_table(label: Any) -> tuple[str, str | None] | None:
    """Split "obs.csv:cell_type" into the path and the column of a table. The column is None for a
    path without one, such as "types.csv". Return None if there is no such file."""
    if not isinstance(label, str | os.PathLike):
        return None
    name = os.fspath(label)
    path, _, column = name.rpartition(_COLUMN)
    if os.path.isfile(name):
        return name, None
    return (path, column) if os.path.isfile(path) else None


def missing_table(label: Any, columns: Iterable[str]) -> str | None:
    """Return the path of the table that a label names if there is no such file, otherwise None. A
    label that is one of the `columns` does not name a table."""
    if not isinstance(label, str | os.PathLike) or (name := os.fspath(label)) in columns:
        return None
    for path in (name, name.rpartition(_COLUMN)[0]):
        is_file = bool(os.path.dirname(path)) or kind_of(path, texts=True) != "svmlight"
        if path and is_file and not os.path.exists(path):
            return path
    return None


def is_column(label: Any) -> bool:
    """Return whether a label names a column of `obs`, and not a table."""
    return isinstance(label, str) and named_table(label) is None


def table_of(label: Any, argument: str) -> dict[str, Any] | None:
    """Return the label of each name from a file, a mapping or a pandas Series. Names without a
    label are left out. Return None if `label` is none of these. `argument` is the name of the
    argument, for error messages."""
    if hasattr(label, "columns"):
        raise ValueError(f"{argument} must be one column of a table. Pass obs[COLUMN].")
    found = named_table(label)
    if found is not None:
        [source] = open_sources(found[0])
        if kind_of(source) == "cells":
            raise ValueError(
                f"{argument}={os.fspath(label)!r} is a file of cells, not a column of obs or a "
                f"table of labels. Pass it to fit: CellClassifier('cell_type').fit({found[0]!r})."
            )
        rows = _rows_of(*found)
        return _one_each((f"{found[0]}, line {line}", *row) for line, row in rows)
    if not isinstance(label, Mapping) and not hasattr(label, "to_dict"):
        return None
    return _one_each((argument, name, each) for name, each in label.items())


def _one_each(rows: Iterable[Any]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for where, name, label in rows:
        if is_missing(label) or (isinstance(label, str) and label in MISSING_LABELS):
            continue
        if table.setdefault(str(name), label) != label:
            raise ValueError(
                f"{where}: {str(name)!r} has two labels, {table[str(name)]!r} and {label!r}. "
                "Remove one of them."
            )
    return table


def _rows_of(path: str, column: str | None) -> list[tuple[int, tuple[str, str]]]:
    """Return the line number of each row of a table, with its name and label."""
    rows = table_lines(path, "," if kind_of(path) == "csv" else "\t")
    if not rows:
        raise ValueError(f"{path} is empty and has no labels.")
    header, n_columns = rows[0][1], len(rows[:2][-1][1])
    if len(rows) > 1 and len(header) == n_columns - 1:
        header = ["", *header]  # R writes no name for the column of row names
        rows[0] = rows[0][0], header
    for line, row in rows:
        if len(row) != n_columns:
            raise ValueError(
                f"{path}, line {line}: there are {len(row)} columns, but {n_columns} in another "
                f"line. {_FORM}"
            )
    if n_columns < 2:
        raise ValueError(f"{path} has only one column. {_FORM}")
    if header[:2] == [FILE_COLUMN, "cells"]:
        raise ValueError(
            f"{path} has the cells of several files, which may have equal names. Write a table for "
            "each file: annotate one file at a time."
        )
    at = 1
    if column is not None or n_columns > 2:
        known = ", ".join(map(repr, header[1:]))
        if header[1:].count(column or "") != 1 or column is None:
            what = "several columns" if column is None else f"no column {column!r}, or two of it"
            raise ValueError(
                f"{path} has {what}: {known}. Name the column of labels after the path: "
                f"'{path}{_COLUMN}{_likely(header[1:])}'."
            )
        at, rows = header.index(column, 1), rows[1:]
    return [(line, (row[0], row[at])) for line, row in rows]


def _likely(columns: list[str]) -> str:
    """Return the first column whose name suggests labels, or "COLUMN" if there is none."""
    words = "type", "label", "annot", "class", "predicted"
    return next((each for each in columns if any(w in each.lower() for w in words)), "COLUMN")


def table_lines(path: str, delimiter: str, **how: Any) -> list[tuple[int, list[str]]]:
    """Return the lines of a table that are not empty, with their numbers, split into fields. `how`
    are arguments of `csv.reader`."""
    [source] = open_sources(path)
    raw, room = bytearray(), room_for(source.size or 0)
    for block in source.blocks([]):
        raw += memoryview(block.buffer)[: block.stop]
        if len(raw) > room:
            raise ValueError(f"{path} unpacks to far more bytes than it has. Get it again.")
    try:
        # `Source.blocks` has replaced a byte order mark by blanks.
        text = raw.decode("utf-8").removeprefix("   ")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path}, line {line} is not UTF-8 text. Make it UTF-8: iconv -f LATIN1 -t UTF-8 "
            f"{path} > FILE"
        ) from None
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, **how)
    try:
        return [(rows.line_num, _checked(row)) for row in rows if row]
    except csv.Error as error:
        raise ValueError(
            f"{path}, line {rows.line_num}: {error}. Perhaps a quotation mark is not closed."
        ) from None


def _checked(row: list[str]) -> list[str]:
    """Return the row, or raise a `csv.Error` if a field is too long."""
    if max(map(len, row)) > _LONGEST_FIELD:
        raise csv.Error(f"field larger than field limit ({_LONGEST_FIELD})")
    return row
