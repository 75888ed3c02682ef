"""The race over files: every run is a process of its own, contestants take turns."""

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

import launch
from files_texts import Texts
from measure import in_turn, markdown_table, minimum_and_median

MEGABYTE = 1e6
PEAK_BYTES = 120e6  # of a streaming fit, the interpreter included
LAUNCHER = (sys.executable, "-I", "-S", launch.__file__)
CALLER = (sys.executable, str(Path(__file__).with_name("files_calls.py")))


@dataclass(frozen=True)
class Contestant:
    """One line of a race.

    Attributes
    ----------
    name : str
    command : tuple of str
        The process that is run.
    n_bytes : int
        Of text, gone through in one run.
    against : dict
        Headers of ratios, and the contestants that these are to.
    reports : bool
        Whether the last line the command prints tells its own seconds and memory; they are the
        whole process's otherwise.
    judge : callable, optional
        Returns the test error of what the command left behind.
    fresh : tuple of Path
        Files that must not be there when the command starts.
    """

    name: str
    command: tuple[str, ...]
    n_bytes: int
    against: dict[str, str] = field(default_factory=dict)
    reports: bool = False
    judge: Callable[[], float] | None = None
    fresh: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Aim:
    """What was wanted of a figure, and what it came to; None: it could not be measured."""

    what: str
    wanted: str
    measured: str
    reached: bool | None


def call_on(
    texts: Texts, call: str, name: str = "train", kind: str = "svm", **params: Any
) -> tuple:
    """Return the command that makes a call of `files_calls` on one of the texts."""
    wanted = {
        "call": call,
        "params": params,
        "few": str(texts.path("few", kind.partition(".")[0])),
        "text": str(texts.path(name, kind)),
        "test": str(texts.path("test", kind.partition(".")[0])),
    }
    return (*CALLER, json.dumps(wanted))


def run(contestant: Contestant) -> dict[str, Any]:
    """Run the contestant once, and return what that took."""
    for path in contestant.fresh:
        path.unlink(missing_ok=True)
    command = [*LAUNCHER, *contestant.command]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    *before, last = printed.splitlines()
    facts = json.loads(before[-1] if contestant.reports else last)
    if contestant.judge is not None:
        facts["test_error"] = contestant.judge()
    return facts


def race(title: str, contestants: Sequence[Contestant], n_rounds: int) -> list[dict[str, Any]]:
    """Run all contestants in turn, for so many rounds.

    Returns
    -------
    list of dict
        One entry for each: ``seconds`` and their ratios ``times`` (``min`` and ``median``), MB of
        text a second at its fastest, the least CPU time, the largest peak of its memory, the mean
        ``test_error`` if there is one, and whatever else its runs told.
    """
    runs = defaultdict(list)
    for number in range(n_rounds):
        for contestant in in_turn(contestants, number):
            print(f"{title}, round {number + 1}: {contestant.name}", file=sys.stderr, flush=True)
            runs[contestant.name].append(run(contestant))
    entries = [_entry(contestant, runs[contestant.name]) for contestant in contestants]
    seconds = {entry["contestant"]: entry["seconds"] for entry in entries}
    for contestant, entry in zip(contestants, entries, strict=True):
        entry["times"] = {
            header: _ratios(seconds[other], entry["seconds"])
            for header, other in contestant.against.items()
            if other in seconds
        }
    return entries


def _ratios(other: dict[str, float], own: dict[str, float]) -> dict[str, float]:
    return {statistic: other[statistic] / own[statistic] for statistic in own}


def _entry(contestant: Contestant, runs: list[dict[str, Any]]) -> dict[str, Any]:
    seconds = minimum_and_median([run["seconds"] for run in runs], 1.0)
    errors = [run["test_error"] for run in runs if "test_error" in run]
    return {
        "contestant": contestant.name,
        "seconds": seconds,
        "cpu_seconds": min(run["cpu_seconds"] for run in runs),
        "megabytes_per_second": contestant.n_bytes / MEGABYTE / seconds["min"],
        "peak_bytes": max(run["peak_bytes"] for run in runs),
        "added_bytes": max(run.get("added_bytes", 0) for run in runs),
        "test_error": mean(errors) if errors else None,
        "contents": runs[0].get("contents"),
    }


def table(entries: list[dict[str, Any]], headers: Sequence[str]) -> str:
    """Lay the entries out in Markdown, with their ratios under the headers."""
    columns = [
        "", "s min", "median", "CPU s", "MB/s", *headers, "peak MB", "adds MB", "test error %",
    ]  # fmt: skip
    rows = [_cells(entry, headers) for entry in entries]
    # A column in which nobody has a figure says nothing.
    told = [i for i in range(len(columns)) if any(row[i] != "-" for row in rows)]
    return markdown_table([columns[i] for i in told], [[row[i] for i in told] for row in rows])


def _cells(entry: dict[str, Any], headers: Sequence[str]) -> list[str]:
    times = entry["times"]
    error = entry["test_error"]
    return [
        entry["contestant"],
        f"{entry['seconds']['min']:.3f}",
        f"{entry['seconds']['median']:.3f}",
        f"{entry['cpu_seconds']:.2f}",
        f"{entry['megabytes_per_second']:,.0f}",
        *(f"{times[header]['min']:.2f}" if header in times else "-" for header in headers),
        f"{entry['peak_bytes'] / MEGABYTE:.0f}",
        f"{entry['added_bytes'] / MEGABYTE:.0f}" if entry["added_bytes"] else "-",
        "-" if error is None else f"{100 * error:.2f}",
    ]


def peak_below(what: str, wanted: float, entry: dict[str, Any]) -> Aim:
    """The aim that a contestant takes less than so many bytes, its interpreter included."""
    peak = entry["peak_bytes"]
    limit, measured = wanted / MEGABYTE, peak / MEGABYTE
    return Aim(f"{what}: peak MB", f"< {limit:.0f}", f"{measured:.1f}", peak < wanted)


def at_least(
    what: str, wanted: float, entries: list[dict[str, Any]], name: str, header: str
) -> Aim:
    """The aim that a contestant is so many times as fast as the one under a header."""
    entry = named(entries, name)
    if header not in entry["times"]:
        return Aim(what, f">= {wanted:g}", "-", None)
    measured = entry["times"][header]["min"]
    return Aim(what, f">= {wanted:g}", f"{measured:.2f}", measured >= wanted)


def named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """Return the entry of a contestant."""
    return next(entry for entry in entries if entry["contestant"] == name)
