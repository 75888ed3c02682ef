"""Texts and labels in tables: columns of DataFrames, and missing values.

A table is a pandas or polars DataFrame, a pyarrow Table or a Hugging Face Dataset. Each gives a
column by ``table[name]``, so none of these packages is imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from numbers import Number
from typing import Any, get_args

import numpy as np
from sklearn.utils import _safe_indexing

from sparsemargin._checks import check_choice, check_texts, columns_of_table, did_you_mean
from sparsemargin._engine.messages import warn_user
from sparsemargin.files.kinds import names_file
from sparsemargin.models.inputs.label_values import is_missing
from sparsemargin.readers.text_forms import Missing, fill_missing

_REMEDY = (
    "Pass missing='empty' to use '' in its place, or missing='drop' to leave such rows out of "
    "training."
)


def column_of(table: Any, name: str, argument: str) -> Any:
    """Return a column of a table, in the table's own form.

    Parameters
    ----------
    table : DataFrame or Table
    name : str
        Name of the column.
    argument : str
        The argument that gives `name`, for error messages.
    """
    columns = _columns_of(table) or []
    if name not in columns:
        raise ValueError(
            f"{argument}={name!r} is not a column.{did_you_mean(name, columns)} "
            f"The columns are {_shown(columns)}. Pass a table with this column."
        )
    if columns.count(name) > 1:
        raise ValueError(f"The table has several columns {name!r}. Rename all but one of them.")
    if hasattr(table, "collect") and hasattr(table, "collect_schema"):
        raise ValueError("The table is lazy and has no rows yet. Pass table.collect().")
    try:
        return table[name]
    except KeyError:
        raise ValueError(
            f"The name of column {name!r} is not a str. Rename the columns, with pandas by "
            "df.columns = df.columns.map(str)."
        ) from None


def _columns_of(table: Any) -> list[str] | None:
    """Return the column names of a table, or None for other objects. Raise a ValueError for names
    of several levels."""
    if hasattr(getattr(table, "columns", None), "levels"):
        raise ValueError(
            "The names of the columns have several levels. Join the levels: "
            "df.columns = ['_'.join(map(str, each)) for each in df.columns]."
        )
    return columns_of_table(table)


def labels_in(table: Any, y: Any, kept: np.ndarray | None = None) -> Any:
    """Return the labels: those of the table's column if `y` is a name, otherwise `y` itself.

    In a column, floats that are whole numbers become int, because pandas stores integers as floats
    if some are missing. A missing label raises a ValueError unless its row is not among those
    `kept`.
    """
    if not isinstance(y, str):
        return list(y) if isinstance(y, Iterator) else y
    if _columns_of(table) is None:
        raise ValueError(
            f"y={y!r} names a column, but X is not a table. Pass the labels, one for each text, or "
            "pass the table and text=COLUMN."
        )
    labels = as_list(column_of(table, y, "y"))
    rows = range(len(labels)) if kept is None else np.flatnonzero(kept).tolist()
    for at in rows:
        is_empty = isinstance(labels[at], str) and labels[at] == ""
        if is_empty or is_missing(labels[at]):
            way = f"df[df[{y!r}] != '']" if is_empty else f"df.dropna(subset=[{y!r}])"
            raise ValueError(
                f"Row {at} of column {y!r} has no label. Leave such rows out, with pandas by {way}."
            )
    return [int(each) if isinstance(each, float) and each.is_integer() else each for each in labels]


def _shown(columns: list[str]) -> str:
    return ", ".join(map(repr, columns[:20]))


def texts_in(
    X: Any, text: str | Sequence[str] | None, missing: Missing, *, labels: Any = None,
    warn: bool = False, argument: str = "X",
) -> tuple[list[str], np.ndarray | None]:  # fmt: skip
    """Return the texts of `X`, and the rows to keep.

    Parameters
    ----------
    X : iterable of str, or table
    text : str, sequence of str or None
        Columns of a table. Texts in several columns are joined by line ends.
    missing : {"error", "empty", "drop"}
        A missing text raises a ValueError, or counts as "". "drop" marks rows without any text.
    labels : object
        The labels, or the name of their column.
    warn : bool
        Whether to warn once about other columns, which are not used.
    argument : str
        The argument that gives `X`, for error messages.

    Returns
    -------
    texts : list
        A text for each row.
    kept : ndarray of shape (n_rows,), bool, or None
        None: all rows are kept.
    """
    check_choice("missing", missing, get_args(Missing))
    columns = _columns_of(X)
    if columns is None:
        _check_collection(argument, X, text)
        return _of_collection(as_list(X), missing)
    names = columns_named(text)
    if not names:
        raise ValueError(
            f"{argument} is a table, and text does not name the column with the texts. Pass "
            f"text=COLUMN, or several: text=[COLUMN, COLUMN]. The columns are {_shown(columns)}."
        )
    # Labels that were computed from a column of texts have its name.
    label = labels if isinstance(labels, str) else getattr(labels, "name", None)
    if label is labels and label in names:
        raise ValueError(f"y and text name the same column {label!r}. Name two different columns.")
    values = [as_list(column_of(X, name, "text")) for name in names]
    others = [each for each in columns if each not in names and each != label]
    if warn and others:
        _warn_of_others(_shown(names), _shown(others))
    for name, column in zip(names, values, strict=True):
        _check_column(name, column, missing)
    values, kept = fill_missing(values, missing)
    texts = values[0] if len(values) == 1 else list(map("\n".join, zip(*values, strict=True)))
    return texts, kept


def training_set(
    X: Any, y: Any, sample_weight: Any, text: str | Sequence[str] | None, missing: Missing
) -> tuple[list[str], Any, Any]:
    """Return the texts, labels and weights of training rows, without those that are left out. The
    arguments are those of `TextClassifier`."""
    texts, kept = texts_in(X, text, missing, labels=y, warn=True)
    y = labels_in(X, y, kept)
    if not len(texts):
        raise ValueError("X has no texts. Pass at least one.")
    check_lengths(texts, y=y, sample_weight=sample_weight)
    if kept is None:
        return texts, y, sample_weight
    if not kept.any():
        raise ValueError("All texts are missing. Pass at least one row with a text.")
    rows = np.flatnonzero(kept)
    return (
        [texts[i] for i in rows], _safe_indexing(y, rows),
        None if sample_weight is None else _safe_indexing(sample_weight, rows),
    )  # fmt: skip


def check_lengths(texts: list[Any], **others: Any) -> None:
    """Raise a ValueError if an argument with a length does not have one entry for each text."""
    for name, values in others.items():
        if getattr(values, "ndim", 0):
            n = values.shape[0]
        elif hasattr(values, "__len__") and not hasattr(values, "ndim"):
            n = len(values)
        else:
            continue
        if n != len(texts):
            raise ValueError(
                f"X has {len(texts)} texts, and {name} {n} entries. Pass one for each text."
            )


def columns_named(text: str | Sequence[str] | None) -> list[str]:
    """Return the names of columns in a list, after checking them."""
    names: Any = [] if text is None else text
    if isinstance(names, str | Mapping) or not hasattr(names, "__iter__"):
        names = [names]
    names = list(names)
    if not all(isinstance(name, str) for name in names):
        raise ValueError(
            f"text must be the name of a column, or a list of names, got {text!r}. If the names of "
            "columns are numbers, rename the columns: df.columns = df.columns.map(str)."
        )
    if len(set(names)) < len(names):
        raise ValueError(f"text={names} names a column several times. Name each column once.")
    return list(map(str, names))


def as_list(values: Any) -> list[Any]:
    """Return the values of a column or another iterable as a list of Python objects."""
    # Iteration gives Series for lists in a polars column, and NumPy's floats for some of pandas.
    for name in ("to_pylist", "to_list"):
        if hasattr(values, name):
            return list(getattr(values, name)())
    return list(values)


def _check_collection(argument: str, X: Any, text: Any) -> None:
    """Raise a ValueError if `X` is not a table, and not a collection of texts."""
    if names_file(X):
        raise ValueError(
            f"{argument}={X!r} names a file, and is not a list of texts or a table. Read the file, "
            "such as by pandas.read_csv. Or train by fit_text(PATH, label=COLUMN), and predict by "
            "the command sparsemargin predict MODEL PATH."
        )
    check_texts(argument, X)
    names = columns_named(text)
    index: Any = getattr(X, "index", None)
    if names and hasattr(index, "tolist") and all(name in index for name in names):
        raise ValueError(
            f"{argument} is one row of a table. Pass a table of one row: df.loc[[label]]."
        )


def _of_collection(
    texts: list[Any], missing: Missing
) -> tuple[list[Any], np.ndarray | None]:  # fmt: skip
    """Return the texts of a list, and the rows to keep. See `texts_in`."""
    if set(map(type, texts)) <= {str}:
        return texts, None
    for i, value in enumerate(texts):
        if missing == "error" and is_missing(value):
            raise ValueError(f"texts[{i}] is {value!r}, and not a text. {_REMEDY}")
        if isinstance(value, Mapping):
            raise ValueError(
                f"texts[{i}] is a {type(value).__name__}. Pass a table, pandas.DataFrame(X), and "
                "text=COLUMN."
            )
        if isinstance(value, Number) and not is_missing(value):
            raise ValueError(
                f"texts[{i}] is {value!r}, and not a text. Convert the numbers: "
                "pandas.Series(X, dtype=object).astype('string')."
            )
    [texts], kept = fill_missing([texts], missing)
    return texts, kept


def _check_column(name: str, values: list[Any], missing: Missing) -> None:
    """Raise a ValueError for the first value of a column that is not a text."""
    if set(map(type, values)) <= {str}:
        return
    for row, value in enumerate(values):
        if is_missing(value):
            if missing == "error":
                raise ValueError(f"Row {row} of column {name!r} is {value!r}. {_REMEDY}")
        elif not isinstance(value, str):
            raise ValueError(
                f"Row {row} of column {name!r} is {value!r}, and not a text. Pass another column, "
                f"or convert it, with pandas by df[{name!r}].astype('string')."
            )


@cache
def _warn_of_others(names: str, others: str) -> None:
    """Warn of columns without effect. Because of the cache, this is done once, and not in each fold
    of a cross-validation."""
    warn_user(f"Only the text in {names} is used. Other columns have no effect: {others}.")
