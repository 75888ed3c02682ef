"""The options that are parameters of the algorithms, made from the tables the learners have."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from math import isnan
from typing import Any

import click

from sparsemargin.cli.options import option
from sparsemargin.io.labels import number_of
from sparsemargin.models import ALGORITHMS, DEFAULT_ALGORITHM
from sparsemargin.models._limits import CALLABLE, FLAG, NONE, Limit

# --init-model, --quiet and --n-jobs see to the first of these; streams can't do the others.
_ELSEWHERE = {
    "warm_start", "verbose", "n_jobs", "keep_history", "max_corrections", "soft_margin", "tol"
}  # fmt: skip

_ALIASES = {"max_iter": "--epochs", "random_state": "--seed"}

# What --epochs was told where there is to be no end but the last correction.
_OTHER_NONE = {"max_iter": "until"}

# Narrower in streams, which can't end within an epoch.
_RANGES = {"max_iter": "a whole number from 1"}

#: Those of the command, where they are not the algorithms' own.
DEFAULTS = {"max_iter": "1", "random_state": "0"}

_HELP = {
    "B": "B of the paper's Figure 1; none: sqrt(8) / alpha.",
    "C": "C of the paper's Figure 1: the length of the steps.",
    "a": "Weight of the identity: the larger, the more like a Perceptron.",
    "aggressive": "Correct margins below 1 too.",
    "alpha": "The margin reached is at least 1 - alpha of the largest.",
    "beta": "The larger, the more corrections and the larger the margin.",
    "c": "How much of a row's direction a mistake takes out of the matrix.",
    "class_weight": "Multiplies the steps for rows with this label; may be repeated.",
    "coef0": "Added to gamma x.z, of poly.",
    "degree": "Of poly and polyrbf.",
    "delta": "How fast the rate falls with beta.",
    "epsilon": "How fast the threshold falls with the corrections.",
    "eta": "The step.",
    "eta0": "Rate at beta = 1.",
    "fit_intercept": "Learn an intercept.",
    "gamma": "Of poly, rbf and polyrbf; auto: 1 / n. The default is refused: it needs the variance "
    "of all rows.",
    "hypothesis": "What predicts: the average of all weight vectors, or the last one. The others "
    "would keep a log of all corrections, and are refused.",
    "intercept_scaling": "Value of the intercept's own feature; auto: a tenth of the norm of the "
    "first rows, no intercept with a --kernel.",
    "kernel": "What takes the place of the dot products; needs --max-support. No text has one "
    "that is precomputed.",
    "margin": "Rows with less are corrected, in units of w.x.",
    "max_iter": "Passes over the rows; none, or until: until one makes no correction.",
    "max_support": "Rows that the pool of a kernel may hold; needed, as it bounds the memory.",
    "max_updates": "Mistakes that change the matrix, which bounds the memory.",
    "multi_class": "More than two classes: ovr: each against the rest; joint: the true one against "
    "its strongest rival.",
    "normalize": "What rows are divided by: yes: their own norm; no: nothing.",
    "normalize_hypotheses": "Average weight vectors of norm 1.",
    "p": "p of the norm that rows are measured with, from 2; log: 2 ln n.",
    "radius": "Largest 2-norm of a row; needed.",
    "random_state": "Seed of the random order of rows.",
    "shuffle": "Take the rows of further epochs in random order.",
    "solver": "How the matrix is kept.",
    "sparse_updates": "Let the matrix change on some mistakes only.",
    "when_full": "What to do where a row would join a full pool: end, or pass it over.",
}


#: All parameters that are options.
ALL_PARAMETERS = tuple(_HELP)


def option_name(parameter: str) -> str:
    """The option that a parameter is."""
    return f"--{parameter.replace('_', '-')}"


def parameters_of(algorithm: str) -> list[str]:
    """The parameters of an algorithm that are options."""
    learner, fixed = ALGORITHMS[algorithm]  # type: ignore[index]
    names = learner.parameter_names()
    return [name for name in names if name not in fixed and name not in _ELSEWHERE]


def algorithm_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that its algorithms have, None where they are left out."""
    owners: dict[str, list[str]] = {}
    for algorithm in ALGORITHMS:
        for parameter in parameters_of(algorithm):
            owners.setdefault(parameter, []).append(algorithm)
    for parameter in reversed(_in_order(owners)):
        command = _option(parameter, owners[parameter])(command)
    return command


def chosen_parameters(algorithm: str | None, given: dict[str, Any]) -> dict[str, Any]:
    """The parameters that options stand for.

    Parameters
    ----------
    algorithm : str or None
        None: the library's default.
    given : dict
        By parameter, as on the command line; None: not given.

    Raises
    ------
    click.UsageError
        If the algorithm has no such option, or a value can't be one of it.
    """
    known = parameters_of(algorithm or DEFAULT_ALGORITHM)
    learner, _ = ALGORITHMS[algorithm or DEFAULT_ALGORITHM]  # type: ignore[index]
    chosen = {}
    for parameter, text in given.items():
        if text is None or text == ():
            continue
        if parameter not in known:
            has = ", ".join(map(option_name, _in_order(known)))
            raise click.UsageError(
                f"{option_name(parameter)} is no option of --algo {algorithm or DEFAULT_ALGORITHM},"
                f" which has {has}."
            )
        chosen[parameter] = _value_of(parameter, text, learner._limits[parameter])
    return chosen


