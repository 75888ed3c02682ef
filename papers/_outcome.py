"""What recipes came to: every printed figure beside the measured one, and every claim examined."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from papers._recipe import (
    Allowed,
    Cell,
    Claim,
    Comparison,
    Finding,
    Measured,
    Picture,
    Recipe,
    Standing,
    Table,
    Verdict,
)


class ComparedLine(NamedTuple):
    """A line of a table: its name, and cells with what they came to; None: nothing printed."""

    name: str
    cells: tuple[ComparedCell | None, ...]


class ComparedCell(NamedTuple):
    """A cell, what it came to, and what there is to say about it."""

    cell: Cell
    comparison: Comparison
    note: str


class ExaminedClaim(NamedTuple):
    """A claim, and what was found; None: a quick run does not examine it."""

    claim: Claim
    finding: Finding | None

    @property
    def standing(self) -> Standing:
        """Whether it holds; of one that doesn't, whether the recipe has said so beforehand."""
        if self.finding is None:
            return Standing.NOT_EXAMINED
        if self.finding.holds:
            return Standing.HOLDS
        return Standing.FORESEEN if self.claim.why_not else Standing.FAILS


class PartOutcome(NamedTuple):
    """A table's lines, or none for a picture, and the claims of either."""

    part: Table | Picture
    lines: tuple[ComparedLine, ...]
    claims: tuple[ExaminedClaim, ...]

    def cells(self) -> Iterator[ComparedCell]:
        """The cells that have a printed figure, line by line."""
        for line in self.lines:
            yield from (cell for cell in line.cells if cell is not None)

    def allowances(self) -> list[list[Allowed]]:
        """What cells may differ by, those together that may for the same reason."""
        groups: dict[tuple, list[Allowed]] = {}
        for compared in self.cells():
            allowed = compared.cell.allowed
            kind = allowed.why, allowed.spread, bool(allowed.absolute), bool(allowed.relative)
            groups.setdefault(kind, []).append(allowed)
        return list(groups.values())


class Outcome(NamedTuple):
    """A recipe and what it came to.

    Attributes
    ----------
    recipe : Recipe
    n_repeats : int
    parts : tuple of PartOutcome
    measured : Measured
        What its pictures are drawn from.
    missing : str
        Which data are not at hand, and how to get them; empty where they are.
    """

    recipe: Recipe
    n_repeats: int
    parts: tuple[PartOutcome, ...]
    measured: Measured
    missing: str = ""

    def __repr__(self) -> str:
        return f"<{self.recipe.name}: {'; '.join(totals_of(self)) or 'nothing to count'}>"

    def figures(self) -> Counter[Verdict]:
        """How many printed figures came to each verdict."""
        return Counter(cell.comparison.verdict for cell in self._cells())

    def claims(self) -> Counter[Standing]:
        """How many statements of the paper hold, or don't."""
        return Counter(claim.standing for part in self.parts for claim in part.claims)

    @property
    def is_as_allowed(self) -> bool:
        """Whether no figure differs by more than is allowed, and no claim fails unforeseen."""
        return not (self.figures()[Verdict.OUTSIDE] or self.claims()[Standing.FAILS])

    def _cells(self) -> Iterator[ComparedCell]:
        for part in self.parts:
            yield from part.cells()


def count_words(counts: Counter[Verdict] | Counter[Standing]) -> str:
    """How many came to each verdict or standing, those that there are."""
    every = (*Verdict, *Standing)
    return ", ".join(f"{counts[each]} {each.value}" for each in every if counts[each])


def totals_of(outcome: Outcome) -> Iterator[str]:
    """How many printed figures and statements there are, and what they came to."""
    for name, counts in (("printed figure", outcome.figures()), ("statement", outcome.claims())):
        if counts:
            plural = "" if counts.total() == 1 else "s"
            yield f"{counts.total()} {name}{plural}: {count_words(counts)}"


def compare(recipe: Recipe, measured: Measured, quick: bool) -> Outcome:
    """Set all that a recipe has measured beside what is printed."""
    parts = tuple(_compare_part(part, measured) for part in recipe.parts(quick))
    return Outcome(recipe, recipe.repeats.of(quick), parts, measured)


def _compare_part(part: Table | Picture, measured: Measured) -> PartOutcome:
    lines = part.lines if isinstance(part, Table) else ()
    return PartOutcome(
        part,
        tuple(
            ComparedLine(line.name, tuple(_compare_cell(cell, measured) for cell in line.cells))
            for line in lines
        ),
        tuple(
            ExaminedClaim(claim, claim.examine(measured) if measured.has(claim.works) else None)
            for claim in part.claims
        ),
    )


def _compare_cell(cell: Cell | None, measured: Measured) -> ComparedCell | None:
    if cell is None:
        return None
    records = [] if cell.work is None else measured[cell.work]
    note = cell.note(records) if cell.note is not None and records else ""
    return ComparedCell(cell, cell.compare(records), note)


def as_json(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome's figures as JSON can hold them: what is no number is None."""
    return {
        "name": outcome.recipe.name,
        "paper": outcome.recipe.paper.source,
        "item": outcome.recipe.item,
        "repeats": outcome.n_repeats,
        "missing": outcome.missing,
        "parts": [_part_as_json(part) for part in outcome.parts],
    }


def _part_as_json(outcome: PartOutcome) -> dict[str, Any]:
    part = outcome.part
    columns = part.columns if isinstance(part, Table) else ()
    figures = [
        _cell_as_json(line.name, column, compared)
        for line in outcome.lines
        for column, compared in zip(columns, line.cells, strict=True)
        if compared is not None
    ]
    claims = [
        {
            "text": examined.claim.text,
            "standing": examined.standing.value,
            "detail": "" if examined.finding is None else examined.finding.detail,
        }
        for examined in outcome.claims
    ]
    return {"title": part.title, "figures": figures, "claims": claims}


def _cell_as_json(line: str, column: str, compared: ComparedCell) -> dict[str, Any]:
    comparison = compared.comparison
    numbers = {
        name: value if math.isfinite(value) else None
        for name, value in comparison._asdict().items()
        if name != "verdict"
    }
    printed = {"line": line, "column": column, "printed": compared.cell.printed}
    return {**printed, **numbers, "verdict": comparison.verdict.value, "note": compared.note}
