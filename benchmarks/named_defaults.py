"""The choice of p, the intercept and the number of epochs of the named algorithms.

`larger-p`: when a larger p helps and when it hurts, on the ten RCV1 topics for reports, and on the
artificial data of the ALMA paper, where 3 or 300 of 300 features are relevant and 0 % or 10 % of
the training labels are wrong.

`named`: the intercept and the number of epochs of the named algorithms. The error of each setting
is cross-validated on text, microarrays and other data; the figure of a set is the mean over its
problems. The defaults have the smallest mean, unless twice the epochs gain only 0.1 points, or 0.5
points for algorithms with a matrix.

`larger-p` and a part of the data of `named` need the files in the folder named by
SPARSEMARGIN_DATA. The figures behind the choice are in named_defaults.json.

    python benchmarks/named_defaults.py [--only named larger-p] [--draws 3]
"""

import os
import warnings
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from itertools import product
from statistics import mean
from typing import Any

import numpy as np
import timing
from corpora import halves, load_topics
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import StratifiedKFold

from sparsemargin import datasets, fit_csr
from sparsemargin.models import find_algorithm

Problem = tuple[Any, np.ndarray]

NORMS = (2, 3, 4, 6, 10)
ALPHAS = (0.9, 0.8, 0.5)


def larger_p(options: Namespace) -> dict[str, Any]:
    """Errors of all p and alpha on all data, in percent."""
    topics = halves(load_topics())[1].sides()
    problems = {
        f"{n_relevant} of 300, noise {noise:g}": [
            datasets.make_alma_target(n_relevant=n_relevant, noise=noise, random_state=seed)[:4]
            for seed in range(options.draws)
        ]
        for n_relevant, noise in product((3, 300), (0.0, 0.1))
    }
    entries = []
    for alpha, p in product(ALPHAS, NORMS):
        alma = partial(fit_csr, algo="alma", p=p, alpha=alpha, random_state=0)
        entry = {"alpha": alpha, "p": p, "RCV1": mean(topics.errors(alma).values())}
        for name, draws in problems.items():
            scores = [alma(X, y).score(X_test, y_test) for X, y, X_test, y_test in draws]
            entry[name] = mean(100 * (1 - score) for score in scores)
        entries.append(entry)
    return {"draws": options.draws, "errors": entries}


ROWS = 2000  # largest number of rows of a text problem
NAMED_INTERCEPTS: dict[str, dict[str, Any]] = {
    "none": {"fit_intercept": False},
    "1": {"fit_intercept": True, "intercept_scaling": 1.0},
    "auto": {"fit_intercept": True, "intercept_scaling": "auto"},
}
NAMED_EPOCHS = (1, 2, 5, 10, 20)
ALGORITHMS: dict[str, dict[str, Any]] = {
    "perceptron": {}, "pnorm": {}, "pnorm, p = 6": {"p": 6}, "alma": {},
    "ho": {}, "ho, p = 7": {"p": 7}, "so": {},
}  # fmt: skip


def problems() -> Iterator[tuple[str, Problem]]:
    """Yield problems with the name of their set."""
    if os.environ.get("SPARSEMARGIN_DATA"):
        stories = datasets.load_rcv1(["GCAT", "C15", "ECAT", "M14", "GSPO", "C18"])
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
    """Cross-validated error in percent."""
    X, y = problem
    folds = StratifiedKFold(5, shuffle=True, random_state=0).split(np.zeros(len(y)), y)
    wrong = 0
    for train, test in folds:
        model = fit_csr(X[train], y[train], algo, random_state=0, **params)
        wrong += int(np.sum(model.predict(X[test]) != y[test]))
    return 100 * wrong / len(y)


def _now(algo: str) -> str:
    """The current default setting of the algorithm."""
    learner, fixed = find_algorithm(algo.split(",")[0], {})
    return f"{learner(**fixed).intercept_scaling}, {learner(**fixed).max_iter}"


def named(options: Namespace) -> dict[str, Any]:
    """Errors of every setting; the default and the best of each algorithm are shown."""
    warnings.simplefilter("ignore")
    sets: dict[str, list[Problem]] = {}
    for name, problem in problems():
        sets.setdefault(name, []).append(problem)
    log: dict[str, dict[str, Any]] = {}
    rows = []
    for algo in ALGORITHMS:
        found = log[algo] = {}
        for intercept, epochs in product(NAMED_INTERCEPTS, NAMED_EPOCHS):
            settings = ALGORITHMS[algo] | NAMED_INTERCEPTS[intercept] | {"max_iter": epochs}
            found[f"{intercept}, {epochs}"] = {
                name: mean(error(algo.split(",")[0], problem, **settings) for problem in members)
                for name, members in sets.items()
            }
        best = min(found, key=lambda setting: mean(found[setting].values()))
        for setting in dict.fromkeys((_now(algo), best)):
            errors = found[setting] | {"mean": mean(found[setting].values())}
            rows.append({"algo": algo, "setting": setting, "errors": errors})
    return {"named": log, "best": rows}


if __name__ == "__main__":
    parser = timing.parser_of(__doc__, "results/named_defaults.json")
    parser.add_argument("--draws", type=int, default=3, help="of the artificial data (default 3)")
    timing.run(parser, {"larger-p": larger_p, "named": named}, (1, 1))
