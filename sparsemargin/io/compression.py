"""Compressed files, known by their first bytes whatever their names."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

# As many bytes as the longest of the patterns below wants to see.
HEAD_BYTES = 10

# A byte of zstd can stand for 32 KiB of content, all of which comes at once.
_ZST_BYTES = 1 << 13


class Readable(Protocol):
    """Bytes in order."""

    def readinto(self, room: Any, /) -> int | None: ...


class Packing(NamedTuple):
    """A way of compressing."""

    name: str
    head: re.Pattern[bytes]
    open: Callable[[Any], Readable]


def packing_of(head: bytes) -> Packing | None:
    """How a file that begins with `head`, HEAD_BYTES where it has them, is compressed."""
    return next((packing for packing in _PACKINGS if packing.head.match(head)), None)


class Unpacked:
    """The content of a compressed file, of all its members one after another.

    Raises
    ------
    ValueError
        If the package that unpacks is missing.
    """

    def __init__(self, packed: io.RawIOBase, packing: Packing, name: str) -> None:
        self._packing, self._name = packing, name
        try:
            self._content = packing.open(packed)
        except ImportError as error:
            raise ValueError(
                f"{name}: reading {packing.name} needs the package {error.name}; "
                "pip install 'sparsemargin[files]' brings it."
            ) from None

    def readinto(self, room: memoryview) -> int:
        """Fill the beginning of `room`: the number of bytes, 0 at the end.

        Raises
        ------
        ValueError
            If the content is damaged or cut off; names the file.
        """
        try:
            return self._content.readinto(room) or 0
        except (ValueError, MemoryError):
            raise
        except Exception as error:
            # Damaged content has errors of another type in each library. Those of the system,
            # which can't read, have a number.
            if getattr(error, "errno", None) is not None:
                raise
            raise ValueError(
                f"{self._name}: the {self._packing.name} archive is damaged or cut off "
                f"({error}). Get it or make it anew."
            ) from error


class _ZstReader:
    """zstandard's own reader takes a file that is cut off for a whole one."""

    def __init__(self, packed: io.RawIOBase, new_frame: Callable[[], Any]) -> None:
        self._packed, self._new_frame = packed, new_frame
        self._frame: Any = None
        self._content = memoryview(b"")

    def readinto(self, room: memoryview) -> int:
        while not self._content and self._advance():
            pass
        n = min(len(room), len(self._content))
        room[:n] = self._content[:n]
        self._content = self._content[n:]
        return n

    def _advance(self) -> bool:
        within = self._frame is not None and not self._frame.eof
        rest = b"" if self._frame is None or within else self._frame.unused_data
        data = rest or self._packed.read(_ZST_BYTES)
        if not data:
            if within:
                raise EOFError("the last frame has no end")
            return False
        if not within:
            self._frame = self._new_frame()
        self._content = memoryview(self._frame.decompress(data))
        return True


def _open_gz(packed: Any) -> Readable:
    import gzip

    return gzip.GzipFile(fileobj=packed)


def _open_bz2(packed: Any) -> Readable:
    import bz2

    return bz2.BZ2File(packed)


def _open_xz(packed: Any) -> Readable:
    import lzma

    return lzma.LZMAFile(packed)


def _open_zst(packed: Any) -> Readable:
    import zstandard

    return _ZstReader(packed, lambda: zstandard.ZstdDecompressor().decompressobj())


_PACKINGS = (
    Packing("gz", re.compile(rb"\x1f\x8b"), _open_gz),
    Packing("bz2", re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"), _open_bz2),
    Packing("xz", re.compile(rb"\xfd7zXZ\x00"), _open_xz),
    Packing("lzma", re.compile(rb"\x5d\x00\x00"), _open_xz),
    Packing("zst", re.compile(rb"\x28\xb5\x2f\xfd"), _open_zst),
)
