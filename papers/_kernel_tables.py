"""From figures that the papers print of runs with kernels to tables, and by how much they may
differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from papers._kernel_runs import CORRECTIONS, LAST, RANDOM, SUPPORT, Run, figure
from papers._recipe import (
    Allowed,
    Cell,
    Claim,
    Finding,
    Line,
    Measured,
    Table,
    Work,
    incomparable,
)

#: Permutations that the papers' figures are means of.
N_PERMUTATIONS = 10


class Printed(NamedTuple):
    """A figure of a paper.

    Attributes
    ----------
    run : Run
    quantity : str
        `CORRECTIONS`, `SUPPORT`, or a hypothesis: its test error in percent.
    epochs : float
        When in the run.
    text : str
        In the paper's digits.
    label : int or None
        The class whose corrections or support vectors these are; None: those of all.
    """

    run: Run
    quantity: str
    epochs: float
    text: str
    label: int | None = None

    @property
    def number(self) -> float:
        """The figure."""
        return float(self.text)

    @property
    def is_count(self) -> bool:
        """Whether it is a number of rows, not an error."""
        return self.quantity in (CORRECTIONS, SUPPORT)

    @property
    def is_of_one_vector(self) -> bool:
        """Whether it is the error of a single weight vector for each class."""
        return self.quantity.startswith((LAST, RANDOM))

    def work(self, quick: bool) -> Work | None:
        """What measures it; None where a quick run does not come so far."""
        return None if quick and self.epochs > 1 else self.run.work(quick)

    def mean(self, measured: Measured, quick: bool) -> float:
        """The measured one, over the permutations."""
        values = figure(self.quantity, self.epochs, self.label)
        return float(np.mean(values(measured[self.run.work(quick)])))


#: A line of a table: its name, and for each column a figure or None.
PrintedLine = tuple[str, tuple[Printed | None, ...]]


def figures_of(lines: Sequence[PrintedLine]) -> Iterator[Printed]:
    """Yield all that is printed."""
    for _, cells in lines:
        yield from (cell for cell in cells if cell is not None)


_ONE_VECTOR = (
    "a single vector's error moves by more than its mean is off from permutation to permutation, "
    "and a quick run has one"
)
_SPREAD = "0.15 points, and the deviation of one permutation, as errors of one vector differ much"
_ERROR = (
    "0.15 points, of which 0.03 to 0.12 is one permutation's deviation as Gentile (2001) has it"
)
_COUNT = "3 %, and twice what a mean of such counts spreads by: n events by their root"
_ONE_PERMUTATION = Allowed(
    0.3, relative=0.15, why="of one permutation, twice as much as of ten, or 15 % of the error"
)
_TENTH_OF_AN_EPOCH = Allowed(
    0.3, relative=0.25,
    why="learned from a tenth of the rows, the errors of one permutation deviate by up to a tenth",
)  # fmt: skip


def allowed(printed: Printed, quick: bool) -> Allowed:
    """Return what a figure may differ by where nothing particular is known of it."""
    if printed.is_count:
        n_events = printed.number * (1 if quick else N_PERMUTATIONS)
        return Allowed(relative=0.03 + 2 / np.sqrt(n_events), why=_COUNT)
    if printed.is_of_one_vector:
        return incomparable(_ONE_VECTOR) if quick else Allowed(0.15, spread=1.0, why=_SPREAD)
    if quick:
        return _TENTH_OF_AN_EPOCH if printed.epochs < 1 else _ONE_PERMUTATION
    return Allowed(0.15, why=_ERROR)


def table(
    title: str,
    columns: tuple[str, ...],
    lines: Sequence[PrintedLine],
    quick: bool,
    allowed: Callable[[Printed, bool], Allowed] = allowed,
    claims: tuple[Claim, ...] = (),
) -> Table:
    """Return a table whose quick form leaves out what comes after the first epoch."""

    def cell(printed: Printed | None) -> Cell | None:
        if printed is None:
            return None
        values = figure(printed.quantity, printed.epochs, printed.label)
        return Cell(printed.text, printed.work(quick), values, allowed(printed, quick))

    return Table(
        title, columns, tuple(Line(name, tuple(map(cell, cells))) for name, cells in lines), claims
    )


#: Two figures of which a paper says that the first is the smaller one.
Pair = tuple[Printed, Printed]


def smaller(
    text: str, pairs: Sequence[Pair], quick: bool, least_share: float = 1.0, why_not: str = ""
) -> Claim:
    """Return the claim that in at least this share of the pairs the first figure is the smaller.

    Pairs beyond the first epoch are no part of a quick run.
    """
    shown = [pair for pair in pairs if all(each.work(quick) for each in pair)]
    works = tuple(dict.fromkeys(each.run.work(quick) for pair in shown for each in pair))
    examine = partial(_examine, pairs=shown, quick=quick, least_share=least_share)
    share = "" if least_share == 1 else f" (in {100 * least_share:g} % of the comparisons at least)"
    return Claim(text + share, works, examine, why_not)


def _examine(measured: Measured, pairs: Sequence[Pair], quick: bool, least_share: float) -> Finding:
    held = [less.mean(measured, quick) < more.mean(measured, quick) for less, more in pairs]
    return Finding(bool(np.mean(held) >= least_share), f"in {sum(held)} of {len(held)} comparisons")
