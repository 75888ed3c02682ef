"""The learners of the classifiers, the file streams and the command line.

`ALGORITHMS` lists them.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Literal

import numpy as np

from sparsemargin._checks import did_you_mean
from sparsemargin.models.algorithms.alma import ALMA
from sparsemargin.models.algorithms.arow import AROW
from sparsemargin.models.algorithms.cramma import CRAMMA
from sparsemargin.models.algorithms.higher_order import HigherOrder
from sparsemargin.models.algorithms.margin_perceptron import Margin
from sparsemargin.models.algorithms.max_margin import MaxMargin
from sparsemargin.models.algorithms.pnorm_perceptron import PNorm
from sparsemargin.models.algorithms.romma import ROMMA
from sparsemargin.models.algorithms.second_order import SecondOrder
from sparsemargin.models.kernels import NAMED
from sparsemargin.models.learner import Learner
from sparsemargin.models.parameters import declarations

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

#: The learner of each algorithm by its name, and the parameters that the name fixes.
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

#: The algorithm that is used if parameters are given without a name.
DEFAULT: Algorithm = "arow"

# Names that users may try for a parameter, because other libraries or the command line use them.
_OTHER_WORDS = {"epochs": "max_iter", "n_epochs": "max_iter"}

#: The learners by the names of their classifiers.
LEARNERS = {learner.classifier: learner for learner, _ in ALGORITHMS.values()}


# The default and constant parameters of AROW, except the number of epochs.
_IMPLIED = {each.name: each.default for each in fields(AROW) if each.name != "max_iter"}


def without_defaults(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters without those that have AROW's default or constant value."""
    return {
        name: value for name, value in params.items()
        if name not in _IMPLIED or np.ndim(value) or value != _IMPLIED[name]
    }  # fmt: skip


def find_algorithm(name: Any, params: dict[str, Any]) -> tuple[type[Learner], dict[str, Any]]:
    """Return the learner of an algorithm, and its parameters: the given ones and those that the
    name fixes. None is AROW, the default. For an unknown parameter, a ValueError names the
    algorithms that have it."""
    given = f"algo={name!r}"
    if name is None:
        given = f"algo=None, which is {DEFAULT!r}"
        params, name = without_defaults(params), DEFAULT
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
            f"Unknown parameter {', '.join(map(repr, unknown))} for {given}."
            f"{_nearest_parameter(unknown[0], known)} Known are: {', '.join(known)}."
        )
    return learner, {**fixed, **params}


def _nearest_algorithm(name: Any) -> str:
    """Return "Did you mean ...?" for the algorithm of a classifier or a similar name, or ""."""
    classifier = name if isinstance(name, str) else getattr(name, "__name__", type(name).__name__)
    for algo, (learner, fixed) in ALGORITHMS.items():
        if learner.classifier == classifier and not fixed:
            return f" Did you mean {algo!r}?"
    return did_you_mean(name, ALGORITHMS)


def _nearest_parameter(name: str, known: list[str]) -> str:
    """Return a hint: the algorithms that have the parameter, or "Did you mean ...?", or ""."""
    if name in _OTHER_WORDS:
        return f" Did you mean {_OTHER_WORDS[name]!r}?"
    owners = [
        algo for algo, (learner, fixed) in ALGORITHMS.items()
        if name in declarations(learner) and name not in fixed
    ]  # fmt: skip
    of_kernels = [kind.__name__ for kind in NAMED.values() if name in declarations(kind)]
    if of_kernels and "kernel" in known:
        kernels = " or ".join(f"kernel={each}({name}=...)" for each in of_kernels)
        return f" {name} is a parameter of kernels. Pass {kernels}, of sparsemargin.kernels."
    if owners:
        return f" {name} is a parameter of {', '.join(f'algo={each!r}' for each in owners)}."
    return did_you_mean(name, known)
