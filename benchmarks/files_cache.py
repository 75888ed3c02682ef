"""Epochs from a cache: the first one of a process, and those that follow."""

from pathlib import Path
from typing import Any

import files_peers
from files_fit import PLAIN_PERCEPTRON
from files_race import (
    MEGABYTE,
    Aim,
    Contestant,
    call_on,
    named,
    race,
    run,
)
from files_texts import Texts
from measure import markdown_table

# What an epoch takes that is not the first: a so-manieth of what these add to a run.
FURTHER = 5

VW = "vw"
IN_ORDER, SHUFFLED = "Perceptron, rows in order", "Perceptron, shuffled"
OURS = {
    IN_ORDER: PLAIN_PERCEPTRON | {"shuffle": False},
    SHUFFLED: PLAIN_PERCEPTRON,
    "Perceptron, shuffled, float32": PLAIN_PERCEPTRON | {"dtype": "float32"},
    "default (ALMA), shuffled": {},
}
CACHES = {
    "float64": ("svm", ".float64.smcache"),
    "float32": ("svm", ".float32.smcache"),
    "vw": ("vw", ".cache"),
}
HEADERS = [
    "", "first epoch s", "median", "MB/s", "x vw", "further epoch s", "median", "MB/s", "x vw",
    "peak MB", f"test error %, {1 + FURTHER} epochs",
]  # fmt: skip


def cache_of(texts: Texts, kind: str) -> Path:
    """Where `files_calls` has the calls keep the rows of the training text."""
    text_kind, suffix = CACHES[kind]
    path = texts.path("train", text_kind)
    return path.with_name(path.name + suffix)


def measure(texts: Texts, n_rounds: int) -> list[dict[str, Any]]:
    """Time one epoch and several, all from caches that are there.

    Returns
    -------
    list of dict
        One entry for each contestant: seconds of the ``first`` epoch, the opening of the cache and
        its verification included, and of a ``further`` one.
    """
    names = ([VW] if files_peers.has_vw() else []) + list(OURS)
    for kind in CACHES:
        cache_of(texts, kind).unlink(missing_ok=True)
    short = {name: _contestant(texts, name, 1) for name in names}
    for contestant in short.values():
        run(contestant)  # makes the cache
    long = {name: _contestant(texts, name, 1 + FURTHER) for name in names}
    entries = race("cache", [*short.values(), *long.values()], n_rounds)
    results = [
        _entry(name, named(entries, short[name].name), named(entries, long[name].name))
        for name in names
    ]
    if VW in names:
        for result in results:
            result["times"] = _times(results[0], result)
    return results


def _contestant(texts: Texts, name: str, n_epochs: int) -> Contestant:
    n_bytes = texts.size("train", "vw" if name == VW else "svm")
    if name == VW:
        options = ["--passes", str(n_epochs), "--holdout_off"] if n_epochs > 1 else []
        command = call_on(texts, "vw", kind="vw", cached=True, options=options)
    else:
        params = {"cached": True, "max_iter": n_epochs, "random_state": 0} | OURS[name]
        command = call_on(texts, "fit_svmlight", **params)
    return Contestant(f"{name}, epochs: {n_epochs}", command, n_bytes * n_epochs, reports=True)


def _entry(name: str, short: dict[str, Any], long: dict[str, Any]) -> dict[str, Any]:
    first = short["seconds"]
    further = {
        statistic: (long["seconds"][statistic] - first[statistic]) / FURTHER for statistic in first
    }
    n_bytes = short["megabytes_per_second"] * short["seconds"]["min"]
    return {
        "contestant": name,
        "first": first,
        "further": further,
        "megabytes_per_second": {
            "first": n_bytes / first["min"],
            "further": n_bytes / further["min"],
        },
        "peak_bytes": long["peak_bytes"],
        "test_error": long["test_error"],
        "times": {},
    }


def _times(vw: dict[str, Any], own: dict[str, Any]) -> dict[str, float]:
    return {epoch: vw[epoch]["min"] / own[epoch]["min"] for epoch in ("first", "further")}


def show(entries: list[dict[str, Any]]) -> None:
    """Print the table."""
    print(
        "\nOne epoch from the cache, in process: the first, verification included, and a further "
        f"one ({1 + FURTHER} epochs less the first, shared out); MB of text\n"
    )
    print(markdown_table(HEADERS, [_cells(entry) for entry in entries]))


def _cells(entry: dict[str, Any]) -> list[str]:
    cells = [entry["contestant"]]
    for epoch in "first", "further":
        times = entry["times"].get(epoch)
        cells += [
            f"{entry[epoch]['min']:.3f}",
            f"{entry[epoch]['median']:.3f}",
            f"{entry['megabytes_per_second'][epoch]:,.0f}",
            "-" if times is None else f"{times:.2f}",
        ]
    return [*cells, f"{entry['peak_bytes'] / MEGABYTE:.0f}", f"{100 * entry['test_error']:.2f}"]


def aims(entries: list[dict[str, Any]]) -> list[Aim]:
    """What was wanted of the cache."""
    return [
        _aim(named(entries, name), epoch)
        for name, epoch in ((IN_ORDER, "first"), (IN_ORDER, "further"), (SHUFFLED, "further"))
    ]


def _aim(entry: dict[str, Any], epoch: str) -> Aim:
    what = f"{entry['contestant']}, {epoch} epoch from the cache: times vw"
    times = entry["times"].get(epoch)
    if times is None:
        return Aim(what, ">= 2", "-", None)
    return Aim(what, ">= 2", f"{times:.2f}", times >= 2)
