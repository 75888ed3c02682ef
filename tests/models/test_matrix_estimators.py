"""The Perceptrons with a matrix as scikit-learn's estimators: rows in, weights and names out."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from problems.higher_order import (
    ESTIMATORS,
    assert_close,
    assert_same_model,
    by_blocks,
    coefficients,
    models,
    noisy_problem,
)
from sparsemargin import HigherOrderPerceptron, SecondOrderPerceptron

# -- rows -----------------------------------------------------------------------------------------


def with_arrays(X, data, indices, indptr):
    """Return CSR around these very arrays: the constructor would convert or sort some."""
    fresh = sp.csr_matrix(X.shape)
    fresh.data, fresh.indices, fresh.indptr = data, indices, indptr
    return fresh


def reversed_columns(X):
    """Return X with the entries of every row stored from the last column to the first."""
    backwards = X[::-1]
    return with_arrays(X, backwards.data[::-1], backwards.indices[::-1], X.indptr)


FORMATS = {
    "columns from the last": reversed_columns,
    "every entry as two halves": lambda X: with_arrays(
        X, np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr
    ),
    "stored zeros": lambda X: with_arrays(
        X, X.toarray().ravel(), np.tile(np.arange(15, dtype="i4"), 90),
        15 * np.arange(91, dtype="i4"),
    ),
    "csr_array": sp.csr_array, "csc": sp.csc_matrix, "coo": sp.coo_matrix,
    "dense": lambda X: X.toarray(),
}  # fmt: skip


@models
@pytest.mark.parametrize("form", FORMATS)
def test_any_format_gives_the_same_model(model, form):
    X, y = noisy_problem(n_classes=3)
    given = FORMATS[form](X)
    # Sums over entries that lie otherwise are rounded otherwise.
    rounding = 1e-12 if form in ("columns from the last", "every entry as two halves") else 0.0
    expected, fitted = (model(random_state=0).fit(rows, y) for rows in (X, given))
    assert_same_model(fitted, expected, X, rounding)
    outputs = expected.decision_function(X)
    assert_close(expected.decision_function(given), outputs, rounding)
    expected, fitted = (model().partial_fit(rows, y, classes=range(3)) for rows in (X, given))
    assert_same_model(fitted, expected, X, rounding)


@models
def test_no_byte_of_the_input_changes(model):
    X, y = noisy_problem(n_classes=3)
    weights = np.linspace(0, 1, 90)
    parts = X.data, X.indices, X.indptr, y, weights
    before = [part.tobytes() for part in parts]
    for part in parts:
        part.flags.writeable = False
    fitted = model(fit_intercept=True).fit(X, y, sample_weight=weights)
    fitted.partial_fit(X, y, sample_weight=weights).predict(X)
    assert [part.tobytes() for part in parts] == before


@models
@pytest.mark.parametrize("given", ["f4", "f8", "i8"])
def test_coefficients_are_float64_whatever_the_rows(model, given):
    X, y = noisy_problem(integers=True)
    fitted = model(fit_intercept=True).fit(X.astype(given), y)
    assert coefficients(fitted).dtype == fitted.intercept_.dtype == np.float64
    assert fitted.decision_function(X).dtype == np.float64


# -- names and parameters -------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_defaults_are_those_that_err_least(estimator):
    least = {
        "fit_intercept": True, "intercept_scaling": "auto", "max_iter": 5, "max_updates": 1000
    }  # fmt: skip
    assert least.items() <= estimator().get_params().items()


COMMON = {
    "max_updates": [0, -1, 1.5, "all"],
    "solver": ["cholesky", "", None, 1],
    "hypothesis": ["averaged", None],
    "max_iter": [0, -1, np.nan, np.inf],
    "max_corrections": [0, -1, 1.5],
    "intercept_scaling": [0, -1, np.inf, "data", None],
    "n_jobs": [0, 1.5],
    "class_weight": ["even", [1.0, 2.0], {0: -1.0, 1: 1.0}],
}
OWN = {
    HigherOrderPerceptron: {
        "p": [1.99, 0, -3, np.inf, np.nan, "2", None],
        "c": [1, 1.0, -0.1, 2.0, np.nan, "0.4", None],
        "sparse_updates": ["yes", None, 2],
    },
    SecondOrderPerceptron: {"a": [0, 0.0, -1.0, np.inf, np.nan, "1", None]},
}


@pytest.mark.parametrize(
    ("estimator", "name", "values"),
    [
        (estimator, name, values)
        for estimator, own in OWN.items()
        for name, values in (own | COMMON).items()
    ],
)
def test_bad_parameters_are_refused_by_name(estimator, name, values):
    X, y = noisy_problem()
    for value in values:
        model = estimator(**{name: value})
        for learn in model.fit, partial(model.partial_fit, classes=[0, 1]):
            with pytest.raises(ValueError, match=name):
                learn(X, y)
            assert not hasattr(model, "classes_")


@models
def test_bad_rows_are_refused_by_place_and_leave_the_model_as_it_was(model):
    X, y = noisy_problem()
    fitted = model(shuffle=False).fit(X, y)
    before = fitted.decision_function(X)
    bad = X.copy()
    bad.data[bad.indptr[18] - 1] = np.nan
    where = f"row 17, column {bad.indices[bad.indptr[18] - 1]}"
    for call, *labels in (fitted.fit, y), (fitted.partial_fit, y), (fitted.predict,):
        with pytest.raises(ValueError, match=where):
            call(bad, *labels)
        assert_array_equal(fitted.decision_function(X), before)
    twice = model(max_iter=2, shuffle=False).fit(X, y).decision_function(X)
    assert_close(fitted.partial_fit(X, y).decision_function(X), twice, by_blocks(fitted))
