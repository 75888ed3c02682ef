"""Passes over rows for the linear space and for the joint machine of many classes."""

from __future__ import annotations

from functools import cached_property, partial
from itertools import pairwise

import numpy as np

from sparsemargin._engine.first_order.gram_loop import GramLoop
from sparsemargin._engine.first_order.trials import Job
from sparsemargin._engine.fitting.certificate import JointCertificate, LinearCertificate
from sparsemargin._engine.fitting.protocol import SpanLoop
from sparsemargin._engine.fitting.threads import run_together, threads_worth, uninterrupted
from sparsemargin._engine.rows.csr import ALL_STOPPED, OK, BadRow
from sparsemargin._engine.rows.parts import summed

# Up to so many labels are scored one beside the other without vectors.
FEW_LABELS = 16

# Products of labels side by side are made by vectors, so many times as fast.
SIDE_BY_SIDE = 8

# What a correction costs, in products for each of a row's entries.
CORRECTION = 30


class LinearLoop(SpanLoop):
    """The loop of the first-order rules, which a linear space learns by; labels are split over
    threads."""

    certificate_type = LinearCertificate

    def __init__(self, space, rule, task):
        super().__init__(space, task)
        self.rule, self.job = rule, None  # made when it is first run
        self.n_mistakes = 0
        self.repeats = space.n_labels == 1
        if space.n_labels > FEW_LABELS:
            self.span *= SIDE_BY_SIDE
        n_threads = 1 if space.log is not None else threads_worth(task.n_threads, self.products)
        self.n_threads = max(1, min(n_threads, space.n_labels))

    @cached_property
    def by_products(self):
        return GramLoop if GramLoop.suits(self.space, self.task) else None

    @property
    def mistakes(self):
        """Rows whose class was predicted wrongly just before they were learned from; None where
        the labels are split over threads, none of which sees all outputs."""
        counted = self.n_threads == 1 and self.task.positives is None
        return self.n_mistakes if counted else None

    def sum_repeats(self):
        """Add up repeated columns before the rows themselves are measured. What has been learned
        stays."""
        if self.task.distinct:
            return
        rows, self.task.distinct = summed(self.task.rows), True
        if rows is not self.task.rows:
            self.task.rows, self.job = rows, None

    def certificate(self):
        """Margins of the vectors as they are."""
        self.sum_repeats()
        return self.certificate_type(self.space, self.rule, self.task)

    def run(self, order, seed, stop, n_passes, check):
        if n_passes == 1:
            return super().run(order, seed, stop, 1, check)
        return self._call(order, seed, 0, stop, n_passes, check)

    def run_span(self, order, start, stop, end, check):
        return self._call(order, None, start, stop, 1, check)[0]

    def _call(self, order, seed, start, stop, n_passes, check):
        trials, n_labels = self.space.trials, len(self.space.labels)
        slices = [(0, n_labels)]
        if self.n_threads > 1:
            slices = cut_labels(self.space, self.n_threads)
        if self.job is None:
            self.job = Job(self.space, self.rule, self.task.rows, self.task)
        calls = [
            partial(self.job.run, order, seed, (start, stop), n_passes, labels, trials, check)
            for labels in slices
        ]
        # All labels have then made the same trials, which are counted.
        with uninterrupted():
            ends = run_together(calls, len(slices))
            self.space.count_trials(max(end.trials for end in ends))
        self.n_mistakes += ends[0].mistakes
        # Of threads that stop at different rows, the one that stops first tells.
        for end in sorted(ends, key=lambda end: end.trials):
            if end.status not in (OK, ALL_STOPPED):
                raise BadRow(end.status, end.row)
        learning = any(end.status == OK for end in ends)
        return learning, max(end.passes for end in ends), all(end.converged for end in ends)


class JointLoop(LinearLoop):
    """That of a joint machine, by one thread: every trial needs what the one before has left behind
    in all classes."""

    certificate_type = JointCertificate

    by_products = None

    def __init__(self, space, rule, task):
        super().__init__(space, rule, task)
        self.n_threads = 1


def cut_labels(space, n_threads):
    """Labels from and to, for each thread: whole vectors, and as much work for one as for another,
    if labels go on being corrected as often as so far."""
    least = 8 if space.n_labels > FEW_LABELS else 1
    corrected = space.per_label("corrections") / max(space.trials, 1)
    work = np.cumsum(1.0 + CORRECTION * corrected)
    ends = np.append(np.arange(least, space.n_labels, least), space.n_labels)
    shares = work[-1] * np.arange(1, n_threads) / n_threads
    cuts = ends[np.abs(work[ends - 1] - shares[:, np.newaxis]).argmin(axis=1)]
    return list(pairwise(np.unique([0, *cuts, space.n_labels]).tolist()))
