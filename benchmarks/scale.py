"""Learning in shards, measured: speed on Dask's workers, bytes that travel, errors, memory.

What was measured is kept in scale.json whenever a part is done; parts that are not asked for stay
as they were. `--tables` brings the tables of docs/development/scale.md up to date instead, from
the figures kept beside this file; parts measured in a hurry stay as they were. An epoch of 10^9
rows over 100 machines is worked out from what the parts `speed`, `touched` and `memory` have
measured.

    python benchmarks/scale.py [--only speed traffic ...] [--quick] [--out results] [--tables]
"""

import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise, product
from math import ceil, log2, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import corpora
import numpy as np
from corpora import Shape
from exponents import growth_exponent
from matplotlib.figure import Figure
from scipy.sparse import csr_matrix
from tables import cell, fill_page, markdown, markdown_table, pivot
from timing import (
    FOLDER,
    apart,
    cannot_run,
    describe_machine,
    machine,
    parser_of,
    replace_text,
    resident_peak,
    show,
    timed,
    turns,
)

import sparsemargin
from sparsemargin.datasets import make_zipf_text
from sparsemargin.distributed import Round, fit_distributed
from sparsemargin.io.documents import hashed_pairs
from sparsemargin.io.reading import Reading
from sparsemargin.io.row_cache import write_cache
from sparsemargin.io.rows import LabelledRows
from sparsemargin.models.labels import LabelTable
from sparsemargin.plotting import theme
from sparsemargin.plotting.display import scale_epochs
from sparsemargin.plotting.style import line_style

Parts = dict[str, Any]
Learner = dict[str, Any]

FIGURES = FOLDER / "scale.json"
PAGE = FOLDER.parent / "docs" / "development" / "scale.md"
#: By the names that reports give them: what `fit_csr` and `fit_distributed` are told.
FIRST_ORDER: dict[str, Learner] = {
    f"{name}, p={p}": {"fit_intercept": False, "algo": algo, "p": p}
    for name, algo in (("p-norm", "pnorm"), ("ALMA", "alma"))
    for p in (2, 6)
}
SECOND_ORDER: dict[str, Learner] = {
    "Second-order": {"fit_intercept": False, "algo": "so", "max_updates": None, "alpha": None}
}
SEED = 0
N_RELEVANT, AMONG = 300, 1000
NOISE = 0.05
MEAN_NNZ = 50
# Of a block of a row cache.
BLOCK_ROWS = 4096
LABELS = [-1.0, 1.0]


#: 10^8 nonzeros.
LARGE = Shape("generated", 2_000_000, 50_000, 1_000_000, MEAN_NNZ)
SMALL = Shape("generated", 4_000, 1_000, 20_000, MEAN_NNZ)
#: As wide as features hashed to 24 bits.
WIDE = Shape("generated", 1_000_000, 1_000, 1 << 24, MEAN_NNZ)


class Problem(NamedTuple):
    """Rows to learn from, in an order that tells nothing, and rows to predict."""

    name: str
    X: csr_matrix
    y: np.ndarray
    X_test: csr_matrix
    y_test: np.ndarray

    def shards(self, n_shards: int) -> list[tuple[csr_matrix, np.ndarray]]:
        """Cut the training side, without a copy, into neighbouring rows, as many in each."""
        cuts = pairwise(np.linspace(0, self.X.shape[0], n_shards + 1).astype(int))
        return [(rows_between(self.X, start, stop), self.y[start:stop]) for start, stop in cuts]

    def caches(self, n_shards: int, folder: Path) -> list[str]:
        """The same shards as row caches, and their paths."""
        paths = [folder / f"{self.name}.{s}.{n_shards}.smcache" for s in range(n_shards)]
        for path, (X, y) in zip(paths, self.shards(n_shards), strict=True):
            _write_cache(path, X, y)
        return list(map(str, paths))


def rows_between(X: csr_matrix, start: int, stop: int) -> csr_matrix:
    """Some neighbouring rows, in the arrays of all."""
    first, last = X.indptr[[start, stop]]
    indptr = X.indptr[start : stop + 1] - first
    shape = stop - start, X.shape[1]
    return csr_matrix((X.data[first:last], X.indices[first:last], indptr), shape=shape)


def _write_cache(path: Path, X: csr_matrix, y: np.ndarray) -> None:
    reading = Reading(dtype=X.dtype, zero_based=True, n_features=X.shape[1])
    identity = {"reading": reading.settings()}
    codes = np.searchsorted(LABELS, y).astype(np.int32)
    table = LabelTable([f"{label:+.0f}" for label in LABELS], LABELS)

    def blocks() -> Iterator[LabelledRows]:
        span = {"lowest": int(X.indices.min()), "highest": int(X.indices.max())}
        for start in range(0, X.shape[0], BLOCK_ROWS):
            block = rows_between(X, start, min(start + BLOCK_ROWS, X.shape[0]))
            labels = codes[start : start + BLOCK_ROWS]
            yield LabelledRows(block.data, block.indices, block.indptr, labels, **span)

    for _ in write_cache(path, identity, X.dtype, False, blocks(), table):
        pass


def generated(shape: Shape) -> Problem:
    """Draw float32 rows of text without topics, and labels by a hidden target of few words.

    A row is positive where its words, times +1 or -1 for the target's, come to more than in the
    median row. One label in twenty of the training side is wrong, none of the test side's.
    """
    n, n_rows = shape.n_train, shape.n_train + shape.n_test
    X, _ = make_zipf_text(
        n_rows, shape.n_features, mean_nnz=MEAN_NNZ, topic_share=0.0, dtype=np.float32,
        random_state=0,
    )  # fmt: skip
    random = np.random.RandomState(1)
    rows_with = np.bincount(X.indices, minlength=shape.n_features)
    frequent = np.argsort(-rows_with, kind="stable")[:AMONG]
    target = np.zeros(shape.n_features, np.float32)
    target[random.choice(frequent, N_RELEVANT, replace=False)] = random.choice([-1, 1], N_RELEVANT)
    outputs = X @ target
    clean = np.where(outputs > np.median(outputs), 1, -1)
    y = np.where(random.random_sample(n_rows) < NOISE, -clean, clean)[:n]
    return Problem(shape.name, rows_between(X, 0, n), y, rows_between(X, n, n_rows), clean[n:])


