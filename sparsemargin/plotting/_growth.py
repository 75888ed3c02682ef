"""How time grows with size, both axes logarithmic, and with which exponent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._optional_dependencies import check_matplotlib_support

from sparsemargin.evaluation.growth import GrowthExponent, growth_exponent
from sparsemargin.plotting._axes import MOST_TICKS, Display
from sparsemargin.plotting._named import check_names
from sparsemargin.plotting._style import line_style


class GrowthCurve(NamedTuple):
    """Seconds at some sizes, arrays of shape (n_sizes,), and the exponent of their growth."""

    sizes: NDArray[np.float64]
    seconds: NDArray[np.float64]
    exponent: GrowthExponent


class GrowthDisplay(Display):
    """Time against size, both axes logarithmic, with fitted exponents and their standard errors.

    Marks are measured times, lines the fitted power laws; an exponent of 1 is time in proportion
    to size, as the updates in O(nnz) promise.

    Parameters
    ----------
    curves : dict of str to GrowthCurve
        By the names in the legend. Where the exponent has no factor, marks are joined instead.
    size_name : str, default="size"
        What stands below the horizontal axis.
    time_name : str, default="time (s)"

    Attributes
    ----------
    points_, lines_ : list of matplotlib Line2D
        In the order of `curves`.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Raises
    ------
    ValueError
        If there is no curve, or sizes and seconds of one differ in length.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> times = {"epoch": ([1e4, 1e5, 1e6], [0.001, 0.01, 0.1])}
    >>> display = GrowthDisplay.from_measurements(times, size_name="nonzeros")
    >>> print(display.curves["epoch"].exponent)
    1.00 ± 0.00
    """

    def __init__(
        self, curves: Mapping[str, GrowthCurve], *, size_name: str = "size",
        time_name: str = "time (s)",
    ) -> None:  # fmt: skip
        self.curves = {
            name: _check_curve(name, curve) for name, curve in check_names(curves, "curves").items()
        }
        self.size_name = size_name
        self.time_name = time_name

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the points and the fitted lines.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None: those of a new figure.
        **kwargs
            For matplotlib's `Axes.loglog`, for all points and lines.

        Returns
        -------
        self : object
        """
        axes = self._open(ax)
        self.points_, self.lines_ = [], []
        for name, curve in self.curves.items():
            style = line_style(axes, len(curve.sizes), {"markevery": None, **kwargs})
            # Spaces that do not break keep a number and its error on one line.
            label = f"{name}: {curve.exponent}".replace(" ± ", "\u00a0±\u00a0")
            points = {**style, "linestyle": "", "label": label}
            self.points_ += axes.loglog(curve.sizes, curve.seconds, **points)
            self.lines_ += axes.loglog(*_line(curve), **{**style, "marker": "", "label": None})
        axes.set_xlabel(self.size_name)
        axes.set_ylabel(self.time_name)
        _tick_sizes(axes, [curve.sizes for curve in self.curves.values()])
        self._add_legend(axes, title="exponent ± standard error")
        return self

    @classmethod
    def from_measurements(
        cls, measurements: Mapping[str, tuple[ArrayLike, ArrayLike]], *, size_name: str = "size",
        time_name: str = "time (s)", ax: Any = None, **kwargs: Any,
    ) -> Self:  # fmt: skip
        """Fit the exponents of measured times, and draw both.

        Parameters
        ----------
        measurements : dict of str to (sizes, seconds)
            By the names in the legend; pairs of array-likes of one length.
        size_name, time_name
            As for `GrowthDisplay`.
        ax : matplotlib Axes, default=None
        **kwargs
            As for `plot`.

        Returns
        -------
        display : GrowthDisplay

        Raises
        ------
        ValueError
            As `sparsemargin.evaluation.growth_exponent` does.
        """
        check_matplotlib_support(f"{cls.__name__}.from_measurements")
        curves = {}
        for name, (sizes, seconds) in check_names(measurements, "measurements").items():
            exponent = growth_exponent(sizes, seconds)
            curves[name] = GrowthCurve(np.asarray(sizes), np.asarray(seconds), exponent)
        return cls(curves, size_name=size_name, time_name=time_name).plot(ax, **kwargs)


def _check_curve(name: str, curve: GrowthCurve) -> GrowthCurve:
    sizes, seconds = (np.asarray(each, dtype=np.float64) for each in curve[:2])
    if sizes.ndim != 1 or not len(sizes) or sizes.shape != seconds.shape:
        raise ValueError(
            f"curves[{name!r}] has sizes of shape {sizes.shape} and seconds of shape "
            f"{seconds.shape}. Pass vectors of one length."
        )
    return GrowthCurve(sizes, seconds, curve.exponent)


def _line(curve: GrowthCurve) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of the power law, or the points where there is none."""
    slope, _, factor = curve.exponent
    if np.isnan(factor):
        return curve.sizes, curve.seconds
    sizes = curve.sizes[(curve.sizes > 0) & np.isfinite(curve.sizes)]
    ends = np.array([sizes.min(), sizes.max()])
    return ends, factor * ends**slope


def _tick_sizes(axes: Any, all_sizes: list[NDArray[np.float64]]) -> None:
    """Name the sizes that were measured, where all lines have the same few."""
    from matplotlib.ticker import FuncFormatter, NullLocator

    sizes = set(all_sizes[0].tolist())
    if len(sizes) <= MOST_TICKS and all(set(each.tolist()) == sizes for each in all_sizes):
        axes.set_xticks(sorted(sizes))
        axes.xaxis.set_major_formatter(FuncFormatter(_in_thousands))
        axes.xaxis.set_minor_locator(NullLocator())


def _in_thousands(size: float, _: int) -> str:
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if size >= unit:
            return f"{size / unit:,.4g}{name}"
    return f"{size:g}"
