"""Linear spaces for prediction that hold only the coordinates with weights.

Hashed features have millions of columns, most of which no training row contains. A dense space of
all columns takes 64 bytes per column for 8 classes. A packed space holds only the coordinates with
weights. Its outputs are bitwise equal to those of the dense space, because the entries of a row
keep their order, and columns without weights share one coordinate whose weights are 0.
"""

import numpy as np

from sparsemargin._engine.first_order.linear_space import LinearSpace
from sparsemargin._engine.rows.csr import Csr
from sparsemargin._engine.state import (
    MOST_NUMBERS,
    array_of,
    integer,
    part,
    require,
    require_within,
)

# Size in bytes of the arrays of all columns from which on they are packed. Smaller arrays take
# little memory, and without packing, training can begin at once.
_LEAST_BYTES = 1 << 24

# A space is packed if at most one in this many numbers is not 0.
_SPARSITY = 3

# Number of entries that are converted at once. It limits the memory.
_AT_ONCE = 1 << 16

# Number of set bits for each value of a byte.
_BITS_SET = np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1).sum(
    axis=1, dtype=np.int32
)

# Arrays from which weights are computed, with a number for each coordinate and vector.
_NUMBERS = "t", "g", "acc", "synced"

# Parts of the state that only training needs: the variances, and the counts that determine initial
# variances other than 1.
_FOR_TRAINING = "variances", "prior"


def is_sparse(n_stored, n_numbers, n_bytes):
    """Return whether arrays of n_numbers numbers, in total n_bytes long, are worth packing if the
    one with the most nonzeros has n_stored of them."""
    return n_bytes >= _LEAST_BYTES and _SPARSITY * n_stored <= n_numbers


def is_worth_packing(state):
    """Return whether a saved `LinearSpace`, possibly damaged, has few weights in many columns."""
    arrays = [state.get(name) for name in (*_NUMBERS, "variances")]
    arrays = [array for array in arrays if array is not None]
    sizes = [state.get(name) for name in ("n_coordinates", "n_vectors")]
    if state.get("log") is not None or not all(isinstance(size, int) for size in sizes):
        return False
    if not arrays or not all(isinstance(array, dict) for array in arrays):
        return False  # arrays with few zeros are saved densely
    values = [array.get("values") for array in arrays]
    if not all(isinstance(each, np.ndarray) and each.ndim == 1 for each in values):
        return False
    n_numbers = sizes[0] * sizes[1]
    n_bytes = n_numbers * sum(each.itemsize for each in values)
    return is_sparse(max(map(len, values)), n_numbers, n_bytes)


