"""What a model is made of, as a model file holds it: a document, and arrays beside it.

Plain values stand in the document as JSON has them. Anything else stands there as an object with
one entry, whose name tells what it is: ``{"array": name}``, ``{"tuple": [...]}``, ``{"LinearSpace":
{...}}``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np

from sparsemargin._engine.state import require, require_starts, require_within
from sparsemargin.io._archive import Archive, can_hold
from sparsemargin.io._own_types import BY_COORDINATE, NAMES, OWN_TYPES, ByCoordinate

# About what one more member takes in an archive, its name and its headers.
_MEMBER_BYTES = 256
# Floats that JSON has no numbers for.
_NOT_FINITE = ("inf", "-inf", "nan")


def _refuse(what: str, path: str) -> NoReturn:
    raise ValueError(
        f"{path} is {what}, which a model file has no place for. They hold numbers, text, None, "
        "lists, tuples, dicts and arrays of numbers or text."
    )


class Encoder:
    """Writes values as JSON has them, and takes the arrays out.

    Attributes
    ----------
    arrays : dict of str to ndarray
        Those taken out, by the path to where they were.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def encode(self, value: Any, path: str) -> Any:
        """What stands for a value, to which `path` leads.

        Raises
        ------
        ValueError
            If it, or a part of it, is of a type that model files have no place for.
        """
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind is list:
            return self._encode_all(value, path)
        if kind is tuple:
            return {"tuple": self._encode_all(value, path)}
        if kind is dict:
            return self._encode_dict(value, path)
        if kind is ByCoordinate:
            return self._encode_sparsely(value.array, path)
        if isinstance(value, np.generic):
            return {"scalar": self._put(np.asarray(value), path)}
        if kind in (np.ndarray, np.memmap):
            return self._encode_array(value, path)
        return self._encode_own(value, path)

    def _encode_all(self, values: Any, path: str) -> list:
        return [self.encode(value, f"{path}.{i}") for i, value in enumerate(values)]

    def _encode_dict(self, mapping: dict, path: str) -> dict:
        if all(type(key) is str and key.isascii() and key.isidentifier() for key in mapping):
            return {"dict": self.encode_named(mapping, f"{path}.")}
        return {"items": self._encode_all(list(mapping.items()), path)}

    def encode_named(self, mapping: Mapping[str, Any], prefix: str = "") -> dict:
        """A dict of what stands for the values, whose names continue the path."""
        return {name: self.encode(value, prefix + name) for name, value in mapping.items()}

    def _encode_own(self, value: Any, path: str) -> dict:
        kind = type(value)
        name = NAMES.get(kind)
        if name is None:
            _refuse(f"of type {kind.__module__}.{kind.__qualname__}", path)
        return {name: self.encode_named(OWN_TYPES[name].state(value), f"{path}.")}

    def _encode_array(self, array: np.ndarray, path: str) -> dict:
        if array.dtype.kind != "O":
            return {"array": self._put(array, path)}
        if array.ndim != 1 or not all(isinstance(value, str) for value in array):
            _refuse("an array of other objects than text", path)
        texts = [value.encode("utf-8", "surrogatepass") for value in array]
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        text = np.frombuffer(b"".join(texts), np.uint8)
        return {"strings": [self._put(text, f"{path}.utf8"), self._put(ends, f"{path}.ends")]}

    def _encode_sparsely(self, array: np.ndarray, path: str) -> dict:
        """Places and values of what is not 0 to the bit, where that is shorter."""
        bits = array.view(f"u{array.itemsize}")
        place_type = np.dtype(np.int32 if len(array) <= 2**31 else np.int64)
        n_bytes = np.count_nonzero(bits) * (place_type.itemsize + array.itemsize) + _MEMBER_BYTES
        if n_bytes >= array.nbytes:
            return {"array": self._put(array, path)}
        places = np.flatnonzero(bits)
        return {
            "sparse": [
                self._put(places.astype(place_type), f"{path}.places"),
                self._put(array[places], f"{path}.values"),
                len(array),
            ]
        }

    def _put(self, array: np.ndarray, path: str) -> str:
        """Take an array out; the name it is given."""
        if not can_hold(array.dtype):
            _refuse(f"an array of type {array.dtype}", path)
        while path in self.arrays:
            path += "_"
        native = array.dtype.newbyteorder("=")
        self.arrays[path] = np.asarray(array, native, order="C")
        return path


