"""Whether the arrays of a sparse matrix go together.

scipy looks at them when it makes a matrix, and not when they are set later; its compiled code,
which converts, sorts and slices, then reads and writes wherever they lead.
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import numpy as np
from scipy.sparse import issparse

from sparsemargin._engine.rows.csr import bad_pointer

# The arrays of each format that compiled code reads: their types and dimensions.
_COMPRESSED = {"indices": ("iu", 1), "indptr": ("iu", 1)}
_VALUES = "biufcO"
_ARRAYS = {
    "csr": {**_COMPRESSED, "data": (_VALUES, 1)},
    "csc": {**_COMPRESSED, "data": (_VALUES, 1)},
    "bsr": {**_COMPRESSED, "data": (_VALUES, 3)},
    "coo": {"row": ("iu", 1), "col": ("iu", 1), "data": (_VALUES, 1)},
    "dia": {"offsets": ("iu", 1), "data": (_VALUES, 2)},
    "lil": {"rows": ("O", 1), "data": ("O", 1)},
}


def check_sparse(X: Any, name: str = "X") -> None:
    """Refuse a sparse matrix whose arrays don't go together; anything else passes.

    Parameters
    ----------
    X : object
    name : str
        What messages call it.

    Raises
    ------
    ValueError
        Says what is wrong with which array.
    """
    if not issparse(X) or X.format not in _ARRAYS:
        return
    if not all(isinstance(size, int) and 0 <= size <= sys.maxsize for size in X.shape):
        _refuse(name, f"its shape is {X.shape}")
    if len(X.shape) != 2:
        raise ValueError(f"{name} is of shape {X.shape}. Give a matrix of rows and columns.")
    for array, (kinds, ndim) in _ARRAYS[X.format].items():
        _check_array(X, array, kinds, ndim, name)
    if X.format == "coo":
        _check_coordinates(X, name)
    elif X.format == "dia":
        if len(X.offsets) != len(X.data):
            _refuse(name, f"it has {len(X.offsets)} offsets for {len(X.data)} diagonals")
    elif X.format == "lil":
        _check_lists(X, name)
    else:
        _check_compressed(X, name)


def _refuse(name: str, what: str) -> NoReturn:
    raise ValueError(f"{name} is corrupted: {what}. Rebuild the matrix from its source.")


def _check_array(X: Any, array: str, kinds: str, ndim: int, name: str) -> None:
    entries = getattr(X, array)
    if not isinstance(entries, np.ndarray):
        _refuse(name, f"its {array} are a {type(entries).__name__}, not an array")
    if entries.dtype.kind not in kinds or entries.ndim != ndim:
        _refuse(name, f"its {array} are of type {entries.dtype} and shape {entries.shape}")


def _check_coordinates(X: Any, name: str) -> None:
    if not len(X.row) == len(X.col) == len(X.data):
        _refuse(name, "row, col and data differ in length")
    _check_range(X.row, X.shape[0], name)
    _check_range(X.col, X.shape[1], name)


def _check_lists(X: Any, name: str) -> None:
    if not len(X.rows) == len(X.data) == X.shape[0]:
        _refuse(name, f"it has {len(X.rows)} lists of columns and {len(X.data)} of values")
    for i, (columns, values) in enumerate(zip(X.rows, X.data, strict=True)):
        if not isinstance(columns, list) or not isinstance(values, list):
            _refuse(name, f"its row {i} is no list")
        if len(columns) != len(values):
            _refuse(name, f"its row {i} has {len(columns)} columns and {len(values)} values")


def _check_compressed(X: Any, name: str) -> None:
    """The pointers divide what is stored, and no index is out of range."""
    block = X.data.shape[1:] if X.format == "bsr" else (1, 1)
    if 0 in block or any(size % side for size, side in zip(X.shape, block, strict=True)):
        _refuse(name, f"blocks of shape {block} don't make up its shape {X.shape}")
    major, minor = (size // side for size, side in zip(X.shape, block, strict=True))
    if X.format == "csc":
        major, minor = minor, major
    if len(X.indptr) != major + 1:
        _refuse(name, f"indptr has {len(X.indptr)} entries, not {major + 1}")
    stored = min(len(X.data), len(X.indices))
    pointers = X.indptr.astype(np.int64)
    at = bad_pointer(pointers, stored)
    if at >= 0:
        _refuse(
            name,
            f"its indptr entries {X.indptr[at]} and {X.indptr[at + 1]}, the first of them number "
            f"{at}, do not bound a part of the {stored} stored entries",
        )
    _check_range(X.indices[: pointers[-1]], minor, name)


def _check_range(indices: np.ndarray, size: int, name: str) -> None:
    wrong = (indices < 0) | (indices >= size)
    if wrong.any():
        _refuse(name, f"index {indices[wrong][0]} is outside [0, {size})")