class PackedSpace(LinearSpace):
    """A `LinearSpace` that holds only the coordinates with weights. It can predict, and is saved as
    a `LinearSpace`. To train it, convert it by `unpacked` to a space with all coordinates.

    The inherited arrays have a coordinate of weight 0, then the coordinates with weights, and the
    intercept's coordinate. There are no variances, because predictions do not need them.

    Attributes
    ----------
    bits : ndarray of shape (n_coordinates // 8 + 1,), uint8
        One bit for each coordinate: 1 if the coordinate is held.
    ranks : ndarray of the same shape, int32
        Number of held coordinates before each byte of `bits`.
    for_training : dict
        The saved parts of the state that only training needs.
    """

    n_features = 0

    saved_type = LinearSpace

    @classmethod
    def of(cls, space, columns, n_features, keys, variances):
        """The vectors of a `LinearSpace` that has the sorted columns of n_features features. Its
        first feature stands for all others and has the weight 0.

        `keys` are flat indices of all coordinates, and `variances` their variances, None if there
        are none.
        """
        made, has_bias = cls.__new__(cls), bool(space.bias)
        arrays = {
            name: space.of_vectors(getattr(space, name)).ravel() for name in ("t", "acc", "synced")
        }
        arrays["g"] = None if space.p == 2.0 else space.of_vectors(space.g).ravel()
        LinearSpace.__setstate__(made, _state_of(space, **arrays))
        made.n_features = n_features
        there = np.zeros(n_features + has_bias, bool)
        there[columns] = True
        there[n_features:] = True
        made.take_places(there)
        made.for_training = {"variances": None}
        if variances is not None:
            index = np.int32 if len(there) * space.n_vectors <= 2**31 else np.int64
            indices = keys.astype(index, copy=False)
            made.for_training["variances"] = {"indices": indices, "values": variances}
        return made

    @property
    def n_coordinates(self):
        return self.n_features + (1 if self.bias else 0)

    def unpacked(self):
        """Return a space with the same weights that holds all coordinates."""
        space = LinearSpace.__new__(LinearSpace)
        space.__setstate__(self.__getstate__())
        return space

    def loop(self, task, rule=None, *, skips=False):
        raise RuntimeError("A packed space can't be trained. Train the result of unpacked().")

    # --------------------------------------------------------------------------------- the state

    def __setstate__(self, state):
        n_vectors = integer(state, "n_vectors", 1, MOST_NUMBERS // 2)
        n = integer(state, "n_coordinates", 1, MOST_NUMBERS // n_vectors)
        given = {name: part(state, name) for name in _NUMBERS if part(state, name) is not None}
        require("t" in given, "it has no 't'")
        there = np.zeros(n, bool)
        for each in given.values():
            for at, _ in _entries(each, n * n_vectors):
                there[at // n_vectors] = True
        has_bias = bool(part(state, "bias"))
        if has_bias:
            there[n - 1] = True
        self.take_places(there)
        few = {name: value for name, value in state.items() if name not in _FOR_TRAINING}
        few |= {"n_coordinates": int(there.sum()) + 1, "variances": None}
        del there
        few |= {name: _without_entries(each) for name, each in given.items()}
        super().__setstate__(few)
        self.n_features = n - (1 if self.bias else 0)
        for name, each in given.items():
            array = getattr(self, name)
            require(each["values"].dtype == array.dtype, f"{name!r} is of another type")
            for at, values in _entries(each, n * n_vectors):
                coordinate, vector = np.divmod(at, n_vectors)
                array[self.places(coordinate), vector] = values
        if self.averaged:
            most = self.of_vectors(self.synced).max(axis=0, initial=0)
            require((most <= self.vectors["flushes"]).all(), "'synced' exceeds the flushes")
        self.check_variances(state, n * n_vectors)
        self.for_training = {name: state[name] for name in _FOR_TRAINING if name in state}

    def take_places(self, there):
        """Set `bits` and `ranks` to hold the coordinates for which `there` is true."""
        self.bits = np.packbits(there, bitorder="little")
        set_in = _BITS_SET[self.bits]
        self.ranks = np.cumsum(set_in, dtype=np.int32) - set_in

    def check_variances(self, state, n_numbers):
        """Check the saved variances in the same way as a `LinearSpace`."""
        variances, dtype = part(state, "variances"), self.t.dtype
        if variances is not None:
            require(part(variances, "values").dtype == dtype, "'variances' is of another type")
            for _, values in _entries(variances, n_numbers):
                require_within("variances", values, 0.0, float(np.finfo(dtype).max))

    def __getstate__(self):
        held = np.flatnonzero(np.unpackbits(self.bits, bitorder="little"))
        state = {**super().__getstate__(), "n_coordinates": self.n_coordinates}
        for name in _NUMBERS:
            if state[name] is not None:
                numbers = self.of_vectors(getattr(self, name))
                state[name] = _saved(numbers[1:], held, self.n_coordinates)
        return {**state, **self.for_training}

    # ------------------------------------------------------------------- the outputs and weights

    def places(self, coordinates):
        """Return the position of each coordinate in the arrays; 0 for those without weights."""
        byte, bit = coordinates >> 3, (coordinates & 7).astype(np.uint8)
        held, one = self.bits[byte], np.uint8(1)
        before = self.ranks[byte] + _BITS_SET[held & ((one << bit) - one)]
        return np.where((held >> bit) & one, before + 1, 0)

    def hypothesis_for(self, rows):
        entries = slice(rows.indptr[0], rows.indptr[-1])
        places = self.places(rows.indices[entries]).astype(rows.indices.dtype, copy=False)
        n_columns = len(self.t) - (1 if self.bias else 0)
        packed = Csr(rows.data[entries], places, rows.indptr - rows.indptr[0], n_columns)
        return super().hypothesis_for(packed)

    def weights(self, columns=None):
        if columns is None:
            return self.in_all_columns(super().weights())
        if isinstance(columns, slice):
            columns = np.arange(*columns.indices(self.n_coordinates))
        return super().weights(self.places(columns))

    def theta(self):
        return self.in_all_columns(super().theta())

    def in_all_columns(self, numbers):
        """Expand numbers of shape (n_vectors, n_held + 1) to an array of all coordinates."""
        wide = np.zeros((len(numbers), self.n_coordinates), numbers.dtype)
        wide[:, np.flatnonzero(np.unpackbits(self.bits, bitorder="little"))] = numbers[:, 1:]
        return wide


class WeightSpace(PackedSpace):
    """A `PackedSpace` that holds only the weights of its hypothesis, and nothing of training.

    Averaged weights are computed once. The outputs are bitwise equal to those of the space, which
    rounds averaged weights to its own dtype, too.
    """

    @classmethod
    def of(cls, space):
        """The weights of a `LinearSpace` or `PackedSpace`. Other spaces are returned unchanged."""
        if type(space) not in (LinearSpace, PackedSpace) or space.log is not None:
            return space
        made = cls.__new__(cls)
        weights = space.of_vectors(space.weighed() if space.averaged else space.g)
        if isinstance(space, PackedSpace):
            made.bits, made.ranks, weights = space.bits, space.ranks, weights[1:]
        else:
            there = weights.any(axis=1)
            there[-1] |= bool(space.bias)
            made.take_places(there)
            weights = weights[there]
        made.n_features = space.n_features
        made.take_weights(space, weights)
        return made

    def take_weights(self, space, weights):
        """Set the weights of the held coordinates to those of the space."""
        held = np.vstack([np.zeros_like(weights[:1]), weights]).ravel()
        empty = {"indices": np.zeros(0, np.int32), "values": held[:0]}
        vectors = space.vectors_state()
        if space.averaged:
            vectors |= {"sigma": np.ones(space.n_vectors), "flushes": vectors["flushes"] * 0}
        LinearSpace.__setstate__(self, {
            # For p > 2, the weights are not computed from the dual vectors, which are left out.
            **_state_of(space, held if space.p == 2.0 else empty, None if space.p == 2.0 else held),
            "pending": np.zeros((space.n_vectors, 0)), "vectors": vectors,
            "n_coordinates": len(held) // space.n_vectors, "averaged": False,
            "normalized": space.normalized and not space.averaged,
        })  # fmt: skip
        self.for_training = {}

    def theta(self):
        raise AttributeError("theta_ is not kept with predict_only=True. Load the model without.")


def _state_of(space, t, g, acc=None, synced=None):
    """The state of a space with these arrays, without variances and without a log."""
    flushes = space.vectors["flushes"].max()
    return {
        "t": t, "g": g, "acc": acc if space.averaged else None,
        "synced": synced if space.averaged else None, "variances": None, "log": None,
        "pending": space.pending[: space.n_vectors, :flushes], "vectors": space.vectors_state(),
        "trials": space.trials, "p": space.p, "n_vectors": space.n_vectors,
        "n_coordinates": len(space.t), "bias": space.bias, "slack": space.slack,
        "averaged": space.averaged, "normalized": space.normalized,
    }  # fmt: skip


def _entries(saved, n_numbers):
    """Yield flat indices and values of a saved array, in parts. The indices are checked."""
    index = np.int32 if n_numbers <= 2**31 else np.int64
    indices = array_of(saved, "indices", index, (None,), 0, n_numbers - 1)
    values = array_of(saved, "values", part(saved, "values").dtype, indices.shape)
    for start in range(0, len(indices), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        yield indices[some], values[some]


def _without_entries(saved):
    """Return the saved form of an array of zeros with the same dtypes."""
    return {key: part(saved, key)[:0] for key in ("indices", "values")}


def _saved(numbers, held, n_coordinates):
    """Return the saved form of an array of all coordinates, given the numbers of the coordinates
    `held`. The other numbers are 0."""
    n_vectors = numbers.shape[1]
    index = np.int32 if n_coordinates * n_vectors <= 2**31 else np.int64
    at, vector = np.nonzero(numbers.view(f"u{numbers.itemsize}"))
    indices = (held[at] * n_vectors + vector).astype(index)
    return {"indices": indices, "values": numbers[at, vector]}
