"""Which setting of an algorithm: the best on the test set, and the one that data for it choose."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsemargin.evaluation.protocols import (
    ERROR_DECIMALS,
    Split,
    SplitResults,
    compare_on_splits,
    list_splits,
)


class Selection(NamedTuple):
    """Two ways to choose among settings, as `select_setting` gives them.

    Attributes
    ----------
    best_on_test : str
        The setting of least mean test error, the first of equal ones.
    best : SplitResults
        Its results: what papers print. They flatter, since the test rows chose it.
    chosen : list of str
        For each split the setting of least error in cross-validation on its training part.
    cross_validated : SplitResults
        The results, for each split, of the one chosen there: an estimate of what a user gets.
        `fit_seconds` are those of the final fit alone.
    results : dict of str to SplitResults
        Of all settings.
    cv_errors : ndarray of shape (n_splits, n_settings), float64
        Mean errors in cross-validation, in [0, 1].
    """

    best_on_test: str
    best: SplitResults
    chosen: list[str]
    cross_validated: SplitResults
    results: dict[str, SplitResults]
    cv_errors: NDArray[np.float64]


def select_setting(
    candidates: Mapping[str, Any],
    X: Any,
    y: Any,
    splits: Any,
    *,
    cv: Any = 5,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Selection:
    """Choose among settings of an algorithm by the test set, and by the training sets alone.

    Brotto, Gentile & Vitale (2007) print for each algorithm the setting that is best on the test
    set (Tables 1 and 2), c among 0, 0.2, ..., 0.8 and a over a wide range. Beside it stands here
    what cross-validation on each training part chooses, the test part unseen.

    Parameters
    ----------
    candidates : dict of str to classifier
        The settings, by name. Where several are equally good the first is taken, so put the
        simplest first.
    X, y, splits, n_jobs
        As for `compare_on_splits`; a fixed training and test set is a single split.
    cv : int or cross-validation splitter, default=5
        Within each training part, the same folds for all candidates; a number stands for
        stratified folds of its rows as they come.
    verbose : int, default=0
        As for `compare_on_splits`.

    Returns
    -------
    Selection

    Raises
    ------
    ValueError
        If there is no candidate or no split, or a fit fails.
    KeyboardInterrupt
        On Ctrl-C.

    Examples
    --------
    >>> from sparsemargin import PNormPerceptron
    >>> from sparsemargin.datasets import make_alma_target
    >>> from sparsemargin.evaluation import random_splits
    >>> X, y, *_ = make_alma_target(300, 1, random_state=0)
    >>> splits = random_splits(300, train_size=200, test_size=100, n_splits=4, random_state=0)
    >>> grid = {f"p = {p}": PNormPerceptron(p=p, shuffle=False) for p in (2, 4, 8)}
    >>> found = select_setting(grid, X, y, splits)
    >>> bool(found.best.test_errors.mean() <= found.cross_validated.test_errors.mean())
    True
    """
    pairs = list_splits(splits, X, y)
    results = compare_on_splits(candidates, X, y, pairs, n_jobs=n_jobs, verbose=verbose)
    folds = [_folds_within(train, y, cv) for train, _ in pairs]
    on_folds = compare_on_splits(
        {f"{name}, in cross-validation": candidate for name, candidate in candidates.items()},
        X, y, list(chain.from_iterable(folds)), n_jobs=n_jobs, verbose=verbose,
    )  # fmt: skip
    ends = np.cumsum([len(parts) for parts in folds])[:-1]
    cv_errors = np.array([
        [_mean_error(part) for part in np.split(measured.test_errors, ends)]
        for measured in on_folds.values()
    ]).T  # fmt: skip
    names = list(results)
    best = min(names, key=lambda name: _mean_error(results[name].test_errors))
    chosen = [names[i] for i in cv_errors.argmin(axis=1)]
    return Selection(best, results[best], chosen, _pick(results, chosen), results, cv_errors)


def _folds_within(train: NDArray[np.intp], y: Any, cv: Any) -> list[Split]:
    """Folds of a training part, as rows of the whole."""
    pairs = list_splits(cv, train, np.asarray(y)[train])
    return [(train[learned], train[held_out]) for learned, held_out in pairs]


def _mean_error(errors: NDArray[np.float64]) -> float:
    """The mean, so rounded that equal errors in another order are as good."""
    return round(float(errors.mean()), ERROR_DECIMALS)


def _pick(results: dict[str, SplitResults], chosen: list[str]) -> SplitResults:
    """Of each split the results of the setting chosen there."""
    picked = [[field[k] for field in results[name]] for k, name in enumerate(chosen)]
    return SplitResults(*np.transpose(picked))
