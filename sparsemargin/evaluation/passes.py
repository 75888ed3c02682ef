"""How the certificate of a margin closes, pass after pass."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sparsemargin.evaluation.protocols import ended_by_ctrl_c


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


def certificate_over_passes(
    estimator: Any, X: Any, y: Any, *, n_passes: float | None = None
) -> CertificateCurve:
    """Fit once, and tell after every pass what margin is reached, and what none can exceed.

    Between the two lies the largest margin there is: for ALMA and the p-norm Perceptron by the
    argument of Gentile (2001), section 3, for CRAMMA as in Tsampouka & Shawe-Taylor (2007).

    Parameters
    ----------
    estimator : classifier of first order
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
    parameters = estimator.get_params() if hasattr(estimator, "get_params") else {}
    if "keep_history" not in parameters:
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
    margins = np.asarray(history["margin"], dtype=np.float64)
    return CertificateCurve(
        np.asarray(history["n_iter"], dtype=np.float64),
        margins,
        np.asarray(history["margin_upper_bound"], dtype=np.float64),
        model.classes_ if margins.ndim == 2 else None,
    )
