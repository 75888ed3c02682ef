"""Distributed training, measured: errors, bytes transferred, and time on Dask's workers.

The results are stored in scale.json after each part; parts that are not selected are kept.
`--tables` instead updates the tables of docs/development/scale.md from the figures kept next to
this file; parts of quick runs are ignored. An epoch of 10^9 documents over many workers is
extrapolated from the results of the part `documents`.

    python benchmarks/scale.py [--only level workers ...] [--quick] [--out results] [--tables]
"""

import json
import os
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise, product
from math import ceil, log2
from pathlib import Path
from typing import Any, NamedTuple

import corpora
import numpy as np
from corpora import Shape
from matplotlib.figure import Figure
from scipy.sparse import csr_matrix
from tables import fill_page, markdown, markdown_table, pivot
from timing import (
    FOLDER,
    cannot_run,
    describe_machine,
    machine,
    parser_of,
    replace_text,
    show,
    turns,
)

import sparsemargin
from papers.curves import scale_epochs
from sparsemargin.datasets import make_zipf_text
from sparsemargin.distributed import Round, fit_distributed
from sparsemargin.genomes import CellNormalizer
from sparsemargin.plotting import theme
from sparsemargin.plotting.style import line_style
from sparsemargin.streaming.learn_texts import hashed_pairs

Parts = dict[str, Any]
Learner = dict[str, Any]

FIGURES = FOLDER / "scale.json"
PAGE = FOLDER.parent / "docs" / "development" / "scale.md"
#: The parameters of `fit_csr` and `fit_distributed`, by the names used in reports.
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


#: 10^8 nonzeros.
LARGE = Shape("generated", 2_000_000, 50_000, 1_000_000, MEAN_NNZ)
SMALL = Shape("generated", 4_000, 1_000, 20_000, MEAN_NNZ)


class Problem(NamedTuple):
    """Training rows in random order, and test rows."""

    name: str
    X: csr_matrix
    y: np.ndarray
    X_test: csr_matrix
    y_test: np.ndarray

    def shards(self, n_shards: int) -> list[tuple[csr_matrix, np.ndarray]]:
        """Cut the training set, without a copy, into contiguous shards of equal size."""
        cuts = pairwise(np.linspace(0, self.X.shape[0], n_shards + 1).astype(int))
        return [(rows_between(self.X, start, stop), self.y[start:stop]) for start, stop in cuts]


def rows_between(X: csr_matrix, start: int, stop: int) -> csr_matrix:
    """Contiguous rows as views of the arrays."""
    first, last = X.indptr[[start, stop]]
    indptr = X.indptr[start : stop + 1] - first
    shape = stop - start, X.shape[1]
    return csr_matrix((X.data[first:last], X.indices[first:last], indptr), shape=shape)


