"""Figures of several panels, outside pyplot, so that none stays open."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

_WIDTH, _HEIGHT = 4.6, 3.6


def panels(n_panels: int, n_columns: int) -> tuple[Figure, list[Axes]]:
    """Return a figure with so many axes, row by row."""
    n_columns = min(n_columns, n_panels)
    n_rows = -(-n_panels // n_columns)
    figure = Figure(figsize=(_WIDTH * n_columns, _HEIGHT * n_rows), layout="constrained")
    axes = list(figure.subplots(n_rows, n_columns, squeeze=False).flat)
    for unused in axes[n_panels:]:
        unused.set_visible(False)
    return figure, axes[:n_panels]
