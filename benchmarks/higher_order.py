"""How fast are the Higher-order and the Second-order Perceptron, beside LinearSVC on the same rows?

`race`: one epoch on 10,000 RCV1 stories (GCAT), the contestants taking turns. `growth`: the time
per mistake as the matrix grows; text with a fifth of its labels flipped comes in small calls of
`partial_fit`, and the time of a call over its mistakes includes its trials without a mistake.
`shapes`: fits of three shapes, with the form the matrix takes and the peak memory beside X, each in
a process of its own. Quote the ratios: they were measured side by side in one run. The times belong
to the machine.

Needs RCV1, looked for in the folder that SPARSEMARGIN_DATA names.

    python benchmarks/higher_order.py [--only race growth shapes] [--quick] [--rounds N]
"""

import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import timing
from corpora import load_rows, save_rows
from floor import ONE_EPOCH
from scipy.sparse import csr_matrix, issparse
from sklearn.base import clone
from sklearn.svm import LinearSVC
from sklearn.utils import check_random_state
from tables import show
from timing import minimum_and_median, ratios, timed

from sparsemargin import HigherOrderPerceptron, PNormPerceptron, SecondOrderPerceptron
from sparsemargin.datasets import load_rcv1, make_ho_target, make_zipf_text
from sparsemargin.evaluation import growth_exponent
from sparsemargin.evaluation.growth import GrowthExponent

TOPIC, N_ROWS = "GCAT", 10_000


class Contestant(NamedTuple):
    """A line of the race: `make(seed)` returns the estimator; at most `aim` times LinearSVC."""

    name: str
    make: Callable[[int], Any]
    dtype: type = np.float64
    aim: float | None = None


def _ours(estimator: type, **params: Any) -> Callable[[int], Any]:
    params = ONE_EPOCH | {"hypothesis": "average"} | params
    if estimator is not PNormPerceptron:
        params["max_updates"] = None
    return lambda seed: estimator(**params, random_state=seed)


MEASURE = "LinearSVC()"
CONTESTANTS = [
    Contestant(MEASURE, lambda seed: LinearSVC(random_state=seed)),
    Contestant("HO_2(0.4)", _ours(HigherOrderPerceptron), aim=1.0),
    Contestant("HO_2(0.4), last", _ours(HigherOrderPerceptron, hypothesis="last"), aim=1.0),
    Contestant("HO_2(0.4), float32", _ours(HigherOrderPerceptron), np.float32),
    Contestant("HO_7(0.4)", _ours(HigherOrderPerceptron, p=7), aim=2.5),
    Contestant("SO(1)", _ours(SecondOrderPerceptron)),
    Contestant("HO_2(0)", _ours(HigherOrderPerceptron, c=0.0)),
    Contestant("p-norm, p = 2", _ours(PNormPerceptron)),
]


def race_on(X: Any, y: np.ndarray, n_rounds: int) -> list[dict[str, Any]]:
    """Time fits of all contestants on the same rows, in turn.

    Returned: one entry for each: the mistakes of the last round, milliseconds and their ratios
    to LinearSVC's, each the minimum and the median.
    """
    rows = {dtype: X.astype(dtype) for dtype in (np.float64, np.float32)}
    fits = {
        each.name: lambda seed, each=each: partial(each.make(seed).fit, rows[each.dtype], y)
        for each in CONTESTANTS
    }
    tell = lambda name, model: getattr(model, "n_corrections_", None)  # noqa: E731
    seconds, mistakes = timing.race(fits, n_rounds, tell)
    times = {name: minimum_and_median(own, 1e-3) for name, own in seconds.items()}
    return [
        {
            "contestant": contestant.name,
            "mistakes": mistakes[contestant.name][-1],
            "milliseconds": times[contestant.name],
            "times_linear_svc": ratios(times[contestant.name], times[MEASURE]),
            "aim": contestant.aim,
        }
        for contestant in CONTESTANTS
    ]


