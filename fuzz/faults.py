"""Small faults in the library: do the tests of its room notice each?

    python fuzz/faults.py [--jobs N] [WORDS ...]

A copy of the library under build/faults is compiled once, with all faults in it; SM_FAULT turns on
one of them, and the tests of its room run until one fails. WORDS choose faults whose room, file or
text has one of them. Ends with 1 where a fault lives that is not expected to. Cython has to be
installed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from known_faults import EXPECTED, FAULTS, ROOMS
from planting import plant

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / "build" / "faults"
COPIED = ("sparsemargin", "setup.py", "pyproject.toml", "README.md", "LICENSE")
LINKED = ("tests", "papers", "benchmarks", "docs", "examples", "datasets", "fuzz", "Makefile")
LONGEST = 90  # seconds of a test; a fault may make a loop endless


def build() -> None:
    """Compile the copy with all faults."""
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)
    for name in COPIED:
        subprocess.run(["cp", "-r", ROOT / name, HOME], check=True)
    for name in LINKED:
        (HOME / name).symlink_to(ROOT / name)
    for made in [*HOME.rglob("*.so"), *HOME.rglob("*.cpp"), *HOME.rglob("_cyutility.c")]:
        made.unlink()
    plant(HOME, FAULTS)
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(command, cwd=HOME, env={**os.environ, "CFLAGS": "-O1 -g0"}, check=True)


def first_failure(number: int, tests: tuple[str, ...]) -> str | None:
    """The test that notices the fault; None: they all pass."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    command += [f"-ofaulthandler_timeout={LONGEST}", "-ofaulthandler_exit_on_timeout=true"]
    command += ["--hypothesis-profile=noticing", *(f"tests/{name}.py" for name in tests)]
    run = subprocess.run(
        command, cwd=HOME, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "PYTHONPATH": str(HOME), "SM_FAULT": str(number)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    if run.returncode == 0:
        return None
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.MULTILINE)
    return found[1] if found else run.stdout.strip().rpartition("\n")[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*", metavar="WORDS")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    numbers = [
        number for number, fault in enumerate(FAULTS, 1)
        if not options.words or any(word in " ".join(fault) for word in options.words)
    ]  # fmt: skip

    def outcome(number: int) -> str | None:
        fault = FAULTS[number - 1]
        noticed = first_failure(number, ROOMS[fault.room])
        print(f"{fault.room}: {fault.file}: {fault.right!r} -> {fault.wrong!r}")
        print(f"    {noticed or 'LIVES'}", flush=True)
        return noticed

    build()
    rooms = dict.fromkeys(FAULTS[number - 1].room for number in numbers)
    without = first_failure(0, tuple(dict.fromkeys(n for room in rooms for n in ROOMS[room])))
    if without:
        raise SystemExit(f"{without} fails without a fault, too.")
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = dict(zip(numbers, pool.map(outcome, numbers), strict=True))
    for room in rooms:
        ours = [outcomes[number] for number in numbers if FAULTS[number - 1].room == room]
        print(f"{room}: {sum(each is not None for each in ours)} of {len(ours)}")
    alive = [FAULTS[number - 1] for number in numbers if outcomes[number] is None]
    for fault in alive:
        print(f"lives, {EXPECTED.get(fault.right, 'unexpectedly')}: {fault.file}: {fault.right!r}")
    if any(fault.right not in EXPECTED for fault in alive):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
