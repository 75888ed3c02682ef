"""Text cut into blocks of complete lines, in buffers that are used again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sparsemargin._engine.svmlight.scan import PADDING

if TYPE_CHECKING:
    from sparsemargin.io.compression import Readable
    from sparsemargin.io.sources import Source
    from sparsemargin.io.tape import Tape

BLOCK_BYTES = 1 << 20
LONGEST_LINE = 1 << 30

_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
#: What text may begin with to tell its encoding, which is no part of a label.
MARKS = (_UTF8_MARK, *_UTF16_MARKS)


class Buffers:
    """Room for blocks. What is released is handed out again; what is in use never is."""

    def __init__(self) -> None:
        self._size = BLOCK_BYTES + PADDING
        self._free: list[bytearray] = []

    def take(self, n_bytes: int) -> bytearray:
        """A buffer of a block's size, or larger where `n_bytes` and the padding need it."""
        if n_bytes + PADDING > self._size:
            return bytearray(n_bytes + PADDING)
        try:
            return self._free.pop()
        except IndexError:
            return bytearray(self._size)

    def give(self, buffer: bytearray) -> None:
        """Take back a buffer that nobody uses any more."""
        # One that grew for a long line is let go of: all blocks would be that long.
        if len(buffer) == self._size:
            self._free.append(buffer)


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Complete lines, in `buffer[:stop]`; the last line of all may lack its end.

    Attributes
    ----------
    source : Source
        Where they come from.
    buffer : bytearray
        The lines, and at least `PADDING` bytes more.
    stop : int
        How many bytes the lines have.
    offset : int
        How many bytes of the source's text come before.
    lines_before : int or None
        How many lines come before; None where the source can tell by reading again.
    consumed : int
        How many bytes of the source, as it lies on disk, have been read so far.
    buffers : Buffers
        What the buffer goes back to.
    """

    source: Source
    buffer: bytearray
    stop: int
    offset: int
    lines_before: int | None
    consumed: int
    buffers: Buffers

    def release(self) -> None:
        """Say that the lines are no longer needed: another block may take their room."""
        self.buffers.give(self.buffer)


def cut_into_blocks(
    source: Source, text: Readable, tape: Tape, offset: int, buffers: Buffers
) -> Iterator[TextBlock]:
    """Blocks of the text from here, `offset`, to its end.

    Raises
    ------
    ValueError
        If a line is longer than LONGEST_LINE, or the text is in UTF-16.
    """
    lines_before = None if source.rereadable else 0
    buffer, filled, searched = buffers.take(0), 0, 0
    while True:
        filled = _fill(text, buffer, filled)
        at_end = filled < len(buffer) - PADDING
        if offset == 0:
            _check_mark(buffer, source.name)
        stop = filled if at_end else buffer.rfind(b"\n", searched, filled) + 1
        if stop == 0:
            if at_end:
                buffers.give(buffer)
                return
            buffer, searched = _grown(buffer, filled, source, offset), filled
            continue
        tail = bytes(memoryview(buffer)[stop:filled])
        block = TextBlock(source, buffer, stop, offset, lines_before, tape.position, buffers)
        if lines_before is not None:
            lines_before += buffer.count(b"\n", 0, stop)
        yield block
        if at_end:
            return
        # Only now, so that a reader who is through with a block gets the next in the same room.
        buffer, filled, searched = buffers.take(len(tail)), len(tail), 0
        buffer[:filled] = tail
        offset += stop


def _fill(text: Readable, buffer: bytearray, filled: int) -> int:
    room = memoryview(buffer)[: len(buffer) - PADDING]
    while filled < len(room):
        n = text.readinto(room[filled:])
        if not n:
            break
        filled += n
    return filled


def _grown(buffer: bytearray, filled: int, source: Source, offset: int) -> bytearray:
    if filled >= LONGEST_LINE:
        raise ValueError(
            f"{source.name}: the line that begins after {offset:,} bytes is longer than "
            f"{LONGEST_LINE:,} bytes. Is it a text file?"
        )
    larger = bytearray(2 * filled + PADDING)
    larger[:filled] = memoryview(buffer)[:filled]
    return larger


def _check_mark(buffer: bytearray, name: str) -> None:
    """A mark of UTF-8 becomes blanks, so that offsets stay true."""
    if buffer.startswith(_UTF8_MARK):
        buffer[: len(_UTF8_MARK)] = b" " * len(_UTF8_MARK)
    if buffer.startswith(_UTF16_MARKS):
        raise ValueError(
            f"{name} is UTF-16 text. Make it UTF-8: iconv -f UTF-16 -t UTF-8 {name} > FILE"
        )
