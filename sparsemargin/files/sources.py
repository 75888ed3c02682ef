"""Sources of bytes (local and remote files, open files, standard input), and the division of their
text into blocks of complete lines, in buffers that are used again."""

from __future__ import annotations

import difflib
import glob
import io
import os
import stat
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Integral
from typing import Any, BinaryIO

from sparsemargin._engine.svmlight.scan import PADDING
from sparsemargin.files.archive import HEAD_BYTES, ZIP_MARK
from sparsemargin.files.compression import CountingReader, DecompressedReader, Utf8Reader, codec_of
from sparsemargin.files.folders import (
    CACHE_SUFFIX,
    ENTRIES,
    STORES,
    files_beside,
    parquet_files_in,
    size_and_beside,
)
from sparsemargin.files.remote import RemoteFile, RemoteReader, downloaded, is_url, matches

STANDARD_INPUT = "-"

PathLike = str | os.PathLike[str]

#: Bytes of a block of text, and of the longest line, for which a block may grow.
BLOCK_BYTES = 1 << 20
LONGEST_LINE = 1 << 30

_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")

#: First bytes of the files of old Office programs, such as .xls.
OLE_MARK = b"\xd0\xcf\x11\xe0"

# Bytes at the start and at the end of a file by which a change is detected.
_SAMPLE_BYTES = 1 << 16
_MAGIC = frozenset("*?[")


@dataclass(slots=True)
class TextBlock:
    """Complete lines in `buffer[:stop]`, followed by `PADDING` bytes; only the last line of a
    source may lack its line end. `consumed` bytes of the source (before decompression) have been
    read so far. `n_lines_before` is the number of lines of the source before the block. It is set
    when these lines have been scanned."""

    source: Source
    buffer: bytearray
    stop: int
    consumed: int
    n_lines_before: int = 0

    def place_at(self, offset: int) -> str:
        """Return the file and the line of a byte of the block, for error messages."""
        line = self.n_lines_before + self.buffer.count(b"\n", 0, offset) + 1
        return f"{self.source.name}, line {line}"

    def location_of(self, row: int) -> str:
        """Return the file and the line of a row. Blank lines and comments are not counted as
        rows."""
        start = 0
        for line in bytes(self.buffer[: self.stop]).split(b"\n"):
            if line.split(b"#", 1)[0].strip():
                if row == 0:
                    break
                row -= 1
            start += len(line) + 1
        return self.place_at(start)

    def copy(self) -> TextBlock:
        """Return a copy with its own buffer, which is not used again."""
        return replace(self, buffer=self.buffer[:])


