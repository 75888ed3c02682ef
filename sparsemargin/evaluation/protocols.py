"""How algorithms are compared: on the same random splits, and over the epochs of one run."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import ShuffleSplit, check_cv, cross_validate
from sklearn.utils import check_random_state, shuffle

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


class EpochCurve(NamedTuple):
    """A run over epochs, as `learning_curve_over_epochs` gives it; arrays of shape (n_epochs,).

    Attributes
    ----------
    epochs : ndarray, int64
        After how many epochs the other two were taken.
    mistakes : ndarray, float64
        `n_corrections_` by then, over all classes; NaN where the estimator does not count them.
    test_errors : ndarray, float64
        Fraction of the test rows that is misclassified, in [0, 1].
    """

    epochs: NDArray[np.int64]
    mistakes: NDArray[np.float64]
    test_errors: NDArray[np.float64]


def random_splits(
    n_samples: int,
    *,
    train_size: int | float,
    test_size: int | float,
    n_splits: int = 1000,
    random_state: Any = None,
) -> list[Split]:
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
    estimators: Mapping[str, Any],
    X: Any,
    y: Any,
    splits: Any,
    *,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> dict[str, SplitResults]:
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
        Processes over the splits, as in scikit-learn. Errors and mistakes do not depend on it.
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
    >>> rivals = {
    ...     "p = 2": PNormPerceptron(hypothesis="last", shuffle=False),
    ...     "p = 6": PNormPerceptron(p=6, hypothesis="last", shuffle=False),
    ...     "SVM": LinearSVC(),
    ... }
    >>> results = compare_on_splits(rivals, X, y, splits)
    >>> bool(results["p = 6"].mistakes.mean() < results["p = 2"].mistakes.mean())
    True
    >>> results["SVM"].mistakes
    array([nan, nan, nan, nan, nan])
    """
    if not estimators:
        raise ValueError("estimators is empty. Pass at least one, by name.")
    pairs = list_splits(splits, X, y)
    results = {}
    for name, estimator in estimators.items():
        results[name] = _run_on(pairs, estimator, X, y, n_jobs, verbose)
        if verbose:
            print(_summary(name, results[name]))
    return results


def learning_curve_over_epochs(
    estimator: Any,
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    *,
    epochs: Sequence[int] = (1, 2, 3, 5, 10, 15, 20),
    shuffle_rows: bool = False,
    random_state: Any = None,
) -> EpochCurve:
    """Mistakes and test error of one run, after some of its epochs.

    Figure 2 of Brotto, Gentile & Vitale (2007), whose epochs are the default. The run learns by
    `partial_fit`, one call for each epoch.

    Parameters
    ----------
    estimator : classifier with `partial_fit`
        A clone of it learns. Its own `max_iter` and `shuffle` do not apply.
    X, X_test : {sparse matrix, array-like} of shape (n_samples, n_features)
    y, y_test : array-like of shape (n_samples,)
        All classes have to occur in y.
    epochs : sequence of int, default=(1, 2, 3, 5, 10, 15, 20)
        Rising.
    shuffle_rows : bool, default=False
        Whether every epoch takes the rows in a new random order instead of the given one.
    random_state : int, RandomState or None, default=None
        Of these orders; the estimator has its own.

    Returns
    -------
    EpochCurve

    Raises
    ------
    ValueError
        If `epochs` do not rise from 1 or more, y has one class only, the estimator
        has no `partial_fit`, or a fit fails.

    Examples
    --------
    >>> from sparsemargin import PNormPerceptron
    >>> from sparsemargin.datasets import make_alma_target
    >>> X, y, X_test, y_test, _ = make_alma_target(200, 200, random_state=0)
    >>> model = PNormPerceptron(p=6, hypothesis="last")
    >>> curve = learning_curve_over_epochs(model, X, y, X_test, y_test, epochs=[1, 3, 9])
    >>> bool((np.diff(curve.mistakes) >= 0).all())
    True
    """
    stops = _check_epochs(epochs)
    check_sparse(X)
    if not hasattr(estimator, "partial_fit"):
        raise ValueError(f"{type(estimator).__name__} has no partial_fit, by which epochs are run.")
    model, random = clone(estimator), check_random_state(random_state)
    classes, measured = np.unique(y), []
    if len(classes) < 2:
        raise ValueError(f"y has one class only, {classes.tolist()}; at least 2 are needed.")
    for epoch in range(1, int(stops[-1]) + 1):
        rows, labels = shuffle(X, y, random_state=random) if shuffle_rows else (X, y)
        model.partial_fit(rows, labels, classes=classes)
        if epoch in stops:
            measured.append(_measure(model, X_test, y_test))
    return EpochCurve(
        stops,
        np.array([measure["mistakes"] for measure in measured]),
        np.array([measure["error"] for measure in measured]),
    )


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


def _run_on(
    pairs: list[Split], estimator: Any, X: Any, y: Any, n_jobs: int | None, verbose: int
) -> SplitResults:
    with ended_by_ctrl_c():
        measured = cross_validate(
            estimator, X, y, cv=pairs, scoring=_measure, n_jobs=n_jobs,
            verbose=max(0, verbose - 1), error_score="raise",
        )  # fmt: skip
    return SplitResults(
        measured["test_error"], measured["test_mistakes"].astype(float), measured["fit_time"]
    )


def _measure(model: Any, X: Any, y: Any) -> dict[str, float]:
    mistakes = getattr(model, "n_corrections_", np.nan)
    return {
        "error": float(np.mean(model.predict(X) != np.asarray(y))),
        "mistakes": float(np.sum(mistakes)),
    }


def _summary(name: str, results: SplitResults) -> str:
    return (
        f"{name}: test error {results.test_errors.mean():.2%}, "
        f"mistakes {results.mistakes.mean():.1f}, splits {len(results.test_errors)}, "
        f"fits {results.fit_seconds.sum():.1f} s"
    )


def _check_epochs(epochs: ArrayLike) -> NDArray[np.int64]:
    stops = np.asarray(epochs)
    if stops.ndim != 1 or not stops.size or stops.dtype.kind not in "iu":
        raise ValueError(
            f"epochs must be a sequence of integers, such as range(1, 11), got {epochs!r}."
        )
    if stops[0] < 1 or not (np.diff(stops) > 0).all():
        raise ValueError(f"epochs must rise from 1 or more, got {epochs!r}.")
    return stops.astype(np.int64)
