"""Curves: errors over epochs, accuracy against corrections, and time against size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from sparsemargin.evaluation.curves import (
    EpochCurve,
    TradeOffPoint,
    learning_curve_over_epochs,
    trade_off_over_alpha,
)
from sparsemargin.evaluation.growth import GrowthExponent, growth_exponent
from sparsemargin.evaluation.hypotheses import HypothesisErrors, hypothesis_errors
from sparsemargin.models.base import LARGEST_SEED
from sparsemargin.plotting.display import (
    Display,
    by_name,
    check_vectors,
    chosen,
    estimators_by_name,
    scale_epochs,
    scale_log,
    standard_error,
    tick_few,
)
from sparsemargin.plotting.style import ground_of, line_style

if TYPE_CHECKING:
    from matplotlib.container import ErrorbarContainer
    from matplotlib.lines import Line2D

_SHOWN = ("random", "last", "average", "vote")
_SIDES = ((1, 1), (1, -1), (-1, 1), (-1, -1))


class EpochCurvesDisplay(Display):
    """Corrections so far, and test error, over the epochs of a run.

    Figure 2 of Brotto, Gentile & Vitale (2007), in two panels. Of several runs matplotlib's
    `Axes.errorbar` draws the mean, and its standard error as bars.

    Parameters
    ----------
    curves : dict of str to EpochCurve, or to list of EpochCurve
        By the names in the legend, as `sparsemargin.evaluation.learning_curve_over_epochs` gives
        them; the runs of a list are taken at the same epochs.

    Attributes
    ----------
    correction_lines_, error_lines_ : list of matplotlib ErrorbarContainer
        In the order of `curves`; where an algorithm does not count its corrections, its line
        among the former has no points.

    Raises
    ------
    ValueError
        If there is no curve, or runs of one name are not taken at the same epochs.
    """

    def __init__(self, curves: Mapping[str, EpochCurve | Sequence[EpochCurve]]) -> None:
        self.curves: dict[str, list[EpochCurve]] = {}
        for name, runs in by_name(curves, "curves").items():
            found = [runs] if isinstance(runs, EpochCurve) else list(runs)
            if not found or not all(np.array_equal(run.epochs, found[0].epochs) for run in found):
                raise ValueError(
                    f"curves[{name!r}] must be an EpochCurve, or several taken at the same epochs."
                )
            self.curves[name] = found

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        corrections, errors = self._open(ax, 2, (4.6, 3.8))
        self.correction_lines_: list[ErrorbarContainer] = []
        self.error_lines_: list[ErrorbarContainer] = []
        for name, runs in self.curves.items():
            epochs = runs[0].epochs
            for axes, lines, values in (
                (corrections, self.correction_lines_, [run.mistakes for run in runs]),
                (errors, self.error_lines_, [100 * run.test_errors for run in runs]),
            ):
                style = line_style(axes, len(epochs), {"capsize": 2, "elinewidth": 1, **kwargs})
                mean, error = np.mean(values, axis=0), standard_error(values)
                lines.append(axes.errorbar(epochs, mean, error, label=name, **style))
        corrections.set_ylabel("corrections so far")
        errors.set_ylabel("test error (%)")
        for axes in (corrections, errors):
            axes.set_xlabel("epochs")
            scale_epochs(axes, np.concatenate([runs[0].epochs for runs in self.curves.values()]))
        corrections.set_ylim(bottom=0, auto=None)
        if all(np.isnan(run.mistakes).all() for runs in self.curves.values() for run in runs):
            why = "corrections are not counted"
            corrections.text(0.5, 0.5, why, transform=corrections.transAxes, ha="center")
            corrections.set_xticks([])
            corrections.set_yticks([])
        self._add_legend(errors)
        return self

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, X_test: Any, y_test: Any, *,
        epochs: Sequence[int] = (1, 2, 3, 5, 10, 15, 20), n_repeats: int = 1,
        random_state: Any = None, ax: Any = None, **kwargs: Any,
    ) -> Self:  # fmt: skip
        """Run an estimator, or several, over epochs, and draw what comes out.

        Parameters
        ----------
        estimator : classifier with `partial_fit`, or pipeline that ends in one, or dict of str to \
