"""Curves over epochs compared with explicit loops."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.svm import SVC
from sklearn.utils import shuffle

from sparsemargin import PNormPerceptron
from sparsemargin.evaluation import learning_curve_over_epochs

IN_ORDER = {"hypothesis": "last", "shuffle": False}


def make_problem(n_classes=2, m=90, n=12, seed=0):
    """Return dense rows and labels, some of which are noise."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((m, n))
    y = (X @ rng.standard_normal((n, n_classes)) + rng.standard_normal((m, n_classes))).argmax(1)
    return X, np.array(["cow", "ant", "bee"])[y]


@pytest.mark.parametrize(("n_classes", "container"), [(2, sp.csr_matrix), (3, np.asarray)])
def test_learning_curve_equals_separate_fits(n_classes, container):
    X, y = make_problem(n_classes)
    train, test = container(X[:60]), container(X[60:])
    model = PNormPerceptron(p=4, **IN_ORDER)
    curve = learning_curve_over_epochs(model, train, y[:60], test, y[60:], epochs=[1, 2, 7])
    assert_array_equal(curve.epochs, [1, 2, 7])
    for k, n_epochs in enumerate([1, 2, 7]):
        fitted = clone(model).set_params(max_iter=n_epochs).fit(train, y[:60])
        assert curve.mistakes[k] == np.sum(fitted.n_corrections_)
        assert curve.test_errors[k] == (fitted.predict(test) != y[60:]).mean()
    assert not hasattr(model, "classes_")
    assert len(set(curve.test_errors)) > 1


def test_epochs_may_have_different_orders():
    X, y = make_problem()
    model = PNormPerceptron(p=4, **IN_ORDER)
    orders = {"shuffle_rows": True, "random_state": 7}
    curve = learning_curve_over_epochs(model, X, y, X, y, epochs=[1, 2, 3], **orders)
    random, by_hand, mistakes = np.random.RandomState(7), clone(model), []
    for _ in range(3):
        rows, labels = shuffle(X, y, random_state=random)
        by_hand.partial_fit(rows, labels, classes=np.unique(y))
        mistakes.append(by_hand.n_corrections_)
    assert_array_equal(curve.mistakes, mistakes)
    in_order = learning_curve_over_epochs(model, X, y, X, y)
    assert_array_equal(in_order.epochs, [1, 2, 3, 5, 10, 15, 20])  # the epochs of the paper
    assert not np.array_equal(curve.mistakes, in_order.mistakes[:3])


@pytest.mark.parametrize("epochs", [[], [0, 1], [2, 1], [1, 1], [1.5], 3, [[1, 2]]])
def test_epochs_that_do_not_increase_are_rejected(epochs):
    X, y = make_problem()
    with pytest.raises(ValueError, match="epochs must"):
        learning_curve_over_epochs(PNormPerceptron(), X, y, X, y, epochs=epochs)


def test_models_without_epochs_are_rejected():
    X, y = make_problem()
    with pytest.raises(ValueError, match="SVC has no partial_fit"):
        learning_curve_over_epochs(SVC(), X, y, X, y)