def generated(shape: Shape) -> Problem:
    """Draw float32 rows of text without topics, and labels by a hidden target of few words.

    A row is positive if the sum of its words, times +1 or -1 for the target's words, exceeds that
    of the median row. 5 % of the training labels are wrong, and none of the test labels.
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
    """Load ten topics of the RCV1 sample, or the selected ones, with an indicator column for each,
    and their names."""
    reported = choose(corpora.load_topics())
    sides = reported.sides()
    y, y_test = (
        np.column_stack([y > 0 for y in labels.values()]).astype(np.int64)
        for labels in (sides.labels, sides.labels_test)
    )
    return Problem("RCV1", sides.X, y, sides.X_test, y_test), list(reported.labels)


def one_topic(problem: Problem, column: int) -> Problem:
    """Use the same rows with one of their topics against the rest."""
    y, y_test = (2 * each[:, column] - 1 for each in (problem.y, problem.y_test))
    return problem._replace(y=y, y_test=y_test)


N_EPOCHS = 4
N_SHARDS = (1, 2, 4, 8, 16, 32, 64)
RCV1_EPOCHS, LARGE_EPOCHS = 10, 5
# The cost of second-order methods is quadratic in the mistakes.
SECOND_ORDER_EPOCHS = 5


def rounds_of(shards: Any, learner: Learner, take: Callable[[Round], Any], **settings: Any) -> list:
    """The values of `take` for each round of one fit."""
    found: list[Any] = []
    given = {"max_iter": N_EPOCHS, "random_state": SEED, "mixes_per_epoch": 1} | settings | learner
    fit_distributed(shards, on_round=lambda done: found.append(take(done)), **given)
    return found


def curve(
    problem: Problem, n_shards: int, learner: Learner, n_epochs: int
) -> list[tuple[float, int]]:
    """The share of wrong predictions after each epoch, and the corrections of the epoch."""

    def take(done: Round) -> tuple[float, int]:
        wrong = done.model().predict(problem.X_test) != problem.y_test
        return float(np.mean(wrong)), sum(done.corrections)

    shards = problem.shards(n_shards)
    return rounds_of(shards, learner, take, max_iter=n_epochs, mixing="uniform")


def curves(
    problems: Sequence[Problem], learners: dict[str, Learner], n_epochs: int,
    n_shards: Sequence[int],
) -> list[dict[str, Any]]:  # fmt: skip
    """Curves of every learner and number of shards, each the mean over the problems. A model
    depends on the shards, not on where they are stored."""
    entries = []
    for (name, learner), shards in product(learners.items(), n_shards):
        each = [curve(problem, shards, learner, n_epochs) for problem in problems]
        errors, corrections = np.round(np.mean(each, axis=0), 6).T.tolist()
        entries.append({"learner": name, "shards": shards, "errors": errors,
                        "corrections": corrections})  # fmt: skip
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
            *curves([problem], FIRST_ORDER, n_epochs, shards),
            *curves(alone, SECOND_ORDER, min(n_epochs, SECOND_ORDER_EPOCHS), shards),
        ],
    }  # fmt: skip


AROW = {"algo": "arow", "r": 0.5, "max_loss": 1.0}
#: Range of the share of rows.
RARE = 0.002, 0.01


def rare(topics: corpora.Topics) -> corpora.Topics:
    """The rare topics of even rank."""
    shares = {name: np.mean(y > 0) for name, y in topics.labels.items()}
    found = [name for name, share in shares.items() if RARE[0] < share < RARE[1]]
    chosen = sorted(found, key=lambda name: (-shares[name], name))[1::2]
    return replace(topics, labels={name: topics.labels[name] for name in chosen})


#: Texts by the names used in tables: the file, and the number of its lines to use.
TEXTS = {"questions": ("trec_train", 5452), "languages": ("languages", 12_000),
         "reviews": ("polarity", 10_662), "messages": ("sms", 5574)}  # fmt: skip
LEVEL_SHARDS, MIXES, TEXT_BITS = (1, 4, 16, 64), (1, 16), 18


def texts(name: str) -> Problem:
    """Rows of hashed words and word pairs, three quarters of them for training."""
    from texts import read

    file, n_texts = TEXTS[name]
    told, labels = read(file)
    order = np.random.RandomState(SEED).permutation(len(told))[:n_texts]
    X = hashed_pairs(TEXT_BITS).transform([told[i] for i in order])
    y, n = np.asarray(labels)[order], 3 * len(order) // 4
    return Problem(name, rows_between(X, 0, n), y[:n], rows_between(X, n, len(y)), y[n:])


#: Cells by the names used in tables, and the parameters that `fit_anndata` uses for them.
CELLS = {"cells, Paul": "paul", "cells, Baron": "baron"}
OF_CELLS = {"algo": "alma", "multi_class": "joint", "class_weight": "balanced"}


def cells(name: str) -> Problem:
    """Normalized cells, two thirds of them for training."""
    from anndata import read_h5ad

    adata = read_h5ad(Path(os.environ["SPARSEMARGIN_DATA"], "cells", f"{CELLS[name]}.h5ad"))
    order = np.random.RandomState(SEED).permutation(adata.n_obs)
    X = CellNormalizer().fit_transform(adata.X[order])
    y, n = adata.obs["cell_type"].to_numpy(str)[order], 2 * len(order) // 3
    return Problem(name, rows_between(X, 0, n), y[:n], rows_between(X, n, len(y)), y[n:])


def some_generated() -> Problem:
    """Rows of two classes, drawn by `make_zipf_text`."""
    X, y = make_zipf_text(20_000, 20_000, random_state=SEED)
    n = 15_000
    return Problem("zipf", rows_between(X, 0, n), y[:n], rows_between(X, n, len(y)), y[n:])


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "zipf": some_generated, **{name: partial(texts, name) for name in TEXTS},
    "RCV1, 10 topics": lambda: rcv1()[0], "RCV1, rare topics": lambda: rcv1(rare)[0],
    **{name: partial(cells, name) for name in CELLS},
}  # fmt: skip
#: Problems that are also split into more shards.
OF_MANY, MOST_SHARDS = ("zipf", "reviews", "RCV1, rare topics"), 256


def of_level(quick: bool) -> list[dict[str, Any]]:
    """The default learner over growing numbers of shards: mixtures, and the ring where it is
    used."""
    names = list(PROBLEMS)[: 1 if quick else None]
    shards = LEVEL_SHARDS[: 2 if quick else None]
    more = () if quick else (MOST_SHARDS,)
    return [
        entry for name in names
        for entry in level_of(name, (*shards, *(more if name in OF_MANY else ())))
    ]  # fmt: skip


def level_of(name: str, n_shards: Sequence[int] = LEVEL_SHARDS) -> Iterator[dict[str, Any]]:
    """Measure one of the problems."""
    problem = PROBLEMS[name]()
    n_labels = problem.y.shape[1] if problem.y.ndim > 1 else len(np.unique(problem.y))
    for n in n_shards:
        ways = [("uniform", mixes) for mixes in MIXES] if n > 1 else [("uniform", 1)]
        if n_labels >= n > 1 and n_labels > 2 and name not in CELLS:
            ways.append(("ring", 1))
        for mixing, mixes in ways:
            given = {"mixing": mixing, "mixes_per_epoch": mixes, "max_iter": "auto"}
            learner = given | {"max_iter": 10} | OF_CELLS if name in CELLS else given
            (*_, told) = rounds_of(problem.shards(n), learner, _level)
            wrong = float(np.mean(told["model"].predict(problem.X_test) != problem.y_test))
            yield {
                "data": name, "shards": n, "mixing": mixing, "mixes": mixes, "error": wrong,
                "epochs": told["epoch"], "sent": told["sent"], "received": told["received"],
            }  # fmt: skip


def _level(done: Round) -> dict[str, Any]:
    return {"model": done.model(), "epoch": done.epoch, "sent": done.bytes_sent,
            "received": done.bytes_received}  # fmt: skip


def of_generated(quick: bool) -> Parts:
    """Generated rows of 10^8 nonzeros, also mixed by errors for the largest number of shards."""
    problem = generated(SMALL if quick else LARGE)
    shards = N_SHARDS[:3] if quick else N_SHARDS
    n_epochs = 2 if quick else LARGE_EPOCHS
    return {
        "n_train": problem.X.shape[0], "n_test": problem.X_test.shape[0],
        "n_features": problem.X.shape[1], "n_entries": problem.X.nnz,
        "curves": curves([problem], FIRST_ORDER, n_epochs, shards),
    }  # fmt: skip


N_ROUNDS = 3


@contextmanager
def cluster(n_workers: int) -> Iterator[Any]:
    """A client of n_workers processes with one thread each."""
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


N_FILES, N_TEXTS, ZIPF = 4, 150_000, 1.3
WIDTHS, FEW = (10**5, 10**7), 100


def text_files(folder: Path, n_texts: int) -> list[str]:
    """Files of n_texts texts each: three sentences of reviews of one kind, and rare words; 5 % of
    the labels are wrong."""
    from texts import read

    told, labels = map(np.array, read(TEXTS["reviews"][0]))
    random, paths = np.random.RandomState(SEED), [folder / f"{i}.tsv" for i in range(N_FILES)]
    of_kind = {kind: told[labels == kind] for kind in np.unique(labels)}
    for path in paths:
        kinds = random.choice(list(of_kind), n_texts)
        texts = [" ".join(random.choice(of_kind[kind], 3)) for kind in kinds]
        rare = np.minimum(random.zipf(ZIPF, (n_texts, 12)), 200_000).astype(str)
        wrong = random.random_sample(n_texts) < NOISE
        kinds[wrong] = random.choice(list(of_kind), wrong.sum())
        lines = zip(kinds, texts, rare, strict=True)
        path.write_text("".join(f"{kind}\t{text} w{' w'.join(r)}\n" for kind, text, r in lines))
    return list(map(str, paths))


def few_rows(n_features: int) -> list[tuple[csr_matrix, np.ndarray]]:
    """Four shards of a hundred rows."""
    random = np.random.RandomState(SEED)
    columns = random.randint(n_features, size=(N_FILES, FEW * MEAN_NNZ), dtype=np.int32)
    values, starts = np.ones(columns.shape[1], np.float32), np.arange(FEW + 1) * MEAN_NNZ
    return [
        (csr_matrix((values, each, starts), (FEW, n_features)), random.randint(2, size=FEW))
        for each in columns
    ]


def of_workers(quick: bool) -> dict[str, dict[str, float]]:
    """Seconds of fits with default settings: files of texts on one worker and on two, as wall time
    and as CPU time of the busiest worker and of the client; and few rows of many features."""
    found: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    with cluster(1) as one, cluster(2) as two, tempfile.TemporaryDirectory() as folder:
        paths = text_files(Path(folder), N_TEXTS // (100 if quick else 1))
        for _, (name, client) in turns([("one", one), ("two", two)], N_ROUNDS):
            cache_dir = Path(folder, "caches")
            shutil.rmtree(cache_dir, ignore_errors=True)
            before, began = client.run(time.process_time), time.perf_counter()
            fit = partial(fit_distributed, paths, client=client, cache_dir=cache_dir)
            busy, _ = _busy(partial(fit, random_state=SEED))
            seconds, after = time.perf_counter() - began, client.run(time.process_time)
            worker = max(after[each] - before[each] for each in after)
            found[name].append((seconds, worker, busy))
        size = sum(map(os.path.getsize, paths))
    for _, n in turns(list(WIDTHS), 2 * N_ROUNDS):
        fit = partial(fit_distributed, few_rows(n), max_iter=2, random_state=SEED)
        found[f"{n}"].append((_first(_busy(fit)),))
    least = {name: np.min(each, axis=0).round(3).tolist() for name, each in found.items()}
    return {"bytes": size, **least}


DOCUMENTS, DOCUMENT_BITS = (500, 2000, 8000), 24
#: Bytes for a coordinate that a shard of AROW has changed: its index, a step and a gain; and in the
#: answer with the mixture: its index and two values.
UP_BYTES, DOWN_BYTES = 4 + 8 + 4, 4 + 4 + 4


def _busy(call: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of this process for a call, and the result."""
    began = time.process_time()
    found = call()
    return time.process_time() - began, found