such
        X, y, X_test, y_test, epochs
            As for `sparsemargin.evaluation.learning_curve_over_epochs`, whose errors are raised.
        n_repeats : int, default=1
            Runs of each estimator. 1: rows are taken in the given order; more: in a new random
            order in every epoch, the same for all estimators.
        random_state : int, RandomState or None, default=None
            Of these orders.
        $drawn
        """
        cls._measuring()
        if n_repeats < 1:
            raise ValueError(f"n_repeats must be 1 or more, got {n_repeats}.")
        seeds = check_random_state(random_state).randint(LARGEST_SEED, size=n_repeats)
        curves = {
            name: [
                learning_curve_over_epochs(
                    rival, X, y, X_test, y_test, epochs=epochs,
                    shuffle_rows=n_repeats > 1, random_state=int(seed),
                )
                for seed in seeds
            ]
            for name, rival in estimators_by_name(estimator).items()
        }  # fmt: skip
        return cls(curves).plot(ax, **kwargs)


class HypothesisErrorsDisplay(Display):
    """Test error of the last, the averaged, the voted and a random hypothesis over one run.

    Figure 2 of Freund & Schapire (1999), drawn by matplotlib's `Axes.plot`.

    Parameters
    ----------
    errors : HypothesisErrors
        As `sparsemargin.evaluation.hypothesis_errors` gives them.

    Attributes
    ----------
    lines_ : dict of str to matplotlib Line2D
        By hypothesis.
    """

    def __init__(self, errors: HypothesisErrors) -> None:
        self.errors = errors

    def plot(self, ax: Any = None, *, hypotheses: Sequence[str] = _SHOWN, **kwargs: Any) -> Self:
        """Draw the errors.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None: those of a new figure.
        hypotheses : sequence of str, default=("random", "last", "average", "vote")
            Also ``"last_normalized"``, ``"average_normalized"`` and ``"random_normalized"``.
        **kwargs
            For all lines.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If there is no hypothesis, or one is unknown.
        """
        names = chosen("hypotheses", hypotheses, list(self.errors.errors))
        (axes,) = self._open(ax)
        moments = np.asarray(self.errors.moments)
        self.lines_: dict[str, Line2D] = {}
        for name in names:
            style = line_style(axes, len(moments), kwargs)
            label = name.replace("_normalized", ", normalised")
            percent = 100 * self.errors.errors[name]
            (self.lines_[name],) = axes.plot(moments, percent, label=label, **style)
        scale_epochs(axes, moments)
        axes.set_xlabel("epochs")
        axes.set_ylabel("test error (%)")
        axes.set_ylim(bottom=0, auto=None)
        self._add_legend(axes, title="hypothesis")
        return self

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, moments: ArrayLike | None = None, ax: Any = None,
        **kwargs: Any,
    ) -> Self:  # fmt: skip
        """Replay the run that a model has learned by, and draw the errors.

        Parameters
        ----------
        estimator : fitted first-order classifier, or pipeline that ends in one
            Of ``hypothesis="vote"`` or ``"random"``, which keep the log of corrections.
        X, y, moments
            As for `sparsemargin.evaluation.hypothesis_errors`, whose errors are raised.
        $drawn
        """
        cls._measuring()
        return cls(hypothesis_errors(estimator, X, y, moments)).plot(ax, **kwargs)


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
        $drawn
        """
        cls._measuring()
        points = trade_off_over_alpha(estimator, X, y, p=p, alpha=alpha, cv=cv, n_jobs=n_jobs)
        return cls(points).plot(ax, **kwargs)


