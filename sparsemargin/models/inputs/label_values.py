"""Conversion of values to labels, for arrays in memory and for fields of files.

Only `plain_label` decides which values are labels. `label_array` converts the labels of rows in
memory to an array. `file_labels` converts a field of a text file to strings. This module does not
need scikit-learn, pandas, pyarrow or polars.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from decimal import Decimal
from enum import Enum
from math import isfinite, isnan
from numbers import Integral, Rational
from typing import Any

import numpy as np

from sparsemargin.models.inputs.label_table import label_text

_BYTE_ORDER_MARK = "\ufeff"

#: A double represents every whole number up to this one exactly.
LARGEST_EXACT = 1 << 53

# Largest Decimal or Fraction label. As integers, larger ones could take much memory.
_LARGEST_WHOLE = 10**80

# Maximum number of characters of a value in a message.
_LONGEST_SHOWN = 40

# Types whose values `numpy.array` converts to labels without loss.
_PLAIN_TYPES = {str, bool, int, float}

# End of the messages about rows in memory without a label.
_DROP_ROWS = (
    "Leave rows without one out of X and y: y = numpy.array(y, dtype=object).ravel(), keep = {}, "
    "then X[keep] (numpy.asarray(X)[keep] if X is a list) and y[keep]."
)
#: End of the message about missing values.
DROP_ROWS = _DROP_ROWS.format("pandas.notna(y)")
_DROP_EMPTY = _DROP_ROWS.format("y != ''")

#: Message for an empty label field of a file.
NO_LABEL = "{!r} is empty: this row has no label. Give it one, or drop the row."

_DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
_NAMES_OF_MISSING = {"NAType", "NaTType"}


class NotALabelError(ValueError):
    """Raised for a value that is not a label.

    The message is the end of a sentence about the value. `missing` is True for a missing value.
    """

    def __init__(self, what: str, *, missing: bool = False) -> None:
        super().__init__(what)
        self.missing = missing


def is_missing(value: Any) -> bool:
    """Return whether a value is a missing value: None, NaN, NaT or pandas.NA."""
    if value is None or type(value).__name__ in _NAMES_OF_MISSING:
        return True
    if isinstance(value, float | np.floating | Decimal):
        return bool(isnan(value))
    return isinstance(value, np.datetime64 | np.timedelta64) and bool(np.isnat(value))


def plain_label(value: Any) -> str | bool | int | float:
    """Return a label as Python's own str, bool, int or float, or raise a NotALabelError.

    A label is a str or UTF-8 bytes that are not empty, a bool, an integer, a finite float, or a
    whole Decimal or Fraction, of Python or NumPy, including subclasses such as members of
    ``(str, Enum)``; or a pyarrow scalar with such a value.
    """
    if hasattr(value, "as_py"):
        value = value.as_py()
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value[()]
    if is_missing(value):
        raise NotALabelError("is missing", missing=True)
    if isinstance(value, str):
        return _checked_label(str.__str__(value))
    if isinstance(value, bytes):
        try:
            return _checked_label(value.decode())
        except UnicodeDecodeError:
            raise NotALabelError("is bytes that are not UTF-8. Decode the labels first") from None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, _DATES) or type(value).__name__ in ("Period", "Interval"):
        raise NotALabelError(
            "is a date, a time or an interval. Make text of the labels: str(label), with pandas "
            ".astype('string')"
        )
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, float | np.floating):
        return _checked_float(value)
    if isinstance(value, Decimal | Rational):
        return _whole(value)
    if isinstance(value, Enum):
        raise NotALabelError(f"is a {type(value).__name__}. Give its value: label.value")
    raise NotALabelError(
        f"is a {type(value).__name__}, neither a number nor text. Give a number or a word"
    )


def _whole(value: Any) -> int:
    if abs(value) > _LARGEST_WHOLE:
        raise NotALabelError("is too large a number. Give the class a word")
    if value != int(value):
        raise NotALabelError("is a measurement, not a class. Give the class a word")
    return int(value)


def _checked_label(text: str) -> str:
    if not text:
        raise NotALabelError("is empty", missing=True)
    return _checked_text(text)


def _checked_text(text: str) -> str:
    if "\0" in text:
        raise NotALabelError("has a NUL character, which NumPy's text can't hold. Delete it")
    return text


def _checked_float(value: float | np.floating) -> float:
    if not isfinite(value):
        raise NotALabelError("is infinite. Give the class a finite number, or a word")
    if abs(float(value)) >= 2**63:
        raise NotALabelError("is too large a number. Give the class a word")
    if float(value) != value:
        raise NotALabelError("is no number that a double can hold. Give the class a word")
    return float(value)


# ------------------------------------------------------------------------------------ memory


def unwrapped(y: Any) -> Any:
    """Return labels in memory as a list, a tuple or a plain array.

    Sparse matrices, tables and other objects that `numpy.asarray` converts without loss are
    returned unchanged. Nullable columns of pandas, polars and pyarrow become lists, or arrays of
    dtype object, with None or pandas.NA for missing labels. For a masked array with masked entries,
    a ValueError names the first one.
    """
    if isinstance(y, np.ma.MaskedArray):
        for row in np.argwhere(np.ma.getmaskarray(y))[:1].tolist():
            raise ValueError(
                f"y{row} is masked: this row has no label. Leave masked rows out of X and y: "
                "keep = ~numpy.ma.getmaskarray(y), then X[keep] (numpy.asarray(X)[keep] if X is a "
                "list) and y[keep]."
            )
        return np.asarray(y.data)
    if hasattr(y, "to_pylist") and not hasattr(y, "schema"):  # a pyarrow array, not a table
        return y.to_pylist()
    dtype = getattr(y, "dtype", None)
    if dtype is None or isinstance(dtype, np.dtype) or getattr(y, "ndim", 1) != 1:
        return y
    for name in ("tolist", "to_list"):
        if hasattr(y, name):
            return getattr(y, name)()
    return np.asarray(y, dtype=object)


def label_array(values: Any, place: Any = "y[{}]".format) -> np.ndarray:
    """Return labels as an array of bool, integer, float or str, shape (n_labels,).

    Numeric and str arrays keep their type, in native byte order. A ValueError names the `place` of
    a value that is missing or not a label, of types that are mixed, and of numbers that no dtype
    represents exactly.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "biufU":
        return _checked_array(values, place)
    # `tolist` can make integers of dates.
    if isinstance(values, np.ndarray) and values.dtype.kind not in "mM":
        values = values.tolist()
    values, types = list(values), set(map(type, values))
    is_mixed = len(types) > 1 and types != {int, float}
    is_text = types == {str} and all(value and "\0" not in value for value in values)
    if is_mixed or (not types <= _PLAIN_TYPES - {str} and not is_text):
        for i in (i for i, value in enumerate(values) if is_missing(value)):
            _placed(values[i], place, i)
        values = [_placed(value, place, i) for i, value in enumerate(values)]
        types = set(map(type, values))
        if len(types) > 1 and types != {int, float}:
            _refuse_mixed(values, place)
    if types == {str}:
        return np.array(values, dtype=np.str_)
    if int in types and max(map(abs, values), default=0) > LARGEST_EXACT:
        return _large_integers(values, place)
    return _checked_array(np.array(values), place)


