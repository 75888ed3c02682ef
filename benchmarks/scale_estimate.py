"""What an epoch of 10^9 rows over 100 machines takes, worked out from what was measured.

Nothing here is measured: the costs of a nonzero and of a coordinate come from the parts `speed`,
`touched` and `memory` of scale.json, the rest are `ASSUMED`.
"""

from dataclasses import dataclass
from math import ceil, log2, sqrt
from typing import Any

from scale_learners import FIRST_ORDER
from scale_speed import MANY, MANY_SHARDS, ONE_WORKER, TWO, TWO_WORKERS
from scale_touched import PLACE, value_bytes


@dataclass(frozen=True)
class Assumed:
    """What the estimate takes for granted.

    Attributes
    ----------
    rows, machines, row_nnz : int
    network, disk : float
        Bytes a second: of each machine's interface, and of its disk.
    hops : int
        Interfaces of one machine that an update goes through one after the other: the scheduler's
        and the client's.
    """

    rows: int = 10**9
    machines: int = 100
    row_nnz: int = 50
    network: float = 1.25e9
    disk: float = 1e9
    hops: int = 2

    @property
    def shard_rows(self) -> int:
        return self.rows // self.machines


ASSUMED = Assumed()
# Of a row in a row cache: a value and a column for each nonzero, a pointer and a label.
_ENTRY_BYTES, _ROW_BYTES = 8, 8


@dataclass(frozen=True)
class Costs:
    """What was measured of a learner.

    Attributes
    ----------
    nonzero : float
        Seconds of a shard's epoch for each nonzero.
    coordinate : float
        Seconds of a shard's epoch for each coordinate, whatever the rows.
    mixed : float
        Seconds of the mixture for each coordinate of each update.
    held : float
        Bytes of memory for each coordinate, of who learns and of who mixes.
    value : int
        Bytes of a coordinate that travels.
    """

    nonzero: float
    coordinate: float
    mixed: float
    held: float
    value: int


@dataclass(frozen=True)
class Estimate:
    """Of an epoch: seconds, bytes, and with how many machines it would be the shortest.

    Attributes
    ----------
    learning : float
        On each machine, its rows in memory.
    coordinates : float
        On each machine, what it does with whole vectors.
    update : float
        Bytes that each machine sends.
    up, mixing, down : float
        Seconds until the client has all updates, has mixed them, and the machines have the
        mixture.
    worker, client : float
        Bytes of memory; of the worker with its row cache.
    best : int
        Machines.
    """

    learning: float
    coordinates: float
    update: float
    up: float
    mixing: float
    down: float
    worker: float
    client: float
    best: int

    @property
    def seconds(self) -> float:
        return self.learning + self.coordinates + self.up + self.mixing + self.down


def costs(speed: dict[str, Any], held: float) -> Costs:
    """Costs by an entry of `speed` on generated rows: with more shards the same nonzeros are
    learned from, but more coordinates."""
    two, many = (speed["contestants"][name] for name in (TWO, MANY_SHARDS))
    learned, among_many = (each["seconds"] - each["mixing"] for each in (two, many))
    n = speed["n_features"]
    coordinate = max(0.0, (among_many - learned) / ((MANY - 2) * n))
    nonzero = (learned - 2 * n * coordinate) / speed["n_entries"]
    # Wherever the two updates come from, the same process mixes them.
    mixing = min(speed["contestants"][name]["mixing"] for name in (TWO, ONE_WORKER, TWO_WORKERS))
    value = value_bytes(FIRST_ORDER[speed["learner"]])
    return Costs(nonzero, coordinate, mixing / (2 * n), held, value)


def update_bytes(touched: dict[str, Any], rows: int, value: int) -> float:
    """What a shard of so many rows sends: places and values, or whole vectors where these are
    shorter; the law goes on as it was between the last two sizes told one by one."""
    last_rows, last = touched["last"]
    coordinates = last * (rows / last_rows) ** touched["tail"]
    return 2 * min((PLACE + value) * coordinates, value * touched["n_features"])


def estimate(cost: Costs, touched: dict[str, Any], assumed: Assumed = ASSUMED) -> Estimate:
    """Work out an epoch over all machines, and what its memory is."""
    n, machines = touched["n_features"], assumed.machines
    update = update_bytes(touched, assumed.shard_rows, cost.value)
    vector = cost.value * n
    learning = cost.nonzero * assumed.shard_rows * assumed.row_nnz
    each = assumed.hops * update / assumed.network + cost.mixed * n
    # Machines that have the mixture pass it on, so that twice as many have it each time.
    down = (assumed.hops + ceil(log2(machines))) * vector / assumed.network
    return Estimate(
        learning, cost.coordinate * n, update, machines * assumed.hops * update / assumed.network,
        machines * cost.mixed * n, down, cost.held * n + cache_bytes(assumed),
        cost.held * n + machines * update, round(sqrt(learning * machines / each)),
    )  # fmt: skip


def cache_bytes(assumed: Assumed = ASSUMED) -> int:
    """Of a machine's row cache."""
    return assumed.shard_rows * (assumed.row_nnz * _ENTRY_BYTES + _ROW_BYTES)


def estimates(parts: dict[str, Any]) -> list[tuple[dict[str, Any], Costs, Estimate]]:
    """One for each learner and number of features whose touched coordinates were measured."""
    by_learner = {
        entry["learner"]: costs(entry, parts["memory"][entry["learner"]])
        for entry in parts["speed"]
        if entry["data"] == "generated"
    }
    return [
        (touched, by_learner[touched["learner"]], estimate(by_learner[touched["learner"]], touched))
        for touched in parts["touched"]
    ]
