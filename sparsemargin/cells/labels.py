"""Labels of cells: a column of `obs`, or a table of barcodes and labels."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import nan
from typing import Any

import numpy as np

from sparsemargin._engine.messages import warn_user
from sparsemargin._shown import first_three
from sparsemargin.files.sources import whereabouts
from sparsemargin.models.inputs.label_table import LabelTable
from sparsemargin.models.inputs.label_values import (
    LARGEST_EXACT,
    NotALabelError,
    plain_label,
    quoted_value,
)
from sparsemargin.models.inputs.labels import label_text
from sparsemargin.readers.cell_files import Cells
from sparsemargin.readers.label_tables import MISSING_LABELS, missing_table, named_table, table_of

#: Predicted type of cells with too small a confidence, and of cells without counts.
UNASSIGNED = "unassigned"

# Least shares of matching barcodes, relative to the smaller of the numbers of cells and of barcodes
# in the table. A share below `_FEW` is a warning. A share up to `_BY_CHANCE` is an error, because
# two 10x runs share about 1 % of their barcodes by chance.
_FEW, _BY_CHANCE = 0.5, 0.02

# Remedy for cells with equal names.
_OWN_COLUMN = (
    "Read each file as an AnnData, store the labels of its cells by position in a column, "
    "adata.obs['cell_type'] = labels, and pass the list of AnnData with label='cell_type'."
)

# Parts of barcodes in which tables and files often differ, and functions that remove them.
_PARTS: dict[str, Callable[[str], str]] = {
    "the number at the end": lambda name: re.sub(r"-\d+$", "", name),
    "what stands before the last '_', ':' or '#'": lambda name: re.split(r"[_:#]", name)[-1],
    "what stands behind the first '_', ':' or '#'": lambda name: re.split(r"[_:#]", name)[0],
    "all but the bases": lambda name: max(re.findall(r"[ACGTN]{8,}|$", name), key=len),
}


def labels_of(
    cells: list[Cells], label: Any, argument: str = "label"
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the codes of the labels of the cells, one array for each file, and the classes.

    `label` is a column of `obs`, or a table that `table_of` accepts. `argument` is the name of this
    argument. Codes are indices into the sorted classes, or -1 for cells without a label. Classes
    are int64, bool or str. A ValueError is raised if there is no such column, if a value of the
    column is missing or can't be a label, or if almost no cell is in the table, and a
    FileNotFoundError for a path without a file.
    """
    found = [
        _plain_labels(f"{each.name}: {argument}", *codes_and_values)
        for each, codes_and_values in zip(cells, _found(cells, label, argument), strict=True)
    ]
    check_kinds(label, [each.name for each in cells], [values for _, values in found])
    kinds = {type(value) for _, values in found for value in values}
    numeric = kinds <= {int, float}
    texts = [list(map(label_text, values)) for _, values in found]
    names = sorted({text for each in texts for text in each}, key=int if numeric else None)
    classes = np.array(names, dtype=np.int64 if numeric else np.str_)
    if kinds == {bool}:
        classes = classes == "True"
    LabelTable.of_classes(classes)  # raises an error if two classes are the same number
    code = {text: i for i, text in enumerate(names)}
    places = [np.array([*map(code.__getitem__, each), -1], np.int32) for each in texts]
    return [at[codes] for at, (codes, _) in zip(places, found, strict=True)], classes


def check_kinds(label: Any, names: list[str], values: list[list[Any]]) -> None:
    """Raise a ValueError if a column of `obs` has text in some files, and other values in others.

    `names` are the names of the files, and `values` the distinct labels of each file.
    """
    if not isinstance(label, str) or named_table(label) is not None:
        return
    has_text = {all(isinstance(value, str) for value in each): name
                for name, each in zip(names, values, strict=True) if each}  # fmt: skip
    if len(has_text) > 1:
        raise ValueError(
            f"{has_text[False]}: {label!r} has numbers or truth values, but {has_text[True]} has "
            "text. Labels of all files must be of one kind. Make text of them: "
            f"adata.obs[{label!r}] = adata.obs[{label!r}].astype('string')."
        )


