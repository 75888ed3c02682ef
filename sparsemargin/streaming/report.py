"""How far learning from files has come, and lines that tell it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TextIO

# Seconds between two lines.
_LONGEST_SILENCE = 5.0

# A fit that has no end fills no disk: after these many epochs lines are that many seconds apart.
_EVERY_EPOCH = 10
_SHORTEST_SILENCE = 0.5

_COLUMNS = {"rows": 12, "epoch": 6, "features": 12, "corrections": 12, "error %": 8, "MB/s": 8}


class Interruption(UserWarning):
    """Ctrl-C has ended learning from files; what had been learned by then is kept."""


@dataclass(frozen=True)
class Progress:
    """How far learning has come."""

    epoch: int  # the one under way, from 1
    consumed: int  # bytes read in it
    size: int | None  # bytes of all files, where known
    rows: int  # of this epoch, by now
    features: int
    corrections: int  # of all epochs
    mistakes: int | None  # rows of this epoch predicted wrongly just before they were learned from
    seconds: float  # since learning began


def one_step_ahead(progress: Progress) -> str:
    """Share of this epoch's rows, in %, that were predicted wrongly just before they were learned
    from; "-" where that is not known."""
    if progress.mistakes is None or not progress.rows:
        return "-"
    return f"{100 * progress.mistakes / progress.rows:.3f}"


def speed(progress: Progress) -> float:
    """MB a second, of text, since learning began."""
    return bytes_read(progress) / 1e6 / max(progress.seconds, 1e-9)


def bytes_read(progress: Progress) -> int:
    """Bytes of the files that have been learned from, once for each epoch."""
    return progress.consumed + (progress.epoch - 1) * (progress.size or 0)


class Lines:
    """A report that prints a line whenever the rows have doubled, at an epoch's first block, and at
    the latest after some seconds; after ten epochs not more than twice a second. Once a line can't
    be written there are no more: learning goes on."""

    def __init__(self, out: TextIO | None = None) -> None:
        self.out: TextIO | None = sys.stderr if out is None else out
        self.epoch = self.due = 0
        self.told = 0.0

    def __call__(self, progress: Progress) -> None:
        silence = progress.seconds - self.told
        is_early = progress.rows < self.due and silence < _LONGEST_SILENCE
        is_late_epoch = progress.epoch > _EVERY_EPOCH and silence < _SHORTEST_SILENCE
        if self.out is None or is_late_epoch or (progress.epoch == self.epoch and is_early):
            return
        lines: list[Iterable[Any]] = [] if self.epoch else [_COLUMNS]
        self.epoch, self.due, self.told = progress.epoch, 2 * progress.rows, progress.seconds
        lines.append((
            f"{progress.rows:,}", progress.epoch, f"{progress.features:,}",
            f"{progress.corrections:,}", one_step_ahead(progress), f"{speed(progress):.0f}",
        ))  # fmt: skip
        try:
            for cells in lines:
                padded = map("{:>{}}".format, cells, _COLUMNS.values())
                print(*padded, file=self.out, flush=True)
        except OSError:
            self.out = None
