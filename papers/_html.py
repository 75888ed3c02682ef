"""Outcomes as one page of HTML that needs nothing else: tables, pictures in both themes, claims."""

from __future__ import annotations

import io
from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from papers._outcome import Outcome, PartOutcome, count_words
from papers._recipe import STANDARD_ERRORS, Measured, Picture, Standing, Verdict
from papers._words import (
    LEGEND,
    MARKS,
    allowed_words,
    difference_words,
    measured_words,
)
from papers.machine import machine
from papers.sources import Paper


def html_report(outcomes: Sequence[Outcome], *, quick: bool = False) -> str:
    """Return a page that shows outcomes: every printed figure beside the measured one, and plots.

    Parameters
    ----------
    outcomes : sequence of Outcome
        As `run` returns them.
    quick : bool, default=False
        Whether it says that the run was a quick one.

    Returns
    -------
    str
        HTML with its style and its pictures, which follow the reader's light or dark theme.

    Raises
    ------
    ImportError
        If Jinja2 or matplotlib is not there.
    """
    figures = sum((outcome.figures() for outcome in outcomes), Counter[Verdict]())
    claims = sum((outcome.claims() for outcome in outcomes), Counter[Standing]())
    return _template().render(
        outcomes=outcomes, papers=_by_paper(outcomes), quick=quick,
        totals={"Printed figures": figures, "Statements of the texts": claims}, machine=machine(),
        version=version("sparsemargin"), pictures=_pictures(outcomes), Verdict=Verdict,
    )  # fmt: skip


def _by_paper(outcomes: Sequence[Outcome]) -> list[tuple[Paper, list[Outcome]]]:
    groups = groupby(outcomes, key=lambda outcome: outcome.recipe.paper)
    return [(paper, list(own)) for paper, own in groups]


def _template() -> Any:
    try:
        jinja2 = import_module("jinja2")
        import_module("matplotlib")
    except ImportError:
        raise ImportError(
            "The report needs Jinja2 and matplotlib: pip install 'sparsemargin[papers]'."
        ) from None
    page = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    page.globals |= {
        "marks": MARKS, "legend": LEGEND, "count_words": count_words,
        "measured_words": measured_words, "difference_words": difference_words,
        "allowed_words": allowed_words, "standard_errors": STANDARD_ERRORS,
    }  # fmt: skip
    return page.get_template("report.html.jinja")


def _pictures(outcomes: Sequence[Outcome]) -> dict[tuple[str, str], dict[str, str]]:
    """The addresses of the pictures in each theme, by recipe and title; of those measured."""
    return {
        (outcome.recipe.name, part.part.title): {
            theme: _drawn(part.part, outcome.measured, theme) for theme in ("light", "dark")
        }
        for outcome in outcomes
        for part in outcome.parts
        if _can_be_drawn(part, outcome.measured)
    }


def _can_be_drawn(part: PartOutcome, measured: Measured) -> bool:
    return isinstance(part.part, Picture) and measured.has(part.part.drawn_from)


def _drawn(picture: Any, measured: Measured, theme: Literal["light", "dark"]) -> str:
    from sparsemargin.plotting import theme as in_theme

    out = io.BytesIO()
    with in_theme(theme):
        picture.draw(measured).savefig(out, format="svg", metadata={"Date": None})
    return f"data:image/svg+xml;base64,{b64encode(out.getvalue()).decode()}"
