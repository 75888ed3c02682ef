"""Untrusted HDF5 files, read by h5py within the limits of `sparsemargin.readers.stored_arrays`.

Several threads may read a file at once. HDF5 may then fail or end the process, so every read of
values holds h5py's lock here. h5py itself does not hold it for text (h5py issue 2920) and, before
version 3.16, for packed chunks (issue 2764).

Iterators of h5py are always exhausted. An unfinished iterator would keep h5py's lock as long as the
traceback of an error exists, and block every later read in the process.
"""

from __future__ import annotations

import shlex
import zlib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import prod
from typing import Any

import h5py
import numpy as np
from h5py._objects import phil  # h5py's lock has no public name.

from sparsemargin.readers.stored_arrays import DAMAGED, UNPACKING, Array, Group

_DEFLATE, _SHUFFLE, _FLETCHER32, _LZF = 1, 2, 3, 32000

# For each permitted filter of hdf5plugin, the format whose header states the unpacked size. lzf
# needs no header, because one byte unpacks to at most 88.
_PLUGINS = {32001: "blosc", 32004: "lz4-hdf5", 32008: "lz4-hdf5", 32015: "zstd"}
_PACKERS = {_DEFLATE, _LZF, *_PLUGINS}

# For the first bytes of packed files, the command that unpacks them.
_UNPACK = {
    b"\x1f\x8b": "gunzip -c {} > NEW.h5ad", b"BZ": "bunzip2 -c {} > NEW.h5ad",
    b"\xfd7": "unxz -c {} > NEW.h5ad", b"PK": "unzip -d FOLDER {}",
}  # fmt: skip

# Largest number of soft links in a chain. Longer chains are assumed to be circles.
_LINKS = 16


def open_hdf5(name: str, path: str, n_bytes: int) -> tuple[Group, Any]:
    """Open a file. Return its root and a function that closes it."""
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        if "file signature not found" not in str(error):
            raise
        with open(path, "rb") as packed:
            program = _UNPACK.get(packed.read(2))
        if program is not None:
            command = program.format(shlex.quote(name))
            raise ValueError(f"{name} is packed. Unpack it: {command}") from None
        raise ValueError(
            f"{name} is no HDF5 file, or its beginning is damaged. Files of cells are .h5ad, 10x "
            ".h5, zarr stores and matrix.mtx. For a table, read it with pandas.read_csv(path, "
            "index_col=0), and pass the DataFrame, whose columns are genes."
        ) from None
    return Hdf5Group(name, "", n_bytes, file), file.close


class Hdf5Group(Group):
    """A group of an HDF5 file."""

    def __init__(self, file: str, path: str, n_bytes: int, group: h5py.Group) -> None:
        super().__init__(file, path, n_bytes)
        self._group = group

    def names(self) -> list[str]:
        return list(self._group)

    def attribute(self, name: str) -> Any:
        return self._group.attrs.get(name)

    def get(self, name: str, n_links: int = 0) -> Group | Array | None:
        if "/" in name or name in ("", "."):
            return None
        link = self._group.get(name, getlink=True)
        path = f"{self.path}/{name}"
        if isinstance(link, h5py.SoftLink):
            return self._linked(link.path, n_links + 1)
        if link is None:
            return None
        here = Hdf5Group(self.file, path, self.n_bytes, self._group)
        if not isinstance(link, h5py.HardLink):
            raise here.unsafe("is a link to another file")
        found = self._group[name]
        if isinstance(found, h5py.Group):
            return Hdf5Group(self.file, path, self.n_bytes, found)
        if isinstance(found, h5py.Dataset):
            # anndata writes None, for example if there is no X, as an empty dataset.
            if found.shape is None and found.attrs.get("encoding-type") == "null":
                return None
            return Hdf5Array.of(self.file, path, self.n_bytes, found)
        return None

    def _linked(self, path: str, n_links: int) -> Group | Array | None:
        """Return the object that a soft link leads to, after a check of each step."""
        if n_links > _LINKS:
            raise self.fault(f"has links that lead in a circle. {DAMAGED}")
        root = Hdf5Group(self.file, "", self.n_bytes, self._group.file)
        found: Group | Array | None = root if path.startswith("/") else self
        for part in path.split("/"):
            if part not in ("", "."):
                found = found.get(part, n_links) if isinstance(found, Hdf5Group) else None
        return found


