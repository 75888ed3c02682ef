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

import argparse
import sys
import warnings
from collections import defaultdict
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from margin_problems import SOURCES
from margin_race import ENOUGH, N_ROUNDS, race
from measure import cannot_run, describe_machine, markdown_table, text_table, write_json
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

TOLERANCES = (0.1, 0.01)

FORMATS = {
    "data": "", "tol": "g", "solver": "", "target": "", "reached": "", "margin": ".5g",
    "margin_": ".5g", "J^-1/2": ".5g", "bound": ".5g", "passes": ",.0f", "corrections": ",d",
    "seconds": ".4f", "x LinearSVC": ".2f",
}  # fmt: skip
SUMMARY_FORMATS = {
    "margin": "", "tol": "g", "solver": "", "target": "", "x LinearSVC": ".2f", "least": ".2f",
    "largest": ".2f",
}  # fmt: skip


def measure(sources: list[str], limit: float) -> list[dict]:
    """Run the races on all problems of the sources; return the entries of all."""
    entries = []
    for source in sources:
        for problem in SOURCES[source]():
            for tol in TOLERANCES:
                print(f"{problem.name}, tol={tol}", file=sys.stderr, flush=True)
                entries += race(problem, tol, limit)
    return entries


def summarise(entries: list[dict]) -> list[dict]:
    """Return MaxMargin's ratios to LinearSVC: geometric mean, least and largest over the data."""
    ratios = defaultdict(list)
    for entry in entries:
        if entry["solver"].startswith("MaxMargin") and entry["x LinearSVC"] is not None:
            kind = "hard" if entry["J^-1/2"] is None else "soft"
            key = kind, entry["tol"], entry["solver"], entry["target"]
            ratios[key].append(entry["x LinearSVC"])
    return [
        {"margin": kind, "tol": tol, "solver": solver, "target": target}
        | {"x LinearSVC": geometric_mean(values), "least": min(values), "largest": max(values)}
        for (kind, tol, solver, target), values in ratios.items()
    ]


def _cell(value: Any, spec: str) -> str:
    return "-" if value is None else format(value, spec)


def show(entries: list[dict], formats: dict[str, str], markdown: bool) -> None:
    """Print entries as a table."""
    rows = [[_cell(entry[name], spec) for name, spec in formats.items()] for entry in entries]
    if markdown:
        print("\n" + markdown_table(list(formats), rows))
    else:
        print("\n" + text_table([(name, "") for name in formats], rows))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", nargs="+", choices=SOURCES, default=list(SOURCES))
    parser.add_argument(
        "--limit", type=float, default=5.0, help="seconds an on-line rule may take (default 5)"
    )
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")
    parser.add_argument("--out", type=Path, default=Path("results/bench-margin.json"))
    arguments = parser.parse_args()
    if arguments.limit <= 0:
        parser.error("--limit must be positive")
    return arguments


def main() -> None:
    """Run every race, print the tables and write them as JSON."""
    arguments = _arguments()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="Interrupted")
        try:
            entries = measure(arguments.data, arguments.limit)
        except FileNotFoundError as error:
            cannot_run(error)
    summary = summarise(entries)
    print(__doc__)
    print(
        f"Median of {N_ROUNDS} fits, or of as many as take {ENOUGH:g} s. On-line rules are "
        f"stopped after {arguments.limit:g} s.\n{describe_machine()}"
    )
    show(entries, FORMATS, arguments.markdown)
    show(summary, SUMMARY_FORMATS, arguments.markdown)
    write_json(arguments.out, {"limit": arguments.limit, "summary": summary, "entries": entries})


if __name__ == "__main__":
    main()
