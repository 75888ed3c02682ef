"""Outcomes as lines of text: paper, measured, difference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from papers._outcome import (
    ComparedCell,
    ExaminedClaim,
    Outcome,
    PartOutcome,
    totals_of,
)
from papers._recipe import Table
from papers._words import MARKS, allowed_words, difference_words, measured_words

_GAP = "  "


def text_report(outcome: Outcome, width: int) -> str:
    """Return what a recipe came to; tables that are wider come in several pieces.

    Parameters
    ----------
    outcome : Outcome
    width : int
        Characters that go on a line.
    """
    recipe = outcome.recipe
    head = f"{recipe.name}: {recipe.paper.short}, {recipe.item}. {recipe.title}"
    lines = [head, "=" * min(len(head), width), f"Data: {recipe.data}.", recipe.protocol]
    lines += [f"Known beforehand: {remark}" for remark in recipe.remarks]
    if outcome.missing:
        lines.append(f"NOT RUN: {outcome.missing}")
    for part in outcome.parts:
        lines += ["", *_part(part, width)]
    lines += ["", *totals_of(outcome)]
    return "\n".join(lines)


def _part(part: PartOutcome, width: int) -> Iterator[str]:
    yield part.part.title
    if isinstance(part.part, Table):
        rows = [[line.name, *map(_cell, line.cells)] for line in part.lines]
        yield from _in_pieces(["", *part.part.columns], rows, width)
        yield from map(allowed_words, part.allowances())
    for examined in part.claims:
        yield _claim(examined)


def _cell(compared: ComparedCell | None) -> str:
    """Paper, measured with its standard error, difference, mark."""
    if compared is None:
        return ""
    words = [
        compared.cell.printed, measured_words(compared), difference_words(compared),
        MARKS[compared.comparison.verdict],
    ]  # fmt: skip
    note = f" [{compared.note}]" if compared.note else ""
    return _GAP[:1].join(filter(None, words)) + note


def _claim(examined: ExaminedClaim) -> str:
    words = f"{MARKS[examined.standing]} {examined.claim.text}"
    if examined.finding is not None:
        words += f": {examined.finding.detail}"
    if examined.claim.why_not:
        words += f" (known beforehand: {examined.claim.why_not})"
    return words


def _in_pieces(header: list[str], rows: list[list[str]], width: int) -> Iterator[str]:
    """Yield the lines of a table, of as many columns at a time as go beside the first."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    first = 1
    while first < len(header):
        end = first + 1
        while end < len(header) and _width(widths, first, end + 1) <= width:
            end += 1
        shown = [0, *range(first, end)]
        for row in (header, *rows):
            yield _aligned([row[i] for i in shown], [widths[i] for i in shown])
        first = end
        if first < len(header):
            yield ""


def _width(widths: Sequence[int], first: int, end: int) -> int:
    return widths[0] + sum(widths[first:end]) + len(_GAP) * (end - first)


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    right = (f"{cell:>{width}}" for cell, width in zip(cells[1:], widths[1:], strict=True))
    return _GAP.join([f"{cells[0]:<{widths[0]}}", *right]).rstrip()
