"""One fit tells a table's figures at all epochs and of all hypotheses; what is measured is kept."""

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from kernel_cells import CORRECTIONS, SUPPORT, Cell, Run
from measure import machine, timed

from sparsemargin.evaluation import hypothesis_errors
from sparsemargin.evaluation.protocols import ended_by_ctrl_c
from sparsemargin.reproduce._digits import Data

#: When in a run its figures are taken, as far as it goes.
EPOCHS = (0.1, 1, 2, 3, 4, 10, 30)


def measure(run: Run, data: Data, seed: int, most_epochs: float, n_jobs: int) -> dict[str, Any]:
    """Fit on a random permutation of the rows; return the figures after each of `EPOCHS`.

    Returns
    -------
    dict
        ``epochs``; by quantity a list with one entry for each of them: test errors in percent,
        corrections of each label, support vectors of each and of all together; seconds.
    """
    order = np.random.default_rng(seed).permutation(len(data.y))
    X, y = data.X[order], data.y[order]
    model = run.estimator(hypothesis="vote", random_state=seed, n_jobs=n_jobs)
    fit_seconds, _ = timed(lambda: _fit(model, X, y, most_epochs))
    epochs = [T for T in EPOCHS if most_epochs >= T]
    test_seconds, curve = timed(lambda: hypothesis_errors(model, data.X_test, data.y_test, epochs))
    return {
        "run": run.name,
        "seed": seed,
        "epochs": epochs,
        "errors": {name: (100 * errors).tolist() for name, errors in curve.errors.items()},
        CORRECTIONS: curve.n_corrections.tolist(),
        SUPPORT: [_support(model, T * len(y)) for T in epochs],
        "pool": curve.n_support.tolist(),
        "seconds": {"fit": fit_seconds, "test": test_seconds},
        "machine": machine(),
    }


def _fit(model: Any, X: Any, y: np.ndarray, epochs: float) -> None:
    """Fit for so many epochs; those after a pass without a correction are counted, not made."""
    model.set_params(max_iter=epochs)
    with ended_by_ctrl_c():
        model.fit(X, y)


def _support(model: Any, end: float) -> list[int]:
    """Rows that each label was corrected on in so many trials."""
    log = model._space.log.entries()
    pairs = np.stack([log["label"], log["row"]])[:, log["start"] < end]
    labels = np.unique(pairs, axis=1)[0]
    return np.bincount(labels, minlength=model._space.n_labels).tolist()


def look_up(cell: Cell, record: dict[str, Any]) -> float:
    """Return the figure that a cell prints, as a run measured it."""
    at = record["epochs"].index(cell.epochs)
    if not cell.is_count:
        return record["errors"][cell.quantity][at]
    if cell.label is not None:
        return record[cell.quantity][at][cell.label]
    return sum(record[CORRECTIONS][at]) if cell.quantity == CORRECTIONS else record["pool"][at]


class Store:
    """A folder with a file for each run and permutation.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path):
        self.folder = folder

    def _path(self, run: Run, seed: int) -> Path:
        return self.folder / f"{run.name.replace(' ', '_')}_{seed}.json"

    def find(self, run: Run, seed: int, epochs: float) -> dict[str, Any] | None:
        """Return what a run measured, if it went on for so many epochs."""
        path = self._path(run, seed)
        if not path.exists():
            return None
        record = json.loads(path.read_text())
        return record if epochs in record["epochs"] else None

    def keep(self, run: Run, seed: int, record: dict[str, Any]) -> None:
        """Write it; a file that was there stays whole until the new one is."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self._path(run, seed)
        unfinished = path.with_suffix(".part")
        unfinished.write_text(json.dumps(record) + "\n")
        os.replace(unfinished, path)


def run_missing(
    runs: dict[Run, float],
    seeds: Iterable[int],
    store: Store,
    measure_run: Callable[[Run, int, float], dict[str, Any]],
    report: Callable[[str], None],
) -> None:
    """Run what the store has not, permutation by permutation."""
    for seed in seeds:
        for run, epochs in runs.items():
            if store.find(run, seed, epochs) is None:
                report(f"permutation {seed + 1}, {run.name}, {epochs:g} epochs ...")
                record = measure_run(run, seed, epochs)
                store.keep(run, seed, record)
                report("  fit {fit:.1f} s, test {test:.1f} s".format(**record["seconds"]))
