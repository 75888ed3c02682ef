"""Untrusted zarr stores, read by zarr within the limits of `sparsemargin.readers.stored_arrays`.

Some codecs of numcodecs run code that the store contains. The metadata of each array are therefore
compared with a list of permitted codecs before zarr opens it. Consolidated metadata are not used.
"""

from __future__ import annotations

import json
import os
from math import prod
from typing import Any, NamedTuple

import numpy as np
import zarr

from sparsemargin.readers.stored_arrays import (
    DAMAGED,
    LARGEST_CHUNK,
    SIZE_BYTES,
    Array,
    Group,
    Node,
    readable,
)

# For each permitted codec, the format whose header states the unpacked size.
_PACKERS = {"blosc": "blosc", "zstd": "zstd", "lz4": "lz4", "zlib": "gzip", "gzip": "gzip"}

# Largest number of bytes of a metadata file. An array needs some hundred bytes, but in version 3
# the root may have a copy of the metadata of all arrays.
_LARGEST_METADATA = 1 << 26


def open_zarr(name: str, folder: str, n_bytes: int) -> Group:
    """Open the root of a store. It is of version 3 if it has a zarr.json, else of version 2."""
    version = 3 if os.path.isfile(os.path.join(folder, "zarr.json")) else 2
    return ZarrGroup(name, "", n_bytes, folder, version)


class ZarrGroup(Group):
    """A group of a store in a folder."""

    def __init__(self, file: str, path: str, n_bytes: int, folder: str, version: int) -> None:
        super().__init__(file, path, n_bytes)
        self._folder, self._version = folder, version
        if version == 3:
            found = self._json("", "zarr.json").get("attributes")
        else:
            found = self._json("", ".zattrs") if self._has("", ".zattrs") else {}
        self._attributes: dict[str, Any] = found if isinstance(found, dict) else {}

    def names(self) -> list[str]:
        return sorted(name for name in os.listdir(self._folder) if self._kind(name))

    def attribute(self, name: str) -> Any:
        return self._attributes.get(name)

    def get(self, name: str) -> Group | Array | None:
        if name in ("", ".", "..") or "/" in name or "\0" in name:
            return None
        path, folder = f"{self.path}/{name}", os.path.join(self._folder, name)
        kind = self._kind(name)
        if kind == "group":
            return ZarrGroup(self.file, path, self.n_bytes, folder, self._version)
        if kind != "array":
            return None
        metadata = self._json(name, ".zarray" if self._version == 2 else "zarr.json")
        node = Node(self.file, path, self.n_bytes)
        try:
            packing = (_packing_2 if self._version == 2 else _packing_3)(node, metadata)
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise node.fault(f"has metadata that can't be read ({error!r}).") from None
        return ZarrArray.of(node, folder, self._version, packing)

    def _kind(self, name: str) -> str | None:
        if self._version == 2:
            kinds = {"array": ".zarray", "group": ".zgroup"}
            return next((kind for kind, file in kinds.items() if self._has(name, file)), None)
        found = self._json(name, "zarr.json") if self._has(name, "zarr.json") else {}
        return found.get("node_type")

    def _has(self, name: str, file: str) -> bool:
        return os.path.isfile(os.path.join(self._folder, name, file))

    def _json(self, name: str, file: str) -> dict[str, Any]:
        path = os.path.join(self._folder, name, file)
        node = Node(self.file, f"{self.path}/{name}".rstrip("/"), self.n_bytes)
        if os.path.getsize(path) > _LARGEST_METADATA:
            raise node.fault(f"has a {file} that is far too long. {DAMAGED}")
        try:
            with open(path, encoding="utf-8") as text:
                found = json.load(text)
        except (ValueError, RecursionError) as error:
            raise node.fault(f"has a {file} that is not JSON ({error}). {DAMAGED}") from None
        if not isinstance(found, dict):
            raise node.fault(f"has a {file} that is not a JSON object. {DAMAGED}")
        return found


class _Packing(NamedTuple):
    """The encoding of the chunks of an array.

    `packer` is the compression of a chunk, and `n_after` the number of bytes of its checksum.
    `index_at` is the position of the list of chunks in a shard ("start" or "end"), and the number
    of bytes of its checksum; None if there are no shards.
    """

    packer: str | None
    n_after: int = 0
    index_at: tuple[str, int] | None = None


def _refused(node: Node, what: Any) -> ValueError:
    return node.unsafe(f"is encoded by {what!r}")


def _packing_2(node: Node, metadata: dict[str, Any]) -> _Packing:
    """Return the encoding from the metadata of version 2 (.zarray)."""
    text, packer = metadata["dtype"], metadata.get("compressor")
    filters = [each.get("id") for each in metadata.get("filters") or []]
    if filters != (["vlen-utf8"] if text == "|O" else []):
        raise _refused(node, filters or text)
    if packer is None:
        return _Packing(None)
    if packer.get("id") not in _PACKERS:
        raise _refused(node, packer.get("id"))
    return _Packing(_PACKERS[packer["id"]])


