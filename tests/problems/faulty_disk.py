"""Writing that is counted, and that is interrupted by a kill, a power failure or a full disk.

Everything runs in this process. After the process is "killed", nothing that it writes reaches the
disk, and each attempt raises `Killed`. `strike_everywhere` tests faults at all operations.
"""

import errno
import io
import os
import re
import shutil
import threading
from collections.abc import Callable
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import NamedTuple
from unittest import mock

from depth import ALL

KINDS = ["kill", "kill amid", "power", "power amid", "full", "full amid"]
_NEED_SPACE = {"create", "write", "fsync", "replace"}
_open_descriptor, _open_file = os.open, io.open


class Killed(BaseException):
    """The simulated process has been killed."""


class Disk:
    """Counts operations, and causes a fault at one of them, counted from 1.

    "kill": the process is killed just before the operation. "power": the machine loses power, and
    data that was not synchronised is lost; also just after the last operation. "full": from the
    operation on, there is no space left. With " amid", half of a write is done before the fault.
    """

    def __init__(self, kind="kill", at=0):
        self.kind, _, self.amid = kind.partition(" ")
        self.at = at
        self.operations = []
        self.killed = self.full = False
        self.lock = threading.RLock()
        self.synchronised = {}  # bytes of each file, by device and inode
        self.pending = {}  # descriptors of files with data that is not synchronised

    @contextmanager
    def installed(self):
        """Redirect all writing of this process to the disk."""
        with ExitStack() as patches:
            calls = {
                **{f"os.{name}": self._counted(name) for name in ("replace", "unlink", "fsync")},
                "os.open": self._open_descriptor,
                **dict.fromkeys(["io.open", "builtins.open"], self._open),
            }
            for name, call in calls.items():
                patches.enter_context(mock.patch(name, call))
            with suppress(Killed):
                yield self
        if self.kind == "power":
            for key, descriptor in self.pending.items():
                os.ftruncate(descriptor, self.synchronised.get(key, 0))
        for descriptor in self.pending.values():
            os.close(descriptor)

    def operation(self, name, call, half=None):
        """Make the call, unless the fault occurs; if it is amid, call `half` before."""
        with self.lock:
            if self.killed:
                raise Killed
            self.operations.append(name)
            strikes = len(self.operations) == self.at and (half is not None or not self.amid)
            if strikes and self.kind != "full":
                if self.amid:
                    half()
                self.killed = True
                raise Killed
            if (self.full or (strikes and not self.amid)) and name in _NEED_SPACE:
                self.full = True
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self.full |= strikes
            return (half if strikes and self.amid else call)()

    def write(self, descriptor, data, write):
        data = memoryview(data).cast("B")
        key = _key(descriptor)
        if key not in self.pending:
            self.pending[key] = os.dup(descriptor)
        half = data[: len(data) // 2]
        return self.operation("write", lambda: write(data), lambda: write(half))

    def _counted(self, name):
        call = self._fsync if name == "fsync" else getattr(os, name)
        return lambda *args, **named: self.operation(name, lambda: call(*args, **named))

    def _open_descriptor(self, path, flags, *rest, **named):
        name = "create" if flags & os.O_CREAT else "open"
        return self.operation(name, lambda: _open_descriptor(path, flags, *rest, **named))

    def _fsync(self, descriptor):
        key = _key(descriptor)
        self.synchronised[key] = os.fstat(descriptor).st_size
        if key in self.pending:
            os.close(self.pending.pop(key))

    def _open(self, file, mode="r", *rest, **named):
        if not set(mode) & set("wax+"):
            return _open_file(file, mode, *rest, **named)
        assert "b" in mode
        create = partial(_RawFile, self, file, mode.replace("b", ""))
        raw = create() if isinstance(file, int) else self.operation("create", create)
        return (io.BufferedRandom if "+" in mode else io.BufferedWriter)(raw)


def _key(descriptor):
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


class _RawFile(io.FileIO):
    def __init__(self, disk, file, mode):
        self.disk = disk
        super().__init__(file, mode)

    def write(self, data):
        return self.disk.write(self.fileno(), data, super().write)


def run(write, folder, kind="kill", at=0):
    """Write into the folder with a fault; return the disk, and the OSError or None."""
    disk, error = Disk(kind, at), None
    with disk.installed():
        try:
            write(folder)
        except OSError as raised:
            # Without its frames: if frames with generators are collected later, they block a new
            # thread.
            error = OSError(raised.errno, raised.strerror, raised.filename)
    return disk, error


class Scenario(NamedTuple):
    """A function that prepares a folder, and one that replaces files with reproducible content."""

    prepare: Callable
    write: Callable
    names: list  # of the files that `write` writes, in its order


def strike_everywhere(scenario, kind, root):
    """Run a scenario with a fault at its first operation, at its second, and so on.

    After each run every file is bitwise the old or the new one. After an error the last file is the
    old one, no other files remain, and the error names a file. The remains of a killed process do
    not affect a second run; without an error everything is new. Returns the operations of a run
    without faults, and the faults that changed their run.
    """
    before, done, struck = root / "before", root / "done", set()
    before.mkdir(parents=True)
    scenario.prepare(before)
    shutil.copytree(before, done, symlinks=True)
    operations = run(scenario.write, done)[0].operations
    old, new = contents(before), contents(done)
    for at in places_among(len(operations)):
        folder = root / str(at)
        shutil.copytree(before, folder, symlinks=True)
        disk, error = run(scenario.write, folder, kind, at)
        left = contents(folder)
        for name in new:
            assert left.get(name) in (old.get(name), new[name]), name
        if disk.killed:
            scenario.write(folder)
            there = contents(folder)
            assert {name: there[name] for name in new} == new
            assert all(re.fullmatch(r"\..*\.tmp", name) for name in there.keys() - new)
        elif error is not None:
            assert error.errno == errno.ENOSPC, error
            assert error.filename in [str(folder / name) for name in scenario.names], error
            assert left.get(scenario.names[-1]) == old.get(scenario.names[-1])
            assert left.keys() <= new.keys()
        else:
            assert left == new
        if disk.killed or error is not None:
            struck.add(at)
    return operations, struck


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def places_among(n):
    """The numbers 1 to n + 1; if these are many, all at both ends and some in between."""
    return (
        range(1, n + 2) if ALL or n < 16 else [1, 2, 3, *range(4, n - 5, 6), *range(n - 5, n + 2)]
    )
