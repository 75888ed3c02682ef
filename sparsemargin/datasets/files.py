"""The public data sets described by registries, and the local copies of their files."""

import bz2
import gzip
import hashlib
import os
import shlex
import sys
import tomllib
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from itertools import product
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.utils import Bunch

DATA_VARIABLE = "SPARSEMARGIN_DATA"

DataHome: TypeAlias = str | os.PathLike[str] | None

#: Registries of data sets, by the package for which ``python -m PACKAGE download`` fetches them.
REGISTRIES: dict[str, Path] = {"sparsemargin.datasets": Path(__file__).with_name("registry.toml")}

_UNPACK = {".bz2": bz2.decompress, ".gz": gzip.decompress}
_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class DataFile:
    """One file of a data set; registry.toml explains the fields."""

    name: str
    shape: list[int]
    publisher: str
    source: str
    licence: str
    bytes: int
    sha256: str
    url: str | None = None
    sources: Sequence[str] = ()
    conversion: str | None = None
    obtain: str | None = None

    @property
    def is_packed(self) -> bool:
        """True if the registered bytes are the packed ones, not the content."""
        return self.name.endswith(tuple(_UNPACK))

    @property
    def copy_names(self) -> tuple[str, ...]:
        """The possible names of copies, starting with the name that the address serves."""
        if self.is_packed:
            return (self.name,)
        served = self.name if self.url is None else PurePosixPath(self.url).name
        return tuple(dict.fromkeys([served, self.name, f"{self.name}.gz"]))

    @property
    def by_hand(self) -> str | None:
        """Instructions for a file that can neither be fetched nor converted, else None."""
        if self.url is not None or self.sources:
            return None
        return f"{self.name} was taken from {self.source}; {self.obtain}"


@dataclass(frozen=True)
class DataSet:
    """The files that one loader reads, in the order of the loader; see registry.toml."""

    name: str
    title: str
    citation: str
    files: tuple[DataFile, ...]
    package: str
    columns: tuple[str, ...] = ()
    header: bool = True
    classes: tuple[str, ...] = ()
    target_names: tuple[str, ...] = ()
    scikit_learn: str | None = None

    @property
    def licence(self) -> str:
        """The distinct licences of the files."""
        return "; ".join(dict.fromkeys(file.licence for file in self.files))

    def bunch(self, data: Any, target: Any, target_names: Iterable[str], **more: Any) -> Bunch:
        """The result of the loader, with a ``DESCR`` of the data, their publishers and terms."""
        publishers = "; ".join(dict.fromkeys(file.publisher for file in self.files))
        description = (
            f"{self.title}\n\nFiles: {', '.join(file.name for file in self.files)}\n"
            f"Publisher: {publishers}\nLicence: {self.licence}\nCite: {self.citation}"
        )
        names = np.array(list(target_names))
        always = {"data": data, "target": target, "frame": None, "target_names": names}
        return Bunch(**{**always, "DESCR": description, **more})


@cache
def data_sets() -> dict[str, DataSet]:
    """The data sets by name, in the order of the registries."""
    known, found = [field.name for field in fields(DataFile)], {}
    for package, path in REGISTRIES.items():
        registry = tomllib.loads(path.read_text(encoding="utf-8"))
        files = {
            entry["name"]: DataFile(**{key: entry[key] for key in known if key in entry})
            for entry in registry["file"]
        }
        for name, row in registry["dataset"].items():
            of_set = tuple(files[file] for file in row["files"])
            found[name] = DataSet(**{**row, "name": name, "package": package, "files": of_set})
    return found


class WrongCopy(ValueError):
    """A copy is not the registered file; the message describes the difference."""


class LocalFile(NamedTuple):
    """A registered file found on this machine, with checked content."""

    file: DataFile
    path: Path
    content: bytes

    def lines(self) -> list[str]:
        """The lines of a text file without line ends; packed files are unpacked."""
        unpacked = _UNPACK.get(Path(self.file.name).suffix, bytes)(self.content)
        return unpacked.decode("ascii", errors="backslashreplace").splitlines()


