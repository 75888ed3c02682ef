"""What notebooks and scripts share: how much they run, and their tables."""

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.stats import sem
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC

from sparsemargin import AROWClassifier, fit_csr
from sparsemargin.plotting import theme

# There `papers` is, which an installed package lacks.
sys.path.append(str(Path(__file__).parents[1]))
if TYPE_CHECKING:
    from papers.protocols import SplitResults

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


# Five settings each.
_GRIDS = [
    (
        AROWClassifier(random_state=0),
        [{"r": [0.3, 1, 3], "max_loss": [1]}, {"r": [0.1, 0.3], "max_loss": [0.1]}],
    ),
    (LinearSVC(random_state=0), {"C": 4.0 ** np.arange(-3, 2)}),
    (SGDClassifier(average=True, random_state=0), {"alpha": 1e-4 * 4.0 ** np.arange(-2, 3)}),
    (LogisticRegression(solver="liblinear"), {"C": 4.0 ** np.arange(-1, 4)}),
]


def calls(*, tuned: bool) -> dict[str, Callable[[Any, Any], Any]]:
    """Return what a user would call with X and y, ours and scikit-learn's, by name.

    Parameters
    ----------
    tuned : bool
        Also each with the best of five settings, by 3-fold cross-validation. That of
        `LogisticRegression` is for two classes.
    """
    fits: dict[str, Callable[[Any, Any], Any]] = {
        "fit_csr(X, y)": partial(fit_csr, random_state=0),
        "LinearSVC()": LinearSVC(random_state=0).fit,
        "SGDClassifier(average=True)": SGDClassifier(average=True, random_state=0).fit,
        "LogisticRegression()": LogisticRegression().fit,
    }
    searched = {
        f"{type(model).__name__}, tuned": GridSearchCV(model, grid, cv=3).fit
        for model, grid in _GRIDS
    }
    return fits | searched if tuned else fits


def show_calls(problems: Mapping[str, Sequence[Any]], *, tuned: bool) -> dict[str, list[float]]:
    """Print the mean test error of each call on each problem, and what it takes; draw both.

    Parameters
    ----------
    problems : dict of sequences
        By name, ``(X, y, X_test, y_test)`` of each split.
    tuned : bool
        As `calls` has it.

    Returns
    -------
    dict of lists
        Test errors of each call on the problems.
    """
    import matplotlib.pyplot as plt

    from sparsemargin.plotting.display import scale_log
    from sparsemargin.plotting.style import line_style

    _, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
    errors, rows = {}, []
    for name, fit in calls(tuned=tuned).items():
        seconds, errors[name] = [], []
        for sides in problems.values():
            wrong = []
            for X, y, X_test, y_test in sides:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    start = perf_counter()
                    model = fit(X, y)
                    seconds.append(perf_counter() - start)
                wrong.append(np.mean(model.predict(X_test) != y_test))
            errors[name].append(float(np.mean(wrong)))
        rows.append([name, *errors[name], np.mean(errors[name]), 1000 * np.mean(seconds)])
        style = line_style(axes, 1, {"linestyle": "", "markersize": 8})
        axes.plot(rows[-1][-1], 100 * rows[-1][-2], label=name, **style)
    print("test error, and milliseconds of a call on this machine")
    show_table({"": "", **dict.fromkeys(problems, ".2%"), "mean": ".2%", "ms": ".0f"}, rows)
    scale_log(axes)
    axes.set(xlabel="milliseconds of a call", ylabel="mean test error (%)")
    axes.figure.legend(loc="outside right upper")
    return errors


def show_comparison(results: Mapping[str, Mapping[str, "SplitResults"]]) -> None:
    """Print mistakes and test errors of every learner on every problem, and what a fit takes.

    Parameters
    ----------
    results : dict of dict of SplitResults
        What `papers.protocols.compare_on_splits` gives, by problem. All have the same learners.
    """
    rows = []
    for learner in next(iter(results.values())):
        measured = [results[problem][learner] for problem in results]
        milliseconds = 1000 * np.median(np.concatenate([found.fit_seconds for found in measured]))
        rows.append([learner, *map(_summary, measured), milliseconds])
    print("mistakes in training, test error % ± its standard error; times on this machine")
    show_table({"": "", **dict.fromkeys(results, ""), "fit ms": ".1f"}, rows)


def _summary(found: "SplitResults") -> str:
    # scikit-learn doesn't count mistakes.
    mistakes = "-" if np.isnan(found.mistakes).any() else f"{found.mistakes.mean():.1f}"
    percent = 100 * found.test_errors
    return f"{mistakes}  {percent.mean():5.2f}±{sem(percent):.2f}"
