"""Compiled kernels by the types of their arrays, and the codes they report."""

from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np

from sparsemargin._engine.matrix.dual import own_products
from sparsemargin._engine.matrix.trials import absorb_rows, learn_rows
from sparsemargin._engine.matrix.trials import outputs as outputs_of_seen

# Status codes, in the order of `Status` in _types.pxd.
OK, NOT_FINITE, OUT_OF_RANGE, NOT_CANONICAL, TOO_WIDE, ALL_STOPPED = range(6)
# A row whose length in feature space no kernel value could be divided by.
NO_LENGTH = 6

_FLOATS = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}
_INTEGERS = {np.dtype(np.int32): "int32_t", np.dtype(np.int64): "int64_t"}

VALUE_TYPES = tuple(_FLOATS)
INDEX_TYPES = tuple(_INTEGERS)

# Looked up once per call: Cython's own dispatch costs more than learning from a row.
_BY_ROWS = {
    (value, index): SimpleNamespace(
        absorb_rows=absorb_rows[_FLOATS[value], _INTEGERS[index]],
        learn_rows=learn_rows[_FLOATS[value], _INTEGERS[index]],
        outputs_of_seen=outputs_of_seen[_FLOATS[value], _INTEGERS[index]],
    )
    for value, index in product(VALUE_TYPES, INDEX_TYPES)
}
_BY_VALUES = {
    value: SimpleNamespace(
        own_products=own_products[_FLOATS[value]],
    )
    for value in VALUE_TYPES
}


class BadRow(Exception):
    """A kernel met a row it can't learn from."""

    def __init__(self, status: int, row: int):
        super().__init__(status, row)
        self.status = status
        self.row = row


def for_rows(rows: Any) -> Any:
    """Kernels that need rows alone."""
    return _BY_ROWS[rows.data.dtype, rows.indices.dtype]


def for_values(values: Any) -> Any:
    """Kernels that need an array of values alone."""
    return _BY_VALUES[values.dtype]
