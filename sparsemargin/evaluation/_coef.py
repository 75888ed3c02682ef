"""The weight vectors of a fitted model, of this library or any other."""

from __future__ import annotations

from typing import Any

import numpy as np


def coef_of(model: Any) -> Any:
    """Return `coef_` where it has a vector for each class, or one for the second of two.

    Parameters
    ----------
    model : fitted classifier

    Returns
    -------
    ndarray or CSR matrix of shape (n_vectors, n_features)

    Raises
    ------
    ValueError
        If there is no `coef_`, or its vectors are not those of the classes.
    """
    name, coef = type(model).__name__, getattr(model, "coef_", None)
    if coef is None:
        raise ValueError(
            f"{name} has no weight vector for each class, since it has no coef_. Pass a linear "
            "classifier whose hypothesis is 'last' or 'average'; of a pipeline its last step, "
            "pipeline[-1], with X as pipeline[:-1].transform makes it."
        )
    if isinstance(coef, np.ndarray):
        coef = np.atleast_2d(coef)
    n_classes = len(model.classes_)
    # Support vector machines over pairs of classes have as many vectors as classes when these are
    # three, so the number alone does not give them away.
    in_pairs = n_classes > 2 and hasattr(model, "decision_function_shape")
    if in_pairs or not (coef.shape[0] == n_classes or coef.shape[0] == 1 == n_classes - 1):
        raise ValueError(
            f"{name} has no weight vector for each class (one for two classes). Pass a linear "
            "classifier that learns one class versus the rest."
        )
    return coef
