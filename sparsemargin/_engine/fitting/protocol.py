"""The interfaces of spaces, used by models, and of loops, used by the epoch driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from sparsemargin._engine.fitting.task import Task
from sparsemargin._engine.rows.csr import BadRow, Csr, row_norms
from sparsemargin._engine.rows.parts import part_of

# Multiplications in one call of a compiled loop. A call takes about 20 ms; Ctrl-C is handled
# between calls.
PRODUCTS_PER_CALL = 1 << 23


class Space(ABC):
    """The trained state, in any representation; models use all spaces through this interface.

    A space is saved, pickled and copied by its `__getstate__` and `__setstate__`. Spaces with
    weight vectors have `weights`; spaces with a support set (`has_support`) derive from
    `SupportSpace`. Subclasses list the compiled state as their first base class, so that its
    methods replace the abstract ones.

    Attributes
    ----------
    n_vectors, n_features : int
    p : float
        The instances are measured by their p-norm.
    """

    n_vectors: int
    n_features: int
    p: float

    #: True if rows may have any number of labels.
    takes_many_labels = False
    #: True if the vectors are combinations of the rows of a support set.
    has_support = False
    #: True if the weights are stored sparsely and trained in blocks of vectors.
    in_blocks = False
    #: True if corrections are logged, as voted and random hypotheses require.
    logged: Any = False
    # Number of outputs (rows times vectors) in memory at once.
    outputs_per_part = 1 << 21
    #: True if the lengths of test rows can be computed, as margins require.
    has_row_lengths: Any = True
    #: The growing part of the space in words, and the parameter that limits it, for warnings about
    #: memory. None if the size is fixed.
    growth: Any = None
    #: True if a memory limit has prevented corrections, or the use of the matrix.
    full: Any = False
    #: Row numbers from this one on have not been used.
    first_new_row: Any = 0
    #: Type as which the space is saved; None: its own.
    saved_type: type | None = None

    @abstractmethod
    def loop(
        self, task: Task, rule: Any = None, *, skips: bool = False
    ) -> AbstractContextManager[Loop]:
        """A context that opens the training loop over a task, with all vectors in training.

        rule: FirstOrderRule, for first-order spaces; skips: whether trials are skipped if the
        support set has no room for their row.
        """

    @abstractmethod
    def resume(self, max_corrections: int | None = None) -> None:
        """Reactivate the vectors; each stops after `max_corrections` corrections in all."""

    def exhausted(self) -> np.ndarray:
        """Return whether each vector has made all the corrections it is allowed, shape
        (n_vectors,)."""
        limit = self.per_vector("limit")
        return (limit >= 0) & (self.per_vector("corrections") >= limit)

    @abstractmethod
    def count_trials(self, trials: int) -> None:
        """Raise the total number of trials to `trials`. Their corrections are already recorded."""

    @property
    @abstractmethod
    def bias(self) -> float:
        """Value of the intercept's coordinate; 0: none."""

    @property
    @abstractmethod
    def trials(self) -> int:
        """Number of trials so far."""

    @property
    @abstractmethod
    def trials_per_vector(self) -> np.ndarray:
        """Number of trials in the average of each vector, shape (n_vectors,)."""

    @abstractmethod
    def per_vector(self, name: str) -> np.ndarray:
        """The numbers called `name`, such as "corrections", of all vectors, shape (n_vectors,)."""

    @abstractmethod
    def outputs(self, rows: Csr, n_threads: int) -> np.ndarray:
        """Outputs of the last or averaged hypothesis for checked rows, (n_rows, n_vectors)."""

    @abstractmethod
    def norms(self, n_threads: int) -> np.ndarray:
        """Dual norm of each vector's hypothesis, shape (n_vectors,)."""

    def unpacked(self) -> Space:
        """Return the space in the form that training needs, usually itself."""
        return self

    def resize(self, n_features: int, first: int = 0) -> None:
        """Keep the features from `first` on and change their number to n_features, in a stream."""
        raise NotImplementedError

    @property
    def q(self) -> float:
        """The exponent of the dual norm."""
        return self.p / (self.p - 1.0)

    def row_lengths(self, rows: Csr) -> np.ndarray:
        """Norms of checked rows, including the intercept's coordinate, shape (n_rows,)."""
        return row_norms(rows, self.p, self.bias)

    def outputs_by(self, hypothesis: str, rows: Csr, seed: int, n_threads: int) -> np.ndarray:
        """Outputs of a hypothesis, by name, for checked rows, shape (n_rows, n_vectors)."""
        return self.outputs(rows, n_threads)

    def outputs_in_parts(
        self, hypothesis: str, rows: Csr, seed: int, n_threads: int
    ) -> tuple[Callable[[int, int], np.ndarray], int]:
        """A function that computes the outputs of the rows start..stop-1, and the recommended
        number of rows per call."""

        def of_part(start: int, stop: int) -> np.ndarray:
            try:
                return self.outputs_by(hypothesis, part_of(rows, start, stop), seed, n_threads)
            except BadRow as bad:
                raise BadRow(bad.status, start + bad.row) from None

        return of_part, max(1, self.outputs_per_part // self.n_vectors)

    def number(self, task: Task, same: bool) -> None:  # noqa: B027
        """Number the rows of a fit. If `same`, they are the rows of the last fit."""

    def number_on(self, task: Task) -> None:  # noqa: B027
        """Continue the row numbers after the rows of the task."""


class NumberedRows(Space):
    """Base class of the spaces that store row numbers; `rows_taken` numbers have been used."""

    rows_taken: int

    @property
    def first_new_row(self) -> int:
        return self.rows_taken

    def first_row_of(self, task: Task) -> int:
        """Number of the first row of the task."""
        return self.rows_taken if task.first_row is None else task.first_row

    def number(self, task: Task, same: bool) -> None:
        task.first_row = self.rows_taken - (len(task.codes) if same else 0)

    def number_on(self, task: Task) -> None:
        self.rows_taken = max(self.rows_taken, self.first_row_of(task) + len(task.codes))


class Loop(ABC):
    """A compiled loop bound to one task.

    Parameters
    ----------
    space : Space
    task : Task

    Attributes
    ----------
    mistakes : int or None
        Number of rows whose class was predicted wrongly before their trial, or None if unknown.
    """

    mistakes: Any

    # The loop with dot products that can replace this one for whole epochs, or None.
    by_products: Any = None
    # True if one call can run several epochs.
    repeats = False

    def __init__(self, space: Any, task: Task) -> None:
        self.space, self.task = space, task

    @property
    def products(self) -> int:
        """Number of multiplications in an epoch without a correction."""
        return max(1, int(self.task.rows.indptr[-1]) * self.space.n_vectors)

    @property
    def corrections(self) -> int:
        """Number of corrections of all vectors so far."""
        return int(self.space.per_vector("corrections").sum())

    @abstractmethod
    def run(
        self, order: np.ndarray | None, seed: int | None, stop: int, n_passes: int, check: bool
    ) -> tuple[bool, int, bool]:
        """Run epochs over the first `stop` rows of the order, which is already shuffled.

        Returns
        -------
        learning : bool
            Whether any vector may make further corrections.
        passes : int
            Number of epochs started.
        converged : bool
            Whether the last epoch made no correction.
        """


class SpanLoop(Loop):
    """A loop that splits an epoch into spans; Ctrl-C is handled between two spans.

    Attributes
    ----------
    span : int
        Number of trials in a span.
    """

    span: int

    def run(
        self, order: np.ndarray | None, seed: int | None, stop: int, n_passes: int, check: bool
    ) -> tuple[bool, int, bool]:
        """Like `Loop.run`, for one epoch."""
        before, done, learning = self.corrections, 0, True
        while done < stop and learning:
            start, done = done, min(done + self.span, stop)
            learning = self.run_span(order, start, done, stop, check)
        return learning, 1, self.corrections == before

    @abstractmethod
    def run_span(
        self, order: np.ndarray | None, start: int, stop: int, end: int, check: bool
    ) -> bool:
        """Make the trials start..stop-1 of an epoch of `end` trials; return whether any vector is
        still in training."""
