"""Steps for the columns of tables in model files: encoders, imputers, selection, projection, and
`ColumnTransformer`.

scikit-learn keeps part of the state of encoders and imputers in private attributes. They are
restored by the public interface: a step is fitted to a small made-up table that leads to the saved
state, and public attributes, such as the categories themselves, are set afterwards.
"""

from __future__ import annotations

from importlib import import_module
from numbers import Real
from typing import Any

import numpy as np

from sparsemargin._engine.state import array_of, flag, instance, integer, optional, part, require
from sparsemargin.saving import step_checks as checks

# Score functions of `sklearn.feature_selection`.
_SCORES = (
    "chi2", "f_classif", "f_regression", "mutual_info_classif", "mutual_info_regression",
    "r_regression",
)  # fmt: skip

# Largest number of columns, and of entries of a made-up table. They limit the memory and the time
# that a small file can take.
_MOST_COLUMNS, _MOST_ENTRIES = 1 << 20, 1 << 24

_PLAIN = bool | int | float | str | None
_ROW_TYPES = ("float32", "float64", "int8", "int16", "int32", "int64", "uint8", "object")
_OF_COMPONENTS = ("explained_variance_", "explained_variance_ratio_", "singular_values_")
_OF_COLUMNS = (
    "n_jobs", "sparse_threshold", "transformer_weights", "verbose", "verbose_feature_names_out",
)  # fmt: skip


