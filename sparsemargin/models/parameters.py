"""How an algorithm declares its parameters: once, with default, limits and help; and those that
all of them have.

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
from sys import float_info
from textwrap import fill
from typing import Any, Literal, TypeVar, dataclass_transform, get_args

import numpy as np

from sparsemargin._engine.first_order.spaces import MAX_P
from sparsemargin._engine.kernel.functions import KernelName

Hypothesis = Literal["last", "average", "vote", "random"]

_Class = TypeVar("_Class", bound=type)


@dataclass(frozen=True)
class Limit:
    """One kind of values: what they are in words, and of which type, Real and Integral being
    numbers but no bools; their range, which of its ends are allowed, the words there are, and what
    is to be said of its upper end."""

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
        return above and below and (not isinstance(value, int) or abs(value) <= float_info.max)

    def remark_on(self, value: Any) -> str:
        """The remark, where a value is beyond the upper end."""
        number: Any = value  # which a float need not hold
        return self.remark if isinstance(value, Real) and number > self.high else ""


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
    """What is declared of a parameter; a value is one of the limits.

    `doc` is reStructuredText, whose first sentence is the help of the command line; structural: the
    learned state is made for it.
    """

    name: str
    default: Any
    limits: tuple[Limit, ...] = ()
    doc: str = ""
    structural: bool = False

    def check(self, value: Any, owner: str) -> None:
        """Refuse a value that none of the limits allows."""
        if any(limit.allows(value) for limit in self.limits):
            return
        *others, last = [limit.words + limit.remark_on(value) for limit in self.limits]
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
    """Declare a parameter in the body of a class that is `declared`. Limits and doc that are None
    are those of a base, on whose doc `more` follows; `flags` may have ``structural``."""
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
    return cls._declared


@declared
class SharedParameters:
    """What every algorithm has, or makes a constant."""

    p: float | Literal["log"] = parameter(
        2.0,
        (real(2, MAX_P, "both", remark=" (p > 2 ln n_features gains nothing)"), one_of(["log"])),
        'p of the norm of the instances; ``"log"`` is ``max(2, 2 ln n_features)``. Weights are '
        "measured by the dual norm. Large p pays where few features are relevant.",
        structural=True,
    )
    hypothesis: Hypothesis = parameter(
        "average",
        one_of(get_args(Hypothesis)),
        "What predicts: the average of all weight vectors, each counted for the trials it lasted; "
        "the last one; their weighted majority vote; or the one of a random moment (Freund & "
        "Schapire 1999, section 5).",
        structural=True,
    )
    normalize_hypotheses: bool = parameter(
        False,
        FLAG,
        "Whether each weight vector is divided by its dual norm before it counts.",
        structural=True,
    )
    max_iter: float | None = parameter(
        5,
        (real(0), NONE),
        "Epochs; None: until a pass makes no correction. Data that are not separable never come to "
        "that; such a fit says every ten seconds where it is, and Ctrl-C ends it with the model as "
        "it then is. A fraction ends within an epoch. Where they end a fit short of a margin that "
        "it was to reach, a `ConvergenceWarning` says so.",
    )
    max_corrections: int | None = parameter(
        None,
        (integer(1), NONE),
        "Stop learning after that many corrections, those of earlier fits under `warm_start` "
        "included; with many classes each label by itself, whose averages then count no further "
        "trials.",
    )
    early_stopping: bool = parameter(
        False,
        FLAG,
        "Whether learning ends, before `max_iter` epochs, where the corrections of a pass, its "
        "errors one step ahead, have not become fewer in `n_iter_no_change` passes. No rows are "
        "held out; the model is that of the end.",
    )
    n_iter_no_change: int = parameter(
        5, integer(1), "How many passes `early_stopping` waits for one with fewer corrections."
    )
    shuffle: bool = parameter(
        True,
        FLAG,
        "Whether rows come in a new random order every epoch; False: in the given order.",
    )
    random_state: Any = parameter(
        None,
        (integer(0, 2**32 - 1), NONE, RANDOM_STATE),
        'Seed of the shuffling and of ``hypothesis="random"``.',
    )
    fit_intercept: bool = parameter(
        True,
        FLAG,
        "Whether a constant coordinate of value `intercept_scaling` is appended to every instance.",
        structural=True,
    )
    intercept_scaling: float | Literal["auto"] = parameter(
        "auto",
        (real(0), one_of(["auto"])),
        'Value of the coordinate for the intercept; ``"auto"``: a third of the root mean square '
        "p-norm of the first 100 rows, of those of the first call to `partial_fit`, or 1/3 where "
        "these are zero. With a kernel there is no intercept then.",
        structural=True,
    )
    class_weight: Any = parameter(
        None,
        (one_of(["balanced"]), MAPPING, NONE),
        "What rows of each class count for; only ratios matter, as weights are divided by their "
        "harmonic mean. The step of a correction is multiplied by the cube root of its row's "
        "weight (AROW divides r by the square root): in proportion, rare classes would be "
        "predicted far too often and what was learned of the others be lost. With more than two "
        "classes, and where rows may have several, each label's positive rows are so weighted, "
        "against a weight of 1 for the negative ones. "
        '``"balanced"``: inversely proportional to the rows of each class, or, where rows may have '
        "several, of both sides of each label that has two.",
    )
    warm_start: bool = parameter(
        False, FLAG, "Whether `fit` goes on from the model of the last one."
    )
    n_jobs: int | None = parameter(
        None,
        (integer(high=-1), integer(1), NONE),
        "Threads that share the labels of a many-class problem, and the kernel's work; the model "
        "is the same for any number.",
    )
    verbose: int = parameter(
        0,
        (FLAG, integer(0)),
        "Whether a line is printed for every epoch of the first ten, and every half second after.",
    )
    kernel: KernelName | Callable[[Any, Any], Any] = parameter(
        "linear",
        (one_of(get_args(KernelName)), CALLABLE),
        'What takes the place of the dot products, for p = 2. ``"linear"``: nothing does; '
        '``"poly"``: ``(gamma x.z + coef0)**degree``; ``"rbf"``: ``exp(-gamma |x - z|^2)``; '
        '``"polyrbf"``: ``(1 + exp(-gamma |x - z|^2))**degree`` (Gentile 2001, section 4.3); '
        '``"precomputed"``: X is the kernel of all pairs of rows in `fit`, and of the rows to '
        "predict with those in `predict`; or a function of two matrices, ndarrays, or `csr_array` "
        "where X was sparse, to the ndarray of shape (n_rows, n_other_rows). An intercept adds the "
        "square of `intercept_scaling` to it, and norms of rows are those in feature space. All "
        "labels share one pool of rows; a trial costs one kernel row, and the pool takes for each "
        "row its entries (zeros too, where every fourth is not 0 or features are few) and, for "
        "algorithms of first order, 16 bytes a label.",
        structural=True,
    )
    degree: int = parameter(
        3, integer(1, 1000), 'Of ``"poly"`` and ``"polyrbf"``.', structural=True
    )
    gamma: float | Literal["scale", "auto"] = parameter(
        "scale",
        (one_of(["scale", "auto"]), real(0)),
        'Of ``"poly"``, ``"rbf"`` and ``"polyrbf"``; ``"scale"``: ``1 / (n_features * X.var())``, '
        '``"auto"``: ``1 / n_features``. In the papers\' terms ``1 / (2 sigma**2)`` for a Gaussian '
        "of width sigma, ``1 / s`` for greys divided by the scale s.",
        structural=True,
    )
    coef0: float = parameter(
        0.0, real(0, closed="left"), 'Added to ``gamma x.z``, of ``"poly"``.', structural=True
    )
