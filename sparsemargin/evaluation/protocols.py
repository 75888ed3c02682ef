"""What the same random splits tell: how algorithms compare, which features stay strongest."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.spatial.distance import pdist
from scipy.stats import wilcoxon
from sklearn.base import clone
from sklearn.model_selection import ShuffleSplit, check_cv, cross_validate
from sklearn.utils import _safe_indexing

from sparsemargin._engine.fitting.task import vectors_of
from sparsemargin.evaluation.weights import coef_of, strongest_features
from sparsemargin.models.pipelines import names_out_of, parts_of
from sparsemargin.models.validation import check_sparse

#: Row numbers of a training and of a test part.
Split = tuple[NDArray[np.intp], NDArray[np.intp]]

#: Decimals in which errors may differ; what is beyond is rounding.
ERROR_DECIMALS = 12


class SplitResults(NamedTuple):
    """One algorithm on every split, as `compare_on_splits` gives it; arrays of shape (n_splits,).

    Attributes
    ----------
    test_errors : ndarray, float64
        Fraction of the test part that is misclassified, in [0, 1].
    mistakes : ndarray, float64
        `n_corrections_` of the fit, over all its epochs and classes; NaN where the estimator does
        not count them.
    fit_seconds : ndarray, float64
        Wall time of the fit; of use for comparisons only where one process ran at a time.
    """

    test_errors: NDArray[np.float64]
    mistakes: NDArray[np.float64]
    fit_seconds: NDArray[np.float64]


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


class SelectionStability(NamedTuple):
    """How far splits agree about the strongest features, as `selection_stability` gives it.

    Attributes
    ----------
    frequencies : ndarray of shape (n_features,), float64
        Share of the splits in which a feature is among the strongest, in [0, 1].
    agreement : float
        Mean Jaccard index, over the pairs of splits, of their strongest features: those in both
        sets, divided by those in either. From 0, where no two share one, to 1.
    effective_numbers : ndarray of shape (n_splits,), float64
        Among how many features the squared weights of each split are spread (their inverse
        participation ratio): s for s equal weights and zeros elsewhere, NaN for zeros only.
    """

    frequencies: NDArray[np.float64]
    agreement: float
    effective_numbers: NDArray[np.float64]


def random_splits(
    n_samples: int, *, train_size: int | float, test_size: int | float, n_splits: int = 1000,
    random_state: Any = None,
) -> list[Split]:  # fmt: skip
    """Random splits, drawn once, so that every algorithm runs on the same.

    Those of Brotto, Gentile & Vitale (2007), section 4, Task 1, are 47 and 11 rows of Breast's 58,
    60 and 36 of Lymphoma's 96, 1000 times each, "random permutations of the training set"
    included. They are scikit-learn's ShuffleSplit, whose training rows come permuted; an estimator
    takes them in that order with ``shuffle=False``.

    Parameters
    ----------
    n_samples : int
    train_size, test_size : int or float
        Rows in each part, or fractions of all rows.
    n_splits : int, default=1000
    random_state : int, RandomState or None, default=None

    Returns
    -------
    list of (train, test)
        Arrays of row numbers; no row is in both parts. `sklearn.model_selection` takes the list
        for its `cv`.

    Raises
    ------
    ValueError
        If the parts are empty, or do not fit into `n_samples` rows.

    Examples
    --------
    >>> splits = random_splits(58, train_size=47, test_size=11, random_state=0)
    >>> train, test = splits[0]
    >>> len(splits), len(train), len(test), len(set(train) | set(test))
    (1000, 47, 11, 58)
    """
    splitter = ShuffleSplit(
        n_splits, train_size=train_size, test_size=test_size, random_state=random_state
    )
    return list(splitter.split(np.empty(n_samples)))


def compare_on_splits(
    estimators: Mapping[str, Any], X: Any, y: Any, splits: Any, *, n_jobs: int | None = None,
    verbose: int = 0,
) -> dict[str, SplitResults]:  # fmt: skip
    """Fit every estimator on the training part of every split, and test it on the other part.

    What Tables 1 and 2 of Brotto, Gentile & Vitale (2007) average: their training error is
    `mistakes`, the updates over all epochs (5 in Table 1).

    Parameters
    ----------
    estimators : dict of str to classifier
        By the names the results shall have. Clones are fitted, the same `random_state` on every
        split. An order of rows that the split determines needs ``shuffle=False``.
    X : {sparse matrix, array-like} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    splits : iterable of (train, test), cross-validation splitter, or int
        `random_splits`, or whatever scikit-learn takes for its `cv`. Read once: all estimators
        get the same.
    n_jobs : int, default=None
        Processes over the splits. Errors and mistakes do not depend on it.
    verbose : int, default=0
        1: a line for each algorithm when it is done; above, also joblib's lines on the way.

    Returns
    -------
    dict of str to SplitResults
        In the order of `estimators`.

    Raises
    ------
    ValueError
        If there is no estimator or no split, or a fit fails.
    KeyboardInterrupt
        On Ctrl-C, also within a fit that would end with what it had learned.

    Examples
    --------
    >>> from sklearn.svm import LinearSVC
    >>> from sparsemargin import PNormPerceptron
    >>> from sparsemargin.datasets import make_alma_target
    >>> X, y, *_ = make_alma_target(200, 1, random_state=0)
    >>> splits = random_splits(200, train_size=120, test_size=80, n_splits=5, random_state=0)
    >>> rivals = {"p = 6": PNormPerceptron(p=6, shuffle=False), "SVM": LinearSVC()}
    >>> results = compare_on_splits(rivals, X, y, splits)
    >>> bool(results["p = 6"].test_errors.mean() < results["SVM"].test_errors.mean())
    True
    >>> results["SVM"].mistakes
    array([nan, nan, nan, nan, nan])
    """
    if not estimators:
        raise ValueError("estimators is empty. Pass at least one, by name.")
    pairs = list_splits(splits, X, y)
    results = {}
    for name, estimator in estimators.items():
        with ended_by_ctrl_c():
            found = cross_validate(
                estimator, X, y, cv=pairs, scoring=measure, n_jobs=n_jobs,
                verbose=max(0, verbose - 1), error_score="raise",
            )  # fmt: skip
        results[name] = SplitResults(
            found["test_error"], found["test_mistakes"].astype(float), found["fit_time"]
        )
        if verbose:
            errors, mistakes, seconds = results[name]
            print(
                f"{name}: test error {errors.mean():.2%}, mistakes {mistakes.mean():.1f}, "
                f"splits {len(errors)}, fits {seconds.sum():.1f} s"
            )
    return results


def select_setting(
    candidates: Mapping[str, Any], X: Any, y: Any, splits: Any, *, cv: Any = 5,
    n_jobs: int | None = None, verbose: int = 0,
) -> Selection:  # fmt: skip
    """Choose among settings of an algorithm by the test set, and by the training sets alone.

    Brotto, Gentile & Vitale (2007) print for each algorithm the setting that is best on the test
    set (Tables 1 and 2), c among 0, 0.2, ..., 0.8 and a over a wide range. Beside it stands here
    what cross-validation on each training part chooses, the test part unseen.

    Parameters
    ----------
    candidates : dict of str to classifier
        The settings, by name. Where several are equally good the first is taken, so put the
        simplest first.
    X, y, splits, n_jobs, verbose
        As for `compare_on_splits`; a fixed training and test set is a single split.
    cv : int or cross-validation splitter, default=5
        Within each training part, the same folds for all candidates; a number stands for
        stratified folds of its rows as they come.

    Returns
    -------
    Selection

    Raises
    ------
    ValueError, KeyboardInterrupt
        As `compare_on_splits` does.

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
    first, second = _check_errors("errors", errors), _check_errors("other_errors", other_errors)
    if len(first) != len(second):
        raise ValueError(
            f"errors and other_errors have {len(first)} and {len(second)} entries. Pass those of "
            "the same splits."
        )
    differences = np.round(first - second, ERROR_DECIMALS)
    nonzero = differences[differences != 0]
    p_value = float(wilcoxon(nonzero).pvalue) if len(nonzero) else 1.0
    return PairedComparison(float(np.mean(differences)), p_value, len(nonzero))


