"""Checks and conversion of user input: matrices, labels, weights and classes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

import numpy as np
from scipy.sparse import (
    coo_array,
    csr_array,
    csr_matrix,
    dia_array,
    issparse,
)
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from sparsemargin._checks import (
    check_no_anndata_or_mask,
    check_no_iterator,
    fault_of_columns,
    is_category,
    is_time,
    types_of_columns,
)
from sparsemargin._engine.rows.csr import INDEX_TYPES, VALUE_TYPES
from sparsemargin.models.fitted.state import Fitted
from sparsemargin.models.inputs.label_values import label_array, unwrapped
from sparsemargin.models.inputs.labels import (
    LabelEncoder,
    MultilabelEncoder,
    refuse_lone,
    refuse_no_labels,
    warn_of_many_classes,
    whole_numbers,
)
from sparsemargin.models.inputs.multilabel_targets import MultilabelTargets
from sparsemargin.models.inputs.training_set import Targets


def is_plain_csr(X: Any) -> bool:
    """Return whether X is a CSR matrix with rows, columns and dtypes that the engine supports."""
    if type(X) not in (csr_matrix, csr_array) or len(X.shape) != 2:
        return False
    (n_rows, n_columns), data, indices, indptr = X.shape, X.data, X.indices, X.indptr
    return (
        n_rows > 0
        and 0 < n_columns <= sys.maxsize
        and all(isinstance(each, np.ndarray) and each.ndim == 1 for each in (data, indices, indptr))
        and data.dtype in VALUE_TYPES
        and indices.dtype in INDEX_TYPES
        and indices.dtype == indptr.dtype
    )


def as_csr(X: Any, check: Callable[..., Any] = check_array, **options: Any) -> Any:
    """Convert X to CSR with dtypes that the engine takes, with one of scikit-learn's functions as
    `check`. The entries are checked later."""
    if is_plain_csr(X):
        return X
    refuse_other_data(X)
    X = check_sparse(X)
    dtypes = [np.float64, np.float32]
    try:
        X = check(X, accept_sparse="csr", accept_large_sparse=True, dtype=dtypes, **options)
    except (TypeError, ValueError):
        _refuse_columns(X)
        raise
    return X if issparse(X) else _csr_of(X)


def _refuse_columns(table: Any) -> None:
    """Raise a ValueError with a remedy if a column of a table can't be taken as numbers."""
    if (fault := fault_of_columns(table)) is not None:
        name, what = fault
        raise ValueError(
            f"The column {name!r} of X has {what}. Convert it to numbers, for example with "
            "OneHotEncoder in a ColumnTransformer of scikit-learn, or leave it out."
        ) from None


def _csr_of(X: np.ndarray) -> csr_matrix:
    """Convert a dense array to CSR as `csr_matrix` does, but without coordinates of all entries.

    For an array without zeros this is 20 times faster and does not copy the values.
    """
    index = np.int32 if X.size <= np.iinfo(np.int32).max else np.int64
    columns = np.broadcast_to(np.arange(X.shape[1], dtype=index), X.shape)
    nonzero = X != 0
    indptr = np.zeros(len(X) + 1, dtype=index)
    np.cumsum(np.count_nonzero(nonzero, axis=1), out=indptr[1:])
    dense = indptr[-1] == X.size
    values, columns = (each.ravel() if dense else each[nonzero] for each in (X, columns))
    return csr_matrix((values, columns, indptr), shape=X.shape)


# Names of the integer arrays of each sparse format.
_INTEGERS = {
    "csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "bsr": ("indices", "indptr"),
    "coo": ("row", "col"), "dia": ("offsets",),
}  # fmt: skip


def check_sparse(X: Any, name: str = "X") -> Any:
    """Return a sparse matrix of types that scipy supports, after checking that its arrays are
    consistent.

    Any other input is returned unchanged. scipy checks the arrays when a matrix is created, but not
    when they are assigned later. Its compiled code, which converts, sorts and slices, would then
    access memory outside the arrays.

    Raises
    ------
    ValueError
        If the matrix is corrupted or does not have two dimensions.
    """
    if not issparse(X):
        return X
    if len(X.shape) != 2:
        raise ValueError(f"{name} is of shape {X.shape}. Give a matrix of rows and columns.")
    try:
        X = _in_supported_types(X)
        _check_arrays(X)
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        reason = "an array is too short" if isinstance(error, IndexError) else error
        raise ValueError(
            f"{name} is corrupted: {reason}. Rebuild the matrix from its source."
        ) from None
    return X