def _placed(value: Any, place: Any, i: int) -> Any:
    try:
        return plain_label(value)
    except NotALabelError as error:
        if error.missing:
            shown = "NaN" if isinstance(value, float | np.floating) else value
            shown, remedy = (shown, DROP_ROWS) if is_missing(value) else ("''", _DROP_EMPTY)
            raise ValueError(f"{place(i)} is {shown}: this row has no label. {remedy}") from None
        raise ValueError(f"{place(i)} = {quoted_value(value)} {error}.") from None


def quoted_value(value: Any) -> str:
    """Return the repr of a value, truncated if it is long."""
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _refuse_mixed(values: list[Any], place: Any) -> None:
    first_of: dict[type, int] = {}
    for i, value in enumerate(values):
        first_of.setdefault(type(value), i)
    types = [f"{place(i)} is of type {kind.__name__}" for kind, i in first_of.items()]
    raise ValueError(
        f"y mixes types: {', '.join(types[:2])}. Give labels of one type, numbers or text."
    )


def _large_integers(values: list[Any], place: Any) -> np.ndarray:
    """Return labels of which some exceed `LARGEST_EXACT` as int64 or uint64. A ValueError is raised
    if they fit into neither."""
    largest = 2**63 if min(values) < 0 else 2**64
    for i, value in enumerate(values):
        if isinstance(value, float) or not -(2**63) <= value < largest:
            raise ValueError(
                f"{place(i)} = {value!r} and other labels are no numbers that one type can hold "
                "exactly. Make text of all labels: str(label)."
            )
    return np.array(values, dtype=np.int64 if max(values) < 2**63 else np.uint64)


