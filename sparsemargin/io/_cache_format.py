"""How the file of a row cache is laid out.

=======  ==========================================================================================
part     holds
=======  ==========================================================================================
head     64 bytes: magic, format version, zeros
blocks   one after the other: `data`, `indices`, `indptr`, `labels` and, for several labels a row,
         `label_start`; every array begins at a multiple of 64 bytes, zeros fill the gaps
table    32 bytes for each block: numbers of rows, entries and labels, bytes of an index, CRC-32 of
         the block
footer   JSON: byte order and type of the values, labels, range of the indices, where the rows come
         from
trailer  32 bytes: offsets of table and footer, CRC-32 of all from the table to here, format
         version, magic
=======  ==========================================================================================

A block's place is the sum of the lengths before it, so that no number in the file can point
outside of it; head and trailer are compared as a whole, and everything between them is under one
of the checksums. Numbers are little-endian outside the arrays.
"""

from __future__ import annotations

import json
import math
import struct
import sys
import zlib
from dataclasses import dataclass
from typing import Any, get_origin, get_type_hints

import numpy as np

#: What the names of caches end in, unless another is given.
CACHE_SUFFIX = ".smcache"

ALIGNMENT = 64
VERSION = 1
_MAGIC = b"\x93smrows\n"
HEAD = struct.pack("<8sI52x", _MAGIC, VERSION)

BLOCK = np.dtype(
    [("rows", "<i8"), ("entries", "<i8"), ("labels", "<i8"), ("index_bytes", "<u4"), ("crc", "<u4")]
)
_OFFSETS = struct.Struct("<QQ")
_SEAL = struct.Struct("<II8s")
_TRAILER_BYTES = _OFFSETS.size + _SEAL.size


@dataclass(frozen=True)
class Footer:
    """What a cache says of itself, its blocks apart."""

    identity: dict[str, Any]
    dtype: str
    multilabel: bool
    label_texts: list[str]
    label_numbers: list[float | None]
    lowest: int
    highest: int
    n_columns: int
    byte_order: str = sys.byteorder


# list of list[str], and so on.
_KINDS = {name: get_origin(hint) or hint for name, hint in get_type_hints(Footer).items()}


def padded(n_bytes: Any) -> Any:
    """The next multiple of `ALIGNMENT`; of a number or an array."""
    return n_bytes + -n_bytes % ALIGNMENT


def array_bytes(value_bytes: int, multilabel: bool, block: Any) -> list[Any]:
    """Bytes of each array of a block, in their order; of one record of the table, or of all."""
    pointers = block["rows"] + 1
    sizes = [
        block["entries"] * value_bytes,
        block["entries"] * block["index_bytes"],
        pointers * block["index_bytes"],
        block["labels"] * 4,
    ]
    return [*sizes, pointers * 8] if multilabel else sizes


def pack_end(table: bytes, table_offset: int, footer: Footer) -> bytes:
    """Footer and trailer, for the end of a file whose table is at `table_offset`."""
    text = json.dumps(vars(footer), allow_nan=False).encode()
    text += _OFFSETS.pack(table_offset, table_offset + len(table))
    return text + _SEAL.pack(zlib.crc32(text, zlib.crc32(table)), VERSION, _MAGIC)


def unpack(file: memoryview, path: str) -> tuple[Footer, np.ndarray, np.ndarray]:
    """What a cache holds.

    Parameters
    ----------
    file : memoryview
        All its bytes.
    path : str
        For the messages.

    Returns
    -------
    footer : Footer
    table : ndarray of BLOCK
    bounds : ndarray of int64, shape (n_blocks + 1,)
        Block i is in `file[bounds[i]:bounds[i + 1]]`.

    Raises
    ------
    ValueError
        If it is no cache; `UnusableCache` if of another format, cut short or damaged.
    """
    _check_head(file, path)
    table_offset, footer_offset = _check_trailer(file, path)
    footer = _unpack_footer(file[footer_offset:-_TRAILER_BYTES].tobytes(), path)
    table = np.frombuffer(file[table_offset:footer_offset], BLOCK).copy()
    bounds = _bounds(table, footer, len(file))
    if bounds is None or bounds[-1] != table_offset:
        raise damaged(path, "its table of blocks does not agree with its length")
    return footer, table, bounds


