"""Costs of distributed training on documents, and an epoch of 10^9 extrapolated from them."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise, product
from math import log2
from operator import itemgetter
from time import process_time
from typing import Any
from unittest.mock import patch

import numpy as np
from markdown_tables import markdown, markdown_table
from scale_problems import SEED, TEXTS, rows_between
from timing import timed

import sparsemargin
from sparsemargin.distributed import dual_vectors, fit_distributed
from sparsemargin.distributed.slices import mix_slice
from sparsemargin.text.defaults import hashed_pairs

AROW = {"algo": "arow", "r": 0.5, "max_loss": 1.0}
N_ROUNDS = 3
DOCUMENTS, DOCUMENT_BITS = (500, 2000, 8000), 24
#: Bytes for a coordinate that a shard of AROW has changed: index, step and gain; and for one
#: of the mixture: index and two values. Rows are float32.
UP_BYTES, DOWN_BYTES = 4 + 4 + 4, 4 + 4 + 4


def fastest(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU seconds of the fastest of several calls, and its result."""
    return min((timed(call, process_time) for _ in range(N_ROUNDS)), key=itemgetter(0))


def fit_shards(shards: list[Any], how: dict[str, Any]) -> tuple[int, float]:
    """Fit with one mixture; returns the coordinates that the shards have changed, and the CPU
    seconds of their mixture."""
    found: list[tuple[int, float]] = []

    def timed_mixture(p: float, cells: Any, n_before: int, *given: Any) -> Any:
        call = partial(mix_slice, p, cells, n_before, *given)
        seconds, mixed = timed(call, process_time)
        found.append((sum(len(piece.keys) for _, (piece,) in given[n_before:]), seconds))
        return mixed

    with (
        patch.object(dual_vectors, "mix_slice", timed_mixture),
        patch.object(dual_vectors, "cuts_of", lambda n_rows, **_: [0, n_rows]),
    ):
        fit_distributed(shards, min_rows=1, **how)
    return found[0]


def of_documents(quick: bool) -> dict[str, Any]:
    """Costs of documents that are hashed to 24 bits (words and pairs) and trained with AROW:
    vectorizing on one core, training, changed coordinates, and their mixture."""
    from texts import read

    found = [read(file)[0] for file, _ in TEXTS.values()]
    texts = np.concatenate(found)
    texts = texts[np.random.RandomState(SEED).permutation(len(texts))]
    n_bytes, vectorizer = sum(len(each.encode()) for each in texts), hashed_pairs(DOCUMENT_BITS)
    seconds, X = fastest(partial(vectorizer.transform, texts))
    y = np.random.RandomState(1).choice([-1, 1], X.shape[0])
    X.data = X.data.astype(np.float32)
    entries = []
    for n in DOCUMENTS[: 2 if quick else None]:
        shards = [(rows_between(X, 0, n), y[:n]), (rows_between(X, n, 2 * n), y[n : 2 * n])]
        how = AROW | {"max_iter": 1, "random_state": SEED}
        fit = partial(sparsemargin.fit_csr, rows_between(X, 0, 2 * n), y[: 2 * n], **how)
        learning, _ = fastest(fit)
        whole, (coordinates, mixing) = fastest(partial(fit_shards, shards, how))
        entries.append({
            "nonzeros": X.indptr[2 * n] / 2, "coordinates": coordinates / 2,
            "learning": learning, "mixing": mixing, "all": whole - mixing,
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


# Assumptions: bytes per second of each network interface, and seconds of the scheduler for a task.
NETWORK, TASK = 1.25e9, 2.5e-4
DOCUMENT_BYTES = 1000


def one_mixture(costs: dict[str, Any], workers: int, rows: int, before: int) -> float:
    """Seconds of a mixture after `rows` more rows of each of the workers' shards."""

    def changed(n_rows: int) -> float:
        nonzeros = n_rows * DOCUMENT_BYTES * costs["nonzeros_a_byte"]
        law = costs["coordinates"] * (nonzeros / costs["nonzeros"]) ** costs["tail"]
        return min(law, 1 << DOCUMENT_BITS)

    n_slices = dual_vectors.slices_for(rows, workers)
    # For each shard, a task trains, and if there are several slices, a task for each slice divides
    # the result. For each slice, a task mixes, and a task extracts the mixture from the result. One
    # task extracts the reports.
    tasks = workers * (1 + n_slices * (n_slices > 1)) + 2 * n_slices + 1
    of_slice = workers * changed(rows) / n_slices
    mixture = changed(workers * (before + rows))
    return (
        tasks * TASK + of_slice * (UP_BYTES / NETWORK + costs["mixed"])
        + mixture * DOWN_BYTES / NETWORK
    )  # fmt: skip


def of_many_documents(costs: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Extrapolate an epoch of 10^9 and 10^10 documents, for workers of one core each, which have
    one shard each."""
    for n_documents, workers in product((10**9, 10**10), (10, 100, 1000)):
        n_bytes = n_documents * DOCUMENT_BYTES
        nonzeros = n_bytes * costs["nonzeros_a_byte"]
        reading, learning = n_bytes / costs["bytes_a_second"], nonzeros * costs["nonzero"]
        prepared = nonzeros * costs["prepared"]
        cuts = dual_vectors.cuts_of(n_documents // workers, first_epoch=True)
        mixing = sum(one_mixture(costs, workers, b - a, a) for a, b in pairwise(cuts))
        alone = reading + prepared + learning
        yield {"documents": n_documents, "workers": workers, "rows": reading / workers,
               "learning": (learning + prepared) / workers, "mixtures": len(cuts) - 1,
               "mixing": mixing, "alone": alone,
               "times": alone / (alone / workers + mixing)}  # fmt: skip


def documents(parts: dict[str, Any]) -> str:
    return markdown([
        ("documents", "{documents:,}"), ("workers", "{workers:,}"),
        ("making rows, s", "{rows:,.0f}"), ("learning, s", "{learning:,.0f}"),
        ("mixtures", "{mixtures}"), ("mixing, s", "{mixing:,.0f}"),
        ("one worker, s", "{alone:,.0f}"), ("times faster", "{times:,.0f}"),
    ])(list(of_many_documents(parts["documents"])))  # fmt: skip


def document_costs(parts: dict[str, Any]) -> str:
    costs = parts["documents"]
    return markdown_table(["measured of documents", ""], {
        "rows made by a core": f"{costs['bytes_a_second'] / 1e6:.1f} MB/s",
        "nonzeros of 1,000 bytes": f"{1000 * costs['nonzeros_a_byte']:.0f}",
        "learning, as by `fit_csr`": f"{1e9 * costs['nonzero']:.1f} ns a nonzero",
        "in addition, over shards": f"{1e9 * costs['prepared']:.0f} ns a nonzero",
        "changed by a shard": f"{costs['coordinates']:,.0f} coordinates by "
                              f"{costs['nonzeros']:,.0f} nonzeros, to the power of "
                              f"{costs['tail']:.2f}",
        "a coordinate that has changed": f"{UP_BYTES} bytes up, {DOWN_BYTES} down",
        "mixing": f"{1e9 * costs['mixed']:.1f} ns a coordinate and update",
    }.items())  # fmt: skip
