"""Permissions of files that are made from other files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from threading import Lock
from typing import Any

from sparsemargin.files.remote import is_url

_OTHERS, _GROUP = 0o007, 0o070
_lock = Lock()


def take_group(descriptor: int, made_from: Iterable[Any]) -> None:
    """Give a new file the group of the files in `made_from`, if they have one common group and the
    user is a member of it."""
    groups = {status.st_gid for status in _statuses(made_from)}
    if len(groups) == 1:
        with suppress(OSError):
            os.fchown(descriptor, -1, groups.pop())


def private_mode(descriptor: int, made_from: Iterable[Any], before: int | None) -> int:
    """Return permissions for an open file that let only those users read it who may read all files
    in `made_from`.

    `before` are the permissions without this restriction; None means those that the umask leaves. A
    file that is made from a remote file can be read by its owner only, because the store may
    require a password.
    """
    mode = 0o666 & ~_umask() if before is None else before
    made_from = list(made_from)
    group = os.fstat(descriptor).st_gid
    for status in _statuses(made_from):
        allowed = stat.S_IMODE(status.st_mode) | 0o600
        if status.st_gid != group:
            # Members of the new file's group have the permissions of others on the source.
            allowed &= ~_GROUP | (allowed & _OTHERS) << 3
            # Members of the source's group are others for the new file.
            allowed &= ~_OTHERS | (stat.S_IMODE(status.st_mode) & _GROUP) >> 3
        mode &= allowed | ~0o777
    return mode & 0o600 if any(map(is_url, made_from)) else mode


def _statuses(paths: Iterable[Any]) -> Iterable[os.stat_result]:
    for path in paths:
        with suppress(OSError, ValueError):
            yield os.stat(path)


def _umask() -> int:
    """Return the umask, which can be read only by setting it."""
    with _lock:
        # Files that other threads create meanwhile can be accessed by their owner only.
        mask = os.umask(0o077)
        os.umask(mask)
    return mask
