"""Lines that tell how far learning from files has come."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, TextIO

from sparsemargin.io.stream import Moment

# Seconds between two lines.
_LONGEST_SILENCE = 5.0

# A fit that has no end fills no disk: after these many epochs lines are that many seconds apart.
_EVERY_EPOCH = 10
_SHORTEST_SILENCE = 0.5

_COLUMNS = {"rows": 12, "epoch": 6, "features": 12, "corrections": 12, "error %": 8, "MB/s": 8}


def one_step_ahead(moment: Moment) -> str:
    """Share of this epoch's rows, in %, that were predicted wrongly just before they were learned
    from; "-" where that is not known."""
    if moment.mistakes is None or not moment.rows:
        return "-"
    return f"{100 * moment.mistakes / moment.rows:.3f}"


def speed(moment: Moment) -> float:
    """MB a second, of text, since learning began."""
    return bytes_read(moment) / 1e6 / max(moment.seconds, 1e-9)


def bytes_read(moment: Moment) -> int:
    """Bytes of the files that have been learned from, once for each epoch."""
    return moment.consumed + (moment.epoch - 1) * (moment.size or 0)


class Lines:
    """A report that prints a line whenever the rows have doubled, at an epoch's first block, and at
    the latest after some seconds; after ten epochs not more than twice a second. Once a line can't
    be written there are no more: learning goes on."""

    def __init__(self, out: TextIO | None = None) -> None:
        self.out: TextIO | None = sys.stderr if out is None else out
        self.epoch = self.due = 0
        self.told = 0.0

    def __call__(self, moment: Moment) -> None:
        silence = moment.seconds - self.told
        is_early = moment.rows < self.due and silence < _LONGEST_SILENCE
        is_late_epoch = moment.epoch > _EVERY_EPOCH and silence < _SHORTEST_SILENCE
        if self.out is None or is_late_epoch or (moment.epoch == self.epoch and is_early):
            return
        lines: list[Iterable[Any]] = [] if self.epoch else [_COLUMNS]
        self.epoch, self.due, self.told = moment.epoch, 2 * moment.rows, moment.seconds
        lines.append((
            f"{moment.rows:,}", moment.epoch, f"{moment.features:,}", f"{moment.corrections:,}",
            one_step_ahead(moment), f"{speed(moment):.0f}",
        ))  # fmt: skip
        try:
            for cells in lines:
                padded = map("{:>{}}".format, cells, _COLUMNS.values())
                print(*padded, file=self.out, flush=True)
        except OSError:
            self.out = None
