"""Numbers and labels out of tables kept as text."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def read_rows(path: Path, lines: Sequence[str], n_columns: int) -> list[list[str]]:
    """The cells of comma-separated lines; a ValueError names the first line of another width."""
    return _check_widths(path, list(csv.reader(lines)), n_columns)


def read_blank_separated(path: Path, lines: Sequence[str], n_columns: int) -> list[list[str]]:
    """The same of cells with blanks between them."""
    return _check_widths(path, [line.split() for line in lines], n_columns)


def _check_widths(path: Path, rows: list[list[str]], n_columns: int) -> list[list[str]]:
    for number, row in enumerate(rows, 1):
        if len(row) != n_columns:
            raise ValueError(
                f"{path}, line {number}: expected {n_columns} columns, found {len(row)}"
            )
    return rows


def to_values(path: Path, cells: Sequence[Sequence[str]], n_rows: int) -> NDArray[np.float64]:
    """Cells as finite numbers; a ValueError tells where they are not, or of how many rows."""
    if len(cells) != n_rows:
        raise ValueError(f"{path} holds {len(cells)} rows instead of {n_rows}")
    try:
        values = np.array(cells, dtype=np.float64)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    if not np.isfinite(values).all():
        raise ValueError(f"{path} holds numbers that are not finite")
    return values


def to_digits(path: Path, labels: NDArray[np.number]) -> NDArray[np.int64]:
    """Labels as integers from 0 to 9; a ValueError names the first that is none."""
    wrong = np.flatnonzero(~np.isin(labels, np.arange(10)))
    if len(wrong):
        raise ValueError(
            f"{path}, row {wrong[0] + 1}: expected a digit as label, found {labels[wrong[0]]}"
        )
    return labels.astype(np.int64)


def to_labels(path: Path, cells: Sequence[str], negative: str, positive: str) -> NDArray[np.int64]:
    """Cells as labels -1 and +1; a ValueError tells what is neither of the two names."""
    unknown = set(cells) - {negative, positive}
    if unknown:
        found = ", ".join(map(repr, sorted(unknown)))
        raise ValueError(f"{path}: expected classes {negative!r} and {positive!r}, found {found}")
    return np.where(np.array(cells) == positive, np.int64(1), np.int64(-1))
