"""Plot style, tables and compared classifiers of the notebooks."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.svm import LinearSVC

from sparsemargin import fit_csr
from sparsemargin.plotting import theme

# The package `papers` is in the project's folder; it is not installed.
sys.path.append(str(Path(__file__).parents[1]))

# Keeps the context of the theme open until the notebook ends.
_kept = ExitStack()


def begin() -> None:
    """Use the light theme of `sparsemargin.plotting` for all figures that follow."""
    _kept.enter_context(theme("light"))


def show_table(columns: Mapping[str, str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table. The first column is aligned to the left, the others to the right.

    Parameters
    ----------
    columns : dict of str to str
        Format specification of each column, such as ``".2%"``, by its header.
    rows : iterable of sequences
        One value for each column.
    """
    cells = [list(map(format, row, columns.values())) for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    for line in (list(columns), ["-" * width for width in widths], *cells):
        print("  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]))


def calls() -> dict[str, Callable[[Any, Any], Any]]:
    """Return functions of X and y that fit the compared classifiers, by name."""
    return {
        "fit_csr(X, y)": partial(fit_csr, random_state=0),
        "LinearSVC()": LinearSVC(random_state=0).fit,
        "SGDClassifier(average=True)": SGDClassifier(average=True, random_state=0).fit,
        "LogisticRegression()": LogisticRegression().fit,
    }
