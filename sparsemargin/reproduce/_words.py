"""Figures and verdicts as people read them, on a terminal and in a page."""

from __future__ import annotations

import math

from sparsemargin.reproduce._outcome import ComparedCell
from sparsemargin.reproduce._recipe import Allowed, Standing, Verdict

#: A mark for each verdict and standing, so that none is told by colour alone.
MARKS = {
    Verdict.WITHIN: "✓",
    Verdict.OUTSIDE: "✗",
    Verdict.INCOMPARABLE: "○",
    Verdict.NOT_RUN: "–",
    Standing.HOLDS: "✓",
    Standing.FAILS: "✗",
    Standing.FORESEEN: "○",
    Standing.NOT_EXAMINED: "–",
}

#: What the marks of figures mean.
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
    return f"{comparison.difference:+z,.{cell.digits + (comparison.n_repeats > 1)}f}"


def allowed_words(allowed: Allowed, n_cells: int) -> str:
    """What may differ by how much in so many cells, and why."""
    where = f"in {n_cells} cell{'s' if n_cells > 1 else ''}"
    words = f"not compared {where}"
    if math.isfinite(allowed.absolute):
        shares = [f"{allowed.absolute:g}"] if allowed.absolute else []
        if allowed.relative:
            shares.append(f"{100 * allowed.relative:g} % of the printed figure")
        words = f"allowed {where}: {' or, if that is more, '.join(shares) or 'no difference'}"
        if allowed.spread:
            plural = "" if allowed.spread == 1 else "s"
            words += f", and {allowed.spread:g} standard deviation{plural} of one repeat"
    return f"{words} ({allowed.why})" if allowed.why else words
