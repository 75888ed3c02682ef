"""The outer form of a model file: a document and arrays in an archive, with a checksum.

The file is a ZIP archive as `numpy.savez` writes it, so that ``numpy.load(path)`` looks into it: a
member ``model.json``, then one ``<name>.npy`` an array. It ends with the SHA-256 of all bytes
before that, in the archive's comment: a file that was cut short, or of which any bit has changed,
is refused before anything in it is read. The same contents give the same bytes.

A checksum tells of accidents only. So nothing is believed of what a file states about itself
either: members lie in it as they are, uncompressed, and must be as long as their headers say
before memory is taken for them; headers are matched letter by letter, and never evaluated.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, BinaryIO

import numpy as np

DOCUMENT = "model.json"

# Parsed, a document takes some twenty times its length.
_LONGEST_DOCUMENT = 1 << 24
_ENDING = b"sparsemargin model, sha256 "
_DIGEST_LENGTH = 64
_CHUNK = 1 << 20
_LONGEST_MESSAGE = 500
# The first member's header, which begins the file: 26 bytes that differ stand between the two.
_MAGIC, _FIRST_NAME = b"PK\x03\x04", slice(30, 30 + len(DOCUMENT))

_NPY_MAGIC = b"\x93NUMPY\x01\x00"
_NPY_HEADER = re.compile(
    rb"\{'descr': '([<>|](?:b1|[iu][1248]|f[248]|[SU]\d{1,8}))', 'fortran_order': False, "
    rb"'shape': \(((?:\d{1,18}(?:, \d{1,18})*,?)?)\), \} *\n"
)
_LAST_CHARACTER = 0x10FFFF

# What a file made by hand may lead to, beside a ValueError.
_FAILURES = (
    zipfile.BadZipFile, struct.error, EOFError, ArithmeticError, AttributeError, LookupError,
    RuntimeError, TypeError,
)  # fmt: skip


def can_hold(dtype: np.dtype) -> bool:
    """Whether an archive can hold arrays of that type: of booleans, numbers, bytes or text, but of
    no type that is another one elsewhere."""
    return dtype.kind in "biufSU" and dtype.itemsize > 0 and dtype.char != "g"


def write_archive(
    file: BinaryIO, document: dict[str, Any], arrays: Mapping[str, np.ndarray]
) -> None:
    """Write the document and the arrays, each of a type that `can_hold` allows.

    Raises
    ------
    ValueError
        If the document is too long to be read again.
    """
    text = json.dumps(document, allow_nan=False).encode("ascii")
    if len(text) > _LONGEST_DOCUMENT:
        raise ValueError(
            f"The model's settings and counts take {len(text)} bytes; a model file holds "
            f"{_LONGEST_DOCUMENT} beside the arrays."
        )
    write_members(file, {DOCUMENT: text}, arrays, _ENDING + b"0" * _DIGEST_LENGTH)
    end = file.seek(-_DIGEST_LENGTH, os.SEEK_END)
    digest = _digest(file, end)
    file.seek(end)
    file.write(digest)


def write_members(
    file: BinaryIO,
    texts: Mapping[str, bytes],
    arrays: Mapping[str, np.ndarray],
    comment: bytes = b"",
) -> None:
    """Write texts, and arrays as `numpy.savez` does, into a ZIP archive."""
    archive = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)
    try:
        archive.comment = comment
        for name, text in texts.items():
            archive.writestr(_member(name, len(text)), text)
        for name, array in arrays.items():
            with archive.open(_member(f"{name}.npy", array.nbytes), "w") as stream:
                np.lib.format.write_array(stream, array, version=(1, 0), allow_pickle=False)
        archive.close()
    except BaseException:
        # To close it may fail after Ctrl-C, and would tell of that failure instead.
        archive.fp = None
        raise


def _member(name: str, n_bytes: int) -> zipfile.ZipInfo:
    """A member that is the same whenever and wherever it is written."""
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = 0o644 << 16
    info.file_size = n_bytes  # an estimate, for which the header leaves room
    return info


def _digest(file: BinaryIO, n_bytes: int) -> bytes:
    digest = hashlib.sha256()
    file.seek(0)
    while n_bytes > 0 and (chunk := file.read(min(_CHUNK, n_bytes))):
        digest.update(chunk)
        n_bytes -= len(chunk)
    return digest.hexdigest().encode("ascii")


@contextmanager
def open_archive(path: str | os.PathLike[str]) -> Iterator[Archive]:
    """What the file at `path` holds, once its checksum has been verified.

    Raises
    ------
    OSError
        If the file can't be read.
    ValueError
        If it is no model file, or not as it was written; or for what is raised within, so that
        it names the file.
    """
    with open(path, "rb") as file:
        try:
            _verify(file)
            with zipfile.ZipFile(file) as archive:
                yield Archive(archive, os.fstat(file.fileno()).st_size)
        except ValueError as error:
            raise _naming(path, str(error)) from error
        except _FAILURES as error:
            what = f"{type(error).__name__}: {error}"
            raise _naming(path, f"This is not what save_model writes. {what}") from error
        except MemoryError as error:
            raise _naming(path, "This model takes more memory than there is.") from error


def _naming(path: str | os.PathLike[str], message: str) -> ValueError:
    # A message may quote the file, at any length.
    return ValueError(f"{os.fspath(path)}: {message[:_LONGEST_MESSAGE]}")


def _verify(file: BinaryIO) -> None:
    status = os.fstat(file.fileno())
    beginning = file.read(_FIRST_NAME.stop) if stat.S_ISREG(status.st_mode) else b""
    if not beginning.startswith(_MAGIC) or beginning[_FIRST_NAME] != DOCUMENT.encode():
        raise ValueError("This is not a model file. save_model writes them.")
    tail = file.seek(max(0, status.st_size - _DIGEST_LENGTH - len(_ENDING)))
    ending = file.read()
    end = tail + len(_ENDING)
    if not ending.startswith(_ENDING) or ending[len(_ENDING) :] != _digest(file, end):
        raise ValueError(
            "This model file was cut short or has been changed: its checksum is another. Copy it "
            "again from where it was saved, or save the model again."
        )


class Archive:
    """The members of an open archive; each can be read once.

    Parameters
    ----------
    archive : ZipFile
    n_bytes : int
        Length of the file.
    """

    def __init__(self, archive: zipfile.ZipFile, n_bytes: int):
        self._archive = archive
        self._members = {info.filename: info for info in archive.infolist()}
        sizes = [info.file_size for info in archive.infolist()]
        plain = all(
            info.compress_type == zipfile.ZIP_STORED and info.file_size == info.compress_size
            and 0 <= info.header_offset < n_bytes
            for info in archive.infolist()
        )  # fmt: skip
        if not plain or len(self._members) != len(sizes) or sum(sizes) > n_bytes:
            raise ValueError("Its members are compressed, or lie over each other.")

    def _take(self, name: str) -> zipfile.ZipInfo:
        if name not in self._members:
            raise ValueError(f"It has no member {name!r}, or uses it twice.")
        return self._members.pop(name)

    def document(self) -> Any:
        """What ``model.json`` says."""
        info = self._take(DOCUMENT)
        if info.file_size > _LONGEST_DOCUMENT:
            raise ValueError(f"{DOCUMENT} takes more than {_LONGEST_DOCUMENT} bytes.")
        return json.loads(self._archive.read(info), parse_constant=_refuse_constant)

    def array(self, name: str) -> np.ndarray:
        """The array of that name."""
        info = self._take(f"{name}.npy")
        with self._archive.open(info) as stream:
            try:
                return _read_array(stream, info.file_size)
            except ValueError as error:
                raise ValueError(f"{info.filename}: {error}") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{DOCUMENT} holds {name}.")


def _read_array(stream: IO[bytes], n_bytes: int) -> np.ndarray:
    """The array in the npy format that takes all of a stream of so many bytes."""
    if stream.read(len(_NPY_MAGIC)) != _NPY_MAGIC:
        raise ValueError("This is not an array in the npy format, version 1.0.")
    length = int.from_bytes(stream.read(2), "little")
    header = _NPY_HEADER.fullmatch(stream.read(length))
    if header is None:
        raise ValueError("Its header is none of an array of numbers or text.")
    dtype = np.dtype(header[1].decode("ascii"))
    shape = tuple(int(size) for size in header[2].decode("ascii").split(",") if size.strip())
    n_left = n_bytes - len(_NPY_MAGIC) - 2 - length
    if dtype.itemsize == 0 or math.prod(shape) * dtype.itemsize != n_left:
        raise ValueError(f"Its header tells of another length than the {n_left} bytes there are.")
    array = np.empty(shape, dtype)
    _fill(array.reshape(-1).view(np.uint8) if n_left else array, stream)
    array = array.astype(dtype.newbyteorder("="), copy=False)
    if not _is_sound(array):
        raise ValueError("It holds what is no bool or no character.")
    return array


def _fill(raw: np.ndarray, stream: IO[bytes]) -> None:
    """Fill an array of bytes from the stream."""
    for start in range(0, raw.nbytes, _CHUNK):
        part = raw[start : start + _CHUNK]
        read = np.frombuffer(stream.read(len(part)), np.uint8)
        if len(read) < len(part):
            raise ValueError("It ends too soon.")
        part[:] = read


def _is_sound(array: np.ndarray) -> bool:
    """Whether bytes that were read make values of the array's type."""
    if array.nbytes == 0 or array.dtype.kind not in "bU":
        return True
    flat = array.reshape(-1)
    if array.dtype.kind == "b":
        return bool(flat.view(np.uint8).max() <= 1)
    return bool(flat.view(np.uint32).max() <= _LAST_CHARACTER)
