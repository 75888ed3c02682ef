"""How far is an epoch from the plain C loops of loops.c, in seconds and in counts?

`ratio`: the Perceptron's last hypothesis, rows in order and shuffled, float32 and float64, on every
shape. The first epoch of a fit is all that `fit` does: it checks parameters, labels and rows, too,
and makes the weights; the C loop checks nothing, and finds its weights and its order made. A
further epoch is a half of what two more add to a fit: loop against loop. Aim: 1.3 times. What the
first has beyond a further one is told in two parts: what a fit of two rows takes as well, and the
rest, which is the checking of rows, their first touch, and the corrections that only a first epoch
makes.

`counts`: instructions and cache misses of a further epoch, by callgrind, so that neither Python nor
the checking of rows is in it. Callgrind simulates two levels of cache (32 MiB the last, prefetches
ignored) and no vectors wider than AVX2's, so many labels have other code here than on a machine
with AVX-512. A miss of the first level is served by the second or third, one of the last by memory.
Needs valgrind (Debian's package of that name).

    python benchmarks/floor.py [--only ratio counts] [--quick] [--rounds N]
"""

import ctypes
import os
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from shutil import which
from typing import Any, NamedTuple

import numpy as np
from corpora import (
    NEWS20,
    OF_LABELS,
    RCV1_LARGE,
    RCV1_SMALL,
    Corpus,
    draw_corpus,
    draw_labelled,
    load_rows,
    save_rows,
)
from scipy.sparse import csr_matrix
from sklearn.utils import check_random_state
from tables import show
from timing import FOLDER, cannot_run, parser_of, race, run

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
FLOOR, OURS, FIXED = "C loop", "Perceptron, last", "Perceptron, last, two rows"


class Case(NamedTuple):
    """A fit to be timed, of one contestant."""

    contestant: str
    shuffle: bool
    n_epochs: int

    def prepare(self, corpus: Corpus, seed: int) -> Callable[[], Any]:
        X, y = corpus.X, corpus.y
        if self.contestant == FIXED:
            two = [np.flatnonzero(y == sign)[0] for sign in (-1, 1)]
            X, y = X[two], y[two]
        if self.contestant != FLOOR:
            model = PNormPerceptron(
                **RAW, max_iter=self.n_epochs, hypothesis="last", fit_intercept=False,
                shuffle=self.shuffle, random_state=seed,
            )  # fmt: skip
            return partial(model.fit, X, y)
        return FloorPerceptron(X, y, row_orders(len(y), self.n_epochs, self.shuffle, seed)).run


CASES = [Case(FIXED, shuffle=False, n_epochs=1)] + [
    Case(contestant, shuffle, n_epochs)
    for contestant in (FLOOR, OURS)
    for shuffle in (False, True)
    for n_epochs in EPOCHS
]


def measure(corpus: Corpus, n_rounds: int) -> Iterator[dict[str, Any]]:
    """Time the fits of all cases in turn: an entry for each order of rows, of nanoseconds per
    nonzero, the least of the rounds, of their ratios, and of test errors after one epoch."""

    def error(case: Case, model: Any) -> float:
        return np.mean(model.predict(corpus.X_test) != corpus.y_test)

    fits = {case: partial(case.prepare, corpus) for case in CASES}
    seconds, wrong = race(fits, n_rounds, error)
    ns = {case: 1e9 * min(found) / corpus.X.nnz for case, found in seconds.items()}

    def epochs(contestant: str, shuffle: bool) -> dict[str, float]:
        few, many = (ns[Case(contestant, shuffle, n_epochs)] for n_epochs in EPOCHS)
        return {"first": few, "further": (many - few) / (EPOCHS[1] - EPOCHS[0])}

    for shuffle in (False, True):
        floor, ours = epochs(FLOOR, shuffle), epochs(OURS, shuffle)
        fixed = ns[CASES[0]]
        yield {
            "shape": corpus.shape.name, "dtype": corpus.X.dtype.name, "shuffled": shuffle,
            "floor_ns": floor, "ours_ns": ours,
            "beyond_ns": {"fixed": fixed, "checks": ours["first"] - ours["further"] - fixed},
            "ratio": {epoch: ours[epoch] / floor[epoch] for epoch in ours},
            "test_error": float(np.mean(wrong[Case(OURS, shuffle, 1)])),
            "floor_error": float(np.mean(wrong[Case(FLOOR, shuffle, 1)])),
        }  # fmt: skip


