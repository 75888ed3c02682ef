"""Kills Dask's workers at random moments of a fit, and looks whether the model is the same.

PYTHONPATH=tests python fuzz/kill_workers.py [KILLS]: 50 unless told, over as many fits as it takes.
"""

from __future__ import annotations

import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from dask.distributed import Client

from problems.dask_cluster import Workers, scheduler_and_workers
from problems.shards import assert_same, cut, make_data, write_each
from sparsemargin.distributed import fit_distributed

# Seconds between two kills: a fit outlasts some of them, and each worker comes to work.
SOONEST, LATEST = 0.5, 3.0


def fit_under_kills(
    client: Client, workers: Workers, paths: list[str], most: float, **how: Any
) -> tuple[Any, int]:
    """Fit while a random worker is killed after each random pause; the model and the kills."""
    over = threading.Event()
    kills: list[float] = []

    def kill_now_and_then() -> None:
        while len(kills) < most and not over.wait(random.uniform(SOONEST, LATEST)):
            workers.kill(random.randrange(workers.n_workers))
            kills.append(time.perf_counter())

    killer = threading.Thread(target=kill_now_and_then)
    killer.start()
    try:
        return fit_distributed(paths, random_state=0, client=client, **how), len(kills)
    finally:
        over.set()
        killer.join()


def main() -> None:
    n_kills = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    algorithms: list[dict[str, Any]] = [
        {"algo": "pnorm", "p": 6, "max_iter": 60}, {"algo": "alma", "max_iter": 60},
        {"algo": "so", "max_iter": 8, "max_updates": 400},
    ]  # fmt: skip
    random.seed(0)
    with tempfile.TemporaryDirectory() as name:
        X, y = make_data(80_000)
        noisy = np.where(np.random.default_rng(0).random(len(y)) < 0.1, 1 - y, y)
        paths = write_each(Path(name), cut(X, noisy, 4))
        with scheduler_and_workers(Path(name)) as (_, client, workers):
            for how in algorithms:
                expected = fit_distributed(paths, random_state=0, **how)
                fits = kills = 0
                while kills < n_kills / len(algorithms):
                    model, more = fit_under_kills(client, workers, paths, n_kills, **how)
                    assert_same(model, expected)
                    fits, kills = fits + 1, kills + more
                print(f"{how}: the same model of {fits} fits under {kills} kills")


if __name__ == "__main__":
    main()
