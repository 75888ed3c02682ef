"""Reproduce Table 3 of Brotto, Gentile & Vitale (2007): Higher-order Perceptrons with kernels.

Needs the files of USPS and MNIST; ``python -m sparsemargin.datasets download`` fetches them.

    python benchmarks/ho_table3.py [--data usps mnist] [--cv-rows 10000] [--jobs 2] [--out DIR]

For each algorithm and kind of kernel 5-fold cross-validation on the first `--cv-rows` training
rows chooses the kernel's parameter and c or a together; the chosen setting then learns all rows for
an epoch. So does every other c or a with that kernel: the best on the test set of these stands
beside it, as the paper prints it. The grids are ours, since the paper's are not printed: `SIGMAS`,
`DEGREES`, `ho_paper.CS` and `ho_runs.AS`. What is measured lies in the output folder, line by line:
interrupted, the same command goes on where it was.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from ho_paper import CS, TABLE_3
from ho_runs import AS
from measure import describe_machine, text_table, write_json

from sparsemargin import HigherOrderPerceptron, SecondOrderPerceptron
from sparsemargin.evaluation import compare_on_splits
from sparsemargin.evaluation.protocols import ended_by_ctrl_c
from sparsemargin.reproduce._digits import Data, load

#: In units in which a white pixel differs from a black one by 1.
SIGMAS = (2.0, 2.5, 3.0, 4.0, 5.0)
#: Of (1 + x.z / s)^d.
DEGREES = (2, 3, 4, 5, 6)
#: By how much the data's values range: -1 to 1, and 0 to 255.
RANGES = {"usps": 2, "mnist": 255}
#: s: 255 is the ALMA paper's; 256 pixels of at most 1 keep x.z / s from exceeding 1.
SCALES = {"usps": 256, "mnist": 255}

COLUMNS = [
    ("", ""), ("paper: updates", ",d"), ("error %", ".2f"), ("matrix", ""), ("chosen", ""),
    ("updates", ",d"), ("error %", ".2f"), ("matrix", ""), ("best on test", ""), ("updates", ",d"),
    ("error %", ".2f"), ("matrix", ""),
]  # fmt: skip

Setting = tuple[float, float]  # sigma or degree, and c or a


def kernel_parameters(data: str, kernel: str, parameter: float) -> dict[str, Any]:
    """Return the estimators' parameters for a kernel of the table."""
    if kernel == "gauss":
        return {"kernel": "rbf", "gamma": 1 / (2 * (parameter * RANGES[data]) ** 2)}
    return {"kernel": "poly", "degree": int(parameter), "gamma": 1 / SCALES[data], "coef0": 1.0}


def settings(algorithm: str, kernel: str) -> list[Setting]:
    """Return what cross-validation chooses from."""
    values = {"FO": (0.0,), "SO": AS}.get(algorithm, CS[1:])
    parameters = SIGMAS if kernel == "gauss" else DEGREES
    return [(parameter, value) for parameter in parameters for value in values]


def estimator(data: str, kernel: str, algorithm: str, setting: Setting) -> Any:
    """Return an algorithm of the table: one epoch, rows as they come, the last hypothesis."""
    parameter, value = setting
    common = {"max_iter": 1, "shuffle": False, "hypothesis": "last"}
    common |= kernel_parameters(data, kernel, parameter)
    if algorithm == "SO":
        return SecondOrderPerceptron(a=value, **common)
    sparse = algorithm.startswith("sparse")
    return HigherOrderPerceptron(c=value, sparse_updates=sparse, **common)


def permuted(data: Data, seed: int = 0) -> Data:
    """Return the data with the training rows in a random order."""
    order = np.random.default_rng(seed).permutation(len(data.y))
    return data._replace(X=data.X[order], y=data.y[order])


def choose(candidates: dict[Setting, Any], data: Data, n_rows: int, n_jobs: int) -> Setting:
    """Return the setting of least mean error in 5-fold cross-validation on the first rows."""
    X, y = data.X[:n_rows], data.y[:n_rows]
    results = compare_on_splits(candidates, X, y, 5, n_jobs=n_jobs)
    return min(candidates, key=lambda setting: results[setting].test_errors.mean())