class UnusableCache(ValueError):
    """A row cache that can't be read, and may be replaced."""

    def __init__(self, path: str, trouble: str):
        self.what = f"The row cache {path} {trouble}."
        super().__init__(f"{self.what} Delete it: it is written anew from its text.")


def damaged(path: str, trouble: str) -> UnusableCache:
    return UnusableCache(path, f"is damaged: {trouble}")


def _check_head(file: memoryview, path: str) -> None:
    head = file[: len(HEAD)].tobytes()
    if not head.startswith(_MAGIC):
        raise ValueError(f"{path} is not a row cache: it does not begin as one. Name another file.")
    if len(head) < len(HEAD):
        raise damaged(path, "it is cut short")
    (version,) = struct.unpack_from("<I", head, len(_MAGIC))
    if version > VERSION:
        raise UnusableCache(
            path, f"is of format {version}, and this sparsemargin reads format {VERSION} only"
        )
    if head != HEAD:
        raise damaged(path, "its first bytes are not those of any format")


def _check_trailer(file: memoryview, path: str) -> tuple[int, int]:
    end = len(file) - _TRAILER_BYTES
    if end < len(HEAD):
        raise damaged(path, "it is cut short")
    table, footer = _OFFSETS.unpack_from(file, end)
    crc, version, magic = _SEAL.unpack_from(file, end + _OFFSETS.size)
    if magic != _MAGIC or version != VERSION:
        raise damaged(path, "it is cut short, or its last bytes were changed")
    if crc != zlib.crc32(file[table : end + _OFFSETS.size]):
        raise damaged(path, "the checksum of its footer is wrong")
    if table % ALIGNMENT or (footer - table) % BLOCK.itemsize:
        raise damaged(path, "its table of blocks is out of place")
    return table, footer


def _unpack_footer(text: bytes, path: str) -> Footer:
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError):
        raise damaged(path, "its footer is not JSON") from None
    if type(entries) is not dict or entries.keys() != _KINDS.keys():
        raise damaged(path, "its footer has other fields than a cache's")
    wrong = wrong_field(entries)
    if wrong is not None:
        raise damaged(path, f"its footer is wrong at {wrong!r}")
    return Footer(**entries)


def wrong_field(entries: dict[str, Any]) -> str | None:
    """The first field of a footer that can't be as it is; None: all can."""
    for name, kind in _KINDS.items():
        if type(entries[name]) is not kind:
            return name
    texts, numbers = entries["label_texts"], entries["label_numbers"]
    sound = {
        "byte_order": entries["byte_order"] == sys.byteorder,
        "dtype": entries["dtype"] in ("float32", "float64"),
        "label_texts": all(type(text) is str for text in texts),
        "label_numbers": len(numbers) == len(texts) and all(map(_is_number, numbers)),
        "lowest": 0 <= entries["lowest"] < 2**63,
        "highest": -1 <= entries["highest"] < 2**63,
        "n_columns": 0 <= entries["n_columns"] < 2**63,
    }
    return next((name for name, holds in sound.items() if not holds), None)


def _is_number(number: Any) -> bool:
    return number is None or (type(number) is float and math.isfinite(number))


def _bounds(table: np.ndarray, footer: Footer, file_bytes: int) -> np.ndarray | None:
    """Where the blocks begin and end; None where a record can't be."""
    counts = np.stack([table["rows"], table["entries"], table["labels"]])
    # As floating-point numbers, whose sums don't wrap around; those of what passes can't then.
    if (counts < 0).any() or (counts.sum(axis=1, dtype=np.float64) > file_bytes).any():
        return None
    if not np.isin(table["index_bytes"], (4, 8)).all():
        return None
    if not footer.multilabel and (table["labels"] != table["rows"]).any():
        return None
    sizes = array_bytes(np.dtype(footer.dtype).itemsize, footer.multilabel, table)
    bounds = np.full(len(table) + 1, len(HEAD), np.int64)
    bounds[1:] += np.cumsum(sum(padded(size) for size in sizes))
    return bounds


def stored(identity: dict[str, Any]) -> dict[str, Any]:
    """An identity as it comes back from a file.

    Raises
    ------
    TypeError, ValueError
        If JSON can't hold it.
    """
    return json.loads(json.dumps(identity, allow_nan=False))
