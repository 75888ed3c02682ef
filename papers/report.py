"""What recipes came to, as text, as a page of HTML that needs nothing else, and as JSON."""

from __future__ import annotations

import io
import math
import os
import platform
import textwrap
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jinja2
from rich import box
from rich.console import Console
from rich.table import Column
from rich.table import Table as Columns

from papers.recipe import (
    STANDARD_ERRORS,
    Allowed,
    Claim,
    Comparison,
    Measured,
    Picture,
    Recipe,
    Table,
    Verdict,
)
from sparsemargin.plotting import theme as in_theme


class Examined(NamedTuple):
    """A claim, what it came to, and the figures that tell."""

    claim: Claim
    verdict: Verdict
    detail: str

    @classmethod
    def of(cls, claim: Claim, measured: Measured) -> Examined:
        """Examine a claim, unless a quick run has not what it takes."""
        if not measured.has(claim.works):
            return cls(claim, Verdict.NOT_EXAMINED, "")
        holds, detail = claim.examine(measured)
        fails = Verdict.FORESEEN if claim.why_not else Verdict.FAILS
        return cls(claim, Verdict.HOLDS if holds else fails, detail)


class PartOutcome(NamedTuple):
    """A table's lines, by name, or none for a picture, and the claims of either."""

    part: Table | Picture
    lines: tuple[tuple[str, tuple[Comparison | None, ...]], ...]
    claims: tuple[Examined, ...]

    @classmethod
    def of(cls, part: Table | Picture, measured: Measured) -> PartOutcome:
        """Set all that stands in a part beside what was measured."""
        lines = tuple(
            (
                name,
                tuple(
                    None if cell is None else cell.compare(measured[cell.work]) for cell in cells
                ),
            )
            for name, cells in (part.lines if isinstance(part, Table) else ())
        )
        return cls(part, lines, tuple(Examined.of(claim, measured) for claim in part.claims))

    def comparisons(self) -> Iterator[Comparison]:
        """Those of the printed figures, line by line."""
        for _, cells in self.lines:
            yield from (cell for cell in cells if cell is not None)

    def allowances(self) -> list[str]:
        """What cells may differ by, those together that may for the same reason."""
        groups: dict[tuple, list[Allowed]] = {}
        for each in self.comparisons():
            own = each.cell.allowed
            kind = own.why, own.spread, bool(own.absolute), bool(own.relative)
            groups.setdefault(kind, []).append(own)
        return [allowed_words(alike) for alike in groups.values()]


class Outcome(NamedTuple):
    """A recipe and what it came to."""

    recipe: Recipe
    n_repeats: int
    parts: tuple[PartOutcome, ...]
    measured: Measured
    missing: str = ""  # which data are not at hand, and how to get them

    @classmethod
    def of(cls, recipe: Recipe, measured: Measured, quick: bool, missing: str = "") -> Outcome:
        """Set all that a recipe has measured beside what is printed."""
        parts = tuple(PartOutcome.of(part, measured) for part in recipe.parts(quick))
        return cls(recipe, recipe.repeats.of(quick), parts, measured, missing)

    def figures(self) -> Counter[Verdict]:
        """How many printed figures came to each verdict."""
        return Counter(each.verdict for part in self.parts for each in part.comparisons())

    def claims(self) -> Counter[Verdict]:
        """How many statements of the paper hold, or don't."""
        return Counter(claim.verdict for part in self.parts for claim in part.claims)

    @property
    def is_as_allowed(self) -> bool:
        """Whether all data are there, no figure differs by more than is allowed, and no claim fails
        unforeseen."""
        failed = self.figures()[Verdict.OUTSIDE] + self.claims()[Verdict.FAILS]
        return not (self.missing or failed)


# -- Words ----------------------------------------------------------------------------------------

#: What the marks of figures mean.
LEGEND = {
    Verdict.WITHIN: "within what the recipe allows",
    Verdict.OUTSIDE: "outside",
    Verdict.INCOMPARABLE: "can't be compared, as the recipe says beforehand",
    Verdict.NOT_RUN: "not run",
}