@dataclass(frozen=True)
class Source:
    """A file, standard input or an open `file`, found but not yet read. `path` is None unless it is
    a local file. `head` are the first `HEAD_BYTES` of a regular or remote file, as they are stored.
    Size and times are None if unknown. `beside` is a hash of names, sizes and times of the files
    that are read together with it: the other files of a zarr store, whose sizes `size` includes, or
    the tables of a matrix."""

    name: str
    path: str | None = None
    size: int | None = None
    mtime_ns: int | None = None
    head: bytes | None = None
    file: Any = None
    ctime_ns: int | None = None
    remote: RemoteFile | None = None
    beside: str | None = None

    @property
    def compression(self) -> str | None:
        """Name of the compression of a regular or remote file. None if there is none."""
        codec = None if self.head is None else codec_of(self.head)
        return None if codec is None else codec.name

    @property
    def files(self) -> list[str]:
        """Names of all files that are read, including the tables of a matrix or the files of a
        store."""
        if self.file is not None:
            return [self.name] if os.path.isfile(self.name) else []
        if self.path is None and self.remote is None:
            return [STANDARD_INPUT]
        beside = [] if self.path is None else files_beside(self.path)
        return [self.path or self.name, *beside]

    @property
    def rereadable(self) -> bool:
        """True if the source can be read again from the start. Pipes and open files can't."""
        return self.size is not None or self.remote is not None

    @contextmanager
    def content(self) -> Iterator[tuple[CountingReader, CountingReader | DecompressedReader]]:
        """Open a reader of the bytes on disk, and a reader of the content, which decompresses them
        if needed."""
        with self._open() as file:
            reader = CountingReader(file, self.name, self.size or 0)
            codec = codec_of(reader.head)
            yield reader, DecompressedReader(reader, codec, self.name) if codec else reader

    def blocks(self, free: list[bytearray], encoding: str = "utf-8") -> Generator[TextBlock]:
        """Yield the text in blocks of complete lines, of about `BLOCK_BYTES` each. Text of another
        encoding, as `encoding_named` returns it, is converted to UTF-8.

        The caller may append buffers that it no longer needs to the list `free`; they are used
        again. A ValueError reports a damaged archive, a file that became shorter, UTF-16, a zip
        archive, or a line longer than `LONGEST_LINE`.
        """
        with self.content() as (reader, content):
            text = content if encoding == "utf-8" else Utf8Reader(content, encoding, self.name)
            buffer, filled, searched, n_bytes = _room_for(0, free), 0, 0, 0
            while True:
                filled = _fill(text, buffer, filled)
                at_end = filled < len(buffer) - PADDING
                if n_bytes == 0 and buffer.startswith(_UTF8_MARK):
                    # Blanks replace the mark, so that columns in error messages stay correct.
                    buffer[: len(_UTF8_MARK)] = b" " * len(_UTF8_MARK)
                    # A file of the mark alone is empty.
                    filled = 0 if filled == len(_UTF8_MARK) else filled
                if n_bytes == 0 and buffer.startswith(_UTF16_MARKS):
                    raise ValueError(
                        f"{self.name} is UTF-16 text. Pass encoding='utf-16' if it holds texts, or "
                        f"make it UTF-8: iconv -f UTF-16 -t UTF-8 {self.name} > FILE"
                    )
                if n_bytes == 0 and buffer.startswith((ZIP_MARK, OLE_MARK)):
                    raise ValueError(
                        f"{self.name} is a zip archive or an Office document, such as one of "
                        "Excel, and not text. Save a table as .csv, or unpack the archive."
                    )
                stop = filled if at_end else buffer.rfind(b"\n", searched, filled) + 1
                if stop == 0 and at_end:
                    free.append(buffer)
                    return
                if stop == 0:
                    if filled >= LONGEST_LINE:
                        raise ValueError(
                            f"{self.name}: the line that begins after {n_bytes:,} bytes is longer "
                            f"than {LONGEST_LINE:,} bytes. Is it a text file?"
                        )
                    buffer, searched = buffer + bytes(filled), filled
                    continue
                rest = bytes(memoryview(buffer)[stop:filled])
                yield TextBlock(self, buffer, stop, reader.position)
                if at_end:
                    return
                # This follows the yield, so that the consumer can free the block's buffer before.
                buffer, filled, searched = _room_for(len(rest), free), len(rest), 0
                buffer[:filled] = rest
                n_bytes += stop

    @cached_property
    def identity(self) -> dict[str, Any] | None:
        """Values that change with the file: size, times and checksums of the first and last bytes,
        or the version of a remote file. None for pipes and open files."""
        if self.remote is not None:
            return self.remote.identity()
        if self.size is None or self.mtime_ns is None:
            return None
        with self._open() as file:
            first = file.read(_SAMPLE_BYTES)
            # For a zarr store, `self.size` is not the size of this file.
            file.seek(max(0, file.seek(0, os.SEEK_END) - _SAMPLE_BYTES))
            last = file.read(_SAMPLE_BYTES)
        return {
            "size": self.size,
            "mtime_ns": self.mtime_ns,
            # Programs can set mtime, but not ctime.
            "ctime_ns": self.ctime_ns,
            "crc32_first": zlib.crc32(first),
            "crc32_last": zlib.crc32(last),
            **({} if self.beside is None else {"beside": self.beside}),
        }

    def check_unchanged(self) -> None:
        """Raise a ValueError if a regular file was modified or replaced since it was found."""
        if self.remote is not None:
            self.remote.check_unchanged()
        elif self.path is not None and self.rereadable:
            now = None
            with suppress(OSError):
                status = os.stat(self.path)
                now = *size_and_beside(self.path, status.st_size), status.st_mtime_ns
            if now != (self.size, self.beside, self.mtime_ns):
                raise ValueError(
                    f"{self.name} changed while it was read. Read it again when nothing writes to "
                    "it."
                )

    @property
    def seekable(self) -> Any:
        """A path or a seekable open file, for the readers of other libraries."""
        if self.remote is None:
            return self.path
        if not self.remote.ranges or self.remote.encoding:
            return downloaded(self.remote)
        return io.BufferedReader(RemoteReader(self.remote), BLOCK_BYTES)

    def _open(self) -> io.RawIOBase:
        if self.file is not None:
            return _GivenFile(self.file)
        if self.remote is not None:
            return self.remote.open()
        if self.path is None:
            return io.FileIO(0, closefd=False)
        return io.FileIO(self.path)


