"""In which units are the greys of Freund & Schapire (1999)? Their counts tell.

The paper has the kernel (1 + x.z)^d; here (1 + x.z / s)^d makes one epoch for each d and s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from papers._kernel_runs import CORRECTIONS, SUPPORT
from papers._kernel_tables import (
    Printed,
    PrintedLine,
    allowed,
    figures_of,
    table,
)
from papers._recipe import (
    Allowed,
    Claim,
    Finding,
    Measured,
    Recipe,
    Repeats,
    Table,
    incomparable,
)
from papers._voted_printed import LINES, SCALE
from papers.sources import VOTED

#: 1, the greys as they are; 255, the ALMA paper's; 65025, greys from 0 to 1.
SCALES = (1.0, SCALE, 1000.0, 65025.0)

_TRIED = incomparable("one of the units tried; which comes nearest is for the statements below")


def _allowed(printed: Printed, quick: bool) -> Allowed:
    return allowed(printed, quick) if printed.run.scale == SCALE else _TRIED


def _counts() -> list[Printed]:
    """Counts that Table 1 prints for T = 1, as runs of one epoch have them."""
    return [
        each._replace(run=replace(each.run, epochs=1))
        for each in figures_of(LINES["voted-table1"]) if each.is_count and each.epochs == 1
    ]  # fmt: skip


def _lines() -> list[PrintedLine]:
    counts = {(each.run, each.quantity): each for each in _counts()}
    return [
        (
            f"d={run.degree} s={scale:g}",
            tuple(
                counts[run, quantity]._replace(run=replace(run, scale=scale))
                for quantity in (CORRECTIONS, SUPPORT)
            ),
        )
        for run in dict.fromkeys(run for run, _ in counts)
        for scale in SCALES
    ]


def deviations(
    measured: Measured, lines: Sequence[PrintedLine], quick: bool
) -> dict[float, np.ndarray]:
    """Return by scale the relative differences from the printed counts, by degree."""
    found: dict[float, list[float]] = {scale: [] for scale in SCALES}
    for each in figures_of(lines):
        found[each.run.scale].append(each.mean(measured, quick) / each.number - 1)
    return {scale: np.array(values) for scale, values in found.items()}


def _hardly_matters(measured: Measured, lines: Sequence[PrintedLine], quick: bool) -> Finding:
    worst = {s: np.abs(values).max() for s, values in deviations(measured, lines, quick).items()}
    detail = ", ".join(f"s = {scale:g}: {100 * value:.1f} %" for scale, value in worst.items())
    return Finding(max(worst[s] for s in SCALES[:3]) <= 0.03, f"largest differences: {detail}")


def _too_few(measured: Measured, lines: Sequence[PrintedLine], quick: bool) -> Finding:
    mistakes = deviations(measured, lines, quick)[SCALES[-1]][0]
    return Finding(mistakes < -0.05, f"{100 * mistakes:+.1f} %")


def parts(quick: bool) -> tuple[Table, ...]:
    """Return the counts for every degree and scale."""
    lines = _lines()
    works = tuple(dict.fromkeys(each.run.work(quick) for each in figures_of(lines)))
    claims = (
        Claim(
            "With s = 1, 255 and 1000 all counts come within 3 % of those printed",
            works, partial(_hardly_matters, lines=lines, quick=quick),
        ),
        Claim(
            "Greys from 0 to 1 (s = 65025) are out: with d = 1 more than 5 % too few mistakes",
            works, partial(_too_few, lines=lines, quick=quick),
        ),
    )  # fmt: skip
    columns = ("mistakes, T=1", "support vectors, T=1")
    return (table("Counts by degree d and scale s", columns, lines, quick, _allowed, claims),)


RECIPES = (
    Recipe(
        "voted-units", VOTED, "Table 1, T = 1", "In which units the greys are",
        "MNIST, 60,000 training digits; kernel (1 + x·z/s)^d",
        "One epoch on a random order of the rows for every d and s.",
        parts, Repeats(quick=1, full=3), needs=("mnist",),
        remarks=(
            "A study of ours: the paper does not say in which units the greys are. Beside x·z/s "
            "the constant hardly counts for any s up to 1000; 255 is the ALMA paper's and Li & "
            "Long's, and runs in the recipes of the tables.",
        ),
    ),
)  # fmt: skip
