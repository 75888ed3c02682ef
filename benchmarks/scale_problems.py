"""The data of the measurements of distributed training, and a fit of them by rounds."""

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import corpora
import numpy as np
from corpora import Shape
from scale_clusters import write_texts
from scipy.sparse import csr_matrix

from sparsemargin.datasets import make_zipf_text
from sparsemargin.distributed import Round, fit_distributed
from sparsemargin.genomes import CellNormalizer
from sparsemargin.text.defaults import hashed_pairs

Learner = dict[str, Any]

SEED = 0
N_EPOCHS = 4
TEXT_BITS = 18
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


#: Range of the share of rows with a rare topic.
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


def texts(name: str) -> Problem:
    """Rows of hashed words and word pairs, three quarters of them for training."""
    from texts import read

    file, n_texts = TEXTS[name]
    lines, labels = read(file)
    order = np.random.RandomState(SEED).permutation(len(lines))[:n_texts]
    X = hashed_pairs(TEXT_BITS).transform([lines[i] for i in order])
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


def drawn_texts() -> Problem:
    """Texts of 8 classes, as `scale_clusters` draws them, so many that 64 shards are not joined."""
    with tempfile.TemporaryDirectory() as folder:
        paths = write_texts(Path(folder), 1.2e8, 8)
        lines = [line for path in paths for line in Path(path).read_text().splitlines()]
    labels, found = zip(*(line.split("\t") for line in lines), strict=True)
    X, y = hashed_pairs(TEXT_BITS).transform(found), np.array(labels)
    X, n = X.astype(np.float32), 4 * len(y) // 5
    return Problem("drawn texts", rows_between(X, 0, n), y[:n], rows_between(X, n, len(y)), y[n:])


#: A fifth of the rows. The 64 shards are not joined, and have few rows.
FEWER = Shape("generated, a fifth", 400_000, 50_000, 300_000, MEAN_NNZ)

PROBLEMS: dict[str, Callable[[], Problem]] = {
    "zipf": some_generated, **{name: partial(texts, name) for name in TEXTS},
    "RCV1, 10 topics": lambda: rcv1()[0], "RCV1, rare topics": lambda: rcv1(rare)[0],
    **{name: partial(cells, name) for name in CELLS},
    "drawn texts": drawn_texts, "generated": partial(generated, LARGE),
    "generated, a fifth": partial(generated, FEWER),
}  # fmt: skip


def rounds_of(shards: Any, learner: Learner, take: Callable[[Round], Any], **settings: Any) -> list:
    """The values of `take` for each round of one fit."""
    found: list[Any] = []
    given = {"max_iter": N_EPOCHS, "random_state": SEED} | settings | learner
    fit_distributed(shards, on_round=lambda done: found.append(take(done)), **given)
    return found
