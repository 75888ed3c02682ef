"""Read the content of files that may be compressed, or be text in another encoding than UTF-8. The
compression is recognized by the first bytes of a file, not by its name."""

from __future__ import annotations

import codecs
import io
import re
import select
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

# Bytes that `codec_of` needs: the length of the longest pattern below.
HEAD_BYTES = 10

# Bytes of compressed data that are decompressed at once. One byte of zstd can expand to 32 KiB, and
# its decompressor can't limit the output.
_PIECE_BYTES = 1 << 13


class CountingReader(io.RawIOBase):
    """The bytes of an open file without decompression; `position` is the number of bytes read.

    `head` has the first `HEAD_BYTES`, or all bytes of a shorter file; reading still starts before
    them. The file may have grown since it had `size` bytes. A file that became shorter raises a
    ValueError.
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
        """Fill the beginning of `room`. Return the number of bytes, 0 at the end."""
        room = memoryview(room)
        if self._ahead:
            n = min(len(room), len(self._ahead))
            room[:n], self._ahead = self._ahead[:n], self._ahead[n:]
            return n
        try:
            while (n := self._file.readinto(room)) is None:
                # A non-blocking file has nothing to read yet.
                wait = select.poll()
                wait.register(self._file, select.POLLIN)
                wait.poll()
        except OSError as error:
            if error.errno is None:  # the error has its own message, which names the file
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
    """A compression format.

    `head` matches the first bytes of an archive, and `decompressor` creates a decompressor for one
    member. `may_follow` returns whether a number of zero bytes may stand between a member and the
    next one (False) or between the last member and the end of the file (True).
    """

    name: str
    head: re.Pattern[bytes]
    decompressor: Callable[[], Any]
    may_follow: Callable[[int, bool], bool]


# `may_follow` accepts the zero bytes that gzip, bzip2, xz and zstd accept without a warning. The
# second pattern of zstd is a skippable frame, with which files of pzstd begin. LZMADecompressor
# checks a header in the same way as xz.
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
    """Return the compression format of a file that begins with `head`, or None. `head` must have
    HEAD_BYTES bytes unless the file is shorter."""
    return next((codec for codec in _CODECS if codec.head.match(head)), None)


class DecompressedReader(io.RawIOBase):
    """The content of all members of a compressed file, one after another.

    The readers of other libraries do not detect all damage. `bz2` and `lzma` end without an error
    at a later member whose beginning is damaged, `zstandard` at one that is cut off, and `gzip`
    does not check headers.
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
        """Fill the beginning of `room`. Return the number of bytes, 0 at the end. A ValueError
        names the file and the place where the content is damaged or cut off."""
        try:
            while not self._content and self._advance(len(room)):
                pass
        except (ValueError, MemoryError):
            raise
        except Exception as error:
            # Each library has another type of error for damaged content. Errors of the operating
            # system have an error number and are passed on.
            if getattr(error, "errno", None) is not None:
                raise
            raise ValueError(
                f"{self._name}: the {self._codec.name} archive is damaged or cut off in the part "
                f"that begins at byte {self._start:,} ({error}). Download or create it again."
            ) from error
        n = min(len(room), len(self._content))
        memoryview(room)[:n] = self._content[:n]
        self._content = self._content[n:]
        return n

    def _advance(self, most: int) -> bool:
        """Decompress some content, at most `most` bytes for bz2 and xz. Return False at the end."""
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
        """Skip the zero bytes after a member. Return the first bytes of the next member, or no
        bytes at the end."""
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


# Bytes that are decoded at once.
_DECODED_BYTES = 1 << 16


def encoding_named(name: Any) -> str:
    """Return Python's name of a text encoding. A ValueError refuses other names.

    Examples
    --------
    >>> encoding_named("UTF8"), encoding_named("latin-1")
    ('utf-8', 'iso8859-1')
    """
    try:
        # This refuses codecs that do not encode text, such as "base64".
        "a".encode(name)
        return codecs.lookup(name).name
    except (LookupError, TypeError, ValueError):
        raise ValueError(
            f"encoding={name!r} is not an encoding of text that Python knows. Pass one such as "
            "encoding='latin-1', encoding='cp1252' or encoding='utf-16'."
        ) from None


class Utf8Reader(io.RawIOBase):
    """The text of an open file, converted from `encoding` to UTF-8. A ValueError names the line of
    invalid bytes."""

    def __init__(self, file: Any, encoding: str, name: str) -> None:
        self._file, self._encoding, self._name = file, encoding, name
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._piece, self._ready = bytearray(_DECODED_BYTES), b""
        self._n_lines, self._at_end = 0, False

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        """Fill the beginning of `room`. Return the number of bytes, 0 at the end."""
        while not self._ready and not self._at_end:
            n = self._file.readinto(self._piece)
            self._at_end = n == 0
            self._ready = self._converted(bytes(self._piece[:n]))
        n = min(len(room), len(self._ready))
        room[:n], self._ready = self._ready[:n], self._ready[n:]
        return n

    def _converted(self, piece: bytes) -> bytes:
        state = self._decoder.getstate()
        try:
            text = self._decoder.decode(piece, self._at_end)
        except UnicodeDecodeError as error:
            # `error.object` is this piece after the bytes of earlier pieces that were not decoded.
            start = max(0, error.start - (len(error.object) - len(piece)))
            self._decoder.setstate(state)
            line = self._n_lines + self._decoder.decode(piece[:start]).count("\n") + 1
            raise ValueError(
                f"{self._name}, line {line}: byte {error.object[error.start]:#04x} is not valid "
                f"{self._encoding} text. Pass the encoding with which the file was written, as "
                "encoding=NAME, or correct the line."
            ) from None
        self._n_lines += text.count("\n")
        # The reader of the lines refuses halves of surrogate pairs, and names their line.
        return text.encode("utf-8", "surrogatepass")
