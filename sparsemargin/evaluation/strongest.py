"""Which features a vector of weights rests on."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def strongest_features(weights: ArrayLike, top: int) -> NDArray[np.intp]:
    """Places of the features of largest absolute weight.

    Parameters
    ----------
    weights : array-like of shape (n_features,)
        A row of `coef_`.
    top : int
        How many, at most.

    Returns
    -------
    ndarray of shape (n_strongest,), intp
        The strongest first; of equal ones, those that come first. Features of weight 0 are none
        of them.

    Raises
    ------
    ValueError
        If `weights` is no vector, or `top` is negative.

    Examples
    --------
    >>> strongest_features([0.5, 0.0, -2.0, 0.5, 0.1], 3)
    array([2, 0, 3])
    """
    strength = np.abs(np.asarray(weights, dtype=np.float64))
    if strength.ndim != 1:
        raise ValueError(f"weights must be a vector, got shape {strength.shape}. Pass coef_[i].")
    if top < 0:
        raise ValueError(f"top must be 0 or more, got {top}.")
    places = np.flatnonzero(strength)
    if 0 < top < len(places):
        # A partition finds the last of them without sorting millions of others.
        least = np.partition(strength, -top)[-top]
        above, equal = np.flatnonzero(strength > least), np.flatnonzero(strength == least)
        places = np.sort(np.concatenate([above, equal[: top - len(above)]]))
    return places[np.argsort(-strength[places], kind="stable")][:top]
