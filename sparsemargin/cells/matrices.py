"""Cells of a matrix or a DataFrame, and labels that are given apart from the cells."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from sparsemargin._checks import check_no_iterator, columns_of_table, fault_of_columns, is_time
from sparsemargin._engine.messages import warn_user
from sparsemargin.estimators.validation import check_labels
from sparsemargin.genomes.cells import counts_of
from sparsemargin.readers.cell_columns import Frame
from sparsemargin.readers.cell_files import Cells
from sparsemargin.readers.label_tables import MISSING_LABELS

#: The column of `obs` that has labels given apart from the cells. `obs` may have a column "y", too.
GIVEN_LABELS = "(y)"


def cells_of_matrix(X: Any, genes: Any = None) -> Cells:
    """Return the cells of a matrix, shape (n_cells, n_genes).

    The columns of a DataFrame name the genes. For other matrices, `genes` has the name of each
    column, and None numbers the columns. The rows of a pandas DataFrame are named by its index.
    """
    names = columns_of_table(X)
    if names is not None and len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(
            f"The table has several columns with the name {twice!r}. Genes are matched by name, so "
            "names must differ. Add up the columns of a gene: X.T.groupby(level=0).sum().T."
        )
    check_no_iterator("X", X)
    if is_time(getattr(X, "dtype", None)):
        raise ValueError("X holds dates or times, not numbers.")
    if (fault := fault_of_columns(X)) is not None:
        name, what = fault
        raise ValueError(
            f"The column {name!r} has {what}, and columns are genes. If it names the cells, make "
            f"it the index, with pandas by X.set_index({name!r}). Otherwise leave it out."
        )
    rows = counts_of(X)
    if names is None:
        names = list(map(str, range(rows.n_features) if genes is None else genes))
        if len(names) != rows.n_features:
            raise ValueError(
                f"X has {rows.n_features} features, but CellClassifier is expecting {len(names)} "
                "features as input. Pass the genes of feature_names_in_ in this order, or a "
                "DataFrame with the names of its genes as columns."
            )
    index = X.index if hasattr(X, "iloc") else range(rows.n_rows)
    barcodes = np.array([str(each) for each in index], dtype=object)
    nothing = Frame([], dict[Any, Any]().__getitem__)
    var = Frame([], lambda _: (np.arange(len(names)), np.array(names, dtype=object)))
    return Cells("X", np.array(names, dtype=object), barcodes, *rows.arrays, nothing, var)


def with_labels(cells: Cells, y: Any) -> tuple[Cells, np.ndarray]:
    """Add the labels y, shape (n_cells,), as a column `GIVEN_LABELS` of `obs`. Return the cells and
    the classes, sorted, in the type of the labels."""
    labels, column = check_labels(y), cells.obs.column
    for row in np.flatnonzero(np.isin(labels, MISSING_LABELS))[:1].tolist():
        raise ValueError(
            f"y[{row}] is {str(labels[row])!r}: this cell has no label. Leave such cells out of X "
            f"and y: keep = ~numpy.isin(y, {list(MISSING_LABELS)}), then X[keep] and y[keep]."
        )
    check_consistent_length(range(cells.n_cells), labels)
    classes, codes = np.unique(labels, return_inverse=True)
    cells.obs = Frame(
        [*cells.obs.columns, GIVEN_LABELS],
        lambda name: (codes, classes) if name == GIVEN_LABELS else column(name),
    )
    return cells, classes


def is_label(X: Any, y: Any) -> bool:
    """Return whether y is a column of `obs` or a table of labels, and not a label for each cell.

    A Series labels the cells of an AnnData by position, and the cells of files by name.
    """
    if not is_cells(X):
        return False
    is_table = isinstance(y, Mapping) or (hasattr(y, "to_dict") and not hasattr(X, "obs_names"))
    return is_table or isinstance(y, str | os.PathLike)


def check_order(X: Any, y: Any) -> None:
    """Warn if y is a Series whose index has the names of the cells in another order than X."""
    index, by = getattr(y, "index", None), "adata.obs_names" if is_cells(X) else "X.index"
    names = getattr(X, "obs_names", getattr(X, "index", None))
    if index is None or callable(index) or names is None or callable(names):
        return
    of_cells, found = list(map(str, names)), list(map(str, index))
    if found != of_cells and sorted(found) == sorted(of_cells):
        warn_user(
            "The index of y has the names of the cells in another order, and labels are used by "
            f"position. Pass y.loc[{by}] to use them by name."
        )


def is_cells(X: Any) -> bool:
    """Return whether X is an AnnData, a path, or a list of these, rather than a matrix."""
    if isinstance(X, list | tuple):
        return len(X) > 0 and all(map(is_cells, X))
    return isinstance(X, str | os.PathLike) or hasattr(X, "obs_names")