def _first(pair: tuple[float, Any]) -> float:
    return pair[0]


def of_documents(quick: bool) -> dict[str, Any]:
    """Costs of documents that are hashed to 24 bits (words and pairs) and trained with AROW:
    vectorizing on one core, training, changed coordinates, and their mixture."""
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


# Assumptions: bytes per second of each network interface, and the number of interfaces of one
# machine that an update passes one after the other, the scheduler's and the client's.
NETWORK, HOPS = 1.25e9, 2
DOCUMENT_BYTES, CORES = 1000, 16


def of_many_documents(costs: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Extrapolate an epoch of 10^9 and 10^10 documents, for workers of one core each, and for one
    machine of 16 cores, all of which vectorize while one trains."""
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


def _header(curve: dict[str, Any]) -> str:
    return "1 shard" if curve["shards"] == 1 else str(curve["shards"])


def _shards(parts: Parts, name: str) -> str:
    errors = lambda curve: f"{100 * curve['errors'][0]:.2f}, {100 * curve['errors'][-1]:.2f}"  # noqa: E731
    found = [curve for curve in parts[name]["curves"] if curve["shards"] in DRAWN_SHARDS]
    return pivot(
        [("test error %", "{learner}"),
         ("after epochs", lambda curve: f"1, {len(curve['errors'])}")],
        "shards",
        [(_header, errors)],
    )(found)  # fmt: skip


def _level_table(parts: Parts) -> str:
    """Errors of the default learner, and the traffic of an epoch."""

    def way(entry: dict[str, Any]) -> str:
        if entry["shards"] == 1:
            return ""
        mixes = entry["mixes"]
        return "ring" if entry["mixing"] == "ring" else f"{mixes} mixture{'s' * (mixes > 1)}"

    alone = {each["data"]: each for each in parts["level"] if each["shards"] == 1}
    rows = [
        each | {"way": way(each), "one": 100 * alone[each["data"]]["error"],
                "percent": 100 * each["error"],
                "traffic": (each["shards"] * each["sent"] + each["received"]) / 1e6}
        for each in parts["level"] if each["shards"] > 1 and each["mixes"] in MIXES
    ]  # fmt: skip
    return pivot(
        [("test error % (MB an epoch)", "{data}"), ("an epoch", "{way}"), ("1 shard", "{one:.2f}")],
        "shards",
        [(lambda each: str(each["shards"]), "{percent:.2f} ({traffic:.0f})")],
    )(rows)


def _workers(parts: Parts) -> str:
    told = parts["workers"]
    (one, two), (few, many) = (told["one"], told["two"]), (told[f"{n}"] for n in WIDTHS)
    texts = f"{told['bytes'] / 1e6:.0f} MB of texts"
    rows = [
        (f"{texts}: one worker, two workers, by the clock", one[0], two[0]),
        ("CPU of the busiest worker", one[1], two[1]),
        ("CPU of the client and the scheduler", one[2], two[2]),
        ("4 shards of 100 rows, 2 epochs: 10^5 features, 10^7, CPU", few[0], many[0]),
    ]
    cells = [(what, f"{a:.2f}", f"{b:.2f}", f"{b / a:.2f}") for what, a, b in rows]
    return markdown_table(["seconds", "the first", "the second", "ratio"], cells)


#: The tables of docs/development/scale.md: their parts, and the functions that make them.
TABLES: dict[str, tuple[str, Callable[[Parts], str]]] = {
    "level": ("level", _level_table), "workers": ("workers", _workers),
    "shards-rcv1": ("rcv1", partial(_shards, name="rcv1")),
    "shards-generated": ("generated", partial(_shards, name="generated")),
    "document-costs": ("documents", _document_costs), "documents": ("documents", _documents),
}  # fmt: skip


def render(parts: Parts) -> dict[str, str]:
    """Return the tables for which the parts are available, in Markdown."""
    return {name: table(parts) for name, (part, table) in TABLES.items() if part in parts}


DRAWN = {"rcv1": "RCV1, ten topics", "generated": "generated, $10^8$ nonzeros"}
DRAWN_SHARDS = (1, 4, 16, 64)


def draw_pictures(folder: Path) -> None:
    """Draw the picture from the kept figures, on a light and on a dark background."""
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
                if curve["learner"] == learner and (n := curve["shards"]) in DRAWN_SHARDS:
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
    "level": of_level,
    "documents": of_documents,
    "rcv1": of_rcv1,
    "generated": of_generated,
    "workers": of_workers,
}


def write(path: Path, parts: dict[str, Any]) -> None:
    """Write the figures of the parts, one line each if there are several."""
    told = ",\n".join(f'"{name}": {_lines(part)}' for name, part in parts.items())
    replace_text(path, f'{{"machine": {json.dumps(machine())},\n"parts": {{\n{told}\n}}}}\n')


def _lines(value: Any) -> str:
    """JSON with each entry of a list on a separate line."""
    if isinstance(value, dict):
        told = (f"{json.dumps(key)}: {_lines(each)}" for key, each in value.items())
        return f"{{{', '.join(told)}}}"
    if isinstance(value, list) and isinstance(value[0], dict):
        entries = ",\n".join(map(json.dumps, value))
        return f"[\n{entries}\n]"
    return json.dumps(value)


def read(path: Path) -> dict[str, Any]:
    """The parts in a file, if it exists."""
    return json.loads(path.read_text())["parts"] if path.exists() else {}


def figures_of(path: Path) -> dict[str, Any]:
    """The figures without the settings of the measurement."""
    return {name: part["figures"] for name, part in read(path).items()}


def bring_up_to_date(figures: Path) -> None:
    """Keep the figures of full runs, and make the tables of the page."""
    new = {name: part for name, part in read(figures).items() if not part["quick"]}
    if new:
        parts = read(FIGURES) | new
        write(FIGURES, {name: parts[name] for name in PARTS if name in parts})
    fill_page(PAGE, render(figures_of(FIGURES)))


def main() -> None:
    """Measure the selected parts, or make the tables."""
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
