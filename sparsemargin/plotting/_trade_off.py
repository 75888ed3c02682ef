"""Accuracy against corrections, over alpha and p."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._optional_dependencies import check_matplotlib_support

from sparsemargin.evaluation.curves import Norm, TradeOffPoint, trade_off_over_alpha
from sparsemargin.plotting._axes import Display, scale_log
from sparsemargin.plotting._style import ground_of, line_style, root_figure

_ALPHA_SIZE = 8.5  # points
_MARK = 6.0

Box = tuple[float, float, float, float]


class TradeOffDisplay(Display):
    """What accuracy costs in corrections: a line for each p, a point on it for each alpha.

    What the tables of Gentile (2001), section 4, tell in figures. A correction is what takes time,
    so the best settings lie above and to the left. Bars are standard errors over the splits.

    Parameters
    ----------
    points : sequence of TradeOffPoint
        As `sparsemargin.evaluation.trade_off_over_alpha` gives them.

    Attributes
    ----------
    lines_ : dict of (float or "log") to matplotlib ErrorbarContainer
        By p.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Raises
    ------
    ValueError
        If there is no point.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sparsemargin import ALMAClassifier
    >>> from sparsemargin.datasets import make_alma_target
    >>> X, y, *_ = make_alma_target(300, 1, random_state=0)
    >>> model = ALMAClassifier(random_state=0)
    >>> display = TradeOffDisplay.from_estimator(model, X, y, p=[2, 6], alpha=[0.9, 0.5], cv=3)
    >>> list(display.lines_)
    [2, 6]
    """

    def __init__(self, points: Sequence[TradeOffPoint]) -> None:
        self.points = list(points)
        if not self.points:
            raise ValueError("points is empty. Pass what trade_off_over_alpha returns.")

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the points.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None: those of a new figure.
        **kwargs
            For matplotlib's `Axes.errorbar`, for all lines.

        Returns
        -------
        self : object
        """
        axes = self._open(ax)
        self.lines_ = {}
        for p in dict.fromkeys(point.p for point in self.points):
            own = [point for point in self.points if point.p == p]
            mistakes = [point.mistakes.mean() for point in own]
            percent = [100 * point.accuracies.mean() for point in own]
            style = line_style(axes, len(own), {"capsize": 2, "elinewidth": 1, **kwargs})
            self.lines_[p] = axes.errorbar(
                mistakes, percent, label=f"p = {p}",
                xerr=[_standard_error(point.mistakes) for point in own],
                yerr=[100 * _standard_error(point.accuracies) for point in own],
                **style,
            )  # fmt: skip
        axes.set_xlabel("corrections in the fit")
        axes.set_ylabel("accuracy on held-out rows (%)")
        axes.margins(x=0.12, y=0.12)
        scale_log(axes)
        self._add_legend(axes, title="numbers are alpha")
        _name_points(axes, self.points)
        return self

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, p: Sequence[Norm] = (2, 4, 6),
        alpha: Sequence[float] = (0.9, 0.8, 0.5), cv: Any = 5, n_jobs: int | None = None,
        ax: Any = None, **kwargs: Any,
    ) -> Self:  # fmt: skip
        """Cross-validate every p with every alpha, and draw what comes out.

        Parameters
        ----------
        estimator : classifier with the parameters `p` and `alpha`
        X : {sparse matrix, array-like} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        p : sequence of float or "log", default=(2, 4, 6)
        alpha : sequence of float, default=(0.9, 0.8, 0.5)
        cv : int, cross-validation splitter or iterable of (train, test), default=5
        n_jobs : int, default=None
        ax : matplotlib Axes, default=None
        **kwargs
            As for `plot`.

        Returns
        -------
        display : TradeOffDisplay

        Raises
        ------
        ValueError
            As `sparsemargin.evaluation.trade_off_over_alpha` does.
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        points = trade_off_over_alpha(estimator, X, y, p=p, alpha=alpha, cv=cv, n_jobs=n_jobs)
        return cls(points).plot(ax, **kwargs)


def _standard_error(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def _name_points(axes: Any, points: Sequence[TradeOffPoint]) -> None:
    """Write alpha beside the points, each where nothing stands yet; where all is taken, nowhere:
    the order along a line tells it."""
    figure = root_figure(axes)
    figure.draw_without_rendering()
    ground = {"facecolor": ground_of(axes), "alpha": 0.7, "linewidth": 0, "pad": 0.5}
    places = np.array([[point.mistakes.mean(), 100 * point.accuracies.mean()] for point in points])
    in_points = axes.transData.transform(places) * 72 / figure.dpi
    taken = [(x, y, _MARK, _MARK) for x, y in in_points]
    for point, place, (x, y) in zip(points, places, in_points, strict=True):
        text = f"{point.alpha:g}"
        width, height = 0.65 * _ALPHA_SIZE * len(text), 1.1 * _ALPHA_SIZE
        for dx, dy in product((1, -1), (1, -1)):
            shift = dx * (width / 2 + 6), dy * (height / 2 + 3)
            box = (x + shift[0], y + shift[1], width, height)
            if not any(_overlap(box, other) for other in taken):
                axes.annotate(
                    text, place, shift, textcoords="offset points", ha="center", va="center",
                    fontsize=_ALPHA_SIZE, bbox=ground,
                )  # fmt: skip
                taken.append(box)
                break


def _overlap(box: Box, other: Box) -> bool:
    """Whether two boxes do: places of their centres, widths and heights."""
    return all(2 * abs(box[i] - other[i]) < box[i + 2] + other[i + 2] for i in (0, 1))
