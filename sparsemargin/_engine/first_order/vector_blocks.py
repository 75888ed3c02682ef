"""Linear spaces of many vectors whose dense state would not fit into memory.

Between tasks, the numbers of all vectors are stored sparsely. During a task, one block of vectors
at a time is expanded to a dense `LinearSpace` over the features that occur in the rows or in any
vector, trained, and packed again. One-vs-rest vectors are independent, and sweeps do not change
coordinates that are 0. Therefore all numbers are bitwise equal to those of one dense space.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np

from sparsemargin._engine.first_order.linear_loop import LinearLoop
from sparsemargin._engine.first_order.linear_space import LinearSpace
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
from sparsemargin._heavy import scipy_sparse

#: Bytes of dense state above which the vectors are trained in blocks.
DENSE_BYTES = 1 << 29

# Number of blocks that would fit into DENSE_BYTES. Training in smaller blocks needs less memory.
_BLOCKS_IN_DENSE = 4

# Vectors stored together. The size of a block is a multiple of this.
GROUP = 16

# Coordinates that are searched at once. Their numbers fit into the CPU cache.
_ROWS_AT_ONCE = 1 << 14

# Largest number of features of a saved model. Coordinates times GROUP still fit into an int64.
_MOST_FEATURES = 1 << 58


def vectors_at_once(n_coordinates, n_vectors, itemsize):
    """Number of vectors trained together if a number takes `itemsize` bytes: all, or one block."""
    n_bytes = n_coordinates * itemsize
    if n_vectors <= GROUP or n_vectors * n_bytes <= DENSE_BYTES:
        return n_vectors
    return vectors_of_block(n_bytes)


def vectors_of_block(n_bytes):
    """Number of vectors in a block if each takes `n_bytes`."""
    return max(GROUP, DENSE_BYTES // _BLOCKS_IN_DENSE // n_bytes // GROUP * GROUP)


class BlockLoop(LinearLoop):
    """The training loop over `VectorBlocks`: in every epoch the blocks are trained one by one.

    Ctrl-C takes effect at the end of an epoch, when all vectors have made the same trials.
    """

    by_products = None
    mistakes = None  # no block sees the outputs of all vectors

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
                if dense is None or dense.n_vectors != last - first:
                    dense = space.empty(n_columns, last - first)
                task = task_of(self.task, self.rows, first, last)
                with space.learning(dense, self.chosen, first, n_rows):
                    loop = LinearLoop(dense, self.rule, task)
                    learning, _, converged = loop.run(order, seed, stop, 1, False)
                    ends.append((learning, dense.trials, converged))
            space.count_trials(max(trials for _, trials, _ in ends))
        return any(learning for learning, *_ in ends), 1, all(same for *_, same in ends)


def task_of(task, rows, first, last):
    """The task restricted to the vectors first..last-1, as a multilabel task."""
    starts, labels = task.positives or (np.arange(len(task.codes) + 1), task.codes)
    mine = (first <= labels) & (labels < last)
    positives = Positives(np.append(0, np.cumsum(mine))[starts], labels[mine] - first)
    weights = np.ascontiguousarray(task.class_weight[:, first:last])
    progress = None if task.progress is None else task.progress.of_vectors(first, last)
    return replace(task, rows=rows, positives=positives, class_weight=weights, progress=progress)


class VectorBlocks(LinearSpace):
    """The state of many vectors, of which one block at a time is expanded to dense arrays.

    As a `LinearSpace`, this object has all vectors but only one coordinate, which is always 0. The
    per-vector numbers and the per-row numbers of a task are stored as in any other space.

    Parameters
    ----------
    n_features, n_vectors, p, dtype, bias, slack, averaged, normalized, adaptive
        See `LinearSpace`.

    Attributes
    ----------
    held : list of dict of str to ndarray of shape (n_numbers,)
        One dict for each group of `GROUP` vectors. "t" has the dual coordinates that are not zero,
        "g" the link values if p > 2, "acc" and "synced" the state of the average, and "variances"
        the variances, each only where the space has them. "at" is sorted and has the position
        coordinate * GROUP + vector of each number.
    """

    n_features = 0

    in_blocks = True
    loop_type = BlockLoop
    # Parts are large, because the weights are unpacked again for each part.
    outputs_per_part = 1 << 23

    def __init__(self, n_features, n_vectors, p, dtype, *, log=None, **how):
        super().__init__(1, n_vectors, p, dtype, log=log, **how)
        self.n_features = n_features
        nothing = {name: np.zeros(0, array.dtype) for name, array in self.arrays().items()}
        nothing = {"at": np.zeros(0, self.at_type), **nothing}
        self.held = [nothing for _ in self.groups(0, n_vectors)]

    @classmethod
    def of(cls, space):
        """Take over the state of a dense space, which is emptied."""
        fresh = cls(space.n_features, space.n_vectors, space.p, space.t.dtype, **how_of(space))
        fresh.prior = space.prior
        fresh.take_from(space, np.arange(len(space.t)), 0, space.prior)
        fresh.count_trials(space.trials)
        return fresh

    def arrays(self, space=None, vectors=slice(None)):
        """The arrays of the selected vectors in this space or a similar one, by name."""
        space = self if space is None else space
        arrays = {"t": space.t[:, vectors]}
        if self.p != 2.0:
            arrays["g"] = space.g[:, vectors]
        if self.averaged:
            arrays["acc"], arrays["synced"] = space.acc[:, vectors], space.synced[:, vectors]
        if self.adaptive:
            arrays["variances"] = space.variances[:, vectors]
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
        """Bytes used by the stored numbers."""
        return sum(array.nbytes for held in self.held for array in held.values())

    def groups(self, first, last):
        """Pairs of an index into `held` and the slice of its vectors, relative to `first`."""
        return [
            (start // GROUP, slice(start - first, min(start + GROUP, last) - first))
            for start in range(first, last, GROUP)
        ]

    def blocks(self, n_columns, itemsize):
        """Pairs (first, last) of the blocks if each number takes `itemsize` bytes."""
        size = vectors_of_block(n_columns * itemsize)
        return [(a, min(a + size, self.n_vectors)) for a in range(0, self.n_vectors, size)]

    # ---------------------------------------------------------------------------- block by block

    def empty(self, n_columns, n_vectors):
        """A space for some of the vectors over n_columns coordinates, for use in `learning`."""
        n_features = n_columns - (1 if self.bias else 0)
        return LinearSpace(n_features, n_vectors, self.p, self.t.dtype, log=None, **how_of(self))

    @contextmanager
    def learning(self, space, chosen, first, n_rows):
        """Expand the vectors from `first` on into an empty space over these coordinates. On exit
        the trained state is packed again and the space is emptied."""
        last = first + space.n_vectors
        for mine, its in self.scalars(space, first, last):
            its[...] = mine
        space.trials = self.trials
        for i, vectors in self.groups(first, last):
            held = self.held[i]
            where = chosen.position(held["at"] // GROUP), held["at"] % GROUP
            for name, array in self.arrays(space, vectors).items():
                array[where] = held[name]
        prior = None
        if self.prior is not None:
            prior = self.prior.within(chosen.columns, first, last)
            prior.fill(space.of_vectors(space.variances))
        of_rows = self.row_slack, self.multipliers
        row_state = tuple(None if each is None else each[:, first:last] for each in of_rows)
        space.open_rows(n_rows, row_state, self.multipliers is not None)
        try:
            yield space
        finally:
            for mine, its in zip(row_state, space.close_rows(), strict=True):
                if mine is not None:
                    mine[...] = its
            self.take_from(space, chosen.columns, first, prior)

    def take_from(self, space, columns, first, prior):
        """Pack the vectors from `first` on, trained in a dense space over these columns, and empty
        that space. `prior` determines the initial variances of the dense space."""
        last = first + space.n_vectors
        if prior is not None:
            prior.clear(space.of_vectors(space.variances))
        for mine, its in self.scalars(space, first, last):
            mine[...] = its
        for i, vectors in self.groups(first, last):
            self.held[i] = self.packed(columns, self.arrays(space, vectors))

    def packed(self, columns, arrays):
        """Move the numbers whose bits are not all 0 out of arrays of shape (n_columns,
        n_vectors)."""
        found, n_vectors = [np.zeros(0, np.intp)], arrays["t"].shape[1]
        for start in range(0, len(columns), _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            bits = [array[some].view(f"i{array.itemsize}") != 0 for array in arrays.values()]
            found.append(np.flatnonzero(np.logical_or.reduce(bits)) + start * n_vectors)
        place, vector = np.divmod(np.concatenate(found), n_vectors)
        held = {"at": (columns[place] * GROUP + vector).astype(self.at_type)}
        for name, array in arrays.items():
            held[name] = array[place, vector]
            array[place, vector] = 0
        return held

    def scalars(self, space, first, last):
        """Pairs of per-vector arrays: this object's part for the vectors, and the space's own."""
        pairs = ((getattr(each, name) for each in (self, space)) for name in _SCALARS)
        return [(mine[first:last], its[: last - first]) for mine, its in pairs]

    # --------------------------------------------------------------------------------- the state

    def resize(self, n_features, first=0):
        """See `LinearSpace.resize`."""
        before, self.n_features = self.n_features, n_features
        for i, held in enumerate(self.held):
            column, vector = np.divmod(held["at"].astype(np.int64), GROUP)
            column = np.where(column < before, column - first, n_features)
            self.held[i] = {**held, "at": (column * GROUP + vector).astype(self.at_type)}
        if self.prior is not None:
            self.prior = self.prior.moved(first)

    @property
    def prior_in_arrays(self):
        return self.prior.within(np.zeros(0, np.int64), 0, self.n_vectors)

    def __getstate__(self):
        return {**super().__getstate__(), "n_features": self.n_features, "held": list(self.held)}

    def __setstate__(self, state):
        super().__setstate__(state)
        arrays = self.arrays()
        require(
            self.n_vectors > GROUP and self.log is None and len(self.t) == (2 if self.bias else 1)
            and not any(array.any() for array in arrays.values()),
            "it is not a space of vectors in blocks",
        )  # fmt: skip
        self.n_features = integer(state, "n_features", 1, _MOST_FEATURES)
        groups, held = self.groups(0, self.n_vectors), part(state, "held")
        require(isinstance(held, list) and len(held) == len(groups), "'held' is not of them")
        self.held = list(map(aligned, held))
        for (_, vectors), each in zip(groups, self.held, strict=True):
            at = array_of(each, "at", self.at_type, (None,)).astype(np.int64)
            rising = np.diff(at, prepend=-1, append=self.n_coordinates * GROUP) > 0
            require(rising.all() and (at % GROUP < vectors.stop - vectors.start).all(),
                    "'at' does not rise, or leads elsewhere")  # fmt: skip
            require(each.keys() == {"at", *arrays}, "'held' is not of a model like this")
            for name, array in arrays.items():
                array_of(each, name, array.dtype, at.shape)
            if self.averaged:
                flushes = int(self.vectors["flushes"].max())
                require_within("synced", np.ascontiguousarray(each["synced"]), 0, flushes)
        self.restore_prior(state)

    # ------------------------------------------------------------------------------- the weights

    def hypothesis(self, factors, held, vectors):
        """The weights of stored numbers of these vectors; infinite if they overflow their dtype."""
        g = held.get("g", held["t"])
        a, b, pending = factors
        weights = g * a[vectors]
        if self.averaged:
            acc, synced = held["acc"], held["synced"]
            weights += counted_of(g, acc, synced, vectors, pending) * b[vectors]
        return weights.astype(g.dtype, copy=False)

    outputs_in_parts = Space.outputs_in_parts

    def outputs(self, rows, n_threads):
        factors, chosen = self.factors(), Chosen(self.n_coordinates, rows)
        some = chosen.of_rows(rows, 1 if self.bias else 0)
        out = np.empty((rows.n_rows, self.n_vectors))
        for first, last in self.blocks(len(chosen.columns), self.t.itemsize):
            # Only products are needed: store the weights as the vectors of a Perceptron with p = 2.
            space = LinearSpace(
                some.n_features, last - first, 2.0, self.t.dtype, bias=self.bias, slack=0.0,
                averaged=False, normalized=False, log=None,
            )  # fmt: skip
            space.sigma[...] = 1.0 if self.averaged else factors[0][first:last]
            for i, vectors in self.groups(first, last):
                places, held = self.held_of(i, chosen.columns)
                weights = held.get("g", held["t"])
                if self.averaged:
                    vector = i * GROUP + held["at"] % GROUP
                    weights = self.hypothesis(factors, held, vector)
                space.t[:, vectors][places, held["at"] % GROUP] = weights
            out[:, first:last] = space.outputs(some, n_threads)
        return out

    def held_of(self, i, columns):
        """The numbers of group i at the given sorted coordinates, and the place of each number
        among the coordinates."""
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
        """The hypothesis as CSR, shape (n_vectors, n_coordinates), or some columns of it as a dense
        array."""
        factors = self.factors()
        if columns is None:
            weights = self.stacked(partial(self.hypothesis, factors))
            numbers = weights.data
        else:
            columns, wanted = np.unique(columns, return_inverse=True)
            numbers = np.zeros((self.n_vectors, len(columns)), self.t.dtype)
            for i in range(len(self.held)):
                places, held = self.held_of(i, columns)
                vector = i * GROUP + held["at"] % GROUP
                numbers[vector, places] = self.hypothesis(factors, held, vector)
            weights = numbers[:, wanted]
        if not np.isfinite(numbers).all():
            raise ValueError(f"The weights exceed {self.t.dtype}. Rescale X, or pass float64.")
        return weights

    def norms(self, n_threads):
        weights, q = self.weights(), self.q
        return np.array([norm(each, q) for each in np.split(weights.data, weights.indptr[1:-1])])

    def theta(self):
        """The dual vectors as CSR, shape (n_vectors, n_coordinates)."""
        return self.stacked(lambda held, vectors: held["t"] * self.per_vector("scale")[vectors])

    def stacked(self, made):
        """The values that `made` computes from the numbers of each group and their vectors, as one
        CSR array."""
        sparse = scipy_sparse()
        blocks = []
        for i, vectors in self.groups(0, self.n_vectors):
            column, vector = np.divmod(self.held[i]["at"], GROUP)
            numbers = made(self.held[i], i * GROUP + vector)
            shape = vectors.stop - vectors.start, self.n_coordinates
            blocks.append(sparse.csr_array((numbers, (vector, column)), shape=shape))
            blocks[-1].eliminate_zeros()
        return sparse.vstack(blocks, format="csr")


_SCALARS = "vectors", "sigma", "threshold", "pending"


def how_of(space):
    """The parameters that create a space like this one."""
    return {"bias": space.bias, "slack": space.slack, "averaged": space.averaged,
            "normalized": space.normalized, "adaptive": space.adaptive}  # fmt: skip


def itemsize_of(space):
    """Bytes of dense state for each number."""
    n_kinds = 1 + (space.p != 2.0) + space.adaptive + space.averaged
    n_synced = space.averaged * (1 + 2 * space.adaptive)  # strides equal those of the other arrays
    return space.t.itemsize * n_kinds + space.synced.itemsize * n_synced


def resized(space, n_features, first=0):
    """The space with n_features features, see `LinearSpace.resize`. It becomes a `VectorBlocks` if
    the dense state of all vectors no longer fits."""
    if type(space) is LinearSpace and space.log is None:
        n_coordinates = n_features + (1 if space.bias else 0)
        if vectors_at_once(n_coordinates, space.n_vectors, itemsize_of(space)) < space.n_vectors:
            space = VectorBlocks.of(space)
    space.resize(n_features, first)
    return space
