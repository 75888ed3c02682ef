"""Sequences of DNA, RNA or proteins in FASTA and FASTQ files."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator

from sparsemargin.files.sources import File, open_sources

# Bytes that are read at once.
_READ_BYTES = 1 << 16

_UTF8_MARK = b"\xef\xbb\xbf"


def read_sequences(path: File) -> Iterator[tuple[str, bytes]]:
    r"""Read the names and sequences of a FASTA or FASTQ file, one record at a time.

    Lines may end in ``\n``, ``\r\n`` or ``\r``. A sequence may have several lines, also in
    FASTQ. Lines of FASTA that begin with ``;`` are comments. A byte order mark is skipped.

    Parameters
    ----------
    path : path or open binary file
        File, plain or compressed by gzip, bzip2, xz or zstd. Compression is recognized by the
        content, not by the name.

    Yields
    ------
    name : str
        The rest of the line after ``>`` or ``@``. A name that is not UTF-8 is read as Latin-1.
    sequence : bytes
        The sequence without line ends and, in FASTA, without blanks between groups of letters.

    Raises
    ------
    ValueError
        If the file is neither FASTA nor FASTQ, a record of FASTQ is incomplete, or a compressed
        file is damaged or cut off. The message names the file and, for text, the line.
    OSError
        If the file can't be read.
    """
    source, *others = open_sources(path)
    if others:
        raise ValueError(f"path={path!r} names several files. Read them one after the other.")
    with source.content() as (_, content):
        file = io.BufferedReader(content, _READ_BYTES)
        lines = _lines(file) if b"\r" in file.peek() else map(bytes.strip, file)
        number, first = 0, b""
        for number, first in enumerate(lines, 1):
            if number == 1:
                first = first.removeprefix(_UTF8_MARK)
            if first and first[:1] != b";":
                break
        if first[:1] == b"@":
            yield from _fastq(source.name, lines, number, first)
        elif first[:1] == b">":
            yield from _fasta(source.name, lines, first)
        elif first and first[:1] != b";":
            raise ValueError(
                f"{source.name}, line {number}: the file is neither FASTA (>) nor FASTQ (@)."
            )


def _lines(file: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file with any kind of line end, without surrounding white space."""
    for line in file:
        if b"\r" in line:
            yield from map(bytes.strip, line.splitlines())
        else:
            yield line.strip()


def _fasta(file: str, lines: Iterator[bytes], first: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the records of FASTA. `first` is the first line, which has already been read."""

    def record(name: bytes, parts: list[bytes]) -> tuple[str, bytes]:
        sequence = b"".join(parts)
        if b"\r" in sequence or b"\r" in name:
            raise ValueError(
                f"{file}: lines of the record {_name_of(name)!r} end in \\r, unlike those before. "
                "Give all lines the same end."
            )
        return _name_of(name), sequence.translate(None, b" \t")

    name, parts = first, list[bytes]()
    for line in lines:
        kind = line[:1]
        if kind == b">":
            yield record(name, parts)
            name, parts = line, []
        elif kind != b";":
            parts.append(line)
    yield record(name, parts)


def _fastq(
    file: str, lines: Iterator[bytes], number: int, name: bytes
) -> Iterator[tuple[str, bytes]]:  # fmt: skip
    """Yield the records of FASTQ. `name` is the first line, which has already been read, and
    `number` is its number."""

    def error(number: int, what: str) -> ValueError:
        return ValueError(f"{file}, line {number}: {what}")

    while name:
        start, n_lines, parts = number, 1, list[bytes]()
        line: bytes | None = next(lines, None)
        while line is not None and line[:1] != b"+":
            parts.append(line)
            line, n_lines = next(lines, None), n_lines + 1
        if line is None:
            raise error(start, "the record of FASTQ has no line with +. It was cut off.")
        if len(line) > 1 and line[1:] != name[1:]:
            named = _name_of(name)
            raise error(
                start + n_lines, f"the name after + differs from that of the record, {named!r}."
            )
        sequence, n_qualities = b"".join(parts), 0
        # Lines of qualities may begin with @ or +, so that only their length shows where they end.
        while n_qualities < len(sequence) and (line := next(lines, None)) is not None:
            n_qualities, n_lines = n_qualities + len(line), n_lines + 1
        if n_qualities != len(sequence):
            raise error(
                start, f"the record of FASTQ has {len(sequence):,} bases and {n_qualities:,} "
                "qualities. The file was cut off or damaged.",
            )  # fmt: skip
        yield _name_of(name), sequence
        number += n_lines + 1
        name = b""
        for name in lines:
            if name:
                break
            number += 1
        if name and name[:1] != b"@":
            raise error(number, "a record of FASTQ begins with @, and this line does not.")


def _name_of(line: bytes) -> str:
    try:
        return line[1:].decode()
    except UnicodeDecodeError:
        return line[1:].decode("latin-1")
