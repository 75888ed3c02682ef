"""What may become of the bytes of any file."""

from __future__ import annotations

import numpy as np


def flipped(random: np.random.RandomState, contents: bytes) -> bytes:
    changed = bytearray(contents)
    for place in random.randint(len(changed), size=random.randint(1, 5)) if changed else ():
        changed[place] ^= 1 << random.randint(8)
    return bytes(changed)


def cut(random: np.random.RandomState, contents: bytes) -> bytes:
    return contents[: random.randint(len(contents) + 1)]


def moved(random: np.random.RandomState, contents: bytes) -> bytes:
    i, j, k = np.sort(random.randint(len(contents) + 1, size=3))
    ways = [contents[:i] + contents[j:], contents[:j] + contents[i:],
            contents[:i] + contents[j:k] + contents[i:j] + contents[k:]]  # fmt: skip
    return ways[random.randint(3)]
