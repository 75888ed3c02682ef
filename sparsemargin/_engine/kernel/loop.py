"""Passes over rows for the kernel space."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from math import frexp
from typing import Any

import numpy as np

from sparsemargin._engine import kernels
from sparsemargin._engine.first_order.trials import set_thresholds
from sparsemargin._engine.fitting.certificate import KernelCertificate
from sparsemargin._engine.fitting.task import Loop
from sparsemargin._engine.fitting.threads import run_together, uninterrupted
from sparsemargin._engine.kernel.block import learn_block
from sparsemargin._engine.kernel.gram_loop import MEMORY
from sparsemargin._engine.kernel.outputs import outputs, single_blas
from sparsemargin._engine.kernel.support import Points, Pool
from sparsemargin._engine.state import array_of, require_within, writable

#: Rows whose scores are worked out at once.
BLOCK = 256

# A vector's square beyond these, in units of t, has t rescaled.
_LEAST_SQUARE = 2.0**-500


class PoolFull(Exception):
    """A row would have to join a pool that has no room."""

    def __init__(self, epochs: float):
        super().__init__(epochs)
        self.epochs = epochs


class KernelLoop(Loop):
    """The loop of the first-order rules, which a kernel space learns by.

    The scores of a fit's rows are kept from pass to pass: what a row's score lacks when it is
    seen again is the part of those rows that have moved since, and the kernel is not worked out
    for any other. Few rows make one block, whose passes need no kernel at all.

    Parameters
    ----------
    space : KernelSpace
    rule : FirstOrderRule
    task : Task
        Its rows have been checked; `kept` has their places in the pool.
    skips : bool
        Whether trials are passed over that the pool has no room for.
    """

    def __init__(self, space, rule, task, *, skips):
        super().__init__(space, task)
        self.rule, self.skips = rule, skips
        self.kernel = space.kernel
        m = len(task.codes)
        self.place = np.full(m, -1, dtype=np.int64)
        if task.kept is not None:
            self.place = _checked_places(task.kept[0], m, space.n_support)
        self.stored = np.zeros((space.n_labels, m))
        self.moves = _Moves(space)
        self.visited = []  # rows of a block, and the moves their scores know of
        self.lengths = np.full(m, np.nan)
        self.n_mistakes = 0
        self.passes = 0
        self.repeats = bool(
            8 * m * m <= MEMORY and space.free >= m and (task.weights is None or task.weights.all())
        )
        self.whole = _Rows(self, np.arange(m)) if self.repeats else None
        if space.n_support:
            self._start_from_pool()
        n_threads = 1 if space.log is not None else min(task.n_threads, space.n_labels)
        self.labels = np.array_split(np.arange(space.n_labels), n_threads)

    def _start_from_pool(self) -> None:
        """Scores by what was learned before."""
        space = self.space
        coefficients = space.t[:, : space.n_support]
        for rows in _blocks(np.arange(len(self.task.codes))):
            if self.whole is None:
                points = self.points(rows)
            else:
                points = self.whole.points.part(rows[0], rows[-1] + 1)
            self.stored[:, rows] = self.scores(points, space.pool.points, coefficients)
        known = self.place >= 0
        self.stored[:, known] += space.slack**2 * space.t[:, self.place[known]]

    def points(self, rows: np.ndarray) -> Points:
        """The rows of these numbers; their lengths are noted."""
        points = self.kernel.points(self.task.rows, rows)
        self.lengths[rows] = points.lengths
        return points

    def scores(self, points: Points, support: Points, coefficients: np.ndarray) -> np.ndarray:
        """``sum_i c_i K(x_i, x)``, shape (n_labels, points.n)."""
        out = outputs(self.kernel, points, support, coefficients, self.task.n_threads)
        out *= points.lengths
        return out

    @property
    def mistakes(self) -> int:
        """Rows predicted wrongly just before they were learned from."""
        return self.n_mistakes

    @property
    def products(self) -> int:
        """What a pass costs where it takes no kernel."""
        return max(1, len(self.task.codes) * self.space.n_labels)

    # ----------------------------------------------------------------------------------- passes

    def run(self, order, seed, stop, n_passes, check):
        with single_blas():
            if self.whole is not None:
                with uninterrupted():
                    learning, passes, converged = self._run_whole(order, seed, stop, n_passes)
                    self.part = passes * stop / len(self.task.codes)
                self.part = 0.0
                return learning, passes, converged
            return self._run_blocks(order, stop)

    def _run_whole(self, order, seed, stop, n_passes):
        if order is None and stop < len(self.task.codes):
            order = np.arange(len(self.task.codes))
        part = None if order is None else order[:stop]
        passes, converged = self._learn(self.whole, part, seed, n_passes)
        return self._is_learning(), passes, converged

    def _run_blocks(self, order, stop):
        before = self.space.per_label("corrections").sum()
        self.catch_up()
        order = np.arange(stop) if order is None else order[:stop]
        done = 0
        while done < stop and self._is_learning():
            # So few that all of them find room, as long as there is any.
            room = self.space.free if self.space.free > 0 else BLOCK
            n = int(min(BLOCK, room, stop - done))
            rows = order[done : done + n].copy()  # the order is shuffled where it lies
            if self.task.weights is not None:
                rows = rows[self.task.weights[rows] > 0]
            with uninterrupted():
                if len(rows):
                    self._learn(_Rows(self, rows), None, None, 1)
                done += n
                self.part = done / len(self.task.codes)
        self.part = 0.0
        self.passes += 1
        converged = bool(self.space.per_label("corrections").sum() == before)
        return self._is_learning(), done / stop, converged

    def _is_learning(self) -> bool:
        return bool((self.space.per_label("stopped") < 0).any())

    # ------------------------------------------------------------------------------ one block

    def _learn(self, block, order, seed, n_passes):
        """Passes over a block; how many, and whether the last made no correction."""
        space = self.space
        block.open(self)
        calls = [
            partial(self._learn_labels, block, labels, order, seed, n_passes)
            for labels in self.labels
        ]
        saved = space.save() if self.kernel.may_fail else None
        try:
            ends = [end for part in run_together(calls, len(calls)) for end in part]
        except BaseException:
            if saved is not None:
                space.restore(saved)
            raise
        block.close(self)
        passes = max(end[2] for end in ends)
        trials = space.trials + passes * (len(block.rows) if order is None else len(order))
        space.count_trials(trials if self._is_learning() else space.per_label("stopped").max())
        for label, (status, row, _, _, passed_over, _) in enumerate(ends):
            if status != kernels.OK:
                raise kernels.BadRow(status, int(block.rows[row]))
            if passed_over and not self.skips:
                raise PoolFull(self.passes + self.part)
            space.passed_over[label] += passed_over
        if order is not None and n_passes > 1:
            order[:] = next(end[5] for end in ends if end[2] == passes)
        return passes, all(end[3] for end in ends)

    def _learn_labels(self, block, labels, order, seed, n_passes):
        space = self.space
        ends = []
        for label in labels:
            own = None if order is None else order.copy()
            signs, shares = block.signs_and_shares(self.task, space, label)
            ends.append((*learn_block(
                space, self.rule, label, block.gram, block.norms, block.measured, signs, shares,
                block.slots, block.scores[label], block.turn[label], block.joined[label],
                space.t[label, : block.n_slots], space.acc[label, : block.n_slots],
                block.outside[label], own, seed or 0, n_passes, space.trials,
                partial(block.refresh, self),
            ), own))  # fmt: skip
        return ends

    # ----------------------------------------------------------------------- from pass to pass

    def catch_up(self) -> None:
        """Bring the scores of all rows up to date with the moves of the pass under way."""
        if not self.visited:
            return
        moved, deltas = self.moves.all()
        unseen = np.ones(len(self.task.codes), dtype=bool)
        for rows, _ in self.visited:
            unseen[rows] = False
        self.visited += [(rows, 0) for rows in _blocks(np.flatnonzero(unseen))]
        for at, (rows, known) in enumerate(self.visited):
            with uninterrupted():
                self._add_moves(rows, moved, deltas, known)
                self.visited[at] = rows, self.moves.n
        with uninterrupted():
            self.visited.clear()
            self.moves = _Moves(self.space)

    def _add_moves(self, rows, moved, deltas, known):
        if known < len(deltas[0]):
            points = self.points(rows)
            part = moved.part(known, len(deltas[0]))
            self.stored[:, rows] += self.scores(points, part, deltas[:, known:])

    def all_scores(self) -> np.ndarray:
        """``sum_i t_i K(x_i, x)`` of all rows, the soft margin's part included, shape (n_labels,
        n_rows)."""
        with single_blas():
            self.catch_up()
            for rows in _blocks(np.flatnonzero(np.isnan(self.lengths))):
                self.points(rows)
        return self.stored

    def certificate(self):
        return KernelCertificate(self)


def _checked_places(kept, n_rows, n_support):
    """The rows' places in the pool, -1 for none, which may come from a file."""
    places = writable(array_of({"kept": kept}, "kept", np.int64, (n_rows,)))
    require_within("kept", places, -1, n_support - 1)
    return places


