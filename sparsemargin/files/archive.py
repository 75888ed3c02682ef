"""Archives of arrays, which are uncompressed ZIP files as `numpy.savez` writes them.

Model files and row caches are such archives, and ``numpy.load`` can open them. Each array starts at
a multiple of 64 bytes, so that it can be used from a memory map. The first member is a JSON
document that identifies the kind of archive. Equal contents give equal bytes.

ZIP stores a CRC-32 for each member and the directory at the end of the file. Truncated files and
files with a changed bit in the content of a member are therefore refused. A checksum protects only
against accidents. An array is therefore returned only if its dtype and shape match the bytes in the
file.
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

#: Names of the first members of model files and of row caches.
MODEL_DOCUMENT, CACHE_DOCUMENT = "model.json", "row_cache.json"
#: Bytes at the beginning of a file from which `begins_with` recognizes an archive.
HEAD_BYTES = 64
#: First bytes of a zip archive.
ZIP_MARK = b"PK\x03\x04"

#: Arrays start at multiples of this many bytes, the size of a cache line, as in npy files.
ALIGNMENT = 64
# Bytes of a member's header before its name, and bytes that zipfile appends for large members.
_HEADER, _LARGE = 30, 20
_PADDING = struct.Struct("<HH")
_PADDING_ID = 0xD935
# The header of an array in the npy format. The regular expression is used because numpy's parser
# (`ast.literal_eval`) takes longer than reading a small array.
_NPY_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([<>|](?:b1|[iu][1248]|f[248]|[SU]\d{1,8}))', "
    rb"'fortran_order': False, 'shape': \(((?:\d{1,18}(?:, \d{1,18})*,?)?)\), \} *\n",
    re.DOTALL,
)
# Bytes of an array that are read before the pages of the map are released.
_CHUNK = 1 << 22
# Bytes of the longest document that is read. Parsing needs about 20 times as much memory.
_LONGEST_DOCUMENT = 1 << 24


class DamagedError(ValueError):
    """An archive that has been damaged since it was written."""


def begins_with(head: bytes, document: str) -> bool:
    """Return whether `head` is the beginning of an archive whose first member is `document`."""
    return head.startswith(ZIP_MARK) and head[_HEADER:].startswith(document.encode())


def zip_members(file: Any) -> list[str]:
    """Return the names of the members of a zip archive, given by its path or as an open file. The
    list is empty if the archive is damaged."""
    try:
        with zipfile.ZipFile(file) as archive:
            return archive.namelist()
    except OSError:
        raise
    except Exception:  # damage may cause any error of `zipfile`
        return []


def can_hold(dtype: np.dtype) -> bool:
    """Return whether an archive can hold arrays of this dtype: booleans, numbers, bytes or text.
    `longdouble` is excluded, because it is a different type on other machines."""
    return dtype.kind in "biufSU" and dtype.itemsize > 0 and dtype.char != "g"


class ArchiveWriter:
    """Write members into a new file, one after another. It is a context manager."""

    def __init__(self, file: BinaryIO):
        self._file, self._zip = file, zipfile.ZipFile(file, "w")

    def __enter__(self) -> ArchiveWriter:
        return self

    def __exit__(self, kind: type | None, error: object, trace: TracebackType | None) -> None:
        if kind is None:
            self._zip.close()
        # Without this, the destructor of `ZipFile` would close an unfinished archive and fail,
        # which would hide the error.
        self._zip.fp = None

    def document(self, name: str, document: dict[str, Any]) -> None:
        """Write a document as JSON. Raise a ValueError if it is longer than `Archive.document`
        reads."""
        text = json.dumps(document).encode("ascii")
        if len(text) > _LONGEST_DOCUMENT:
            raise ValueError(
                f"The settings and counts take {len(text)} bytes; a file holds "
                f"{_LONGEST_DOCUMENT} beside the arrays."
            )
        self._member(name, text)

    def array(self, name: str, array: np.ndarray) -> None:
        """Write an array, whose dtype must be one that `can_hold` accepts."""
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
    """An archive that is mapped into memory: `map` is the memory map, `members` are its members by
    name.

    A damaged archive raises a `DamagedError`. An archive that was made by hand may raise any other
    error.
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
        """Parse the JSON document of this name. Raise a ValueError if it is damaged, too long or
        not JSON."""
        content = self._content(name)
        if len(content) > _LONGEST_DOCUMENT:
            raise ValueError(f"{name} takes more than {_LONGEST_DOCUMENT} bytes.")
        return json.loads(bytes(content))

    def array(self, name: str) -> np.ndarray:
        """Return the array of this name as a read-only view of the map. Raise a ValueError if it is
        damaged or has a dtype that `can_hold` refuses."""
        content = self._content(f"{name}.npy")
        header = _NPY_HEADER.match(content)
        if header is None:
            raise ValueError(f"{name}.npy does not begin as an array of numbers or text.")
        dtype = np.dtype(header[1].decode("ascii"))
        shape = tuple(int(size) for size in header[2].split(b",") if size.strip())
        n_left = len(content) - header.end()
        if not dtype.itemsize or math.prod(shape) * dtype.itemsize != n_left:
            raise ValueError(f"{name}.npy states another length than the {n_left} bytes it has.")
        return np.ndarray(shape, dtype, content, header.end())

    def copy(self, name: str) -> np.ndarray:
        """Return a copy of an array in native byte order. Pages of the map are released while they
        are copied, so that the array is in memory only once."""
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
        if len(content) != info.file_size or self._checksum(content) != info.CRC:
            raise DamagedError(f"the checksum of its member {name!r} is another")
        return content

    def _checksum(self, content: memoryview) -> int:
        """Return the CRC-32 of a part of the map, whose pages are released on the way."""
        checksum = 0
        for start in range(0, len(content), _CHUNK):
            checksum = zlib.crc32(content[start : start + _CHUNK], checksum)
            self.map.madvise(mmap.MADV_DONTNEED)
        return checksum