def word_for(value: str) -> str:
    """What the command line calls a value that the library writes as this."""
    return {"None": "none", "True": "yes", "False": "no"}.get(value, value)


def _in_order(parameters: Any) -> list[str]:
    """What is asked for most often first, then by name."""
    first = ["max_iter", "p", "hypothesis", "alpha", "fit_intercept", "intercept_scaling"]
    rest = sorted(set(parameters) - set(first), key=str.lower)
    return [name for name in first if name in parameters] + rest


def _option(parameter: str, owners: list[str]) -> Callable[..., Any]:
    name, settings = option_name(parameter), _settings_of(parameter, owners)
    names = [f"{name}/--no-{name[2:]}" if settings.get("is_flag") else name]
    if parameter in _ALIASES:
        names.append(_ALIASES[parameter])
    return option("Learning", *names, parameter, help=_help(parameter, owners), **settings)


def _help(parameter: str, owners: list[str]) -> str:
    """What it is, which algorithms have it, and its default, where they agree on one."""
    whose = [] if len(owners) == len(ALGORITHMS) else [", ".join(owners)]
    defaults = {_default(parameter, owner) for owner in owners}
    agreed = [f"default: {default}" for default in defaults if len(defaults) == 1]
    return "  ".join([_HELP[parameter], *(f"[{note}]" for note in (*whose, *agreed))])


def _settings_of(parameter: str, owners: list[str]) -> dict[str, Any]:
    """How click is to read an option: as text, which the algorithm's own limits judge later."""
    if parameter == "class_weight":
        return {"multiple": True, "metavar": "LABEL=WEIGHT"}
    limits = {limit.words: limit for owner in owners for limit in _limits_of(parameter, owner)}
    if list(limits.values()) == [FLAG]:
        return {"is_flag": True, "default": None}
    words = [word for limit in limits.values() for word in _metavars(parameter, limit)]
    return {"metavar": "|".join(words)}


def _limits_of(parameter: str, algorithm: str) -> tuple[Limit, ...]:
    return ALGORITHMS[algorithm][0]._limits[parameter]  # type: ignore[index]


def _default(parameter: str, algorithm: str) -> str:
    """Of the algorithm, as the command line writes it."""
    if parameter in DEFAULTS:
        return DEFAULTS[parameter]
    default = inspect.signature(ALGORITHMS[algorithm][0]).parameters[parameter].default  # type: ignore[index]
    return word_for(f"{default:.6g}" if isinstance(default, float) else str(default))


def _metavars(parameter: str, limit: Limit) -> Iterator[str]:
    """What a limit lets one write, in words."""
    if limit is NONE:
        yield word_for("None")
    elif limit is FLAG:
        yield from ("yes", "no")
    elif limit is CALLABLE:
        return
    elif limit.words.startswith("a str among"):
        yield from limit.words.split("'")[1::2]
    elif limit.words.startswith("an int") or parameter in _RANGES:
        yield "N"
    else:
        yield "X"


def _value_of(parameter: str, text: Any, limits: tuple[Limit, ...]) -> Any:
    if parameter == "class_weight":
        return _class_weights(text)
    name = option_name(parameter)
    for value in _readings(parameter, text):
        if any(limit.allows(value) for limit in limits):
            return value
    words = [word for limit in limits for word in _metavars(parameter, limit)]
    told = "; ".join(limit.words for limit in limits if " range " in limit.words)
    ranges = _RANGES.get(parameter, told)
    hint = f"{'|'.join(words)}{f', {ranges}' if ranges else ''}"
    raise click.BadParameter(f"{text} is not {hint}.", param_hint=name)


def _readings(parameter: str, text: Any) -> Iterator[Any]:
    """What a text may stand for."""
    if isinstance(text, bool):
        yield text
        return
    if text in ("none", _OTHER_NONE.get(parameter)):
        yield None
    if text in ("yes", "no"):
        yield text == "yes"
    for kind in (int, float):
        try:
            yield kind(text)
        except ValueError:
            continue
    yield text


def _class_weights(pairs: tuple[str, ...]) -> dict[Any, float]:
    weights: dict[str, float] = {}
    for pair in pairs:
        label, _, text = pair.rpartition("=")
        weight = number_of(text)
        if not label or isnan(weight):
            raise click.BadParameter(
                f"{pair} is not LABEL=WEIGHT, such as spam=0.5.", param_hint="--class-weight"
            )
        weights[label] = weight
    return dict(zip(labels_given(list(weights)), weights.values(), strict=True))


def labels_given(texts: list[str]) -> list[Any]:
    """Labels as files that have no others would have them: numbers, if all of them are."""
    numbers = [number_of(text) for text in texts]
    return list(texts) if any(map(isnan, numbers)) else numbers
