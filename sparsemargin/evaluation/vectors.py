"""Weight vectors of the classes of a linear model, and margins of its outputs.

The command line uses these functions, so this module does not import scikit-learn, which takes a
second.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsemargin._engine.numerics.norms import vectors_of


def vectors_by_class(model: Any) -> dict[Any, NDArray[Any]]:
    """Return the weight vector of each class of a linear model.

    With two classes, the vector of the first is `coef_` with the opposite sign.
    """
    vectors = list(vectors_of(coef_of(model)))
    if len(vectors) == 1:
        vectors.insert(0, -vectors[0])
    return dict(zip(model.classes_.tolist(), vectors, strict=True))


def strongest_features(weights: ArrayLike, top: int) -> NDArray[np.intp]:
    """Return the positions of the `top` weights of largest magnitude, the largest first.

    Among equal weights, those at lower positions are returned. Weights of 0 are left out.
    """
    strength = np.abs(np.asarray(weights, dtype=np.float64))
    if top < 0:
        raise ValueError(f"top must be 0 or more, got {top}.")
    at = np.flatnonzero(strength)
    if 0 < top < len(at):
        # A partition finds the smallest of the selected weights without sorting all weights.
        least = np.partition(strength, -top)[-top]
        above, equal = np.flatnonzero(strength > least), np.flatnonzero(strength == least)
        at = np.sort(np.concatenate([above, equal[: top - len(above)]]))
    return at[np.argsort(-strength[at], kind="stable")][:top]


def coef_of(model: Any) -> Any:
    """Return `coef_`, an array or CSR matrix with a vector for each class.

    Two classes have one vector, of the second class. Models without vectors raise a ValueError.
    """
    name, coef = type(model).__name__, getattr(model, "coef_", None)
    if coef is None:
        has_linear = hasattr(getattr(model, "estimator_", None), "coef_")
        remedy = (
            "its linear classifier, .estimator_"
            if has_linear
            else "a linear classifier whose hypothesis is 'last' or 'average'"
        )
        raise ValueError(
            f"{name} has no weight vector for each class, since it has no coef_. Pass {remedy}."
        )
    if isinstance(coef, np.ndarray):
        coef = np.atleast_2d(coef)
    n_classes = len(model.classes_)
    # One-vs-one support vector machines have one vector for each pair of classes. With three
    # classes there are also three pairs, so the number of vectors does not identify them.
    in_pairs = n_classes > 2 and hasattr(model, "decision_function_shape")
    if in_pairs or not (coef.shape[0] == n_classes or coef.shape[0] == 1 == n_classes - 1):
        raise ValueError(
            f"{name} has no weight vector for each class (one for two classes). Pass a linear "
            "classifier that learns one class versus the rest."
        )
    return coef


def margins_of(outputs: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the output for the class of each row (number `codes`) minus the largest other output.

    With two classes there is one column: the output for class 1, and minus that for class 0.
    """
    if outputs.shape[1] == 1:
        return np.where(codes == 1, outputs[:, 0], -outputs[:, 0])
    at = np.arange(len(codes))
    others = outputs.copy()
    others[at, codes] = -np.inf
    return outputs[at, codes] - others.max(axis=1)


def divided(outputs: np.ndarray, norms: np.ndarray) -> np.ndarray:
    """Return the quotients, and 0 where the divisor is 0."""
    return np.divide(outputs, norms, out=np.zeros_like(outputs), where=norms > 0)
