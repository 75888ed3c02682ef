"""Which hypothesis errs how often, at moments of one run: Freund & Schapire's Figure 2."""

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
    """A run at some of its moments, as `hypothesis_errors` gives it.

    Attributes
    ----------
    moments : ndarray of shape (n_moments,), float64
        In epochs.
    errors : dict of str to ndarray of shape (n_moments,), float64
        Fraction of the rows that each hypothesis misclassifies, in [0, 1]: `last`, `average`,
        `vote` and `random`, and `last_normalized`, `average_normalized` and `random_normalized`,
        for which every vector is divided by its norm.
    n_corrections : ndarray of shape (n_moments, n_labels), int64
        Made by then; Freund & Schapire's row Mistake is their sum over the labels.
    n_support : ndarray of shape (n_moments,), int64
        Rows of the fit that had corrected some label; Freund & Schapire's row SupVec.
    """

    moments: NDArray[np.float64]
    errors: dict[str, NDArray[np.float64]]
    n_corrections: NDArray[np.int64]
    n_support: NDArray[np.int64]


def hypothesis_errors(
    model: Any, X: Any, y: Any, moments: ArrayLike | None = None
) -> HypothesisErrors:
    """Error of every hypothesis at moments of the run that a model has learned by.

    Figure 2 of Freund & Schapire (1999) at every tenth of an epoch, and the rows of their Table 1,
    for any first-order algorithm, kernel or not. Nothing is learned again: the log of corrections
    is replayed over the rows of X, at the cost of one kernel row for each, whatever the number
    of moments, and of a few operations for each of them and every correction.

    At each moment the errors are those of a model that is fitted with that `hypothesis` and
    `normalize_hypotheses`, with ``max_iter=moment`` and the other parameters the same. With
    ``shuffle=True`` it takes an int for `random_state`, by which a shorter fit sees the same rows
    first.

    Parameters
    ----------
    model : fitted first-order classifier, or pipeline that ends in one
        Of ``hypothesis="vote"`` or ``"random"``, which keep the log; `normalize_hypotheses` as you
        like.
    X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_samples, n_features)
        As for `predict` of the model, or of the pipeline.
    y : array-like of shape (n_samples,)
    moments : array-like of shape (n_moments,), default=None
        In epochs, rising, above 0, no later than the model has learned. An epoch is as many
        trials as the last fit had rows of nonzero weight; a moment is rounded to a trial, where
        `max_iter` is rounded to a row of any weight. None: 40, evenly spaced to the end of the
        run.

    Returns
    -------
    HypothesisErrors
        ``random`` is one time slice drawn for each row, as in `predict`.

    Raises
    ------
    ValueError
        If the model is no first-order classifier, has no log, was not learned by `fit`, has rows
        that may have several labels, or was let learn on after `max_corrections` had stopped it;
        or if X, y or `moments` can't be used.

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
    """Refuse what has no log of corrections to replay."""
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
    """The moments in epochs and in trials."""
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
