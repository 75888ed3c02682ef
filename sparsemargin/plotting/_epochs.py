"""Corrections and test error over epochs: Brotto, Gentile & Vitale (2007), Figure 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._optional_dependencies import check_matplotlib_support

from sparsemargin.evaluation.curves import EpochCurve, learning_curve_over_epochs
from sparsemargin.plotting._axes import Display, scale_epochs
from sparsemargin.plotting._named import by_name, check_names
from sparsemargin.plotting._style import line_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import ErrorbarContainer

_LARGEST_SEED = 2**31 - 1


class EpochCurvesDisplay(Display):
    """Corrections so far, and test error, over the epochs of a run.

    Figure 2 of Brotto, Gentile & Vitale (2007). Of several runs their mean is drawn, and its
    standard error as bars.

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
    ax_ : ndarray of shape (2,), of matplotlib Axes
    figure_ : matplotlib Figure

    Raises
    ------
    ValueError
        If there is no curve, or runs of one name are not taken at the same epochs.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sparsemargin import PNormPerceptron
    >>> from sparsemargin.datasets import make_alma_target
    >>> data = make_alma_target(300, 300, random_state=0)[:4]
    >>> rivals = {f"p = {p}": PNormPerceptron(p=p, hypothesis="last") for p in (2, 6)}
    >>> display = EpochCurvesDisplay.from_estimator(rivals, *data, epochs=[1, 2, 4])
    >>> [axes.get_xlabel() for axes in display.ax_]
    ['epochs', 'epochs']
    """

    def __init__(self, curves: Mapping[str, EpochCurve | Sequence[EpochCurve]]) -> None:
        self.curves = {
            name: _as_runs(name, runs) for name, runs in check_names(curves, "curves").items()
        }

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : array-like of 2 matplotlib Axes, default=None
            For corrections and for errors. None: those of a new figure.
        **kwargs
            For matplotlib's `Axes.errorbar`, for all lines.

        Returns
        -------
        self : object
        """
        corrections, errors = self._open_panels(ax, 2)
        self.correction_lines_: list[ErrorbarContainer] = []
        self.error_lines_: list[ErrorbarContainer] = []
        for name, runs in self.curves.items():
            epochs = runs[0].epochs
            for axes, lines, values in (
                (corrections, self.correction_lines_, [run.mistakes for run in runs]),
                (errors, self.error_lines_, [100 * run.test_errors for run in runs]),
            ):
                bars = {"capsize": 2, "elinewidth": 1, **kwargs}
                style = line_style(axes, len(epochs), bars)
                lines.append(_draw(axes, epochs, np.array(values), name, style))
        corrections.set_ylabel("corrections so far")
        errors.set_ylabel("test error (%)")
        for axes in (corrections, errors):
            axes.set_xlabel("epochs")
            scale_epochs(axes, np.concatenate([runs[0].epochs for runs in self.curves.values()]))
        corrections.set_ylim(bottom=0, auto=None)
        self._tell_uncounted(corrections)
        self._add_legend(errors)
        return self

    def _tell_uncounted(self, axes: Axes) -> None:
        """Say why axes are empty."""
        if all(np.isnan(run.mistakes).all() for runs in self.curves.values() for run in runs):
            told = axes.text(0.5, 0.5, "corrections are not counted", transform=axes.transAxes)
            told.set(ha="center", va="center")
            axes.set_xticks([])
            axes.set_yticks([])

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, X_test: Any, y_test: Any, *,
        epochs: Sequence[int] = (1, 2, 3, 5, 10, 15, 20), n_repeats: int = 1,
        random_state: Any = None, ax: Any = None, **kwargs: Any,
    ) -> Self:  # fmt: skip
        """Run an estimator, or several, over epochs, and draw what comes out.

        Parameters
        ----------
        estimator : classifier with `partial_fit`, or dict of str to such
            Clones of it learn; its own `max_iter` and `shuffle` do not apply.
        X, X_test : {sparse matrix, array-like} of shape (n_samples, n_features)
        y, y_test : array-like of shape (n_samples,)
        epochs : sequence of int, default=(1, 2, 3, 5, 10, 15, 20)
            When corrections and error are taken; rising.
        n_repeats : int, default=1
            Runs of each estimator. 1: rows are taken in the given order; more: in a new random
            order in every epoch, the same for all estimators.
        random_state : int, RandomState or None, default=None
            Of these orders.
        ax : array-like of 2 matplotlib Axes, default=None
        **kwargs
            As for `plot`.

        Returns
        -------
        display : EpochCurvesDisplay

        Raises
        ------
        ValueError
            As `sparsemargin.evaluation.learning_curve_over_epochs` does; or if `n_repeats` is less
            than 1.
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        if n_repeats < 1:
            raise ValueError(f"n_repeats must be 1 or more, got {n_repeats}.")
        seeds = check_random_state(random_state).randint(_LARGEST_SEED, size=n_repeats)
        curves = {
            name: [
                learning_curve_over_epochs(
                    rival, X, y, X_test, y_test, epochs=epochs,
                    shuffle_rows=n_repeats > 1, random_state=int(seed),
                )
                for seed in seeds
            ]
            for name, rival in by_name(estimator).items()
        }  # fmt: skip
        return cls(curves).plot(ax, **kwargs)


def _as_runs(name: str, runs: EpochCurve | Sequence[EpochCurve]) -> list[EpochCurve]:
    found = [runs] if isinstance(runs, EpochCurve) else list(runs)
    if not found or not all(np.array_equal(run.epochs, found[0].epochs) for run in found):
        raise ValueError(
            f"curves[{name!r}] must be an EpochCurve, or several taken at the same epochs."
        )
    return found


def _draw(axes: Any, epochs: Any, values: np.ndarray, name: str, style: dict[str, Any]) -> Any:
    """The mean over runs, with its standard error where there are several."""
    n_runs = len(values)
    error = values.std(axis=0, ddof=1) / np.sqrt(n_runs) if n_runs > 1 else None
    return axes.errorbar(epochs, values.mean(axis=0), error, label=name, **style)
