"""What a space owes to models, and a loop to the driver of its passes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from sparsemargin._engine.fitting.task import Task
from sparsemargin._engine.rows.csr import BadRow, Csr, row_norms
from sparsemargin._engine.rows.parts import part_of

# Between two calls of a compiled loop, some 20 ms apart, Python can hear Ctrl-C.
PRODUCTS_PER_CALL = 1 << 23


class Space(ABC):
    """What is learned, in whatever form; models ask all spaces alike.

    A space is also saved, pickled and copied by its `__getstate__` and `__setstate__`. Those with
    vectors of weights have `weights`, those with a support set (`has_support`) what `SupportSpace`
    tells. The methods of compiled states come first in the order of the bases: what they have is
    not abstract.

    Attributes
    ----------
    n_labels, n_features : int
    p : float
        Of the norm of the instances.
    """

    n_labels: int
    n_features: int
    p: float

    #: Whether rows may have any number of labels.
    takes_many_labels = False
    #: Whether the vectors are combinations of a support set's rows, not vectors of weights.
    has_support = False
    #: Whether the weights are held sparsely, labels block by block.
    in_blocks = False
    #: Whether corrections are logged, for hypotheses that are replayed.
    logged: Any = False
    # How many are held at once.
    outputs_per_part = 1 << 21
    #: Whether the lengths of rows to predict can be told, as margins need.
    tells_lengths: Any = True
    #: What corrections make larger, in words, and the parameter that bounds it; None: nothing that
    #: need be watched.
    growth: Any = None
    #: Whether a bound on memory has kept any correction, or the matrix, from being made.
    full: Any = False
    #: A number from which on no row has been learned from.
    first_new_row: Any = 0

    @abstractmethod
    def loop(
        self, task: Task, rule: Any = None, *, skips: bool = False
    ) -> AbstractContextManager[Loop]:
        """A context that opens the loop over a task: every label learns.

        rule: FirstOrderRule, of a first-order space; skips: whether trials are passed over that a
        support set has no room for.
        """

    @abstractmethod
    def resume(self, max_corrections: int | None = None) -> None:
        """Let labels learn on, up to that many corrections since their first."""

    @abstractmethod
    def exhausted(self) -> np.ndarray:
        """Whether each label has made all the corrections it was allowed, shape (n_labels,)."""

    @abstractmethod
    def count_trials(self, trials: int) -> None:
        """Let the trials go up to `trials` without a correction, for labels still learning."""

    @property
    @abstractmethod
    def bias(self) -> float:
        """Value of the intercept's coordinate; 0 for none."""

    @property
    @abstractmethod
    def trials(self) -> int:
        """Trials counted by now."""

    @property
    @abstractmethod
    def trials_per_label(self) -> np.ndarray:
        """Trials that count in each label's average, shape (n_labels,)."""

    @abstractmethod
    def per_label(self, name: str) -> np.ndarray:
        """The labels' numbers of that name, among them "corrections", shape (n_labels,)."""

    @abstractmethod
    def outputs(self, rows: Csr, n_threads: int) -> np.ndarray:
        """Outputs of checked rows by the last or averaged hypothesis, shape (n_rows, n_labels)."""

    @abstractmethod
    def norms(self, n_threads: int) -> np.ndarray:
        """Dual norm of each label's hypothesis, shape (n_labels,)."""

    def resize(self, n_features: int, first: int = 0) -> None:
        """Keep the features from `first` on and let them be n_features, in a stream."""
        raise NotImplementedError

    @property
    def q(self) -> float:
        """Of the dual norm."""
        return self.p / (self.p - 1.0)

    def row_lengths(self, rows: Csr) -> np.ndarray:
        """Norm of checked rows, the intercept's coordinate included, shape (n_rows,)."""
        return row_norms(rows, self.p, self.bias)

    def outputs_by(self, hypothesis: str, rows: Csr, seed: int, n_threads: int) -> np.ndarray:
        """Outputs of checked rows by a hypothesis of that name, shape (n_rows, n_labels)."""
        return self.outputs(rows, n_threads)

    def outputs_in_parts(
        self, hypothesis: str, rows: Csr, seed: int, n_threads: int
    ) -> tuple[Callable[[int, int], np.ndarray], int]:
        """What gives the outputs of the rows from one to before another, and how many rows to ask
        for at once."""

        def of_part(start: int, stop: int) -> np.ndarray:
            try:
                return self.outputs_by(hypothesis, part_of(rows, start, stop), seed, n_threads)
            except BadRow as bad:
                raise BadRow(bad.status, start + bad.row) from None

        return of_part, max(1, self.outputs_per_part // self.n_labels)

    def number(self, task: Task, same: bool) -> None:  # noqa: B027
        """Number the rows of a fit; same: they are those of the last one."""

    def number_on(self, task: Task) -> None:  # noqa: B027
        """Number the next rows on from the task's."""


class NumberedRows(Space):
    """Base of the spaces that keep numbers of rows, of which they have taken `rows_taken`."""

    rows_taken: int

    @property
    def first_new_row(self) -> int:
        return self.rows_taken

    def first_row_of(self, task: Task) -> int:
        """Number of the task's first row."""
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
        Rows whose class was predicted wrongly just before they were learned from, where known.
    """

    mistakes: Any

    # The loop that may make whole passes in place of this one, by the rows' dot products; whether
    # one call can make several.
    by_products: Any = None
    repeats = False

    def __init__(self, space: Any, task: Task) -> None:
        self.space, self.task = space, task

    @property
    def products(self) -> int:
        """Multiplications in a pass without a correction."""
        return max(1, int(self.task.rows.indptr[-1]) * self.space.n_labels)

    @property
    def corrections(self) -> int:
        """Those of all labels so far."""
        return int(self.space.per_label("corrections").sum())

    @abstractmethod
    def run(
        self, order: np.ndarray | None, seed: int | None, stop: int, n_passes: int, check: bool
    ) -> tuple[bool, int, bool]:
        """Make passes over the first `stop` rows of the order, which has been shuffled.

        Returns
        -------
        learning : bool
            Whether any label has not used up its corrections.
        passes : int
            Those begun.
        converged : bool
            Whether the last made no correction.
        """


class SpanLoop(Loop):
    """A loop whose passes are made in spans, between two of which Ctrl-C is heard.

    Attributes
    ----------
    span : int
        Trials of one.
    """

    def __init__(self, space: Any, task: Task) -> None:
        super().__init__(space, task)
        self.span = max(1, PRODUCTS_PER_CALL * len(task.codes) // self.products)

    def run(
        self, order: np.ndarray | None, seed: int | None, stop: int, n_passes: int, check: bool
    ) -> tuple[bool, int, bool]:
        """As that of `Loop`, for one pass."""
        before, done, learning = self.corrections, 0, True
        while done < stop and learning:
            start, done = done, min(done + self.span, stop)
            learning = self.run_span(order, start, done, stop, check)
        return learning, 1, self.corrections == before

    @abstractmethod
    def run_span(
        self, order: np.ndarray | None, start: int, stop: int, end: int, check: bool
    ) -> bool:
        """Make the trials of a pass from start to before stop, those before `end` being all of it;
        whether any label is learning."""
