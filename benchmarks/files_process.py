"""Whole processes, from the shell's point of view: time and memory, start-up included."""

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import files_peers
from files_cache import cache_of
from files_race import (
    PEAK_BYTES,
    Aim,
    Contestant,
    at_least,
    named,
    peak_below,
    race,
    run,
    table,
)
from files_texts import FEW_ROWS, Texts

from sparsemargin.io.model_files import load_model
from sparsemargin.io.svmlight import load_svmlight

OURS, DEFAULT = "sparsemargin train", "sparsemargin train, default (ALMA)"
VW = "vw"
TWICE, CACHED = ", twice the text", ", cache there"
FEW = f", {FEW_ROWS} rows"
SEVERAL = ", 5 epochs, cache made"
HEADER = "x vw"
START_SECONDS = 0.35

TRAIN = (sys.executable, "-m", "sparsemargin", "train", "--quiet")
PERCEPTRON = ("--algo", "perceptron", "--no-fit-intercept")


def measure(texts: Texts, n_rounds: int) -> list[dict[str, Any]]:
    """Time `sparsemargin train`, vw and liblinear as they are called from a shell."""
    with tempfile.TemporaryDirectory() as folder:
        contestants = _ours(texts, Path(folder, "own.model"))
        if files_peers.has_vw():
            contestants += _vw(texts, Path(folder, "vw.model"))
        if files_peers.has_liblinear():
            contestants += _liblinear(texts, Path(folder, "liblinear.model"))
        for contestant in contestants:
            if CACHED in contestant.name or FEW in contestant.name:
                run(contestant)  # makes the cache; Python keeps its byte code
        return race("process", contestants, n_rounds)


def _ours(texts: Texts, model: Path) -> list[Contestant]:
    kept, made = cache_of(texts, "float64"), texts.path("train", "made.smcache")

    def train(suffix: str, *options: str, text: str = "train", epochs: int = 1, **rest: Any):
        command = (*TRAIN, str(texts.path(text)), "-o", str(model), *options)
        return Contestant(
            OURS + suffix, command, epochs * texts.size(text), {HEADER: VW + suffix},
            judge=_judge(partial(_own_error, model, texts), text), **rest,
        )  # fmt: skip

    default = (*TRAIN, str(texts.path("train")), "-o", str(model))
    judge = partial(_own_error, model, texts)
    return [
        train("", *PERCEPTRON),
        Contestant(DEFAULT, default, texts.size("train"), {HEADER: VW}, judge=judge),
        train(TWICE, *PERCEPTRON, text="train-twice"),
        train(CACHED, *PERCEPTRON, "--cache", str(kept)),
        train(SEVERAL, *PERCEPTRON, "--epochs", "5", "--cache", str(made), epochs=5, fresh=(made,)),
        train(FEW, *PERCEPTRON, text="few"),
    ]


def _vw(texts: Texts, model: Path) -> list[Contestant]:
    kept, made = cache_of(texts, "vw"), texts.path("train", "made.cache")

    def train(suffix: str, *options: str, text: str = "train", epochs: int = 1, **rest: Any):
        data = str(texts.path(text, "vw"))
        command = (*files_peers.VW, "-d", data, "-f", str(model), *options)
        return Contestant(
            VW + suffix, command, epochs * texts.size(text, "vw"),
            judge=_judge(partial(files_peers.vw_error, model, texts), text), **rest,
        )  # fmt: skip

    several = ("--passes", "5", "--holdout_off", "--cache_file", str(made))
    return [
        train(""),
        train(TWICE, text="train-twice"),
        train(CACHED, "--cache_file", str(kept)),
        train(SEVERAL, *several, epochs=5, fresh=(made,)),
        train(FEW, text="few"),
    ]


def _liblinear(texts: Texts, model: Path) -> list[Contestant]:
    judge = partial(files_peers.liblinear_error, model, texts)
    text, n_bytes = str(texts.path("train")), texts.size("train")
    return [
        Contestant(
            " ".join(command),
            (*command, "-q", text, str(model)),
            n_bytes,
            {HEADER: VW},
            judge=judge,
        )
        for command in ((files_peers.LIBLINEAR, "-s", solver) for solver in ("3", "1"))
    ]


def _judge(judge: Callable[[], float], text: str) -> Callable[[], float] | None:
    """What a few rows teach is not worth a test."""
    return None if text == "few" else judge


def _own_error(model_file: Path, texts: Texts) -> float:
    model = load_model(model_file)
    X, y = load_svmlight(texts.path("test"))
    X.resize(X.shape[0], model.n_features_in_)
    return float((model.predict(X) != y).mean())


def show(entries: list[dict[str, Any]]) -> None:
    """Print the table."""
    print("\nWhole processes, as from a shell (vw reads its own format)\n")
    print(table(entries, [HEADER]))


def aims(entries: list[dict[str, Any]]) -> list[Aim]:
    """What was wanted of `sparsemargin train`."""
    start = named(entries, OURS + FEW)["seconds"]["min"]
    once, twice = (named(entries, OURS + text) for text in ("", TWICE))
    growth = twice["peak_bytes"] / once["peak_bytes"] - 1
    return [
        at_least(f"{OURS}: times vw", 1, entries, OURS, HEADER),
        Aim(f"{OURS}{FEW}: s", f"< {START_SECONDS}", f"{start:.3f}", start < START_SECONDS),
        peak_below(OURS, PEAK_BYTES, once),
        Aim(f"{OURS}{TWICE}: peak grows by %", "< 5", f"{100 * growth:.1f}", growth < 0.05),
    ]