class GrowthCurve(NamedTuple):
    """Seconds at some sizes, arrays of shape (n_sizes,), and the exponent of their growth."""

    sizes: NDArray[np.float64]
    seconds: NDArray[np.float64]
    exponent: GrowthExponent


class GrowthDisplay(Display):
    """Time against size, both axes logarithmic, with fitted exponents and their standard errors.

    Marks are measured times, lines the fitted power laws, drawn by matplotlib's `Axes.loglog`; an
    exponent of 1 is time in proportion to size, as the updates in O(nnz) promise.

    Parameters
    ----------
    curves : dict of str to GrowthCurve
        By the names in the legend. Where the exponent has no factor, marks are joined instead.
    size_name : str, default="size"
        What stands below the horizontal axis.
    time_name : str, default="time (s)"

    Attributes
    ----------
    points_, lines_ : list of matplotlib Line2D
        In the order of `curves`.

    Raises
    ------
    ValueError
        If there is no curve, or sizes and seconds of one differ in length.
    """

    def __init__(
        self, curves: Mapping[str, GrowthCurve], *, size_name: str = "size",
        time_name: str = "time (s)",
    ) -> None:  # fmt: skip
        self.size_name = size_name
        self.time_name = time_name
        self.curves = {}
        for name, (sizes, seconds, exponent) in by_name(curves, "curves").items():
            measured = {"sizes": sizes, "seconds": seconds}
            x, y = check_vectors(f"curves[{name!r}]", measured, "vectors of one length")
            self.curves[name] = GrowthCurve(x, y, exponent)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        (axes,) = self._open(ax)
        from matplotlib.ticker import EngFormatter

        self.points_: list[Line2D] = []
        self.lines_: list[Line2D] = []
        for name, curve in self.curves.items():
            style = line_style(axes, len(curve.sizes), {"markevery": None, **kwargs})
            # Spaces that do not break keep a number and its error on one line.
            label = f"{name}: {curve.exponent}".replace(" ± ", "\u00a0±\u00a0")
            points = {**style, "linestyle": "", "label": label}
            self.points_ += axes.loglog(curve.sizes, curve.seconds, **points)
            self.lines_ += axes.loglog(*_line(curve), **{**style, "marker": "", "label": None})
        axes.set_xlabel(self.size_name)
        axes.set_ylabel(self.time_name)
        measured = {tuple(np.unique(curve.sizes).tolist()) for curve in self.curves.values()}
        if len(measured) == 1:
            tick_few(axes, measured.pop(), EngFormatter(sep="").format_eng)
        self._add_legend(axes, title="exponent ± standard error")
        return self

    @classmethod
    def from_measurements(
        cls, measurements: Mapping[str, tuple[ArrayLike, ArrayLike]], *, size_name: str = "size",
        time_name: str = "time (s)", ax: Any = None, **kwargs: Any,
    ) -> Self:  # fmt: skip
        """Fit the exponents of measured times, and draw both.

        Parameters
        ----------
        measurements : dict of str to (sizes, seconds)
            By the names in the legend; as for `sparsemargin.evaluation.growth_exponent`, whose
            errors are raised.
        size_name, time_name
            As for `GrowthDisplay`.
        $drawn
        """
        cls._measuring("from_measurements")
        curves = {
            name: GrowthCurve(np.asarray(x), np.asarray(y), growth_exponent(x, y))
            for name, (x, y) in by_name(measurements, "measurements").items()
        }
        return cls(curves, size_name=size_name, time_name=time_name).plot(ax, **kwargs)


def _line(curve: GrowthCurve) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of the power law, or the points where there is none."""
    slope, _, factor = curve.exponent
    if np.isnan(factor):
        return curve.sizes, curve.seconds
    sizes = curve.sizes[(curve.sizes > 0) & np.isfinite(curve.sizes)]
    ends = np.array([sizes.min(), sizes.max()])
    return ends, factor * ends**slope
