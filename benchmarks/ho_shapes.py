"""Shapes that call for one form of the matrix or the other: time, form and memory of a fit.

Each fit runs in a process of its own, which reads its rows and holds nothing else of size.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measure import text_table, timed
from peak_memory import MEGABYTE, STATUS, resident_peak
from scipy.sparse import csr_matrix, issparse

from sparsemargin import HigherOrderPerceptron, SecondOrderPerceptron
from sparsemargin.datasets import make_ho_target, make_zipf_text

WARM_UP_ROWS, WARM_UP_FEATURES = 20, 50
COLUMNS = [
    ("shape", ""), ("", ""), ("seconds", ".3f"), ("solver_", ""), ("mistakes", ",d"),
    ("n_updates_", ",d"), ("X MB", ".1f"), ("fit adds MB", ".1f"),
]  # fmt: skip


class Shape(NamedTuple):
    """Rows to draw, with so many of them when in a hurry, and the estimators to fit.

    `draw(n_rows)` returns X and y.
    """

    n_rows: int
    n_rows_quick: int
    draw: Callable[[int], tuple[Any, np.ndarray]]
    estimators: dict[str, Any]


def _few_features(n_rows: int) -> tuple[Any, np.ndarray]:
    return make_ho_target(n_rows, 0, n_features=60, n_relevant=6, noise=0.1, random_state=0)[:2]


def _many_features(n_rows: int) -> tuple[Any, np.ndarray]:
    return make_zipf_text(n_rows, 1_000_000, random_state=0)


def _microarray(n_rows: int) -> tuple[Any, np.ndarray]:
    return make_ho_target(n_rows, 0, n_features=4026, sparse=False, random_state=0)[:2]


def _fits(makers: dict[str, Any], n_epochs: int, max_updates: int | None = None) -> dict[str, Any]:
    params = {
        "max_iter": n_epochs, "max_updates": max_updates, "hypothesis": "average",
        "fit_intercept": False, "random_state": 0,
    }  # fmt: skip
    bound = f", max_updates={max_updates}" if max_updates else ""
    return {f"{name}{bound}": make(**params) for name, make in makers.items()}


HIGHER_ORDER = {
    "HO_2(0.4)": HigherOrderPerceptron,
    "HO_7(0.4)": partial(HigherOrderPerceptron, p=7),
}
ALL = HIGHER_ORDER | {"SO(1)": SecondOrderPerceptron}

SHAPES = {
    "60 features, noisy": Shape(1_000_000, 50_000, _few_features, _fits(ALL, 1)),
    # SO(a) without a bound takes minutes here.
    "10^6 features, sparse": Shape(
        100_000, 10_000, _many_features, _fits(HIGHER_ORDER, 1) | _fits(ALL, 1, max_updates=1000)
    ),
    "60 x 4026, dense, 5 epochs": Shape(60, 60, _microarray, _fits(ALL, 5)),
}


def _save(folder: Path, X: Any, y: np.ndarray) -> None:
    arrays = {"y": y}
    if issparse(X):
        arrays |= {"data": X.data, "indices": X.indices, "indptr": X.indptr}
        arrays |= {"shape": np.array(X.shape)}
    else:
        arrays |= {"X": X}
    for name, values in arrays.items():
        np.save(folder / f"{name}.npy", values)


def _load(folder: Path) -> tuple[Any, np.ndarray]:
    arrays = {path.stem: np.load(path) for path in folder.glob("*.npy")}
    if "X" in arrays:
        return arrays["X"], arrays["y"]
    parts = arrays["data"], arrays["indices"], arrays["indptr"]
    return csr_matrix(parts, shape=tuple(arrays["shape"]), copy=False), arrays["y"]


def measure_fit(folder: Path, shape: str, name: str) -> dict[str, Any]:
    """Read the rows, fit, and return the facts of the fit; for a process of its own."""
    X, y = _load(folder)
    model = SHAPES[shape].estimators[name]
    # A first fit pays for lazy imports, which are no memory of the fit. It gets little, or the
    # memory it frees would be reused and hide what the second one needs.
    model.fit(X[:WARM_UP_ROWS, :WARM_UP_FEATURES], y[:WARM_UP_ROWS])
    # Sets the peak back to what is resident now.
    Path("/proc/self/clear_refs").write_text("5")
    before = resident_peak()
    seconds, _ = timed(lambda: model.fit(X, y))
    return {
        "shape": shape,
        "estimator": name,
        "n_rows": len(y),
        "seconds": seconds,
        "solver": model.solver_,
        "mistakes": model.n_corrections_,
        "updates": model.n_updates_,
        "X_bytes": X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if issparse(X) else X.nbytes,
        "added_bytes": resident_peak() - before,
    }


def _measure_shape(name: str, n_rows: int) -> Iterator[dict[str, Any]]:
    shape = SHAPES[name]
    with tempfile.TemporaryDirectory() as folder:
        _save(Path(folder), *shape.draw(n_rows))
        for estimator in shape.estimators:
            print(f"{name}, {estimator} ...", file=sys.stderr, flush=True)
            command = [sys.executable, __file__, folder, name, estimator]
            child = subprocess.run(command, check=True, stdout=subprocess.PIPE)
            yield json.loads(child.stdout)


def measure_all(quick: bool) -> list[dict[str, Any]]:
    """Measure every estimator on every shape.

    Returns
    -------
    list of dict
        One entry for each, sizes in bytes; empty where the system doesn't tell the peak of a
        process (only Linux does).
    """
    if not STATUS.exists():
        return []
    return [
        entry
        for name, shape in SHAPES.items()
        for entry in _measure_shape(name, shape.n_rows_quick if quick else shape.n_rows)
    ]


def show(entries: list[dict[str, Any]]) -> None:
    """Print the table of all shapes."""
    if not entries:
        print("\nShapes: left out, this system doesn't tell the peak of a process")
        return
    print("\nOne fit of each shape, averaged hypothesis\n")
    rows = [
        (
            f"{entry['shape']}, {entry['n_rows']:,} rows", entry["estimator"], entry["seconds"],
            entry["solver"], entry["mistakes"], entry["updates"],
            entry["X_bytes"] / MEGABYTE, entry["added_bytes"] / MEGABYTE,
        )
        for entry in entries
    ]  # fmt: skip
    print(text_table(COLUMNS, rows))


if __name__ == "__main__":
    print(json.dumps(measure_fit(Path(sys.argv[1]), *sys.argv[2:])))
