"""What engine objects are saved as, and how that is taken in again.

Kernels run unchecked over what an object holds, and a state may come from a file that anyone has
written. So every length, and every number that an index is made of, is checked here, once.

What a state must hold is a schema: its names, each with a check of this module and what that takes
after the state and the name:

    fields(state, {
        "trials": (integer, 0, MAX_TRIALS),
        "averaged": (flag,),
        "max_support": (optional, integer, 1, MOST),
        "label": (array_of, np.int32, (None,), 0, n_labels - 1),
    })
"""

from numbers import Integral, Real

import numpy as np

#: Trials that can be counted, with room for sums of some counts.
MAX_TRIALS = 1 << 61

# About what one more array takes in a file, its name and its headers.
_SPARSE_BYTES = 256


def require(sound, what):
    """Raise a ValueError that says what is wrong, unless it is sound."""
    if not sound:
        raise ValueError(f"The state of a model is damaged: {what}.")


def fields(state, schema):
    """The values of a state that a schema names, each of them checked."""
    return {name: check(state, name, *limits) for name, (check, *limits) in schema.items()}


def part(state, name):
    """What the state has under that name."""
    require(isinstance(state, dict) and name in state, f"it has no {name!r}")
    return state[name]


def optional(state, name, check, *limits):
    """None, or what the check makes of it."""
    return None if part(state, name) is None else check(state, name, *limits)


def instance(state, name, *kinds):
    """What is called `name`, of one of these types."""
    value = part(state, name)
    require(isinstance(value, kinds), f"{name!r} is of another type")
    return value


def flag(state, name):
    """The bool called `name`."""
    value = part(state, name)
    require(isinstance(value, bool), f"{name!r} is not True or False")
    return value


def integer(state, name, low, high):
    """The whole number called `name`, from low to high."""
    value = part(state, name)
    require(
        isinstance(value, Integral) and low <= value <= high,
        f"{name!r} is not a whole number from {low} to {high}",
    )
    return int(value)


def real(state, name, low, high):
    """The number called `name`, from low to high, not NaN."""
    value = part(state, name)
    require(
        isinstance(value, Real) and low <= value <= high,
        f"{name!r} is not a number from {low:g} to {high:g}",
    )
    return float(value)


def array_of(state, name, dtype, shape, low=None, high=None):
    """The array called `name`, of that type and shape, a None in which is any length; and, where
    limits are given, with values from low to high."""
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
    """The indices and values of what is not 0 to the bit in an array, its axes one after the other,
    where these take less room than it does; else all values."""
    bits = array.view(f"u{array.itemsize}")
    index = np.dtype(np.int32 if array.size <= 2**31 else np.int64)
    n_bytes = np.count_nonzero(bits) * (index.itemsize + array.itemsize)
    if n_bytes + _SPARSE_BYTES >= array.nbytes:
        return array.ravel()
    # Of a view `ravel` would make a copy, with all that is 0.
    at = np.nonzero(bits)
    return {"indices": np.ravel_multi_index(at, array.shape).astype(index), "values": array[at]}


def restore(array, state, name):
    """Let an array of zeros be the one called `name` that `sparse` was given."""
    given = part(state, name)
    if not isinstance(given, dict):
        array[...] = array_of(state, name, array.dtype, (array.size,)).reshape(array.shape)
        return
    index = np.int32 if array.size <= 2**31 else np.int64
    indices = array_of(given, "indices", index, (None,), 0, array.size - 1)
    at = np.unravel_index(indices, array.shape)
    array[at] = array_of(given, "values", array.dtype, indices.shape)


def require_within(name, values, low, high):
    """Raise a ValueError unless all values of an array are from low to high."""
    values = np.asarray(values)
    for value in (values.min().item(), values.max().item()) if values.size else ():
        require(low <= value <= high, f"{name!r} holds {value}, which is not from {low} to {high}")


def require_starts(name, start, n):
    """Raise a ValueError unless n entries are cut into rows there, the last end included."""
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
    """The state, with copies of arrays that lie where their type may not: what Dask receives lies
    anywhere."""
    if isinstance(state, dict):
        return {name: aligned(value) for name, value in state.items()}
    return np.require(state, requirements="A") if isinstance(state, np.ndarray) else state


def received(kind, *parts):
    """What an object of that type is unpickled by."""
    return kind(*map(aligned, parts))


def writable(array):
    """The array, or a copy where it is no plain memory that can be written to: out of a memory
    map, say."""
    return np.require(array, requirements="CAW")
