"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A new binary file that takes the place of `path` once the block is left without an error.

    Until then `path` is as it was, whatever happens; after a power failure it is the old or the
    new file, never a part of one.

    Parameters
    ----------
    path : path
        A link is followed: the file it names is replaced.

    Yields
    ------
    file
        For reading, writing and seeking, in the folder of `path`.

    Raises
    ------
    OSError
        If the file can't be made, written or moved; names `path`.
    """
    target = Path(os.path.realpath(path))
    fresh = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        descriptor = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise naming(error, path) from None
    try:
        with os.fdopen(descriptor, "r+b") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        os.replace(fresh, target)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(fresh)
        if isinstance(error, OSError) and error.filename in (None, str(fresh)):
            raise naming(error, path) from None
        raise
    _sync_folder(target.parent)


def naming(error: OSError, path: str | os.PathLike[str]) -> OSError:
    """The same error, of the file at `path`."""
    return type(error)(error.errno, error.strerror, os.fspath(path))


def _sync_folder(folder: Path) -> None:
    """Make the new name last; a file system that can't is left to its ways."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