def rcv1(
    choose: Callable[[corpora.Topics], corpora.Topics] = lambda topics: corpora.halves(topics)[1],
) -> tuple[Problem, list[str]]:
    """Load ten topics of the RCV1 sample, or those chosen, with a column of 0 and 1 for each, and
    their names."""
    reported = choose(corpora.load_topics())
    sides = reported.sides()
    y, y_test = (
        np.column_stack([y > 0 for y in labels.values()]).astype(np.int64)
        for labels in (sides.labels, sides.labels_test)
    )
    return Problem("RCV1", sides.X, y, sides.X_test, y_test), list(reported.labels)


def one_topic(problem: Problem, column: int) -> Problem:
    """The same rows with one of their topics against the rest."""
    y, y_test = (2 * each[:, column] - 1 for each in (problem.y, problem.y_test))
    return problem._replace(y=y, y_test=y_test)


N_EPOCHS = 4
N_SHARDS = (1, 2, 4, 8, 16, 32, 64)
RCV1_EPOCHS, LARGE_EPOCHS = 10, 5
# Second-order: quadratic in mistakes.
SECOND_ORDER_EPOCHS = 5


def rounds_of(shards: Any, learner: Learner, take: Callable[[Round], Any], **settings: Any) -> list:
    """What `take` says of each round of one fit."""
    found: list[Any] = []
    given = {"max_iter": N_EPOCHS, "random_state": SEED, "mixes_per_epoch": 1} | settings
    fit_distributed(shards, on_round=lambda done: found.append(take(done)), **given, **learner)
    return found


def curve(
    problem: Problem, n_shards: int, learner: Learner, mixing: str, n_epochs: int
) -> list[tuple[float, int]]:
    """After each epoch the share of labels predicted wrongly, and the epoch's corrections."""

    def take(done: Round) -> tuple[float, int]:
        wrong = done.model().predict(problem.X_test) != problem.y_test
        return float(np.mean(wrong)), sum(done.corrections)

    shards = problem.shards(n_shards)
    return rounds_of(shards, learner, take, max_iter=n_epochs, mixing=mixing)


def curves(
    problems: Sequence[Problem], learners: dict[str, Learner], n_epochs: int,
    n_shards: Sequence[int], by_errors: Sequence[int] = (),
) -> list[dict[str, Any]]:  # fmt: skip
    """Curves of every learner and number of shards, each the mean over the problems; of some
    numbers also those of mixing by errors. A model depends on the shards, not on where they are.
    """
    cases = [(n, mixing) for n in n_shards for mixing in ("uniform", "errors")
             if mixing == "uniform" or n in by_errors]  # fmt: skip
    entries = []
    for (name, learner), (shards, mixing) in product(learners.items(), cases):
        each = [curve(problem, shards, learner, mixing, n_epochs) for problem in problems]
        errors, corrections = np.round(np.mean(each, axis=0), 6).T.tolist()
        entries.append({"learner": name, "shards": shards, "mixing": mixing,
                        "errors": errors, "corrections": corrections})  # fmt: skip
    return entries


def of_rcv1(quick: bool) -> Parts:
    """Ten topics of the RCV1 sample; the figures are means over them."""
    problem, topics = rcv1()
    shards = N_SHARDS[:3] if quick else N_SHARDS
    n_epochs = 2 if quick else RCV1_EPOCHS
    columns = range(2 if quick else len(topics))
    alone = [one_topic(problem, column) for column in columns]
    return {
        "topics": topics, "n_train": problem.X.shape[0], "n_test": problem.X_test.shape[0],
        "curves": [
            *curves([problem], FIRST_ORDER, n_epochs, shards, shards[1:]),
            *curves(alone, SECOND_ORDER, min(n_epochs, SECOND_ORDER_EPOCHS), shards),
        ],
    }  # fmt: skip


AROW = {"algo": "arow", "r": 0.5, "max_loss": 1.0}
AROW_SHARDS, AROW_EPOCHS = (1, 2, 4, 8, 16), (1, 2, 3, 5)
#: Shares of the rows.
RARE = 0.002, 0.01


def rare(topics: corpora.Topics) -> corpora.Topics:
    """The rare topics of even rank."""
    shares = {name: np.mean(y > 0) for name, y in topics.labels.items()}
    found = [name for name, share in shares.items() if RARE[0] < share < RARE[1]]
    chosen = sorted(found, key=lambda name: (-shares[name], name))[1::2]
    return replace(topics, labels={name: topics.labels[name] for name in chosen})


def of_arow(quick: bool) -> list[dict[str, Any]]:
    """AROW on ten frequent topics of the RCV1 sample, and on rare ones; the figures are means."""
    n_shards = AROW_SHARDS[:2] if quick else AROW_SHARDS
    return [
        {"topics": kind, "n_topics": len(topics)} | told
        for kind, (problem, topics) in {"frequent": rcv1(), "rare": rcv1(rare)}.items()
        for told in curves([problem], {"AROW": AROW}, AROW_EPOCHS[-1], n_shards)
    ]


#: Texts, by what the tables call them: the file, and how many of it are taken.
TEXTS = {"questions": ("trec_train", 5452), "languages": ("languages", 12_000),
         "reviews": ("polarity", 10_662), "messages": ("sms", 5574)}  # fmt: skip
LEVEL_SHARDS, MIXES, TEXT_BITS = (1, 4, 16, 64), (1, 4, 16), 18


