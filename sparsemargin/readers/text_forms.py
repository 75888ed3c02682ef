"""The forms of text files, and the settings with which they are read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from sparsemargin._checks import check_choice, did_you_mean
from sparsemargin.files.encodings import encoding_named
from sparsemargin.files.kinds import FORM_OF, FORMS, TextForm, kind_of
from sparsemargin.files.sources import Source
from sparsemargin.models.inputs.label_values import file_labels, is_missing

#: Treatment of missing texts, see `DocumentForm`.
Missing = Literal["error", "empty", "drop"]

# Square brackets that contain nothing, a number, quotes or commas; other brackets only if they
# begin with a quote.
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

    The rows are a mask of shape (n_rows,). None keeps all rows. Only "drop" leaves rows out: those
    without a text in any column.
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
        form = self.form or kind_of(source, texts=True)
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

    def no_column(self, column: str, among: list[str]) -> str:
        """Return the message for a column that does not exist."""
        is_label = self.labelled and column == self.label
        argument = "text" if column in self.texts else "label" if is_label else "keep"
        # Quotes make spaces around a name visible.
        names = [each if each.strip() == each != "" else repr(each) for each in among[:20]]
        found = ", ".join(each if len(each) <= 40 else f"{each[:40]}..." for each in names)
        return (
            f"no column {column!r}, but {found or 'none'}.{did_you_mean(column, among)} Name the "
            f"right column by {argument}=COLUMN. The first line of a .csv must name its columns."
        )

    def labels_of(self, value: Any) -> list[str]:
        """Return the labels in the value of a field. Raise a NotALabelError if it is not a
        label."""
        commas = self.multilabel if self.commas is None else self.commas
        return file_labels(value, commas and not (isinstance(value, str) and is_list(value)))
