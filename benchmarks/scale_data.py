"""Rows that are learned from in shards: the RCV1 sample's topics, and generated text.

The generated rows are those of `make_zipf_text` without topics. What they are labelled by is a
hidden target of few words: a row is positive where the values of its words, times +1 or -1 for the
target's and 0 for all others, come to more than they do in the median row. One label in twenty of
the training side is wrong, none of the test side's.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import rcv1_sample
from scipy.sparse import csr_matrix

from sparsemargin.datasets import make_zipf_text
from sparsemargin.io.reading import Reading
from sparsemargin.io.row_cache import write_cache
from sparsemargin.io.rows import LabelledRows
from sparsemargin.models.labels import LabelTable

N_RELEVANT, AMONG = 300, 1000
NOISE = 0.05
MEAN_NNZ = 50
# Of a block of a row cache.
BLOCK_ROWS = 4096
LABELS = [-1.0, 1.0]


@dataclass(frozen=True)
class Shape:
    """Sizes of generated rows."""

    n_train: int
    n_test: int
    n_features: int


#: 10^8 nonzeros.
LARGE = Shape(2_000_000, 50_000, 1_000_000)
SMALL = Shape(4_000, 1_000, 20_000)


@dataclass(frozen=True)
class Problem:
    """Rows to learn from, in an order that tells nothing, and rows to predict."""

    name: str
    X: csr_matrix
    y: np.ndarray
    X_test: csr_matrix
    y_test: np.ndarray

    def shards(self, n_shards: int) -> list[tuple[csr_matrix, np.ndarray]]:
        """Cut the training side, without a copy, into neighbouring rows, as many in each."""
        cuts = np.linspace(0, self.X.shape[0], n_shards + 1).astype(int)
        return [
            (rows_between(self.X, start, stop), self.y[start:stop])
            for start, stop in pairwise(cuts)
        ]

    def caches(self, n_shards: int, folder: Path) -> list[str]:
        """The same shards as row caches, and their paths."""
        folder.mkdir(parents=True, exist_ok=True)
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
    """Draw float32 rows and the labels that the hidden target gives them."""
    n_rows = shape.n_train + shape.n_test
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
    wrong = random.random_sample(n_rows) < NOISE
    n = shape.n_train
    y = np.where(wrong, -clean, clean)[:n]
    rows = partial(rows_between, X)
    return Problem("generated", rows(0, n), y, rows(n, n_rows), clean[n:])


def rcv1() -> tuple[Problem, list[str]]:
    """Load ten topics of the RCV1 sample, with a column of 0 and 1 for each, and their names.

    Raises
    ------
    FileNotFoundError
        If the sample is not at hand.
    """
    _, reported = rcv1_sample.halves(rcv1_sample.load_topics())
    sides = reported.sides()

    def indicator(labels: dict[str, np.ndarray]) -> Any:
        return np.column_stack([y > 0 for y in labels.values()]).astype(np.int64)

    problem = Problem(
        "RCV1", sides.X, indicator(sides.labels), sides.X_test, indicator(sides.labels_test)
    )
    return problem, list(reported.labels)


def one_topic(problem: Problem, column: int) -> Problem:
    """The same rows with one of their topics against the rest."""
    y, y_test = (2 * each[:, column] - 1 for each in (problem.y, problem.y_test))
    return Problem(problem.name, problem.X, y, problem.X_test, y_test)
