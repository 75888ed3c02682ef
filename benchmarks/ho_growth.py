"""Time per mistake of a matrix Perceptron, against the nonzeros of the mistakes it stores.

Text with a fifth of its labels flipped comes in small calls of `partial_fit`. The time of a call
over its mistakes includes its trials without a mistake.
"""

from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from measure import garbage_collection_off, in_turn, text_table, timed
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.utils import check_random_state

from sparsemargin import HigherOrderPerceptron, SecondOrderPerceptron
from sparsemargin.evaluation import growth_exponent
from sparsemargin.evaluation.growth import GrowthExponent
from sparsemargin.plotting import GrowthCurve, GrowthDisplay, theme

ROWS_A_CALL = 250
FLIPPED = 0.2
# The least-squares line leaves out the beginning, where fixed costs prevail.
FITTED_FROM = 500
COLUMNS = [
    ("", ""), ("mistakes", ",d"), ("stored nonzeros", ",.0f"), ("us/mistake", ".1f"),
    ("ns/nonzero", ".3f"),
]  # fmt: skip


class Growing(NamedTuple):
    """An estimator, and the mistakes to stop at."""

    estimator: Any
    most_mistakes: int


UNBOUNDED = {"max_updates": None, "fit_intercept": False, "hypothesis": "average"}
GROWING = {
    "HO_2(0.4)": Growing(HigherOrderPerceptron(**UNBOUNDED), 5000),
    "HO_7(0.4)": Growing(HigherOrderPerceptron(p=7, **UNBOUNDED), 5000),
    # Its k-th mistake costs k^2 numbers, so that 5000 take minutes.
    "SO(1)": Growing(SecondOrderPerceptron(**UNBOUNDED), 2000),
}


class Growth(NamedTuple):
    """What the calls of one algorithm came to, in order; arrays of shape (n_calls,).

    Attributes
    ----------
    mistakes, nonzeros : ndarray
        Stored by the middle of the call.
    seconds : ndarray
        Per mistake of the call, median over the rounds.
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
    rounds = {name: [] for name in GROWING}
    with garbage_collection_off():
        for number in range(n_rounds):
            for name in in_turn(list(GROWING), number):
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


def show(growths: dict[str, Growth], n_shown: int = 6) -> None:
    """Print the exponents, and some of the calls."""
    print(
        f"\nTime per mistake against stored nonzeros, {FLIPPED:.0%} of the labels flipped, "
        f"{ROWS_A_CALL} rows a call\n"
    )
    rows = []
    for name, growth in growths.items():
        for call in np.linspace(1, len(growth.seconds) - 1, n_shown).astype(int):
            nonzeros, seconds = growth.nonzeros[call], growth.seconds[call]
            rows.append(
                (name, growth.mistakes[call], nonzeros, 1e6 * seconds, 1e9 * seconds / nonzeros)
            )
    print(text_table(COLUMNS, rows) + "\n")
    for name, growth in growths.items():
        print(f"{name}: time per mistake grows as nonzeros^{growth.exponent}")
    print(f"(least squares on logarithms, from {FITTED_FROM} mistakes on; aim for HO_p: <= 1)")


def plot(growths: dict[str, Growth], path: Path) -> None:
    """Draw time per mistake against stored nonzeros, both on logarithmic axes."""
    curves = {
        name: GrowthCurve(growth.nonzeros, growth.seconds, growth.exponent)
        for name, growth in growths.items()
    }
    with theme("light"):
        figure = Figure(figsize=(9, 5), layout="constrained")
        display = GrowthDisplay(
            curves, size_name="stored nonzeros", time_name="seconds per mistake"
        )
        display.plot(figure.subplots())
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