def _checked_array(array: np.ndarray, place: Any) -> np.ndarray:
    """Return an array of numbers or text in native byte order. Floats must be finite, and texts not
    empty."""
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.dtype.kind == "U":
        for i in np.flatnonzero(array == "")[:1].tolist():
            _placed(array[i], place, i)
    if array.dtype.kind == "f":
        for wrong in (np.isnan(array), np.isinf(array)):
            for i in np.flatnonzero(wrong)[:1].tolist():
                _placed(array[i], place, i)
        if array.dtype.itemsize > 8:
            double = array.astype(np.float64)
            for i in np.flatnonzero(double != array)[:1].tolist():
                _placed(array[i], place, i)
            array = double
    return array


# ------------------------------------------------------------------------------------- files


def file_label(value: Any) -> str:
    """Return a label as text, for a value from a table or JSON file.

    Booleans become True and False, whole numbers are written without a decimal point, and white
    space around text is removed. A NotALabelError is raised for values that are no labels.

    Examples
    --------
    >>> file_label(1.0), file_label(True), file_label(" spam ")
    ('1', 'True', 'spam')
    """
    label = plain_label(value)
    if isinstance(label, str):
        word = _word(label)
        if not word:
            raise NotALabelError("is empty", missing=True)
        return word
    if isinstance(label, float) and not label.is_integer():
        raise NotALabelError(
            "is a measurement, not a class. Give each class a word, or a whole number"
        )
    return label_text(label)


def _word(text: str) -> str:
    """Return a label from a file without the white space around it."""
    word = _checked_text(text.strip())
    if _BYTE_ORDER_MARK in word:
        raise NotALabelError(
            "has a byte-order mark, with which it is another label that looks the same. Delete the "
            "mark; files that begin with one are named one by one, not joined"
        )
    return word


def spaced_label(text: str) -> str:
    """Return a label from a format in which a space ends the label, such as fastText's."""
    if "\xa0" in text:
        raise NotALabelError(
            "has a no-break space, which does not end a label. Make the space a plain one"
        )
    return _word(text)


def file_labels(value: Any, commas: bool) -> list[str]:
    """Return the labels in a field of a file.

    A list contains any number of labels. A string contains one label, or, with `commas`, labels
    separated by commas; an empty string contains none. Other values are one label. A NotALabelError
    is raised for values that are no labels.
    """
    if isinstance(value, str):
        return list(filter(None, map(_word, value.split(",") if commas else [value])))
    if not isinstance(value, list):
        return [file_label(value)]
    labels = []
    for each in value:
        try:
            labels.append(file_label(each))
        except NotALabelError as error:
            what = "is no label" if error.missing else str(error)
            raise NotALabelError(
                f"is a list in which {quoted_value(each)} {what}. Lists hold names of labels"
            ) from None
    if len(set(labels)) < len(labels) and is_indicator([value]):
        raise NotALabelError(INDICATOR)
    return labels


INDICATOR = (
    "is a list of 0 and 1, an indicator, which files don't have. Write a list of the names of the "
    "row's labels"
)


def is_indicator(values: Iterable[Any]) -> bool:
    """Return whether all values are lists of 0 and 1 with the same length of at least 2."""
    lengths = set()
    for value in values:
        if not isinstance(value, list) or not all(
            isinstance(each, bool | int | float) and each in (0, 1) for each in value
        ):
            return False
        lengths.add(len(value))
    return len(lengths) == 1 and lengths.pop() > 1


def file_text(value: Any) -> str:
    """Return a text from a table or JSON file. A NotALabelError is raised for other values, and for
    bytes that are not UTF-8."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise NotALabelError(
                f"is bytes that are not UTF-8 (byte {value[error.start]:#04x}). Decode them by "
                "their encoding, such as latin-1, and write a column of strings"
            ) from None
    if is_missing(value):
        raise NotALabelError("is empty", missing=True)
    if isinstance(value, list | dict | tuple):
        raise NotALabelError(
            f"is {'an object' if isinstance(value, dict) else 'a list'}, not a text. Join its "
            "parts into one string"
        )
    raise NotALabelError(
        "is not a text. Name another column by text=COLUMN, or convert this one, with pandas by "
        ".astype('string')"
    )
