"""Where copies of registered files are looked for on this machine."""

import os
import shlex
import sys
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ._copies import LocalFile, WrongCopy, read_copy
from ._registry import DataFile, DataSet, data_sets

DATA_VARIABLE = "SPARSEMARGIN_DATA"

DataHome: TypeAlias = str | os.PathLike[str] | None


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


def find_copy(file: DataFile, folders: Iterable[Path]) -> Path | None:
    """The first copy of a registered file in the folders, packed or not."""
    return _find(file.copy_names, folders)


def read_files(name: str, data_home: DataHome, wanted: slice = slice(None)) -> list[LocalFile]:
    """Find the files of a data set, check them, and return them in registered order.

    Parameters
    ----------
    name : str
        Name of the data set.
    data_home : str, path or None
        The folder to look in first; then come the one the variable SPARSEMARGIN_DATA names, and
        the cache.
    wanted : slice, default: all
        Which of the set's files.

    Raises
    ------
    ValueError
        If `data_home` is no folder, or a file found is not the registered one.
    FileNotFoundError
        If a file is in none of the folders.
    """
    dataset = data_sets()[name]
    return [_read(dataset, *found) for found in find_files(name, data_home, wanted)]


def find_files(
    name: str, data_home: DataHome = None, wanted: slice = slice(None)
) -> list[tuple[DataFile, Path]]:
    """Find the files of a data set without reading them: as `read_files`, which checks them too.

    Raises
    ------
    ValueError
        If `data_home` is no folder.
    FileNotFoundError
        If a file is in none of the folders.
    """
    dataset = data_sets()[name]
    places = _places(data_home)
    folders = _folders(places)
    found = [(file, find_copy(file, folders)) for file in dataset.files[wanted]]
    missing = [file for file, path in found if path is None]
    if missing:
        raise FileNotFoundError(_not_found(dataset, missing, places))
    return [(file, path) for file, path in found if path is not None]


def find_file(name: str, data_home: DataHome) -> Path | None:
    """The first copy of a file, registered or not, in the folders that `read_files` looks in."""
    return _find([name], _folders(_places(data_home)))


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


def _folders(places: list[Place]) -> list[Path]:
    return [place.folder for place in places if place.folder is not None]


def _find(names: Iterable[str], folders: Iterable[Path]) -> Path | None:
    paths = (folder / name for folder, name in product(folders, names))
    return next((path for path in paths if path.is_file()), None)


def _read(dataset: DataSet, file: DataFile, path: Path) -> LocalFile:
    try:
        return read_copy(file, path)
    except WrongCopy as flaw:
        remedy = _remedy(dataset, [file], f" --to {shlex.quote(str(path.parent))}")
        raise ValueError(
            f"{path} is not the registered file: {flaw}. Replace it {remedy}"
        ) from None


def _not_found(dataset: DataSet, missing: list[DataFile], places: list[Place]) -> str:
    names = ", ".join(file.copy_names[0] for file in missing)
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
