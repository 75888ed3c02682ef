"""What the classifiers, the file streams and the command line learn by.

`ALGORITHMS` is the one list of them.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Literal

import numpy as np

from sparsemargin._checks import did_you_mean
from sparsemargin.models.alma import ALMA
from sparsemargin.models.arow import AROW
from sparsemargin.models.base import Learner
from sparsemargin.models.cramma import CRAMMA
from sparsemargin.models.higher_order import HigherOrder
from sparsemargin.models.margin_perceptron import Margin
from sparsemargin.models.max_margin import MaxMargin
from sparsemargin.models.parameters import declarations
from sparsemargin.models.pnorm_perceptron import PNorm
from sparsemargin.models.romma import ROMMA
from sparsemargin.models.second_order import SecondOrder

Algorithm = Literal[
    "perceptron",
    "pnorm",
    "alma",
    "arow",
    "ho",
    "so",
    "margin",
    "cramma",
    "romma",
    "maxmargin",
]

#: Each name of an algorithm: its learner, and the parameters the name fixes.
ALGORITHMS: dict[Algorithm, tuple[type[Learner], dict[str, Any]]] = {
    "perceptron": (PNorm, {"p": 2.0, "normalize": False}),
    "pnorm": (PNorm, {}),
    "alma": (ALMA, {}),
    "arow": (AROW, {}),
    "ho": (HigherOrder, {}),
    "so": (SecondOrder, {}),
    "margin": (Margin, {}),
    "cramma": (CRAMMA, {}),
    "romma": (ROMMA, {}),
    "maxmargin": (MaxMargin, {}),
}

# What other libraries, and the command line, call `max_iter`.
_OTHER_WORDS = {"epochs": "max_iter", "n_epochs": "max_iter"}

#: The learners by the names of the classifiers over them.
LEARNERS = {learner.classifier: learner for learner, _ in ALGORITHMS.values()}


# What AROW does unless it is told otherwise, some of it for good; but the number of its epochs.
_IMPLIED = {each.name: each.default for each in fields(AROW) if each.name != "max_iter"}


def without_defaults(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters but for those that say what AROW, the default, does anyway."""
    return {
        name: value for name, value in params.items()
        if name not in _IMPLIED or np.ndim(value) or value != _IMPLIED[name]
    }  # fmt: skip


def default_algorithm(params: Mapping[str, Any]) -> Algorithm:
    """What ``algo=None`` means where these parameters are given: AROW, or ALMA where that takes a
    value that AROW does not."""
    return "alma" if any(
        not _takes(AROW, name, value) and _takes(ALMA, name, value)
        for name, value in params.items()
    ) else "arow"  # fmt: skip


def _takes(learner: type[Learner], name: str, value: Any) -> bool:
    known = declarations(learner)
    return name in known and any(limit.allows(value) for limit in known[name].limits)


def find_algorithm(name: Any, params: dict[str, Any]) -> tuple[type[Learner], dict[str, Any]]:
    """The learner of that name, None: the default, and all parameters for it: those given and those
    the name fixes."""
    given = name
    if name is None:
        params = without_defaults(params)
        name = default_algorithm(params)
    if not isinstance(name, str) or name not in ALGORITHMS:
        raise ValueError(
            f"Unknown algo={name!r}.{_nearest_algorithm(name)} "
            f"Known are: {', '.join(map(repr, ALGORITHMS))}."
        )
    learner, fixed = ALGORITHMS[name]
    known = [param for param in sorted(declarations(learner)) if param not in fixed]
    unknown = sorted(set(params) - set(known))
    if unknown:
        raise ValueError(
            f"Unknown parameter {', '.join(map(repr, unknown))} for algo={given!r}."
            f"{_nearest_parameter(unknown[0], known)} Known are: {', '.join(known)}."
        )
    return learner, {**fixed, **params}


def _nearest_algorithm(name: Any) -> str:
    """A question after the algorithm of that classifier, class or name, or of the nearest name."""
    classifier = name if isinstance(name, str) else getattr(name, "__name__", type(name).__name__)
    for algo, (learner, fixed) in ALGORITHMS.items():
        if learner.classifier == classifier and not fixed:
            return f" Did you mean {algo!r}?"
    return did_you_mean(name, ALGORITHMS)


def _nearest_parameter(name: str, known: list[str]) -> str:
    """Whose parameter it is; or a question after the nearest of the known ones."""
    if name in _OTHER_WORDS:
        return f" Did you mean {_OTHER_WORDS[name]!r}?"
    owners = [
        algo for algo, (learner, fixed) in ALGORITHMS.items()
        if name in declarations(learner) and name not in fixed
    ]  # fmt: skip
    if owners:
        return f" It is a parameter of {', '.join(map(repr, owners))}."
    return did_you_mean(name, known)
