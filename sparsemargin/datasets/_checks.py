"""Argument checks and random streams shared by generators and loaders."""

import operator

import numpy as np
from numpy.typing import DTypeLike
from sklearn.utils import check_random_state


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


def spawn_streams(random_state, n_streams: int) -> list[np.random.RandomState]:
    """Split `random_state` into independent streams, one for each thing that is drawn.

    With a stream of its own, a draw does not move when another one takes more numbers: the same
    seed gives the same instances whatever the noise, and whatever the size of internal batches.
    RandomState, whose sequences NumPy has frozen, keeps published seeds valid.
    """
    try:
        parent = check_random_state(random_state)
    except ValueError as error:
        raise ValueError(
            "random_state must be None, an integer from 0 to 2**32 - 1 or a numpy RandomState, "
            f"got {random_state!r}"
        ) from error
    seeds = parent.randint(2**31 - 1, size=n_streams)
    return [check_random_state(int(seed)) for seed in seeds]
