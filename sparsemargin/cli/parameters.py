"""The options that are parameters of algorithms, made from the tables that the learners have."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import click

from sparsemargin.learners import ALGORITHMS, DEFAULT_ALGORITHM
from sparsemargin.learners._limits import FLAG, Limit

# Learning from a file leaves these to options of the command: --init, --quiet, --threads.
_ELSEWHERE = {"warm_start", "verbose", "n_jobs"}

# Taken only to be refused with the reason: a stream can't do it.
_REFUSED_BY_STREAMS = {"keep_history", "max_corrections", "soft_margin", "tol"}

_RENAMED = {"max_iter": "--epochs", "random_state": "--seed"}

_HELP = {
    "B": "B of its margin; none: sqrt(8) / alpha.",
    "C": "C of its steps.",
    "a": "Weight of the identity in the matrix.",
    "aggressive": "Also correct where the margin is too small.",
    "alpha": "1 - alpha is the share of the largest margin aimed at.",
    "beta": "Margin to demand, in units of the largest norm.",
    "c": "Share of the eigenvalues the matrix takes in.",
    "class_weight": "Weight of the steps for rows with this label; may be repeated.",
    "delta": "How the rate falls with beta.",
    "epsilon": "How fast the demanded margin falls.",
    "eta": "Length of the steps.",
    "eta0": "Rate at beta = 1.",
    "fit_intercept": "Learn an intercept.",
    "hypothesis": "What to predict with: the average of all vectors, or the last one.",
    "intercept_scaling": "Value of the intercept's own feature.",
    "keep_history": "",
    "margin": "Margin to demand.",
    "max_corrections": "",
    "max_iter": "Passes over the rows; until: until a pass makes no correction.",
    "max_updates": "Mistakes that the matrix may hold.",
    "normalize": "Whether rows are divided by their p-norm, or what else by.",
    "normalize_hypotheses": "Average vectors of length 1.",
    "p": "p of the norm, from 2; log: 2 ln n.",
    "radius": "The largest norm of a row.",
    "random_state": "Seed of the random order of further epochs.",
    "shuffle": "Take the rows of further epochs in random order.",
    "soft_margin": "",
    "solver": "Form of the matrix.",
    "sparse_updates": "Let only the row's own features change.",
    "tol": "",
}

_DEFAULTS = {"max_iter": "1", "random_state": "0"}


def _option_name(parameter: str) -> str:
    return _RENAMED.get(parameter, f"--{parameter.replace('_', '-')}")


def _collect() -> dict[str, list[str]]:
    """The algorithms that have each parameter, in the order in which they are listed."""
    owners: dict[str, list[str]] = {}
    for algorithm in ALGORITHMS:
        for parameter in parameters_of(algorithm):
            owners.setdefault(parameter, []).append(algorithm)
    return owners


def parameters_of(algorithm: str) -> list[str]:
    """Those that the algorithm has as options."""
    learner, fixed = ALGORITHMS[algorithm]
    return [name for name in learner.parameter_names() if name not in fixed | dict.fromkeys(_ELSEWHERE)]
