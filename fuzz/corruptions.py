"""What may be wrong with the arrays of a sparse matrix, and what may be odd about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from sparsemargin.estimators.validation import check_sparse

EXTREMES = [-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 100, 2**16, 2**31 - 1, 2**31, 2**62, 2**63 - 1]
VALUES = [np.nan, np.inf, -np.inf, 5e-324, -1e-310, 1e-45, 1e38, -1e300, 1.7e308, -0.0, 0.0]
TYPES = [
    "f2",
    "f4",
    "f8",
    "g",
    "c8",
    "c16",
    "O",
    "i1",
    "u1",
    "i4",
    "u4",
    "i8",
    "u8",
    "?",
    "S3",
    "U3",
]
SHAPES: list[Callable] = [
    lambda m, n: (m + 1, n), lambda m, n: (m - 1, n), lambda m, n: (0, n), lambda m, n: (m, 0),
    lambda m, n: (-1, n), lambda m, n: (m, -1), lambda m, n: (m, n - 1), lambda m, n: (m, 2**31),
    lambda m, n: (m, 2**40), lambda m, n: (m, 2**62), lambda m, n: (2**62, n), lambda m, n: (m,),
    lambda m, n: (m, n, 1), lambda m, n: (m, 2**64), lambda m, n: (float(m), float(n)),
    lambda m, n: (),
]  # fmt: skip


@dataclass
class Arrays:
    """The arrays of a CSR matrix, and what is to become of them.

    Attributes
    ----------
    data, indices, indptr : Any
    shape : Any
    make : callable
        Makes the matrix of a CSR matrix.
    plain : bool
        Whether it is still the matrix it was, if in another form.
    made : sparse matrix or None
        What they have become, of another format.
    """

    data: Any
    indices: Any
    indptr: Any
    shape: Any
    make: Callable[[Any], Any] = sp.csr_matrix
    plain: bool = True
    made: Any = None

    @classmethod
    def of(cls, X: sp.csr_matrix) -> Arrays:
        return cls(X.data.copy(), X.indices.copy(), X.indptr.copy(), X.shape)

    def matrix(self) -> Any:
        """A matrix of these very arrays, whatever the constructor would say of them."""
        if self.made is not None:
            return self.made
        compressed = self.make in (sp.csr_matrix, sp.csr_array, sp.csc_matrix)
        if self.plain and not compressed:
            native = self.data.astype(self.data.dtype.newbyteorder("="))
            return self.make(sp.csr_matrix((native, self.indices, self.indptr), self.shape))
        X = (self.make if compressed else sp.csr_matrix)((1, 1))
        X.data, X.indices, X.indptr, X._shape = self.data, self.indices, self.indptr, self.shape
        return X


def change(random: np.random.RandomState, arrays: Arrays, log: list[str]) -> None:
    """Make one change."""
    table = FORMS if random.randint(4) == 0 else CORRUPTIONS
    made = table[random.randint(len(table))]
    log.append(made.__name__)
    if table is CORRUPTIONS:
        arrays.plain = False
    with np.errstate(all="ignore"):
        try:
            made(random, arrays)
        except (TypeError, ValueError, OverflowError, IndexError, AttributeError):
            log.append("(not possible after what was done before)")


def _chosen(random: np.random.RandomState, choices: list) -> Any:
    return choices[random.randint(len(choices))]


def _name(random: np.random.RandomState) -> str:
    return _chosen(random, ["data", "indices", "indptr"])


# -- wrong ----------------------------------------------------------------------------------------


def extreme_index(random: np.random.RandomState, arrays: Arrays) -> None:
    array = getattr(arrays, _chosen(random, ["indices", "indptr"]))
    bits = _chosen(random, EXTREMES) % 2 ** (8 * array.itemsize)
    array[random.randint(len(array))] = np.array(bits, f"u{array.itemsize}").view(array.dtype)


def column_near_the_end(random: np.random.RandomState, arrays: Arrays) -> None:
    place = random.randint(len(arrays.indices))
    arrays.indices[place] = arrays.shape[1] + random.randint(-1, 2)


def shifted_pointers(random: np.random.RandomState, arrays: Arrays) -> None:
    start = random.randint(len(arrays.indptr))
    arrays.indptr[start:] += _chosen(random, [-2, -1, 1, 2, 7])


def swapped(random: np.random.RandomState, arrays: Arrays) -> None:
    array = getattr(arrays, _name(random))
    i, j = random.randint(len(array), size=2)
    array[[i, j]] = array[[j, i]]


def repeated_column(random: np.random.RandomState, arrays: Arrays) -> None:
    place = random.randint(1, len(arrays.indices))
    arrays.indices[place] = arrays.indices[place - 1]


def any_value(random: np.random.RandomState, arrays: Arrays) -> None:
    places = random.randint(len(arrays.data), size=random.randint(1, 4))
    arrays.data[places] = _chosen(random, VALUES)


def other_scale(random: np.random.RandomState, arrays: Arrays) -> None:
    start, stop = np.sort(random.randint(len(arrays.data) + 1, size=2))
    arrays.data[start:stop] *= 10.0 ** random.randint(-320, 309)


def other_length(random: np.random.RandomState, arrays: Arrays) -> None:
    name = _name(random)
    array, way = getattr(arrays, name), random.randint(3)
    if way == 0:
        array = array[: random.randint(len(array) + 1)]
    elif way == 1:
        array = np.concatenate([array, array[: random.randint(1, len(array) + 1)]])
    else:
        array = array[:0]
    setattr(arrays, name, array)


def other_type(random: np.random.RandomState, arrays: Arrays) -> None:
    name = _name(random)
    setattr(arrays, name, getattr(arrays, name).astype(_chosen(random, TYPES)))


def other_dimensions(random: np.random.RandomState, arrays: Arrays) -> None:
    name = _name(random)
    array = getattr(arrays, name)
    ways = [array[:, np.newaxis], array[np.newaxis], np.array(5), array.tolist(), None]
    setattr(arrays, name, ways[random.randint(len(ways))])


def other_shape(random: np.random.RandomState, arrays: Arrays) -> None:
    arrays.shape = _chosen(random, SHAPES)(*arrays.shape)


def one_buffer(random: np.random.RandomState, arrays: Arrays) -> None:
    """Two of the arrays are one."""
    way = random.randint(4)
    if way == 0:
        arrays.data = arrays.indices.view(f"f{arrays.indices.itemsize}")
    elif way == 1:
        arrays.indices = arrays.data.view(f"i{arrays.data.itemsize}")
    elif way == 2:
        arrays.indices = arrays.indptr
    else:
        arrays.indptr = arrays.indices


def other_format(random: np.random.RandomState, arrays: Arrays) -> None:
    """The arrays of CSR taken for those of CSC."""
    arrays.make = sp.csc_matrix


def corrupted_container(random: np.random.RandomState, arrays: Arrays) -> None:
    """A matrix of another format, of which one array is changed."""
    if max(arrays.shape) > 10_000:
        raise ValueError("scipy takes too much memory for such a matrix")
    sound = sp.csr_matrix((arrays.data, arrays.indices, arrays.indptr), arrays.shape, copy=True)
    check_sparse(sound)  # else making the other one may crash: scipy's own check passes some
    made = _chosen(random, CONTAINERS)(sound)
    name = _chosen(random, [name for name in ATTRIBUTES if hasattr(made, name)])
    array = getattr(made, name)
    way = random.randint(5)
    if way == 0:
        array[random.randint(len(array))] = _chosen(random, [-(2**31), -1, 8, 12, 2**31 - 1, None])
    elif way == 1:
        array = array[: random.randint(len(array) + 1)]
    elif way == 2:
        array = np.concatenate([array] * random.randint(2, 1000))
    elif way == 3 and array.dtype == object:
        array[random.randint(len(array))].extend([1] * 10 ** random.randint(6))
    else:
        array = array.astype(_chosen(random, TYPES))
    if name in ("row", "col"):
        made.coords = tuple(
            array if each == name else getattr(made, each) for each in ("row", "col")
        )
    else:
        setattr(made, name, array)
    arrays.made = made


CONTAINERS = [sp.csc_matrix, sp.bsr_array, sp.coo_matrix, sp.dia_matrix, sp.lil_array]
ATTRIBUTES = ["data", "indices", "indptr", "row", "col", "offsets", "rows"]

CORRUPTIONS = [
    extreme_index, extreme_index, column_near_the_end, shifted_pointers, swapped, repeated_column,
    any_value, other_scale, other_length, other_type, other_dimensions, other_shape, one_buffer,
    other_format, corrupted_container, corrupted_container,
]  # fmt: skip


# -- odd, but the same matrix ---------------------------------------------------------------------


def strided(random: np.random.RandomState, arrays: Arrays) -> None:
    name = _name(random)
    array = getattr(arrays, name)
    if random.randint(2):
        wide = np.zeros(3 * len(array), array.dtype)
        wide[1::3] = array
        setattr(arrays, name, wide[1::3])
    else:
        setattr(arrays, name, array[::-1].copy()[::-1])


def read_only(random: np.random.RandomState, arrays: Arrays) -> None:
    for array in arrays.data, arrays.indices, arrays.indptr:
        array.setflags(write=False)


def misaligned(random: np.random.RandomState, arrays: Arrays) -> None:
    name = _name(random)
    array = np.ascontiguousarray(getattr(arrays, name))
    raw = np.zeros(array.nbytes + 1, np.uint8)
    raw[1:] = array.view(np.uint8)
    setattr(arrays, name, raw[1:].view(array.dtype))


def byte_swapped(random: np.random.RandomState, arrays: Arrays) -> None:
    # float32 of the other order becomes float64, of which the model is another.
    name = _name(random) if arrays.data.itemsize == 8 else "indices"
    array = getattr(arrays, name)
    setattr(arrays, name, array.astype(array.dtype.newbyteorder()))


def other_index_type(random: np.random.RandomState, arrays: Arrays) -> None:
    names = _chosen(random, [["indices"], ["indptr"], ["indices", "indptr"]])
    for name in names:
        setattr(arrays, name, getattr(arrays, name).astype(_chosen(random, ["i4", "i8"])))


def room_behind(random: np.random.RandomState, arrays: Arrays) -> None:
    """Entries after the last row's, which are none."""
    arrays.data = np.concatenate([arrays.data, [0.0] * 3]).astype(arrays.data.dtype)
    arrays.indices = np.concatenate([arrays.indices, [-1] * 3]).astype(arrays.indices.dtype)


def other_container(random: np.random.RandomState, arrays: Arrays) -> None:
    arrays.make = _chosen(random, [
        sp.csr_array, sp.coo_matrix, sp.csc_array, sp.bsr_matrix, sp.lil_matrix,
        lambda X: X.toarray(), lambda X: np.asfortranarray(X.toarray()),
        sp.dok_matrix,
    ])  # fmt: skip


FORMS = [
    strided, read_only, misaligned, byte_swapped, other_index_type, room_behind, other_container,
]  # fmt: skip