def texts(name: str) -> Problem:
    """Rows of texts, hashed words and pairs, three quarters of them to learn from."""
    from texts import read

    file, n_texts = TEXTS[name]
    told, labels = read(file)
    order = np.random.RandomState(SEED).permutation(len(told))[:n_texts]
    X = hashed_pairs(TEXT_BITS).transform([told[i] for i in order])
    y, n = np.asarray(labels)[order], 3 * len(order) // 4
    return Problem(name, rows_between(X, 0, n), y[:n], rows_between(X, n, len(y)), y[n:])


def some_generated() -> Problem:
    """Rows of two classes, drawn as `make_zipf_text` draws them."""
    X, y = make_zipf_text(20_000, 20_000, random_state=SEED)
    n = 15_000
    return Problem("zipf", rows_between(X, 0, n), y[:n], rows_between(X, n, len(y)), y[n:])


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "zipf": some_generated, **{name: partial(texts, name) for name in TEXTS},
    "RCV1, 10 topics": lambda: rcv1()[0], "RCV1, rare topics": lambda: rcv1(rare)[0],
}  # fmt: skip
#: Those that are cut into more shards still.
OF_MANY, MOST_SHARDS = ("zipf", "reviews", "RCV1, rare topics"), 256


def of_level(quick: bool) -> list[dict[str, Any]]:
    """The default learner over more and more shards: mixtures, and the ring where it is taken."""
    names = list(PROBLEMS)[: 1 if quick else None]
    shards = LEVEL_SHARDS[: 2 if quick else None]
    more = () if quick else (MOST_SHARDS,)
    return [
        entry for name in names
        for entry in level_of(name, (*shards, *(more if name in OF_MANY else ())))
    ]  # fmt: skip


def level_of(name: str, n_shards: Sequence[int] = LEVEL_SHARDS) -> Iterator[dict[str, Any]]:
    """That of one of the problems."""
    problem = PROBLEMS[name]()
    n_labels = problem.y.shape[1] if problem.y.ndim > 1 else len(np.unique(problem.y))
    for n in n_shards:
        ways = [("uniform", mixes) for mixes in MIXES] if n > 1 else [("uniform", 1)]
        if n_labels >= n > 1 and n_labels > 2:
            ways.append(("ring", 1))
        for mixing, mixes in ways:
            given = {"mixing": mixing, "mixes_per_epoch": mixes, "max_iter": "auto"}
            (*_, told) = rounds_of(problem.shards(n), {}, _level, **given)
            wrong = float(np.mean(told["model"].predict(problem.X_test) != problem.y_test))
            yield {
                "data": name, "shards": n, "mixing": mixing, "mixes": mixes, "error": wrong,
                "epochs": told["epoch"], "sent": told["sent"], "received": told["received"],
            }  # fmt: skip


def _level(done: Round) -> dict[str, Any]:
    return {"model": done.model(), "epoch": done.epoch, "sent": done.bytes_sent,
            "received": done.bytes_received}  # fmt: skip


def of_generated(quick: bool) -> Parts:
    """Generated rows of 10^8 nonzeros; mixed by errors where the shards are most."""
    problem = generated(SMALL if quick else LARGE)
    shards = N_SHARDS[:3] if quick else N_SHARDS
    n_epochs = 2 if quick else LARGE_EPOCHS
    return {
        "n_train": problem.X.shape[0], "n_test": problem.X_test.shape[0],
        "n_features": problem.X.shape[1], "n_entries": problem.X.nnz,
        "curves": curves([problem], FIRST_ORDER, n_epochs, shards, shards[-1:]),
    }  # fmt: skip


N_ROUNDS = 3
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
    alone = {"threads_per_worker": 1, "memory_limit": 0, "dashboard_address": None}
    with (
        LocalCluster(n_workers=n_workers, processes=True, **alone) as workers,
        Client(workers, set_as_default=False) as client,
    ):
        yield client


def _seconds(done: Round) -> dict[str, float]:
    return {"seconds": done.seconds, "mixing": done.mixing_seconds}


def on_workers(client: Any, shards: Any, learner: Learner) -> list[dict[str, float]]:
    """Seconds of the epochs after the first, of the mixture, and of the busiest worker."""
    from dask.distributed import get_task_stream

    with get_task_stream(client) as stream:
        rounds = rounds_of(shards, learner, _seconds, client=client)
    learned = _learned(stream.data, len(rounds))
    return [told | {"learning": s} for told, s in zip(rounds, learned, strict=True)][1:]


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
        busy: Counter[str] = Counter()
        for start, stop, worker in spans[first : first + n_shards]:
            busy[worker] += stop - start
        learned.append(max(busy.values()))
    return learned


def in_memory(problem: Problem, learner: Learner) -> list[dict[str, float]]:
    """What an epoch of `fit_csr` takes, which holds all rows in one matrix: its checks, too."""
    fit = partial(sparsemargin.fit_csr, problem.X, problem.y, max_iter=N_EPOCHS, random_state=SEED)
    return [{"seconds": timed(partial(fit, **learner))[0] / N_EPOCHS, "mixing": 0.0}]


def race(
    problem: Problem, learner: Learner, shards: Callable[[int], Any], one: Any, two: Any,
    n_rounds: int,
) -> dict[str, dict[str, float]]:  # fmt: skip
    """Let all contestants learn: the fastest epoch of each. Workers read caches in place."""
    contestants: dict[str, Callable[[], list[dict[str, float]]]] = {
        FIT_CSR: lambda: in_memory(problem, learner),
        ONE: lambda: rounds_of(shards(1), learner, _seconds)[1:],
        TWO: lambda: rounds_of(shards(2), learner, _seconds)[1:],
        ONE_WORKER: lambda: on_workers(one, shards(2), learner),
        TWO_WORKERS: lambda: on_workers(two, shards(2), learner),
    }
    if problem.name == "generated":
        contestants[MANY_SHARDS] = lambda: rounds_of(shards(MANY), learner, _seconds)[1:]
    epochs: dict[str, list[dict[str, float]]] = {name: [] for name in contestants}
    for _, name in turns(list(contestants), n_rounds):
        epochs[name] += contestants[name]()
    fastest = {name: min(of, key=lambda epoch: epoch["seconds"]) for name, of in epochs.items()}
    return {
        name: {key: round(value, 5) for key, value in of.items()} for name, of in fastest.items()
    }


