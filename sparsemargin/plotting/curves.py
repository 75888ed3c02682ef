"""Curves of errors over epochs, and of the hypotheses of one training run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from sparsemargin.evaluation.curves import EpochCurve, learning_curve_over_epochs
from sparsemargin.evaluation.hypotheses import HypothesisErrors, hypothesis_errors
from sparsemargin.models.learner import LARGEST_SEED
from sparsemargin.plotting.display import (
    Display,
    by_name,
    chosen,
    estimators_by_name,
    scale_epochs,
    standard_error,
)
from sparsemargin.plotting.style import line_style

if TYPE_CHECKING:
    from matplotlib.container import ErrorbarContainer
    from matplotlib.lines import Line2D

_SHOWN = ("random", "last", "average", "vote")


class EpochCurvesDisplay(Display):
    """Corrections so far, and test error, over the epochs of a run.

    This is Figure 2 of Brotto, Gentile & Vitale (2007), in two panels. For several runs,
    matplotlib's `Axes.errorbar` draws the mean, with the standard error as bars.

    Parameters
    ----------
    curves : dict of str to EpochCurve, or to list of EpochCurve
        The results of `sparsemargin.evaluation.learning_curve_over_epochs`, by the names in the
        legend. The runs of a list must have the same epochs.

    Attributes
    ----------
    correction_lines_, error_lines_ : list of matplotlib ErrorbarContainer
        In the order of `curves`. If an algorithm does not count its corrections, its line in
        `correction_lines_` has no points.

    Raises
    ------
    ValueError
        If there is no curve, or runs of one name have different epochs.
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
        """Run one or more estimators over epochs, and draw the results.

        Parameters
        ----------
        estimator : classifier with `partial_fit`, or pipeline that ends in one, or dict of str to \
such
        X, y, X_test, y_test, epochs
            See `sparsemargin.evaluation.learning_curve_over_epochs`, which may raise errors.
        n_repeats : int, default=1
            Number of runs of each estimator. A single run uses the given order of the rows. Several
            runs use a new random order in every epoch, which is the same for all estimators.
        random_state : int, RandomState or None, default=None
            Seed of these orders.
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
    """Test error of the last, averaged, voted and random hypothesis over one training run.

    This is Figure 2 of Freund & Schapire (1999), drawn by matplotlib's `Axes.plot`.

    Parameters
    ----------
    errors : HypothesisErrors
        The result of `sparsemargin.evaluation.hypothesis_errors`.

    Attributes
    ----------
    lines_ : dict of str to matplotlib Line2D
        The line of each hypothesis.
    """

    def __init__(self, errors: HypothesisErrors) -> None:
        self.errors = errors

    def plot(self, ax: Any = None, *, hypotheses: Sequence[str] = _SHOWN, **kwargs: Any) -> Self:
        """Draw the errors.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None: a new figure.
        hypotheses : sequence of str, default=("random", "last", "average", "vote")
            Hypotheses to draw, also ``"last_normalized"``, ``"average_normalized"`` and
            ``"random_normalized"``.
        **kwargs
            Properties of all lines.

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
        """Replay the training run of a model, and draw the errors.

        Parameters
        ----------
        estimator : fitted first-order classifier, or pipeline that ends in one
            A model with ``hypothesis="vote"`` or ``"random"``, which keeps the log of corrections.
        X, y, moments
            See `sparsemargin.evaluation.hypothesis_errors`, which may raise errors.
        $drawn
        """
        cls._measuring()
        return cls(hypothesis_errors(estimator, X, y, moments)).plot(ax, **kwargs)
