"""Time until a margin is reached and proven, compared with LinearSVC's solvers.

MaxMarginClassifier stops at `tol`: its own bound proves that its margin is at least 1 - tol of the
largest. The peers prove nothing. Each runs with the loosest of its own tolerances (half decades
from 1 to 1e-8) at which its weights have that margin; the search is not timed. The ratio is to the
faster of LinearSVC's two solvers that reached the margin. The column "margin" measures all weights
in the same way. With a soft margin it uses the best possible slacks for the weights, so it exceeds
`margin_`, which uses the slacks found in training. In lines with the target "J", peers have to
reach this larger margin. The data are in the folder named by SPARSEMARGIN_DATA.
"""

import warnings
from argparse import Namespace
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from statistics import geometric_mean, median
from typing import Any, NamedTuple

import numpy as np
from corpora import load_sample
from scipy.sparse import csr_matrix, hstack
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVC
from timing import parser_of, run, timed, turns

from papers.data import load_sonar
from sparsemargin import MaxMarginClassifier
from sparsemargin.datasets import load_colon, load_leukemia, load_lymphoma

TOLERANCES = (0.1, 0.01)
# Total seconds of fits after which a solver is not repeated, even after a single fit.
ENOUGH = 1.0
TOPICS = ("GCAT", "CCAT", "C15")
SOFT_MARGINS = (1.0, 0.3, 0.1)


@dataclass(frozen=True)
class Problem:
    """Rows to separate by a hyperplane through the origin with the largest margin, p = 2.

    `rho` is a constant coordinate added to every row, 0: none. `soft_margin` is Delta, the value of
    the coordinate that each row has for itself; 0: a hard margin.
    """

    name: str
    X: csr_matrix
    y: np.ndarray
    rho: float = 0.0
    soft_margin: float = 0.0

    @cached_property
    def rows(self) -> csr_matrix:
        """X with the constant coordinate as its last column."""
        if not self.rho:
            return self.X
        constant = np.full((self.X.shape[0], 1), self.rho)
        return hstack([self.X, constant], format="csr")

    def margin(self, w: np.ndarray) -> float:
        """Return the margin of a weight vector over `rows`.

        With a soft margin, w is scaled and combined with the best slacks in the extended space. The
        margin is J^(-1/2), where J is the minimum over the scales.
        """
        outputs = self.y * (self.rows @ w)
        if self.soft_margin:
            return _least_objective(outputs, w @ w, self.soft_margin) ** -0.5
        return outputs.min() / np.linalg.norm(w)


def _least_objective(outputs: np.ndarray, square: float, soft_margin: float) -> float:
    """Minimize ``s^2 ||w||^2 + sum max(0, 1 - s y w.x)^2 / Delta^2`` over the scales s >= 0.

    The derivative is increasing, concave and piecewise linear. Newton's method from 0 therefore
    approaches the root from below through finitely many pieces.
    """
    s, previous = 0.0, -1.0
    while s > previous:
        violated = outputs[s * outputs < 1.0]
        previous, s = s, violated.sum() / (soft_margin**2 * square + violated @ violated)
    slacks = np.maximum(0.0, 1.0 - previous * outputs)
    return previous**2 * square + slacks @ slacks / soft_margin**2


def _problems(source: str) -> Iterator[Problem]:
    """Yield the problems of a source, which are read on demand."""
    if source == "rcv1":
        X, labels = load_sample(TOPICS)
        for topic in TOPICS:
            for delta in SOFT_MARGINS:
                name = f"RCV1 {topic}, Delta={delta:g}"
                yield Problem(name, X, labels[topic], soft_margin=delta)
        return
    X, y = SOURCES[source](return_X_y=True)
    if source in ("sonar", "lymphoma"):
        yield Problem(source, csr_matrix(X), y, rho=float(source == "sonar"))
    else:
        yield Problem(f"{source}, raw", csr_matrix(X), y)
        yield Problem(f"{source}, standardised", csr_matrix(scale(X)), y)


SOURCES: dict[str, Callable[..., Any]] = {
    "leukemia": load_leukemia, "colon": load_colon,
    "lymphoma": partial(load_lymphoma, "acl", missing="mean"), "sonar": load_sonar,
    "rcv1": load_sample,
}  # fmt: skip
# The tolerances of the peers, two per decade.
PEER_TOLERANCES = 10.0 ** np.arange(0.0, -8.25, -0.5)
# C of LinearSVC for a hard margin, in units of 1 / margin^2. It makes slacks negligible.
HARD_C = 1e4


class Solver(NamedTuple):
    """`fit()` is timed and returns a model; `proves`: whether it proves its margin."""

    name: str
    fit: Callable[[], Any]
    proves: bool = False


def ascent(problem: Problem, tol: float) -> Solver:
    """Dual coordinate ascent, stopped at a proven share of the largest margin."""
    model = MaxMarginClassifier(
        tol=tol, hypothesis="last", max_iter=None, random_state=0, fit_intercept=problem.rho > 0,
        intercept_scaling=problem.rho or 1.0, soft_margin=problem.soft_margin,
    )  # fmt: skip
    return Solver("MaxMargin", partial(model.fit, problem.X, problem.y), proves=True)