def measured_words(found: Comparison) -> str:
    """The measured figure and its standard error, one digit finer than is printed."""
    if not found.n_repeats:
        return ""
    digits = found.cell.digits + (found.n_repeats > 1)
    words = f"{found.measured:,.{digits}f}"
    if not math.isnan(found.standard_error):
        words += f" ±{found.standard_error:,.{digits}f}"
    return words


def difference_words(found: Comparison) -> str:
    """Measured less printed, signed; empty where nothing was measured."""
    digits = found.cell.digits + (found.n_repeats > 1)
    return f"{found.difference:+z,.{digits}f}" if found.n_repeats else ""


def allowed_words(alike: list[Allowed]) -> str:
    """What cells may differ by that may for the same reason, and the reason."""
    one, n_cells = alike[0], len(alike)
    where = f"in {n_cells} cell{'s' if n_cells > 1 else ''}"
    words = f"not compared {where}"
    if math.isfinite(one.absolute):
        shares = [_range([allowed.absolute for allowed in alike])] if one.absolute else []
        if one.relative:
            percents = _range([100 * allowed.relative for allowed in alike])
            shares.append(f"{percents} % of the printed figure")
        words = f"allowed {where}: {' or, if that is more, '.join(shares) or 'no difference'}"
        if one.spread:
            plural = "" if one.spread == 1 else "s"
            words += f", and {one.spread:g} standard deviation{plural} of one repeat"
    return f"{words} ({one.why})" if one.why else words


def _range(values: list[float]) -> str:
    low, high = (f"{value:.3g}" for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def count_words(counts: Counter[Verdict]) -> str:
    """How many came to each verdict, of those that there are."""
    return ", ".join(f"{counts[each]} {each.words}" for each in Verdict if counts[each])


# -- Text -----------------------------------------------------------------------------------------


def text_legend(width: int) -> str:
    """Return what the figures of text reports mean, in lines of so many characters at most."""
    marks = "; ".join(f"{verdict.mark} {words}" for verdict, words in LEGEND.items())
    return textwrap.fill(
        "Figures: printed, measured ± its standard error, the difference, (≤ how large it may be: "
        f"what is allowed below the table, half a unit of the last printed digit and "
        f"{STANDARD_ERRORS:g} standard errors), and a mark: {marks}.", width
    ) + "\n"  # fmt: skip


def text_report(outcome: Outcome, width: int) -> str:
    """Return what a recipe came to, in lines of so many characters at most."""
    out = Console(file=io.StringIO(), width=width, markup=False, emoji=False, highlight=False)
    recipe = outcome.recipe
    out.print(f"{recipe.name}: {recipe.paper.short}, {recipe.item}. {recipe.title}")
    out.rule(characters="=")
    out.print(f"Data: {recipe.data}.", recipe.protocol, sep="\n")
    for remark in recipe.remarks:
        out.print(f"Known beforehand: {remark}")
    if outcome.missing:
        out.print(f"NOT RUN: {outcome.missing}")
    for part in outcome.parts:
        out.print(f"\n{part.part.title}")
        if isinstance(part.part, Table) and part.lines:
            out.print(_columns(part.part.columns, part))
            for words in part.allowances():
                out.print(words)
        for claim, verdict, detail in part.claims:
            known = f" (known beforehand: {claim.why_not})" if claim.why_not else ""
            out.print(f"{verdict.mark} {claim.text}{': ' if detail else ''}{detail}{known}")
    out.print()
    for name, counts in (("Printed figures", outcome.figures()), ("Statements", outcome.claims())):
        if counts:
            out.print(f"{name}: {count_words(counts)}")
    return out.file.getvalue()  # type: ignore[attr-defined]


def _columns(names: Sequence[str], part: PartOutcome) -> Columns:
    table = Columns(Column(no_wrap=True), *names, box=box.SIMPLE_HEAD, pad_edge=False)
    for name, cells in part.lines:
        table.add_row(name, *map(_cell, cells))
    return table


def _cell(found: Comparison | None) -> str:
    """Paper, measured with its standard error, difference and what it may be, mark."""
    if found is None:
        return ""
    allowed = f"(≤{found.allowed:.3g})" if math.isfinite(found.allowed) else ""
    words = (
        found.cell.printed, measured_words(found), difference_words(found), allowed,
        found.verdict.mark,
    )  # fmt: skip
    return " ".join(filter(None, words)) + (f" [{found.note}]" if found.note else "")


# -- HTML -----------------------------------------------------------------------------------------


def html_report(outcomes: Sequence[Outcome], *, quick: bool) -> str:
    """Return a page that shows every printed figure beside the measured one, and the pictures.

    It has its style and its pictures in it, and follows the reader's light or dark theme.
    """
    page = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    ).get_template("report.html.jinja")  # fmt: skip
    of_papers = groupby(outcomes, key=lambda outcome: outcome.recipe.paper)
    return page.render(
        outcomes=outcomes,
        papers=[(paper, list(own)) for paper, own in of_papers],
        quick=quick,
        totals={
            "Printed figures": sum((each.figures() for each in outcomes), Counter()),
            "Statements of the texts": sum((each.claims() for each in outcomes), Counter()),
        },
        machine=_machine(),
        pictures=_pictures(outcomes),
        Verdict=Verdict,
        legend=LEGEND,
        count_words=count_words,
        measured_words=measured_words,
        difference_words=difference_words,
        standard_errors=STANDARD_ERRORS,
    )


