"""Kernels beside scikit-learn's SVC: MNIST in seconds, memory, growth, and a bounded pool.

Every contest runs in a process of its own and is kept in the output folder: interrupted, the
command goes on where it was. Of several rounds the fastest fit counts, and the fastest predictions;
fits of over a minute are not repeated: SVC takes several for the 60,000 rows. "fit_cpu" are
processor seconds, of all threads: what else the machine does hardly counts there. Quote the ratios;
the times belong to the machine.

    python benchmarks/kernels.py [--rounds 3] [--sizes 10000 20000 40000 60000]
        [--bounded-rows 1000000] [--out DIR]

One-versus-rest ALMA, and SVC, which takes every pair of classes, have the kernel
(1 + x.z / 255)^d on the greys, 0 to 255; "rows normalised" has (1 + x.z)^4 on rows of length 1, the
best of SVC seen. SVC has C = 1, 1 GB of cache, and arrays, which it takes four times as fast as
CSR. The bounded pool learns generated rows, whose class is the sign of a quadratic form.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from kernel_contest import ALMA_4, ALMA_6, BOUNDED, SVC_RAW, SVC_UNIT, Contest, hold_apart
from kernel_growth import plot
from measure import cannot_run, describe_machine, text_table, write_json

from papers.kernels import load

SIZES = (10_000, 20_000, 40_000, 60_000)
BOUNDS = (1000, 2000, 4000, 8000)
BOUNDED_ROWS = 1_000_000
TIMES = ("fit", "fit_cpu", "predict")
PATIENCE = 60.0  # seconds after which a fit is not repeated
MEGABYTE = 2**20

Result = dict[str, Any]

FIELDS = [
    ("fit s", ".2f"), ("fit_cpu s", ".2f"), ("predict s", ".2f"), ("test error %", ".2f"),
    ("support", ",d"), ("loaded MB", ",.0f"), ("peak MB", ",.0f"),
]  # fmt: skip


class Ring:
    """Holds contests, and keeps what came of them.

    Parameters
    ----------
    folder : Path
    rounds : int
        How often each is held, where it is soon over.
    """

    def __init__(self, folder: Path, rounds: int):
        self.folder, self.rounds = folder, rounds

    def result(self, contest: Contest) -> Result:
        """Return the result of a contest, held now if it never was."""
        path = self.folder / f"{contest.name.replace(' ', '_')}.json"
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_suffix(".part")
            unfinished.write_text(json.dumps(self._hold(contest)) + "\n")
            unfinished.replace(path)
        return json.loads(path.read_text())

    def _hold(self, contest: Contest) -> Result:
        rounds: list[Result] = []
        while len(rounds) < self.rounds and all(each["fit"] < PATIENCE for each in rounds):
            print(f"{contest.name} ...", file=sys.stderr, flush=True)
            rounds.append(hold_apart(contest))
        fastest = {name: min(each[name] for each in rounds) for name in TIMES}
        return rounds[0] | fastest | {"rounds": len(rounds)}


def _figures(result: Result) -> tuple:
    return (
        result["fit"], result["fit_cpu"], result["predict"], result["error"], result["support"],
        result["loaded_bytes"] / MEGABYTE, result["peak_bytes"] / MEGABYTE,
    )  # fmt: skip


def beside(ours: str, peer: str, n_rows: int, ring: Ring) -> list[Result]:
    """Hold the contests of a pair at one size; each result tells how many times as fast it is."""
    contests = [Contest(ours, n_rows, 1), Contest(ours, n_rows, 2), Contest(peer, n_rows)]
    results = [contest._asdict() | ring.result(contest) for contest in contests]
    reference = results[-1]
    return [
        result | {"ratios": {step: reference[step] / result[step] for step in TIMES}}
        for result in results
    ]


def show_pair(results: list[Result]) -> None:
    """Print the lines of one pair of contestants."""
    lines = [
        (f"{each['contestant']}, {each['n_jobs']} threads", *_figures(each),
         *(each["ratios"][step] for step in TIMES))
        for each in results
    ]  # fmt: skip
    columns = [("", ""), *FIELDS, *((f"{name} x", ".1f") for name in TIMES)]
    print(f"\n{results[0]['n_rows']:,} rows\n\n{text_table(columns, lines)}", flush=True)


def bounded(ring: Ring, n_rows: int) -> list[dict[str, Any]]:
    """Learn so many rows with pools of several bounds."""
    contests = [Contest(BOUNDED, n_rows, 2, bound) for bound in BOUNDS]
    return [each._asdict() | ring.result(each) for each in contests]


def show_bounded(entries: list[dict[str, Any]]) -> None:
    """Print what each bound cost, beside the largest."""
    best = entries[-1]
    lines = [
        (f"{entry['max_support']:,}", *_figures(entry), entry["passed_over"],
         entry["error"] - best["error"])
        for entry in entries
    ]  # fmt: skip
    columns = [("rows in the pool", ""), *FIELDS, ("passed over", ",d"), ("points more", "+.2f")]
    print(f"\n{best['n_rows']:,} rows, one epoch\n\n" + text_table(columns, lines))


def main() -> None:
    """Hold the contests, print the tables, draw the growth, write it all as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="of each contest (default 3)")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="training rows")
    parser.add_argument(
        "--bounded-rows", type=int, default=BOUNDED_ROWS, help="rows for the bounded pools"
    )
    parser.add_argument("--out", type=Path, default=Path("results/bench-kernels"))
    options = parser.parse_args()
    if min(options.rounds, options.bounded_rows, *options.sizes) < 1:
        parser.error("--rounds, --sizes and --bounded-rows must be at least 1")
    try:
        load("mnist")
    except FileNotFoundError as error:
        cannot_run(error)
    print(f"{__doc__}\n{describe_machine()}", flush=True)
    ring = Ring(options.out, options.rounds)
    of_bounds = bounded(ring, options.bounded_rows)
    show_bounded(of_bounds)
    growth: list[list[Result]] = []
    for n_rows in sorted(options.sizes):
        growth.append(beside(ALMA_4, SVC_RAW, n_rows, ring))
        show_pair(growth[-1])
    plot(growth, options.out / "growth.png")
    best = beside(ALMA_6, SVC_UNIT, max(options.sizes), ring)
    show_pair(best)
    report = {"growth": growth, "three epochs": best, "bounded": of_bounds}
    write_json(options.out / "report.json", report)


if __name__ == "__main__":
    main()
