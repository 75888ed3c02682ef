"""Runs random inputs in a process of its own, so that a crash or a hang is a finding like another.

A fuzzer is a class with a method ``check(given)``, which makes an input of a `Given` and raises
whatever is a finding. An input is made of a basis and of changes to it, each of which draws from
random numbers of its own: any of them can be left out without a change to the others, and so the
input of a finding is cut down to those it takes.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import mmap
import os
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import numpy as np

# Seconds that an input may take: the longest sound one takes one or two, but a machine may be busy.
PATIENCE = 180
# Stands where the number of the input will, until the first is taken.
NOWHERE = struct.pack("<q", -1)
# Of address space, for a process whose inputs ask for some megabytes.
MEMORY = 4 << 30


@dataclass
class Given:
    """What an input is made of.

    Attributes
    ----------
    seed, number : int
        Which input it is.
    kept : list of int or None
        Places of the changes that are made; None: of all.
    outcomes : Counter
        How inputs ended, for the report.
    log : list of str
        What was done to this one.
    """

    seed: int
    number: int
    kept: list[int] | None = None
    outcomes: Counter = field(default_factory=Counter)
    log: list[str] = field(default_factory=list)

    @property
    def random(self) -> np.random.RandomState:
        """Random numbers of the basis, from their beginning."""
        return np.random.RandomState([self.seed, self.number])

    def changes(self, n: int) -> Iterator[np.random.RandomState]:
        """Random numbers of each of n changes."""
        for place in range(n):
            if self.kept is None or place in self.kept:
                yield np.random.RandomState([self.seed, self.number, place + 1])


@dataclass
class Finding:
    """An input that broke something.

    Attributes
    ----------
    number : int
    what : str
        Findings of which this is the same are taken for one.
    text : str
        The traceback, or what the process left on standard error.
    """

    number: int
    what: str
    text: str


# -- the process that takes the inputs ------------------------------------------------------------


def _take_inputs(fuzzer: Any, arguments: argparse.Namespace) -> None:
    """Report findings, one a line, and at last the outcomes, all as JSON on standard output."""
    faulthandler.enable()
    _limit_memory()
    outcomes: Counter = Counter()
    # What is printed on the way is no report.
    reports = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with open(arguments.place, "r+b") as file:
        place = mmap.mmap(file.fileno(), 8)
    with tempfile.TemporaryDirectory() as folder:
        subject = fuzzer(Path(folder))
        for number in range(arguments.first, arguments.last):
            place[:8] = struct.pack("<q", number)
            given = Given(arguments.seed, number, arguments.kept, outcomes)
            try:
                subject.check(given)
            except Exception as error:
                _report(reports, number, error, given)
    print(json.dumps({"outcomes": outcomes}), file=reports, flush=True)


def _limit_memory() -> None:
    # The address sanitizer reserves terabytes.
    if "asan" not in os.environ.get("LD_PRELOAD", ""):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def _report(reports: TextIO, number: int, error: Exception, given: Given) -> None:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    message = re.sub(r"-?\d[\d.e+-]*", "#", str(error))[:80]
    what = f"{type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}: {message}"
    text = "\n".join([*given.log, "".join(traceback.format_exception(error))])
    print(json.dumps({"number": number, "what": what, "text": text}), file=reports, flush=True)


# -- the process that watches it ------------------------------------------------------------------


class _Watch:
    """Has inputs taken, by one process after the other where they crash."""

    def __init__(self, script: str, seed: int):
        self.script, self.seed = script, seed
        self.outcomes: Counter = Counter()

    def take(self, first: int, last: int, kept: list[int] | None = None) -> Iterator[Finding]:
        """The findings among these inputs."""
        while first < last:
            number, found = self._take_until_death(first, last, kept)
            yield from found
            first = last if number is None else number + 1

    def _take_until_death(
        self, first: int, last: int, kept: list[int] | None
    ) -> tuple[int | None, list[Finding]]:
        """The input that ended the process, None where it came to the end; and findings."""
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder, name) for name in ("place", "out", "error")]
            paths[0].write_bytes(NOWHERE)
            command = [sys.executable, self.script, "--seed", str(self.seed), "--place", paths[0]]
            command += ["--first", str(first), "--last", str(last)]
            if kept is not None:
                command += ["--kept", ",".join(map(str, kept))]
            with open(paths[1], "wb") as out, open(paths[2], "wb") as error:
                process = subprocess.Popen(list(map(str, command)), stdout=out, stderr=error)
                hangs = self._wait(process, paths[0])
            lines = [json.loads(line) for line in paths[1].read_text().splitlines()]
            found = [Finding(**line) for line in lines if "number" in line]
            for line in lines:
                self.outcomes.update(line.get("outcomes", {}))
            if process.returncode == 0:
                return None, found
            number = max(first, struct.unpack("<q", paths[0].read_bytes())[0])
            what = "hang" if hangs else f"death by {-process.returncode}"
            text = paths[2].read_text(errors="replace")[-20_000:]
            return number, [*found, Finding(number, what, text)]

    def _wait(self, process: subprocess.Popen, place: Path) -> bool:
        """Wait for the end; whether an input took too long, which ends it, too."""
        at, since = place.read_bytes(), time.monotonic()
        while process.poll() is None:
            time.sleep(0.05)
            if place.read_bytes() != at:
                at, since = place.read_bytes(), time.monotonic()
            # To import everything may take long, and is no input.
            if at != NOWHERE and time.monotonic() - since > PATIENCE:
                process.send_signal(signal.SIGABRT)  # faulthandler then tells where it was
                process.wait()
                return True
        return False

    def cut_down(self, finding: Finding, n_changes: int) -> list[int]:
        """As few of an input's changes as lead to the same finding."""
        kept = list(range(n_changes))
        for place in range(n_changes):
            fewer = [other for other in kept if other != place]
            again = self.take(finding.number, finding.number + 1, fewer)
            if any(other.what == finding.what for other in again):
                kept = fewer
        return kept


