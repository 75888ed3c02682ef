"""Text in other encodings than UTF-8, which is converted to UTF-8 while it is read."""

from __future__ import annotations

import codecs
import io
from typing import Any

# Bytes that are decoded at once.
_PIECE_BYTES = 1 << 16


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
    """The text of an open file of an encoding, converted to UTF-8. A ValueError names the line of
    bytes that are not valid."""

    def __init__(self, file: Any, encoding: str, name: str) -> None:
        self._file, self._encoding, self._name = file, encoding, name
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._piece, self._ready = bytearray(_PIECE_BYTES), b""
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
            # The bytes that the decoder has kept of earlier pieces are before this one.
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
