"""Labels whose dense state would not fit the memory there is for it: learned block by block.

Between tasks the numbers of all labels are held sparsely, those of sixteen labels side by side. A
task lays out, of one block of labels after the other, a dense `LinearSpace` over the features that
its rows or any vectors have, and packs it again. Labels learn nothing from one another, and sweeps
add nothing where a coordinate is 0: so all numbers are, to the bit, those of one dense space.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sparsemargin._engine.first_order.linear_loop import LinearLoop
from sparsemargin._engine.first_order.linear_outputs import LinearOutputs
from sparsemargin._engine.first_order.spaces import LinearSpace
from sparsemargin._engine.fitting.task import Positives
from sparsemargin._engine.fitting.threads import uninterrupted
from sparsemargin._engine.rows.csr import OK, BadRow, Csr, first_bad_row
from sparsemargin._engine.state import (
    aligned,
    array_of,
    length_of,
    part,
    require,
    require_within,
    whole,
)

#: What the dense state of the labels that are learned together may take.
DENSE_BYTES = 1 << 29

# Labels that are held together, and the fewest that are learned together.
GROUP = 16

_MOST_FEATURES = 1 << 58


def labels_at_once(n_coordinates, n_labels, itemsize):
    """How many labels' dense state fits, at so many bytes a number; all, or a multiple of 16."""
    fitting = DENSE_BYTES // max(1, n_coordinates * itemsize)
    return n_labels if n_labels <= max(fitting, GROUP) else max(GROUP, fitting // GROUP * GROUP)


class Held(NamedTuple):
    """What some labels have learned, but for coordinates that are 0 for all of them.

    Attributes
    ----------
    columns : ndarray of shape (n_held,), int64
        The others, rising.
    t, g, acc, synced : ndarray of shape (n_held, n_labels) or None
        Theirs; g is None where it is t, the last two without an average.
    """

    columns: np.ndarray
    t: np.ndarray
    g: np.ndarray | None
    acc: np.ndarray | None
    synced: np.ndarray | None

    @classmethod
    def of(cls, columns, arrays):
        """Take what is not 0 out of such arrays over these columns, and leave zeros."""
        some = np.flatnonzero(np.any([a.any(axis=1) for a in arrays if a is not None], axis=0))
        taken = [None if array is None else array[some] for array in arrays]
        for array in arrays:
            if array is not None:
                array[some] = 0
        return cls(columns[some], *taken)

    def over(self, wanted):
        """What is held of the coordinates that are wanted."""
        there = wanted[self.columns]
        return Held(*(None if each is None else each[there] for each in self))

    def lay_out(self, columns, arrays):
        """Put the numbers into such arrays full of zeros over these columns."""
        at = np.searchsorted(columns, self.columns)
        for array, numbers in zip(arrays, self[1:], strict=True):
            if array is not None:
                array[at] = numbers

    def matrix(self, numbers, n_coordinates):
        """CSR of such numbers, shape (n_labels, n_coordinates)."""
        from scipy.sparse import csr_array

        label, at = np.nonzero(numbers.T)
        starts = np.searchsorted(label, np.arange(numbers.shape[1] + 1))
        parts = numbers[at, label], self.columns[at], starts
        return csr_array(parts, shape=(numbers.shape[1], n_coordinates))


class LabelBlocks(LinearSpace):
    """The learned state of many labels, of which a block at a time is dense.

    Itself it is a linear space of all labels over a coordinate that is always 0: what a space
    keeps of its labels, and of a task's rows, it keeps as any other.

    Parameters
    ----------
    n_features, n_labels, p, dtype, bias, slack, averaged, normalized
        As those of `LinearSpace`.

    Attributes
    ----------
    held : list of Held
    """

    n_features = 0

    def __init__(
        self, n_features, n_labels, p, dtype, *, bias, slack, averaged, normalized, log=None
    ):
        super().__init__(
            1, n_labels, p, dtype, bias=bias, slack=slack, averaged=averaged,
            normalized=normalized, log=None,
        )  # fmt: skip
        self.n_features = n_features
        nothing = np.zeros(0, np.int64)
        self.held = [
            Held.of(nothing, [array if array is None else array[:0] for array in of_group])
            for of_group in self.arrays(self, 0, n_labels)
        ]

    @classmethod
    def of(cls, space):
        """What a dense space has learned."""
        fresh = cls(
            space.n_features, space.n_labels, space.p, space.t.dtype, bias=space.bias,
            slack=space.slack, averaged=space.averages, normalized=space.normalizes,
        )  # fmt: skip
        fresh.take_from(space, np.arange(len(space.t)), 0)
        fresh.count_trials(space.trials)
        return fresh

    def arrays(self, space, first, last):
        """Those of a space of the labels from first to before last, group by group."""
        shared = (space.g is space.t, *(not space.averages,) * 2)
        whole = [space.t, *(None if without else array for array, without in zip(
            (space.g, space.acc, space.synced), shared, strict=True))]  # fmt: skip
        return [
            [None if array is None else array[:, a - first : b - first] for array in whole]
            for a, b in self.groups(first, last)
        ]

    @property
    def n_coordinates(self):
        return self.n_features + (1 if self.bias else 0)

    @property
    def nbytes(self):
        """Bytes that what is held takes."""
        return sum(array.nbytes for held in self.held for array in held if array is not None)

    def groups(self, first, last):
        """First and last label of those held together."""
        return [(start, min(start + GROUP, last)) for start in range(first, last, GROUP)]

    @property
    def itemsize(self):
        """Bytes of a number of the dense state."""
        (arrays,) = self.arrays(self, 0, 1)
        return sum(array.itemsize for array in arrays if array is not None)

    def blocks(self, n_columns, itemsize):
        """First and last label of those of which so many coordinates fit, at so many bytes each."""
        size = labels_at_once(n_columns, self.n_labels, itemsize)
        starts = range(0, self.n_labels, size)
        return [(first, min(first + size, self.n_labels)) for first in starts]

    # ---------------------------------------------------------------------------- block by block

    def wanted(self, rows, *, learns):
        """Which coordinates these rows have, and, to learn from them, any label: bool."""
        wanted = np.zeros(self.n_coordinates, bool)
        wanted[rows.indices[rows.indptr[0] : rows.indptr[-1]]] = True
        wanted[-1] = True  # where the intercept's would be
        for held in self.held if learns else ():
            wanted[held.columns] = True
        return wanted

    def empty(self, n_columns, n_labels):
        """A space of so many of the labels over so many coordinates, for `learning`."""
        return LinearSpace(
            n_columns - (1 if self.bias else 0), n_labels, self.p, self.t.dtype, bias=self.bias,
            slack=self.slack, averaged=self.averages, normalized=self.normalizes, log=None,
        )  # fmt: skip

    @contextmanager
    def learning(self, space, wanted, first, n_rows):
        """Let an empty space over the coordinates that are wanted be that of the labels from
        `first` on; what it has learned is taken over, and it is empty again."""
        columns, last = np.flatnonzero(wanted), first + space.n_labels
        for mine, its in self.scalars(space, first, last):
            its[...] = mine
        space.begin_after(self.trials)
        held = self.held[first // GROUP :]
        for each, arrays in zip(held, self.arrays(space, first, last), strict=False):
            each.lay_out(columns, arrays)
        of_rows = self.row_slack, self.multipliers
        kept = tuple(None if each is None else each[:, first:last] for each in of_rows)
        space.open_rows(n_rows, kept, self.multipliers is not None)
        try:
            yield space
        finally:
            for mine, its in zip(kept, space.close_rows(), strict=True):
                if mine is not None:
                    mine[...] = its
            self.take_from(space, columns, first)

    def take_from(self, space, columns, first):
        """Take over what the labels from `first` on have learned in a dense space over these
        columns, and leave it empty."""
        last = first + space.n_labels
        for mine, its in self.scalars(space, first, last):
            mine[...] = its
        for group, arrays in enumerate(self.arrays(space, first, last), first // GROUP):
            self.held[group] = Held.of(columns, arrays)

    def scalars(self, space, first, last):
        """What this and a space of some of its labels keep of them."""
        pairs = ((getattr(each, name) for each in (self, space)) for name in _SCALARS)
        return [(mine[first:last], its[: last - first]) for mine, its in pairs]

    # --------------------------------------------------------------------------------- the state

    def resize(self, n_features, first=0):
        """As `LinearSpace.resize`."""
        before, self.n_features = self.n_features, n_features
        for i, held in enumerate(self.held):
            columns = np.where(held.columns < before, held.columns - first, n_features)
            self.held[i] = held._replace(columns=columns)

    def __getstate__(self):
        held = [each._asdict() for each in self.held]
        return {**super().__getstate__(), "n_features": self.n_features, "held": held}

    def __setstate__(self, state):
        super().__setstate__(state)
        require(self.n_labels > GROUP and part(state, "log") is None and len(self.t) == (
            2 if self.bias else 1), "it is not of labels in blocks")  # fmt: skip
        require(not any(array.any() for array in (self.t, self.g, self.acc)),
                "of a coordinate of no feature something is held")  # fmt: skip
        self.n_features = whole(state, "n_features", 1, _MOST_FEATURES)
        groups, states = self.arrays(self, 0, self.n_labels), part(state, "held")
        require(isinstance(states, list) and len(states) == len(groups), "'held' is not of them")
        self.held = [
            self.restored(aligned(each), arrays)
            for each, arrays in zip(states, groups, strict=True)
        ]

    def restored(self, state, like):
        """What `Held._asdict` gave, checked; `like` are arrays of these labels."""
        n = length_of(state, "columns")
        columns = array_of(state, "columns", np.int64, (n,))
        rising = np.diff(columns, prepend=-1, append=self.n_coordinates) > 0
        require(rising.all(), f"'columns' do not rise from 0 to {self.n_coordinates - 1}")
        for name, array in zip(Held._fields[1:], like, strict=True):
            if array is None:
                require(part(state, name) is None, f"{name!r} is not of a model like this")
            else:
                array_of(state, name, array.dtype, (n, array.shape[1]))
        if self.averages:
            flushes = self.labels["flushes"].max()
            require_within("synced", state["synced"], 0, int(flushes))
        return Held(*(state[name] for name in Held._fields))

    # ------------------------------------------------------------------------------- the weights

    def hypothesis(self, held, labels):
        """The weights of these labels for what is held of them; infinite where they exceed their
        type."""
        g = held.t if held.g is None else held.g
        return self.mixed(g, held.acc, held.synced, labels)

    def outputs(self, rows, wanted, first, last, n_threads):
        """Those of rows over the wanted coordinates, for the labels from first to before last."""
        columns = np.flatnonzero(wanted)
        # The hypothesis as the vectors of a Perceptron: outputs are products with these.
        space = LinearSpace(
            rows.n_features, last - first, 2.0, self.t.dtype, bias=self.bias, slack=0.0,
            averaged=False, normalized=False, log=None,
        )  # fmt: skip
        space.sigma[...] = 1.0 if self.averages else self.mixture()[0][first:last]
        for a, b in self.groups(first, last):
            held = self.held[a // GROUP].over(wanted)
            numbers = held.t if held.g is None else held.g
            if self.averages:
                numbers = self.hypothesis(held, slice(a, b))
            at = np.searchsorted(columns, held.columns)
            space.t[at, a - first : b - first] = numbers
        return LinearOutputs(space, rows).all(n_threads)

    def weights(self):
        """The hypothesis as CSR, shape (n_labels, n_coordinates)."""
        weights = self.stacked(self.hypothesis)
        if not np.isfinite(weights.data).all():
            raise ValueError(f"The weights exceed {self.t.dtype}. Rescale X, or pass float64.")
        return weights

    def theta(self):
        """The dual vectors as CSR, shape (n_labels, n_coordinates)."""
        return self.stacked(lambda held, labels: held.t * self.per_label("scale")[labels])

    def stacked(self, made):
        """CSR of the numbers that are made of what is held of some labels, and of these."""
        from scipy.sparse import vstack

        groups = zip(self.held, self.groups(0, self.n_labels), strict=True)
        blocks = (
            held.matrix(made(held, slice(a, b)), self.n_coordinates) for held, (a, b) in groups
        )
        return vstack(list(blocks), format="csr")


_SCALARS = "labels", "sigma", "threshold", "pending"


def resized(space, n_features, first=0):
    """The space with so many features, see `LinearSpace.resize`; held sparsely from where the
    dense state of all its labels would no longer fit."""
    if type(space) is LinearSpace and space.log is None:
        n, before = (count + (1 if space.bias else 0) for count in (n_features, space.n_features))
        itemsize = space.nbytes // (before * space.width)
        if labels_at_once(n, space.n_labels, itemsize) < space.n_labels:
            space = LabelBlocks.of(space)
    space.resize(n_features, first)
    return space


def narrowed(rows, wanted, bias):
    """The rows over the wanted coordinates alone, the last of which is an intercept's if there is
    a bias."""
    columns, entries = np.flatnonzero(wanted), slice(rows.indptr[0], rows.indptr[-1])
    indices = np.searchsorted(columns, rows.indices[entries]).astype(rows.indices.dtype)
    indptr = rows.indptr - rows.indptr[0]
    return Csr(rows.data[entries], indices, indptr, len(columns) - (1 if bias else 0))


class BlockLoop(LinearLoop):
    """The loop over `LabelBlocks`: every pass is made by one block of labels after the other.

    Ctrl-C waits for the end of the pass, as all labels then have made the same trials.
    """

    gram_suits = False
    mistakes = None  # no block sees all outputs

    def __init__(self, space, rule, task):
        if task.check:
            status, row = first_bad_row(task.rows, True)
            if status != OK:
                raise BadRow(status, row)
        super().__init__(space, rule, task)
        self.take_rows()

    def take_rows(self):
        self.wanted = self.space.wanted(self.task.rows, learns=True)
        self.rows = narrowed(self.task.rows, self.wanted, self.space.bias)

    def sum_repeats(self):
        super().sum_repeats()
        self.take_rows()

    def certificate(self):
        certificate = super().certificate()
        certificate.outputs_by = BlockOutputs
        return certificate

    def run(self, order, seed, stop, n_passes, check):
        learning, passes, converged = self._call(order, seed, 0, stop, n_passes, check)
        self.part = 0.0
        return learning, passes, converged

    def _call(self, order, seed, start, stop, n_passes, check):
        ends, n_rows, n_columns = [], len(self.task.codes), np.count_nonzero(self.wanted)
        dense = None
        with uninterrupted():
            for first, last in self.space.blocks(n_columns, self.space.itemsize):
                if dense is None or dense.n_labels != last - first:
                    dense = self.space.empty(n_columns, last - first)
                task = task_of(self.task, self.rows, first, last)
                with self.space.learning(dense, self.wanted, first, n_rows):
                    ended = LinearLoop(dense, self.rule, task).run(order, seed, stop, 1, False)
                    ends.append((*ended, dense.trials))
            learning, passes, converged, trials = zip(*ends, strict=True)
            self.space.count_trials(max(trials))
            self.part = stop / n_rows
        return any(learning), max(passes), all(converged)


def task_of(task, rows, first, last):
    """What the labels from first to before last learn from: rows with any number of them."""
    starts, labels = task.positives or (np.arange(len(task.codes) + 1), task.codes)
    mine = (first <= labels) & (labels < last)
    positives = Positives(np.append(0, np.cumsum(mine))[starts], labels[mine] - first)
    weights = np.ascontiguousarray(task.class_weight[:, first:last])
    return replace(task, rows=rows, positives=positives, class_weight=weights)


class BlockOutputs(LinearOutputs):
    """Outputs of `LabelBlocks`, made anew for every part."""

    def __init__(self, space, rows):
        self.space, self.rows = space, rows

    def part(self, start, stop):
        return BlockOutputs(self.space, self.rows.part(start, stop)).all(1)

    def all(self, n_threads):
        space = self.space
        wanted = space.wanted(self.rows, learns=False)
        rows = narrowed(self.rows, wanted, space.bias)
        out = np.empty((self.rows.n_rows, space.n_labels))
        for first, last in space.blocks(np.count_nonzero(wanted), space.t.itemsize):
            out[:, first:last] = space.outputs(rows, wanted, first, last, n_threads)
        return out
