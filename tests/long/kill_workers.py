"""Kills Dask's workers at random moments of a fit, and looks whether the model is the same.

PYTHONPATH=tests python -m long.kill_workers [KILLS]: 50 unless told, over as many fits as it takes.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from dask.distributed import Client, LocalCluster

from sparsemargin import save_model
from sparsemargin.distributed import fit_distributed

# Seconds between two kills: a fit outlasts some of them, and each worker comes to work.
SOONEST, LATEST = 0.5, 3.0


def write_shards(folder: Path, n_shards: int, n_rows: int, seed: int = 0) -> list[str]:
    """Files of sparse rows, labelled by a sparse target with noise."""
    rng = np.random.default_rng(seed)
    target = rng.standard_normal(2000) * (rng.random(2000) < 0.1)
    paths = []
    for s in range(n_shards):
        lines = []
        for _ in range(n_rows):
            columns = np.sort(rng.choice(2000, 20, replace=False))
            values = rng.standard_normal(20)
            output = values @ target[columns] + rng.standard_normal()
            entries = " ".join(
                f"{column + 1}:{value:.6g}" for column, value in zip(columns, values, strict=True)
            )
            lines.append(f"{1 if output > 0 else -1} {entries}\n")
        paths.append(str(folder / f"part-{s}.svm"))
        Path(paths[-1]).write_text("".join(lines))
    return paths


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
        process.send_signal(signal.SIGKILL)
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


class Killer:
    """Kills a random worker now and then, while it is entered."""

    def __init__(self, workers: Workers, seed: int, most: int) -> None:
        self.workers, self.random, self.most = workers, random.Random(seed), most
        self.kills = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while self.kills < self.most:
            if self._over.wait(self.random.uniform(SOONEST, LATEST)):
                return
            self.workers.kill(self.random.randrange(self.workers.n_workers))
            self.kills += 1

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def model_bytes(fit: Callable[..., Any], **how: Any) -> bytes:
    """The file of the model that a fit comes to."""
    with tempfile.NamedTemporaryFile(suffix=".model") as file:
        save_model(fit(**how), file.name)
        return Path(file.name).read_bytes()


def fits_under_kills(
    client: Client, workers: Workers, paths: list[str], n_kills: int, seed: int, **how: Any
) -> tuple[int, int, int]:
    """Fit until so many workers have been killed: kills, fits, and models that were others."""

    def fit(**where: Any) -> Any:
        return fit_distributed(paths, random_state=0, **how, **where)

    kills = fits = others = 0
    expected = model_bytes(fit)
    while kills < n_kills:
        with Killer(workers, seed + fits, n_kills - kills) as killer:
            others += model_bytes(fit, client=client) != expected
        kills, fits = kills + killer.kills, fits + 1
    return kills, fits, others


@contextmanager
def scheduler_and_workers(folder: Path) -> Iterator[tuple[Client, Workers]]:
    """A scheduler in this process, with two workers in others."""
    with (
        LocalCluster(n_workers=0, dashboard_address=None) as cluster,
        Workers(cluster.scheduler_address, 2, folder) as workers,
        Client(cluster) as client,
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
        paths = write_shards(folder, 4, 20_000)
        with scheduler_and_workers(folder / "dask") as (client, workers):
            for i, how in enumerate(algorithms):
                share = n_kills // len(algorithms) + (i < n_kills % len(algorithms))
                started = time.perf_counter()
                kills, fits, others = fits_under_kills(
                    client, workers, paths, share, 1000 * i, **how
                )
                seconds = time.perf_counter() - started
                print(f"{how}: {kills} kills, {fits} fits, {others} other models, {seconds:.0f} s")
                wrong += others
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
