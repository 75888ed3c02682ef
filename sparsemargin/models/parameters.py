"""How an algorithm declares its parameters: once, with default, limits and help.

From a declaration come the constructor's signature, the checks, the sections of the docstrings
and the options of the command line. Nothing here needs scikit-learn, which is slow to import.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from inspect import get_annotations
from math import inf
from numbers import Integral, Real
from textwrap import fill
from typing import Any, Literal, TypeVar, dataclass_transform

import numpy as np

_Class = TypeVar("_Class", bound=type)


@dataclass(frozen=True)
class Limit:
    """One kind of values.

    Attributes
    ----------
    words : str
        What they are.
    kind : type
        Numbers are of `Real` or `Integral`; a bool is none.
    low, high : float
        Of numbers.
    closed : {"both", "left", "right", "neither"}
        Which of the two are allowed.
    choices : tuple of str
        Of words.
    remark : str
        What an error adds.
    """

    words: str
    kind: Any
    low: float = -inf
    high: float = inf
    closed: Literal["both", "left", "right", "neither"] = "both"
    choices: tuple[str, ...] = ()
    remark: str = ""

    def allows(self, value: Any) -> bool:
        """Whether a value is one of them."""
        if isinstance(value, bool | np.bool_) or self.kind is bool:
            return self.kind is bool and isinstance(value, bool | np.bool_)
        if not isinstance(value, self.kind) or (self.choices and value not in self.choices):
            return False
        if self.kind not in (Real, Integral):
            return True
        above = value > self.low or (value == self.low and self.closed in ("both", "left"))
        below = value < self.high or (value == self.high and self.closed in ("both", "right"))
        return above and below


class _RandomStates(Limit):
    def allows(self, value: Any) -> bool:
        # numpy imports this on first use, for a tenth of the time in which a command starts.
        return isinstance(value, np.random.RandomState)


def real(
    low: float = -inf,
    high: float = inf,
    closed: Literal["both", "left", "right", "neither"] = "neither",
    *,
    remark: str = "",
) -> Limit:
    """Real numbers of an interval."""
    left = "[" if closed in ("both", "left") else "("
    right = "]" if closed in ("both", "right") else ")"
    words = f"a float in the range {left}{low:g}, {high:g}{right}"
    return Limit(words, Real, low, high, closed, remark=remark)


def integer(low: float = -inf, high: float = inf) -> Limit:
    """Integers from low to high."""
    left, right = "[" if low > -inf else "(", "]" if high < inf else ")"
    return Limit(f"an int in the range {left}{low}, {high}{right}", Integral, low, high)


def one_of(options: Iterable[str]) -> Limit:
    """Words."""
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
    """What is declared of a parameter.

    Attributes
    ----------
    name : str
    default : object
    limits : tuple of Limit
        A value is one of them.
    doc : str
        In reStructuredText. Its first sentence is the help of the command line.
    structural : bool
        Whether the learned state is made for it.
    """

    name: str
    default: Any
    limits: tuple[Limit, ...] = ()
    doc: str = ""
    structural: bool = False

    def check(self, value: Any, owner: str) -> None:
        """Refuse a value that none of the limits allows.

        Raises
        ------
        ValueError
            Names the parameter, its owner, what it may be, and what it was.
        """
        if any(limit.allows(value) for limit in self.limits):
            return
        *others, last = [limit.words + limit.remark for limit in self.limits]
        allowed = f"{', '.join(others)} or {last}" if others else last
        raise ValueError(
            f"The {self.name!r} parameter of {owner} must be {allowed}. Got {value!r} instead."
        )

    def described(self) -> str:
        """Its entry in a numpydoc section."""
        words = re.sub(r"\ban? (str among )?|(?<=in )the range ", "", " or ".join(
            limit.words for limit in self.limits
        ))  # fmt: skip
        default = f'"{self.default}"' if isinstance(self.default, str) else repr(self.default)
        entry = f"{self.name} : {words}, default={default}".replace("'", '"')
        return f"{entry}\n{indented(self.doc)}"


def indented(text: str) -> str:
    """A paragraph below an entry of a numpydoc section."""
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
    """Declare a parameter in the body of a class that is `declared`.

    Parameters
    ----------
    default : object
    limits : Limit, or tuple of those; or None
        None, as for `doc`: those that a base has declared.
    doc : str or None
    more : str
        What follows upon the doc that a base has declared.
    **flags : bool
        ``structural``, of `Parameter`.
    """
    told: dict[str, Any] = {**flags}
    if limits is not None:
        told["limits"] = limits if isinstance(limits, tuple) else (limits,)
    if doc is not None:
        told["doc"] = doc
    return field(default=default, metadata={**told, "more": more})


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def declared(cls: _Class) -> _Class:
    """Make the parameters that a class and its bases declare arguments of its constructor.

    One that is declared anew keeps what is not said again; ``field(default=value, init=False)``
    makes one that a base has declared a constant.
    """
    dataclass(kw_only=True, eq=False, repr=False, match_args=False)(cls)
    # The classifier inherits the constructor, and Python's errors name what users have called.
    cls.__init__.__qualname__ = f"{getattr(cls, 'classifier', cls.__name__)}.__init__"  # type: ignore[misc]
    known = dict(getattr(cls, "_declared", {}))
    mine = get_annotations(cls)
    for each in fields(cls):
        if each.name not in mine:
            continue
        if not each.init:
            del known[each.name]
            continue
        told = dict(each.metadata)
        more = told.pop("more", "")
        before = known.get(each.name, Parameter(each.name, None))
        now = replace(before, default=each.default, **told)
        known[each.name] = replace(now, doc=f"{now.doc} {more}") if more else now
    cls._declared = known  # type: ignore[attr-defined]
    return cls


def declarations(cls: Any) -> dict[str, Parameter]:
    """The parameters of a class that is `declared`, by name, those of its bases first."""
    found: dict[str, Parameter] = cls._declared
    return found
