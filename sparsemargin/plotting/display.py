"""Code shared by all Displays: new or given axes, legends, and names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from textwrap import fill
from typing import Any, Self

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sparsemargin._docs import shares

_MOST_INSIDE = 4  # names in a legend inside the axes
_LONGEST_INSIDE = 24  # characters of such a name
_LEGEND_WIDTH = 34  # characters
_PAD = 20  # pixels
_MOST_COLUMNS = 3

_DRAWN = """
    ax, **kwargs
        See `plot`.

    Returns
    -------
    display : {}
    """


class Display:
    """Base class in the style of scikit-learn's Displays: `plot` draws on given or new axes.

    Attributes
    ----------
    ax_ : matplotlib Axes, or ndarray of them
    figure_ : matplotlib Figure
    """

    ax_: Any
    figure_: Figure

    def __init_subclass__(cls) -> None:
        for member in vars(cls).values():
            if isinstance(member, classmethod):
                shares(drawn=_DRAWN.format(cls.__name__))(member.__func__)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, or array-like of as many as there are panels, default=None
            Axes to draw on. None: a new figure.
        **kwargs
            Passed to the drawing function of matplotlib's Axes, for all lines or bars.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If `ax` is not axes, or not as many as there are panels.
        """
        raise NotImplementedError

    def _open(self, ax: Any, n: int = 1, size: tuple[float, float] = (6.4, 4.6)) -> list[Axes]:
        """Return n axes, the given or new ones; `size` is the size of a new panel in inches."""
        self._is_new = ax is None
        panels = _new_panels(n, size) if ax is None else _flat(ax)
        if len(panels) != n:
            raise ValueError(
                f"ax holds {len(panels)} axes, but the picture has {n} panels. Pass an array of "
                f"{n} axes, as plt.subplots(1, {n}) makes them, or none."
            )
        self.ax_ = panels[0] if n == 1 else np.array(panels, dtype=object)
        # The first `figure` may be a subfigure.
        self.figure_ = panels[0].figure.figure  # type: ignore[assignment]
        return panels

    def _add_legend(self, ax: Axes, *, title: str | None = None, with_math: bool = True) -> None:
        """Add a legend: inside the axes if names are few and short, else next to them. A new figure
        is enlarged for the legend. `with_math`: names may have formulas between dollar signs."""
        handles, labels = ax.get_legend_handles_labels()
        wrapped = [fill(label, _LEGEND_WIDTH) for label in labels]
        named: dict[str, Any] = {"handles": handles, "labels": wrapped, "title": title}
        is_inside = len(labels) <= _MOST_INSIDE and max(map(len, labels)) <= _LONGEST_INSIDE
        if is_inside:
            legend = ax.legend(framealpha=0.85, **named)
        elif not self._is_new:
            legend = ax.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), **named)
        else:
            legend = self.figure_.legend(loc="outside right upper", **named)
        for text in legend.get_texts():
            text.set_parse_math(with_math)
        if self._is_new and not is_inside:
            figure = self.figure_
            figure.draw_without_rendering()
            box, (width, height) = legend.get_window_extent(), figure.get_size_inches()
            figure.set_size_inches(
                width + box.width / figure.dpi, max(height, (box.height + _PAD) / figure.dpi)
            )


def _new_panels(n: int, size: tuple[float, float]) -> list[Axes]:
    columns = min(n, _MOST_COLUMNS)
    n_rows = ceil(n / columns)
    figure = plt.figure(figsize=(size[0] * columns, size[1] * n_rows), layout="constrained")
    return [figure.add_subplot(n_rows, columns, i + 1) for i in range(n)]


def _flat(ax: Any) -> list[Axes]:
    panels = list(np.ravel(np.asarray(ax, dtype=object)))
    for panel in panels:
        if not isinstance(panel, Axes):
            raise ValueError(
                f"ax must be matplotlib axes, or an array of them, got {type(panel).__name__}."
            )
    return panels


def estimators_by_name(estimator: Any) -> dict[str, Any]:
    """The estimators of a dict, or the given one with the name of its class."""
    if not isinstance(estimator, Mapping):
        estimator = {type(estimator).__name__: estimator}
    return by_name(estimator, "estimator")


def by_name(given: Any, what: str) -> dict[str, Any]:
    """The entries of a Display by name; ValueError if it is not a dict, or if it is empty."""
    if not isinstance(given, Mapping) or not given:
        raise ValueError(f"{what} must be a dict with entries, by the names in the legend.")
    return {str(name): each for name, each in given.items()}


def label_for(name: str) -> str:
    """The label of a line with this name. Without the blank, matplotlib would leave out of the
    legend names that are empty or begin with an underscore, such as ``__label__spam``."""
    return f" {name}" if name[:1] in ("", "_") else name


def chosen(what: str, wanted: Sequence[Any] | None, known: Sequence[Any]) -> list[Any]:
    """The selected items, or all; ValueError if there is none, or one is not known."""
    if wanted is None:
        return list(known)
    names = np.asarray(known).tolist()
    if not len(wanted):
        raise ValueError(f"{what} is empty. Choose among {names}.")
    for each in wanted:
        if each not in known:
            raise ValueError(f"{what}: {each!r} is unknown. Choose among {names}.")
    return list(wanted)
