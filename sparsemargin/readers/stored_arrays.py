"""Groups and arrays in untrusted files: the common interface of HDF5 files and zarr stores.

`sparsemargin.readers.hdf5_files` and `sparsemargin.readers.zarr_stores` implement these classes.
They refuse objects that would run code, open another file or take far more memory than the file has
bytes. All errors are ValueErrors that name the file and the object.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

DAMAGED = "The file is damaged. Copy it again."

#: Number of threads that unpack chunks.
UNPACKING = 2

#: Largest number of bytes of an unpacked chunk.
LARGEST_CHUNK = 1 << 28

# Limits for the values and bytes of an array that is read completely: a constant, plus a number for
# each byte of the file. Tables of real files stay far below, because the counts take most of the
# file.
_VALUES, _VALUES_PER_BYTE = 1 << 22, 4
_BYTES, _BYTES_PER_BYTE = 1 << 26, 32

# Number of texts that are read before their size is checked. A hostile HDF5 file may refer to one
# long text many times.
_TEXTS = 256

# Bytes at the start of a packed chunk that contain its unpacked size (the longest header of zstd).
SIZE_BYTES = 18


def room_for(n_bytes: int) -> int:
    """Return the largest unpacked size, in bytes, of a table in a file of `n_bytes` bytes."""
    return _BYTES + _BYTES_PER_BYTE * n_bytes


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Turn errors of libraries that read a file into a ValueError that names the file."""
    try:
        yield
    except (
        OSError, EOFError, RuntimeError, LookupError, ArithmeticError, TypeError, ValueError,
        MemoryError, zlib.error,
    ) as error:  # fmt: skip
        if isinstance(error, FileNotFoundError | PermissionError) or name in str(error):
            raise
        words = str(error).split("\n")[0] or type(error).__name__
        raise ValueError(
            f"{name} can't be read: {words}. The file is cut short, damaged, or in another format. "
            "Copy it again, or write it again with anndata."
        ) from None


@dataclass
class Node:
    """A group or an array; `file` and `path` name it, `n_bytes` is the size of the file."""

    file: str
    path: str
    n_bytes: int

    def fault(self, what: str) -> ValueError:
        """Return the error that says what is wrong with this object."""
        return ValueError(f"{self.file}: {self.path or '/'} {what}")

    def unsafe(self, what: str) -> ValueError:
        """Return the error for an object that is safe to read only if the user trusts the file."""
        return self.fault(
            f"{what}. This is refused, because the file may come from a stranger. If you trust it, "
            "open it with anndata and write it again: adata.write_h5ad('new.h5ad')."
        )


class Group(Node, ABC):
    """A group of named members, with attributes."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of the members."""

    @abstractmethod
    def get(self, name: str) -> Group | Array | None:
        """Return a member, or None if it does not exist."""

    @abstractmethod
    def attribute(self, name: str) -> Any:
        """Return the value of an attribute, or None if it does not exist."""

    def group(self, name: str) -> Group:
        """Return a member, which must be a group."""
        found = self.get(name)
        if not isinstance(found, Group):
            raise self.fault(f"has no group {name!r}. The file is damaged or in another format.")
        return found

    def array(self, name: str, kinds: str, ndim: int = 1) -> Array:
        """Return a member, which must be an array. `kinds` are the allowed kinds of numpy dtypes,
        "T" for text."""
        found = self.get(name)
        if not isinstance(found, Array):
            raise self.fault(f"has no array {name!r}. The file is damaged or in another format.")
        return found.checked(kinds, ndim)

    def text(self, name: str) -> str:
        """Return an attribute as text, "" if it is missing or not text."""
        value = self.attribute(name)
        value = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        return value if isinstance(value, str) else ""


