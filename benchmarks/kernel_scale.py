"""Which scaling of x gives the mistakes of Freund & Schapire (1999)?

The paper has the kernel (1 + x.z)^d and does not say in which units the greys are. Here
(1 + x.z/s)^d makes one epoch for each d and s, beside the mistakes and support vectors that Table 1
prints for T = 1.

    python benchmarks/kernel_scale.py [--scales 1 255 65025] [--degrees 1 4] [--permutations 1]

The scale matters only as far as the constant does beside x.z/s: for all d any of 1, 255 and 1000
gives counts within 1.2 % of those printed. 255 is the ALMA paper's and Li & Long's, and the nearest
for d = 1, by 0.1 %. 65025, greys from 0 to 1, is out: 8 % too few mistakes with d = 1.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from kernel_cells import CORRECTIONS, SUPPORT
from kernel_voted_paper import TABLES
from measure import describe_machine, text_table, write_json

from sparsemargin import PNormPerceptron
from sparsemargin.datasets import load_mnist

TABLE_1 = TABLES["voted1"]
QUANTITIES = ("mistakes", "support vectors")
SCALES = (1, 255, 1000, 65025)
COLUMNS = [
    ("d", ""), ("s", ",g"), ("mistakes", ",.0f"), ("paper", ",.0f"), ("difference %", "+.1f"),
    ("support", ",.0f"), ("paper", ",.0f"), ("difference %", "+.1f"),
]  # fmt: skip


def count(degree: int, scale: float, n_permutations: int, n_jobs: int) -> tuple[float, float]:
    """Return mistakes and support vectors of one epoch, means over the permutations."""
    X, y = load_mnist("train", return_X_y=True)
    counts = []
    for seed in range(n_permutations):
        model = PNormPerceptron(
            normalize=False, hypothesis="last", max_iter=1, random_state=seed, n_jobs=n_jobs,
            kernel="poly", degree=degree, gamma=1 / scale, coef0=1.0,
        ).fit(X, y)  # fmt: skip
        counts.append((model.n_corrections_.sum(), len(model.support_)))
    mistakes, support = np.mean(counts, axis=0)
    return float(mistakes), float(support)


def printed(degree: int) -> tuple[float, float]:
    """Return what the paper prints after one epoch: mistakes and support vectors."""
    cells = [
        cell for line in TABLE_1.lines for cell in line.cells
        if cell is not None and cell.run.degree == degree and cell.epochs == 1
    ]  # fmt: skip
    (mistakes,) = (cell.paper for cell in cells if cell.quantity == CORRECTIONS)
    (support,) = (cell.paper for cell in cells if cell.quantity == SUPPORT)
    return mistakes, support


def compare(
    degrees: list[int], scales: list[float], n_permutations: int, n_jobs: int
) -> list[dict]:
    """Count for every degree and scale, saying which is under way."""
    entries = []
    for degree in degrees:
        for scale in scales:
            print(f"d={degree}, s={scale:g} ...", file=sys.stderr, flush=True)
            measured = count(degree, scale, n_permutations, n_jobs)
            entry = {"degree": degree, "scale": scale}
            for name, ours, paper in zip(QUANTITIES, measured, printed(degree), strict=True):
                entry[name] = {"paper": paper, "measured": ours, "difference": ours / paper - 1}
            entries.append(entry)
    return entries


def deviations(entries: list[dict]) -> list[tuple[float, float, float]]:
    """Return for each scale the root mean square and the largest of all relative differences."""
    found = []
    for scale in dict.fromkeys(entry["scale"] for entry in entries):
        values = [
            abs(entry[name]["difference"])
            for entry in entries if entry["scale"] == scale for name in QUANTITIES
        ]  # fmt: skip
        found.append((scale, float(np.sqrt(np.mean(np.square(values)))), max(values)))
    return found


def _line(entry: dict[str, Any]) -> tuple:
    parts = (entry[name] for name in QUANTITIES)
    figures = ((of["measured"], of["paper"], 100 * of["difference"]) for of in parts)
    return entry["degree"], entry["scale"], *(value for part in figures for value in part)


def main() -> None:
    """Count, print the counts beside the paper's, write them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scales", type=float, nargs="+", default=SCALES)
    parser.add_argument("--degrees", type=int, nargs="+", choices=range(1, 7), default=range(1, 7))
    parser.add_argument("--permutations", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="threads (default 2)")
    parser.add_argument("--out", type=Path, default=Path("results/kernel-scale.json"))
    options = parser.parse_args()
    print(f"Freund & Schapire (1999), Table 1, T = 1\n{describe_machine()}", flush=True)
    entries = compare(options.degrees, options.scales, options.permutations, options.jobs)
    print("\n" + text_table(COLUMNS, map(_line, entries)))
    columns = [("s", ",g"), ("root mean square", ".1%"), ("largest difference", ".1%")]
    print("\n" + text_table(columns, deviations(entries)))
    write_json(options.out, {"permutations": options.permutations, "entries": entries})


if __name__ == "__main__":
    main()
