"""Labels whose dense state would not fit the memory there is for it: learned block by block.

Between tasks the numbers of all labels are held sparsely. A task lays out, of one block of labels
after the other, a dense `LinearSpace` over the features that its rows or any vectors have, and
packs it again. Labels learn nothing from one another, and sweeps add nothing where a coordinate is
0: so all numbers are, to the bit, those of one dense space.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np

from sparsemargin._engine.first_order.linear_loop import LinearLoop
from sparsemargin._engine.first_order.linear_space import LinearOutputs, LinearSpace
from sparsemargin._engine.first_order.spaces import counted_of
from sparsemargin._engine.fitting.protocol import Space
from sparsemargin._engine.fitting.task import Positives
from sparsemargin._engine.fitting.threads import uninterrupted
from sparsemargin._engine.numerics.norms import norm
from sparsemargin._engine.rows.columns import Chosen
from sparsemargin._engine.rows.csr import OK, BadRow, first_bad_row
from sparsemargin._engine.state import (
    aligned,
    array_of,
    integer,
    part,
    require,
    require_within,
)  # fmt: skip

#: What the dense state of all labels may take, or they are learned in blocks.
DENSE_BYTES = 1 << 29

# What that of a block may take: the smaller, the less of it is ever written to.
_BLOCKS_IN_DENSE = 4

# Labels that are held together, and the fewest that are learned together.
GROUP = 16

# Coordinates that are looked through at once stay in a near cache.
_ROWS_AT_ONCE = 1 << 14

_MOST_FEATURES = 1 << 58


def labels_at_once(n_coordinates, n_labels, itemsize):
    """How many labels are learned together, at so many bytes a number: all, or those of a block."""
    n_bytes = n_coordinates * itemsize
    if n_labels <= GROUP or n_labels * n_bytes <= DENSE_BYTES:
        return n_labels
    return labels_of_block(n_bytes)


def labels_of_block(n_bytes):
    """How many labels that take so many bytes each are a block."""
    return max(GROUP, DENSE_BYTES // _BLOCKS_IN_DENSE // n_bytes // GROUP * GROUP)


class BlockLoop(LinearLoop):
    """The loop over `LabelBlocks`: every pass is made by one block of labels after the other.

    Ctrl-C waits for the end of the pass, as all labels then have made the same trials.
    """

    by_products = None
    mistakes = None  # no block sees all outputs

    def __init__(self, space, rule, task):
        if task.check:
            status, row = first_bad_row(task.rows, True)
            if status != OK:
                raise BadRow(status, row)
        super().__init__(space, rule, task)
        self.take_rows()

    def take_rows(self):
        space, rows = self.space, self.task.rows
        n_held = sum(len(held["at"]) for held in space.held)
        columns = (held["at"] // GROUP for held in space.held)
        self.chosen = Chosen(space.n_coordinates, rows, columns, n_held)
        self.rows = self.chosen.of_rows(rows, 1 if space.bias else 0)

    def sum_repeats(self):
        super().sum_repeats()
        self.take_rows()

    def run(self, order, seed, stop, n_passes, check):
        space, dense, ends = self.space, None, []
        n_rows, n_columns = len(self.task.codes), len(self.chosen.columns)
        with uninterrupted():
            for first, last in space.blocks(n_columns, itemsize_of(space)):
                if dense is None or dense.n_labels != last - first:
                    dense = space.empty(n_columns, last - first)
                task = task_of(self.task, self.rows, first, last)
                with space.learning(dense, self.chosen, first, n_rows):
                    loop = LinearLoop(dense, self.rule, task)
                    learning, _, converged = loop.run(order, seed, stop, 1, False)
                    ends.append((learning, dense.trials, converged))
            space.count_trials(max(trials for _, trials, _ in ends))
        return any(learning for learning, *_ in ends), 1, all(same for *_, same in ends)


def task_of(task, rows, first, last):
    """What the labels from first to before last learn from: rows with any number of them."""
    starts, labels = task.positives or (np.arange(len(task.codes) + 1), task.codes)
    mine = (first <= labels) & (labels < last)
    positives = Positives(np.append(0, np.cumsum(mine))[starts], labels[mine] - first)
    weights = np.ascontiguousarray(task.class_weight[:, first:last])
    kept = None if task.kept is None else task.kept.of_labels(first, last)
    return replace(task, rows=rows, positives=positives, class_weight=weights, kept=kept)


class BlockOutputs:
    """Outputs of `LabelBlocks`, made anew for every part."""

    def __init__(self, space, rows):
        self.space, self.rows = space, rows

    def part(self, start, stop):
        return self.space.outputs(self.rows.part(start, stop), 1)


class LabelBlocks(LinearSpace):
    """The learned state of many labels, of which a block at a time is dense.

    Itself it is a linear space of all labels over a coordinate that is always 0: what a space
    keeps of its labels, and of a task's rows, it keeps as any other.

    Parameters
    ----------
    n_features, n_labels, p, dtype, bias, slack, averaged, normalized, adaptive
        As those of `LinearSpace`.

    Attributes
    ----------
    held : list of dict of str to ndarray of shape (n_numbers,)
        Of each sixteen labels, and of the last few: "t", "g" where it is not t, "acc" and "synced"
        with an average, and "variances" where there are such, but for zeros; and "at", rising, the
        coordinate * 16 + the label of each.
    """

    n_features = 0

    in_blocks = True
    loop_type = BlockLoop
    # Weights must be unpacked for each part.
    outputs_per_part = 1 << 23

    def __init__(self, n_features, n_labels, p, dtype, *, log=None, **how):
        super().__init__(1, n_labels, p, dtype, log=log, **how)
        self.n_features = n_features
        nothing = {name: np.zeros(0, array.dtype) for name, array in self.arrays().items()}
        nothing = {"at": np.zeros(0, self.at_type), **nothing}
        self.held = [nothing for _ in self.groups(0, n_labels)]

    @classmethod
    def of(cls, space):
        """What a dense space has learned, which is then empty."""
        fresh = cls(space.n_features, space.n_labels, space.p, space.t.dtype, **how_of(space))
        fresh.take_from(space, np.arange(len(space.t)), 0)
        fresh.count_trials(space.trials)
        return fresh

    def arrays(self, space=None, labels=slice(None)):
        """What this, or a space like this, has for the numbers of some labels, by name."""
        space = self if space is None else space
        arrays = {"t": space.t[:, labels]}
        if self.p != 2.0:
            arrays["g"] = space.g[:, labels]
        if self.averaged:
            arrays["acc"], arrays["synced"] = space.acc[:, labels], space.synced[:, labels]
        if self.adaptive:
            arrays["variances"] = space.variances[:, labels]
        return arrays

    @property
    def growth(self):
        return "The weights that are not 0 take", "hash_bits"

    @property
    def n_coordinates(self):
        return self.n_features + (1 if self.bias else 0)

    @property
    def at_type(self):
        return np.int32 if self.n_coordinates * GROUP < 2**31 else np.int64

    @property
    def nbytes(self):
        """Bytes that what is held takes."""
        return sum(array.nbytes for held in self.held for array in held.values())

    def groups(self, first, last):
        """What is held of labels, and the slice of these, from `first` on, that it is of."""
        return [
            (start // GROUP, slice(start - first, min(start + GROUP, last) - first))
            for start in range(first, last, GROUP)
        ]

    def blocks(self, n_columns, itemsize):
        """First and last label of those that fit, at so many bytes a number."""
        size = labels_of_block(n_columns * itemsize)
        return [(a, min(a + size, self.n_labels)) for a in range(0, self.n_labels, size)]

    # ---------------------------------------------------------------------------- block by block

    def empty(self, n_columns, n_labels):
        """A space of so many of the labels over so many coordinates, for `learning`."""
        n_features = n_columns - (1 if self.bias else 0)
        return LinearSpace(n_features, n_labels, self.p, self.t.dtype, log=None, **how_of(self))

    @contextmanager
    def learning(self, space, chosen, first, n_rows):
        """Let an empty space over these coordinates be that of the labels from `first` on; what it
        has learned is taken over, and it is empty again."""
        last = first + space.n_labels
        for mine, its in self.scalars(space, first, last):
            its[...] = mine
        space.trials = self.trials
        for i, labels in self.groups(first, last):
            held = self.held[i]
            where = chosen.position(held["at"] // GROUP), held["at"] % GROUP
            for name, array in self.arrays(space, labels).items():
                array[where] = held[name]
        of_rows = self.row_slack, self.multipliers
        kept = tuple(None if each is None else each[:, first:last] for each in of_rows)
        space.open_rows(n_rows, kept, self.multipliers is not None)
        try:
            yield space
        finally:
            for mine, its in zip(kept, space.close_rows(), strict=True):
                if mine is not None:
                    mine[...] = its
            self.take_from(space, chosen.columns, first)

    def take_from(self, space, columns, first):
        """Take over what the labels from `first` on have learned in a dense space over these
        columns, and leave it empty."""
        last = first + space.n_labels
        for mine, its in self.scalars(space, first, last):
            mine[...] = its
        for i, labels in self.groups(first, last):
            self.held[i] = self.packed(columns, self.arrays(space, labels))

    def packed(self, columns, arrays):
        """Take what is not 0 to the bit out of arrays of shape (n_columns, n_labels)."""
        found, n_labels = [np.zeros(0, np.intp)], arrays["t"].shape[1]
        for start in range(0, len(columns), _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            bits = [array[some].view(f"i{array.itemsize}") != 0 for array in arrays.values()]
            found.append(np.flatnonzero(np.logical_or.reduce(bits)) + start * n_labels)
        place, label = np.divmod(np.concatenate(found), n_labels)
        held = {"at": (columns[place] * GROUP + label).astype(self.at_type)}
        for name, array in arrays.items():
            held[name] = array[place, label]
            array[place, label] = 0
        return held

    def scalars(self, space, first, last):
        """What this and a space of some of its labels keep of them."""
        pairs = ((getattr(each, name) for each in (self, space)) for name in _SCALARS)
        return [(mine[first:last], its[: last - first]) for mine, its in pairs]

    # --------------------------------------------------------------------------------- the state

    def resize(self, n_features, first=0):
        """As `LinearSpace.resize`."""
        before, self.n_features = self.n_features, n_features
        for i, held in enumerate(self.held):
            column, label = np.divmod(held["at"].astype(np.int64), GROUP)
            column = np.where(column < before, column - first, n_features)
            self.held[i] = {**held, "at": (column * GROUP + label).astype(self.at_type)}

    def __getstate__(self):
        return {**super().__getstate__(), "n_features": self.n_features, "held": list(self.held)}

    def __setstate__(self, state):
        super().__setstate__(state)
        arrays = self.arrays()
        require(
            self.n_labels > GROUP and self.log is None and len(self.t) == (2 if self.bias else 1)
            and not any(array.any() for array in arrays.values()), "it is not of labels in blocks"
        )  # fmt: skip
        self.n_features = integer(state, "n_features", 1, _MOST_FEATURES)
        groups, held = self.groups(0, self.n_labels), part(state, "held")
        require(isinstance(held, list) and len(held) == len(groups), "'held' is not of them")
        self.held = list(map(aligned, held))
        for (_, labels), each in zip(groups, self.held, strict=True):
            at = array_of(each, "at", self.at_type, (None,)).astype(np.int64)
            rising = np.diff(at, prepend=-1, append=self.n_coordinates * GROUP) > 0
            require(rising.all() and (at % GROUP < labels.stop - labels.start).all(),
                    "'at' does not rise, or leads elsewhere")  # fmt: skip
            require(each.keys() == {"at", *arrays}, "'held' is not of a model like this")
            for name, array in arrays.items():
                array_of(each, name, array.dtype, at.shape)
            if self.averaged:
                flushes = int(self.labels["flushes"].max())
                require_within("synced", np.ascontiguousarray(each["synced"]), 0, flushes)

    # ------------------------------------------------------------------------------- the weights

    def hypothesis(self, factors, held, labels):
        """What is held of the weights, of these labels; infinite where they exceed their type."""
        g = held.get("g", held["t"])
        a, b, pending = factors
        weights = g * a[labels]
        if self.averaged:
            acc, synced = held["acc"], held["synced"]
            weights += counted_of(g, acc, synced, labels, pending) * b[labels]
        return weights.astype(g.dtype, copy=False)

    def opened_outputs(self, rows):
        return BlockOutputs(self, rows)

    outputs_in_parts = Space.outputs_in_parts

    def outputs(self, rows, n_threads):
        factors, chosen = self.factors(), Chosen(self.n_coordinates, rows)
        some = chosen.of_rows(rows, 1 if self.bias else 0)
        out = np.empty((rows.n_rows, self.n_labels))
        for first, last in self.blocks(len(chosen.columns), self.t.itemsize):
            # The hypothesis as the vectors of a Perceptron: outputs are products with these.
            space = LinearSpace(
                some.n_features, last - first, 2.0, self.t.dtype, bias=self.bias, slack=0.0,
                averaged=False, normalized=False, log=None,
            )  # fmt: skip
            space.sigma[...] = 1.0 if self.averaged else factors[0][first:last]
            for i, labels in self.groups(first, last):
                places, held = self.held_of(i, chosen.columns)
                weights = held.get("g", held["t"])
                if self.averaged:
                    label = i * GROUP + held["at"] % GROUP
                    weights = self.hypothesis(factors, held, label)
                space.t[:, labels][places, held["at"] % GROUP] = weights
            out[:, first:last] = LinearOutputs(space, some).all(n_threads)
        return out

    def held_of(self, i, columns):
        """What the i-th labels hold of these coordinates, which rise, and the place of each number
        among them."""
        held = self.held[i]
        if len(columns) < len(held["at"]):
            at = columns.astype(self.at_type) * GROUP
            starts = np.searchsorted(held["at"], at)
            sizes = np.searchsorted(held["at"], at + (GROUP - 1), side="right") - starts
            places = np.repeat(np.arange(len(columns)), sizes)
            which = np.arange(len(places)) + (starts - np.cumsum(sizes) + sizes)[places]
        else:
            column = held["at"] // GROUP
            places = np.searchsorted(columns[:-1], column)
            which = np.flatnonzero(columns[places] == column)
            places = places[which]
        return places, {name: array[which] for name, array in held.items()}

    def weights(self, columns=None):
        """The hypothesis as CSR, shape (n_labels, n_coordinates); or these coordinates of it, as
        an array."""
        factors = self.factors()
        if columns is None:
            weights = self.stacked(partial(self.hypothesis, factors))
            numbers = weights.data
        else:
            columns, wanted = np.unique(columns, return_inverse=True)
            numbers = np.zeros((self.n_labels, len(columns)), self.t.dtype)
            for i in range(len(self.held)):
                places, held = self.held_of(i, columns)
                label = i * GROUP + held["at"] % GROUP
                numbers[label, places] = self.hypothesis(factors, held, label)
            weights = numbers[:, wanted]
        if not np.isfinite(numbers).all():
            raise ValueError(f"The weights exceed {self.t.dtype}. Rescale X, or pass float64.")
        return weights

    def norms(self, n_threads):
        weights, q = self.weights(), self.q
        return np.array([norm(each, q) for each in np.split(weights.data, weights.indptr[1:-1])])

    def theta(self):
        """The dual vectors as CSR, shape (n_labels, n_coordinates)."""
        return self.stacked(lambda held, labels: held["t"] * self.per_label("scale")[labels])

    def stacked(self, made):
        """CSR of the numbers that are made of what is held, and of the label of each."""
        from scipy.sparse import csr_array, vstack

        blocks = []
        for i, labels in self.groups(0, self.n_labels):
            column, label = np.divmod(self.held[i]["at"], GROUP)
            numbers = made(self.held[i], i * GROUP + label)
            shape = labels.stop - labels.start, self.n_coordinates
            blocks.append(csr_array((numbers, (label, column)), shape=shape))
            blocks[-1].eliminate_zeros()
        return vstack(blocks, format="csr")


_SCALARS = "labels", "sigma", "threshold", "pending"


def how_of(space):
    """What a space like this is made with."""
    return {"bias": space.bias, "slack": space.slack, "averaged": space.averaged,
            "normalized": space.normalized, "adaptive": space.adaptive}  # fmt: skip


def itemsize_of(space):
    """Bytes that the dense state takes a number."""
    n_kinds = 1 + (space.p != 2.0) + space.adaptive + space.averaged
    n_synced = space.averaged * (1 + 2 * space.adaptive)  # strides are the others'
    return space.t.itemsize * n_kinds + space.synced.itemsize * n_synced


def resized(space, n_features, first=0):
    """The space with so many features, see `LinearSpace.resize`; in blocks from where the dense
    state of all its labels would no longer fit."""
    if type(space) is LinearSpace and space.log is None:
        n_coordinates = n_features + (1 if space.bias else 0)
        if labels_at_once(n_coordinates, space.n_labels, itemsize_of(space)) < space.n_labels:
            space = LabelBlocks.of(space)
    space.resize(n_features, first)
    return space
