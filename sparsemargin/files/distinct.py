"""Whether files that are read and files that are written are different files."""

from __future__ import annotations

import os
import stat
import tempfile
import unicodedata
from collections.abc import Container, Hashable, Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from sparsemargin.files.remote import is_url, located

#: The path that means standard input or standard output.
STANDARD_STREAM = "-"


class Named(NamedTuple):
    """A file, and what the caller calls it, such as an option or an argument; `path` is None where
    it was not given."""

    name: str
    path: Any


class SameFileError(ValueError):
    """A file would be replaced that is read, or that is another output."""


def check_distinct(
    outputs: Iterable[Named], inputs: Iterable[Named], in_place: Container[tuple[str, str]] = ()
) -> None:
    """Raise a `SameFileError` if an output is the same file as an input or as another output,
    unless the names of the output and the input are a pair of `in_place`.

    Links, hard links, other spellings of a path, URLs of local files, and case on file systems that
    ignore it are seen through. Devices, pipes and folders are never the same file. Nothing is read
    or written but the folders.
    """
    written: dict[Hashable, Named] = {}
    for each in outputs:
        key = _identity(each.path, stream=1)
        if key in written and _is_same(written[key], each):
            raise _error(written[key], each)
        if key is not None:
            written[key] = each
    for each in inputs:
        key = _identity(each.path, stream=0)
        output = written.get(key)
        if output is None or (output.name, each.name) in in_place:
            continue
        if _is_same(output, each):
            raise _error(output, each)


def _error(output: Named, other: Named) -> SameFileError:
    names = " and ".join(_told(each) for each in (output, other))
    return SameFileError(f"{names} are one file. Name two.")


def _told(named: Named) -> str:
    return f"{named.name} {os.fspath(named.path)}".removesuffix(f" {STANDARD_STREAM}")


def _identity(path: Any, *, stream: int) -> Hashable | None:
    """Return what all names of a file have in common; None for what is no file. `stream` is the
    descriptor that "-" means."""
    if path is None or not isinstance(path, str | bytes | os.PathLike) or not os.fspath(path):
        return None
    if path == STANDARD_STREAM:
        with suppress(OSError):
            return _number(os.fstat(stream))
        return None
    if is_url(path):
        store, path = located(str(path))
        if store is not None:
            return store, path
    real = os.path.realpath(path)
    try:
        return _number(os.stat(real))
    except OSError:
        folder, name = os.path.split(real)
    with suppress(OSError):
        status = os.stat(folder)
        return status.st_dev, status.st_ino, _folded(name)
    return real


def _number(status: os.stat_result) -> Hashable | None:
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def _folded(name: str | bytes) -> str:
    return unicodedata.normalize("NFC", os.fsdecode(name)).casefold()


def _is_same(one: Named, other: Named) -> bool:
    """Whether two names with the same identity are the same file: names of files that are yet to be
    written may differ in case."""
    paths = [os.path.realpath(each.path) for each in (one, other) if not is_url(each.path)]
    names = {os.path.basename(path) for path in paths}
    if any(map(os.path.exists, paths)) or len(names) < 2:
        return True
    with (
        suppress(OSError),
        tempfile.NamedTemporaryFile(dir=os.path.dirname(paths[0]), prefix="a") as file,
    ):
        folder, name = os.path.split(file.name)
        return os.path.exists(os.path.join(folder, name.upper()))
    return False