@dataclass
class Array(Node, ABC):
    """An array of numbers or text, which is read by slices of its first axis."""

    shape: tuple[int, ...]
    dtype: np.dtype
    is_text: bool
    chunks: tuple[int, ...] | None

    def __post_init__(self) -> None:
        if not self.is_text and self.dtype.kind not in "biuf":
            raise self.fault(f"has values of type {self.dtype}, which are not numbers or text.")
        most = prod(self.chunks or ()) * max(1, self.dtype.itemsize)
        if self.chunks is not None and not 0 < most <= LARGEST_CHUNK:
            raise self.fault(
                f"has chunks of {most:,} bytes. At most {LARGEST_CHUNK:,} bytes can be read at "
                "once. Write the file with smaller chunks: open it with anndata, then call "
                "adata.write_h5ad('new.h5ad')."
            )

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> np.ndarray:
        start, stop, _ = rows.indices(len(self))
        with readable(self.file):
            return self._read(start, max(start, stop))

    @abstractmethod
    def _read(self, start: int, stop: int) -> np.ndarray:
        """Read some rows. Text is returned as an array of str objects."""

    def numbers_of_parts(
        self, start: int, stop: int, lengths: tuple[int, ...]
    ) -> Iterator[tuple[int, ...]]:
        """Yield the position in the grid of each part (chunk or file) that has some of the rows.
        `lengths` is the shape of a part."""
        ends = [(start, stop), *((0, length) for length in self.shape[1:])]
        return product(
            *(range(a // n, -(-b // n)) for (a, b), n in zip(ends, lengths, strict=True))
        )

    def checked(self, kinds: str, ndim: int = 1) -> Array:
        """Return the array itself, after a check of its kind and its number of axes."""
        kind = "T" if self.is_text else self.dtype.kind
        if kind not in kinds or len(self.shape) != ndim:
            what = "text" if self.is_text else f"type {self.dtype}"
            raise self.fault(
                f"has {what} and shape {self.shape}, where others are expected. The file is "
                "damaged or in another format."
            )
        return self

    def whole(self) -> np.ndarray:
        """Read all values of an array, which must be small compared with the file."""
        n_values = prod(self.shape)
        n_bytes = n_values * self.dtype.itemsize
        most = _VALUES + _VALUES_PER_BYTE * self.n_bytes
        if n_values > most or n_bytes > room_for(self.n_bytes):
            raise self.fault(
                f"has the shape {self.shape}, but the file has only {self.n_bytes:,} bytes. "
                f"{DAMAGED}"
            )
        return self._texts() if self.is_text else self[:]

    def _texts(self) -> np.ndarray:
        found, n_bytes = [np.empty(0, object)], 0
        for start in range(0, len(self), _TEXTS):
            found.append(self[start : start + _TEXTS])
            n_bytes += sum(map(len, found[-1]))
            if n_bytes > room_for(self.n_bytes):
                raise self.fault(f"has texts that are much longer than the file. {DAMAGED}")
        return np.concatenate(found)

    def check_unpacked(self, codec: str, packed: bytes, most: int) -> None:
        """Raise an error if a packed chunk would unpack to more than `most` bytes."""
        if size_of(codec, packed, most) > most:
            raise self.too_large(most)

    def too_large(self, most: int) -> ValueError:
        """Return the error for a chunk that unpacks to more than `most` bytes."""
        return self.fault(
            f"has a chunk that unpacks to more than the {most:,} bytes of its shape. {DAMAGED}"
        )


def size_of(codec: str, packed: bytes, most: int) -> int:
    """Return the unpacked size of a packed chunk, as stated in its first `SIZE_BYTES` bytes. "gzip"
    does not state it, so that up to slightly more than `most` bytes are unpacked."""
    if codec == "gzip":
        return _inflated_size(packed, most)
    if codec == "zstd":
        return _zstd_size(packed)
    at, n, order = {"blosc": (4, 4, "little"), "lz4": (0, 4, "little"), "lz4-hdf5": (0, 8, "big")}[
        codec
    ]
    if len(packed) < at + n:
        raise ValueError(f"a chunk packed by {codec} is cut short")
    return int.from_bytes(packed[at : at + n], order)  # type: ignore[arg-type]


def _inflated_size(packed: bytes, most: int) -> int:
    """Return the unpacked size of a gzip or zlib stream. Stop soon after `most` bytes."""
    size = 0
    while packed and size <= most:
        unpacker = zlib.decompressobj(47)
        while not unpacker.eof and size <= most:
            part = unpacker.decompress(packed, 1 << 20)
            size, packed = size + len(part), unpacker.unconsumed_tail
            if not part and not packed and not unpacker.eof:
                raise ValueError("a chunk packed by gzip is cut short")
        packed = unpacker.unused_data.lstrip(b"\0")
    return size


def _zstd_size(packed: bytes) -> int:
    """Return the size that the header of the frame states (RFC 8878)."""
    if packed[:4] != b"\x28\xb5\x2f\xfd" or len(packed) < 6:
        raise ValueError("a chunk packed by zstd is damaged")
    flag = packed[4]
    width = (1 if flag & 32 else 0, 2, 4, 8)[flag >> 6]
    if not width:
        raise ValueError("a chunk packed by zstd does not state its size")
    at = 5 + (not flag & 32) + (0, 1, 2, 4)[flag & 3]
    return int.from_bytes(packed[at : at + width], "little") + (256 if width == 2 else 0)
