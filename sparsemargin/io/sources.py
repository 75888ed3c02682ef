"""Where text comes from: files, patterns of names, standard input."""

from __future__ import annotations

import glob
import io
import os
import stat
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from sparsemargin.io.blocks import Buffers, TextBlock, cut_into_blocks
from sparsemargin.io.compression import HEAD_BYTES, Readable, Unpacked, packing_of
from sparsemargin.io.row_cache import CACHE_SUFFIX
from sparsemargin.io.tape import Tape

STANDARD_INPUT = "-"

PathLike = str | os.PathLike[str]

_SAMPLE_BYTES = 1 << 16
_MAGIC = frozenset("*?[")


@dataclass(frozen=True)
class Source:
    """A file or standard input, found but not yet read.

    Attributes
    ----------
    name : str
        What errors call it.
    path : str or None
        None for standard input.
    size : int or None
        Bytes on disk; None for what is not a regular file.
    mtime_ns : int or None
        When a regular file was last written to, in ns.
    plain : bool
        Whether it is a regular file that is not compressed: `ranges` can be read side by side.
    """

    name: str
    path: str | None
    size: int | None
    mtime_ns: int | None
    plain: bool

    @property
    def rereadable(self) -> bool:
        """Whether it can be read again from the start; a pipe can't."""
        return self.size is not None

    def blocks(
        self, buffers: Buffers | None = None, first: int = 0, last: int | None = None
    ) -> Iterator[TextBlock]:
        """The text in blocks of complete lines, of about `blocks.BLOCK_BYTES` each.

        Parameters
        ----------
        buffers : Buffers, optional
            Room for the blocks, to be shared by all that is read one after another. A block is
            valid until its `release`; one that is never released costs no more than its room.
        first, last : int, optional
            The part of a plain file to read, one of its `ranges`.

        Raises
        ------
        OSError
            If the source can't be opened or read.
        ValueError
            If it is a damaged archive, becomes shorter while it is read, is in UTF-16, or has a
            line longer than `blocks.LONGEST_LINE`.
        """
        with self._open() as file:
            tape = Tape(file, self.name, first, last, (self.size or 0) if last is None else last)
            packing = packing_of(tape.head(HEAD_BYTES)) if first == 0 else None
            text: Readable = tape if packing is None else Unpacked(tape, packing, self.name)
            yield from cut_into_blocks(self, text, tape, first, buffers or Buffers())

    def ranges(self, n_ranges: int) -> list[tuple[int, int]]:
        """A plain file in so many parts or fewer, each of complete lines: (first, last) bytes."""
        end = self.size or 0
        cuts = [0]
        with self._open() as file:
            for i in range(1, n_ranges):
                wanted = end * i // n_ranges
                if wanted > cuts[-1]:
                    cuts.append(_next_line(file, wanted, end))
        return [(first, last) for first, last in pairwise([*cuts, end]) if first < last]

    def lines_before(self, offset: int) -> int:
        """How many lines end before this byte of the text; reads it from the start."""
        n_lines, buffers = 0, Buffers()
        for block in self.blocks(buffers):
            n_lines += block.buffer.count(b"\n", 0, min(block.stop, offset - block.offset))
            block.release()
            if block.offset + block.stop >= offset:
                break
        return n_lines

    def identity(self) -> dict[str, int] | None:
        """What changes when the file does: its size, time, first and last bytes; None for pipes."""
        if self.size is None or self.mtime_ns is None:
            return None
        with self._open() as file:
            first = file.read(_SAMPLE_BYTES)
            file.seek(max(0, self.size - _SAMPLE_BYTES))
            last = file.read(_SAMPLE_BYTES)
        return {
            "size": self.size,
            "mtime_ns": self.mtime_ns,
            "crc32_first": zlib.crc32(first),
            "crc32_last": zlib.crc32(last),
        }

    def check_unchanged(self) -> None:
        """Raise a ValueError where a regular file was written to or replaced since it was found."""
        if self.path is not None and self.rereadable:
            status = os.stat(self.path)
            if (status.st_size, status.st_mtime_ns) != (self.size, self.mtime_ns):
                raise self.changed()

    def changed(self) -> ValueError:
        """The error for a file that changed while it was read."""
        return ValueError(
            f"{self.name} changed while it was read. Read it again when nothing writes to it."
        )

    def _open(self) -> io.FileIO:
        if self.path is None:
            return io.FileIO(0, closefd=False)
        return io.FileIO(self.path)


