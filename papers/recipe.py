"""What a recipe consists of: pieces of work, printed figures with what they may differ by, and
pictures with what they shall show."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from matplotlib.figure import Figure

#: What one piece of work measured: numbers, text and lists of them.
Record: TypeAlias = dict[str, Any]

#: Standard errors of a measured mean that are no difference from the paper.
STANDARD_ERRORS = 2.0


class Paper(NamedTuple):
    """A paper: its name in short, and its source."""

    short: str
    source: str


ALMA = Paper(
    "Gentile (2001)",
    'C. Gentile, "A New Approximate Maximal Margin Classification Algorithm", Journal of Machine '
    "Learning Research 2 (2001), 213-242",
)
ALMA_CONFERENCE = Paper(
    "Gentile (2000)",
    'C. Gentile, "A New Approximate Maximal Margin Classification Algorithm", Advances in Neural '
    "Information Processing Systems 13 (2000), 500-506",
)
VOTED = Paper(
    "Freund & Schapire (1999)",
    'Y. Freund and R. E. Schapire, "Large Margin Classification Using the Perceptron Algorithm", '
    "Machine Learning 37 (1999), 277-296",
)
HIGHER_ORDER = Paper(
    "Brotto, Gentile & Vitale (2007)",
    'C. Brotto, C. Gentile and F. Vitale, "On Higher-Order Perceptron Algorithms", Advances in '
    "Neural Information Processing Systems 20 (2007)",
)
CRAMMA = Paper(
    "Tsampouka & Shawe-Taylor (2006)",
    'P. Tsampouka and J. Shawe-Taylor, "Constant Rate Approximate Maximum Margin Algorithms", '
    "Machine Learning: ECML 2006, 437-448",
)

#: In the order in which they are reported.
PAPERS = (ALMA, ALMA_CONFERENCE, VOTED, HIGHER_ORDER, CRAMMA)


@dataclass(frozen=True)
class Work:
    """A function of a module's level with its arguments, to be called once for each repeat."""

    run: Callable[..., Record]  # run(**arguments, seed=repeat)
    arguments: tuple[tuple[str, Any], ...] = ()  # sorted by name

    def __call__(self, seed: int) -> Record:
        """Do the work for one repeat."""
        return self.run(**dict(self.arguments), seed=seed)


def work(run: Callable[..., Record], **arguments: Any) -> Work:
    """Return the work of calling a function of a module's level with these arguments."""
    return Work(run, tuple(sorted(arguments.items())))


def each_once(works: Sequence[Work]) -> tuple[Work, ...]:
    """Return works without those that stand there before."""
    return tuple(dict.fromkeys(works))


class Measured:
    """What was measured, by work, in the order of the repeats; what was not has no records."""

    def __init__(self, records: Mapping[Work, list[Record]]):
        self._records = records

    def __getitem__(self, piece: Work | None) -> list[Record]:
        return [] if piece is None else self._records.get(piece, [])

    def has(self, pieces: Sequence[Work]) -> bool:
        """Whether there are records of every one of them, of the same repeats."""
        counts = {len(self[piece]) for piece in pieces}
        return len(counts) <= 1 and 0 not in counts


class Allowed(NamedTuple):
    """By how much a measured figure may differ from the printed one, and why.

    That is because the paper leaves something open, or other data stand in. Of figures that can't
    be compared, which `incomparable` makes, `why` says why not.
    """

    absolute: float = 0.0  # in the figure's own units
    relative: float = 0.0  # share of the printed figure; the larger of the two counts
    # So many standard deviations of one repeat more: for papers that do not say how many repeats
    # their means are of.
    spread: float = 0.0
    why: str = ""

    def of(self, printed: float, deviation: float) -> float:
        """The difference allowed from a printed figure, by the deviation of one repeat."""
        return max(self.absolute, self.relative * abs(printed)) + self.spread * deviation


def incomparable(why: str) -> Allowed:
    """Return what a figure is given that stands beside the paper's without being compared."""
    return Allowed(math.inf, why=why)


