"""Command-line options that are derived from the declared parameters of the algorithms."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from math import isnan
from numbers import Integral, Real
from typing import Any

import click

from sparsemargin.cli.options import option, word_for
from sparsemargin.models import ALGORITHMS, DEFAULT
from sparsemargin.models.inputs.label_table import label_text, number_of, word_of
from sparsemargin.models.kernels import NAMED, Kernel
from sparsemargin.models.parameters import FLAG, NONE, Limit, Parameter, declarations

_NO_OPTIONS = {
    "warm_start", "verbose", "n_jobs", "max_corrections", "soft_margin", "tol", "standardize",
}  # fmt: skip

_ALIASES = {"max_iter": "--epochs", "random_state": "--seed"}

# Number of epochs for `--epochs until`. It is limited, because data that are not linearly separable
# have no epoch without a correction.
_WORDS = {("max_iter", "until"): 1000}

# Defaults of files of texts, which depend on the texts.
_OF_TEXTS = {"max_iter": "texts: at least 2", "prior": "texts: naive_bayes"}

_BALANCED = "balanced"

# Ranges that are narrower on the command line: streams cannot stop within an epoch.
_RANGES = {"max_iter": "a whole number from 1"}

#: Defaults of the command that differ from those of the algorithms.
DEFAULTS = {"max_iter": "1", "random_state": "0"}

# Notes for --help on parameters that differ when training on streams.
_IN_STREAMS = {
    "class_weight": "may be repeated; balanced: files are read twice, to count the rows of labels",
    "gamma": "scale is not available, because it needs all rows",
    "hypothesis": "random and vote are not available, because they log all corrections",
    "kernel": "needs --max-support",
    "max_iter": "until: until an epoch makes no correction, 1000 at most",
    "max_support": "required with --kernel, because it limits the memory",
}


# This kernel needs kernel values of all pairs of rows, which files of rows do not contain.
_NOT_OF_FILES = "precomputed"

# The other kernels, and the parameters of all of them.
_KERNELS = {name: kind for name, kind in NAMED.items() if name != _NOT_OF_FILES}
_OF_KERNELS = {
    name: each for kind in _KERNELS.values() for name, each in declarations(kind).items()
}


def option_name(parameter: str) -> str:
    """Return the shorter name of the option for a parameter."""
    return _ALIASES.get(parameter, _long_name(parameter))


def _long_name(parameter: str) -> str:
    return f"--{parameter.replace('_', '-')}"


def parameters_of(algorithm: str) -> dict[str, Parameter]:
    """Return the parameters of an algorithm that are options, by name."""
    learner, fixed = ALGORITHMS[algorithm]  # type: ignore[index]
    left_out, known = _NO_OPTIONS | set(fixed), declarations(learner)
    if "kernel" in known:
        known = known | _OF_KERNELS
    return {name: each for name, each in known.items() if name not in left_out}


#: Names of all parameters that are options.
ALL_PARAMETERS = tuple(dict.fromkeys(name for each in ALGORITHMS for name in parameters_of(each)))


def algorithm_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of all algorithms to a command. Options that are not given are None."""
    options = {algorithm: parameters_of(algorithm) for algorithm in ALGORITHMS}
    for parameter in reversed(_in_order(ALL_PARAMETERS)):
        owners = {name: each[parameter] for name, each in options.items() if parameter in each}
        command = _option(parameter, owners)(command)
    return command