def learned_of(kind: str, step: Any, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the learned values of a step. Parameters that files can't hold are replaced."""
    return KINDS[kind][0](step, parameters)


def given_parameters(kind: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of the constructor for those in a file."""
    if kind != "SelectKBest":
        return parameters
    name = instance(parameters, "score_func", str)
    require(name in _SCORES, f"{name!r} is no score_func of {kind}")
    return {**parameters, "score_func": getattr(import_module("sklearn.feature_selection"), name)}


def restore(kind: str, step: Any, learned: dict[str, Any]) -> bool:
    """Restore what a step has learned. Return False if another module restores such steps."""
    if kind not in KINDS:
        return False
    try:
        KINDS[kind][1](kind, step, learned)
    except TypeError as error:
        raise ValueError(f"{kind} is damaged: {error}") from None
    return True


def _plain(kind: str, values: Any) -> Any:
    """Return an array, or the list of its values if they are objects."""
    if values.dtype.kind in "biufSU":
        return values
    plain = [each.item() if isinstance(each, np.generic) else each for each in values.tolist()]
    for each in plain:
        if values.dtype.kind != "O" or not isinstance(each, _PLAIN):
            raise ValueError(
                f"{kind} has learned a value of type {type(each).__name__}, which a model file "
                "can't hold. Convert the column to str or to numbers before the pipeline."
            )
    return plain


def _values(kind: str, values: Any) -> np.ndarray:
    """Return the checked array that `_plain` converted."""
    if isinstance(values, list) and all(isinstance(each, _PLAIN) for each in values):
        return np.array([*values, ()], dtype=object)[:-1]
    sound = isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "biufSU"
    require(sound, f"{kind} has other values than numbers and text")
    return values  # type: ignore[no-any-return]


def _is_nan(value: Any) -> bool:
    return bool(value != value)


def _saved_encoder(step: Any, parameters: dict[str, Any]) -> dict[str, Any]:
    kind, categories = type(step).__name__, step.categories_
    if not isinstance(parameters.get("drop"), str | None):
        raise ValueError(
            f"{kind} drops categories that a list names, which a model file can't hold. Pass "
            "drop='first', 'if_binary' or None."
        )
    infrequent = getattr(step, "_infrequent_indices", [None] * len(categories))
    _codes(kind, categories, infrequent)
    is_given = not isinstance(parameters["categories"], str)
    parameters["categories"] = "auto"
    plain = [_plain(kind, each) for each in categories]
    return {"categories": plain, "infrequent": infrequent, "given": is_given}


def _codes(kind: str, categories: list[Any], infrequent: list[Any]) -> np.ndarray:
    """Return a table of the numbers of categories. Infrequent categories occur once, others more
    often. The number of the category NaN, which is always the last, is NaN."""
    n_rows = 2 * max(map(len, categories))
    if n_rows * len(categories) > _MOST_ENTRIES:
        raise ValueError(
            f"{kind} has more categories than a model file can hold. Hash such columns, or save "
            "the pipeline with joblib.dump."
        )
    codes = np.empty((n_rows, len(categories)), np.float32)
    for j, (values, few) in enumerate(zip(categories, infrequent, strict=True)):
        numbers = np.arange(len(values), dtype=np.float32)
        if _is_nan(values[-1]):
            numbers[-1] = np.nan
        frequent = numbers if few is None else np.delete(numbers, few)
        if not len(frequent):
            raise ValueError(
                f"All categories of column {j} are infrequent for {kind}, which a model file can't "
                "hold. Leave the column out, or lower min_frequency."
            )
        codes[: len(numbers), j] = numbers
        codes[len(numbers) :, j] = np.resize(frequent, n_rows - len(numbers))
    return codes


def _restore_encoder(kind: str, step: Any, learned: dict[str, Any]) -> None:
    categories = [_categories(kind, each) for each in instance(learned, "categories", list)]
    infrequent = instance(learned, "infrequent", list)
    require(len(infrequent) == len(categories) > 0, f"{kind} has no columns")
    for few, values in zip(infrequent, categories, strict=True):
        if few is not None:
            array_of({"infrequent": few}, "infrequent", np.int64, (None,), 0, len(values) - 1)
    require(isinstance(getattr(step, "drop", None), str | None), f"{kind} drops a list")
    # `fit` must find the categories in the table of numbers, so the file may not give them, too.
    require(isinstance(step.categories, str), f"{kind} has its categories twice")
    own = {name: getattr(step, name) for name in ("min_frequency", "max_categories")}
    groups = any(each is not None for each in own.values())
    step.set_params(min_frequency=2 if groups else None, max_categories=None)
    step.fit(_codes(kind, categories, infrequent)).set_params(**own)
    step.categories_ = categories
    if flag(learned, "given"):
        step.categories = categories


def _categories(kind: str, values: Any) -> np.ndarray:
    values = _values(kind, values)
    require(len(values) > 0, f"{kind} has a column without categories")
    known = values[:-1] if _is_nan(values[-1]) else values
    if values.dtype.kind == "O":
        sound = len(set(known.tolist())) == len(known) and not any(map(_is_nan, known))
    else:
        # scikit-learn finds the positions of values by binary search.
        sound = bool((known[1:] > known[:-1]).all())
    require(sound, f"{kind} has a category twice, or its categories do not rise")
    return values


def _saved_imputer(step: Any, parameters: dict[str, Any]) -> dict[str, Any]:
    indicator = step.indicator_
    return {
        "statistics": _plain("SimpleImputer", step.statistics_),
        # Rows are converted to this type if it is object.
        "dtype": np.dtype(getattr(step, "_fit_dtype", step.statistics_.dtype)).name,
        "indicated": None if indicator is None else indicator.features_.astype(np.int64),
    }


def _restore_imputer(kind: str, step: Any, learned: dict[str, Any]) -> None:
    statistics = _values(kind, part(learned, "statistics"))
    dtype, n = instance(learned, "dtype", str), len(statistics)
    sound = dtype == "object" or all(isinstance(each, Real) for each in statistics.tolist())
    require(dtype in _ROW_TYPES and n > 0 and sound, f"{kind} has no rows of numbers or objects")
    indicated = optional(learned, "indicated", array_of, np.int64, (None,), 0, n - 1)
    require((indicated is None) != bool(step.add_indicator), f"{kind} has no indicator")
    missing, filler = step.missing_values, ["x", "y"] if dtype == "object" else [0, 1]
    rows = np.full((2, n), filler[missing == filler[0]], dtype=dtype)
    # A column without a statistic has only missing values. One with an indicator has some.
    for row, at in ((0, np.flatnonzero(list(map(_is_nan, statistics)))), (1, indicated)):
        if at is not None and len(at):
            rows[row:, at] = missing
    step.fit(rows)
    step.statistics_ = statistics


def _saved_selection(step: Any, parameters: dict[str, Any]) -> dict[str, Any]:
    functions = import_module("sklearn.feature_selection")
    names = [each for each in _SCORES if getattr(functions, each) is step.score_func]
    if not names:
        raise ValueError(
            "The score_func of SelectKBest is not one of sklearn.feature_selection. A model file "
            "can't hold functions, because loading one never runs code from it. Save the pipeline "
            "with joblib.dump."
        )
    parameters["score_func"] = names[0]
    return {"scores_": step.scores_, "pvalues_": step.pvalues_}


def _restore_selection(kind: str, step: Any, learned: dict[str, Any]) -> None:
    step.scores_ = array_of(learned, "scores_", np.float64, (None,))
    step.n_features_in_ = n = len(step.scores_)
    require(n > 0, f"{kind} has no scores")
    step.pvalues_ = optional(learned, "pvalues_", array_of, np.float64, (n,))


def _saved_projection(step: Any, parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: getattr(step, name) for name in ("components_", *_OF_COMPONENTS)}


def _restore_projection(kind: str, step: Any, learned: dict[str, Any]) -> None:
    given = instance(learned, "components_", np.ndarray)
    dtype = np.float32 if given.dtype == np.float32 else np.float64
    step.components_ = array_of(learned, "components_", dtype, (None, None))
    n, step.n_features_in_ = given.shape
    require(given.size > 0 and bool(np.isfinite(given).all()), f"{kind} has no components")
    for name in _OF_COMPONENTS:
        dtype = np.float32 if part(learned, name).dtype == np.float32 else np.float64
        setattr(step, name, array_of(learned, name, dtype, (n,)))


#: The functions that save and restore what a step has learned.
KINDS = {
    "OneHotEncoder": (_saved_encoder, _restore_encoder),
    "OrdinalEncoder": (_saved_encoder, _restore_encoder),
    "SelectKBest": (_saved_selection, _restore_selection),
    "SimpleImputer": (_saved_imputer, _restore_imputer),
    "TruncatedSVD": (_saved_projection, _restore_projection),
}


def _columns(step: Any, columns: Any) -> list[Any]:
    """Return the selected columns of a ColumnTransformer as a list of names or numbers."""
    if isinstance(columns, slice):
        if isinstance(columns.start, str) or isinstance(columns.stop, str):
            raise ValueError(
                "ColumnTransformer has a slice of names, which a model file can't hold. Pass a "
                "list of names."
            )
        return list(range(step.n_features_in_)[columns])
    found = np.atleast_1d(np.asarray(columns))
    plain: list[Any] = (np.flatnonzero(found) if found.dtype.kind == "b" else found).tolist()
    return plain


def saved_columns(step: Any, parameters: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the names and transformers of a ColumnTransformer, which may be "drop" and
    "passthrough", and its other learned values."""
    for name in set(parameters) - set(_OF_COLUMNS):
        del parameters[name]
    if not isinstance(step.verbose_feature_names_out, bool):
        raise ValueError(
            "verbose_feature_names_out of ColumnTransformer is no bool, and a model file can't "
            "hold it. Pass True or False."
        )
    members, columns = [], []
    for name, made, at in step.transformers_:
        chosen = _columns(step, at)
        passes = type(made).__name__ == "FunctionTransformer" and made.func is None
        member = "drop" if not chosen else "passthrough" if passes else made
        members.append((name, member))
        columns.append({"at": chosen, "one": bool(np.isscalar(at))})
    return members, {
        "columns": columns,
        "remainder": len(members) > len(step.transformers),
        "sparse_output": bool(step.sparse_output_),
        "n_features_in_": step.n_features_in_,
        "feature_names_in_": getattr(step, "feature_names_in_", None),
    }


def _selections(
    members: list[tuple[str, Any]], learned: dict[str, Any], n: int, names: Any
) -> list[tuple[Any, list[int]]]:
    """Return the columns of each member of a ColumnTransformer as given, and as numbers."""
    columns, found = instance(learned, "columns", list), []
    require(len(columns) == len(members), "ColumnTransformer has other columns")
    numbers = {} if names is None else {name: i for i, name in enumerate(names.tolist())}
    for (name, step), each in zip(members, columns, strict=True):
        given, is_one = instance(each, "at", list), flag(each, "one")
        at: list[Any] = [numbers.get(i) if isinstance(i, str) else i for i in given]
        sound = all(type(i) is int and -n <= i < n for i in at) and (not is_one or len(at) == 1)
        require(sound, "ColumnTransformer takes unknown columns")
        takes = len(at) if is_one else getattr(step, "n_features_in_", len(at))
        require(takes == len(at), f"{name!r} takes {takes} columns, not {len(at)}")
        found.append((given[0] if is_one else given, [i % n for i in at]))
    return found


def restored_columns(
    members: list[tuple[str, Any]], parameters: dict[str, Any], learned: dict[str, Any]
) -> Any:
    """Return the ColumnTransformer of restored members."""
    kind, clone = "ColumnTransformer", import_module("sklearn.base").clone
    n = integer(learned, "n_features_in_", 1, _MOST_COLUMNS)
    names = optional(learned, "feature_names_in_", array_of, object, (n,))
    require(set(parameters) == set(_OF_COLUMNS), f"{kind} has other parameters")
    flag(parameters, "verbose_feature_names_out")
    selections, has_rest = _selections(members, learned, n, names), flag(learned, "remainder")
    sound = len(members) > has_rest and (not has_rest or members[-1][0] == "remainder")
    require(sound, f"{kind} has another remainder")
    places = [
        (name, step if isinstance(step, str) else "passthrough", at)
        for (name, step), (_, at) in zip(members, selections, strict=True)
    ]
    rest = places.pop()[1] if has_rest else "drop"
    # Fitting a transformer without the members determines the places of the columns.
    result = import_module("sklearn.compose").ColumnTransformer(places, remainder=rest)
    result.fit(np.zeros((1, n)))
    require(len(result.transformers_) >= len(members), f"{kind} has another remainder")
    fresh, stop = [], 0
    for i, ((name, step), (given, at)) in enumerate(zip(members, selections, strict=True)):
        is_step = not isinstance(step, str)
        width = checks.n_columns_of(step) if is_step else len(at) if step == "passthrough" else 0
        require(width is not None, f"{name!r} has no number of columns")
        result.output_indices_[name] = slice(stop, stop := stop + (width or 0))
        result.transformers_[i] = (name, step if is_step else result.transformers_[i][1], given)
        fresh.append((name, clone(step) if is_step else step, given))
    result.remainder = fresh.pop()[1] if has_rest else "drop"
    result.transformers = fresh
    for name, value in parameters.items():
        setattr(result, name, value)
    result._validate_params()
    checks.check_jobs(kind, result)
    checks.check_weights(kind, parameters)
    if names is not None:
        result.feature_names_in_ = names
    result.sparse_output_ = flag(learned, "sparse_output")
    return result
