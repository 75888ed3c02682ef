"""What `fit_csr(X, y)` should be: chosen by cross-validation on RCV1 topics, reported on others.

Of the 20 most frequent topics of the RCV1 sample, the ten of even rank choose: the least error in
cross-validation on the training side (10,000 rows; equal vectors share a fold), among what is at
least six times as fast as LinearSVC on those rows. Then the ten of odd rank report, learned on the
training side, tested on the other rows: `fit_csr(X, y)` as it comes, which is to be at most 0.1
points worse than LinearSVC and at least five times as fast, beside the choice, and beside what
would be chosen at any speed.

The choice asks for more speed than the aim, since ratios of times vary by a tenth from one set of
topics to another and from run to run, and by more on a busy machine: run it on a quiet one.

Needs the RCV1 sample in the folder that SPARSEMARGIN_DATA names.

    python benchmarks/defaults.py [--rounds 5] [--out results/defaults.json]
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

import numpy as np
from measure import (
    describe_machine,
    garbage_collection_off,
    in_turn,
    text_table,
    timed,
    write_json,
)
from rcv1_sample import Split, Topics, halves, load_topics
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from sparsemargin import fit_csr

N_FOLDS, FOLD_SEEDS = 5, (0, 1)
N_SHOWN = 25
LEAST_SPEED_TO_CHOOSE = 6.0  # times as fast as LinearSVC
LEAST_SPEED = 5.0
LARGEST_EXCESS = 0.1  # points of error above LinearSVC


class Contestant(NamedTuple):
    """A line of the tables; `fit(X, y, random_state=seed)` returns a fitted classifier."""

    name: str
    fit: Callable[..., Any]


@dataclass
class Result:
    """Test error in percent, and the median time of a fit in seconds, by topic."""

    name: str
    errors: dict[str, float]
    seconds: dict[str, float]

    @property
    def error(self) -> float:
        """The mean over the topics."""
        return mean(self.errors.values())

    def speed(self, other: "Result") -> float:
        """How many times as fast as `other`, over all topics."""
        return sum(other.seconds.values()) / sum(self.seconds.values())


def _fit_svc(X: Any, y: np.ndarray, random_state: int) -> LinearSVC:
    return LinearSVC(random_state=random_state).fit(X, y)


def _settings(params: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in params.items())


def _ours(algo: str, **params) -> Contestant:
    return Contestant(f"{algo}, {_settings(params)}", partial(fit_csr, algo=algo, **params))


SVC = Contestant("LinearSVC()", _fit_svc)
AS_IT_COMES = Contestant("fit_csr(X, y)", fit_csr)

EPOCHS = (1, 2, 3, 5)
INTERCEPTS = ({"fit_intercept": False}, {"fit_intercept": True, "intercept_scaling": 0.1})
CANDIDATES = [
    *(
        _ours("alma", p=p, alpha=alpha, max_iter=n, **intercept)
        for p, alpha, n, intercept in product(
            (2, 2.5, 3), (0.95, 0.9, 0.85, 0.8, 0.7), EPOCHS, INTERCEPTS
        )
    ),
    *(
        _ours("pnorm", p=p, max_iter=n, **intercept)
        for p, n, intercept in product((2, 4), EPOCHS, INTERCEPTS)
    ),
]

#: What is tried on the choice, one at a time, to see whether it matters.
CHANGES = (
    {"hypothesis": "last"},
    {"normalize_hypotheses": True},
    {"class_weight": "balanced"},
    {"soft_margin": 0.3},
    {"fit_intercept": False},
    *({"fit_intercept": True, "intercept_scaling": scale} for scale in (0.03, 0.1, 0.3, 1.0)),
)


def fit_seconds(
    contestants: Sequence[Contestant], split: Split, n_rounds: int
) -> dict[str, dict[str, float]]:
    """Time fits on the rows to learn from, the contestants taking turns.

    Returns
    -------
    dict of dict of float
        By name of the contestant and by topic: the median over the rounds.
    """
    medians = defaultdict(dict)
    with garbage_collection_off():
        for topic, y in split.labels.items():
            seconds = defaultdict(list)
            for seed in range(n_rounds):
                for name, fit in in_turn(contestants, seed):
                    seconds[name].append(timed(partial(fit, split.X, y, random_state=seed))[0])
            for name, values in seconds.items():
                medians[name][topic] = median(values)
    return medians


def run(
    contestants: Sequence[Contestant],
    topics: Topics,
    tests: Sequence[tuple[Split, int]],
    n_rounds: int,
) -> list[Result]:
    """Test contestants on splits, each with its seed; time them on the whole training side."""
    seconds = fit_seconds(contestants, topics.sides(), n_rounds)
    results = []
    for name, fit in contestants:
        errors = [split.errors(partial(fit, random_state=seed)) for split, seed in tests]
        means = {topic: mean(each[topic] for each in errors) for topic in topics.labels}
        results.append(Result(name, means, seconds[name]))
    return results


def choose(results: list[Result], svc: Result, least_speed: float) -> Result:
    """Return the one with the least error among those that are fast enough."""
    fast = [result for result in results if result.speed(svc) >= least_speed]
    return min(fast, key=lambda result: result.error)


def show(results: Iterable[Result], svc: Result) -> None:
    """Print errors and speeds."""
    columns = [("", ""), ("error %", ".2f"), ("x LinearSVC's speed", ".1f")]
    print(text_table(columns, [(each.name, each.error, each.speed(svc)) for each in results]))


def select(topics: Topics, n_rounds: int) -> tuple[list[Result], list[Contestant]]:
    """Choose the default, and show what else was in the running.

    Returns
    -------
    results : list of Result
        Of LinearSVC, the candidates, and the choice with one thing changed.
    chosen : list of Contestant
        The choice, and what would be chosen at any speed.
    """
    folds = [fold for seed in FOLD_SEEDS for fold in topics.folds(N_FOLDS, seed)]
    # The order of the rows alone moves all candidates together by some 0.04 points, so each
    # fold has its own.
    tests = [(fold, seed) for seed, fold in enumerate(folds)]
    cross_validate = partial(run, topics=topics, tests=tests, n_rounds=n_rounds)
    svc, *results = cross_validate([SVC, *CANDIDATES])
    best = [choose(results, svc, speed) for speed in (LEAST_SPEED_TO_CHOOSE, 0.0)]
    chosen = [CANDIDATES[results.index(result)] for result in best]
    print(f"\nCross-validation over {', '.join(topics.labels)}: the best {N_SHOWN}\n")
    ranked = sorted(results, key=lambda result: result.error)
    show([svc, *ranked[:N_SHOWN]], svc)
    fit = chosen[0].fit
    changed = cross_validate(
        [
            SVC,
            *(Contestant(f"  {_settings(change)}", partial(fit, **change)) for change in CHANGES),
        ]
    )
    print(f"\nChosen: {chosen[0].name}; at any speed: {chosen[1].name}\n\nOne thing changed:\n")
    show(changed, changed[0])
    return [svc, *results, *changed[1:]], chosen


def report(contestants: Sequence[Contestant], topics: Topics, n_rounds: int) -> list[Result]:
    """Test the contestants on the test side, topic by topic, and print the errors and speeds."""
    sides = topics.sides()
    tests = [(sides, seed) for seed in range(n_rounds)]
    svc, *others = results = run(contestants, topics, tests, n_rounds)
    columns = [("", ""), ("positive %", ".1f"), *((result.name, ".2f") for result in results)]
    rows = [
        (topic, 100 * np.mean(y > 0), *(result.errors[topic] for result in results))
        for topic, y in sides.labels.items()
    ]
    print(
        f"\nTest error in % on {sides.X_test.shape[0]:,} other rows, mean of {n_rounds} seeds\n\n"
        + text_table(columns, rows)
        + "\n"
    )
    show(results, svc)
    excess, speed = others[0].error - svc.error, others[0].speed(svc)
    met = excess <= LARGEST_EXCESS and speed >= LEAST_SPEED
    print(
        f"\n{others[0].name}: {excess:+.2f} points, {speed:.1f} times as fast; aimed at: "
        f"{LARGEST_EXCESS:+.2f}, {LEAST_SPEED:.1f}: {'met' if met else 'missed'}"
    )
    return results


def main() -> None:
    """Select, report, and write both as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="timed fits of each (default 5)")
    parser.add_argument("--out", type=Path, default=Path("results/defaults.json"))
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    print(describe_machine())
    choosing, reporting = halves(load_topics())
    with threadpool_limits(1):
        selection, chosen = select(choosing, arguments.rounds)
        renamed = [chosen[0]._replace(name="chosen"), chosen[1]._replace(name="at any speed")]
        reported = report([SVC, AS_IT_COMES, *renamed], reporting, arguments.rounds)
    write_json(
        arguments.out,
        {
            "rounds": arguments.rounds,
            "chosen": chosen[0].name,
            "at any speed": chosen[1].name,
            "selection": list(map(asdict, selection)),
            "report": list(map(asdict, reported)),
        },
    )


if __name__ == "__main__":
    main()