def main(fuzzer: Any) -> None:
    """The command line of a fuzzer.

    Parameters
    ----------
    fuzzer : type
        With an attribute `MOST_CHANGES`, how many changes an input may have, and a method
        ``check(given)``; made with a folder for its files.
    """
    parser = argparse.ArgumentParser(description=fuzzer.__doc__)
    parser.add_argument("inputs", type=int, nargs="?", default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--kept", type=_numbers, help="the changes to make, of an input cut down")
    parser.add_argument("--last", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--place", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.place:
        _take_inputs(fuzzer, arguments)
    else:
        sys.exit(_watch(fuzzer, arguments))


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def _watch(fuzzer: Any, arguments: argparse.Namespace) -> int:
    """Run, and report; 1 where anything was found."""
    watch, start = _Watch(sys.argv[0], arguments.seed), time.monotonic()
    times: Counter = Counter()
    stop = arguments.first + arguments.inputs
    for finding in watch.take(arguments.first, stop, arguments.kept):
        times[finding.what] += 1
        if times[finding.what] == 1:
            kept = arguments.kept
            if kept is None:
                kept = watch.cut_down(finding, fuzzer.MOST_CHANGES)
            again = f"1 --seed {arguments.seed} --first {finding.number}"
            changes = ",".join(map(str, kept))
            command = f"PYTHONPATH=tests python {sys.argv[0]} {again} --kept '{changes}'"
            print(f"\n--- {finding.what}: {command}")
            print(finding.text, flush=True)
    seconds = time.monotonic() - start
    print(
        f"{fuzzer.__name__}: {arguments.inputs} inputs in {seconds:.0f} s, "
        f"{arguments.inputs / seconds:.0f} a second; {dict(watch.outcomes.most_common())}; "
        f"findings: {dict(times) or 'none'}"
    )
    return 1 if times else 0
