"""Errors of all hypotheses over one training run: Figure 2 of Freund & Schapire (1999)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length

from sparsemargin._engine.fitting.epochs import count_trials
from sparsemargin.estimators import validation as given
from sparsemargin.estimators.classifiers import Classifier
from sparsemargin.estimators.validation import check_sparse
from sparsemargin.models.algorithms.first_order import FirstOrderLearner
from sparsemargin.models.fitted.in_use import asks
from sparsemargin.models.fitted.outputs import codes_of
from sparsemargin.models.inputs.rows import refusing
from sparsemargin.models.pipelines import model_and_rows

_N_MOMENTS = 40


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


def hypothesis_errors(
    model: Any, X: Any, y: Any, moments: ArrayLike | None = None
) -> HypothesisErrors:
    """Compute the error of each hypothesis at several times of the training run of a model.

    With times every 0.1 epochs this is Figure 2 of Freund & Schapire (1999), with the rows of their
    Table 1. It works for all first-order algorithms, with or without a kernel. The model is not
    trained again: the log of corrections is replayed for the rows of X. This costs one kernel row
    for each row of X, and a few operations for each row and correction.

    The errors at a time are those of a model that is fitted with this `hypothesis` and
    `normalize_hypotheses`, with ``max_iter=moment`` and otherwise the same parameters. With
    ``shuffle=True`` this holds if `random_state` is an int, so that a shorter fit uses the same
    order of rows.

    Parameters
    ----------
    model : fitted first-order classifier, or pipeline that ends in one
        It must have ``hypothesis="vote"`` or ``"random"``, which store the log. Any value of
        `normalize_hypotheses` is accepted.
    X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_samples, n_features)
        Rows, as for `predict` of the model or of the pipeline.
    y : array-like of shape (n_samples,)
        Their labels.
    moments : array-like of shape (n_moments,), default=None
        Times in epochs: increasing, above 0, at most the length of the run. An epoch is the number
        of rows with nonzero weight in the last fit. A time is rounded to a whole number of these
        rows, whereas `max_iter` is rounded to a whole number of rows of any weight. None: 40
        evenly spaced times up to the end of the run.

    Returns
    -------
    HypothesisErrors
        For ``random``, one time slice is drawn for each row, as in `predict`.

    Raises
    ------
    ValueError
        If the model is not a first-order classifier, has no log, was not trained by `fit`, is a
        multilabel model, or was trained further after `max_corrections` had stopped it, or if X, y
        or `moments` are invalid.

    Examples
    --------
    >>> from sparsemargin import PNormPerceptron
    >>> from sparsemargin.datasets import make_alma_target
    >>> X, y, X_test, y_test, _ = make_alma_target(400, 300, random_state=0)
    >>> model = PNormPerceptron(hypothesis="vote", max_iter=3, random_state=0).fit(X, y)
    >>> curve = hypothesis_errors(model, X_test, y_test, np.arange(1, 31) / 10)
    >>> bool(curve.errors["vote"][-1] == np.mean(model.predict(X_test) != y_test))
    True
    >>> shorter = PNormPerceptron(hypothesis="last", max_iter=0.5, random_state=0).fit(X, y)
    >>> bool(curve.errors["last"][4] == np.mean(shorter.predict(X_test) != y_test))
    True
    """
    model, X = model_and_rows(model, X)
    _check_log(model)
    at, trials = _check_moments(model, moments)
    X = check_sparse(X)
    y = given.check_labels(y)
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
    with refusing(rows):
        for which, moment, outputs in by_moment:
            for name, values in outputs.items():
                wrong = fitted.classes[codes_of(fitted, values)] != y[which]
                errors.setdefault(name, np.zeros(len(at)))[moment] += np.count_nonzero(wrong)
    shares = {name: counts / len(y) for name, counts in errors.items()}
    return HypothesisErrors(at, shares, *space.counts_by_moment(trials))


def _check_log(model: Any) -> None:
    """Raise a ValueError if the model has no log of corrections that can be replayed."""
    name = type(model).__name__
    if not (isinstance(model, FirstOrderLearner) and isinstance(model, Classifier)):
        raise ValueError(
            f"hypothesis_errors replays the log of a first-order classifier of sparsemargin, which "
            f"{name} is not. Pass a PNormPerceptron, an ALMAClassifier or their like."
        )
    fitted = model.fitted
    if not fitted.space.logged:
        raise ValueError(
            f"This {name} was fitted with hypothesis={fitted.hypothesis!r}, which "
            "keeps no log of corrections. Fit with hypothesis='vote' or 'random'."
        )
    if not fitted.trials_per_epoch:
        raise ValueError(f"This {name} has learned by partial_fit, without epochs. Call fit.")
    if fitted.many:
        raise ValueError(
            f"The rows of this {name} may have several labels, and errors are counted by class. "
            "Fit a label by itself: fit(X, Y[:, label])."
        )
    if fitted.space.per_label("idle").any():
        raise ValueError(
            f"This {name} was let learn on after max_corrections had stopped it, so that its "
            "labels have learned from different rows. Fit it in one go."
        )


def _check_moments(model: Any, moments: ArrayLike | None) -> tuple[NDArray[np.float64], list[int]]:
    """Return the times in epochs, and in numbers of trials."""
    fitted = model.fitted
    learned = fitted.space.trials / fitted.trials_per_epoch
    if moments is None:
        moments = np.linspace(0, learned, _N_MOMENTS + 1)[1:]
    at = np.asarray(moments, dtype=np.float64)
    are_finite = at.ndim == 1 and at.size > 0 and bool(np.isfinite(at).all())
    if not are_finite or at[0] <= 0 or not (np.diff(at) > 0).all():
        raise ValueError(f"moments must be finite numbers that rise from above 0, got {moments!r}.")
    trials = [count_trials(moment, fitted.trials_per_epoch) for moment in at]
    if trials[-1] > fitted.space.trials:
        raise ValueError(
            f"moments reach {at[-1]:g} epochs, but the model has learned for {learned:g}. Leave "
            "out the later ones, or raise max_iter."
        )
    return at, trials
