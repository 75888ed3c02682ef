"""The counts of rows, corrections and mistakes in a fit over shards, and their report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from sparsemargin.distributed.mixing import Update
from sparsemargin.distributed.schema import Part, Survey
from sparsemargin.streaming.report import Progress


def added(mistakes: int | None, more: int | None) -> int | None:
    """Return the sum, or None if either is unknown."""
    return None if mistakes is None or more is None else mistakes + more


class Tally:
    """The counts of an epoch.

    The rows of a shard are counted when training on them is complete. Their corrections and
    mistakes are known later, when all shards have been mixed. Until then the rows are pending.

    Attributes
    ----------
    latest : Progress
        The progress that was reported last.
    """

    def __init__(
        self, surveys: Sequence[Survey], n_features: int, report: Callable[[Progress], None] | None
    ) -> None:
        self.n_rows = [survey.n_rows for survey in surveys]
        self.n_bytes = sum(survey.n_bytes for survey in surveys)
        self.n_features, self.report = n_features, report
        self.started = time.perf_counter()

    def resume(self, ended: Sequence[Progress]) -> None:
        """Report epochs of an earlier run, and continue its clock."""
        if ended:
            self.started -= ended[-1].seconds
        if self.report is not None:
            for progress in ended:
                self.report(progress)

    def begin(self, epoch: int, corrections: int, parts: Iterable[Part]) -> None:
        """Begin an epoch. `corrections` is the number of corrections in all earlier epochs."""
        self.epoch, self.corrections = epoch, corrections
        self.mistakes: int | None = 0
        self.read = self.counted = 0.0
        self.passes = sum((part.stop - part.start) / part.of for part in parts)

    def add_rows(self, s: int, part: Part, n_trained: int) -> None:
        """Add the rows of shard `s` in a part that uses `n_trained` shards."""
        first, stop = part.bounds(self.n_rows[s])
        # In a ring, `n_trained` groups of vectors visit each shard, whose rows count only once.
        self.read += (stop - first) * len(self.n_rows) / (n_trained * self.passes)
        self._tell()

    def add_updates(self, updates: Iterable[Update]) -> None:
        """Add the corrections and mistakes for all rows that are pending."""
        for update in updates:
            self.corrections += int(update.corrections.sum())
            self.mistakes = added(self.mistakes, update.mistakes)
        self.counted = self.read
        self._tell()

    def _tell(self) -> None:
        rows = round(self.read)
        self.latest = Progress(
            self.epoch, round(self.read / sum(self.n_rows) * self.n_bytes), self.n_bytes, rows,
            self.n_features, self.corrections, self.mistakes, time.perf_counter() - self.started,
            pending=rows - round(self.counted),
        )  # fmt: skip
        if self.report is not None:
            self.report(self.latest)
