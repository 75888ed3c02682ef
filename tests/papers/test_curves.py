"""Curves over epochs, compared with fits of so many epochs, and their picture."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from papers.curves import EpochCurvesDisplay, learning_curve_over_epochs
from sparsemargin import PNormPerceptron


def make_problem(n_classes=2, m=90, n=12, seed=0):
    """Return dense rows and labels, some of which are noise."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((m, n))
    y = (X @ rng.standard_normal((n, n_classes)) + rng.standard_normal((m, n_classes))).argmax(1)
    return X, np.array(["cow", "ant", "bee"])[y]


@pytest.mark.parametrize(("n_classes", "container"), [(2, sp.csr_matrix), (3, np.asarray)])
def test_the_curve_is_that_of_fits_of_so_many_epochs(n_classes, container):
    X, y = make_problem(n_classes)
    train, test = container(X[:60]), container(X[60:])
    model = PNormPerceptron(p=4, hypothesis="last", shuffle=False)
    curve = learning_curve_over_epochs(model, train, y[:60], test, y[60:], epochs=[1, 2, 7])
    assert_array_equal(curve.epochs, [1, 2, 7])
    for k, n_epochs in enumerate([1, 2, 7]):
        fitted = clone(model).set_params(max_iter=n_epochs).fit(train, y[:60])
        assert curve.mistakes[k] == np.sum(fitted.n_corrections_)
        assert curve.test_errors[k] == (fitted.predict(test) != y[60:]).mean()
    assert not hasattr(model, "classes_")
    assert len(set(curve.test_errors)) > 1


def test_several_runs_are_drawn_as_their_mean_with_its_standard_error():
    X, y = make_problem()
    runs = [
        learning_curve_over_epochs(PNormPerceptron(), X[i:], y[i:], X, y, epochs=[1, 3])
        for i in range(3)
    ]
    display = EpochCurvesDisplay({"three": runs, "one": runs[:1]}).plot()
    errors = [100 * run.test_errors for run in runs]
    line, _, (bars,) = display.error_lines_[0].lines
    assert_allclose(line.get_ydata(), np.mean(errors, axis=0))
    half = np.diff([segment[:, 1] for segment in bars.get_segments()])[:, 0] / 2
    assert_allclose(half, np.std(errors, axis=0, ddof=1) / np.sqrt(3))
    alone = display.correction_lines_[1].lines[0].get_data()
    assert_array_equal(alone, [[1, 3], runs[0].mistakes])
    plt.close("all")
