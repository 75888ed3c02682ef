"""Which forms files of texts have, and what is to be known of one."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any, Literal, get_args

from sparsemargin.files.sources import MATRIX_ENDS, Source
from sparsemargin.models.inputs.label_values import file_labels

#: Forms that files of texts have, which the ends of their names tell.
TextForm = Literal["fasttext", "tsv", "vw", "csv", "jsonl", "parquet"]
FORMS = get_args(TextForm)

_FORM_OF = {
    ".txt": "fasttext", ".ft": "fasttext", ".tsv": "tsv", ".vw": "vw", ".csv": "csv",
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip

# Brackets around nothing, a number, or what has quotes or commas; others only around quotes.
_LIST = re.compile(
    r"""\[(\s*|\s*[-\d].*|.*['",].*)\]|\(\s*['"].*\)|\{\s*['"].*\}""", re.DOTALL
)  # fmt: skip

_CELLS = ".h5ad", ".h5", ".zarr", *MATRIX_ENDS
_COMPRESSED = ".gz", ".bz2", ".xz", ".zst"


def form_of(name: str) -> TextForm | None:
    """The form that the end of a file's name tells, compressed or not; None: it tells of none."""
    root, end = os.path.splitext(name)
    if end in _COMPRESSED:
        end = os.path.splitext(root)[1]
    return _FORM_OF.get(end)  # type: ignore[return-value]


def form_elsewhere(name: str, form: TextForm | None = None) -> TextForm | Literal["cells"] | None:
    """What a file has that may lie elsewhere, by its name alone; None: svmlight text, which is
    called .txt, too."""
    if name.endswith(_CELLS) or os.path.isdir(name):
        return "cells"
    found = form or form_of(name)
    return None if found == "fasttext" and form is None else found


def is_list(label: str) -> bool:
    """Whether a label is a list, tuple or set that Python, NumPy or JSON has written as text.

    Examples
    --------
    >>> is_list("['a', 'b']"), is_list("[1, 2]"), is_list("[unk]")
    (True, True, False)
    """
    return _LIST.fullmatch(label.strip()) is not None


@dataclass(frozen=True)
class DocumentForm:
    """How files of texts are read.

    Parameters
    ----------
    form : str, default=None
        Form of the files. None: as their names end.
    text, label : str
        Columns of a table that hold the text and the label.
    multilabel : bool, default=False
        Whether a text may have any number of labels.
    labelled : bool, default=True
        Whether labels are read. If not, they are passed over, and blank lines are texts.
    counted : bool, default=True
        Whether it matters how often a word is in a text.
    has_labels : bool, default=None
        Where labels are not read, whether lines of a .tsv have some. None: each block of lines
        shows it, by the `classes` that a line may begin with.
    classes : frozenset of str, default=None
        The classes of the model that predicts, as `word_of` writes them.
    """

    form: TextForm | None = None
    text: str = "text"
    label: str = "label"
    multilabel: bool = False
    labelled: bool = True
    counted: bool = True
    has_labels: bool | None = None
    classes: frozenset[str] | None = None
    #: Whether commas part labels; None: where a text may have several.
    commas: bool | None = None

    def of(self, source: Source) -> TextForm:
        """The form of one of the files."""
        if self.labelled and self.text == self.label:
            raise ValueError(
                f"text and label both name the column {self.text!r}. Name a column for each."
            )
        form = self.form or form_of(source.name)
        if form is None:
            ends = ", ".join(_FORM_OF)
            raise ValueError(
                f"{source.name}: no form of texts is known by the end of its name ({ends}). Pass "
                f"format='tsv', or another of {', '.join(FORMS)}."
            )
        return form

    @property
    def columns(self) -> list[str]:
        """Those of a table that are read."""
        return [self.text, self.label] if self.labelled else [self.text]

    def missing(self, column: str, among: list[str]) -> str:
        """What to tell of a column that is not there."""
        argument = "text" if column == self.text else "label"
        # Spaces around a name are seen in quotes.
        names = [each if each.strip() == each != "" else repr(each) for each in among[:20]]
        found = ", ".join(each if len(each) <= 40 else f"{each[:40]}..." for each in names)
        return (
            f"no column {column!r}, but {found or 'none'}. Name the one by "
            f"{argument}=COLUMN; the first line of a .csv names its columns."
        )

    def labels_of(self, value: Any) -> list[str]:
        """The labels of a text by the value of its field; a NotALabelError where it is none."""
        commas = self.multilabel if self.commas is None else self.commas
        return file_labels(value, commas and not (isinstance(value, str) and is_list(value)))
