"""Untrusted zarr stores, read by zarr within the limits of `sparsemargin.readers.stored_arrays`.

Some codecs of numcodecs run code that the store contains. The metadata of each array are therefore
compared with a list of permitted codecs before zarr opens it. Consolidated metadata are not used.
"""

from __future__ import annotations

import json
import os
from itertools import product
from math import ceil, prod
from typing import Any, NamedTuple

import numpy as np

from sparsemargin.readers.stored_arrays import (
    LARGEST_CHUNK,
    SIZE_BYTES,
    Array,
    Group,
    Node,
    readable,
)

# The codecs that pack a chunk, and the format of the size in it. Their settings are irrelevant
# here.
_PACKERS = {"blosc": "blosc", "zstd": "zstd", "lz4": "lz4", "zlib": "gzip", "gzip": "gzip"}

# Bytes of the largest metadata file. An array needs some hundred bytes, but in version 3 the root
# may have a copy of the metadata of all arrays.
_LARGEST_METADATA = 1 << 26

_NUMBERS = {"bool", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
            "float16", "float32", "float64"}  # fmt: skip


def open_zarr(name: str, folder: str, n_bytes: int) -> Group:
    """Open the root of a store. It is of version 3 if it has a zarr.json, else of version 2."""
    version = 3 if os.path.isfile(os.path.join(folder, "zarr.json")) else 2
    root = ZarrGroup(name, "", n_bytes, folder, version)
    root.read_attributes()
    return root


def _is_name(name: str) -> bool:
    return bool(name) and name not in (".", "..") and "/" not in name and "\0" not in name


class ZarrGroup(Group):
    """A group of a store in a folder."""

    def __init__(self, file: str, path: str, n_bytes: int, folder: str, version: int) -> None:
        super().__init__(file, path, n_bytes)
        self._folder, self._version = folder, version
        self._attributes: dict[str, Any] = {}

    def read_attributes(self) -> None:
        """Read the attributes from the group's metadata."""
        if self._version == 3:
            found = self._json("", "zarr.json").get("attributes")
        else:
            found = self._json("", ".zattrs") if self._has("", ".zattrs") else {}
        self._attributes = found if isinstance(found, dict) else {}

    def names(self) -> list[str]:
        return sorted(name for name in os.listdir(self._folder) if self._kind(name))

    def attribute(self, name: str) -> Any:
        return self._attributes.get(name)

    def get(self, name: str) -> Group | Array | None:
        if not _is_name(name):
            return None
        path, folder = f"{self.path}/{name}", os.path.join(self._folder, name)
        kind = self._kind(name)
        if kind == "group":
            group = ZarrGroup(self.file, path, self.n_bytes, folder, self._version)
            group.read_attributes()
            return group
        if kind != "array":
            return None
        metadata = self._json(name, ".zarray" if self._version == 2 else "zarr.json")
        node = Node(self.file, path, self.n_bytes)
        try:
            layout = (_layout_2 if self._version == 2 else _layout_3)(node, metadata)
        except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
            raise node.fault(f"has metadata that can't be read ({error!r}).") from None
        return ZarrArray.of(node, folder, self._version, layout)

    def _kind(self, name: str) -> str | None:
        if self._version == 2:
            of = {"array": ".zarray", "group": ".zgroup"}
            return next((kind for kind, file in of.items() if self._has(name, file)), None)
        found = self._json(name, "zarr.json") if self._has(name, "zarr.json") else {}
        return found.get("node_type")

    def _has(self, name: str, file: str) -> bool:
        return os.path.isfile(os.path.join(self._folder, name, file))

    def _json(self, name: str, file: str) -> dict[str, Any]:
        path = os.path.join(self._folder, name, file)
        where = f"{self.path}/{name}".rstrip("/")
        node = Node(self.file, where, self.n_bytes)
        if os.path.getsize(path) > _LARGEST_METADATA:
            raise node.fault(f"has a {file} that is far too long. It is damaged.")
        try:
            with open(path, encoding="utf-8") as text:
                found = json.load(text)
        except (ValueError, RecursionError) as error:
            raise node.fault(f"has a {file} that is not JSON ({error}). It is damaged.") from None
        if not isinstance(found, dict):
            raise node.fault(f"has a {file} that is no object of JSON. It is damaged.")
        return found


