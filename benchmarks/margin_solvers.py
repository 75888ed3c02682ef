"""Who seeks the largest margin: our classifiers, which prove how near they came, and the peers."""

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from typing import Any

import numpy as np
from margin_problems import Problem
from measure import timed
from scipy.sparse import vstack
from sklearn.svm import SVC, LinearSVC

from sparsemargin import (
    ALMAClassifier,
    CRAMMAClassifier,
    MarginPerceptron,
    MaxMarginClassifier,
    ROMMAClassifier,
)

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
    """What a fit came to.

    Attributes
    ----------
    w : ndarray of shape (n,)
        Weights over the rows of the problem.
    passes, corrections : float, int or None
        None where the solver doesn't tell.
    margin : float or None
        As the solver defines it: in the extended space for ours, with the bias for SVC.
    bound : float or None
        What our classifiers prove that no margin can exceed.
    objective : float or None
        J, of our classifiers with a soft margin.
    """

    w: np.ndarray
    passes: float | None = None
    corrections: int | None = None
    margin: float | None = None
    bound: float | None = None
    objective: float | None = None


@dataclass(frozen=True)
class Solver:
    """`fit()` is what is timed; `read` tells what its result came to; `proves` says whether it is
    to prove its margin."""

    name: str
    fit: Callable[[], Any]
    read: Callable[[Any], Fitted]
    proves: bool = False


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Press Ctrl-C when the time is up: our fits then end, and keep what they have learned."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


# ------------------------------------------------------------------------------------------- ours


def _read_own(problem: Problem, model: Any) -> Fitted:
    w = model.coef_[0]
    if problem.rho:
        w = np.append(w, model.intercept_ / problem.rho)
    return Fitted(
        w,
        passes=model.n_iter_,
        corrections=model.n_corrections_,
        margin=model.margin_,
        bound=model.margin_upper_bound_,
        objective=model.objective_ if problem.soft_margin else None,
    )


def _own(name: str, problem: Problem, model: Any) -> Solver:
    model.set_params(
        **UNTIL_DONE,
        fit_intercept=problem.rho > 0,
        intercept_scaling=problem.rho or 1.0,
        soft_margin=problem.soft_margin,
    )
    fit = partial(model.fit, problem.X, problem.y)
    return Solver(name, fit, partial(_read_own, problem), proves=True)


def ascent(problem: Problem, tol: float) -> Solver:
    """Dual coordinate ascent, stopped at a proven share of the largest margin."""
    return _own("MaxMargin", problem, MaxMarginClassifier(tol=tol))


def online_rules(problem: Problem, tol: float, largest: float, limit: float) -> list[Solver]:
    """The on-line algorithms, stopped at the same proof, or when `limit` seconds are over.

    Their settings were found by trying, as those with which they are soon there on these data.
    CRAMMA and the margin Perceptron are told the largest norm, CRAMMA the margin as well.

    Parameters
    ----------
    largest : float
        The largest margin, or a bound on it.
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
    return [replace(solver, fit=partial(_limited, solver.fit, limit)) for solver in solvers]


def _limited(fit: Callable[[], Any], limit: float) -> Any:
    with interrupted_after(limit):
        return fit()


# -------------------------------------------------------------------------------------- the peers


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
    w = model.coef_[0]
    margin = (problem.y * model.decision_function(X)).min() / np.linalg.norm(w)
    if problem.rho:
        w = np.append(w, model.intercept_ / problem.rho)
    return Fitted(w, corrections=int(model.n_iter_.sum()), margin=margin)


def loosest(
    solver_at: Callable[[float], Solver],
    tolerances: Iterable[float],
    problem: Problem,
    target: float,
    limit: float,
) -> Solver:
    """Return the solver at the loosest tolerance that brings it to a margin.

    The search ends with a fit that takes longer than `limit` seconds; what it then returns, or
    after the last tolerance, is short of the margin.
    """
    for tol in tolerances:
        solver = solver_at(float(tol))
        seconds, model = timed(solver.fit)
        if problem.margin(solver.read(model).w) >= target or seconds > limit:
            break
    return solver