def race(options: Namespace) -> dict[str, Any]:
    """One epoch of everybody."""
    X, y = load_rcv1(TOPIC, subset="train", n_train=N_ROWS, return_X_y=True)
    race_on(X, y, 1)  # a first fit pays for lazy imports
    entries = race_on(X, y, options.rounds)
    columns = [
        ("", "{contestant}"), ("mistakes", "{mistakes}"), ("ms min", "{milliseconds[min]:.1f}"),
        ("median", "{milliseconds[median]:.1f}"),
        ("x LinearSVC min", "{times_linear_svc[min]:.2f}"),
        ("median", "{times_linear_svc[median]:.2f}"), ("aim", "<= {aim:g}"),
    ]  # fmt: skip
    show(
        f"One epoch, {X.shape[0]:,} RCV1 stories, {TOPIC}, {X.nnz / X.shape[0]:.0f} nonzeros a "
        f"row, {options.rounds} rounds; LinearSVC runs to its own tolerance",
        columns, entries,
    )  # fmt: skip
    return {"race": entries}


ROWS_A_CALL = 250
FLIPPED = 0.2
# The least-squares line leaves out the beginning, where fixed costs prevail.
FITTED_FROM = 500
UNBOUNDED = {"max_updates": None, "fit_intercept": False, "hypothesis": "average"}
#: Estimators, and the mistakes to stop at.
GROWING: dict[str, tuple[Any, int]] = {
    "HO_2(0.4)": (HigherOrderPerceptron(**UNBOUNDED), 5000),
    "HO_7(0.4)": (HigherOrderPerceptron(p=7, **UNBOUNDED), 5000),
    # Its k-th mistake costs k^2 numbers, so that 5000 take minutes.
    "SO(1)": (SecondOrderPerceptron(**UNBOUNDED), 2000),
}


class Growth(NamedTuple):
    """What the calls of one algorithm came to, in order; arrays of shape (n_calls,).

    `mistakes, nonzeros`: Stored by the middle of the call. `seconds`: Per mistake of the call,
    median over the rounds.
    """

    mistakes: np.ndarray
    nonzeros: np.ndarray
    seconds: np.ndarray

    @property
    def exponent(self) -> GrowthExponent:
        """With what power of the nonzeros the time grows."""
        late = self.mistakes >= FITTED_FROM
        return growth_exponent(self.nonzeros[late], self.seconds[late])

    def as_json(self) -> dict[str, Any]:
        """Return the calls as they are written to the report."""
        calls = {name: values.tolist() for name, values in self._asdict().items()}
        return {"exponent": self.exponent._asdict()} | calls


def flip(y: np.ndarray) -> np.ndarray:
    """Return the labels, a fixed random part of them flipped."""
    return np.where(check_random_state(0).uniform(size=len(y)) < FLIPPED, -y, y)


def measure_growth(
    X: csr_matrix, y: np.ndarray, n_rounds: int, part: float = 1.0
) -> dict[str, Growth]:
    """Run all of `GROWING`, or the first part of each, once in each round; time every call."""
    y = flip(y)
    rounds: dict[str, list] = {name: [] for name in GROWING}
    for _, name in timing.turns(list(GROWING), n_rounds):
        estimator, most_mistakes = GROWING[name]
        rounds[name].append(_run(clone(estimator), X, y, part * most_mistakes))
    return {name: _combine(X, runs) for name, runs in rounds.items()}


def _run(model: Any, X: csr_matrix, y: np.ndarray, most_mistakes: float) -> tuple:
    """Feed rows until there are enough mistakes: counts after each call, its seconds, the rows."""
    counts, seconds = [0], []
    for start in range(0, X.shape[0], ROWS_A_CALL):
        rows = slice(start, start + ROWS_A_CALL)
        call = partial(model.partial_fit, X[rows], y[rows], classes=(-1, 1))
        seconds.append(timed(call)[0])
        counts.append(model.n_corrections_)
        if counts[-1] >= most_mistakes:
            break
    return np.array(counts), seconds, model.mistakes_