def types_of(cells: list[Cells], label: Any, argument: str) -> np.ndarray:
    """Return the class of each cell, shape (n_cells,). Cells that are not in a table of labels
    raise a ValueError. See `labels_of`."""
    codes, classes = labels_of(cells, label, argument)
    found = np.concatenate(codes)
    if n_missing := np.count_nonzero(found < 0):
        raise ValueError(
            f"{n_missing:,} of {len(found):,} cells are not in the table of labels. Add them, or "
            "leave them out of X."
        )
    return classes[found]


def warn_of_unassigned(classes: np.ndarray) -> None:
    """Warn if training cells have the type that `annotate` writes for rejected cells."""
    if UNASSIGNED in map(str, classes.tolist()):
        warn_user(
            f"Training cells have the type {UNASSIGNED!r}, which annotate also writes for cells "
            f"that it rejects. Leave these cells out, adata[adata.obs[COLUMN] != {UNASSIGNED!r}], "
            "or rename the type."
        )


def _plain_labels(
    name: str, codes: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, list[str | bool | int | float]]:
    """Return codes into the values that occur, and these values as `plain_label` converts them.
    `name` names the file and the argument, for error messages."""
    occurs = np.bincount(codes[codes >= 0], minlength=len(values)) > 0
    labels = list[str | bool | int | float]()
    for value in values[occurs]:
        try:
            labels.append(plain_label(value))
        except NotALabelError as error:
            raise ValueError(
                f"{name} has a {type(value).__name__} for a cell: {quoted_value(value)} {error}."
            ) from None
        if isinstance(labels[-1], int | float) and abs(labels[-1]) > LARGEST_EXACT:
            raise ValueError(
                f"{name} has {value} for a cell, which a double can't hold exactly. Make "
                "text of the labels, with pandas by .astype('string')."
            )
        if isinstance(labels[-1], float) and labels[-1] % 1:
            raise ValueError(
                f"{name} has values such as {labels[-1]:g}, which are measurements, not "
                "classes. Name the column of cell types. If the numbers are classes, make text of "
                "them, with pandas by .astype('string')."
            )
    if len({isinstance(each, str) for each in labels}) > 1:
        raise ValueError(
            f"{name} has texts and numbers. Make text of all labels, with pandas by "
            ".astype('string')."
        )
    return np.append(np.where(occurs, np.cumsum(occurs) - 1, -1), -1)[codes], labels


