"""How often the same features are chosen over random splits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._optional_dependencies import check_matplotlib_support

from sparsemargin.evaluation.stability import selection_stability
from sparsemargin.evaluation.weights import strongest_features
from sparsemargin.plotting._axes import Display, bar_panel_height, name_bars
from sparsemargin.plotting._named import check_feature_names, listed_names, names_of
from sparsemargin.plotting._style import colours_on


class SelectionStabilityDisplay(Display):
    """In which share of random splits a feature is among the strongest.

    Bars that stay long are features that any part of the rows would have named.

    Parameters
    ----------
    frequencies : array-like of shape (n_features,)
        Shares of the splits, in [0, 1], as `sparsemargin.evaluation.selection_stability` gives
        them.
    feature_names : array-like of shape (n_features,), default=None
        None: the numbers of the columns.
    agreement : float, default=None
        Told above the bars: mean Jaccard index of the splits' strongest features.
    top : int, default=20
        How many features are drawn, those chosen most often.

    Attributes
    ----------
    bars_ : matplotlib BarContainer
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Raises
    ------
    ValueError
        If a frequency is not in [0, 1], or there are not as many names as frequencies.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> display = SelectionStabilityDisplay([0.2, 1.0, 0.0], feature_names=["a", "b", "c"]).plot()
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['b', 'a']
    """

    def __init__(
        self, frequencies: ArrayLike, *, feature_names: Sequence[str] | None = None,
        agreement: float | None = None, top: int = 20,
    ) -> None:  # fmt: skip
        self.frequencies = np.asarray(frequencies, dtype=np.float64)
        self.feature_names = feature_names
        self.agreement = agreement
        self.top = top
        sound = (self.frequencies >= 0) & (self.frequencies <= 1)
        if self.frequencies.ndim != 1 or not sound.all():
            raise ValueError("frequencies must be a vector of shares from 0 to 1.")
        if top < 1:
            raise ValueError(f"top must be 1 or more, got {top}.")
        check_feature_names(feature_names, len(self.frequencies))

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None: those of a new figure.
        **kwargs
            For matplotlib's `Axes.barh`.

        Returns
        -------
        self : object
        """
        features = strongest_features(self.frequencies, self.top).tolist()
        height = bar_panel_height(len(features))
        axes = self._open_panels(ax, 1, width=6.4, height=height)[0]
        style = {"color": colours_on(axes)[0], **kwargs}
        self.bars_ = axes.barh(np.arange(len(features)), 100 * self.frequencies[features], **style)
        name_bars(axes, names_of(features, self.feature_names), len(features))
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
        """Fit on the training part of every split, and draw what was chosen how often.

        Parameters
        ----------
        estimator : classifier
            Clones of it are fitted; they must have `coef_`.
        X : {sparse matrix, array-like} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        splits : iterable of (train, test), cross-validation splitter, or int, default=10
            As `sparsemargin.evaluation.random_splits` makes them.
        top : int, default=20
            How many features of a split count as chosen, and how many are drawn.
        label : object, default=None
            The class whose weights are looked at; needed where there are more than two.
        feature_names : array-like of shape (n_features,) or fitted vectorizer, default=None
            None: the columns of X where it is a data frame, or their numbers.
        ax : matplotlib Axes, default=None
        **kwargs
            As for `plot`.

        Returns
        -------
        display : SelectionStabilityDisplay

        Raises
        ------
        ValueError
            As `sparsemargin.evaluation.selection_stability` does; or if there are not as many
            names as features.
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        found = selection_stability(estimator, X, y, splits, top=top, label=label)
        names = listed_names(feature_names)
        if names is None:
            names = getattr(X, "columns", None)
        display = cls(found.frequencies, feature_names=names, agreement=found.agreement, top=top)
        return display.plot(ax, **kwargs)
