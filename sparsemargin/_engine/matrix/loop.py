"""Epochs over rows for the matrix Perceptrons."""

from __future__ import annotations

import time
from abc import abstractmethod
from functools import partial
from typing import Any

import numpy as np

from sparsemargin._engine.fitting.protocol import PRODUCTS_PER_CALL, SpanLoop
from sparsemargin._engine.fitting.task import Task
from sparsemargin._engine.fitting.threads import run_together, uninterrupted
from sparsemargin._engine.kernel.loop import BLOCK
from sparsemargin._engine.kernel.outputs import unit_products
from sparsemargin._engine.matrix.base import learn_products, learn_rows
from sparsemargin._engine.messages import warn_user

# A warning is shown if an epoch is expected to take more than `_LONG` seconds. The time is first
# predicted after `_SOON` seconds.
_LONG = 90.0
_SOON = 3.0


class Forecast:
    """Warns once if an epoch is expected to take minutes.

    The cost of a mistake grows at least in proportion to the number of earlier updates of the
    matrix. Therefore k mistakes take time in proportion to k**2.
    """

    def __init__(self, space: Any):
        self.space, self.has_warned = space, False

    def begin(self) -> None:
        """Start measuring an epoch."""
        self.started, self.first = time.perf_counter(), self._updates()

    def check(self, part: float) -> None:
        """Warn if necessary, after this part of the epoch."""
        took = time.perf_counter() - self.started
        if self.has_warned or took < _SOON:
            return
        now = self._updates()
        last = self.first + (now - self.first) / part
        done = (now**2 - self.first**2).sum()
        if done <= 0:
            return
        seconds = took * (last**2 - self.first**2).sum() / done
        if seconds >= _LONG:
            self.has_warned = True
            warn_user(
                f"This epoch will take some {seconds / 60:.0f} minutes: {now.sum():.0f} mistakes "
                "so far, and each costs more the more there were. max_updates=100 bounds that, "
                "most often at no loss."
            )

    def _updates(self) -> np.ndarray:
        """Updates of each vector's matrix; 0 for an n x n matrix, where all mistakes cost the
        same."""
        return np.array(
            [0.0 if getattr(space, "primal", False) else space.updates
             for space in self.space.spaces]
        )  # fmt: skip


class MatrixLoop(SpanLoop):
    """Base class of the loops over checked rows; every vector makes its trials one by one.

    Parameters
    ----------
    space : FeatureSpaces or DualSpaces
    task : Task
    """

    # Trials in the first span and in the longest one, and multiplications in a span. Ctrl-C is
    # handled between spans.
    first_span: int
    longest_span: int
    products_per_span: int

    def __init__(self, space: Any, task: Task):
        super().__init__(space, task)
        self.span = self.first_span
        self.first_mistaken = int(space.per_vector("mistaken")[0])
        # A forecast is not needed if the number of updates is limited.
        self.forecast = Forecast(space) if space.spaces[0].most_updates < 0 else None

    @property
    def mistakes(self) -> int | None:
        """See `LinearLoop`; None for more than one vector."""
        if self.space.n_vectors > 1:
            return None
        return int(self.space.per_vector("mistaken")[0]) - self.first_mistaken

    @abstractmethod
    def _learn(self, which: np.ndarray) -> float:
        """Make trials of all vectors on these rows, and return the approximate number of
        multiplications. Ctrl-C cannot leave the vectors with different numbers of trials."""

    def run_span(self, order, start, stop, end, check):
        if self.forecast is not None and start == 0:
            self.forecast.begin()
        which = np.arange(start, stop) if order is None else order[start:stop].copy()
        products = self._learn(which)
        if self.forecast is not None:
            self.forecast.check(stop / end)
        # Mistakes become more expensive, so the next span at most doubles. Its length depends only
        # on counts, so that a fit is reproducible.
        fitting = int((stop - start) * self.products_per_span / max(products, 1.0))
        self.span = max(1, min(fitting, 2 * (stop - start), self.longest_span))
        return not self.space.exhausted().all()


