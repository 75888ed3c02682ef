"""The tables of docs/scale.md, from the figures of scale.json."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from measure import markdown_table
from scale_estimate import ASSUMED, cache_bytes, estimates
from scale_shards import N_SHARDS
from scale_speed import FIT_CSR, ONE, ONE_WORKER, TWO, TWO_WORKERS

Parts = dict[str, Any]
MEGABYTE, GIGABYTE = 1e6, 1e9


@dataclass(frozen=True)
class Table:
    """A table, and the parts that it tells of."""

    parts: tuple[str, ...]
    render: Callable[[Parts], str]


def _speed(parts: Parts) -> str:
    rows = []
    for entry in parts["speed"]:
        seconds = {name: each["seconds"] for name, each in entry["contestants"].items()}
        two = entry["contestants"][TWO_WORKERS]
        rest = two["seconds"] - two["learning"] - two["mixing"]
        rows.append(
            [f"{entry['data']}, {entry['learner']}",
             *(f"{seconds[name]:.3f}" for name in (FIT_CSR, ONE, TWO, ONE_WORKER, TWO_WORKERS)),
             f"{seconds[ONE_WORKER] / seconds[TWO_WORKERS]:.2f} x",
             f"{two['learning']:.3f} + {two['mixing']:.3f} + {rest:.3f}"]
        )  # fmt: skip
    headers = ["seconds of an epoch", "`fit_csr`", "one shard, in this process", "two shards",
               "two shards, one worker", "two workers", "speed-up",
               "on two: learning + mixing + the rest"]  # fmt: skip
    return markdown_table(headers, rows)


def _traffic(parts: Parts) -> str:
    rows = []
    for entry in parts["traffic"]:
        first, last = entry["epochs"][0], entry["epochs"][-1]
        rows.append(
            [entry["learner"], str(entry["shards"]),
             *(f"{each['sent'] / MEGABYTE:.2f}" for each in (first, last)),
             f"{entry['dense']['sent'] / MEGABYTE:.0f}",
             *(f"{each['received'] / entry['shards'] / MEGABYTE:.2f}" for each in (first, last)),
             f"{entry['dense']['received'] / entry['shards'] / MEGABYTE:.0f}",
             f"{_told(entry, last) / MEGABYTE:.1f}", f"{last['loopback'] / MEGABYTE:.1f}"]
        )  # fmt: skip
    headers = ["MB an epoch", "shards", "to a worker, epoch 1", f"epoch {_n_epochs(parts)}",
               "whole vector", "from a shard, epoch 1", f"epoch {_n_epochs(parts)}",
               "whole vectors", "in all, every hop", "the interface counted"]  # fmt: skip
    return markdown_table(headers, rows)


def _n_epochs(parts: Parts) -> int:
    return len(parts["traffic"][0]["epochs"])


def _told(entry: dict[str, Any], epoch: dict[str, int]) -> float:
    """Bytes over all hops: down from the client to the scheduler and on to both workers, up from
    the workers to the scheduler and on to the client."""
    return 3 * epoch["sent"] + 2 * epoch["received"]


def _shards(name: str) -> Callable[[Parts], str]:
    def render(parts: Parts) -> str:
        curves = parts[name]["curves"]
        rows = []
        for learner in dict.fromkeys(curve["learner"] for curve in curves):
            for mixing in ("uniform", "errors"):
                found = {
                    curve["shards"]: curve
                    for curve in curves
                    if (curve["learner"], curve["mixing"]) == (learner, mixing)
                }
                if found:
                    epochs = len(next(iter(found.values()))["errors"])
                    cells = [_errors(found.get(n)) for n in N_SHARDS]
                    rows.append([learner, mixing, f"1, {epochs}", *cells])
        headers = ["test error %", "mixing", "after epochs", "1 shard", *map(str, N_SHARDS[1:])]
        return markdown_table(headers, rows)

    return render


def _errors(curve: dict[str, Any] | None) -> str:
    if curve is None:
        return ""
    return f"{100 * curve['errors'][0]:.2f}, {100 * curve['errors'][-1]:.2f}"


def _touched(parts: Parts) -> str:
    entries = parts["touched"]
    sizes = max((entry["rows"] for entry in entries), key=len)
    rows = []
    for entry in entries:
        told = zip(entry["coordinates"], entry["whole"], strict=True)
        cells = ["whole" if whole else f"{found:,}" for found, whole in told]
        cells += [""] * (len(sizes) - len(cells))
        rows.append(
            [f"{entry['learner']}, {entry['n_features']:,} features", *cells,
             f"{entry['exponent']:.2f} ± {entry['standard_error']:.2f}", f"{entry['tail']:.2f}"]
        )  # fmt: skip
    headers = ["touched by a shard of so many rows", *(f"{n:,}" for n in sizes),
               "to the power of", "between the last two"]  # fmt: skip
    return markdown_table(headers, rows)


def _assumed(parts: Parts) -> str:
    rows = [
        ["rows, machines, shards", f"{ASSUMED.rows:,} over {ASSUMED.machines}, a shard each"],
        ["nonzeros a row", f"{ASSUMED.row_nnz}, float32, as in the generated rows"],
        ["a machine's row cache", f"{cache_bytes() / GIGABYTE:.2f} GB: in memory after epoch 1"],
        ["disk", f"{ASSUMED.disk / GIGABYTE:g} GB/s: epoch 1 waits "
                 f"{cache_bytes() / ASSUMED.disk:.1f} s for it at most"],
        ["network", f"{8 * ASSUMED.network / GIGABYTE:g} Gbit/s at every machine"],
        ["an update's way", f"through the scheduler: {ASSUMED.hops} interfaces, one after the "
                            "other, that all updates share"],
        ["the mixture's way", "through the scheduler, then from machine to machine, to twice as "
                              "many each time"],
    ]  # fmt: skip
    return markdown_table(["assumed", ""], rows)


def _costs(parts: Parts) -> str:
    rows = [
        [touched["learner"], f"{1e9 * cost.nonzero:.2f}", f"{1e9 * cost.coordinate:.1f}",
         f"{1e9 * cost.mixed:.1f}", f"{cost.held:.0f}", str(cost.value)]
        for touched, cost, _ in estimates(parts)
    ]  # fmt: skip
    headers = ["measured", "ns a nonzero", "ns a coordinate and shard",
               "mixing, ns a coordinate and update", "memory, bytes a coordinate",
               "bytes a value"]  # fmt: skip
    return markdown_table(headers, [list(row) for row in dict.fromkeys(map(tuple, rows))])


def _estimate(parts: Parts) -> str:
    rows = []
    for touched, _, found in estimates(parts):
        rows.append(
            [f"{touched['learner']}, {touched['n_features']:,} features",
             f"{found.learning:.1f}", f"{found.coordinates:.2f}",
             f"{found.update / MEGABYTE:.0f}", f"{found.up:.1f}", f"{found.mixing:.1f}",
             f"{found.down:.1f}", f"**{found.seconds:.1f}**",
             f"{found.worker / GIGABYTE:.1f}", f"{found.client / GIGABYTE:.1f}",
             f"{found.best:,}"]
        )  # fmt: skip
    headers = ["seconds of an epoch", "learning", "whole vectors", "MB up, each", "up", "mixing",
               "down", "in all", "GB, worker", "GB, client",
               "machines for the shortest epoch"]  # fmt: skip
    return markdown_table(headers, rows)


def _one_machine(parts: Parts) -> str:
    n_entries = ASSUMED.rows * ASSUMED.row_nnz
    rows = []
    for touched, cost, found in estimates(parts):
        learning = n_entries * cost.nonzero
        reading = ASSUMED.machines * cache_bytes() / ASSUMED.disk
        alone = max(learning, reading)
        rows.append(
            [f"{touched['learner']}, {touched['n_features']:,} features", f"{learning:.0f}",
             f"{reading:.0f}", f"{alone / found.seconds:.0f} x"]
        )  # fmt: skip
    headers = ["all rows on one machine", "learning, s", "reading, s", "100 machines"]
    return markdown_table(headers, rows)


TABLES = {
    "speed": Table(("speed",), _speed),
    "traffic": Table(("traffic",), _traffic),
    "shards-rcv1": Table(("rcv1",), _shards("rcv1")),
    "shards-generated": Table(("generated",), _shards("generated")),
    "touched": Table(("touched",), _touched),
    "assumed": Table((), _assumed),
    "costs": Table(("speed", "touched", "memory"), _costs),
    "estimate": Table(("speed", "touched", "memory"), _estimate),
    "one-machine": Table(("speed", "touched", "memory"), _one_machine),
}


def render(parts: Parts) -> dict[str, str]:
    """Return the tables that the parts suffice for, in Markdown."""
    return {
        name: table.render(parts)
        for name, table in TABLES.items()
        if all(part in parts for part in table.parts)
    }