class _Layout(NamedTuple):
    """The layout of an array in a store.

    `chunks` is the shape of the part in one file, `inner` that of the part that is unpacked at
    once. `packer` is the compression of inner chunks, and `tail` the number of bytes after a packed
    one. `index_at` is the position of the list of inner chunks in a file ("start" or "end"), and
    the number of bytes after the list; None if a file has one chunk.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    is_text: bool
    chunks: tuple[int, ...]
    inner: tuple[int, ...]
    packer: str | None
    tail: int
    key: tuple[str, str]  # prefix of the name of a chunk's file, separator
    index_at: tuple[str, int] | None = None


def _lengths(node: Node, values: Any) -> tuple[int, ...]:
    if not isinstance(values, list) or not all(type(n) is int and 0 <= n < 2**63 for n in values):
        raise node.fault(f"has the shape or the chunks {values!r}. It is damaged.")
    return tuple(values)


def _refused(node: Node, what: Any) -> ValueError:
    return node.unsafe(f"is encoded by {what!r}")


def _separator(node: Node, value: Any) -> str:
    if value not in (".", "/"):
        raise _refused(node, value)
    return str(value)


def _layout_2(node: Node, metadata: dict[str, Any]) -> _Layout:
    """Return the layout from the metadata of version 2 (.zarray)."""
    text, filters, packer = metadata["dtype"], metadata.get("filters"), metadata.get("compressor")
    ids = [each.get("id") for each in filters or []]
    is_text = text == "|O"
    if ids != (["vlen-utf8"] if is_text else []):
        raise _refused(node, ids or text)
    dtype = np.dtype(text) if isinstance(text, str) else np.dtype("V1")
    if packer is not None and packer.get("id") not in _PACKERS:
        raise _refused(node, packer.get("id"))
    shape, chunks = _lengths(node, metadata["shape"]), _lengths(node, metadata["chunks"])
    key = "", _separator(node, metadata.get("dimension_separator", "."))
    return _Layout(
        shape, dtype, is_text or dtype.kind in "US", chunks, chunks,
        None if packer is None else _PACKERS[packer["id"]], 0, key,
    )  # fmt: skip


def _layout_3(node: Node, metadata: dict[str, Any]) -> _Layout:
    """Return the layout from the metadata of version 3 (zarr.json)."""
    kind, grid = metadata["data_type"], metadata["chunk_grid"]
    naming = metadata["chunk_key_encoding"]
    if not (kind == "string" or (isinstance(kind, str) and kind in _NUMBERS)):
        raise _refused(node, kind)
    if metadata.get("storage_transformers") or grid["name"] != "regular":
        raise _refused(node, metadata.get("storage_transformers") or grid["name"])
    if naming["name"] not in ("default", "v2"):
        raise _refused(node, naming["name"])
    is_default = naming["name"] == "default"
    separator = naming.get("configuration", {}).get("separator", "/" if is_default else ".")
    separator = _separator(node, separator)
    chunks = inner = _lengths(node, grid["configuration"]["chunk_shape"])
    codecs, index = metadata["codecs"], None
    if [_codec(each)[0] for each in codecs] == ["sharding_indexed"]:
        of = _codec(codecs[0])[1]
        inner, codecs = _lengths(node, of["chunk_shape"]), of["codecs"]
        names = [_codec(each)[0] for each in of.get("index_codecs", [])]
        if names not in (["bytes"], ["bytes", "crc32c"]):
            raise _refused(node, names)
        index = of.get("index_location", "end"), 4 * (len(names) - 1)
    is_text = kind == "string"
    packer, tail = _packing(node, codecs, is_text)
    key = f"c{separator}" if is_default else "", separator
    dtype = np.dtype(object) if is_text else np.dtype(kind)
    shape = _lengths(node, metadata["shape"])
    return _Layout(shape, dtype, is_text, chunks, inner, packer, tail, key, index)


def _codec(each: Any) -> tuple[str, dict[str, Any]]:
    """Return the name and the settings of a codec of version 3."""
    if isinstance(each, str):
        return each, {}
    return each["name"], each.get("configuration") or {}


def _packing(node: Node, codecs: list[Any], is_text: bool) -> tuple[str | None, int]:
    """Return the compression of the chunks, and the number of bytes of a checksum after them."""
    names = [_codec(each)[0] for each in codecs]
    while names and names[0] == "transpose":
        names.pop(0)
    tail = 4 if names[-1:] == ["crc32c"] else 0
    first, packers = names[:1], names[1 : len(names) - bool(tail)]
    if (
        first != ["vlen-utf8" if is_text else "bytes"]
        or len(packers) > 1 or not _PACKERS.keys() >= set(packers)
    ):  # fmt: skip
        raise _refused(node, names)
    return (_PACKERS[packers[0]] if packers else None), tail


class ZarrArray(Array):
    """An array of a store in a folder."""

    _layout: _Layout
    _folder: str
    _array: Any

    @classmethod
    def of(cls, node: Node, folder: str, version: int, layout: _Layout) -> ZarrArray:
        import zarr

        array = cls(
            node.file, node.path, node.n_bytes, layout.shape, layout.dtype, layout.is_text,
            layout.inner,
        )  # fmt: skip
        n_axes = {len(layout.shape), len(layout.chunks), len(layout.inner)}
        if len(n_axes) > 1 or 0 in (*layout.chunks, *layout.inner):
            raise array.fault("has chunks that do not fit its shape. It is damaged.")
        if any(a % b for a, b in zip(layout.chunks, layout.inner, strict=True)):
            raise array.fault("has chunks that do not divide its shards. It is damaged.")
        array._layout, array._folder = layout, folder
        with readable(node.file):
            array._array = zarr.open_array(
                folder,
                mode="r",
                zarr_format=version,  # type: ignore[arg-type]
            )
        return array

    def _read(self, start: int, stop: int) -> np.ndarray:
        if stop <= start:
            return np.empty((0, *self.shape[1:]), self.dtype)
        self._check_chunks(start, stop)
        values = np.asarray(self._array[start:stop])
        if not self.is_text:
            return values
        texts = np.empty(values.shape, object)
        texts[:] = [
            each.decode() if isinstance(each, bytes) else str(each) for each in values.tolist()
        ]
        return texts

    def _check_chunks(self, start: int, stop: int) -> None:
        """Raise an error if chunks of these rows would unpack to more bytes than their shape
        allows."""
        begin, separator = self._layout.key
        rows = [(start, stop), *((0, length) for length in self.shape[1:])]
        lengths = zip(rows, self._layout.chunks, strict=True)
        for at in product(*(range(a // n, ceil(b / n)) for (a, b), n in lengths)):
            path = os.path.join(self._folder, begin + separator.join(map(str, at)))
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    self._check_file(file, os.path.getsize(path))

    def _check_file(self, file: Any, size: int) -> None:
        for start, n_bytes in self._places(file, size):
            most = prod(self._layout.inner) * self.dtype.itemsize
            if self.dtype.kind == "O" or self._layout.packer is None:
                most = LARGEST_CHUNK
            n_bytes -= self._layout.tail
            if self._layout.packer is None:
                if n_bytes > most:
                    raise self.fault("has a chunk that is far too long. It is damaged.")
                continue
            file.seek(start)
            head = file.read(n_bytes if self._layout.packer == "gzip" else SIZE_BYTES)
            self.check_unpacked(self._layout.packer, head, most)

    def _places(self, file: Any, size: int) -> list[tuple[int, int]]:
        """Return the position and the size of each part of a file that is unpacked at once."""
        if self._layout.index_at is None:
            return [(0, size)]
        where, tail = self._layout.index_at
        parts = zip(self._layout.chunks, self._layout.inner, strict=True)
        n = 16 * prod(a // b for a, b in parts)
        if n + tail > size:
            raise self.fault("has a shard that is cut short. It is damaged.")
        file.seek(0 if where == "start" else size - n - tail)
        found = np.frombuffer(file.read(n), "<u8").reshape(-1, 2)
        found = found[(found != 2**64 - 1).any(axis=1)]
        ends = found[:, 0] + found[:, 1]
        if (found > size).any() or (ends > size).any():
            raise self.fault("has a shard whose chunks end beyond it. It is damaged.")
        return [(int(a), int(b)) for a, b in found.tolist()]
