"""Check that the files a command reads and the files it writes are different files."""

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
    """A path, and the name of the option or argument that has it. `path` is None if it was not
    given."""

    name: str
    path: Any


class SameFileError(ValueError):
    """An output is the same file as an input or as another output."""


def check_distinct(
    outputs: Iterable[Named], inputs: Iterable[Named], in_place: Container[tuple[str, str]] = ()
) -> None:
    """Raise a `SameFileError` if an output is the same file as an input or as another output.

    Pairs of an output's and an input's name in `in_place` are allowed. Files are compared across
    symbolic links, hard links, different spellings of a path, URLs of local files, and upper and
    lower case on file systems that ignore it. Devices, pipes and folders are never the same file.
    No file is read or written, except that a temporary file may be created to test whether a folder
    ignores case.
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
    names = " and ".join(_in_words(each) for each in (output, other))
    return SameFileError(f"{names} are one file. Name two.")


def _in_words(named: Named) -> str:
    return f"{named.name} {os.fspath(named.path)}".removesuffix(f" {STANDARD_STREAM}")


def _identity(path: Any, *, stream: int) -> Hashable | None:
    """Return a key that is equal for all names of a file, or None if `path` is not a regular file.
    `stream` is the descriptor that "-" stands for."""
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
        folded = unicodedata.normalize("NFC", os.fsdecode(name)).casefold()
        return status.st_dev, status.st_ino, folded
    return real


def _number(status: os.stat_result) -> Hashable | None:
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def _is_same(one: Named, other: Named) -> bool:
    """Return whether two names with equal keys are the same file. Names of files that do not exist
    yet may differ only in case, which some file systems ignore."""
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