def _machine() -> dict[str, Any]:
    packages = {name: version(name) for name in ("sparsemargin", "numpy", "scipy", "scikit-learn")}
    return {
        "system": platform.platform(), "cpus": os.cpu_count(), "python": platform.python_version(),
    } | packages  # fmt: skip


def _pictures(outcomes: Sequence[Outcome]) -> dict[tuple[str, str], dict[str, str]]:
    """The addresses of the pictures in each theme, by recipe and title; of those measured."""
    return {
        (outcome.recipe.name, part.title): {
            "light": _drawn(part, outcome.measured, "light"),
            "dark": _drawn(part, outcome.measured, "dark"),
        }
        for outcome in outcomes
        for part, *_ in outcome.parts
        if isinstance(part, Picture) and outcome.measured.has(part.drawn_from)
    }


def _drawn(picture: Picture, measured: Measured, theme: Literal["light", "dark"]) -> str:
    out = io.BytesIO()
    with in_theme(theme):
        picture.draw(measured).savefig(out, format="svg", metadata={"Date": None})
    return f"data:image/svg+xml;base64,{b64encode(out.getvalue()).decode()}"


# -- JSON -----------------------------------------------------------------------------------------


def as_json(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome's figures as JSON can hold them: what is no number is None."""
    return {
        "name": outcome.recipe.name,
        "paper": outcome.recipe.paper.source,
        "item": outcome.recipe.item,
        "repeats": outcome.n_repeats,
        "missing": outcome.missing,
        "parts": [
            {
                "title": part.part.title,
                "figures": [
                    {"line": name, "column": column, **_figure_as_json(cell)}
                    for name, cells in part.lines
                    for column, cell in zip(part.part.columns, cells, strict=True)  # type: ignore[union-attr]
                    if cell is not None
                ],
                "claims": [
                    {"text": claim.text, "standing": verdict.words, "detail": detail}
                    for claim, verdict, detail in part.claims
                ],
            }
            for part in outcome.parts
        ],
    }


def _figure_as_json(found: Comparison) -> dict[str, Any]:
    numbers = {
        name: value if math.isfinite(value) else None
        for name, value in found._asdict().items()
        if name not in ("cell", "verdict", "note")
    }
    printed = {"printed": found.cell.printed}
    return printed | numbers | {"verdict": found.verdict.words, "note": found.note}
