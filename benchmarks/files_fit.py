"""From a text to a model within a process: one epoch."""

from collections.abc import Sequence
from typing import Any

import files_peers
from contestants import PEER_EPOCH, PERCEPTRON_SGD
from files_race import (
    PEAK_BYTES,
    Aim,
    Contestant,
    at_least,
    call_on,
    named,
    peak_below,
    race,
    table,
)
from files_texts import Texts

VW = "vw"
SGD = "load_svmlight_file, SGDClassifier"
PERCEPTRON = "fit_svmlight, Perceptron"
DEFAULT = "fit_svmlight, default (ALMA)"
AGAINST = {"x vw": VW, "x sklearn": SGD}

# The peers of scikit-learn have no intercept either.
PLAIN_PERCEPTRON = {"algo": "perceptron", "fit_intercept": False}
OURS = {
    PERCEPTRON: PLAIN_PERCEPTRON,
    f"{PERCEPTRON}, 1 thread": PLAIN_PERCEPTRON | {"n_jobs": 1},
    f"{PERCEPTRON}, float32": PLAIN_PERCEPTRON | {"dtype": "float32"},
    DEFAULT: {},
    "fit_svmlight, ALMA p = 6": {"algo": "alma", "p": 6, "fit_intercept": False},
}
PEERS = {
    SGD: ("SGDClassifier", PEER_EPOCH),
    "load_svmlight_file, SGD Perceptron, average": (
        "SGDClassifier", PEER_EPOCH | PERCEPTRON_SGD | {"average": True},
    ),
    "load_svmlight_file, Perceptron": ("Perceptron", PEER_EPOCH),
}  # fmt: skip
VW_OPTIONS = {
    VW: [],
    "vw --loss_function hinge": ["--loss_function", "hinge"],
    "vw --sgd": ["--sgd"],
}


def measure(texts: Texts, n_rounds: int) -> list[dict[str, Any]]:
    """Time one epoch of everybody in processes that have warmed up on a few rows."""
    return race("fit", _contestants(texts), n_rounds)


def _contestants(texts: Texts) -> list[Contestant]:
    n_bytes = texts.size("train")
    ours = [
        Contestant(name, call_on(texts, "fit_svmlight", **params), n_bytes, AGAINST, True)
        for name, params in OURS.items()
    ]
    sklearn = [
        Contestant(
            name, call_on(texts, "sklearn", estimator=estimator, **params, random_state=0), n_bytes,
            AGAINST, True,
        )
        for name, (estimator, params) in PEERS.items()
    ]  # fmt: skip
    vw = [
        Contestant(
            name, call_on(texts, "vw", kind="vw", options=options), texts.size("train", "vw"),
            AGAINST, True,
        )
        for name, options in VW_OPTIONS.items()
    ]  # fmt: skip
    return [*ours, *(vw if files_peers.has_vw() else []), *sklearn]


def show(entries: Sequence[dict[str, Any]]) -> None:
    """Print the table."""
    print("\nFrom text to a model, one epoch, in process (vw reads its own format)\n")
    print(table(entries, list(AGAINST)))


def aims(entries: list[dict[str, Any]]) -> list[Aim]:
    """What was wanted of the streaming fit."""
    speeds = [
        aim
        for name in (PERCEPTRON, DEFAULT)
        for aim in (
            at_least(f"{name}: times vw", 3, entries, name, "x vw"),
            at_least(f"{name}: times load_svmlight_file + SGD", 30, entries, name, "x sklearn"),
        )
    ]
    what = f"{PERCEPTRON}, scikit-learn imported"
    return [*speeds, peak_below(what, PEAK_BYTES, named(entries, PERCEPTRON))]
