"""Which forms files of texts have, and what is to be known of one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal, get_args

from sparsemargin.io.sources import MATRIX_ENDS, Source
from sparsemargin.models.label_values import file_labels

#: Forms that files of texts have, which the ends of their names tell.
TextForm = Literal["fasttext", "tsv", "vw", "csv", "jsonl", "parquet"]
FORMS = get_args(TextForm)

_FORM_OF = {
    ".txt": "fasttext", ".ft": "fasttext", ".tsv": "tsv", ".vw": "vw", ".csv": "csv",
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip

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


@dataclass(frozen=True)
class DocumentForm:
    """How files of texts are read: their form (None: as their names end), the columns of a table
    that hold the text and the label, whether a text may have several labels, and must have one, and
    whether it matters how often a word is there."""

    form: TextForm | None = None
    text: str = "text"
    label: str = "label"
    multilabel: bool = False
    labelled: bool = True
    counted: bool = True
    #: Whether commas part labels; None: where a text may have several.
    commas: bool | None = None

    def of(self, source: Source) -> TextForm:
        """The form of one of the files."""
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
        return (
            f"no column {column!r}, but {', '.join(among) or 'none'}. Name the one by "
            f"{argument}=COLUMN; the first line of a .csv names its columns."
        )

    def labels_of(self, value: Any) -> list[str]:
        """The labels of a text by the value of its field; a NotALabelError where it is none."""
        return file_labels(value, self.multilabel if self.commas is None else self.commas)
