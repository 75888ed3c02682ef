"""How soon is a margin reached and proven, beside scikit-learn's solvers reaching the same?

MaxMarginClassifier stops at `tol`: its margin is then at least 1 - tol of the largest, by a bound
of its own. The peers prove nothing. Each runs at the loosest of its own tolerances (half decades
from 1 to 1e-8) at which its weights have that margin; the search is not counted. The ratio is to
the faster of LinearSVC's two solvers, where it got there. Quote the ratios, which were measured
side by side; the times belong to the machine.

The column "margin" measures all weights alike. With a soft margin it grants them the best slacks
there are for them, so it is above `margin_`, which is with the slacks that ours have learned:
"unproven" is MaxMarginClassifier stopped as soon as its weights have the target's margin in that
sense, and lines with the target "J" are about the whole margin that the proven weights have so.

SVC has a free bias, so its problem is another: "margin_" is what it has there. With the mirror
image of every row added, the bias is 0 by symmetry and the problem ours, at twice the rows. On
RCV1 it is left out, since it doesn't square its hinge. The data are looked for in the folder that
SPARSEMARGIN_DATA names.
"""

import signal
import sys
import warnings
from argparse import Namespace
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import sqrt
from statistics import geometric_mean, median
from typing import Any, NamedTuple

import numpy as np
from corpora import load_sample
from scipy.sparse import csr_matrix, hstack, vstack
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale
from sklearn.svm import SVC, LinearSVC
from tables import show
from timing import parser_of, run, timed, turns

from papers.data import load_sonar
from sparsemargin import (
    ALMAClassifier,
    CRAMMAClassifier,
    MarginPerceptron,
    MaxMarginClassifier,
    ROMMAClassifier,
)
from sparsemargin.datasets import load_colon, load_leukemia, load_lymphoma

TOLERANCES = (0.1, 0.01)
# Seconds of fits after which a solver is fitted no more, were it after one.
ENOUGH = 1.0


TOPICS = ("GCAT", "CCAT", "C15")
SOFT_MARGINS = (1.0, 0.3, 0.1)


@dataclass(frozen=True)
class Problem:
    """Rows to separate by a hyperplane through the origin with the largest margin, p = 2.

    `rho` is the constant coordinate that every row gets, 0 for none; `soft_margin` Delta, the value
    of the coordinate that each row has for itself, 0 for a hard margin; `online` says whether the
    on-line rules take part, which take the longest by far.
    """

    name: str
    X: csr_matrix
    y: np.ndarray
    rho: float = 0.0
    soft_margin: float = 0.0
    online: bool = True

    @cached_property
    def rows(self) -> csr_matrix:
        """X with the constant coordinate as its last column."""
        if not self.rho:
            return self.X
        constant = np.full((self.X.shape[0], 1), self.rho)
        return hstack([self.X, constant], format="csr")

    def margin(self, w: np.ndarray) -> float:
        """Return the margin of a weight vector over `rows`.

        With a soft margin it is that in the extended space where w, up to its scale, has the
        slacks that are best for it: J^(-1/2), J being least over the margin aimed at.
        """
        outputs = self.y * (self.rows @ w)
        if self.soft_margin:
            return _least_objective(outputs, w @ w, self.soft_margin) ** -0.5
        return outputs.min() / np.linalg.norm(w)


def _least_objective(outputs: np.ndarray, square: float, soft_margin: float) -> float:
    """The least ``s^2 ||w||^2 + sum max(0, 1 - s y w.x)^2 / Delta^2`` over the scales s >= 0.

    Its derivative is increasing, concave and piecewise linear, so Newton's method from 0 comes up
    to the root from below, through finitely many pieces.
    """
    s, previous = 0.0, -1.0
    while s > previous:
        violated = outputs[s * outputs < 1.0]
        previous, s = s, violated.sum() / (soft_margin**2 * square + violated @ violated)
    slacks = np.maximum(0.0, 1.0 - previous * outputs)
    return previous**2 * square + slacks @ slacks / soft_margin**2


def _problems(source: str) -> Iterator[Problem]:
    """The problems of a source, read when asked for."""
    if source == "rcv1":
        X, labels = load_sample(TOPICS)
        for topic in TOPICS:
            for soft_margin in SOFT_MARGINS:
                yield Problem(
                    f"RCV1 {topic}, Delta={soft_margin:g}", X, labels[topic],
                    soft_margin=soft_margin, online=topic == TOPICS[0],
                )  # fmt: skip
        return
    X, y = SOURCES[source](return_X_y=True)
    if source == "sonar":
        yield Problem(source, csr_matrix(X), y, rho=1.0)
    elif source == "lymphoma":
        yield Problem(source, csr_matrix(X), y)
    else:
        yield Problem(f"{source}, raw", csr_matrix(X), y)
        yield Problem(f"{source}, standardised", csr_matrix(scale(X)), y)


