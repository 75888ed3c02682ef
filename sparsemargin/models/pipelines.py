"""Access to the last step of a pipeline, the model, and to the rows that the other steps produce.

scikit-learn is imported on first use.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def taken(estimator: Any) -> Any:
    """Return the selected estimator of a fitted `AutoClassifier` or parameter search, or the
    pipeline of a fitted `TextClassifier` or `CellClassifier`. Return other estimators unchanged."""
    for name in ("best_estimator_", "pipeline_"):
        estimator = getattr(estimator, name, estimator)
    return estimator


def is_of_library(estimator: Any, name: str) -> bool:
    """Return whether an estimator's class is the class `name` of this library, not a subclass."""
    kind = type(estimator)
    return kind.__name__ == name and kind.__module__.partition(".")[0] == "sparsemargin"


def is_choosing(estimator: Any) -> bool:
    """Return whether an estimator is an `AutoClassifier`. If `taken` returns one, it is not
    fitted."""
    return is_of_library(estimator, "AutoClassifier")


def parts_of(estimator: Any) -> tuple[Any, Any]:
    """Return the steps before the last one of a pipeline, or None, and the last step. An estimator
    that is not a pipeline is its own last step."""
    estimator = taken(estimator)
    if not hasattr(estimator, "steps"):
        return None, estimator
    return estimator[:-1] if len(estimator) > 1 else None, taken(estimator[-1])


def labels_for(estimator: Any, X: Any, y: Any) -> Any:
    """Return `y`, or the labels that a `TextClassifier` or `CellClassifier` finds in `X` if `y` is
    the name of a column or, for cells, None. The estimator may be in a search or a `Rejector`."""
    estimator = getattr(estimator, "best_estimator_", estimator)
    return y if not hasattr(estimator, "labels_of") else estimator.labels_of(X, y)


def model_and_rows(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Return the last step of a fitted pipeline, and X transformed by the other steps."""
    before, model = parts_of(estimator)
    return model, X if before is None else before.transform(X)


def model_and_names(estimator: Any, names: Any = None) -> tuple[Any, Any]:
    """Return the last step of a fitted pipeline, and the names of its features. These are the given
    names, the output names of the other steps, or those seen in `fit`; None if there are none."""
    before, model = parts_of(estimator)
    if names is None and before is not None:
        names = names_out_of(before)
    return model, getattr(model, "feature_names_in_", None) if names is None else names


def names_out_of(before: Any) -> Any:
    """Return the output feature names of fitted steps, or None if a step does not provide them."""
    try:
        return before.get_feature_names_out()
    except (AttributeError, NotImplementedError, ValueError):
        return None


def names_at(columns: Any, names: Any) -> list[str]:
    """Return the names of columns, or their numbers if `names` is None."""
    return [str(j) if names is None else str(names[j]) for j in columns.tolist()]


def check_names(names: Any, n_features: int, argument: str = "feature_names") -> Any:
    """Return feature names, after checking their number; None if there are none. `names` may be a
    fitted vectorizer. Errors name the argument."""
    if hasattr(names, "get_feature_names_out"):
        names = names.get_feature_names_out()
    in_order = hasattr(names, "__getitem__") and not isinstance(names, Mapping | str)
    if names is not None and (not in_order or getattr(names, "ndim", 1) != 1):
        raise ValueError(
            f"{argument} is a {type(names).__name__}. Pass a list of names in the order of the "
            "columns of X, or a fitted vectorizer."
        )
    if hasattr(names, "to_numpy"):  # A Series would return names by its own labels.
        names = names.to_numpy()
    if names is not None and len(names) != n_features:
        raise ValueError(
            f"{argument} has {len(names)} names, but there are {n_features} features. Pass one for "
            "each column of X."
        )
    return names
