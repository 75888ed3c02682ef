"""Timing of the benchmarks: contestants take turns, and memory is measured in new processes."""

import gc
import inspect
import json
import os
import pickle
import platform
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter, process_time
from typing import Any, NoReturn

from threadpoolctl import threadpool_limits

from sparsemargin.files.atomic import replacing

FOLDER = Path(__file__).parent
#: Exit status of a benchmark that this machine cannot run.
CANNOT_RUN = 2
STATUS = Path("/proc/self/status")

_PACKAGES = ("numpy", "scipy", "scikit-learn", "sparsemargin")


def timed(call: Callable[[], Any], clock: Callable[[], float] = perf_counter) -> tuple[float, Any]:
    """Return the seconds that `call` took by the clock, and its result."""
    start = clock()
    result = call()
    return clock() - start, result


def turns(contestants: Sequence, n_rounds: int) -> Iterator[tuple[int, Any]]:
    """Yield every contestant once per round, with the number of the round. The order changes, so
    that slow periods of the machine and the state of the caches affect all contestants alike."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        for number in range(n_rounds):
            for contestant in Random(number).sample(contestants, len(contestants)):
                yield number, contestant
    finally:
        if was_enabled:
            gc.enable()


def race(
    prepare: Mapping[Any, Callable[[int], Callable[[], Any]]],
    n_rounds: int,
    tell: Callable[[Any, Any], Any] = lambda name, result: None,
) -> tuple[dict[Any, list[float]], dict[Any, list]]:
    """Time the call that `prepare[contestant](round)` returns, once in each round. Returns the
    seconds and the untimed results of `tell(contestant, result)`."""
    seconds, facts = {name: [] for name in prepare}, {name: [] for name in prepare}
    for number, name in turns(list(prepare), n_rounds):
        elapsed, result = timed(prepare[name](number))
        seconds[name].append(elapsed)
        facts[name].append(tell(name, result))
    return seconds, facts


def minimum_and_median(seconds: Sequence[float], unit: float = 1.0) -> dict[str, float]:
    """Summarize repeated timings in multiples of `unit` seconds."""
    return {"min": min(seconds) / unit, "median": median(seconds) / unit}


def ratios(own: dict[str, float], other: dict[str, float] | None) -> dict[str, float] | None:
    """Divide each figure of `own` by that of `other`; None if `other` is None."""
    return other and {name: own[name] / other[name] for name in own}


def apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of one of these files in a new process; return its result."""
    module = Path(inspect.getfile(function)).stem
    with tempfile.TemporaryDirectory() as folder:
        given, made = f"{folder}/given", f"{folder}/made"
        Path(given).write_bytes(pickle.dumps(arguments))
        code = (
            f"import pickle, sys; sys.path.insert(0, {str(FOLDER)!r}); import {module}; "
            f"made = {module}.{function.__name__}(*pickle.load(open({given!r}, 'rb'))); "
            f"pickle.dump(made, open({made!r}, 'wb'))"
        )
        subprocess.run([sys.executable, "-c", code], check=True)
        return pickle.loads(Path(made).read_bytes())


def resident_peak() -> int:
    """Peak memory of this process in bytes; available on Linux only."""
    fields = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
    return int(fields["VmHWM"].split()[0]) * 1024


def added_by(warm_up: Callable[[], Any], call: Callable[[], Any]) -> dict[str, float]:
    """Return the ``seconds`` of a call, its CPU seconds, and the bytes by which it raises the peak.

    The warm-up pays for lazy imports and thread pools, which do not belong to the call. It should
    use little memory; otherwise, the memory that it frees would be reused and hide the need of the
    call.
    """
    warm_up()
    # Resets the peak to the currently resident memory.
    Path("/proc/self/clear_refs").write_text("5")
    before = resident_peak()
    start = process_time()
    seconds, _ = timed(call)
    used, peak = process_time() - start, resident_peak()
    return {
        "seconds": seconds, "cpu_seconds": used, "added_bytes": peak - before, "peak_bytes": peak,
    }  # fmt: skip


def fitted(model: Any, X: Any, y: Any, n_rows: int = 50, n_features: int = 100) -> dict[str, float]:
    """Run in a new process: fit after a warm-up on a few rows; returns the result of `added_by`."""
    corner = X[:n_rows, :n_features], y[:n_rows]
    return added_by(lambda: model.fit(*corner), lambda: model.fit(X, y))


def bytes_of(X: Any) -> int:
    """Bytes used by rows, CSR or dense."""
    return sum(
        getattr(X, part).nbytes for part in ("data", "indices", "indptr") if hasattr(X, part)
    )


def machine() -> dict[str, Any]:
    """Return the facts of the machine that are needed to interpret a timing."""
    return {
        "cpu": _cpu_model(), "cpus": os.cpu_count(), "system": platform.system(),
        "python": platform.python_version(),
    } | {package: version(package) for package in _PACKAGES}  # fmt: skip


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().partition("\n\n")[0].splitlines() if cpuinfo.exists() else []
    facts = {
        name.strip(): fact.strip() for name, _, fact in (line.partition(":") for line in lines)
    }
    if not {"model name", "cpu family", "model"} <= facts.keys():
        return platform.processor() or platform.machine()
    # Virtual machines often report a name that many processors share.
    return f"{facts['model name']} (family {facts['cpu family']}, model {facts['model']})"


