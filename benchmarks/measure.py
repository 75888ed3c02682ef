"""Timing, machine facts, aligned tables and JSON: what every benchmark here shares."""

import gc
import json
import os
import platform
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter
from typing import Any, NoReturn

from sparsemargin.io.files import replacing

# Status of a benchmark that this machine can't run.
CANNOT_RUN = 2

_PACKAGES = ("numpy", "scipy", "scikit-learn", "sparsemargin")


def options_with_rounds(parser: ArgumentParser, usual: int, quick: int) -> Namespace:
    """Parse the options of a benchmark that has ``--rounds`` and ``--quick``; without rounds they
    are the usual ones, or those of a quick run."""
    options = parser.parse_args()
    if options.rounds is None:
        options.rounds = quick if options.quick else usual
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    return options


@contextmanager
def garbage_collection_off():
    """Keep the collector out of the timed stretch, and restore it afterwards."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that `call` took, and what it returned."""
    start = perf_counter()
    result = call()
    return perf_counter() - start, result


def in_turn(contestants: Sequence, round_number: int) -> list:
    """Return the contestants in the order of one round.

    Taking turns, they all meet a slow spell of the machine; and since the order differs from
    round to round, nobody always finds the caches as the same neighbour left them.
    """
    return Random(round_number).sample(contestants, len(contestants))


def minimum_and_median(seconds: Sequence[float], unit: float) -> dict[str, float]:
    """Summarise repeated timings in multiples of `unit` seconds."""
    return {"min": min(seconds) / unit, "median": median(seconds) / unit}


def machine() -> dict[str, Any]:
    """Return the facts without which a timing means nothing."""
    return {
        "cpu": _cpu_model(),
        "cpus": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
    } | {package: version(package) for package in _PACKAGES}


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    first = cpuinfo.read_text().partition("\n\n")[0] if cpuinfo.exists() else ""
    lines = (line.partition(":") for line in first.splitlines())
    facts = {name.strip(): fact.strip() for name, _, fact in lines}
    if not {"model name", "cpu family", "model"} <= facts.keys():
        return platform.processor() or platform.machine()
    # Virtual machines often tell a name that many processors share.
    return f"{facts['model name']} (family {facts['cpu family']}, model {facts['model']})"


def describe_machine() -> str:
    """Return `machine()` as one line for the head of a report."""
    return ", ".join(f"{name} {value}" for name, value in machine().items())


def text_table(columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[Any]]) -> str:
    """Lay rows out under their headers, the first column to the left, the others to the right.

    Parameters
    ----------
    columns : sequence of (header, format) pairs
        The format is a format specification such as ``".2f"``.
    rows : iterable of sequences
        One value per column.

    Returns
    -------
    str
        The table, without a newline at its end.
    """
    headers = [header for header, _ in columns]
    formats = [spec for _, spec in columns]
    cells = [list(map(format, row, formats)) for row in rows]
    widths = [max(map(len, column)) for column in zip(headers, *cells, strict=True)]
    lines = [headers, ["-" * width for width in widths], *cells]
    return "\n".join(_aligned(line, widths) for line in lines)


def _aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])


def markdown_table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay rows of cells out under their headers in Markdown, without a newline at the end."""
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cannot_run(why: object) -> NoReturn:
    """End the benchmark: what it needs is not at hand. The reason is one line."""
    print(" ".join(str(why).split()), file=sys.stderr)
    sys.exit(CANNOT_RUN)


def replace_text(path: Path, text: str) -> None:
    """Write a text whole, or leave what was there."""
    with replacing(path) as out:
        out.write(text.encode())


def write_json(path: Path, report: dict[str, Any]) -> None:
    """Write a report beside the facts of the machine it was measured on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_text(path, json.dumps({"machine": machine(), **report}, indent=1) + "\n")
    print(f"\nwritten: {path}")
