"""Epochs over rows for the kernel space, and the kernel space with the interface of models."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from math import frexp
from typing import Any

import numpy as np

from sparsemargin._engine.core.vectors import set_thresholds
from sparsemargin._engine.fitting.certificate import KernelCertificate
from sparsemargin._engine.fitting.protocol import Loop
from sparsemargin._engine.fitting.threads import uninterrupted
from sparsemargin._engine.kernel.outputs import (
    SupportSpace,
    outputs,
    single_blas,
    support_products,
)
from sparsemargin._engine.kernel.space import KernelState
from sparsemargin._engine.kernel.stored_products import MEMORY, StoredProducts
from sparsemargin._engine.kernel.support import Points, SupportSet
from sparsemargin._engine.replay.replay import KernelReplay
from sparsemargin._engine.replay.replayed import Replayed, points_of

#: Number of rows whose scores are computed at once.
BLOCK = 256

# The coefficients t of a vector are rescaled if its squared norm, in units of t, is below this
# bound or above its inverse, long before a double underflows or overflows.
_LEAST_SQUARE = 2.0**-500


class KernelLoop(Loop):
    """The training loop of the first-order rules in a kernel space.

    The scores of the training rows are kept between epochs. When a row is used again, only the
    contributions of rows whose coefficients have changed since are added, so the kernel is computed
    only for these. A small training set is one block, whose epochs need no kernel evaluations.

    Parameters
    ----------
    space : KernelSpace
    rule : FirstOrderRule
    task : Task
        The task; its rows have been checked, and `row_state` has their slots.
    skips : bool
        Whether trials are skipped if the support set has no room for their row.
    """

    def __init__(self, space, rule, task, *, skips):
        super().__init__(space, task)
        self.rule, self.skips, self.kernel = rule, skips, space.kernel
        m = len(task.codes)
        self.slots = task.slots(space.n_support)
        self.scores = np.zeros((space.n_vectors, m))
        self.moves = _Moves(space)
        self.visited = []  # rows of each block, and how many moves their scores include
        self.lengths = np.full(m, np.nan)
        self.mistakes = 0  # rows predicted wrongly before their trial
        self.repeats = bool(8 * m * m <= MEMORY and space.free >= m)
        self.n_threads = 1 if space.log is not None else task.n_threads
        self.only_block = KernelBlock(self, np.arange(m)) if self.repeats else None
        if space.n_support:
            self._start_from_support()

    def _start_from_support(self) -> None:
        """Compute the scores from the result of earlier training."""
        space = self.space
        coefficients = space.t[:, : space.n_support]
        for rows in _blocks(np.arange(len(self.task.codes))):
            if self.only_block is None:
                points = self.points(rows)
            else:
                points = self.only_block.points.part(rows[0], rows[-1] + 1)
            self.scores[:, rows] = self.scores_by(points, space.support.points, coefficients)
        known = self.slots >= 0
        self.scores[:, known] += space.slack**2 * space.t[:, self.slots[known]]

    def points(self, rows: np.ndarray) -> Points:
        """The rows at these indices; their lengths are recorded."""
        points = self.kernel.points(self.task.rows, rows)
        self.lengths[rows] = points.lengths
        return points

    def scores_by(self, points: Points, support: Points, coefficients: np.ndarray) -> np.ndarray:
        """``sum_i c_i K(x_i, x)``, shape (n_vectors, points.n)."""
        out = outputs(self.kernel, points, support, coefficients, self.task.n_threads)
        out *= points.lengths
        return out

    @property
    def products(self) -> int:
        """Cost of an epoch without kernel evaluations."""
        return max(1, len(self.task.codes) * self.space.n_vectors)

    # ----------------------------------------------------------------------------------- epochs

    def run(self, order, seed, stop, n_passes, check):
        with single_blas():
            if self.only_block is None:
                return self._run_blocks(order, stop)
            with uninterrupted():
                if order is None and stop < len(self.task.codes):
                    order = np.arange(len(self.task.codes))
                part = None if order is None else order[:stop]
                return self._learn(self.only_block, part, seed, n_passes)

    def _run_blocks(self, order, stop):
        before = self.space.per_vector("corrections").sum()
        self.catch_up()
        order = np.arange(stop) if order is None else order[:stop]
        done, learning = 0, self._is_learning()
        while done < stop and learning:
            # A block has only as many rows as the support set has room for, unless that is full.
            room = self.space.free if self.space.free > 0 else BLOCK
            n = int(min(BLOCK, room, stop - done))
            rows = order[done : done + n].copy()  # copied, because the order is shuffled in place
            with uninterrupted():
                self._learn(KernelBlock(self, rows), None, None, 1)
            done += n
            learning = self._is_learning()
        converged = bool(self.space.per_vector("corrections").sum() == before)
        return learning, 1, converged

    def _is_learning(self) -> bool:
        return bool((self.space.per_vector("stopped") < 0).any())

    def _learn(self, block, order, seed, n_passes):
        """Run epochs over a block."""
        space = self.space
        block.open(self)
        saved = space.save() if self.kernel.may_fail else None
        try:
            ends = block.make_passes(order, seed, n_passes, self.n_threads)
        except BaseException:
            if saved is not None:
                space.restore(saved)
            raise
        block.close(self)
        result = block.conclude(ends, order, len(block.rows) if order is None else len(order))
        for vector, end in ends.items():
            if end.passed_over and not self.skips:
                raise ValueError(
                    f"After {space.trials:,} trials another row would have to join the pool, "
                    f"which holds max_support={space.max_support} rows by now. Raise max_support, "
                    "or pass when_full='skip' to learn on with the rows it has."
                )
            space.passed_over[vector] += end.passed_over
        return result

    # --------------------------------------------------------------------------- between epochs

    def catch_up(self) -> None:
        """Add the moves of the current epoch to the scores of all rows."""
        if not self.visited:
            return
        moved, deltas = self.moves.all()
        unseen = np.ones(len(self.task.codes), dtype=bool)
        for rows, _ in self.visited:
            unseen[rows] = False
        self.visited += [(rows, 0) for rows in _blocks(np.flatnonzero(unseen))]
        for rows, known in self.visited:
            if known < len(deltas[0]):
                part = moved.part(known, len(deltas[0]))
                points = self.points(rows)
                self.scores[:, rows] += self.scores_by(points, part, deltas[:, known:])
        self.visited.clear()
        self.moves = _Moves(self.space)

    def all_scores(self) -> np.ndarray:
        """``sum_i t_i K(x_i, x)`` of all rows, including the soft margin, shape (n_vectors,
        n_rows)."""
        with single_blas():
            self.catch_up()
            for rows in _blocks(np.flatnonzero(np.isnan(self.lengths))):
                self.points(rows)
        return self.scores

    def certificate(self):
        return KernelCertificate(self)


class _Moves:
    """Rows whose coefficients have changed in the current epoch, and the changes."""

    def __init__(self, space):
        self.space = space
        # If the support set was empty at the start, all of its coefficients are changes.
        self.from_nothing = space.n_support == 0
        self.rows = SupportSet()
        self.deltas = [np.zeros((space.n_vectors, 0))]

    @property
    def n(self):
        return self.space.n_support if self.from_nothing else len(self.rows)

    def all(self):
        """The rows, and the changes of their coefficients, shape (n_vectors, n_moved)."""
        if self.from_nothing:
            return self.space.support.points if self.n else None, self.space.t[:, : self.n]
        self.deltas = [np.concatenate(self.deltas, axis=1)]
        return self.rows.points if self.n else None, self.deltas[0]

    def add(self, points, change, forgot):
        if self.from_nothing:
            return
        moved = np.flatnonzero(change.any(axis=0))
        if forgot.any():
            for delta in self.deltas:
                delta[forgot] = 0.0
        if len(moved):
            self.rows.extend(points.take(moved))
            self.deltas.append(change[:, moved])

    def rescale(self, vector, factor):
        for delta in self.deltas:
            delta[vector] *= factor


class KernelBlock(StoredProducts):
    """A block of the rows of a task, with their products and their part of the state."""

    def __init__(self, loop, rows):
        space = loop.space
        self.points = loop.points(rows)
        lengths = self.points.lengths
        products, self.error = loop.kernel.square(self.points)
        products *= np.multiply.outer(lengths, lengths)
        products[np.diag_indices(len(rows))] += space.slack**2
        norms = np.hypot(lengths, space.slack)
        super().__init__(space, loop.rule, loop.task, products, norms, rows)
        self.slack = space.slack
        self.outputs = np.zeros((space.n_vectors, len(rows)))

    def open(self, loop):
        """Fetch the scores, and reserve slots for coefficients."""
        space = loop.space
        self.loop = loop
        self.n_before = space.n_support
        self.log_start = 0 if space.log is None else len(space.log)
        self.scores = np.ascontiguousarray(loop.scores[:, self.rows])
        moved, deltas = loop.moves.all()
        if moved is not None and loop.only_block is None:
            self.scores += loop.scores_by(self.points, moved, deltas)
        self.slots = loop.slots[self.rows]
        new = np.flatnonzero(self.slots < 0)
        self.new = new if len(new) <= space.free else new[:0]
        self.slots[self.new] = self.n_before + np.arange(len(self.new))
        space.reserve(len(self.new))
        self.n_slots = self.n_before + len(self.new)
        self.t, self.acc = space.t, space.acc
        self.first_corrections = np.full(self.scores.shape, -1, dtype=np.int64)
        self.outside = loop.scores if loop.only_block is None else None
        self.before = self._coefficients()
        self.sweeps = space.per_vector("passes").copy()

    def _coefficients(self):
        return np.where(self.slots >= 0, self.space.t[:, self.slots], 0.0)

    def close(self, loop):
        """Add the corrected rows to the support set, and store the scores."""
        space = loop.space
        self.loop = None
        loop.scores[:, self.rows] = self.scores
        forgot = space.per_vector("passes") > self.sweeps
        self.before[forgot] = 0.0
        change = self._coefficients() - self.before
        first, none = self.first_corrections, np.iinfo(np.int64).max
        first = np.where(first < 0, none, first).min(axis=0)
        joining = self.new[first[self.new] < none]
        joining = joining[np.argsort(first[joining], kind="stable")]
        numbers = self.rows[joining] + space.first_row_of(loop.task)
        which = np.searchsorted(self.new, joining)
        space.adopt(self.points.take(joining), numbers, len(self.new), which, self.log_start)
        loop.slots[self.rows[joining]] = self.n_before + np.arange(len(joining))
        loop.mistakes += _count_mistakes(self.outputs, loop.task.codes[self.rows])
        if loop.only_block is None:
            loop.moves.add(self.points, change, forgot)
            loop.visited.append((self.rows, loop.moves.n))

    def refresh(self, vector):
        """Recompute S and the scores of one vector, and keep t within its range."""
        space, loop = self.space, self.loop
        others = space.t[vector, : self.n_before].copy()
        others[self.slots[(self.slots >= 0) & (self.slots < self.n_before)]] = 0.0
        t = self._coefficients()[vector]
        size = np.abs(t) @ self.points.lengths
        scores = self.products @ t
        square = t @ scores - space.slack**2 * (t @ t)
        if others.any():
            support = space.support.points
            size += np.abs(others) @ support.lengths
            by_others = loop.scores_by(self.points, support, others[np.newaxis])[0]
            square += 2.0 * (t @ by_others)
            for start in range(0, support.n, BLOCK):
                part, weights = support.part(start, min(start + BLOCK, support.n)), others[start:]
                by_part = loop.scores_by(part, support, others[np.newaxis])[0]
                square += by_part @ weights[: part.n]
            scores += by_others
        self.scores[vector] = scores
        # A squared norm below the rounding error is taken to be 0.
        square = square if square > self.error * size * size else 0.0
        if square > 0.0 and not _LEAST_SQUARE < square < 1.0 / _LEAST_SQUARE:
            shift = -(frexp(square)[1] // 2)
            space.rescale(vector, shift)
            for array in (self.scores, self.before, loop.scores):
                array[vector] *= 2.0**shift
            loop.moves.rescale(vector, 2.0**shift)
            square *= 4.0**shift
        space.set_square(vector, square)


def _count_mistakes(outputs, codes):
    """Number of rows whose class the outputs before their trials predict wrongly."""
    if len(outputs) == 1:
        return int(np.count_nonzero((outputs[0] >= 0.0) != (codes == 1)))
    return int(np.count_nonzero(outputs.argmax(axis=0) != codes))


def _blocks(rows) -> Iterator[np.ndarray]:
    for start in range(0, len(rows), BLOCK):
        yield rows[start : start + BLOCK]


class KernelSpace(KernelState, SupportSpace, Replayed):
    """Vectors over a support set; see `KernelState` for the parameters."""

    @contextmanager
    def loop(self, task: Any, rule: Any = None, *, skips: bool = False) -> Iterator[KernelLoop]:
        if task.first_row is not None and task.row_state is None:
            task.row_state = self._slots(task), None
        self.resume(task.max_corrections)
        set_thresholds(self, rule)
        try:
            with single_blas():
                loop = KernelLoop(self, rule, task, skips=skips)
            yield loop
            task.row_state = loop.slots, None
        finally:
            self.kernel.forget_rows()

    @property
    def full(self) -> bool:  # type: ignore[override]
        return bool(self.passed_over.any())

    def _slots(self, task: Any) -> np.ndarray:
        """Slots of the task's rows in the support set, found by their numbers; -1: none."""
        slots = np.full(len(task.codes), -1, dtype=np.int64)
        rows = self.origin - task.first_row
        which = np.flatnonzero((rows >= 0) & (rows < len(slots)))
        slots[rows[which]] = which
        return slots

    def replays(self, rows: Any, n_threads: int, n_points: int) -> Iterator[tuple[Any, ...]]:
        X, _ = points_of(rows, self.bias)
        for which, products in support_products(self, rows, n_threads):
            yield which, X[which], 0, partial(KernelReplay, self, products)

    def norms(self, n_threads: int) -> np.ndarray:
        if self.has_row_lengths:
            return super().norms(n_threads)
        if self.logged or self.averaged:
            raise ValueError(
                "kernel='precomputed' keeps no kernel of support rows, which the norm of an "
                "average takes. Fit with hypothesis='last', or pass the kernel as a function."
            )
        norms: np.ndarray = self.visible_norm() * self.mixture()[0] / self.per_vector("scale")
        return norms

    def largest_norm(self, rows: Any, weights: np.ndarray | None) -> float:
        which = np.arange(rows.n_rows)
        lengths = self._lengths(rows, which if weights is None else which[weights > 0])
        return float(np.hypot(lengths.max(initial=0.0), self.slack))
