"""10x's text matrices in coordinate format, gene by cell, and the tables in the same folder."""

from __future__ import annotations

import gzip
import os
from typing import Any

import numpy as np

from sparsemargin.files.sources import tables_beside
from sparsemargin.readers.stored_arrays import room_for

# Names of the columns of 10x's tables of features.
_FEATURES = "id", "name", "feature_type"


def read_matrix(path: str) -> tuple[dict[str, np.ndarray], np.ndarray, Any]:
    """Return the columns of the table of features, the names of cells, and the matrix, cell by
    gene."""
    from scipy.io import mminfo, mmread  # takes 0.4 s
    from scipy.sparse import csr_matrix

    table = zip(*_table(path, 2, "features", "genes"), strict=True)
    features = {
        name: np.array(each, dtype=object) for name, each in zip(_FEATURES, table, strict=False)
    }
    barcodes = np.array([line[0] for line in _table(path, 1, "barcodes")], dtype=object)
    *shape, n_entries = mminfo(path)[:3]
    shape = tuple(shape)
    # The stated size is checked before memory is allocated for it.
    if shape != (len(features["id"]), len(barcodes)):
        raise ValueError(
            f"its shape is {shape}, but the tables name {len(features['id']):,} features "
            f"and {len(barcodes):,} barcodes"
        )
    if n_entries > shape[0] * shape[1]:
        raise ValueError(f"it has {n_entries:,} values, more than {shape[0]:,} times {shape[1]:,}")
    X = csr_matrix(mmread(path).T)
    if X.dtype.kind not in "biuf":
        raise ValueError(f"its values are of type {X.dtype} instead of numbers")
    return features, barcodes, X


def _table(matrix: str, n_columns: int, *names: str) -> list[list[str]]:
    """Return the lines of the table next to a matrix that has one of these names. Each line must
    have at least `n_columns` columns."""
    paths = tables_beside(matrix, *names)
    path = next(filter(os.path.exists, paths), None)
    if path is None:
        raise ValueError(f"there is no {os.path.basename(paths[1])} or .gz in its folder")
    table, room = os.path.basename(path), room_for(os.path.getsize(path))
    opened: Any = gzip.open if path.endswith(".gz") else open
    with opened(path, "rb") as file:
        raw = file.read(room + 1)
    if len(raw) > room:
        raise ValueError(f"{table} unpacks to far more bytes than it has")
    text = raw.decode("utf-8-sig").removesuffix("\n")
    lines = [line.rstrip("\r").split("\t") for line in text.split("\n") if raw]
    if not lines:
        raise ValueError(f"{table} names no {names[0]}")
    if len(lines[0]) < n_columns:
        raise ValueError(f"{table} has fewer than {n_columns} columns")
    for i, line in enumerate(lines, 1):
        if len(line) != len(lines[0]):
            raise ValueError(
                f"line {i} of {table} has {len(line)} columns, but the first has {len(lines[0])}"
            )
    return lines