def selection_stability(
    estimator: Any, X: Any, y: Any, splits: Any, *, top: int = 20, label: Any = None
) -> SelectionStability:
    """Fit on the training part of every split, and compare which features are the strongest.

    A gene that decides on every random part of the samples is worth a look; one that does on some
    may be there by chance.

    Parameters
    ----------
    estimator : classifier, or pipeline that ends in one
        Clones of it are fitted; they must have `coef_`. The other steps of a pipeline must make
        the same columns on every split.
    X : {sparse matrix, array-like} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    splits : iterable of (train, test), cross-validation splitter, or int
        As for `compare_on_splits`; at least two.
    top : int, default=20
        How many features count as the strongest.
    label : object, default=None
        The class whose weights are looked at; needed where there are more than two.

    Returns
    -------
    SelectionStability

    Raises
    ------
    ValueError
        If there are fewer than two splits, columns differ between them, `coef_` has no vector for
        each class, `label` is missing or unknown, `top` is less than 1, or a fit fails.

    Examples
    --------
    >>> from sparsemargin import PNormPerceptron
    >>> from sparsemargin.datasets import make_alma_target
    >>> from sparsemargin.evaluation import random_splits
    >>> X, y, *_ = make_alma_target(400, 1, n_relevant=5, random_state=0)
    >>> splits = random_splits(400, train_size=200, test_size=200, n_splits=6, random_state=0)
    >>> model = PNormPerceptron(p=8, shuffle=False)
    >>> found = selection_stability(model, X, y, splits, top=5)
    >>> len(found.frequencies), bool(found.agreement > 0.5)
    (300, True)
    """
    if top < 1:
        raise ValueError(f"top must be 1 or more, got {top}.")
    pairs = list_splits(splits, X, y)
    if len(pairs) < 2:
        raise ValueError("One model agrees with itself. Pass at least two splits.")
    X = X.tocsr() if issparse(X) else X
    first_names: Any = None
    chosen: list[NDArray[np.bool_]] = []
    effective_numbers = []
    with ended_by_ctrl_c():
        for train, _ in pairs:
            model = clone(estimator).fit(_safe_indexing(X, train), _safe_indexing(y, train))
            before, last = parts_of(model)
            names: Any = None if before is None else names_out_of(before)
            if not chosen:
                first_names = names
            elif not np.array_equal(first_names, names):
                raise ValueError(
                    "The steps before the last of the pipeline make other columns on each split. "
                    "Fit them to all rows, and pass what they make: "
                    "pipeline[:-1].fit_transform(X, y)."
                )
            strength = _strength(last, label)
            chosen.append(np.zeros(len(strength), dtype=bool))
            chosen[-1][strongest_features(strength, top)] = True
            effective_numbers.append(_effective_number(strength))
    agreement = 1 - float(pdist(chosen, "jaccard").mean())
    return SelectionStability(np.mean(chosen, axis=0), agreement, np.array(effective_numbers))


