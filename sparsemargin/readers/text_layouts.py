"""The layout of a file of delimited fields, found in its first lines: the character that separates
the fields, the names of the columns, and whether the first line holds these names."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from sparsemargin._shown import quoted
from sparsemargin.models.inputs.label_table import word_of
from sparsemargin.models.inputs.labels import many_classes
from sparsemargin.readers.text_forms import DocumentForm

_DELIMITERS = ",;\t|"

# Common names of columns of labels, texts and row numbers. A first line of several fields is a line
# of names if one is a name of texts, and one is a name of labels or all are in these three sets.
_LABEL_NAMES = frozenset(
    ["category", "class", "label", "labels", "sentiment", "tag", "target", "topic", "y"]
)
_TEXT_NAMES = frozenset(
    ["body", "content", "document", "message", "review", "sentence", "text", "texts", "tweet"]
)
_OTHER_NAMES = frozenset(["", "id", "index"])

# This matches a field in quotes, in which two quotes stand for one.
_QUOTED = rb'"(?:[^"]|"")*+"'
# This matches the first line, whose quoted fields may contain line ends.
_RECORD = re.compile(rb"(?:(?:^|(?<=[,;\t|]))%b(?=[,;\t|\r\n]|$)|[^\r\n])*+" % _QUOTED)
_FIELD = rb'(?:%b|[^"\t\r\n][^\t\r\n]*+)' % _QUOTED
# These match lines of one or two columns, the last of which is always quoted. The end of the block
# may cut the last line.
_QUOTED_LINES = {
    n: re.compile(
        rb'(?:%b%b(?:[\r\n]++|\Z))++(?:%b"(?:[^"]|"")*+)?\Z' % (before, _QUOTED, before)
    )
    for n, before in ((1, b""), (2, _FIELD + b"\t"))
}  # fmt: skip
_QUOTED_LABEL = re.compile(rb"%b\t" % _QUOTED)
# This matches text that a csv writer has quoted because it contains a quote.
_DOUBLED = re.compile(r'"(?:[^"]*"")+[^"]*"')

# Largest number of bytes of the line of column names in a .tsv. A longer first line is a text.
_LONGEST_NAMES = 1 << 16

_ADD_NAMES = (
    "Write the names of the columns into the first line, such as label<tab>text. Then the file is "
    "read as a table."
)

# With at least this many rows, a first label that occurs only once may be the name of a column.
_LEAST_ROWS = 10


class Layout(NamedTuple):
    """The field separator, the names of the columns, and the number of rows that hold names."""

    delimiter: str
    names: list[str]
    n_header_rows: int = 1


def layout_of_csv(text: bytes, how: DocumentForm) -> Layout:
    """Return the layout of a .csv that begins with `text`. Its delimiter is the one with which the
    first line has most of the required columns, and then most columns."""
    record = _first_record(text)
    found = [Layout(each, _names(record, each)) for each in _DELIMITERS]
    wanted = set(how.columns)
    return max(found, key=lambda each: (len(wanted.intersection(each.names)), len(each.names)))


def layout_of_tsv(text: bytes, how: DocumentForm) -> Layout | None:
    """Return the layout of a .tsv that begins with `text`, if its first line holds column names or
    all of its texts are quoted. Return None if each line is ``LABEL<tab>text`` or a text. Raise a
    ValueError if the first line holds names other than those required."""
    if how.has_labels is False:
        return None
    record = _first_record(text[:_LONGEST_NAMES])
    names = _names(record, "\t")
    # Lines that are no table are read literally, so that the quotes of a label belong to it.
    first = {names[0], _decoded(record).partition("\t")[0]}
    labels = {word_of(each.strip(" ")) for each in first}.intersection(how.classes or ())
    is_label = bool(labels) and not (how.labelled or how.keep)
    if set(how.columns) <= set(names) and not is_label:
        return Layout("\t", names)
    lower = {name.strip().lower() for name in names}
    given = {*how.texts, how.label} - {"text", "label"}
    known = _LABEL_NAMES | _TEXT_NAMES | _OTHER_NAMES
    are_names = lower & _TEXT_NAMES and len(names) > 1 and (lower & _LABEL_NAMES or lower <= known)
    are_names = are_names or (bool(how.keep) and set(how.texts) <= set(names))
    if given.intersection(how.columns) or are_names:
        missing = next(name for name in how.columns if name not in names)
        raise ValueError(how.no_column(missing, names))
    for n_columns, lines in _QUOTED_LINES.items():
        if (text.startswith(b'"') or b'\t"' in record) and lines.match(text):
            return Layout("\t", [how.label, *how.texts][-n_columns:], 0)
    if _QUOTED_LABEL.match(record):
        line = quoted(record.decode(errors="replace"))
        raise ValueError(
            f"the fields of {line} are quoted, but not all lines are a label and a quoted text. "
            f"{_ADD_NAMES}"
        )
    return None


def notes_on_labels(labels: Sequence[str]) -> list[str]:
    """Return warnings about the labels of the first rows, one label for each row."""
    notes, counts = list[str](), Counter(map(word_of, labels))
    n_rows, n_once = len(labels), sum(n == 1 for n in counts.values())
    found = many_classes(len(counts), n_rows)
    if found is not None:
        notes.append(f"the first rows have {found} Are the columns swapped?")
    elif n_rows >= _LEAST_ROWS and labels and counts[word_of(labels[0])] == 1 == n_once:
        notes.append(
            f"the label {quoted(labels[0])} of the first row is the only one that occurs once. If "
            "the line holds the names of the columns, pass them as label=COLUMN and text=COLUMN."
        )
    return notes


def notes_on_quotes(texts: Sequence[str]) -> list[str]:
    """Return warnings about the quotes in the first texts of lines that are read literally."""
    for text in texts:
        if text.startswith('"') and _DOUBLED.fullmatch(text):
            return [
                f"the text {quoted(text)} is quoted as in a csv file, but its quotes are read as "
                f"text. {_ADD_NAMES}"
            ]
    return []


def _first_record(text: bytes) -> bytes:
    found = _RECORD.match(text)
    assert found is not None
    return found[0]


def _decoded(record: bytes) -> str:
    # Empty lines may precede a byte order mark.
    return record.decode("utf-8-sig", "replace")


def _names(record: bytes, delimiter: str) -> list[str]:
    """Return the fields of the first line."""
    text = _decoded(record)
    try:
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), [""])
    except csv.Error:  # a field is too long for a name
        return [text]
