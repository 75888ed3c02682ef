"""Which intercept and how many epochs the named algorithms should have by default.

Each setting's error is cross-validated, five folds of rows shuffled once, on text, microarrays and
other data; a set's figure is the mean over its problems. The defaults are those of the least mean
but where twice the epochs gain a tenth of a point, or half a point at the cost of a matrix.
``--log FILE`` keeps every figure; named_defaults.json is the log that they were chosen by.
Sets that SPARSEMARGIN_DATA doesn't have are left out.
"""

import argparse
import json
import os
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from measure import markdown_table
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import StratifiedKFold

import sparsemargin
from sparsemargin import datasets
from sparsemargin.models import find_algorithm

ROWS = 2000  # of a problem, at the most
INTERCEPTS: dict[str, dict[str, Any]] = {
    "none": {"fit_intercept": False},
    "1": {"fit_intercept": True, "intercept_scaling": 1.0},
    "auto": {"fit_intercept": True, "intercept_scaling": "auto"},
}
EPOCHS = (1, 2, 5, 10, 20)
ALGORITHMS: dict[str, dict[str, Any]] = {
    "perceptron": {}, "pnorm": {}, "pnorm, p = 6": {"p": 6}, "alma": {},
    "ho": {}, "ho, p = 7": {"p": 7}, "so": {},
}  # fmt: skip
#: What each algorithm had before, and has now.
BEFORE = {name: f"none, {1 if name[:2] in ('ho', 'so') else 5}" for name in ALGORITHMS}

Problem = tuple[Any, np.ndarray]


def problems() -> Iterator[tuple[str, Problem]]:
    """Sets by name, each with its problems."""
    if os.environ.get("SPARSEMARGIN_DATA"):
        stories = datasets.load_rcv1(["GCAT", "C15", "ECAT", "M14", "GSPO", "C18"], n_train=ROWS)
        for topic in range(stories.target.shape[1]):
            labels = stories.target[:ROWS][:, [topic]].toarray().ravel()
            yield "RCV1 topics", (stories.data[:ROWS], labels)
        for load in (
            datasets.load_leukemia, datasets.load_colon, datasets.load_breast_er,
            datasets.load_lymphoma,
        ):  # fmt: skip
            yield "microarrays, raw", (load().data, load().target)
    for noise in (0.0, 0.05):
        yield "Zipf text", datasets.make_zipf_text(ROWS, noise=noise, random_state=7)
    yield "Zipf text", datasets.make_zipf_text(ROWS, n_classes=5, random_state=8)
    for load in (load_breast_cancer, load_wine, load_digits):
        yield "scikit-learn's, raw", load(return_X_y=True)


def error(algo: str, problem: Problem, **params: Any) -> float:
    """Cross-validated error, %."""
    X, y = problem
    folds = StratifiedKFold(5, shuffle=True, random_state=0).split(np.zeros(len(y)), y)
    wrong = 0
    for train, test in folds:
        model = sparsemargin.fit_csr(X[train], y[train], algo, random_state=0, **params)
        wrong += int(np.sum(model.predict(X[test]) != y[test]))
    return 100 * wrong / len(y)


def _now(algo: str) -> str:
    """The setting that the algorithm has by default."""
    learner, fixed = find_algorithm(algo.split(",")[0], {})
    return f"{learner(**fixed).intercept_scaling}, {learner(**fixed).max_iter}"


def main() -> None:
    """Measure every setting, and print the best of each algorithm."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--log", type=Path)
    parser.add_argument("--algorithms", nargs="+", default=list(ALGORITHMS))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    sets: dict[str, list[Problem]] = {}
    for name, problem in problems():
        sets.setdefault(name, []).append(problem)
    log: dict[str, dict[str, Any]] = {}
    lines = []
    for algo in arguments.algorithms:
        found = log[algo] = {}
        for intercept, epochs in product(INTERCEPTS, EPOCHS):
            settings = ALGORITHMS[algo] | INTERCEPTS[intercept] | {"max_iter": epochs}
            found[f"{intercept}, {epochs}"] = {
                name: mean(error(algo.split(",")[0], problem, **settings) for problem in members)
                for name, members in sets.items()
            }
        by_mean = {setting: mean(errors.values()) for setting, errors in found.items()}
        best = min(by_mean, key=by_mean.get)
        for setting in dict.fromkeys((BEFORE[algo], _now(algo), best)):
            lines.append([algo, setting, *(f"{e:.2f}" for e in found[setting].values()),
                          f"{by_mean[setting]:.2f}"])  # fmt: skip
        print(algo, {setting: round(e, 2) for setting, e in by_mean.items()}, flush=True)
        if arguments.log:
            arguments.log.write_text(json.dumps(log, indent=1) + "\n")
    print(markdown_table(["algorithm", "intercept, epochs", *sets, "mean"], lines))


if __name__ == "__main__":
    main()
