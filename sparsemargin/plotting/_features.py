"""The features of largest weight, class by class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._optional_dependencies import check_matplotlib_support

from sparsemargin.evaluation.weights import coef_of, strongest_features
from sparsemargin.models._rows import vectors_of
from sparsemargin.plotting._axes import Display, bar_panel_height, name_bars
from sparsemargin.plotting._named import (
    check_feature_names,
    check_fitted,
    check_names,
    chosen_classes,
    listed_names,
    names_of,
)
from sparsemargin.plotting._style import colours_on, ground_of, neutral

_HATCH = "////"


class FeatureWeights(NamedTuple):
    """Some features of a class, the strongest first: names and weights, of one length."""

    names: Sequence[str]
    weights: NDArray[np.float64]


class StrongestFeaturesDisplay(Display):
    """Features of largest absolute weight, a panel of horizontal bars for each class.

    Bars to the right speak for the class, hatched ones to the left against it; of two classes the
    panel is that of the second.

    Parameters
    ----------
    weights : dict of object to FeatureWeights
        By class; a pair of names and weights each, the strongest first.

    Attributes
    ----------
    bars_ : list of matplotlib BarContainer
        One for each class.
    ax_ : matplotlib Axes, or ndarray of shape (n_classes,) of them
    figure_ : matplotlib Figure

    Raises
    ------
    ValueError
        If there is no class, or names and weights of one differ in length.

    See Also
    --------
    sparsemargin.evaluation.strongest_features : Which they are.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sparsemargin import PNormPerceptron
    >>> X = np.array([[1.0, 0.0, 0.3], [0.0, 1.0, 0.3]])
    >>> model = PNormPerceptron(max_iter=1).fit(X, ["ham", "spam"])
    >>> names = ["lunch", "winner", "today"]
    >>> display = StrongestFeaturesDisplay.from_estimator(model, feature_names=names, top=1)
    >>> display.ax_.get_title()
    'class spam'
    """

    def __init__(self, weights: Mapping[Any, FeatureWeights]) -> None:
        self.weights = {
            label: _check_weights(label, *each)
            for label, each in check_names(weights, "weights").items()
        }

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib Axes, or array-like of as many as there are classes, default=None
            None: those of a new figure, three panels a row.
        **kwargs
            For matplotlib's `Axes.barh`, for all panels.

        Returns
        -------
        self : object
        """
        tallest = max(len(each.names) for each in self.weights.values())
        n, height = len(self.weights), bar_panel_height(tallest)
        panels = self._open_panels(ax, n, width=6.4 if n == 1 else 4.2, height=height)
        self.bars_ = []
        for axes, (label, each) in zip(panels, self.weights.items(), strict=True):
            self.bars_.append(_draw(axes, each, kwargs))
            name_bars(axes, list(each.names), tallest)
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
        estimator : fitted classifier with `coef_`
            Of this library or any other.
        feature_names : array-like of shape (n_features,) or fitted vectorizer, default=None
            None: `feature_names_in_`, or the numbers of the columns.
        top : int, default=10
            How many features of each class.
        classes : sequence, default=None
            Which classes. None: all; of two, the second.
        ax : matplotlib Axes, or array-like of as many as there are classes, default=None
        **kwargs
            As for `plot`.

        Returns
        -------
        display : StrongestFeaturesDisplay

        Raises
        ------
        ValueError
            If the model is not fitted or its `coef_` has no vector for each class, a class is
            unknown, `top` is less than 1, or there are not as many names as features.
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        if top < 1:
            raise ValueError(f"top must be 1 or more, got {top}.")
        vectors = _vectors_by_class(estimator, classes)
        names = listed_names(feature_names)
        if names is None:
            names = getattr(estimator, "feature_names_in_", None)
        check_feature_names(names, estimator.coef_.shape[1])
        return cls({
            label: _strongest(vector, names, top) for label, vector in vectors.items()
        }).plot(ax, **kwargs)  # fmt: skip


def _check_weights(label: str, names: Sequence[str], weights: Any) -> FeatureWeights:
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (len(names),):
        raise ValueError(
            f"weights[{label!r}] has {len(names)} names, but weights of shape {values.shape}. "
            "Give one name for each weight."
        )
    return FeatureWeights([str(name) for name in names], values)


def _vectors_by_class(model: Any, classes: Sequence[Any] | None) -> dict[Any, NDArray[np.float64]]:
    """The rows of `coef_` that were asked for."""
    check_fitted(model, type(model).__name__)
    coef = coef_of(model)
    # Of two classes there is one vector, for the second.
    known = list(model.classes_)[-coef.shape[0] :]
    vectors = dict(zip(known, vectors_of(coef), strict=True))
    return {label: vectors[label] for label in chosen_classes(classes, known)}


def _strongest(
    weights: NDArray[np.float64], names: Sequence[str] | None, top: int
) -> FeatureWeights:
    places = strongest_features(weights, top)
    return FeatureWeights(names_of(places.tolist(), names), weights[places])


def _draw(axes: Any, each: FeatureWeights, bar_kw: dict[str, Any]) -> Any:
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.patches import Rectangle

    for_it, against = colours_on(axes)[:2]
    weights = each.weights
    style = {
        "color": np.where(weights < 0, against, for_it).tolist(),
        "edgecolor": ground_of(axes),
        "hatch": [_HATCH if weight < 0 else "" for weight in weights],
        **normalize_kwargs(bar_kw, Rectangle),
    }
    bars = axes.barh(np.arange(len(weights)), weights, **style)
    axes.axvline(0, **neutral(axes))
    axes.locator_params(axis="x", nbins=5)
    axes.set_xlabel("weight")
    return bars
