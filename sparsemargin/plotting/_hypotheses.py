"""Test error of four hypotheses over one run: Freund & Schapire (1999), Figure 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._optional_dependencies import check_matplotlib_support

from sparsemargin.evaluation.hypotheses import HypothesisErrors, hypothesis_errors
from sparsemargin.plotting._axes import Display, scale_epochs
from sparsemargin.plotting._style import line_style

_SHOWN = ("random", "last", "average", "vote")


class HypothesisErrorsDisplay(Display):
    """Test error of the last, the averaged, the voted and a random hypothesis over one run.

    Figure 2 of Freund & Schapire (1999).

    Parameters
    ----------
    errors : HypothesisErrors
        As `sparsemargin.evaluation.hypothesis_errors` gives them.

    Attributes
    ----------
    lines_ : dict of str to matplotlib Line2D
        By hypothesis.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sparsemargin import PNormPerceptron
    >>> from sparsemargin.datasets import make_alma_target
    >>> X, y, X_test, y_test, _ = make_alma_target(400, 300, noise=0.1, random_state=0)
    >>> model = PNormPerceptron(hypothesis="vote", max_iter=3, random_state=0).fit(X, y)
    >>> display = HypothesisErrorsDisplay.from_estimator(model, X_test, y_test)
    >>> list(display.lines_)
    ['random', 'last', 'average', 'vote']
    """

    def __init__(self, errors: HypothesisErrors) -> None:
        self.errors = errors

    def plot(self, ax: Any = None, *, hypotheses: Sequence[str] = _SHOWN, **kwargs: Any) -> Self:
        """Draw the errors.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None: those of a new figure.
        hypotheses : sequence of str, default=("random", "last", "average", "vote")
            Also ``"last_normalized"``, ``"average_normalized"`` and ``"random_normalized"``.
        **kwargs
            For matplotlib's `Axes.plot`, for all lines.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If there is no hypothesis, or one is unknown.
        """
        known = list(self.errors.errors)
        if not len(hypotheses):
            raise ValueError(f"hypotheses is empty. Choose among {known}.")
        for name in hypotheses:
            if name not in known:
                raise ValueError(f"hypotheses: {name!r} is unknown. Choose among {known}.")
        axes = self._open(ax)
        moments = np.asarray(self.errors.moments)
        self.lines_ = {}
        for name in hypotheses:
            style = line_style(axes, len(moments), kwargs)
            label = name.replace("_normalized", ", normalised")
            percent = 100 * self.errors.errors[name]
            (self.lines_[name],) = axes.plot(moments, percent, label=label, **style)
        scale_epochs(axes, moments)
        axes.set_xlabel("epochs")
        axes.set_ylabel("test error (%)")
        axes.set_ylim(bottom=0, auto=None)
        self._add_legend(axes, title="hypothesis")
        return self

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, moments: ArrayLike | None = None, ax: Any = None,
        **kwargs: Any,
    ) -> Self:  # fmt: skip
        """Replay the run that a model has learned by, and draw the errors.

        Parameters
        ----------
        estimator : fitted first-order classifier
            Of ``hypothesis="vote"`` or ``"random"``, which keep the log of corrections.
        X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_samples, n_features)
            Rows to test on.
        y : array-like of shape (n_samples,)
        moments : array-like of shape (n_moments,), default=None
            As for `sparsemargin.evaluation.hypothesis_errors`.
        ax : matplotlib Axes, default=None
        **kwargs
            As for `plot`.

        Returns
        -------
        display : HypothesisErrorsDisplay

        Raises
        ------
        ValueError
            As `sparsemargin.evaluation.hypothesis_errors` does.
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        return cls(hypothesis_errors(estimator, X, y, moments)).plot(ax, **kwargs)