class _Moves:
    """Rows that have moved in the pass under way, and by how much."""

    def __init__(self, space):
        self.space = space
        # All that a pool holds that was empty has moved since.
        self.from_nothing = space.n_support == 0
        self.pool = Pool()
        self.deltas = [np.zeros((space.n_labels, 0))]

    def all(self):
        """The rows, and the changes of their coefficients, shape (n_labels, n_moved)."""
        if self.from_nothing:
            pool = self.space.pool
            return pool.points if len(pool) else None, self.space.t[:, : len(pool)]
        self.deltas = [np.concatenate(self.deltas, axis=1)]
        return self.pool.points if len(self.pool) else None, self.deltas[0]

    def add(self, points, change, forgot):
        if self.from_nothing:
            return
        moved = np.flatnonzero(change.any(axis=0))
        if forgot.any():
            for delta in self.deltas:
                delta[forgot] = 0.0
        if len(moved):
            self.pool.extend(points.take(moved))
            self.deltas.append(change[:, moved])

    def rescale(self, label, factor):
        for delta in self.deltas:
            delta[label] *= factor

    @property
    def n(self):
        return self.space.n_support if self.from_nothing else len(self.pool)


class _Rows:
    """A block of rows: their products with each other, and their part of the state."""

    def __init__(self, loop, rows):
        space = loop.space
        self.rows = rows
        self.points = loop.points(rows)
        lengths = self.points.lengths
        self.gram = loop.kernel.square(self.points)
        self.gram *= np.multiply.outer(lengths, lengths)
        self.gram[np.diag_indices(len(rows))] += space.slack**2
        self.norms = np.hypot(lengths, space.slack)
        self.measured = self.norms if loop.rule.measures_rows else np.ones(len(rows))
        self.turn = np.zeros((space.n_labels, len(rows)))

    def open(self, loop):
        """Get the scores, and places for coefficients."""
        space = loop.space
        self.n_before = space.n_support
        self.log_start = 0 if space.log is None else len(space.log)
        self.scores = np.ascontiguousarray(loop.stored[:, self.rows])
        moved, deltas = loop.moves.all()
        if moved is not None and loop.whole is None:
            self.scores += loop.scores(self.points, moved, deltas)
        self.slots = loop.place[self.rows].copy()
        new = np.flatnonzero(self.slots < 0)
        self.new = new if len(new) <= space.free else new[:0]
        self.slots[self.new] = self.n_before + np.arange(len(self.new))
        space.reserve(len(self.new))
        self.n_slots = self.n_before + len(self.new)
        self.joined = np.full((space.n_labels, len(self.rows)), -1, dtype=np.int64)
        self.before = self._coefficients(space)
        self.restarts = space.per_label("passes").copy()
        self.outside = np.zeros((space.n_labels, 0)) if loop.whole is not None else loop.stored

    def _coefficients(self, space):
        return np.where(self.slots >= 0, space.t[:, self.slots], 0.0)

    def signs_and_shares(self, task, space, label):
        """Of each row for the label: -1.0 or 1.0, and what multiplies its steps."""
        positive, shares = task.shares(label, space.n_labels, self.rows)
        return np.where(positive, 1.0, -1.0), np.where(self.norms > 0, shares, 0.0)

    def close(self, loop):
        """Let the rows that moved into the pool, and keep the scores."""
        space = loop.space
        loop.stored[:, self.rows] = self.scores
        forgot = space.per_label("passes") > self.restarts
        self.before[forgot] = 0.0
        change = self._coefficients(space) - self.before
        first = np.where(self.joined < 0, np.iinfo(np.int64).max, self.joined).min(axis=0)
        joining = self.new[first[self.new] < np.iinfo(np.int64).max]
        joining = joining[np.argsort(first[joining], kind="stable")]
        first_row = space.rows_taken if loop.task.first_row is None else loop.task.first_row
        numbers = self.rows[joining] + first_row
        which = np.searchsorted(self.new, joining)
        space.adopt(self.points.take(joining), numbers, len(self.new), which, self.log_start)
        loop.place[self.rows[joining]] = self.n_before + np.arange(len(joining))
        loop.n_mistakes += _count_mistakes(self.turn, loop.task.codes[self.rows])
        if loop.whole is None:
            loop.moves.add(self.points, change, forgot)
            loop.visited.append((self.rows, loop.moves.n))

    def refresh(self, loop, label):
        """Work S and the label's scores out afresh, and keep t in its range."""
        space = loop.space
        others = space.t[label, : self.n_before].copy()
        others[self.slots[(self.slots >= 0) & (self.slots < self.n_before)]] = 0.0
        t = self._coefficients(space)[label]
        by_own = self.gram @ t
        by_others = np.zeros_like(by_own)
        square = t @ by_own - space.slack**2 * (t @ t)
        if others.any():
            pool = space.pool.points
            by_others = loop.scores(self.points, pool, others[np.newaxis])[0]
            square += 2.0 * (t @ by_others)
            for start in range(0, pool.n, BLOCK):
                part, weights = pool.part(start, min(start + BLOCK, pool.n)), others[start:]
                square += loop.scores(part, pool, others[np.newaxis])[0] @ weights[: part.n]
        self.scores[label] = by_own + by_others
        square = max(square, 0.0)
        if square > 0.0 and not _LEAST_SQUARE < square < 1.0 / _LEAST_SQUARE:
            shift = -(frexp(square)[1] // 2)
            space.rescale(label, shift)
            for array in (self.scores, self.before, loop.stored):
                array[label] *= 2.0**shift
            loop.moves.rescale(label, 2.0**shift)
            square *= 4.0**shift
        space.set_square(label, square)


def _count_mistakes(turn, codes):
    """Rows whose class the outputs before their trials predict wrongly."""
    if len(turn) == 1:
        return int(np.count_nonzero((turn[0] >= 0.0) != (codes == 1)))
    return int(np.count_nonzero(turn.argmax(axis=0) != codes))


def _blocks(rows) -> Iterator[np.ndarray]:
    for start in range(0, len(rows), BLOCK):
        yield rows[start : start + BLOCK]


@contextmanager
def kernel_loop(space: Any, rule: Any, task: Any, *, skips: bool) -> Iterator[KernelLoop]:
    """The loop over a task: every label learns."""
    space.resume(task.max_corrections)
    set_thresholds(space, rule)
    try:
        with single_blas():
            loop = KernelLoop(space, rule, task, skips=skips)
        yield loop
        task.kept = loop.place, None
    finally:
        space.kernel.forget_rows()
