"""Accuracy against corrections, over alpha and p."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._optional_dependencies import check_matplotlib_support

from sparsemargin.evaluation.trade_off import Norm, TradeOffPoint, trade_off_over_alpha
from sparsemargin.plotting._axes import Display, add_legend
from sparsemargin.plotting._style import line_style


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
        for i, p in enumerate(dict.fromkeys(point.p for point in self.points)):
            own = [point for point in self.points if point.p == p]
            mistakes = [point.mistakes.mean() for point in own]
            percent = [100 * point.accuracies.mean() for point in own]
            style = {**line_style(axes, i, len(own)), "capsize": 2, **kwargs}
            self.lines_[p] = axes.errorbar(
                mistakes, percent, label=f"p = {p}",
                xerr=[_standard_error(point.mistakes) for point in own],
                yerr=[100 * _standard_error(point.accuracies) for point in own],
                **style,
            )  # fmt: skip
            _name_points(axes, own, mistakes, percent, i)
        axes.set_xscale("log")
        axes.set_xlabel("corrections in the fit")
        axes.set_ylabel("accuracy on held-out rows (%)")
        axes.margins(x=0.12, y=0.12)
        add_legend(axes)
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


def _name_points(
    axes: Any, points: Sequence[TradeOffPoint], x: Sequence[float], y: Sequence[float], i: int
) -> None:
    """Write alpha at the points, above those of every other line and below those between."""
    side = 1 if i % 2 == 0 else -1
    for point, at_x, at_y in zip(points, x, y, strict=True):
        axes.annotate(
            f"α = {point.alpha:g}", (at_x, at_y), (5 * side, 7 * side), textcoords="offset points",
            fontsize="small", va="bottom" if side > 0 else "top",
            ha="left" if side > 0 else "right",
        )  # fmt: skip
