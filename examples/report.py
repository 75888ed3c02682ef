"""What the studies of RCV1 and of microarrays share: repeats, one table, distinct curves."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import sem

from sparsemargin.evaluation.protocols import SplitResults

REPEATS_VARIABLE = "SPARSEMARGIN_REPEATS"

# One for each colour of matplotlib's colour-blind safe style.
MARKERS = "osD^vP<X>*"


def n_repeats(default: int) -> int:
    """Return how many random splits to run, as the environment says.

    Raises
    ------
    ValueError
        If the variable SPARSEMARGIN_REPEATS is no integer of 2 or more: one split has no spread.
    """
    text = os.environ.get(REPEATS_VARIABLE) or str(default)
    if not text.isdecimal() or int(text) < 2:
        raise ValueError(f"{REPEATS_VARIABLE} must be an integer of 2 or more, got {text!r}")
    return int(text)


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
    print("mistakes in training, test error % ± its standard error")
    show_table({"": "", **dict.fromkeys(results, ""), "fit ms": ".1f"}, rows)


def _summary(found: SplitResults) -> str:
    # scikit-learn doesn't count mistakes.
    mistakes = "-" if np.isnan(found.mistakes).any() else f"{found.mistakes.mean():.1f}"
    percent = 100 * found.test_errors
    return f"{mistakes}  {percent.mean():5.2f}±{sem(percent):.2f}"


def draw_distinct_lines() -> None:
    """Make matplotlib tell curves apart by colours safe for any vision, and by markers."""
    import matplotlib.pyplot as plt
    from cycler import cycler

    plt.style.use("tableau-colorblind10")
    plt.rcParams["axes.prop_cycle"] += cycler(marker=MARKERS)
    plt.rc("axes.spines", top=False, right=False)
    plt.rc("legend", frameon=False)
    plt.rc("figure.constrained_layout", use=True)
