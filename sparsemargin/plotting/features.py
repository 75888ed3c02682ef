"""The features of largest weight for each class, and their stability over random splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from sparsemargin._engine.numerics.norms import vectors_of
from sparsemargin.evaluation.stability import selection_stability
from sparsemargin.evaluation.weights import coef_of, strongest_features
from sparsemargin.models.pipelines import (
    check_names,
    model_and_names,
    names_out_of,
    parts_of,
)
from sparsemargin.plotting.display import Display, by_name, chosen
from sparsemargin.plotting.style import colours_on, ground_of, neutral

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer

_HATCH = "////"
_LONGEST_NAME = 30
_FEWEST_BARS = 3
_MOST_PANELS = 12


class FeatureWeights(NamedTuple):
    """Some features of a class, strongest first: names and weights of equal length."""

    names: Sequence[str]
    weights: NDArray[np.float64]


class StrongestFeaturesDisplay(Display):
    """Features of largest absolute weight, a panel of horizontal bars for each class.

    The bars are drawn by matplotlib's `Axes.barh`. Bars to the right are evidence for the class,
    and hatched bars to the left against it. With two classes, the panel shows the second.

    Parameters
    ----------
    weights : dict of object to FeatureWeights
        A pair of names and weights for each class, strongest first.

    Attributes
    ----------
    bars_ : list of matplotlib BarContainer
        One for each class.

    Raises
    ------
    ValueError
        If there is no class, or names and weights of a class differ in length.
    """

    def __init__(self, weights: Mapping[Any, FeatureWeights]) -> None:
        self.weights: dict[str, FeatureWeights] = {}
        for label, (names, given) in by_name(weights, "weights").items():
            values = np.asarray(given, dtype=np.float64)
            if values.shape != (len(names),):
                raise ValueError(
                    f"weights[{label!r}] has {len(names)} names, but weights of shape "
                    f"{values.shape}. Give one name for each weight."
                )
            self.weights[label] = FeatureWeights([str(name) for name in names], values)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        tallest = max(len(each.names) for each in self.weights.values())
        n = len(self.weights)
        panels = self._open(ax, n, (6.4 if n == 1 else 4.2, _panel_height(tallest)))
        self.bars_: list[BarContainer] = []
        for axes, (label, (names, weights)) in zip(panels, self.weights.items(), strict=True):
            for_it, against = colours_on(axes)[:2]
            style = {
                "color": np.where(weights < 0, against, for_it).tolist(),
                "edgecolor": ground_of(axes),
                "hatch": [_HATCH if weight < 0 else "" for weight in weights],
            }
            self.bars_.append(_draw_bars(axes, names, weights, tallest, style, kwargs))
            axes.axvline(0, **neutral(axes))
            axes.locator_params(axis="x", nbins=5)
            axes.set_xlabel("weight")
            axes.set_title(f"class {label}", parse_math=False)
        return self

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, feature_names: Any = None, top: int = 10,
        classes: Sequence[Any] | None = None, ax: Any = None, **kwargs: Any,
    ) -> Self:  # fmt: skip
        """Draw the strongest features of a fitted linear model.

        Parameters
        ----------
        estimator : fitted classifier with `coef_`, or pipeline that ends in one
            The model may be from any library.
        feature_names : array-like of shape (n_features,) or fitted vectorizer, default=None
            Names of the features. None: the output names of the pipeline's other steps, or
            `feature_names_in_`, or column numbers.
        top : int, default=10
            Number of features of each class.
        classes : sequence, default=None
            Classes to draw. None: all; with two classes, the second. A new figure shows at most the
            12 classes whose strongest features have the largest weights.
        $drawn

        Raises
        ------
        ValueError
            If the model is not fitted or its `coef_` has no vector for each class, a class is
            unknown, `top` is less than 1, or there are not as many names as features.
        """
        cls._measuring()
        if top < 1:
            raise ValueError(f"top must be 1 or more, got {top}.")
        check_is_fitted(estimator)
        estimator, names = model_and_names(estimator, feature_names)
        coef = coef_of(estimator)
        names = check_names(names, coef.shape[1])
        # With two classes there is one vector, for the second class.
        known = list(estimator.classes_)[-coef.shape[0] :]
        labels, weights = chosen("classes", classes, known), {}
        if classes is None and ax is None and len(labels) > _MOST_PANELS:
            largest = np.array([np.abs(vector).max() for vector in vectors_of(coef)])
            heaviest = np.argsort(-largest, kind="stable")[:_MOST_PANELS]
            labels = [known[i] for i in sorted(heaviest)]
        for label, vector in zip(known, vectors_of(coef), strict=True):
            if label in labels:
                columns = strongest_features(vector, top)
                weights[label] = FeatureWeights(_names_of(columns, names), vector[columns])
        display = cls({label: weights[label] for label in labels}).plot(ax, **kwargs)
        if classes is None and len(labels) < len(known):
            display.figure_.suptitle(f"{len(labels)} of {len(known)} classes")
        return display


class SelectionStabilityDisplay(Display):
    """Share of random splits in which a feature is among the strongest.

    The bars are drawn by matplotlib's `Axes.barh`. A long bar is a feature that does not depend on
    the choice of the training rows.

    Parameters
    ----------
    frequencies : array-like of shape (n_features,)
        Shares of the splits, in [0, 1], as returned by
        `sparsemargin.evaluation.selection_stability`.
    feature_names : array-like of shape (n_features,) or fitted vectorizer, default=None
        Names of the features. None: column numbers.
    agreement : float, default=None
        Mean Jaccard index of the strongest features of two splits, shown above the bars.
    top : int, default=20
        Number of features to draw, those selected most often.

    Attributes
    ----------
    bars_ : matplotlib BarContainer

    Raises
    ------
    ValueError
        If a frequency is not in [0, 1], or there are not as many names as frequencies.
    """

    def __init__(
        self, frequencies: ArrayLike, *, feature_names: Any = None, agreement: float | None = None,
        top: int = 20,
    ) -> None:  # fmt: skip
        self.frequencies = np.asarray(frequencies, dtype=np.float64)
        self.agreement = agreement
        self.top = top
        sound = (self.frequencies >= 0) & (self.frequencies <= 1)
        if self.frequencies.ndim != 1 or not sound.all():
            raise ValueError("frequencies must be a vector of shares from 0 to 1.")
        if top < 1:
            raise ValueError(f"top must be 1 or more, got {top}.")
        self.feature_names = check_names(feature_names, len(self.frequencies))

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        columns = strongest_features(self.frequencies, self.top)
        (axes,) = self._open(ax, 1, (6.4, _panel_height(len(columns))))
        percent, names = 100 * self.frequencies[columns], _names_of(columns, self.feature_names)
        style = {"color": colours_on(axes)[0]}
        self.bars_ = _draw_bars(axes, names, percent, len(columns), style, kwargs)
        axes.set_xlim(0, 100)
        axes.set_xlabel("splits with the feature among the strongest (%)")
        if self.agreement is not None:
            axes.set_title(f"agreement of the splits (mean Jaccard index): {self.agreement:.2f}")
        return self

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, splits: Any = 10, top: int = 20, label: Any = None,
        feature_names: Any = None, ax: Any = None, **kwargs: Any,
    ) -> Self:  # fmt: skip
        """Fit on the training part of every split, and draw how often features are selected.

        Parameters
        ----------
        estimator, X, y, splits, label
            See `sparsemargin.evaluation.selection_stability`, which may raise errors.
        top : int, default=20
            Number of features of a split that count as selected, and number of features to draw.
        feature_names : array-like of shape (n_features,) or fitted vectorizer, default=None
            Names of the features. None: the output names of the pipeline's other steps, or the
            columns of X if it is a data frame, or column numbers.
        $drawn
        """
        cls._measuring()
        found = selection_stability(estimator, X, y, splits, top=top, label=label)
        names, before = feature_names, parts_of(estimator)[0]
        if names is None and before is None:
            names = getattr(X, "columns", None)
        elif names is None:
            names = names_out_of(clone(before).fit(X, y))
        display = cls(found.frequencies, feature_names=names, agreement=found.agreement, top=top)
        return display.plot(ax, **kwargs)


def _names_of(columns: NDArray[np.intp], names: Sequence[str] | None) -> list[str]:
    return [f"feature {j}" if names is None else str(names[j]) for j in columns.tolist()]


def _panel_height(n_bars: int) -> float:
    """Height in inches of a panel with so many bars."""
    return 1.2 + 0.24 * max(n_bars, _FEWEST_BARS)


def _draw_bars(
    axes: Axes, names: Sequence[str], widths: Any, n_rows: int, style: dict[str, Any],
    wanted: dict[str, Any],
) -> BarContainer:  # fmt: skip
    """Draw horizontal bars from top to bottom, with room for n_rows bars, and their names."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.patches import Rectangle

    positions, longest = np.arange(len(names)), _LONGEST_NAME
    bars = axes.barh(positions, widths, **{**style, **normalize_kwargs(wanted, Rectangle)})
    short = [name if len(name) <= longest else f"{name[: longest - 1]}…" for name in names]
    # Names may contain dollar signs.
    axes.set_yticks(positions, short, parse_math=False)
    axes.set_ylim(max(n_rows, _FEWEST_BARS) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    return bars
