"""What Python does behind a call, by its audit events."""

from __future__ import annotations

import os
import sys
from typing import Any

# Reading a frame or an attribute runs nothing; neither does numpy's asking for a type, nor mapping
# what was opened.
_HARMLESS = {
    "object.__getattr__", "sys._getframe", "sys._getframemodulename", "builtins.id", "mmap.__new__"
}  # fmt: skip
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Watch:
    """A context manager, within which nothing but reading one file is expected.

    Parameters
    ----------
    path : str
        The file.

    Attributes
    ----------
    done : list of str
        What else was done.
    """

    def __init__(self, path: str):
        self.path, self.on = path, False
        self.done: list[str] = []
        sys.addaudithook(self._hear)  # there is no taking it back

    def __enter__(self) -> Watch:
        self.done.clear()
        self.on = True
        return self

    def __exit__(self, *_: Any) -> None:
        self.on = False

    def _hear(self, event: str, args: tuple) -> None:
        if self.on and event not in _HARMLESS and not self._reads_the_file(event, args):
            self.done.append(f"{event}{args!r}"[:300])

    def _reads_the_file(self, event: str, args: tuple) -> bool:
        if event != "open":
            return False
        path, _, flags = args
        return not flags & _WRITING and str(path) == self.path