def open_sources(paths: PathLike | Iterable[PathLike]) -> list[Source]:
    """Find the sources, and see whether they can be read.

    Parameters
    ----------
    paths : path, or list of paths
        Files; "-" for standard input; patterns with `*`, `?`, `[...]` or `**`, each standing for
        the files it matches, sorted by name (a file of exactly that name comes first).

    Returns
    -------
    sources : list of Source
        In the order given.

    Raises
    ------
    OSError
        If a file is missing or can't be read.
    ValueError
        If there are no paths, or if standard input is named twice.
    """
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    found = [path for given in _checked(paths) for path in _matches(given)]
    if not found:
        raise ValueError("paths is an empty list: name a file, or '-' for standard input.")
    if found.count(STANDARD_INPUT) > 1:
        raise ValueError("paths names standard input, '-', twice: it can be read only once.")
    return [_source(path) for path in found]


def _checked(paths: Iterable[PathLike]) -> Iterator[str]:
    """The paths as str."""
    if hasattr(paths, "shape"):
        raise ValueError(
            f"paths must name files, got a {type(paths).__name__}. Pass it to fit_csr."
        )
    if not isinstance(paths, Iterable) or isinstance(paths, bytes):
        raise ValueError(f"paths must be a path, a pattern or a list of these, got {paths!r}")
    for path in paths:
        if not isinstance(path, str | os.PathLike) or not os.fspath(path):
            raise ValueError(f"paths must be a path, a pattern or a list of these, got {path!r}")
        yield os.fsdecode(path)


def _matches(path: str) -> list[str]:
    if not _MAGIC.intersection(path) or os.path.lexists(path):
        return [path]
    found = sorted(
        match
        for match in glob.glob(path, recursive=True)
        # Row caches lie beside the files they were made from.
        if not os.path.isdir(match) and not match.endswith(CACHE_SUFFIX)
    )
    if not found:
        raise FileNotFoundError(f"{path}: no file matches this pattern. {_whereabouts(path)}")
    return found


def _source(path: str) -> Source:
    if path == STANDARD_INPUT:
        return Source("<standard input>", None, None, None, plain=False)
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(
                f"{path} is a directory. Name the files in it: '{os.path.join(path, '*.svm')}'"
            )
        if not stat.S_ISREG(status.st_mode):
            return Source(path, path, None, None, plain=False)
        with io.FileIO(path) as file:
            packing = packing_of(file.read(HEAD_BYTES))
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file. {_whereabouts(path)}") from None
    except PermissionError:
        raise PermissionError(
            f"{path} may not be read by this user. Change its permissions, or those of its folder."
        ) from None
    return Source(path, path, status.st_size, status.st_mtime_ns, plain=packing is None)


def _whereabouts(path: str) -> str:
    """What helps to find a missing file."""
    import difflib

    folder, name = os.path.split(os.path.abspath(path))
    if not os.path.isdir(folder):
        return f"There is no folder {folder} either."
    if os.path.islink(path):
        return "It is a link to a file that is gone."
    close = difflib.get_close_matches(name, os.listdir(folder), n=1)
    return f"Did you mean {close[0]}?" if close else f"It was looked for in {folder}."


def _next_line(file: io.FileIO, position: int, end: int) -> int:
    """Where the first line begins that doesn't begin before `position`; `end` for none."""
    at = position - 1
    file.seek(at)
    while at < end:
        piece = file.read(_SAMPLE_BYTES)
        newline = piece.find(b"\n")
        if newline >= 0:
            return at + newline + 1
        if not piece:
            break
        at += len(piece)
    return end
