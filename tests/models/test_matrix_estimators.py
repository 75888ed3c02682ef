"""The Perceptrons with a matrix as scikit-learn's estimators: rows in, weights and names out."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from problems.csr import csr_of, scrambled, shuffled_rows
from problems.higher_order import ESTIMATORS, assert_same_model, by_blocks, models, noisy_problem
from problems.kernels import assert_close, assert_same_outputs
from sparsemargin import HigherOrderPerceptron, SecondOrderPerceptron


def with_zeros(X):
    columns = np.tile(np.arange(15, dtype="i4"), 90)
    return csr_of(X.toarray().ravel(), columns, 15 * np.arange(91, dtype="i4"), X.shape)


FORMATS = {"in any order": shuffled_rows, "in parts": scrambled, "stored zeros": with_zeros}


@models
@pytest.mark.parametrize("form", FORMATS)
def test_any_format_gives_the_same_model_and_no_byte_of_it_changes(model, form):
    X, y = noisy_problem(n_classes=3)
    given, weights = FORMATS[form](X), np.linspace(0, 1, 90)
    parts = given.data, given.indices, given.indptr, y, weights
    before = [part.tobytes() for part in parts]
    for part in parts:
        part.flags.writeable = False
    # Sums over entries that lie otherwise are rounded otherwise.
    rounding = 0.0 if form == "stored zeros" else 1e-12
    expected, fitted = (
        model(fit_intercept=True, random_state=0).fit(rows, y, sample_weight=weights)
        for rows in (X, given)
    )
    assert_same_model(fitted, expected, X, rounding)
    outputs = expected.decision_function(X)
    assert_close(expected.decision_function(given), outputs, rounding)
    expected, fitted = (model().partial_fit(rows, y, classes=range(3)) for rows in (X, given))
    assert_same_model(fitted, expected, X, rounding)
    assert [part.tobytes() for part in parts] == before


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_defaults_are_those_that_err_least(estimator):
    least = {"fit_intercept": True, "intercept_scaling": "auto", "max_iter": 5}
    assert {**least, "max_updates": 1000}.items() <= estimator().get_params().items()


COMMON = {
    "max_updates": [0, -1, 1.5, "all"],
    "solver": ["cholesky", "", None, 1],
    "intercept_scaling": [0, -1, np.inf, "data", None],
}
OWN = {
    HigherOrderPerceptron: {
        "p": [1.99, 0, -3, np.inf, np.nan, "2", None],
        "c": [1, 1.0, -0.1, 2.0, np.nan, "0.4", None],
        "sparse_updates": ["yes", None, 2],
    },
    SecondOrderPerceptron: {"a": [0, 0.0, -1.0, np.inf, np.nan, "1", None]},
}


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_bad_parameters_are_refused_by_name(estimator):
    X, y = noisy_problem()
    for name, values in (OWN[estimator] | COMMON).items():
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
    twice = model(max_iter=2, shuffle=False).fit(X, y)
    assert_same_outputs(fitted.partial_fit(X, y), twice, X, by_blocks(fitted))
