"""Accuracy against corrections, over alpha and p."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any, Self

from sparsemargin.evaluation.curves import TradeOffPoint, trade_off_over_alpha
from sparsemargin.plotting.display import Display, scale_log, standard_error
from sparsemargin.plotting.style import ground_of, line_style

_SIDES = ((1, 1), (1, -1), (-1, 1), (-1, -1))


class TradeOffDisplay(Display):
    """What accuracy costs in corrections: a line for each p, a point on it for each alpha.

    What the tables of Gentile (2001), section 4, tell in figures. A correction is what takes time,
    so the best settings lie above and to the left. Bars of matplotlib's `Axes.errorbar` are
    standard errors over the splits.

    Parameters
    ----------
    points : sequence of TradeOffPoint
        As `sparsemargin.evaluation.trade_off_over_alpha` gives them.

    Attributes
    ----------
    lines_ : dict of (float or "log") to matplotlib ErrorbarContainer
        By p.

    Raises
    ------
    ValueError
        If there is no point.
    """

    def __init__(self, points: Sequence[TradeOffPoint]) -> None:
        self.points = list(points)
        if not self.points:
            raise ValueError("points is empty. Pass what trade_off_over_alpha returns.")

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        (axes,) = self._open(ax)
        self.lines_ = {}
        box = {"facecolor": ground_of(axes), "alpha": 0.7, "linewidth": 0, "pad": 0.5}
        norms = dict.fromkeys(point.p for point in self.points)
        # Points of several lines lie close together: each line has its side for the numbers.
        for p, (right, up) in zip(norms, cycle(_SIDES), strict=False):
            own = [point for point in self.points if point.p == p]
            mistakes = [point.mistakes.mean() for point in own]
            percent = [100 * point.accuracies.mean() for point in own]
            style = line_style(axes, len(own), {"capsize": 2, "elinewidth": 1, **kwargs})
            self.lines_[p] = axes.errorbar(
                mistakes, percent, label=f"p = {p}",
                xerr=[standard_error(point.mistakes) or 0.0 for point in own],
                yerr=[100 * (standard_error(point.accuracies) or 0.0) for point in own],
                **style,
            )  # fmt: skip
            for point, x, y in zip(own, mistakes, percent, strict=True):
                axes.annotate(
                    f"{point.alpha:g}", (x, y), (5 * right, 4 * up), textcoords="offset points",
                    ha="left" if right > 0 else "right", va="bottom" if up > 0 else "top",
                    fontsize=8.5, bbox=box,
                )  # fmt: skip
        axes.set_xlabel("corrections in the fit")
        axes.set_ylabel("accuracy on held-out rows (%)")
        axes.margins(x=0.12, y=0.12)
        scale_log(axes)
        self._add_legend(axes, title="numbers are alpha")
        return self

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, p: Sequence[Any] = (2, 4, 6),
        alpha: Sequence[float] = (0.9, 0.8, 0.5), cv: Any = 5, n_jobs: int | None = None,
        ax: Any = None, **kwargs: Any,
    ) -> Self:  # fmt: skip
        """Cross-validate every p with every alpha, and draw what comes out.

        Parameters
        ----------
        estimator, X, y, p, alpha, cv, n_jobs
            As for `sparsemargin.evaluation.trade_off_over_alpha`, whose errors are raised.
        ax, **kwargs
            As for `plot`.

        Returns
        -------
        display : TradeOffDisplay
        """
        cls._measuring()
        points = trade_off_over_alpha(estimator, X, y, p=p, alpha=alpha, cv=cv, n_jobs=n_jobs)
        return cls(points).plot(ax, **kwargs)
