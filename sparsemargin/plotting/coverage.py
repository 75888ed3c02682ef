"""Plots of the error among accepted rows against coverage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from sparsemargin.estimators.rejector import Rejector
from sparsemargin.estimators.validation import check_labels
from sparsemargin.models.fitted.new_classes import joined_classes
from sparsemargin.models.fitted.outputs import confidence_of
from sparsemargin.models.pipelines import labels_for
from sparsemargin.plotting.display import Display, by_name, estimators_by_name, label_for
from sparsemargin.plotting.style import line_style

# Least number of accepted rows at which a curve begins. The error of fewer rows is mostly chance.
_LEAST_ACCEPTED = 10


class CoverageCurve(NamedTuple):
    """Coverages in increasing order, and the error among the accepted rows at each of them.

    `chosen` is the pair at a threshold, None without a threshold or without accepted rows."""

    coverage: NDArray[np.float64]
    error: NDArray[np.float64]
    chosen: tuple[float, float] | None = None


class CoverageDisplay(Display):
    """Error among accepted rows against coverage, drawn by matplotlib's `Axes.plot`.

    Coverage is the share of rows that are accepted, those of largest confidence first. At a
    coverage of 1, the height of a line is the error of the classifier. A large point is at the
    threshold of a `Rejector`.

    Parameters
    ----------
    curves : dict of str to CoverageCurve
        Coverages, errors, and optionally the pair at a threshold, by the names in the legend.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        In the order of `curves`.
    points_ : list of matplotlib Line2D
        The large points, one for each curve that has one.

    Raises
    ------
    ValueError
        If there is no curve, or coverages and errors of one differ in length.
    """

    def __init__(self, curves: Mapping[str, CoverageCurve]) -> None:
        self.curves: dict[str, CoverageCurve] = {}
        for name, (coverage, error, *chosen) in by_name(curves, "curves").items():
            x, y = (np.asarray(each, dtype=np.float64) for each in (coverage, error))
            if x.ndim != 1 or not x.size or x.shape != y.shape:
                raise ValueError(
                    f"curves[{name!r}] has coverages of shape {x.shape} and errors of shape "
                    f"{y.shape}. Pass one error for each coverage."
                )
            self.curves[name] = CoverageCurve(x, y, *chosen)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        (axes,) = self._open(ax)
        self.lines_: list[Line2D] = []
        self.points_: list[Line2D] = []
        for name, (coverage, error, chosen) in self.curves.items():
            style = line_style(axes, len(coverage), kwargs)
            self.lines_ += axes.plot(coverage, error, label=label_for(name), **style)
            if chosen is not None:
                look = {"marker": style["marker"], "markersize": 11, "color": style["color"]}
                self.points_ += axes.plot(*([each] for each in chosen), linestyle="", **look)
        axes.set_xlabel("coverage (share of accepted rows)")
        axes.set_ylabel("error among accepted rows")
        axes.set_ylim(bottom=0.0, auto=None)
        self._add_legend(axes)
        return self

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Predict held-out rows by one or more fitted models, and draw their curves.

        Parameters
        ----------
        estimator : fitted Rejector, classifier or pipeline, or dict of str to such
            The confidence of a classifier from any library is the output of the predicted class:
            that of `decision_function`, otherwise of `predict_proba`.
        X : input of the estimator
            Rows on which it was not trained.
        y : array-like of shape (n_samples,)
            Classes, or as for `score` of the estimator.
        $drawn

        Raises
        ------
        ValueError
            If an estimator is not fitted, or y is not one class for each row.
        """
        curves = {}
        for name, model in estimators_by_name(estimator).items():
            unfitted = f"The estimator {name!r} is not fitted. Call fit before plotting."
            check_is_fitted(model, msg=unfitted)
            confidence, predicted = _answers(model, X)
            labels = check_labels(labels_for(model, X, y))
            joined_classes(check_labels(predicted), labels)  # refuses labels of another type
            check_consistent_length(predicted, labels)
            threshold = model.threshold_ if isinstance(model, Rejector) else None
            curves[name] = _curve(confidence, predicted != labels, threshold)
        return cls(curves).plot(ax, **kwargs)


def _answers(model: Any, X: Any) -> tuple[NDArray[np.float64], Any]:
    """Return the confidence of every row, and its predicted class even if it is rejected."""
    if isinstance(model, Rejector):
        return model.confidence(X), model.estimator_.predict(X)
    answer = getattr(model, "decision_function", None) or model.predict_proba
    outputs = np.asarray(answer(X), dtype=np.float64)
    return confidence_of(outputs.reshape(len(outputs), -1)), np.asarray(model.predict(X))


def _curve(confidence: Any, wrong: Any, threshold: float | None) -> CoverageCurve:
    order = np.argsort(-confidence, kind="stable")
    accepted = np.arange(1, len(order) + 1)
    errors = np.cumsum(wrong[order]) / accepted
    # Rows of equal confidence are accepted together.
    kept = np.append(np.diff(confidence[order]) != 0, True)
    kept &= accepted >= min(_LEAST_ACCEPTED, len(order))
    chosen = None
    if threshold is not None and (above := confidence >= threshold).any():
        chosen = float(above.mean()), float(wrong[above].mean())
    return CoverageCurve(accepted[kept] / len(order), errors[kept], chosen)
