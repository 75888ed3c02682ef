"""Costs of distributed training on documents, and an epoch of 10^9 extrapolated from them."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from math import ceil, log2
from operator import itemgetter
from time import process_time
from typing import Any

import numpy as np
from markdown_tables import markdown, markdown_table
from scale_problems import SEED, TEXTS, rounds_of, rows_between
from timing import timed

import sparsemargin
from sparsemargin.distributed import Round
from sparsemargin.text.defaults import hashed_pairs

AROW = {"algo": "arow", "r": 0.5, "max_loss": 1.0}
N_ROUNDS = 3
DOCUMENTS, DOCUMENT_BITS = (500, 2000, 8000), 24
#: Bytes for a coordinate that a shard of AROW has changed: its index, a step and a gain; and in the
#: answer with the mixture: its index and two values.
UP_BYTES, DOWN_BYTES = 4 + 8 + 4, 4 + 4 + 4


def fastest(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU seconds of the fastest of several calls, and its result."""
    return min((timed(call, process_time) for _ in range(N_ROUNDS)), key=itemgetter(0))


def of_documents(quick: bool) -> dict[str, Any]:
    """Costs of documents that are hashed to 24 bits (words and pairs) and trained with AROW:
    vectorizing on one core, training, changed coordinates, and their mixture."""
    from texts import read

    found = [read(file)[0] for file, _ in TEXTS.values()]
    told = np.concatenate(found)
    told = told[np.random.RandomState(SEED).permutation(len(told))]
    n_bytes, vectorizer = sum(len(each.encode()) for each in told), hashed_pairs(DOCUMENT_BITS)
    seconds, X = fastest(partial(vectorizer.transform, told))
    y = np.random.RandomState(1).choice([-1, 1], X.shape[0])
    entries = []
    for n in DOCUMENTS[: 2 if quick else None]:
        shards = [(rows_between(X, 0, n), y[:n]), (rows_between(X, n, 2 * n), y[n : 2 * n])]

        def take(done: Round) -> tuple[float, int]:
            return done.mixing_seconds / done.seconds, done.bytes_received

        busy, ((share, received),) = fastest(partial(rounds_of, shards, AROW, take, max_iter=1))
        fit = partial(sparsemargin.fit_csr, rows_between(X, 0, 2 * n), y[: 2 * n], max_iter=1)
        learning, _ = fastest(partial(fit, **AROW))
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


def documents(parts: dict[str, Any]) -> str:
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


def document_costs(parts: dict[str, Any]) -> str:
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
