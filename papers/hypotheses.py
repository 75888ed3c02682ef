"""Errors of all hypotheses over one training run: Figure 2 of Freund & Schapire (1999)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length

from papers.curves import scale_epochs
from sparsemargin._engine.fitting.epochs import count_trials
from sparsemargin.models.fitted.in_use import asks
from sparsemargin.models.fitted.outputs import codes_of
from sparsemargin.models.inputs.rows import naming_bad_rows
from sparsemargin.plotting.style import line_style


class HypothesisErrors(NamedTuple):
    """Result of `hypothesis_errors`.

    Attributes
    ----------
    moments : ndarray of shape (n_moments,), float64
        Times within the run, in epochs.
    errors : dict of str to ndarray of shape (n_moments,), float64
        Fraction of the rows that each hypothesis misclassifies, in [0, 1]: `last`, `average`,
        `vote` and `random`, and `last_normalized`, `average_normalized` and `random_normalized`,
        for which each weight vector is divided by its norm.
    n_corrections : ndarray of shape (n_moments, n_vectors), int64
        Number of corrections of each weight vector so far. Their sum over the vectors is the row
        Mistake of Freund & Schapire.
    n_support : ndarray of shape (n_moments,), int64
        Number of training rows so far that corrected at least one weight vector. It is the row
        SupVec of Freund & Schapire.
    """

    moments: NDArray[np.float64]
    errors: dict[str, NDArray[np.float64]]
    n_corrections: NDArray[np.int64]
    n_support: NDArray[np.int64]


def hypothesis_errors(model: Any, X: Any, y: Any, moments: ArrayLike) -> HypothesisErrors:
    """Compute the error of each hypothesis at several times of the training run of a model.

    The model is a first-order classifier, with or without a kernel, that was trained by one call of
    `fit` with ``hypothesis="vote"`` or ``"random"``, which store the log of corrections. It is not
    trained again: the log is replayed for the rows of X. This costs one kernel row for each row of
    X, and a few operations for each row and correction.

    The errors at a time are those of a model that is fitted with this `hypothesis` and
    `normalize_hypotheses`, with ``max_iter=moment`` and otherwise the same parameters, if it uses
    the same order of rows. `moments` are increasing times in epochs, above 0 and at most the length
    of the run. An epoch is the number of rows with nonzero weight.
    """
    fitted = model.fitted
    space = fitted.space
    at, y = np.asarray(moments, dtype=np.float64), np.asarray(y)
    if not space.logged:
        raise ValueError(f"hypothesis={fitted.hypothesis!r} keeps no log. Fit with 'vote'.")
    if space.per_vector("idle").any():
        raise ValueError("The model was trained on after max_corrections had stopped it.")
    trials = [count_trials(moment, fitted.trials_per_epoch) for moment in at]
    if trials[-1] > space.trials:
        raise ValueError(f"moments reach {at[-1]:g} epochs, which is beyond the end of the run.")
    check_consistent_length(X, y)
    return _errors_at(model, X, y, at, trials)


@asks
def _errors_at(
    model: Any, X: Any, y: NDArray[Any], at: NDArray[np.float64], trials: list[int]
) -> HypothesisErrors:
    rows, fitted = model.check_test_rows(X), model.fitted
    space = fitted.space
    errors: dict[str, NDArray[np.float64]] = {}
    by_moment = space.outputs_by_moment(rows, trials, fitted.slice_seed, model.n_threads())
    with naming_bad_rows(rows):
        for which, moment, outputs in by_moment:
            for name, values in outputs.items():
                wrong = fitted.classes[codes_of(fitted, values)] != y[which]
                errors.setdefault(name, np.zeros(len(at)))[moment] += np.count_nonzero(wrong)
    shares = {name: counts / len(y) for name, counts in errors.items()}
    return HypothesisErrors(at, shares, *space.counts_by_moment(trials))


def draw_hypothesis_errors(errors: HypothesisErrors, axes: Any, hypotheses: Sequence[str]) -> None:
    """Draw the test error of each hypothesis over the epochs."""
    for name in hypotheses:
        style = line_style(axes, len(errors.moments), {})
        axes.plot(errors.moments, 100 * errors.errors[name], label=name, **style)
    scale_epochs(axes, errors.moments)
    axes.set_xlabel("epochs")
    axes.set_ylabel("test error (%)")
    axes.set_ylim(bottom=0, auto=None)
    axes.legend(framealpha=0.85, title="hypothesis")