class Decoder:
    """Makes the values again of what an `Encoder` wrote.

    Parameters
    ----------
    archive : Archive
        Where the arrays are.

    Attributes
    ----------
    most : int
        Entries that an array may have of which the file holds only those that are not 0.
    n_bytes : int
        What the arrays take by now.
    """

    def __init__(self, archive: Archive):
        self._archive = archive
        self.most = 0
        self.n_bytes = 0
        self._readers: dict[str, Callable[[Any], Any]] = {
            "float": self._float, "tuple": self._tuple, "dict": self.decode_named,
            "items": self._items, "array": self._array, "scalar": self._scalar,
            "strings": self._strings,
        }  # fmt: skip

    def decode(self, value: Any) -> Any:
        """The value that an entry of the document stands for.

        Raises
        ------
        ValueError
            If it stands for none.
        """
        if isinstance(value, list):
            return [self.decode(each) for each in value]
        if not isinstance(value, dict):
            return value
        require(len(value) == 1, f"{len(value)} names are where one should be")
        ((tag, content),) = value.items()
        if tag in OWN_TYPES:
            return OWN_TYPES[tag].restore(self.decode_named(content))
        require(tag in self._readers, f"there is no type {tag!r}")
        return self._readers[tag](content)

    def _float(self, text: Any) -> float:
        require(text in _NOT_FINITE, f"{text!r} is no number")
        return float(text)

    def _tuple(self, values: list) -> tuple:
        return tuple(self.decode(value) for value in values)

    def decode_named(self, content: dict[str, Any]) -> dict[str, Any]:
        """The other way round of `Encoder.encode_named`."""
        require(isinstance(content, dict), f"a {type(content).__name__} is where names should be")
        return {name: self._decode_entry(name, value) for name, value in content.items()}

    def _decode_entry(self, name: str, value: Any) -> Any:
        if name in BY_COORDINATE and isinstance(value, dict) and value.keys() == {"sparse"}:
            return self._sparse(value["sparse"])
        return self.decode(value)

    def _items(self, items: list) -> dict:
        return dict(self.decode(items))

    def _array(self, name: str) -> np.ndarray:
        array = self._archive.array(name)
        self.n_bytes += array.nbytes
        return array

    def _scalar(self, name: str) -> Any:
        array = self._array(name)
        require(array.shape == (), f"{name!r} is not a single value")
        return array[()]

    def _strings(self, names: list) -> np.ndarray:
        text, ends = map(self._array, names)
        require(text.dtype == np.uint8 and text.ndim == 1, f"{names[0]!r} is no text")
        require_starts(names[1], ends, len(text))
        array = np.empty(len(ends) - 1, dtype=object)
        raw = text.tobytes()
        for i in range(len(array)):
            array[i] = raw[ends[i] : ends[i + 1]].decode("utf-8", "surrogatepass")
        return array

    def _sparse(self, content: list) -> np.ndarray:
        *names, length = content
        places, values = map(self._array, names)
        require(
            isinstance(length, int) and 0 <= length <= self.most,
            f"{names[1]!r} are of {length} entries, where the model has {self.most}",
        )
        require(
            places.dtype in (np.int32, np.int64) and values.dtype.kind in "iuf"
            and places.ndim == 1 and places.shape == values.shape,
            f"{names[0]!r} are not the places of {names[1]!r}",
        )  # fmt: skip
        require_within(names[0], places, 0, length - 1)
        array = np.zeros(length, values.dtype)
        array[places] = values
        self.n_bytes += array.nbytes
        return array
