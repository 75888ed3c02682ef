"""Compiled kernels by the types of their arrays, and the codes they report."""

from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np

from sparsemargin._engine.first_order.joint_trials import train as train_joint
from sparsemargin._engine.first_order.outputs import outputs
from sparsemargin._engine.first_order.trials import train
from sparsemargin._engine.kernel.gram import fill_gram, run_passes
from sparsemargin._engine.kernel.products import (
    fill_dense,
    raise_powers,
    sparse_products,
    square_sums,
)

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
        fill_dense=fill_dense[_FLOATS[value], _INTEGERS[index]],
        fill_gram=fill_gram[_FLOATS[value], _INTEGERS[index]],
        square_sums=square_sums[_FLOATS[value], _INTEGERS[index]],
    )
    for value, index in product(VALUE_TYPES, INDEX_TYPES)
}
_BY_VALUES = {
    value: SimpleNamespace(
        raise_powers=raise_powers[_FLOATS[value]],
        sparse_products=sparse_products[_FLOATS[value]],
    )
    for value in VALUE_TYPES
}
_BY_STATE = {
    (value, index, state): SimpleNamespace(
        train=train[_FLOATS[state], _FLOATS[value], _INTEGERS[index]],
        train_joint=train_joint[_FLOATS[state], _FLOATS[value], _INTEGERS[index]],
        outputs=outputs[_FLOATS[state], _FLOATS[value], _INTEGERS[index]],
        run_passes=run_passes[_FLOATS[state], _FLOATS[value], _INTEGERS[index]],
    )
    for value, index, state in product(VALUE_TYPES, INDEX_TYPES, VALUE_TYPES)
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


def for_state(rows: Any, space: Any) -> Any:
    """Kernels that need rows and the learned state."""
    return _BY_STATE[rows.data.dtype, rows.indices.dtype, space.t.dtype]
