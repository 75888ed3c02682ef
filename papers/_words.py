"""Figures and verdicts as people read them, on a terminal and in a page."""

from __future__ import annotations

import math

from papers._outcome import ComparedCell
from papers._recipe import Allowed, Standing, Verdict

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
