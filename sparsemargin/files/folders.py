"""Folders that are one data set, and files that are read together with another file."""

from __future__ import annotations

import hashlib
import os

#: Suffix of the names of row caches, unless the user gives another name.
CACHE_SUFFIX = ".smcache"

#: Suffixes of text matrices, and the files that mark a zarr store of version 3 or 2.
MATRIX_ENDS, STORES = (".mtx.gz", ".mtx"), ("zarr.json", ".zgroup")

# Name, without its suffix, of the matrix by which a folder of 10x is recognised.
_MATRIX = "matrix"

#: Files by which a folder of 10x or a zarr store is recognised.
ENTRIES = *(f"{_MATRIX}{end}" for end in MATRIX_ENDS), *STORES

_PARQUET_ENDS = ".parquet", ".pq"


def parquet_files_in(folder: str) -> list[str]:
    """Return the parquet files in a folder and its subfolders, sorted. Names that begin with "_" or
    "." are left out, because other programs use them for metadata."""
    found = list[str]()
    for at, folders, names in os.walk(folder):
        folders[:] = [each for each in folders if not each.startswith(("_", "."))]
        found += [
            os.path.join(at, name) for name in names
            if name.endswith(_PARQUET_ENDS) and not name.startswith(("_", "."))
        ]  # fmt: skip
    return sorted(found)


def size_and_beside(path: str, size: int) -> tuple[int, str | None]:
    """Return the size of a file, which for a zarr store includes its other files, and the hash of
    names, sizes and times of the files that are read together with it."""
    folder, others = os.path.dirname(path) or os.curdir, list[tuple[str, int, int]]()
    for each in files_beside(path):
        status = os.stat(each)
        others.append((os.path.relpath(each, folder), status.st_size, status.st_mtime_ns))
    if os.path.basename(path) in STORES:
        size += sum(n_bytes for _, n_bytes, _ in others)
    return size, hashlib.sha256(repr(sorted(others)).encode()).hexdigest() if others else None


def files_beside(path: str) -> list[str]:
    """Return the paths of the files that are read together with `path`."""
    folder, name = os.path.split(path)
    paths = list[str]()
    if name in STORES:
        paths = _files_of_store(folder or os.curdir)
    elif name.lower().endswith(MATRIX_ENDS):
        tables = tables_beside(path, "features", "genes", "barcodes")
        paths = list(filter(os.path.isfile, tables))
    # Row caches in a store, complete or still being written, are not part of it.
    others = {each: os.path.relpath(each, folder or os.curdir) for each in paths}
    return [each for each, at in others.items() if at != name and CACHE_SUFFIX not in at]


def _files_of_store(folder: str) -> list[str]:
    """Return all files of a zarr store. Raise a ValueError for a link that leaves the store, and
    for an entry that is not a regular file."""
    found, root = list[str](), os.path.join(os.path.realpath(folder), "")
    for at, folders, names in os.walk(folder):
        files = [os.path.join(at, each) for each in names]
        for path in (*(os.path.join(at, each) for each in folders), *files):
            if os.path.islink(path) and not os.path.realpath(path).startswith(root):
                raise ValueError(
                    f"{folder}: {os.path.relpath(path, folder)} is a link out of the store, which "
                    "is not followed. If you trust it, copy the store with what its links lead "
                    "to: cp -rL STORE NEW."
                )
        for path in files:
            if not os.path.isfile(path):
                raise ValueError(
                    f"{folder}: {os.path.relpath(path, folder)} is no file, as those of a store "
                    "are. Remove it, or copy the store again."
                )
        found += files
    return found


def tables_beside(matrix: str, *names: str) -> list[str]:
    """Return the possible paths of tables of these names that belong to a matrix of 10x. They have
    the same prefix as the matrix."""
    folder, name = os.path.split(matrix)
    begin = os.path.join(folder, name[: max(0, name.rfind(f"{_MATRIX}.mtx"))])
    return [f"{begin}{name}.tsv{end}" for name in names for end in (".gz", "")]
