"""Whether two algorithms differ: paired tests."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import wilcoxon

from sparsemargin.evaluation.protocols import ERROR_DECIMALS


class PairedComparison(NamedTuple):
    """How the errors of two algorithms differ, as `wilcoxon_signed_rank` gives it.

    Attributes
    ----------
    mean_difference : float
        First less second, in the unit of the errors: negative where the first errs less.
    p_value : float
        Two-sided.
    n_different : int
        Pairs that differ; the others have no say in the p-value.
    """

    mean_difference: float
    p_value: float
    n_different: int


def wilcoxon_signed_rank(errors: ArrayLike, other_errors: ArrayLike) -> PairedComparison:
    """Wilcoxon's signed-rank test of two algorithms on the same splits.

    By `scipy.stats.wilcoxon`, the test of Brotto, Gentile & Vitale (2007), Table 1.

    Parameters
    ----------
    errors, other_errors : array-like of shape (n_splits,)
        `SplitResults.test_errors` or any other figures, in the same order of splits.

    Returns
    -------
    PairedComparison

    Raises
    ------
    ValueError
        If the two are not vectors of finite numbers of one length.

    Notes
    -----
    Pairs without a difference are left out, as Wilcoxon did; where no other is left, the p-value
    is 1. Errors on a small test set take few values, so many differences tie. They share the mean
    of their ranks, and to be found equal in spite of rounding they are rounded to 12 decimals.

    Random splits of one data set share rows, so the differences are not independent, as the test
    takes them to be: with enough splits any difference becomes significant. The p-value tells
    whether the splits at hand are enough to see a difference between the algorithms on this data
    set, not whether it would be seen on fresh data.

    Examples
    --------
    >>> comparison = wilcoxon_signed_rank([0.1, 0.2, 0.1, 0.3, 0.2], [0.2, 0.2, 0.3, 0.6, 0.6])
    >>> comparison.p_value, comparison.n_different
    (0.125, 4)
    >>> wilcoxon_signed_rank([0.1, 0.2], [0.1, 0.2])
    PairedComparison(mean_difference=0.0, p_value=1.0, n_different=0)
    """
    first, second = _vector("errors", errors), _vector("other_errors", other_errors)
    if len(first) != len(second):
        raise ValueError(
            f"errors and other_errors have {len(first)} and {len(second)} entries. Pass those of "
            "the same splits."
        )
    differences = np.round(first - second, ERROR_DECIMALS)
    nonzero = differences[differences != 0]
    p_value = float(wilcoxon(nonzero).pvalue) if len(nonzero) else 1.0
    return PairedComparison(float(np.mean(differences)), p_value, len(nonzero))


def _vector(name: str, values: ArrayLike) -> NDArray[np.float64]:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers, got {values!r}.") from error
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be finite, got {values!r}. Drop what is NaN or infinite.")
    if numbers.ndim != 1 or not numbers.size:
        raise ValueError(
            f"{name} must be a one-dimensional array with at least one entry, got shape "
            f"{numbers.shape}."
        )
    return numbers
