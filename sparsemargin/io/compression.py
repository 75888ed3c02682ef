"""Compressed files, known by their first bytes whatever their names."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from sparsemargin.io.tape import Tape

# As many bytes as the longest of the patterns below wants to see.
HEAD_BYTES = 13

# A byte of zstd can stand for 32 KiB of content, all of which comes at once.
_PIECE_BYTES = 1 << 13


class Readable(Protocol):
    """Bytes in order."""

    def readinto(self, room: Any, /) -> int | None: ...


class Packing(NamedTuple):
    """A way of compressing.

    Attributes
    ----------
    name : str
    head : Pattern
        What archives begin with.
    open : callable
        Gives what makes a decompressor for each member.
    may_follow : callable
        Whether so many zero bytes may stand between a member and the next one, or the end (True).
    """

    name: str
    head: re.Pattern[bytes]
    open: Callable[[], Callable[[], Any]]
    may_follow: Callable[[int, bool], bool]


def packing_of(head: bytes) -> Packing | None:
    """How a file that begins with `head`, HEAD_BYTES where it has them, is compressed."""
    return next((packing for packing in _PACKINGS if packing.head.match(head)), None)


class Unpacked:
    """The content of a compressed file, of all its members one after another.

    Readers that others wrote end in silence at a later member that is damaged at its beginning
    (`bz2`, `lzma`) or is cut off (`zstandard`), or check no headers (`gzip`).

    Raises
    ------
    ValueError
        If the package that unpacks is missing.
    """

    def __init__(self, packed: Tape, packing: Packing, name: str) -> None:
        self._packed, self._packing, self._name = packed, packing, name
        try:
            self._new_member = packing.open()
        except ImportError as error:
            raise ValueError(
                f"{name}: reading {packing.name} needs the package {error.name}; "
                "pip install 'sparsemargin[files]' brings it."
            ) from None
        self._member, self._start = self._new_member(), 0
        self._content = memoryview(b"")

    def readinto(self, room: memoryview) -> int:
        """Fill the beginning of `room`: the number of bytes, 0 at the end.

        Raises
        ------
        ValueError
            If the content is damaged or cut off; names the file and where in it.
        """
        try:
            while not self._content and self._advance(len(room)):
                pass
        except (ValueError, MemoryError):
            raise
        except Exception as error:
            # Damaged content has errors of another type in each library. Those of the system,
            # which can't read, have a number.
            if getattr(error, "errno", None) is not None:
                raise
            raise ValueError(
                f"{self._name}: the {self._packing.name} archive is damaged or cut off in the part "
                f"that begins at byte {self._start:,} ({error}). Get it or make it anew."
            ) from error
        n = min(len(room), len(self._content))
        room[:n] = self._content[:n]
        self._content = self._content[n:]
        return n

    def _advance(self, most: int) -> bool:
        """Unpack some content, no more than `most` bytes where that can be chosen; False at the
        end."""
        if self._member.eof:
            data = self._next_member()
            if not data:
                return False
            self._member = self._new_member()
        elif getattr(self._member, "needs_input", True):
            data = self._packed.read(_PIECE_BYTES)
            if not data:
                raise EOFError("it has no end")
        else:
            data = b""
        limit = (most,) if hasattr(self._member, "needs_input") else ()
        self._content = memoryview(self._member.decompress(data, *limit))
        return True

    def _next_member(self) -> bytes:
        """Skip what may follow a member: the first bytes of the next one, none at the end."""
        n_zeros, data = 0, self._member.unused_data or self._packed.read(_PIECE_BYTES)
        self._start = self._packed.position - len(data)
        while data.startswith(b"\0"):
            rest = data.lstrip(b"\0")
            n_zeros += len(data) - len(rest)
            data = rest or self._packed.read(_PIECE_BYTES)
        if not self._packing.may_follow(n_zeros, not data):
            raise EOFError("it does not belong there")
        self._start += n_zeros
        return data


def _open_gz() -> Callable[[], Any]:
    import zlib

    return lambda: zlib.decompressobj(16 + zlib.MAX_WBITS)


def _open_bz2() -> Callable[[], Any]:
    import bz2

    return bz2.BZ2Decompressor


def _open_xz() -> Callable[[], Any]:
    import lzma

    return lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ)


def _open_lzma() -> Callable[[], Any]:
    import lzma

    # Of its own accord it checks the header as xz does.
    return lzma.LZMADecompressor


def _open_zst() -> Callable[[], Any]:
    import zstandard

    return lambda: zstandard.ZstdDecompressor().decompressobj()


# Parameters, a dictionary of 64 KiB or more, and the content's size, unknown or less than 256 GiB.
_LZMA = rb"[\x00-\xe0]\x00\x00(?!\x00\x00)..(\xff{8}|.{4}[\x00-\x3f]\x00{3})"

# What may follow is what gzip, bzip2, xz and zstd read on from or end at without a warning. pzstd
# begins with a frame to be skipped.
_PACKINGS = (
    Packing("gz", re.compile(rb"\x1f\x8b"), _open_gz, lambda zeros, at_end: not zeros or at_end),
    Packing(
        "bz2", re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"), _open_bz2,
        lambda zeros, at_end: not zeros,
    ),
    Packing("xz", re.compile(rb"\xfd7zXZ\x00"), _open_xz, lambda zeros, at_end: zeros % 4 == 0),
    Packing(
        "lzma", re.compile(_LZMA, re.DOTALL), _open_lzma,
        lambda zeros, at_end: not zeros and at_end,
    ),
    Packing(
        "zst", re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"), _open_zst,
        lambda zeros, at_end: not zeros,
    ),
)  # fmt: skip
