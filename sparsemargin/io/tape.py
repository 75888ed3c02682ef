"""The bytes of a file as they lie on disk."""

from __future__ import annotations

import io
from typing import Any


class Tape(io.RawIOBase):
    """The bytes of an open file in order, counted; the first ones can be looked at beforehand.

    Parameters
    ----------
    file : FileIO
        The file.
    name : str
        What errors call it.
    first, last : int, optional
        The part to read; the whole file by default.
    least : int, default=0
        Where the file ended when it was looked at: it may have grown, but not become shorter.
    """

    def __init__(
        self, file: io.FileIO, name: str, first: int = 0, last: int | None = None, least: int = 0
    ) -> None:
        self._file, self._name = file, name
        self._last, self._least = last, least
        self._ahead = b""
        self.position = first
        if first:
            file.seek(first)

    def readable(self) -> bool:
        return True

    def head(self, n_bytes: int) -> bytes:
        """The next bytes, fewer at the end, without moving on."""
        room = memoryview(bytearray(n_bytes))
        filled = 0
        while filled < n_bytes and (n := self.readinto(room[filled:])):
            filled += n
        self._ahead = bytes(room[:filled])
        return self._ahead

    def readinto(self, room: Any) -> int:
        """Fill the beginning of `room`: the number of bytes, 0 at the end.

        Raises
        ------
        OSError
            If the file can't be read; names it.
        ValueError
            If the file became shorter.
        """
        room = memoryview(room)
        if self._ahead:
            n = min(len(room), len(self._ahead))
            room[:n], self._ahead = self._ahead[:n], self._ahead[n:]
            return n
        if self._last is not None:
            room = room[: self._last - self.position]
        if not room:
            return 0
        try:
            n = self._file.readinto(room) or 0
        except OSError as error:
            raise type(error)(error.errno, error.strerror, self._name) from None
        if n == 0 and self.position < self._least:
            raise ValueError(
                f"{self._name} became shorter while it was read: it had {self._least:,} bytes and "
                f"now ends after {self.position:,}. Read it again when nothing writes to it."
            )
        self.position += n
        return n