SOURCES: dict[str, Callable[..., Any]] = {
    "leukemia": load_leukemia, "colon": load_colon,
    "lymphoma": partial(load_lymphoma, "acl", missing="mean"), "sonar": load_sonar,
    "rcv1": load_sample,
}  # fmt: skip


UNTIL_DONE = {"hypothesis": "last", "max_iter": None, "random_state": 0}
MAX_CORRECTIONS = 3 * 10**8
# Ours, where the proof is not asked for: tol must be below 1.
OWN_TOLERANCES = (*np.arange(0.95, 0.1, -0.05), 0.1, 0.05, 0.02, 0.01)
# The peers', two to a decade.
PEER_TOLERANCES = 10.0 ** np.arange(0.0, -8.25, -0.5)
# What never binds at the tolerances asked for, in units of 1 / margin^2.
HARD_C = 1e4


@dataclass(frozen=True)
class Fitted:
    """What a fit came to, w over the rows of the problem; None is what the solver doesn't tell.

    `margin` is as the solver defines it: in the extended space for ours, with the bias for SVC;
    `bound` what our classifiers prove that no margin can exceed, and `objective` their J.
    """

    w: np.ndarray
    passes: float | None = None
    corrections: int | None = None
    margin: float | None = None
    bound: float | None = None
    objective: float | None = None


class Solver(NamedTuple):
    """`fit()` is timed; `read` tells what its result came to; `proves`: its margin."""

    name: str
    fit: Callable[[], Any]
    read: Callable[[Any], Fitted]
    proves: bool = False


def _limited(fit: Callable[[], Any], seconds: float) -> Any:
    """Press Ctrl-C when the time is up: our fits then end, and keep what they have learned."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return fit()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def _read_own(problem: Problem, model: Any) -> Fitted:
    return Fitted(
        _weights(problem, model), passes=model.n_iter_, corrections=model.n_corrections_,
        margin=model.margin_, bound=model.margin_upper_bound_,
        objective=model.objective_ if problem.soft_margin else None,
    )  # fmt: skip


def _own(name: str, problem: Problem, model: Any) -> Solver:
    model.set_params(
        **UNTIL_DONE, fit_intercept=problem.rho > 0, intercept_scaling=problem.rho or 1.0,
        soft_margin=problem.soft_margin,
    )  # fmt: skip
    fit = partial(model.fit, problem.X, problem.y)
    return Solver(name, fit, partial(_read_own, problem), proves=True)


def ascent(problem: Problem, tol: float) -> Solver:
    """Dual coordinate ascent, stopped at a proven share of the largest margin."""
    return _own("MaxMargin", problem, MaxMarginClassifier(tol=tol))


def online_rules(problem: Problem, tol: float, largest: float, limit: float) -> list[Solver]:
    """The on-line algorithms, stopped at the same proof, or when `limit` seconds are over.

    Their settings were found by trying, as those with which they are soon there on these data.
    CRAMMA and the margin Perceptron are told the largest norm, CRAMMA the largest margin, or a
    bound on it, as well.
    """
    squares = problem.rows.multiply(problem.rows).sum(axis=1).max()
    radius = sqrt(squares + problem.soft_margin**2)
    common = {"tol": tol, "max_corrections": MAX_CORRECTIONS}
    rate = {"eta0": tol * largest / radius, "delta": 0.0}
    models = {
        "ALMA": ALMAClassifier(alpha=3 * tol, normalize="max", **common),
        "CRAMMA": CRAMMAClassifier(beta=sqrt(10 / tol), **rate, shuffle=True, **common),
        "margin Perceptron": MarginPerceptron(margin=radius**2 / tol, shuffle=True, **common),
        "aggressive ROMMA": ROMMAClassifier(aggressive=True, shuffle=True, **common),
    }
    solvers = [_own(name, problem, model) for name, model in models.items()]
    return [solver._replace(fit=partial(_limited, solver.fit, limit)) for solver in solvers]


def linear_svc(problem: Problem, largest: float, dual: bool, tol: float) -> Solver:
    """LinearSVC without a bias, on rows that have the constant coordinate."""
    soft_margin = problem.soft_margin
    C = 1 / (2 * soft_margin**2) if soft_margin else HARD_C / largest**2
    max_iter = 10**6 if dual else 1000
    model = LinearSVC(
        C=C, dual=dual, tol=tol, max_iter=max_iter, fit_intercept=False, random_state=0
    )
    return Solver(
        f"LinearSVC, {'dual' if dual else 'primal'}",
        partial(model.fit, problem.rows, problem.y),
        lambda model: Fitted(model.coef_[0], passes=model.n_iter_),
    )


def mirrored_svc(problem: Problem, largest: float, tol: float) -> Solver:
    """SVC on the rows and their mirror images, which by symmetry keeps its bias at 0."""
    X = vstack([problem.rows, -problem.rows]).toarray()
    y = np.append(problem.y, -problem.y)
    return Solver("SVC, rows mirrored", _svc_fit(X, y, largest, tol), _read_svc)


def biased_svc(problem: Problem, largest: float, tol: float) -> Solver:
    """SVC on the problem it is made for, which is another: its hyperplane has a free bias."""
    X = problem.X.toarray()
    fit = _svc_fit(X, problem.y, largest, tol)
    return Solver("SVC, free bias", fit, partial(_read_biased, problem, X))


def _svc_fit(X: np.ndarray, y: np.ndarray, largest: float, tol: float) -> Callable[[], SVC]:
    """The fit with a hard margin; dense rows, which these are, are what SVC is fastest with."""
    return partial(SVC(kernel="linear", C=HARD_C / largest**2, tol=tol).fit, X, y)


def _read_svc(model: SVC) -> Fitted:
    return Fitted(model.coef_[0], corrections=int(model.n_iter_.sum()))


def _read_biased(problem: Problem, X: np.ndarray, model: SVC) -> Fitted:
    own = (problem.y * model.decision_function(X)).min() / np.linalg.norm(model.coef_[0])
    return replace(_read_svc(model), w=_weights(problem, model), margin=own)


def _weights(problem: Problem, model: Any) -> np.ndarray:
    """Over the rows of the problem, the intercept's with them."""
    constant = [model.intercept_[0] / problem.rho] if problem.rho else []
    return np.append(model.coef_[0], constant)


