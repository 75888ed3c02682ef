"""Time of an epoch compared with bare C loops and with scikit-learn.

One shuffled epoch of the last and of the averaged Perceptron, of AROW, and of `fit_csr(X, y)`,
which uses AROW unless an alternative is more accurate. The data are text with sorted rows, text
with unsorted entries as vectorizers leave it and 5 % wrong labels, and few long rows with many
features. Times are nanoseconds per nonzero, the minimum over the rounds, for all that `fit` does.
The loops of floors.c prefetch rows some trials ahead. They check and count nothing, compute norms
only for AROW, have no intercept, and get a precomputed order of the rows.

    python benchmarks/floor.py [--quick] [--rounds N]
"""

import ctypes
import os
import subprocess
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from corpora import NEWS20, RCV1_MIDDLE, RCV1_SMALL, Corpus, draw_corpus
from scipy.sparse import csr_matrix
from sklearn.linear_model import Perceptron, SGDClassifier
from sklearn.utils import check_random_state
from timing import FOLDER, parser_of, race, run

from sparsemargin import AROWClassifier, PNormPerceptron, fit_csr

# The parts of -ffast-math, without its start-up code, which makes the whole process treat subnormal
# numbers as 0.
REASSOCIATED = [
    "-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math", "-ffinite-math-only",
    "-freciprocal-math", "-fno-math-errno",
]  # fmt: skip

ONE_EPOCH = {"max_iter": 1, "fit_intercept": False, "n_jobs": None}
RAW = {"p": 2.0, "normalize": False}


