"""Plots of the distribution of margins, and of the convergence of a certificate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from sparsemargin._engine.messages import collected_warnings, warn_user
from sparsemargin.evaluation.weights import MarginDistribution, margin_distribution, margins
from sparsemargin.models.pipelines import parts_of
from sparsemargin.plotting.display import (
    Display,
    by_name,
    chosen,
    estimators_by_name,
    label_for,
)
from sparsemargin.plotting.style import line_style, neutral

if TYPE_CHECKING:
    # matplotlib 3.9 has no such class.
    from matplotlib.collections import FillBetweenPolyCollection

_UNIT_MARGIN = "margin (rows and weights of unit norm)"
_MARGIN = "margin (in units of X)"
# Range of the axis below 0, as a share of the largest bound, if a final margin is positive.
_BELOW = 0.25
# Tolerance so small that the margin is checked, but does not end the fit before its last epoch.
_SMALLEST_TOL = 1e-12


class MarginDistributionDisplay(Display):
    """Share of rows whose margin is at most a threshold, drawn by matplotlib's `Axes.step`.

    These are Figures 3 to 5 of Gentile (2001). The height of a line at 0 is the error. A line
    further to the right has larger margins.

    Parameters
    ----------
    distributions : dict of str to MarginDistribution
        The results of `sparsemargin.evaluation.margin_distribution`, by the names in the legend.
    margin_name : str, default="margin"
        Label of the horizontal axis.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        In the order of `distributions`.

    Raises
    ------
    ValueError
        If there is no distribution, or thresholds and share of one differ in length.
    """

    def __init__(
        self, distributions: Mapping[str, MarginDistribution], *, margin_name: str = "margin"
    ) -> None:
        self.margin_name = margin_name
        self.distributions = {}
        for name, each in by_name(distributions, "distributions").items():
            thresholds, share = (np.asarray(part, dtype=np.float64) for part in each)
            if thresholds.ndim != 1 or not thresholds.size or thresholds.shape != share.shape:
                raise ValueError(
                    f"distributions[{name!r}] has thresholds of shape {thresholds.shape} and share "
                    f"of shape {share.shape}. Pass what margin_distribution returns."
                )
            self.distributions[name] = MarginDistribution(thresholds, share)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        (axes,) = self._open(ax)
        self.lines_: list[Line2D] = []
        for name, (thresholds, share) in self.distributions.items():
            style = line_style(axes, len(thresholds), {"where": "post", **kwargs})
            self.lines_ += axes.step(thresholds, share, label=label_for(name), **style)
        axes.axvline(0, zorder=0, **neutral(axes))
        axes.set_ylim(-0.02, 1.02, auto=None)
        axes.set_xlabel(self.margin_name)
        axes.set_ylabel("share of rows with at most this margin")
        self._add_legend(axes)
        return self

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, normalize: bool = True,
        thresholds: ArrayLike | None = None, ax: Any = None, **kwargs: Any,
    ) -> Self:  # fmt: skip
        """Compute the margins of one or more fitted models, and draw their distributions.

        Parameters
        ----------
        estimator : fitted classifier, or pipeline that ends in one, or dict of str to such
        X, y, normalize
            See `sparsemargin.evaluation.margins`, which may raise errors.
        thresholds : array-like of shape (n_thresholds,), default=None
            Thresholds at which the share is computed. None: every margin that occurs.
        $drawn
        """
        distributions = {}
        for name, model in estimators_by_name(estimator).items():
            unfitted = f"The estimator {name!r} is not fitted. Call fit before plotting."
            check_is_fitted(model, msg=unfitted)
            found = margins(model, X, y, normalize=normalize)
            distributions[name] = margin_distribution(found, thresholds)
        margin_name = _UNIT_MARGIN if normalize else _MARGIN
        return cls(distributions, margin_name=margin_name).plot(ax, **kwargs)


class CertificateDisplay(Display):
    """The margin after every epoch, and its upper bound.

    The largest possible margin is in the band between the two. Both are drawn by matplotlib's
    `Axes.plot`. The bound is always dashed, to distinguish it from the margin.

    Parameters
    ----------
    passes : array-like of shape (n_passes,)
        Numbers of epochs: ``history_["n_iter"]`` of a fit with `tol`.
    margins, upper_bounds : array-like of shape (n_passes,) or (n_passes, n_classes)
        `margin_` and `margin_upper_bound_` at these epochs, from the same `history_`.
    classes : array-like of shape (n_classes,), default=None
        Classes of the columns; required if there are columns.

    Attributes
    ----------
    margin_lines_, bound_lines_ : list of matplotlib Line2D
        One line, or one for each class.
    band_ : matplotlib PolyCollection or None
        The band between the two lines, if there is one vector.

    Raises
    ------
    ValueError
        If there is no epoch, or shapes do not match.
    """

    def __init__(
        self, passes: ArrayLike, margins: ArrayLike, upper_bounds: ArrayLike, *, classes: Any = None
    ) -> None:
        self.passes = np.asarray(passes, dtype=np.float64)
        self.margins = np.asarray(margins, dtype=np.float64)
        self.upper_bounds = np.asarray(upper_bounds, dtype=np.float64)
        self.classes = None if classes is None else np.asarray(classes)
        shape = self.passes.shape if self.classes is None else (*self.passes.shape, len(classes))
        if not self.passes.size:
            raise ValueError("passes is empty. Pass history_['n_iter'] of a fit.")
        if self.passes.ndim != 1 or not shape == self.margins.shape == self.upper_bounds.shape:
            raise ValueError(
                f"margins of shape {self.margins.shape} and upper_bounds of shape "
                f"{self.upper_bounds.shape} do not go with passes of shape {self.passes.shape} "
                f"and classes={classes}. Pass one row for each pass and one column for each class."
            )

    def plot(self, ax: Any = None, *, classes: Sequence[Any] | None = None, **kwargs: Any) -> Self:
        """Draw the margins and their bounds.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None: a new figure.
        classes : sequence, default=None
            Classes to draw. None: all.
        **kwargs
            Properties of all lines.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a class is unknown.
        """
        names, margins, bounds = self._columns(classes)
        (axes,) = self._open(ax)
        self.margin_lines_: list[Line2D] = []
        self.bound_lines_: list[Line2D] = []
        self.band_: FillBetweenPolyCollection | None = None
        for (reached, none_above), margin, bound in zip(names, margins, bounds, strict=True):
            style = line_style(axes, len(self.passes), kwargs)
            solid = {**style, "linestyle": "-", "label": reached}
            dashed = {**style, "marker": "", "linestyle": "--", "label": none_above}
            self.margin_lines_ += axes.plot(self.passes, margin, **solid)
            self.bound_lines_ += axes.plot(self.passes, bound, **dashed)
        if self.classes is None:
            self.band_ = axes.fill_between(
                self.passes, self.margins, self.upper_bounds, alpha=0.15, linewidth=0,
                color=self.margin_lines_[0].get_color(),
            )  # fmt: skip
        # The size of a negative margin is uninteresting: it only means that some row is wrong.
        floor = -_BELOW * np.max(bounds)
        if axes.get_ylim()[0] < floor and np.max([margin[-1] for margin in margins]) > 0:
            axes.set_ylim(bottom=floor, auto=None)
        axes.set_xlabel("passes over the rows")
        axes.set_ylabel("margin")
        title = None if self.classes is None else "class; dashed: none is above"
        self._add_legend(axes, title=title, with_math=self.classes is None)
        return self

    def _columns(
        self, classes: Sequence[Any] | None
    ) -> tuple[list[tuple[str, str | None]], np.ndarray, np.ndarray]:
        """Line names of each class, or of the single vector; margins; and bounds."""
        if self.classes is not None:
            known = self.classes.tolist()
            places = [known.index(label) for label in chosen("classes", classes, known)]
            names: list[tuple[str, str | None]] = [(label_for(str(known[k])), None) for k in places]
            return names, self.margins.T[places], self.upper_bounds.T[places]
        if classes is not None:
            raise ValueError("classes: one vector serves all classes here. Leave classes out.")
        return [("margin reached", "none is above")], self.margins[None], self.upper_bounds[None]

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, n_passes: float | None = None,
        classes: Sequence[Any] | None = None, ax: Any = None, **kwargs: Any,
    ) -> Self:  # fmt: skip
        """Fit a clone of an estimator, and draw the convergence of its certificate.

        Parameters
        ----------
        estimator : classifier that seeks a margin, or pipeline that ends in one
            The clone has ``hypothesis="last"``, to which the certificate refers.
        X, y
            See `fit`.
        n_passes : float or None, default=None
            Replaces the estimator's `max_iter`. Its `tol` may end the run earlier.
        classes
            See `plot`.
        $drawn
        """
        model = _fitted_with_history(estimator, X, y, n_passes)
        keys = ("n_iter", "margin", "margin_upper_bound")
        passes, reached, bounds = (np.asarray(model.history_[key]) for key in keys)
        of = model.classes_ if reached.ndim == 2 else None
        return cls(passes, reached, bounds, classes=of).plot(ax, classes=classes, **kwargs)


def _fitted_with_history(estimator: Any, X: Any, y: Any, n_passes: float | None) -> Any:
    before, model = parts_of(estimator)
    if before is not None:
        X = clone(before).fit_transform(X, y)
    if not getattr(model, "seeks_margin", False):
        raise ValueError(
            f"{type(model).__name__} has no certificate of its margin. Pass a classifier of "
            "sparsemargin that seeks a margin, such as MaxMarginClassifier or MarginPerceptron."
        )
    tol = _SMALLEST_TOL if model.tol is None else model.tol
    model = clone(model).set_params(hypothesis="last", tol=tol, warm_start=False)
    if n_passes is None:
        return model.fit(X, y)
    with collected_warnings() as found:
        model.set_params(max_iter=n_passes).fit(X, y)
    for message, category in found:
        # With a given number of epochs, the margin need not have been reached.
        if category is not ConvergenceWarning:
            warn_user(message, category)
    return model
