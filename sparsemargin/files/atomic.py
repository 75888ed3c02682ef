"""Atomic writes: a file is written completely, or not at all. A file that is made from other files
is as private as these."""

from __future__ import annotations

import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO

from sparsemargin._engine.fitting.threads import uninterrupted
from sparsemargin.files.remote import is_url, located, uploading

_OPEN_FILE = re.compile(r"/(?:dev|proc/(?:self|thread-self))/fd/(\d+)")
# A chain of more symbolic links than this is assumed to be a circle.
_MOST_LINKS = 40

# Permission bits.
_OTHERS, _GROUP = 0o007, 0o070
_umask_lock = Lock()


@contextmanager
def replacing(
    path: str | os.PathLike[str], made_from: Iterable[str | os.PathLike[str]] = ()
) -> Iterator[BinaryIO]:
    """Open a new binary file, which replaces `path` when the block ends without an error.

    `path` may be a URL. Until the block ends, `path` is unchanged. After a power failure it is the
    old or the new file, never a part of one. A symbolic link is followed, and the file that it
    names is replaced. The new file keeps the permissions of the old one, and its owner if the
    system allows that; without an old file the umask applies. The new file can be read only by
    users who may read all files in `made_from`. Until the block ends, only its owner may read it.
    An OSError names `path`.
    """
    if is_url(path):
        with uploading(os.fspath(path)) as file:
            yield file
        return
    target = Path(os.path.realpath(path))
    _check_place(path, target)
    # The name is chosen before the file is created, because a signal may arrive immediately after.
    fresh = _fresh(target)
    try:
        # Only the owner may read the new file before `_set_permissions`.
        with open(fresh, "x+b", opener=partial(os.open, mode=0o600)) as file:
            yield file
            _set_permissions(target, file.fileno(), list(made_from))
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, target)
    except BaseException as error:
        with uninterrupted(), suppress(OSError):
            os.unlink(fresh)
        if isinstance(error, OSError) and error.filename in (None, str(fresh)):
            raise naming(error, path) from None
        raise
    _sync_folder(target.parent)


@contextmanager
def unnamed() -> Iterator[BinaryIO]:
    """Open a new binary file without a name in the folder for temporary files. The system removes
    it when it is closed and no longer mapped, even after a crash. An OSError names the folder."""
    try:
        with tempfile.TemporaryFile() as file:
            yield file
    except OSError as error:
        if error.filename is None:
            raise naming(error, tempfile.gettempdir()) from None
        raise


def naming(error: OSError, path: str | os.PathLike[str]) -> OSError:
    """Return the same error with `path` as its file."""
    if error.errno is None:
        text = str(error)
        return error if os.fspath(path) in text else type(error)(f"{os.fspath(path)}: {text}")
    return type(error)(error.errno, error.strerror, os.fspath(path))


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Check that `replacing` can create a file at `path`, and raise an OSError if not. Callers use
    it before long computations."""
    if is_url(path):
        # This raises an error if fsspec does not support the URL.
        located(os.fspath(path))
        return
    target = Path(os.path.realpath(path))
    _check_place(path, target)
    try:
        tempfile.TemporaryFile(dir=target.parent).close()
        # The name of the temporary file may be too long for the file system.
        with suppress(FileNotFoundError):
            os.stat(_fresh(target))
    except OSError as error:
        raise naming(error, path) from None


def descriptor_of(path: str | os.PathLike[str]) -> int | None:
    """Return the descriptor of the open file that a name such as /dev/stdout or /dev/fd/3 stands
    for."""
    path = os.path.abspath(path)
    # The last link, from the descriptor to the open file, is not followed.
    for _ in range(_MOST_LINKS):
        if found := _OPEN_FILE.fullmatch(path):
            return int(found[1])
        if not os.path.islink(path):
            break
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
    return None


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Return whether `path` is a device, a pipe or an open file. These are written to directly and
    never replaced."""
    is_special = os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
    return is_special or descriptor_of(path) is not None


def _check_place(path: str | os.PathLike[str], target: Path) -> None:
    """Raise an OSError if `target` is a directory or a stream, or if its folder does not exist."""
    if not os.fspath(path):
        raise FileNotFoundError("The name of the output file is empty. Name one.")
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a directory. Name a file in it: {Path(path, 'FILE')}")
    folder = target.parent if os.path.basename(path) else target
    if not folder.is_dir():
        raise FileNotFoundError(
            f"{path}: there is no folder {folder}. Make it first: mkdir -p {folder}"
        )
    if is_stream(path):
        raise OSError(f"{path} is not a regular file, which could be replaced. Name one.")


def _fresh(target: Path) -> Path:
    """Return a random name for the new file, in the folder of the target."""
    return target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")


def _set_permissions(target: Path, descriptor: int, made_from: list[Any]) -> None:
    """Set the permissions of a new file. They are those of the file that it replaces, if there is
    one, without any permissions that the files in `made_from` lack."""
    status = None
    with suppress(OSError):
        status = os.stat(target)
    if status is not None:
        for owner in (status.st_uid, -1), (-1, status.st_gid):
            with suppress(OSError):
                os.fchown(descriptor, *owner)
    # The new file gets the group of the files in `made_from`, if they have one common group and the
    # user is a member of it.
    statuses = list(_statuses(made_from))
    groups = {each.st_gid for each in statuses}
    if len(groups) == 1:
        with suppress(OSError):
            os.fchown(descriptor, -1, groups.pop())
    before = None if status is None else stat.S_IMODE(status.st_mode)
    # File systems without permissions refuse this.
    with suppress(OSError):
        mode = _private_mode(descriptor, statuses, before)
        # A remote file may require a password, so only the owner may read a file made from one.
        os.fchmod(descriptor, mode & 0o600 if any(map(is_url, made_from)) else mode)


def _private_mode(descriptor: int, statuses: Iterable[os.stat_result], before: int | None) -> int:
    """Return permissions for an open file that let only those users read it who may read all files
    with these statuses. `before` are the permissions without this restriction; None means those
    that the umask leaves."""
    if before is None:
        # The umask can be read only by setting it. Files that other threads create meanwhile can be
        # accessed by their owner only.
        with _umask_lock:
            mask = os.umask(0o077)
            os.umask(mask)
        before = 0o666 & ~mask
    mode, group = before, os.fstat(descriptor).st_gid
    for status in statuses:
        allowed = stat.S_IMODE(status.st_mode) | 0o600
        if status.st_gid != group:
            # Members of the new file's group have the permissions of others on the source.
            allowed &= ~_GROUP | (allowed & _OTHERS) << 3
            # Members of the source's group are others for the new file.
            allowed &= ~_OTHERS | (stat.S_IMODE(status.st_mode) & _GROUP) >> 3
        mode &= allowed | ~0o777
    return mode


def _statuses(paths: Iterable[Any]) -> Iterable[os.stat_result]:
    for path in paths:
        with suppress(OSError, ValueError):
            yield os.stat(path)


def _sync_folder(folder: Path) -> None:
    """Write the folder to disk, so that the new name survives a power failure. File systems that do
    not support this are ignored."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