def _order(entry: dict[str, Any]) -> str:
    return "shuffled" if entry["shuffled"] else "in order"


def ratio(options: Namespace) -> dict[str, Any]:
    """Both contestants in seconds, on every shape."""
    entries = []
    for shape in [RCV1_SMALL] if options.quick else [RCV1_SMALL, RCV1_LARGE, NEWS20]:
        drawn = draw_corpus(shape)
        for dtype in (np.float32, np.float64):
            entries += measure(drawn.astype(dtype), options.rounds)
    columns = [
        ("shape", "{shape}"), ("type", "{dtype}"), ("rows", _order),
        ("C first", "{floor_ns[first]:.2f}"), ("C further", "{floor_ns[further]:.2f}"),
        ("ours first", "{ours_ns[first]:.2f}"), ("ours further", "{ours_ns[further]:.2f}"),
        ("fixed", "{beyond_ns[fixed]:.2f}"), ("checks, ...", "{beyond_ns[checks]:.2f}"),
        ("first, ours / C", "{ratio[first]:.2f}"), ("further, ours / C", "{ratio[further]:.2f}"),
        ("test error %", "{test_error:.2%}"), ("C's", "{floor_error:.2%}"),
    ]  # fmt: skip
    title = f"One epoch beside the C loop, ns per nonzero, least of {options.rounds} rounds"
    show(f"{title}; aim: {AIM}", columns, entries)
    return {"aim": AIM, "epochs": entries}


LABELLED_ROWS, LABELLED_ROWS_QUICK = 8000, 3000
WARM_UP_ROWS = 50
COUNTED = {
    "instructions": ("Ir",), "loads and stores": ("Dr", "Dw"),
    "first-level misses": ("D1mr", "D1mw"), "last-level misses": ("DLmr", "DLmw"),
}  # fmt: skip
VALGRIND = (
    "valgrind", "--tool=callgrind", "--cache-sim=yes", "--LL=33554432,16,64",
    "--instr-atstart=no", "--quiet",
)  # fmt: skip


def _loop(shuffle: bool, X: csr_matrix, y: np.ndarray, n_epochs: int) -> Any:
    loop = FloorLabels if y.ndim == 2 else FloorPerceptron
    return loop(X, y, row_orders(len(y), n_epochs, shuffle, seed=0)).run()


def _ours(shuffle: bool, X: csr_matrix, y: np.ndarray, n_epochs: int) -> Any:
    model = PNormPerceptron(
        **RAW, max_iter=n_epochs, hypothesis="last", fit_intercept=False, shuffle=shuffle,
        random_state=0, n_jobs=1,
    )  # fmt: skip
    return model.fit(X, y)


FITS: dict[str, Callable] = {FLOOR: _loop, OURS: _ours}


def draw_rows(folder: Path, quick: bool) -> dict[str, int]:
    """Write the rows to learn from, and return what one epoch is counted per, by their names."""
    labelled = LABELLED_ROWS_QUICK if quick else LABELLED_ROWS
    many = draw_labelled(replace(RCV1_SMALL, n_train=labelled, n_test=1), OF_LABELS)
    rows = {f"rcv1s, {OF_LABELS} labels": (many.X, many.Y)}
    for shape in [RCV1_SMALL] if quick else [RCV1_SMALL, NEWS20]:
        corpus = draw_corpus(shape).astype(np.float32)
        rows[shape.name] = corpus.X, corpus.y
    for name, (X, y) in rows.items():
        save_rows(folder, name, X, y)
    return {name: X.nnz * (y.shape[1] if y.ndim == 2 else 1) for name, (X, y) in rows.items()}


