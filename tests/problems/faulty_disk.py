"""Writing that is counted, and fails or takes the process with it at a chosen operation.

For a process of its own (see faults.py): `install` replaces the functions of `os` and `io` by which
Python code writes to files, for good. What would get past them is refused, as far as Python tells.
"""

import builtins
import errno
import io
import os
import signal
import sys
import threading

NEED_SPACE = {"create", "write", "truncate", "fsync", "replace", "rename", "link", "mkdir"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_REAL = {name: getattr(os, name) for name in ("open", "write", "fsync", "ftruncate", "fstat")}
_PLAIN = ("replace", "rename", "link", "unlink", "remove", "mkdir", "rmdir", "truncate", "close")
_REFUSED = ("pwrite", "writev", "pwritev", "sendfile", "copy_file_range")
_AUDITED = {"os.rename", "os.remove", "os.link", "os.truncate", "os.mkdir", "os.rmdir"}


class Disk:
    """Counts operations, and strikes at one of them.

    Parameters
    ----------
    kind : str
        "kill": the process is killed right before the operation. "power": so is the machine, what
        was not synchronised is lost; also right after the end. "full": from the operation on there
        is no space left. With " amid", a write is half done before.
    at : int
        Which operation, counted from 1.
    """

    def __init__(self, kind, at):
        self.kind, _, self.amid = kind.partition(" ")
        self.at = at
        self.operations = []
        self.full = False
        self.lock = threading.RLock()
        self.own = threading.local()
        self.synchronised = {}  # bytes of each file, by device and inode
        self.pending = {}  # descriptors of files with more than that

    def operation(self, name, call, half=None):
        """Make the call, if the disk does not strike instead; `half` of it before, if amid."""
        with self.lock:
            self.operations.append(name)
            strikes = len(self.operations) == self.at and (half is not None or not self.amid)
            if strikes and self.kind != "full":
                if self.amid:
                    self.within(half)
                self.die()
            if self.full or (strikes and not self.amid):
                self.full = True
                if name in NEED_SPACE:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self.full |= strikes
            return self.within(half if strikes and self.amid else call)

    def within(self, call):
        """Make a call that the audit must let pass."""
        self.own.call = True
        try:
            return call()
        finally:
            self.own.call = False

    def write(self, descriptor, data, write):
        data = memoryview(data).cast("B")
        self.note(descriptor)
        half = data[: len(data) // 2]
        return self.operation("write", lambda: write(data), lambda: write(half))

    def note(self, descriptor):
        """Remember a file that is written to, whatever becomes of its name."""
        status = _REAL["fstat"](descriptor)
        key = status.st_dev, status.st_ino
        if key not in self.pending:
            self.pending[key] = os.dup(descriptor)

    def fsync(self, descriptor):
        number = descriptor if isinstance(descriptor, int) else descriptor.fileno()
        self.operation("fsync", lambda: _REAL["fsync"](number))
        status = _REAL["fstat"](number)
        self.synchronised[status.st_dev, status.st_ino] = status.st_size
        self.pending.pop((status.st_dev, status.st_ino), None)

    def lose_what_is_pending(self):
        for key, descriptor in self.pending.items():
            self.within(
                lambda d=descriptor, k=key: _REAL["ftruncate"](d, self.synchronised.get(k, 0))
            )

    def die(self):
        if self.kind == "power":
            self.lose_what_is_pending()
        os.kill(os.getpid(), signal.SIGKILL)

    def audit(self, event, args):
        """Refuse what would not be counted."""
        if getattr(self.own, "call", False):
            return
        opens = event == "open" and isinstance(args[2], int) and args[2] & _WRITING
        maps = event == "mmap.__new__" and args[2] != 1  # ACCESS_READ
        if opens or maps or event in _AUDITED:
            raise RuntimeError(f"{event}{args} gets past the faulty disk")


def install(disk):
    """Send all writing of this process over the disk."""
    sys.addaudithook(disk.audit)
    for name in _PLAIN:
        setattr(os, name, _counted(disk, name, getattr(os, name)))
    for name in _REFUSED:
        setattr(os, name, _refused(name))
    os.open = lambda path, flags, *rest, **named: disk.operation(
        "create" if flags & os.O_CREAT else "open",
        lambda: _REAL["open"](path, flags, *rest, **named),
    )
    os.write = lambda descriptor, data: disk.write(
        descriptor, data, lambda part: _REAL["write"](descriptor, part)
    )
    os.fsync = os.fdatasync = disk.fsync
    os.ftruncate = lambda descriptor, length: disk.operation(
        "truncate", lambda: _REAL["ftruncate"](descriptor, length)
    )
    builtins.open = io.open = _opener(disk, io.open)


def _counted(disk, name, call):
    return lambda *args, **named: disk.operation(name, lambda: call(*args, **named))


def _refused(name):
    def refuse(*args, **named):
        raise RuntimeError(f"os.{name} gets past the faulty disk")

    return refuse


def _opener(disk, real_open):
    """`open`, of files that are written to by way of the disk."""

    def open_file(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, **named):
        if not set(mode) & set("wax+"):
            return real_open(file, mode, buffering, encoding, errors, newline, **named)
        raw = _raw_file(disk, file, mode, named)
        if buffering == 0:
            return raw
        buffered = (io.BufferedRandom if "+" in mode else io.BufferedWriter)(raw)
        if "b" in mode:
            return buffered
        return io.TextIOWrapper(buffered, encoding, errors, newline, buffering == 1)

    return open_file


def _raw_file(disk, file, mode, named):
    mode = mode.replace("b", "").replace("t", "")
    if isinstance(file, int):
        return disk.within(lambda: _RawFile(disk, file, mode, **named))
    return disk.operation("create", lambda: _RawFile(disk, file, mode, **named))


class _RawFile(io.FileIO):
    def __init__(self, disk, *args, **named):
        self.disk = disk
        super().__init__(*args, **named)

    def write(self, data):
        return self.disk.write(self.fileno(), data, super().write)

    def truncate(self, size=None):
        return self.disk.operation("truncate", lambda: super(_RawFile, self).truncate(size))

    def close(self):
        if self.closed:
            return
        self.disk.operation("close", super().close)
