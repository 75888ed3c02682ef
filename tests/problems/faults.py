"""Functions that write files, run in processes of their own where writing fails or is cut short.

`Faults` starts a process that has imported what is needed, and forks a copy of it for each run: a
run takes milliseconds. `strike_everywhere` goes through all operations of a function, one run each.
"""

import errno
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from problems.faulty_disk import Disk, install

KINDS = ["kill", "kill amid", "power", "power amid", "full", "full amid"]
_TESTS = Path(__file__).parents[1]


@dataclass
class Outcome:
    """How a run ended.

    Attributes
    ----------
    killed : bool
    operations : list of str
        Names, in their order; empty where the process was killed.
    error : dict or None
        `type`, `errno`, `filename` and `message` of the exception that got out of the function.
    """

    killed: bool
    operations: list
    error: dict | None


@dataclass
class Scenario:
    """A function that writes, and how to tell what it left.

    Attributes
    ----------
    prepare : callable
        Given an empty folder, puts into it what is there before.
    write : callable
        Given the folder, writes. A function of a module, since another process calls it.
    state : callable
        Given the folder, reads what is in it by the library's own means; returns "old" where
        everything is as it was prepared, "new" where everything is as an undisturbed run leaves it.
        Raises an AssertionError for anything else.
    path : str
        Name of the file that errors must name.
    """

    prepare: Callable
    write: Callable
    state: Callable
    path: str


class Faults:
    """A context manager; runs functions and strikes at their writing."""

    def __enter__(self):
        paths = [str(_TESTS.parent), str(_TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {"PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-B", str(Path(__file__))],
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def run(self, function, folder, kind="none", at=0, kill_after=None):
        """One run.

        Parameters
        ----------
        function : callable
        folder : Path
            Its argument.
        kind, at
            See `faulty_disk.Disk`.
        kill_after : float, optional
            Seconds until the process is killed, wherever it is.

        Returns
        -------
        Outcome
        """
        request = {
            "module": function.__module__,
            "function": function.__name__,
            "folder": str(folder),
            "kind": kind,
            "at": at,
            "kill_after": kill_after,
        }
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return Outcome(**json.loads(self._process.stdout.readline()))


def strike_everywhere(faults, scenario, kind, root):
    """Run a scenario with a fault at its first operation, at its second, and so on.

    After each run everything is old or new. After an error everything is old and nothing is left
    over, and the error names the file. What a killed process left over is removed by a second run,
    which is not disturbed; without an error everything is new.

    Returns
    -------
    int
        How many runs the fault changed.
    """
    names_when_done = names_after(faults, scenario, root / "undisturbed")
    struck = 0
    for at in count(1):
        folder = root / f"{kind} {at}"
        folder.mkdir(parents=True)
        scenario.prepare(folder)
        there_before = sorted(os.listdir(folder))
        outcome = faults.run(scenario.write, folder, kind, at)
        state = scenario.state(folder)
        if outcome.killed:
            assert state in ("old", "new")
            faults.run(scenario.write, folder)
            assert scenario.state(folder) == "new"
            assert sorted(os.listdir(folder)) == names_when_done
        elif outcome.error:
            assert_says_full(outcome.error, folder / scenario.path)
            assert state == "old"
            assert sorted(os.listdir(folder)) == there_before
        else:
            assert state == "new"
        struck += outcome.killed or outcome.error is not None
        if not outcome.killed and len(outcome.operations) < at:
            return struck


def names_after(faults, scenario, folder):
    """What is in the folder after an undisturbed run."""
    folder.mkdir()
    scenario.prepare(folder)
    faults.run(scenario.write, folder)
    assert scenario.state(folder) == "new"
    return sorted(os.listdir(folder))


def assert_says_full(error, path):
    assert error["errno"] == errno.ENOSPC, error
    assert error["filename"] == str(path), error


# -- the other process ----------------------------------------------------------------------------


def _serve():
    for line in sys.stdin:
        request = json.loads(line)
        module = importlib.import_module(request["module"])
        call, folder = getattr(module, request["function"]), Path(request["folder"])
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            _run(call, folder, Disk(request["kind"], request["at"]), writer)
        os.close(writer)
        if request["kill_after"] is not None:
            time.sleep(request["kill_after"])
            os.kill(child, signal.SIGKILL)
        print(json.dumps(_outcome(child, reader)), flush=True)


def _outcome(child, reader):
    with os.fdopen(reader, "rb") as pipe:
        report = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return {"killed": True, "operations": [], "error": None}
    return {"killed": False, **json.loads(report)}


def _run(call, folder, disk, writer):
    """Call and report, in the forked process, which ends here."""
    write = os.write
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what the function prints is no answer
    install(disk)
    error = None
    try:
        call(folder)
    except BaseException as raised:
        error = {
            "type": type(raised).__name__,
            "errno": getattr(raised, "errno", None),
            "filename": getattr(raised, "filename", None),
            "message": str(raised),
        }
    if disk.kind == "power":
        disk.lose_what_is_pending()
    report = json.dumps({"operations": disk.operations, "error": error}).encode()
    while report:
        report = report[write(writer, report) :]
    os._exit(0)


if __name__ == "__main__":
    _serve()
