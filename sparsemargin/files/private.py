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
    """Give a new file the group of the files that it is made from, if that is one group and the
    user is a member of it."""
    groups = {status.st_gid for status in _statuses(made_from)}
    if len(groups) == 1:
        with suppress(OSError):
            os.fchown(descriptor, -1, groups.pop())


def private_mode(descriptor: int, made_from: Iterable[Any], before: int | None) -> int:
    """Return the permissions of an open file, so that nobody may read it who may not read all files
    that it is made from.

    `before` are the permissions that it has otherwise; None: those that the umask leaves. A file
    that is made from a remote one is for its owner only, as the store may ask for a password.
    """
    mode = 0o666 & ~_umask() if before is None else before
    made_from = list(made_from)
    group = os.fstat(descriptor).st_gid
    for status in _statuses(made_from):
        allowed = stat.S_IMODE(status.st_mode) | 0o600
        if status.st_gid != group:
            # The group of this file is among the others of that one.
            allowed &= ~_GROUP | (allowed & _OTHERS) << 3
            # Members of the group of that file are among the others of this one.
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
        # Files that other threads create meanwhile are for their owner only.
        mask = os.umask(0o077)
        os.umask(mask)
    return mask
