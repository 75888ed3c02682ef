"""Checks of arguments. They do not import scikit-learn, which takes about 1 s to import."""

import operator
import sys
from collections.abc import Iterable, Iterator, Mapping, Set
from difflib import get_close_matches
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import DTypeLike


def check_count(name: str, value: object, low: int, high: int) -> int:
    """Return `value` as an int in [low, high], or raise a ValueError that names the argument."""
    try:
        count = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        count = None
    if count is None or isinstance(value, bool) or not low <= count <= high:
        bounds = f"of at least {low}" if high == sys.maxsize else f"from {low} to {high}"
        raise ValueError(f"{name} must be an integer {bounds}, got {value!r}")
    return count


def check_real(name: str, value: object, low: float, high: float) -> float:
    """Return `value` as a float in [low, high], or raise a ValueError that names the argument."""
    is_number = isinstance(value, int | float | np.integer | np.floating)
    if not is_number or isinstance(value, bool) or not low <= value <= high:  # type: ignore[operator]
        raise ValueError(f"{name} must be a number from {low} to {high}, got {value!r}")
    return float(value)  # type: ignore[arg-type]


def check_float_dtype(dtype: DTypeLike) -> np.dtype:
    """Return `dtype` as a NumPy dtype, float32 or float64."""
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = None
    if found not in (np.float32, np.float64):
        raise ValueError(f"dtype must be numpy.float32 or numpy.float64, got {dtype!r}")
    return found


