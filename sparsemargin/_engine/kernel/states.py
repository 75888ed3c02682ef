"""What kernels and pools of rows are saved as, and how that is taken in again.

Products of rows run unchecked over what a pool holds, and a state may come from a file that anyone
has written: so every length and every index is checked here, once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
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
from sparsemargin._engine.kernel.support import Pool
from sparsemargin._engine.kernels import VALUE_TYPES
from sparsemargin._engine.state import (
    array_of,
    flag,
    length_of,
    part,
    real,
    require,
    require_starts,
    require_within,
    whole,
    writable,
)

# Beyond it `raise_powers` would not count.
_LARGEST_DEGREE = 2**31 - 1
# The range of numbers above 0.
_LEAST, _LARGEST = 5e-324, sys.float_info.max


def kernel_state(kernel: Kernel) -> dict[str, Any]:
    """All of a kernel but the rows that are learned from."""
    own = {name: value for name, value in vars(kernel).items() if name not in ("bias", "rows")}
    return {"kind": type(kernel).__name__, **own}


def restored_kernel(state: Any, bias: float) -> Kernel:
    """The kernel of a state.

    Raises
    ------
    ValueError
        If it is the state of none.
    """
    kind = part(state, "kind")
    require(kind in _KERNELS, f"there is no kernel {kind!r}")
    return _KERNELS[kind](state, bias)


def _poly(state: Any, bias: float) -> Kernel:
    return PolyKernel(
        bias, dense=flag(state, "dense"), degree=whole(state, "degree", 1, _LARGEST_DEGREE),
        gamma=real(state, "gamma", _LEAST, _LARGEST), coef0=real(state, "coef0", 0.0, _LARGEST),
    )  # fmt: skip


def _rbf(state: Any, bias: float) -> Kernel:
    return RBFKernel(
        bias, dense=flag(state, "dense"), degree=whole(state, "degree", 0, _LARGEST_DEGREE),
        gamma=real(state, "gamma", _LEAST, _LARGEST),
    )  # fmt: skip


def _precomputed(state: Any, bias: float) -> Kernel:
    return PrecomputedKernel(bias)


def _callable(state: Any, bias: float) -> Kernel:
    function = part(state, "function")
    require(callable(function), "'function' is none")
    return CallableKernel(bias, dense=flag(state, "dense"), function=function)


_KERNELS: dict[Any, Callable[[Any, float], Kernel]] = {
    "PolyKernel": _poly, "RBFKernel": _rbf, "PrecomputedKernel": _precomputed,
    "CallableKernel": _callable,
}  # fmt: skip


# -- pools ----------------------------------------------------------------------------------------


def pool_state(pool: Pool) -> dict[str, np.ndarray]:
    """A pool's columns, none where it is empty."""
    return {name: column.filled for name, column in pool.columns.items()}


def restored_pool(state: Any, kernel: Kernel, n_features: int) -> Pool:
    """The pool of a state, for that kernel.

    Raises
    ------
    ValueError
        If it is the state of none.
    """
    if state == {}:
        return Pool()
    n = length_of(state, "lengths")
    columns = {name: array_of(state, name, np.float64, (n,)) for name in ("lengths", "squares")}
    for name, column in columns.items():
        require(bool(((column >= 0) & (column < inf)).all()), f"{name!r} are out of range")
    columns |= (_dense if kernel.dense else _sparse)(state, kernel, n, n_features)
    columns = {name: writable(column) for name, column in columns.items()}
    return Pool.of(columns, n_features, is_sparse=not kernel.dense)


def _dense(state: Any, kernel: Kernel, n: int, n_features: int) -> dict[str, np.ndarray]:
    if isinstance(kernel, PrecomputedKernel):
        numbers = array_of(state, "matrix", np.int64, (n,))
        require_within("matrix", numbers, 0, n_features - 1)
        return {"matrix": numbers}
    shape = n, n_features + (1 if isinstance(kernel, PolyKernel) and kernel.coef0 else 0)
    return {"matrix": array_of(state, "matrix", _value_type(state, "matrix"), shape)}


def _sparse(state: Any, kernel: Kernel, n: int, n_features: int) -> dict[str, np.ndarray]:
    n_entries = length_of(state, "indices")
    columns = {
        "data": array_of(state, "data", _value_type(state, "data"), (n_entries,)),
        "indices": array_of(state, "indices", np.int64, (n_entries,)),
        "ends": array_of(state, "ends", np.int64, (n,)),
    }
    require_within("indices", columns["indices"], 0, n_features - 1)
    require_starts("ends", np.append(0, columns["ends"]), n_entries)
    return columns


def _value_type(state: Any, name: str) -> np.dtype:
    dtype: Any = getattr(part(state, name), "dtype", None)
    require(dtype in VALUE_TYPES, f"{name!r} is not of a type that rows have")
    return dtype
