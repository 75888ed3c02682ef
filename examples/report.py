"""What notebooks share: their looks, their tables, and the calls they set side by side."""

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

# There `papers` is, which an installed package lacks.
sys.path.append(str(Path(__file__).parents[1]))

# A theme lasts as long as its context.
_kept = ExitStack()


def begin() -> None:
    """Draw all pictures from here on in the light theme of `sparsemargin.plotting`."""
    _kept.enter_context(theme("light"))


def show_table(columns: Mapping[str, str], rows: Iterable[Sequence[Any]]) -> None:
    """Print rows under their headers, the first column to the left, the others to the right.

    Parameters
    ----------
    columns : dict of str to str
        By header the format specification of the values below it, such as ``".2%"``.
    rows : iterable of sequences
        One value for each column.
    """
    cells = [list(map(format, row, columns.values())) for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    for line in (list(columns), ["-" * width for width in widths], *cells):
        print("  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]))


def calls() -> dict[str, Callable[[Any, Any], Any]]:
    """Return what a user would call with X and y, ours and scikit-learn's, by name."""
    return {
        "fit_csr(X, y)": partial(fit_csr, random_state=0),
        "LinearSVC()": LinearSVC(random_state=0).fit,
        "SGDClassifier(average=True)": SGDClassifier(average=True, random_state=0).fit,
        "LogisticRegression()": LogisticRegression().fit,
    }
