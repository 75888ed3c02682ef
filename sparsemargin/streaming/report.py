"""Progress of training on files, and its display as lines of text."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TextIO

# Largest number of seconds between two lines.
_LONGEST_SILENCE = 5.0

# After this many epochs, lines are at least `_SHORTEST_SILENCE` seconds apart, so that the log of a
# fit without an end stays small.
_EVERY_EPOCH = 10
_SHORTEST_SILENCE = 0.5

# "error %" is the error on new rows, in the first epoch; "training %" that of later epochs, whose
# rows have been trained on before.
_COLUMNS = {
    "rows": 12, "epoch": 6, "features": 12, "corrections": 12, "error %": 8, "training %": 11,
    "MB/s": 8,
}  # fmt: skip


class Interruption(UserWarning):
    """Warning that Ctrl-C has ended training on files. The model was trained on the rows before."""


@dataclass(frozen=True)
class Progress:
    """Progress of a training run."""

    epoch: int  # current epoch, starting from 1
    consumed: int  # bytes read in this epoch
    size: int | None  # bytes of all files; None if unknown
    rows: int  # rows read in this epoch so far
    features: int  # features found so far
    corrections: int  # corrections in all epochs, without those for the pending rows
    mistakes: int | None  # progressive validation mistakes in this epoch; None if not counted
    seconds: float  # seconds since training began
    # Rows of this epoch whose mistakes are not counted, because a prior was computed from them.
    uncounted: int = 0
    pending: int = 0  # rows of this epoch whose corrections and mistakes are not known yet


def progressive_error(progress: Progress) -> float | None:
    """Return the progressive validation error of this epoch, the share of rows that were predicted
    wrongly just before the model was trained on them; None if it is not known."""
    n_rows = progress.rows - progress.uncounted - progress.pending
    return None if progress.mistakes is None or n_rows <= 0 else progress.mistakes / n_rows


def shown_error(progress: Progress) -> str:
    """Return the progressive validation error in %, "-" if it is not known."""
    error = progressive_error(progress)
    return "-" if error is None else f"{100 * error:.3f}"


def speed(progress: Progress) -> float:
    """Return the training speed in MB of text per second since training began."""
    return bytes_read(progress) / 1e6 / max(progress.seconds, 1e-9)


def bytes_read(progress: Progress) -> int:
    """Return the number of bytes read in all epochs together."""
    return progress.consumed + (progress.epoch - 1) * (progress.size or 0)


class ProgressLines:
    """A report that prints a line at the first block of an epoch, when the number of rows has
    doubled, and after at most 5 seconds; after ten epochs, at most two lines per second. While rows
    are pending, there are lines only after 5 seconds. If a line can't be written, training
    continues without further lines."""

    def __init__(self, out: TextIO | None = None) -> None:
        self.out: TextIO | None = sys.stderr if out is None else out
        self.epoch = self.due = 0
        self.printed_at = 0.0

    def __call__(self, progress: Progress) -> None:
        silence = progress.seconds - self.printed_at
        is_early = progress.epoch == self.epoch and progress.rows < self.due
        waits = (is_early or progress.pending) and silence < _LONGEST_SILENCE
        is_late_epoch = progress.epoch > _EVERY_EPOCH and silence < _SHORTEST_SILENCE
        if self.out is None or is_late_epoch or waits:
            return
        lines: list[Iterable[Any]] = [] if self.epoch else [_COLUMNS]
        self.epoch, self.due = progress.epoch, 0 if progress.pending else 2 * progress.rows
        self.printed_at = progress.seconds
        errors = [shown_error(progress), "-"]
        if progress.epoch > 1:
            errors.reverse()
        lines.append((
            f"{progress.rows:,}", progress.epoch, f"{progress.features:,}",
            "-" if progress.pending else f"{progress.corrections:,}", *errors,
            f"{speed(progress):.0f}",
        ))  # fmt: skip
        try:
            for cells in lines:
                padded = map("{:>{}}".format, cells, _COLUMNS.values())
                print(*padded, file=self.out, flush=True)
        except OSError:
            self.out = None
