"""The data sets that have a loader, as registry.toml describes them."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Any


@dataclass(frozen=True)
class DataFile:
    """One file of a data set; registry.toml explains the fields."""

    name: str
    shape: tuple[int, ...]
    publisher: str
    source: str
    url: str | None
    obtain: str | None
    licence: str
    size: int
    sha256: str
    numbers_sha256: str | None

    @property
    def is_packed(self) -> bool:
        """Whether it is the packed bytes that are registered, not what is inside."""
        return self.name.endswith((".gz", ".bz2"))

    @property
    def copy_names(self) -> tuple[str, ...]:
        """The names that copies may have: the one that the address serves goes first."""
        if self.is_packed:
            return (self.name,)
        served = self.name if self.url is None else PurePosixPath(self.url).name
        return tuple(dict.fromkeys([served, self.name, f"{self.name}.gz"]))

    @property
    def by_hand(self) -> str:
        """How to get a file that no address serves."""
        return f"{self.name} was taken from {self.source}; {self.obtain}"


@dataclass(frozen=True)
class DataSet:
    """What one loader reads, its files in the order the loader takes them."""

    name: str
    title: str
    citation: str
    files: tuple[DataFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(file.size for file in self.files)

    @property
    def licence(self) -> str:
        """The licences of the files, each once."""
        return "; ".join(dict.fromkeys(file.licence for file in self.files))

    @property
    def description(self) -> str:
        """What the data are, who published them, on what terms: the ``DESCR`` of a Bunch."""
        publishers = "; ".join(dict.fromkeys(file.publisher for file in self.files))
        return "\n".join(
            [
                self.title,
                "",
                f"Files: {', '.join(file.name for file in self.files)}",
                f"Publisher: {publishers}",
                f"Licence: {self.licence}",
                f"Cite: {self.citation}",
            ]
        )


@cache
def data_sets() -> dict[str, DataSet]:
    """The data sets by name, in the registry's order."""
    text = files(__package__).joinpath("registry.toml").read_text(encoding="utf-8")
    registry = tomllib.loads(text)
    entries = {entry["name"]: entry for entry in registry["file"]}
    return {
        name: DataSet(
            name,
            table["title"],
            table["citation"],
            tuple(_data_file(entries[file]) for file in table["files"]),
        )
        for name, table in registry["dataset"].items()
    }


def _data_file(entry: dict[str, Any]) -> DataFile:
    return DataFile(
        name=entry["name"],
        shape=tuple(entry["shape"]),
        publisher=entry["publisher"],
        source=entry["source"],
        url=entry.get("url"),
        obtain=entry.get("obtain"),
        licence=entry["licence"],
        size=entry["bytes"],
        sha256=entry["sha256"],
        numbers_sha256=entry.get("numbers_sha256"),
    )