def loosest(
    solver_at: Callable[[float], Solver], tolerances: Iterable[float], problem: Problem,
    target: float, limit: float,
) -> Solver:  # fmt: skip
    """Return the solver at the loosest tolerance that brings it to a margin; one short of it where
    none does, or a fit takes longer than `limit` seconds."""
    for tol in tolerances:
        solver = solver_at(float(tol))
        seconds, model = timed(solver.fit)
        if problem.margin(solver.read(model).w) >= target or seconds > limit:
            break
    return solver


SVC_DEFAULT_TOL = 1e-3


def race(problem: Problem, tol: float, options: Namespace) -> list[dict]:
    """Measure all solvers on one problem at one tolerance: an entry per solver and target, with the
    margin that its weights have by the common yardstick.

    On-line rules are stopped, and searches given up, after the options' `limit` in seconds.
    """
    limit = options.limit
    own = ascent(problem, tol)
    proven = own.read(own.fit())
    entrants = [("margin", own)]
    if problem.online:
        rules = online_rules(problem, tol, proven.bound, limit)
        entrants += [("margin", rule) for rule in rules]
    targets = {"margin": proven.margin}
    if problem.soft_margin:
        targets["J"] = problem.margin(proven.w)
        entrants.append(("margin", _unproven(problem, proven.margin, limit)))
    else:
        entrants.append(("its own", biased_svc(problem, proven.bound, SVC_DEFAULT_TOL)))
    for target, value in targets.items():
        entrants += [(target, peer) for peer in _peers(problem, proven.bound, value, limit)]
    entries = _time(problem, tol, entrants, targets, options.rounds)
    if problem.soft_margin:
        first = [entry["target"] for entry in entries].index("J")
        entries.insert(first, entries[0] | {"target": "J"})
    return _with_ratios(entries)


def _unproven(problem: Problem, target: float, limit: float) -> Solver:
    solver = loosest(partial(ascent, problem), OWN_TOLERANCES, problem, target, limit)
    return solver._replace(name=f"{solver.name}, unproven", proves=False)


def _peers(problem: Problem, largest: float, target: float, limit: float) -> list[Solver]:
    peers = [partial(linear_svc, problem, largest, dual) for dual in (True, False)]
    if not problem.soft_margin:
        peers.append(partial(mirrored_svc, problem, largest))
    return [loosest(peer, PEER_TOLERANCES, problem, target, limit) for peer in peers]