def of_speed(quick: bool) -> list[dict[str, Any]]:
    """Seconds of an epoch: the most frequent topic of RCV1, if it is at hand, in the workers'
    memory, and generated rows; all learners that are quick enough on them."""
    entries: list[dict[str, Any]] = []
    with cluster(1) as one, cluster(2) as two, tempfile.TemporaryDirectory() as folder:

        def add(problem: Problem, learners: dict[str, Learner], shards: Any) -> None:
            for name, learner in learners.items():
                found = race(problem, learner, shards, one, two, 1 if quick else N_ROUNDS)
                entries.append(
                    {"data": problem.name, "learner": name, "n_train": problem.X.shape[0],
                     "n_features": problem.X.shape[1], "n_entries": problem.X.nnz,
                     "contestants": found}
                )  # fmt: skip

        try:
            topic = one_topic(rcv1()[0], 0)
            add(topic, FIRST_ORDER | SECOND_ORDER, topic.shards)
        except FileNotFoundError as error:
            print(f"RCV1 is left out: {error}")
        rows = generated(SMALL if quick else LARGE)
        paths = {n: rows.caches(n, Path(folder)) for n in (1, 2, MANY)}
        add(rows, FIRST_ORDER, paths.__getitem__)
    return entries


TRAFFIC_SHARDS = (2, 16)
DEVICES = Path("/proc/net/dev")


def loopback_bytes() -> int:
    """Those that the loopback interface has received since the machine was started."""
    lines = DEVICES.read_text().splitlines()
    counters = next(line.split(":")[1] for line in lines if line.strip().startswith("lo:"))
    return int(counters.split()[0])


def of_traffic(quick: bool) -> list[dict[str, Any]]:
    """Bytes of an epoch on two workers: those told, those of dense vectors, those of the interface.

    All go over the loopback interface; who has nobody else on it: ``unshare -rn sh -c "ip link set
    lo up; python benchmarks/scale.py --only traffic"``.
    """
    problem = generated(SMALL if quick else LARGE)
    entries = []
    with cluster(2) as client, tempfile.TemporaryDirectory() as folder:
        for n_shards in TRAFFIC_SHARDS:
            paths = problem.caches(n_shards, Path(folder))
            for name, learner in FIRST_ORDER.items():
                # Of whole vectors: theta to each worker; from each shard it and the average.
                vector = problem.X.shape[1] * value_bytes(learner)
                entries.append(
                    {"learner": name, "shards": n_shards, "n_features": problem.X.shape[1],
                     "dense": {"sent": vector, "received": 2 * vector * n_shards},
                     "epochs": _traffic_of(client, paths, learner)}
                )  # fmt: skip
    return entries


def _traffic_of(client: Any, paths: list[str], learner: Learner) -> list[dict[str, int]]:
    """For each epoch the bytes sent to each worker, received from all, and of the interface."""
    seen = [loopback_bytes()]

    def take(done: Round) -> dict[str, int]:
        seen.append(loopback_bytes())
        told = {"sent": done.bytes_sent, "received": done.bytes_received}
        return told | {"loopback": seen[-1] - seen[-2]}

    return rounds_of(paths, learner, take, client=client)


PLACE = 4
N_ROWS = (2_000, 8_000, 32_000, 128_000, 500_000)
N_ROWS_QUICK = (250, 500, 1_000, 2_000)


def value_bytes(learner: dict[str, Any]) -> int:
    """Of a coordinate of float32 rows' vectors."""
    return 4 if learner["p"] == 2 else 8


def law(entry: dict[str, Any]) -> dict[str, Any]:
    """The power of the rows that the coordinates grow with, where they are told one by one; the
    last two such points lead the line beyond them."""
    told = [not whole for whole in entry["whole"]]
    rows, found = (np.array(entry[key])[told] for key in ("rows", "coordinates"))
    fitted = growth_exponent(rows, found)
    tail = float(np.diff(np.log(found[-2:]))[0] / np.diff(np.log(rows[-2:]))[0])
    return {
        "exponent": fitted.slope, "standard_error": fitted.standard_error, "tail": tail,
        "last": [int(rows[-1]), int(found[-1])],
    }  # fmt: skip


