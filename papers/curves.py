"""Corrections and test error over the epochs of a run: Figure 2 of Brotto, Gentile & Vitale
(2007)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sparsemargin.plotting.display import Display
from sparsemargin.plotting.style import line_style

_EVEN_GAPS = 5
_MOST_TICKS = 8


class EpochCurve(NamedTuple):
    """Result of `learning_curve_over_epochs`. All arrays have shape (n_epochs,)."""

    epochs: NDArray[np.int64]
    mistakes: NDArray[np.float64]  # corrections so far, summed over the classes; NaN if unknown
    test_errors: NDArray[np.float64]  # fraction of the test rows, in [0, 1]


def learning_curve_over_epochs(
    estimator: Any, X: Any, y: Any, X_test: Any, y_test: Any, *, epochs: Sequence[int]
) -> EpochCurve:
    """Train a clone by `partial_fit`, one call per epoch, and evaluate it after these epochs."""
    model, mistakes, errors = clone(estimator), [], []
    for epoch in range(1, max(epochs) + 1):
        model.partial_fit(X, y, classes=np.unique(y))
        if epoch in epochs:
            mistakes.append(float(np.sum(getattr(model, "n_corrections_", np.nan))))
            errors.append(float(np.mean(model.predict(X_test) != np.asarray(y_test))))
    return EpochCurve(np.array(epochs), np.array(mistakes), np.array(errors))


class EpochCurvesDisplay(Display):
    """Corrections so far, and test error, over the epochs, in two panels.

    `curves` has one or more runs with the same epochs for each name in the legend. Several runs are
    drawn as their mean, with the standard error as bars.
    """

    def __init__(self, curves: Mapping[str, Sequence[EpochCurve]]) -> None:
        self.curves = curves

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        corrections, errors = self._open(ax, 2, (4.6, 3.8))
        self.correction_lines_: list[Any] = []
        self.error_lines_: list[Any] = []
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
        self._add_legend(errors)
        return self


def standard_error(runs: Any) -> Any:
    """The standard error of the mean over the first axis; None for a single run."""
    return np.std(runs, axis=0, ddof=1) / np.sqrt(len(runs)) if len(runs) > 1 else None


def scale_epochs(ax: Any, epochs: Any) -> None:
    """Set a logarithmic axis if the epochs are spread like one, else a linear axis. If there are
    few epochs, each gets a tick."""
    from matplotlib.ticker import NullLocator

    at = np.unique(np.asarray(epochs, dtype=np.float64))
    gaps = np.diff(at)
    if len(gaps) > 1 and at[0] > 0 and gaps.max() > _EVEN_GAPS * gaps.min():
        scale_log(ax)
    if len(at) <= _MOST_TICKS:
        ax.set_xticks(at, [f"{epoch:g}" for epoch in at])
        ax.xaxis.set_minor_locator(NullLocator())


def scale_log(ax: Any) -> None:
    """Set a logarithmic axis with plain numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter

    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter("{x:,g}")
    ax.xaxis.set_minor_formatter(NullFormatter())
