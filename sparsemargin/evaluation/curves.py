"""What is measured for curves: over epochs, over passes, and over settings."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, shuffle

from sparsemargin.evaluation.protocols import compare_on_splits, ended_by_ctrl_c, measure
from sparsemargin.models.labels import refuse_lone
from sparsemargin.models.pipelines import made_rows, parts_of, with_settings
from sparsemargin.models.validation import check_sparse

Norm = float | Literal["log"]


class EpochCurve(NamedTuple):
    """A run over epochs, as `learning_curve_over_epochs` gives it; arrays of shape (n_epochs,).

    Attributes
    ----------
    epochs : ndarray, int64
        After how many epochs the other two were taken.
    mistakes : ndarray, float64
        `n_corrections_` by then, over all classes; NaN where the estimator does not count them.
    test_errors : ndarray, float64
        Fraction of the test rows that is misclassified, in [0, 1].
    """

    epochs: NDArray[np.int64]
    mistakes: NDArray[np.float64]
    test_errors: NDArray[np.float64]


class CertificateCurve(NamedTuple):
    """A run told by its certificate, as `certificate_over_passes` gives it.

    Attributes
    ----------
    passes : ndarray of shape (n_passes,), float64
        Epochs by then.
    margins : ndarray of shape (n_passes,) or (n_passes, n_classes), float64
        `margin_` by then: what was reached.
    upper_bounds : ndarray of shape (n_passes,) or (n_passes, n_classes), float64
        `margin_upper_bound_` by then: what no vector can exceed.
    classes : ndarray of shape (n_classes,), or None
        Whose columns these are; None where there is one vector, for two classes or for all.
    """

    passes: NDArray[np.float64]
    margins: NDArray[np.float64]
    upper_bounds: NDArray[np.float64]
    classes: NDArray[Any] | None = None


class TradeOffPoint(NamedTuple):
    """One setting, as `trade_off_over_alpha` measures it; arrays of shape (n_splits,), float64.

    Attributes
    ----------
    p : float or "log"
    alpha : float
    mistakes : ndarray
        Corrections of the fit, over all epochs and classes.
    accuracies : ndarray
        On the test part, in [0, 1].
    """

    p: Norm
    alpha: float
    mistakes: NDArray[np.float64]
    accuracies: NDArray[np.float64]


def learning_curve_over_epochs(
    estimator: Any, X: Any, y: Any, X_test: Any, y_test: Any, *,
    epochs: Sequence[int] = (1, 2, 3, 5, 10, 15, 20), shuffle_rows: bool = False,
    random_state: Any = None,
) -> EpochCurve:  # fmt: skip
    """Mistakes and test error of one run, after some of its epochs.

    Figure 2 of Brotto, Gentile & Vitale (2007), whose epochs are the default. The run learns by
    `partial_fit`, one call for each epoch.

    Parameters
    ----------
    estimator : classifier with `partial_fit`, or pipeline that ends in one
        A clone of it learns. Its own `max_iter` and `shuffle` do not apply. The other steps of a
        pipeline are fitted once, to all of X.
    X, X_test : {sparse matrix, array-like} of shape (n_samples, n_features)
    y, y_test : array-like of shape (n_samples,)
        All classes have to occur in y.
    epochs : sequence of int, default=(1, 2, 3, 5, 10, 15, 20)
        Rising.
    shuffle_rows : bool, default=False
        Whether every epoch takes the rows in a new random order instead of the given one.
    random_state : int, RandomState or None, default=None
        Of these orders; the estimator has its own.

    Returns
    -------
    EpochCurve

    Raises
    ------
    ValueError
        If `epochs` do not rise from 1 or more, y has one class only, the estimator
        has no `partial_fit`, or a fit fails.

    Examples
    --------
    >>> from sparsemargin import PNormPerceptron
    >>> from sparsemargin.datasets import make_alma_target
    >>> X, y, X_test, y_test, _ = make_alma_target(200, 200, random_state=0)
    >>> model = PNormPerceptron(p=6, hypothesis="last")
    >>> curve = learning_curve_over_epochs(model, X, y, X_test, y_test, epochs=[1, 3, 9])
    >>> bool((np.diff(curve.mistakes) >= 0).all())
    True
    """
    stops = _check_epochs(epochs)
    check_sparse(X)
    estimator, X, X_test = made_rows(estimator, X, y, X_test)
    if not hasattr(estimator, "partial_fit"):
        raise ValueError(f"{type(estimator).__name__} has no partial_fit, by which epochs are run.")
    model, random = clone(estimator), check_random_state(random_state)
    classes, measured = np.unique(y), []
    refuse_lone(classes, "y")
    for epoch in range(1, int(stops[-1]) + 1):
        rows, labels = shuffle(X, y, random_state=random) if shuffle_rows else (X, y)
        model.partial_fit(rows, labels, classes=classes)
        if epoch in stops:
            measured.append(measure(model, X_test, y_test))
    mistakes, errors = (np.array([each[key] for each in measured]) for key in ("mistakes", "error"))
    return EpochCurve(stops, mistakes, errors)


def certificate_over_passes(
    estimator: Any, X: Any, y: Any, *, n_passes: float | None = None
) -> CertificateCurve:
    """Fit once, and tell after every pass what margin is reached, and what none can exceed.

    Between the two lies the largest margin there is: for ALMA and the p-norm Perceptron by the
    argument of Gentile (2001), section 3, for CRAMMA as in Tsampouka & Shawe-Taylor (2007).

    Parameters
    ----------
    estimator : classifier of first order, or pipeline that ends in one
        Unfitted; a clone of it learns, with ``hypothesis="last"``, of which the certificate is.
    X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    n_passes : float or None, default=None
        Instead of the estimator's `max_iter`. Its `tol` may end the run earlier.

    Returns
    -------
    CertificateCurve

    Raises
    ------
    ValueError
        If the estimator has no certificate, as the Higher-order Perceptron, or the fit fails.

    Examples
    --------
    >>> from sparsemargin import MaxMarginClassifier
    >>> from sparsemargin.datasets import make_alma_target
    >>> X, y, *_ = make_alma_target(200, 1, random_state=0)
    >>> curve = certificate_over_passes(MaxMarginClassifier(), X, y, n_passes=20)
    >>> bool((curve.margins <= curve.upper_bounds).all())
    True
    >>> bool((np.diff(curve.upper_bounds) <= 0).all())
    True
    """
    estimator, X = made_rows(estimator, X, y)
    if _missing(estimator, "keep_history"):
        raise ValueError(
            f"{type(estimator).__name__} has no certificate of its margin. Pass a first-order "
            "classifier of sparsemargin, such as MaxMarginClassifier or ALMAClassifier."
        )
    model = clone(estimator).set_params(hypothesis="last", keep_history=True, warm_start=False)
    if n_passes is not None:
        model.set_params(max_iter=n_passes)
    with ended_by_ctrl_c(), warnings.catch_warnings():
        if n_passes is not None:
            # Whoever says how many passes knows that the margin may not be there by then.
            warnings.simplefilter("ignore", ConvergenceWarning)
        history = model.fit(X, y).history_
    keys = ("n_iter", "margin", "margin_upper_bound")
    passes, margins, bounds = (np.asarray(history[key], dtype=np.float64) for key in keys)
    return CertificateCurve(passes, margins, bounds, model.classes_ if margins.ndim == 2 else None)


def trade_off_over_alpha(
    estimator: Any, X: Any, y: Any, *, p: Sequence[Norm] = (2, 4, 6),
    alpha: Sequence[float] = (0.9, 0.8, 0.5), cv: Any = 5, n_jobs: int | None = None,
) -> list[TradeOffPoint]:  # fmt: skip
    """Cross-validate every p with every alpha.

    A smaller alpha asks for a larger margin, by more corrections: Gentile (2001), section 4, whose
    tables tell both.

    Parameters
    ----------
    estimator : classifier with the parameters `p` and `alpha`, or pipeline that ends in one
        `ALMAClassifier`. Clones are fitted.
    X : {sparse matrix, array-like} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    p : sequence of float or "log", default=(2, 4, 6)
    alpha : sequence of float, default=(0.9, 0.8, 0.5)
    cv : int, cross-validation splitter or iterable of (train, test), default=5
        The same parts for all settings.
    n_jobs : int, default=None
        Processes over the splits.

    Returns
    -------
    list of TradeOffPoint
        By p, then by alpha, in the given order; each setting once.

    Raises
    ------
    ValueError
        If the estimator lacks one of the parameters, `p` or `alpha` is empty, or a fit fails.

    Examples
    --------
    >>> from sparsemargin import ALMAClassifier
    >>> from sparsemargin.datasets import make_alma_target
    >>> X, y, *_ = make_alma_target(300, 1, random_state=0)
    >>> model = ALMAClassifier(random_state=0)
    >>> lazy, eager = trade_off_over_alpha(model, X, y, p=[6], alpha=[0.9, 0.5], cv=3)
    >>> bool(eager.mistakes.mean() > lazy.mistakes.mean())
    True
    """
    if missing := _missing(estimator, "p", "alpha"):
        raise ValueError(
            f"{type(estimator).__name__} has no parameter {' and no '.join(missing)}. Pass an "
            "ALMAClassifier, or a pipeline that ends in one."
        )
    settings = list(dict.fromkeys(product(p, alpha)))
    if not settings:
        raise ValueError("p and alpha must have entries. Pass at least one of each.")
    rivals = {
        f"p = {norm}, alpha = {share}": with_settings(estimator, p=norm, alpha=share)
        for norm, share in settings
    }
    results = compare_on_splits(rivals, X, y, cv, n_jobs=n_jobs)
    return [
        TradeOffPoint(norm, share, found.mistakes, 1 - found.test_errors)
        for (norm, share), found in zip(settings, results.values(), strict=True)
    ]


def _check_epochs(epochs: ArrayLike) -> NDArray[np.int64]:
    stops = np.asarray(epochs)
    if stops.ndim != 1 or not stops.size or stops.dtype.kind not in "iu":
        raise ValueError(
            f"epochs must be a sequence of integers, such as range(1, 11), got {epochs!r}."
        )
    if stops[0] < 1 or not (np.diff(stops) > 0).all():
        raise ValueError(f"epochs must rise from 1 or more, got {epochs!r}.")
    return stops.astype(np.int64)


def _missing(estimator: Any, *names: str) -> list[str]:
    """Those of some parameters that an estimator does not have."""
    _, model = parts_of(estimator)
    parameters = model.get_params() if hasattr(model, "get_params") else {}
    return [name for name in names if name not in parameters]
