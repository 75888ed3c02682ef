"""What kernels and support sets are saved as, and how that is taken in again.

Products of rows run unchecked over what a support set holds, and a state may come from a file that
anyone has written: so every length and every index is checked here, once.
"""

from __future__ import annotations

import sys
from math import inf
from typing import Any

import numpy as np

from sparsemargin._engine.kernel.functions import (
    CallableKernel,
    Kernel,
    PolyKernel,
    PrecomputedKernel,
    RBFKernel,
)
from sparsemargin._engine.kernel.support import SupportSet
from sparsemargin._engine.rows.csr import VALUE_TYPES
from sparsemargin._engine.state import (
    array_of,
    fields,
    flag,
    length_of,
    part,
    real,
    require,
    require_starts,
    whole,
    writable,
)

# Beyond it `raise_powers` would not count.
_LARGEST_DEGREE = 2**31 - 1
# The range of numbers above 0.
_LEAST, _LARGEST = 5e-324, sys.float_info.max


def _function(state: Any, name: str) -> Any:
    function = part(state, name)
    require(callable(function), f"{name!r} is none")
    return function


_DENSE, _GAMMA = {"dense": (flag,)}, {"gamma": (real, _LEAST, _LARGEST)}

# What kernels are saved as: a class's name, and its fields.
_KERNELS: dict[Any, tuple[type[Kernel], dict[str, Any]]] = {
    "PolyKernel": (
        PolyKernel,
        {"degree": (whole, 1, _LARGEST_DEGREE), "coef0": (real, 0.0, _LARGEST), **_DENSE, **_GAMMA},
    ),
    "RBFKernel": (RBFKernel, {"degree": (whole, 0, _LARGEST_DEGREE), **_DENSE, **_GAMMA}),
    "PrecomputedKernel": (PrecomputedKernel, {}),
    "CallableKernel": (CallableKernel, {"function": (_function,), **_DENSE}),
}


def kernel_state(kernel: Kernel) -> dict[str, Any]:
    """All of a kernel but the rows that are learned from."""
    kept = {name: value for name, value in vars(kernel).items() if name not in ("bias", "rows")}
    return {"kind": type(kernel).__name__, **kept}


def restored_kernel(state: Any, bias: float) -> Kernel:
    """The kernel of a state.

    Raises
    ------
    ValueError
        If it is the state of none.
    """
    kind = part(state, "kind")
    require(kind in _KERNELS, f"there is no kernel {kind!r}")
    make, schema = _KERNELS[kind]
    return make(bias, **fields(state, schema))


def support_state(support: SupportSet) -> dict[str, np.ndarray]:
    """Its columns, none where it is empty."""
    return support.filled


def restored_support(state: Any, kernel: Kernel, n_features: int) -> SupportSet:
    """The support set of a state, for that kernel.

    Raises
    ------
    ValueError
        If it is the state of none.
    """
    if state == {}:
        return SupportSet()
    n = length_of(state, "lengths")
    columns = fields(state, dict.fromkeys(("lengths", "squares"), (array_of, np.float64, (n,))))
    for name, column in columns.items():
        require(bool(((column >= 0) & (column < inf)).all()), f"{name!r} are out of range")
    columns |= fields(state, _schema(state, kernel, n, n_features))
    if not kernel.dense:
        require_starts("ends", np.append(0, columns["ends"]), len(columns["data"]))
    columns = {name: writable(column) for name, column in columns.items()}
    return SupportSet.of(columns, n_features, is_sparse=not kernel.dense)


def _schema(state: Any, kernel: Kernel, n: int, n_features: int) -> dict[str, Any]:
    """The columns of n rows, as the kernel takes them."""
    if isinstance(kernel, PrecomputedKernel):
        return {"matrix": (array_of, np.int64, (n,), 0, n_features - 1)}
    if kernel.dense:
        n_columns = n_features + (1 if isinstance(kernel, PolyKernel) and kernel.coef0 else 0)
        return {"matrix": (array_of, _value_type(state, "matrix"), (n, n_columns))}
    n_entries = length_of(state, "indices")
    return {
        "data": (array_of, _value_type(state, "data"), (n_entries,)),
        "indices": (array_of, np.int64, (n_entries,), 0, n_features - 1),
        "ends": (array_of, np.int64, (n,)),
    }


def _value_type(state: Any, name: str) -> np.dtype:
    dtype: Any = getattr(part(state, name), "dtype", None)
    require(dtype in VALUE_TYPES, f"{name!r} is not of a type that rows have")
    return dtype
