"""Seconds of an epoch, on one machine: in one process, on one Dask worker, and on two.

The same two shards make the same model each time. Rows of RCV1 lie in the workers' memory; the
generated ones in row caches, which the workers read where they are, from memory by then. What is
told is the fastest of the epochs after the first; contestants take turns.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import scale_data
from measure import cannot_run, in_turn, text_table, timed
from scale_data import Problem
from scale_learners import FIRST_ORDER, SECOND_ORDER, SEED

import sparsemargin
from sparsemargin.distributed import Round, fit_distributed

N_EPOCHS, N_ROUNDS = 4, 3
MANY = 64
FIT_CSR, ONE = "fit_csr", "one shard, this process"
TWO, MANY_SHARDS = "two shards, this process", f"{MANY} shards, this process"
ONE_WORKER, TWO_WORKERS = "two shards, one worker", "two shards, two workers"


@contextmanager
def cluster(n_workers: int) -> Iterator[Any]:
    """A client of so many processes of one thread each."""
    try:
        from dask.distributed import Client, LocalCluster
    except ImportError as error:
        cannot_run(f"{error}: pip install 'sparsemargin[distributed]'")
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            memory_limit=0,
            dashboard_address=None,
        ) as workers,
        Client(workers, set_as_default=False) as client,
    ):
        yield client


def rounds_of(
    shards: Any, learner: dict[str, Any], client: Any = None, n_epochs: int = N_EPOCHS
) -> list[Round]:
    """The rounds of one fit."""
    rounds: list[Round] = []
    fit_distributed(
        shards, client=client, max_iter=n_epochs, random_state=SEED, on_round=rounds.append,
        **learner,
    )  # fmt: skip
    return rounds


def here(shards: Any, learner: dict[str, Any]) -> list[dict[str, float]]:
    """Seconds of the epochs after the first, and how much of them went into the mixture."""
    return [
        {"seconds": each.seconds, "mixing": each.mixing_seconds}
        for each in rounds_of(shards, learner)[1:]
    ]


def on_workers(client: Any, shards: Any, learner: dict[str, Any]) -> list[dict[str, float]]:
    """As `here`, with the seconds that the busiest worker learned."""
    from dask.distributed import get_task_stream

    with get_task_stream(client) as stream:
        rounds = rounds_of(shards, learner, client)
    learned = _learned(stream.data, len(rounds))
    return [
        {"seconds": each.seconds, "mixing": each.mixing_seconds, "learning": learning}
        for each, learning in zip(rounds[1:], learned[1:], strict=True)
    ]


def _learned(tasks: Sequence[dict[str, Any]], n_rounds: int) -> list[float]:
    """Seconds that the busiest worker learned in each round."""
    spans = sorted(
        (span["start"], span["stop"], task["worker"])
        for task in tasks
        if "learn_epoch" in str(task["key"])
        for span in task["startstops"]
        if span["action"] == "compute"
    )
    n_shards = len(spans) // n_rounds
    learned = []
    for first in range(0, len(spans), n_shards):
        busy: dict[str, float] = {}
        for start, stop, worker in spans[first : first + n_shards]:
            busy[worker] = busy.get(worker, 0.0) + stop - start
        learned.append(max(busy.values()))
    return learned


def in_memory(problem: Problem, learner: dict[str, Any]) -> list[dict[str, float]]:
    """What an epoch of `fit_csr` takes, which holds all rows in one matrix: its checks, too."""
    seconds, _ = timed(
        lambda: sparsemargin.fit_csr(
            problem.X, problem.y, max_iter=N_EPOCHS, random_state=SEED, **learner
        )
    )
    return [{"seconds": seconds / N_EPOCHS, "mixing": 0.0}]


def race(
    problem: Problem, learner: dict[str, Any], shards: Callable[[int], Any], one: Any, two: Any,
    n_rounds: int, *, many: bool,
) -> dict[str, dict[str, float]]:  # fmt: skip
    """Let all contestants learn, and give the fastest epoch of each and the median of all."""
    contestants: dict[str, Callable[[], list[dict[str, float]]]] = {
        FIT_CSR: lambda: in_memory(problem, learner),
        ONE: lambda: here(shards(1), learner),
        TWO: lambda: here(shards(2), learner),
        ONE_WORKER: lambda: on_workers(one, shards(2), learner),
        TWO_WORKERS: lambda: on_workers(two, shards(2), learner),
    }
    if many:
        contestants[MANY_SHARDS] = lambda: here(shards(MANY), learner)
    epochs: dict[str, list[dict[str, float]]] = {name: [] for name in contestants}
    for number in range(n_rounds):
        for name in in_turn(list(contestants), number):
            epochs[name] += contestants[name]()
    return {name: _summary(found) for name, found in epochs.items()}


def _summary(epochs: list[dict[str, float]]) -> dict[str, float]:
    """The fastest of the epochs, and the median of all."""
    fastest = min(epochs, key=lambda epoch: epoch["seconds"])
    told = fastest | {"median": median(epoch["seconds"] for epoch in epochs)}
    return {name: round(seconds, 5) for name, seconds in told.items()}


def measure(quick: bool) -> list[dict[str, Any]]:
    """Both kinds of rows, and all learners that are quick enough on them."""
    entries: list[dict[str, Any]] = []
    n_rounds = 1 if quick else N_ROUNDS
    with cluster(1) as one, cluster(2) as two, tempfile.TemporaryDirectory() as folder:

        def add(problem: Problem, learners: dict[str, Any], shards: Any, *, many: bool) -> None:
            for name, learner in learners.items():
                found = race(problem, learner, shards, one, two, n_rounds, many=many)
                entries.append(_entry(problem, name, found))

        for topics in _rcv1():
            add(topics, FIRST_ORDER | SECOND_ORDER, topics.shards, many=False)
        rows = scale_data.generated(scale_data.SMALL if quick else scale_data.LARGE)
        paths = {n: rows.caches(n, Path(folder)) for n in (1, 2, MANY)}
        add(rows, FIRST_ORDER, paths.__getitem__, many=True)
    return entries


def _rcv1() -> Iterator[Problem]:
    """The most frequent of the topics, if they are at hand."""
    try:
        problem, _ = scale_data.rcv1()
    except FileNotFoundError as error:
        print(f"RCV1 is left out: {error}")
        return
    yield scale_data.one_topic(problem, 0)


def _entry(problem: Problem, name: str, found: dict[str, Any]) -> dict[str, Any]:
    return {
        "data": problem.name, "learner": name, "n_train": problem.X.shape[0],
        "n_features": problem.X.shape[1], "n_entries": problem.X.nnz, "contestants": found,
    }  # fmt: skip


def show(entries: Sequence[dict[str, Any]]) -> None:
    """Print seconds of an epoch, and how they are spent."""
    headers = [("", ""), ("s an epoch", ".3f"), ("median", ".3f"), ("learning", ".3f"),
               ("mixing", ".3f")]  # fmt: skip
    for entry in entries:
        rows = [
            [name, each["seconds"], each["median"],
             each.get("learning", each["seconds"] - each["mixing"]), each["mixing"]]
            for name, each in entry["contestants"].items()
        ]  # fmt: skip
        print(f"\n{entry['data']}, {entry['learner']}\n{text_table(headers, rows)}", flush=True)
