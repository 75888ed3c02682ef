"""The sections of the docstrings that all first-order classifiers share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

_Class = TypeVar("_Class", bound=type[Any])
_Method = TypeVar("_Method", bound=Callable[..., Any])

_PARAMETERS = """\
    hypothesis : {"average", "last", "vote", "random"}, default={hypothesis}
        What predicts: the average of all weight vectors, each counted for the trials it lasted;
        the last one; their weighted majority vote; the one of a random moment (Freund & Schapire
        1999, section 5). The last two log the corrections (48 bytes each, and 16 bytes a nonzero
        of every row that made one) and replay them to predict.
    normalize_hypotheses : bool, default={normalize_hypotheses}
        Whether each weight vector is divided by its dual norm before it counts.
    max_iter : float or None, default={max_iter}
        Epochs, fractions included. None: until a pass makes no correction, which data that are
        not separable never reach without `soft_margin`; such a fit says every ten seconds where
        it is, and Ctrl-C ends it with the model as it then is.
        {why max_iter}
    max_corrections : int or None, default={max_corrections}
        Stop learning after that many corrections, those of earlier fits under `warm_start`
        included; with many classes each label by itself, whose averages then count no further
        trials.
    tol : float or None, default={tol}
        Stop where `margin_` is at least ``(1 - tol) * margin_upper_bound_``: a proven share of
        the largest margin there is. Needs ``hypothesis="last"``, whose vector the proof is for.
    shuffle : bool, default={shuffle}
        Whether rows come in a new random order every epoch; False: in the given order.
    random_state : int, RandomState instance or None, default={random_state}
        Seed of the shuffling and of ``hypothesis="random"``.
    fit_intercept : bool, default={fit_intercept}
        Whether a constant coordinate of value `intercept_scaling` is appended to every instance.
    intercept_scaling : float, default={intercept_scaling}
        Value of that coordinate.
    soft_margin : float, default={soft_margin}
        Delta: every example gets a coordinate of its own of that value while learning, which
        makes any data separable (Freund & Schapire 1999, section 3.2).
{class_weight}    warm_start : bool, default={warm_start}
        Whether `fit` goes on from the model of the last one. With other rows than the last one
        had it knows no margin, and `tol` is refused: there would be no proof.
    n_jobs : int or None, default={n_jobs}
        Threads that share the labels of a many-class problem; the model is the same for any
        number.
    verbose : int, default={verbose}
        Whether a line is printed for every epoch of the first ten, and every half second after.
    keep_history : bool, default={keep_history}
        Whether `history_` tells the margin after every epoch, at the cost of a pass over the rows
        each; needs ``hypothesis="last"``."""

_CLASS_WEIGHT = """\
    class_weight : dict, "balanced" or None, default={class_weight}
        Multiplies the step for rows of each class. With more than two classes each label's
        positive rows are so weighted, its negative ones weigh 1.
"""

_SAMPLE_WEIGHT = """\
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies the step of a correction; 0 leaves the row out."""

_WHY_MAX_ITER = {
    True: "Where they end a fit short of its aim, a `ConvergenceWarning` says so.",
    False: "On RCV1 topics the error of the average stops falling after three to five.",
}

_ATTRIBUTES = """\
    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    margin_, margin_upper_bound_ : float, or ndarray of shape (n_classes,)
        The margin reached on the rows of the last `fit`, and what no vector can exceed there.
    objective_, relative_deviation_ : float, or ndarray of shape (n_classes,)
        With `soft_margin` and p = 2.
    history_ : dict of ndarray
        Where `keep_history` asked for it.
    n_corrections_ : int or ndarray of shape (n_classes,)
    n_iter_ : float
        Epochs swept.
    n_features_in_ : int
    p_ : float
    theta_, theta_norm_ : ndarray
        The dual vectors of the last hypothesis, and their p-norms."""


def with_sample_weight(method: Callable[..., Any]) -> Callable[[_Method], _Method]:
    """Give a method the docstring of the one it extends by `sample_weight`."""

    def describe(extended: _Method) -> _Method:
        doc = (method.__doc__ or "").replace("X or y can't", "X, y or sample_weight can't")
        returns = "\n\n        Returns"
        extended.__doc__ = doc.replace(returns, f"\n{_SAMPLE_WEIGHT}{returns}")
        return extended

    return describe


def with_common_sections(cls: _Class) -> _Class:
    """Fill in the common sections, with the defaults that the constructor has."""
    defaults = inspect.signature(cls).parameters
    text = _PARAMETERS.replace("{why max_iter}", _WHY_MAX_ITER[cls._seeks_margin])
    text = text.replace("{class_weight}", _CLASS_WEIGHT if "class_weight" in defaults else "")
    for name, parameter in defaults.items():
        default = parameter.default
        shown = f'"{default}"' if isinstance(default, str) else repr(default)
        text = text.replace(f"default={{{name}}}", f"default={shown}")
    doc = cls.__doc__ or ""
    doc = doc.replace("    {common parameters}", text)
    cls.__doc__ = doc.replace("    {common attributes}", _ATTRIBUTES)
    return cls