class Hdf5Array(Array):
    """A dataset of an HDF5 file."""

    _dataset: h5py.Dataset
    _values: Any  # the object through which h5py reads values, text as str
    _filters: list[int]

    @classmethod
    def of(cls, file: str, path: str, n_bytes: int, dataset: h5py.Dataset) -> Hdf5Array:
        if dataset.shape is None:
            raise Hdf5Group(file, path, n_bytes, dataset).fault(f"is empty. {DAMAGED}")
        is_text = h5py.check_string_dtype(dataset.dtype) is not None
        array = cls(file, path, n_bytes, dataset.shape, dataset.dtype, is_text, dataset.chunks)
        plist = dataset.id.get_create_plist()
        if dataset.external:
            raise array.unsafe("has its values in another file")
        if plist.get_layout() == h5py.h5d.VIRTUAL:
            raise array.unsafe("is a virtual dataset, whose values may be in other files")
        if dataset.id.get_storage_size() > n_bytes:
            raise array.fault(f"takes more bytes than the file has. {DAMAGED}")
        array._dataset, array._values = dataset, dataset.asstr() if is_text else dataset
        array._filters = [plist.get_filter(i)[0] for i in range(plist.get_nfilters())]
        array._check_filters()
        return array

    def _check_filters(self) -> None:
        packers = [each for each in self._filters if each not in (_SHUFFLE, _FLETCHER32)]
        if len(packers) > 1 or not _PACKERS.issuperset(packers):
            raise self.fault(
                f"is packed by the HDF5 filters {', '.join(map(str, self._filters))}. Only gzip, "
                "lzf, and hdf5plugin's blosc, lz4, zstd and bitshuffle can be read, because they "
                "limit or state the unpacked size. Convert it: h5repack -f GZIP=4 FILE NEW."
            )
        if _PLUGINS.keys() & packers:
            try:
                # hdf5plugin is an optional dependency, which registers the filters.
                import hdf5plugin  # noqa: F401
            except ImportError:
                raise self.fault(
                    f"is packed by {_PLUGINS[packers[0]]}. Install hdf5plugin to read it: "
                    "pip install hdf5plugin"
                ) from None

    def _read(self, start: int, stop: int) -> np.ndarray:
        if not self._filters:
            with phil:
                return self._values[start:stop]
        assert self.chunks is not None
        values = np.empty((stop - start, *self.shape[1:]), object if self.is_text else self.dtype)
        fill, numbers = partial(self._fill, values, start), self.numbers_of_parts
        if len(self.shape) == 1:  # callers already read 1-D arrays in several threads
            list(map(fill, numbers(start, stop, self.chunks)))
        else:
            with ThreadPoolExecutor(UNPACKING) as pool:
                list(pool.map(fill, numbers(start, stop, self.chunks)))
        return values

    def _fill(self, values: np.ndarray, start: int, numbers: tuple[int, ...]) -> None:
        """Copy the rows of a chunk into `values`, which has the rows from `start` on."""
        assert self.chunks is not None
        corner = tuple(i * n for i, n in zip(numbers, self.chunks, strict=True))
        first = max(corner[0], start)
        last = min(corner[0] + self.chunks[0], start + len(values))
        # A chunk may reach beyond the end of the array. Slices of the array end there.
        others = [slice(at, at + n) for at, n in zip(corner[1:], self.chunks[1:], strict=True)]
        target = values[(slice(first - start, last - start), *others)]
        chunk = self._chunk(corner)
        if chunk is None:
            with phil:
                target[...] = self._values[(slice(first, last), *others)]
        else:
            rows = slice(first - corner[0], last - corner[0])
            target[...] = chunk[(rows, *map(slice, target.shape[1:]))]

    def _chunk(self, corner: tuple[int, ...]) -> np.ndarray | None:
        """Check a chunk and return its values, or None if h5py has to unpack it.

        Chunks packed by gzip are unpacked here, because zlib can limit the unpacked size and,
        unlike h5py, releases the GIL meanwhile.
        """
        try:
            with phil:
                skipped, packed = self._dataset.id.read_direct_chunk(corner)
        except (OSError, RuntimeError, MemoryError):
            # The chunk may never have been written. h5py then returns the fill value, and otherwise
            # raises the error.
            return None
        assert self.chunks is not None
        n_values = prod(self.chunks)
        # A chunk stores a text of variable length as a reference of 16 bytes.
        size = n_values * (16 if self.dtype.kind == "O" else self.dtype.itemsize)
        is_complete = not self.is_text
        for i, each in reversed(list(enumerate(self._filters))):
            if skipped >> i & 1:
                continue
            if each == _FLETCHER32:
                packed, is_complete = packed[:-4], False  # h5py verifies the checksum
            elif each == _SHUFFLE:
                if len(packed) != size:
                    break
                packed = np.frombuffer(packed, np.uint8).reshape(-1, n_values).T.tobytes()
            elif each == _DEFLATE:
                packed = self._inflated(packed, size)
            else:
                self._check_plugin(each, packed, size)
                return None
        if len(packed) != size:
            raise self.fault(f"has a chunk whose size differs from its shape. {DAMAGED}")
        if not is_complete:
            return None
        return np.frombuffer(packed, self.dtype).reshape(self.chunks)

    def _inflated(self, packed: bytes, size: int) -> bytes:
        unpacker = zlib.decompressobj()
        # The chunk may have a checksum of 4 bytes. One more byte shows that the chunk is too large.
        values = unpacker.decompress(packed, size + 4 + 1)
        if len(values) > size + 4:
            raise self.too_large(size)
        return values

    def _check_plugin(self, which: int, packed: bytes, size: int) -> None:
        if which != _LZF:
            self.check_unpacked(_PLUGINS[which], packed, size)
        elif len(packed) > 2 * size + 1024:
            raise self.fault(f"has a chunk that is larger than its values. {DAMAGED}")
