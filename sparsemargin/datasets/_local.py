"""Copies of registered files on this machine: where they are looked for, how they are checked."""

import bz2
import gzip
import hashlib
import os
import shlex
import sys
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ._registry import DataFile, DataSet, data_sets

DATA_VARIABLE = "SPARSEMARGIN_DATA"

DataHome: TypeAlias = str | os.PathLike[str] | None

_UNPACK = {".bz2": bz2.decompress, ".gz": gzip.decompress}


class LocalFile(NamedTuple):
    """A registered file as found here, its content checked."""

    file: DataFile
    path: Path
    content: bytes

    def unpacked(self) -> bytes:
        """The content, decompressed where the name ends in .gz or .bz2."""
        unpack = _UNPACK.get(self.path.suffix)
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


class Place(NamedTuple):
    """A folder to look in, and how it came to be one."""

    origin: str
    folder: Path | None

    def __str__(self) -> str:
        if self.folder is None:
            return f"{self.origin}: not set"
        return f"{self.origin}: {self.folder}{'' if self.folder.is_dir() else ' (no such folder)'}"


def cache_folder() -> Path:
    """The folder that downloads go to: what `pooch.os_cache` names, known without pooch."""
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    if not os.path.isabs(base):
        base = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    return Path(base).expanduser() / "sparsemargin"


def find_flaw(file: DataFile, content: bytes) -> str | None:
    """How `content` differs from the registered file; None where it does not."""
    if len(content) != file.size:
        return f"it has {len(content):,} bytes instead of {file.size:,}"
    sha256 = hashlib.sha256(content).hexdigest()
    return None if sha256 == file.sha256 else f"its sha256 is {sha256} instead of {file.sha256}"


def read_files(name: str, data_home: DataHome) -> list[LocalFile]:
    """Find the files of a data set, check size and sha256, and return them in registered order.

    Parameters
    ----------
    name : str
        Name of the data set.
    data_home : str, path or None
        The folder to look in first; then come the one the variable SPARSEMARGIN_DATA names, and
        the cache.

    Raises
    ------
    ValueError
        If `data_home` is no folder, or a file found is not the registered one.
    FileNotFoundError
        If a file is in none of the folders.
    """
    dataset = data_sets()[name]
    places = _places(data_home)
    found = [(file, _find(file.name, places)) for file in dataset.files]
    missing = [file for file, path in found if path is None]
    if missing:
        raise FileNotFoundError(_not_found(dataset, missing, places))
    return [_read(dataset, file, path) for file, path in found if path is not None]


def find_file(name: str, data_home: DataHome) -> Path | None:
    """The first copy of a file, registered or not, in the folders that `read_files` looks in."""
    return _find(name, _places(data_home))


def check_data_home(data_home: DataHome) -> Path | None:
    """Return `data_home` as a path, or raise a ValueError where it is no folder."""
    if data_home is None:
        return None
    if not isinstance(data_home, str | os.PathLike) or not Path(data_home).expanduser().is_dir():
        raise ValueError(f"data_home must be None or an existing folder, got {data_home!r}")
    return Path(data_home).expanduser()


def _places(data_home: DataHome) -> list[Place]:
    named = os.environ.get(DATA_VARIABLE)
    places = [
        Place(DATA_VARIABLE, Path(named).expanduser() if named else None),
        Place("cache", cache_folder()),
    ]
    # A mistyped folder must not lead to other copies than those asked for.
    first = check_data_home(data_home)
    return places if first is None else [Place("data_home", first), *places]


def _find(name: str, places: list[Place]) -> Path | None:
    paths = (place.folder / name for place in places if place.folder is not None)
    return next((path for path in paths if path.is_file()), None)


def _read(dataset: DataSet, file: DataFile, path: Path) -> LocalFile:
    content = path.read_bytes()
    flaw = find_flaw(file, content)
    if flaw is not None:
        remedy = _remedy(dataset, [file], f" --to {shlex.quote(str(path.parent))}")
        raise ValueError(f"{path} is not the registered file: {flaw}. Replace it {remedy}")
    return LocalFile(file, path, content)


def _not_found(dataset: DataSet, missing: list[DataFile], places: list[Place]) -> str:
    names = ", ".join(file.name for file in missing)
    looked = "".join(f"\n  {place}" for place in places)
    return (
        f"{names} not found. Looked in{looked}\n"
        f"Name the folder that holds the files, or get them {_remedy(dataset, missing)}"
    )


def _remedy(dataset: DataSet, files: list[DataFile], options: str = "") -> str:
    by_hand = [file.by_hand for file in files if file.url is None]
    if by_hand:
        return "\n  ".join(["by hand, no address serves these very bytes:", *by_hand])
    return f"with: python -m sparsemargin.datasets download {dataset.name}{options}"