def describe_machine() -> str:
    """Return `machine()` as one line for the head of a report."""
    return ", ".join(f"{name} {value}" for name, value in machine().items())


def cannot_run(why: object) -> NoReturn:
    """End the benchmark because a requirement is missing, with a reason of one line."""
    print(" ".join(str(why).split()), file=sys.stderr)
    sys.exit(CANNOT_RUN)


def replace_text(path: Path, text: str) -> None:
    """Write a text atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as out:
        out.write(text.encode())


def write_json(path: Path, report: dict[str, Any]) -> None:
    """Write a report together with the facts of the machine."""
    replace_text(path, json.dumps({"machine": machine(), **report}, indent=1) + "\n")
    print(f"\nwritten: {path}")


def show(name: str, report: Any) -> None:
    """Print a report: its lists of entries as tables with their names as headings."""
    if isinstance(report, dict):
        alone = {key: each for key, each in report.items() if not isinstance(each, dict | list)}
        if alone:
            print(f"\n{name}: {', '.join(f'{key}: {_shown(key, alone[key])}' for key in alone)}")
        for key, each in report.items():
            if key not in alone:
                show(name if key == name else f"{name}, {key}", each)
    elif report and isinstance(report[0], list):
        for each in report:
            show(name, each)
    elif report and isinstance(report[0], dict):
        print(f"\n{name}\n\n{text_table(report)}", flush=True)


def text_table(entries: Sequence[dict[str, Any]]) -> str:
    """Format entries as a table, with strings to the left and numbers to the right. Nested dicts
    have a column for each key; lists are omitted. Values that are equal in all entries are listed
    above the table."""
    rows = [dict(_flat(entry)) for entry in entries]
    columns, common = [], []
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        cells = [_shown(name, value) for value in values]
        if len(rows) > 1 and len(set(cells)) == 1:
            common += [f"{name}: {cells[0]}"] if values[0] is not None else []
            continue
        width = max(map(len, (name, *cells)))
        lay = str.ljust if any(isinstance(value, str) for value in values) else str.rjust
        columns.append([lay(cell, width) for cell in (name, "-" * width, *cells)])
    lines = ["  ".join(line).rstrip() for line in zip(*columns, strict=True)]
    return "\n".join([", ".join(common), "", *lines] if common else lines)


def _flat(entry: dict[str, Any], lead: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in entry.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{lead}{key} ")
        elif not isinstance(value, list):
            yield f"{lead}{key}", value


def _shown(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool | str):
        return str(value)
    if name.endswith("bytes"):
        return f"{value / 1e6:,.1f} MB"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


class _Parser(ArgumentParser):
    """A command line whose quick runs do not overwrite full results, except with `--out`."""

    full_out: Path

    def parse_args(self, *given: Any) -> Any:
        options = super().parse_args(*given)
        if options.out is None:
            is_quick = getattr(options, "quick", False)
            options.out = _quick(self.full_out) if is_quick else self.full_out
        return options


def _quick(out: Path) -> Path:
    folder, *rest = out.parts
    return Path(folder, "quick", *rest)


def parser_of(document: str | None, out: str) -> ArgumentParser:
    """A command line with `--out`, described by a docstring; `out` is a path in a folder."""
    parser = _Parser(description=document, formatter_class=RawDescriptionHelpFormatter)
    parser.full_out = Path(out)
    words = f"default: {out}; of a quick run {_quick(parser.full_out)}"
    parser.add_argument("--out", type=Path, help=words)
    return parser


def run(
    parser: ArgumentParser,
    measurements: Mapping[str, Callable[[Namespace], dict[str, Any]]],
    rounds: tuple[int, int],
) -> None:
    """Run a benchmark of several measurements, on one thread unless they request more.

    Each gets the options, and returns its part of the report. `--only`, `--quick` and `--rounds`
    are added; `rounds` are the defaults of a full and a quick run.
    """
    parser.add_argument("--only", nargs="+", choices=measurements, default=list(measurements))
    parser.add_argument("--quick", action="store_true", help="small sizes, few rounds")
    parser.add_argument(
        "--rounds", type=int, help=f"of every contestant ({rounds[0]}, quick: {rounds[1]})"
    )
    options = parser.parse_args()
    if options.rounds is None:
        options.rounds = rounds[options.quick]
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    print(f"{parser.description}\n{describe_machine()}")
    print("Quote the ratios, measured side by side; the times belong to the machine.", flush=True)
    report = {"rounds": options.rounds}
    with threadpool_limits(1):
        try:
            for name in options.only:
                found = measurements[name](options)
                show(name, found)
                report |= found
        except FileNotFoundError as error:
            cannot_run(error)
    write_json(options.out, report)
