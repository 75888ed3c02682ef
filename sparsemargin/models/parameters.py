"""Declarations of parameters, with their defaults, limits and documentation.

The constructors, the checks, sections of the docstrings and the options of the command line are
generated from them. `SharedParameters` has the parameters of all algorithms. This module does not
need scikit-learn, which is slow to import.
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
        # NumPy imports `random` on first use, which takes a tenth of the start of a command.
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
    told: dict[str, Any] = {**flags}
    if limits is not None:
        told["limits"] = limits if isinstance(limits, tuple) else (limits,)
    if doc is not None:
        told["doc"] = doc
    return field(default=default, metadata={**told, "more": more})


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def declared(cls: _Class) -> _Class:
    """Decorate a class so that its constructor has the parameters declared by it and its bases.

    A repeated declaration inherits everything that it does not specify.
    ``field(default=value, init=False)`` turns an inherited parameter into a constant.
    """
    dataclass(kw_only=True, eq=False, repr=False, match_args=False)(cls)
    # The classifier inherits the constructor, so Python's errors should contain its name.
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
    """Return the parameters of a `declared` class by name, those of its base classes first."""
    return cls._declared


@declared
class SharedParameters:
    """Parameters of all algorithms; some algorithms turn them into constants."""

    p: float | Literal["log"] = parameter(
        2.0,
        (real(2, MAX_P, "both", remark=" (p > 2 ln n_features gains nothing)"), one_of(["log"])),
        'p of the norm of the instances; ``"log"`` is ``max(2, 2 ln n_features)``. The norm of the '
        "weights is the dual norm. Large p is better if few features are relevant.",
        structural=True,
    )
    hypothesis: Hypothesis = parameter(
        "average",
        one_of(get_args(Hypothesis)),
        "The hypothesis used for prediction: the average of all weight vectors, each weighted by "
        "the number of trials it survived; the last vector; the weighted majority vote of all "
        "vectors; or the vector after a random trial (Freund & Schapire 1999, section 5).",
        structural=True,
    )
    normalize_hypotheses: bool = parameter(
        False,
        FLAG,
        "Whether each weight vector is divided by its dual norm before averaging or voting.",
        structural=True,
    )
    max_iter: float | None = parameter(
        5,
        (real(0), NONE),
        "Number of epochs; None: until an epoch makes no correction. A fraction ends within an "
        "epoch. With None, a fit to data that are not separable does not end. It reports its "
        "progress every ten seconds, and Ctrl-C stops it and keeps the current model. A "
        "`ConvergenceWarning` is issued if a fit ends before it reaches the requested margin.",
    )
    max_corrections: int | None = parameter(
        None,
        (integer(1), NONE),
        "Stop after this number of corrections, including those of earlier fits under "
        "`warm_start`. With more than two classes, each vector stops separately, and its average "
        "does not count later trials.",
    )
    early_stopping: bool = parameter(
        False,
        FLAG,
        "Whether training stops before `max_iter` epochs if `n_iter_no_change` epochs in a row "
        "did not have fewer corrections than the best epoch so far. No rows are held out, and the "
        "model is that of the last epoch.",
    )
    n_iter_no_change: int = parameter(
        5, integer(1), "Number of epochs without fewer corrections before `early_stopping` stops."
    )
    shuffle: bool = parameter(
        True,
        FLAG,
        "Whether rows are shuffled before every epoch; False: the given order.",
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
        "p-norm of the first 100 rows (in `partial_fit`, of its first call), or 1/3 if they are "
        'all zero. With a kernel, ``"auto"`` means no intercept.',
        structural=True,
    )
    class_weight: Any = parameter(
        None,
        (one_of(["balanced"]), MAPPING, NONE),
        "Weights of the classes; only ratios matter, because weights are divided by their harmonic "
        "mean. The step of a correction is multiplied by the cube root of the row's weight (AROW "
        "divides r by the square root). With steps proportional to the weights, rare classes would "
        "be predicted far too often, and the error on the other classes would be much higher. With "
        "more than two classes and in multilabel problems, the weights apply to the positive rows "
        "of each class, and negative rows have weight 1. "
        '``"balanced"``: inversely proportional to the number of rows of each class; in multilabel '
        "problems, to the numbers of positive and negative rows of each label that has both.",
    )
    warm_start: bool = parameter(
        False, FLAG, "Whether `fit` resumes from the model of the last fit."
    )
    n_jobs: int | None = parameter(
        None,
        (integer(high=-1), integer(1), NONE),
        "Number of threads, which train the vectors of different classes and compute kernel rows; "
        "None: 1, -1: all processors. The model does not depend on it.",
    )
    verbose: int = parameter(
        0,
        (FLAG, integer(0)),
        "Whether progress is printed: a line for each of the first ten epochs, then a line every "
        "half second.",
    )
    kernel: KernelName | Callable[[Any, Any], Any] = parameter(
        "linear",
        (one_of(get_args(KernelName)), CALLABLE),
        'The kernel, which replaces dot products; it requires p = 2. ``"linear"``: dot products; '
        '``"poly"``: ``(gamma x.z + coef0)**degree``; ``"rbf"``: ``exp(-gamma |x - z|^2)``; '
        '``"polyrbf"``: ``(1 + exp(-gamma |x - z|^2))**degree`` (Gentile 2001, section 4.3); '
        '``"precomputed"``: X contains the kernel of all pairs of rows in `fit`, and of the test '
        "rows with these rows in `predict`. A function gets two matrices, ndarrays or, if X is "
        "sparse, `csr_array`, and returns an ndarray of shape (n_rows, n_other_rows). An intercept "
        "adds the square of `intercept_scaling` to the kernel. Norms of rows are those in feature "
        "space. All classes share one pool of rows. A trial costs one row of the kernel. For each "
        "of its rows, the pool stores the entries (including zeros if at least every fourth entry "
        "is not zero or if there are few features) and, except for the Higher- and Second-order "
        "Perceptron, 16 bytes per class.",
        structural=True,
    )
    degree: int = parameter(
        3, integer(1, 1000), 'Degree of ``"poly"`` and ``"polyrbf"``.', structural=True
    )
    gamma: float | Literal["scale", "auto"] = parameter(
        "scale",
        (one_of(["scale", "auto"]), real(0)),
        'Coefficient of ``"poly"``, ``"rbf"`` and ``"polyrbf"``; ``"scale"``: '
        '``1 / (n_features * X.var())``, ``"auto"``: ``1 / n_features``. In the notation of the '
        "papers, it is ``1 / (2 sigma**2)`` for a Gaussian of width sigma, and ``1 / s`` for grey "
        "values divided by the scale s.",
        structural=True,
    )
    coef0: float = parameter(
        0.0,
        real(0, closed="left"),
        'Constant that ``"poly"`` adds to ``gamma x.z``.',
        structural=True,
    )
