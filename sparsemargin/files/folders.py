"""Folders that are one data set of parquet files."""

from __future__ import annotations

import os

_PARQUET_ENDS = ".parquet", ".pq"


def parquet_files_in(folder: str) -> list[str]:
    """Return the parquet files in a folder and its subfolders, sorted. Names that begin with "_" or
    "." are those of metadata of other programs."""
    found = list[str]()
    for at, folders, names in os.walk(folder):
        folders[:] = [each for each in folders if not each.startswith(("_", "."))]
        found += [
            os.path.join(at, name) for name in names
            if name.endswith(_PARQUET_ENDS) and not name.startswith(("_", "."))
        ]  # fmt: skip
    return sorted(found)