class FeatureLoop(MatrixLoop):
    """The training loop over the features seen."""

    first_span = 64
    longest_span = 1 << 62
    products_per_span = PRODUCTS_PER_CALL

    def _learn(self, which: np.ndarray) -> float:
        numbers = which + self.space.first_row_of(self.task)

        def learn_vector(vector: int) -> float:
            steps = self.task.steps(vector, self.space.n_vectors, which)
            space = self.space.spaces[vector]
            progress = self.task.progress
            if progress is None:
                return learn_rows(space, self.task.rows, which, steps, numbers)
            # Row weights are the same for all vectors, so only the first vector stores them.
            weights, shares = self.task.weights, None
            if vector == 0:
                shares = np.ones(len(which)) if weights is None else weights[which]
            of_vector = progress.of_vectors(vector, vector + 1)
            return learn_rows(space, self.task.rows, which, steps, numbers, of_vector, shares)

        if self.space.n_vectors == 1:
            return learn_vector(0)  # this call handles Ctrl-C
        calls = [partial(learn_vector, vector) for vector in range(self.space.n_vectors)]
        with uninterrupted():
            return sum(run_together(calls, self.task.n_threads))


class DualLoop(MatrixLoop):
    """The training loop in dual variables.

    The kernel of a block of rows with the support set and with each other is computed once for all
    vectors. `row_state` of the task has the positions of its rows in the support set.
    """

    first_span = longest_span = BLOCK
    products_per_span = 1 << 29  # about 0.3 s

    def __init__(self, space: Any, task: Task):
        super().__init__(space, task)
        self.slots = task.slots(space.n_support)

    def _learn(self, which: np.ndarray) -> float:
        with uninterrupted():
            block = _Block(self, which)
            calls = [partial(block.learn, vector) for vector in range(self.space.n_vectors)]
            products = sum(run_together(calls, self.task.n_threads))
            block.close(self)
        return products


class _Block:
    """A block of rows with their products, from which all vectors are trained."""

    def __init__(self, loop: DualLoop, rows: np.ndarray):
        task, space = loop.task, loop.space
        self.spaces, self.base = space.spaces, space.n_support
        self.rows, self.numbers = rows, rows + space.first_row_of(task)
        # In a fit, mistakes are reported as row numbers of its X.
        self.mistakes = self.numbers if task.first_row is None else rows
        self.points = space.kernel.points(task.rows, rows)
        self.square, _ = space.kernel.square(self.points)
        self.slots = loop.slots[rows]
        self.products = np.empty((len(rows), 0))
        if self.base:
            support = space.support.points
            self.products = unit_products(space.kernel, self.points, support, task.n_threads)
        self.steps = [
            np.where(self.points.lengths > 0, task.steps(vector, space.n_vectors, rows), 0.0)
            for vector in range(space.n_vectors)
        ]
        self.which = [self._which(vector) for vector in range(space.n_vectors)]

    def _which(self, vector: int) -> np.ndarray:
        """Index of each row among the rows of one vector; -1: none."""
        slots = self.spaces[vector].slots
        which = np.full(self.base + 1, -1, dtype=np.int64)
        which[slots] = np.arange(len(slots))
        return which[self.slots]

    def learn(self, vector: int) -> float:
        """Make the trials of one vector; return the approximate number of multiplications."""
        space, n = self.spaces[vector], len(self.rows)
        slots = space.slots
        products = np.empty((n, len(slots) + n))
        products[:, : len(slots)] = self.products.take(slots, axis=1)
        return learn_products(
            space, products, self.square, self.steps[vector], self.which[vector], self.mistakes,
            self.base,
        )  # fmt: skip

    def close(self, loop: DualLoop) -> None:
        """Add the rows that vectors have newly used to the support set."""
        joining = np.flatnonzero((self.slots < 0) & (np.max(self.which, axis=0) >= 0))
        self.slots[joining] = self.base + np.arange(len(joining))
        loop.slots[self.rows] = self.slots
        loop.space.adopt(self.points.take(joining), self.numbers[joining], self.slots)