def chosen_parameters(algorithm: str | None, given: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that are set by options.

    `given` maps names of parameters to texts from the command line, or None for options that are
    not given. A UsageError is raised if the algorithm has no such option or a value is invalid.
    """
    passed = [name for name, text in given.items() if text is not None and text != ()]
    known = parameters_of(algorithm or DEFAULT)
    chosen = {}
    for parameter in passed:
        in_kernel = parameter in known and given.get("kernel") is not None
        if parameter in _OF_KERNELS and not in_kernel:
            raise _kernel_needed(parameter)
        if parameter not in known:
            owners = ", ".join(each for each in ALGORITHMS if parameter in parameters_of(each))
            if algorithm is None:
                raise click.UsageError(f"{option_name(parameter)} needs --algo, one of: {owners}.")
            has = ", ".join(map(option_name, _in_order(known)))
            raise click.UsageError(
                f"{option_name(parameter)} is not an option of --algo {algorithm}, which has {has}."
                f" It is one of --algo {owners}."
            )
        chosen[parameter] = _value_of(parameter, given[parameter], known[parameter].limits)
    of_kernel = {name: chosen.pop(name) for name in _OF_KERNELS if name in chosen}
    name = chosen.get("kernel", "linear")
    if of_kernel or name != "linear":
        chosen["kernel"] = _kernel(name, of_kernel)
    return chosen


def _kernel(name: str, parameters: dict[str, Any]) -> Kernel:
    if name == _NOT_OF_FILES:
        raise click.UsageError(
            f"--kernel {name} needs kernel values of all pairs of rows, which files do not "
            "contain. Pass --kernel poly, rbf or polyrbf."
        )
    known = declarations(_KERNELS[name]) if name in _KERNELS else {}
    for parameter in sorted(parameters.keys() - known.keys()):
        raise _kernel_needed(parameter)
    return _KERNELS[name](**parameters)


def _kernel_needed(parameter: str) -> click.UsageError:
    """Return the error for an option of kernels that the model does not have."""
    kernels = _kernels_with(parameter)
    return click.UsageError(
        f"{option_name(parameter)} is an option of --kernel {', '.join(kernels)}. Pass one of them "
        f"with --algo, such as --algo margin --kernel {kernels[0]}."
    )


def _kernels_with(parameter: str) -> list[str]:
    """Return the names of the kernels that have the parameter."""
    return [name for name, kind in _KERNELS.items() if parameter in declarations(kind)]


def _in_order(parameters: Any) -> list[str]:
    """Return the parameters with the most common ones first, the others sorted by name."""
    first = ["max_iter", "p", "hypothesis", "alpha", "fit_intercept", "intercept_scaling"]
    rest = sorted(set(parameters) - set(first), key=str.lower)
    return [name for name in first if name in parameters] + rest


def _option(parameter: str, owners: Mapping[Any, Parameter]) -> Callable[..., Any]:
    """Return the option for a parameter. Its text is checked later by the algorithm's limits."""
    name = _long_name(parameter)
    names = [name, _ALIASES[parameter]] if parameter in _ALIASES else [name]
    limits = {limit.words: limit for each in owners.values() for limit in each.limits}
    settings: dict[str, Any] = {"metavar": _metavar(parameter, limits.values())}
    if parameter == "class_weight":
        settings = {"multiple": True, "metavar": f"LABEL=WEIGHT|{_BALANCED}"}
    elif list(limits.values()) == [FLAG]:
        names, settings = [f"{name}/--no-{name[2:]}"], {"is_flag": True, "default": None}
    return option("Learning", *names, parameter, help=_help(parameter, owners), **settings)


def _help(parameter: str, owners: Mapping[Any, Parameter]) -> str:
    """Return the help: description, algorithms with the parameter, and a common default."""
    described: dict[str, list[str]] = {}
    for algorithm, each in owners.items():
        described.setdefault(_first_sentence(each.doc), []).append(algorithm)
    plain = " ".join(
        sentence if len(described) == 1 else f"{', '.join(names)}: {sentence}"
        for sentence, names in described.items()
    )
    owned_by = ", ".join(owners) if len(owners) < len(ALGORITHMS) else ""
    if parameter in _OF_KERNELS:
        owned_by = f"kernels: {', '.join(_kernels_with(parameter))}"
    defaults = {_default(parameter, each.default) for each in owners.values()}
    notes = [
        *([_IN_STREAMS[parameter]] if parameter in _IN_STREAMS else []),
        *([owned_by] if owned_by else []),
        *(f"default: {default}" for default in defaults if len(defaults) == 1),
        *([_OF_TEXTS[parameter]] if parameter in _OF_TEXTS else []),
    ]
    return "  ".join([plain, *(f"[{note}]" for note in notes)])


def _first_sentence(doc: str) -> str:
    """Return the first sentence of a description in the notation of the command line."""
    sentence = re.match(r".*?\.(?=\s|$)", doc)
    assert sentence is not None
    options = "|".join(ALL_PARAMETERS)
    named = re.sub(rf"(?<!`)`({options})`(?!`)", lambda name: option_name(name[1]), sentence[0])
    plain = named.replace("`", "")
    return re.sub(r"\b(None|True|False)\b", lambda word: word_for(word[0]), plain)


def _default(parameter: str, default: Any) -> str:
    """Return the default in the notation of the command line."""
    if parameter in DEFAULTS:
        return DEFAULTS[parameter]
    return word_for(f"{default:.6g}" if isinstance(default, float) else str(default))


def _metavar(parameter: str, limits: Any) -> str:
    """Return the placeholder in --help for the values that the limits allow."""
    words: list[str] = []
    for limit in limits:
        if limit is NONE:
            words.append("none")
        elif limit is FLAG:
            words += "yes", "no"
        elif limit.choices:
            words += [each for each in limit.choices if each != _NOT_OF_FILES]
        elif limit.kind in (Integral, Real):
            words.append("N" if limit.kind is Integral or parameter in _RANGES else "X")
    words += [word for named, word in _WORDS if named == parameter]
    return "|".join(dict.fromkeys(words))


def _value_of(parameter: str, text: Any, limits: tuple[Limit, ...]) -> Any:
    if parameter == "class_weight":
        return _class_weights(text)
    for value in _readings(parameter, text):
        if any(limit.allows(value) for limit in limits):
            return value
    words = "; ".join(limit.words + limit.remark for limit in limits if " range " in limit.words)
    ranges = _RANGES.get(parameter, words)
    hint = _metavar(parameter, limits)
    if ranges:
        hint = ranges if hint in ("N", "X") else f"{hint}, {ranges}"
    in_streams = _IN_STREAMS.get(parameter, "")
    if text in in_streams.split():
        hint += f": {in_streams}"
    raise click.BadParameter(f"{text} is not {hint}.", param_hint=option_name(parameter))


def _readings(parameter: str, text: Any) -> Iterator[Any]:
    """Yield the values that a text may stand for."""
    if isinstance(text, bool):
        yield text
        return
    if text == "none":
        yield None
    if (parameter, text) in _WORDS:
        yield _WORDS[parameter, text]
    if text in ("yes", "no"):
        yield text == "yes"
    for kind in (int, float):
        try:
            yield kind(text)
        except ValueError:
            continue
    yield text


def _class_weights(pairs: tuple[str, ...]) -> dict[Any, float] | str:
    if pairs == (_BALANCED,):
        return _BALANCED
    given = list[tuple[str, float]]()
    for pair in pairs:
        label, _, text = pair.rpartition("=")
        weight = number_of(text)
        if not label or isnan(weight):
            raise click.BadParameter(
                f"{pair} is not LABEL=WEIGHT, such as spam=0.5. For weights by the "
                f"number of rows of each label, pass {_BALANCED} alone.",
                param_hint="--class-weight",
            )
        given.append((label, weight))
    labels = labels_given([label for label, _ in given])
    weights = dict(zip(labels, (weight for _, weight in given), strict=True))
    if len(weights) < len(given):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise click.BadParameter(
            f"label {label_text(twice)} has several weights. Pass one of them.",
            param_hint="--class-weight",
        )
    return weights


def labels_given(texts: list[str], *, numeric: bool = False) -> list[Any]:
    """Return the labels as numbers if all of them are numbers, as integers if all are whole;
    otherwise as texts. Unless labels are `numeric`, texts such as 01 and 1e3 are no numbers."""
    numbers = [number_of(text) for text in texts]
    words = [label_text(number) for number in numbers]
    if any(map(isnan, numbers)) or not (numeric or words == list(map(word_of, texts))):
        return list(texts)
    return [int(each) for each in numbers] if all(each % 1 == 0 for each in numbers) else numbers
