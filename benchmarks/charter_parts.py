"""The parts of the charter: which command measures what, and how it is run and listened to.

Each part is one of the benchmarks here, in a process of its own, so that neither a crash nor the
memory of one spoils the others. A benchmark that can't run on this machine ends with status 2 and
says why in its last line.
"""

import json
import shutil
import subprocess
import sys
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from time import perf_counter
from typing import IO, Any

from measure import CANNOT_RUN


@dataclass(frozen=True)
class Part:
    """A benchmark: its script, and its options in full and in a hurry.

    Attributes
    ----------
    title : str
    script : str
        In this folder; it takes `--out`.
    full, quick : tuple of str
        Further options.
    report : str
        The file that it writes its JSON to, in the folder ``--out`` where that is a folder.
    """

    title: str
    script: str
    full: tuple[str, ...] = ()
    quick: tuple[str, ...] = ("--quick",)
    report: str | None = None

    def command(self, quick: bool, out: Path) -> list[str]:
        script = str(Path(__file__).parent / self.script)
        return [sys.executable, script, *(self.quick if quick else self.full), "--out", str(out)]


PARTS = {
    "text": Part("Text as TfidfVectorizer leaves it", "vectorized.py"),
    "epoch": Part("One epoch in memory, one-row calls, and peak memory", "epoch.py"),
    "floor": Part("One epoch beside the C loop", "floor_ratio.py"),
    "counters": Part("Instructions and cache misses beside the C loop", "counters.py"),
    "labels": Part("Many labels at once", "many_labels.py"),
    "growth": Part("Growth of an epoch", "growth.py"),
    "files": Part(
        "From files", "files.py", ("--rounds", "3"), ("--rounds", "1", "--rows", "10000")
    ),
    "ho": Part(
        "Higher-order and Second-order Perceptrons", "ho_speed.py", ("--rounds", "9")
    ),
    # Nine RCV1 topics with soft margins take longer than five minutes: see `make bench-margin`.
    "margin": Part(
        "Margins with their proofs", "margin.py",
        ("--data", "leukemia", "colon", "lymphoma", "sonar"), ("--data", "sonar"),
    ),
    "kernels": Part(
        "Kernels", "kernels.py", ("--rounds", "1"),
        ("--rounds", "1", "--sizes", "1000", "2000", "4000", "--bounded-rows", "20000"),
        "report.json",
    ),
}  # fmt: skip


def run(name: str, part: Part, quick: bool, folder: Path) -> dict[str, Any]:
    """Run a part to its end, showing what it prints.

    Returns
    -------
    dict
        ``status``: ``"measured"``, ``"left out"`` or ``"failed"``; ``quick``, ``seconds``,
        ``command``; what was ``printed``, and the ``report`` where it was measured, else ``why``.
    """
    out = folder / (name if part.report else f"{name}.json")
    _remove(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    command = part.command(quick, out)
    start = perf_counter()
    printed, last_words, status = _listen(command)
    entry = {
        "quick": quick,
        "seconds": perf_counter() - start,
        "command": " ".join(["python", f"benchmarks/{part.script}", *command[2:-2]]),
        "printed": printed,
    }
    if status == 0:
        report = out / part.report if part.report else out
        return entry | {"status": "measured", "report": json.loads(report.read_text())}
    kind = "left out" if status == CANNOT_RUN else "failed"
    return entry | {"status": kind, "why": last_words or f"it ended with status {status}"}


def _remove(out: Path) -> None:
    """What an earlier run left would be taken for this one's."""
    if out.is_dir():
        shutil.rmtree(out)
    else:
        out.unlink(missing_ok=True)


def _listen(command: list[str]) -> tuple[str, str, int]:
    """Run a command and pass on what it prints: that, its last line of errors, and its status."""
    lines: list[str] = []
    errors: deque[str] = deque(maxlen=1)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stderr
        listeners = [
            Thread(target=_pass_on, args=(process.stdout, sys.stdout, lines.append)),
            Thread(target=_pass_on, args=(process.stderr, sys.stderr, errors.append)),
        ]
        for listener in listeners:
            listener.start()
        try:
            status = process.wait()
        finally:
            # Ctrl-C reaches the command as well, which then ends.
            for listener in listeners:
                listener.join()
    return "".join(lines), "".join(errors).strip(), status


def _pass_on(source: IO[str], to: IO[str], keep: Any) -> None:
    for line in source:
        to.write(line)
        to.flush()
        if line.strip() or to is sys.stdout:
            keep(line)
