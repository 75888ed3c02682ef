"""What a loop over rows learns from, and what all loops and all spaces share."""

from __future__ import annotations

import sys
import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from sparsemargin._engine.rows.csr import BadRow, Csr, row_norms
from sparsemargin._engine.state import array_of, received, writable

# Between two calls of a compiled loop, some 20 ms apart, Python can hear Ctrl-C.
PRODUCTS_PER_CALL = 1 << 23


def warn_user(message, category=UserWarning):
    """Warn at the line that has called the package."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("sparsemargin."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def part_of(rows, start, stop):
    """The rows from `start` to before `stop`, in arrays that begin and end with them."""
    indptr = rows.indptr[start : stop + 1]
    entries = slice(indptr[0], indptr[-1])
    return Csr(rows.data[entries], rows.indices[entries], indptr - indptr[0], rows.n_features)


def pointers_of(lengths, dtype):
    """Where parts of these lengths begin, and the last one ends."""
    pointers = np.zeros(len(lengths) + 1, dtype=dtype)
    np.cumsum(lengths, out=pointers[1:])
    return pointers


def gathered(pointers, parts, dtype=None):
    """Pointers of these parts, one after the other, of their own type unless another is given, and
    the places of what they hold."""
    begins = pointers[parts]
    lengths = pointers[parts + 1] - begins
    fresh = pointers_of(lengths, dtype or pointers.dtype)
    return fresh, np.arange(fresh[-1]) + np.repeat(begins - fresh[:-1], lengths)


def rows_at(rows, chosen):
    """Copies of the rows of these numbers, in their order."""
    indptr, entries = gathered(rows.indptr, chosen)
    return Csr(rows.data[entries], rows.indices[entries], indptr, rows.n_features)


def vectors_of(weights):
    """The rows of an array, or of a CSR array of which one at a time is made dense."""
    for i in range(weights.shape[0]):
        yield weights[i] if isinstance(weights, np.ndarray) else weights[[i]].toarray().ravel()


def norm(v, q):
    """The q-norm of a vector, whatever its magnitude."""
    largest = float(np.abs(v).max(initial=0.0))
    return largest * float(np.linalg.norm(v / largest, ord=q)) if largest else 0.0


class Positives(NamedTuple):
    """The labels of each row, where a row may have any number of them.

    Attributes
    ----------
    starts : ndarray of shape (n_rows + 1,), int64
    labels : ndarray of shape (n_positives,), int64
        Those of row r are ``labels[starts[r]:starts[r + 1]]``, without repeats; sorted, but
        where a choice has ranked them.
    """

    starts: np.ndarray
    labels: np.ndarray

    def __reduce__(self):
        return received, (Positives, *self)

    def indicator(self, rows, n_labels):
        """Which labels a slice of rows has, shape (n_rows, n_labels), bool."""
        starts = self.starts[rows.start : rows.stop + 1]
        result = np.zeros((len(starts) - 1, n_labels), dtype=bool)
        row = np.repeat(np.arange(len(result)), np.diff(starts))
        result[row, self.labels[starts[0] : starts[-1]]] = True
        return result


@dataclass
class Task:
    """What the loop learns from, and how.

    Attributes
    ----------
    rows : Rows
    codes : ndarray of shape (n_rows,), int64
        The class of each row; zeros where rows have `positives`.
    weights : ndarray of shape (n_rows,) or None
    class_weight : ndarray of shape (2, n_labels)
    check : bool
        Whether rows are still to be checked, as they are first used.
    max_corrections : int or None
    n_threads : int
        Labels are split over that many threads; the result is the same for any number.
    first_row : int or None
        Number of the first row, in a stream that may come to the same rows again; None: they are
        counted on from those before.
    row_state : tuple or None
        What the rows have besides: their soft-margin coordinates and their multipliers, or None
        for either. Left behind by one fit, they let another go on with the same rows.
    positives : Positives or None
        The labels of each row, each a problem of its own; None: rows have a class.
    """

    rows: Any
    codes: np.ndarray
    weights: np.ndarray | None
    class_weight: np.ndarray
    check: bool = False
    max_corrections: int | None = None
    n_threads: int = 1
    first_row: int | None = None
    row_state: tuple[np.ndarray | None, np.ndarray | None] | None = None
    positives: Positives | None = None

    @property
    def n_trials(self) -> int:
        """Trials in a pass over the rows: those of weight 0 are none."""
        return len(self.codes) if self.weights is None else int(np.count_nonzero(self.weights))

    def order(self, *, shuffled=False):
        """The rows of a pass, to be shuffled perhaps; None: all, as they come."""
        if self.weights is not None and self.n_trials < len(self.codes):
            return np.flatnonzero(self.weights)
        return np.arange(len(self.codes)) if shuffled else None

    def slots(self, n_support):
        """The rows' slots in the support set, -1 for none: those of the last fit, which may come
        from a file."""
        n_rows = len(self.codes)
        if self.row_state is None:
            return np.full(n_rows, -1, dtype=np.int64)
        state = {"slots": self.row_state[0]}
        return writable(array_of(state, "slots", np.int64, (n_rows,), -1, n_support - 1))

    def is_positive(self, rows, n_labels):
        """Which rows of a slice are positive for which label, shape (n_rows, n_labels), bool."""
        if self.positives is not None:
            return self.positives.indicator(rows, n_labels)
        first = 1 if n_labels == 1 else 0
        return self.codes[rows, np.newaxis] == np.arange(first, first + n_labels)

    def shares(self, label, n_labels, rows=slice(None)):
        """Which of the rows are positive for the label, and what multiplies their steps."""
        if self.positives is not None:
            positive = np.zeros(len(self.codes), dtype=bool)
            at = np.flatnonzero(self.positives.labels == label)
            positive[np.searchsorted(self.positives.starts, at, side="right") - 1] = True
            positive = positive[rows]
        else:
            positive = self.codes[rows] == (label if n_labels > 1 else 1)
        shares = self.class_weight[positive.astype(np.intp), label]
        return positive, shares if self.weights is None else shares * self.weights[rows]

    def steps(self, label, n_labels, rows):
        """What a mistake on each of the rows makes, with the sign of its label for this one."""
        positive, shares = self.shares(label, n_labels, rows)
        return np.where(positive, shares, -shares)


class Space:
    """What is learned, in whatever form; base of the spaces, which models ask alike.

    Beside what stands here, spaces have counts `per_label`, `trials_per_label`, `count_trials`,
    `exhausted`, `resume`, `resize`, and what they need to be saved.
    """

    if TYPE_CHECKING:
        __getstate__: ClassVar[Any]

        def __getattr__(self, name: str) -> Any:
            """What the compiled states have that spaces are made of."""

    #: Whether rows may have any number of labels.
    takes_many_labels = False
    #: Whether the vectors are combinations of a support set's rows, not vectors of weights.
    has_support = False
    #: Whether the weights are held sparsely, labels block by block.
    in_blocks = False
    #: Whether corrections are logged, for hypotheses that are replayed.
    logged = False
    # How many are held at once.
    outputs_per_part = 1 << 21
    #: Whether the lengths of rows to predict can be told, as margins need.
    tells_lengths = True
    #: What corrections make larger, in words, and the parameter that bounds it; None: nothing that
    #: need be watched.
    growth = None
    #: Whether a bound on memory has kept any correction, or the matrix, from being made.
    full = False
    #: A number from which on no row has been learned from.
    first_new_row = 0

    @abstractmethod
    def loop(self, task, rule=None, *, skips=False):
        """A context that opens the loop over a task: every label learns.

        rule: FirstOrderRule, of a first-order space; skips: whether trials are passed over that a
        support set has no room for.
        """

    @abstractmethod
    def outputs(self, rows, n_threads):
        """Outputs of checked rows by the last or averaged hypothesis, shape (n_rows, n_labels)."""

    @property
    def q(self):
        """Of the dual norm."""
        return self.p / (self.p - 1.0)

    @abstractmethod
    def norms(self, n_threads):
        """Dual norm of each label's hypothesis, shape (n_labels,)."""

    def row_lengths(self, rows):
        """Norm of checked rows, the intercept's coordinate included, shape (n_rows,)."""
        return row_norms(rows, self.p, self.bias)

    def outputs_by(self, hypothesis, rows, seed, n_threads):
        """Outputs of checked rows by a hypothesis of that name, shape (n_rows, n_labels)."""
        return self.outputs(rows, n_threads)

    def outputs_in_parts(self, hypothesis, rows, seed, n_threads):
        """What gives the outputs of the rows from one to before another, and how many rows to ask
        for at once."""

        def of_part(start, stop):
            try:
                return self.outputs_by(hypothesis, part_of(rows, start, stop), seed, n_threads)
            except BadRow as bad:
                raise BadRow(bad.status, start + bad.row) from None

        return of_part, max(1, self.outputs_per_part // self.n_labels)

    def number(self, task, same):
        """Number the rows of a fit; whether they are those of the last one."""

    def number_on(self, task):
        """Number the next rows on from the task's."""


class NumberedRows(Space):
    """Base of the spaces that keep numbers of rows.

    Attributes
    ----------
    rows_taken : int
        Rows numbered so far, in streams and in fits that went on.
    """

    rows_taken: int

    @property
    def first_new_row(self):
        return self.rows_taken

    def first_row_of(self, task):
        """Number of the task's first row."""
        return self.rows_taken if task.first_row is None else task.first_row

    def number(self, task, same):
        task.first_row = self.rows_taken - (len(task.codes) if same else 0)

    def number_on(self, task):
        self.rows_taken = max(self.rows_taken, self.first_row_of(task) + len(task.codes))


class Loop:
    """A compiled loop bound to one task, and the driver of its passes.

    A loop of a space gives `run_span`, or a `run` of its own where one call makes several passes.

    Parameters
    ----------
    space : Space
    task : Task

    Attributes
    ----------
    span : int
        Trials between two checks for Ctrl-C.
    """

    # The loop that may make whole passes in place of this one, by the rows' dot products; whether
    # one call can make several.
    by_products = None
    repeats = False

    def __init__(self, space, task):
        self.space, self.task = space, task
        self.span = max(1, PRODUCTS_PER_CALL * len(task.codes) // self.products)

    @property
    def products(self):
        """Multiplications in a pass without a correction."""
        return max(1, int(self.task.rows.indptr[-1]) * self.space.n_labels)

    @property
    def corrections(self):
        """Those of all labels so far."""
        return int(self.space.per_label("corrections").sum())

    def run(self, order, seed, stop, n_passes, check):
        """Make passes over the first `stop` rows of the order, which has been shuffled: here one.

        Returns
        -------
        learning : bool
            Whether any label has not used up its corrections.
        passes : int
            Those begun.
        converged : bool
            Whether the last made no correction.
        """
        before, done, learning = self.corrections, 0, True
        while done < stop and learning:
            start, done = done, min(done + self.span, stop)
            learning = self.run_span(order, start, done, stop, check)
        return learning, 1, self.corrections == before

    def run_span(self, order, start, stop, end, check):
        """Make the trials of a pass from start to before stop, those before `end` being all of it;
        whether any label is learning."""
        raise NotImplementedError
