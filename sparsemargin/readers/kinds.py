"""The kind of a file, determined by its first bytes. Only zarr stores and text matrices are
recognized by name."""

from __future__ import annotations

from typing import Literal

from sparsemargin.files.archive import CACHE_DOCUMENT, HEAD_BYTES, MODEL_DOCUMENT, begins_with
from sparsemargin.files.sources import Source
from sparsemargin.readers.cell_files import is_cells

Kind = Literal["svmlight", "cache", "model", "npz", "cells"]

#: Names of the kinds for messages.
KIND_NAMES: dict[Kind, str] = {
    "svmlight": "svmlight text",
    "cache": "a row cache",
    "model": "a model",
    "npz": "an npz file",
    "cells": "cells",
}


def kind_of(source: Source) -> Kind:
    """Return the kind of a source. A source that is none of the other kinds counts as svmlight
    text."""
    if is_cells(source):
        return "cells"
    if not (source.rereadable and source.plain):
        return "svmlight"
    head = source.head(HEAD_BYTES)
    if begins_with(head, CACHE_DOCUMENT):
        return "cache"
    if begins_with(head, MODEL_DOCUMENT):
        return "model"
    return "npz" if begins_with(head, "") else "svmlight"
