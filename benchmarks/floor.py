"""How far is an epoch from the plain C loops of loops.c?

The Perceptron's last hypothesis, rows in order and shuffled, float32 and float64, on every shape.
The first epoch of a fit is all that `fit` does: it checks parameters, labels and rows, too, and
makes the weights; the C loop checks nothing, and finds its weights and its order made. A further
epoch is a half of what two more add to a fit: loop against loop. Aim: 1.3 times.

    python benchmarks/floor.py [--quick] [--rounds N]
"""

import ctypes
import os
import subprocess
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from corpora import (
    NEWS20,
    RCV1_LARGE,
    RCV1_SMALL,
    Corpus,
    draw_corpus,
)
from scipy.sparse import csr_matrix
from sklearn.utils import check_random_state
from timing import FOLDER, parser_of, race, ratios, run

from sparsemargin import PNormPerceptron

ONE_EPOCH = {"max_iter": 1, "fit_intercept": False, "n_jobs": None}
RAW = {"p": 2.0, "normalize": False}


@cache
def compiled() -> ctypes.CDLL:
    """Compile the loops, and load them."""
    compiler = os.environ.get("CC", "gcc")
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder, "loops.so")
        command = [*compiler.split(), "-O3", "-shared", "-fPIC", "-o", built, FOLDER / "loops.c"]
        try:
            subprocess.run([*command, "-lm"], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise SystemExit(
                f"loops.c needs a C compiler, and {compiler!r} failed ({error}): "
                "install gcc, or name another compiler in the variable CC"
            ) from error
        return ctypes.CDLL(str(built))


def pointers(arrays: Iterable[np.ndarray]) -> list[ctypes.c_void_p]:
    """Where the arrays lie, for a C function."""
    return [ctypes.c_void_p(array.ctypes.data) for array in arrays]


def row_orders(n_rows: int, n_epochs: int, shuffle: bool, seed: int) -> list[np.ndarray]:
    """Draw the order of the rows in each epoch; or leave the rows in theirs."""
    random, rows = check_random_state(seed), np.arange(n_rows, dtype=np.int32)
    return [random.permutation(rows) if shuffle else rows for _ in range(n_epochs)]


class FloorPerceptron:
    """Epochs of the plain C Perceptron over rows whose orders were drawn beforehand.

    The zero weights are made here, so that `run` times the loop alone.

    `orders`: The row numbers in the order in which they are learned, for each epoch.
    """

    def __init__(self, X: csr_matrix, y: np.ndarray, orders: list[np.ndarray]):
        self.X = X
        self.y = y.astype(X.dtype)
        self.orders = orders
        self.weights = np.zeros(X.shape[1], dtype=X.dtype)
        self._epoch = getattr(compiled(), f"perceptron_epoch_{X.dtype.name}")

    def run(self) -> "FloorPerceptron":
        """Learn from every row once in each epoch."""
        X = self.X
        for order in self.orders:
            arrays = (order, X.indptr, X.indices, X.data, self.y, self.weights)
            self._epoch(ctypes.c_int64(order.size), *pointers(arrays))
        return self

    def predict(self, X: csr_matrix) -> np.ndarray:
        """Return labels in {-1, 1}."""
        return np.where(X @ self.weights >= 0, 1, -1)


class FloorLabels:
    """Epochs of the plain C Perceptron over many labels at once, one sweep over a row for all.

    `Y`: 1 where the row has the label, else 0. `orders`: The row numbers in the order in which
    they are learned, for each epoch.
    """

    STRIDE = 16  # floats, so that the weights of a feature begin at a cache line

    def __init__(self, X: csr_matrix, Y: np.ndarray, orders: list[np.ndarray]):
        self.X = X
        self.orders = orders
        self.n_labels = Y.shape[1]
        self.signs = np.where(Y, 1, -1).astype(np.int8)
        self.stride = -(-self.n_labels // self.STRIDE) * self.STRIDE
        self.weights = _aligned_zeros(X.shape[1], self.stride)

    def run(self) -> "FloorLabels":
        """Learn from every row once in each epoch."""
        X, scores = self.X, np.empty(self.stride, dtype=np.float32)
        for order in self.orders:
            sizes = (ctypes.c_int64(n) for n in (order.size, self.n_labels, self.stride))
            arrays = (order, X.indptr, X.indices, X.data, self.signs, self.weights, scores)
            compiled().perceptron_labels_epoch(*sizes, *pointers(arrays))
        return self

    def predict(self, X: csr_matrix) -> np.ndarray:
        """Return an indicator array."""
        return (X @ self.weights)[:, : self.n_labels] >= 0


def _aligned_zeros(n_rows: int, n_columns: int) -> np.ndarray:
    """Zeros of float32 that begin at a cache line of 64 bytes."""
    room = np.zeros(n_rows * n_columns + 16, dtype=np.float32)
    first = -room.ctypes.data % 64 // 4
    return room[first : first + n_rows * n_columns].reshape(n_rows, n_columns)


AIM = 1.3
EPOCHS = (1, 3)
FLOOR, OURS = "C loop", "Perceptron, last"


class Case(NamedTuple):
    """A fit to be timed, of one contestant."""

    contestant: str
    shuffle: bool
    n_epochs: int

    def prepare(self, corpus: Corpus, seed: int) -> Callable[[], Any]:
        X, y = corpus.X, corpus.y
        if self.contestant == FLOOR:
            return FloorPerceptron(X, y, row_orders(len(y), self.n_epochs, self.shuffle, seed)).run
        model = PNormPerceptron(
            **RAW, max_iter=self.n_epochs, hypothesis="last", fit_intercept=False,
            shuffle=self.shuffle, random_state=seed,
        )  # fmt: skip
        return partial(model.fit, X, y)


CASES = [Case(*each) for each in product((FLOOR, OURS), (False, True), EPOCHS)]


def measure(corpus: Corpus, n_rounds: int) -> Iterator[dict[str, Any]]:
    """Time the fits of all cases in turn: an entry for each order of rows, of nanoseconds per
    nonzero, the least of the rounds, of their ratios, and of test errors after one epoch."""

    def error(case: Case, model: Any) -> float:
        return np.mean(model.predict(corpus.X_test) != corpus.y_test)

    seconds, wrong = race({case: partial(case.prepare, corpus) for case in CASES}, n_rounds, error)
    for shuffle in (False, True):
        ns, errors = {}, {}
        for contestant in (FLOOR, OURS):
            few, many = (Case(contestant, shuffle, n_epochs) for n_epochs in EPOCHS)
            first, both = (1e9 * min(seconds[case]) / corpus.X.nnz for case in (few, many))
            ns[contestant] = {"first": first, "further": (both - first) / (EPOCHS[1] - EPOCHS[0])}
            errors[contestant] = float(np.mean(wrong[few]))
        yield {
            "shape": corpus.shape.name, "dtype": corpus.X.dtype.name, "shuffled": shuffle,
            "floor_ns": ns[FLOOR], "ours_ns": ns[OURS], "ratio": ratios(ns[OURS], ns[FLOOR]),
            "test_error": errors[OURS], "floor_error": errors[FLOOR],
        }  # fmt: skip


def ratio(options: Namespace) -> dict[str, Any]:
    """Both contestants in seconds, on every shape."""
    entries = []
    for shape in [RCV1_SMALL] if options.quick else [RCV1_SMALL, RCV1_LARGE, NEWS20]:
        drawn = draw_corpus(shape)
        for dtype in (np.float32, np.float64):
            entries += measure(drawn.astype(dtype), options.rounds)
    return {"aim": AIM, "epochs": entries}


if __name__ == "__main__":
    run(parser_of(__doc__, "results/floor.json"), {"ratio": ratio}, (9, 3))
