"""The forms of text files, the settings with which they are read, and the layout of tables."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from sparsemargin._checks import check_choice, did_you_mean
from sparsemargin._shown import quoted
from sparsemargin.files.compression import encoding_named
from sparsemargin.files.kinds import FORM_OF, FORMS, TextForm, check_readable, kind_of
from sparsemargin.files.sources import Source
from sparsemargin.models.inputs.label_table import word_of
from sparsemargin.models.inputs.label_values import file_labels, file_text, is_missing
from sparsemargin.models.inputs.labels import many_classes

#: Treatment of missing texts, see `DocumentForm`.
Missing = Literal["error", "empty", "drop"]

# This matches square brackets that are empty, begin with a digit, or contain a quote or a comma.
# Round and curly brackets must begin with a quote.
_LIST = re.compile(
    r"""\[(\s*|\s*[-\d].*|.*['",].*)\]|\(\s*['"].*\)|\{\s*['"].*\}""", re.DOTALL
)  # fmt: skip


def is_list(label: str) -> bool:
    """Return whether a label is a list, tuple or set that Python, NumPy or JSON wrote as text.

    Examples
    --------
    >>> is_list("['a', 'b']"), is_list("[1, 2]"), is_list("[unk]")
    (True, True, False)
    """
    return _LIST.fullmatch(label.strip()) is not None


def fill_missing(
    columns: list[list[Any]], missing: Missing
) -> tuple[list[list[Any]], np.ndarray | None]:
    """Return text columns with "" in place of missing values, and the rows to keep.

    The rows are a mask of shape (n_rows,). None keeps all rows. "drop" leaves out the rows without
    a text in any column.
    """
    absent = [np.array(list(map(is_missing, values)), dtype=bool) for values in columns]
    columns = [
        ["" if is_missing(value) else value for value in values] if found.any() else values
        for values, found in zip(columns, absent, strict=True)
    ]
    without = np.logical_and.reduce(absent)
    return columns, ~without if missing == "drop" and without.any() else None


@dataclass(frozen=True)
class DocumentForm:
    """Settings with which text files are read.

    Parameters
    ----------
    form : str, default=None
        Form of the files. None uses the suffix of their names.
    text : str or tuple of str
        Columns of a table that hold the text. The texts of several columns are joined.
    label : str
        Column of a table that holds the label.
    multilabel : bool, default=False
        Whether a text may have any number of labels.
    labelled : bool, default=True
        Whether labels are read. If not, they are skipped, and blank lines are texts.
    counted : bool, default=True
        Whether the number of occurrences of a word matters.
    has_labels : bool, default=None
        Whether lines of a .tsv have labels if these are not read. None decides for each block of
        lines, depending on how many begin with one of the `classes`.
    classes : frozenset of str, default=None
        The classes of the model that predicts, as `word_of` writes them.
    commas : bool, default=None
        Whether commas separate labels. None separates them only if `multilabel`.
    missing : {"error", "empty", "drop"}, default="error"
        Treatment of missing texts in tables: an error, the text "", or, if labels are read, no row.
    keep : tuple of str
        Columns of a table whose values are kept beside the texts, if labels are not read.
    encoding : str, default="utf-8"
        Encoding of the files, by one of Python's names for it.
    """

    form: TextForm | None = None
    text: str | tuple[str, ...] = "text"
    label: str = "label"
    multilabel: bool = False
    labelled: bool = True
    counted: bool = True
    has_labels: bool | None = None
    classes: frozenset[str] | None = None
    commas: bool | None = None
    missing: Missing = "error"
    keep: tuple[str, ...] = ()
    encoding: str = "utf-8"

    def of(self, source: Source) -> TextForm:
        """Return the form of one of the files. Raise a ValueError if it is not known."""
        if self.labelled and self.label in self.texts:
            raise ValueError(
                f"text and label name the same column {self.label!r}. Name two different columns."
            )
        for name, columns in ("text", self.texts), ("keep", self.keep):
            for column in columns:
                if columns.count(column) > 1:
                    raise ValueError(
                        f"{name}={column!r} names a column twice. Name each column once."
                    )
        check_choice("missing", self.missing, get_args(Missing))
        encoding = encoding_named(self.encoding)
        kind = kind_of(source, self.form, texts=True)
        check_readable(source.name, kind)
        form = self.form or kind
        if form not in FORMS:
            ends = ", ".join(FORM_OF)
            raise ValueError(
                f"{source.name}: the format can't be recognised, because the name does not end in "
                f"one of {ends}. Pass format='tsv', or another of {', '.join(FORMS)}."
            )
        if form == "parquet" and encoding != "utf-8":
            raise ValueError(
                f"{source.name}: encoding={self.encoding!r} is not for parquet files, whose text "
                "is UTF-8. Leave it out, or read these files alone."
            )
        return form  # type: ignore[return-value]

    @property
    def texts(self) -> list[str]:
        """The columns of a table that hold the text."""
        return [self.text] if isinstance(self.text, str) else list(self.text)

    @property
    def columns(self) -> list[str]:
        """The columns of a table that are read, those of the text first."""
        labels = [self.label] if self.labelled else []
        return list(dict.fromkeys([*self.texts, *labels, *self.keep]))

    def no_column(self, column: str, among: list[str], *, in_header: bool = False) -> str:
        """Return the message for a column that does not exist. `in_header` specifies whether the
        columns are named by the first line."""
        is_label = self.labelled and column == self.label
        argument = "text" if column in self.texts else "label" if is_label else "keep"
        # Quotes make spaces around a name visible.
        names = [each if each.strip() == each != "" else repr(each) for each in among[:20]]
        found = ", ".join(each if len(each) <= 40 else f"{each[:40]}..." for each in names)
        header = " The first line must name the columns." if in_header else ""
        parts = [each.strip() for each in column.split(",")]
        if argument == "text" and set(parts) <= set(among):
            remedy = f" Pass several columns as text={parts!r}."
        else:
            remedy = f"{did_you_mean(column, among)} Name the right column by {argument}=COLUMN."
        return f"no column {column!r}, but {found or 'none'}.{remedy}{header}"

    def repeated_in(self, names: list[str]) -> str:
        """Return a message if a column that is read occurs several times among `names`, else ""."""
        twice = next((each for each in self.columns if names.count(each) > 1), None)
        if twice is None:
            return ""
        return f"several columns {twice!r}. Rename all but one of them."

    def labels_of(self, value: Any) -> list[str]:
        """Return the labels in the value of a field. Raise a NotALabelError if it is not a
        label."""
        commas = self.multilabel if self.commas is None else self.commas
        value = file_text(value) if isinstance(value, bytes) else value
        return file_labels(value, commas and not (isinstance(value, str) and is_list(value)))


_DELIMITERS = ",;\t|"

# Common names of columns of labels, texts and row numbers. A first line of several fields holds
# column names if one is in `_TEXT_NAMES`, and one in `_LABEL_NAMES` or all in these three sets.
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

# Fewest rows with which a warning says that the first label may be the name of a column.
_LEAST_ROWS = 10


class Layout(NamedTuple):
    """The field separator, the names of the columns, and the number of rows that hold names."""

    delimiter: str
    names: list[str]
    n_header_rows: int = 1


def layout_of_csv(text: bytes, how: DocumentForm) -> Layout:
    """Return the layout of a .csv that begins with `text`. The delimiter is the one with which the
    first line has most of the required columns, and among equals, most columns."""
    record = _first_record(text)
    found = [Layout(each, _names(record, each)) for each in _DELIMITERS]
    wanted = set(how.columns)
    return max(found, key=lambda each: (len(wanted.intersection(each.names)), len(each.names)))


def layout_of_tsv(text: bytes, how: DocumentForm) -> Layout | None:
    """Return the layout of a .tsv that begins with `text`, if its first line holds column names or
    all of its texts are quoted. Return None if each line is ``LABEL<tab>text`` or a text. Raise a
    ValueError if the first line holds column names, but not all that are required."""
    if how.has_labels is False:
        return None
    record = _first_record(text[:_LONGEST_NAMES])
    names = _names(record, "\t")
    # A label may have quotes, because the lines of a file that is no table are read literally.
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
    # With has_labels=True, lines begin with a label, whatever columns the model was trained on.
    if (how.has_labels is None and given.intersection(how.columns)) or are_names:
        missing = next(name for name in how.columns if name not in names)
        raise ValueError(how.no_column(missing, names, in_header=True))
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
        notes.append(
            f"the first rows have {found} Are the columns swapped? If the first line has the names "
            "of the columns, pass label=COLUMN and text=COLUMN."
        )
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
    # A byte order mark after empty lines is still there.
    return record.decode("utf-8-sig", "replace")


def _names(record: bytes, delimiter: str) -> list[str]:
    """Return the fields of the first line."""
    text = _decoded(record)
    try:
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), [""])
    except csv.Error:  # a field is too long for a name
        return [text]
