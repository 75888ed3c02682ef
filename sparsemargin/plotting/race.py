"""The settings that a fit has raced, and what each came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sparsemargin.evaluation.pipelines import parts_of
from sparsemargin.plotting.display import Display, chosen
from sparsemargin.plotting.style import line_style

if TYPE_CHECKING:
    from matplotlib.lines import Line2D

_RING = 13


class CandidatesDisplay(Display):
    """Errors, one step ahead, of the settings that were raced: a row for each class.

    Marks of matplotlib's `Axes.plot`, one for each setting; a ring is about the one that the class
    keeps. Of two classes the row is that of the second.

    Parameters
    ----------
    candidates : dict of str to array
        What `candidates_` of an `AROWClassifier` tells.
    classes : sequence of length n_classes
        Whose rows these are.

    Attributes
    ----------
    marks_ : list of matplotlib Line2D
        One for each setting.
    rings_ : matplotlib Line2D

    Raises
    ------
    ValueError
        If there are not as many classes as rows of errors.
    """

    def __init__(self, candidates: Mapping[str, Any], classes: Sequence[Any]) -> None:
        self.candidates = dict(candidates)
        self.classes = np.asarray(classes).tolist()
        self._percent = 100 * np.atleast_2d(candidates["progressive_error"])
        if len(self.classes) != len(self._percent):
            raise ValueError(
                f"{len(self.classes)} classes do not go with errors of {len(self._percent)}. Name "
                "each; of two, the second."
            )

    def plot(self, ax: Any = None, *, classes: Sequence[Any] | None = None, **kwargs: Any) -> Self:
        """Draw the errors.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None: those of a new figure.
        classes : sequence, default=None
            Which classes to draw. None: all.
        **kwargs
            For the marks of all settings.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a class is unknown.
        """
        names = chosen("classes", classes, self.classes)
        rows = [self.classes.index(label) for label in names]
        places = np.arange(len(rows))
        (axes,) = self._open(ax, 1, (6.4, 1.6 + 0.26 * max(len(rows), 3)))
        self.marks_: list[Line2D] = []
        settings = zip(self.candidates["r"], self.candidates["max_loss"], strict=True)
        for column, (r, most) in zip(self._percent[rows].T, settings, strict=True):
            label = f"r = {r:g}, max_loss = {most:g}"
            style = {**line_style(axes, 1, kwargs), "linestyle": "", "label": label}
            self.marks_ += axes.plot(column, places, **style)
        kept = self._percent[rows, np.atleast_1d(self.candidates["best"])[rows]]
        (self.rings_,) = axes.plot(
            kept, places, "o", label="kept", markersize=_RING, markerfacecolor="none",
            markeredgecolor=axes.xaxis.label.get_color(),
        )  # fmt: skip
        axes.set_yticks(places, [str(name) for name in names], parse_math=False)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlabel("error one step ahead (%)")
        axes.set_ylabel("class")
        self._add_legend(axes)
        return self

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, classes: Sequence[Any] | None = None, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw what a fitted model's settings came to.

        Parameters
        ----------
        estimator : fitted AROWClassifier, or pipeline that ends in one
            Of ``r="auto"``, as ``fit_csr(X, y)`` makes it.
        classes
            As for `plot`.
        $drawn

        Raises
        ------
        ValueError
            If the model has raced no settings, or a class is unknown.
        """
        cls._measuring()
        check_is_fitted(estimator)
        _, estimator = parts_of(estimator)
        raced = getattr(estimator, "candidates_", None)
        if raced is None:
            raise ValueError(
                f"This {type(estimator).__name__} has raced no settings. Pass one with r='auto', "
                "as fit_csr(X, y) makes it."
            )
        known = estimator.classes_[-len(np.atleast_1d(raced["best"])) :]
        return cls(raced, known).plot(ax, classes=classes, **kwargs)
