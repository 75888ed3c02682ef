"""How time grows with size, both axes logarithmic, and with which exponent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsemargin.evaluation.growth import GrowthExponent, growth_exponent
from sparsemargin.plotting.display import MOST_TICKS, Display, by_name, check_vectors
from sparsemargin.plotting.style import line_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D


class GrowthCurve(NamedTuple):
    """Seconds at some sizes, arrays of shape (n_sizes,), and the exponent of their growth."""

    sizes: NDArray[np.float64]
    seconds: NDArray[np.float64]
    exponent: GrowthExponent


class GrowthDisplay(Display):
    """Time against size, both axes logarithmic, with fitted exponents and their standard errors.

    Marks are measured times, lines the fitted power laws, drawn by matplotlib's `Axes.loglog`; an
    exponent of 1 is time in proportion to size, as the updates in O(nnz) promise.

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

    Raises
    ------
    ValueError
        If there is no curve, or sizes and seconds of one differ in length.
    """

    def __init__(
        self, curves: Mapping[str, GrowthCurve], *, size_name: str = "size",
        time_name: str = "time (s)",
    ) -> None:  # fmt: skip
        self.size_name = size_name
        self.time_name = time_name
        self.curves = {}
        for name, (sizes, seconds, exponent) in by_name(curves, "curves").items():
            measured = {"sizes": sizes, "seconds": seconds}
            x, y = check_vectors(f"curves[{name!r}]", measured, "vectors of one length")
            self.curves[name] = GrowthCurve(x, y, exponent)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        (axes,) = self._open(ax)
        self.points_: list[Line2D] = []
        self.lines_: list[Line2D] = []
        for name, curve in self.curves.items():
            style = line_style(axes, len(curve.sizes), {"markevery": None, **kwargs})
            # Spaces that do not break keep a number and its error on one line.
            label = f"{name}: {curve.exponent}".replace(" ± ", "\u00a0±\u00a0")
            points = {**style, "linestyle": "", "label": label}
            self.points_ += axes.loglog(curve.sizes, curve.seconds, **points)
            self.lines_ += axes.loglog(*_line(curve), **{**style, "marker": "", "label": None})
        axes.set_xlabel(self.size_name)
        axes.set_ylabel(self.time_name)
        _tick_sizes(axes, [set(curve.sizes.tolist()) for curve in self.curves.values()])
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
            By the names in the legend; as for `sparsemargin.evaluation.growth_exponent`, whose
            errors are raised.
        size_name, time_name
            As for `GrowthDisplay`.
        ax, **kwargs
            As for `plot`.

        Returns
        -------
        display : GrowthDisplay
        """
        cls._measuring("from_measurements")
        curves = {
            name: GrowthCurve(np.asarray(x), np.asarray(y), growth_exponent(x, y))
            for name, (x, y) in by_name(measurements, "measurements").items()
        }
        return cls(curves, size_name=size_name, time_name=time_name).plot(ax, **kwargs)


def _line(curve: GrowthCurve) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of the power law, or the points where there is none."""
    slope, _, factor = curve.exponent
    if np.isnan(factor):
        return curve.sizes, curve.seconds
    sizes = curve.sizes[(curve.sizes > 0) & np.isfinite(curve.sizes)]
    ends = np.array([sizes.min(), sizes.max()])
    return ends, factor * ends**slope


def _tick_sizes(axes: Axes, sizes: list[set[float]]) -> None:
    """Name the sizes that were measured, where all lines have the same few."""
    from matplotlib.ticker import EngFormatter, NullLocator

    if len(sizes[0]) <= MOST_TICKS and all(each == sizes[0] for each in sizes):
        axes.set_xticks(sorted(sizes[0]))
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.xaxis.set_minor_locator(NullLocator())
