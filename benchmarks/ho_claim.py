"""The paper's claim that HO_p(c) with c > 0 outperforms HO_p(0), tested on every data set.

What is tested is c = 0.4, chosen beforehand, against c = 0 on the same repeats. The c > 0 that is
best on the test sets stands beside it without a p-value: the test sets have chosen it.
"""

import sys
from collections import Counter
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from ho_paper import CS
from ho_runs import POSITIVE_CS, Problem, higher_order
from measure import text_table

from sparsemargin.evaluation import wilcoxon_signed_rank

NORMS = (2, 4, 7)
TESTED_C = 0.4
LEVEL = 0.05

COLUMNS = [
    ("", ""), ("p", "d"), ("repeats", "d"), ("err. c=0", ".2f"), (f"c={TESTED_C:g}", ".2f"),
    ("difference", "+.2f"), ("p-value", ".1g"), ("", ""), ("upd. c=0", ".1f"),
    (f"c={TESTED_C:g}", ".1f"), ("difference", "+.1f"), ("p-value", ".1g"), ("", ""),
    ("best c", "g"), ("err. difference", "+.2f"),
]  # fmt: skip


class Comparison(NamedTuple):
    """One figure with c = `TESTED_C` against c = 0: means, their difference, and its p-value."""

    without: float
    with_matrix: float
    difference: float
    p_value: float

    @property
    def verdict(self) -> str:
        """Whether the claim holds for this figure, at `LEVEL`."""
        if not self.p_value < LEVEL:
            return "open"
        return "better" if self.difference < 0 else "worse"


class Entry(NamedTuple):
    """The claim on one data set and for one p, errors in percent."""

    problem: str
    p: int
    n_repeats: int
    errors: Comparison
    updates: Comparison
    best_c: float
    best_difference: float

    def as_json(self) -> dict[str, Any]:
        """Return the entry as it is written to the report."""
        own = self._asdict()
        for name in ("errors", "updates"):
            comparison = own[name]
            own[name] = comparison._asdict() | {"verdict": comparison.verdict}
        return own


def examine(problem: Problem, p: int, n_jobs: int) -> Entry:
    """Run HO_p(c) for all c of the paper on one problem, and compare."""
    measured = problem.measure(higher_order(p, CS, problem.n_epochs), n_jobs)
    updates, errors = zip(*measured.values(), strict=True)
    zero, tested = CS.index(0.0), CS.index(TESTED_C)
    mean_errors = np.array([values.mean() for values in errors])
    best = min(map(CS.index, POSITIVE_CS), key=mean_errors.__getitem__)
    return Entry(
        problem.name,
        p,
        problem.n_repeats,
        _compare(errors[zero], errors[tested]),
        _compare(updates[zero], updates[tested]),
        CS[best],
        float(mean_errors[best] - mean_errors[zero]),
    )


def _compare(without: np.ndarray, with_matrix: np.ndarray) -> Comparison:
    test = wilcoxon_signed_rank(with_matrix, without)
    return Comparison(
        float(without.mean()), float(with_matrix.mean()), test.mean_difference, test.p_value
    )


def show(entries: list[Entry]) -> None:
    """Print the comparisons and how often the claim held."""
    rows = [
        (
            entry.problem, entry.p, entry.n_repeats, *entry.errors, entry.errors.verdict,
            *entry.updates, entry.updates.verdict, entry.best_c, entry.best_difference,
        )
        for entry in entries
    ]  # fmt: skip
    print("\n" + text_table(COLUMNS, rows) + "\n")
    _show_verdicts("test errors", [entry.errors.verdict for entry in entries])
    _show_verdicts("updates", [entry.updates.verdict for entry in entries])
    lower = sum(entry.best_difference < 0 for entry in entries)
    print(f"Some c > 0 has a lower mean test error than c = 0 in {lower} of {len(entries)} cases.")


def _show_verdicts(what: str, verdicts: list[str]) -> None:
    counts = Counter(verdicts)
    found = ", ".join(f"{counts[verdict]} {verdict}" for verdict in ("better", "worse", "open"))
    print(f"HO_p({TESTED_C:g}) against HO_p(0), {what}, {len(verdicts)} cases: {found}")


def examine_all(problems: list[Problem], n_jobs: int) -> list[Entry]:
    """Test the claim on all problems, saying on standard error which is under way."""
    entries = []
    for problem, p in product(problems, NORMS):
        print(f"{problem.name}, p = {p} ...", file=sys.stderr, flush=True)
        entries.append(examine(problem, p, n_jobs))
    return entries
