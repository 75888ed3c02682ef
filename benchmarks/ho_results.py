"""An algorithm of the paper at its best setting: by the test sets, and by cross-validation."""

import sys
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from ho_paper import Printed
from ho_runs import Problem, Settings, algorithms
from measure import text_table

from sparsemargin.evaluation import select_setting

COLUMNS = [
    ("", ""), ("paper: updates", "g"), ("error %", ".2f"), ("best on test", ""),
    ("updates", ".1f"), ("error %", ".2f"), ("std", ".2f"), ("cross-validated", ""),
    ("updates", ".1f"), ("error %", ".2f"), ("best there", ".2f"),
]  # fmt: skip


class Figures(NamedTuple):
    """Means over the repeats: updates, test error in percent, and its standard deviation."""

    updates: float
    error: float
    std: float


class Result(NamedTuple):
    """One algorithm on one data set.

    Attributes
    ----------
    algorithm : str
    printed : Printed
    settings : dict of str to Figures
    best : str
        The setting that is best on the test sets.
    chosen : dict of str to int
        How often cross-validation chose each setting.
    cross_validated : Figures
        Of the settings so chosen.
    best_there : float
        The error on these repeats of the setting that is best on the test sets of them all.
    """

    algorithm: str
    printed: Printed
    settings: dict[str, Figures]
    best: str
    chosen: dict[str, int]
    cross_validated: Figures
    best_there: float

    def line(self) -> tuple:
        """Return the algorithm's line of the table."""
        most, times = max(self.chosen.items(), key=lambda item: item[1])
        share = f"{most} {times / sum(self.chosen.values()):.0%}"
        return (
            self.algorithm, *self.printed, self.best, *self.settings[self.best],
            share, *self.cross_validated[:2], self.best_there,
        )  # fmt: skip

    def as_json(self) -> dict[str, Any]:
        """Return the result as it is written to the report."""
        own = self._asdict()
        own["settings"] = {name: each._asdict() for name, each in self.settings.items()}
        own["printed"] = self.printed._asdict()
        own["cross_validated"] = self.cross_validated._asdict()
        return own


def run_algorithm(
    name: str, settings: Settings, printed: Printed, problem: Problem, n_chosen: int, n_jobs: int
) -> Result:
    """Measure all settings on all repeats, and what cross-validation chooses on the first few."""
    measured = {
        setting: _summarise(*values)
        for setting, values in problem.measure(settings, n_jobs).items()
    }
    best = min(measured, key=lambda setting: measured[setting].error)
    (part,) = problem.parts
    found = select_setting(settings, part.X, part.y, part.splits[:n_chosen], n_jobs=n_jobs)
    own = found.cross_validated
    return Result(
        name, printed, measured, best, dict(Counter(found.chosen)),
        _summarise(own.mistakes, 100 * own.test_errors),
        100 * float(found.results[best].test_errors.mean()),
    )  # fmt: skip


def _summarise(updates: np.ndarray, errors: np.ndarray) -> Figures:
    return Figures(float(updates.mean()), float(errors.mean()), float(errors.std()))


def run_problem(
    problem: Problem, printed: dict[str, Printed], n_chosen: int, n_jobs: int
) -> list[Result]:
    """Run the algorithms that the paper prints for a problem, saying which is under way."""
    results = []
    for name, settings in algorithms(printed, problem.n_epochs).items():
        print(f"{problem.name}, {name} ...", file=sys.stderr, flush=True)
        results.append(run_algorithm(name, settings, printed[name], problem, n_chosen, n_jobs))
    return results


def show(problem: Problem, results: list[Result], n_chosen: int) -> None:
    """Print a data set's lines, paper beside measured, and every setting's figures."""
    print(
        f"\n{problem.name}, {problem.sizes}, {problem.n_repeats} repeats, "
        f"{min(n_chosen, problem.n_repeats)} of them cross-validated, epochs: {problem.n_epochs}\n"
    )
    print(text_table(COLUMNS, [result.line() for result in results]))
    print("\nAll settings, updates / test error %:")
    for result in results:
        cells = ", ".join(
            f"{name} {each.updates:.1f} / {each.error:.2f}"
            for name, each in result.settings.items()
        )
        print(f"  {result.algorithm}: {cells}")