class Verdict(Enum):
    """What comparing a figure with the paper's comes to, or examining a statement of its text.

    Each has a mark, so that none is told by colour alone.
    """

    WITHIN = "within", "✓"
    OUTSIDE = "outside", "✗"
    INCOMPARABLE = "not comparable", "○"
    NOT_RUN = "not run", "–"
    HOLDS = "confirmed", "✓"
    FAILS = "not confirmed", "✗"
    FORESEEN = "known beforehand not to hold here", "○"
    NOT_EXAMINED = "not examined", "–"

    def __init__(self, words: str, mark: str):
        self.words, self.mark = words, mark


class Comparison(NamedTuple):
    """A printed figure beside the measured one; NaN: there are too few repeats."""

    cell: Cell
    measured: float = math.nan  # mean over the repeats
    standard_error: float = math.nan  # of that mean
    difference: float = math.nan  # measured less printed
    # What that may be: what the recipe allows, half a unit of the last printed digit, and
    # STANDARD_ERRORS standard errors.
    allowed: float = math.nan
    n_repeats: int = 0
    verdict: Verdict = Verdict.NOT_RUN
    note: str = ""


@dataclass(frozen=True)
class Cell:
    """A printed figure and how it is measured."""

    printed: str  # in the paper's digits
    work: Work | None  # None: a quick run leaves it out
    values: Callable[[list[Record]], Sequence[float]]  # of all records; one for each repeat
    allowed: Allowed
    # Of all records, what is to be said about the figure, such as the setting it was found with.
    note: Callable[[list[Record]], str] | None = None

    @property
    def number(self) -> float:
        """The printed figure."""
        return float(self.printed.replace(",", ""))

    @property
    def digits(self) -> int:
        """Printed digits behind the point."""
        return len(self.printed.partition(".")[2])

    def compare(self, records: list[Record]) -> Comparison:
        """Set the mean over the repeats beside the printed figure."""
        values = np.asarray(self.values(records) if records else [], dtype=np.float64)
        if not values.size:
            return Comparison(self)
        measured, n_repeats = float(values.mean()), len(values)
        deviation = float(values.std(ddof=1)) if n_repeats > 1 else 0.0
        error = deviation / math.sqrt(n_repeats)
        rounding = 0.5 * 10.0**-self.digits
        allowed = self.allowed.of(self.number, deviation) + rounding + STANDARD_ERRORS * error
        difference = measured - self.number
        # The sum of decimals above may be a rounding short of a figure at its very edge.
        verdict = Verdict.WITHIN if abs(difference) <= allowed * (1 + 1e-12) else Verdict.OUTSIDE
        if math.isinf(allowed):
            verdict = Verdict.INCOMPARABLE
        return Comparison(
            self, measured, error if n_repeats > 1 else math.nan, difference, allowed, n_repeats,
            verdict, self.note(records) if self.note else "",
        )  # fmt: skip


def entry(*path: str | int) -> Callable[[list[Record]], list[float]]:
    """Return what reads, of every record, the number at a path of keys and positions."""

    def values(records: list[Record]) -> list[float]:
        found = []
        for value in records:
            for key in path:
                value = value[key]  # type: ignore[index]
            found.append(float(value))  # type: ignore[arg-type]
        return found

    return values


class Finding(NamedTuple):
    """Whether something that a paper says was seen, and the figures that tell."""

    holds: bool
    detail: str


@dataclass(frozen=True)
class Claim:
    """Something that a paper says of a figure or a table: that curves lie in some order, say."""

    text: str
    works: tuple[Work, ...]  # what it takes to examine it
    examine: Callable[[Measured], Finding]
    why_not: str = ""  # why, as known beforehand, it may not hold here; empty where it is to hold


class Mean(NamedTuple):
    """A figure that a work measures, as the mean over the repeats."""

    work: Work
    values: Callable[[list[Record]], Sequence[float]]

    def of(self, measured: Measured) -> float:
        """The mean of what was measured."""
        return float(np.mean(self.values(measured[self.work])))


