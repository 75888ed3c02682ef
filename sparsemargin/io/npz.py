"""Rows and labels in NumPy's npz files.

The matrix is stored as `scipy.sparse.save_npz` does, so that `scipy.sparse.load_npz` loads it, and
the labels beside it: ``numpy.load(path)["labels"]``. Nothing needs a pickle.

| array | |
|---|---|
| ``data``, ``indices``, ``indptr``, ``shape``, ``format`` | the matrix, as scipy has it |
| ``labels`` | one a row, numbers or text; those of all rows, where rows have any number |
| ``label_start`` | only then, int64: where the labels of each row begin, and the end |
| ``query_ids`` | int64, one a row, where the text had them |

What svmlight text has comes back from such a file. What such a file has comes back from svmlight
text, or is refused: each value as a float64, repeated columns summed; labels as `readable_labels`
tells, those of one row in any order. The number of columns must be told, by ``--n-features``, where
the last are empty.
"""

from __future__ import annotations

import os
from itertools import chain
from typing import Any

import numpy as np

from sparsemargin.io.archive import ArchiveWriter
from sparsemargin.io.files import replacing
from sparsemargin.io.rows import LabelledRows
from sparsemargin.io.text import inexact
from sparsemargin.models.rows import check_rows, open_rows


def write_npz(
    path: str | os.PathLike[str],
    X: Any,
    labels: np.ndarray | list[tuple[Any, ...]],
    query_ids: np.ndarray,
) -> None:
    """Write a CSR matrix, the label of each row, or a tuple of any number of them, and one query id
    a row or none at all; the file appears whole or not at all."""
    n_rows = X.shape[0]
    if len(query_ids) not in (0, n_rows):
        raise ValueError(
            f"{len(query_ids):,} of {n_rows:,} rows have a qid. Give one to all of them or none."
        )
    arrays = {
        "indices": X.indices, "indptr": X.indptr, "format": np.array(b"csr"),
        "shape": np.array(X.shape), "data": X.data,
    }  # fmt: skip
    if isinstance(labels, np.ndarray):
        arrays["labels"] = labels
    else:
        arrays["labels"] = np.array(list(chain(*labels)))
        ends = np.cumsum([len(row) for row in labels], dtype=np.int64)
        arrays["label_start"] = np.concatenate([np.zeros(1, dtype=np.int64), ends])
    if len(query_ids):
        arrays["query_ids"] = query_ids
    with replacing(path) as file, ArchiveWriter(file) as archive:
        for name, array in arrays.items():
            archive.array(name, array)


_MATRIX = ("data", "indices", "indptr", "shape")
_BESIDE = ("labels", "label_start", "query_ids")


def read_npz(path: str | os.PathLike[str]) -> tuple[LabelledRows, np.ndarray, int]:
    """Read what `write_npz` wrote, or `scipy.sparse.save_npz` with an array ``labels`` added: rows
    with ids of labels, the labels by id, and the number of features. What is damaged, or no CSR
    matrix with labels, is a ValueError that names the file."""
    name = os.fspath(path)
    arrays = _arrays(path, name)
    missing = [key for key in (*_MATRIX, "labels") if key not in arrays]
    if missing or arrays.get("format", b"csr") != b"csr":
        raise ValueError(
            f"{name} is no CSR matrix as scipy.sparse.save_npz writes it with an array 'labels' "
            f"beside it. Missing here: {', '.join(missing) or 'the format csr'}."
        )
    X = _matrix(arrays, name)
    labels, ids = np.unique(arrays["labels"], return_inverse=True)
    rows = LabelledRows(
        X.data, X.indices, X.indptr, ids, arrays.get("label_start"), arrays.get("query_ids")
    )
    _check_labels(name, rows, X.shape[0])
    return rows, labels, X.shape[1]


def _arrays(path: str | os.PathLike[str], name: str) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as stored:
            keys = ("format", *_MATRIX, *_BESIDE)
            return {key: stored[key] for key in keys if key in stored}
    except OSError:
        raise
    except Exception as error:
        # What numpy and zipfile may raise at a damaged file is not told anywhere.
        raise ValueError(f"{name} can't be read as an npz file: {str(error)[:200]}") from None


def _matrix(arrays: dict[str, np.ndarray], name: str) -> Any:
    """The matrix, in canonical format and float64, once it is known to be sound."""
    from scipy.sparse import csr_matrix

    values = arrays["data"]
    if values.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} has values of type {values.dtype}; rows have real numbers. Save it with such."
        )
    for key in "indices", "indptr", "shape":
        if arrays[key].dtype.kind != "i":
            raise ValueError(
                f"{name} has {key} of type {arrays[key].dtype}, not int32 or int64. Save them so."
            )
    try:
        with np.errstate(over="ignore"):
            parts = values.astype(np.float64, copy=False), arrays["indices"], arrays["indptr"]
        X = csr_matrix(parts, shape=tuple(arrays["shape"].tolist()))
        check_rows(open_rows(X), repeats_allowed=True)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name}: {error}") from None
    lost = inexact(values)
    if len(lost):
        raise ValueError(
            f"{name}, {_place(X, lost[0])}: {values[lost[0]]} is no double. Round or rescale it."
        )
    X.sum_duplicates()
    huge = np.flatnonzero(~np.isfinite(X.data))
    if len(huge):
        raise ValueError(
            f"{name}, {_place(X, huge[0])}: the sum of what is stored there exceeds a double. "
            "Rescale the values."
        )
    return X


def _place(X: Any, entry: int) -> str:
    """The row and the column of an entry."""
    return f"row {np.searchsorted(X.indptr, entry, side='right') - 1}, column {X.indices[entry]}"


def _check_labels(name: str, rows: LabelledRows, n_rows: int) -> None:
    """Refuse what is not one row's worth for each row."""
    start, queries = rows.label_start, rows.query_ids
    if rows.labels.ndim != 1 or (start is None and len(rows.labels) != n_rows):
        raise ValueError(f"{name} has labels of shape {rows.labels.shape} for {n_rows} rows.")
    if start is not None:
        sound = start.shape == (n_rows + 1,) and start.dtype.kind == "i"
        # Their differences may exceed an int64.
        if (
            not sound or start[0] or start[-1] != len(rows.labels)
            or (start[1:] < start[:-1]).any()
        ):  # fmt: skip
            raise ValueError(f"{name}: label_start does not divide the labels among the rows.")
    if queries is not None and (queries.shape != (n_rows,) or queries.dtype.kind != "i"):
        raise ValueError(f"{name}: query_ids are not one integer a row.")
