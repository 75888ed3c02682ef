"""A Dask scheduler and its workers in separate processes, which may be killed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dask.distributed import Client


class Workers:
    """A context with processes that work for a scheduler.

    Dask's own nanny does not restart a worker that is killed while it starts.
    """

    def __init__(self, address: str, n_workers: int, folder: Path) -> None:
        self.command = [
            sys.executable, "-m", "dask", "worker", address, "--no-nanny", "--nthreads", "1",
            "--no-dashboard", "--local-directory", str(folder),
        ]  # fmt: skip
        self.n_workers, self.log = n_workers, folder / "workers.log"
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.processes.append(subprocess.Popen(self.command, stderr=log))

    def kill(self, place: int) -> None:
        """Kill one, and start another."""
        process = self.processes.pop(place)
        process.kill()
        process.wait()
        self.start()

    def __enter__(self) -> Workers:
        for _ in range(self.n_workers):
            self.start()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        # The sanitizer of undefined behaviour ends a worker, and Dask then looks for another.
        told = self.log.read_text(errors="replace")
        assert ": runtime error: " not in told, told


@contextmanager
def scheduler_and_workers(
    folder: Path, n_workers: int = 2, **environment: str
) -> Iterator[tuple[subprocess.Popen[bytes], Client, Workers]]:
    """A scheduler's process with additions to its environment, its client, and workers.

    Dask's LocalCluster would fail if workers die before it has seen them.
    """
    from dask.distributed import Client

    file = str(folder / "scheduler.json")
    command = [
        sys.executable, "-m", "dask", "scheduler", "--host", "127.0.0.1", "--port", "0",
        "--no-dashboard", "--scheduler-file", file,
    ]  # fmt: skip
    scheduler = subprocess.Popen(command, env=os.environ | environment, stderr=subprocess.DEVNULL)
    try:
        with (
            Client(scheduler_file=file, set_as_default=False) as client,
            Workers(client.scheduler.address, n_workers, folder) as workers,
        ):
            client.wait_for_workers(n_workers, timeout=60)
            yield scheduler, client, workers
    finally:
        scheduler.kill()
        scheduler.wait()
