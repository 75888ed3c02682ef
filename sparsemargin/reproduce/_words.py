"""Figures and verdicts as people read them, on a terminal and in a page."""

from __future__ import annotations

import math

from sparsemargin.reproduce._outcome import ComparedCell
from sparsemargin.reproduce._recipe import Verdict

#: A mark for each verdict, so that none is told by colour alone.
MARKS = {
    Verdict.WITHIN: "✓",
    Verdict.OUTSIDE: "✗",
    Verdict.INCOMPARABLE: "○",
    Verdict.NOT_RUN: "–",
}

#: What the marks mean.
LEGEND = {
    Verdict.WITHIN: "within what the recipe allows",
    Verdict.OUTSIDE: "outside",
    Verdict.INCOMPARABLE: "can't be compared, as the recipe says beforehand",
    Verdict.NOT_RUN: "not run",
}


def measured_words(compared: ComparedCell) -> str:
    """The measured figure and its standard error, one digit finer than is printed."""
    cell, comparison = compared.cell, compared.comparison
    if not comparison.n_repeats:
        return ""
    digits = cell.digits + (comparison.n_repeats > 1)
    words = f"{comparison.measured:,.{digits}f}"
    if not math.isnan(comparison.standard_error):
        words += f" ±{comparison.standard_error:,.{digits}f}"
    return words


def difference_words(compared: ComparedCell) -> str:
    """Measured less printed, signed; empty where nothing was measured."""
    cell, comparison = compared.cell, compared.comparison
    if not comparison.n_repeats:
        return ""
    return f"{comparison.difference:+,.{cell.digits + (comparison.n_repeats > 1)}f}"
