"""Epochs over rows for the linear space and for the joint multi-class model."""

from __future__ import annotations

from functools import cached_property, partial
from itertools import pairwise

import numpy as np

from sparsemargin._engine.first_order.gram_loop import GramLoop
from sparsemargin._engine.first_order.trials import Job, count_mistakes
from sparsemargin._engine.fitting.certificate import JointCertificate, LinearCertificate
from sparsemargin._engine.fitting.protocol import PRODUCTS_PER_CALL, SpanLoop
from sparsemargin._engine.fitting.threads import run_together, threads_worth, uninterrupted
from sparsemargin._engine.rows.csr import ALL_STOPPED, OK, BadRow
from sparsemargin._engine.rows.parts import summed

# Largest number of vectors that are scored without SIMD instructions.
FEW_VECTORS = 16

# Factor by which SIMD instructions speed up the scores if the weights of all vectors are adjacent.
SIDE_BY_SIDE = 8

# Bytes of a cache line. Threads that write to the same lines wait for each other. With 8 vectors,
# two threads took up to 1.4 times as long as one. Ranges of at least one line share few lines.
LINE_BYTES = 64

# Cost of a correction for each nonzero entry of the row, in multiplications of a trial.
CORRECTION = 30


class LinearLoop(SpanLoop):
    """The training loop of the first-order rules in a linear space. The vectors are divided among
    threads."""

    certificate_type = LinearCertificate

    def __init__(self, space, rule, task):
        super().__init__(space, task)
        self.rule, self.job = rule, None  # created at the first run
        self.n_mistakes = 0
        self.repeats = space.n_vectors == 1
        self.span = max(1, PRODUCTS_PER_CALL * len(task.codes) // self.products)
        if space.n_vectors > FEW_VECTORS:
            self.span *= SIDE_BY_SIDE
        self.n_threads = 1
        if task.n_threads > 1 and space.log is None:
            n_threads = threads_worth(task.n_threads, self.products)
            self.n_threads = max(1, min(n_threads, space.n_vectors // vectors_of_line(space)))

    @cached_property
    def by_products(self):
        # Products of rows give only the last weights. An average, variances or a log need the
        # weights at each correction.
        space = self.space
        are_sums = space.p == 2.0 and not (space.adaptive or space.averaged) and space.log is None
        return GramLoop if are_sums and GramLoop.suits(self.task) else None

    @property
    def mistakes(self):
        """Number of rows whose class was predicted wrongly just before the row was used. None if
        rows have several labels."""
        return self.n_mistakes if self.task.positives is None else None

    def sum_repeats(self):
        """Replace rows with duplicate columns by rows with summed entries, so that they can be
        measured. The training state is kept."""
        if self.task.distinct:
            return
        rows, self.task.distinct = summed(self.task.rows), True
        if rows is not self.task.rows:
            self.task.rows, self.job = rows, None

    def certificate(self):
        """The certificate of the current vectors."""
        self.sum_repeats()
        return self.certificate_type(self.space, self.rule, self.task)

    def run(self, order, seed, stop, n_passes, check):
        if n_passes == 1:
            return super().run(order, seed, stop, 1, check)
        return self._call(order, seed, 0, stop, n_passes, check)

    def run_span(self, order, start, stop, end, check):
        return self._call(order, None, start, stop, 1, check)[0]

    def _call(self, order, seed, start, stop, n_passes, check):
        trials, n_vectors = self.space.trials, len(self.space.vectors)
        slices = [(0, n_vectors)]
        if self.n_threads > 1:
            slices = cut_vectors(self.space, self.n_threads)
        if self.job is None:
            self.job = Job(self.space, self.rule, self.task.rows, self.task)
        calls = [
            partial(self.job.run, order, seed, (start, stop), n_passes, vectors, trials, check)
            for vectors in slices
        ]
        # Ctrl-C is delayed, so that all vectors have made the same number of trials.
        with uninterrupted():
            ends = run_together(calls, len(slices))
            self.space.count_trials(max(end.trials for end in ends))
        if len(slices) == 1:
            self.n_mistakes += ends[0].mistakes
        elif self.task.positives is None:
            trials = slice(start, stop) if order is None else order[start:stop]
            self.n_mistakes += count_mistakes(ends, self.task.codes[trials])
        # If threads stop at different rows, the earliest error is reported.
        for end in sorted(ends, key=lambda end: end.trials):
            if end.status not in (OK, ALL_STOPPED):
                raise BadRow(end.status, end.row)
        learning = any(end.status == OK for end in ends)
        return learning, max(end.passes for end in ends), all(end.converged for end in ends)


class JointLoop(LinearLoop):
    """The training loop of a joint model. It uses one thread, because every trial depends on the
    previous trial's changes in all classes."""

    certificate_type = JointCertificate

    by_products = None

    def __init__(self, space, rule, task):
        super().__init__(space, rule, task)
        self.n_threads = 1


def vectors_of_line(space):
    """Number of vectors whose numbers for a coordinate fill a cache line."""
    return max(1, LINE_BYTES // space.t.itemsize)


def cut_vectors(space, n_threads):
    """Split the vectors into ranges of about equal work, one for each thread, assuming that each
    vector is corrected as often as so far. The sizes of ranges are multiples of a cache line."""
    corrected = space.per_vector("corrections") / max(space.trials, 1)
    work = np.cumsum(1.0 + CORRECTION * corrected)
    line = vectors_of_line(space)
    ends = np.append(np.arange(line, space.n_vectors, line), space.n_vectors)
    shares = work[-1] * np.arange(1, n_threads) / n_threads
    cuts = ends[np.abs(work[ends - 1] - shares[:, np.newaxis]).argmin(axis=1)]
    return list(pairwise(np.unique([0, *cuts, space.n_vectors]).tolist()))
