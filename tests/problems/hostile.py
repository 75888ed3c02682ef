"""Model files made by hand: arbitrary content with correct checksums."""

import tempfile
import zipfile

import pytest

from sparsemargin.files.archive import MODEL_DOCUMENT, Archive, ArchiveWriter
from sparsemargin.saving.model_files import read_summary, save_model
from sparsemargin.tasks.load_model import load_model


def opened(path):
    """The document and all arrays of a model file."""
    with open(path, "rb") as file:
        archive = Archive(file)
        names = [name.removesuffix(".npy") for name in archive.members if name != MODEL_DOCUMENT]
        arrays = {name: archive.array(name).copy() for name in names}
        return archive.document(MODEL_DOCUMENT), arrays


def contents_of(model):
    """The document and all arrays that are saved for a model."""
    with tempfile.NamedTemporaryFile() as file:
        save_model(model, file.name)
        return opened(file.name)


def rewritten(path, document, arrays):
    """Write a file with this content without checking it."""
    with open(path, "wb") as file, ArchiveWriter(file) as archive:
        archive.document(MODEL_DOCUMENT, document)
        for name, array in arrays.items():
            archive.array(name, array)


def members_of(path):
    """The bytes of the members of an archive, by name."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def pack(path, members, compression=zipfile.ZIP_STORED):
    """Write an archive from pairs of a name and bytes."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)


def assert_refused(path, message):
    for load in load_model, read_summary:
        with pytest.raises(ValueError, match=f"^{path}.*{message}"):
            load(path)


def at(document, place):
    for key in place:
        document = document[key]
    return document
