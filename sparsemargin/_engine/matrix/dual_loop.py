"""Passes over rows for matrix Perceptrons in dual variables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np

from sparsemargin._engine import kernels
from sparsemargin._engine.fitting.progress import Forecast
from sparsemargin._engine.fitting.task import Loop, Task
from sparsemargin._engine.fitting.threads import run_together, uninterrupted
from sparsemargin._engine.kernel.loop import BLOCK
from sparsemargin._engine.kernel.outputs import single_blas, unit_products
from sparsemargin._engine.matrix.dual import learn_rows
from sparsemargin._engine.matrix.dual_spaces import DualSpaces

# Multiplications in a block, some 0.3 s, after which Python can hear Ctrl-C.
_PRODUCTS_PER_BLOCK = 1 << 29


class DualLoop(Loop):
    """The loop of the matrix Perceptrons in dual variables, over checked rows.

    The kernel of a block of rows with the pool and with each other is worked out once for all
    labels; the trials of a label are then made one by one.

    Parameters
    ----------
    space : DualSpaces
    task : Task
        `kept` has the places of its rows in the pool.
    """

    def __init__(self, space: DualSpaces, task: Task):
        super().__init__(space, task)
        m = len(task.codes)
        place = np.full(m, -1, dtype=np.int64) if task.kept is None else task.kept[0]
        self.place = np.asarray(place)
        self.first_corrections = int(space.per_label("corrections")[0])
        self.span = BLOCK
        self.forecast = Forecast(space)

    @property
    def mistakes(self) -> int | None:
        """As that of `SeenLoop`."""
        if self.space.n_labels > 1:
            return None
        return int(self.space.per_label("corrections")[0]) - self.first_corrections

    def run(self, order, seed, stop, n_passes, check):
        """A pass over the first `stop` rows of the order, which has been shuffled and checked."""
        before = self.space.per_label("corrections").sum()
        order = np.arange(stop) if order is None else order[:stop]
        done, learning = 0, True
        self.forecast.begin()
        with single_blas():
            while done < stop and learning:
                rows = order[done : done + self.span].copy()  # it is shuffled where it lies
                done += len(rows)
                if self.task.weights is not None:
                    rows = rows[self.task.weights[rows] > 0]
                if len(rows):
                    with uninterrupted():
                        self._learn(rows)
                self.part = done / len(self.task.codes)
                self.forecast.tell(done / stop, stacklevel=11)
                learning = not self.space.exhausted().all()
        self.part = 0.0
        return learning, done / stop, bool(self.space.per_label("corrections").sum() == before)

    def _learn(self, rows: np.ndarray) -> None:
        block = _Block(self, rows)
        calls = [partial(block.learn, label) for label in range(self.space.n_labels)]
        products = sum(run_together(calls, self.task.n_threads))
        block.close(self)
        # By counts alone, so that a fit can be repeated to the bit.
        fitting = int(len(rows) * _PRODUCTS_PER_BLOCK / max(products, 1.0))
        self.span = max(1, min(fitting, 2 * len(rows), BLOCK))


class _Block:
    """A block of rows, and their products with all that may matter to them."""

    def __init__(self, loop: DualLoop, rows: np.ndarray):
        task, space = loop.task, loop.space
        self.spaces, self.base = space.spaces, space.n_support
        self._check_room(len(rows))
        self.rows, self.numbers = rows, rows + space.rows_taken
        self.points = space.kernel.points(task.rows, rows)
        self.square = np.ascontiguousarray(space.kernel.square(self.points))
        self.places = loop.place[rows]
        self.products = None
        if self.base:
            support = space.pool.points
            self.products = unit_products(space.kernel, self.points, support, task.n_threads)
        self.steps = [self._steps(task, label) for label in range(space.n_labels)]
        self.own = [self._own(label) for label in range(space.n_labels)]

    def _check_room(self, n_rows: int) -> None:
        if not all(space.can_grow(n_rows) for space in self.spaces):
            raise ValueError(
                "normalize_hypotheses=True and the hypotheses that are replayed take the products "
                "of all mistaken rows with each other, and those of "
                f"{max(len(space.support) for space in self.spaces)} rows of a label are as many "
                "as may be kept. Pass normalize_hypotheses=False and hypothesis='average'."
            )

    def _steps(self, task: Task, label: int) -> np.ndarray:
        """What a mistake on each row makes, with the sign of its label for this one."""
        positive, steps = task.shares(label, len(self.spaces), self.rows)
        steps = np.where(positive, steps, -steps)
        return np.where(self.points.lengths > 0, steps, 0.0)

    def _own(self, label: int) -> np.ndarray:
        """Which of the label's rows each is; -1 for none."""
        support = self.spaces[label].support
        which = np.full(self.base + 1, -1, dtype=np.int64)
        which[support] = np.arange(len(support))
        return which[self.places]

    def learn(self, label: int) -> float:
        """Let a label make its trials; about how many multiplications they took."""
        space, n = self.spaces[label], len(self.rows)
        own_products = np.empty((n, len(space.support) + n))
        if self.products is not None:
            kernels.for_values(self.products).own_products(space, self.products, own_products)
        return learn_rows(
            space, own_products, self.square, self.steps[label], self.own[label], self.numbers,
            self.base,
        )  # fmt: skip

    def close(self, loop: DualLoop) -> None:
        """Let the new rows that labels have taken into the pool."""
        joining = np.flatnonzero((self.places < 0) & (np.max(self.own, axis=0) >= 0))
        self.places[joining] = self.base + np.arange(len(joining))
        loop.place[self.rows] = self.places
        loop.space.adopt(self.points.take(joining), self.numbers[joining], self.places)


@contextmanager
def dual_loop(space: DualSpaces, task: Task) -> Iterator[DualLoop]:
    """The loop over a task: every label learns."""
    space.resume(task.max_corrections)
    loop = DualLoop(space, task)
    try:
        yield loop
        task.kept = loop.place, None
    finally:
        space.kernel.forget_rows()