class _GivenFile(io.RawIOBase):
    """An open file of the caller, which is not closed here."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return int(self._file.fileno())

    def readinto(self, room: Any) -> int | None:
        data = self._file.read(len(room))
        if data is None:
            return None
        room[: len(data)] = data
        return len(data)


#: A path, an open binary file or its descriptor, or a source that has been found.
File = PathLike | int | BinaryIO | Source


def open_sources(paths: File | Iterable[File]) -> list[Source]:
    """Find the sources in the given order, and check that they can be read.

    "-" is standard input. A folder stands for its parquet files, or for a store of cells. A pattern
    with `*`, `?`, `[...]` or `**` stands for the files that match it, sorted by name, unless a file
    of exactly that name exists. Open binary files are read from their current position.
    """
    if hasattr(paths, "shape"):
        raise ValueError(
            f"paths must name files, got a {type(paths).__name__}. Pass it to fit_csr."
        )
    is_one = isinstance(paths, str | bytes | os.PathLike | Source) or _is_open(paths)
    wanted: Any = paths if isinstance(paths, Iterable) and not is_one else [paths]
    found: list[Any] = []
    for path in wanted:
        if _is_open(path):
            found.append(_source_of_open(path))
        elif isinstance(path, Source):
            found.append(path)
        elif not isinstance(path, str | os.PathLike) or not os.fspath(path):
            raise ValueError(
                f"paths must be a path, a pattern, an open file or a list of these, got {path!r}"
            )
        else:
            found += files_named(os.fsdecode(path))
    if not found:
        raise ValueError("paths is an empty list: name a file, or '-' for standard input.")
    if found.count(STANDARD_INPUT) > 1:
        raise ValueError("paths names standard input, '-', twice: it can be read only once.")
    return [path if isinstance(path, Source) else _source(path) for path in found]


def _is_open(path: Any) -> bool:
    """Return whether `path` is an open file or a file descriptor."""
    return hasattr(path, "read") or (isinstance(path, Integral) and not isinstance(path, bool))


def _source_of_open(file: Any) -> Source:
    if isinstance(file, Integral):
        name, file = f"<file descriptor {file}>", io.FileIO(int(file), closefd=False)
    else:
        named = getattr(file, "name", None)
        name = named if isinstance(named, str) else f"<{type(file).__name__}>"
    if isinstance(file.read(0), str):
        raise ValueError(
            f"{name} is open as text, and bytes are read. Open it by open(path, 'rb'), or pass the "
            "path."
        )
    return Source(name, file=file)


def files_named(path: str) -> list[str]:
    """Return the path itself, the files that match it as a pattern, or the parquet files in a
    folder and its subfolders. If a pattern matches only folders, return the parquet files in them.
    All lists are sorted."""
    if is_url(path):
        # A question mark in a URL begins the query and is not part of the pattern.
        wild = _MAGIC.intersection(path.split("?")[0])
        found = matches(path) if wild else [path]
        found = [each for each in found if not wild or not each.endswith(CACHE_SUFFIX)]
        if not found:
            raise FileNotFoundError(f"{path}: no file matches this pattern.")
        return found
    if os.path.isdir(path):
        is_store = any(os.path.isfile(os.path.join(path, name)) for name in STORES)
        return [path] if is_store else parquet_files_in(path) or [path]
    if not _MAGIC.intersection(path) or os.path.lexists(path):
        return [path]
    found, folders = list[str](), list[str]()
    for match in sorted(glob.glob(path, recursive=True)):
        # Row caches are written to the folder of their source files and are not input.
        if not match.endswith(CACHE_SUFFIX):
            (folders if os.path.isdir(match) else found).append(match)
    if not found:
        found = [each for folder in folders for each in parquet_files_in(folder)]
    if not found:
        raise FileNotFoundError(f"{path}: no file matches this pattern. {whereabouts(path)}")
    return found


def _source(path: str) -> Source:
    if path == STANDARD_INPUT:
        return Source("<standard input>")
    if is_url(path):
        remote = RemoteFile.find(path)
        return Source(path, size=remote.size, head=remote.first(HEAD_BYTES), remote=remote)
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            for entry in map(partial(os.path.join, path), ENTRIES):
                if os.path.isfile(entry):
                    return replace(_source(entry), name=path)
            raise IsADirectoryError(f"{path} is a directory{_remedy_in(path)}")
        if not stat.S_ISREG(status.st_mode):
            return Source(path, path)
        with io.FileIO(path) as file:
            head = file.read(HEAD_BYTES)
        size, beside = size_and_beside(path, status.st_size)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file. {whereabouts(path)}") from None
    except PermissionError:
        raise PermissionError(
            f"{path} may not be read by this user. Change its permissions, or those of its folder."
        ) from None
    return Source(
        path, path, size, status.st_mtime_ns, head, ctime_ns=status.st_ctime_ns, beside=beside
    )


def _remedy_in(folder: str) -> str:
    """Return the end of the message about a folder that is not read itself."""
    for inner in "*.mtx*", "*", os.path.join("**", "*.mtx*"), os.path.join("**", "*"):
        pattern = os.path.join(folder, inner)
        if any(map(os.path.isfile, glob.iglob(pattern, recursive=True))):
            return f". Name the files in it: '{pattern}'"
    return " without files. Name a file, or a folder with parquet files."


def whereabouts(path: str) -> str:
    """Return a hint that helps to find a missing file."""
    folder, name = os.path.split(os.path.abspath(path))
    if not os.path.isdir(folder):
        return f"There is no folder {folder} either."
    if os.path.islink(path):
        return "It is a link to a file that is gone."
    close = difflib.get_close_matches(name, os.listdir(folder), n=1)
    return f"Did you mean {close[0]}?" if close else f"It was looked for in {folder}."


def _fill(text: Any, buffer: bytearray, filled: int) -> int:
    room = memoryview(buffer)[: len(buffer) - PADDING]
    while filled < len(room) and (n := text.readinto(room[filled:])):
        filled += n
    return filled


def _room_for(n_bytes: int, free: list[bytearray]) -> bytearray:
    """Return a buffer of a block's size, from `free` if possible; a larger one if `n_bytes` need
    it."""
    size = BLOCK_BYTES + PADDING
    if n_bytes + PADDING > size:
        return bytearray(n_bytes + PADDING)
    while free:
        # Buffers that grew for a long line are dropped, or all later blocks would be as long.
        if len(buffer := free.pop()) == size:
            return buffer
    return bytearray(size)
