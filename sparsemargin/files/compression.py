"""The bytes of files, compressed or not, in order. Compressed ones are known by their first bytes,
whatever their names."""

from __future__ import annotations

import io
import re
import select
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

# As long as the longest of the patterns below.
HEAD_BYTES = 10

# A byte of zstd can stand for 32 KiB of content, all of which comes at once.
_PIECE_BYTES = 1 << 13


class CountingReader(io.RawIOBase):
    """The bytes of an open file as they lie on disk; `position` counts those read.

    `head` are the first `HEAD_BYTES`, or all where there are fewer; they are read again. The file
    may have grown since it had `size` bytes; one that became shorter is a ValueError.
    """

    def __init__(self, file: io.RawIOBase, name: str, size: int = 0) -> None:
        self._file, self._name, self._size = file, name, size
        self._ahead = self.head = b""
        self.position = 0
        while len(self.head) < HEAD_BYTES and (more := self.read(HEAD_BYTES - len(self.head))):
            self.head += more
        self._ahead = self.head

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        """Fill the beginning of `room`: the number of bytes, 0 at the end."""
        room = memoryview(room)
        if self._ahead:
            n = min(len(room), len(self._ahead))
            room[:n], self._ahead = self._ahead[:n], self._ahead[n:]
            return n
        try:
            while (n := self._file.readinto(room)) is None:
                # A non-blocking file with nothing to read yet.
                wait = select.poll()
                wait.register(self._file, select.POLLIN)
                wait.poll()
        except OSError as error:
            if error.errno is None:  # it has a message of its own, which names the file
                raise
            raise type(error)(error.errno, error.strerror, self._name) from None
        if n == 0 and self.position < self._size:
            raise ValueError(
                f"{self._name} became shorter while it was read: it had {self._size:,} bytes and "
                f"now ends after {self.position:,}. Read it again when nothing writes to it."
            )
        self.position += n
        return n


class Codec(NamedTuple):
    """A way of compressing: what archives begin with, what makes a decompressor for a member, and
    whether so many zero bytes may stand between a member and the next one, or the end (True)."""

    name: str
    head: re.Pattern[bytes]
    decompressor: Callable[[], Any]
    may_follow: Callable[[int, bool], bool]


# What may follow is what gzip, bzip2, xz and zstd read on from or end at without a warning. pzstd
# begins with a frame to be skipped. LZMADecompressor of its own accord checks a header as xz does.
_CODECS = (
    Codec(
        "gz", re.compile(rb"\x1f\x8b"), lambda: import_module("zlib").decompressobj(31),
        lambda zeros, at_end: not zeros or at_end,
    ),
    Codec(
        "bz2", re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"),
        lambda: import_module("bz2").BZ2Decompressor(), lambda zeros, at_end: not zeros,
    ),
    Codec(
        "xz", re.compile(rb"\xfd7zXZ\x00"), lambda: import_module("lzma").LZMADecompressor(1),
        lambda zeros, at_end: zeros % 4 == 0,
    ),
    Codec(
        "zst", re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
        lambda: import_module("zstandard").ZstdDecompressor().decompressobj(),
        lambda zeros, at_end: not zeros,
    ),
)  # fmt: skip


def codec_of(head: bytes) -> Codec | None:
    """How a file that begins with `head`, HEAD_BYTES where it has them, is compressed."""
    return next((codec for codec in _CODECS if codec.head.match(head)), None)


class DecompressedReader(io.RawIOBase):
    """The content of a compressed file, of all its members one after another.

    Readers that others wrote end in silence at a later member that is damaged at its beginning
    (`bz2`, `lzma`) or is cut off (`zstandard`), or check no headers (`gzip`).
    """

    def __init__(self, compressed: CountingReader, codec: Codec, name: str) -> None:
        self._compressed, self._codec, self._name = compressed, codec, name
        try:
            self._member, self._start = codec.decompressor(), 0
        except ImportError as error:
            raise ValueError(
                f"{name}: reading {codec.name} needs the package {error.name}; "
                "pip install 'sparsemargin[files]' brings it."
            ) from None
        self._content = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        """Fill the beginning of `room`: the number of bytes, 0 at the end; a ValueError names the
        file and the place where the content is damaged or cut off."""
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
                f"{self._name}: the {self._codec.name} archive is damaged or cut off in the part "
                f"that begins at byte {self._start:,} ({error}). Get it or make it anew."
            ) from error
        n = min(len(room), len(self._content))
        memoryview(room)[:n] = self._content[:n]
        self._content = self._content[n:]
        return n

    def _advance(self, most: int) -> bool:
        """Decompress some content, no more than `most` bytes where that can be chosen; False at
        the end."""
        if self._member.eof:
            data = self._next_member()
            if not data:
                return False
            self._member = self._codec.decompressor()
        elif getattr(self._member, "needs_input", True):
            data = self._compressed.read(_PIECE_BYTES)
            if not data:
                raise EOFError("it has no end")
        else:
            data = b""
        limit = (most,) if hasattr(self._member, "needs_input") else ()
        self._content = memoryview(self._member.decompress(data, *limit))
        return True

    def _next_member(self) -> bytes:
        """Skip what may follow a member: the first bytes of the next one, none at the end."""
        n_zeros, data = 0, self._member.unused_data or self._compressed.read(_PIECE_BYTES)
        self._start = self._compressed.position - len(data)
        while data.startswith(b"\0"):
            rest = data.lstrip(b"\0")
            n_zeros += len(data) - len(rest)
            data = rest or self._compressed.read(_PIECE_BYTES)
        if not self._codec.may_follow(n_zeros, not data):
            raise EOFError("it does not belong there")
        self._start += n_zeros
        return data


def unpacking(file: io.RawIOBase, name: str, *, packed: bool) -> Any:
    """Return what the content of a file is read from; `packed` is whether it may be compressed."""
    reader = CountingReader(file, name)
    codec = codec_of(reader.head) if packed else None
    if codec is None:
        return reader
    return io.BufferedReader(_Unpacked(DecompressedReader(reader, codec, name)))


class _Unpacked(io.RawIOBase):
    """The content of a compressed file, as a file."""

    def __init__(self, content: DecompressedReader) -> None:
        self._content = content

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        return self._content.readinto(memoryview(room).cast("B"))
