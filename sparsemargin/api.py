"""One call from a sparse matrix to a fitted model."""

from __future__ import annotations

from typing import Any, Literal

from sparsemargin.estimators import (
    ALMAClassifier,
    CRAMMAClassifier,
    HigherOrderPerceptron,
    MarginPerceptron,
    MaxMarginClassifier,
    PNormPerceptron,
    ROMMAClassifier,
    SecondOrderPerceptron,
)
from sparsemargin.estimators._online import OnlineClassifier
from sparsemargin.estimators._weighted import WeightedClassifier

Algorithm = Literal[
    "perceptron", "pnorm", "alma", "ho", "so", "margin", "cramma", "romma", "maxmargin"
]

#: Each name of an algorithm: its estimator, and the parameters the name fixes.
ALGORITHMS: dict[Algorithm, tuple[type[OnlineClassifier], dict[str, Any]]] = {
    "perceptron": (PNormPerceptron, {"p": 2.0, "normalize": False}),
    "pnorm": (PNormPerceptron, {}),
    "alma": (ALMAClassifier, {}),
    "ho": (HigherOrderPerceptron, {}),
    "so": (SecondOrderPerceptron, {}),
    "margin": (MarginPerceptron, {}),
    "cramma": (CRAMMAClassifier, {}),
    "romma": (ROMMAClassifier, {}),
    "maxmargin": (MaxMarginClassifier, {}),
}

#: What ``algo=None`` means.
DEFAULT_ALGORITHM: Algorithm = "alma"


def fit_csr(
    X: Any, y: Any, algo: Algorithm | None = None, *, sample_weight: Any = None, **params: Any
) -> OnlineClassifier:
    """Fit a classifier to a CSR matrix.

    Parameters
    ----------
    X : CSR matrix or array of shape (n_samples, n_features)
        float32 or float64, int32 or int64 indices: used where it lies. Whatever the estimators
        take is taken here too.
    y : array-like of shape (n_samples,)
        Class labels, numbers or strings.
    algo : {"perceptron", "pnorm", "alma", "ho", "so", "margin", "cramma", "romma", "maxmargin"}, \
default=None
        ``"perceptron"`` is the Perceptron on rows as they are, ``"pnorm"`` is `PNormPerceptron`,
        ``"alma"`` is `ALMAClassifier`, ``"ho"`` is `HigherOrderPerceptron`, ``"so"`` is
        `SecondOrderPerceptron`, ``"margin"`` is `MarginPerceptron`, ``"cramma"`` is
        `CRAMMAClassifier`, ``"romma"`` is `ROMMAClassifier`, ``"maxmargin"`` is
        `MaxMarginClassifier`. None chooses ``"alma"``.
    sample_weight : array-like of shape (n_samples,), default=None
        Refused by ``"cramma"``, ``"romma"`` and ``"maxmargin"``, whose steps can't be weighted.
    **params
        Parameters of the estimator.

    Returns
    -------
    estimator : OnlineClassifier
        The fitted estimator.

    Raises
    ------
    ValueError
        If `algo` or a parameter is unknown; the message lists those that exist. Whatever the
        estimators raise.

    Examples
    --------
    >>> import sparsemargin
    >>> from sparsemargin.datasets import make_alma_target
    >>> X, y, X_test, y_test, _ = make_alma_target(2000, 1000, random_state=0)
    >>> model = sparsemargin.fit_csr(X, y, algo="pnorm", p=6, random_state=0)
    >>> model.n_features_in_
    300
    """
    name = DEFAULT_ALGORITHM if algo is None else algo
    if not isinstance(name, str) or name not in ALGORITHMS:
        raise ValueError(f"Unknown algo={algo!r}. Known are: {', '.join(map(repr, ALGORITHMS))}.")
    estimator, fixed = ALGORITHMS[name]
    known = [param for param in estimator._get_param_names() if param not in fixed]
    unknown = sorted(set(params) - set(known))
    if unknown:
        raise ValueError(
            f"Unknown parameter {', '.join(map(repr, unknown))} for algo={name!r}. "
            f"Known are: {', '.join(known)}."
        )
    model = estimator(**fixed, **params)
    if isinstance(model, WeightedClassifier):
        return model.fit(X, y, sample_weight=sample_weight)
    if sample_weight is not None:
        raise ValueError(
            f"algo={name!r} can't weight its steps. Leave sample_weight out, or choose another."
        )
    return model.fit(X, y)
