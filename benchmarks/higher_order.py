"""Speed of the Higher-order and the Second-order Perceptron compared with LinearSVC.

`race`: one epoch on 10,000 RCV1 stories (GCAT). `growth`: time per mistake as the matrix grows.
Text with a fifth of its labels flipped is trained in small calls of `partial_fit`; the time of a
call per mistake includes trials without a mistake. Target for HO_p: linear growth. `shapes`: fits
of several shapes in separate processes, with the form of the matrix, CPU time, the peak memory in
addition to X, and test errors. The first two need RCV1 in the folder named by SPARSEMARGIN_DATA.

    python benchmarks/higher_order.py [--only race growth shapes] [--quick] [--rounds N]
"""

from argparse import Namespace
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import timing
from exponents import growth_exponent
from floor import ONE_EPOCH
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.svm import LinearSVC
from sklearn.utils import check_random_state
from timing import minimum_and_median, ratios, timed

from sparsemargin import HigherOrderPerceptron, PNormPerceptron, SecondOrderPerceptron
from sparsemargin.datasets import load_rcv1, make_ho_target, make_zipf_text

TOPIC, N_ROWS = "GCAT", 10_000
UNBOUNDED = ONE_EPOCH | {"max_updates": None, "alpha": None, "hypothesis": "average"}
HO = partial(HigherOrderPerceptron, **UNBOUNDED)
#: Estimators by name.
ESTIMATORS = {
    "HO_2(0.4)": HO(), "HO_7(0.4)": HO(p=7), "SO(1)": SecondOrderPerceptron(**UNBOUNDED),
}  # fmt: skip
MEASURE = "LinearSVC()"
#: Contestants of the race, with the largest accepted time relative to LinearSVC.
CONTESTANTS: dict[str, tuple[Any, float | None]] = {
    MEASURE: (LinearSVC(), None), "HO_2(0.4)": (HO(), 1.0),
    "HO_2(0.4), last": (HO(hypothesis="last"), 1.0), "HO_7(0.4)": (HO(p=7), 2.5),
    "SO(1)": (ESTIMATORS["SO(1)"], None),
    "p-norm, p = 2": (PNormPerceptron(**ONE_EPOCH, hypothesis="average"), None),
}  # fmt: skip


def race_on(X: Any, y: np.ndarray, n_rounds: int) -> list[dict[str, Any]]:
    """Time fits of all contestants on the same rows, taking turns. Returns an entry for each, with
    the mistakes of the last round, milliseconds and their ratios to LinearSVC."""

    def prepare(estimator: Any, seed: int) -> Callable[[], Any]:
        return partial(clone(estimator).set_params(random_state=seed).fit, X, y)

    def n_corrections(name: str, model: Any) -> int | None:
        return getattr(model, "n_corrections_", None)

    fits = {name: partial(prepare, estimator) for name, (estimator, _) in CONTESTANTS.items()}
    seconds, mistakes = timing.race(fits, n_rounds, n_corrections)
    times = {name: minimum_and_median(own, 1e-3) for name, own in seconds.items()}
    return [
        {"contestant": name, "mistakes": mistakes[name][-1], "milliseconds": times[name],
         "times_linear_svc": ratios(times[name], times[MEASURE]), "aim": aim}
        for name, (_, aim) in CONTESTANTS.items()
    ]  # fmt: skip


def race(options: Namespace) -> dict[str, Any]:
    """Time one epoch of all contestants."""
    X, y = load_rcv1(TOPIC, return_X_y=True)
    X, y = X[:N_ROWS], y[:N_ROWS]
    race_on(X, y, 1)  # a first fit pays for lazy imports
    entries = race_on(X, y, options.rounds)
    return {"race": entries}


ROWS_A_CALL = 250
FLIPPED = 0.2
# The least-squares line excludes the beginning, which is dominated by fixed costs.
FITTED_FROM = 500
#: Mistakes to stop at. The k-th mistake of SO costs k^2 numbers, so 5000 mistakes take minutes.
MOST_MISTAKES = {"HO_2(0.4)": 5000, "HO_7(0.4)": 5000, "SO(1)": 2000}


def flip(y: np.ndarray) -> np.ndarray:
    """Return the labels with a fixed random part of them flipped."""
    return np.where(check_random_state(0).uniform(size=len(y)) < FLIPPED, -y, y)


def measure_growth(
    X: csr_matrix, y: np.ndarray, n_rounds: int, part: float = 1.0
) -> dict[str, dict[str, Any]]:
    """Run all estimators on (part of) the rows once in each round; time every call."""
    y = flip(y)
    rounds: dict[str, list] = {name: [] for name in ESTIMATORS}
    for _, name in timing.turns(list(ESTIMATORS), n_rounds):
        rounds[name].append(_run(clone(ESTIMATORS[name]), X, y, part * MOST_MISTAKES[name]))
    return {name: growth_of(*_combine(X, runs)) for name, runs in rounds.items()}


def _run(model: Any, X: csr_matrix, y: np.ndarray, most_mistakes: float) -> tuple:
    """Train until there are enough mistakes. Return the number of mistakes after each call, the
    seconds of each call, and the mistaken rows."""
    counts, seconds = [0], []
    for start in range(0, X.shape[0], ROWS_A_CALL):
        rows = slice(start, start + ROWS_A_CALL)
        call = partial(model.partial_fit, X[rows], y[rows], classes=(-1, 1))
        seconds.append(timed(call)[0])
        counts.append(model.n_corrections_)
        if counts[-1] >= most_mistakes:
            break
    return np.array(counts), seconds, model.mistakes_