def _time(
    problem: Problem, tol: float, entrants: list, targets: dict[str, float], n_rounds: int
) -> list[dict]:
    """Fit in turn, and tell of every solver the median time and what its last fit came to."""
    seconds, results = defaultdict(list), {}
    for _, i in turns(range(len(entrants)), n_rounds):
        if sum(seconds[i]) <= ENOUGH:
            elapsed, model = timed(entrants[i][1].fit)
            seconds[i].append(elapsed)
            results[i] = entrants[i][1].read(model)
    return [
        _entry(problem, tol, target, solver, results[i], targets.get(target))
        | {"seconds": median(seconds[i]), "n_fits": len(seconds[i])}
        for i, (target, solver) in enumerate(entrants)
    ]


def _entry(
    problem: Problem, tol: float, target: str, solver: Solver, result: Fitted, value: float | None
) -> dict[str, Any]:
    margin = problem.margin(result.w)
    if solver.proves:
        reached = "proven" if result.margin >= (1 - tol) * result.bound else "no"
    elif value is None:
        reached = None
    else:
        reached = "yes" if margin >= value else "no"
    return {
        "data": problem.name, "tol": tol, "solver": solver.name, "target": target,
        "reached": reached, "margin": margin, "margin_": result.margin,
        "J^-1/2": result.objective and result.objective**-0.5, "bound": result.bound,
        "passes": result.passes, "corrections": result.corrections,
    }  # fmt: skip


def _with_ratios(entries: list[dict]) -> list[dict]:
    """Add the ratio to the faster LinearSVC that reached the same target."""
    best = {}
    for entry in entries:
        if entry["solver"].startswith("LinearSVC") and entry["reached"] == "yes":
            known = best.get(entry["target"], entry["seconds"])
            best[entry["target"]] = min(known, entry["seconds"])
    return [
        entry | {"x LinearSVC": entry["seconds"] / best[entry["target"]]}
        if entry["target"] in best and entry["reached"] != "no"
        else entry | {"x LinearSVC": None}
        for entry in entries
    ]


def summarise(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return MaxMargin's ratios to LinearSVC: geometric mean, least and largest over the data."""
    found = defaultdict(list)
    for entry in entries:
        if entry["solver"].startswith("MaxMargin") and entry["x LinearSVC"] is not None:
            kind = "hard" if entry["J^-1/2"] is None else "soft"
            key = kind, entry["tol"], entry["solver"], entry["target"]
            found[key].append(entry["x LinearSVC"])
    return [
        {"margin": kind, "tol": tol, "solver": solver, "target": target}
        | {"x LinearSVC": geometric_mean(values), "least": min(values), "largest": max(values)}
        for (kind, tol, solver, target), values in found.items()
    ]


FORMATS = {
    "data": "", "tol": "g", "solver": "", "target": "", "reached": "", "margin": ".5g",
    "margin_": ".5g", "J^-1/2": ".5g", "bound": ".5g", "passes": ",.0f", "corrections": ",d",
    "seconds": ".4f", "x LinearSVC": ".2f",
}  # fmt: skip
SUMMARY_FORMATS = {
    "margin": "", "tol": "g", "solver": "", "target": "", "x LinearSVC": ".2f", "least": ".2f",
    "largest": ".2f",
}  # fmt: skip


def measure(options: Namespace) -> dict[str, Any]:
    """Run the races on all problems of the sources."""
    entries = []
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.filterwarnings("ignore", message="Interrupted")
    for source in options.data or (["sonar"] if options.quick else SOURCES):
        for problem in _problems(source):
            for tol in TOLERANCES:
                print(f"{problem.name}, tol={tol}", file=sys.stderr, flush=True)
                entries += race(problem, tol, options)
    summary = summarise(entries)
    print(
        f"{__doc__}\nMedian of {options.rounds} fits, or of as many as take {ENOUGH:g} s. On-line "
        f"rules are stopped after {options.limit:g} s."
    )
    for title, formats, lines in (
        ("The races", FORMATS, entries), ("Ratios over the data", SUMMARY_FORMATS, summary),
    ):  # fmt: skip
        show(title, [(name, f"{{{name}:{spec}}}") for name, spec in formats.items()], lines)
    return {"limit": options.limit, "summary": summary, "entries": entries}


if __name__ == "__main__":
    parser = parser_of(__doc__, "results/margin.json")
    parser.add_argument("--data", nargs="+", choices=SOURCES, help="default: all")
    parser.add_argument(
        "--limit", type=float, default=5.0, help="seconds an on-line rule may take (default 5)"
    )
    run(parser, {"margins": measure}, (5, 5))