def _in_supported_types(X: Any) -> Any:
    """Return the matrix with arrays in native byte order, and values of half or extended precision
    as float64. scipy can't convert, check or add other types. Arrays of these types are copied."""
    names = _INTEGERS.get(X.format, ())
    arrays = {name: np.asarray(getattr(X, name)) for name in (*names, "data") if names}
    types = {name: array.dtype.newbyteorder("=") for name, array in arrays.items()}
    if arrays and types["data"].kind == "f" and types["data"] not in VALUE_TYPES:
        types["data"] = np.dtype(np.float64)
    changed = [name for name in arrays if arrays[name].dtype != types[name]]
    X = copy(X) if changed else X
    for name in changed:
        setattr(X, name, arrays[name].astype(types[name]))
    return X


def _check_arrays(X: Any) -> None:
    """Check the arrays with scipy, on a copy because scipy may replace arrays. Any exception means
    that they are inconsistent."""
    if max(X.shape) > sys.maxsize:
        raise ValueError(f"no index counts as far as its shape {X.shape}")
    looked_at = copy(X)
    for name in _INTEGERS.get(X.format, ()):
        array = np.asarray(getattr(X, name))
        if array.dtype.kind not in "iu":
            raise TypeError(f"its {name} are of type {array.dtype}, not integers")
        if array.dtype.kind == "u" and X.format != "coo":
            # Differences of unsigned integers wrap around, so a decrease would look like an
            # increase.
            setattr(looked_at, name, array.astype(np.int64))
    if X.format in ("csr", "csc", "bsr"):
        # scipy checks no pointer if the last one is 0.
        pointers = np.asarray(looked_at.indptr)
        if (pointers[1:] < pointers[:-1]).any():
            raise ValueError("its row pointers fall")
        looked_at.check_format(full_check=True)
    elif X.format == "coo":
        coo_array((X.data, (X.row, X.col)), shape=X.shape)
    elif X.format == "dia":
        dia_array((X.data, X.offsets), shape=X.shape)
    elif X.format == "lil":
        _check_lists(X)


def _check_lists(X: Any) -> None:
    if not len(X.rows) == len(X.data) == X.shape[0]:
        raise ValueError(f"it has {len(X.rows)} lists of columns and {len(X.data)} of values")
    for i, (columns, values) in enumerate(zip(X.rows, X.data, strict=True)):
        if not isinstance(columns, list) or not isinstance(values, list):
            raise TypeError(f"its row {i} is no list")
        if len(columns) != len(values):
            raise ValueError(f"its row {i} has {len(columns)} columns and {len(values)} values")


def refuse_other_data(X: Any) -> None:
    """Raise a ValueError with a remedy if X is text, a sequence of texts or dicts, an AnnData, or
    has masked values.

    scikit-learn would only say that texts are not numbers. numpy would take minutes to convert an
    AnnData.
    """
    check_no_anndata_or_mask(X)
    check_no_iterator("X", X)
    texts = [X] if isinstance(X, str | bytes) else X
    if issparse(X):
        return
    # The type of an array, or of the first value in a list of lists.
    typed = X
    while isinstance(typed, list | tuple) and typed:
        typed = typed[0]
    if is_time(getattr(typed, "dtype", None)):
        raise ValueError("X holds dates or times, not numbers. Compute features of them first.")
    if any(is_time(each) or is_category(each) for each in set(types_of_columns(X))):
        _refuse_columns(X)
    # Any one-dimensional collection is checked: an array, a list, a column of a table.
    if hasattr(texts, "__len__") and getattr(texts, "ndim", 1) == 1 and len(texts):
        first = next(iter(texts))
        if isinstance(first, str | bytes):
            raise ValueError(
                f"X holds text, such as {first[:40]!r}, not numbers. Turn it into features first: "
                "TfidfVectorizer of scikit-learn does, in front of the classifier in make_pipeline."
            )
        if isinstance(first, Mapping):
            raise ValueError(
                "X holds dicts, not rows of numbers. Turn them into features first: DictVectorizer "
                "of scikit-learn does, in front of the classifier in make_pipeline."
            )


