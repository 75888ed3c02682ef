"""How fast are the Higher-order and the Second-order Perceptron, beside LinearSVC on the same rows?

Three measurements: one epoch on 10,000 RCV1 stories (GCAT), the contestants taking turns; the time
per mistake as the matrix grows; and fits of three shapes, with the form the matrix takes and the
peak memory beside X. Quote the ratios: they were measured side by side in one run. The times
belong to the machine.

Needs RCV1, looked for in the folder that SPARSEMARGIN_DATA names.

    python benchmarks/ho_speed.py [--only race growth shapes] [--quick]
"""

import argparse
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import ho_growth
import ho_shapes
import numpy as np
from contestants import ONE_EPOCH
from measure import (
    cannot_run,
    describe_machine,
    garbage_collection_off,
    in_turn,
    minimum_and_median,
    options_with_rounds,
    text_table,
    timed,
    write_json,
)
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from sparsemargin import HigherOrderPerceptron, PNormPerceptron, SecondOrderPerceptron
from sparsemargin.datasets import load_rcv1

TOPIC, N_ROWS = "GCAT", 10_000
MILLISECOND = 1e-3
COLUMNS = [
    ("", ""), ("mistakes", ""), ("ms min", ".1f"), ("median", ".1f"),
    ("x LinearSVC min", ".2f"), ("median", ".2f"), ("aim", ""),
]  # fmt: skip


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


def race(X: Any, y: np.ndarray, n_rounds: int) -> list[dict[str, Any]]:
    """Time fits of all contestants on the same rows, in turn.

    Returns
    -------
    list of dict
        One entry for each: the mistakes of the last round, milliseconds and their ratios to
        LinearSVC's, each the minimum and the median.
    """
    rows = {dtype: X.astype(dtype) for dtype in (np.float64, np.float32)}
    seconds, mistakes = defaultdict(list), {}
    with garbage_collection_off():
        for seed in range(n_rounds):
            for contestant in in_turn(CONTESTANTS, seed):
                model, own_rows = contestant.make(seed), rows[contestant.dtype]
                elapsed, _ = timed(lambda model=model, X=own_rows: model.fit(X, y))
                seconds[contestant.name].append(elapsed)
                mistakes[contestant.name] = getattr(model, "n_corrections_", None)
    times = {name: minimum_and_median(own, MILLISECOND) for name, own in seconds.items()}
    return [
        {
            "contestant": contestant.name,
            "mistakes": mistakes[contestant.name],
            "milliseconds": times[contestant.name],
            "times_linear_svc": {
                statistic: value / times[MEASURE][statistic]
                for statistic, value in times[contestant.name].items()
            },
            "aim": contestant.aim,
        }
        for contestant in CONTESTANTS
    ]


def show(entries: list[dict[str, Any]], X: Any, n_rounds: int) -> None:
    """Print the table of the race."""
    print(
        f"\nOne epoch, {X.shape[0]:,} RCV1 stories, {TOPIC}, {X.nnz / X.shape[0]:.0f} nonzeros a "
        f"row, {n_rounds} rounds; LinearSVC runs to its own tolerance\n"
    )
    rows = [
        (
            entry["contestant"], entry["mistakes"] or "-", *entry["milliseconds"].values(),
            *entry["times_linear_svc"].values(),
            "" if entry["aim"] is None else f"<= {entry['aim']:g}",
        )
        for entry in entries
    ]  # fmt: skip
    print(text_table(COLUMNS, rows))


def _run_race(options: argparse.Namespace) -> list[dict[str, Any]]:
    X, y = load_rcv1(TOPIC, subset="train", n_train=N_ROWS, return_X_y=True)
    race(X, y, 1)  # a first fit pays for lazy imports
    entries = race(X, y, options.rounds)
    show(entries, X, options.rounds)
    return entries


def _run_growth(options: argparse.Namespace) -> dict[str, Any]:
    X, y = load_rcv1(TOPIC, return_X_y=True)
    growths = ho_growth.measure_growth(X, y, *((1, 0.5) if options.quick else (3,)))
    ho_growth.show(growths)
    ho_growth.plot(growths, options.out.with_suffix(".png"))
    return {name: growth.as_json() for name, growth in growths.items()}


def _run_shapes(options: argparse.Namespace) -> list[dict[str, Any]]:
    entries = ho_shapes.measure_all(options.quick)
    ho_shapes.show(entries)
    return entries


MEASUREMENTS = {"race": _run_race, "growth": _run_growth, "shapes": _run_shapes}


def main() -> None:
    """Run the measurements, print the tables and write them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=MEASUREMENTS, default=list(MEASUREMENTS))
    parser.add_argument("--quick", action="store_true", help="fewer rounds, rows and mistakes")
    parser.add_argument("--rounds", type=int, help="fits of every contestant (15, quick: 5)")
    parser.add_argument("--out", type=Path, default=Path("results/ho-speed.json"))
    options = options_with_rounds(parser, usual=15, quick=5)
    print(describe_machine())
    try:
        with threadpool_limits(1):
            report = {name: MEASUREMENTS[name](options) for name in options.only}
    except FileNotFoundError as error:
        cannot_run(error)
    write_json(options.out, report)


if __name__ == "__main__":
    main()
