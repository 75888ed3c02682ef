"""What a recipe consists of: pieces of work, printed figures with what they may differ by, and
pictures with what they shall show."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from papers.sources import Paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What one piece of work measured, as it is kept in a file: numbers, text and lists of them.
Record: TypeAlias = dict[str, Any]

#: Standard errors of a measured mean that are no difference from the paper.
STANDARD_ERRORS = 2.0


@dataclass(frozen=True)
class Work:
    """A function of a recipe's module with its arguments, to be called once for each repeat.

    Attributes
    ----------
    run : callable
        ``run(**arguments, seed=repeat)`` returns a `Record`. By its name it is found again in
        another process, and by its name and arguments what it measured is found in a later run.
    arguments : tuple of (str, value)
        Sorted by name; what JSON can hold.
    """

    run: Callable[..., Record]
    arguments: tuple[tuple[str, Any], ...] = ()

    def __call__(self, seed: int) -> Record:
        """Do the work for one repeat."""
        return self.run(**dict(self.arguments), seed=seed)

    @property
    def title(self) -> str:
        """What is under way, for people."""
        return " ".join([self.run.__name__, *(f"{name}={value}" for name, value in self.arguments)])

    @property
    def key(self) -> str:
        """What the records of this work are found by; a name for files."""
        text = json.dumps([self.run.__module__, self.run.__name__, self.arguments])
        words = re.sub(r"[^A-Za-z0-9.=]+", "_", self.title)[:80]
        return f"{words}_{sha256(text.encode()).hexdigest()[:12]}"


def work(run: Callable[..., Record], **arguments: Any) -> Work:
    """Return the work of calling a function of a module's level with these arguments."""
    return Work(run, tuple(sorted(arguments.items())))


class Allowed(NamedTuple):
    """By how much a measured figure may differ from the printed one.

    Attributes
    ----------
    absolute : float
        In the figure's own units.
    relative : float
        Share of the printed figure; the larger of the two counts.
    spread : float
        So many standard deviations of one repeat more: for papers that do not say how many repeats
        their means are of.
    why : str
        Why it may differ, where the paper leaves something open or other data stand in. Of figures
        that can't be compared, which `incomparable` makes, why not.
    """

    absolute: float = 0.0
    relative: float = 0.0
    spread: float = 0.0
    why: str = ""

    def of(self, printed: float, deviation: float) -> float:
        """The difference allowed from a printed figure, by the deviation of one repeat."""
        return max(self.absolute, self.relative * abs(printed)) + self.spread * deviation


def incomparable(why: str) -> Allowed:
    """Return what a figure is given that stands beside the paper's without being compared."""
    return Allowed(math.inf, why=why)


class Verdict(Enum):
    """What comparing a figure with the paper's comes to."""

    WITHIN = "within"
    OUTSIDE = "outside"
    INCOMPARABLE = "not comparable"
    NOT_RUN = "not run"


class Standing(Enum):
    """What examining a statement of a paper comes to."""

    HOLDS = "confirmed"
    FAILS = "not confirmed"
    FORESEEN = "known beforehand not to hold here"
    NOT_EXAMINED = "not examined"


class Comparison(NamedTuple):
    """A printed figure beside the measured one.

    Attributes
    ----------
    measured : float
        Mean over the repeats; NaN where there are none.
    standard_error : float
        Of that mean; NaN of fewer than two repeats.
    difference : float
        Measured less printed.
    allowed : float
        What it may be: what the recipe allows, half a unit of the last printed digit, and
        `STANDARD_ERRORS` standard errors.
    n_repeats : int
    verdict : Verdict
    """

    measured: float
    standard_error: float
    difference: float
    allowed: float
    n_repeats: int
    verdict: Verdict


@dataclass(frozen=True)
class Cell:
    """A printed figure and how it is measured.

    Attributes
    ----------
    printed : str
        In the paper's digits.
    work : Work or None
        None: a quick run leaves it out.
    values : callable
        ``values(records)``, of the records of all repeats, returns the figure for each repeat.
    allowed : Allowed
    note : callable or None
        ``note(records)`` says something about the figure, such as the setting it was found with.
    """

    printed: str
    work: Work | None
    values: Callable[[list[Record]], Sequence[float]]
    allowed: Allowed
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
            return Comparison(math.nan, math.nan, math.nan, math.nan, 0, Verdict.NOT_RUN)
        measured = float(values.mean())
        deviation = float(values.std(ddof=1)) if len(values) > 1 else 0.0
        error = deviation / math.sqrt(len(values))
        allowed = (
            self.allowed.of(self.number, deviation)
            + 0.5 * 10.0**-self.digits
            + STANDARD_ERRORS * error
        )
        difference = measured - self.number
        if math.isinf(allowed):
            verdict = Verdict.INCOMPARABLE
        else:
            # The sum of decimals above may be a rounding short of a figure at its very edge.
            within = abs(difference) <= allowed * (1 + 1e-12)
            verdict = Verdict.WITHIN if within else Verdict.OUTSIDE
        shown = error if len(values) > 1 else math.nan
        return Comparison(measured, shown, difference, allowed, len(values), verdict)


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


