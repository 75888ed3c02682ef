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

from sparsemargin._engine import kernels
from sparsemargin._engine.first_order.linear_loop import LinearLoop
from sparsemargin._engine.first_order.linear_outputs import LinearOutputs
from sparsemargin._engine.first_order.spaces import LinearSpace
from sparsemargin._engine.fitting.task import Positives
from sparsemargin._engine.fitting.threads import uninterrupted
from sparsemargin._engine.rows.csr import Csr, first_bad_row
from sparsemargin._engine.state import aligned, array_of, length_of, part, require, whole

#: What the dense state of the labels that are learned together may take.
DENSE_BYTES = 1 << 29

# Labels that are held together, and the fewest that are learned together.
GROUP = 16

# Coordinates that are looked through at once stay in a near cache.
_ROWS_AT_ONCE = 1 << 14

_MOST_FEATURES = 1 << 58

# How many bits of a byte are set.
_ONES = np.array([byte.bit_count() for byte in range(256)])


def labels_at_once(n_coordinates, n_labels, itemsize):
    """How many labels' dense state fits, at so many bytes a number; all, or a multiple of 16."""
    fitting = DENSE_BYTES // max(1, n_coordinates * itemsize)
    return n_labels if n_labels <= max(fitting, GROUP) else max(GROUP, fitting // GROUP * GROUP)


class Held(NamedTuple):
    """What sixteen labels, or the last few, have learned, but for coordinates that are 0.

    Attributes
    ----------
    columns : ndarray of shape (n_held,), int64
        Coordinates of which any label has a number, rising.
    bits : ndarray of shape (n_held, n_bytes), uint8
        Which labels have one, packed.
    t, g, acc : ndarray of shape (n_numbers,) or None
        Theirs, row by row; g is None where it is t, acc without an average.
    """

    columns: np.ndarray
    bits: np.ndarray
    t: np.ndarray
    g: np.ndarray | None
    acc: np.ndarray | None

    @classmethod
    def of(cls, columns, t, g, acc):
        """Take what is not 0 out of arrays of shape (n_columns, n_labels), and leave zeros."""
        found = [np.zeros(0, np.intp)]
        for start in range(0, len(t), _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            bits = _nonzero(t[some])
            if acc is not None:
                bits |= _nonzero(acc[some])
            found.append(np.flatnonzero(bits) + start * t.shape[1])
        at = np.divmod(np.concatenate(found), t.shape[1])
        begins = np.diff(at[0], prepend=-1) > 0
        kept = at[0][begins]
        bits = np.zeros((len(kept), t.shape[1]), bool)
        bits[np.cumsum(begins) - 1, at[1]] = True
        taken = [None if array is None else array[at] for array in (t, g, acc)]
        for array in (t, g, acc):
            if array is not None:
                array[at] = 0
        return cls(columns[kept], np.packbits(bits, axis=1), *taken)

    def over(self, wanted):
        """What is held of the coordinates that are wanted."""
        there = wanted[self.columns]
        chosen = np.repeat(there, sum(_ONES[byte] for byte in self.bits.T))
        numbers = (None if each is None else each[chosen] for each in self[2:])
        return Held(self.columns[there], self.bits[there], *numbers)

    def lay_out(self, columns, array, numbers):
        """Put numbers, one for each of t, into an array full of zeros over such columns."""
        bits = np.unpackbits(self.bits, axis=1, count=array.shape[1]).view(bool)
        rows = np.zeros(bits.shape, array.dtype)
        rows[bits] = numbers
        array[np.searchsorted(columns, self.columns)] = rows

    def labels(self, n_labels):
        """That of each number, among those that are held together."""
        return np.nonzero(np.unpackbits(self.bits, axis=1, count=n_labels))[1]

    def matrix(self, numbers, n_labels, n_coordinates):
        """CSR of such numbers, one for each of t, shape (n_labels, n_coordinates)."""
        from scipy.sparse import csc_array

        of, label = np.nonzero(np.unpackbits(self.bits, axis=1, count=n_labels))
        starts = np.searchsorted(self.columns[of], np.arange(n_coordinates + 1))
        return csc_array((numbers, label, starts), shape=(n_labels, n_coordinates)).tocsr()

    @classmethod
    def restored(cls, state, n_labels, n_coordinates, like):
        """What `_asdict` gave, checked; `like` is what a block of the space has for its arrays."""
        n, n_bytes = length_of(state, "columns"), -(-n_labels // 8)
        columns = array_of(state, "columns", np.int64, (n,))
        rising = np.diff(columns, prepend=-1, append=n_coordinates) > 0
        require(rising.all(), f"'columns' do not rise from 0 to {n_coordinates - 1}")
        bits = array_of(state, "bits", np.uint8, (n, n_bytes))
        unpacked = np.unpackbits(bits, axis=1)
        require(not unpacked[:, n_labels:].any(), f"'bits' are not of {n_labels} labels")
        shape = (np.count_nonzero(unpacked),)
        for name, array in like.items():
            if array is None:
                require(part(state, name) is None, f"{name!r} is not of a model like this")
            else:
                array_of(state, name, array.dtype, shape)
        return cls(columns, bits, *(state[name] for name in like))


def _nonzero(array):
    """What is not 0 to the bit: -0.0 is not."""
    return array.view(f"i{array.itemsize}") != 0


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
        self.held = [
            Held.of(np.zeros(0, np.int64), *(
                None if array is None else array[:0, :last - first] for array in self.like.values()
            ))
            for first, last in self.groups(0, n_labels)
        ]  # fmt: skip

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

    @property
    def like(self):
        """Arrays of the types that numbers are held in, by name; None where there are none."""
        return {
            "t": self.t, "g": None if self.g is self.t else self.g,
            "acc": self.acc if self.averages else None,
        }  # fmt: skip

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
        return sum(array.itemsize for array in self.like.values() if array is not None)

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
        for a, b in self.groups(first, last):
            held = self.held[a // GROUP]
            for name, array in self.like.items():
                if array is not None:
                    its = getattr(space, name)[:, a - first : b - first]
                    held.lay_out(columns, its, getattr(held, name))
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
        names = [name for name, array in self.like.items() if array is not None]
        for a, b in self.groups(first, last):
            arrays = {name: getattr(space, name)[:, a - first : b - first] for name in names}
            self.held[a // GROUP] = Held.of(columns, *map(arrays.get, self.like))

    def scalars(self, space, first, last):
        """What this and a space of some of its labels keep of them."""
        pairs = ((getattr(each, name) for each in (self, space)) for name in _SCALARS)
        return [(mine[first:last], its) for mine, its in pairs]

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
        groups, states = self.groups(0, self.n_labels), part(state, "held")
        require(isinstance(states, list) and len(states) == len(groups), "'held' is not of them")
        self.held = [
            Held.restored(aligned(each), last - first, self.n_coordinates, self.like)
            for each, (first, last) in zip(states, groups, strict=True)
        ]

    # ------------------------------------------------------------------------------- the weights

    @np.errstate(over="ignore")
    def hypothesis(self, held, a, b):
        """What is held of the weights, which a and b are the mixture of; infinite where they exceed
        their type."""
        weights = (held.t if held.g is None else held.g) * a
        if held.acc is not None:
            weights += held.acc * b
        return weights.astype(self.t.dtype, copy=False)

    def outputs(self, rows, wanted, first, last, n_threads):
        """Those of rows over the wanted coordinates, for the labels from first to before last."""
        columns, (a, b) = np.flatnonzero(wanted), self.mixture()
        # The hypothesis as the vectors of a Perceptron: outputs are products with these.
        space = LinearSpace(
            rows.n_features, last - first, 2.0, self.t.dtype, bias=self.bias, slack=0.0,
            averaged=False, normalized=False, log=None,
        )  # fmt: skip
        space.sigma[...] = 1.0 if self.averages else a[first:last]
        for start, end in self.groups(first, last):
            held = self.held[start // GROUP].over(wanted)
            numbers = held.t if held.g is None else held.g
            if self.averages:
                label = start + held.labels(end - start)
                numbers = self.hypothesis(held, a[label], b[label])
            held.lay_out(columns, space.t[:, start - first : end - first], numbers)
        return LinearOutputs(space, rows).all(n_threads)

    def weights(self):
        """The hypothesis as CSR, shape (n_labels, n_coordinates)."""
        weights = self.stacked(self.hypothesis, *self.mixture())
        if not np.isfinite(weights.data).all():
            raise ValueError(f"The weights exceed {self.t.dtype}. Rescale X, or pass float64.")
        return weights

    def theta(self):
        """The dual vectors as CSR, shape (n_labels, n_coordinates)."""
        return self.stacked(lambda held, scale: held.t * scale, self.per_label("scale"))

    def stacked(self, numbers, *factors):
        """CSR of the numbers that are made of what is held, and of its labels' factors."""
        from scipy.sparse import vstack

        blocks = []
        for held, (first, last) in zip(self.held, self.groups(0, self.n_labels), strict=True):
            label = first + held.labels(last - first)
            made = numbers(held, *(factor[label] for factor in factors))
            blocks.append(held.matrix(made, last - first, self.n_coordinates))
            blocks[-1].eliminate_zeros()
        return vstack(blocks, format="csr")


_SCALARS = "labels", "sigma", "threshold"


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
            if status != kernels.OK:
                raise kernels.BadRow(status, row)
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

    def calls(self, stop):
        return [(0, stop)]

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

    def __init__(self, space, rows, *, relative=False):
        self.space, self.rows = space, rows

    def part(self, start, stop):
        return BlockOutputs(self.space, self.rows.part(start, stop)).all(1)

    def all(self, n_threads):
        space, finite = self.space, True
        wanted = space.wanted(self.rows, learns=False)
        rows = narrowed(self.rows, wanted, space.bias)
        out = np.empty((self.rows.n_rows, space.n_labels))
        for first, last in space.blocks(np.count_nonzero(wanted), space.t.itemsize):
            out[:, first:last], sound = space.outputs(rows, wanted, first, last, n_threads)
            finite = finite and sound
        return out, finite