def check_flag(name: str, value: object) -> bool:
    """Return `value` as a bool, refusing strings and numbers that merely count as true."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Raise a ValueError that names the argument if `value` is not one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return " Did you mean 'WORD'?" with the most similar known word, or "" if none is similar."""
    near = get_close_matches(str(word), known, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def check_no_anndata_or_mask(X: Any) -> None:
    """Raise a ValueError with a remedy if X is an AnnData or has masked values."""
    # The type is checked, because a table may have columns with these names.
    if hasattr(type(X), "obs") and hasattr(type(X), "X"):
        raise ValueError(
            f"X is an {type(X).__name__}, which holds more than a matrix. Pass adata.X, or one of "
            "adata.layers, and the labels as y=adata.obs[name]."
        )
    if isinstance(X, np.ma.MaskedArray):
        for place in np.argwhere(np.ma.getmaskarray(X))[:1].tolist():
            raise ValueError(
                f"X{place} is masked: this value is missing. Leave masked rows out of X and y: "
                "keep = ~numpy.ma.getmaskarray(X).any(axis=1), then X[keep] and "
                "numpy.asarray(y)[keep]. Or impute the values."
            )


def check_texts(name: str, texts: Any) -> None:
    """Raise an error that names the argument if `texts` is not a sequence of texts.

    A single text, a table, a mapping, a set and an array that is not one-dimensional raise a
    ValueError, because iterating over them does not give their texts. An object that is not
    iterable raises a TypeError.
    """
    if type(texts) is list:
        return
    kind = type(texts).__name__
    if isinstance(texts, str | bytes | bytearray):
        raise ValueError(
            "Iterable over raw text documents expected, string object received. Pass a list of "
            f"texts: {name}=[text]."
        )
    if isinstance(texts, Mapping):
        single = all(isinstance(each, str | bytes) for each in texts.values())
        key = "text" if "text" in texts or not texts else next(iter(texts))
        way = f"list({name}.values())" if single else f"{name}[{key!r}]"
        raise ValueError(
            f"{name} is a {kind}, whose keys are no texts. Pass {way}, or, for one row of a table, "
            f"pandas.DataFrame([{name}])."
        )
    if isinstance(texts, Set):
        raise ValueError(f"{name} is a {kind}, which has no order. Pass a list of texts.")
    columns = columns_of_table(texts)
    if columns is not None:
        column = columns[0] if len(columns) == 1 else "text" if "text" in columns else None
        way = f"{name}[{'COLUMN' if column is None else repr(column)}]"
        shown = ", ".join(columns[:10])
        raise ValueError(
            f"{name} is a {kind} with the columns {shown}. Pass the column of the texts: {way}."
        )
    if not hasattr(texts, "__iter__") and not hasattr(texts, "__getitem__"):
        raise TypeError(f"{name} must be a list of texts, got {texts!r}.")
    n_dimensions = getattr(texts, "ndim", 1)
    if n_dimensions != 1:
        way = "a list of texts"
        if hasattr(texts, "nnz"):
            way += ", without a vectorizer before. For a matrix of features use AutoClassifier"
        elif n_dimensions == 2 and texts.shape[1] == 1:
            way = f"{name}[:, 0]"
        elif n_dimensions == 2:
            way = f"one column of it, {name}[:, j], or a DataFrame and text=[COLUMN, COLUMN]"
        raise ValueError(
            f"{name} is a {kind} of {n_dimensions} dimensions, and texts have one. Pass {way}."
        )


def check_no_iterator(name: str, values: object) -> None:
    """Raise a ValueError with a remedy if `values` can be read only once, as a generator can."""
    if isinstance(values, Iterator) and not hasattr(values, "__array__"):
        raise ValueError(
            f"{name} is a {type(values).__name__}, which can be read only once. Pass list({name})."
        )


def columns_of_table(table: Any) -> list[str] | None:
    """Return the column names of a pandas, polars or pyarrow table, or None for other objects."""
    kind = type(table)
    if hasattr(kind, "column_names"):
        return list(map(str, table.column_names))
    if hasattr(kind, "schema") and hasattr(kind, "to_pylist"):
        return list(map(str, table.schema.names))
    if hasattr(kind, "collect_schema"):
        return list(map(str, table.collect_schema().names()))
    if getattr(table, "ndim", 1) == 2 and hasattr(table, "columns"):
        return list(map(str, table.columns))
    return None


def types_of_columns(table: Any) -> list[Any]:
    """Return the types of the columns of a pandas, polars or pyarrow table; [] for other objects.
    Those of pyarrow are given as types of NumPy or pandas, or as None if there is no such type."""
    kind = type(table)
    if hasattr(kind, "schema") and hasattr(kind, "to_pylist"):
        arrow = table.schema.types
        found = {each: _type_of_pandas(each) for each in set(arrow)}
        return [found[each] for each in arrow]
    return list(table.dtypes) if hasattr(kind, "dtypes") and hasattr(kind, "columns") else []


def _type_of_pandas(arrow: Any) -> Any:
    try:
        found = arrow.to_pandas_dtype()
    except NotImplementedError:
        return None
    return found if hasattr(found, "kind") else np.dtype(found)


def is_time(dtype: Any) -> bool:
    """Return whether a type of NumPy, pandas or polars is one of dates, times or durations, or of
    categories of such."""
    dtype = getattr(getattr(dtype, "categories", None), "dtype", dtype)
    return getattr(dtype, "kind", "O") in "mM" or getattr(dtype, "is_temporal", bool)()


def is_category(dtype: Any) -> bool:
    """Return whether a type is pandas' type of categories."""
    return getattr(dtype, "name", "") == "category"


def fault_of_columns(table: Any) -> tuple[str, str] | None:
    """Return the name of the first column of a pandas, polars or pyarrow table that can't be taken
    as numbers, and what it has, in words. Return None if there is none, and for other objects.

    Without this check, NumPy would take times as numbers, and pandas would take missing categories
    of integers as -9.2e18.
    """
    names = columns_of_table(table) or []
    for i, (name, dtype) in enumerate(zip(names, types_of_columns(table), strict=False)):
        # Types of pandas have a `kind`, those of polars the method `is_numeric`.
        if getattr(dtype, "kind", "O") in "biuf" or getattr(dtype, "is_numeric", bool)():
            continue
        if hasattr(type(table), "to_pylist"):
            values = table.column(i).to_pylist()
        else:
            values = table.iloc[:, i] if hasattr(table, "iloc") else table[:, i]
        for value in values:
            if value is not None and not isinstance(value, Number | np.bool_):
                return name, f"values that are no numbers, such as {str(value)!r}"
        if is_time(dtype):
            return name, "dates or times"
        if is_category(dtype) and getattr(values, "hasnans", False):
            return name, f"a missing category in row {int(values.isna().argmax())}"
    return None
