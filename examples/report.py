"""What notebooks and scripts share: how much they run, and their tables."""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.stats import sem

from sparsemargin.evaluation.protocols import SplitResults
from sparsemargin.plotting import theme

# There papers.data is, which an installed package lacks.
sys.path.append(str(Path(__file__).parents[1]))

QUICK_VARIABLE = "SPARSEMARGIN_QUICK"

# A theme lasts as long as its context.
_kept = ExitStack()


def is_quick() -> bool:
    """Tell whether the environment variable SPARSEMARGIN_QUICK asks for a quick run.

    Raises
    ------
    ValueError
        If the variable is neither empty nor 0 or 1.
    """
    text = os.environ.get(QUICK_VARIABLE, "")
    if text not in ("", "0", "1"):
        raise ValueError(f"{QUICK_VARIABLE} must be 1 for a quick run, or 0, got {text!r}")
    return text == "1"


def sized(full: int, *, quick: int) -> int:
    """Return how many rows or repeats to run.

    Parameters
    ----------
    full : int
        The number that the text beside the results speaks of.
    quick : int
        On a quick run: enough to see everything run.

    Raises
    ------
    ValueError
        As `is_quick` does.
    """
    return quick if is_quick() else full


def begin(name: Literal["light", "dark"]) -> None:
    """Draw all pictures from here on in a theme of `sparsemargin.plotting`; tell a quick run."""
    _kept.enter_context(theme(name))
    if is_quick():
        print(f"A QUICK run ({QUICK_VARIABLE}=1): the text below speaks of the full size.")


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


def show_comparison(results: Mapping[str, Mapping[str, SplitResults]]) -> None:
    """Print mistakes and test errors of every learner on every problem, and what a fit takes.

    Parameters
    ----------
    results : dict of dict of SplitResults
        What `compare_on_splits` gives, by problem. All problems have the same learners.
    """
    rows = []
    for learner in next(iter(results.values())):
        measured = [results[problem][learner] for problem in results]
        milliseconds = 1000 * np.median(np.concatenate([found.fit_seconds for found in measured]))
        rows.append([learner, *map(_summary, measured), milliseconds])
    print("mistakes in training, test error % ± its standard error; times on this machine")
    show_table({"": "", **dict.fromkeys(results, ""), "fit ms": ".1f"}, rows)


def _summary(found: SplitResults) -> str:
    # scikit-learn doesn't count mistakes.
    mistakes = "-" if np.isnan(found.mistakes).any() else f"{found.mistakes.mean():.1f}"
    percent = 100 * found.test_errors
    return f"{mistakes}  {percent.mean():5.2f}±{sem(percent):.2f}"
