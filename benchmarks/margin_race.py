"""The race to a margin: all solvers on one problem, fitted in turn."""

from collections import defaultdict
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

from margin_problems import Problem
from margin_solvers import (
    OWN_TOLERANCES,
    PEER_TOLERANCES,
    Fitted,
    Solver,
    ascent,
    biased_svc,
    linear_svc,
    loosest,
    mirrored_svc,
    online_rules,
)
from measure import garbage_collection_off, in_turn, timed

N_ROUNDS = 5
# Seconds of fits after which a solver is fitted no more, were it after one.
ENOUGH = 1.0
SVC_DEFAULT_TOL = 1e-3


def race(problem: Problem, tol: float, limit: float) -> list[dict]:
    """Measure all solvers on one problem at one tolerance.

    Parameters
    ----------
    problem : Problem
    tol : float
    limit : float
        Seconds after which an on-line rule is stopped, or a search given up.

    Returns
    -------
    list of dict
        One entry per solver and target, with the margin its weights have by the common yardstick.
    """
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
    entries = _time(problem, tol, entrants, targets)
    if problem.soft_margin:
        first = [entry["target"] for entry in entries].index("J")
        entries.insert(first, entries[0] | {"target": "J"})
    return _with_ratios(entries)


def _unproven(problem: Problem, target: float, limit: float) -> Solver:
    solver = loosest(partial(ascent, problem), OWN_TOLERANCES, problem, target, limit)
    return replace(solver, name=f"{solver.name}, unproven", proves=False)


def _peers(problem: Problem, largest: float, target: float, limit: float) -> list[Solver]:
    peers = [partial(linear_svc, problem, largest, dual) for dual in (True, False)]
    if not problem.soft_margin:
        peers.append(partial(mirrored_svc, problem, largest))
    return [loosest(peer, PEER_TOLERANCES, problem, target, limit) for peer in peers]


def _time(problem: Problem, tol: float, entrants: list, targets: dict[str, float]) -> list[dict]:
    """Fit in turn, and tell of every solver the median time and what its last fit came to."""
    seconds, results = defaultdict(list), {}
    with garbage_collection_off():
        for round_number in range(N_ROUNDS):
            for i in in_turn(range(len(entrants)), round_number):
                if sum(seconds[i]) > ENOUGH:
                    continue
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
        "data": problem.name,
        "tol": tol,
        "solver": solver.name,
        "target": target,
        "reached": reached,
        "margin": margin,
        "margin_": result.margin,
        "J^-1/2": result.objective and result.objective**-0.5,
        "bound": result.bound,
        "passes": result.passes,
        "corrections": result.corrections,
    }


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
