"""Encoding of a model's values as a JSON document and separate arrays.

Plain values are written as in JSON. Any other value is an object with one entry, whose key is its
type: ``{"array": name}``, ``{"tuple": [...]}``, ``{"LinearSpace": {...}}``. The table of types is
closed: a name in a file is looked up in it and nowhere else. The engine's objects check the state
that they are given.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np

from sparsemargin._engine.core.vectors import FirstOrderRule
from sparsemargin._engine.first_order.linear_space import JointSpace, LinearSpace
from sparsemargin._engine.first_order.packed import PackedSpace, is_worth_packing
from sparsemargin._engine.first_order.vector_blocks import VectorBlocks
from sparsemargin._engine.fitting.certificate import SoftMargin
from sparsemargin._engine.fitting.epochs import FitResult
from sparsemargin._engine.fitting.progressive import ProgressiveOutputs
from sparsemargin._engine.kernel.loop import KernelSpace
from sparsemargin._engine.matrix.spaces import DualSpaces, FeatureSpaces
from sparsemargin._engine.state import array_of, fields, integer, real, require
from sparsemargin.files.archive import Archive, can_hold
from sparsemargin.models.kernels import NAMED

_LAST_CHARACTER = 0x10FFFF
# Name of the bit generator of a `RandomState`, and number of words of its state.
_GENERATOR, _GENERATOR_LENGTH = "MT19937", 624


def _random_state(random: np.random.RandomState) -> dict[str, Any]:
    state = random.get_state(legacy=False)
    if state["bit_generator"] != _GENERATOR:
        raise ValueError(
            f"A model file can't hold a RandomState with the generator {state['bit_generator']}. "
            "Pass an int as random_state, or RandomState(seed)."
        )
    return {**state["state"], "has_gauss": state["has_gauss"], "gauss": state["gauss"]}


def _restore_random(state: dict[str, Any]) -> np.random.RandomState:
    random = np.random.RandomState(0)
    # `pos` is checked because numpy would read beyond the end of the key.
    known = fields(state, {
        "key": (array_of, np.uint32, (_GENERATOR_LENGTH,)), "pos": (integer, 0, _GENERATOR_LENGTH),
        "has_gauss": (integer, 0, 1), "gauss": (real, -np.inf, np.inf),
    })  # fmt: skip
    random.set_state((_GENERATOR, *known.values()))
    return random


#: Types that check the state that they are given, by their names in files.
OWN_TYPES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        LinearSpace, VectorBlocks, JointSpace, KernelSpace, DualSpaces, FeatureSpaces,
        FirstOrderRule, FitResult, ProgressiveOutputs, SoftMargin,
        np.random.RandomState, *NAMED.values(),
    )
}  # fmt: skip


def state_of(value: Any) -> Any:
    """Return the state of an object whose type is in `OWN_TYPES`."""
    if isinstance(value, np.random.RandomState):
        return _random_state(value)
    return value.__getstate__()


def _restored(kind: Any, state: dict[str, Any]) -> Any:
    if kind is np.random.RandomState:
        return _restore_random(state)
    if kind is LinearSpace and is_worth_packing(state):
        kind = PackedSpace
    fresh = kind.__new__(kind)
    fresh.__setstate__(state)
    return fresh


def _refuse(what: str, path: str) -> NoReturn:
    raise ValueError(
        f"{path} is {what}, which a model file can't hold. It can hold numbers, text, None, lists, "
        "tuples, dicts, and arrays of numbers or text."
    )


class Encoder:
    """Encoder of values as JSON. Arrays are put into the dict `arrays`, with the path of the value
    as key. Values that model files can't hold raise a ValueError."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def encode(self, value: Any, path: str) -> Any:
        """Return the JSON value for `value`. `path` is the place of the value in the document."""
        kind = type(value)
        if value is None or kind in (bool, int, float, str):
            return value
        if kind in (list, tuple):
            values = [self.encode(each, f"{path}.{i}") for i, each in enumerate(value)]
            return values if kind is list else {"tuple": values}
        if kind is dict:
            # Keys that are identifiers become part of the names of arrays.
            if all(type(key) is str and key.isascii() and key.isidentifier() for key in value):
                return {"dict": self.encode_named(value, f"{path}.")}
            return {"items": self.encode(list(value.items()), path)}
        if isinstance(value, np.generic) or kind in (np.ndarray, np.memmap):
            return self._encode_array(np.asarray(value), path)
        kind = getattr(value, "saved_type", None) or kind
        if OWN_TYPES.get(kind.__name__) is not kind:
            _refuse(f"of type {kind.__module__}.{kind.__qualname__}", path)
        return {kind.__name__: self.encode_named(state_of(value), f"{path}.")}

    def encode_named(self, mapping: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
        """Encode the values of a mapping. Its names are appended to the path `prefix`."""
        return {name: self.encode(value, prefix + name) for name, value in mapping.items()}

    def _encode_array(self, array: np.ndarray, path: str) -> dict[str, Any]:
        if array.dtype.kind == "O":
            if array.ndim != 1 or not all(isinstance(value, str) for value in array):
                _refuse("an array of other objects than text", path)
            texts = json.dumps(array.tolist()).encode("ascii")
            return {"texts": self._put(np.frombuffer(texts, np.uint8), path)}
        return {"array": self._put(array, path)}

    def _put(self, array: np.ndarray, path: str) -> str:
        """Store an array next to the document, and return its name."""
        if not can_hold(array.dtype):
            _refuse(f"an array of type {array.dtype}", path)
        while path in self.arrays:
            path += "_"
        self.arrays[path] = np.asarray(array, array.dtype.newbyteorder("="))
        return path


class Decoder:
    """Decoder of the output of `Encoder`. Invalid input raises a ValueError. An array may be used
    only once, so that a small file can't produce large values."""

    def __init__(self, archive: Archive):
        self._archive, self._unread = archive, set(archive.members)
        self.readers: dict[str, Callable[[Any], Any]] = {
            "tuple": lambda values: tuple(self.decode(values)),
            "items": lambda items: dict(self.decode(items)),
            "dict": self.decode_named,
            "array": self._array,
            "texts": self._texts,
        }

    def decode(self, value: Any) -> Any:
        """Return the value that an entry of the document encodes."""
        if isinstance(value, list):
            return [self.decode(each) for each in value]
        if not isinstance(value, dict):
            return value
        require(len(value) == 1, f"{len(value)} names are where one should be")
        ((tag, content),) = value.items()
        if tag in OWN_TYPES:
            return _restored(OWN_TYPES[tag], self.decode_named(content))
        require(tag in self.readers, f"there is no type {tag!r}")
        return self.readers[tag](content)

    def decode_named(self, content: dict[str, Any]) -> dict[str, Any]:
        """Return the values that `Encoder.encode_named` encoded."""
        require(isinstance(content, dict), f"a {type(content).__name__} is where names should be")
        return {name: self.decode(value) for name, value in content.items()}

    def _array(self, name: str) -> Any:
        """Return a copy of an array. An array without axes becomes a number or text."""
        require(f"{name}.npy" in self._unread, f"it has no array {name!r}, or uses it twice")
        self._unread.remove(f"{name}.npy")
        array = self._archive.copy(name)
        if array.dtype.kind in "bU":
            most, unit = (1, np.uint8) if array.dtype.kind == "b" else (_LAST_CHARACTER, np.uint32)
            values = array.reshape(-1).view(unit)
            require(values.max(initial=0) <= most, f"{name!r} holds what is no {array.dtype}")
        return array[()]

    def _texts(self, name: str) -> np.ndarray:
        raw = np.atleast_1d(self._array(name))
        texts = json.loads(raw.tobytes())
        sound = isinstance(texts, list) and all(isinstance(text, str) for text in texts)
        require(sound, f"{name!r} holds no texts")
        return np.array([*texts, None], dtype=object)[:-1]
