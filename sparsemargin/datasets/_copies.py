"""Copies of registered files: how they are read and checked."""

import bz2
import gzip
import hashlib
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ._registry import DataFile

_UNPACK = {".bz2": bz2.decompress, ".gz": gzip.decompress}
_GZIP_MAGIC = b"\x1f\x8b"


class WrongCopy(ValueError):
    """A copy is not the registered file; the message tells how it differs."""


class LocalFile(NamedTuple):
    """A registered file as found here, its content checked."""

    file: DataFile
    path: Path
    content: bytes

    def unpacked(self) -> bytes:
        """The content, decompressed where the registered name ends in .gz or .bz2."""
        unpack = _UNPACK.get(Path(self.file.name).suffix)
        return self.content if unpack is None else unpack(self.content)

    def lines(self) -> list[str]:
        """The lines of a text file, without their ends."""
        return self.unpacked().decode("ascii", errors="backslashreplace").splitlines()

    def malformed(self, number: int, line: str, expected: str) -> ValueError:
        """The error for line `number`, counted from 1, which is not what was expected."""
        return ValueError(f"{self.path}, line {number}: expected {expected}, found {line!r}")

    def check_count(self, n_rows: int) -> None:
        """Raise a ValueError where the file holds another number of rows than registered."""
        if n_rows != self.file.shape[0]:
            raise ValueError(f"{self.path} holds {n_rows} rows instead of {self.file.shape[0]}")


def read_copy(file: DataFile, path: Path) -> LocalFile:
    """Read a copy and check it.

    Raises
    ------
    WrongCopy
        If it is not the registered file. Of a copy that is packed where the registered file is
        not, only what is inside counts.
    """
    content = path.read_bytes()
    # Some servers have a packed file unpacked on arrival, so its name does not tell.
    if content.startswith(_GZIP_MAGIC) and not file.is_packed:
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise WrongCopy(f"it cannot be unpacked ({error})") from error
    if file.numbers_sha256 is None:
        _check_bytes(file, content)
    else:
        _check_numbers(file.numbers_sha256, content)
    return LocalFile(file, path, content)


def _check_bytes(file: DataFile, content: bytes) -> None:
    if len(content) != file.size:
        raise WrongCopy(f"it has {len(content):,} bytes instead of {file.size:,}")
    sha256 = hashlib.sha256(content).hexdigest()
    if sha256 != file.sha256:
        raise WrongCopy(f"its sha256 is {sha256} instead of {file.sha256}")


def _check_numbers(registered: str, content: bytes) -> None:
    try:
        numbers = np.array(content.split(), dtype=np.float64)
    except ValueError as error:
        raise WrongCopy(f"it does not hold numbers alone ({error})") from error
    # Adding 0 makes -0.0, another way to write it, 0.0.
    sha256 = hashlib.sha256((numbers + 0).astype("<f8").tobytes()).hexdigest()
    if sha256 != registered:
        raise WrongCopy(f"the sha256 of its numbers is {sha256} instead of {registered}")