def _combine(X: csr_matrix, runs: list[tuple]) -> Growth:
    counts, _, rows = runs[0]  # the same in every round
    seconds = np.array([median(of_call) for of_call in zip(*(run[1] for run in runs), strict=True)])
    stored = np.concatenate([[0], np.cumsum(np.diff(X.indptr)[rows])])[counts]
    made = np.diff(counts)
    some = made > 0
    return Growth(
        ((counts[1:] + counts[:-1]) // 2)[some],
        ((stored[1:] + stored[:-1]) / 2)[some],
        seconds[some] / made[some],
    )


def growth(options: Namespace) -> dict[str, Any]:
    """Time per mistake against the nonzeros of the mistakes that are stored."""
    X, y = load_rcv1(TOPIC, return_X_y=True)
    growths = measure_growth(X, y, *((1, 0.5) if options.quick else (3,)))
    rows = [
        {"name": name, "mistakes": of.mistakes[call], "nonzeros": of.nonzeros[call],
         "seconds": of.seconds[call], "each": of.seconds[call] / of.nonzeros[call]}
        for name, of in growths.items()
        for call in np.linspace(1, len(of.seconds) - 1, 6).astype(int)
    ]  # fmt: skip
    columns = [
        ("", "{name}"), ("mistakes", "{mistakes:,d}"), ("stored nonzeros", "{nonzeros:,.0f}"),
        ("us/mistake", "{seconds:.1u}"), ("ns/nonzero", "{each:.3n}"),
    ]  # fmt: skip
    title = f"Time per mistake against stored nonzeros, {FLIPPED:.0%} of the labels flipped, "
    show(f"{title}{ROWS_A_CALL} rows a call", columns, rows)
    for name, of in growths.items():
        print(f"{name}: time per mistake grows as nonzeros^{of.exponent}")
    print(f"(least squares on logarithms, from {FITTED_FROM} mistakes on; aim for HO_p: <= 1)")
    return {"growth": {name: of.as_json() for name, of in growths.items()}}


WARM_UP_ROWS, WARM_UP_FEATURES = 20, 50


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


def measure_fit(folder: str, shape: str, name: str) -> dict[str, Any]:
    """Run apart: read the rows, fit, and return the facts of the fit."""
    X, y = load_rows(Path(folder), "rows")
    model = SHAPES[shape].estimators[name]
    little = X[:WARM_UP_ROWS, :WARM_UP_FEATURES], y[:WARM_UP_ROWS]
    fitted = timing.added_by(lambda: model.fit(*little), lambda: model.fit(X, y))
    return {
        "shape": shape, "estimator": name, "n_rows": len(y), "seconds": fitted["seconds"],
        "solver": model.solver_, "mistakes": model.n_corrections_, "updates": model.n_updates_,
        "X_bytes": X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if issparse(X) else X.nbytes,
        "added_bytes": fitted["added_bytes"],
    }  # fmt: skip


def shapes(options: Namespace) -> dict[str, Any]:
    """Every estimator on every shape; none where the system doesn't tell a process's peak."""
    entries = []
    for name, shape in SHAPES.items() if timing.STATUS.exists() else ():
        with tempfile.TemporaryDirectory() as folder:
            rows = shape.draw(shape.n_rows_quick if options.quick else shape.n_rows)
            save_rows(Path(folder), "rows", *rows)
            for estimator in shape.estimators:
                print(f"{name}, {estimator} ...", file=sys.stderr, flush=True)
                entries.append(timing.apart(measure_fit, folder, name, estimator))
    columns = [
        ("shape", "{shape}, {n_rows:,} rows"), ("", "{estimator}"), ("seconds", "{seconds:.3f}"),
        ("solver_", "{solver}"), ("mistakes", "{mistakes:,d}"), ("n_updates_", "{updates:,d}"),
        ("X MB", "{X_bytes:.1M}"), ("fit adds MB", "{added_bytes:.1M}"),
    ]  # fmt: skip
    show("One fit of each shape, averaged hypothesis", columns, entries)
    return {"shapes": entries}


if __name__ == "__main__":
    MEASUREMENTS = {"race": race, "growth": growth, "shapes": shapes}
    timing.run(timing.parser_of(__doc__, "results/higher-order.json"), MEASUREMENTS, (15, 5))
