"""The certificate of a margin, closing over the passes of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._optional_dependencies import check_matplotlib_support

from sparsemargin.evaluation.curves import certificate_over_passes
from sparsemargin.plotting._axes import Display
from sparsemargin.plotting._named import chosen_classes
from sparsemargin.plotting._style import line_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import FillBetweenPolyCollection
    from matplotlib.lines import Line2D

_BELOW = 0.25
_MARGIN, _BOUND = "margin reached", "none is above"


class _Column(NamedTuple):
    """What is drawn of a class; the name is None where one vector serves all."""

    name: str | None
    margins: NDArray[np.float64]
    upper_bounds: NDArray[np.float64]


class CertificateDisplay(Display):
    """The margin reached after every pass, and the bound that no vector's margin exceeds.

    The largest margin there is lies in the band between the two.

    Parameters
    ----------
    passes : array-like of shape (n_passes,)
        Epochs by then.
    margins, upper_bounds : array-like of shape (n_passes,) or (n_passes, n_classes)
        `margin_` and `margin_upper_bound_` by then.
    classes : array-like of shape (n_classes,), default=None
        Whose columns these are; needed where there are columns.

    Attributes
    ----------
    margin_lines_, bound_lines_ : list of matplotlib Line2D
        One, or one for each class.
    band_ : matplotlib PolyCollection or None
        Between the two lines, where there is one vector.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Raises
    ------
    ValueError
        If there is no pass, or shapes do not fit together.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sparsemargin import MaxMarginClassifier
    >>> from sparsemargin.datasets import make_alma_target
    >>> X, y, *_ = make_alma_target(200, 1, random_state=0)
    >>> display = CertificateDisplay.from_estimator(MaxMarginClassifier(), X, y, n_passes=20)
    >>> display.margins.shape == display.upper_bounds.shape == display.passes.shape
    True
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
            raise ValueError("passes is empty. Pass what certificate_over_passes returns.")
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
            None: those of a new figure.
        classes : sequence, default=None
            Which classes to draw. None: all.
        **kwargs
            For matplotlib's `Axes.plot`, for all lines; their dashes stay, since these tell a bound
            from what was reached.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a class is unknown.
        """
        columns = self._columns(classes)
        axes = self._open(ax)
        self.margin_lines_: list[Line2D] = []
        self.bound_lines_: list[Line2D] = []
        self.band_: FillBetweenPolyCollection | None = None
        for column in columns:
            self._draw(axes, column, line_style(axes, len(self.passes), kwargs))
        # A margin below 0 says no more than that some row is wrong.
        floor = -_BELOW * max(column.upper_bounds.max() for column in columns)
        if axes.get_ylim()[0] < floor and any(column.margins[-1] > 0 for column in columns):
            axes.set_ylim(bottom=floor, auto=None)
        axes.set_xlabel("passes over the rows")
        axes.set_ylabel("margin")
        title = None if self.classes is None else "class; dashed: none is above"
        self._add_legend(axes, title=title)
        return self

    def _draw(self, axes: Axes, column: _Column, style: dict[str, Any]) -> None:
        names = (_MARGIN, _BOUND) if column.name is None else (column.name, None)
        solid = {**style, "linestyle": "-"}
        dashed = {**style, "marker": "", "linestyle": "--"}
        self.margin_lines_ += axes.plot(self.passes, column.margins, label=names[0], **solid)
        self.bound_lines_ += axes.plot(self.passes, column.upper_bounds, label=names[1], **dashed)
        if column.name is None:
            self.band_ = axes.fill_between(
                self.passes, column.margins, column.upper_bounds, alpha=0.15, linewidth=0,
                color=self.margin_lines_[0].get_color(),
            )  # fmt: skip

    def _columns(self, classes: Sequence[Any] | None) -> list[_Column]:
        if self.classes is None:
            if classes is not None:
                raise ValueError("classes: one vector serves all classes here. Leave classes out.")
            return [_Column(None, self.margins, self.upper_bounds)]
        known = self.classes.tolist()
        places = [known.index(label) for label in chosen_classes(classes, known)]
        return [_Column(str(known[k]), self.margins[:, k], self.upper_bounds[:, k]) for k in places]

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, n_passes: float | None = None,
        classes: Sequence[Any] | None = None, ax: Any = None, **kwargs: Any,
    ) -> Self:  # fmt: skip
        """Fit a clone of an estimator, and draw how its certificate closes.

        Parameters
        ----------
        estimator : classifier of first order
            Unfitted; learns with ``hypothesis="last"``, of which the certificate is.
        X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        n_passes : float or None, default=None
            Instead of the estimator's `max_iter`.
        classes : sequence, default=None
            Which classes to draw. None: all.
        ax : matplotlib Axes, default=None
        **kwargs
            As for `plot`.

        Returns
        -------
        display : CertificateDisplay

        Raises
        ------
        ValueError
            As `sparsemargin.evaluation.certificate_over_passes` does.
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        curve = certificate_over_passes(estimator, X, y, n_passes=n_passes)
        display = cls(curve.passes, curve.margins, curve.upper_bounds, classes=curve.classes)
        return display.plot(ax, classes=classes, **kwargs)