def _combine(X: csr_matrix, runs: list[tuple]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    counts, _, rows = runs[0]  # equal in every round
    seconds = np.median([run[1] for run in runs], axis=0)
    stored = np.concatenate([[0], np.cumsum(np.diff(X.indptr)[rows])])[counts]
    made = np.diff(counts)
    some = made > 0
    mistakes, nonzeros = (counts[1:] + counts[:-1]) // 2, (stored[1:] + stored[:-1]) / 2
    return mistakes[some], nonzeros[some], seconds[some] / made[some]


def growth_of(mistakes: np.ndarray, nonzeros: np.ndarray, seconds: np.ndarray) -> dict[str, Any]:
    """The report on the calls of one algorithm, with the fitted exponent."""
    late = mistakes >= FITTED_FROM
    calls = {"mistakes": mistakes, "nonzeros": nonzeros, "seconds": seconds}
    exponent = growth_exponent(nonzeros[late], seconds[late])._asdict()
    return {"exponent": exponent} | {name: values.tolist() for name, values in calls.items()}


def growth(options: Namespace) -> dict[str, Any]:
    """Time per mistake against the nonzeros of the stored mistakes."""
    X, y = load_rcv1(TOPIC, return_X_y=True)
    growths = measure_growth(X, y, *((1, 0.5) if options.quick else (3,)))
    return {"growth": growths}


class Shape(NamedTuple):
    """Rows drawn by `draw(n_rows)`, with fewer rows in a quick run, and the estimators to fit."""

    n_rows: int
    n_rows_quick: int
    draw: Callable[[int], tuple[Any, np.ndarray]]
    estimators: dict[str, Any]


def _ho_target(n_rows: int, **params: Any) -> tuple[Any, np.ndarray]:
    return make_ho_target(n_rows, 0, random_state=0, **params)[:2]


def _documents(n_rows: int, names: tuple[str, ...]) -> Shape:
    draw = partial(make_zipf_text, noise=0.05, random_state=0)
    return Shape(n_rows, n_rows // 20, draw, {name: AS_THEY_COME[name] for name in names})


AS_THEY_COME = {
    MEASURE: LinearSVC(), "HigherOrderPerceptron(p=7)": HigherOrderPerceptron(p=7),
    "HigherOrderPerceptron()": HigherOrderPerceptron(),
    "SecondOrderPerceptron()": SecondOrderPerceptron(),
}  # fmt: skip
BOTH_P = tuple(AS_THEY_COME)[:3]
SHAPES = {
    "60 features, noisy": Shape(
        1_000_000, 50_000, partial(_ho_target, n_features=60, n_relevant=6, noise=0.1), ESTIMATORS
    ),
    "10^6 features, sparse": Shape(
        100_000, 10_000, partial(make_zipf_text, n_features=1_000_000, random_state=0),
        AS_THEY_COME,
    ),
    "60 x 4026, dense, 5 epochs": Shape(
        60, 60, partial(_ho_target, n_features=4026, sparse=False),
        {name: clone(model).set_params(max_iter=5) for name, model in ESTIMATORS.items()},
    ),
    "50,000 documents": _documents(50_000, tuple(AS_THEY_COME)),
    "100,000 documents": _documents(100_000, tuple(AS_THEY_COME)),
    "800,000 documents": _documents(800_000, BOTH_P),
}  # fmt: skip


def measure_fit(model: Any, X: Any, y: np.ndarray, X_test: Any, y_test: np.ndarray) -> dict:
    """Run in a new process: fit, and return the facts of the fit."""
    held = timing.fitted(model.set_params(random_state=0), X, y)
    names = {"solver": "solver_", "mistakes": "n_corrections_", "updates": "n_updates_"}
    return {name: getattr(model, of, None) for name, of in names.items()} | {
        "n_rows": len(y), "cpu_seconds": held["cpu_seconds"], "X_bytes": timing.bytes_of(X),
        "added_bytes": held["added_bytes"], "test_error": 1 - model.score(X_test, y_test),
    }  # fmt: skip


def shapes(options: Namespace) -> dict[str, Any]:
    """Fit every estimator on every shape; only on systems that report the peak of a process."""
    entries = []
    for name, shape in SHAPES.items() if timing.STATUS.exists() else ():
        n_rows = shape.n_rows_quick if options.quick else shape.n_rows
        X, y = shape.draw(n_rows + max(1000, n_rows // 10))
        sides = X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]
        found = {each: timing.apart(measure_fit, model, *sides)
                 for each, model in shape.estimators.items()}  # fmt: skip
        svc = found.get(MEASURE, {}).get("cpu_seconds")
        for each, facts in found.items():
            times = {"times_linear_svc": svc and facts["cpu_seconds"] / svc}
            entries.append({"shape": name, "contestant": each} | facts | times)
    return {"shapes": entries}


if __name__ == "__main__":
    MEASUREMENTS = {"race": race, "growth": growth, "shapes": shapes}
    timing.run(timing.parser_of(__doc__, "results/higher-order.json"), MEASUREMENTS, (15, 5))
