"""Argument checks shared by the bounds."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: A number where numbers went in, else an array.
Numbers = np.float64 | NDArray[np.float64]


def check_numbers(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """`values` as float64; a ValueError names the argument where one is no finite number."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a number or an array of numbers, got {values!r}.") from (
            error
        )
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be finite, got {values!r}. Drop what is NaN or infinite.")
    return numbers


def check_positive(name: str, values: ArrayLike, most: float = np.inf) -> NDArray[np.float64]:
    """`values` as float64, all of them in (0, most]."""
    numbers = check_numbers(name, values)
    if not ((numbers > 0) & (numbers <= most)).all():
        limit = "" if most == np.inf else f" and at most {most:g}"
        raise ValueError(f"{name} must be greater than 0{limit}, got {values!r}.")
    return numbers


def check_least(name: str, values: ArrayLike, least: float) -> NDArray[np.float64]:
    """`values` as float64, none of them below `least`."""
    numbers = check_numbers(name, values)
    if not (numbers >= least).all():
        raise ValueError(f"{name} must be at least {least:g}, got {values!r}.")
    return numbers


def check_vector(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """`values` as float64 of shape (n,), n at least 1."""
    numbers = check_numbers(name, values)
    if numbers.ndim != 1 or not numbers.size:
        raise ValueError(
            f"{name} must be a one-dimensional array with at least one entry, got shape "
            f"{numbers.shape}."
        )
    return numbers