def read_copy(file: DataFile, path: Path) -> LocalFile:
    """Read a copy and check it; WrongCopy describes the difference to the registered file.

    If the copy is packed and the registered file is not, only the content is compared.
    """
    content = path.read_bytes() if file.is_packed else read_unpacked(path)
    if len(content) != file.bytes:
        raise WrongCopy(f"it has {len(content):,} bytes instead of {file.bytes:,}")
    sha256 = hashlib.sha256(content).hexdigest()
    if sha256 != file.sha256:
        raise WrongCopy(f"its sha256 is {sha256} instead of {file.sha256}")
    return LocalFile(file, path, content)


def read_unpacked(path: Path) -> bytes:
    """Return the content of a file that may be a gzip file. WrongCopy: it is damaged."""
    content = path.read_bytes()
    # Files from some servers are already decompressed, in spite of a name that ends in .gz.
    if not content.startswith(_GZIP_MAGIC):
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise WrongCopy(f"it cannot be unpacked ({error})") from error


def cache_folder() -> Path | None:
    """The folder for downloads, within the user's cache folder; None if there is no home folder, as
    for users of containers that have a number only."""
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    if not os.path.isabs(base):
        base = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    base = os.path.expanduser(base)
    return Path(base, "sparsemargin") if os.path.isabs(base) else None


def find_file(names: Iterable[str], folders: Iterable[Path | None]) -> Path | None:
    """The first file with one of these names in the folders, or None."""
    paths = (folder / name for folder, name in product(folders, names) if folder is not None)
    return next((path for path in paths if path.is_file()), None)


def folders_of(data_home: DataHome) -> dict[str, Path | None]:
    """The folders to search, in order, by their origin."""
    folders: dict[str, Path | None] = {}
    if data_home is not None:
        is_path = isinstance(data_home, str | os.PathLike)
        # A mistyped folder must not silently lead to other copies.
        if not is_path or not os.path.isdir(os.path.expanduser(data_home)):
            raise ValueError(f"data_home must be None or an existing folder, got {data_home!r}")
        folders["data_home"] = Path(os.path.expanduser(data_home))
    named = os.environ.get(DATA_VARIABLE)
    folders[DATA_VARIABLE] = Path(os.path.expanduser(named)) if named else None
    folders["cache"] = cache_folder()
    return folders


def find_files(
    name: str, data_home: DataHome = None, wanted: slice = slice(None)
) -> list[tuple[DataFile, Path]]:
    """The requested files of a data set; FileNotFoundError explains how to get missing ones."""
    dataset, folders = data_sets()[name], folders_of(data_home)
    found = [(f, find_file(f.copy_names, folders.values())) for f in dataset.files[wanted]]
    missing = [file for file, path in found if path is None]
    if missing:
        names = ", ".join(file.copy_names[0] for file in missing)
        looked = "".join(
            f"\n  {origin}: {_folder_in_words(folder)}" for origin, folder in folders.items()
        )
        raise FileNotFoundError(
            f"{names} not found. Looked in{looked}\n"
            f"Name the folder that holds the files, or get them {_remedy(dataset, missing)}"
        )
    return [(file, path) for file, path in found if path is not None]


def read_files(name: str, data_home: DataHome, wanted: slice = slice(None)) -> list[LocalFile]:
    """Read the requested files of a data set; ValueError if one is not the registered file."""
    files = []
    for file, path in find_files(name, data_home, wanted):
        try:
            files.append(read_copy(file, path))
        except WrongCopy as flaw:
            remedy = _remedy(data_sets()[name], [file], f" --to {shlex.quote(str(path.parent))}")
            raise ValueError(
                f"{path} is not the registered file: {flaw}. Replace it {remedy}"
            ) from None
    return files


def _folder_in_words(folder: Path | None) -> str:
    if folder is None:
        return "not set"
    return str(folder) if folder.is_dir() else f"{folder} (no such folder)"


def _remedy(dataset: DataSet, files: list[DataFile], options: str = "") -> str:
    by_hand = [file.by_hand for file in files if file.by_hand is not None]
    if by_hand:
        return "\n  ".join(["by hand, no address serves these very bytes:", *by_hand])
    return f"with: python -m {dataset.package} download {dataset.name}{options}"