class Line(NamedTuple):
    """A line of a table: its name, and a cell for each column; None: nothing is printed there."""

    name: str
    cells: tuple[Cell | None, ...]


class Measured:
    """What was measured so far, by work; what was not has no records.

    Parameters
    ----------
    records : mapping of Work to list of Record
    """

    def __init__(self, records: Mapping[Work, list[Record]]):
        self._records = records

    def __getitem__(self, piece: Work) -> list[Record]:
        return self._records.get(piece, [])

    def has(self, pieces: Sequence[Work]) -> bool:
        """Whether there are records of every one of them, of the same repeats."""
        counts = {len(self[piece]) for piece in pieces}
        return len(counts) <= 1 and 0 not in counts


class Finding(NamedTuple):
    """Whether something that a paper says was seen, and the figures that tell."""

    holds: bool
    detail: str


@dataclass(frozen=True)
class Claim:
    """Something that a paper says of a figure or a table: that curves lie in some order, say.

    Attributes
    ----------
    text : str
    works : tuple of Work
        What it takes to examine it.
    examine : callable
        ``examine(measured)`` returns a `Finding`.
    why_not : str
        Why, as known beforehand, it may not hold here; empty where it is to hold.
    """

    text: str
    works: tuple[Work, ...]
    examine: Callable[[Measured], Finding]
    why_not: str = ""


@dataclass(frozen=True)
class Table:
    """A table of a paper: a title, what stands above its columns, and its lines."""

    title: str
    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    claims: tuple[Claim, ...] = ()

    @property
    def works(self) -> tuple[Work, ...]:
        """All that it takes, each once."""
        own = [
            cell.work for line in self.lines for cell in line.cells
            if cell is not None and cell.work is not None
        ]  # fmt: skip
        return tuple(dict.fromkeys([*own, *_of_claims(self.claims)]))


@dataclass(frozen=True)
class Picture:
    """A figure of a paper.

    Attributes
    ----------
    title : str
    drawn_from : tuple of Work
        What it takes to draw it.
    draw : callable
        ``draw(measured)`` returns a matplotlib Figure of its own, in the theme that is set.
    claims : tuple of Claim
        What makes its shape that of the paper's.
    """

    title: str
    drawn_from: tuple[Work, ...]
    draw: Callable[[Measured], Figure]
    claims: tuple[Claim, ...] = ()

    @property
    def works(self) -> tuple[Work, ...]:
        """All that it and its claims take, each once."""
        return tuple(dict.fromkeys([*self.drawn_from, *_of_claims(self.claims)]))


def _of_claims(claims: Sequence[Claim]) -> list[Work]:
    return [piece for claim in claims for piece in claim.works]


class Repeats(NamedTuple):
    """How often all work of a recipe is done, with seeds counted from 0."""

    quick: int
    full: int

    def of(self, quick: bool) -> int:
        """Those of a quick run, or of a full one."""
        return self.quick if quick else self.full


@dataclass(frozen=True)
class Recipe:
    """A table or figure of a paper: what to run, and what comes out there.

    Attributes
    ----------
    name : str
        On the command line, such as ``"alma-table6"``.
    paper : Paper
    item : str
        Such as ``"Table 6"``.
    title : str
    data : str
        On which data, in a sentence.
    protocol : str
        How it is run, and what a repeat is.
    parts : callable
        ``parts(quick)`` returns the tables and pictures; works of a quick run may have fewer
        epochs, and cells without work.
    repeats : Repeats
    needs : tuple of str
        Data sets of the registry whose files it reads.
    remarks : tuple of str
        What can't be matched, known beforehand, and why.
    """

    name: str
    paper: Paper
    item: str
    title: str
    data: str
    protocol: str
    parts: Callable[[bool], Sequence[Table | Picture]]
    repeats: Repeats
    needs: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def works(self, quick: bool) -> list[tuple[Work, int]]:
        """All that is to be done: work and repeat, the first repeat of everything first."""
        pieces: dict[Work, None] = {}
        for part in self.parts(quick):
            pieces |= dict.fromkeys(part.works)
        return [(piece, repeat) for repeat in range(self.repeats.of(quick)) for piece in pieces]
