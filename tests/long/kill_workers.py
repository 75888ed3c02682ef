"""Kills Dask's workers at random moments of a fit, and looks whether the model is the same.

PYTHONPATH=tests python -m long.kill_workers [KILLS]: 50 unless told, over as many fits as it takes.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from dask.distributed import Client, LocalCluster

from problems.shards import cut, make_data, write_each
from sparsemargin import save_model
from sparsemargin.distributed import fit_distributed

# Seconds between two kills: a fit outlasts some of them, and each worker comes to work.
SOONEST, LATEST = 0.5, 3.0


class Workers:
    """Processes that work for a scheduler, while it is entered.

    Dask's own guards of workers leave one dead that is killed while it starts.
    """

    def __init__(self, address: str, n_workers: int, folder: Path) -> None:
        self.command = [
            sys.executable, "-m", "dask", "worker", address, "--no-nanny", "--nthreads", "1",
            "--no-dashboard", "--local-directory", str(folder),
        ]  # fmt: skip
        self.n_workers = n_workers
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        self.processes.append(subprocess.Popen(self.command, stderr=subprocess.DEVNULL))

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


def kill_now_and_then(
    workers: Workers, over: threading.Event, kills: list[float], most: int
) -> None:
    """Kill a random worker after each random pause until there are enough kills, or it is over."""
    while len(kills) < most and not over.wait(random.uniform(SOONEST, LATEST)):
        workers.kill(random.randrange(workers.n_workers))
        kills.append(time.perf_counter())


def model_bytes(model: Any) -> bytes:
    with tempfile.NamedTemporaryFile(suffix=".model") as file:
        save_model(model, file.name)
        return Path(file.name).read_bytes()


def fits_under_kills(
    client: Client, workers: Workers, paths: list[str], most: int, **how: Any
) -> tuple[int, int]:
    """Fit until so many workers have been killed: fits, and models that were others."""
    kills: list[float] = []
    expected = model_bytes(fit_distributed(paths, random_state=0, **how))
    fits = others = 0
    while len(kills) < most:
        over = threading.Event()
        killer = threading.Thread(target=kill_now_and_then, args=(workers, over, kills, most))
        killer.start()
        try:
            model = fit_distributed(paths, random_state=0, client=client, **how)
        finally:
            over.set()
            killer.join()
        others += model_bytes(model) != expected
        fits += 1
    return fits, others


@contextmanager
def scheduler_and_workers(folder: Path) -> Iterator[tuple[Client, Workers]]:
    """A scheduler in this process, with two workers in others."""
    with (
        LocalCluster(n_workers=0, dashboard_address=None) as cluster,
        Workers(cluster.scheduler_address, 2, folder) as workers,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client, workers


def main() -> int:
    n_kills = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    algorithms: list[dict[str, Any]] = [
        {"algo": "pnorm", "p": 6, "max_iter": 60}, {"algo": "alma", "max_iter": 60},
        {"algo": "so", "max_iter": 8, "max_updates": 400},
    ]  # fmt: skip
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        X, y = make_data(80_000)
        noisy = np.where(np.random.default_rng(0).random(len(y)) < 0.1, 1 - y, y)
        paths = write_each(folder, cut(X, noisy, 4))
        with scheduler_and_workers(folder / "dask") as (client, workers):
            for i, how in enumerate(algorithms):
                random.seed(i)
                share = n_kills // len(algorithms) + (i < n_kills % len(algorithms))
                started = time.perf_counter()
                fits, others = fits_under_kills(client, workers, paths, share, **how)
                seconds = time.perf_counter() - started
                print(f"{how}: {share} kills, {fits} fits, {others} other models, {seconds:.0f} s")
                wrong += others
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
