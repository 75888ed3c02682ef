"""Validation of the saved state of engine objects.

Compiled code does not check array bounds, and a state may come from an untrusted file. Therefore
every length, and every number that an index is computed from, is checked here.

A schema describes what a state must contain. It maps each name to a check of this module and the
arguments that follow `state` and `name`:

    fields(state, {
        "trials": (integer, 0, MAX_TRIALS),
        "averaged": (flag,),
        "max_support": (optional, integer, 1, MOST),
        "vector": (array_of, np.int32, (None,), 0, n_vectors - 1),
    })
"""

import sys
from numbers import Integral, Real

import numpy as np

#: Largest number of trials. Sums of a few such counts still fit into 64 bits.
MAX_TRIALS = 1 << 61
#: Largest number of elements of an array; its size in bytes must fit into an index.
MOST_NUMBERS = sys.maxsize // 8

# Approximate bytes that one more array adds to a file for its name and headers.
_SPARSE_BYTES = 256

# Elements of a sparse array that are restored at once, which limits the memory.
_AT_ONCE = 1 << 16


def require(sound, what):
    """Raise a ValueError that describes the damage, unless `sound` is true."""
    if not sound:
        raise ValueError(f"The state of a model is damaged: {what}.")


def fields(state, schema):
    """The values of a state that the schema names, each of them checked."""
    return {name: check(state, name, *limits) for name, (check, *limits) in schema.items()}


def part(state, name):
    """The value stored under that name."""
    require(isinstance(state, dict) and name in state, f"it has no {name!r}")
    return state[name]


def optional(state, name, check, *limits):
    """None if the value called `name` is None, otherwise the result of the check."""
    return None if part(state, name) is None else check(state, name, *limits)


def instance(state, name, *kinds):
    """The value called `name`, which must be an instance of one of these types."""
    value = part(state, name)
    require(isinstance(value, kinds), f"{name!r} is of another type")
    return value


def flag(state, name):
    """The bool called `name`."""
    value = part(state, name)
    require(isinstance(value, bool), f"{name!r} is not True or False")
    return value


def integer(state, name, low, high):
    """The integer called `name`, from low to high."""
    value = part(state, name)
    require(
        isinstance(value, Integral) and low <= value <= high,
        f"{name!r} is not a whole number from {low} to {high}",
    )
    return int(value)


def real(state, name, low, high):
    """The number called `name`, from low to high and not NaN."""
    value = part(state, name)
    require(
        isinstance(value, Real) and low <= value <= high,
        f"{name!r} is not a number from {low:g} to {high:g}",
    )
    return float(value)


def array_of(state, name, dtype, shape, low=None, high=None):
    """The array called `name`, of that dtype and shape; a None in the shape allows any length. If
    limits are given, its values must be from low to high."""
    array = part(state, name)
    require(
        isinstance(array, np.ndarray)
        and array.dtype == dtype
        and array.ndim == len(shape)
        and all(n is None or n == found for n, found in zip(shape, array.shape, strict=True)),
        f"{name!r} is not an array of {np.dtype(dtype)} of shape "
        + str(shape).replace("None", "any"),
    )
    if low is not None:
        require_within(name, array, low, high)
    return array


def sparse(array):
    """The nonzero elements of an array, as flat indices and values, or all its values in a flat
    array if that is smaller. An element is zero if all its bits are 0."""
    bits = array.view(f"u{array.itemsize}")
    index = np.dtype(np.int32 if array.size <= 2**31 else np.int64)
    n_bytes = np.count_nonzero(bits) * (index.itemsize + array.itemsize)
    if n_bytes + _SPARSE_BYTES >= array.nbytes:
        return array.ravel()
    # For a view, `ravel` would copy the whole array including its zeros.
    at = np.nonzero(bits)
    return {"indices": np.ravel_multi_index(at, array.shape).astype(index), "values": array[at]}


def restore(array, state, name):
    """Fill an array of zeros with the saved result of `sparse` called `name`."""
    given = part(state, name)
    if not isinstance(given, dict):
        array[...] = array_of(state, name, array.dtype, (array.size,)).reshape(array.shape)
        return
    index = np.int32 if array.size <= 2**31 else np.int64
    indices = array_of(given, "indices", index, (None,), 0, array.size - 1)
    values = array_of(given, "values", array.dtype, indices.shape)
    for start in range(0, len(indices), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        array[np.unravel_index(indices[some], array.shape)] = values[some]


def require_within(name, values, low, high):
    """Raise a ValueError unless all values of an array are from low to high."""
    values = np.asarray(values)
    for value in (values.min().item(), values.max().item()) if values.size else ():
        require(low <= value <= high, f"{name!r} holds {value}, which is not from {low} to {high}")


def require_starts(name, start, n):
    """Raise a ValueError unless `start` has int64 index pointers that never fall, from 0 to n."""
    require(
        start.dtype == np.int64
        and start.ndim == 1
        and len(start) > 0
        and start[0] == 0
        and start[-1] == n,
        f"{name!r} does not lead from 0 to {n}",
    )
    falls = np.flatnonzero(start[1:] < start[:-1])
    if len(falls):
        require(False, f"{name!r} falls from {start[falls[0]]} to {start[falls[0] + 1]}")


def aligned(state):
    """The state with copies of the arrays that are not aligned for their dtype. Arrays received
    from Dask can have any alignment."""
    if isinstance(state, dict):
        return {name: aligned(value) for name, value in state.items()}
    return np.require(state, requirements="A") if isinstance(state, np.ndarray) else state


def received(kind, *parts):
    """Create an object of type `kind` from its pickled parts, with aligned arrays."""
    return kind(*map(aligned, parts))


class Sent:
    """Base of dataclasses with arrays that are sent to other processes. Received arrays are
    aligned, as compiled code requires."""

    def __reduce__(self):
        return received, (type(self), *vars(self).values())


def writable(array):
    """The array, or a copy if it is not contiguous, aligned and writable (a memory map, for
    example)."""
    return np.require(array, requirements="CAW")
