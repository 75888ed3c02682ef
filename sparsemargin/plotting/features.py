"""The features of largest weight for each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cbook import normalize_kwargs
from matplotlib.container import BarContainer
from matplotlib.patches import Rectangle
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from sparsemargin._engine.numerics.norms import vectors_of
from sparsemargin.evaluation.vectors import coef_of, strongest_features
from sparsemargin.models.pipelines import check_names, model_and_names
from sparsemargin.plotting.display import Display, by_name, chosen
from sparsemargin.plotting.style import colours_on, ground_of, neutral

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
        panels = self._open(ax, n, (6.4 if n == 1 else 4.2, panel_height(tallest)))
        self.bars_: list[BarContainer] = []
        for axes, (label, (names, weights)) in zip(panels, self.weights.items(), strict=True):
            for_it, against = colours_on(axes)[:2]
            style = {
                "color": np.where(weights < 0, against, for_it).tolist(),
                "edgecolor": ground_of(axes),
                "hatch": [_HATCH if weight < 0 else "" for weight in weights],
            }
            self.bars_.append(draw_bars(axes, names, weights, tallest, style, kwargs))
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


def _names_of(columns: NDArray[np.intp], names: Sequence[str] | None) -> list[str]:
    return [f"feature {j}" if names is None else str(names[j]) for j in columns.tolist()]


def panel_height(n_bars: int) -> float:
    """Height in inches of a panel with so many bars."""
    return 1.2 + 0.24 * max(n_bars, _FEWEST_BARS)


def draw_bars(
    axes: Axes, names: Sequence[str], widths: Any, n_rows: int, style: dict[str, Any],
    wanted: dict[str, Any],
) -> BarContainer:  # fmt: skip
    """Draw horizontal bars from top to bottom, with room for n_rows bars, and their names."""
    positions, longest = np.arange(len(names)), _LONGEST_NAME
    bars = axes.barh(positions, widths, **{**style, **normalize_kwargs(wanted, Rectangle)})
    short = [name if len(name) <= longest else f"{name[: longest - 1]}…" for name in names]
    # Names may contain dollar signs.
    axes.set_yticks(positions, short, parse_math=False)
    axes.set_ylim(max(n_rows, _FEWEST_BARS) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    return bars
