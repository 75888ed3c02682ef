"""Columns of the data frames in files of cells, in all encodings that anndata writes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from sparsemargin.readers.stored_arrays import DAMAGED, Array, Group, Node, readable

#: Type of features that are genes, and the column of feature types, as in files of 10x and scanpy.
GENE, FEATURE_TYPES = "Gene Expression", "feature_types"

#: Name of cells and genes whose name is missing, as pandas shows it.
MISSING_NAME = "nan"


@dataclass(frozen=True)
class Names:
    """Names of cells, which are read from the file in parts. `mask` is True where a name is
    missing. `categories` are the names that integer `values` stand for."""

    values: Array
    mask: Array | None = None
    categories: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.values)

    def whole(self) -> np.ndarray:
        """Read all names. Raise an error if there are too many for the size of the file."""
        mask = None if self.mask is None else self.mask.whole()
        return self._named(self.values.whole(), mask)

    def __getitem__(self, rows: slice) -> np.ndarray:
        return self._named(self.values[rows], None if self.mask is None else self.mask[rows])

    def _named(self, values: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
        if self.categories is not None:
            _check_codes(self.values, values, len(self.categories))
            values = np.append(self.categories, MISSING_NAME)[values]
        names = np.empty(len(values), object)
        names[:] = list(map(str, values.tolist()))
        if mask is not None:
            names[mask] = MISSING_NAME
        return names


def names_of(frame: Group, name: str | None = None) -> Names:
    """Return the names in a column, or in the index if `name` is None, in any encoding."""
    name = frame.text("_index") if name is None else name
    node = frame.get(name)
    if isinstance(node, Array):
        return Names(node.checked("Tiuf"))
    group = frame.group(name)
    if group.get("categories") is not None:
        category_codes, values = column_of(group, "categories")
        categories = np.append(values.astype(object), MISSING_NAME)[category_codes]
        return Names(group.array("codes", "iu"), None, categories)
    return Names(*_masked(group))


def column_of(frame: Group, name: str, n_rows: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return a column as codes and the values that they stand for. A code of -1 marks a missing
    value."""
    node, old = frame.get(name), frame.get("__categories")  # old versions of anndata write these
    if isinstance(node, Group) and node.get("categories") is not None:
        category_codes, values = column_of(node, "categories")
        codes = node.array("codes", "iu").whole()
        _check_codes(node, codes, len(category_codes))
        codes = np.append(category_codes, -1)[codes]
    elif isinstance(node, Array) and isinstance(old, Group) and old.get(name) is not None:
        values = old.array(name, "Tbiuf").whole()
        codes = node.checked("iu").whole()
        _check_codes(node, codes, len(values))
    else:
        codes, values = _plain_column(frame, name)
    if n_rows is not None and len(codes) != n_rows:
        raise frame.fault(
            f"has {len(codes):,} values in the column {name!r}, but {n_rows:,} rows. {DAMAGED}"
        )
    return codes, values


def _masked(group: Group) -> tuple[Array, Array]:
    """Return the values of a nullable array, and the mask that is True where a value is missing."""
    values, mask = group.array("values", "Tbiuf"), group.array("mask", "b")
    if len(mask) != len(values):
        raise group.fault(f"has a mask whose length differs from that of its values. {DAMAGED}")
    return values, mask


def _plain_column(frame: Group, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return codes and values of a column without categories, whose values may be masked."""
    node, missing = frame.get(name), np.zeros((), bool)
    if isinstance(node, Array):
        values = node.checked("Tbiuf").whole()
    else:
        values, missing = (each.whole() for each in _masked(frame.group(name)))
    found, codes = np.unique(values, return_inverse=True)
    missing = missing | (found != found)[codes]
    return np.where(missing, -1, codes), found


def _check_codes(node: Node, codes: np.ndarray, n_values: int) -> None:
    """Raise an error unless all codes are from -1 (missing) to `n_values` - 1."""
    if len(codes) and not -1 <= int(codes.min()) <= int(codes.max()) < n_values:
        raise node.fault(f"has codes that exceed the number of its values, {n_values:,}. {DAMAGED}")


@dataclass(frozen=True)
class Frame:
    """A table of cells or of genes: the names of its columns, and a function that returns a column,
    or the index for None, as codes and the values that they stand for."""

    columns: list[str]
    column: Callable[[str | None], tuple[np.ndarray, np.ndarray]]

    def texts(self) -> dict[str | None, np.ndarray]:
        """Return the index and all columns of text, without missing values. Columns that can't be
        read, such as those of lists, are left out."""
        found = dict[str | None, np.ndarray]()
        for name in (None, *self.columns):
            with suppress(ValueError):
                codes, values = self.column(name)
                if values.dtype.kind in "OUS":
                    found[name] = values[codes[codes >= 0]]
        return found


def stored_frame(group: Group, n_rows: int) -> Frame:
    """Return the data frame in a group of a file."""
    index, order = group.text("_index"), group.attribute("column-order")
    # The index may also be a column, as after adata.var_names = adata.var["gene_ids"].
    is_column = index in np.ravel([] if order is None else order).tolist()
    hidden = {"__categories"} if is_column else {"__categories", index}

    def column(name: str | None) -> tuple[np.ndarray, np.ndarray]:
        with readable(group.file):
            return column_of(group, index if name is None else name, n_rows)

    return Frame([name for name in group.names() if name not in hidden], column)


def genes_among(var: Frame, column: str) -> np.ndarray | None:
    """Return a mask of the features that are genes, from the column of feature types. None means
    that all features are used, because all are genes or none is marked as one."""
    if column not in var.columns:
        return None
    codes, kinds = var.column(column)
    names = (str(each).replace("_", " ").casefold() for each in kinds.tolist())
    is_gene = np.array([*(name == GENE.casefold() for name in names), False])[codes]
    return is_gene if is_gene.any() and not is_gene.all() else None
