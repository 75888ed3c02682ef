"""Axes to draw on, made or given, and their legends."""

from __future__ import annotations

from math import ceil
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils._optional_dependencies import check_matplotlib_support

from sparsemargin.plotting._style import root_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

_PANEL = (4.6, 3.8)  # inches
_MOST_INSIDE = 4
_LONGEST_INSIDE = 24
_LEGEND_WIDTH = 34
_TICK_WIDTH = 30
_EVEN_GAPS = 5
MOST_TICKS = 8
_PAD = 20  # pixels
_FEWEST_BARS = 3
_BAR_HEIGHT = 0.24  # inches
_FRAME_HEIGHT = 1.2


class Display:
    """What all Displays share: where they have drawn.

    Attributes
    ----------
    ax_ : matplotlib Axes, or ndarray of them
    figure_ : matplotlib Figure
    """

    ax_: Any
    figure_: Figure
    _is_own: bool

    def _open(self, ax: Any) -> Axes:
        """The axes given, or new ones."""
        return self._open_panels(ax, 1, width=6.4, height=4.6)[0]

    def _open_panels(
        self, ax: Any, n: int, *, columns: int = 3, width: float = _PANEL[0],
        height: float = _PANEL[1],
    ) -> list[Axes]:  # fmt: skip
        """As many axes as needed, those given or new ones; inches are those of a new panel."""
        check_matplotlib_support(f"{type(self).__name__}.plot")
        self._is_own = ax is None
        panels = _new_panels(n, columns, (width, height)) if ax is None else _flat(ax)
        if len(panels) != n:
            raise ValueError(
                f"ax holds {len(panels)} axes, but the picture has {n} panels. Pass an array of "
                f"{n} axes, as plt.subplots(1, {n}) makes them, or none."
            )
        self.ax_ = panels[0] if n == 1 else np.array(panels, dtype=object)
        self.figure_ = root_figure(panels[0])
        return panels

    def _add_legend(self, ax: Axes, *, title: str | None = None) -> None:
        """Name the lines: within the axes where names are few and short, else beside them, for
        which a figure of our own grows."""
        handles, labels = ax.get_legend_handles_labels()
        wrapped = [fill(label, _LEGEND_WIDTH) for label in labels]
        named: dict[str, Any] = {"handles": handles, "labels": wrapped, "title": title}
        if len(labels) <= _MOST_INSIDE and max(map(len, labels)) <= _LONGEST_INSIDE:
            ax.legend(framealpha=0.85, **named)
        elif self._is_own:
            self._make_room(self.figure_.legend(loc="outside right upper", **named))
        else:
            ax.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), **named)

    def _make_room(self, legend: Legend) -> None:
        """Widen the figure by its legend, and heighten it where the legend is the taller."""
        figure = self.figure_
        figure.draw_without_rendering()
        box = legend.get_window_extent()
        width, height = figure.get_size_inches()
        figure.set_size_inches(
            width + box.width / figure.dpi, max(height, (box.height + _PAD) / figure.dpi)
        )


def _new_panels(n: int, columns: int, size: tuple[float, float]) -> list[Axes]:
    import matplotlib.pyplot as plt

    columns = min(n, columns)
    n_rows = ceil(n / columns)
    figure, panels = plt.subplots(
        n_rows, columns, squeeze=False, layout="constrained",
        figsize=(size[0] * columns, size[1] * n_rows),
    )  # fmt: skip
    for unused in panels.flat[n:]:
        figure.delaxes(unused)
    return list(panels.flat[:n])


def _flat(ax: Any) -> list[Axes]:
    from matplotlib.axes import Axes

    panels = list(np.ravel(np.asarray(ax, dtype=object)))
    for panel in panels:
        if not isinstance(panel, Axes):
            raise ValueError(
                f"ax must be matplotlib axes, or an array of them, got {type(panel).__name__}."
            )
    return panels


def short(text: Any) -> str:
    """A name that does not push the axes out of the picture."""
    text = str(text)
    return text if len(text) <= _TICK_WIDTH else f"{text[: _TICK_WIDTH - 1]}…"


def scale_epochs(ax: Axes, epochs: Any) -> None:
    """A logarithmic axis where epochs are spread out as on one, else a linear one; few epochs are
    told as they are."""
    from matplotlib.ticker import NullLocator

    at = np.unique(np.asarray(epochs, dtype=np.float64))
    gaps = np.diff(at)
    if len(gaps) > 1 and at[0] > 0 and gaps.max() > _EVEN_GAPS * gaps.min():
        scale_log(ax)
    if len(at) <= MOST_TICKS:
        ax.set_xticks(at, [f"{epoch:g}" for epoch in at])
        ax.xaxis.set_minor_locator(NullLocator())


def scale_log(ax: Axes) -> None:
    """A logarithmic axis whose numbers are written out."""
    from matplotlib.ticker import LogLocator, NullFormatter

    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter("{x:,g}")
    ax.xaxis.set_minor_formatter(NullFormatter())


def bar_panel_height(n_bars: int) -> float:
    """Inches of a panel with so many bars one above the other."""
    return _FRAME_HEIGHT + _BAR_HEIGHT * max(n_bars, _FEWEST_BARS)


def name_bars(ax: Axes, names: list[str], n_rows: int) -> None:
    """Names beside horizontal bars, the first one on top, with room for n_rows of them."""
    # Words may hold dollars.
    ax.set_yticks(np.arange(len(names)), [short(name) for name in names], parse_math=False)
    ax.set_ylim(max(n_rows, _FEWEST_BARS) - 0.4, -0.6)
    ax.grid(visible=False, axis="y")
