"""Memory over time: what a process holds when it has done so much."""

import os
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")


def resident(process: int) -> int:
    """Return the bytes that a process has in memory; 0 where the system doesn't tell, or it has
    ended."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


class Samples:
    """What a process held, after how much of its work."""

    def __init__(self, process: int):
        self._process = process
        self._done: list[int] = []
        self._bytes: list[int] = []

    def take(self, done: int) -> None:
        """Look again, once so much is done."""
        held = resident(self._process)
        if held:
            self._done.append(done)
            self._bytes.append(held)

    def summary(self) -> dict[str, float]:
        """Return the largest of the second and of the last tenth of the work, and of all, in bytes.

        In the first tenth the weights, and buffers of their final size, come to be.
        """
        tenth = self._done[-1] / 10
        pairs = list(zip(self._done, self._bytes, strict=True))
        return {
            "early_bytes": max(held for done, held in pairs if tenth <= done <= 2 * tenth),
            "late_bytes": max(held for done, held in pairs if done >= 9 * tenth),
            "peak_bytes": max(self._bytes),
        }
