"""How the margins of a model are distributed: Gentile (2001), Figures 3 to 5."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_consistent_length
from sklearn.utils._optional_dependencies import check_matplotlib_support

from sparsemargin.evaluation.weights import (
    MarginDistribution,
    margin_distribution,
    margins,
    own_margins,
)
from sparsemargin.models import validation as given
from sparsemargin.plotting._axes import Display
from sparsemargin.plotting._named import by_name, check_fitted, check_names
from sparsemargin.plotting._style import line_style, neutral

_UNIT_MARGIN = "margin (rows and weights of unit norm)"
_MARGIN = "margin (in units of X)"
_OUTPUT = "output for the own class, less the largest other"


class MarginDistributionDisplay(Display):
    """Share of rows whose margin is at most a threshold.

    Figures 3 to 5 of Gentile (2001). The height of a line at 0 is the error; a line further to the
    right has larger margins.

    Parameters
    ----------
    distributions : dict of str to MarginDistribution
        By the names in the legend, as `sparsemargin.evaluation.margin_distribution` gives them.
    margin_name : str, default="margin"
        What stands below the horizontal axis.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        In the order of `distributions`.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Raises
    ------
    ValueError
        If there is no distribution, or thresholds and share of one differ in length.

    See Also
    --------
    sparsemargin.evaluation.margins : The numbers.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sparsemargin import ALMAClassifier
    >>> from sparsemargin.datasets import make_alma_target
    >>> X, y, X_test, y_test, _ = make_alma_target(1000, 500, random_state=0)
    >>> models = {
    ...     f"alpha = {alpha}": ALMAClassifier(p=6, alpha=alpha, random_state=0).fit(X, y)
    ...     for alpha in (0.9, 0.5)
    ... }
    >>> display = MarginDistributionDisplay.from_estimator(models, X_test, y_test)
    >>> [line.get_label() for line in display.lines_]
    ['alpha = 0.9', 'alpha = 0.5']
    """

    def __init__(
        self, distributions: Mapping[str, MarginDistribution], *, margin_name: str = "margin"
    ) -> None:
        self.distributions = {
            name: _check_distribution(name, each)
            for name, each in check_names(distributions, "distributions").items()
        }
        self.margin_name = margin_name

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the distributions.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None: those of a new figure.
        **kwargs
            For matplotlib's `Axes.step`, for all lines.

        Returns
        -------
        self : object
        """
        axes = self._open(ax)
        self.lines_ = []
        for name, (thresholds, share) in self.distributions.items():
            style = line_style(axes, len(thresholds), {"where": "post", **kwargs})
            self.lines_ += axes.step(thresholds, share, label=name, **style)
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
        """Take the margins of a fitted model, or of several, and draw their distributions.

        Parameters
        ----------
        estimator : fitted classifier, or dict of str to fitted classifier
            As for `sparsemargin.evaluation.margins`.
        X : {sparse matrix, array-like} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        normalize : bool, default=True
            Whether rows are divided by their p-norm.
        thresholds : array-like of shape (n_thresholds,), default=None
            Where the share is told. None: at every margin that occurs.
        ax : matplotlib Axes, default=None
        **kwargs
            As for `plot`.

        Returns
        -------
        display : MarginDistributionDisplay

        Raises
        ------
        ValueError
            If a model is not fitted, or has no margins, or if X or y can't be used.
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        distributions = {}
        for name, model in by_name(estimator).items():
            check_fitted(model, name)
            found = margins(model, X, y, normalize=normalize)
            distributions[name] = margin_distribution(found, thresholds)
        margin_name = _UNIT_MARGIN if normalize else _MARGIN
        return cls(distributions, margin_name=margin_name).plot(ax, **kwargs)

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_score: Any, *, name: str | None = None,
        thresholds: ArrayLike | None = None, ax: Any = None, **kwargs: Any,
    ) -> Self:  # fmt: skip
        """Take the margins from outputs as `decision_function` gives them, of whatever scale.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            All classes must occur; in rising order they are those of the outputs.
        y_score : array-like of shape (n_samples,) or (n_samples, n_classes), or dict of str to such
            Outputs, positive for the second of two classes.
        name : str, default=None
            In the legend, where `y_score` is no dict. None: ``"Classifier"``.
        thresholds : array-like of shape (n_thresholds,), default=None
        ax : matplotlib Axes, default=None
        **kwargs
            As for `plot`.

        Returns
        -------
        display : MarginDistributionDisplay

        Raises
        ------
        ValueError
            If labels and outputs differ in length, or outputs are not those of the classes.
        """
        check_matplotlib_support(f"{cls.__name__}.from_predictions")
        scores = y_score if isinstance(y_score, Mapping) else {name or "Classifier": y_score}
        classes, codes = given.find_classes(given.check_labels(y_true))
        distributions = {
            of: margin_distribution(_margins_of(of, outputs, codes, classes), thresholds)
            for of, outputs in check_names(scores, "y_score").items()
        }
        return cls(distributions, margin_name=_OUTPUT).plot(ax, **kwargs)


def _check_distribution(name: str, each: MarginDistribution) -> MarginDistribution:
    thresholds, share = (np.asarray(part, dtype=np.float64) for part in each)
    if thresholds.ndim != 1 or not len(thresholds) or thresholds.shape != share.shape:
        raise ValueError(
            f"distributions[{name!r}] has thresholds of shape {thresholds.shape} and share of "
            f"shape {share.shape}. Pass what margin_distribution returns."
        )
    return MarginDistribution(thresholds, share)


def _margins_of(
    name: str, outputs: ArrayLike, codes: np.ndarray, classes: np.ndarray
) -> np.ndarray:
    values = np.asarray(outputs, dtype=np.float64)
    check_consistent_length(codes, values)
    values = values.reshape(len(values), -1)
    n_columns = 1 if len(classes) == 2 else len(classes)
    if len(classes) < 2 or values.shape[1] != n_columns:
        raise ValueError(
            f"y_score, {name}: {values.shape[1]} outputs a row do not go with the classes "
            f"{classes.tolist()} of y_true. Give one for two classes, else one for each."
        )
    return own_margins(values, codes)