def of_touched(quick: bool) -> list[dict[str, Any]]:
    """How many coordinates an epoch of a shard touches, as the shard grows.

    A place and a value travel for each coordinate of theta that has moved, and again for each of
    the average: the bytes of the third epoch tell, up to where the whole vectors are shorter.
    """
    cases = [(LARGE, (*N_ROWS, 1_000_000)), (WIDE, N_ROWS)]
    entries = []
    for shape, sizes in [(SMALL, N_ROWS_QUICK)] if quick else cases:
        problem = generated(shape)
        for name, learner in FIRST_ORDER.items():
            value, found = value_bytes(learner), []
            for n in sizes:
                starts = ((0, n), (n, 2 * n))
                shards = [(rows_between(problem.X, i, j), problem.y[i:j]) for i, j in starts]
                sent = rounds_of(shards, learner, lambda done: done.bytes_received, max_iter=3)
                found.append(sent[-1] // len(shards))
            entry = {
                "learner": name, "n_features": shape.n_features, "rows": list(sizes),
                "coordinates": [each // (2 * (PLACE + value)) for each in found],
                "whole": [each >= 2 * value * shape.n_features for each in found],
            }  # fmt: skip
            entries.append(entry | law(entry))
    return entries


DOCUMENTS, DOCUMENT_BITS = (500, 2000, 8000), 24
#: Of a coordinate that a shard of AROW has changed: two places, a step and a gain; and what the
#: mixture then tells of it: two places and two values.
UP_BYTES, DOWN_BYTES = 2 * PLACE + 8 + 4, 2 * (PLACE + 4)


def _busy(call: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds that this process was busy with a call, and what it gives."""
    began = time.process_time()
    found = call()
    return time.process_time() - began, found


def _first(pair: tuple[float, Any]) -> float:
    return pair[0]


def of_documents(quick: bool) -> dict[str, Any]:
    """What documents take that are hashed to 24 bits, words and pairs, and learned by AROW: made
    rows of by one core, learned from, changed coordinates, and their mixture."""
    from texts import read

    found = [read(file)[0] for file, _ in TEXTS.values()]
    told = np.concatenate(found)
    told = told[np.random.RandomState(SEED).permutation(len(told))]
    n_bytes, vectorizer = sum(len(each.encode()) for each in told), hashed_pairs(DOCUMENT_BITS)
    seconds, X = min((_busy(partial(vectorizer.transform, told)) for _ in range(3)), key=_first)
    y = np.random.RandomState(1).choice([-1, 1], X.shape[0])
    entries = []
    for n in DOCUMENTS[: 2 if quick else None]:
        shards = [(rows_between(X, 0, n), y[:n]), (rows_between(X, n, 2 * n), y[n : 2 * n])]

        def take(done: Round) -> tuple[float, int]:
            return done.mixing_seconds / done.seconds, done.bytes_received

        tried = [_busy(partial(rounds_of, shards, AROW, take, max_iter=1)) for _ in range(N_ROUNDS)]
        busy, ((share, received),) = min(tried, key=_first)
        fit = partial(sparsemargin.fit_csr, rows_between(X, 0, 2 * n), y[: 2 * n], max_iter=1)
        learning, _ = min((_busy(partial(fit, **AROW)) for _ in range(N_ROUNDS)), key=_first)
        entries.append({
            "nonzeros": X.indptr[2 * n] / 2, "coordinates": received / 2 / UP_BYTES,
            "learning": learning, "mixing": share * busy, "all": (1 - share) * busy,
        })  # fmt: skip
    first, last = entries[-2:]
    grown = {name: last[name] - first[name] for name in last}
    tail = log2(last["coordinates"] / first["coordinates"])
    tail /= log2(last["nonzeros"] / first["nonzeros"])
    return {
        "bytes_a_second": n_bytes / seconds, "nonzeros_a_byte": X.nnz / n_bytes, "tail": tail,
        "nonzeros": last["nonzeros"], "coordinates": last["coordinates"],
        "nonzero": grown["learning"] / (2 * grown["nonzeros"]),
        "prepared": (grown["all"] - grown["learning"]) / (2 * grown["nonzeros"]),
        "mixed": grown["mixing"] / (2 * grown["coordinates"]),
    }  # fmt: skip


MEMORY_FEATURES = (1 << 22, 1 << 24)
MEMORY_ROWS, ROW_NNZ = 1_000, 20


def peak_of_a_fit(name: str, n_features: int) -> int:
    """Run apart: bytes held at most, after a fit of three epochs over two shards."""
    columns = np.random.RandomState(0).randint(
        n_features, size=MEMORY_ROWS * ROW_NNZ, dtype=np.int32
    )
    values = np.ones(len(columns), np.float32)
    starts = np.arange(0, len(columns) + 1, ROW_NNZ, dtype=np.int32)
    X = csr_matrix((values, columns, starts), shape=(MEMORY_ROWS, n_features))
    y = np.where(np.arange(MEMORY_ROWS) % 2, 1, -1)
    shards = [(X[start::2], y[start::2]) for start in (0, 1)]
    fit_distributed(shards, max_iter=3, random_state=0, **FIRST_ORDER[name])
    return resident_peak()


def of_memory(quick: bool) -> dict[str, float]:
    """Bytes of a coordinate, by learner, of who learns and mixes; few rows leave updates short."""
    few, many = (n >> (4 if quick else 0) for n in MEMORY_FEATURES)
    return {
        name: (apart(peak_of_a_fit, name, many) - apart(peak_of_a_fit, name, few)) / (many - few)
        for name in FIRST_ORDER
    }


# Assumed: bytes a second of each machine's network interface and of its disk, and interfaces of one
# machine that an update goes through one after the other, the scheduler's and the client's.
ALL_ROWS, MACHINES, ROW = 10**9, 100, 50
NETWORK, DISK, HOPS = 1.25e9, 1e9, 2
SHARD_ROWS = ALL_ROWS // MACHINES
#: Of a row cache: a value and a column for each nonzero; a pointer and a label a row.
CACHE_BYTES = SHARD_ROWS * (8 * ROW + 8)


def estimate(touched: dict[str, Any], speed: dict[str, Any], held: float) -> dict[str, Any]:
    """Work out an epoch over all machines, ``best`` being the number of machines of the shortest.

    With more shards the same nonzeros are learned from, but more coordinates: so the costs of each
    are told apart. A shard sends places and values, or whole vectors where these are shorter; the
    law goes on as it was between the last two sizes told one by one.
    """
    of, n_of = speed["contestants"], speed["n_features"]
    learned, among_many = (of[name]["seconds"] - of[name]["mixing"] for name in (TWO, MANY_SHARDS))
    coordinate = max(0.0, (among_many - learned) / ((MANY - 2) * n_of))
    nonzero = (learned - 2 * n_of * coordinate) / speed["n_entries"]
    # Wherever the two updates come from, the same process mixes them.
    mixed = min(of[name]["mixing"] for name in (TWO, ONE_WORKER, TWO_WORKERS)) / (2 * n_of)

    n, value = touched["n_features"], value_bytes(FIRST_ORDER[speed["learner"]])
    rows, coordinates = touched["last"]
    coordinates *= (SHARD_ROWS / rows) ** touched["tail"]
    update = 2 * min((PLACE + value) * coordinates, value * n)
    learning, sending = nonzero * SHARD_ROWS * ROW, HOPS * update / NETWORK
    # Machines that have the mixture pass it on, so that twice as many have it each time.
    ways = HOPS + ceil(log2(MACHINES))
    seconds = {
        "learning": learning, "coordinates": coordinate * n, "up": MACHINES * sending,
        "mixing": MACHINES * mixed * n, "down": ways * value * n / NETWORK,
    }  # fmt: skip
    total, alone, reading = (
        sum(seconds.values()),
        MACHINES * learning,
        MACHINES * CACHE_BYTES / DISK,
    )
    return touched | seconds | {
        "nonzero": nonzero, "coordinate": coordinate, "mixed": mixed, "held": held, "value": value,
        "seconds": total, "update": update, "worker": held * n + CACHE_BYTES,
        "client": held * n + MACHINES * update, "alone": alone, "reading": reading,
        "times": max(alone, reading) / total,
        "best": round(sqrt(learning * MACHINES / (sending + mixed * n))),
    }  # fmt: skip


DOCUMENT_BYTES, CORES = 1000, 16


def of_many_documents(costs: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Work out an epoch of 10^9 and 10^10 documents, by workers of a core each, and by one machine
    of 16 cores, of which all make rows and one learns."""
    for n_documents, workers in product((10**9, 10**10), (10, 100, 1000)):
        n_bytes = n_documents * DOCUMENT_BYTES
        nonzeros = n_bytes * costs["nonzeros_a_byte"]
        reading, learning = n_bytes / costs["bytes_a_second"], nonzeros * costs["nonzero"]
        prepared = nonzeros * costs["prepared"]
        told = {"documents": n_documents, "workers": workers,
                "rows": (reading + prepared) / workers,
                "learning": learning / workers,
                "alone": max(reading / CORES, learning)}  # fmt: skip
        for mixes in (1, 16):
            touched = (
                costs["coordinates"]
                * (nonzeros / workers / mixes / costs["nonzeros"]) ** costs["tail"]
            )
            touched = min(touched, 1 << DOCUMENT_BITS)
            up = workers * touched * (HOPS * UP_BYTES / NETWORK + costs["mixed"])
            changed = min(workers * touched, 1 << DOCUMENT_BITS)
            down = (HOPS + ceil(log2(workers))) * changed * DOWN_BYTES / NETWORK
            told[f"mixing_{mixes}"] = mixes * (up + down)
            told[f"update_{mixes}"] = touched * UP_BYTES
        yield told


def _documents(parts: Parts) -> str:
    rows = [
        told | {"times": told["alone"] / (told["rows"] + told["learning"] + told["mixing_1"])}
        for told in of_many_documents(parts["documents"])
    ]
    return markdown([
        ("documents", "{documents:,}"), ("workers", "{workers:,}"),
        ("making rows, once, s", "{rows:,.0f}"), ("learning, s", "{learning:,.0f}"),
        ("one mixture, s", "{mixing_1:,.1f}"), ("16, s", "{mixing_16:,.1f}"),
        ("MB up, each, of one", "{update_1:.0D}"), ("of 16", "{update_16:.0D}"),
        ("one machine, s", "{alone:,.0f}"),
        ("first epoch, one mixture, against it", "{times:.1f} x"),
    ])(rows)  # fmt: skip


def _document_costs(parts: Parts) -> str:
    costs = parts["documents"]
    return markdown_table(["measured of documents", ""], {
        "rows made by a core": f"{costs['bytes_a_second'] / 1e6:.1f} MB/s",
        "nonzeros of 1,000 bytes": f"{1000 * costs['nonzeros_a_byte']:.0f}",
        "learning, as by `fit_csr`": f"{1e9 * costs['nonzero']:.1f} ns a nonzero",
        "beside it over shards, once": f"{1e9 * costs['prepared']:.0f} ns a nonzero",
        "changed by a shard": f"{costs['coordinates']:,.0f} coordinates by "
                              f"{costs['nonzeros']:,.0f} nonzeros, to the power of "
                              f"{costs['tail']:.2f}",
        "a coordinate that has changed": f"{UP_BYTES} bytes up, {DOWN_BYTES} down",
        "mixing": f"{1e9 * costs['mixed']:.0f} ns a coordinate and update",
    }.items())  # fmt: skip


def _estimates(parts: Parts) -> list[dict[str, Any]]:
    """One for each learner and number of features whose touched coordinates were measured."""
    speeds = {each["learner"]: each for each in parts["speed"] if each["data"] == "generated"}
    return [
        estimate(touched, speeds[touched["learner"]], parts["memory"][touched["learner"]])
        for touched in parts["touched"]
    ]


def _speed(parts: Parts) -> str:
    rows = []
    for entry in parts["speed"]:
        one, two = (entry["contestants"][name] for name in (ONE_WORKER, TWO_WORKERS))
        rest = two["seconds"] - two["learning"] - two["mixing"]
        rows.append(entry | {"ratio": one["seconds"] / two["seconds"], "two": two, "rest": rest})
    headers = {
        FIT_CSR: "`fit_csr`", ONE: "one shard, in this process", TWO: "two shards",
        ONE_WORKER: "two shards, one worker", TWO_WORKERS: "two workers",
    }  # fmt: skip
    return markdown([
        ("seconds of an epoch", "{data}, {learner}"),
        *((header, f"{{contestants[{name}][seconds]:.3f}}") for name, header in headers.items()),
        ("speed-up", "{ratio:.2f} x"),
        ("on two: learning + mixing + the rest",
         "{two[learning]:.3f} + {two[mixing]:.3f} + {rest:.3f}"),
    ])(rows)  # fmt: skip


def _traffic(parts: Parts) -> str:
    rows = []
    for entry in parts["traffic"]:
        first, last, shards = entry["epochs"][0], entry["epochs"][-1], entry["shards"]
        rows.append(
            entry | {"first": first, "last": last}
            | {"from_first": first["received"] / shards, "from_last": last["received"] / shards}
            | {"from_dense": entry["dense"]["received"] / shards}
            # Down from the client to the scheduler and on to both workers, up from the workers to
            # the scheduler and on to the client.
            | {"hops": 3 * last["sent"] + 2 * last["received"]}
        )  # fmt: skip
    n = len(parts["traffic"][0]["epochs"])
    return markdown([
        ("MB an epoch", "{learner}"), ("shards", "{shards}"),
        ("to a worker, epoch 1", "{first[sent]:.2D}"), (f"epoch {n}", "{last[sent]:.2D}"),
        ("whole vector", "{dense[sent]:.0D}"), ("from a shard, epoch 1", "{from_first:.2D}"),
        (f"epoch {n}", "{from_last:.2D}"), ("whole vectors", "{from_dense:.0D}"),
        ("in all, every hop", "{hops:.1D}"), ("the interface counted", "{last[loopback]:.1D}"),
    ])(rows)  # fmt: skip


def _header(curve: dict[str, Any]) -> str:
    return "1 shard" if curve["shards"] == 1 else str(curve["shards"])


def _shards(parts: Parts, name: str) -> str:
    errors = lambda curve: f"{100 * curve['errors'][0]:.2f}, {100 * curve['errors'][-1]:.2f}"  # noqa: E731
    found = sorted(
        parts[name]["curves"],
        key=lambda curve: (_LEARNERS.index(curve["learner"]), curve["mixing"] == "errors"),
    )
    # All numbers of shards, though of mixing by errors there may be few.
    return pivot(
        [("test error %", "{learner}"), ("mixing", "{mixing}"),
         ("after epochs", lambda curve: f"1, {len(curve['errors'])}")],
        "shards",
        [(_header, errors)],
    )(found)  # fmt: skip


_LEARNERS = [*FIRST_ORDER, *SECOND_ORDER]


def _arow(parts: Parts) -> str:
    rows = [
        entry | {"epochs": epochs, "error": 100 * entry["errors"][epochs - 1]}
        for entry in parts["arow"] for epochs in AROW_EPOCHS
    ]  # fmt: skip
    return pivot(
        [("test error %, mean over", "{n_topics} {topics} topics"), ("after epochs", "{epochs}")],
        "shards",
        [(_header, "{error:.2f}")],
    )(rows)


def _level_table(parts: Parts) -> str:
    """Errors of the default learner, and the traffic of an epoch."""

    def way(entry: dict[str, Any]) -> str:
        if entry["shards"] == 1:
            return ""
        return "ring" if entry["mixing"] == "ring" else f"{entry['mixes']} mixtures"

    alone = {each["data"]: each for each in parts["level"] if each["shards"] == 1}
    rows = [
        each | {"way": way(each), "one": 100 * alone[each["data"]]["error"],
                "percent": 100 * each["error"],
                "traffic": (each["shards"] * each["sent"] + each["received"]) / 1e6}
        for each in parts["level"] if each["shards"] > 1
    ]  # fmt: skip
    return pivot(
        [("test error % (MB an epoch)", "{data}"), ("an epoch", "{way}"), ("1 shard", "{one:.2f}")],
        "shards",
        [(lambda each: str(each["shards"]), "{percent:.2f} ({traffic:.1f})")],
    )(rows)


def _touched(parts: Parts) -> str:
    entries = parts["touched"]
    sizes = max((entry["rows"] for entry in entries), key=len)
    rows = []
    for entry in entries:
        told = zip(entry["coordinates"], entry["whole"], strict=True)
        cells = ["whole" if whole else f"{found:,}" for found, whole in told]
        cells += [""] * (len(sizes) - len(cells))
        law = "{exponent:.2f} ± {standard_error:.2f}", "{tail:.2f}"
        rows.append([cell(_WHO, entry), *cells, *(cell(each, entry) for each in law)])
    headers = ["touched by a shard of so many rows", *(f"{n:,}" for n in sizes),
               "to the power of", "between the last two"]  # fmt: skip
    return markdown_table(headers, rows)


def _assumed(parts: Parts) -> str:
    rows = {
        "rows, machines, shards": f"{ALL_ROWS:,} over {MACHINES}, a shard each",
        "nonzeros a row": f"{ROW}, float32, as in the generated rows",
        "a machine's row cache": f"{CACHE_BYTES / 1e9:.2f} GB: in memory after epoch 1",
        "disk": f"{DISK / 1e9:g} GB/s: epoch 1 waits {CACHE_BYTES / DISK:.1f} s for it at most",
        "network": f"{8 * NETWORK / 1e9:g} Gbit/s at every machine",
        "an update's way": f"through the scheduler: {HOPS} interfaces, one after the other, that "
                           "all updates share",
        "the mixture's way": "through the scheduler, then from machine to machine, to twice as "
                             "many each time",
    }  # fmt: skip
    return markdown_table(["assumed", ""], rows.items())


_WHO = "{learner}, {n_features:,} features"
_COSTS = [
    ("measured", "{learner}"), ("ns a nonzero", "{nonzero:.2n}"),
    ("ns a coordinate and shard", "{coordinate:.1n}"),
    ("mixing, ns a coordinate and update", "{mixed:.1n}"),
    ("memory, bytes a coordinate", "{held:.0f}"), ("bytes a value", "{value}"),
]  # fmt: skip
_ESTIMATE = [
    ("seconds of an epoch", _WHO), ("learning", "{learning:.1f}"),
    ("whole vectors", "{coordinates:.2f}"), ("MB up, each", "{update:.0D}"), ("up", "{up:.1f}"),
    ("mixing", "{mixing:.1f}"), ("down", "{down:.1f}"), ("in all", "**{seconds:.1f}**"),
    ("GB, worker", "{worker:.1G}"), ("GB, client", "{client:.1G}"),
    ("machines for the shortest epoch", "{best:,}"),
]  # fmt: skip
_ONE_MACHINE = [
    ("all rows on one machine", _WHO), ("learning, s", "{alone:.0f}"),
    ("reading, s", "{reading:.0f}"), ("100 machines", "{times:.0f} x"),
]  # fmt: skip


def _costs(parts: Parts) -> str:
    return markdown(_COSTS)({each["learner"]: each for each in _estimates(parts)}.values())


_WORKED_OUT = ("speed", "touched", "memory")
#: The parts that the tables of docs/development/scale.md tell of, and what makes them.
TABLES: dict[str, tuple[tuple[str, ...], Callable[[Parts], str]]] = {
    "speed": (("speed",), _speed), "traffic": (("traffic",), _traffic),
    "shards-rcv1": (("rcv1",), partial(_shards, name="rcv1")),
    "shards-generated": (("generated",), partial(_shards, name="generated")),
    "arow": (("arow",), _arow), "level": (("level",), _level_table),
    "document-costs": (("documents",), _document_costs),
    "documents": (("documents",), _documents),
    "touched": (("touched",), _touched), "assumed": ((), _assumed),
    "costs": (_WORKED_OUT, _costs),
    "estimate": (_WORKED_OUT, lambda parts: markdown(_ESTIMATE)(_estimates(parts))),
    "one-machine": (_WORKED_OUT, lambda parts: markdown(_ONE_MACHINE)(_estimates(parts))),
}  # fmt: skip


def render(parts: Parts) -> dict[str, str]:
    """Return the tables that the parts suffice for, in Markdown."""
    return {
        name: table(parts)
        for name, (needed, table) in TABLES.items()
        if all(part in parts for part in needed)
    }


DRAWN = {"rcv1": "RCV1, ten topics", "generated": "generated, $10^8$ nonzeros"}
DRAWN_SHARDS = (1, 4, 16, 64)


def draw_pictures(folder: Path) -> None:
    """Draw the picture from the figures that are kept, on light ground and on dark."""
    figures = figures_of(FIGURES)
    for ground in ("light", "dark"):
        with theme(ground):
            _draw(figures).savefig(folder / f"scale-{ground}.svg")


def _draw(figures: dict[str, Any]) -> Figure:
    """Draw test error over epochs: a row for each kind of rows, a panel for each learner."""
    figure = Figure(figsize=(3.1 * len(FIRST_ORDER), 2.9 * len(DRAWN)), layout="constrained")
    panels = figure.subplots(len(DRAWN), len(FIRST_ORDER), squeeze=False)
    for (name, told), row in zip(DRAWN.items(), panels, strict=True):
        for learner, axes in zip(FIRST_ORDER, row, strict=True):
            for curve in figures[name]["curves"]:
                chosen = curve["learner"] == learner and curve["mixing"] == "uniform"
                if chosen and (n := curve["shards"]) in DRAWN_SHARDS:
                    epochs = range(1, len(curve["errors"]) + 1)
                    style = line_style(axes, len(epochs), {"label": f"{n} shard{'s' * (n > 1)}"})
                    axes.plot(epochs, [100 * error for error in curve["errors"]], **style)
            scale_epochs(axes, list(epochs))
            axes.set(title=learner, xlabel="epochs")
        row[0].set_ylabel(f"{told}\ntest error (%)")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


PARTS: dict[str, Callable[[bool], Any]] = {
    "level": of_level, "documents": of_documents, "rcv1": of_rcv1, "arow": of_arow,
    "generated": of_generated, "touched": of_touched,
    "memory": of_memory, "traffic": of_traffic, "speed": of_speed,
}  # fmt: skip


def write(path: Path, parts: dict[str, Any]) -> None:
    """Write the figures of the parts, a line each where there are several."""
    told = ",\n".join(f'"{name}": {_lines(part)}' for name, part in parts.items())
    replace_text(path, f'{{"machine": {json.dumps(machine())},\n"parts": {{\n{told}\n}}}}\n')


def _lines(value: Any) -> str:
    """JSON, the entries of a list in lines of their own."""
    if isinstance(value, dict):
        told = (f"{json.dumps(key)}: {_lines(each)}" for key, each in value.items())
        return f"{{{', '.join(told)}}}"
    if isinstance(value, list) and isinstance(value[0], dict):
        entries = ",\n".join(map(json.dumps, value))
        return f"[\n{entries}\n]"
    return json.dumps(value)


def read(path: Path) -> dict[str, Any]:
    """The parts that a file has, where it is there."""
    return json.loads(path.read_text())["parts"] if path.exists() else {}


def figures_of(path: Path) -> dict[str, Any]:
    """What was measured, without how."""
    return {name: part["figures"] for name, part in read(path).items()}


def bring_up_to_date(figures: Path) -> None:
    """Keep what was measured in full, and make the tables of the page."""
    new = {name: part for name, part in read(figures).items() if not part["quick"]}
    if new:
        parts = read(FIGURES) | new
        write(FIGURES, {name: parts[name] for name in PARTS if name in parts})
    fill_page(PAGE, render(figures_of(FIGURES)))


def main() -> None:
    """Measure the parts asked for, or make the tables."""
    parser = parser_of(__doc__, "results")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--quick", action="store_true", help="small sizes: a minute")
    parser.add_argument(
        "--tables", action="store_true", help="make the tables of docs/development/scale.md"
    )
    options = parser.parse_args()
    path = options.out / "scale.json"
    if options.tables:
        bring_up_to_date(path)
        return
    print(describe_machine())
    parts = read(path)
    for name in options.only:
        parts[name] = {"quick": options.quick, "figures": PARTS[name](options.quick)}
        write(path, {each: parts[each] for each in PARTS if each in parts})
        show(name, parts[name])
    print(f"\nwritten: {path}")


if __name__ == "__main__":
    main()
