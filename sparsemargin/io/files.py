"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from sparsemargin.io.remote import check_store, is_url, uploading

_OPEN_FILE = re.compile(r"/(?:dev|proc/(?:self|thread-self))/fd/(\d+)")
# More than that are links in a circle.
_MOST_LINKS = 40


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A new binary file that takes the place of `path`, which may be a URL, once the block is left
    without an error.

    Until then `path` is as it was, whatever happens; after a power failure it is the old or the new
    file, never a part of one. A link is followed: the file it names is replaced, whose permissions,
    and owner where that is allowed, stay. An OSError names `path`.
    """
    if is_url(path):
        with uploading(os.fspath(path)) as file:
            yield file
        return
    target = Path(os.path.realpath(path))
    _check_place(path, target)
    # Named before it is made: Ctrl-C may come as soon as it is there.
    fresh = _fresh(target)
    try:
        with open(fresh, "x+b") as file:
            _take_after(target, file.fileno())
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, target)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(fresh)
        if isinstance(error, OSError) and error.filename in (None, str(fresh)):
            raise naming(error, path) from None
        raise
    _sync_folder(target.parent)


@contextmanager
def unnamed() -> Iterator[BinaryIO]:
    """A new binary file, in the folder for temporary files, that has no name: whatever happens, it
    is gone once it is closed and no longer mapped. An OSError names the folder."""
    try:
        with tempfile.TemporaryFile() as file:
            yield file
    except OSError as error:
        if error.filename is None:
            raise naming(error, tempfile.gettempdir()) from None
        raise


def naming(error: OSError, path: str | os.PathLike[str]) -> OSError:
    """The same error, of the file at `path`."""
    return type(error)(error.errno, error.strerror, os.fspath(path))


def is_one_file(path: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Whether both name one file, which to write the one would replace."""
    if os.path.isfile(path) and os.path.isfile(other):
        return os.path.samefile(path, other)
    return not os.path.exists(path) and os.path.realpath(path) == os.path.realpath(other)


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Find out before the work whether `replacing` can make a file at `path`; an OSError if not."""
    if is_url(path):
        check_store(os.fspath(path))
        return
    target = Path(os.path.realpath(path))
    _check_place(path, target)
    try:
        tempfile.TemporaryFile(dir=target.parent).close()
        # Its name may be too long.
        with suppress(FileNotFoundError):
            os.stat(_fresh(target))
    except OSError as error:
        raise naming(error, path) from None


def descriptor_of(path: str | os.PathLike[str]) -> int | None:
    """The descriptor of the open file that a name such as /dev/stdout or /dev/fd/3 stands for."""
    path = os.path.abspath(path)
    # The last link, which leads to what is open, is not followed.
    for _ in range(_MOST_LINKS):
        if found := _OPEN_FILE.fullmatch(path):
            return int(found[1])
        if not os.path.islink(path):
            break
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
    return None


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Whether it is a device, a pipe or an open file: written to as it is, and never replaced."""
    is_special = os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
    return is_special or descriptor_of(path) is not None


def _check_place(path: str | os.PathLike[str], target: Path) -> None:
    """Refuse to take the place of a directory or a stream, or where there is no folder."""
    if not os.fspath(path):
        raise FileNotFoundError("The name of the file to be written is empty. Name one.")
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a directory. Name a file in it: {Path(path, 'FILE')}")
    folder = target.parent if os.path.basename(path) else target
    if not folder.is_dir():
        raise FileNotFoundError(
            f"{path}: there is no folder {folder}. Make it first: mkdir -p {folder}"
        )
    if is_stream(path):
        raise OSError(f"{path} is no regular file, which could be replaced as a whole. Name one.")


def _fresh(target: Path) -> Path:
    """The name of a new file that is to take the place of the target."""
    return target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")


def _take_after(target: Path, descriptor: int) -> None:
    """Give a new file the permissions of the one that it will replace, if there is one, and its
    owner and group as far as that is allowed."""
    with suppress(OSError):
        status = os.stat(target)
        for owner in (status.st_uid, -1), (-1, status.st_gid):
            with suppress(OSError):
                os.fchown(descriptor, *owner)
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode))


def _sync_folder(folder: Path) -> None:
    """Make the new name last; a file system that can't is left to its ways."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
