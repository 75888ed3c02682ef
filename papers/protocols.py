"""How the Higher-order paper compares algorithms: on the same splits, and by a test."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import wilcoxon
from sklearn.model_selection import check_cv, cross_validate

from sparsemargin.models.pipelines import parts_of

#: Row numbers of a training and of a test part.
Split = tuple[NDArray[np.intp], NDArray[np.intp]]

#: Decimals in which errors may differ; what is beyond is rounding.
ERROR_DECIMALS = 12


class SplitResults(NamedTuple):
    """One algorithm on every split: the fraction of the test part that is misclassified, the
    corrections of the fit (NaN where they are not counted), and its seconds."""

    test_errors: NDArray[np.float64]
    mistakes: NDArray[np.float64]
    fit_seconds: NDArray[np.float64]


class PairedComparison(NamedTuple):
    """How errors differ, first less second: their mean, the two-sided p-value, and how many pairs
    differ, the others having no say in it."""

    mean_difference: float
    p_value: float
    n_different: int


def compare_on_splits(
    estimators: Mapping[str, Any], X: Any, y: Any, splits: Any
) -> dict[str, SplitResults]:
    """Fit every estimator on the training part of every split, and test it on the other part.

    What Tables 1 and 2 of Brotto, Gentile & Vitale (2007) average: their training error is
    `mistakes`, the updates over all epochs.

    Parameters
    ----------
    estimators : dict of str to classifier
        By the names the results shall have. Clones are fitted.
    X, y : rows and labels
    splits : whatever scikit-learn takes for its `cv`
        Read once: all estimators get the same.

    Returns
    -------
    dict of str to SplitResults
        In the order of `estimators`.
    """
    pairs = _pairs(splits, X, y)
    results = {}
    for name, estimator in estimators.items():
        found = cross_validate(estimator, X, y, cv=pairs, scoring=_measure, error_score="raise")
        mistakes = found["test_mistakes"].astype(float)
        results[name] = SplitResults(found["test_error"], mistakes, found["fit_time"])
    return results


def chosen_on_training_parts(
    candidates: Mapping[str, Any], X: Any, y: Any, splits: list[Split]
) -> list[str]:
    """Return for each split the candidate of least error in 5-fold cross-validation on its training
    part; of several equally good the first."""
    folds = [_folds_within(train, y) for train, _ in splits]
    results = compare_on_splits(candidates, X, y, list(chain.from_iterable(folds)))
    ends = np.cumsum([len(parts) for parts in folds])[:-1]
    # So rounded that equal errors in another order are as good.
    errors = np.array([
        [round(float(part.mean()), ERROR_DECIMALS) for part in np.split(found.test_errors, ends)]
        for found in results.values()
    ])  # fmt: skip
    names = list(candidates)
    return [names[i] for i in errors.argmin(axis=0)]


def wilcoxon_signed_rank(
    errors: NDArray[np.float64], other_errors: NDArray[np.float64]
) -> PairedComparison:
    """Wilcoxon's signed-rank test of two algorithms on the same splits, as in Table 1.

    Pairs without a difference are left out, as Wilcoxon did. Errors on a small test set take few
    values; to be found equal in spite of rounding, differences are rounded.
    """
    differences = np.round(np.subtract(errors, other_errors), ERROR_DECIMALS)
    nonzero = differences[differences != 0]
    p_value = float(wilcoxon(nonzero).pvalue) if len(nonzero) else 1.0
    return PairedComparison(float(np.mean(differences)), p_value, len(nonzero))


def _measure(model: Any, X: Any, y: Any) -> dict[str, float]:
    """Test error and mistakes of a fitted model."""
    return {
        "error": float(np.mean(model.predict(X) != np.asarray(y))),
        "mistakes": float(np.sum(getattr(parts_of(model)[1], "n_corrections_", np.nan))),
    }


def _pairs(splits: Any, X: Any, y: Any) -> list[Split]:
    return list(check_cv(splits, y, classifier=True).split(X, y))


def _folds_within(train: NDArray[np.intp], y: Any) -> list[Split]:
    """Folds of a training part, as rows of the whole."""
    pairs = _pairs(5, train, np.asarray(y)[train])
    return [(train[learned], train[held_out]) for learned, held_out in pairs]