def linear_svc(problem: Problem, largest: float, dual: bool, tol: float) -> Solver:
    """LinearSVC without a bias, on rows with the constant coordinate."""
    soft_margin = problem.soft_margin
    model = LinearSVC(
        C=1 / (2 * soft_margin**2) if soft_margin else HARD_C / largest**2, dual=dual, tol=tol,
        max_iter=10**6 if dual else 1000, fit_intercept=False, random_state=0,
    )  # fmt: skip
    name = f"LinearSVC, {'dual' if dual else 'primal'}"
    return Solver(name, partial(model.fit, problem.rows, problem.y))


def weights(problem: Problem, model: Any) -> np.ndarray:
    """The weights over the rows of the problem, including the intercept's."""
    own = problem.rho and not isinstance(model, LinearSVC)
    return np.append(model.coef_[0], [model.intercept_[0] / problem.rho] if own else [])


def loosest(
    solver_at: Callable[[float], Solver], tolerances: Iterable[float], problem: Problem,
    target: float, limit: float,
) -> Solver:  # fmt: skip
    """Return the solver at the loosest tolerance that reaches a margin. If none does, or a fit
    takes longer than `limit` seconds, the returned solver falls short of it."""
    for tol in tolerances:
        solver = solver_at(float(tol))
        seconds, model = timed(solver.fit)
        if problem.margin(weights(problem, model)) >= target or seconds > limit:
            break
    return solver


def race(problem: Problem, tol: float, n_rounds: int, limit: float) -> list[dict[str, Any]]:
    """Measure all solvers on one problem at one tolerance. Returns an entry per solver and target,
    with the margin in the common measure. A search ends with a fit of more than `limit` seconds."""
    own = ascent(problem, tol)
    model = own.fit()
    targets = {"margin": model.margin_}
    entrants = [("margin", own)]
    if problem.soft_margin:
        targets["J"] = problem.margin(weights(problem, model))
        entrants.append(("J", own))
    for target, value in targets.items():
        for dual in (True, False):
            peer = partial(linear_svc, problem, model.margin_upper_bound_, dual)
            entrants.append((target, loosest(peer, PEER_TOLERANCES, problem, value, limit)))
    seconds, models = defaultdict(list), {}
    for _, i in turns(range(len(entrants)), n_rounds):
        if sum(seconds[i]) <= ENOUGH:
            elapsed, models[i] = timed(entrants[i][1].fit)
            seconds[i].append(elapsed)
    entries = []
    for i, (target, solver) in enumerate(entrants):
        found, margin = models[i], problem.margin(weights(problem, models[i]))
        figures = {key: getattr(found, key, None) for key in TOLD} | {"margin": margin}
        if solver.proves:
            proven = found.margin_ >= (1 - tol) * found.margin_upper_bound_
            figures["reached"] = "proven" if proven else "no"
        else:
            figures["reached"] = "yes" if margin >= targets[target] else "no"
        entries.append(
            {"data": problem.name, "kind": "soft" if problem.soft_margin else "hard", "tol": tol,
             "solver": solver.name, "target": target, **figures, "seconds": median(seconds[i]),
             "n_fits": len(seconds[i])}
        )  # fmt: skip
    return _with_ratios(entries)


TOLD = ("margin_", "margin_upper_bound_", "n_iter_", "n_corrections_")


def _with_ratios(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the ratio to the faster LinearSVC that reached the same target."""
    best: dict[str, float] = {}
    for entry in entries:
        if entry["solver"].startswith("LinearSVC") and entry["reached"] == "yes":
            known = best.get(entry["target"], entry["seconds"])
            best[entry["target"]] = min(known, entry["seconds"])
    for entry in entries:
        has_ratio = entry["target"] in best and entry["reached"] != "no"
        entry["x LinearSVC"] = entry["seconds"] / best[entry["target"]] if has_ratio else None
    return entries


def summarise(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return MaxMargin's ratios to LinearSVC: geometric mean, minimum and maximum over the data."""
    found = defaultdict(list)
    keys = "kind", "tol", "solver", "target"
    for entry in entries:
        if entry["solver"].startswith("MaxMargin") and entry["x LinearSVC"] is not None:
            found[tuple(entry[key] for key in keys)].append(entry["x LinearSVC"])
    return [
        dict(zip(keys, of, strict=True))
        | {"x LinearSVC": geometric_mean(values), "least": min(values), "largest": max(values)}
        for of, values in found.items()
    ]


def measure(options: Namespace) -> dict[str, Any]:
    """Run the races on all problems of the sources."""
    entries = []
    warnings.simplefilter("ignore", ConvergenceWarning)
    for source in options.data or (["sonar"] if options.quick else SOURCES):
        for problem in _problems(source):
            for tol in TOLERANCES:
                entries += race(problem, tol, options.rounds, options.limit)
    return {"summary": summarise(entries), "entries": entries}


if __name__ == "__main__":
    parser = parser_of(__doc__, "results/margin.json")
    parser.add_argument("--data", nargs="+", choices=SOURCES, help="default: all")
    parser.add_argument("--limit", type=float, default=5.0, help="seconds of a search (default 5)")
    run(parser, {"margins": measure}, (5, 5))