def _found(cells: list[Cells], label: Any, argument: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the codes of the cells and the values that they refer to, for each file."""
    if isinstance(label, str) and all(label in each.obs.columns for each in cells):
        return [_of_column(each, label) for each in cells]
    table = table_of(label, argument)
    if table is None:
        raise _unknown(cells, label, argument)
    names = [each.names() for each in cells]
    code = {name: i for i, name in enumerate(table)}
    codes = [np.array([code.get(name, -1) for name in each], np.int32) for each in names]
    _check_names(cells, list(table), codes)
    for each, of_file, known in zip(cells, names, codes, strict=True):
        _check_matches(each.name, of_file, table, int((known >= 0).sum()), len(cells) == 1)
    if len(cells) > 1:
        n_known = sum(int((each >= 0).sum()) for each in codes)
        _check_matches("The files", np.concatenate(names), table, n_known, True)
    values = np.empty(len(table), object)
    values[:] = list(table.values())
    if named_table(label) is not None:  # labels of a table get types like labels of text files
        occurs = np.unique(np.concatenate(codes))
        occurs = occurs[occurs >= 0]
        labels = LabelTable()
        ids = labels.take(values[occurs], [nan] * len(occurs))
        values[occurs] = labels.values()[ids].tolist()
    return [(each, values) for each in codes]


def different_names(cells: list[Cells]) -> list[str]:
    """Return the names of the files. All are numbered if some are equal, as for AnnData."""
    names = [each.name for each in cells]
    if len(set(names)) == len(names):
        return names
    return [f"{name} ({i})" for i, name in enumerate(names, 1)]


def _check_names(cells: list[Cells], barcodes: list[str], codes: list[np.ndarray]) -> None:
    """Raise a ValueError if two cells have the same name, because a table has one label for it."""
    files, owner = different_names(cells), np.full(len(barcodes), -1)
    for i, known in enumerate(codes):
        found, counts = np.unique(known[known >= 0], return_counts=True)
        for at in found[counts > 1][:1].tolist():
            raise ValueError(
                f"{files[i]} has several cells with the name {barcodes[at]!r}, for which a table "
                f"has only one label. {_OWN_COLUMN}"
            )
        for at in found[owner[found] >= 0][:1].tolist():
            raise ValueError(
                f"{files[owner[at]]} and {files[i]} both have a cell with the name "
                f"{barcodes[at]!r}, for which a table has only one label. {_OWN_COLUMN}"
            )
        owner[found] = i


def _of_column(cells: Cells, label: str) -> tuple[np.ndarray, np.ndarray]:
    codes, values = cells.obs.column(label)
    unlabelled = [isinstance(value, str) and value in MISSING_LABELS for value in values.tolist()]
    codes = np.where(np.append(unlabelled, True)[codes], -1, codes)
    missing = np.flatnonzero(codes < 0)
    if len(missing):
        texts = f" & ~adata.obs[{label!r}].isin({list(MISSING_LABELS)})" if any(unlabelled) else ""
        raise ValueError(
            f"{cells.name}: {label!r} is missing for {len(missing):,} of {cells.n_cells:,} "
            f"cells, the first of them cell {missing[0] + 1}. Give them a value, or leave them "
            f"out: adata[adata.obs[{label!r}].notna(){texts}]."
        )
    return codes, values


def _unknown(cells: list[Cells], label: Any, argument: str) -> Exception:
    """Return the error for a `label` that is not a column and not a table."""
    if path := missing_table(label, [name for each in cells for name in each.obs.columns]):
        return FileNotFoundError(f"{path}: no such file. {whereabouts(path)}")
    if not isinstance(label, str):
        return ValueError(
            f"{argument} must be a column of obs, a table of barcodes and labels (.csv, .tsv), or "
            f"a mapping of these, got {type(label).__name__}. For an array pass "
            "pandas.Series(labels, index=adata.obs_names)."
        )
    lacking = next(each for each in cells if label not in each.obs.columns)
    columns = ", ".join(map(str, lacking.obs.columns))
    known = f"There are: {columns}. Pass one of them as {argument}=COLUMN."
    if not columns:
        known = f"There are none. Pass a table of barcodes and labels as {argument}=PATH."
    return ValueError(f"{lacking.name} has no column {label!r} in obs. {known}")


def _check_matches(
    name: str, barcodes: np.ndarray, table: dict[str, Any], n_known: int, are_all: bool
) -> None:
    """Warn, or raise a ValueError, if few barcodes are in the table. For one file among several
    (`are_all` is False), only a file without any known barcode is an error."""
    most = min(len(barcodes), len(table))
    if n_known and (not are_all or n_known >= _FEW * most):
        return
    found = (
        f"{name}: {n_known:,} of {len(barcodes):,} cells are among the {len(table):,} barcodes "
        f"with labels. The cells are {first_three(map(repr, barcodes))}, the barcodes "
        f"{first_three(map(repr, table))}."
        f"{_hint(barcodes, table, n_known)}"
    )
    if n_known <= _BY_CHANCE * most:
        raise ValueError(found)
    warn_user(f"{found} Cells without a label are left out.")


def _hint(barcodes: np.ndarray, table: dict[str, Any], n_known: int) -> str:
    """Return advice if more barcodes match without one of their parts, otherwise an empty text."""
    best, n_best = "", max(2 * n_known, 1)
    for part, without in _PARTS.items():
        of_table = {without(each): each for each in table}
        same = [(each, of_table[without(each)]) for each in barcodes if without(each) in of_table]
        others = [pair for pair in same if pair[0] not in table and without(pair[0])]
        if len(same) > n_best and others:
            n_best, (cell, barcode) = len(same), others[0]
            best = (
                f" Without {part}, {n_best:,} cells match. Name them in the table as in the file: "
                f"{cell!r} for {barcode!r}."
            )
    return best