def list_splits(splits: Any, X: Any, y: Any) -> list[Split]:
    """The pairs of a `cv` argument, at least one."""
    check_sparse(X)  # before scipy slices it
    pairs = list(check_cv(splits, y, classifier=True).split(X, y))
    if not pairs:
        raise ValueError("splits is empty. Pass at least one pair (train, test).")
    return pairs


@contextmanager
def ended_by_ctrl_c() -> Iterator[None]:
    """Let Ctrl-C within a fit end all: a fit of this library keeps it to itself and warns."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "Interrupted after", UserWarning)
        try:
            yield
        except UserWarning as warning:
            if str(warning).startswith("Interrupted after"):
                raise KeyboardInterrupt from warning
            raise


def measure(model: Any, X: Any, y: Any) -> dict[str, float]:
    """Test error and mistakes of a fitted model, as `cross_validate` takes a scoring."""
    mistakes = getattr(parts_of(model)[1], "n_corrections_", np.nan)
    return {
        "error": float(np.mean(model.predict(X) != np.asarray(y))),
        "mistakes": float(np.sum(mistakes)),
    }


def _check_errors(name: str, errors: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(errors, dtype=np.float64)
    if values.ndim != 1 or not values.size:
        raise ValueError(
            f"{name} must be a one-dimensional array with at least one entry, got shape "
            f"{values.shape}."
        )
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite. Drop the pairs where one is NaN or infinite.")
    return values


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


def _strength(model: Any, label: Any) -> NDArray[np.float64]:
    """Absolute weights of a fitted model for a class; of two classes they are the same for both."""
    coef, classes = coef_of(model), list(model.classes_)
    if label is None and coef.shape[0] == 1:
        label = classes[1]
    if label not in classes:
        raise ValueError(
            f"Each class has weights of its own. Pass label=, the one of {model.classes_.tolist()} "
            f"whose are to be compared; got {label!r}."
        )
    (vector,) = vectors_of(coef[[min(classes.index(label), coef.shape[0] - 1)]])
    return np.abs(vector)


def _effective_number(strength: NDArray[np.float64]) -> float:
    if not strength.any():
        return np.nan
    # Relative to the largest, whose fourth power may be beyond what a float holds.
    squares = np.square(strength / strength.max())
    return float(squares.sum() ** 2 / np.square(squares).sum())
