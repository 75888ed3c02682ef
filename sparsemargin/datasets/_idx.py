"""The idx format that MNIST is kept in: unsigned bytes under a big-endian header."""

import math

import numpy as np
from numpy.typing import NDArray

from ._copies import LocalFile

_UNSIGNED_BYTES = 0x08


def read_idx(file: LocalFile, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """The read-only array of a file; a ValueError tells how it is not one of this shape."""
    content = file.unpacked()
    magic = bytes([0, 0, _UNSIGNED_BYTES, len(shape)])
    if content[:4] != magic:
        raise ValueError(
            f"{file.path}: expected the magic number {magic.hex()} of {len(shape)}-dimensional "
            f"unsigned bytes in idx format, found {content[:4].hex()!r}"
        )
    start = 4 + 4 * len(shape)
    sizes = content[4:start]
    found = tuple(np.frombuffer(sizes, dtype=">u4", count=len(sizes) // 4).tolist())
    if found != shape:
        raise ValueError(f"{file.path}: expected the sizes {shape} in its header, found {found}")
    if len(content) - start != math.prod(shape):
        raise ValueError(
            f"{file.path}: expected {math.prod(shape):,} values, as its header says, found "
            f"{len(content) - start:,}"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)
