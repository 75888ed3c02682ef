"""Reproduce Figure 2 of Freund & Schapire (1999): test error of four hypotheses every tenth of an
epoch, kernels (1 + x.z / 255)^d on MNIST.

Needs the files of MNIST; ``python -m sparsemargin.datasets download`` fetches them.

    python benchmarks/kernel_figure2.py [--degrees 1 2 3 4 5 6] [--epochs 4] [--jobs 2] [--out DIR]

One fit for each degree gives its curves; what is measured is kept, so that the same command goes on
where it was interrupted. The paper's curves are means of 10 permutations, ours are of one.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from kernel_cells import AVERAGE, LAST, PERCEPTRON, RANDOM, VOTE, Run
from kernel_runs import Store
from matplotlib.figure import Figure
from measure import machine

from sparsemargin.evaluation import hypothesis_errors
from sparsemargin.reproduce._digits import Data, load

SHOWN = (RANDOM, LAST, AVERAGE, VOTE)
SEED = 0


def run_of(degree: int) -> Run:
    """Return the Perceptron on raw rows with the kernel of that degree."""
    return Run("mnist", PERCEPTRON, "poly", degree)


def measure(run: Run, data: Data, epochs: int, n_jobs: int) -> dict[str, Any]:
    """Fit once; return the curves.

    Returns
    -------
    dict
        ``epochs``, every tenth; by hypothesis the test errors in percent; the corrections.
    """
    order = np.random.default_rng(SEED).permutation(len(data.y))
    model = run.estimator(hypothesis="vote", random_state=SEED, n_jobs=n_jobs, max_iter=epochs)
    model.fit(data.X[order], data.y[order])
    moments = np.arange(1, 10 * epochs + 1) / 10
    curve = hypothesis_errors(model, data.X_test, data.y_test, moments)
    return {
        "run": run.name,
        "epochs": moments.tolist(),
        "errors": {name: (100 * curve.errors[name]).tolist() for name in SHOWN},
        "corrections": curve.n_corrections.sum(axis=1).tolist(),
        "machine": machine(),
    }


def plot(curves: dict[int, dict[str, Any]], path: Path) -> None:
    """Draw a panel for each degree, as the paper does."""
    with matplotlib.rc_context({"font.size": 9}):
        figure = Figure(figsize=(10, 2.6 * -(-len(curves) // 3)), layout="constrained")
        panels = figure.subplots(-(-len(curves) // 3), min(3, len(curves)), squeeze=False)
        for axes, (degree, curve) in zip(panels.flat, curves.items(), strict=False):
            for name in SHOWN:
                axes.plot(curve["epochs"], curve["errors"][name], label=name)
            axes.set_title(f"d = {degree}")
            axes.set_xlabel("epochs")
            axes.set_ylabel("test error, %")
            axes.set_xscale("log")
            axes.set_ylim(0, 25)
        panels.flat[0].legend()
        figure.savefig(path, dpi=120)
    print(f"written: {path}")


def main(arguments: list[str] | None = None) -> None:
    """Measure what is missing and draw the picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--degrees", type=int, nargs="+", default=[1, 2, 3, 4, 5, 6])
    parser.add_argument("--epochs", type=int, default=4, help="(default 4; the paper's 30, 10)")
    parser.add_argument("--jobs", type=int, default=2, help="threads (default 2)")
    parser.add_argument("--out", type=Path, default=Path("results/kernel-figure2"))
    options = parser.parse_args(arguments)
    store, curves = Store(options.out), {}
    for degree in options.degrees:
        run = run_of(degree)
        record = store.find(run, SEED, options.epochs)
        if record is None:
            print(f"{run.name}, {options.epochs} epochs ...", file=sys.stderr, flush=True)
            try:
                record = measure(run, load(run.data), options.epochs, options.jobs)
            except FileNotFoundError as error:
                parser.error(str(error))
            store.keep(run, SEED, record)
        curves[degree] = record
    plot(curves, options.out / "figure2.png")


if __name__ == "__main__":
    main()