def _fits(folder: Path) -> Iterator[tuple[str, str, bool, int]]:
    """All fits, in the order in which they are made: rows, contestant, shuffled, epochs."""
    names = sorted(path.name.removesuffix(".y.npy") for path in folder.glob("*.y.npy"))
    return product(names, FITS, (False, True), EPOCHS)


def _control(*options: str) -> None:
    command = ["callgrind_control", *options, str(os.getpid())]
    subprocess.run(command, check=True, capture_output=True)


def run_fits(folder: Path) -> None:
    """Run under callgrind: make all fits, and have what each counted dumped under its number."""
    for number, (name, contestant, shuffle, n_epochs) in enumerate(_fits(folder)):
        X, y = load_rows(folder, name)
        FITS[contestant](shuffle, X[:WARM_UP_ROWS], y[:WARM_UP_ROWS], 1)
        _control("--instr=on")
        _control("--zero")
        FITS[contestant](shuffle, X, y, n_epochs)
        # It goes through a shell, so that names would have to be quoted.
        _control(f"--dump={number}")
        _control("--instr=off")


def _read_dumps(folder: Path) -> dict[tuple[str, str, bool, int], dict[str, int]]:
    """Return the events of each fit."""
    fits = list(_fits(folder))
    counted = {}
    for path in folder.glob("callgrind.*"):
        lines = dict(
            line.split(": ", 1)
            for line in path.read_text(errors="replace").splitlines()
            if line.startswith(("desc: Trigger: ", "events: ", "summary: "))
        )
        trigger = lines["desc"].removeprefix("Trigger: ").split()
        if trigger[0] == "dump":
            events = lines["events"].split(), map(int, lines["summary"].split())
            counted[fits[int(trigger[1])]] = dict(zip(*events, strict=True))
    return counted


def _per_epoch(few: dict[str, int], many: dict[str, int], unit: int) -> dict[str, float]:
    return {
        name: sum(many[event] - few[event] for event in events) / (EPOCHS[1] - EPOCHS[0]) / unit
        for name, events in COUNTED.items()
    }


def counts(options: Namespace) -> dict[str, Any]:
    """Both contestants in events of an epoch per nonzero, or per nonzero and label."""
    if not which("callgrind_control"):
        cannot_run("valgrind is not installed (Debian's package valgrind)")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        units = draw_rows(folder, options.quick)
        code = f"import sys; sys.path.insert(0, {str(FOLDER)!r}); import floor, pathlib; "
        code += f"floor.run_fits(pathlib.Path({name!r}))"
        command = [*VALGRIND, f"--callgrind-out-file={folder}/callgrind", sys.executable, "-c"]
        print("fits under callgrind ...", file=sys.stderr, flush=True)
        child = subprocess.run([*command, code], capture_output=True, text=True)
        if child.returncode:
            raise SystemExit(f"the fits under callgrind failed:\n{child.stderr}")
        counted = _read_dumps(folder)
    entries = [
        {"rows": rows, "shuffled": shuffle, "contestant": contestant}
        | _per_epoch(*(counted[rows, contestant, shuffle, n] for n in EPOCHS), unit)
        for rows, unit in units.items()
        for shuffle in (False, True)
        for contestant in FITS
    ]
    columns = [("rows", lambda entry: f"{entry['rows']}, {_order(entry)}"), ("", "{contestant}")]
    columns += [(name, f"{{{name}:.3f}}") for name in COUNTED]
    show("A further epoch by callgrind, float32, per nonzero (and label)", columns, entries)
    return {"further epoch": entries}


if __name__ == "__main__":
    run(parser_of(__doc__, "results/floor.json"), {"ratio": ratio, "counts": counts}, (9, 3))
