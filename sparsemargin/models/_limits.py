"""What values a parameter may have.

The classifiers, `fit_svmlight` and the command line read the same limits; the last two start
without scikit-learn, whose own machinery for this is private.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np


@dataclass(frozen=True)
class Limit:
    """One kind of values: what they are, in words, and whether a value is one of them."""

    words: str
    allows: Callable[[Any], bool]


def _is_number(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool | np.bool_)


def _between(
    kind: type, low: float, high: float, closed: Literal["both", "left", "right", "neither"]
) -> Limit:
    with_low, with_high = closed in ("both", "left"), closed in ("both", "right")

    def allows(value: Any) -> bool:
        return (
            _is_number(value, kind)
            and (low < value or (with_low and low == value))
            and (value < high or (with_high and high == value))
        )

    noun = "an int" if kind is Integral else "a float"
    ends = f"{'[' if with_low else '('}{low:g}, {high:g}{']' if with_high else ')'}"
    return Limit(f"{noun} in the range {ends}", allows)


def real(
    low: float = -inf,
    high: float = inf,
    closed: Literal["both", "left", "right", "neither"] = "neither",
) -> Limit:
    """Real numbers of an interval."""
    return _between(Real, low, high, closed)


def whole(low: float = -inf, high: float = inf) -> Limit:
    """Integers from low to high."""
    return _between(Integral, low, high, "both")


def one_of(options: Iterable[str]) -> Limit:
    """Words."""
    known = sorted(options)
    listed = ", ".join(map(repr, known))
    return Limit(
        f"a str among {{{listed}}}", lambda value: isinstance(value, str) and value in known
    )


NONE = Limit("None", lambda value: value is None)
FLAG = Limit("a bool", lambda value: isinstance(value, bool | np.bool_))
CALLABLE = Limit("a callable", callable)
MAPPING = Limit("a dict", lambda value: isinstance(value, dict))
VERBOSITY = Limit(
    "a bool or an int from 0",
    lambda value: FLAG.allows(value) or (_is_number(value, Integral) and value >= 0),
)
SEED = Limit(
    "an int in the range [0, 2**32 - 1], a numpy.random.RandomState or None",
    lambda value: (
        value is None
        or (_is_number(value, Integral) and 0 <= value < 1 << 32)
        or isinstance(value, np.random.RandomState)
    ),
)


def check(name: str, value: Any, limits: tuple[Limit, ...], owner: str) -> None:
    """Refuse a value that none of the limits allows.

    Raises
    ------
    ValueError
        Names the parameter, its owner, what it may be, and what it was.
    """
    if any(limit.allows(value) for limit in limits):
        return
    *others, last = [limit.words for limit in limits]
    allowed = f"{', '.join(others)} or {last}" if others else last
    raise ValueError(f"The {name!r} parameter of {owner} must be {allowed}. Got {value!r} instead.")