def compared(
    text: str,
    pairs: Sequence[tuple[Mean, Mean]],
    examine: Callable[[list[tuple[float, float]]], Finding],
    why_not: str = "",
) -> Claim:
    """Return a claim on pairs of means."""
    works = each_once([mean.work for pair in pairs for mean in pair])
    return Claim(
        text,
        works,
        lambda measured: examine([(a.of(measured), b.of(measured)) for a, b in pairs]),
        why_not,
    )


def smaller(
    text: str, pairs: Sequence[tuple[Mean, Mean]], least_share: float = 1.0, why_not: str = ""
) -> Claim:
    """Return the claim that in at least this share of the pairs the first mean is the smaller."""

    def examine(means: list[tuple[float, float]]) -> Finding:
        held = [less < more for less, more in means]
        detail = f"in {sum(held)} of {len(held)} comparisons"
        if len(means) == 1:
            detail = "{:.2f} and {:.2f}".format(*means[0])
        return Finding(bool(np.mean(held) >= least_share), detail)

    return compared(text, pairs, examine, why_not)


class Line(NamedTuple):
    """A line of a table: its name, and a cell for each column; None: nothing is printed there."""

    name: str
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True)
class Table:
    """A table of a paper: a title, what stands above its columns, and its lines."""

    title: str
    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    claims: tuple[Claim, ...] = ()

    @property
    def works(self) -> tuple[Work, ...]:
        """All that it and its claims take."""
        cells = [cell for line in self.lines for cell in line.cells if cell is not None]
        own = [cell.work for cell in cells if cell.work is not None]
        return each_once([*own, *(piece for claim in self.claims for piece in claim.works)])


@dataclass(frozen=True)
class Picture:
    """A figure of a paper, and what makes its shape that of the paper's."""

    title: str
    drawn_from: tuple[Work, ...]
    draw: Callable[[Measured], Figure]  # a figure of its own, in the theme that is set
    claims: tuple[Claim, ...] = ()

    @property
    def works(self) -> tuple[Work, ...]:
        """All that it and its claims take."""
        of_claims = (piece for claim in self.claims for piece in claim.works)
        return each_once([*self.drawn_from, *of_claims])


def panels(n_rows: int, n_columns: int) -> tuple[Figure, list[Any]]:
    """Return a figure outside of pyplot, so that it does not stay open, and its axes row by row."""
    figure = Figure(figsize=(4.6 * n_columns, 3.6 * n_rows), layout="constrained")
    return figure, list(figure.subplots(n_rows, n_columns, squeeze=False).flat)


class Repeats(NamedTuple):
    """How often all work of a recipe is done, with seeds counted from 0."""

    quick: int
    full: int

    def of(self, quick: bool) -> int:
        """Those of a quick run, or of a full one."""
        return self.quick if quick else self.full


@dataclass(frozen=True)
class Recipe:
    """A table or figure of a paper: what to run, and what comes out there."""

    name: str  # on the command line, such as "alma-table6"
    paper: Paper
    item: str  # such as "Table 6"
    title: str
    data: str  # on which, in a sentence
    protocol: str  # how it is run, and what a repeat is
    # Of a quick run, or a full one; a quick one's works may have fewer epochs, and cells no work.
    parts: Callable[[bool], Sequence[Table | Picture]]
    repeats: Repeats
    needs: tuple[str, ...] = ()  # data sets of the registry whose files it reads
    remarks: tuple[str, ...] = ()  # what can't be matched, known beforehand, and why

    def works(self, quick: bool) -> list[tuple[Work, int]]:
        """All that is to be done: work and repeat, the first repeat of everything first."""
        pieces = each_once([piece for part in self.parts(quick) for piece in part.works])
        return [(piece, repeat) for repeat in range(self.repeats.of(quick)) for piece in pieces]
