"""Kills Dask's workers at random moments of a fit, and looks whether the model is the same.

``python tests/kill_workers.py [KILLS]``: 50 unless told, over as many fits as that takes.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from dask.distributed import Client, LocalCluster

from sparsemargin import save_model
from sparsemargin.distributed import fit_distributed

# Seconds between two kills: a fit outlasts some of them, and each worker comes to work.
SOONEST, LATEST = 0.4, 1.6


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


class Killer:
    """Kills a random worker of a cluster now and then, while it is entered."""

    def __init__(self, cluster: LocalCluster, seed: int, most: int) -> None:
        self.cluster, self.random, self.most = cluster, random.Random(seed), most
        self.kills = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while self.kills < self.most:
            if self._over.wait(self.random.uniform(SOONEST, LATEST)):
                return
            # One that is only starting is not at work, and Dask would not start it again.
            at_work = [
                nanny for nanny in self.cluster.workers.values()
                if nanny.status.name == "running"
                and nanny.worker_address in self.cluster.scheduler.workers
            ]  # fmt: skip
            if at_work:
                os.kill(self.random.choice(at_work).pid, signal.SIGKILL)
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
    cluster: LocalCluster, paths: list[str], n_kills: int, seed: int, **how: Any
) -> tuple[int, int, int]:
    """Fit until so many workers have been killed: kills, fits, and models that were others."""

    def fit(**where: Any) -> Any:
        return fit_distributed(paths, random_state=0, **how, **where)

    kills = fits = others = 0
    with Client(cluster) as client:
        expected = model_bytes(fit)
        while kills < n_kills:
            with Killer(cluster, seed + fits, n_kills - kills) as killer:
                others += model_bytes(fit, client=client) != expected
            kills, fits = kills + killer.kills, fits + 1
    return kills, fits, others


def main() -> int:
    n_kills = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    algorithms: list[dict[str, Any]] = [
        {"algo": "pnorm", "p": 6, "max_iter": 30}, {"algo": "alma", "max_iter": 30},
        {"algo": "so", "max_iter": 4, "max_updates": 400},
    ]  # fmt: skip
    wrong = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
    ):
        paths = write_shards(Path(folder), 4, 20_000)
        for i, how in enumerate(algorithms):
            share = n_kills // len(algorithms) + (i < n_kills % len(algorithms))
            started = time.perf_counter()
            kills, fits, others = fits_under_kills(cluster, paths, share, 1000 * i, **how)
            seconds = time.perf_counter() - started
            print(f"{how}: {kills} kills in {fits} fits, {others} other models, {seconds:.0f} s")
            wrong += others
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