def _packing_3(node: Node, metadata: dict[str, Any]) -> _Packing:
    """Return the encoding from the metadata of version 3 (zarr.json)."""
    grid, transformers = metadata["chunk_grid"]["name"], metadata.get("storage_transformers")
    if transformers or grid != "regular":
        raise _refused(node, transformers or grid)
    codecs, index = metadata["codecs"], None
    if _names(codecs) == ["sharding_indexed"]:
        shard = codecs[0]["configuration"]
        codecs, of_index = shard["codecs"], _names(shard.get("index_codecs", []))
        if of_index not in (["bytes"], ["bytes", "crc32c"]):
            raise _refused(node, of_index)
        index = shard.get("index_location", "end"), 4 * (len(of_index) - 1)
    names = _names(codecs)
    while names and names[0] == "transpose":
        names.pop(0)
    n_after = 4 if names[-1:] == ["crc32c"] else 0
    first, packers = names[:1], names[1 : len(names) - bool(n_after)]
    expected = "vlen-utf8" if metadata["data_type"] == "string" else "bytes"
    if first != [expected] or len(packers) > 1 or not _PACKERS.keys() >= set(packers):
        raise _refused(node, names)
    return _Packing(_PACKERS[packers[0]] if packers else None, n_after, index)


def _names(codecs: list[Any]) -> list[str]:
    """Return the names of codecs of version 3."""
    return [each if isinstance(each, str) else each["name"] for each in codecs]


class ZarrArray(Array):
    """An array of a store in a folder."""

    _packing: _Packing
    _folder: str
    _array: Any
    _files: tuple[int, ...]  # shape of the part of the array that is in one file

    @classmethod
    def of(cls, node: Node, folder: str, version: Any, packing: _Packing) -> ZarrArray:
        with readable(f"{node.file}: {node.path}"):
            found = zarr.open_array(folder, mode="r", zarr_format=version)
            dtype, chunks, files = found.dtype, found.chunks, found.shards or found.chunks
        is_text = dtype.kind in "OTUS"
        array = cls(node.file, node.path, node.n_bytes, found.shape, dtype, is_text, chunks)
        if 0 in files or any(a % b for a, b in zip(files, chunks, strict=True)):
            raise array.fault(f"has chunks that do not divide its shards. {DAMAGED}")
        array._packing, array._folder, array._array, array._files = packing, folder, found, files
        return array

    def _read(self, start: int, stop: int) -> np.ndarray:
        if stop <= start:
            return np.empty((0, *self.shape[1:]), object if self.is_text else self.dtype)
        self._check_files(start, stop)
        values = np.asarray(self._array[start:stop])
        if not self.is_text:
            return values
        texts = np.empty(values.shape, object)
        texts[:] = [
            each.decode() if isinstance(each, bytes) else str(each) for each in values.tolist()
        ]
        return texts

    def _check_files(self, start: int, stop: int) -> None:
        """Raise an error if chunks of these rows would unpack to more bytes than their shape
        allows."""
        for numbers in self.numbers_of_parts(start, stop, self._files):
            path = os.path.join(self._folder, self._array.metadata.encode_chunk_key(numbers))
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    for place in self._places(file, os.path.getsize(path)):
                        self._check_chunk(file, *place)

    def _check_chunk(self, file: Any, start: int, n_bytes: int) -> None:
        packer, n_bytes = self._packing.packer, n_bytes - self._packing.n_after
        if packer is None:
            if n_bytes > LARGEST_CHUNK:
                raise self.fault(f"has a chunk that is far too long. {DAMAGED}")
            return
        assert self.chunks is not None
        is_fixed = self.dtype.kind not in "OT"
        most = prod(self.chunks) * self.dtype.itemsize if is_fixed else LARGEST_CHUNK
        file.seek(start)
        self.check_unpacked(packer, file.read(n_bytes if packer == "gzip" else SIZE_BYTES), most)

    def _places(self, file: Any, size: int) -> list[tuple[int, int]]:
        """Return the position and the size of each chunk in a file."""
        if self._packing.index_at is None:
            return [(0, size)]
        assert self.chunks is not None
        where, n_after = self._packing.index_at
        n = 16 * prod(a // b for a, b in zip(self._files, self.chunks, strict=True))
        if n + n_after > size:
            raise self.fault(f"has a shard that is cut short. {DAMAGED}")
        file.seek(0 if where == "start" else size - n - n_after)
        found = np.frombuffer(file.read(n), "<u8").reshape(-1, 2)
        found = found[(found != 2**64 - 1).any(axis=1)]
        ends = found[:, 0] + found[:, 1]
        if (found > size).any() or (ends > size).any():
            raise self.fault(f"has a shard whose chunks end beyond it. {DAMAGED}")
        return [(int(a), int(b)) for a, b in found.tolist()]
