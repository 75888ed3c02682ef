"""Accessible colours, marks and dashes of lines, on light and on dark backgrounds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import matplotlib
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.cbook import normalize_kwargs
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.lines import Line2D

# The colours of Okabe & Ito, changed as little as possible for two aims: a contrast of at least 3
# to the background, and differences that are visible with colour blindness. Both are measured in
# tests/plotting/test_plotting.py. Gray replaces black.
PALETTES: dict[str, tuple[str, ...]] = {
    "light": (
        "#14639D", "#952D00", "#0E995E", "#CC78A7", "#9D6602", "#249BDD", "#877D7A", "#A29600",
    ),
    "dark": (
        "#1773B2", "#D45C00", "#30AC75", "#CC79A8", "#E69E00", "#5BB9EF", "#887E7B", "#F0E33F",
    ),
}  # fmt: skip
MARKS = "osD^vP*X"
DASHES = ("-", "--", "-.", ":")

# Background, text and grid colours of the documentation pages that show these plots.
_GROUNDS = {
    "light": ("#FFFFFF", "#222832", "#D5DAE0"),
    "dark": ("#14181E", "#CED6DD", "#3A424D"),
}
_MOST_MARKED = 25


@contextmanager
def theme(name: Literal["light", "dark"]) -> Iterator[None]:
    """Draw on a light or dark background within a ``with`` block.

    The Displays work with any style, and select colours that are legible on its background. This
    theme sets background, text, grid and sizes to match.

    Parameters
    ----------
    name : {"light", "dark"}

    Raises
    ------
    ValueError
        If the theme is unknown.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sparsemargin.plotting import CertificateDisplay
    >>> with theme("dark"):
    ...     display = CertificateDisplay([1, 2, 3], [0.5, 0.8, 0.9], [1.2, 1.1, 1.0]).plot()
    >>> matplotlib.colors.to_hex(display.figure_.get_facecolor())
    '#14181e'
    """
    if name not in _GROUNDS:
        raise ValueError(f"The theme {name!r} is unknown. Choose 'light' or 'dark'.")
    ground, text, grid = _GROUNDS[name]
    style: Any = {
        "axes.prop_cycle": cycler(color=PALETTES[name]),
        "axes.grid": True, "axes.axisbelow": True, "grid.color": grid, "grid.linewidth": 0.7,
        "axes.spines.top": False, "axes.spines.right": False,
        "legend.edgecolor": grid, "legend.fontsize": 9.5, "font.size": 10.5, "svg.fonttype": "path",
    }  # fmt: skip
    for part in ("figure", "axes", "savefig", "legend"):
        style[f"{part}.facecolor"] = ground
    for part in ("text.", "axes.label", "axes.title", "axes.edge", "xtick.", "ytick."):
        style[f"{part}color"] = text
    with matplotlib.rc_context(style):
        yield


def colours_on(ax: Axes) -> tuple[str, ...]:
    """The palette that is legible on the background of the axes."""
    red, green, blue = to_rgb(ground_of(ax))
    return PALETTES["dark" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.5 else "light"]


def ground_of(ax: Axes) -> Any:
    """The background colour of the axes, or of the figure if the axes are transparent."""
    colour = ax.get_facecolor()
    return colour if to_rgba(colour)[3] else ax.figure.figure.get_facecolor()


def line_style(ax: Axes, n_points: int, wanted: dict[str, Any]) -> dict[str, Any]:
    """The style of the next line, which differs from the labeled lines in colour, mark and dashes.
    `wanted` takes precedence, with any of matplotlib's names for properties.

    If there are many points, only a few are marked, at different places on each line, so that
    coinciding lines can be distinguished.
    """
    i = len(ax.get_legend_handles_labels()[1])
    colours, stride = colours_on(ax), n_points // 10
    return {
        "color": colours[i % len(colours)],
        "marker": MARKS[i % len(MARKS)],
        "linestyle": DASHES[(i + i // len(colours)) % len(DASHES)],
        "markersize": 5,
        "linewidth": 1.6,
        "markevery": (i % 4 * stride // 4, stride) if n_points > _MOST_MARKED else None,
        **normalize_kwargs(wanted, Line2D),
    }


def neutral(ax: Axes) -> dict[str, Any]:
    """The style of reference lines."""
    return {"color": ax.xaxis.label.get_color(), "linewidth": 1, "alpha": 0.6}
