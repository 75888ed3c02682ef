"""One estimator, or several by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.utils.validation import check_is_fitted


def by_name(estimator: Any, argument: str = "estimator") -> dict[str, Any]:
    """A dict of estimators: the one given, or the one alone under the name of its class.

    Raises
    ------
    ValueError
        If there is none.
    """
    if not isinstance(estimator, Mapping):
        return {type(estimator).__name__: estimator}
    if not estimator:
        raise ValueError(f"{argument} is empty. Pass at least one, by name.")
    return {str(name): each for name, each in estimator.items()}


def check_names(given: Any, what: str) -> dict[str, Any]:
    """What a Display is made of, by name.

    Raises
    ------
    ValueError
        If it is no dict, or an empty one.
    """
    if not isinstance(given, Mapping) or not given:
        raise ValueError(f"{what} must be a dict with entries, by the names in the legend.")
    return {str(name): each for name, each in given.items()}


def check_fitted(model: Any, name: str) -> None:
    """Refuse a model that has learned nothing.

    Raises
    ------
    ValueError
        NotFittedError, which is one.
    """
    check_is_fitted(model, msg=f"The estimator {name!r} is not fitted. Call fit before plotting.")
