"""Checks of arguments; nothing here needs scikit-learn, which is slow to import."""

import operator
from collections.abc import Iterable
from difflib import get_close_matches

import numpy as np
from numpy.typing import DTypeLike


def check_count(name: str, value: object, low: int, high: int) -> int:
    """Return `value` as an int in [low, high], or raise a ValueError that names the argument."""
    try:
        count = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        count = None
    if count is None or isinstance(value, bool) or not low <= count <= high:
        raise ValueError(f"{name} must be an integer from {low} to {high}, got {value!r}")
    return count


def check_real(name: str, value: object, low: float, high: float) -> float:
    """Return `value` as a float in [low, high], or raise a ValueError that names the argument."""
    is_number = isinstance(value, int | float | np.integer | np.floating)
    if not is_number or isinstance(value, bool) or not low <= value <= high:  # type: ignore[operator]
        raise ValueError(f"{name} must be a number from {low} to {high}, got {value!r}")
    return float(value)  # type: ignore[arg-type]


def check_float_dtype(dtype: DTypeLike) -> np.dtype:
    """Return `dtype` as a NumPy dtype, float32 or float64."""
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = None
    if found not in (np.float32, np.float64):
        raise ValueError(f"dtype must be numpy.float32 or numpy.float64, got {dtype!r}")
    return found


def check_flag(name: str, value: object) -> bool:
    """Return `value` as a bool, refusing strings and numbers that merely count as true."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Raise a ValueError that names the argument where `value` is none of `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """A question after the nearest of the known words, with a space before it; empty if none is
    near."""
    near = get_close_matches(str(word), known, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
