"""Archives of arrays: ZIP files as `numpy.savez` writes them, into which ``numpy.load`` looks.

Model files, row caches and npz files are such. Members lie in them as they are, uncompressed, each
array where a memory map has it at a multiple of 64 bytes. The first member is a document that
tells what the archive is of, and the same contents give the same bytes.

ZIP keeps a CRC-32 of every member, and the directory at the end: what was cut short, or of which a
bit has changed that matters, is refused. A checksum tells of accidents only. So nothing is believed
of what a file states about itself either: an array is what lies in the file, or is refused.
"""

from __future__ import annotations

import io
import json
import math
import mmap
import re
import struct
import zipfile
import zlib
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np

#: What the first members are called, of models and of row caches.
MODEL_DOCUMENT, CACHE_DOCUMENT = "model.json", "row_cache.json"
#: Bytes at the beginning of a file that tell what it is.
HEAD_BYTES = 64

ALIGNMENT = 64
_MAGIC = b"PK\x03\x04"
# Bytes of a member's header before its name, and of what zipfile appends for large members.
_HEADER, _LARGE = 30, 20
_PADDING = struct.Struct("<HH")
_PADDING_ID = 0xD935
# How an array in the npy format begins. To have numpy evaluate it costs more than the array.
_NPY_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([<>|](?:b1|[iu][1248]|f[248]|[SU]\d{1,8}))', "
    rb"'fortran_order': False, 'shape': \(((?:\d{1,18}(?:, \d{1,18})*,?)?)\), \} *\n",
    re.DOTALL,
)
_CHUNK = 1 << 22
# Parsed, a document takes some twenty times its length.
_LONGEST_DOCUMENT = 1 << 24


class DamagedError(ValueError):
    """An archive that is not as it was written."""


def begins_with(head: bytes, document: str) -> bool:
    """Whether a file that begins so is an archive with that document first."""
    return head.startswith(_MAGIC) and head[_HEADER:].startswith(document.encode())


def can_hold(dtype: np.dtype) -> bool:
    """Whether an archive can hold arrays of that type: of booleans, numbers, bytes or text, but of
    no type that is another one elsewhere."""
    return dtype.kind in "biufSU" and dtype.itemsize > 0 and dtype.char != "g"


class ArchiveWriter:
    """Writes members into a new file, one after the other; a context manager."""

    def __init__(self, file: BinaryIO):
        self._file, self._zip = file, zipfile.ZipFile(file, "w")

    def __enter__(self) -> ArchiveWriter:
        return self

    def __exit__(self, kind: type | None, error: object, trace: TracebackType | None) -> None:
        if kind is None:
            self._zip.close()
        # Otherwise its destructor would close it, and fail in place of the error at hand.
        self._zip.fp = None

    def document(self, name: str, document: dict[str, Any]) -> None:
        """Write what JSON can hold; a ValueError where that is too long to be read again."""
        text = json.dumps(document).encode("ascii")
        if len(text) > _LONGEST_DOCUMENT:
            raise ValueError(
                f"The settings and counts take {len(text)} bytes; a file holds "
                f"{_LONGEST_DOCUMENT} beside the arrays."
            )
        self._member(name, text)

    def array(self, name: str, array: np.ndarray) -> None:
        """Write an array, of a type that `can_hold` allows."""
        array = np.asarray(array, order="C")
        header = io.BytesIO()
        described = np.lib.format.header_data_from_array_1_0(array)
        np.lib.format.write_array_header_1_0(header, described)
        self._member(f"{name}.npy", header.getvalue(), array.reshape(-1).view(np.uint8))

    def _member(self, name: str, *parts: Any) -> None:
        info = zipfile.ZipInfo(name)
        n_before = self._file.tell() + _HEADER + len(name) + _PADDING.size + _LARGE
        padding = -n_before % ALIGNMENT
        info.extra = _PADDING.pack(_PADDING_ID, padding) + bytes(padding)
        with self._zip.open(info, "w", force_zip64=True) as stream:
            for part in parts:
                stream.write(part)


class Archive:
    """An archive, mapped into memory: its `map`, and its `members` by name.

    What is damaged is a `DamagedError`; what was made by hand may lead to any other.
    """

    def __init__(self, file: BinaryIO):
        self.map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        try:
            with zipfile.ZipFile(file) as archive:
                infos = archive.infolist()
        except zipfile.BadZipFile as error:
            raise DamagedError(str(error)) from None
        self.members = {info.filename: info for info in infos}
        stored = all(
            info.compress_type == zipfile.ZIP_STORED and info.file_size == info.compress_size
            and 0 <= info.header_offset < len(self.map)
            for info in infos
        )  # fmt: skip
        n_bytes = sum(info.file_size for info in infos)
        if not stored or len(self.members) != len(infos) or n_bytes > len(self.map):
            raise DamagedError("its members are compressed, or lie over each other")

    def document(self, name: str) -> Any:
        """What a document says; a ValueError where it is damaged, too long or none."""
        content = self._content(name)
        if len(content) > _LONGEST_DOCUMENT:
            raise ValueError(f"{name} takes more than {_LONGEST_DOCUMENT} bytes.")
        return json.loads(bytes(content))

    def array(self, name: str) -> np.ndarray:
        """The array of that name, as a read-only view of the map; a ValueError where it is damaged,
        or none that `can_hold` allows."""
        content = self._content(f"{name}.npy")
        header = _NPY_HEADER.match(content)
        if header is None:
            raise ValueError(f"{name}.npy does not begin as an array of numbers or text.")
        dtype = np.dtype(header[1].decode("ascii"))
        shape = tuple(int(size) for size in header[2].split(b",") if size.strip())
        n_left = len(content) - header.end()
        if not dtype.itemsize or math.prod(shape) * dtype.itemsize != n_left:
            raise ValueError(f"{name}.npy tells of another length than the {n_left} bytes it has.")
        return np.ndarray(shape, dtype, content, header.end())

    def copy(self, name: str) -> np.ndarray:
        """A copy of an array in native byte order; the map lets go of what has been read, so that
        memory is taken once."""
        mapped = self.array(name)
        array = np.empty(mapped.shape, mapped.dtype.newbyteorder("="))
        source, target = mapped.reshape(-1), array.reshape(-1)
        step = _CHUNK // mapped.itemsize + 1
        for start in range(0, mapped.size, step):
            self.map.madvise(mmap.MADV_DONTNEED)
            target[start : start + step] = source[start : start + step]
        self.map.madvise(mmap.MADV_DONTNEED)
        return array

    def _content(self, name: str) -> memoryview:
        if name not in self.members:
            raise DamagedError(f"it has no member {name!r}")
        info = self.members[name]
        lengths = struct.unpack_from("<HH", self.map, info.header_offset + _HEADER - 4)
        start = info.header_offset + _HEADER + sum(lengths)
        content = memoryview(self.map)[start : start + info.file_size]
        if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
            raise DamagedError(f"the checksum of its member {name!r} is another")
        return content
