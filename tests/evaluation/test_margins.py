"""Margins compared with their dense definition, for models of this and other libraries."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier
from sklearn.svm import SVC, LinearSVC

from depth import pairwise
from problems.csr import scrambled
from references.runs import p_norm
from sparsemargin import PNormPerceptron
from sparsemargin.evaluation import margin_distribution, margins

PEERS = [LinearSVC(intercept_scaling=2.5), LinearSVC(fit_intercept=False), RidgeClassifier()]
# SVC has one vector for each pair of classes, so only the case of two classes is supported.
PEERS = [*product(PEERS, [2, 3]), (SVC(kernel="linear"), 2)]


def make_problem(n_classes=2, m=60, n=12, seed=0):
    """Return dense rows with many zeros, the last row all zeros, and labels out of order."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((m, n)) * (rng.uniform(size=(m, n)) < 0.4)
    X[-1] = 0
    y = (X @ rng.standard_normal((n, n_classes))).argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)
    return X, np.array(["cow", "ant", "bee"])[y]


def dense_margins(coef, intercept, X, codes, *, p=2.0, rho=None, normalize=True):
    """Compute the margins by their definition, row by row and class by class."""
    W, rows = np.atleast_2d(coef).astype(float), np.array(X, dtype=float)
    if rho is not None:
        W = np.column_stack([W, np.array(intercept) / rho])
        rows = np.column_stack([rows, np.full(len(rows), rho)])
    found = []
    for x, code in zip(rows, codes, strict=True):
        size = p_norm(x, p) if normalize else 1.0
        outputs = [w @ x / (p_norm(w, p / (p - 1)) * size) if x.any() else 0.0 for w in W]
        if len(W) == 1:
            found.append(outputs[0] if code else -outputs[0])
        else:
            found.append(outputs[code] - max(o for c, o in enumerate(outputs) if c != code))
    return np.array(found)


def assert_margins_are_dense(model, X, y, *, p=2.0, rho=None, rows=None, rtol=1e-12):
    codes, rows = np.searchsorted(model.classes_, y), X if rows is None else rows
    for normalize in (True, False):
        found = margins(model, rows, y, normalize=normalize)
        assert found.dtype == np.float64
        weights = model.coef_, model.intercept_
        expected = dense_margins(*weights, X, codes, p=p, rho=rho, normalize=normalize)
        assert_allclose(found, expected, rtol=rtol, atol=rtol)


FORMS = [np.asarray, sp.csr_matrix, sp.csr_array, sp.coo_matrix]
FORMS += [lambda X: scrambled(sp.csr_matrix(X))]


@pytest.mark.parametrize(
    ("p", "rho", "n_classes", "hypothesis", "form", "dtype"),
    pairwise([2.0, 3.0, 7.5], [None, 2.5], [2, 3], ["last", "average"], FORMS, ["f8", "f4"]),
)
def test_margins_agree_with_the_definition(p, rho, n_classes, hypothesis, form, dtype):
    X, y = make_problem(n_classes)
    X = X.astype(dtype)
    space = {"p": p, "fit_intercept": rho is not None, "intercept_scaling": rho or 1.0}
    model = PNormPerceptron(hypothesis=hypothesis, **space).fit(X, y)
    rtol = 1e-12 if dtype == "f8" else 1e-6
    assert_margins_are_dense(model, X, y, p=p, rho=rho, rows=form(X), rtol=rtol)


@pytest.mark.parametrize(("peer", "n_classes"), PEERS)
def test_margins_of_scikit_learn_models_are_measured_alike(peer, n_classes):
    X, y = make_problem(n_classes)
    has_intercept = getattr(peer, "fit_intercept", True)
    rho = getattr(peer, "intercept_scaling", 1.0) if has_intercept else None
    assert_margins_are_dense(peer.fit(X, y), X, y, rho=rho)


def test_margins_do_not_densify_rows_or_weights(monkeypatch):
    X, y = make_problem(3)
    model = PNormPerceptron(p=4).fit(X, y)
    expected, rows = margins(model, X, y), sp.csr_array(X)
    with monkeypatch.context() as patched:
        for name in "toarray", "todense":
            patched.setattr(sp.csr_array, name, None)
        assert_array_equal(margins(model, rows, y), expected)
    assert sp.issparse(model.sparsify().coef_)
    assert_array_equal(margins(model, X, y), expected)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_margin_of_votes_uses_their_shares(n_classes):
    X, y = make_problem(n_classes)
    model = PNormPerceptron(p=4, hypothesis="vote").fit(X, y)
    shares, codes = model.decision_function(X), np.searchsorted(model.classes_, y)
    expected = [
        row[code] - np.delete(row, code).max() if n_classes == 3 else row * (2 * code - 1)
        for row, code in zip(shares, codes, strict=True)
    ]
    for normalize in (True, False):
        assert_array_equal(margins(model, X, y, normalize=normalize), expected)


def test_zero_rows_and_weights_have_margin_zero():
    X, y = make_problem()
    assert margins(PNormPerceptron(p=4).fit(X, y), X, y)[-1] != 0
    nothing = np.zeros((3, 2))
    for labels in ([0, 1, 0], [0, 1, 2]):
        model = PNormPerceptron(fit_intercept=False).fit(nothing, labels)
        assert_array_equal(margins(model, nothing, labels), np.zeros(3))


@pytest.mark.parametrize(("p", "size"), [(20.0, 2.0**-40), (20.0, 2.0**40), (2.0, 2.0**400)])
def test_margins_do_not_depend_on_the_scale_of_rows_or_weights(p, size):
    X, y = make_problem()
    model = PNormPerceptron(p=p, normalize=False, shuffle=False, fit_intercept=False)
    one, other = (clone(model).fit(rows, y) for rows in (X, X * size))
    assert_allclose(margins(one, X * size, y), margins(one, X, y), rtol=1e-12)
    assert_allclose(margins(other, X, y), margins(one, X, y), rtol=1e-12)


@pytest.mark.parametrize(("model", "labels", "message"), [
    (PNormPerceptron(), ["ant", "dog"], r"y\[1\] = 'dog' is not among .* \['ant', 'cow'\]"),
    (PNormPerceptron(), [0, 1], r"y\[0\] = 0 is not among"),
    (PNormPerceptron(), ["ant"], "inconsistent numbers of samples"),
    (PNormPerceptron(hypothesis="random"), ["ant", "cow"], "another .*hypothesis='last'"),
    (SVC(), ["ant", "cow"], "SVC has no weight vector"),
])  # fmt: skip
def test_unusable_labels_and_models_are_rejected(model, labels, message):
    X, y = make_problem()
    with pytest.raises(ValueError, match=message):
        margins(model.fit(X, y), X[:2], labels)


@pytest.mark.parametrize("grid", [None, np.linspace(-1.1, 1.1, 23)])
def test_distribution_counts_margins_at_most_the_threshold(grid):
    drawn = np.random.RandomState(0).randint(-5, 6, 40) / 5
    thresholds, share = margin_distribution(drawn, grid)
    assert_array_equal(thresholds, np.unique(drawn) if grid is None else grid)
    assert_array_equal(share, [(drawn <= s).mean() for s in thresholds])
    for values in [], [[0.5]], [0.1, np.nan]:
        with pytest.raises(ValueError, match=r"shape|NaN"):
            margin_distribution(values, grid)
