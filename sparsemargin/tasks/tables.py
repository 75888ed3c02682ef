"""Texts and labels in tables: columns of DataFrames, and missing values.

A table is a pandas or polars DataFrame, a pyarrow Table or a Hugging Face Dataset. Each gives a
column by ``table[name]``, so none of these packages is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, get_args

import numpy as np

from sparsemargin._checks import check_choice, check_texts, columns_of_table, did_you_mean
from sparsemargin._engine.messages import warn_user
from sparsemargin.models.inputs.label_values import is_missing
from sparsemargin.readers.text_forms import Missing


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
    columns = columns_of_table(table) or []
    if name not in columns:
        raise ValueError(
            f"{argument}={name!r} is no column.{did_you_mean(name, columns)} "
            f"The columns are {_shown(columns)}."
        )
    if columns.count(name) > 1:
        raise ValueError(f"The table has several columns {name!r}. Rename all but one of them.")
    if hasattr(table, "collect") and hasattr(table, "collect_schema"):
        raise ValueError("The table is lazy and has no rows yet. Pass table.collect().")
    return table[name]


def labels_in(table: Any, y: Any) -> Any:
    """Return the labels: the column of the table if `y` is a name, otherwise `y` itself."""
    if not isinstance(y, str):
        return y
    if columns_of_table(table) is None:
        raise ValueError(
            f"y={y!r} names a column, but X is no table. Pass the labels, one for each text."
        )
    return column_of(table, y, "y")


def _shown(columns: list[str]) -> str:
    return ", ".join(map(repr, columns[:20]))


def texts_in(
    X: Any, text: str | Sequence[str] | None, missing: Missing, *, label: Any = None,
    warn: bool = False,
) -> tuple[Any, np.ndarray | None]:  # fmt: skip
    """Return the texts of `X`, and the rows to keep.

    Parameters
    ----------
    X : iterable of str, or table
    text : str, sequence of str or None
        Columns of a table. Texts in several columns are joined by line ends.
    missing : {"error", "empty", "drop"}
        A missing text raises a ValueError, or counts as "". "drop" marks rows without any text.
    label : object
        A column that is not text, if it is a str.
    warn : bool
        Whether to warn once about other columns, which are not used.

    Returns
    -------
    texts : iterable
        A text for each row. Iterables other than tables are returned unchanged where possible.
    kept : ndarray of shape (n_rows,), bool, or None
        None: all rows are kept.
    """
    check_choice("missing", missing, get_args(Missing))
    columns = columns_of_table(X)
    if columns is None:
        check_texts("X", X)
        if missing == "error":
            return X, None
        return _filled([_as_list(X)], missing)
    names = _text_columns(text, columns)
    values = [_as_list(column_of(X, name, "text")) for name in names]
    others = [each for each in columns if each not in names and each != label]
    if warn and others:
        _warn_of_others(_shown(names), _shown(others))
    if missing == "error":
        for name, column in zip(names, values, strict=True):
            at = next((i for i, value in enumerate(column) if is_missing(value)), None)
            if at is not None:
                raise ValueError(
                    f"Row {at} of column {name!r} is {column[at]!r}, and not a text. Pass "
                    "missing='empty' to use '' in its place, or missing='drop' to leave such rows "
                    "out of training."
                )
    return _filled(values, missing)


@cache
def _warn_of_others(names: str, others: str) -> None:
    """Warn of columns without effect. The cache makes that once, and not in each fold of a
    cross-validation."""
    warn_user(f"Only the text in {names} is used. Other columns have no effect: {others}.")


def _as_list(values: Any) -> list[Any]:
    return list(values.to_pylist() if hasattr(values, "to_pylist") else values)


def _text_columns(text: str | Sequence[str] | None, columns: list[str]) -> list[str]:
    names = [text] if isinstance(text, str) else list(text or ())
    if not names:
        raise ValueError(
            "X is a table, and text does not name the column with the texts. Pass text=COLUMN, or "
            f"several: text=[COLUMN, COLUMN]. The columns are {_shown(columns)}."
        )
    if len(set(names)) < len(names):
        raise ValueError(f"text={names} names a column several times. Name each column once.")
    return names


def _filled(columns: list[list[Any]], missing: Missing) -> tuple[list[Any], np.ndarray | None]:
    """Return the joined texts of columns, and the rows that have a text. See `texts_in`."""
    absent = np.array([[is_missing(value) for value in column] for column in columns], dtype=bool)
    if absent.any():
        columns = [["" if is_missing(value) else value for value in column] for column in columns]
    texts = columns[0]
    if len(columns) > 1:
        texts = ["\n".join(_as_text(value, i) for value in row)
                 for i, row in enumerate(zip(*columns, strict=True))]  # fmt: skip
    if missing == "drop" and absent.any():
        return texts, ~np.logical_and.reduce(absent)
    return texts, None


def _as_text(value: Any, row: int) -> str:
    if not isinstance(value, str):
        raise ValueError(
            f"Row {row} has {value!r} in a text column, which is no text. Convert it to str."
        )
    return value
