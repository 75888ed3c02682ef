"""What a larger margin costs: accuracy against corrections, over alpha and p."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sparsemargin.evaluation.protocols import compare_on_splits

Norm = float | Literal["log"]


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


def trade_off_over_alpha(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    p: Sequence[Norm] = (2, 4, 6),
    alpha: Sequence[float] = (0.9, 0.8, 0.5),
    cv: Any = 5,
    n_jobs: int | None = None,
) -> list[TradeOffPoint]:
    """Cross-validate every p with every alpha.

    A smaller alpha asks for a larger margin, by more corrections: Gentile (2001), section 4, whose
    tables tell both.

    Parameters
    ----------
    estimator : classifier with the parameters `p` and `alpha`
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
    _check_parameters(estimator)
    settings = list(dict.fromkeys(product(p, alpha)))
    if not settings:
        raise ValueError("p and alpha must have entries. Pass at least one of each.")
    rivals = {
        f"p = {norm}, alpha = {share}": clone(estimator).set_params(p=norm, alpha=share)
        for norm, share in settings
    }
    results = compare_on_splits(rivals, X, y, cv, n_jobs=n_jobs)
    return [
        TradeOffPoint(norm, share, found.mistakes, 1 - found.test_errors)
        for (norm, share), found in zip(settings, results.values(), strict=True)
    ]


def _check_parameters(estimator: Any) -> None:
    parameters = estimator.get_params() if hasattr(estimator, "get_params") else {}
    missing = [name for name in ("p", "alpha") if name not in parameters]
    if missing:
        raise ValueError(
            f"{type(estimator).__name__} has no parameter {' and no '.join(missing)}. Pass an "
            "ALMAClassifier; of a pipeline its last step, pipeline[-1], with X as "
            "pipeline[:-1].transform makes it."
        )