@cache
def compiled(source: str = "loops.c", *flags: str) -> ctypes.CDLL:
    """Compile the loops and load them."""
    compiler = os.environ.get("CC", "gcc")
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder, "loops.so")
        command = [*compiler.split(), "-O3", *flags, "-shared", "-fPIC", "-o", built]
        try:
            subprocess.run([*command, FOLDER / source, "-lm"], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise SystemExit(
                f"{source} needs a C compiler, and {compiler!r} failed ({error}): "
                "install gcc, or name another compiler in the variable CC"
            ) from error
        return ctypes.CDLL(str(built))


def pointers(arrays: Iterable[np.ndarray]) -> list[ctypes.c_void_p]:
    """The addresses of the arrays, for a C function."""
    return [ctypes.c_void_p(array.ctypes.data) for array in arrays]


def row_orders(n_rows: int, n_epochs: int, shuffle: bool, seed: int) -> list[np.ndarray]:
    """Draw the order of the rows in each epoch, or keep the given order."""
    random, rows = check_random_state(seed), np.arange(n_rows, dtype=np.int32)
    return [random.permutation(rows) if shuffle else rows for _ in range(n_epochs)]


class _Rows(ctypes.Structure):
    _fields_ = [
        ("n", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("order", "indptr", "indices")),
    ]


class FloorLoop:
    """Epochs of a bare C loop ("last", "average" or "arow") over rows in precomputed orders."""

    def __init__(self, X: csr_matrix, y: np.ndarray, orders: list[np.ndarray], kind: str = "last"):
        self.X, self.orders, self.kind = X, orders, kind
        self.y = y.astype(X.dtype)
        real = "float" if X.dtype == np.float32 else "double"
        loops = compiled("floors.c", "-march=native", *REASSOCIATED)
        self._epoch = getattr(loops, f"{kind}_{real}")

    def run(self) -> "FloorLoop":
        """Train on every row once in each epoch."""
        X = self.X
        self.numbers = np.zeros((X.shape[1], 1 if self.kind == "last" else 2), dtype=X.dtype)
        if self.kind == "arow":
            self.numbers[:, 1] = 1
        for order in self.orders:
            rows = _Rows(len(order), *pointers((order, X.indptr, X.indices)))
            self._epoch(ctypes.byref(rows), *pointers((X.data, self.y, self.numbers)))
        return self

    def predict(self, X: csr_matrix) -> np.ndarray:
        """Return labels in {-1, 1}."""
        weights = self.numbers[:, 0]
        if self.kind == "average":
            weights = weights - self.numbers[:, 1] / sum(map(len, self.orders))
        return np.where(X @ weights >= 0, 1, -1)


class FloorLabels:
    """Epochs of the plain C Perceptron over many labels at once; `Y` is an indicator array."""

    STRIDE = 16  # floats, so that the weights of a feature begin at a cache line

    def __init__(self, X: csr_matrix, Y: np.ndarray, orders: list[np.ndarray]):
        self.X = X
        self.orders = orders
        self.n_labels = Y.shape[1]
        self.signs = np.where(Y, 1, -1).astype(np.int8)
        self.stride = -(-self.n_labels // self.STRIDE) * self.STRIDE
        self.weights = _aligned_zeros(X.shape[1], self.stride)

    def run(self) -> "FloorLabels":
        """Train on every row once in each epoch."""
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
    """Zeros of float32, aligned to a cache line of 64 bytes."""
    room = np.zeros(n_rows * n_columns + 16, dtype=np.float32)
    first = -room.ctypes.data % 64 // 4
    return room[first : first + n_rows * n_columns].reshape(n_rows, n_columns)


# Largest accepted time on each shape, relative to the C loop.
AIMS = {"last": (1.4, 1.5, 1.6), "average": (1.4, 1.5, 1.6), "AROW": (1.5, 1.5, 1.5)}
NOISE = 0.05
WIDE = replace(NEWS20, name="wide", n_train=8000, n_test=1600)


def _perceptron(hypothesis: str, seed: int) -> Any:
    return PNormPerceptron(**RAW, **ONE_EPOCH, hypothesis=hypothesis, random_state=seed)


PEER = {"max_iter": 1, "tol": None}
#: Functions that prepare a fit, by implementation and contestant.
FITS: dict[tuple[str, str], Callable[[Corpus, int], Callable[[], Any]]] = {
    ("ours", "last"): lambda c, seed: partial(_perceptron("last", seed).fit, c.X, c.y),
    ("ours", "average"): lambda c, seed: partial(_perceptron("average", seed).fit, c.X, c.y),
    ("ours", "AROW"): lambda c, seed: partial(AROWClassifier(random_state=seed).fit, c.X, c.y),
    ("ours", "fit_csr(X, y)"): lambda c, seed: partial(fit_csr, c.X, c.y, random_state=seed),
    ("sklearn", "last"): lambda c, seed: partial(
        Perceptron(**PEER, random_state=seed).fit, c.X, c.y
    ),
    ("sklearn", "average"): lambda c, seed: partial(
        SGDClassifier(**PEER, average=True, random_state=seed).fit, c.X, c.y
    ),
} | {
    ("loop", kind): lambda c, seed, kind=kind: (
        FloorLoop(c.X, c.y, row_orders(len(c.y), 1, True, seed), kind.lower()).run
    )
    for kind in AIMS
}
#: The fit of scikit-learn that each of ours is compared with.
PEERS = {"AROW": "last", "fit_csr(X, y)": "average"}


def shapes(quick: bool) -> dict[str, Corpus]:
    """The training data by shape."""
    text = draw_corpus(RCV1_SMALL if quick else RCV1_MIDDLE)
    wide = draw_corpus(WIDE)
    return {
        "text": text, "text, unsorted, 5 % wrong": text.renumbered().mislabelled(NOISE),
        "wide, unsorted": wide.renumbered(),
    }  # fmt: skip


def measure(name: str, corpus: Corpus, n_rounds: int, aims: dict[str, float]) -> list[dict]:
    """Time all fits, taking turns: nanoseconds per nonzero with their ratios, and test errors."""

    def error(which: tuple[str, str], model: Any) -> float:
        return float(np.mean(model.predict(corpus.X_test) != corpus.y_test))

    fits = {which: partial(prepare, corpus) for which, prepare in FITS.items()}
    seconds, errors = race(fits, n_rounds, error)
    ns = {which: 1e9 * min(each) / corpus.X.nnz for which, each in seconds.items()}
    entries = []
    for kind in dict.fromkeys(kind for _, kind in FITS):
        own, peer = ns["ours", kind], ns["sklearn", PEERS.get(kind, kind)]
        loop = ns.get(("loop", kind))
        entries.append({
            "shape": name, "learned": kind, "loop_ns": loop, "ours_ns": own, "sklearn_ns": peer,
            "of_loop": loop and own / loop, "aim": aims.get(kind), "of_sklearn": own / peer,
            "test_error": errors["ours", kind][0],
            "loop_error": errors.get(("loop", kind), [None])[0],
        })  # fmt: skip
    return entries


def epochs(options: Namespace) -> dict[str, Any]:
    """Measure all contestants on every shape."""
    entries = []
    for i, (name, corpus) in enumerate(shapes(options.quick).items()):
        aims = {kind: each[i] for kind, each in AIMS.items()}
        entries += measure(name, corpus, options.rounds, aims)
    return {"epochs": entries}


if __name__ == "__main__":
    run(parser_of(__doc__, "results/floor.json"), {"epochs": epochs}, (9, 3))
