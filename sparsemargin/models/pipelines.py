"""Pipelines: the last step is the model that is looked at, the steps before make its rows.

scikit-learn is imported on first use.
"""

from __future__ import annotations

from typing import Any


def taken(estimator: Any) -> Any:
    """What a fitted `AutoClassifier`, or a search, has taken; anything else as it is."""
    return getattr(estimator, "best_estimator_", estimator)


def is_of_library(estimator: Any, name: str) -> bool:
    """Return whether an estimator is of the class of this library with that name, and of no
    subclass."""
    kind = type(estimator)
    return kind.__name__ == name and kind.__module__.partition(".")[0] == "sparsemargin"


def is_choosing(estimator: Any) -> bool:
    """Return whether it is an `AutoClassifier`. If `taken` returns one, it is not fitted."""
    return is_of_library(estimator, "AutoClassifier")


def parts_of(estimator: Any) -> tuple[Any, Any]:
    """The steps before the last of a pipeline, None where there are none, and the last; what is no
    pipeline is its own last step."""
    estimator = taken(estimator)
    if not hasattr(estimator, "steps"):
        return None, estimator
    return estimator[:-1] if len(estimator) > 1 else None, taken(estimator[-1])


def model_and_rows(estimator: Any, X: Any) -> tuple[Any, Any]:
    """The last step of a fitted pipeline, and the rows that the steps before make of X."""
    before, model = parts_of(estimator)
    return model, X if before is None else before.transform(X)


def made_rows(estimator: Any, X: Any, y: Any, *others: Any) -> tuple[Any, ...]:
    """The last step of a pipeline, and the rows that clones of the steps before, fitted to X, make
    of X and of others."""
    from sklearn.base import clone

    before, model = parts_of(estimator)
    if before is None:
        return model, X, *others
    before = clone(before)
    return model, before.fit_transform(X, y), *map(before.transform, others)


def model_and_names(estimator: Any, names: Any = None) -> tuple[Any, Any]:
    """The last step of a fitted pipeline, and names of its columns: those given, or those that the
    steps before make, or that it was fitted to; None: they have none."""
    before, model = parts_of(estimator)
    if names is None and before is not None:
        names = names_out_of(before)
    return model, getattr(model, "feature_names_in_", None) if names is None else names


def names_out_of(before: Any) -> Any:
    """Names of the columns that fitted steps make; None where one of them can't tell."""
    try:
        return before.get_feature_names_out()
    except (AttributeError, NotImplementedError, ValueError):
        return None


def names_at(columns: Any, names: Any) -> list[str]:
    """The names of these columns; their numbers where features have none."""
    return [str(j) if names is None else str(names[j]) for j in columns.tolist()]


def check_names(names: Any, n_features: int) -> Any:
    """Names of features as they are, or those of a fitted vectorizer's columns; None for none."""
    if hasattr(names, "get_feature_names_out"):
        names = names.get_feature_names_out()
    if names is not None and len(names) != n_features:
        raise ValueError(
            f"feature_names has {len(names)} names, but there are {n_features} features. Pass one "
            "for each column of X."
        )
    return names
