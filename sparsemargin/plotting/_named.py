"""One estimator, or several by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
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


def chosen_classes(classes: Sequence[Any] | None, known: Sequence[Any]) -> list[Any]:
    """The classes asked for, or all.

    Raises
    ------
    ValueError
        If there is none, or one is not among those that have a vector.
    """
    if classes is None:
        return list(known)
    names = np.asarray(known).tolist()
    if not len(classes):
        raise ValueError(f"classes is empty. Choose among {names}.")
    for label in classes:
        if label not in known:
            raise ValueError(f"classes: {label!r} is unknown. Choose among {names}.")
    return list(classes)


def listed_names(names: Any) -> Sequence[str] | None:
    """Names of features as they are, or those of a fitted vectorizer's columns."""
    if hasattr(names, "get_feature_names_out"):
        names = names.get_feature_names_out()
    return cast("Sequence[str] | None", names)


def check_feature_names(names: Sequence[str] | None, n_features: int) -> None:
    """Refuse names of features that do not go with the features.

    Raises
    ------
    ValueError
        If there are not as many; None is none given.
    """
    if names is not None and len(names) != n_features:
        raise ValueError(
            f"feature_names has {len(names)} names, but there are {n_features} features. Pass one "
            "for each column of X."
        )


def names_of(features: Sequence[int], names: Sequence[str] | None) -> list[str]:
    """What some features are called."""
    return [f"feature {j}" if names is None else str(names[j]) for j in features]
