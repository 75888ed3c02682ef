"""Model files made by hand: contents changed at will, under checksums that are right."""

import copy
import tempfile
import zipfile

import numpy as np
import pytest

from sparsemargin.io.archive import MODEL_DOCUMENT, Archive, ArchiveWriter
from sparsemargin.io.model_files import load_model, read_summary, save_model

EXTREMES = [-(2**63), -(2**31), -1000, -2, -1, 0, 1, 2, 3, 5, 24, 25, 26, 27, 1000, 1024, 1025]
EXTREMES += [2**16, 2**31 - 1, 2**31, 2**32, 2**61, 2**62, 2**63 - 1]
VALUES = [*EXTREMES, 2**63, 2**64, 10**400, 0.0, 0.5, 2.0, 3.0, -1.5, 1e308, True, False, None, "x"]
VALUES += ["auto", "primal", "implicit", "vote", "last", [], {}, {"dict": {}}, np.nan]
VALUES += [np.inf, {"tuple": [1, 2]}, {"array": "_class_weight"}, {"array": "nothing"}]
TYPES = ["i4", "i8", "f4", "f8", "u1", "u2", ">f8", "U2", "?"]


def opened(path):
    """The document and all arrays of a model file."""
    with open(path, "rb") as file:
        archive = Archive(file)
        names = [name.removesuffix(".npy") for name in archive.members if name != MODEL_DOCUMENT]
        arrays = {name: archive.array(name).copy() for name in names}
        return archive.document(MODEL_DOCUMENT), arrays


def contents_of(model):
    """The document and all arrays that are saved of a model."""
    with tempfile.NamedTemporaryFile() as file:
        save_model(model, file.name)
        return opened(file.name)


def rewritten(path, document, arrays):
    """Write a file of these contents, whatever they are."""
    with open(path, "wb") as file, ArchiveWriter(file) as archive:
        archive.document(MODEL_DOCUMENT, document)
        for name, array in arrays.items():
            archive.array(name, array)


def members_of(path):
    """The bytes of an archive's members, by name."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def pack(path, members, compression=zipfile.ZIP_STORED):
    """Write an archive of pairs of a name and bytes."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)


def assert_refused(path, message):
    for load in load_model, read_summary:
        with pytest.raises(ValueError, match=f"^{path}.*{message}"):
            load(path)


def leaves(document, place=()):
    """Places of all entries of a document, those within others included."""
    if not isinstance(document, dict | list):
        return
    for key in document if isinstance(document, dict) else range(len(document)):
        yield *place, key
        yield from leaves(document[key], (*place, key))


def at(document, place):
    for key in place:
        document = document[key]
    return document


def spoil_document(random, document):
    places = list(leaves(document))
    *place, key = places[random.randint(len(places))]
    parent = at(document, place)
    if random.randint(8):
        parent[key] = copy.deepcopy(VALUES[random.randint(len(VALUES))])
    else:
        del parent[key]


def spoiled_array(random, array):
    way = random.randint(6)
    if way == 0:
        return array[: random.randint(len(array) + 1)] if array.ndim else array
    if way == 1:
        return np.concatenate([array, array]) if array.ndim else array
    if way == 2:
        with np.errstate(all="ignore"):
            return array.astype(TYPES[random.randint(len(TYPES))])
    if way == 3:
        return array.reshape(-1, 1)
    array = array.copy()
    flat = array.reshape(-1)
    if len(flat) and array.dtype.kind in "iuf":
        where = random.randint(len(flat), size=random.randint(1, 4))
        flat[where] = wrapped(random, array.dtype)
    return array


def wrapped(random, dtype):
    """An extreme number, as it comes out in that type."""
    if dtype.kind == "f":
        return [0.0, -0.0, np.inf, -np.inf, np.nan, 1e38, -1.0][random.randint(7)]
    value = EXTREMES[random.randint(len(EXTREMES))] % 2 ** (8 * dtype.itemsize)
    return np.array(value, f"u{dtype.itemsize}").view(dtype)


def use(model, rows, labels):
    """All that runs over a model's state; what it says of it may be anything but a crash."""
    for call in (
        lambda: model.predict(rows), lambda: model.decision_function(rows), lambda: model.coef_,
        lambda: model.theta_, lambda: model.partial_fit(rows, labels), lambda: model.predict(rows),
        lambda: model.set_params(max_iter=2, tol=None).fit(rows, labels), lambda: model.coef_,
        lambda: model.predict(rows),
    ):  # fmt: skip
        try:
            call()
        except (ValueError, TypeError, ArithmeticError, AttributeError, LookupError, MemoryError):
            continue


def loaded_or_refused(path):
    try:
        return load_model(path), None
    except ValueError as error:
        return None, str(error)
