"""Epochs: order, stopping, progress and interruption, over the compiled loop."""

from __future__ import annotations

import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sparsemargin._engine import kernels
from sparsemargin._engine._loop import set_bars, shuffle

# Between two calls of the compiled loop, some 20 ms apart, Python can hear Ctrl-C.
PRODUCTS_PER_CALL = 1 << 23

MAX_TRIALS = 1 << 62


class BadRow(Exception):
    """The loop met a row it can't learn from."""

    def __init__(self, status, row):
        super().__init__(status, row)
        self.status = status
        self.row = row


@dataclass
class Task:
    """What the loop learns from, and how.

    Attributes
    ----------
    rows : Rows
    codes : ndarray of shape (n_rows,), int64
    weights : ndarray of shape (n_rows,) or None
    class_weight : ndarray of shape (2, n_labels)
    check : bool
        Whether rows are still to be checked, as they are first used.
    max_corrections : int or None
    n_threads : int
        Labels are split over that many threads; the result is the same for any number.
    """

    rows: object
    codes: np.ndarray
    weights: np.ndarray | None
    class_weight: np.ndarray
    check: bool = False
    max_corrections: int | None = None
    n_threads: int = 1


class _Loop:
    """The compiled loop bound to one task."""

    def __init__(self, space, rule, task):
        self.space, self.rule, self.task = space, rule, task
        self.train = kernels.for_state(task.rows, space).train
        self.limit = -1 if task.max_corrections is None else task.max_corrections
        self.place = None if space.log is None else np.full(len(task.codes), -1, dtype=np.int64)
        n_threads = 1 if space.log is not None else min(task.n_threads, space.n_labels)
        cuts = [space.n_labels * i // n_threads for i in range(n_threads + 1)]
        self.slices = list(pairwise(cuts))

    def _run_labels(self, labels, order, start, stop, trials, check):
        space, task, rows = self.space, self.task, self.task.rows
        return self.train(
            space, self.rule, space.t, space.g, space.acc, rows.data, rows.indices, rows.indptr,
            task.codes, task.weights, task.class_weight, order, start, stop, *labels, trials,
            self.limit, check, self.place,
        )  # fmt: skip

    @property
    def trials_per_pass(self):
        weights = self.task.weights
        return len(self.task.codes) if weights is None else np.count_nonzero(weights)

    def calls(self, stop):
        """Cut the first `stop` trials of a pass into calls of the compiled loop."""
        n_rows = len(self.task.codes)
        products = max(1, int(self.task.rows.indptr[-1]) * self.space.n_labels)
        length = max(1, PRODUCTS_PER_CALL * n_rows // products)
        for start in range(0, stop, length):
            yield start, min(start + length, stop)

    def run(self, order, start, stop, check):
        """Trials of rows start..stop-1 of the order; whether any label is still learning."""
        trials = self.space.trials
        if len(self.slices) == 1:
            ends = [self._run_labels(self.slices[0], order, start, stop, trials, check)]
        else:
            with ThreadPoolExecutor(len(self.slices)) as pool:
                runs = [
                    pool.submit(self._run_labels, labels, order, start, stop, trials, check)
                    for labels in self.slices
                ]
            ends = [run.result() for run in runs]
            self.space.count_trials(max(end[2] for end in ends))
        for status, row, _ in ends:
            if status not in (kernels.OK, kernels.ALL_STOPPED):
                raise BadRow(status, row)
        return any(status == kernels.OK for status, _, _ in ends)


@contextmanager
def _opened(space, rule, task):
    """The loop over a task: every label learns, rows have their soft-margin coordinates."""
    space.resume()
    set_bars(space, rule)
    if space.slack:
        space.open_slack(len(task.codes))
    try:
        yield _Loop(space, rule, task)
    finally:
        if space.slack:
            space.close_slack()


def learn_once(space, rule, task):
    """One pass over checked rows in the given order."""
    with _opened(space, rule, task) as loop:
        loop.run(None, 0, len(task.codes), False)


def learn(space, rule, task, *, max_iter, seed=None, verbose=0):
    """Epochs until `max_iter`, until a pass makes no correction, or until interrupted.

    Parameters
    ----------
    max_iter : float or None
        Epochs, fractions included; None: until a pass makes no correction.
    seed : int or None
        Of the shuffling; None: rows come in the given order.
    verbose : int
        Whether a line is printed for every epoch.

    Returns
    -------
    n_iter : float
        Epochs swept. Epochs after a pass without a correction would change nothing; they are
        counted in the averages, not swept.

    Raises
    ------
    BadRow
        The state is then of no use if rows were learned from before.
    """
    m = len(task.codes)
    goal = _count_trials(max_iter, m)
    order = None if seed is None else np.arange(m)
    corrections = space.per_label("corrections")
    swept, epoch, learning = 0, 0, True
    started = time.perf_counter()
    with _opened(space, rule, task) as loop:
        try:
            while learning and swept < goal:
                before = corrections.sum()
                if order is not None:
                    shuffle(order, (seed + epoch) % 2**64)
                stop = int(min(m, goal - swept))
                for rows in loop.calls(stop):
                    learning = loop.run(order, *rows, task.check and epoch == 0)
                    swept += rows[1] - rows[0]
                    if not learning:
                        break
                epoch += 1
                made = corrections.sum() - before
                if verbose:
                    took = time.perf_counter() - started
                    print(f"epoch {swept / m:g}: {made} corrections, {took:.2f} s in all")
                if learning and made == 0 and stop == m:
                    if max_iter is not None:
                        left = (goal - swept) / m * loop.trials_per_pass
                        space.count_trials(space.trials + round(left))
                    break
        except KeyboardInterrupt:
            warnings.warn(
                f"Interrupted after {swept / m:.3g} epochs: the model keeps what it had learned.",
                stacklevel=5,
            )
    return swept / m


def _count_trials(max_iter, n_rows):
    if max_iter is None:
        return np.inf
    if max_iter * n_rows > MAX_TRIALS:
        raise ValueError(
            f"max_iter={max_iter:g} epochs of {n_rows} rows are more trials than can be counted. "
            "Pass None to go on until a pass makes no correction."
        )
    return max(1, round(max_iter * n_rows))
