"""Axes to draw on, made or given, and their legends."""

from __future__ import annotations

from math import ceil
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils._optional_dependencies import check_matplotlib_support

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANEL = (4.6, 3.8)  # inches
_MOST_INSIDE = 5
_LONGEST_INSIDE = 24
_LEGEND_WIDTH = 34
_TICK_WIDTH = 30


class Display:
    """What all Displays share: where they have drawn.

    Attributes
    ----------
    ax_ : matplotlib Axes, or ndarray of them
    figure_ : matplotlib Figure
    """

    ax_: Any
    figure_: Figure

    def _open(self, ax: Any) -> Axes:
        """The axes given, or new ones."""
        return self._open_panels(ax, 1, width=6.4, height=4.6)[0]

    def _open_panels(
        self, ax: Any, n: int, *, columns: int = 3, width: float = _PANEL[0],
        height: float = _PANEL[1],
    ) -> list[Axes]:  # fmt: skip
        """As many axes as needed, those given or new ones; inches are those of a new panel."""
        check_matplotlib_support(f"{type(self).__name__}.plot")
        panels = _new_panels(n, columns, (width, height)) if ax is None else _flat(ax)
        if len(panels) != n:
            raise ValueError(
                f"ax holds {len(panels)} axes, but the picture has {n} panels. Pass an array of "
                f"{n} axes, as plt.subplots(1, {n}) makes them, or none."
            )
        self.ax_ = panels[0] if n == 1 else np.array(panels, dtype=object)
        self.figure_ = panels[0].get_figure(root=True)  # type: ignore[assignment]
        return panels


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


def add_legend(ax: Axes, *, title: str | None = None) -> None:
    """Name the lines: within the axes where names are few and short, else beside them."""
    handles, labels = ax.get_legend_handles_labels()
    if not handles:
        return
    few = len(labels) <= _MOST_INSIDE and max(map(len, labels)) <= _LONGEST_INSIDE
    beside: dict[str, Any] = {} if few else {"loc": "upper left", "bbox_to_anchor": (1.02, 1.0)}
    wrapped = [fill(label, _LEGEND_WIDTH) for label in labels]
    ax.legend(handles, wrapped, title=title, framealpha=0.85, **beside)


def short(text: Any) -> str:
    """A name that does not push the axes out of the picture."""
    text = str(text)
    return text if len(text) <= _TICK_WIDTH else f"{text[: _TICK_WIDTH - 1]}…"


def scale_of(values: Any) -> str:
    """A logarithmic axis where values are spread out as on one, else a linear one."""
    spread = np.asarray(values, dtype=np.float64)
    gaps = np.diff(np.unique(spread))
    return "log" if len(gaps) > 1 and spread.min() > 0 and gaps.max() > 5 * gaps.min() else "linear"
