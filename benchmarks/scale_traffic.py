"""Bytes of an epoch on two workers: those told, those of dense vectors, those of the interface.

All processes are on this machine, so all they send goes over the loopback interface, whose
counters the kernel keeps; whoever else uses it meanwhile is counted, too. A network of its own
has nobody else: ``unshare -rn sh -c "ip link set lo up; python benchmarks/scale.py --only
traffic"``.
"""

import tempfile
from pathlib import Path
from typing import Any

import scale_data
from measure import text_table
from scale_learners import FIRST_ORDER, SEED
from scale_speed import cluster

from sparsemargin.distributed import Round, fit_distributed

N_WORKERS = 2
N_EPOCHS = 4
N_SHARDS = (2, 16)
DEVICES = Path("/proc/net/dev")
MEGABYTE = 1e6


def loopback_bytes() -> int:
    """Those that the loopback interface has received since the machine was started."""
    lines = DEVICES.read_text().splitlines()
    counters = next(line.split(":")[1] for line in lines if line.strip().startswith("lo:"))
    return int(counters.split()[0])


def measure(quick: bool) -> list[dict[str, Any]]:
    """All first-order learners over few and over many shards of the generated rows."""
    problem = scale_data.generated(scale_data.SMALL if quick else scale_data.LARGE)
    entries = []
    with cluster(N_WORKERS) as client, tempfile.TemporaryDirectory() as folder:
        for n_shards in N_SHARDS:
            paths = problem.caches(n_shards, Path(folder))
            for name, learner in FIRST_ORDER.items():
                epochs = _epochs(client, paths, learner)
                entries.append(
                    {"learner": name, "shards": n_shards, "n_features": problem.X.shape[1],
                     "dense": _dense(learner, problem.X.shape[1], n_shards), "epochs": epochs}
                )  # fmt: skip
    return entries


def _epochs(client: Any, paths: list[str], learner: dict[str, Any]) -> list[dict[str, int]]:
    """For each epoch the bytes sent to each worker, received from all, and of the interface."""
    found: list[dict[str, int]] = []
    before = loopback_bytes()

    def take(done: Round) -> None:
        nonlocal before
        now = loopback_bytes()
        found.append(
            {"sent": done.bytes_sent, "received": done.bytes_received, "loopback": now - before}
        )
        before = now

    fit_distributed(
        paths, client=client, max_iter=N_EPOCHS, random_state=SEED, on_round=take, **learner
    )
    return found


def _dense(learner: dict[str, Any], n_features: int, n_shards: int) -> dict[str, int]:
    """What whole vectors would take: theta to each worker; from each shard it and the average."""
    vector = n_features * (4 if learner["p"] == 2 else 8)
    return {"sent": vector, "received": 2 * vector * n_shards}


def show(entries: list[dict[str, Any]]) -> None:
    """Print megabytes of each epoch."""
    headers = [("learner", ""), ("shards", "d"), ("epoch", "d"), ("MB to a worker", ".2f"),
               ("MB from all", ".2f"), ("dense, from all", ".2f"),
               ("loopback MB", ".2f")]  # fmt: skip
    rows = [
        [entry["learner"], entry["shards"], number, each["sent"] / MEGABYTE,
         each["received"] / MEGABYTE, entry["dense"]["received"] / MEGABYTE,
         each["loopback"] / MEGABYTE]
        for entry in entries
        for number, each in enumerate(entry["epochs"], start=1)
    ]  # fmt: skip
    print(text_table(headers, rows), flush=True)