def check_labels(y: Any) -> np.ndarray:
    """Return labels as a one-dimensional array of bool, integer, float or str.

    Raises
    ------
    ValueError
        If y is None, has the wrong shape, lacks a label, mixes types, has a value that can't be a
        label, or is continuous.
    """
    if y is None:
        raise ValueError(
            "Learning requires y to be passed, but the target y is None. Give a label for each row "
            "of X."
        )
    check_no_iterator("y", y)
    y = unwrapped(y)
    if isinstance(y, list | tuple):
        _refuse_lists(y)
        if any(isinstance(label, list | tuple) or getattr(label, "ndim", 0) for label in y):
            y = column_or_1d(y, warn=True)
    elif type(y) is not np.ndarray or y.ndim != 1:
        y = column_or_1d(np.asarray(y), warn=True)
    elif y.dtype.kind == "O":
        _refuse_lists(y)
    labels = label_array(y)
    if labels.dtype.kind not in "biuU" and whole_numbers(labels) is None:
        check_classification_targets(labels)
    return labels


def _refuse_lists(y: Any) -> None:
    """Raise a ValueError if labels are lists of different lengths. Lists of one length are rows of
    an array, for which scikit-learn has a better error."""
    length = None
    for i, label in enumerate(y):
        if not isinstance(label, list | tuple | set | frozenset):
            continue
        length = len(label) if length is None else length
        if len(label) != length:
            raise ValueError(
                f"y[{i}] = {label!r} is no class, but a list of {len(label)}. Give one class for "
                "each row."
            )


def check_weights(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Return finite, nonnegative weights as float64 of shape (n_rows,); None if there are none."""
    if sample_weight is None:
        return None
    check_no_iterator("sample_weight", sample_weight)
    if np.ma.is_masked(sample_weight):
        raise ValueError(
            "sample_weight has masked entries. To leave these rows out, pass "
            "sample_weight.filled(0)."
        )
    try:
        weights = np.ascontiguousarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"sample_weight is no array of numbers: {error}. Weights by class are class_weight."
        ) from None
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}, expected ({n_rows},): one for each row of X."
        )
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"sample_weight[{row}] = {weights[row]} is negative, NaN or infinite. Pass finite "
            "weights; 0 leaves a row out."
        )
    return weights


def encoded_targets(
    y: np.ndarray | MultilabelTargets, before: Fitted | None, classes: np.ndarray | None
) -> tuple[Targets, np.ndarray]:
    """Return the encoded targets, and the classes: the given ones, or those that occur in y.

    `before` is the state of the model, None before the first call. It must have the same form of
    labels as y: one class or several labels for each row.
    """
    many = isinstance(y, MultilabelTargets)
    if before is not None and many != before.many:
        form = "one class a row, but y may have several labels a row"
        if not many:
            form = "any number of labels a row, but y has one class a row"
        raise ValueError(f"The model has learned {form}. Give y as before, or fit anew.")
    if classes is not None:
        return (MultilabelEncoder(classes) if many else LabelEncoder(classes)).transform(y), classes
    encoder = MultilabelEncoder() if many else LabelEncoder()
    targets: Targets = encoder.fit_transform(y)
    if many:
        refuse_no_labels(encoder.classes)
    else:
        refuse_lone(encoder.classes, "y")
        warn_of_many_classes(len(encoder.classes), len(targets), "y")
    return targets, encoder.classes


def check_classes(
    before: Fitted | None, wanted: np.ndarray | None, y: np.ndarray | MultilabelTargets
) -> np.ndarray:
    """Return the classes for a call of `partial_fit`: those of earlier calls, those passed
    (`wanted`), or the columns of an indicator. Refuse classes that contradict each other."""
    columns = y.columns if isinstance(y, MultilabelTargets) else None
    if wanted is None:
        known = columns if before is None else before.classes
        if known is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        return known
    if columns is not None and not np.array_equal(wanted, columns):
        raise ValueError(
            f"classes={wanted.tolist()} are not the columns of y, an indicator of "
            f"{len(columns)} labels. Leave classes out."
        )
    if not isinstance(y, MultilabelTargets):
        refuse_lone(wanted, "classes")
    if before is not None and not np.array_equal(wanted, before.classes):
        raise ValueError(
            f"classes={wanted.tolist()} is not the same as on the last call to partial_fit, "
            f"which was {before.classes.tolist()}."
        )
    return wanted
