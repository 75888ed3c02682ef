"""Passes over rows for the linear space."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cached_property, partial
from itertools import pairwise

import numpy as np

from sparsemargin._engine import kernels
from sparsemargin._engine.first_order.storage import TILE_LABELS
from sparsemargin._engine.first_order.trials import set_bars
from sparsemargin._engine.fitting.certificate import LinearCertificate
from sparsemargin._engine.fitting.task import Loop
from sparsemargin._engine.fitting.threads import run_together, threads_worth
from sparsemargin._engine.kernel.gram_loop import GramLoop
from sparsemargin._engine.rows.csr import first_bad_row

# Products of labels side by side are made by vectors, so many times as fast.
SIDE_BY_SIDE = 8


# What a correction costs, in products for each of a row's entries.
CORRECTION = 30


class LinearLoop(Loop):
    """The loop of the first-order rules, which a linear space learns by."""

    def __init__(self, space, rule, task):
        super().__init__(space, task)
        self.rule = rule
        self.n_mistakes = 0
        self.repeats = space.n_labels == 1
        if space.n_labels > TILE_LABELS:
            self.span *= SIDE_BY_SIDE
        # Which rows are known to have no column twice: looked at once, where it matters.
        self.distinct = np.zeros(len(task.codes), dtype=np.uint8) if task.check else None
        self.train = kernels.for_state(task.rows, space).train
        self.place = None if space.log is None else np.full(len(task.codes), -1, dtype=np.int64)
        n_threads = 1 if space.log is not None else threads_worth(task.n_threads, self.products)
        self.n_threads = max(1, min(n_threads, space.n_labels))

    @cached_property
    def gram_suits(self):
        return GramLoop.suits(self.space, self.task)

    def _run_labels(self, labels, order, seed, start, stop, n_passes, trials, check):
        space, task, rows = self.space, self.task, self.task.rows
        return self.train(
            space, self.rule, space.t, rows.data, rows.indices, rows.indptr, task.codes,
            *(task.positives or (None, None)), task.weights, task.class_weight, order, seed or 0,
            seed is not None, start, stop, n_passes, *labels, trials, check, self.distinct,
            self.place,
        )  # fmt: skip

    @property
    def mistakes(self):
        """Rows whose class was predicted wrongly just before they were learned from; None where
        the labels are split over threads, none of which sees all outputs."""
        counted = self.n_threads == 1 and self.task.positives is None
        return self.n_mistakes if counted else None

    def refuse_repeats(self):
        """See to it, before rows are measured that no trial has had to, that none has a column
        twice."""
        rows = self.task.rows
        if self.distinct is not None:
            status, row = first_bad_row(rows, False)
            if status != kernels.OK:
                raise kernels.BadRow(status, row)
            self.distinct = None

    def certificate(self):
        """Margins of the vectors as they are."""
        self.refuse_repeats()
        return LinearCertificate(self.space, self.rule, self.task)

    def run(self, order, seed, stop, n_passes, check):
        if n_passes == 1:
            return super().run(order, seed, stop, 1, check)
        learning, passes, converged = self._call(order, seed, 0, stop, n_passes, check)
        return learning, passes if learning else passes + 1, converged

    def run_span(self, order, start, stop, check):
        return self._call(order, None, start, stop, 1, check)[0]

    def _call(self, order, seed, start, stop, n_passes, check):
        trials = self.space.trials
        args = order, seed, start, stop, n_passes, trials, check
        slices = [(0, self.space.n_labels)]
        if self.n_threads > 1:
            slices = cut_labels(self.space, self.n_threads)
        calls = [partial(self._run_labels, labels, *args) for labels in slices]
        ends = run_together(calls, len(slices))
        self.space.count_trials(max(end[2] for end in ends))
        self.n_mistakes += ends[0][5]
        # Of threads that stop at different rows, the one that stops first tells.
        for status, row, *_ in sorted(ends, key=lambda end: end[2]):
            if status not in (kernels.OK, kernels.ALL_STOPPED):
                raise kernels.BadRow(status, row)
        learning = any(end[0] == kernels.OK for end in ends)
        return learning, max(end[3] for end in ends), all(end[4] for end in ends)


def cut_labels(space, n_threads):
    """Labels from and to, for each thread: whole vectors, or whole tiles where there are, and as
    much work for one as for another, if labels go on being corrected as often as so far."""
    least = TILE_LABELS if space.is_tiled else 8 if space.n_labels > TILE_LABELS else 1
    corrected = space.per_label("corrections") / max(space.trials, 1)
    work = np.cumsum(1.0 + CORRECTION * corrected)
    ends = np.append(np.arange(least, space.n_labels, least), space.n_labels)
    shares = work[-1] * np.arange(1, n_threads) / n_threads
    cuts = ends[np.abs(work[ends - 1] - shares[:, np.newaxis]).argmin(axis=1)]
    return list(pairwise(np.unique([0, *cuts, space.n_labels]).tolist()))


@contextmanager
def linear_loop(space, rule, task):
    """The loop over a task: every label learns, rows have their soft-margin coordinates."""
    space.resume(task.max_corrections)
    set_bars(space, rule)
    slack, multipliers = task.kept or (None, None)
    if space.slack:
        space.open_slack(len(task.codes), slack)
    if rule.keeps_multipliers:
        space.open_multipliers(len(task.codes), multipliers)
    try:
        yield LinearLoop(space, rule, task)
    finally:
        task.kept = space.close_slack(), space.close_multipliers()
