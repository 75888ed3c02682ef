"""10x's text matrices in coordinate format, gene by cell, and the tables in the same folder."""

from __future__ import annotations

import csv
import os
from typing import Any

import numpy as np
from scipy.io import mminfo, mmread
from scipy.sparse import csr_matrix

from sparsemargin.files.folders import tables_beside
from sparsemargin.readers.label_tables import table_lines

# Names of the columns of 10x's tables of features.
_FEATURES = "id", "name", "feature_type"


def read_matrix(path: str) -> tuple[dict[str, np.ndarray], np.ndarray, Any]:
    """Return the columns of the table of features, the names of cells, and the matrix, cell by
    gene."""
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
    X = csr_matrix(mmread(path, spmatrix=False).T)
    if X.dtype.kind not in "biuf":
        raise ValueError(f"its values are of type {X.dtype} instead of numbers")
    return features, barcodes, X


def _table(matrix: str, n_columns: int, *names: str) -> list[list[str]]:
    """Return the lines of the table with one of these names, in the folder of the matrix. All lines
    must have the same number of columns, at least `n_columns`."""
    paths = tables_beside(matrix, *names)
    path = next(filter(os.path.exists, paths), None)
    if path is None:
        raise ValueError(f"there is no {os.path.basename(paths[1])} or .gz in its folder")
    table = os.path.basename(path)
    lines = table_lines(path, "\t", quoting=csv.QUOTE_NONE)
    if not lines:
        raise ValueError(f"{table} has no {names[0]}")
    expected = len(lines[0][1])
    if expected < n_columns:
        raise ValueError(f"{table} has fewer than {n_columns} columns")
    for i, line in lines:
        if len(line) != expected:
            raise ValueError(f"line {i} of {table} has {len(line)} columns, not {expected}")
    return [line for _, line in lines]
