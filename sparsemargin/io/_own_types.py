"""The types of this library that model files can hold, and what each is saved as.

The table is closed: what a file names is looked up here and nowhere else. The engine's objects
check the states they are given; what is checked here is what only Python code uses.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from sparsemargin._engine.first_order.label_blocks import LabelBlocks
from sparsemargin._engine.first_order.labels import FirstOrderRule
from sparsemargin._engine.first_order.linear_space import JointSpace, LinearSpace
from sparsemargin._engine.fitting.certificate import SoftMargin
from sparsemargin._engine.fitting.epochs import FitResult
from sparsemargin._engine.kernel.loop import KernelSpace
from sparsemargin._engine.matrix.spaces import DualSpaces, LabelSpaces
from sparsemargin._engine.state import (
    array_of,
    fields,
    flag,
    integer,
    optional,
    part,
    real,
    require,
)
from sparsemargin.io._first_format import of_today


class ByCoordinate(NamedTuple):
    """An array with an entry a coordinate, most of them 0 where data are sparse."""

    array: np.ndarray


class OwnType(NamedTuple):
    """How a type is saved.

    Attributes
    ----------
    kind : type
    state : callable
        What an object is saved as: a dict of names to values that can be encoded.
    restore : callable
        The object again; a ValueError where the state is none of an object.
    """

    kind: type
    state: Callable[[Any], dict[str, Any]]
    restore: Callable[[dict[str, Any]], Any]


def _restore(kind: Any, state: dict[str, Any]) -> Any:
    fresh = kind.__new__(kind)
    fresh.__setstate__(state)
    return fresh


def _restore_first_order(kind: Any, state: dict[str, Any]) -> Any:
    return _restore(kind, of_today(state))


# -- spaces ---------------------------------------------------------------------------------------


#: What the entries of a state are called that may be saved by coordinate. Of others that a file
#: had so, copies would be made that take all the memory that the zeros do not.
BY_COORDINATE = "t", "g", "acc", "synced", "place_of"


def _by_coordinate(state: dict[str, Any], *names: str) -> dict[str, Any]:
    arrays = {name: ByCoordinate(state[name]) for name in names if state.get(name) is not None}
    return {**state, **arrays}


def _linear_state(space: LinearSpace) -> dict[str, Any]:
    return _by_coordinate(space.__getstate__(), "t", "g", "acc", "synced")


def _spaces_state(spaces: LabelSpaces) -> dict[str, Any]:
    state = spaces.__getstate__()
    return {**state, "spaces": [_by_coordinate(each, "place_of") for each in state["spaces"]]}


# -- what came of a fit ---------------------------------------------------------------------------

_HISTORY = {
    "n_iter": np.float64, "n_corrections": np.int64, "margin": np.float64, "bound": np.float64
}  # fmt: skip


def _result_state(result: FitResult) -> dict[str, Any]:
    """The epochs' history as one array of each of its numbers."""
    columns = zip(*result.history, strict=True) if result.history else ([],) * len(_HISTORY)
    history = {
        name: np.array(column, dtype)
        for (name, dtype), column in zip(_HISTORY.items(), columns, strict=True)
    }
    return {**vars(result), "history": history}


def _restore_result(state: dict[str, Any]) -> FitResult:
    soft_margin = part(state, "soft_margin")
    require(soft_margin is None or isinstance(soft_margin, SoftMargin), "'soft_margin' is another")
    known = fields(state, {
        "n_iter": (real, 0, np.inf), "converged": (flag,), "proven": (flag,),
        "interrupted": (flag,), "margin": (optional, array_of, np.float64, (None,)),
    })  # fmt: skip
    return FitResult(soft_margin=soft_margin, history=_rows_of(part(state, "history")), **known)


def _rows_of(history: dict[str, Any]) -> list[tuple]:
    shape = part(history, "margin").shape
    n_iter, *columns = fields(history, {
        name: (array_of, dtype, shape if i else shape[:1])
        for i, (name, dtype) in enumerate(_HISTORY.items())
    }).values()  # fmt: skip
    return list(zip(n_iter.tolist(), *columns, strict=True))


def _restore_soft_margin(state: dict[str, Any]) -> SoftMargin:
    objective = array_of(state, "objective", np.float64, (None,))
    return SoftMargin(objective, array_of(state, "deviation", np.float64, objective.shape))


# -- random numbers -------------------------------------------------------------------------------

_GENERATOR, _GENERATOR_LENGTH = "MT19937", 624


def _random_state(random: np.random.RandomState) -> dict[str, Any]:
    state = random.get_state(legacy=False)
    if state["bit_generator"] != _GENERATOR:
        raise ValueError(
            f"A RandomState over {state['bit_generator']} has no place in a model file. Pass an "
            "int as random_state, or RandomState(seed)."
        )
    return {**state["state"], "has_gauss": state["has_gauss"], "gauss": state["gauss"]}


def _restore_random(state: dict[str, Any]) -> np.random.RandomState:
    random = np.random.RandomState(0)
    # Beyond the last of them numpy would read whatever lies there.
    known = fields(state, {
        "key": (array_of, np.uint32, (_GENERATOR_LENGTH,)), "pos": (integer, 0, _GENERATOR_LENGTH),
        "has_gauss": (integer, 0, 1), "gauss": (real, -np.inf, np.inf),
    })  # fmt: skip
    random.set_state((_GENERATOR, *known.values()))
    return random


#: By the names that files give them.
OWN_TYPES = {
    "LinearSpace": OwnType(LinearSpace, _linear_state, partial(_restore_first_order, LinearSpace)),
    "LabelBlocks": OwnType(LabelBlocks, LabelBlocks.__getstate__, partial(_restore, LabelBlocks)),
    "JointSpace": OwnType(JointSpace, _linear_state, partial(_restore_first_order, JointSpace)),
    "KernelSpace": OwnType(
        KernelSpace, KernelSpace.__getstate__, partial(_restore_first_order, KernelSpace)
    ),
    "DualSpaces": OwnType(DualSpaces, DualSpaces.__getstate__, partial(_restore, DualSpaces)),
    "LabelSpaces": OwnType(LabelSpaces, _spaces_state, partial(_restore, LabelSpaces)),
    "FirstOrderRule": OwnType(
        FirstOrderRule, FirstOrderRule.__getstate__, partial(_restore, FirstOrderRule)
    ),
    "Outcome": OwnType(FitResult, _result_state, _restore_result),
    "SoftMargin": OwnType(SoftMargin, vars, _restore_soft_margin),
    "RandomState": OwnType(np.random.RandomState, _random_state, _restore_random),
}

NAMES = {own.kind: name for name, own in OWN_TYPES.items()}
