"""Declarations of parameters, with their defaults, limits and documentation.

The constructors, the checks, sections of the docstrings and the options of the command line are
generated from them. This module does not need scikit-learn, which is slow to import.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from inspect import get_annotations
from math import inf
from numbers import Integral, Real
from sys import float_info
from textwrap import fill
from typing import Any, Literal, TypeVar, dataclass_transform

import numpy as np

_Class = TypeVar("_Class", bound=type)


@dataclass(frozen=True)
class Limit:
    """A set of allowed values.

    `words` describes it. `kind` is the type of the values; Real and Integral exclude bools. `low`,
    `high` and `closed` define an interval of numbers, `choices` the allowed strings. `remark` is
    added to the error message for numbers above `high`.
    """

    words: str
    kind: Any
    low: float = -inf
    high: float = inf
    closed: Literal["both", "left", "right", "neither"] = "both"
    choices: tuple[str, ...] = ()
    remark: str = ""

    def allows(self, value: Any) -> bool:
        """Return whether a value is in the set."""
        if isinstance(value, bool | np.bool_) or self.kind is bool:
            return self.kind is bool and isinstance(value, bool | np.bool_)
        if not isinstance(value, self.kind) or (self.choices and value not in self.choices):
            return False
        if self.kind not in (Real, Integral):
            return True
        above = value > self.low or (value == self.low and self.closed in ("both", "left"))
        below = value < self.high or (value == self.high and self.closed in ("both", "right"))
        return above and below and (not isinstance(value, int) or abs(value) <= float_info.max)

    def remark_on(self, value: Any) -> str:
        """Return the remark if a value is above the upper limit, else ""."""
        number: Any = value  # may be an int that is too large for a float
        return self.remark if isinstance(value, Real) and number > self.high else ""


class _RandomStates(Limit):
    def allows(self, value: Any) -> bool:
        # The class is not the `kind` of the limit, because NumPy imports `random` on first use,
        # which takes a tenth of the start of a command.
        return isinstance(value, np.random.RandomState)


def real(
    low: float = -inf,
    high: float = inf,
    closed: Literal["both", "left", "right", "neither"] = "neither",
    *,
    remark: str = "",
) -> Limit:
    """Return the limit for real numbers in an interval."""
    left = "[" if closed in ("both", "left") else "("
    right = "]" if closed in ("both", "right") else ")"
    words = f"a float in the range {left}{low:g}, {high:g}{right}"
    return Limit(words, Real, low, high, closed, remark=remark)


def integer(low: float = -inf, high: float = inf) -> Limit:
    """Return the limit for integers from low to high."""
    left, right = "[" if low > -inf else "(", "]" if high < inf else ")"
    return Limit(f"an int in the range {left}{low}, {high}{right}", Integral, low, high)


def one_of(options: Iterable[str]) -> Limit:
    """Return the limit for a set of strings."""
    known = tuple(sorted(options))
    listed = ", ".join(map(repr, known))
    return Limit(f"a str among {{{listed}}}", str, choices=known)


NONE = Limit("None", type(None))
FLAG = Limit("a bool", bool)
CALLABLE = Limit("a callable", Callable)
MAPPING = Limit("a dict", dict)
RANDOM_STATE = _RandomStates("a numpy.random.RandomState", object)


@dataclass(frozen=True)
class Parameter:
    """The declaration of a parameter. A value must satisfy at least one of the limits.

    `doc` is reStructuredText; its first sentence is the help text of the command line. `structural`
    is True if the layout of the trained state depends on the parameter, so that training can't
    resume with another value.
    """

    name: str
    default: Any
    limits: tuple[Limit, ...] = ()
    doc: str = ""
    structural: bool = False

    def check(self, value: Any, owner: str) -> None:
        """Raise a ValueError if no limit allows the value; `owner` is the name of the class."""
        if any(limit.allows(value) for limit in self.limits):
            return
        *others, last = [limit.words + limit.remark_on(value) for limit in self.limits]
        allowed = f"{', '.join(others)} or {last}" if others else last
        raise ValueError(
            f"The {self.name!r} parameter of {owner} must be {allowed}. Got {value!r} instead."
        )

    def described(self) -> str:
        """Return the entry of the parameter in a numpydoc section."""
        words = re.sub(r"\ban? (str among )?|(?<=in )the range ", "", " or ".join(
            limit.words for limit in self.limits
        ))  # fmt: skip
        default = f'"{self.default}"' if isinstance(self.default, str) else repr(self.default)
        entry = f"{self.name} : {words}, default={default}".replace("'", '"')
        return f"{entry}\n{indented(self.doc)}"


def indented(text: str) -> str:
    """Return the text as the indented description of an entry in a numpydoc section."""
    margin = " " * 4
    return fill(
        " ".join(text.split()), 96, initial_indent=margin, subsequent_indent=margin,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def parameter(
    default: Any,
    limits: Limit | tuple[Limit, ...] | None = None,
    doc: str | None = None,
    *,
    more: str = "",
    **flags: bool,
) -> Any:
    """Declare a parameter in the body of a class that is decorated with `declared`.

    If `limits` or `doc` is None, it is inherited from the base class. `more` is appended to `doc`.
    `flags` may contain ``structural``.
    """
    given: dict[str, Any] = {**flags}
    if limits is not None:
        given["limits"] = limits if isinstance(limits, tuple) else (limits,)
    if doc is not None:
        given["doc"] = doc
    return field(default=default, metadata={**given, "more": more})


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def declared(cls: _Class) -> _Class:
    """Decorate a class so that its constructor has the parameters declared by it and its bases.

    A repeated declaration inherits everything that it does not specify.
    ``field(default=value, init=False)`` turns an inherited parameter into a constant.
    """
    dataclass(kw_only=True, eq=False, repr=False, match_args=False)(cls)
    # The classifier inherits the constructor, so Python's errors should contain its name.
    cls.__init__.__qualname__ = f"{getattr(cls, 'classifier', cls.__name__)}.__init__"  # type: ignore[misc]
    return collected(cls)


def collected(cls: _Class) -> _Class:
    """Store the declarations of a dataclass for `declarations`, and return the class."""
    known = dict(getattr(cls, "_declared", {}))
    mine = get_annotations(cls)
    for each in fields(cls):
        if each.name not in mine:
            continue
        if not each.init:
            del known[each.name]
            continue
        given = dict(each.metadata)
        more = given.pop("more", "")
        before = known.get(each.name, Parameter(each.name, None))
        now = replace(before, default=each.default, **given)
        known[each.name] = replace(now, doc=f"{now.doc} {more}") if more else now
    cls._declared = known  # type: ignore[attr-defined]
    return cls


def declarations(cls: Any) -> dict[str, Parameter]:
    """Return the parameters of a class by name, those of its base classes first."""
    return cls._declared


def documented(doc: str, parameters: Mapping[str, Parameter], base: Any) -> str:
    """Return a docstring with its section on parameters filled in, those of the base class last."""
    own_first = sorted(parameters.values(), key=lambda each: each.name in declarations(base))
    entries = "\n".join(each.described() for each in own_first)
    return doc.replace("{parameters}", f"Parameters\n----------\n{entries}")
