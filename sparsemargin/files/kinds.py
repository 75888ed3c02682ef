"""The kind of a file, which decides how it is read."""

from __future__ import annotations

import os
from contextlib import closing
from typing import Any, Literal, get_args

from sparsemargin.files.archive import CACHE_DOCUMENT, MODEL_DOCUMENT, begins_with, zip_members
from sparsemargin.files.folders import MATRIX_ENDS, STORES
from sparsemargin.files.sources import OLE_MARK, Source

#: Forms of files of texts.
TextForm = Literal["fasttext", "tsv", "vw", "csv", "jsonl", "parquet"]
FORMS = get_args(TextForm)

Kind = Literal["svmlight", "cells", "cache", "model", "npz", "office", "zip"] | TextForm

#: Names of the kinds for messages. The forms of texts are their own names.
KIND_NAMES: dict[Kind, str] = {
    "svmlight": "svmlight text",
    "cells": "cells",
    "cache": "a row cache",
    "model": "a model",
    "npz": "an npz file",
    "office": "an Excel file or another Office document",
    "zip": "a zip archive",
}

# Advice for kinds of files that are not read as rows.
_ADVICE: dict[Kind, str] = {
    "cache": "Pass the text that it was made from, with cache={name!r} to read the rows here.",
    "model": "Pass files of rows or texts.",
    "npz": "Load it in Python by scipy.sparse.load_npz or numpy.load, and train by "
    "sparsemargin.fit_csr(X, y).",
    "office": "Save the table as a .csv file.",
    "zip": "Unpack it, and pass the files in it.",
}

#: Mark of a label in the text of fastText.
FASTTEXT_LABEL = b"__label__"

#: Format of a text file by the suffix of its name. A suffix such as ".gz" is removed before.
FORM_OF: dict[str, TextForm] = {
    ".txt": "fasttext", ".ft": "fasttext", ".tsv": "tsv", ".vw": "vw", ".csv": "csv",
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip

# Members of the zip archives that Excel, LibreOffice and other Office programs write.
_OFFICE_MEMBERS = frozenset({"[Content_Types].xml", "xl/workbook.xml", "content.xml"})

_HDF5_MARK = b"\x89HDF"

#: Suffixes of cells that are stored in a single file or folder.
CELL_ENDS = ".h5ad", ".h5", ".zarr"

_CELLS = *CELL_ENDS, *MATRIX_ENDS
_COMPRESSED = ".gz", ".bz2", ".xz", ".zst"

# Names of other files that are not tables of plain text.
_BINARY = ".parquet", ".pq", ".xlsx", ".zip"


def kind_of(
    source: Source | str, form: TextForm | Literal["svmlight"] | None = None, *, texts: bool = False
) -> Kind:
    """Return the kind of a source, or of a file on any machine that is given by its name.

    Models, row caches, HDF5 and Office files are recognized by their first bytes, zip archives by
    their members; zarr stores, text matrices and the forms of texts by their names. `form` replaces
    the name. A file named .txt is a file of fastText if its first lines have its labels, or if
    `texts` is True. All other files are svmlight text.
    """
    found: Kind | None = None
    if isinstance(source, Source):
        name, found = source.name, _kind_by_content(source)
    elif (name := source).lower().endswith(_CELLS) or os.path.isdir(name):
        found = "cells"
    if found is not None:
        return found
    if form is not None:
        return form
    by_name: Kind = FORM_OF.get(_suffix_of(name), "svmlight")
    if by_name != "fasttext" or texts:
        return by_name
    return by_name if isinstance(source, Source) and _may_be_fasttext(source) else "svmlight"


def _suffix_of(name: str) -> str:
    """Return the suffix of a name in lowercase, without that of a compression."""
    root, end = os.path.splitext(name.lower())
    return os.path.splitext(root)[1] if end in _COMPRESSED else end


def names_file(value: object) -> bool:
    """Return whether a str or a path names an existing file, or ends like a file of texts."""
    if not isinstance(value, str | os.PathLike):
        return False
    name = os.fsdecode(value)
    return _suffix_of(name) in FORM_OF or os.path.isfile(name)


def _kind_by_content(source: Source) -> Kind | None:
    """Return the kind of a file of cells or an archive. None for text, pipes and open files."""
    head = source.head
    if head is None:
        return None
    # Cells are read from local files only.
    is_hdf5, path = head.startswith(_HDF5_MARK), source.path
    if path is not None and (is_hdf5 or path.lower().endswith((*STORES, *MATRIX_ENDS))):
        return "cells"
    if begins_with(head, CACHE_DOCUMENT):
        return "cache"
    if begins_with(head, MODEL_DOCUMENT):
        return "model"
    if head.startswith(OLE_MARK):
        return "office"
    return _kind_of_zip(zip_members(source.seekable)) if begins_with(head, "") else None


def _kind_of_zip(members: list[str]) -> Kind:
    if members and all(name.endswith(".npy") for name in members):
        return "npz"
    return "zip" if _OFFICE_MEMBERS.isdisjoint(members) else "office"


def check_readable(name: str, kind: Kind) -> None:
    """Raise a ValueError if files of a kind are not read as rows or texts."""
    if kind in _ADVICE:
        advice = _ADVICE[kind].format(name=name)
        raise ValueError(f"{name} is {KIND_NAMES[kind]}, and not text. {advice}")


def _may_be_fasttext(source: Source) -> bool:
    """Return whether the first lines have a label of fastText, or can't be read in advance."""
    if not source.rereadable:
        return True
    with closing(source.blocks([])) as blocks:
        first = next(blocks, None)
        return first is not None and first.buffer.find(FASTTEXT_LABEL, 0, first.stop) >= 0


def check_table_name(output: Any) -> None:
    """Raise a ValueError if `output` is a path whose name is not that of a table of plain text."""
    name = os.fspath(output) if isinstance(output, str | os.PathLike) else ""
    if name.lower().endswith(CELL_ENDS):
        raise ValueError(
            f"output {name} would be a table of text, and its name is that of a file of cells. "
            "Name it .tsv or .csv. Or annotate an AnnData in Python, and call adata.write_h5ad."
        )
    if name.lower().endswith((*_COMPRESSED, *_BINARY)):
        raise ValueError(
            f"output {name} would be a table of plain text, and its name is that of a packed or "
            "binary file. Name it .tsv or .csv, and convert it afterwards."
        )