def learn(model: Any, data: Data) -> dict[str, Any]:
    """Fit on all rows; return updates, matrix updates, and the test error in percent."""
    with ended_by_ctrl_c():
        model.fit(data.X, data.y)
    return {
        "updates": int(np.sum(model.n_corrections_)),
        "matrix_updates": int(np.sum(model.n_updates_)),
        "error": 100 * float(np.mean(model.predict(data.X_test) != data.y_test)),
    }


def run_line(
    data_name: str, kernel: str, algorithm: str, data: Data, cv_rows: int, n_jobs: int
) -> dict[str, Any]:
    """Choose, and learn with the chosen kernel and every c or a."""
    candidates = {
        setting: estimator(data_name, kernel, algorithm, setting)
        for setting in settings(algorithm, kernel)
    }
    chosen = choose(candidates, data, cv_rows, n_jobs)
    results = [
        {"setting": setting} | learn(model, data)
        for setting, model in candidates.items()
        if setting[0] == chosen[0]
    ]
    (own,) = (result for result in results if result["setting"] == chosen)
    best = min(results, key=lambda result: result["error"])
    return {"chosen": own, "best": best, "all": results}


def _kept(path: Path, run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        print(f"{path.stem} ...", file=sys.stderr, flush=True)
        unfinished = path.with_suffix(".part")
        unfinished.write_text(json.dumps(run()) + "\n")
        unfinished.replace(path)
    return json.loads(path.read_text())


def _figures(result: dict[str, Any], algorithm: str) -> tuple:
    parameter, value = result["setting"]
    matrix = f"({result['matrix_updates']:,})" if algorithm.startswith("sparse") else ""
    return f"{parameter:g}, {value:g}", result["updates"], result["error"], matrix


def show(kind: tuple[str, str], lines: dict[str, dict[str, Any]]) -> None:
    """Print one data set and kernel, paper beside measured; settings are the kernel's parameter,
    and c or a."""
    rows = []
    for algorithm, line in lines.items():
        paper = TABLE_3[kind][algorithm]
        matrix = "" if paper.matrix_updates is None else f"({paper.matrix_updates:,})"
        figures = (_figures(line[name], algorithm) for name in ("chosen", "best"))
        rows.append(
            (algorithm, paper.updates, paper.error, matrix, *(v for f in figures for v in f))
        )
    print(f"\n{kind[0]}, {kind[1]}\n\n{text_table(COLUMNS, rows)}", flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, print the table beside the paper, write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", nargs="+", choices=RANGES, default=list(RANGES))
    parser.add_argument("--cv-rows", type=int, default=10_000, help="default 10,000")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--out", type=Path, default=Path("results/ho-table3"))
    options = parser.parse_args(arguments)
    if options.cv_rows < 5 or options.jobs < 1:
        parser.error("--cv-rows must be at least 5, --jobs at least 1")
    print(f"Brotto, Gentile & Vitale (2007), Table 3\n{describe_machine()}", flush=True)
    report = {}
    for kind, printed in TABLE_3.items():
        if kind[0] in options.data:
            try:
                lines = _lines(kind, printed, options)
            except FileNotFoundError as error:
                parser.error(str(error))
            show(kind, lines)
            report[" ".join(kind)] = lines
    write_json(options.out / "table3.json", {"cv_rows": options.cv_rows, "table": report})


def _lines(kind: tuple[str, str], printed: Iterable[str], options: Any) -> dict[str, Any]:
    data = permuted(load(kind[0]))
    return {
        algorithm: _kept(
            options.out / f"{'_'.join(kind)}_{algorithm.replace(' ', '_')}.json",
            partial(run_line, *kind, algorithm, data, options.cv_rows, options.jobs),
        )
        for algorithm in printed
    }


if __name__ == "__main__":
    main()
